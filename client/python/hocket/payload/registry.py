"""What one codec knows: the classes by name, how each is written, and what an annotation says of a place.

The rule of a place (`slot`): where one class is declared and the value is of exactly that class, it is written bare;
anything else is written with its name, `{"$type": name, "$value": ...}`, even a number. Where anything may stand, what
JSON shows by itself is bare. So a reader that has the same annotation never guesses.
"""

from collections.abc import Iterable, Sequence
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, Literal, get_origin

from hocket.errors import PayloadError
from hocket.payload.annotation import (
    NAMES,
    TYPES,
    class_name,
    classes_in,
    fields,
    fits,
    is_typed_dict,
    members,
    shape,
    subclass_named,
    type_names,
)
from hocket.payload.form import (
    LEAVES,
    PATHS,
    Form,
    Nothing,
    Read,
    Slot,
    Write,
    builtin_forms,
    distinct,
    each,
    each_item,
    each_pair,
    walk,
    walk_dict,
    walk_pairs,
)
from hocket.payload.record import record_form
from hocket.payload.text import Refusal, mismatch, spell, wrong

_MOST_SLOTS: Final = 10_000
_TEXT: Final = frozenset({str})
_HINTS: Final = {
    "builtins.bytearray": "; send bytes",
    "builtins.complex": "; send two floats",
    "builtins.generator": "; send a list",
    "builtins.memoryview": "; send bytes",
    "builtins.range": "; send a list",
    "numpy.ndarray": "; send what tolist() gives",
}


class Registry:
    def __init__(self, allow_nonfinite: bool) -> None:
        self._allow_nonfinite = allow_nonfinite
        self._classes: dict[str, type] = {}
        self._slots: dict[tuple[object, bool], Slot] = {}
        self.changes = 0  # grows with each class, so that who keeps what it was told knows when to ask again
        self._forms = builtin_forms(allow_nonfinite) | self._box_forms()

    # Classes

    def register(self, types: Iterable[object]) -> None:
        """Make classes known by name, with all that their fields hold."""
        queue = [cls for tp in types for cls in classes_in(tp)]
        for cls in queue:  # grows
            if cls in NAMES:
                continue
            name = class_name(cls)
            known = self._classes.get(name)
            if known is cls or (places := fields(cls)) is None:
                continue
            if known is not None:
                raise PayloadError(f"{known!r} and {cls!r} have one name, {name!r}", type_name=name)
            self._classes[name] = cls
            self.changes += 1
            queue.extend(inner for place in places.values() for inner in classes_in(place))

    def class_named(self, name: str, near: Sequence[type] = ()) -> type | None:
        """The class with that name: of those near, of those known, of those below the near."""
        for cls in near:
            if cls not in NAMES and class_name(cls) == name and (cls in self._forms or fields(cls) is not None):
                return cls
        return self._classes.get(name) or (subclass_named(name, near) if near else None)

    def annotation_named(self, name: str, near: Sequence[type] = ()) -> Any:
        """What a name says in Python. None if a class in it is not known."""
        tp = TYPES.get(name)
        if tp is not None:
            return tp
        if name[-1:] == ">" and name[:5] == "list<":
            inner = self.annotation_named(name[5:-1], near)
            return None if inner is None else list.__class_getitem__(inner)
        if name[-1:] == ">" and name[:4] == "map<":
            inner = self.annotation_named(name[4:-1], near)
            return None if inner is None else dict.__class_getitem__((str, inner))
        return self.class_named(name, near)

    def form(self, cls: type) -> Form:
        """How values of a class are written. Raises Refusal if they cannot be sent."""
        return self._forms.get(cls) or self._learn(cls)

    def _learn(self, cls: type) -> Form:
        form = record_form(cls, self)
        if form is None:
            name = f"{cls.__module__}.{cls.__qualname__}"
            raise Refusal(f"a value of type {name} cannot be sent{_HINTS.get(name, '')}", name)
        known = self._classes.get(form.name)
        if known is not None and (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__):
            del self._classes[form.name]  # defined anew, as in a notebook: the latest counts
        self.register([cls])
        self._forms[cls] = form
        return form

    # Where anything may stand

    def write_any(self, value: Any, depth: int) -> Any:
        cls = type(value)
        if cls in LEAVES:
            return value
        if cls is list:
            return self._write_list(value, depth)
        if cls is dict:
            return self._write_dict(value, depth)
        form = self._forms.get(cls) or self._learn(cls)
        return {"$type": form.name, "$value": form.write(value, depth)}

    def read_any(self, node: Any) -> Any:
        if type(node) is list:
            return self._read_list(node)
        if type(node) is dict:
            return self.open(node) if "$type" in node else self._read_dict(node)
        return node

    def open(self, node: dict[str, Any], near: Sequence[type] = ()) -> Any:
        """What is in an envelope. One of unknown type stays as it is."""
        name = node["$type"]
        if len(node) != 2 or "$value" not in node or type(name) is not str:
            raise Refusal('an object with "$type" has "$value" and nothing else')
        annotation = self.annotation_named(name, near)
        return node if annotation is None else self.reader(annotation)(node["$value"])

    def reader(self, annotation: Any) -> Read:
        """How to read what was written by its name."""
        if isinstance(annotation, type) and annotation is not list and annotation is not dict:
            return self.form(annotation).read
        return self.slot(annotation).read

    def _box_forms(self) -> dict[type, Form]:
        def box(cls: Any, write: Write, read: Read) -> Form:
            return Form(NAMES[cls], (), write, read)

        return {
            list: box(list, self._write_list, self._read_list),
            dict: box(dict, self._write_dict, self._read_dict),
            set: box(set, self._write_set, lambda node: distinct(set, self._read_list(node))),
            frozenset: box(frozenset, self._write_set, lambda node: distinct(frozenset, self._read_list(node))),
            tuple: box(tuple, self._write_items, lambda node: tuple(self._read_list(node))),
        }

    def _write_list(self, value: list[Any], depth: int) -> list[Any]:
        return value if LEAVES.issuperset(map(type, value)) else walk(self.write_any, value, depth)

    def _write_items(self, value: Any, depth: int) -> list[Any]:
        return walk(self.write_any, value, depth)

    def _write_set(self, value: Any, depth: int) -> list[Any]:
        return self._sorted(walk(self.write_any, value, depth))

    def _sorted(self, nodes: list[Any]) -> list[Any]:
        """By their JSON text: equal sets have equal bytes, whatever the hash seed."""
        return sorted(nodes, key=lambda node: spell(node, self._allow_nonfinite))

    def _write_dict(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        if not _is_plain(value):
            return {"$type": "map", "$value": walk_pairs(self.write_any, self.write_any, value, depth)}
        return value if LEAVES.issuperset(map(type, value.values())) else walk_dict(self.write_any, value, depth)

    def _read_list(self, node: Any) -> list[Any]:
        if type(node) is not list:
            raise wrong(node, "a list")
        return node if LEAVES.issuperset(map(type, node)) else each(self.read_any, node)

    def _read_dict(self, node: Any) -> dict[Any, Any]:
        if type(node) is not dict:
            raise wrong(node, "a map")
        return node if LEAVES.issuperset(map(type, node.values())) else each_item(self.read_any, node)

    # Where an annotation stands

    def slot(self, annotation: object, is_strict: bool = True) -> Slot:
        """The place of an annotation. Where it is not strict, pydantic judges what fits."""
        try:
            slot = self._slots.get((annotation, is_strict))
        except TypeError:  # its metadata has no hash
            return self._new_slot(annotation, is_strict)
        if slot is None:
            if len(self._slots) > _MOST_SLOTS:  # names of containers come from outside, too
                self._slots.clear()
            slot = self._slots[annotation, is_strict] = self._new_slot(annotation, is_strict)
        return slot

    def _new_slot(self, annotation: object, is_strict: bool) -> Slot:
        parts = members(annotation)
        rest = [part for part in parts if part is not NoneType] or parts
        origin, args = shape(rest[0])
        if len(rest) > 1 or get_origin(rest[0]) is Literal or not isinstance(origin, type) or origin is object:
            return self._open_slot(annotation, is_strict)
        both = self._box(origin, args, is_strict) if args else None
        if both is None:
            try:
                form = self.form(origin)
            except Refusal:  # an abstract class, a Protocol
                return self._open_slot(annotation, is_strict)
            both = form.write, form.read
        slot = self._closed_slot(annotation, origin, *both, is_strict)
        return slot._replace(exact=origin) if origin in LEAVES else slot

    def _open_slot(self, annotation: object, is_strict: bool) -> Slot:
        """A place for any value, or for one of several classes."""
        if not is_strict or annotation is Any or annotation is object:
            return Slot(Nothing, self.write_any, self.read_any)

        def write(value: Any, depth: int) -> Any:
            if not fits(value, annotation):
                raise mismatch(value, annotation)
            return self.write_any(value, depth)

        def read(node: Any) -> Any:
            value = self.read_any(node)
            if not fits(value, annotation):
                raise mismatch(value, annotation)
            return value

        return Slot(Nothing, write, read)

    def _closed_slot(self, annotation: object, origin: type, write: Write, read: Read, is_strict: bool) -> Slot:
        """A place for one class: its values are bare, those of others always in an envelope."""
        is_nullable = NoneType in members(annotation)
        is_path = issubclass(origin, PurePath)
        near = (origin,)
        cls = dict if is_typed_dict(origin) else origin
        must_be_plain = cls is dict and "map" not in type_names(annotation)

        def put(value: Any, depth: int) -> Any:
            kind = type(value)
            if kind is cls or (is_path and kind in PATHS and isinstance(value, origin)):
                if not must_be_plain or _is_plain(value):
                    return write(value, depth)
            elif value is None and is_nullable:
                return None
            if is_strict and not fits(value, annotation):
                raise mismatch(value, annotation)
            node = self.write_any(value, depth)
            return node if type(node) is dict and "$type" in node else {"$type": NAMES[kind], "$value": node}

        def get(node: Any) -> Any:
            if node is None and is_nullable:
                return None
            if type(node) is not dict or "$type" not in node:
                return read(node)
            value = self.open(node, near)
            if value is node:
                raise Refusal(f"expected {class_name(origin)}, but {node['$type']!a} is not known here")
            if is_strict and not fits(value, annotation):
                raise mismatch(value, annotation)
            return value

        return Slot(Nothing, put, get)

    def _box(self, origin: Any, args: tuple[Any, ...], is_strict: bool) -> tuple[Write, Read] | None:
        if origin is dict and type_names(args[0]) == ["string"]:
            return self._map(self.slot(args[1], is_strict))
        if origin is dict and type_names(args[0]) != ["*"]:
            key, value = self.slot(args[0], is_strict), self.slot(args[1], is_strict)
            return (
                lambda items, depth: walk_pairs(key.write, value.write, items, depth),
                lambda node: each_pair(key.read, value.read, node),
            )
        if origin is list:
            return self._list(self.slot(args[0], is_strict))
        if origin in (set, frozenset):
            write, read = self._list(self.slot(args[0], is_strict))
            return lambda items, depth: self._sorted(list(write(items, depth))), lambda node: distinct(
                origin, read(node)
            )
        if origin is tuple and args[-1] is Ellipsis:
            write, read = self._list(self.slot(args[0], is_strict))
            return lambda items, depth: list(write(items, depth)), lambda node: tuple(read(node))
        if origin is tuple:
            return self._tuple([self.slot(arg, is_strict) for arg in args if arg != ()])
        return None

    def _list(self, slot: Slot) -> tuple[Write, Read]:
        exact, put, get = slot
        only = frozenset({exact})

        def write(items: Any, depth: int) -> Any:
            return items if only.issuperset(map(type, items)) else walk(put, items, depth)

        def read(node: Any) -> Any:
            if type(node) is not list:
                raise wrong(node, "a list")
            return node if only.issuperset(map(type, node)) else each(get, node)

        return write, read

    def _map(self, slot: Slot) -> tuple[Write, Read]:
        exact, put, get = slot
        only = frozenset({exact})

        def write(items: Any, depth: int) -> Any:
            return items if only.issuperset(map(type, items.values())) else walk_dict(put, items, depth)

        def read(node: Any) -> Any:
            if type(node) is not dict:
                raise wrong(node, "a map")
            return node if only.issuperset(map(type, node.values())) else each_item(get, node)

        return write, read

    def _tuple(self, slots: list[Slot]) -> tuple[Write, Read]:
        def write(items: Any, depth: int) -> list[Any]:
            if len(items) != len(slots):
                raise Refusal(f"expected a tuple of {len(slots)}, got one of {len(items)}", "tuple")
            return walk(lambda pair, inner: pair[0].write(pair[1], inner), zip(slots, items, strict=True), depth)

        def read(node: Any) -> tuple[Any, ...]:
            if type(node) is not list or len(node) != len(slots):
                raise wrong(node, f"a list of {len(slots)}")
            return tuple(each(lambda pair: pair[0].read(pair[1]), list(zip(slots, node, strict=True))))

        return write, read


def _is_plain(value: dict[Any, Any]) -> bool:
    """Whether a dict can be a JSON object: all keys are text, and none makes it look like an envelope."""
    return _TEXT.issuperset(map(type, value)) and "$type" not in value
