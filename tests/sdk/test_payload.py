"""Payloads as their users meet them: names, what comes back, what does not (G1, G2, G3)."""

import collections.abc
import dataclasses
import enum
import subprocess
import sys
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NewType, Optional, Protocol, TypedDict, TypeVar, Union

import pydantic
import pytest

from hocket import v1
from hocket.errors import PayloadError, PayloadTooLargeError
from hocket.payload import Codec, is_native, payload_type, type_name, type_names

T = TypeVar("T")
B = TypeVar("B", bound=Decimal)
OrderId = NewType("OrderId", str)


@dataclasses.dataclass
class Shape:
    name: str


@dataclasses.dataclass
class Circle(Shape):
    __hocket_type__ = "acme.Circle"
    radius: float = 1.0


@dataclasses.dataclass
class Disc(Circle):
    """Does not inherit its parent's name."""


@dataclasses.dataclass
class Tree(Generic[T]):
    value: T
    below: list["Tree[T]"] = dataclasses.field(default_factory=list)


class Level(enum.StrEnum):
    HIGH = "high"


class Film(TypedDict, total=False):
    title: str
    released: date


class Base(pydantic.BaseModel):
    kind: str = "base"


class Reply(Base, Generic[T]):
    body: T


class Drawable(Protocol):
    def draw(self) -> None: ...


HERE = __name__


def untyped(value: Any) -> Any:
    """Hides from the type checker that a field is given what its annotation forbids."""
    return value


# Names


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (str, "string"),
        (int, "int"),
        (bool, "bool"),
        (None, "null"),
        (bytes, "bytes"),
        (timedelta, "duration"),
        (Any, "*"),
        (object, "*"),
        (list, "list<any>"),
        (list[Any], "list<any>"),
        (list[int | str], "list<any>"),
        (list[list[str]], "list<list<string>>"),
        (collections.abc.Sequence[int], "list<int>"),
        (dict, "map<any>"),
        (dict[str, int], "map<int>"),
        (collections.abc.Mapping[OrderId, Decimal], "map<decimal>"),
        (dict[int, str], "map"),
        (tuple[int, str], "tuple"),
        (set[int], "set"),
        (OrderId, "string"),
        (Annotated[int, "positive"], "int"),
        (Literal["a", "b"], "string"),
        (T, "*"),
        (B, "decimal"),
        (Shape, f"{HERE}.Shape"),
        (Circle, "acme.Circle"),
        (list[Circle], "list<acme.Circle>"),
        (Disc, f"{HERE}.Disc"),
        (Tree[int], f"{HERE}.Tree"),
        (Reply[int], f"{HERE}.Reply[int]"),
        (v1.Payload, "hocket.v1.Payload"),
    ],
)
def test_g2_every_annotation_has_a_name(annotation: object, name: str) -> None:
    assert type_name(annotation) == name
    assert type_names(annotation) == [name]


def test_g2_a_union_has_the_names_of_its_members_in_order() -> None:
    assert type_names(int | str | None) == ["int", "string", "null"]
    assert type_names(Union[str, int]) == ["string", "int"]  # noqa: UP007
    assert type_names(Optional[Circle]) == ["acme.Circle", "null"]  # noqa: UP045
    assert type_names(Literal["a", 1, "b"]) == ["string", "int"]
    with pytest.raises(PayloadError, match="2 names"):
        type_name(int | str)


def test_g1_supertypes_are_nearest_first_and_leave_libraries_out() -> None:
    assert payload_type(Disc) == v1.PayloadType(name=f"{HERE}.Disc", supertypes=["acme.Circle", f"{HERE}.Shape"])
    assert payload_type(Reply[int]).supertypes == [f"{HERE}.Reply", f"{HERE}.Base"]
    assert payload_type(Level).supertypes == ["string"]
    assert payload_type(Film).supertypes == ["map<any>"]
    assert payload_type(bool).supertypes == []
    assert payload_type(list[int]).supertypes == ["list<any>"]
    assert payload_type(list).supertypes == []


def test_g2_a_class_cannot_take_the_name_of_a_builtin() -> None:
    class Odd:
        __hocket_type__ = "list<any>"

    with pytest.raises(PayloadError, match="cannot name a class"):
        type_name(Odd)


def test_native_names_need_no_envelope() -> None:
    assert all(map(is_native, ("string", "int", "null", "list<any>", "map<list<int>>")))
    assert not any(map(is_native, ("datetime", "bytes", "list<datetime>", "map", "tuple", "acme.Circle")))


# What comes back


def test_g1_a_subclass_comes_back_as_itself() -> None:
    payload = Codec().encode(Disc("d", 2.0))
    assert Codec().decode(payload, Shape) == Disc("d", 2.0)
    assert type(Codec().decode(payload, Shape | None)) is Disc


def test_g1_an_unknown_subtype_comes_back_as_the_supertype_asked_for() -> None:
    payload = v1.Payload(
        type="far.Square", supertypes=["far.Polygon", f"{HERE}.Shape"], data=b'{"name":"s","side":{"$type":"far.L"}}'
    )
    assert Codec().decode(payload, Shape) == Shape("s")
    assert Codec().decode(payload, str | Shape) == Shape("s")


def test_g1_an_unknown_enum_of_text_is_text_where_text_is_asked_for() -> None:
    payload = v1.Payload(type="far.Color", supertypes=["string"], data=b'"red"')
    assert Codec().decode(payload, str) == "red"
    with pytest.raises(PayloadError, match=r"expected int, but the payload is far\.Color"):
        Codec().decode(payload, int)


def test_g3_an_unknown_type_is_plain_json_where_anything_will_do() -> None:
    assert Codec().decode(v1.Payload(type="far.Thing", data=b'{"a":[1]}')) == {"a": [1]}
    nested = v1.Payload(type="list<any>", data=b'[{"$type":"far.Thing","$value":1}]')
    assert Codec().decode(nested) == [{"$type": "far.Thing", "$value": 1}]
    with pytest.raises(PayloadError, match=r"far\.Pb is not known here"):
        Codec().decode(v1.Payload(type="far.Pb", content_type="application/protobuf", data=b"\1"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, int),
        (1, float),
        (1, str),
        ("1", int),
        ({}, Film),
        (datetime(2024, 1, 1, tzinfo=UTC), date),
        ([1], list[str]),
    ],
)
def test_g2_nothing_decodes_into_another_type(value: object, expected: object) -> None:
    codec = Codec()
    with pytest.raises(PayloadError) as caught:
        codec.decode(codec.encode(value), expected)
    assert "expected" in str(caught.value)
    assert type_name(expected).partition("<")[0] in str(caught.value) or "string" in str(caught.value)


def test_g3_a_list_is_held_against_the_elements_asked_for() -> None:
    codec = Codec()
    payload = codec.encode([Circle("a"), Disc("b")])
    assert payload.type == "list<any>"
    assert codec.decode(payload, list[Shape]) == [Circle("a"), Disc("b")]
    with pytest.raises(PayloadError):
        codec.decode(payload, list[Disc])


def test_g2_a_declared_annotation_names_a_container() -> None:
    codec = Codec()
    assert codec.encode([], [list[str]]).type == "list<string>"
    assert codec.encode({}, [str, list[int], dict[str, Circle]]).type == "map<acme.Circle>"
    assert codec.encode([1], [list[str], list[int]]).type == "list<int>"
    assert codec.encode([1], [list[str]]).type == "list<int>"
    assert codec.encode([1], [list[str] | list]).type == "list<any>"
    film = codec.encode({"title": "Alien"}, [Film])
    assert (film.type, codec.decode(film, Film)) == (f"{HERE}.Film", {"title": "Alien"})


def test_g3_classes_that_hold_themselves_and_type_variables() -> None:
    codec = Codec()
    tree: Tree[Any] = Tree(Decimal("1.0"), [Tree((1, date(2024, 1, 2))), Tree("text")])
    assert codec.decode(codec.encode(tree)) == tree


def test_g3_pydantic_models_keep_what_their_own_json_loses() -> None:
    class Note(Base):
        model_config = pydantic.ConfigDict(extra="allow")
        any_value: Any = pydantic.Field(alias="anyValue")
        shape: Shape
        prices: dict[int, tuple[Decimal, ...]]

    more: dict[str, Any] = {"more": timedelta(1)}
    note = Note(anyValue={(1, 2): {3}}, shape=Disc("d"), prices={1: (Decimal("1.10"),)}, **more)
    codec = Codec()
    found = codec.decode(codec.encode(note), Base)
    assert found == note
    assert type(found) is Note
    assert type(found.shape) is Disc


def test_g3_a_validation_error_has_its_path() -> None:
    codec = Codec()
    codec.register(Reply[int])
    payload = v1.Payload(type=f"{HERE}.Reply[int]", data=b'{"body":{"$type":"string","$value":"x"}}')
    with pytest.raises(PayloadError, match=r"^\$\.body: ") as caught:
        codec.decode(payload)
    assert caught.value.path == "$.body"


def test_g3_post_init_is_not_done_twice() -> None:
    @dataclasses.dataclass
    class Bill:
        total: int
        lock: Any = dataclasses.field(init=False, default=None)

        def __post_init__(self) -> None:
            self.total += 1
            self.seen = True

    codec = Codec()
    found = codec.decode(codec.encode(Bill(1)), Bill)
    assert found == Bill(1)
    assert found.seen


def test_g3_slots_frozen_and_fields_without_init() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Key:
        a: int
        b: str = dataclasses.field(init=False, default="b")
        given: dataclasses.InitVar[int] = 0

    key = Key(1)
    object.__setattr__(key, "b", "other")
    codec = Codec()
    assert codec.decode(codec.encode({key: [key]})) == {key: [key]}


def test_two_classes_with_one_name_are_refused() -> None:
    def make(kind: str) -> type:
        return dataclasses.make_dataclass(kind, [("a", int)], namespace={"__hocket_type__": "acme.Twin"})

    codec = Codec()
    codec.register(list[make("One")])  # type: ignore[misc]
    with pytest.raises(PayloadError, match=r"acme\.Twin"):
        codec.register(make("Two"))
    with pytest.raises(PayloadError, match=r"acme\.Twin"):
        codec.encode(make("Two")(1))


def test_a_class_defined_anew_replaces_the_old_one() -> None:
    """As when the cell of a notebook runs again."""

    def make() -> Any:
        return dataclasses.make_dataclass("Cell", [("a", int)])

    codec, old, new = Codec(), make(), make()
    codec.encode(old(1))
    assert type(codec.decode(codec.encode(new(1)))) is new
    assert type(codec.decode(codec.encode(old(1)), old)) is old


def test_g3_optional_by_default_none_and_defaults_of_missing_fields() -> None:
    none: Any = None

    @dataclasses.dataclass
    class Lax:
        name: str = none
        tags: list[str] = dataclasses.field(default_factory=list)

    codec = Codec()
    assert codec.decode(codec.encode(Lax())) == Lax()
    assert codec.decode(v1.Payload(type=type_name(Lax), data=b"{}")) == Lax()


# What is refused


@pytest.mark.parametrize(
    ("value", "path", "name"),
    [
        (threading.Lock(), "$", "_thread.lock"),
        ({"items": [{"price": len}]}, "$.items[0].price", "builtins.builtin_function_or_method"),
        ((x for x in ""), "$", "builtins.generator"),
        ({"odd key": [1, bytearray()]}, '$["odd key"][1]', "builtins.bytearray"),
        ({1: {2: object()}}, "$[1][2]", "builtins.object"),
        (Shape(untyped(3)), "$.name", "int"),
        (Tree(1, [Tree(object())]), "$.below[0].value", "builtins.object"),
        (Circle("c", untyped(Decimal(1))), "$.radius", "decimal"),
        (Base.model_construct(kind=len), "$.kind", "builtins.builtin_function_or_method"),
        (type("Text", (str,), {})("x"), "$", f"{HERE}.Text"),
    ],
)
def test_g3_what_cannot_travel_is_refused_with_path_and_type(value: object, path: str, name: str) -> None:
    with pytest.raises(PayloadError) as caught:
        Codec().encode(value)
    assert (caught.value.path, caught.value.type_name) == (path, name)


def test_g3_a_value_above_the_limit_names_size_and_limit() -> None:
    codec = Codec(max_inline_bytes=10)
    assert codec.encode("12345678").data
    for value in ("123456789", b"12345678901", [1000, 1000], 10**10, v1.Payload(type="12345678901")):
        with pytest.raises(PayloadTooLargeError, match=r"of 1\d bytes is above the inline limit of 10 bytes"):
            codec.encode(value)


def test_depth_is_limited_to_what_every_reader_can_take() -> None:
    def nested(depth: int) -> Any:
        value: Any = []
        for _ in range(depth - 1):
            value = [value]
        return value

    codec = Codec()
    assert codec.decode(codec.encode(nested(200))) == nested(200)
    for depth in (201, 1000):
        with pytest.raises(PayloadError, match="deeper than 200"):
            codec.encode(nested(depth))
    for depth in (201, 10_000):
        with pytest.raises(PayloadError, match="nests"):
            codec.decode(v1.Payload(type="list<any>", data=b"[" * depth + b"]" * depth))
    with pytest.raises(PayloadError):
        codec.decode(v1.Payload(type="list<" * 1000 + "int" + ">" * 1000, data=b"[]"))


def test_a_payload_without_its_value_is_told_apart_from_null() -> None:
    codec = Codec()
    assert codec.decode(v1.Payload(type="null"), int | None) is None
    assert codec.decode(v1.Payload(), None) is None
    with pytest.raises(PayloadError, match="has no value"):
        codec.decode(v1.Payload(type="int"))
    with pytest.raises(PayloadError, match="blob store at 'file:x'"):
        codec.decode(v1.Payload(type="int", blob=v1.BlobRef(uri="file:x")), int)
    with pytest.raises(PayloadError, match="encrypted"):
        codec.decode(v1.Payload(type="int", data=b"\xff", metadata={"encryption": "aes"}), int)


# For conditions and previews


def test_plain_shows_values_without_envelopes() -> None:
    codec = Codec()
    order = {"price": Decimal("1.10"), "at": [date(2024, 1, 2)], "n": {1: "a"}, "$type": 3}
    assert codec.plain(codec.encode(order)) == {"price": "1.10", "at": ["2024-01-02"], "n": [[1, "a"]], "$type": 3}
    assert codec.plain(codec.encode(Disc("d"))) == {"name": "d", "radius": 1.0}
    assert codec.plain(codec.encode(v1.Preview(truncated_bytes=3))) == {"truncated_bytes": "3"}
    assert codec.plain(codec.encode(b"\0")) == "AA=="
    assert codec.plain(codec.encode(None)) is None


# What it leaves alone


@pytest.mark.process
def test_it_loads_neither_pydantic_nor_numpy_nor_asyncio() -> None:
    program = "import sys, hocket.payload; print({'pydantic', 'numpy', 'asyncio', 'grpc'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
