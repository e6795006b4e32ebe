"""Translates records into their protobuf messages and back: for a wire, a journal or a snapshot.

`put_*` fill a message that is already in its place, since building it apart and copying it in costs twice. `*_from` build
a record that holds the message's payloads by reference. Nothing else in Hocket translates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.timestamp_pb2 import Timestamp

from hocket import v1
from hocket.records import (
    Answered,
    Begin,
    Cancel,
    Completed,
    Delivery,
    Effects,
    Failed,
    Fired,
    GraphPosition,
    Input,
    Invocation,
    Message,
    MethodPosition,
    Position,
    Resume,
    Signalled,
    StateWrite,
    Suspended,
    TaskPosition,
)

if TYPE_CHECKING:
    from google.protobuf.internal.containers import MessageMap, RepeatedCompositeFieldContainer

SECOND = 1_000_000_000


def put_time(nanoseconds: int, out: Timestamp) -> None:
    out.seconds, out.nanos = divmod(nanoseconds, SECOND)


def time_from(stamp: Timestamp) -> int:
    return stamp.seconds * SECOND + stamp.nanos


def put_duration(seconds: float | None, out: Duration) -> None:
    """Sets nothing for None. A duration of 0 s is present."""
    if seconds is not None:
        out.seconds, out.nanos = divmod(round(seconds * SECOND), SECOND)
        out.SetInParent()


def duration_from(owner: ProtoMessage, field: str) -> float | None:
    """Seconds of the field `field` of the message `owner`, None when unset."""
    if not owner.HasField(field):
        return None
    duration: Duration = getattr(owner, field)
    return duration.seconds + duration.nanos / SECOND


def put_message(message: Message, out: v1.Message) -> None:
    out.message_id = message.message_id
    out.source_node_id = message.source_node_id
    out.payload.CopyFrom(message.payload)
    if message.target_node_id:
        out.target_node_id = message.target_node_id
    if message.trace_context is not None:
        out.trace_context.CopyFrom(message.trace_context)
    if message.question_id:
        out.question_id = message.question_id
    if message.question is not None:
        out.question.CopyFrom(message.question)


def message_from(message: v1.Message) -> Message:
    return Message(
        message_id=message.message_id,
        source_node_id=message.source_node_id,
        payload=message.payload,
        target_node_id=message.target_node_id,
        trace_context=message.trace_context if message.HasField("trace_context") else None,
        question_id=message.question_id,
        question=message.question if message.HasField("question") else None,
    )


def put_delivery(delivery: Delivery, out: v1.Delivery) -> None:
    if delivery.edge_group_id:
        out.edge_group_id = delivery.edge_group_id
    if delivery.joined:
        out.joined = True
    add = out.messages.add
    for message in delivery.messages:
        put_message(message, add())


def delivery_from(delivery: v1.Delivery) -> Delivery:
    return Delivery([message_from(m) for m in delivery.messages], delivery.edge_group_id, delivery.joined)


def put_graph_position(position: GraphPosition, out: v1.GraphPosition) -> None:
    out.superstep = position.superstep
    out.node_id = position.node_id
    out.delivery = position.delivery


def graph_position_from(position: v1.GraphPosition) -> GraphPosition:
    return GraphPosition(position.superstep, position.node_id, position.delivery)


def put_invocation(invocation: Invocation, out: v1.Invocation) -> None:
    out.ref.invocation_id = invocation.invocation_id
    out.ref.attempt = invocation.attempt
    out.ref.token = invocation.token
    out.namespace = invocation.namespace
    out.run_id = invocation.run_id
    out.definition_name = invocation.definition_name
    match invocation.position:
        case GraphPosition():
            put_graph_position(invocation.position, out.graph)
        case MethodPosition(method, call):
            out.method.method, out.method.call = method, call
        case TaskPosition() as task:
            out.task.CopyFrom(
                v1.TaskPosition(
                    task=task.task,
                    visit=task.visit,
                    item=task.item,
                    attempt=task.attempt,
                    role=task.role,
                    ordinal=task.ordinal,
                )
            )
    out.path.extend(invocation.path)
    out.executor_type = invocation.executor_type
    for delivery in invocation.deliveries:
        put_delivery(delivery, out.deliveries.add())
    put_payloads(invocation.state, out.state)
    out.state_reads.extend(invocation.state_reads)
    if invocation.private_state is not None:
        out.private_state.CopyFrom(invocation.private_state)
    if invocation.config is not None:
        out.config.CopyFrom(invocation.config)
    put_duration(invocation.timeout, out.timeout)
    put_duration(invocation.lease_duration, out.lease_duration)
    put_duration(invocation.schedule_timeout, out.schedule_timeout)
    put_duration(invocation.idle_timeout, out.idle_timeout)
    if invocation.last_progress is not None:
        out.last_progress.CopyFrom(invocation.last_progress)
    if invocation.last_failure is not None:
        out.last_failure.CopyFrom(invocation.last_failure)
    if invocation.trace_context is not None:
        out.trace_context.CopyFrom(invocation.trace_context)
    for key, value in (invocation.headers or {}).items():
        out.headers[key] = value
    if invocation.continuation is not None:
        out.continuation.CopyFrom(invocation.continuation)
    out.on_stuck = invocation.on_stuck
    out.contributed_keys.extend(invocation.contributed_keys)


def invocation_from(message: v1.Invocation) -> Invocation:
    """Raises ValueError when the position is missing."""
    return Invocation(
        invocation_id=message.ref.invocation_id,
        attempt=message.ref.attempt,
        run_id=message.run_id,
        position=_position_from(message),
        executor_type=message.executor_type,
        deliveries=[delivery_from(d) for d in message.deliveries],
        state=dict(message.state),
        state_reads=tuple(message.state_reads),
        private_state=message.private_state if message.HasField("private_state") else None,
        path=tuple(message.path),
        config=message.config if message.HasField("config") else None,
        timeout=duration_from(message, "timeout"),
        lease_duration=duration_from(message, "lease_duration"),
        schedule_timeout=duration_from(message, "schedule_timeout"),
        idle_timeout=duration_from(message, "idle_timeout"),
        on_stuck=message.on_stuck,
        last_progress=message.last_progress if message.HasField("last_progress") else None,
        last_failure=message.last_failure if message.HasField("last_failure") else None,
        continuation=message.continuation if message.HasField("continuation") else None,
        trace_context=message.trace_context if message.HasField("trace_context") else None,
        namespace=message.namespace,
        definition_name=message.definition_name,
        token=message.ref.token,
        headers=dict(message.headers) or None,
        contributed_keys=tuple(message.contributed_keys),
    )


def _position_from(message: v1.Invocation) -> Position:
    match message.WhichOneof("position"):
        case "graph":
            return graph_position_from(message.graph)
        case "method":
            return MethodPosition(message.method.method, message.method.call)
        case "task":
            task = message.task
            return TaskPosition(task.task, task.visit, task.item, task.attempt, task.role, task.ordinal)
        case None:
            raise ValueError(f"invocation {message.ref.invocation_id!r} has no position")


def put_effects(effects: Effects, out: v1.Effects) -> None:
    for message in effects.messages:
        put_message(message, out.messages.add())
    out.outputs.extend(effects.outputs)
    put_state_writes(effects.state_writes, out.state_writes)
    out.questions.extend(effects.questions)
    out.events.extend(effects.events)
    if effects.handoff is not None:
        out.handoff.CopyFrom(effects.handoff)
    if effects.private_state is not None:
        out.private_state.CopyFrom(effects.private_state)
    if effects.value is not None:
        out.value.CopyFrom(effects.value)
    out.SetInParent()


def effects_from(effects: v1.Effects) -> Effects:
    return Effects(
        messages=[message_from(m) for m in effects.messages],
        outputs=list(effects.outputs),
        state_writes=state_writes_from(effects.state_writes),
        questions=list(effects.questions),
        events=list(effects.events),
        handoff=effects.handoff if effects.HasField("handoff") else None,
        private_state=effects.private_state if effects.HasField("private_state") else None,
        value=effects.value if effects.HasField("value") else None,
    )


def put_suspended(suspended: Suspended, out: v1.Suspended) -> None:
    out.questions.extend(suspended.questions)
    out.calls.extend(suspended.calls)
    if suspended.continuation is not None:
        out.continuation.CopyFrom(suspended.continuation)
    out.SetInParent()


def suspended_from(suspended: v1.Suspended) -> Suspended:
    return Suspended(
        questions=list(suspended.questions),
        calls=list(suspended.calls),
        continuation=suspended.continuation if suspended.HasField("continuation") else None,
    )


def put_state_writes(writes: Iterable[StateWrite], out: RepeatedCompositeFieldContainer[v1.StateWrite]) -> None:
    for write in writes:
        added = out.add()
        added.key = write.key
        if write.value is not None:
            added.value.CopyFrom(write.value)


def state_writes_from(writes: Iterable[v1.StateWrite]) -> list[StateWrite]:
    return [StateWrite(write.key, write.value if write.HasField("value") else None) for write in writes]


def put_payloads(values: Mapping[str, v1.Payload], out: MessageMap[str, v1.Payload]) -> None:
    for key, value in values.items():
        out[key].CopyFrom(value)


def input_to(record: Input) -> v1.Input:
    """The journal's form of an input."""
    out = v1.Input(jitter=record.jitter)
    put_time(record.time, out.time)
    match record:
        case Begin():
            out.begin.payload.CopyFrom(record.payload)
            if record.trace_context is not None:
                out.begin.trace_context.CopyFrom(record.trace_context)
        case Completed():
            completed = out.completed
            completed.invocation_id, completed.attempt = record.invocation_id, record.attempt
            if isinstance(record.outcome, Suspended):
                put_suspended(record.outcome, completed.suspended)
            else:
                put_effects(record.outcome, completed.effects)
            _put_usage(record.usage or {}, completed)
        case Failed():
            failed = out.failed
            failed.invocation_id, failed.attempt = record.invocation_id, record.attempt
            failed.failure.CopyFrom(record.failure)
            _put_usage(record.usage or {}, failed)
            if record.last_progress is not None:
                failed.last_progress.CopyFrom(record.last_progress)
        case Answered():
            out.answered.question_id, out.answered.answered_by = record.question_id, record.answered_by
            out.answered.payload.CopyFrom(record.payload)
        case Signalled():
            out.signalled.target_node_id = record.target_node_id
            if record.payload is not None:
                out.signalled.payload.CopyFrom(record.payload)
            put_state_writes(record.state_writes, out.signalled.state_writes)
            out.signalled.SetInParent()
        case Fired():
            out.fired.timer_kind, out.fired.subject_id = record.timer_kind, record.subject_id
        case Cancel():
            out.cancel.reason = record.reason
            out.cancel.SetInParent()
        case Resume():
            out.resume.max_supersteps = record.max_supersteps
            out.resume.parent_checkpoint_id = record.parent_checkpoint_id
            put_state_writes(record.state_overrides, out.resume.state_overrides)
            out.resume.SetInParent()
    return out


def _put_usage(usage: Mapping[str, int], out: v1.Completed | v1.Failed) -> None:
    for unit, amount in usage.items():
        out.usage[unit] = amount


def input_from(message: v1.Input) -> Input:
    """Raises ValueError when the kind is missing."""
    time, jitter = time_from(message.time), message.jitter
    match message.WhichOneof("kind"):
        case "begin":
            begin = message.begin
            trace = begin.trace_context if begin.HasField("trace_context") else None
            return Begin(begin.payload, trace, time, jitter)
        case "completed":
            completed = message.completed
            outcome: Effects | Suspended
            if completed.WhichOneof("outcome") == "suspended":
                outcome = suspended_from(completed.suspended)
            else:
                outcome = effects_from(completed.effects)
            return Completed(
                completed.invocation_id, completed.attempt, outcome, dict(completed.usage) or None, time, jitter
            )
        case "failed":
            failed = message.failed
            progress = failed.last_progress if failed.HasField("last_progress") else None
            return Failed(
                failed.invocation_id,
                failed.attempt,
                failed.failure,
                dict(failed.usage) or None,
                progress,
                time,
                jitter,
            )
        case "answered":
            answered = message.answered
            return Answered(answered.question_id, answered.payload, answered.answered_by, time, jitter)
        case "signalled":
            signalled = message.signalled
            payload = signalled.payload if signalled.HasField("payload") else None
            writes = state_writes_from(signalled.state_writes)
            return Signalled(payload, signalled.target_node_id, writes, time, jitter)
        case "fired":
            return Fired(message.fired.timer_kind, message.fired.subject_id, time, jitter)
        case "cancel":
            return Cancel(message.cancel.reason, time, jitter)
        case "resume":
            resume = message.resume
            overrides = state_writes_from(resume.state_overrides)
            return Resume(resume.max_supersteps, resume.parent_checkpoint_id, overrides, time, jitter)
        case None:
            raise ValueError("a journaled input has no kind; the journal is damaged or from a newer version")
