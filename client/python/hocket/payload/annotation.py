"""Annotations: what a type is called in every language, and whether a value fits where one stands.

The table of names is in `hocket.payload`. Nothing here knows how a value is written.
"""

import collections.abc
import dataclasses
import enum
import inspect
import pathlib
import re
import sys
import types
import typing
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, NewType, TypeVar, Union, get_args, get_origin
from uuid import UUID

from google.protobuf.message import Message

from hocket import v1
from hocket.errors import PayloadError

NAMES: Final[Mapping[type, str]] = {
    str: "string",
    int: "int",
    float: "float",
    bool: "bool",
    types.NoneType: "null",
    bytes: "bytes",
    list: "list<any>",
    dict: "map<any>",
    set: "set",
    frozenset: "frozenset",
    tuple: "tuple",
    datetime: "datetime",
    date: "date",
    time: "time",
    timedelta: "duration",
    Decimal: "decimal",
    UUID: "uuid",
    pathlib.PurePath: "path",
    pathlib.PurePosixPath: "path",
    pathlib.PureWindowsPath: "path",
    pathlib.Path: "path",
    pathlib.PosixPath: "path",
    pathlib.WindowsPath: "path",
}
# `map` is a dict whose keys are anything but all text: only its keys' annotation tells it from `map<any>`.
TYPES: Final[Mapping[str, Any]] = {
    **{name: cls for cls, name in NAMES.items()},
    "any": Any,
    "path": pathlib.PurePath,
    "map": dict[collections.abc.Hashable, Any],
}
_NATIVE: Final = frozenset({"any", "string", "int", "float", "bool", "null"})

# What stands for list, dict and set in annotations.
_STANDS_FOR: Final[Mapping[object, type]] = {
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_LIBRARY: Final = frozenset({"abc", "builtins", "collections", "enum", "pydantic", "typing", "typing_extensions"})
_QUALIFIERS: Final = frozenset({"ClassVar", "Final", "Required", "NotRequired", "ReadOnly"})
_BOX: Final = re.compile(r"(list|map)<(.+)>", re.DOTALL)
_EMPTY_TUPLE: Final = (tuple[()], typing.Tuple[()])  # noqa: UP006  # both spellings

_names: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
_above: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


# Names of annotations


def type_name(tp: object) -> str:
    """Name of an annotation that is no union: `string`, `list<acme.Order>`; `*` for Any and object."""
    names = type_names(tp)
    if len(names) != 1:
        raise PayloadError(f"{tp} has {len(names)} names: {', '.join(names)}", type_name=" | ".join(names))
    return names[0]


def type_names(annotation: object) -> list[str]:
    """Names of a union's members in their order, each once; one name for any other annotation."""
    names: dict[str, None] = {}
    for member in members(annotation):
        if get_origin(member) is Literal:
            names.update((class_name(type(value)), None) for value in get_args(member))
        else:
            names[_name(member)] = None
    return list(names)


def payload_type(tp: object) -> v1.PayloadType:
    """Name and supertypes, nearest first, as a definition holds them."""
    return v1.PayloadType(name=type_name(tp), supertypes=supertypes(tp))


def supertypes(tp: object) -> tuple[str, ...]:
    """Names of the ancestors of what an annotation names, nearest first."""
    name = type_name(tp)
    if name == "map":
        return ("map<any>",)
    if box := _BOX.fullmatch(name):
        return () if box[2] == "any" else (f"{box[1]}<any>",)
    origin = shape(tp)[0]
    return class_supertypes(origin) if isinstance(origin, type) else ()


def is_native(name: str) -> bool:
    """Whether JSON shows this type by itself, so that a nested value needs no envelope."""
    while box := _BOX.fullmatch(name):
        name = box[2]
    return name in _NATIVE


def _name(tp: object) -> str:
    if tp is Any or tp is object:
        return "*"
    origin, args = shape(tp)
    if origin is list:
        return f"list<{_element(args[0])}>" if args else "list<any>"
    if origin is dict:
        key = type_names(args[0]) if args else ["*"]
        if key == ["*"]:
            return "map<any>"
        return f"map<{_element(args[1])}>" if key == ["string"] else "map"
    return class_name(origin) if isinstance(origin, type) else "*"


def _element(tp: object) -> str:
    names = type_names(tp)
    return "any" if len(names) > 1 or names == ["*"] else names[0]


# Names of classes


def class_name(cls: type) -> str:
    """The protobuf full name, the class's own `__hocket_type__`, or module and qualified name."""
    name = NAMES.get(cls) or _names.get(cls)
    if name is None:
        name = _names[cls] = _new_name(cls)
    return name


def _new_name(cls: type) -> str:
    if issubclass(cls, Message) and cls is not Message:
        return str(cls.DESCRIPTOR.full_name)
    name = cls.__dict__.get("__hocket_type__")
    if name is None:
        return f"{cls.__module__}.{cls.__qualname__}"
    if not isinstance(name, str) or name in TYPES or not re.fullmatch(r"[^\s<>|*\0]+", name):
        raise PayloadError(f"{cls.__qualname__}.__hocket_type__ is {name!r}, which cannot name a class")
    return name


def name_of(value: object) -> str:
    """The name of a value's class, for messages: it never fails."""
    try:
        return class_name(type(value))
    except PayloadError:
        return f"{type(value).__module__}.{type(value).__qualname__}"


def class_supertypes(cls: type) -> tuple[str, ...]:
    """Names of the bases in the order of the MRO, builtin values by their name, without those of libraries."""
    if cls in NAMES:
        return ()
    names = _above.get(cls)
    if names is None:
        bases = (dict,) if is_typed_dict(cls) else () if issubclass(cls, Message) else cls.__mro__[1:]
        names = _above[cls] = tuple(class_name(base) for base in bases if base in NAMES or not _is_library(base))
    return names


def _is_library(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _LIBRARY


def subclass_named(name: str, classes: Sequence[type]) -> type | None:
    """The class of that name among these and all below them. Builtins are not looked under."""
    queue = [cls for cls in classes if cls not in NAMES and cls is not object]
    seen = set(queue)
    for cls in queue:  # grows
        if class_name(cls) == name:
            return cls
        below: list[type] = type.__subclasses__(cls)
        queue.extend(sub for sub in below if sub not in seen)
        seen.update(below)
    return None


# What an annotation is made of


def resolve(tp: Any) -> Any:
    """The annotation without what does not change its type: Annotated, NewType, Final, aliases. TypeVars go by bound."""
    while True:
        origin = get_origin(tp)
        kind = type(tp).__name__
        if origin is typing.Annotated or getattr(origin, "_name", getattr(origin, "__name__", None)) in _QUALIFIERS:
            tp = get_args(tp)[0]
        elif isinstance(tp, NewType):
            tp = tp.__supertype__
        elif isinstance(tp, TypeVar):
            constraints = tp.__constraints__
            tp = Union[constraints] if constraints else tp.__bound__ or Any  # noqa: UP007  # made of a tuple
        elif kind == "TypeAliasType":
            tp = (origin or tp).__value__
        elif kind == "InitVar":
            tp = tp.type
        elif isinstance(tp, str | typing.ForwardRef):
            return Any  # nobody resolved it
        else:
            return types.NoneType if tp is None else tp


def members(tp: object) -> list[Any]:
    """The members of a union, flat; one for any other annotation."""
    tp = resolve(tp)
    if get_origin(tp) in (Union, types.UnionType):
        return [part for arg in get_args(tp) for part in members(arg)]
    return [tp]


def shape(tp: object) -> tuple[Any, tuple[Any, ...]]:
    """Origin and arguments, with `Sequence[int]` read as `list[int]`. The arguments of `tuple[()]` are `((),)`."""
    tp = resolve(tp)
    if tp in _EMPTY_TUPLE:
        return tuple, ((),)
    origin = get_origin(tp) or tp
    return (_STANDS_FOR.get(origin, origin) if isinstance(origin, type) else origin), get_args(tp)


def classes_in(tp: object) -> Iterator[type]:
    """The classes that an annotation names, at any depth."""
    for member in members(tp):
        origin, args = shape(member)
        if origin is Literal:
            yield from {type(arg) for arg in args}
            continue
        if isinstance(origin, type) and origin is not object:
            yield origin
        for arg in args:
            if arg is not Ellipsis and arg != ():
                yield from classes_in(arg)


# What a class is made of


def is_typed_dict(tp: object) -> bool:
    return isinstance(tp, type) and issubclass(tp, dict) and hasattr(tp, "__required_keys__")


def is_model(cls: object) -> bool:
    return hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_fields")


def is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields")


def fields(cls: Any) -> dict[str, Any] | None:
    """Annotations of the fields of a class whose values can be sent, or None."""
    if is_model(cls):
        return {name: field.annotation for name, field in cls.model_fields.items()}
    if hasattr(cls, "__dataclass_fields__"):
        known = hints(cls)
        # `x: str = None` is read as `str | None`.
        return {
            field.name: Union[known.get(field.name, Any), None] if field.default is None else known.get(field.name, Any)  # noqa: UP007
            for field in dataclasses.fields(cls)
        }
    if is_named_tuple(cls):
        known = hints(cls)
        return {name: known.get(name, Any) for name in cls._fields}
    if is_typed_dict(cls):
        return hints(cls)
    return {} if issubclass(cls, enum.Enum | Message) and cls is not Message else None


def hints(cls: type) -> dict[str, Any]:
    """Annotations of a class and its bases. A name that cannot be resolved, as of a local class, gives Any."""
    try:
        return typing.get_type_hints(cls, localns={cls.__name__: cls})
    except (NameError, TypeError, AttributeError, SyntaxError):
        pass
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        space = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        for name, annotation in inspect.get_annotations(base).items():
            holder = types.SimpleNamespace(__annotations__={name: annotation})
            try:
                found |= typing.get_type_hints(holder, space, {cls.__name__: cls})
            except (NameError, TypeError, AttributeError, SyntaxError):
                found[name] = Any
    return found


# Whether a value fits


def fits(value: object, tp: object) -> bool:
    """Whether a value belongs where an annotation stands, its elements too. An int fits a float, as in PEP 484."""
    return any(_fits(value, member) for member in members(tp))


def _fits(value: Any, tp: Any) -> bool:
    if tp is Any or tp is object:
        return True
    if get_origin(tp) is Literal:
        return any(type(value) is type(arg) and value == arg for arg in get_args(tp))
    origin, args = shape(tp)
    if is_typed_dict(origin):
        return isinstance(value, dict) and _fits_typed_dict(value, origin)
    if origin is float and type(value) is int:
        return True
    try:
        if not isinstance(value, get_origin(tp) or tp):
            return False
    except TypeError:
        return True  # a Protocol, a Callable: nothing to tell by
    if origin is dict and args:
        return _all_fit(value, args[0]) and _all_fit(value.values(), args[1])
    if origin is tuple and args and args[-1] is not Ellipsis:
        wanted = () if args == ((),) else args
        return len(value) == len(wanted) and all(map(fits, value, wanted))
    return not (args and origin in (list, set, frozenset, tuple)) or _all_fit(value, args[0])


def _all_fit(values: Any, tp: Any) -> bool:
    # The types of a long list of text or numbers are looked at without a call for each.
    return (isinstance(tp, type) and all(kind is tp for kind in set(map(type, values)))) or all(
        fits(value, tp) for value in values
    )


def _fits_typed_dict(value: Mapping[Any, object], cls: Any) -> bool:
    known = hints(cls)
    if not cls.__required_keys__ <= value.keys() <= known.keys():
        return False
    return all(fits(item, known[key]) for key, item in value.items())
