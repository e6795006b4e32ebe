"""The vocabulary of the core: what a scheduler tells the world. What the world tells it is in `hocket.records`.

A scheduler is a deterministic machine without clock, dice or I/O. Three laws hold for each of them:

(a) `step` is deterministic: the same definition and inputs give the same decisions, byte for byte, in any process.
(b) A superstep is confluent: any order of its completions gives the same next round.
(c) Restoring a snapshot taken at any boundary and replaying the inputs after it goes on as if nothing had happened.

A decision is a record, not a list of commands: the order *persist, publish, dispatch* belongs to the driver. Every attempt
handed out ends in exactly one Completed or Failed input. One that was abandoned ends too, at the latest when its grace time
is over and it is fenced; a Completed that comes late for a *lost* attempt is taken until the next one is handed out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from hocket import v1
from hocket.records import Input, Invocation

SNAPSHOT_FORMAT = 1


@dataclass(slots=True)
class Timer:
    """Comes back as Fired when `due` (nanoseconds since the epoch) has come. Setting one again replaces it."""

    kind: v1.TimerKind.ValueType
    subject_id: str
    due: int


@dataclass(slots=True)
class Outcome:
    """How a run, or a nested run, ended."""

    state: v1.RunState.ValueType
    reason: str = ""
    failure: v1.Failure | None = None
    converged_without_output: bool = False


@dataclass(slots=True)
class Decision:
    """What to do, in this order: persist and publish `events` (and at a boundary the snapshot), abandon, dispatch, arm."""

    events: list[v1.Event] = field(default_factory=list)
    # Names the boundary; empty when this is none.
    checkpoint_id: str = ""
    abandoned: Sequence[str] = ()
    invocations: list[Invocation] = field(default_factory=list)
    timers: Sequence[Timer] = ()
    # Values that became outputs of the run.
    outputs: Sequence[v1.Payload] = ()
    outcome: Outcome | None = None

    # Most decisions have none of these, and one is made for every input.

    def abandon(self, invocation_id: str) -> None:
        self.abandoned = [*self.abandoned, invocation_id]

    def arm(self, *timers: Timer) -> None:
        self.timers = [*self.timers, *timers]

    def give(self, outputs: Sequence[v1.Payload]) -> None:
        self.outputs = [*self.outputs, *outputs]


@dataclass(slots=True)
class Standing:
    """Where a run stands, as its users see it."""

    state: v1.RunState.ValueType
    superstep: int
    checkpoint_id: str
    questions: Sequence[v1.Question] = ()
    outcome: Outcome | None = None


class Scheduler(Protocol):
    @property
    def state(self) -> v1.RunState.ValueType: ...

    def step(self, record: Input) -> Decision:
        """Take one input. Raises a RefusedError or NotFoundError, with nothing changed, for a request that cannot be met."""
        ...

    def snapshot(self) -> v1.Snapshot: ...

    def in_flight(self) -> list[tuple[str, int]]:
        """Invocation id and attempt of all that was handed out and has not ended."""
        ...

    def timers(self) -> list[Timer]:
        """All that are set, for a driver that has restored the scheduler."""
        ...


Function: TypeAlias = Callable[..., object]


@dataclass(slots=True, frozen=True)
class Hooks:
    """What the core is handed, since it neither decodes payloads nor imports users' code.

    `plain` gives a payload as a JSON tree, for CEL. `functions` are conditions and selections registered by the embedding
    process: called with the payload, and a selection also with its targets; they decode by themselves.
    """

    plain: Callable[[v1.Payload], object]
    functions: Mapping[str, Function] = field(default_factory=dict)


@dataclass(slots=True)
class RunInfo:
    """What every level of a run knows of it. `deadline` 0: none."""

    run_id: str
    hooks: Hooks
    namespace: str = ""
    definition_name: str = ""
    trace_context: v1.TraceContext | None = None
    deadline: int = 0
    max_invocation_bytes: int = 2 * 1024 * 1024
