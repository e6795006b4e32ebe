"""The account of a level's invocations: what was handed out, how its attempts ended, what that has cost.

One logical piece of work is one `Work`, whatever the number of its attempts; its invocation id is its position and so the
same in each. The ledger counts attempts and budgets, and tells through events what happened. It knows nothing of graphs:
what an invocation carries is made by the scheduler that owns the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hocket import v1
from hocket.records import Completed, Delivery, Effects, Failed, GraphPosition, Suspended
from hocket_server.core.retry import Budget, Policy, charge
from hocket_server.core.scheduler import Decision, Timer

PREVIEWED = 20
PREVIEW_BYTES = 512


@dataclass(slots=True, eq=False)
class Work:
    position: GraphPosition
    invocation_id: str
    policy: Policy
    deliveries: list[Delivery]
    state: v1.WorkState.ValueType = v1.WORK_STATE_QUEUED
    attempt: int = 0
    budget: Budget | None = None
    last_failure: v1.Failure | None = None
    last_progress: v1.Payload | None = None
    effects: Effects | None = None
    retry_time: int = 0
    continuation: v1.Payload | None = None
    # To what a suspended work has asked so far.
    answers: Sequence[Delivery] = ()
    # Question ids that a suspended work still waits for.
    waits_for: Sequence[str] = ()


class Ledger:
    """`outstanding` counts works that are neither done nor suspended: while it is not 0 the boundary has not come."""

    __slots__ = (
        "_path",
        "outstanding",
        "slots",
        "works",
    )

    def __init__(self, path: Sequence[str]) -> None:
        self.works: dict[str, Work] = {}
        self.outstanding = 0
        # By node: works that hold one of its slots, from their first attempt to their end.
        self.slots: dict[str, int] = {}
        self._path = path

    def open(self, work: Work) -> None:
        self.works[work.invocation_id] = work
        self.outstanding += 1

    def begin(self, work: Work, decision: Decision) -> None:
        """Count an attempt, which the scheduler hands out or, of a nested run, carries out itself."""
        work.attempt += 1
        self.take_slot(work)
        self._event(work, decision).invocation_started.node_id = work.position.node_id

    def take_slot(self, work: Work) -> None:
        if work.state == v1.WORK_STATE_QUEUED:
            node_id = work.position.node_id
            self.slots[node_id] = self.slots.get(node_id, 0) + 1
        work.state = v1.WORK_STATE_RUNNING

    def leave(self, work: Work, state: v1.WorkState.ValueType) -> None:
        """The work is over, for now or for good."""
        if work.state != v1.WORK_STATE_QUEUED:
            self.slots[work.position.node_id] -= 1
        work.state = state
        self.outstanding -= 1

    def restore(self, work: Work) -> None:
        """Take in a work as a snapshot has it."""
        self.works[work.invocation_id] = work
        if work.state in (v1.WORK_STATE_DONE, v1.WORK_STATE_FAILED):
            return
        self.outstanding += 1
        if work.state != v1.WORK_STATE_QUEUED:
            node_id = work.position.node_id
            self.slots[node_id] = self.slots.get(node_id, 0) + 1

    def clear(self) -> None:
        """The boundary is past."""
        self.works = {}
        self.slots.clear()

    def current(self, invocation_id: str, attempt: int) -> Work | None:
        """The work whose open attempt this is. A lost attempt stays open until the next one is handed out."""
        work = self.works.get(invocation_id)
        if work is None or work.attempt != attempt:
            return None
        if work.state in (v1.WORK_STATE_RUNNING, v1.WORK_STATE_ABANDONED):
            return work
        is_lost = work.last_failure is not None and work.last_failure.kind == v1.FAILURE_KIND_EXECUTOR_LOST
        return work if work.state == v1.WORK_STATE_BACKOFF and is_lost else None

    def complete(self, work: Work, record: Completed, effects: Effects, decision: Decision) -> None:
        self.leave(work, v1.WORK_STATE_DONE)
        work.effects = effects
        completed = self._event(work, decision).invocation_completed
        completed.node_id = work.position.node_id
        if effects.messages:
            for message in effects.messages[:PREVIEWED]:
                shown = completed.messages.add()
                put_preview(message.payload, shown)
                if message.target_node_id:
                    shown.target_node_id = message.target_node_id
            if len(effects.messages) > PREVIEWED:
                completed.messages_left_out = len(effects.messages) - PREVIEWED
        if effects.outputs:
            for output in effects.outputs[:PREVIEWED]:
                put_preview(output, completed.outputs.add())
            if len(effects.outputs) > PREVIEWED:
                completed.outputs_left_out = len(effects.outputs) - PREVIEWED
        if record.usage:
            for unit, amount in record.usage.items():
                completed.usage[unit] = amount

    def suspend(self, work: Work, suspended: Suspended, question_ids: Sequence[str], decision: Decision) -> None:
        work.continuation = suspended.continuation
        work.waits_for = question_ids
        event = self._event(work, decision).invocation_suspended
        event.node_id = work.position.node_id
        event.question_ids.extend(question_ids)
        self.set_aside(work)

    def set_aside(self, work: Work) -> None:
        """The work waits outside the superstep, which can close without it."""
        self.leave(work, v1.WORK_STATE_SUSPENDED)
        del self.works[work.invocation_id]

    def fail(self, work: Work, record: Failed, decision: Decision) -> bool:
        """Charge a failure; whether another attempt follows: when its timer fires, or at once where there is none. One of an
        abandoned work is its end."""
        work.last_failure = record.failure
        work.last_progress = record.last_progress or work.last_progress
        is_abandoned = work.state == v1.WORK_STATE_ABANDONED
        work.budget = work.budget or Budget()
        delay = None if is_abandoned else charge(work.policy, work.budget, record)
        failed = self._event(work, decision).invocation_failed
        failed.node_id = work.position.node_id
        failed.failure.CopyFrom(record.failure)
        failed.will_retry = delay is not None
        if delay is None:
            self.leave(work, v1.WORK_STATE_FAILED)
            return False
        work.state = v1.WORK_STATE_BACKOFF
        work.retry_time = record.time + delay
        if delay:
            decision.arm(self.timer(work))
        return True

    def timer(self, work: Work) -> Timer:
        return Timer(v1.TIMER_KIND_RETRY, work.invocation_id, work.retry_time)

    def abandon(self, work: Work, decision: Decision) -> None:
        """Not wanted any more: what runs is told and its end awaited, what only waits leaves the count."""
        if work.state == v1.WORK_STATE_RUNNING:
            work.state = v1.WORK_STATE_ABANDONED
            decision.abandon(work.invocation_id)
        elif work.state in (v1.WORK_STATE_BACKOFF, v1.WORK_STATE_QUEUED):
            self.leave(work, v1.WORK_STATE_FAILED)

    def renew(self, work: Work) -> None:
        """In the count with fresh budgets, for a run that goes on; attempt numbers go on too (G32)."""
        if work.state == v1.WORK_STATE_FAILED:
            self.outstanding += 1
        elif work.state != v1.WORK_STATE_QUEUED:
            self.slots[work.position.node_id] -= 1
        work.budget = None
        work.state = v1.WORK_STATE_QUEUED

    def in_flight(self) -> list[tuple[str, int]]:
        open_states = (v1.WORK_STATE_RUNNING, v1.WORK_STATE_ABANDONED)
        return [(work.invocation_id, work.attempt) for work in self.works.values() if work.state in open_states]

    def _event(self, work: Work, decision: Decision) -> v1.Event:
        event = v1.Event()
        event.invocation_id = work.invocation_id
        event.attempt = work.attempt
        if self._path:
            event.path.extend(self._path)
        decision.events.append(event)
        return event


def put_preview(payload: v1.Payload, out: v1.Preview) -> None:
    out.type = payload.type
    data = payload.data
    if data:
        if payload.content_type:
            out.truncated_bytes = len(data)
        elif len(data) <= PREVIEW_BYTES:
            out.text = data.decode(errors="replace")
        else:
            # The cut may fall inside a code point; what is left of it is dropped.
            out.text = data[:PREVIEW_BYTES].decode(errors="ignore")
            out.truncated_bytes = len(data)
    elif payload.HasField("blob"):
        out.truncated_bytes = payload.blob.size_bytes
    elif not payload.HasField("data"):
        out.text = "null"
