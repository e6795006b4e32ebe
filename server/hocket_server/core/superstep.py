"""The superstep graph: Pregel over typed messages, one level of it.

All that is in flight when a superstep opens is delivered in it, and only that. It closes when every invocation has ended:
then the writers of state are merged and every message routed, on the state just merged, and either all of it is committed
(state, private state, deliveries, what joins hold, outputs, questions) or, when an invocation is out of attempts, two
writers conflict or a condition errs, nothing. With deliveries left the next superstep opens; with none, and nobody to wait
for, the graph has converged.

What can come in the meantime: an answer or a signal is a delivery of the next superstep; a handler that stopped for an
answer is set aside, so that the superstep closes without it, and joins the superstep that is open when it goes on; a node
that names a definition is a nested machine of this same kind, whose work is done when it has converged and set aside while
it only waits for answers. All its decisions are made into the parent's `Decision`, with its path on them.

Ids are positions (`{prefix}{superstep}/{node}`), order is position everywhere, and completion order decides nothing. This
file knows no clock, no endpoint and no store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Self

from hocket import v1
from hocket.errors import NotFoundError
from hocket.records import (
    Answered,
    Completed,
    Delivery,
    Effects,
    Failed,
    Fired,
    GraphPosition,
    Message,
    Resume,
    Signalled,
    Suspended,
)
from hocket_server.core.boundary import boundary_failure, leftovers, merged, routed, signalled, starved
from hocket_server.core.check import fault, type_error
from hocket_server.core.ledger import Work, put_preview
from hocket_server.core.level import Level
from hocket_server.core.merge import ConflictError
from hocket_server.core.portion import apart, input_of, together
from hocket_server.core.question import answer_order
from hocket_server.core.routing import ConditionError, Drop
from hocket_server.core.scheduler import Decision, Outcome
from hocket_server.core.topology import Node

_IS_OVER = frozenset({v1.WORK_STATE_DONE, v1.WORK_STATE_FAILED})


class SuperstepScheduler(Level):
    """One level of a run: the root graph, or one nested run of a definition. `run.RunScheduler` drives it."""

    __slots__ = ()

    # What the world tells it.

    def begin(self, payload: v1.Payload, decision: Decision, time: int) -> None:
        message = Message(f"{self.prefix}0", "", payload, trace_context=self.info.trace_context)
        self.pending[self.topology.start.index] = [Delivery([message])]
        self.advance(decision, time)

    def completed(self, record: Completed, decision: Decision) -> None:
        if self.children and (child := self.child_of(record.invocation_id)):
            if self._is_working(child):
                child.completed(record, decision)
                self._settle(child, decision, record.time)
                self.advance(decision, record.time)
            return None
        work = self.ledger.current(record.invocation_id, record.attempt)
        if work is None:
            return None
        node = self.topology.by_id[work.position.node_id]
        if wrong := fault(self.topology, node, record.outcome):
            failure = v1.Failure(
                kind=v1.FAILURE_KIND_PROTOCOL, type="PROTOCOL", message=wrong, source=self.place(node.id)
            )
            failed = Failed(record.invocation_id, record.attempt, failure, record.usage, time=record.time)
            return self.failed(failed, decision)
        is_abandoned = work.state == v1.WORK_STATE_ABANDONED
        if isinstance(record.outcome, Suspended):
            if is_abandoned:
                # Nobody will answer: it ends here, and asks when the run goes on.
                failure = v1.Failure(
                    kind=v1.FAILURE_KIND_CANCELLED, type="CANCELLED", message="it stopped for an answer"
                )
                failed = Failed(record.invocation_id, record.attempt, failure, record.usage, time=record.time)
                return self.failed(failed, decision)
            self._suspend(work, record.outcome, decision, record.time)
        else:
            self.ledger.complete(work, record, record.outcome, decision)
            if is_abandoned and self.ending == v1.RUN_STATE_CANCELLED:
                # Shown in the log, but a cancelled run takes no effects: resumed, it runs again.
                work.state, work.effects = v1.WORK_STATE_FAILED, None
        if self.queues:
            self._start_next(node, decision, record.time)
        return self.advance(decision, record.time)

    def failed(self, record: Failed, decision: Decision) -> None:
        if self.children and (child := self.child_of(record.invocation_id)):
            if self._is_working(child):
                child.failed(record, decision)
                self._settle(child, decision, record.time)
                self.advance(decision, record.time)
            return None
        work = self.ledger.current(record.invocation_id, record.attempt)
        if work is None:
            return None
        if work.state == v1.WORK_STATE_BACKOFF:
            return None  # the loss of this attempt was charged
        was_abandoned = work.state == v1.WORK_STATE_ABANDONED
        if self.ledger.fail(work, record, decision):
            if work.retry_time <= record.time:
                self._hand_out(work, decision)
        elif not was_abandoned:
            failure = v1.Failure()
            failure.CopyFrom(record.failure)
            failure.source = failure.source or self.place(work.position.node_id)
            is_cancelled = failure.kind == v1.FAILURE_KIND_CANCELLED
            self.end(v1.RUN_STATE_CANCELLED if is_cancelled else v1.RUN_STATE_FAILED, failure, decision)
        return self.advance(decision, record.time)

    def fired(self, record: Fired, decision: Decision) -> None:
        """A retry is due, or a question has expired. What is over meanwhile is ignored."""
        self._fire(record, decision)
        self.advance(decision, record.time)

    def answered(self, record: Answered, decision: Decision) -> None:
        """Raises NotFoundError, QuestionClosedError or PayloadError with nothing changed. The same answer again is nothing."""
        self._accept(record, decision)
        self.advance(decision, record.time)

    def signalled(self, record: Signalled, decision: Decision) -> None:
        """Raises NotFoundError, PayloadError or ConflictError with nothing changed."""
        target = self.topology.by_id.get(record.target_node_id) if record.target_node_id else self.topology.start
        if target is None:
            known = ", ".join(self.topology.by_id)
            raise NotFoundError(f"node {record.target_node_id!r} is not in the graph; known: {known}")
        if record.payload is not None and not target.takes(record.payload):
            raise type_error(f"node {target.id!r}", record.payload, target.input_types)
        state = signalled(self.topology, self.state, record.state_writes)
        if self.is_open:
            self.signal_writes.extend(record.state_writes)
        else:
            self.state = state
        event = self.event(decision).signal_received
        event.target_node_id = target.id
        if record.payload is not None:
            put_preview(record.payload, event.payload)
            message = Message(f"{self.prefix}{self.superstep}/signal", "", record.payload)
            self.pending.setdefault(target.index, []).append(Delivery([message]))
        self.advance(decision, record.time)

    def end(
        self, state: v1.RunState.ValueType, failure: v1.Failure | None, decision: Decision, reason: str = ""
    ) -> None:
        """Begin to end: what runs is abandoned, and its end awaited before the outcome is told (G31, G33)."""
        if self.ending:
            return
        self.ending, self.failure, self.reason = state, failure, reason
        for work in self.ledger.works.values():
            child = self.children.get(work.invocation_id)
            if child is None or work.state != v1.WORK_STATE_RUNNING:
                self.ledger.abandon(work, decision)
                continue
            child.end(state, failure, decision)
            child.advance(decision, 0)
            self._settle(child, decision, 0)

    def resume(self, record: Resume, decision: Decision) -> None:
        """Go on after an end: what is recorded as done stays so, all else is handed out again with fresh budgets (G32)."""
        self._reopen(record, decision)
        if record.parent_checkpoint_id and self.is_open:
            self.event(decision).superstep_started.superstep = self.superstep
        unfinished = [work for work in self.by_position() if work.state != v1.WORK_STATE_DONE]
        for work in unfinished:
            self.ledger.renew(work)
            if child := self.children.get(work.invocation_id):
                child.raise_limit(record.max_supersteps)
        self._start(unfinished, decision, record.time, record)
        self.advance(decision, record.time)

    def _reopen(self, record: Resume, decision: Decision) -> None:
        """Be as if it had not ended. Nested runs that are set aside wait on, until they have their answers."""
        self.raise_limit(record.max_supersteps)
        self.outcome, self.failure, self.reason = None, None, ""
        self.ending = v1.RUN_STATE_UNSPECIFIED
        self.queues.clear()
        self.questions.renew(record.time)
        decision.arm(*self.questions.timers())
        for invocation_id in self.suspended:
            if child := self.children.get(invocation_id):
                child._reopen(record, decision)

    def raise_limit(self, max_supersteps: int) -> None:
        """For this level and all that are nested in it; a lower one changes nothing."""
        self.max_supersteps = max(max_supersteps, self.max_supersteps)
        for child in self.children.values():
            child.raise_limit(max_supersteps)

    def ask_again(self, decision: Decision) -> None:
        """A fork tells its own log of every question that is open in it (G37)."""
        for question in self.questions.open.values():
            self.event(decision).question_asked.question.CopyFrom(question)
        for child in self.children.values():
            child.ask_again(decision)

    # The superstep.

    def advance(self, decision: Decision, time: int) -> None:
        """Close, open and converge as far as it goes."""
        while self.outcome is None:
            if self.ending:
                if self.ledger.outstanding == 0:
                    self.outcome = Outcome(self.ending, self.reason, self.failure)
                return
            if self.is_open:
                if self.ready and self._rejoin(decision, time):
                    continue
                if self.ledger.outstanding:
                    return
                self._close(decision, time)
            elif self.pending or self.ready:
                if self.superstep >= self.max_supersteps:
                    reason = (
                        f"{self.max_supersteps} supersteps have run and messages are left; resume with a higher limit"
                    )
                    self.outcome = Outcome(v1.RUN_STATE_LIMIT_REACHED, reason)
                    return
                self._open(decision, time)
            elif self.questions.open or self.suspended:
                return
            else:
                self._converge(decision)

    def _open(self, decision: Decision, time: int) -> None:
        self.superstep += 1
        self.is_open = True
        pending, self.pending = self.pending, {}
        works: list[Work] = []
        for index in sorted(pending):
            self._add_works(self.topology.nodes[index], pending[index], works)
        for work in works:
            self.ledger.open(work)
        self.event(decision).superstep_started.superstep = self.superstep
        if self.ready:
            ready, self.ready = self.ready, []
            for work in ready:
                self._take_back(work)
            self.shared = {work.position.node_id for work in ready}
            works = sorted([*ready, *works], key=self.key_of)
        self._start(works, decision, time)

    def _add_works(self, node: Node, deliveries: list[Delivery], works: list[Work]) -> None:
        """One invocation for the node's whole input, or several (architecture 5)."""
        if node.is_apart:
            parts = apart(deliveries)
        elif len(deliveries) == 1 and len(deliveries[0].messages) == 1:
            parts = [deliveries]
        else:
            parts = together(deliveries, self.info.max_invocation_bytes)
        number = 1 if node.is_apart or len(parts) > 1 else 0
        for part in parts:
            position = GraphPosition(self.superstep, node.id, number)
            works.append(Work(position, self.invocation_id(position), node.policy, part))
            number += 1

    def _start(self, works: Iterable[Work], decision: Decision, time: int, resumed: Resume | None = None) -> None:
        """Hand out, as many of a node at once as it declares; the others queue."""
        by_id, slots, queues = self.topology.by_id, self.ledger.slots, self.queues
        joined = list(queues)
        for work in works:  # by position
            if self.ending:
                return
            node = by_id[work.position.node_id]
            if slots.get(node.id, 0) < node.concurrency and node.index not in queues:
                if node.nested is None:
                    self._hand_out(work, decision)
                else:
                    self._start_one(node, work, decision, time, resumed)
            else:
                queues.setdefault(node.index, deque()).append(work)
        for index in joined:
            # What rejoins takes the place of its position, as it will when it is restored.
            if index in queues:
                queues[index] = deque(sorted(queues[index], key=self.key_of))
        if queues:
            # A nested run may have ended or gone to wait at once, and left its slot to one behind it.
            for node in [self.topology.nodes[index] for index in queues]:
                self._start_next(node, decision, time)

    def _start_one(self, node: Node, work: Work, decision: Decision, time: int, resumed: Resume | None = None) -> None:
        if node.nested is None:
            self._hand_out(work, decision)
            return
        if work.invocation_id not in self.children:
            self.ledger.begin(work, decision)
            self.child(node, work).begin(input_of(work.deliveries), decision, time)
        elif resumed is not None or self.children[work.invocation_id].outcome is not None:
            self.ledger.begin(work, decision)
            self.children[work.invocation_id].resume(resumed or Resume(time=time), decision)
        else:
            self.ledger.take_slot(work)
            self.children[work.invocation_id].advance(decision, time)
        self._settle(self.children[work.invocation_id], decision, time)

    def _hand_out(self, work: Work, decision: Decision) -> None:
        self.ledger.begin(work, decision)
        decision.invocations.append(self.invocation(work))

    def _start_next(self, node: Node, decision: Decision, time: int) -> None:
        """Hand out what waited for a slot, as many as are free."""
        while (queue := self.queues.get(node.index)) and not self.ending:
            if self.ledger.slots.get(node.id, 0) >= node.concurrency:
                return
            work = queue.popleft()
            if not queue:
                del self.queues[node.index]
            self._start_one(node, work, decision, time)

    def _rejoin(self, decision: Decision, time: int) -> bool:
        """What was set aside and has its answers goes on in the superstep that is open; whether there was any.

        Not beside another invocation of its node, whose private state it would overwrite: it then waits for the next one.
        """
        taken = {work.position.node_id for work in self.ledger.works.values()}
        going: list[Work] = []
        waiting: list[Work] = []
        for work in sorted(self.ready, key=self.key_of):
            node = self.topology.by_id[work.position.node_id]
            if not node.is_apart and node.id in taken:
                waiting.append(work)
                continue
            taken.add(node.id)
            going.append(work)
        self.ready = waiting
        for work in going:
            self._take_back(work)
        self._start(going, decision, time)
        return bool(going)

    def _take_back(self, work: Work) -> None:
        self.suspended.pop(work.invocation_id, None)
        work.state = v1.WORK_STATE_QUEUED
        self.ledger.open(work)

    def _close(self, decision: Decision, time: int) -> None:
        """The boundary: everything is worked out first, then committed; a fault leaves all as it was."""
        works = self.by_position()
        try:
            state = merged(self.topology, self.state, works)
            if self.signal_writes:
                # Cleared first: a signal that cannot be merged must not fail the run again and again.
                signal_writes, self.signal_writes = self.signal_writes, []
                state = signalled(self.topology, state, signal_writes)
                self.signal_writes = signal_writes
            plan, drops = routed(self.topology, self.info.hooks, works, state, self.superstep, self.buffers)
        except (ConflictError, ConditionError) as error:
            failure = boundary_failure(error)
            failure.source = self.place(failure.source)
            return self.end(v1.RUN_STATE_FAILED, failure, decision)
        self.is_open = False
        self.state = state
        if self.signal_writes:
            self.signal_writes = []
        for work in works:
            self._commit(work, drops.get(work.invocation_id, ()) if drops else (), decision, time)
        if self.topology.joins:
            plan.fire(self.busy())
            self.buffers = plan.buffers
        later, self.pending = self.pending, plan.deliveries
        for target, deliveries in later.items():
            self.pending.setdefault(target, []).extend(deliveries)
        self.ledger.clear()
        if self.shared:
            self.shared = set()
        completed = self.event(decision).superstep_completed
        completed.superstep = self.superstep
        completed.checkpoint_id = decision.checkpoint_id = f"{self.prefix}{self.superstep}"
        return None

    def _commit(
        self,
        work: Work,
        drops: Iterable[Drop],
        decision: Decision,
        time: int,
    ) -> None:
        """Outputs, custom events, questions, drops and handoffs of one invocation, in this order (G28)."""
        effects = work.effects
        if effects is None:
            return
        node_id = work.position.node_id
        if self.children and (child := self.children.pop(work.invocation_id, None)):
            self.questions.adopt(child.questions)
        if effects.private_state is not None:
            self.private_state[node_id] = effects.private_state
        if effects.outputs:
            self._yield(work, effects.outputs, decision)
        for custom in effects.events:
            self.work_event(work, decision).custom.CopyFrom(custom)
        for question in effects.questions:
            self._ask(work, question, decision, time)
        for message, reason in drops:
            self._drop(message, reason, decision)
        if effects.handoff is not None:
            handed = self.work_event(work, decision).handed_off
            handed.from_id, handed.to_id = node_id, effects.handoff.target_node_id
            handed.mode, handed.task = v1.HANDOFF_MODE_TRANSFER, effects.handoff.task

    def _yield(self, work: Work, outputs: Sequence[v1.Payload], decision: Decision) -> None:
        node = self.topology.by_id[work.position.node_id]
        if node.role == v1.OUTPUT_ROLE_HIDDEN:
            return
        is_intermediate = node.role == v1.OUTPUT_ROLE_INTERMEDIATE
        for payload in outputs:
            event = self.work_event(work, decision).output_yielded
            event.node_id = node.id
            event.payload.CopyFrom(payload)
            if is_intermediate:
                event.intermediate = True
        if is_intermediate:
            return
        self.has_output = True
        if self.path:
            self.outputs.extend(outputs)
        else:
            decision.give(outputs)

    def _drop(
        self, message: Message, reason: v1.DropReason.ValueType, decision: Decision, target_node_id: str = ""
    ) -> None:
        dropped = self.event(decision).message_dropped
        dropped.message_id, dropped.source_node_id = message.message_id, message.source_node_id
        dropped.target_node_id = target_node_id or message.target_node_id
        dropped.reason = reason
        put_preview(message.payload, dropped.payload)

    def _converge(self, decision: Decision) -> None:
        """Nothing is in flight and nobody is waited for. A join that still holds messages is no success (G20)."""
        if failure := starved(self.topology, self.buffers):
            failure.source = self.place(failure.source)
            return self.end(v1.RUN_STATE_FAILED, failure, decision)
        for join, message in leftovers(self.topology, self.buffers):
            self._drop(message, v1.DROP_REASON_JOIN_LEFTOVER, decision, join.targets[0].id)
        without = not self.has_output and self.topology.declares_output
        self.outcome = Outcome(v1.RUN_STATE_COMPLETED, converged_without_output=without)
        return None

    # Nested runs.

    def child(self, node: Node, work: Work) -> Self:
        """Begin the account of a nested run; its ids and events lie below the work's."""
        if node.nested is None:
            raise ValueError(f"node {node.id!r} names no definition")
        child = type(self)(node.nested, self.info, prefix=f"{work.invocation_id}/", path=(*self.path, node.id))
        self.children[work.invocation_id] = child
        return child

    def _is_working(self, child: Self) -> bool:
        """One that waits, for answers or for its node's slot, has nothing in flight: what it is told of attempts is old."""
        work = self.ledger.works.get(child.prefix.removesuffix("/"))
        return work is not None and work.state == v1.WORK_STATE_RUNNING

    def _settle(self, child: Self, decision: Decision, time: int) -> None:
        """Make the nested machine's state the state of its work."""
        invocation_id = child.prefix.removesuffix("/")
        work = self.ledger.works.get(invocation_id)
        if work is None or work.state in _IS_OVER:
            return
        node = self.topology.by_id[work.position.node_id]
        outcome = child.outcome
        if outcome is None:
            if child.is_waiting and not child.pending and not child.ready:
                self.ledger.set_aside(work)
                self.suspended[invocation_id] = work
                self._start_next(node, decision, time)
        elif outcome.state == v1.RUN_STATE_COMPLETED:
            messages = [
                Message(f"{invocation_id}/{ordinal}", node.id, payload)
                for ordinal, payload in enumerate(child.outputs, start=1)
            ]
            done = Completed(invocation_id, work.attempt, Effects(), time=time)
            self.ledger.complete(work, done, Effects(messages=messages), decision)
            self._start_next(node, decision, time)
        else:
            failure = outcome.failure or _without_failure(outcome)
            work.last_failure = failure
            self.ledger.leave(work, v1.WORK_STATE_FAILED)
            failed = self.work_event(work, decision).invocation_failed
            failed.node_id = node.id
            failed.failure.CopyFrom(failure)
            self.end(outcome.state, outcome.failure, decision, outcome.reason)

    # Questions.

    def _suspend(self, work: Work, suspended: Suspended, decision: Decision, time: int) -> None:
        ids = [f"{work.invocation_id}/{question.question_id}" for question in suspended.questions]
        self.ledger.suspend(work, suspended, ids, decision)
        self.suspended[work.invocation_id] = work
        for question in suspended.questions:
            self._ask(work, question, decision, time)

    def _ask(self, work: Work, question: v1.Question, decision: Decision, time: int) -> None:
        opened = v1.Question()
        opened.CopyFrom(question)
        opened.question_id = f"{work.invocation_id}/{question.question_id}"
        opened.node_id = work.position.node_id
        opened.path.extend(self.path)
        if timer := self.questions.ask(opened, time):
            decision.arm(timer)
        self.work_event(work, decision).question_asked.question.CopyFrom(opened)

    def _accept(self, record: Answered, decision: Decision) -> None:
        """Close the question and queue its answer; what then goes on is for `advance`."""
        if question := self.questions.open.get(record.question_id):
            self.questions.check(question, record)
            return self._close_question(question, record, decision)
        if self.questions.is_repeated(record):
            return None
        child = self.child_of(record.question_id)
        if child is None:
            known = ", ".join(self.questions.open) or "none"
            raise NotFoundError(
                f"question {record.question_id!r} is not open; open: {known}", v1.ERROR_REASON_QUESTION_NOT_FOUND
            )
        child._accept(record, decision)
        return self._wake(child, decision, record.time)

    def _wake(self, child: Self, decision: Decision, time: int) -> None:
        """An answer reached a nested run: one that works goes on at once, one set aside with the next `advance`."""
        invocation_id = child.prefix.removesuffix("/")
        work = self.suspended.get(invocation_id) or self.ledger.works[invocation_id]
        if work.state == v1.WORK_STATE_RUNNING:
            child.advance(decision, time)
            self._settle(child, decision, time)
        elif child.ending:
            child.advance(decision, time)
            self.end(child.ending, child.failure, decision)
        elif work.state == v1.WORK_STATE_SUSPENDED and (child.pending or child.ready) and work not in self.ready:
            self.ready.append(work)
        # One that waits for its node's slot goes on when it has it.

    def _fire(self, record: Fired, decision: Decision) -> None:
        if child := self.child_of(record.subject_id):
            child._fire(record, decision)
            self._wake(child, decision, record.time)
        elif record.timer_kind == v1.TIMER_KIND_RETRY:
            work = self.ledger.works.get(record.subject_id)
            # Nothing to do when the lost attempt came back meanwhile.
            if work is not None and work.state == v1.WORK_STATE_BACKOFF and not self.ending:
                self._hand_out(work, decision)
        elif (question := self.questions.open.get(record.subject_id)) and not self.ending:
            self._expire(question, record, decision)

    def _close_question(
        self, question: v1.Question, record: Answered, decision: Decision, *, is_expired: bool = False
    ) -> None:
        question_id = question.question_id
        answer = self.questions.close(question, record)
        answered = self.event(decision).question_answered
        answered.question_id, answered.answered_by, answered.expired = question_id, record.answered_by, is_expired
        answered.answer.CopyFrom(record.payload)
        for work in self.suspended.values():
            if question_id in work.waits_for:
                answers = [*work.answers, Delivery([answer])]
                work.answers = sorted(answers, key=lambda delivery: answer_order(delivery.messages[0]))
                work.waits_for = [each for each in work.waits_for if each != question_id]
                if not work.waits_for:
                    self.ready.append(work)
                return
        deliveries = self.pending.setdefault(self.topology.by_id[question.node_id].index, [])
        deliveries.append(Delivery([answer]))
        deliveries.sort(key=lambda delivery: answer_order(delivery.messages[0]))

    def _expire(self, question: v1.Question, record: Fired, decision: Decision) -> None:
        if question.HasField("default_answer"):
            answer = Answered(question.question_id, question.default_answer, "", record.time)
            return self._close_question(question, answer, decision, is_expired=True)
        # It stays open: a resumed run waits for its answer anew.
        failure = v1.Failure(
            kind=v1.FAILURE_KIND_QUESTION_EXPIRED,
            type="QUESTION_EXPIRED",
            message=f"question {question.question_id!r} expired unanswered and has no default",
            source=self.place(question.node_id),
        )
        return self.end(v1.RUN_STATE_FAILED, failure, decision)


def _without_failure(outcome: Outcome) -> v1.Failure:
    """A nested run that reached its limit, or one beside it that was stopped for that."""
    if outcome.reason:
        return v1.Failure(kind=v1.FAILURE_KIND_APPLICATION, type="LIMIT_REACHED", message=outcome.reason)
    return v1.Failure(kind=v1.FAILURE_KIND_CANCELLED, type="CANCELLED", message="the run no longer wants it")
