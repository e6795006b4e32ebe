"""For tests of executors and workflows: one handler run by itself, a clock turned by hand, two runs' logs compared.

    collected = await run_handler(UpperCase("upper"), "hello")
    assert collected.messages == [("HELLO", None)]

    clock = FakeClock()
    async with Mesh(clock=clock) as mesh:
        running = asyncio.create_task(workflow.run("hello", mesh=mesh))
        await clock.advance(30)

    assert canonical(first.events) == canonical(second.events)

Nothing here needs the server.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heappop, heappush
from typing import Any, Final

from google.protobuf import json_format

from hocket import v1
from hocket.executor import Executor, FunctionExecutor
from hocket.host import Host
from hocket.payload import Codec
from hocket.records import (
    Completed,
    Delivery,
    Effects,
    Failed,
    GraphPosition,
    Invocation,
    Message,
    StateWrite,
    Suspended,
)

RUN_ID: Final = "test-run"
SUPERSTEP: Final = 1


class _Deleted:
    def __repr__(self) -> str:
        return "DELETED"


DELETED: Final = _Deleted()
"""Stands in `Collected.state_writes` for the value of a key that was deleted."""


# One handler by itself


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the handler asked it. `key` is its `request_id` or its ordinal; `expires_in` is seconds."""

    key: str
    data: Any
    response_types: tuple[str, ...]
    expires_in: float | None = None
    default: Any = None


@dataclass(frozen=True, slots=True)
class HandedOff:
    target_id: str
    task: str = ""
    payload: Any = None


@dataclass(slots=True)
class Collected:
    """What a handler did, as values.

    `messages` are pairs of value and `target_id`, `state_writes` of key and value (or `DELETED`) in the order made,
    `events` of name and data, `reports` of fraction and details. `private_state` is what the node has after it. A handler
    that stopped in `ask` has `suspended` questions, and of the rest only `reports`.
    """

    messages: list[tuple[Any, str | None]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    state_writes: list[tuple[str, Any]] = field(default_factory=list)
    private_state: Any = None
    questions: list[Asked] = field(default_factory=list)
    events: list[tuple[str, Any]] = field(default_factory=list)
    handoff: HandedOff | None = None
    reports: list[tuple[float | None, dict[str, Any]]] = field(default_factory=list)
    suspended: list[Asked] = field(default_factory=list)

    @property
    def sent(self) -> list[Any]:
        """The values of `messages`."""
        return [value for value, _ in self.messages]


_NO_QUESTION: Final = object()


async def run_handler(
    executor: Executor | Callable[..., Any],
    message: object,
    *,
    state: Mapping[str, object] | None = None,
    private_state: object = None,
    config: object = None,
    answers: Sequence[object] = (),
    question: object = _NO_QUESTION,
    sources: str | Sequence[str] = "",
    attempt: int = 1,
    last_failure: v1.Failure | None = None,
    last_progress: object = None,
    timeout: float | None = None,
    codec: Codec | None = None,
) -> Collected:
    """Run the handler that takes `message`, as a worker would, and collect its effects.

    `state` is what was committed, `answers` are those to `ctx.ask`, in the order asked. With `question`, `message` is the
    answer to it and goes to the `@response_handler`. `sources` is the node that sent the message; several make the message
    the list of a fan-in, whose elements they sent. Raises what the handler raises, PayloadError and EffectError included.
    """
    hosted = executor if isinstance(executor, Executor) else FunctionExecutor(executor)
    codec = codec or Codec()
    host = Host({hosted.executor_type: hosted}, codec)
    invocation_id = f"{RUN_ID}/{SUPERSTEP}/{hosted.id}"

    def optional(value: object) -> v1.Payload | None:
        return None if value is None else codec.encode(value)

    if question is not _NO_QUESTION:
        annotations = [spec.input_annotation for spec in hosted.response_handlers]
        answer = codec.encode(message, annotations)
        asked = Message(
            "answer", hosted.id, answer, question_id=f"{RUN_ID}/0/{hosted.id}/1", question=codec.encode(question)
        )
        deliveries = [Delivery([asked])]
    else:
        deliveries = [_delivery(hosted, message, sources, codec)]
    for ordinal, given in enumerate(answers, start=1):
        question_id = f"{invocation_id}/{ordinal}"
        deliveries.append(
            Delivery([Message(f"{question_id}/answer", hosted.id, codec.encode(given), question_id=question_id)])
        )
    invocation = Invocation(
        invocation_id,
        # Each answer came after an attempt that stopped for it.
        max(attempt, len(answers) + 1),
        RUN_ID,
        GraphPosition(SUPERSTEP, hosted.id),
        hosted.executor_type,
        deliveries,
        state={key: codec.encode(value) for key, value in (state or {}).items()},
        state_reads=hosted.state_reads,
        private_state=optional(private_state),
        config=optional(config),
        timeout=timeout,
        last_progress=optional(last_progress),
        last_failure=last_failure,
    )
    collected = Collected(private_state=private_state)

    def live(sign: v1.Progress | v1.LiveEvent) -> None:
        if isinstance(sign, v1.Progress):
            fraction = sign.fraction if sign.HasField("fraction") else None
            details = codec.decode(sign.details) if sign.HasField("details") else {}
            collected.reports.append((fraction, details))

    try:
        ended = await host.handle(invocation, live)
    finally:
        host.close()
    if isinstance(ended, Failed):
        error = host.take_error(RUN_ID, invocation_id)
        raise error if error is not None else RuntimeError(f"{ended.failure.type}: {ended.failure.message}")
    _collect(ended, codec, collected)
    return collected


def _delivery(executor: Executor, message: object, sources: str | Sequence[str], codec: Codec) -> Delivery:
    annotations = [spec.input_annotation for spec in executor.handlers]
    if isinstance(sources, str):
        return Delivery([Message("message-1", sources, codec.encode(message, annotations))])
    if not isinstance(message, list) or len(message) != len(sources):
        raise ValueError(f"{len(sources)} sources need a list of as many elements, one from each; got {message!r}")
    elements = [
        Message(f"message-{ordinal}", source, codec.encode(value))
        for ordinal, (source, value) in enumerate(zip(sources, message, strict=True), start=1)
    ]
    return Delivery(elements, "join", joined=True)


def _collect(ended: Completed, codec: Codec, into: Collected) -> None:
    outcome = ended.outcome
    if isinstance(outcome, Suspended):
        into.suspended = [_asked(question, codec) for question in outcome.questions]
        return
    into.messages = [(codec.decode(sent.payload), sent.target_node_id or None) for sent in outcome.messages]
    into.outputs = [codec.decode(payload) for payload in outcome.outputs]
    into.state_writes = [_written(write, codec) for write in outcome.state_writes]
    if outcome.private_state is not None:
        into.private_state = codec.decode(outcome.private_state)
    into.questions = [_asked(question, codec) for question in outcome.questions]
    into.events = [(event.name, codec.decode(event.data)) for event in outcome.events]
    into.handoff = _handed_off(outcome, codec)


def _written(write: StateWrite, codec: Codec) -> tuple[str, Any]:
    return write.key, DELETED if write.value is None else codec.decode(write.value)


def _asked(question: v1.Question, codec: Codec) -> Asked:
    return Asked(
        question.question_id,
        codec.decode(question.payload),
        tuple(question.response_types),
        question.expires_in.ToTimedelta() / timedelta(seconds=1) if question.HasField("expires_in") else None,
        codec.decode(question.default_answer) if question.HasField("default_answer") else None,
    )


def _handed_off(effects: Effects, codec: Codec) -> HandedOff | None:
    if (handoff := effects.handoff) is None:
        return None
    payload = codec.decode(handoff.payload) if handoff.HasField("payload") else None
    return HandedOff(handoff.target_node_id, handoff.task, payload)


# Time


class Alarm:
    """A call that is due later."""

    def __init__(self, due: int, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeClock:
    """A clock that stands still until it is told: `Mesh(clock=FakeClock())`.

    `start` is in nanoseconds since the epoch. `jitter` is what every draw gives, from 0 to 1: with 1 a retry comes after the
    whole of its interval.
    """

    TURNS: Final = 100
    """How often tasks get the loop before time goes on. A plain handler runs in a thread and is not waited for."""

    def __init__(self, *, start: int = 1_700_000_000_000_000_000, jitter: float = 1.0) -> None:
        self._now = start
        self._jitter = jitter
        self._alarms: list[tuple[int, int, Alarm]] = []
        self._count = 0

    def now(self) -> int:
        return self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        self._count += 1
        alarm = Alarm(self._now + round(max(seconds, 0.0) * 1_000_000_000), callback)
        heappush(self._alarms, (alarm.due, self._count, alarm))
        return alarm

    def jitter(self) -> float:
        return self._jitter

    @property
    def pending(self) -> int:
        """How many calls are still due."""
        return sum(not alarm.is_cancelled for _, _, alarm in self._alarms)

    async def advance(self, seconds: float) -> None:
        """Let time pass: what falls due is called in order of time, and tasks run before, between and after."""
        end = self._now + round(seconds * 1_000_000_000)
        await self.settle()
        while self._alarms and self._alarms[0][0] <= end:
            due, _, alarm = heappop(self._alarms)
            if alarm.is_cancelled:
                continue
            self._now = max(self._now, due)
            alarm.callback()
            await self.settle()
        self._now = end

    async def settle(self) -> None:
        """Let tasks run as far as they go without time passing."""
        for _ in range(self.TURNS):
            await asyncio.sleep(0)


# Logs


def canonical(events: Iterable[v1.Event]) -> list[dict[str, Any]]:
    """An event log without what differs between two equal runs (G9), as JSON trees.

    Left out are live events, times, sequence numbers, the run's id, attempts, traces of stacks and of spans, checkpoints of
    nested runs, and attempts that were followed by another. Events inside a superstep are in the order of positions: each
    node's invocations, what is nested in them between their start and their end, then what the boundary commits.
    """
    durable = [event for event in events if event.sequence]
    retried = {
        (event.invocation_id, event.attempt)
        for event in durable
        if event.HasField("invocation_failed") and event.invocation_failed.will_retry
    }
    return [_bare(event) for event in _ordered(durable, 0) if not _is_retried(event, retried)]


def _is_retried(event: v1.Event, retried: set[tuple[str, int]]) -> bool:
    is_attempt = event.HasField("invocation_failed") or event.HasField("invocation_started")
    return is_attempt and (event.invocation_id, event.attempt) in retried


def _ordered(events: Sequence[v1.Event], depth: int) -> list[v1.Event]:
    """Events of one level, whose path has `depth` names, and of all below it."""
    ordered: list[v1.Event] = []
    portion: list[v1.Event] = []
    for event in events:
        is_own = len(event.path) == depth
        if is_own and event.HasField("superstep_started"):
            ordered += _by_position(portion, depth)
            portion = []
        portion.append(event)
        if is_own and event.HasField("superstep_completed"):
            ordered += _by_position(portion, depth)
            portion = []
    return ordered + _by_position(portion, depth)


_BEFORE, _START, _BELOW, _END, _AFTER = range(5)


def _by_position(portion: Sequence[v1.Event], depth: int) -> list[v1.Event]:
    """The events of one superstep, or of the time between two."""
    nodes: dict[str, int] = {}
    below: dict[str, list[v1.Event]] = {}
    keyed: list[tuple[tuple[int, int, int, str, int], v1.Event]] = []
    for event in portion:
        # A superstep starts its nodes in the order of their positions.
        if len(event.path) == depth and event.HasField("invocation_started"):
            nodes.setdefault(event.invocation_started.node_id, len(nodes))
    for place, event in enumerate(portion):
        if len(event.path) > depth:
            below.setdefault(event.path[depth], []).append(event)
            continue
        match event.WhichOneof("kind"):
            case "run_started" | "run_resumed" | "superstep_started":
                key = (_BEFORE, 0, 0, "", place)
            case "invocation_started":
                key = _placed(event, event.invocation_started.node_id, nodes, _START, place)
            case "invocation_completed":
                key = _placed(event, event.invocation_completed.node_id, nodes, _END, place)
            case "invocation_failed":
                key = _placed(event, event.invocation_failed.node_id, nodes, _END, place)
            case "invocation_suspended":
                key = _placed(event, event.invocation_suspended.node_id, nodes, _END, place)
            case _:
                key = (_AFTER, 0, 0, "", place)
        keyed.append((key, event))
    for node_id, inner in below.items():
        index = nodes.get(node_id, len(nodes))
        for place, event in enumerate(_ordered(inner, depth + 1)):
            keyed.append(((_START, index, _BELOW, "", place), event))
    keyed.sort(key=lambda one: one[0])
    return [event for _, event in keyed]


def _placed(
    event: v1.Event, node_id: str, nodes: Mapping[str, int], rank: int, place: int
) -> tuple[int, int, int, str, int]:
    """Place of the node, what of it, and of which of its invocations: "#10" comes after "#9"."""
    number = event.invocation_id.rpartition(node_id)[2]
    return _START, nodes.get(node_id, len(nodes)), rank, number.rjust(12), place


def _bare(event: v1.Event) -> dict[str, Any]:
    tree: dict[str, Any] = json_format.MessageToDict(event, preserving_proto_field_name=True)
    run_id = tree.pop("run_id", "")
    for name in ("sequence", "time", "attempt", "trace_context"):
        tree.pop(name, None)
    for kind in tree.values():
        if isinstance(kind, dict):
            kind.pop("parent_checkpoint_id", None)
            if event.path:
                # The last of several nested runs to end closes the level above too, and names its checkpoint.
                kind.pop("checkpoint_id", None)
    return {key: _without(value, run_id) for key, value in tree.items()}


_IDS: Final = frozenset(
    {"invocation_id", "checkpoint_id", "message_id", "question_id", "question_ids", "message", "reason"}
)
_LEFT_OUT: Final = frozenset({"stack_trace", "create_time"})


def _without(value: Any, run_id: str, name: str = "") -> Any:
    """The tree with ids relative to the run."""
    if isinstance(value, dict):
        return {key: _without(item, run_id, key) for key, item in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        return [_without(item, run_id, name) for item in value]
    if isinstance(value, str) and not name:
        return value.removeprefix(f"{run_id}/")
    return value.replace(f"{run_id}/", "") if isinstance(value, str) and name in _IDS else value
