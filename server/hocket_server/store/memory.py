"""A store in this process, for tests and embedded runs.

It is bounded: of each run the newest events, of ended runs the newest ones. What can still be resumed within those bounds is
kept whole: the last two snapshots and the inputs after them, hence every checkpoint since the older one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hocket import v1
from hocket.errors import CursorExpiredError, NotFoundError, RunExistsError
from hocket.records import Input
from hocket.wire import put_time
from hocket_server.core.scheduler import Standing
from hocket_server.store.protocol import Entry, Saved, Start


@dataclass(slots=True)
class _Stretch:
    """A snapshot and the inputs after it, with the boundaries among them: checkpoint id to number of inputs."""

    snapshot: v1.Snapshot | None
    checkpoint_id: str = ""
    inputs: list[Input] = field(default_factory=list)
    boundaries: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Run:
    start: Start
    created: int
    stretches: list[_Stretch]
    standing: Standing = field(default_factory=lambda: Standing(v1.RUN_STATE_PENDING, 0, ""))
    outputs: list[v1.Payload] = field(default_factory=list)
    log: list[bytes] = field(default_factory=list)
    # When the last input was taken.
    told: int = 0
    # Sequence of the last event that is gone.
    dropped: int = 0


class MemoryStore:
    """`max_events` of each run. A run that has ended is kept until `max_ended` others have ended and one more begins."""

    def __init__(self, *, max_events: int = 10_000, max_ended: int = 1_000) -> None:
        self._runs: dict[str, _Run] = {}
        self._ended: dict[str, None] = {}
        self._max_events = max_events
        self._max_ended = max_ended

    async def create(self, start: Start, created: int) -> None:
        if start.run_id in self._runs:
            raise RunExistsError(f"run {start.run_id!r} exists; choose another run_id or leave it to the mesh")
        self._evict()
        self._runs[start.run_id] = _Run(start, created, [_Stretch(start.snapshot)])

    async def commit(self, run_id: str, entries: Sequence[Entry], standing: Standing) -> None:
        held = self._find(run_id)
        held.standing = standing
        for entry in entries:
            stretch = held.stretches[-1]
            stretch.inputs.append(entry.record)
            held.told = entry.record.time
            held.log.extend(entry.log)
            if entry.outputs:
                held.outputs.extend(entry.outputs)
            if entry.checkpoint_id:
                stretch.boundaries[entry.checkpoint_id] = len(stretch.inputs)
            if entry.snapshot is not None:
                held.stretches = [stretch, _Stretch(entry.snapshot, entry.checkpoint_id)]
        if len(held.log) > self._max_events * 5 // 4:
            surplus = len(held.log) - self._max_events
            held.dropped += surplus
            del held.log[:surplus]
        if standing.outcome is not None:
            self._ended[run_id] = None
        elif self._ended:
            self._ended.pop(run_id, None)

    def _evict(self) -> None:
        while len(self._ended) > self._max_ended:
            oldest = next(iter(self._ended))
            del self._ended[oldest], self._runs[oldest]

    async def load(self, run_id: str) -> Saved:
        held = self._find(run_id)
        newest = held.stretches[-1]
        return Saved(held.start, newest.snapshot, list(newest.inputs))

    async def load_checkpoint(self, checkpoint_id: str) -> Saved:
        for held in self._runs.values():
            if not checkpoint_id.startswith(f"{held.start.run_id}/"):
                continue
            for stretch in reversed(held.stretches):
                if stretch.checkpoint_id == checkpoint_id:
                    return Saved(held.start, stretch.snapshot, [])
                if checkpoint_id in stretch.boundaries:
                    count = stretch.boundaries[checkpoint_id]
                    return Saved(held.start, stretch.snapshot, stretch.inputs[:count])
        raise NotFoundError(
            f"checkpoint {checkpoint_id!r} is not in the store; the memory store keeps the newest ones of a run",
            v1.ERROR_REASON_CHECKPOINT_NOT_FOUND,
        )

    async def run(self, run_id: str) -> v1.Run:
        held = self._find(run_id)
        start, standing = held.start, held.standing
        run = v1.Run(
            namespace=start.namespace,
            run_id=start.run_id,
            definition_name=start.definition.definition_name,
            definition_version=start.definition.version,
            state=standing.state,
            superstep=standing.superstep,
            outputs=held.outputs,
            open_questions=standing.questions,
            latest_checkpoint_id=standing.checkpoint_id,
            parent_run_id=start.parent_run_id,
            parent_checkpoint_id=start.parent_checkpoint_id,
            labels=start.labels,
        )
        put_time(held.created, run.create_time)
        run.last_sequence = held.dropped + len(held.log)
        if (outcome := standing.outcome) is not None:
            run.reason, run.converged_without_output = outcome.reason, outcome.converged_without_output
            put_time(held.told, run.end_time)
            if outcome.failure is not None:
                run.failure.CopyFrom(outcome.failure)
        return run

    async def state(self, run_id: str) -> v1.RunState.ValueType:
        return self._find(run_id).standing.state

    async def runs(self) -> list[v1.Run]:
        return [await self.run(run_id) for run_id in reversed(self._runs)]

    async def log(self, run_id: str, after: int, limit: int) -> list[bytes]:
        held = self._find(run_id)
        if after < held.dropped:
            raise CursorExpiredError(
                f"events of run {run_id!r} up to sequence {held.dropped} are gone; the oldest left is {held.dropped + 1}"
            )
        begin = after - held.dropped
        return held.log[begin : begin + limit]

    async def checkpoints(self, run_id: str) -> list[v1.Checkpoint]:
        held = self._find(run_id)
        known: dict[str, None] = {}
        for stretch in held.stretches:
            if stretch.checkpoint_id:
                known[stretch.checkpoint_id] = None  # its boundary may lie in a stretch that is gone
            known.update(dict.fromkeys(stretch.boundaries))
        found: list[v1.Checkpoint] = []
        parent = ""
        for checkpoint_id in known:
            superstep = checkpoint_id.removeprefix(f"{run_id}/").partition("/")[0]
            found.append(
                v1.Checkpoint(
                    checkpoint_id=checkpoint_id,
                    run_id=run_id,
                    superstep=int(superstep),
                    parent_checkpoint_id=parent,
                    signature=held.start.definition.signature,
                )
            )
            parent = checkpoint_id
        return found

    async def delete(self, run_id: str) -> None:
        self._find(run_id)
        del self._runs[run_id]
        self._ended.pop(run_id, None)

    def _find(self, run_id: str) -> _Run:
        held = self._runs.get(run_id)
        if held is None:
            raise NotFoundError(f"run {run_id!r} is not in the store")
        return held
