"""B11, B24, B25: values that are not plain JSON, text that is not plain ASCII, numbers that JSON does not have."""

from __future__ import annotations

import array
import enum
import json
import math
import threading
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, Never
from zoneinfo import ZoneInfo

import pytest
from google.protobuf import json_format

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import DefinitionError, PayloadError
from hocket.executor import Executor, RetryPolicy, handler
from hocket.workflow import Workflow
from tests.cases.conftest import World

# B11: supported values cross with their type, others are refused where they are sent.


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Order:
    number: int
    price: Decimal
    colours: tuple[Colour, ...]


class Send(Executor):
    """Sends the value that `what` names, though it may be tried three times."""

    def __init__(self, values: dict[str, object]) -> None:
        super().__init__("send", retry=RetryPolicy(max_attempts=3))
        self.values = values

    @handler
    async def send(self, what: str, ctx: WorkflowContext[Any, Any]) -> None:
        await ctx.send_message(self.values[what])


class Receive(Executor):
    """Keeps what it got; yields it, writes it to the state, and to its own."""

    def __init__(self, got: list[object]) -> None:
        super().__init__("receive")
        self.got = got

    @handler
    async def receive(self, value: Any, ctx: WorkflowContext[Any, Any]) -> None:
        self.got.append(value)
        await ctx.set_state("value", value)
        await ctx.set_private(value)
        await ctx.yield_output(value)
        self.got.append(ctx.get_state("value"))
        self.got.append(ctx.get_private())


def passing(values: dict[str, object], got: list[object]) -> Workflow:
    send = Send(values)
    return WorkflowBuilder(send).add_edge(send, Receive(got)).build()


SUPPORTED: dict[str, object] = {
    "decimal": Decimal("12.3400"),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "bytes": b"\x00\xff\x80",
    "set": {1, 2, 3},
    "frozenset": frozenset({"a"}),
    "tuple": (1, "two", None),
    "enum": Colour.RED,
    "path": PurePosixPath("/tmp/a b"),
    "concrete path": Path("relative/path"),
    "zoned": datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    "date": date(2026, 2, 28),
    "time": time(12, 30, 0, 5),
    "timedelta": timedelta(days=-1, microseconds=1),
    "model": Order(1, Decimal("0.10"), (Colour.RED,)),
    "nested": {"list": [Decimal(1), {"deep": (uuid.UUID(int=7), b"\x01")}], "when": datetime(2026, 1, 1, tzinfo=UTC)},
    "map with other keys": {1: "one", (2, 3): "pair"},
    "nothing": None,
    "empty": [[], {}, (), set(), "", b""],
    "true is not one": [True, 1, 1.0],
}


def shape(value: object) -> object:
    """A value with all its types: 1, 1.0 and True are equal in Python, and must not be here."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value).__name__, sorted(map(repr, value))
    if isinstance(value, dict):
        return [(shape(key), shape(item)) for key, item in value.items()]
    if isinstance(value, datetime):
        return value, value.fold, str(value.tzinfo)
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("name", SUPPORTED)
async def test_b11_a_supported_value_comes_back_as_itself_wherever_it_went(world: World, name: str) -> None:
    got: list[object] = []
    result = await world.run(passing(SUPPORTED, got), name)
    for value in (*got, *result.get_outputs(), result.state["value"]):
        assert shape(value) == shape(SUPPORTED[name])
    assert len(got) == 3


def circle() -> list[object]:
    inner: list[object] = [1]
    inner.append({"again": inner})
    return inner


REFUSED: dict[str, tuple[object, str, str]] = {
    "range": (range(3), "$", "range"),
    "complex": ([1, 2j], "$[1]", "complex"),
    "array": ({"cells": array.array("d", [1.0])}, "$.cells", "array"),
    "circle": (circle(), "$[1].again", "list"),
    "lock": ({"a": [threading.Lock()]}, "$.a[0]", "lock"),
    "object": ([[object()]], "$[0][0]", "object"),
    "function": (len, "$", "builtin"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_b11_what_cannot_travel_is_refused_where_it_is_sent_with_path_and_type(world: World, name: str) -> None:
    value, path, type_name = REFUSED[name]
    got: list[object] = []
    with pytest.raises(PayloadError) as caught:
        await world.run(passing({name: value}, got), name, run_id="refused")
    assert caught.value.path == path
    assert type_name in f"{caught.value.type_name} {caught.value}"
    assert got == []
    [failed] = [event.invocation_failed for event in await world.log("refused") if event.HasField("invocation_failed")]
    assert failed.failure.kind == v1.FAILURE_KIND_PROTOCOL, "no retry would help"
    assert failed.failure.message.startswith(f"{path}: ")
    assert failed.node_id == "send"


@pytest.mark.parametrize("name", REFUSED)
async def test_b11_an_input_that_cannot_travel_begins_no_run(world: World, name: str) -> None:
    with pytest.raises(PayloadError):
        await WorkflowBuilder(Receive([])).build().run(REFUSED[name][0], mesh=world.mesh)
    assert await world.mesh.list_runs() == []


# Text (B24).


TEXTS = {
    "astronaut": "👩🏽‍🚀 and 👨‍👩‍👧‍👦",
    "right to left": "שלום \u200fעולם\u200e مرحبا",
    "combining": "e\u0301 is not \u00e9, a\u0302\u0323",
    "outside the plane": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff",
    "looks escaped": "\\ud83d\\ude00 \\u0000",
    "separators": "\u2028 \u2029 \x7f \x1f \t\r\n \ufeff",
    "quotes": "'\"`<!-- ]]> ${x} {{y}}",
}


class Mirror(Executor):
    """Sends its input back every way there is."""

    @handler
    async def mirror(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.set_state(text, text)
        await ctx.add_event("mirror", {text: text})
        for letter in (text[:1], text):
            await ctx.report(text=letter)
        await ctx.yield_output(text)


@pytest.mark.parametrize("name", TEXTS)
async def test_b24_text_is_the_same_everywhere(world: World, name: str) -> None:
    text = TEXTS[name]
    mirror = Mirror(f"id {text}" if text.isprintable() else "mirror")
    workflow = WorkflowBuilder(mirror).build()
    stream = workflow.run(text, stream=True, mesh=world.mesh)
    events = [event async for event in stream]
    result = await stream.result()
    assert result.get_outputs() == [text]
    assert result.state == {text: text}
    decoded = [result.decode(event.custom.data) for event in events if event.HasField("custom")]
    assert decoded == [{text: text}]
    reported = [result.decode(event.progress.details) for event in events if event.HasField("progress")]
    assert reported == [{"text": text[:1]}, {"text": text}]
    [started] = [event.invocation_started.node_id for event in events if event.HasField("invocation_started")]
    assert started == mirror.id
    for event in events:  # what a browser is sent
        assert json_format.Parse(json_format.MessageToJson(event), v1.Event()) == event


async def test_b24_an_escaped_pair_of_surrogates_is_one_character() -> None:
    from hocket.payload import Codec

    assert Codec().decode(v1.Payload(type="string", data=b'"\\ud83d\\ude00"')) == "😀"


async def test_b24_a_preview_is_never_cut_inside_a_character(world: World) -> None:
    for padding in range(4):
        text = "x" * padding + "😀" * 200
        workflow = passing({"long": text}, [])
        result = await world.run(workflow, "long")
        [preview] = [
            message
            for event in result.events
            for message in event.invocation_completed.messages
            if event.invocation_completed.node_id == "send"
        ]
        assert preview.truncated_bytes
        assert set(preview.text) <= {"x", "😀", '"'}
        assert result.get_outputs() == [text]


BAD_TEXTS = {"lone surrogate": "a\ud83d", "low surrogate": "\ude00b", "NUL": "a\x00b"}


class Say(Executor):
    """Says bad text in one of the ways a handler can."""

    @handler
    async def say(self, order: tuple[str, str], ctx: WorkflowContext[Any, Any]) -> None:
        how, which = order
        text = BAD_TEXTS[which]
        match how:
            case "message":
                await ctx.send_message({"inner": [text]})
            case "output":
                await ctx.yield_output(text)
            case "state":
                await ctx.set_state("key", text)
            case "state key":
                await ctx.set_state(text, "value")
            case "deleted key":
                await ctx.delete_state(text)
            case "private state":
                await ctx.set_private(text)
            case "map key":
                await ctx.send_message({text: 1})
            case "question":
                await ctx.request_info(text, str)
            case "default answer":
                await ctx.request_info("?", str, default=text, expires_in=1)
            case "event":
                await ctx.add_event("name", text)
            case "progress":
                await ctx.report(text=text)
            case "request id":
                await ctx.request_info("?", str, request_id=text)
            case "event name":
                await ctx.add_event(text)
            case "target":
                await ctx.send_message("x", target_id=text)
            case "handoff":
                await ctx.hand_off("say", text)
            case _:
                raise AssertionError(how)


PAYLOAD_WAYS = [
    "message",
    "output",
    "state",
    "state key",
    "deleted key",
    "private state",
    "map key",
    "question",
    "default answer",
    "event",
    "progress",
]
NAME_WAYS = ["request id", "event name", "target", "handoff"]


@pytest.mark.parametrize("which", BAD_TEXTS)
@pytest.mark.parametrize("how", PAYLOAD_WAYS)
async def test_b24_a_lone_surrogate_and_nul_are_refused_where_they_are_said(world: World, how: str, which: str) -> None:
    workflow = WorkflowBuilder(Say("say")).build()
    with pytest.raises(PayloadError) as caught:
        await world.run(workflow, (how, which), run_id="said")
    assert caught.value.path.startswith("$")
    assert ("U+0000" if which == "NUL" else "surrogate") in str(caught.value)
    run = await world.mesh.get_run("said")
    assert (run.state, run.failure.kind) == (v1.RUN_STATE_FAILED, v1.FAILURE_KIND_PROTOCOL)


@pytest.mark.parametrize("which", BAD_TEXTS)
@pytest.mark.parametrize("how", NAME_WAYS)
async def test_b24_a_name_that_cannot_be_stored_is_refused_too(world: World, how: str, which: str) -> None:
    workflow = WorkflowBuilder(Say("say", handoffs=["say"])).build()
    with pytest.raises(PayloadError):
        await world.run(workflow, (how, which))


@pytest.mark.parametrize("which", BAD_TEXTS)
async def test_b24_bad_text_is_refused_as_an_input_and_as_the_id_of_a_run(world: World, which: str) -> None:
    text = BAD_TEXTS[which]
    with pytest.raises(PayloadError):
        await WorkflowBuilder(Receive([])).build().run(text, mesh=world.mesh)
    assert await world.mesh.list_runs() == []
    with pytest.raises(ValueError, match="run_id"):
        await WorkflowBuilder(Receive([])).build().run("x", mesh=world.mesh, run_id=text)


@pytest.mark.parametrize("which", BAD_TEXTS)
def test_b24_bad_text_is_refused_as_the_id_of_an_executor(which: str) -> None:
    with pytest.raises(DefinitionError):
        WorkflowBuilder(Mirror(BAD_TEXTS[which])).build()


async def test_b24_an_error_that_quotes_bad_text_still_travels(world: World) -> None:
    class Quote(Executor):
        @handler
        async def quote(self, which: str, ctx: WorkflowContext[Never, str]) -> None:
            raise ValueError(f"bad: {BAD_TEXTS[which]}")

    workflow = WorkflowBuilder(Quote("quote")).build()
    for which, shown in (("lone surrogate", "bad: a\\ud83d"), ("NUL", "bad: a\\x00b")):
        with pytest.raises(ValueError, match="bad"):
            await world.run(workflow, which, run_id=which)
        assert (await world.mesh.get_run(which)).failure.message == shown


# Numbers (B25).


NUMBERS: dict[str, object] = {
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "decimal NaN": Decimal("NaN"),
    "decimal infinity": Decimal("-Infinity"),
    "inside": {"list": [1.0, math.nan]},
}


@pytest.mark.parametrize("name", NUMBERS)
async def test_b25_what_is_no_number_is_refused_at_send_with_its_path(world: World, name: str) -> None:
    with pytest.raises(PayloadError) as caught:
        await world.run(passing(NUMBERS, []), name, run_id="number")
    assert caught.value.path == ("$.list[1]" if name == "inside" else "$")
    assert_strict_json(await world.log("number"))


@pytest.fixture
async def lenient() -> AsyncIterator[World]:
    world = World(allow_nonfinite=True)
    yield world
    await world.check()
    await world.mesh.close()


@pytest.mark.parametrize("name", ["NaN", "infinity", "minus infinity", "inside"])
async def test_b25_with_allow_nonfinite_they_come_back_as_floats(lenient: World, name: str) -> None:
    got: list[object] = []
    result = await lenient.run(passing(NUMBERS, got), name)
    for value in (*got, *result.get_outputs(), result.state["value"]):
        assert shape(value) == shape(NUMBERS[name])
    assert_strict_json(list(result.events))


EXACT: dict[str, object] = {
    "minus zero": -0.0,
    "beyond 2^53": 2**53 + 1,
    "very large": 10**400,
    "1e400 is text": "1e400",
    "smallest": 5e-324,
    "largest": 1.7976931348623157e308,
    "tenth": 0.1,
    "decimal": Decimal("1E+400"),
    "in a list": [-0.0, 2**63, -(2**64) - 1],
}


@pytest.mark.parametrize("name", EXACT)
async def test_b25_other_numbers_are_exact(world: World, name: str) -> None:
    got: list[object] = []
    result = await world.run(passing(EXACT, got), name)
    for value in (*got, *result.get_outputs(), result.state["value"]):
        assert shape(value) == shape(EXACT[name])
    assert_strict_json(list(result.events))


def assert_strict_json(events: list[v1.Event]) -> None:
    """No output has a bare NaN or Infinity: neither the events as a browser gets them, nor the payloads in them."""

    def refuse(token: str) -> Never:
        raise AssertionError(f"a bare {token}")

    for event in events:
        json.loads(json_format.MessageToJson(event), parse_constant=refuse)
        for payload in (event.output_yielded.payload, event.run_started.input, event.custom.data):
            if payload.data and not payload.content_type:
                json.loads(payload.data, parse_constant=refuse)
