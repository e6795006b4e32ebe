"""Every record against its message, field by field, both ways.

A record is filled by its type hints, each value a different one, so that a field which `wire` forgets or swaps shows: on the
way out as a field of the message that is not set, on the way back as a record that is not equal.
"""

import dataclasses
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import pytest
from google.protobuf.message import Message as Protobuf

from hocket import records, v1, wire

# Filling


class Filler:
    """Values of any type a record holds, no two alike. `chosen` decides between records of a union."""

    def __init__(self, *chosen: type) -> None:
        self._chosen = chosen
        self._numbers = count(2)

    def record(self, kind: type) -> Any:
        hints = get_type_hints(kind)
        return kind(**{each.name: self.value(hints[each.name]) for each in dataclasses.fields(kind)})

    def value(self, hint: Any) -> Any:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, types.UnionType):
            options = [each for each in arguments if each is not type(None)]
            return self.value(next((each for each in options if each in self._chosen), options[0]))
        if origin in (list, Sequence):
            return [self.value(arguments[0]), self.value(arguments[0])]
        if origin is Mapping:
            return {self.value(arguments[0]): self.value(arguments[1])}
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            return self.record(hint)
        number = next(self._numbers)
        if hint is bool:
            return True
        if hint is bytes:
            return b"%d" % number
        if hint is float:
            return number + 0.5
        if hint in (int, str):
            return hint(number)
        return self._message(hint, number)

    def _message(self, hint: type[Protobuf], number: int) -> Protobuf:
        made = hint()
        field = next(
            each for each in hint.DESCRIPTOR.fields if each.cpp_type == each.CPPTYPE_STRING and not each.is_repeated
        )
        setattr(made, field.name, str(number) if field.type == field.TYPE_STRING else b"%d" % number)
        return made


def least(kind: type) -> Any:
    """A record with its defaults; what has none is as empty as can be."""
    hints = get_type_hints(kind)
    required = {
        each.name: _empty(hints[each.name])
        for each in dataclasses.fields(kind)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    }
    return kind(**required)


def _empty(hint: Any) -> Any:
    options = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return None if type(None) in options else _empty(options[0])
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return least(hint)
    return (get_origin(hint) or hint)()


def plain(value: Any) -> Any:
    """For comparing: a sequence is a list, whatever it is made of."""
    if dataclasses.is_dataclass(value):
        named = {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return type(value).__name__, named
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(each) for each in value]
    return value


# The pairs


class Pair(NamedTuple):
    kind: type
    message: type[Protobuf]
    put: Callable[[Any, Any], None]
    read: Callable[[Any], Any]
    chosen: tuple[type, ...] = ()
    # Of an input, the arm that it is.
    arm: str = ""

    @property
    def name(self) -> str:
        return "-".join([self.kind.__name__, *(each.__name__ for each in self.chosen)])


def put_write(write: records.StateWrite, out: v1.Effects) -> None:
    wire.put_state_writes([write], out.state_writes)


def put_input(record: records.Input, out: v1.Input) -> None:
    out.CopyFrom(wire.input_to(record))


def an_input(kind: type, arm: str, *chosen: type) -> Pair:
    return Pair(kind, v1.Input, put_input, wire.input_from, chosen, arm)


PAIRS = [
    Pair(records.Message, v1.Message, wire.put_message, wire.message_from),
    Pair(records.Delivery, v1.Delivery, wire.put_delivery, wire.delivery_from),
    Pair(records.GraphPosition, v1.GraphPosition, wire.put_graph_position, wire.graph_position_from),
    *(
        Pair(records.Invocation, v1.Invocation, wire.put_invocation, wire.invocation_from, (position,))
        for position in (records.GraphPosition, records.MethodPosition, records.TaskPosition)
    ),
    Pair(records.Effects, v1.Effects, wire.put_effects, wire.effects_from),
    Pair(records.Suspended, v1.Suspended, wire.put_suspended, wire.suspended_from),
    an_input(records.Begin, "begin"),
    an_input(records.Completed, "completed", records.Effects),
    an_input(records.Completed, "completed", records.Suspended),
    an_input(records.Failed, "failed"),
    an_input(records.Answered, "answered"),
    an_input(records.Signalled, "signalled"),
    an_input(records.Fired, "fired"),
    an_input(records.Cancel, "cancel"),
    an_input(records.Resume, "resume"),
]
each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)


def travelled(pair: Pair, record: Any) -> tuple[Any, Any]:
    """The message, and the record that was read from its bytes."""
    message = pair.message()
    pair.put(record, message)
    return message, pair.read(pair.message.FromString(message.SerializeToString()))


def check(pair: Pair, record: Any) -> None:
    message, back = travelled(pair, record)
    assert plain(back) == plain(record)
    assert list(unset(message)) == []


def unset(message: Protobuf, path: str = "") -> Iterator[str]:
    """Fields that nothing has filled, oneofs and messages of users' values (which hold what they hold) apart."""
    for each in message.DESCRIPTOR.fields:
        oneof = each.containing_oneof
        if oneof is not None and len(oneof.fields) > 1 and message.WhichOneof(oneof.name) != each.name:
            continue
        value = getattr(message, each.name)
        is_set = message.HasField(each.name) if each.has_presence else bool(value)
        if not is_set:
            yield path + each.name
        elif each.message_type and each.message_type.name in OWN:
            for one in value if each.is_repeated else [value]:
                yield from unset(one, f"{path}{each.name}.")


# Messages that a record stands for, so that each of their fields is some record's.
OWN = {
    *(
        "Message",
        "Delivery",
        "GraphPosition",
        "MethodPosition",
        "TaskPosition",
        "InvocationRef",
        "Effects",
        "Suspended",
    ),
    *("StateWrite", "Begin", "Completed", "Failed", "Answered", "Signalled", "Fired", "Cancel", "Resume"),
}


@each_pair
def test_a_full_record_arrives_whole_and_fills_its_message(pair: Pair) -> None:
    check(pair, Filler(*pair.chosen).record(pair.kind))


@each_pair
def test_what_a_record_leaves_out_stays_left_out(pair: Pair) -> None:
    record = least(pair.kind)
    _, back = travelled(pair, record)
    absent = [each.name for each in dataclasses.fields(record) if getattr(record, each.name) is None]
    assert {name: getattr(back, name) for name in absent if getattr(back, name)} == {}
    assert {name: value for name, value in plain(back)[1].items() if name not in absent} == {
        name: value for name, value in plain(record)[1].items() if name not in absent
    }


@each_pair
def test_of_an_input_the_arm_is_set_even_when_it_is_empty(pair: Pair) -> None:
    if pair.arm:
        assert wire.input_to(least(pair.kind)).WhichOneof("kind") == pair.arm


def test_every_record_has_a_pair_and_every_input_is_journaled() -> None:
    defined = {value for value in vars(records).values() if dataclasses.is_dataclass(value)}
    inside = {records.StateWrite, records.MethodPosition, records.TaskPosition}
    assert {pair.kind for pair in PAIRS} | inside == defined
    assert {pair.kind for pair in PAIRS if pair.arm} == set(get_args(records.Input))
    assert {pair.arm for pair in PAIRS if pair.arm} == {
        each.name for each in v1.Input.DESCRIPTOR.oneofs_by_name["kind"].fields
    }


@each_pair
def test_a_field_that_wire_does_not_know_is_found(pair: Pair) -> None:
    """Of this file itself: it fails for a record with one field more."""
    grown = dataclasses.make_dataclass(pair.kind.__name__, [("forgotten", int, 0)], bases=(pair.kind,), slots=True)
    grown.__module__ = records.__name__
    with pytest.raises(AssertionError):
        check(pair, Filler(*pair.chosen).record(grown))


def test_a_field_of_a_message_that_no_record_has_is_found() -> None:
    message, _ = travelled(PAIRS[0], Filler().record(records.Message))
    message.ClearField("question_id")
    assert list(unset(message)) == ["question_id"]


# Times and presence


@pytest.mark.parametrize("nanoseconds", [0, 1, wire.SECOND - 1, 1_700_000_000_123_456_789, -1])
def test_a_time_keeps_its_nanoseconds(nanoseconds: int) -> None:
    assert wire.time_from(wire.input_to(records.Cancel(time=nanoseconds)).time) == nanoseconds


def test_a_duration_of_nothing_is_there_and_none_is_not() -> None:
    out = v1.Invocation()
    wire.put_duration(0, out.timeout)
    wire.put_duration(None, out.idle_timeout)
    assert wire.duration_from(out, "timeout") == 0
    assert wire.duration_from(out, "idle_timeout") is None


def test_a_write_of_null_is_not_a_deletion() -> None:
    out = v1.Effects()
    written = [records.StateWrite("kept", v1.Payload()), records.StateWrite("gone", None)]
    wire.put_state_writes(written, out.state_writes)
    read = wire.state_writes_from(v1.Effects.FromString(out.SerializeToString()).state_writes)
    assert [(each.key, each.value is None) for each in read] == [("kept", False), ("gone", True)]


def test_empty_effects_and_an_empty_suspension_are_told_apart() -> None:
    for outcome in (records.Effects(), records.Suspended([])):
        message = v1.Input.FromString(wire.input_to(records.Completed("i", 1, outcome)).SerializeToString())
        back = wire.input_from(message)
        assert isinstance(back, records.Completed)
        assert type(back.outcome) is type(outcome)


def test_what_lacks_its_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="has no kind"):
        wire.input_from(v1.Input())
    with pytest.raises(ValueError, match="'i' has no position"):
        wire.invocation_from(v1.Invocation(ref=v1.InvocationRef(invocation_id="i")))
