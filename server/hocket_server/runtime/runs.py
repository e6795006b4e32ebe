"""All runs of a process: begins them, finds the driver of one or wakes it from the store, and passes on what is asked.

A run that waits for people is in the store only. What is asked of it loads it: the newest snapshot, the inputs after it
replayed, their decisions discarded, since their events are in the log already.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hocket import tracing, v1
from hocket.errors import RefusedError, RunNotResumableError, SignatureMismatchError
from hocket.records import Answered, Begin, Cancel, Failed, Fired, Input, Resume, Signalled, StateWrite
from hocket.wire import SECOND
from hocket_server.core.run import TERMINAL, RunScheduler, restore
from hocket_server.core.scheduler import Hooks, RunInfo, Timer
from hocket_server.core.signature import difference, signature
from hocket_server.core.topology import Topology, compile_topology
from hocket_server.runtime.clock import Clock, Handle
from hocket_server.runtime.dispatcher import Dispatcher
from hocket_server.runtime.driver import Driver
from hocket_server.runtime.feed import Feed
from hocket_server.store.protocol import Saved, Start, Store

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

MAX_PROGRAMS = 10_000

_Key: TypeAlias = "tuple[str, v1.TimerKind.ValueType, str]"


@dataclass(slots=True, eq=False)
class Program:
    """What carries a definition out in this process: what its scheduler is handed, and who performs its attempts."""

    hooks: Hooks
    dispatcher: Dispatcher


class Runs:
    """A run without a program of its own has `program`. Every call that tells a run something returns its driver, once
    what was told is durable."""

    def __init__(
        self, store: Store, feed: Feed, clock: Clock, *, program: Program | None = None, tracer: Tracer | None = None
    ) -> None:
        self.store = store
        self.feed = feed
        self._program = program
        self._clock = clock
        self._tracer = tracer
        self._spans: dict[str, Span] = {}
        self._programs: dict[str, Program] = {}
        self._drivers: dict[str, Driver] = {}
        self._waking: dict[str, asyncio.Lock] = {}
        self._timers: dict[_Key, Handle] = {}
        self._firing: set[asyncio.Task[Driver]] = set()
        self._topologies: dict[bytes, Topology] = {}

    async def start(
        self,
        start: Start,
        payload: v1.Payload,
        *,
        program: Program | None = None,
        trace_context: v1.TraceContext | None = None,
    ) -> Driver:
        """Begin a run. Raises RunExistsError."""
        topology = self._topology(start.definition)
        await self.store.create(start, self._clock.now())
        self._adopt(start.run_id, program)
        trace_context = self._open_span(start, trace_context)
        scheduler = self._fresh(start, topology)
        driver = self._drive(start.run_id, scheduler, sequence=0)
        return await self._deliver(driver, Begin(payload, trace_context))

    async def fork(
        self,
        checkpoint_id: str,
        *,
        run_id: str = "",
        definition: v1.Definition | None = None,
        program: Program | None = None,
        state_overrides: Sequence[StateWrite] = (),
        max_supersteps: int = 0,
    ) -> Driver:
        """Begin a new run from a checkpoint. Raises NotFoundError, SignatureMismatchError, RunExistsError."""
        saved = await self.store.load_checkpoint(checkpoint_id)
        _compare(saved.start, definition)
        program = program or self._programs.get(saved.start.run_id)
        snapshot = self._replayed(saved, program).snapshot()
        start = Start(
            run_id or new_run_id(),
            definition or saved.start.definition,
            saved.start.namespace,
            max_supersteps,
            saved.start.run_timeout,
            dict(saved.start.labels),
            parent_run_id=saved.start.run_id,
            parent_checkpoint_id=checkpoint_id,
            snapshot=snapshot,
        )
        await self.store.create(start, self._clock.now())
        self._adopt(start.run_id, program)
        self._open_span(start, None)
        scheduler = restore(
            self._topology(start.definition),
            self._info(start),
            snapshot,
            run_timeout=start.run_timeout,
            is_fork=True,
        )
        driver = self._drive(start.run_id, scheduler, sequence=0)
        return await self._deliver(driver, Resume(max_supersteps, checkpoint_id, list(state_overrides)))

    async def resume(
        self,
        run_id: str,
        *,
        max_supersteps: int = 0,
        definition: v1.Definition | None = None,
        program: Program | None = None,
    ) -> Driver:
        """Go on with a run that ended without success. Raises RunNotResumableError, SignatureMismatchError."""
        run = await self.store.run(run_id)
        if run.state not in TERMINAL or run.state == v1.RUN_STATE_COMPLETED:
            name = v1.RunState.Name(run.state).removeprefix("RUN_STATE_")
            raise RunNotResumableError(
                f"run {run_id!r} is {name}; only FAILED, CANCELLED and LIMIT_REACHED runs can be resumed"
            )
        start = (await self.store.load(run_id)).start
        _compare(start, definition)
        if program is not None:
            self._adopt(run_id, program)
        self._open_span(start, None)
        return await self._tell(run_id, Resume(max_supersteps))

    async def answer(self, run_id: str, question_id: str, payload: v1.Payload, answered_by: str = "") -> Driver:
        """Raises NotFoundError, PayloadError, QuestionClosedError, RunTerminalError; the question then stays as it is."""
        return await self._tell(run_id, Answered(question_id, payload, answered_by))

    async def signal(
        self,
        run_id: str,
        payload: v1.Payload | None,
        target_node_id: str = "",
        state_writes: Sequence[StateWrite] = (),
    ) -> Driver:
        """Raises NotFoundError for an unknown node, PayloadError, RunTerminalError."""
        return await self._tell(run_id, Signalled(payload, target_node_id, list(state_writes)))

    async def cancel(self, run_id: str, reason: str = "", grace: float | None = None) -> Driver:
        """Ask it to end; it has ended when its driver has. Raises RunTerminalError."""
        return await self._tell(run_id, Cancel(reason), grace=grace)

    def driver(self, run_id: str) -> Driver | None:
        """Of a run that has something to do."""
        return self._drivers.get(run_id)

    async def close(self) -> None:
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        await asyncio.gather(*(driver.close() for driver in list(self._drivers.values())))
        self._drivers.clear()

    # Drivers.

    async def _tell(self, run_id: str, record: Input, *, grace: float | None = None) -> Driver:
        """Deliver to the run's driver, woken if need be; returns when the input is durable."""
        driver = self._drivers.get(run_id)
        if driver is None:
            async with self._waking.setdefault(run_id, asyncio.Lock()):
                driver = self._drivers.get(run_id) or await self._woken(run_id)
            self._waking.pop(run_id, None)
        return await self._deliver(driver, record, grace=grace)

    async def _deliver(self, driver: Driver, record: Input, *, grace: float | None = None) -> Driver:
        reply: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        driver.deliver(record, reply, grace=grace)
        await reply
        return driver

    async def _woken(self, run_id: str) -> Driver:
        saved = await self.store.load(run_id)
        run = await self.store.run(run_id)
        scheduler = self._replayed(saved, self._programs.get(run_id))
        driver = self._drive(run_id, scheduler, sequence=run.last_sequence)
        for timer in scheduler.timers():
            self._arm(run_id, timer)
        for invocation_id, attempt in scheduler.in_flight():
            driver.deliver(Failed(invocation_id, attempt, _lost()))
        return driver

    def _drive(self, run_id: str, scheduler: RunScheduler, *, sequence: int) -> Driver:
        driver = Driver(
            run_id,
            scheduler,
            self.store,
            self._program_of(run_id).dispatcher,
            self.feed,
            self._clock,
            sequence=sequence,
            arm=self._arm,
            park=self._park,
        )
        self._drivers[run_id] = driver
        return driver

    def _adopt(self, run_id: str, program: Program | None) -> None:
        if program is not None:
            self._programs[run_id] = program
            while len(self._programs) > MAX_PROGRAMS:
                del self._programs[next(iter(self._programs))]

    def _program_of(self, run_id: str) -> Program:
        program = self._programs.get(run_id) or self._program
        if program is None:
            raise RefusedError(f"run {run_id!r} was begun by another process; resume it with its workflow")
        return program

    def _park(self, driver: Driver) -> None:
        """The run has ended, waits for people, or its driver broke: nothing of it stays but its timers."""
        if self._drivers.get(driver.run_id) is driver:
            del self._drivers[driver.run_id]
        if driver.is_over or driver.failure is not None:
            for key in [key for key in self._timers if key[0] == driver.run_id]:
                self._timers.pop(key).cancel()
        if driver.scheduler.state == v1.RUN_STATE_COMPLETED:
            self._programs.pop(driver.run_id, None)
        if (span := self._spans.pop(driver.run_id, None)) is not None:
            span.set_attribute(tracing.RUN_STATE, v1.RunState.Name(driver.scheduler.state))
            span.end()

    def _arm(self, run_id: str, timer: Timer) -> None:
        key = (run_id, timer.kind, timer.subject_id)
        if (before := self._timers.pop(key, None)) is not None:
            before.cancel()
        delay = max(timer.due - self._clock.now(), 0) / SECOND
        self._timers[key] = self._clock.call_later(delay, lambda: self._fire(key))

    def _fire(self, key: _Key) -> None:
        self._timers.pop(key, None)
        run_id, kind, subject_id = key
        record = Fired(kind, subject_id)
        if (driver := self._drivers.get(run_id)) is not None:
            driver.deliver(record)
        else:
            task = asyncio.get_running_loop().create_task(self._tell(run_id, record))
            self._firing.add(task)
            task.add_done_callback(self._firing.discard)

    # Schedulers.

    def _topology(self, definition: v1.Definition) -> Topology:
        if not definition.signature:
            definition.signature = signature(definition)
        topology = self._topologies.get(definition.signature)
        if topology is None:
            topology = self._topologies[definition.signature] = compile_topology(definition)
        return topology

    def _info(self, start: Start, program: Program | None = None) -> RunInfo:
        hooks = (program or self._program_of(start.run_id)).hooks
        return RunInfo(start.run_id, hooks, start.namespace, start.definition.definition_name)

    def _fresh(self, start: Start, topology: Topology, program: Program | None = None) -> RunScheduler:
        return RunScheduler(
            topology, self._info(start, program), max_supersteps=start.max_supersteps, run_timeout=start.run_timeout
        )

    def _replayed(self, saved: Saved, program: Program | None) -> RunScheduler:
        start, topology = saved.start, self._topology(saved.start.definition)
        if saved.snapshot is None:
            scheduler = self._fresh(start, topology, program)
        else:
            is_fork = saved.snapshot is start.snapshot
            info = self._info(start, program)
            scheduler = restore(topology, info, saved.snapshot, run_timeout=start.run_timeout, is_fork=is_fork)
        for record in saved.inputs:
            scheduler.step(record)
        return scheduler

    def _open_span(self, start: Start, trace_context: v1.TraceContext | None) -> v1.TraceContext | None:
        """The run's span, until it is parked: waiting for people is no open span. Gives what its attempts descend from."""
        if self._tracer is None:
            return trace_context
        from opentelemetry import trace

        name = start.definition.definition_name
        span = self._tracer.start_span(
            f"{tracing.RUN_SPAN} {name}",
            context=tracing.parent_from(trace_context),
            attributes={
                tracing.OPERATION: tracing.RUN_SPAN,
                tracing.WORKFLOW_NAME: name,
                tracing.RUN_ID: start.run_id,
            },
        )
        self._spans[start.run_id] = span
        with trace.use_span(span):
            return tracing.current_context()


def new_run_id() -> str:
    return secrets.token_hex(8)


def _lost() -> v1.Failure:
    return v1.Failure(
        kind=v1.FAILURE_KIND_EXECUTOR_LOST, type="EXECUTOR_LOST", message="the process that ran it has ended"
    )


def _compare(start: Start, definition: v1.Definition | None) -> None:
    if definition is None:
        return
    changes = difference(start.definition, definition)
    if changes:
        raise SignatureMismatchError(
            f"run {start.run_id!r} was made under another definition of {start.definition.definition_name!r}:", changes
        )
