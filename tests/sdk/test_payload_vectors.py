"""Golden vectors: the same values have the same bytes in every language (contract, section 9, statement 36).

`tests/vectors/payload` is the contract: a value as Python writes it, the payload in protobuf's JSON form and, for the
eye, the JSON that is its data. `refused.json` has JSON that no reader may take.
"""

import dataclasses
import enum
import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PosixPath, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
from google.protobuf import json_format

from hocket import v1
from hocket.errors import PayloadError
from hocket.payload import Codec

VECTORS = Path(__file__).parents[1] / "vectors/payload"


@dataclasses.dataclass
class Order:
    __hocket_type__ = "acme.Order"
    order_id: str
    quantity: int
    price: Decimal
    placed: datetime | None = None


@dataclasses.dataclass
class RushOrder(Order):
    __hocket_type__ = "acme.RushOrder"
    hours: int = 24


class Color(enum.Enum):
    __hocket_type__ = "acme.Color"
    RED = "red"
    GREEN = "green"


class Level(enum.StrEnum):
    __hocket_type__ = "acme.Level"
    LOW = "low"
    HIGH = "high"


class Priority(enum.IntEnum):
    __hocket_type__ = "acme.Priority"
    LOW = 1


class Corner(enum.Enum):
    __hocket_type__ = "acme.Corner"
    TOP_LEFT = (0, 0)


class Access(enum.Flag):
    __hocket_type__ = "acme.Access"
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Basket:
    __hocket_type__ = "acme.Basket"
    orders: list[Order]
    colors: dict[str, Color]


@dataclasses.dataclass
class Point:
    __hocket_type__ = "acme.Point"
    x: float
    y: float


class Customer(pydantic.BaseModel):
    __hocket_type__ = "acme.Customer"
    name: str
    since: date
    seen: set[date]
    notes: Any


class Pair(NamedTuple):
    left: str
    right: Decimal


class Film(TypedDict):
    title: str
    year: int


# Neither kind of class takes it in its body.
vars_of: list[tuple[Any, str]] = [(Pair, "acme.Pair"), (Film, "acme.Film")]
for cls, type_name in vars_of:
    cls.__hocket_type__ = type_name

NAMES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(Order, RushOrder, Basket, Point, Customer, Pair, Film, Color, Level, Priority, Corner, Access),
        *(date, datetime, time, timedelta, timezone, ZoneInfo, Decimal, UUID),
        *(PosixPath, PurePosixPath, PureWindowsPath),
    )
} | {"UTC": UTC, "v1": v1}


def vectors(*names: str) -> list[Any]:
    rows = [row for name in names for row in json.loads((VECTORS / f"{name}.json").read_text())]
    return [pytest.param(row, id=row["name"]) for row in rows]


VALUES = vectors("scalars", "containers", "values", "records")


def value_of(row: dict[str, Any]) -> Any:
    return eval(row["python"], NAMES)  # our own vectors


def declared_of(row: dict[str, Any]) -> list[Any]:
    return [eval(text, NAMES) for text in row.get("declared", [])]


def test_there_are_enough() -> None:
    assert len(VALUES) >= 40
    assert len({param.id for param in VALUES}) == len(VALUES)


@pytest.mark.parametrize("row", VALUES)
def test_g3_a_value_has_these_bytes(row: dict[str, Any]) -> None:
    payload = Codec().encode(value_of(row), declared_of(row))
    assert json_format.MessageToDict(payload) == row["payload"]
    if "data" in row:
        assert payload.data.decode() == row["data"]


@pytest.mark.parametrize("row", VALUES)
def test_g3_these_bytes_are_this_value(row: dict[str, Any]) -> None:
    codec = Codec()
    codec.register(*(tp for tp in NAMES.values() if isinstance(tp, type)), v1.Preview)
    payload = json_format.ParseDict(row["payload"], v1.Payload())
    value = value_of(row)
    expectations = declared_of(row) or [type(value)]
    for expected in (Any, object, *expectations):
        found = codec.decode(payload, expected)
        assert found == value
        assert type(found) is type(value)
        assert repr(found) == repr(value) or isinstance(value, set | frozenset)


@pytest.mark.parametrize("row", vectors("refused"))
def test_g3_no_reader_takes_this(row: dict[str, Any]) -> None:
    codec = Codec()
    codec.register(Point, Color, Customer)
    payload = v1.Payload(type=row["type"], data=row["data"].encode())
    with pytest.raises(PayloadError) as caught:
        codec.decode(payload)
    assert caught.value.type_name
