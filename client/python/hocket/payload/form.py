"""Forms of builtin values: how each is written as JSON once its name is known, and read back exactly."""

import base64
import math
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from hocket.payload.annotation import NAMES, name_of
from hocket.payload.text import MAX_DEPTH, Refusal, not_finite, step, too_deep, wrong

# A value and its depth to a JSON tree; a JSON tree to a value.
Write: TypeAlias = Callable[[Any, int], Any]
Read: TypeAlias = Callable[[Any], Any]


class Form(NamedTuple):
    """How values of one name are written: as `data` of a payload, as `$value` of an envelope."""

    name: str
    supertypes: tuple[str, ...]
    write: Write
    read: Read
    read_subtype: Read | None = None


class Slot(NamedTuple):
    """A place with an annotation. A value of type `exact` is its own JSON there; `write` and `read` see to the rest."""

    exact: type
    write: Write
    read: Read


class Nothing:
    """No value has this type."""


LEAVES: Final = frozenset({str, int, float, bool, NoneType})
_NONFINITE: Final[Mapping[str, float]] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_KINDS: Final[Mapping[str, type[pathlib.PurePath]]] = {
    "posix": pathlib.PosixPath,
    "windows": pathlib.WindowsPath,
    "pure_posix": pathlib.PurePosixPath,
    "pure_windows": pathlib.PureWindowsPath,
}
PATHS: Final[Mapping[type, str]] = {cls: kind for kind, cls in _KINDS.items()}
_ODD_OFFSET: Final = re.compile(r"([-+])(\d\d):(\d\d):(\d\d)\.(\d{6})$", re.ASCII)
_MICROSECOND: Final = timedelta(microseconds=1)
_DURATION: Final = re.compile(r"(-?)(\d{1,14})(?:\.(\d{1,6}))?s", re.ASCII)
_DECIMAL: Final = re.compile(r"-?\d+(\.\d+)?(E[+-]?\d+)?", re.ASCII)
_DECIMAL_OR_NOT: Final = re.compile(rf"{_DECIMAL.pattern}|-?(Infinity|s?NaN\d*)", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# Below a microsecond Python would cut without a word.
_MOMENT: Final = re.compile(r"(?!.*\.\d{7})([-+:.TZ\d]+)((?:\[[^\[\]]+\])*)", re.ASCII)


def builtin_forms(allow_nonfinite: bool) -> dict[type, Form]:
    """Forms of all that holds no other values."""
    read_float, write_decimal, read_decimal = _number_forms(allow_nonfinite)
    parts: dict[type, tuple[Write, Read]] = {
        **{cls: (_write_itself, _read_exactly(cls)) for cls in (str, int, bool, NoneType)},
        float: (_write_itself, read_float),
        bytes: (lambda value, _: base64.b64encode(value).decode(), read_bytes),
        datetime: (_write_moment, _read_datetime),
        date: (lambda value, _: value.isoformat(), _read_date),
        time: (_write_moment, _read_time),
        timedelta: (_write_duration, _read_duration),
        Decimal: (write_decimal, read_decimal),
        UUID: (lambda value, _: str(value), _read_uuid),
        **dict.fromkeys((*PATHS, pathlib.Path, pathlib.PurePath), (_write_path, _read_path)),
    }
    return {cls: Form(NAMES[cls], (), *both) for cls, both in parts.items()}


# Walking: each refusal that passes learns where it happened


def walk(put: Write, items: Iterable[Any], depth: int) -> list[Any]:
    if depth > MAX_DEPTH:
        raise too_deep()
    nodes: list[Any] = []
    try:
        for item in items:
            nodes.append(put(item, depth + 1))  # noqa: PERF401  # its length is the index of a refused one
    except Refusal as refusal:
        refusal.steps.append((items, f"[{len(nodes)}]"))
        raise
    return nodes


def walk_dict(put: Write, items: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
    if depth > MAX_DEPTH:
        raise too_deep()
    nodes = {}
    key = None
    try:
        for key, item in items.items():
            nodes[key] = put(item, depth + 1)
    except Refusal as refusal:
        refusal.steps.append((items, step(key)))
        raise
    return nodes


def walk_pairs(put_key: Write, put: Write, items: Mapping[Any, Any], depth: int) -> list[Any]:
    if depth > MAX_DEPTH:
        raise too_deep()
    nodes = []
    key = None
    try:
        for key, item in items.items():
            nodes.append([put_key(key, depth + 2), put(item, depth + 2)])
    except Refusal as refusal:
        refusal.steps.append((items, step(key)))
        raise
    return nodes


def each(get: Read, nodes: list[Any]) -> list[Any]:
    values: list[Any] = []
    try:
        for node in nodes:
            values.append(get(node))  # noqa: PERF401  # its length is the index of a refused one
    except Refusal as refusal:
        refusal.steps.append((nodes, f"[{len(values)}]"))
        raise
    return values


def each_item(get: Read, nodes: dict[str, Any]) -> dict[str, Any]:
    values = {}
    key = ""
    try:
        for key, node in nodes.items():
            values[key] = get(node)
    except Refusal as refusal:
        refusal.steps.append((nodes, step(key)))
        raise
    return values


def each_pair(get_key: Read, get: Read, node: Any) -> dict[Any, Any]:
    if type(node) is not list or not all(type(pair) is list and len(pair) == 2 for pair in node):
        raise wrong(node, "a list of pairs")
    pairs = each(lambda pair: (get_key(pair[0]), get(pair[1])), node)
    found: dict[Any, Any] = hashed(dict, pairs)
    if len(found) != len(pairs):
        raise Refusal("a map holds a key twice", "map")
    return found


def distinct(box: type, items: list[Any]) -> Any:
    found = hashed(box, items)
    if len(found) != len(items):
        raise Refusal(f"a {NAMES[box]} holds an element twice", NAMES[box])
    return found


def hashed(box: Any, items: list[Any]) -> Any:
    try:
        return box(items)
    except TypeError:
        raise Refusal(f"something in a {'map' if box is dict else NAMES[box]} has no hash") from None


# Numbers and bytes


def _write_itself(value: Any, _: int) -> Any:
    return value


def _read_exactly(cls: type) -> Read:
    def read(node: Any) -> Any:
        if type(node) is not cls:
            raise wrong(node, NAMES[cls])
        return node

    return read


def _number_forms(allow_nonfinite: bool) -> tuple[Read, Write, Read]:
    def read_float(node: Any) -> float:
        if type(node) is float:
            return node
        # JavaScript writes 1.0 as 1.
        if type(node) is int and abs(node) <= 2**1023 and float(node) == node:
            return float(node)
        if allow_nonfinite and type(node) is str and node in _NONFINITE:
            return _NONFINITE[node]
        raise wrong(node, "float")

    def write_decimal(value: Decimal, _: int) -> str:
        if not (allow_nonfinite or value.is_finite()):
            raise not_finite(value, "decimal")
        return str(value)

    def read_decimal(node: Any) -> Decimal:
        pattern = _DECIMAL_OR_NOT if allow_nonfinite else _DECIMAL
        if type(node) is str and pattern.fullmatch(node):
            try:
                return Decimal(node)
            except ArithmeticError:  # an exponent beyond all bounds
                pass
        raise wrong(node, "decimal")

    return read_float, write_decimal, read_decimal


def read_bytes(node: Any) -> bytes:
    """Raw bytes of a payload, base64 of JSON."""
    if type(node) is bytes:
        return node
    try:
        return base64.b64decode(node, validate=True)
    except (TypeError, ValueError):
        raise wrong(node, "base64") from None


# Times


def _write_moment(value: Any, _: int) -> str:
    """ISO 8601, then in brackets, as in RFC 9557, the zone; `[fold=1]` where the offset does not tell the fold."""
    zone = value.tzinfo
    offset = value.utcoffset()
    text: str = value.replace(tzinfo=None).isoformat()
    if offset is not None:
        text += timezone(offset).tzname(None).removeprefix("UTC") or "+00:00"
    if zone is not None:
        text += _zone_tag(zone, value)
    return f"{text}[fold=1]" if value.fold and offset == value.replace(fold=0).utcoffset() else text


def _zone_tag(zone: tzinfo, value: object) -> str:
    if type(zone) is ZoneInfo and zone.key:
        return f"[{zone.key}]"
    if type(zone) is timezone:
        label = zone.tzname(None)
        if label == timezone(zone.utcoffset(None)).tzname(None):
            return ""
        if not re.search(r"[\[\]\0]", label):
            return f"[name={label}]"
    if type(zone).__module__.startswith("pydantic_core"):  # an offset that pydantic read; it comes back as a timezone
        return ""
    raise Refusal(f"a time zone of type {name_of(zone)} cannot be sent; use ZoneInfo or timezone", name_of(value))


def _read_datetime(node: Any) -> Any:
    return _read_moment(node, datetime)


def _read_time(node: Any) -> Any:
    return _read_moment(node, time)


def _read_moment(node: Any, cls: Any) -> Any:
    match = _MOMENT.fullmatch(node) if type(node) is str else None
    if match is None:
        raise wrong(node, NAMES[cls])
    try:
        value = cls.fromisoformat(match[1])
        if odd := _ODD_OFFSET.search(match[1]):
            value = value.replace(tzinfo=_odd_offset(*odd.groups()))
        for tag in match[2][1:-1].split("][") if match[2] else ():
            if tag == "fold=1":
                value = value.replace(fold=1)
            elif tag.startswith("name="):
                value = value.replace(tzinfo=timezone(value.utcoffset(), tag[5:]))
            else:
                value = _in_zone(value, ZoneInfo(tag), match[1])
    except (ArithmeticError, KeyError, OSError, TypeError, ValueError):
        raise wrong(node, NAMES[cls]) from None
    return value


def _odd_offset(sign: str, hours: str, minutes: str, seconds: str, micros: str) -> timezone:
    """An offset with a fraction of a second, of which Python's own parser may lose the fraction."""
    offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds), microseconds=int(micros))
    return timezone(-offset if sign == "-" else offset)


def _in_zone(value: Any, zone: ZoneInfo, text: str) -> Any:
    """The same wall time in the zone. An offset picks the fold, and an offset that the zone never has is refused."""
    if text.endswith("Z") and isinstance(value, datetime):  # RFC 9557: the instant is known, the local offset is not
        return value.astimezone(zone)
    for fold in (0, 1):
        local = value.replace(tzinfo=zone, fold=fold)
        if local.utcoffset() == value.utcoffset():
            return local
    raise ValueError(f"{zone.key} has another offset then")


def _read_date(node: Any) -> date:
    try:
        if type(node) is str and _DATE.fullmatch(node):
            return date.fromisoformat(node)
    except ValueError:
        pass
    raise wrong(node, "date")


def _write_duration(value: timedelta, _: int) -> str:
    """Seconds, as JSON has protobuf's Duration: exact, where a float would not be."""
    micros = value // _MICROSECOND
    seconds, fraction = divmod(abs(micros), 1_000_000)
    return f"{'-' if micros < 0 else ''}{seconds}{f'.{fraction:06}'.rstrip('0') if fraction else ''}s"


def _read_duration(node: Any) -> timedelta:
    match = _DURATION.fullmatch(node) if type(node) is str else None
    try:
        if match is not None:
            micros = int(match[2]) * 1_000_000 + int((match[3] or "").ljust(6, "0"))
            return timedelta(microseconds=-micros if match[1] else micros)
    except OverflowError:
        pass
    raise wrong(node, "duration")


# Names of things


def _read_uuid(node: Any) -> UUID:
    try:
        value = UUID(node)
        if str(value) == node.lower():
            return value
    except (AttributeError, TypeError, ValueError):
        pass
    raise wrong(node, "uuid")


def _write_path(value: pathlib.PurePath, _: int) -> Any:
    kind = PATHS.get(type(value))
    if kind is None:
        raise Refusal(f"a path of type {name_of(value)} cannot be sent", name_of(value))
    return str(value) if kind == "posix" else {"kind": kind, "path": str(value)}


def _read_path(node: Any) -> pathlib.PurePath:
    kind, text = ("posix", node) if type(node) is str else (None, None)
    if type(node) is dict and node.keys() == {"kind", "path"}:
        kind, text = node["kind"], node["path"]
    if type(text) is not str or type(kind) is not str or kind not in _KINDS:
        raise wrong(node, "path")
    try:
        return _KINDS[kind](text)
    except NotImplementedError:
        raise Refusal(f"a {kind} path cannot be made on {os.name}", "path") from None
