"""What a store remembers of a run, and how it is asked.

A run is its start, a snapshot and the inputs after it. A checkpoint is a boundary: the snapshot taken there, or an earlier
one and the inputs up to it, which by law (c) is the same; a driver says when a snapshot is worth taking. Everything of one
`Entry` is durable together or not at all, and a commit is durable when it returns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hocket import v1
from hocket.records import Input
from hocket_server.core.scheduler import Standing


@dataclass(slots=True)
class Start:
    """What a run was started with; it never changes. `run_timeout` in nanoseconds, 0 for none."""

    run_id: str
    definition: v1.Definition
    namespace: str = ""
    max_supersteps: int = 0
    run_timeout: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    # What its attempts descend from, in every process that carries it.
    trace_context: v1.TraceContext | None = None
    # Of a fork.
    parent_run_id: str = ""
    parent_checkpoint_id: str = ""
    snapshot: v1.Snapshot | None = None


@dataclass(slots=True)
class Entry:
    """One input and what it caused. `log` is its events, each encoded once for all readers. `checkpoint_id` is set at a
    boundary, `snapshot` where one was taken."""

    record: Input
    log: Sequence[bytes]
    outputs: Sequence[v1.Payload] = ()
    checkpoint_id: str = ""
    snapshot: v1.Snapshot | None = None


@dataclass(slots=True)
class Saved:
    """A snapshot (None: the run's beginning) and the inputs after it."""

    start: Start
    snapshot: v1.Snapshot | None
    inputs: list[Input]


class Store(Protocol):
    """Raises NotFoundError for what is not there, RunExistsError for a run id that is taken."""

    async def create(self, start: Start, created: int) -> None: ...

    async def commit(self, run_id: str, entries: Sequence[Entry], standing: Standing) -> None:
        """`standing` is the run's after the last of the entries."""
        ...

    async def load(self, run_id: str) -> Saved:
        """The newest snapshot and all inputs after it."""
        ...

    async def load_checkpoint(self, checkpoint_id: str) -> Saved:
        """A snapshot and the inputs after it up to the boundary, its own input included."""
        ...

    async def run(self, run_id: str) -> v1.Run: ...

    async def state(self, run_id: str) -> v1.RunState.ValueType: ...

    async def runs(self) -> list[v1.Run]:
        """Newest first."""
        ...

    async def log(self, run_id: str, after: int, limit: int) -> list[bytes]:
        """Durable events, encoded, with a sequence above `after`, at most `limit`. Sequences are dense, so the first one's
        is `after` + 1. Raises CursorExpiredError when that one is no longer kept."""
        ...

    async def checkpoints(self, run_id: str) -> list[v1.Checkpoint]:
        """Those that can be loaded, oldest first."""
        ...

    async def delete(self, run_id: str) -> None: ...
