"""What moves inside a process: slotted dataclasses that hold payloads by reference.

What is stored, sent or shown is protobuf; protobuf copies what it nests, which a scheduler that moves thousands of messages
cannot afford. A record is built whole and not touched after it left the function that made it. `hocket.wire` alone turns
records into their messages and back. Times are nanoseconds since the epoch in UTC, durations seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from hocket import v1


@dataclass(slots=True)
class Message:
    """A payload on its way. As an answer, `payload` is the answer and `question` what was asked."""

    message_id: str
    source_node_id: str
    payload: v1.Payload
    target_node_id: str = ""
    trace_context: v1.TraceContext | None = None
    question_id: str = ""
    question: v1.Payload | None = None


@dataclass(slots=True)
class Delivery:
    """What one edge group brings: one call for each message, or one with the whole list when `joined`."""

    messages: list[Message]
    edge_group_id: str = ""
    joined: bool = False


@dataclass(slots=True)
class GraphPosition:
    superstep: int
    node_id: str
    delivery: int = 0


@dataclass(slots=True)
class MethodPosition:
    method: str
    call: int


@dataclass(slots=True)
class TaskPosition:
    task: str
    visit: int
    item: int
    attempt: int
    role: str
    ordinal: int


Position: TypeAlias = GraphPosition | MethodPosition | TaskPosition


@dataclass(slots=True)
class Invocation:
    """One attempt to hand out. `invocation_id` is the same for all attempts, `attempt` counts from 1."""

    invocation_id: str
    attempt: int
    run_id: str
    position: Position
    executor_type: str
    deliveries: list[Delivery]
    state: Mapping[str, v1.Payload] = field(default_factory=dict)
    private_state: v1.Payload | None = None
    path: Sequence[str] = ()
    trace_context: v1.TraceContext | None = None
    namespace: str = ""
    definition_name: str = ""
    contributed_keys: Sequence[str] = ()
    # What few nodes declare and few attempts have comes last.
    state_reads: Sequence[str] = ()
    config: v1.Payload | None = None
    timeout: float | None = None
    lease_duration: float | None = None
    schedule_timeout: float | None = None
    idle_timeout: float | None = None
    on_stuck: v1.OnStuck.ValueType = v1.ON_STUCK_WAIT
    last_progress: v1.Payload | None = None
    last_failure: v1.Failure | None = None
    continuation: v1.Payload | None = None
    token: bytes = b""
    headers: Mapping[str, str] | None = None


@dataclass(slots=True)
class StateWrite:
    """`value` None deletes the key."""

    key: str
    value: v1.Payload | None


@dataclass(slots=True)
class Effects:
    """What a handler did, held until the boundary. In the order of the handler's calls."""

    messages: Sequence[Message] = ()
    outputs: Sequence[v1.Payload] = ()
    state_writes: Sequence[StateWrite] = ()
    questions: Sequence[v1.Question] = ()
    events: Sequence[v1.CustomEvent] = ()
    handoff: v1.Handoff | None = None
    private_state: v1.Payload | None = None
    value: v1.Payload | None = None


@dataclass(slots=True)
class Suspended:
    """The handler waits for answers and has had no effects."""

    questions: list[v1.Question]
    calls: list[v1.Handoff] = field(default_factory=list)
    continuation: v1.Payload | None = None


# Where progress goes at once, before the invocation has ended.
Live: TypeAlias = Callable[[v1.Progress | v1.LiveEvent], None]

# Inputs: what the world tells a scheduler. `time` and `jitter` are the only clock and dice it has.


@dataclass(slots=True)
class Begin:
    payload: v1.Payload
    trace_context: v1.TraceContext | None = None
    time: int = 0
    jitter: float = 0.0


@dataclass(slots=True)
class Completed:
    invocation_id: str
    attempt: int
    outcome: Effects | Suspended
    usage: Mapping[str, int] | None = None
    time: int = 0
    jitter: float = 0.0


@dataclass(slots=True)
class Failed:
    invocation_id: str
    attempt: int
    failure: v1.Failure
    usage: Mapping[str, int] | None = None
    last_progress: v1.Payload | None = None
    time: int = 0
    jitter: float = 0.0


@dataclass(slots=True)
class Answered:
    question_id: str
    payload: v1.Payload
    answered_by: str = ""
    time: int = 0
    jitter: float = 0.0


@dataclass(slots=True)
class Signalled:
    """`target_node_id` empty: the start node. `payload` None: state writes only."""

    payload: v1.Payload | None
    target_node_id: str = ""
    state_writes: list[StateWrite] = field(default_factory=list)
    time: int = 0
    jitter: float = 0.0


@dataclass(slots=True)
class Fired:
    timer_kind: v1.TimerKind.ValueType
    subject_id: str = ""
    time: int = 0
    jitter: float = 0.0


@dataclass(slots=True)
class Cancel:
    reason: str = ""
    time: int = 0
    jitter: float = 0.0


@dataclass(slots=True)
class Resume:
    """`max_supersteps` 0 keeps the limit. With `parent_checkpoint_id` it begins a fork."""

    max_supersteps: int = 0
    parent_checkpoint_id: str = ""
    state_overrides: list[StateWrite] = field(default_factory=list)
    time: int = 0
    jitter: float = 0.0


Input: TypeAlias = Begin | Completed | Failed | Answered | Signalled | Fired | Cancel | Resume
