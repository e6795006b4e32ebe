"""Forms of users' classes: enums, protobuf messages, dataclasses, pydantic models, named tuples, typed dicts.

A record's fields are written by their annotations: bare where one class is declared and it is that class, in an
envelope elsewhere. Neither pydantic nor anything else of the user's is imported: a class is known by what it has.
"""

import base64
import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from google.protobuf.message import DecodeError, EncodeError, Message

from hocket.payload.annotation import (
    class_name,
    class_supertypes,
    fields,
    fits,
    is_model,
    is_named_tuple,
    is_typed_dict,
)
from hocket.payload.form import Form, Nothing, Read, Slot, Write, each, read_bytes, walk
from hocket.payload.text import MAX_DEPTH, Refusal, mismatch, step, too_deep, wrong


class Slots(Protocol):
    """What a record needs to write and read its fields."""

    def slot(self, annotation: object, is_strict: bool = True) -> Slot: ...
    def write_any(self, value: Any, depth: int) -> Any: ...
    def read_any(self, node: Any) -> Any: ...


def record_form(cls: Any, slots: Slots) -> Form | None:
    """The form of a user's class, or None if its values cannot be sent. Slots are asked for later: a class may hold
    itself."""
    name, above = class_name(cls), class_supertypes(cls)
    if issubclass(cls, enum.Enum):
        return Form(name, above, *_enum(cls))
    if issubclass(cls, Message) and cls is not Message:
        return Form(name, above, *_protobuf(cls))
    if is_model(cls):
        return Form(name, above, *_model(cls, slots))
    if dataclasses.is_dataclass(cls):
        return Form(name, above, *_dataclass(cls, slots))
    if is_named_tuple(cls):
        return Form(name, above, *_named_tuple(cls, slots))
    if is_typed_dict(cls):
        return Form(name, above, *_typed_dict(cls, slots))
    return None


# Records of fields


class _Fields:
    """Writes and reads the fields of one class. The loops below are the hot path of every user's message."""

    def __init__(self, cls: Any, slots: Slots, is_strict: bool) -> None:
        self.name = class_name(cls)
        self._cls = cls
        self._slots = slots
        self._is_strict = is_strict
        self._plan: list[tuple[str, type, Write, Read]] = []

    def plan(self) -> list[tuple[str, type, Write, Read]]:
        if not self._plan:
            places = fields(self._cls) or {}
            slots = [(name, self._slots.slot(hint, self._is_strict)) for name, hint in places.items()]
            self._plan = [(name, slot.exact, slot.write, slot.read) for name, slot in slots]
        return self._plan

    def write(self, value: Any, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise too_deep()
        tree = {}
        name, item = "", None
        try:
            for name, exact, put, _ in self._plan or self.plan():
                item = getattr(value, name, Nothing)
                tree[name] = item if type(item) is exact else put(item, depth + 1)
        except Refusal as refusal:
            if item is Nothing:
                refusal.message = f"field {name!r} of {self.name} was never set"
            refusal.steps.append((value, step(name)))
            raise
        return tree

    def read(self, node: Any) -> dict[str, Any]:
        """The fields that are there; others are left to the caller."""
        if type(node) is not dict:
            raise wrong(node, self.name)
        values = {}
        name = ""
        try:
            for name, exact, _, get in self._plan or self.plan():
                if name in node:
                    item = node[name]
                    values[name] = item if type(item) is exact else get(item)
        except Refusal as refusal:
            refusal.steps.append((node, step(name)))
            raise
        return values


def _dataclass(cls: Any, slots: Slots) -> tuple[Write, Read, Read]:
    """A field that the data lacks takes its default; one that the class lacks is refused, save of an unknown subtype."""
    record = _Fields(cls, slots, True)
    own = dataclasses.fields(cls)
    make = _maker(cls)

    def read_subtype(node: Any) -> Any:
        values = record.read(node)
        if len(values) < len(own):
            values |= {field.name: _default(field, record.name) for field in own if field.name not in values}
        return make(values)

    def read(node: Any) -> Any:
        values = record.read(node)
        if len(node) > len(values):
            raise Refusal(f"{record.name} has no field {min(node.keys() - values.keys())!a}", record.name)
        if len(values) < len(own):
            values |= {field.name: _default(field, record.name) for field in own if field.name not in values}
        return make(values)

    return record.write, read, read_subtype


def _default(field: Any, name: str) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    raise Refusal(f"{name} needs a field {field.name!r}", name)


def _maker(cls: Any) -> Callable[[dict[str, Any]], Any]:
    """Makes an object with the fields it had, as copy does. `__init__` runs only for a `__post_init__`, which may make
    more than fields; what it does to the fields themselves was done before they were sent, and is not done twice."""
    own = dataclasses.fields(cls)
    initial = [field.name for field in own if field.init]
    has_post_init = hasattr(cls, "__post_init__")
    in_dict = cls.__dictoffset__ != 0 and not any(hasattr(getattr(cls, field.name, None), "__set__") for field in own)

    def make(values: dict[str, Any]) -> Any:
        made = _initialized(cls, {name: values[name] for name in initial}) if has_post_init else None
        if made is None:
            made = cls.__new__(cls)
        if in_dict:
            made.__dict__.update(values)
        else:
            for name, value in values.items():
                object.__setattr__(made, name, value)
        return made

    return make


def _initialized(cls: Any, values: dict[str, Any]) -> Any:
    if any(str(field._field_type) == "_FIELD_INITVAR" for field in cls.__dataclass_fields__.values()):
        return None  # an InitVar is not kept, so there is nothing to give it
    try:
        return cls(**values)
    except Exception as error:
        raise Refusal(
            f"{class_name(cls)} refuses its fields: {type(error).__name__}: {error}", class_name(cls)
        ) from error


def _model(cls: Any, slots: Slots) -> tuple[Write, Read]:
    """A pydantic model: our forms for its fields, which keep more than its own JSON, and its own validation."""
    record = _Fields(cls, slots, False)

    def write(value: Any, depth: int) -> dict[str, Any]:
        tree = record.write(value, depth)
        for name, item in (value.__pydantic_extra__ or {}).items():
            try:
                if name == "$type":
                    raise Refusal("a field of this name cannot be sent", record.name)
                tree[name] = slots.write_any(item, depth + 1)
            except Refusal as refusal:
                refusal.steps.append((value, step(name)))
                raise
        return tree

    def read(node: Any) -> Any:
        values = record.read(node)
        for name in node.keys() - values.keys():
            values[name] = each(slots.read_any, [node[name]])[0]
        return _validated(cls, values)

    return write, read


def _validated(cls: Any, values: dict[str, Any]) -> Any:
    given: Any = values.get("root") if getattr(cls, "__pydantic_root_model__", False) else values
    try:
        return _by_name(cls, given)
    except Exception as error:
        refusal = Refusal(f"{class_name(cls)} refuses its fields: {error}", class_name(cls))
        faults: list[Any] = getattr(error, "errors", list)()
        if faults:
            refusal.message = f"{class_name(cls)} refuses it: {faults[0]['msg']}"
            steps = [f"[{key}]" if isinstance(key, int) else step(str(key)) for key in faults[0]["loc"]]
            refusal.steps.extend((values, key) for key in reversed(steps))
        raise refusal from error


def _by_name(cls: Any, values: Any) -> Any:
    try:
        return cls.__pydantic_validator__.validate_python(values, by_name=True, by_alias=False)
    except TypeError as error:
        if "by_name" not in str(error):
            raise
    # pydantic before 2.11 takes a field by its alias alone.
    aliases = {name: field.validation_alias or field.alias or name for name, field in cls.model_fields.items()}
    return cls.model_validate({str(aliases.get(name, name)): value for name, value in values.items()})


def _named_tuple(cls: Any, slots: Slots) -> tuple[Write, Read]:
    """A list, so that who expects a tuple can take it."""

    def write(value: Any, depth: int) -> list[Any]:
        return walk(slots.write_any, value, depth)

    def read(node: Any) -> Any:
        places = fields(cls) or {}
        if type(node) is not list or len(node) != len(places):
            raise wrong(node, f"a list of {len(places)}")
        values = each(slots.read_any, node)
        for name, value in zip(places, values, strict=True):
            if not fits(value, places[name]):
                refusal = mismatch(value, places[name])
                refusal.steps.append((node, step(name)))
                raise refusal
        return tuple.__new__(cls, values)

    return write, read


def _typed_dict(cls: Any, slots: Slots) -> tuple[Write, Read]:
    """A dict that an annotation declares to have these keys."""
    name = class_name(cls)

    def places(keys: Any) -> Mapping[str, Slot]:
        known = fields(cls) or {}
        if "$type" in keys or not cls.__required_keys__ <= keys <= known.keys():
            raise Refusal(f"the keys {', '.join(sorted(map(ascii, keys)))} are not those of {name}", name)
        return {key: slots.slot(known[key]) for key in keys}

    def write(value: Any, depth: int) -> dict[str, Any]:
        known = places(value.keys())
        tree = {}
        for key, item in value.items():
            try:
                tree[key] = known[key].write(item, depth + 1)
            except Refusal as refusal:
                refusal.steps.append((value, step(key)))
                raise
        return tree

    def read(node: Any) -> Any:
        if type(node) is not dict:
            raise wrong(node, name)
        known = places(node.keys())
        values = {}
        for key, item in node.items():
            try:
                values[key] = known[key].read(item)
            except Refusal as refusal:
                refusal.steps.append((node, step(key)))
                raise
        return values

    return write, read


# Enums and messages


def _enum(cls: Any) -> tuple[Write, Read]:
    """A member goes by its value where all values are text or numbers, else by its name."""
    kinds = {type(member.value) for member in cls}
    by_value = issubclass(cls, enum.Flag) or kinds <= {str, int, float}

    def read(node: Any) -> Any:
        try:
            member = cls(node) if by_value else cls[node]
            if type(member.value if by_value else member.name) is type(node):
                return member
        except Exception:  # noqa: BLE001  # `_missing_` is the user's
            pass
        raise wrong(node, class_name(cls))

    return (lambda value, _: value.value if by_value else value.name), read


def _protobuf(cls: type[Message]) -> tuple[Write, Read]:
    """Raw bytes as a payload, base64 in JSON."""

    def read(node: Any) -> Message:
        try:
            return cls.FromString(read_bytes(node))
        except DecodeError:
            raise Refusal(f"these bytes are no {class_name(cls)}", class_name(cls)) from None

    return (lambda value, _: base64.b64encode(serialize(value)).decode()), read


def serialize(message: Message) -> bytes:
    try:
        return message.SerializeToString(deterministic=True)
    except EncodeError as error:
        raise Refusal(str(error), message.DESCRIPTOR.full_name) from None
