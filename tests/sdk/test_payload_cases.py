"""Public cases B11, B24 and B25: their part that is the codec's."""

import array
import enum
import math
import pathlib
import struct
import sys
import types
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from hocket import v1
from hocket.errors import PayloadError
from hocket.payload import Codec


class Color(enum.Enum):
    RED = "red"


# B11, values that JSON does not have


@pytest.mark.parametrize(
    "value",
    [
        Decimal("1.10"),
        UUID(int=7),
        b"\x00\xff",
        {1, 2},
        frozenset({"a"}),
        (1, (2,)),
        Color.RED,
        pathlib.Path("a/b"),
        pathlib.PurePosixPath("/a"),
        pathlib.PureWindowsPath(r"C:\temp\new"),
    ],
    ids=repr,
)
def test_b11_supported_values_come_back_with_their_type(value: object) -> None:
    codec = Codec()
    for sent in (value, [value], {"a": {"b": (value,)}}):
        found = codec.decode(codec.encode(sent))
        assert repr(found) == repr(sent)
        assert type(found) is type(sent)


def structured_array() -> Any:
    """numpy need not be there: what is refused is known by its class alone."""
    module = types.ModuleType("numpy")
    cls = type("ndarray", (), {"__module__": "numpy", "dtype": "i4,f8"})
    vars(module)["ndarray"] = cls
    return cls()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (range(3), "builtins.range"),
        (1j, "builtins.complex"),
        (structured_array(), "numpy.ndarray"),
        (array.array("i"), "array.array"),
        (memoryview(b""), "builtins.memoryview"),
        (struct.Struct("i"), "_struct.Struct"),
        (sys, "builtins.module"),
        (lambda: None, "builtins.function"),
    ],
)
def test_b11_others_are_refused_with_path_and_type(value: object, name: str) -> None:
    for sent, path in ((value, "$"), ({"items": [0, {"price": value}]}, "$.items[1].price")):
        with pytest.raises(PayloadError) as caught:
            Codec().encode(sent)
        assert (caught.value.path, caught.value.type_name) == (path, name)


def test_b11_a_cycle_is_found_where_it_closes() -> None:
    itself: list[Any] = []
    itself.append(itself)
    inner: dict[str, Any] = {"a": 1}
    inner["back"] = (inner,)
    for value, path, name in ((itself, "$[0]", "list<any>"), ({"top": inner}, "$.top.back[0]", "map<any>")):
        with pytest.raises(PayloadError, match="contains itself") as caught:
            Codec().encode(value)
        assert (caught.value.path, caught.value.type_name) == (path, name)


def test_b11_what_is_held_twice_is_no_cycle() -> None:
    shared = [1]
    codec = Codec()
    assert codec.decode(codec.encode([shared, shared])) == [[1], [1]]


# B24, text

GOOD_TEXT = [
    "\U0001f469\U0001f3fd\u200d\U0001f680",
    "\u05e9\u05dc\u05d5\u05dd",
    "e\u0301\u0323",
    "a" * 1023 + "\U0001f600",
    "\ufeffbom \x7f \u2028",
]


@pytest.mark.parametrize("text", GOOD_TEXT, ids=ascii)
def test_b24_valid_text_is_byte_identical(text: str) -> None:
    codec = Codec()
    for value in (text, [text], {text: text}):
        payload = codec.encode(value)
        assert text.encode() in payload.data
        assert codec.decode(payload) == value


def test_b24_an_escaped_surrogate_pair_is_one_character() -> None:
    payload = v1.Payload(type="string", data=b'"\\ud83d\\ude00"')
    assert Codec().decode(payload, str) == "\U0001f600"


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800", "\0", "a\0b"], ids=ascii)
def test_b24_lone_surrogates_and_nul_are_refused_with_their_path(text: str) -> None:
    for value, path in ((text, "$"), ({"a": ["", text]}, "$.a[1]"), ((text,), "$[0]"), (pathlib.Path("x" + text), "$")):
        with pytest.raises(PayloadError) as caught:
            Codec().encode(value)
        assert caught.value.path == path
        assert str(caught.value).isprintable()
    with pytest.raises(PayloadError, match=r"U\+0000|surrogate") as caught:
        Codec().encode({"a": {text: 1}})
    assert caught.value.path.startswith('$.a["')
    assert str(caught.value).isascii()


def test_b24_a_backslash_before_u0000_is_not_a_nul() -> None:
    codec = Codec()
    for text in ("\\u0000", "\\ud800", "\\\\u0000"):
        assert codec.decode(codec.encode([text])) == [text]


def test_b24_bad_text_that_arrives_is_refused_too() -> None:
    for data in (b'["\\ud800"]', b'{"a":"\\u0000"}', b'"\xed\xa0\x80"', b'"\xff"'):
        with pytest.raises(PayloadError):
            Codec().decode(v1.Payload(type="string", data=data))


# B25, numbers


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")]
)
def test_b25_what_is_not_finite_is_refused_with_its_path(value: object) -> None:
    for sent, path in ((value, "$"), ([1.5, {"a": value}], "$[1].a")):
        with pytest.raises(PayloadError, match="not finite") as caught:
            Codec().encode(sent)
        assert caught.value.path == path
        assert caught.value.type_name in ("float", "decimal")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("-Infinity")])
def test_b25_when_allowed_it_is_text_and_comes_back_as_number(value: object) -> None:
    codec = Codec(allow_nonfinite=True)
    for sent in (value, [1.5, {"a": value}], (value,)):
        payload = codec.encode(sent)
        found = codec.decode(payload)
        assert repr(found) == repr(sent)
        assert type(found) is type(sent)
        assert b'"NaN"' in payload.data or b'Infinity"' in payload.data
        with pytest.raises(PayloadError):
            Codec().decode(payload)


def test_b25_the_string_form_is_the_documented_one() -> None:
    codec = Codec(allow_nonfinite=True)
    assert codec.encode([math.nan, math.inf, -math.inf]).data == (
        b'[{"$type":"float","$value":"NaN"},{"$type":"float","$value":"Infinity"},{"$type":"float","$value":"-Infinity"}]'
    )
    assert codec.encode(math.nan).data == b'"NaN"'


@pytest.mark.parametrize("value", [-0.0, 2**53 + 1, -(2**63), 2**64, 1.0, 5e-324, sys.float_info.max])
def test_b25_minus_zero_and_big_ints_are_exact(value: object) -> None:
    codec = Codec()
    for sent in (value, [value]):
        assert repr(codec.decode(codec.encode(sent))) == repr(sent)


@pytest.mark.parametrize("value", [10**4300, -(10**5000) + 1, 10**4000 - 1, 10**8000], ids=["a", "b", "c", "d"])
def test_b25_ints_beyond_what_python_spells_at_once_are_exact(value: int) -> None:
    codec = Codec()
    for sent in (value, [value, "a"]):
        assert codec.decode(codec.encode(sent)) == sent


@pytest.mark.parametrize(
    "data", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"nan", b"1_0", b"0x1", b"01"]
)
def test_b25_no_bare_token_is_read(data: bytes) -> None:
    for name, text in (("float", data), ("list<any>", b"[" + data + b"]")):
        with pytest.raises(PayloadError):
            Codec(allow_nonfinite=True).decode(v1.Payload(type=name, data=text))
