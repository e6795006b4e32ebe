"""JSON text: trees of dicts, lists and scalars to bytes and back, and the refusals of what cannot travel.

C code does the work. It is looked over only when the bytes show that there may be something to see, so a plain value
pays nothing for the rules about surrogates, NUL, not-a-number and depth.
"""

import json
import json.encoder
import math
import re
from collections.abc import Callable
from typing import Any, Final

from hocket.errors import PayloadError
from hocket.payload.annotation import name_of, type_names

MAX_DEPTH: Final = 200

# `int` and `str` refuse above 4,300 digits.
_CHUNK_DIGITS: Final = 4000
_CHUNK: Final = 10**_CHUNK_DIGITS
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


# Refusals


class Refusal(Exception):  # noqa: N818  # never leaves the package: it becomes a PayloadError
    """Something cannot travel. Each level it passes on its way out adds itself and a step: paths cost nothing before."""

    def __init__(self, message: str, name: str = "", *, is_deep: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.name = name
        self.is_deep = is_deep
        self.steps: list[tuple[object, str]] = []

    def error(self) -> PayloadError:
        steps = self.steps[::-1]
        if self.is_deep:
            seen: set[int] = set()
            for at, (value, _) in enumerate(steps):
                if id(value) in seen:
                    path, name = _path(steps[:at]), name_of(value)
                    return PayloadError(f"a {name} that contains itself cannot be sent", path=path, type_name=name)
                seen.add(id(value))
        return PayloadError(self.message, path=_path(steps), type_name=self.name)


def _path(steps: list[tuple[object, str]]) -> str:
    return "$" + "".join(step for _, step in steps)


def step(key: object) -> str:
    """How a path shows a key: `.price`, or `["odd key"]`. ASCII, so that a path of bad text is good text."""
    if isinstance(key, str):
        return f".{key}" if key.isidentifier() and key.isascii() else f"[{json.dumps(key)}]"
    return f"[{ascii(key)[:60]}]".replace("\0", "")


def too_deep() -> Refusal:
    return Refusal(f"it nests deeper than {MAX_DEPTH} levels", is_deep=True)


def bad_text(text: str) -> Refusal:
    what = "U+0000" if "\0" in text else "a lone surrogate"
    return Refusal(f"text with {what} cannot be sent", "string")


def not_finite(value: object, name: str) -> Refusal:
    return Refusal(f"{value} is not finite; only a codec with allow_nonfinite sends it, as text", name)


def mismatch(value: object, annotation: object) -> Refusal:
    """A value where another belongs."""
    return Refusal(f"expected {' | '.join(type_names(annotation))}, got {name_of(value)}", name_of(value))


def wrong(node: object, wanted: str) -> Refusal:
    """JSON where another belongs."""
    shown = ascii(node)
    return Refusal(f"expected {wanted}, got {shown if len(shown) <= 40 else shown[:37] + '...'}")


# Trees to bytes

quote: Callable[[str], str] = json.encoder.encode_basestring


def _make_encoder() -> Callable[[Any, int], Any]:
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # not CPython
        plain = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False)
        return lambda tree, _: (plain.encode(tree),)
    encode: Callable[[Any, int], Any] = make(None, None, quote, None, ":", ",", False, False, False)
    return encode


_encode: Final = _make_encoder()


def dump(tree: Any, allow_nonfinite: bool) -> bytes:
    """Compact UTF-8. Raises Refusal, with the path, for text that is none, NaN and infinities, and depth."""
    try:
        text = "".join(_encode(tree, 0))
        data = text.encode()
        if "\\u0000" in text:
            data = spell(tree, allow_nonfinite).encode()
    except ValueError:  # a lone surrogate, a NaN, an int of thousands of digits
        data = spell(tree, allow_nonfinite).encode()
    check_depth(tree, data)
    return data


def spell(node: Any, allow_nonfinite: bool = False) -> str:
    """As `dump`, one node at a time: what is refused is found here, and what C cannot write is written."""
    if type(node) is str:
        if "\0" in node or (not node.isascii() and _SURROGATE.search(node)):
            raise bad_text(node)
        return quote(node)
    if type(node) is int:
        return digits(node)
    if type(node) is float and not math.isfinite(node):
        if not allow_nonfinite:
            raise not_finite(node, "float")
        return f'{{"$type":"float","$value":"{nonfinite_text(node)}"}}'
    if type(node) is list:
        return f"[{','.join(_spell_items(node, allow_nonfinite))}]"
    if type(node) is dict:
        return f"{{{','.join(_spell_fields(node, allow_nonfinite))}}}"
    return json.dumps(node)


def _spell_items(nodes: list[Any], allow_nonfinite: bool) -> list[str]:
    texts: list[str] = []
    try:
        for node in nodes:
            texts.append(spell(node, allow_nonfinite))  # noqa: PERF401  # its length is the index of a refused one
    except Refusal as refusal:
        refusal.steps.append((nodes, f"[{len(texts)}]"))
        raise
    return texts


def _spell_fields(nodes: dict[str, Any], allow_nonfinite: bool) -> list[str]:
    texts = []
    key = ""
    try:
        for key, node in nodes.items():
            texts.append(f"{spell(key)}:{spell(node, allow_nonfinite)}")
    except Refusal as refusal:
        if not (key == "$value" and "$type" in nodes):
            refusal.steps.append((nodes, step(key)))
        raise
    return texts


def nonfinite_text(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def digits(value: int) -> str:
    """An int in decimal, however long."""
    if -_CHUNK < value < _CHUNK:
        return str(value)
    parts, rest = [], abs(value)
    while rest:
        rest, part = divmod(rest, _CHUNK)
        parts.append(str(part).zfill(_CHUNK_DIGITS))
    return ("-" if value < 0 else "") + "".join(reversed(parts)).lstrip("0")


# Bytes to trees


def _int(text: str) -> int:
    unsigned = text.lstrip("-")
    value = 0
    for at in range(0, len(unsigned), _CHUNK_DIGITS):
        part = unsigned[at : at + _CHUNK_DIGITS]
        value = value * 10 ** len(part) + int(part)
    return -value if text[0] == "-" else value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is beyond the range of a float")
    return value


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {ascii(twice)[:40]} is there twice")
    return found


def _scanner(parse_int: Callable[[str], int]) -> Callable[[str, int], tuple[Any, int]]:
    decoder = json.JSONDecoder(
        object_pairs_hook=_object, parse_float=_finite, parse_int=parse_int, parse_constant=_no_constant
    )
    scan_once: Callable[[str, int], tuple[Any, int]] = vars(decoder)["scan_once"]
    return scan_once


scan: Final = _scanner(int)
_scan_slowly: Final = _scanner(_int)


def parse(data: bytes) -> Any:
    """The tree of a JSON text. Raises Refusal for all that is not one value of strict JSON."""
    try:
        text = data.decode().strip(" \t\r\n")
        try:
            tree, end = scan(text, 0)
        except ValueError:  # perhaps only an int of thousands of digits
            tree, end = _scan_slowly(text, 0)
    except UnicodeDecodeError as error:
        raise Refusal(f"it is not UTF-8 at byte {error.start}") from None
    except StopIteration as error:
        raise Refusal(f"it is not JSON: a value is missing at character {error.value}") from None
    except ValueError as error:
        raise Refusal(f"it is not JSON: {error}") from None
    if end != len(text):
        raise Refusal(f"it is not JSON: more follows the value at character {end}")
    check_depth(tree, data)
    if b"\\u" in data:  # text may hide a lone surrogate or a NUL in an escape
        spell(tree)
    return tree


def check_depth(tree: Any, data: bytes) -> None:
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    level: list[Any] = [tree]
    for _ in range(MAX_DEPTH):
        if not level:
            return
        children = [child for node in level for child in (node.values() if isinstance(node, dict) else node)]
        level = [child for child in children if type(child) is list or type(child) is dict]
    if level:
        raise too_deep()
