"""`Codec`: values to payloads and back. What is written inside a payload is `hocket.payload.registry`'s."""

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

from hocket import v1
from hocket.errors import PayloadError, PayloadTooLargeError
from hocket.payload.annotation import (
    NAMES,
    classes_in,
    fits,
    is_typed_dict,
    members,
    name_of,
    shape,
    supertypes,
    type_name,
    type_names,
)
from hocket.payload.form import Read, Slot
from hocket.payload.record import serialize
from hocket.payload.registry import Registry
from hocket.payload.text import (
    Refusal,
    bad_text,
    digits,
    dump,
    mismatch,
    nonfinite_text,
    not_finite,
    parse,
    quote,
    scan,
)

BYTES: Final = "application/octet-stream"
PROTOBUF: Final = "application/protobuf"
_MOST_PLANS: Final = 10_000
_RAW: Final = frozenset({BYTES, PROTOBUF})
_SCALARS: Final[Mapping[str, type]] = {"string": str, "int": int, "float": float, "bool": bool}
_ELEMENTS: Final[Mapping[type, str]] = {cls: name for name, cls in _SCALARS.items()}


class _Box(NamedTuple):
    """A container that an annotation declares: the name of such a payload and how its values are written."""

    cls: type
    name: str
    supertypes: tuple[str, ...]
    slot: Slot
    annotation: object
    is_exact: bool  # the name says all that the annotation says


class _Expected(NamedTuple):
    """An annotation taken apart."""

    names: list[str]
    origins: list[type]
    near: list[type]  # all classes that it names, at any depth


class _Plan(NamedTuple):
    """How a payload is read: as it is if `read` is None; then, if `must_fit`, held against what was expected."""

    read: Read | None
    must_fit: bool


class Codec:
    """Turns values into payloads and back. It knows the classes that it was told of or has met, and no others."""

    def __init__(self, *, max_inline_bytes: int = 256 * 1024, allow_nonfinite: bool = False) -> None:
        self._max_inline_bytes = max_inline_bytes
        self._allow_nonfinite = allow_nonfinite
        self._registry = Registry(allow_nonfinite)
        self._boxes: dict[object, list[_Box]] = {}
        self._plans: dict[tuple[str, object], _Plan] = {}
        self._changes = 0
        self._scalars: dict[type, Callable[[Any], v1.Payload]] = {
            str: self._encode_text,
            int: self._encode_int,
            float: self._encode_float,
            bool: lambda value: self._payload("bool", (), b"true" if value else b"false"),
            bytes: lambda value: self._payload("bytes", (), value, BYTES),
            NoneType: lambda _: v1.Payload(type="null"),
        }

    def register(self, *types: object) -> None:
        """Make classes known for decoding by name, with those that their annotations name.

        Two classes with one name are refused.
        """
        self._registry.register(types)

    # Values to payloads

    def encode(self, value: object, declared: Sequence[object] = ()) -> v1.Payload:
        """A payload of the value. `declared` are annotations that may name a container: `list[str]` for an empty list.

        Raises PayloadError, with path and type name, for what cannot travel, PayloadTooLargeError above the limit.
        """
        scalar = self._scalars.get(type(value))
        if scalar is not None:
            return scalar(value)
        try:
            return self._encode(value, declared)
        except Refusal as refusal:
            raise refusal.error() from refusal.__cause__
        except RecursionError:
            raise PayloadError("it nests too deeply", type_name=name_of(value)) from None

    def _encode(self, value: Any, declared: Sequence[object]) -> v1.Payload:
        cls = type(value)
        if cls is list or cls is dict:
            name, above, tree = self._container(value, declared)
        else:
            form = self._registry.form(cls)
            if isinstance(value, Message):
                return self._payload(form.name, (), serialize(value), PROTOBUF)
            name, above, tree = form.name, form.supertypes, form.write(value, 1)
        return self._payload(name, above, dump(tree, self._allow_nonfinite))

    def _payload(self, name: str, above: tuple[str, ...], data: bytes, content_type: str = "") -> v1.Payload:
        if len(data) > self._max_inline_bytes:
            size, limit = len(data), self._max_inline_bytes
            message = f"a {name} of {size} bytes is above the inline limit of {limit} bytes; keep it in a blob"
            raise PayloadTooLargeError(message, type_name=name)
        payload = v1.Payload()
        payload.type = name
        payload.data = data
        if above:
            payload.supertypes.extend(above)
        if content_type:
            payload.content_type = content_type
        return payload

    def _encode_text(self, value: str) -> v1.Payload:
        try:
            data = quote(value).encode()
        except UnicodeEncodeError:
            raise bad_text(value).error() from None
        if "\0" in value:
            raise bad_text(value).error()
        if len(data) > self._max_inline_bytes:
            return self._payload("string", (), data)
        payload = v1.Payload()
        payload.type = "string"
        payload.data = data
        return payload

    def _encode_int(self, value: int) -> v1.Payload:
        try:
            data = str(value).encode()
        except ValueError:  # more digits than Python converts at once
            data = digits(value).encode()
        if len(data) > self._max_inline_bytes:
            return self._payload("int", (), data)
        payload = v1.Payload()
        payload.type = "int"
        payload.data = data
        return payload

    def _encode_float(self, value: float) -> v1.Payload:
        if math.isfinite(value):
            return self._payload("float", (), repr(value).encode())
        if not self._allow_nonfinite:
            raise not_finite(value, "float").error()
        return self._payload("float", (), json.dumps(nonfinite_text(value)).encode())

    def _container(self, value: Any, declared: Sequence[object]) -> tuple[str, tuple[str, ...], Any]:
        """Name, supertypes and tree of a list or dict: as the first annotation that it fits, else as it shows."""
        cls = type(value)
        for box in self._declared(declared):
            if box.cls is cls and (box.is_exact or fits(value, box.annotation)):
                try:
                    tree = box.slot.write(value, 1)
                except Refusal:
                    continue  # refused again below, or fine where less is declared
                if cls is list or "$type" not in tree:
                    return box.name, box.supertypes, tree
                # A key of it is "$type", so it is written as pairs.
                return "map", (box.name, *(name for name in ("map<any>",) if name != box.name)), tree["$value"]
        tree = self._registry.write_any(value, 1)
        if cls is dict and "$type" in tree:
            return "map", ("map<any>",), tree["$value"]
        box_name = "list" if cls is list else "map"
        kinds = set(map(type, value if cls is list else value.values()))
        element = _ELEMENTS.get(kinds.pop()) if len(kinds) == 1 else None
        if element is None:
            return f"{box_name}<any>", (), tree
        return f"{box_name}<{element}>", (f"{box_name}<any>",), tree

    def _declared(self, declared: Sequence[object]) -> Iterator[_Box]:
        for annotation in declared:
            try:
                boxes = self._boxes.get(annotation)
            except TypeError:  # its metadata has no hash
                boxes = list(self._new_boxes(annotation))
            if boxes is None:
                boxes = self._boxes[annotation] = list(self._new_boxes(annotation))
            yield from boxes

    def _new_boxes(self, annotation: object) -> Iterator[_Box]:
        for member in members(annotation):
            origin, _ = shape(member)
            if origin is list or origin is dict or is_typed_dict(origin):
                name = type_name(member)
                # Written by what the name says and no more: that is all a reader is sure to have.
                named = self._registry.annotation_named(name, list(classes_in(member)))
                slot = self._registry.slot(named)
                cls = list if origin is list else dict
                yield _Box(cls, name, supertypes(member), slot, member, named == member or named is origin is member)

    def annotations_named(self, names: Iterable[str]) -> list[object]:
        """The annotations that names of types stand for, as far as their classes are known here."""
        found = (self._registry.annotation_named(name) for name in names)
        return [annotation for annotation in found if annotation is not None]

    # Payloads to values

    def decode(self, payload: v1.Payload, expected: object = Any) -> Any:
        """The value of a payload, where `expected` is the annotation of who asks for it. Raises PayloadError.

        A class comes back as exactly itself if it is known here or below the expected one. One that is not comes back
        as its nearest expected supertype, without the fields that it adds; where anything will do, as plain JSON.
        """
        name = payload.type
        scalar = _SCALARS.get(name)
        if scalar is not None and (expected is scalar or expected is Any) and not payload.content_type:
            data = payload.data
            try:
                text = data.decode()
                node, end = scan(text, 0)
                if type(node) is scalar and end == len(text) and b"\\u" not in data:
                    return node
            except (ValueError, StopIteration, RecursionError):
                pass  # told in full below
        try:
            return self._decode(payload, name, expected)
        except Refusal as refusal:
            refusal.name = refusal.name or name
            raise refusal.error() from refusal.__cause__
        except RecursionError:
            raise PayloadError("it nests too deeply", type_name=name) from None

    def _decode(self, payload: v1.Payload, name: str, expected: object) -> Any:
        plan = self._plan(payload, name, expected)
        data = payload.data
        node = parse(data) if data and not (payload.content_type or payload.metadata) else self._node(payload)
        if plan.read is None:
            if type(node) is bytes:
                raise Refusal(f"{name} is not known here; register its class", name)
            return node
        value = plan.read(node)
        if plan.must_fit and not fits(value, expected):
            raise mismatch(value, expected)
        return value

    def _plan(self, payload: v1.Payload, name: str, expected: object) -> _Plan:
        """How to read payloads of this name for who expects this. Kept, save where supertypes have a say."""
        if self._changes != self._registry.changes or len(self._plans) > _MOST_PLANS:
            self._changes = self._registry.changes
            self._plans.clear()
        try:
            plan = self._plans.get((name, expected))
        except TypeError:  # its metadata has no hash
            return self._new_plan(payload, name, expected)[0]
        if plan is None:
            plan, is_lasting = self._new_plan(payload, name, expected)
            if is_lasting:
                self._plans[name, expected] = plan
        return plan

    def _new_plan(self, payload: v1.Payload, name: str, expected: object) -> tuple[_Plan, bool]:
        if not name:  # JSON from who gives no names: it is what it shows
            return _Plan(self._registry.read_any, True), False
        wanted = _taken_apart(expected)
        annotation = None if name == "any" else self._registry.annotation_named(name, wanted.near)
        if "*" in wanted.names:
            return _Plan(
                None if annotation is None else self._registry.reader(annotation), False
            ), annotation is not None
        if annotation is not None and _is_wanted(name, annotation, wanted):
            return _Plan(self._registry.reader(annotation), annotation != expected), True
        for above in payload.supertypes:
            if above in wanted.names:
                if annotation is None:
                    return _Plan(self._subtype_reader(above, wanted), True), False
                return _Plan(self._registry.reader(annotation), True), False
        raise Refusal(f"expected {' | '.join(wanted.names)}, but the payload is {name}", name)

    def _subtype_reader(self, above: str, wanted: _Expected) -> Read:
        """Reads what a class that is not known here wrote, as the nearest of its supertypes that is wanted."""
        annotation = self._registry.annotation_named(above, wanted.near)
        if not isinstance(annotation, type) or annotation in NAMES:
            return self._registry.reader(annotation)
        form = self._registry.form(annotation)
        return form.read_subtype or form.read

    def _node(self, payload: v1.Payload) -> Any:
        """The JSON tree of a payload; bytes that are no JSON are their own."""
        which = payload.WhichOneof("value")
        if which is None:
            if payload.type not in ("", "null"):
                raise Refusal(f"a payload of type {payload.type} has no value", payload.type)
            return None
        if which == "blob":
            raise Refusal(f"the value is in the blob store at {payload.blob.uri!r}; fetch it first", payload.type)
        if (
            payload.type
            and payload.content_type in _RAW
            and (payload.type == "bytes") == (payload.content_type == BYTES)
        ):
            return payload.data
        if payload.content_type not in ("", "application/json"):
            raise Refusal(
                f"content type {payload.content_type!r} is not one of {payload.type or 'a value without type'}",
                payload.type,
            )
        try:
            return parse(payload.data)
        except Refusal as refusal:
            if payload.metadata:
                refusal.message += f"; its metadata has {sorted(payload.metadata)}: is it encrypted or compressed?"
            raise

    def plain(self, payload: v1.Payload) -> object:
        """A JSON-like tree without envelopes, for conditions and previews. Raises PayloadError."""
        try:
            if payload.content_type == PROTOBUF:
                return _shown(self._decode(payload, payload.type, Any))
            node = self._node(payload)
            if isinstance(node, bytes):
                return base64.b64encode(node).decode()
            return _unwrapped({"$type": payload.type, "$value": node})
        except Refusal as refusal:
            refusal.name = refusal.name or payload.type
            raise refusal.error() from None
        except RecursionError:
            raise PayloadError("it nests too deeply", type_name=payload.type) from None


def _taken_apart(expected: object) -> _Expected:
    origins = [origin for part in members(expected) if isinstance(origin := shape(part)[0], type)]
    return _Expected(type_names(expected), origins, list(classes_in(expected)))


def _is_wanted(name: str, annotation: Any, wanted: _Expected) -> bool:
    """Whether a type that is known goes to who expects this: by its name, as a subclass, as a container."""
    if name in wanted.names:
        return True
    box = shape(annotation)[0]
    if box is list or box is dict:
        return box in wanted.origins
    return annotation not in NAMES and any(issubclass(annotation, origin) for origin in wanted.origins)


def _shown(message: Message) -> object:
    from google.protobuf import json_format

    try:
        return json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (TypeError, ValueError, json_format.Error) as error:
        raise Refusal(f"it has no JSON: {error}") from None


def _unwrapped(node: Any) -> Any:
    if type(node) is list:
        return [_unwrapped(item) for item in node]
    if type(node) is not dict:
        return node
    if node.keys() != {"$type", "$value"}:
        return {key: _unwrapped(item) for key, item in node.items()}
    inner = _unwrapped(node["$value"])
    if node["$type"] == "map" and type(inner) is list and all(_is_text_pair(pair) for pair in inner):
        return dict(inner)
    return inner


def _is_text_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
