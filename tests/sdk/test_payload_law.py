"""Two laws of G3: what is sent comes back as it was, and what arrives raises PayloadError or nothing."""

import contextlib
import dataclasses
import enum
import json
import pathlib
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hocket import v1
from hocket.errors import PayloadError
from hocket.payload import Codec

pytestmark = pytest.mark.law


class Level(enum.StrEnum):
    LOW = "low"
    HIGH = "high"


@dataclasses.dataclass
class Leaf:
    text: str
    at: datetime | None
    price: Decimal | int
    weight: float
    others: dict[int, tuple[str, ...]]
    level: Level = Level.LOW


@dataclasses.dataclass
class Heavy(Leaf):
    more: Any = None


class Model(pydantic.BaseModel):
    leaf: Leaf
    leaves: list[Leaf]
    took: timedelta
    anything: Any
    choice: Leaf | Level | None


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
zones = st.sampled_from(
    [ZoneInfo("Europe/Berlin"), ZoneInfo("America/St_Johns"), ZoneInfo("Pacific/Apia"), UTC]
) | st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
datetimes = st.datetimes(timezones=st.none() | zones)
folded = st.builds(lambda value, fold: value.replace(fold=fold), datetimes, st.integers(0, 1))
decimals = st.decimals(allow_nan=False, allow_infinity=False)
floats = st.floats(allow_nan=False, allow_infinity=False)
keys = st.one_of(
    texts,
    st.just("$type"),
    st.integers(),
    st.booleans(),
    st.none(),
    st.binary(max_size=4),
    decimals,
    st.uuids(),
    st.dates(),
    st.times(),
    folded,
    st.timedeltas(),
    st.sampled_from(Level),
    st.sampled_from([pathlib.Path("/a"), pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("C:/a")]),
)
leaves = st.builds(
    Leaf,
    text=texts,
    at=st.none() | folded,
    price=decimals | st.integers(),
    weight=floats | st.integers(),
    others=st.dictionaries(st.integers(), st.lists(texts, max_size=2).map(tuple), max_size=2),
    level=st.sampled_from(Level),
)
scalars = keys | floats | leaves | st.builds(v1.Preview, type=texts, truncated_bytes=st.integers(0, 9))


def boxes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(texts, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3),
        st.sets(keys, max_size=3),
        st.frozensets(keys, max_size=3),
        st.builds(Heavy, texts, st.none(), st.integers(), floats, st.just({}), more=inner),
        st.builds(
            Model.model_construct,
            leaf=leaves,
            leaves=st.lists(leaves, max_size=2),
            took=st.timedeltas(),
            anything=inner,
            choice=st.none() | leaves | st.sampled_from(Level),
        ),
    )


values = st.recursive(scalars, boxes, max_leaves=8)


def same(left: Any, right: Any) -> bool:
    """Equal in type, zone, scale and order, not only by `==`."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, set | frozenset):
        return left == right and sorted(map(repr, left)) == sorted(map(repr, right))
    if isinstance(left, dict):
        return all(map(same, left.keys(), right.keys())) and all(map(same, left.values(), right.values()))
    if isinstance(left, Leaf | Model):
        return same(vars(left), vars(right))
    if isinstance(left, datetime | time):
        return repr(left) == repr(right) and left.fold == right.fold and left.utcoffset() == right.utcoffset()
    return bool(left == right) and repr(left) == repr(right)


@given(values)
def test_g3_what_is_sent_comes_back_as_it_was(value: Any) -> None:
    codec = Codec()
    payload = codec.encode(value)
    assert same(codec.decode(payload), value)
    assert same(codec.decode(payload, type(value)), value) or type(value) is dict
    assert codec.encode(codec.decode(payload)) == payload
    codec.plain(payload)


@given(st.lists(values, max_size=4))
def test_g3_declared_annotations_do_not_change_what_comes_back(items: list[Any]) -> None:
    codec = Codec()
    declared = [list[Leaf], list[datetime], list[set[Decimal]], list[dict[int, Any]], list[float], list[Leaf | None]]
    for value in (items, [item for item in items if isinstance(item, Leaf)]):
        for annotation in declared:
            payload = codec.encode(value, [annotation])
            assert same(codec.decode(payload), value)


names = st.sampled_from(
    [
        *("string", "int", "float", "bool", "null", "bytes", "datetime", "time", "date", "duration", "decimal", "uuid"),
        *("path", "set", "frozenset", "tuple", "map", "list<any>", "map<any>", "list<datetime>", "map<list<int>>"),
        *("any", "", "*", "list<", "list<>", "map<x>", "hocket.v1.Preview"),
        *(f"{__name__}.{cls.__name__}" for cls in (Leaf, Heavy, Model, Level)),
    ]
)
json_like = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.just("2024-01-01T00:00:00[a]")
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
        st.fixed_dictionaries({"$type": names | inner, "$value": inner}),
        st.fixed_dictionaries(
            {}, optional={"text": inner, "at": inner, "price": inner, "weight": inner, "others": inner}
        ),
        st.fixed_dictionaries({"leaf": inner, "leaves": inner, "took": inner, "anything": inner, "choice": inner}),
    ),
    max_leaves=10,
)
tokens = st.lists(
    st.sampled_from(
        [
            b"[",
            b"]",
            b"{",
            b"}",
            b",",
            b":",
            b'"',
            b"\\u",
            b"d800",
            b"1",
            b"e9",
            b"-",
            b".",
            b"NaN",
            b"null",
            b'"$type"',
        ]
    )
).map(b"".join)
expectations = st.sampled_from(
    [Any, str, int, float, list, list[int], dict, set[str], Leaf, Model, Level, datetime, Leaf | None]
)


def dumps(tree: Any) -> bytes:
    return json.dumps(tree).encode()


@given(
    type=names | st.text(max_size=6),
    supertypes=st.lists(names, max_size=2),
    content_type=st.sampled_from(
        ["", "", "", "application/json", "application/protobuf", "application/octet-stream", "x"]
    ),
    data=json_like.map(dumps) | st.binary(max_size=20) | tokens,
    expected=expectations,
    is_known=st.booleans(),
    allow_nonfinite=st.booleans(),
)
def test_g3_what_arrives_raises_payload_error_or_nothing(
    type: str,
    supertypes: list[str],
    content_type: str,
    data: bytes,
    expected: Any,
    is_known: bool,
    allow_nonfinite: bool,
) -> None:
    codec = Codec(allow_nonfinite=allow_nonfinite)
    if is_known:
        codec.register(Heavy, Model, v1.Preview)
    try:
        payload = v1.Payload(type=type, supertypes=supertypes, content_type=content_type, data=data)
    except UnicodeEncodeError:
        return
    for read in (lambda: codec.decode(payload, expected), lambda: codec.plain(payload)):
        with contextlib.suppress(PayloadError):
            read()
