"""A run as a whole: it begins, is cancelled, timed out and resumed, and it ends, once for each stretch.

What lies between is a level's own (`superstep`); events of the run itself are made here and nowhere else, so a nested run
has none of them.
"""

from hocket import v1
from hocket.errors import RefusedError, RunNotResumableError, RunTerminalError
from hocket.records import Answered, Begin, Cancel, Completed, Failed, Fired, Input, Resume, Signalled
from hocket.wire import put_time, time_from
from hocket_server.core.merge import Writer, merge
from hocket_server.core.scheduler import SNAPSHOT_FORMAT, Decision, Outcome, RunInfo, Standing, Timer
from hocket_server.core.snapshot import put_graph, restored_graph
from hocket_server.core.superstep import SuperstepScheduler
from hocket_server.core.topology import Topology

TERMINAL = frozenset(
    {
        v1.RUN_STATE_COMPLETED,
        v1.RUN_STATE_FAILED,
        v1.RUN_STATE_CANCELLED,
        v1.RUN_STATE_LIMIT_REACHED,
    }
)
RESUMABLE = TERMINAL - {v1.RUN_STATE_COMPLETED}


class RunScheduler:
    """The scheduler that a driver drives (`scheduler.Scheduler`). `run_timeout` in nanoseconds, 0 for none."""

    __slots__ = (
        "_checkpoint_id",
        "_input",
        "_root",
        "_run_timeout",
        "info",
        "outcome",
        "topology",
    )

    def __init__(
        self,
        topology: Topology,
        info: RunInfo,
        *,
        max_supersteps: int = 0,
        run_timeout: int = 0,
        root: SuperstepScheduler | None = None,
    ) -> None:
        self.topology = topology
        self.info = info
        self.outcome: Outcome | None = None
        self._run_timeout = run_timeout
        self._input = v1.Payload()
        self._checkpoint_id = ""
        self._root = root or SuperstepScheduler(topology, info, prefix=f"{info.run_id}/")
        if max_supersteps:
            self._root.max_supersteps = max_supersteps

    @property
    def state(self) -> v1.RunState.ValueType:
        if self.outcome is not None:
            return self.outcome.state
        if self._root.ending:
            is_cancelled = self._root.ending == v1.RUN_STATE_CANCELLED
            return v1.RUN_STATE_CANCELLING if is_cancelled else v1.RUN_STATE_RUNNING
        return v1.RUN_STATE_WAITING if self._root.is_waiting else v1.RUN_STATE_RUNNING

    def standing(self) -> Standing:
        return Standing(
            self.state, self._root.superstep, self._checkpoint_id, self._root.open_questions(), self.outcome
        )

    @property
    def shared_state(self) -> dict[str, v1.Payload]:
        """The run's state as it was last committed."""
        return self._root.state

    def step(self, record: Input) -> Decision:
        decision = Decision()
        match record:
            case Completed():
                self._root.completed(record, decision)
            case Failed():
                self._root.failed(record, decision)
            case Begin():
                self._begin(record, decision)
            case Answered():
                self._answered(record, decision)
            case Signalled():
                self._refuse_if_ended("takes no signals")
                self._root.signalled(record, decision)
            case Fired():
                self._fired(record, decision)
            case Cancel():
                self._cancel(record, decision)
            case Resume():
                self._resume(record, decision)
        if self._root.outcome is not None and self.outcome is None:
            self._end(self._root.outcome, decision)
        if decision.checkpoint_id:
            self._name_boundary(decision)
        return decision

    def _begin(self, record: Begin, decision: Decision) -> None:
        self._input = record.payload
        self.info.trace_context = record.trace_context
        event = v1.Event()
        event.run_started.input.CopyFrom(record.payload)
        decision.events.append(event)
        self._set_deadline(record.time, decision)
        decision.checkpoint_id = f"{self.info.run_id}/0"
        self._root.begin(record.payload, decision, record.time)

    def _answered(self, record: Answered, decision: Decision) -> None:
        if self.outcome is not None and not self._root.is_answered(record.question_id):
            self._refuse_if_ended("takes no answers")
        self._root.answered(record, decision)

    def _fired(self, record: Fired, decision: Decision) -> None:
        if self.outcome is not None:
            return
        if record.timer_kind != v1.TIMER_KIND_RUN:
            self._root.fired(record, decision)
        elif self.info.deadline and record.time >= self.info.deadline:
            failure = v1.Failure(
                kind=v1.FAILURE_KIND_TIMEOUT, type="RUN_TIMEOUT", message="run_timeout is over", source="run"
            )
            self._root.end(v1.RUN_STATE_FAILED, failure, decision)
            self._root.advance(decision, record.time)

    def _cancel(self, record: Cancel, decision: Decision) -> None:
        """Cancelling again while it is being cancelled changes nothing."""
        self._refuse_if_ended("cannot be cancelled")
        if self._root.ending == v1.RUN_STATE_CANCELLED:
            return
        event = v1.Event()
        event.run_cancel_requested.reason = record.reason
        decision.events.append(event)
        failure = v1.Failure(
            kind=v1.FAILURE_KIND_CANCELLED, type="CANCELLED", message=record.reason or "cancelled", source="run"
        )
        # A run that is failing already goes on to fail: one outcome, decided once.
        self._root.end(v1.RUN_STATE_CANCELLED, failure, decision)
        self._root.advance(decision, record.time)

    def _resume(self, record: Resume, decision: Decision) -> None:
        is_fork = bool(record.parent_checkpoint_id)
        if not is_fork and self.state not in RESUMABLE:
            name = v1.RunState.Name(self.state).removeprefix("RUN_STATE_")
            raise RunNotResumableError(
                f"run {self.info.run_id!r} is {name}; only FAILED, CANCELLED and LIMIT_REACHED runs can be resumed"
            )
        if self.state == v1.RUN_STATE_LIMIT_REACHED and not is_fork and record.max_supersteps <= self._root.superstep:
            raise RunNotResumableError(
                f"run {self.info.run_id!r} has run {self._root.superstep} supersteps; resume it with max_supersteps above that"
            )
        if record.state_overrides:
            overrides = [Writer("", "", record.state_overrides)]
            self._root.state = merge(self._root.state, {}, overrides)
        self.outcome = None
        event = v1.Event()
        if is_fork:
            event.run_started.input.CopyFrom(self._input)
            event.run_started.parent_checkpoint_id = record.parent_checkpoint_id
            # Of the superstep that is open in it the fork's own boundary comes yet, and takes its number.
            decision.checkpoint_id = f"{self.info.run_id}/{self._root.superstep - self._root.is_open}"
        else:
            event.run_resumed.checkpoint_id = self._checkpoint_id
            event.run_resumed.max_supersteps = max(record.max_supersteps, self._root.max_supersteps)
        decision.events.append(event)
        self._set_deadline(record.time, decision)
        if is_fork:
            self._root.ask_again(decision)
        self._root.resume(record, decision)

    def _set_deadline(self, now: int, decision: Decision) -> None:
        if self._run_timeout:
            self.info.deadline = now + self._run_timeout
            decision.arm(Timer(v1.TIMER_KIND_RUN, "", self.info.deadline))

    def _end(self, outcome: Outcome, decision: Decision) -> None:
        if not outcome.reason and outcome.failure is not None:
            outcome.reason = outcome.failure.message
        self.outcome = decision.outcome = outcome
        event = v1.Event()
        ended = event.run_ended
        ended.state, ended.reason = outcome.state, outcome.reason
        ended.converged_without_output = outcome.converged_without_output
        if outcome.failure is not None:
            ended.failure.CopyFrom(outcome.failure)
        decision.events.append(event)

    def _name_boundary(self, decision: Decision) -> None:
        """One input may close a nested superstep and its parent's: one snapshot is stored, and all of them name it."""
        self._checkpoint_id = decision.checkpoint_id
        if not self.topology.has_nested:
            return
        for event in decision.events:
            if event.HasField("superstep_completed"):
                event.superstep_completed.checkpoint_id = decision.checkpoint_id

    def _refuse_if_ended(self, why: str) -> None:
        if self.outcome is not None:
            name = v1.RunState.Name(self.outcome.state).removeprefix("RUN_STATE_")
            raise RunTerminalError(f"run {self.info.run_id!r} has ended ({name}) and {why}")

    def snapshot(self) -> v1.Snapshot:
        snapshot = v1.Snapshot(format=SNAPSHOT_FORMAT, signature=self.topology.signature, state=self.state)
        snapshot.input.CopyFrom(self._input)
        snapshot.latest_checkpoint_id = self._checkpoint_id
        if self.info.deadline:
            put_time(self.info.deadline, snapshot.deadline)
        if self.outcome is not None and self.outcome.failure is not None:
            snapshot.failure.CopyFrom(self.outcome.failure)
        put_graph(self._root, snapshot.graph)
        return snapshot

    def in_flight(self) -> list[tuple[str, int]]:
        return [] if self.outcome is not None else self._root.in_flight()

    def timers(self) -> list[Timer]:
        if self.outcome is not None:
            return []
        timers = self._root.timers()
        if self.info.deadline:
            timers.append(Timer(v1.TIMER_KIND_RUN, "", self.info.deadline))
        return timers


def restore(
    topology: Topology,
    info: RunInfo,
    snapshot: v1.Snapshot,
    *,
    run_timeout: int = 0,
    is_fork: bool = False,
) -> RunScheduler:
    """The scheduler that `snapshot` was taken of, under `info.run_id`; for a fork, one that begins with a Resume.

    Raises RefusedError for a snapshot in a newer format. Whether the definition is the same is for the caller to compare.
    """
    if snapshot.format > SNAPSHOT_FORMAT:
        raise RefusedError(
            f"the checkpoint has format {snapshot.format}, this server knows up to {SNAPSHOT_FORMAT}; use a newer server"
        )
    if not is_fork and snapshot.HasField("deadline"):
        info.deadline = time_from(snapshot.deadline)
    root = restored_graph(topology, info, snapshot.graph, prefix=f"{info.run_id}/", is_fork=is_fork)
    run = RunScheduler(topology, info, run_timeout=run_timeout, root=root)
    run._input = snapshot.input
    run._checkpoint_id = snapshot.latest_checkpoint_id
    if not is_fork and snapshot.state in TERMINAL:
        failure = snapshot.failure if snapshot.HasField("failure") else None
        run.outcome = root.outcome = Outcome(snapshot.state, failure=failure)
    return run
