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

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence

from hocket import v1
from hocket.errors import NotFoundError, PayloadError, QuestionClosedError
from hocket.records import (
    Answered,
    Completed,
    Delivery,
    Effects,
    Failed,
    Fired,
    GraphPosition,
    Invocation,
    Message,
    Signalled,
    StateWrite,
    Suspended,
)
from hocket.wire import put_time
from hocket_server.core.ledger import Ledger, Work, put_preview
from hocket_server.core.merge import ConflictError, Writer, list_of, merge, text_of
from hocket_server.core.routing import Buffer, ConditionError, Plan, View, compile_reach
from hocket_server.core.scheduler import Decision, Outcome, RunInfo, Timer
from hocket_server.core.topology import Node, Topology, covers

_IS_OVER = frozenset({v1.WORK_STATE_DONE, v1.WORK_STATE_FAILED})


class SuperstepScheduler:
    """One level of a run: the root graph, or one nested run of a definition. `run.RunScheduler` drives it."""

    def __init__(self, topology: Topology, info: RunInfo, *, prefix: str, path: tuple[str, ...] = ()) -> None:
        self.topology = topology
        self.info = info
        self.prefix = prefix
        self.path = path
        self.superstep = 0
        self.max_supersteps = topology.max_supersteps
        self.is_open = False
        self.ending: v1.RunState.ValueType = v1.RUN_STATE_UNSPECIFIED
        self.failure: v1.Failure | None = None
        self.outcome: Outcome | None = None
        self.has_output = False
        self.outputs: list[v1.Payload] = []
        self.state: dict[str, v1.Payload] = {}
        self.private_state: dict[str, v1.Payload] = {}
        self.ledger = Ledger(path, self._invocation)
        self.suspended: dict[str, Work] = {}
        self.children: dict[str, SuperstepScheduler] = {}
        self.buffers: dict[int, Buffer] = {}
        self.pending: dict[int, list[Delivery]] = {}
        self.ready: list[Work] = []
        self.questions: dict[str, v1.Question] = {}
        self.expiries: dict[str, int] = {}
        self.closed: dict[str, bytes] = {}
        self.signal_writes: list[StateWrite] = []
        self.queues: dict[int, deque[Work]] = {}
        self._reach = compile_reach(topology)

    # What the world tells it.

    def begin(self, payload: v1.Payload, decision: Decision, time: int) -> None:
        message = Message(f"{self.prefix}0", "", payload, trace_context=self.info.trace_context)
        self.pending[self.topology.start.index] = [Delivery([message])]
        self.advance(decision, time)

    def completed(self, record: Completed, decision: Decision) -> None:
        if child := self._child_of(record.invocation_id):
            child.completed(record, decision)
            self._settle(child, decision, record.time)
            return self.advance(decision, record.time)
        work = self.ledger.current(record.invocation_id, record.attempt)
        if work is None:
            return None
        node = self.topology.by_id[work.position.node_id]
        if fault := self._fault(node, record.outcome):
            failure = v1.Failure(
                kind=v1.FAILURE_KIND_PROTOCOL, type="PROTOCOL", message=fault, source=self._place(node.id)
            )
            failed = Failed(record.invocation_id, record.attempt, failure, record.usage, time=record.time)
            return self.failed(failed, decision)
        is_abandoned = work.state == v1.WORK_STATE_ABANDONED
        if isinstance(record.outcome, Suspended):
            self._suspend(work, record.outcome, decision, record.time)
        else:
            self.ledger.complete(work, record, record.outcome, decision)
            if is_abandoned and self.ending == v1.RUN_STATE_CANCELLED:
                # Shown in the log, but a cancelled run takes no effects: resumed, it runs again.
                work.state, work.effects = v1.WORK_STATE_FAILED, None
        self._start_next(node, decision, record.time)
        return self.advance(decision, record.time)

    def failed(self, record: Failed, decision: Decision) -> None:
        if child := self._child_of(record.invocation_id):
            child.failed(record, decision)
            self._settle(child, decision, record.time)
            return self.advance(decision, record.time)
        work = self.ledger.current(record.invocation_id, record.attempt)
        if work is None:
            return None
        was_abandoned = work.state == v1.WORK_STATE_ABANDONED
        if not self.ledger.fail(work, record, decision) and not was_abandoned:
            failure = v1.Failure()
            failure.CopyFrom(record.failure)
            failure.source = failure.source or self._place(work.position.node_id)
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
        """Raises NotFoundError or PayloadError with nothing changed."""
        target = self.topology.by_id.get(record.target_node_id) if record.target_node_id else self.topology.start
        if target is None:
            known = ", ".join(self.topology.by_id)
            raise NotFoundError(f"node {record.target_node_id!r} is not in the graph; known: {known}")
        if record.payload is not None and not target.takes(record.payload):
            raise _type_error(f"node {target.id!r}", record.payload, target.input_types)
        event = self._event(decision).signal_received
        event.target_node_id = target.id
        self.signal_writes.extend(record.state_writes)
        if record.payload is not None:
            put_preview(record.payload, event.payload)
            message = Message(f"{self.prefix}{self.superstep}/signal", "", record.payload)
            self.pending.setdefault(target.index, []).append(Delivery([message]))
        elif not self.is_open:
            self._apply_signal_writes()
        self.advance(decision, record.time)

    def end(self, state: v1.RunState.ValueType, failure: v1.Failure | None, decision: Decision) -> None:
        """Begin to end: what runs is abandoned, and its end awaited before the outcome is told (G31, G33)."""
        if self.ending:
            return
        self.ending, self.failure = state, failure
        for work in self.ledger.works.values():
            child = self.children.get(work.invocation_id)
            if child is None or work.state != v1.WORK_STATE_RUNNING:
                self.ledger.abandon(work, decision)
                continue
            child.end(state, failure, decision)
            child.advance(decision, 0)
            self._settle(child, decision, 0)

    def resume(self, max_supersteps: int, decision: Decision, time: int) -> None:
        """Go on after an end: what is recorded as done stays so, all else is handed out again with fresh budgets (G32)."""
        if max_supersteps:
            self.max_supersteps = max(max_supersteps, self.max_supersteps)
        self.outcome, self.failure = None, None
        self.ending = v1.RUN_STATE_UNSPECIFIED
        self.queues.clear()
        for question_id, due in self.expiries.items():
            if due <= time:
                self.expiries[question_id] = time + self.questions[question_id].expires_in.ToNanoseconds()
        decision.timers.extend(self._expiry_timers())
        for invocation_id in self.suspended:
            if child := self.children.get(invocation_id):
                child.resume(max_supersteps, decision, time)
        unfinished = [work for work in self._by_position() if work.state != v1.WORK_STATE_DONE]
        for work in unfinished:
            self.ledger.renew(work)
        self._start(unfinished, decision, time, resumed=max_supersteps)
        self.advance(decision, time)

    def ask_again(self, decision: Decision) -> None:
        """A fork tells its own log of every question that is open in it (G37)."""
        for question in self.questions.values():
            self._event(decision).question_asked.question.CopyFrom(question)
        for child in self.children.values():
            child.ask_again(decision)

    # The superstep.

    def advance(self, decision: Decision, time: int) -> None:
        """Close, open and converge as far as it goes."""
        while self.outcome is None:
            if self.ending:
                if self.ledger.outstanding == 0:
                    self.outcome = Outcome(self.ending, failure=self.failure)
                return
            if self.is_open:
                if self.ready:
                    self._rejoin(decision, time)
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
            elif self.questions or self.suspended:
                return
            else:
                self._converge(decision)

    @property
    def is_waiting(self) -> bool:
        return self.outcome is None and not self.is_open and bool(self.questions or self.suspended)

    def _open(self, decision: Decision, time: int) -> None:
        self.superstep += 1
        self.is_open = True
        pending, self.pending = self.pending, {}
        ready, self.ready = self.ready, []
        works: list[Work] = []
        for index in sorted(pending):
            works.extend(self._works(self.topology.nodes[index], pending[index]))
        for work in works:
            self.ledger.open(work)
        started = self._event(decision).superstep_started
        started.superstep = self.superstep
        if ready:
            for work in ready:
                self._take_back(work)
            works = sorted([*ready, *works], key=self._key)
        started.node_ids.extend(dict.fromkeys(work.position.node_id for work in works))
        self._start(works, decision, time)

    def _works(self, node: Node, deliveries: list[Delivery]) -> list[Work]:
        """One invocation for the node's whole input, or several (architecture 5)."""
        if node.concurrency == 1 and node.nested is None:
            parts = _split(deliveries, self.info.max_invocation_bytes)
        else:
            parts = _apart(deliveries)
        is_whole = len(parts) == 1 and node.concurrency == 1 and node.nested is None
        works: list[Work] = []
        for number, part in enumerate(parts, start=0 if is_whole else 1):
            position = GraphPosition(self.superstep, node.id, number)
            works.append(Work(position, self.invocation_id(position), node.policy, part))
        return works

    def invocation_id(self, position: GraphPosition) -> str:
        part = f"#{position.delivery}" if position.delivery else ""
        return f"{self.prefix}{position.superstep}/{position.node_id}{part}"

    def _start(self, works: Iterable[Work], decision: Decision, time: int, resumed: int | None = None) -> None:
        """Hand out, as many of a node at once as it declares; the others queue."""
        running: dict[int, int] = {}
        for work in works:
            node = self.topology.by_id[work.position.node_id]
            running[node.index] = running.get(node.index, 0) + 1
            if running[node.index] > node.concurrency:
                self.queues.setdefault(node.index, deque()).append(work)
            else:
                self._start_one(node, work, decision, time, resumed)

    def _start_one(self, node: Node, work: Work, decision: Decision, time: int, resumed: int | None = None) -> None:
        if node.nested is None:
            self.ledger.hand_out(work, decision)
            return
        child = self.children.get(work.invocation_id)
        if child is None:
            self.ledger.begin(work, decision)
            child = self.child(node, work)
            child.begin(_input_of(work), decision, time)
        elif resumed is not None:
            self.ledger.begin(work, decision)
            child.resume(resumed, decision, time)
        else:
            work.state = v1.WORK_STATE_RUNNING
            child.advance(decision, time)
        self._settle(child, decision, time)

    def _start_next(self, node: Node, decision: Decision, time: int) -> None:
        queue = self.queues.get(node.index)
        if queue and not self.ending:
            self._start_one(node, queue.popleft(), decision, time)

    def _rejoin(self, decision: Decision, time: int) -> None:
        """What was set aside and has its answers goes on in the superstep that is open."""
        ready, self.ready = self.ready, []
        for work in ready:
            self._take_back(work)
            self._start_one(self.topology.by_id[work.position.node_id], work, decision, time)

    def _take_back(self, work: Work) -> None:
        self.suspended.pop(work.invocation_id, None)
        work.state = v1.WORK_STATE_QUEUED
        self.ledger.open(work)

    def _close(self, decision: Decision, time: int) -> None:
        """The boundary: everything is worked out first, then committed; a fault leaves all as it was."""
        works = self._by_position()
        try:
            state = self._merged(works)
            plan, drops = self._route(works, state)
        except (ConflictError, ConditionError) as error:
            is_conflict = isinstance(error, ConflictError)
            kind = v1.FAILURE_KIND_CONFLICT if is_conflict else v1.FAILURE_KIND_CONDITION
            name = "CONFLICT" if is_conflict else "CONDITION"
            failure = v1.Failure(kind=kind, type=name, message=str(error), source=self._place(""))
            return self.end(v1.RUN_STATE_FAILED, failure, decision)
        self.is_open = False
        self.state, self.signal_writes = state, []
        for work in works:
            self._commit(work, drops.get(work.invocation_id, ()), decision, time)
        busy = 0
        for question in self.questions.values():
            busy |= 1 << self.topology.by_id[question.node_id].index
        for work in self.suspended.values():
            busy |= 1 << self.topology.by_id[work.position.node_id].index
        for target in self.pending:
            busy |= 1 << target
        if self.topology.joins:
            plan.fire(busy, self._reach)
        self.buffers = plan.buffers
        later, self.pending = self.pending, plan.deliveries
        for target, deliveries in later.items():
            self.pending.setdefault(target, []).extend(deliveries)
        self.ledger.works = {}
        self.queues.clear()
        completed = self._event(decision).superstep_completed
        completed.superstep = self.superstep
        completed.checkpoint_id = decision.checkpoint_id = f"{self.prefix}{self.superstep}"
        return None

    def _merged(self, works: Sequence[Work]) -> dict[str, v1.Payload]:
        writers = [
            Writer(work.position.node_id, work.invocation_id, work.effects.state_writes)
            for work in works
            if work.effects is not None and work.effects.state_writes
        ]
        state = merge(self.state, self.topology.merge_policies, writers) if writers else self.state
        if self.signal_writes:
            # A signal is no writer of the superstep: it comes after, and conflicts with nobody.
            signal = Writer("", "", self.signal_writes)
            state = merge(state, self.topology.merge_policies, [signal])
        return state

    def _apply_signal_writes(self) -> None:
        self.state, self.signal_writes = self._merged(()), []

    def _route(
        self, works: Sequence[Work], state: dict[str, v1.Payload]
    ) -> tuple[Plan, dict[str, list[tuple[Message, v1.DropReason.ValueType]]]]:
        view = View(self.info.hooks, state, self.superstep)
        plan = Plan(self.topology, view, self.buffers)
        drops: dict[str, list[tuple[Message, v1.DropReason.ValueType]]] = {}
        by_id = self.topology.by_id
        for work in works:
            effects = work.effects
            if effects is None:
                continue
            source = by_id[work.position.node_id]
            for message in effects.messages:
                reason = plan.route(message, source)
                if reason:
                    drops.setdefault(work.invocation_id, []).append((message, reason))
            if effects.handoff is not None:
                handoff = effects.handoff
                message = Message(f"{work.invocation_id}/handoff", source.id, _handed(handoff), handoff.target_node_id)
                plan.deliver(by_id[handoff.target_node_id], message)
        return plan, drops

    def _commit(
        self,
        work: Work,
        drops: Iterable[tuple[Message, v1.DropReason.ValueType]],
        decision: Decision,
        time: int,
    ) -> None:
        """Outputs, custom events, questions, drops and handoffs of one invocation, in this order (G28)."""
        effects = work.effects
        if effects is None:
            return
        node_id = work.position.node_id
        self.children.pop(work.invocation_id, None)
        if effects.private_state is not None:
            self.private_state[node_id] = effects.private_state
        if effects.outputs:
            self._yield(work, effects.outputs, decision)
        for custom in effects.events:
            self._work_event(work, decision).custom.CopyFrom(custom)
        for question in effects.questions:
            self._ask(work, question, decision, time)
        for message, reason in drops:
            self._drop(message, reason, decision)
        if effects.handoff is not None:
            handed = self._work_event(work, decision).handed_off
            handed.from_id, handed.to_id = node_id, effects.handoff.target_node_id
            handed.mode, handed.task = v1.HANDOFF_MODE_TRANSFER, effects.handoff.task

    def _yield(self, work: Work, outputs: Iterable[v1.Payload], decision: Decision) -> None:
        node = self.topology.by_id[work.position.node_id]
        if node.role == v1.OUTPUT_ROLE_HIDDEN:
            return
        is_intermediate = node.role == v1.OUTPUT_ROLE_INTERMEDIATE
        for payload in outputs:
            event = self._work_event(work, decision).output_yielded
            event.node_id = node.id
            event.payload.CopyFrom(payload)
            if is_intermediate:
                event.intermediate = True
            else:
                self.has_output = True
                if self.path:
                    self.outputs.append(payload)

    def _drop(
        self, message: Message, reason: v1.DropReason.ValueType, decision: Decision, target_node_id: str = ""
    ) -> None:
        dropped = self._event(decision).message_dropped
        dropped.message_id, dropped.source_node_id = message.message_id, message.source_node_id
        dropped.target_node_id = target_node_id or message.target_node_id
        dropped.reason = reason
        put_preview(message.payload, dropped.payload)

    def _converge(self, decision: Decision) -> None:
        """Nothing is in flight and nobody is waited for. A join that still holds messages is no success (G20)."""
        for join in self.topology.joins:
            buffer = self.buffers.get(join.index)
            if buffer is None or not buffer.messages:
                continue
            missing = [source.id for source in join.sources if source.index not in buffer.messages]
            # A quorum is met by fewer than all: what comes after it has fired is reported, and no fault.
            is_surplus = join.policy == v1.JOIN_POLICY_QUORUM and buffer.fired
            if not join.optional and not is_surplus:
                text = (
                    f"join {join.targets[0].id!r} (edge group {join.id!r}) still holds messages and waits for "
                    f"{', '.join(missing)}; use wait_for 'reachable' or 'any', or mark it optional"
                )
                failure = v1.Failure(
                    kind=v1.FAILURE_KIND_JOIN_STARVED,
                    type="JOIN_STARVED",
                    message=text,
                    source=self._place(join.targets[0].id),
                )
                return self.end(v1.RUN_STATE_FAILED, failure, decision)
            for messages in buffer.messages.values():
                for message in messages:
                    self._drop(message, v1.DROP_REASON_JOIN_LEFTOVER, decision, join.targets[0].id)
        without = not self.has_output and self.topology.declares_output
        self.outcome = Outcome(v1.RUN_STATE_COMPLETED, converged_without_output=without)
        return None

    # Nested runs.

    def child(self, node: Node, work: Work) -> SuperstepScheduler:
        """Begin the account of a nested run; its ids and events lie below the work's."""
        if node.nested is None:
            raise ValueError(f"node {node.id!r} names no definition")
        child = SuperstepScheduler(node.nested, self.info, prefix=f"{work.invocation_id}/", path=(*self.path, node.id))
        self.children[work.invocation_id] = child
        return child

    def _child_of(self, subject_id: str) -> SuperstepScheduler | None:
        """The nested machine an id belongs to: its first two parts after the prefix are the work's position."""
        if not self.children:
            return None
        superstep, _, rest = subject_id.removeprefix(self.prefix).partition("/")
        node, separator, _ = rest.partition("/")
        return self.children.get(f"{self.prefix}{superstep}/{node}") if separator else None

    def _settle(self, child: SuperstepScheduler, decision: Decision, time: int) -> None:
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
            failure = outcome.failure or v1.Failure(
                kind=v1.FAILURE_KIND_APPLICATION, type="LIMIT_REACHED", message=outcome.reason
            )
            work.state = v1.WORK_STATE_FAILED
            work.last_failure = failure
            self.ledger.outstanding -= 1
            failed = self._work_event(work, decision).invocation_failed
            failed.node_id = node.id
            failed.failure.CopyFrom(failure)
            self.end(outcome.state, outcome.failure, decision)

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
        put_time(time, opened.create_time)
        self.questions[opened.question_id] = opened
        self._work_event(work, decision).question_asked.question.CopyFrom(opened)
        if question.HasField("expires_in"):
            due = time + question.expires_in.ToNanoseconds()
            self.expiries[opened.question_id] = due
            decision.timers.append(Timer(v1.TIMER_KIND_QUESTION, opened.question_id, due))

    def _accept(self, record: Answered, decision: Decision) -> None:
        """Close the question and queue its answer; what then goes on is for `advance`."""
        question = self.questions.get(record.question_id)
        if question is not None:
            if question.response_types and not covers(frozenset(question.response_types), record.payload):
                raise _type_error(f"question {record.question_id!r}", record.payload, question.response_types)
            return self._close_question(question, record, decision, is_expired=False)
        if digest := self.closed.get(record.question_id):
            if digest == _digest(record.payload):
                return None
            raise QuestionClosedError(f"question {record.question_id!r} was answered otherwise; the answer stands")
        child = self._child_of(record.question_id)
        if child is None:
            known = ", ".join(self.questions) or "none"
            raise NotFoundError(
                f"question {record.question_id!r} is not open; open: {known}", v1.ERROR_REASON_QUESTION_NOT_FOUND
            )
        child._accept(record, decision)
        return self._wake(child, decision, record.time)

    def _wake(self, child: SuperstepScheduler, decision: Decision, time: int) -> None:
        """An answer reached a nested run: one that works goes on at once, one set aside with the next `advance`."""
        work = self.suspended.get(child.prefix.removesuffix("/"))
        if work is None:
            child.advance(decision, time)
            self._settle(child, decision, time)
        elif child.ending:
            child.advance(decision, time)
            self.end(child.ending, child.failure, decision)
        elif (child.pending or child.ready) and work not in self.ready:
            self.ready.append(work)

    def _fire(self, record: Fired, decision: Decision) -> None:
        if child := self._child_of(record.subject_id):
            child._fire(record, decision)
            self._wake(child, decision, record.time)
        elif record.timer_kind == v1.TIMER_KIND_RETRY:
            if not self.ending and (work := self.ledger.works.get(record.subject_id)):
                self.ledger.retry(work, decision)
        elif (question := self.questions.get(record.subject_id)) and not self.ending:
            self._expire(question, record, decision)

    def _close_question(self, question: v1.Question, record: Answered, decision: Decision, *, is_expired: bool) -> None:
        question_id = question.question_id
        del self.questions[question_id]
        self.expiries.pop(question_id, None)
        self.closed[question_id] = _digest(record.payload)
        answered = self._event(decision).question_answered
        answered.question_id, answered.answered_by, answered.expired = question_id, record.answered_by, is_expired
        answered.answer.CopyFrom(record.payload)
        answer = Message(
            f"{question_id}/answer",
            question.node_id,
            record.payload,
            question_id=question_id,
            question=question.payload,
        )
        for work in self.suspended.values():
            if question_id in work.waits_for:
                work.deliveries = [*work.deliveries, Delivery([answer])]
                work.waits_for.remove(question_id)
                if not work.waits_for:
                    self.ready.append(work)
                return
        deliveries = self.pending.setdefault(self.topology.by_id[question.node_id].index, [])
        deliveries.append(Delivery([answer]))
        # By id, not by arrival: who answered first must not matter to the log (G9).
        deliveries.sort(key=lambda delivery: delivery.messages[0].question_id)

    def _expire(self, question: v1.Question, record: Fired, decision: Decision) -> None:
        if question.HasField("default_answer"):
            answer = Answered(question.question_id, question.default_answer, "", record.time)
            return self._close_question(question, answer, decision, is_expired=True)
        # It stays open: a resumed run waits for its answer anew.
        failure = v1.Failure(
            kind=v1.FAILURE_KIND_QUESTION_EXPIRED,
            type="QUESTION_EXPIRED",
            message=f"question {question.question_id!r} expired unanswered and has no default",
            source=self._place(question.node_id),
        )
        return self.end(v1.RUN_STATE_FAILED, failure, decision)

    # Parts.

    def _invocation(self, work: Work) -> Invocation:
        node = self.topology.by_id[work.position.node_id]
        info = self.info
        state, private_state = self.state, self.private_state.get(node.id)
        if work.position.delivery > 1 and node.concurrency == 1:
            state, private_state = self._carried(work)
        if node.state_reads:
            state = {key: state[key] for key in node.state_reads if key in state}
        return Invocation(
            work.invocation_id,
            work.attempt,
            info.run_id,
            work.position,
            node.executor_type,
            work.deliveries,
            state,
            node.state_reads,
            private_state,
            self.path,
            node.config,
            node.timeout,
            node.lease_duration,
            node.schedule_timeout,
            node.idle_timeout,
            node.on_stuck,
            work.last_progress,
            work.last_failure,
            work.continuation,
            info.trace_context,
            info.namespace,
            info.definition_name,
            contributed_keys=self.topology.contributed_keys,
        )

    def _carried(self, work: Work) -> tuple[dict[str, v1.Payload], v1.Payload | None]:
        """What the parts of a split input before this one left behind: their own writes and private state."""
        parts = [
            each
            for each in self._by_position()
            if each.position.node_id == work.position.node_id
            and each.position.delivery < work.position.delivery
            and each.effects is not None
        ]
        private_state = self.private_state.get(work.position.node_id)
        for part in parts:
            if part.effects is not None and part.effects.private_state is not None:
                private_state = part.effects.private_state
        return self._merged(parts), private_state

    def _fault(self, node: Node, outcome: Effects | Suspended) -> str:
        """What makes a result one that cannot be committed (contract 4); empty when nothing does."""
        if isinstance(outcome, Suspended):
            return "" if outcome.questions else "a suspended result asks nothing; it would never go on"
        for message in outcome.messages:
            if not covers(node.message_types, message.payload):
                return _undeclared(node, "sends", message.payload, node.message_types)
            if message.target_node_id and message.target_node_id not in node.targets:
                known = ", ".join(sorted(node.targets)) or "none"
                return f"node {node.id!r} sent to {message.target_node_id!r}; its edges lead to: {known}"
        for output in outcome.outputs:
            if not covers(node.output_types, output):
                return _undeclared(node, "yields", output, node.output_types)
        if outcome.handoff is not None and outcome.handoff.target_node_id not in node.handoffs:
            known = ", ".join(sorted(node.handoffs)) or "none"
            return f"node {node.id!r} handed off to {outcome.handoff.target_node_id!r}; its declared targets: {known}"
        if outcome.handoff is not None:
            target = self.topology.by_id[outcome.handoff.target_node_id]
            payload = _handed(outcome.handoff)
            if not target.takes(payload):
                return f"node {node.id!r} handed {payload.type!r} to {target.id!r}, which takes: {_listed(target.input_types)}"
        if outcome.private_state is not None and node.concurrency > 1:
            return f"node {node.id!r} runs with concurrency {node.concurrency} and so has no private state"
        keys = [question.question_id for question in outcome.questions]
        if len(set(keys)) < len(keys):
            return f"node {node.id!r} asked two questions under one id; ids: {', '.join(sorted(keys))}"
        return ""

    def _by_position(self) -> list[Work]:
        works = list(self.ledger.works.values())
        if len(works) > 1:
            works.sort(key=self._key)
        return works

    def _key(self, work: Work) -> tuple[int, int, int]:
        position = work.position
        return self.topology.by_id[position.node_id].index, position.superstep, position.delivery

    def _place(self, node_id: str) -> str:
        return "/".join((*self.path, node_id) if node_id else self.path)

    def _event(self, decision: Decision) -> v1.Event:
        event = v1.Event(path=self.path) if self.path else v1.Event()
        decision.events.append(event)
        return event

    def _work_event(self, work: Work, decision: Decision) -> v1.Event:
        event = self._event(decision)
        event.invocation_id, event.attempt = work.invocation_id, work.attempt
        return event

    def in_flight(self) -> list[tuple[str, int]]:
        own = [each for each in self.ledger.in_flight() if each[0] not in self.children]
        for child in self.children.values():
            own.extend(child.in_flight())
        return own

    def _expiry_timers(self) -> list[Timer]:
        return [Timer(v1.TIMER_KIND_QUESTION, subject, due) for subject, due in self.expiries.items()]

    def timers(self) -> list[Timer]:
        timers = self._expiry_timers()
        for work in self.ledger.works.values():
            if work.state == v1.WORK_STATE_BACKOFF:
                timers.append(self.ledger.timer(work))
        for child in self.children.values():
            timers.extend(child.timers())
        return timers


def _split(deliveries: list[Delivery], limit: int) -> list[list[Delivery]]:
    """In order, each part below `limit` bytes unless a single message or list is larger."""
    sizes = [[message.payload.ByteSize() for message in delivery.messages] for delivery in deliveries]
    if sum(map(sum, sizes)) <= limit:
        return [deliveries]
    parts: list[list[Delivery]] = []
    filled = limit + 1
    for delivery, own_sizes in zip(deliveries, sizes, strict=True):
        pieces = (
            [(delivery, sum(own_sizes))]
            if delivery.joined
            else [
                (Delivery([message], delivery.edge_group_id), size)
                for message, size in zip(delivery.messages, own_sizes, strict=True)
            ]
        )
        for piece, size in pieces:
            if filled + size > limit:
                parts.append([])
                filled = 0
            filled += size
            last = parts[-1]
            if last and not piece.joined and not last[-1].joined and last[-1].edge_group_id == piece.edge_group_id:
                last[-1].messages.extend(piece.messages)
            else:
                last.append(piece)
    return parts


def _apart(deliveries: list[Delivery]) -> list[list[Delivery]]:
    """One part for each message, and one for each list of a fan-in."""
    parts: list[list[Delivery]] = []
    for delivery in deliveries:
        if delivery.joined:
            parts.append([delivery])
        else:
            parts.extend([Delivery([message], delivery.edge_group_id)] for message in delivery.messages)
    return parts


def _input_of(work: Work) -> v1.Payload:
    delivery = work.deliveries[0]
    return list_of(m.payload for m in delivery.messages) if delivery.joined else delivery.messages[0].payload


def _handed(handoff: v1.Handoff) -> v1.Payload:
    """The payload, or the task's words when there is none."""
    return handoff.payload if handoff.HasField("payload") else text_of(handoff.task)


def _digest(payload: v1.Payload) -> bytes:
    return hashlib.sha256(payload.SerializeToString(deterministic=True)).digest()


def _type_error(place: str, payload: v1.Payload, types: Iterable[str] | None) -> PayloadError:
    return PayloadError(f"{place} takes {_listed(types)}, not {payload.type!r}", type_name=payload.type)


def _undeclared(node: Node, verb: str, payload: v1.Payload, types: Iterable[str] | None) -> str:
    return f"node {node.id!r} {verb} {payload.type!r}, which it does not declare; declared: {_listed(types)}"


def _listed(types: Iterable[str] | None) -> str:
    return ", ".join(sorted(types or ())) or "nothing"
