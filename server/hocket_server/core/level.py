"""What a level of a run holds, and what it shows of itself: its data, its ids, the events and invocations it makes.

How it moves is `superstep`'s. A level is the root graph, or one nested run of a definition; ids are positions below its
prefix (`{prefix}{superstep}/{node}`), and order is position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Self

from hocket import v1
from hocket.records import Delivery, GraphPosition, Invocation, StateWrite
from hocket_server.core.boundary import merged
from hocket_server.core.ledger import Ledger, Work
from hocket_server.core.question import Questions
from hocket_server.core.routing import Buffer
from hocket_server.core.scheduler import Decision, Outcome, RunInfo, Timer
from hocket_server.core.topology import Topology


class Level:
    """`prefix` begins every id of the level, `path` names the nodes above it."""

    __slots__ = (
        "buffers",
        "children",
        "ending",
        "failure",
        "has_output",
        "info",
        "is_open",
        "ledger",
        "max_supersteps",
        "outcome",
        "outputs",
        "path",
        "pending",
        "prefix",
        "private_state",
        "questions",
        "queues",
        "ready",
        "reason",
        "shared",
        "signal_writes",
        "state",
        "superstep",
        "suspended",
        "topology",
    )

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
        self.reason = ""
        self.outcome: Outcome | None = None
        self.has_output = False
        self.outputs: list[v1.Payload] = []
        self.state: dict[str, v1.Payload] = {}
        self.private_state: dict[str, v1.Payload] = {}
        self.ledger = Ledger(path)
        self.suspended: dict[str, Work] = {}
        self.children: dict[str, Self] = {}
        self.buffers: dict[int, Buffer] = {}
        self.pending: dict[int, list[Delivery]] = {}
        self.ready: list[Work] = []
        # Nodes with a handler that goes on in this superstep, beside which they may have another invocation.
        self.shared: set[str] = set()
        self.questions = Questions()
        self.signal_writes: list[StateWrite] = []
        self.queues: dict[int, deque[Work]] = {}

    def invocation_id(self, position: GraphPosition) -> str:
        part = f"#{position.delivery}" if position.delivery else ""
        return f"{self.prefix}{position.superstep}/{position.node_id}{part}"

    @property
    def is_waiting(self) -> bool:
        return self.outcome is None and not self.is_open and bool(self.questions.open or self.suspended)

    def is_answered(self, question_id: str) -> bool:
        """Whether the question was answered, here or in a nested run."""
        if question_id in self.questions.closed:
            return True
        child = self.child_of(question_id)
        return child is not None and child.is_answered(question_id)

    def open_questions(self) -> Sequence[v1.Question]:
        """Of this level and of all that are nested in it."""
        if not self.children:
            return list(self.questions.open.values()) if self.questions.open else ()
        nested = (question for child in self.children.values() for question in child.open_questions())
        return [*self.questions.open.values(), *nested]

    def in_flight(self) -> list[tuple[str, int]]:
        own = [each for each in self.ledger.in_flight() if each[0] not in self.children]
        for child in self.children.values():
            own.extend(child.in_flight())
        return own

    def timers(self) -> list[Timer]:
        timers = self.questions.timers()
        for work in self.ledger.works.values():
            if work.state == v1.WORK_STATE_BACKOFF:
                timers.append(self.ledger.timer(work))
        for child in self.children.values():
            timers.extend(child.timers())
        return timers

    def child_of(self, subject_id: str) -> Self | None:
        """The nested machine an id belongs to: its first two parts after the prefix are the work's position."""
        if not self.children:
            return None
        superstep, _, rest = subject_id.removeprefix(self.prefix).partition("/")
        node, separator, _ = rest.partition("/")
        return self.children.get(f"{self.prefix}{superstep}/{node}") if separator else None

    def busy(self) -> int:
        """Nodes, as a bit set, that may still send though no edge delivers to them: asked, set aside, or told from outside."""
        by_id = self.topology.by_id
        busy = 0
        for question in self.questions.open.values():
            busy |= 1 << by_id[question.node_id].index
        for work in self.suspended.values():
            busy |= 1 << by_id[work.position.node_id].index
        for target in self.pending:
            busy |= 1 << target
        return busy

    def invocation(self, work: Work) -> Invocation:
        node = self.topology.by_id[work.position.node_id]
        info = self.info
        state, private_state = self.state, self.private_state.get(node.id)
        if node.concurrency == 1 and (work.position.delivery > 1 or node.id in self.shared):
            state, private_state = self._carried(work)
        if node.state_reads:
            state = {key: state[key] for key in node.state_reads if key in state}
        invocation = Invocation(
            work.invocation_id,
            work.attempt,
            info.run_id,
            work.position,
            node.executor_type,
            [*work.deliveries, *work.answers] if work.answers else work.deliveries,
            state,
            private_state,
            self.path,
            info.trace_context,
            info.namespace,
            info.definition_name,
            self.topology.contributed_keys,
        )
        if not node.is_plain:
            invocation.state_reads = node.state_reads
            invocation.config = node.config
            invocation.timeout = node.timeout
            invocation.lease_duration = node.lease_duration
            invocation.schedule_timeout = node.schedule_timeout
            invocation.idle_timeout = node.idle_timeout
            invocation.on_stuck = node.on_stuck
        if work.attempt > 1:
            invocation.last_progress = work.last_progress
            invocation.last_failure = work.last_failure
            invocation.continuation = work.continuation
        return invocation

    def _carried(self, work: Work) -> tuple[dict[str, v1.Payload], v1.Payload | None]:
        """What invocations of the node before this one, in the same superstep, left behind: the private state; and of the
        parts of one split input, their own writes."""
        node_id, own = work.position.node_id, self.key_of(work)
        private_state = self.private_state.get(node_id)
        parts: list[Work] = []
        for each in self.by_position():
            if each.position.node_id != node_id or each.effects is None or self.key_of(each) >= own:
                continue
            if each.effects.private_state is not None:
                private_state = each.effects.private_state
            if each.position.superstep == work.position.superstep:
                parts.append(each)
        return merged(self.topology, self.state, parts), private_state

    def by_position(self) -> list[Work]:
        works = list(self.ledger.works.values())
        if len(works) > 1:
            works.sort(key=self.key_of)
        return works

    def key_of(self, work: Work) -> tuple[int, int, int]:
        position = work.position
        return self.topology.by_id[position.node_id].index, position.superstep, position.delivery

    def place(self, node_id: str) -> str:
        return "/".join((*self.path, node_id) if node_id else self.path)

    def event(self, decision: Decision) -> v1.Event:
        event = v1.Event()
        if self.path:
            event.path.extend(self.path)
        decision.events.append(event)
        return event

    def work_event(self, work: Work, decision: Decision) -> v1.Event:
        event = self.event(decision)
        event.invocation_id, event.attempt = work.invocation_id, work.attempt
        return event
