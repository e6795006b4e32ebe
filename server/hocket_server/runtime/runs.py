"""All runs of a process: begins them, finds the driver of one or wakes it from the store, and passes on what is asked.

A run that waits for people is in the store only. What is asked of it loads it: the newest snapshot, the inputs after it
replayed, their decisions discarded, since their events are in the log already.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hocket import tracing, v1
from hocket.errors import PayloadError, RefusedError, RunNotResumableError, SignatureMismatchError
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

logger = logging.getLogger(__name__)

# Of runs that have ended: what they are resumed, forked and asked with.
MAX_PROGRAMS = 10_000

SETTLED = TERMINAL | {v1.RUN_STATE_WAITING}

_Key: TypeAlias = "tuple[v1.TimerKind.ValueType, str]"


@dataclass(slots=True, eq=False)
class Program:
    """What carries a definition out in this process: what its scheduler is handed, and who performs its attempts."""

    hooks: Hooks
    dispatcher: Dispatcher


class Runs:
    """A run without a program of its own has `program`. Every call that tells a run something returns its driver, once
    what was told is durable. With `keeps_reports` a driver that is parked has the run as it was then."""

    def __init__(
        self,
        store: Store,
        feed: Feed,
        clock: Clock,
        *,
        program: Program | None = None,
        tracer: Tracer | None = None,
        keeps_reports: bool = False,
    ) -> None:
        self.store = store
        self.feed = feed
        self._program = program
        self._clock = clock
        self._tracer = tracer
        self._keeps_reports = keeps_reports
        self._spans: dict[str, Span] = {}
        self._programs: dict[str, Program] = {}
        self._ended: dict[str, None] = {}
        self._drivers: dict[str, Driver] = {}
        self._waking: dict[str, asyncio.Task[Driver]] = {}
        self._is_closed = False
        self._following: dict[str, asyncio.Future[Driver]] = {}
        self._timers: dict[str, dict[_Key, Handle]] = {}
        self._firing: set[asyncio.Task[None]] = set()
        self._topologies: dict[bytes, Topology] = {}

    async def start(
        self,
        start: Start,
        payload: v1.Payload,
        *,
        program: Program | None = None,
        trace_context: v1.TraceContext | None = None,
    ) -> Driver:
        """Begin a run. Raises RunExistsError, PayloadError for an input that the start node does not take, RefusedError
        after `close`."""
        topology = self._topology(start.definition)
        if self._is_closed:
            raise RefusedError("the mesh is closed; take a new one")
        if not topology.start.takes(payload):
            known = ", ".join(sorted(topology.start.input_types or ()))
            raise PayloadError(
                f"the input of {start.definition.definition_name!r} goes to node {topology.start.id!r}, "
                f"which takes {known}, not {payload.type!r}",
                type_name=payload.type,
            )
        await self._create(start, program, trace_context)
        scheduler = self._fresh(start, topology)
        driver = self._drive(start.run_id, scheduler, sequence=0)
        return await self._deliver(driver, Begin(payload, start.trace_context))

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
        await self._create(start, program, None)
        scheduler = restore(
            self._topology(start.definition),
            self._info(start),
            snapshot,
            run_timeout=start.run_timeout,
            is_fork=True,
        )
        driver = self._drive(start.run_id, scheduler, sequence=0)
        return await self._deliver(driver, Resume(max_supersteps, checkpoint_id, list(state_overrides)))

    async def _create(self, start: Start, program: Program | None, parent: v1.TraceContext | None) -> None:
        """Make it known to the store, with its span begun and its program at hand."""
        span = self._begun_span(start, parent)
        start.trace_context = parent if span is None else _context_of(span)
        try:
            await self.store.create(start, self._clock.now())
        except BaseException:
            if span is not None:
                span.end()
            raise
        if span is not None:
            self._spans[start.run_id] = span
        self._adopt(start.run_id, program)

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
        self._ended.pop(run_id, None)
        if run_id not in self._spans and (span := self._begun_span(start, start.trace_context)):
            self._spans[run_id] = span
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

    async def settled(self, driver: Driver) -> Driver:
        """Return when the run has ended or waits for people: with its last driver, which may be another by then. Raises
        what broke it, RefusedError when this is closed."""
        run_id = driver.run_id
        while True:
            await driver.settled()
            if driver.scheduler.state in SETTLED:
                return driver
            following = self._drivers.get(run_id)
            if following is None or following is driver:
                # It waits for a timer, such as that of a retry.
                future = self._following.get(run_id)
                if future is None:
                    future = self._following[run_id] = asyncio.get_running_loop().create_future()
                following = await asyncio.shield(future)
            driver = following

    async def close(self) -> None:
        """Stop what runs, with nothing more written; who waits for it gets a RefusedError."""
        self._is_closed = True
        for program in {self._program, *self._programs.values()}:
            if program is not None:
                program.dispatcher.stop()
        for timers in self._timers.values():
            for handle in timers.values():
                handle.cancel()
        self._timers.clear()
        tasks = [*self._firing, *self._waking.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        drivers = list(self._drivers.values())
        await asyncio.gather(*(driver.close(_closed(driver.run_id)) for driver in drivers))
        self._drivers.clear()
        for run_id, future in self._following.items():
            if not future.done():
                future.set_exception(_closed(run_id))
                future.exception()  # it may be that nobody asks any more
        self._following.clear()
        for span in self._spans.values():
            span.end()
        self._spans.clear()

    # Drivers.

    async def _tell(self, run_id: str, record: Input, *, grace: float | None = None) -> Driver:
        """Deliver to the run's driver, woken if need be; returns when the input is durable."""
        driver = self._drivers.get(run_id)
        while driver is None:
            # One wakes it, and all that ask meanwhile wait for that one. It may have been parked again before they go on.
            waking = self._waking.get(run_id)
            if waking is None:
                waking = self._waking[run_id] = asyncio.get_running_loop().create_task(self._woken(run_id))
                waking.add_done_callback(lambda _: self._waking.pop(run_id, None))
            await asyncio.wait({waking})
            if waking.cancelled():
                raise _closed(run_id)
            waking.result()
            driver = self._drivers.get(run_id)
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
            self.arm(run_id, timer)
        for invocation_id, attempt in scheduler.in_flight():
            driver.deliver(Failed(invocation_id, attempt, _lost()))
        return driver

    def _drive(self, run_id: str, scheduler: RunScheduler, *, sequence: int) -> Driver:
        if self._is_closed:
            raise RefusedError("the mesh is closed; take a new one")
        driver = Driver(
            run_id,
            scheduler,
            self.store,
            self._program_of(run_id).dispatcher,
            self.feed,
            self._clock,
            sequence=sequence,
            owner=self,
            keeps_report=self._keeps_reports,
        )
        self._drivers[run_id] = driver
        if (future := self._following.pop(run_id, None)) is not None and not future.done():
            future.set_result(driver)
        return driver

    def _adopt(self, run_id: str, program: Program | None) -> None:
        if program is not None:
            self._programs[run_id] = program

    def _program_of(self, run_id: str) -> Program:
        program = self._programs.get(run_id) or self._program
        if program is None:
            raise RefusedError(f"run {run_id!r} was begun by another process; resume it with its workflow")
        return program

    def park(self, driver: Driver) -> None:
        """The run has ended, waits for people or a timer, or its driver broke: nothing of it stays but its timers."""
        run_id = driver.run_id
        if self._drivers.get(run_id) is driver:
            del self._drivers[run_id]
        if driver.is_over or driver.failure is not None:
            for handle in self._timers.pop(run_id, {}).values():
                handle.cancel()
        if driver.is_over:
            self._ended.pop(run_id, None)
            self._ended[run_id] = None
            while len(self._ended) > MAX_PROGRAMS:
                oldest = next(iter(self._ended))
                del self._ended[oldest]
                self._programs.pop(oldest, None)
        is_settled = driver.scheduler.state in SETTLED or driver.failure is not None
        if is_settled and (span := self._spans.pop(run_id, None)) is not None:
            span.set_attribute(tracing.RUN_STATE, v1.RunState.Name(driver.scheduler.state))
            span.end()

    def arm(self, run_id: str, timer: Timer) -> None:
        key = (timer.kind, timer.subject_id)
        timers = self._timers.setdefault(run_id, {})
        if (before := timers.pop(key, None)) is not None:
            before.cancel()
        delay = max(timer.due - self._clock.now(), 0) / SECOND
        timers[key] = self._clock.call_later(delay, lambda: self._fire(run_id, timer))

    def _fire(self, run_id: str, timer: Timer) -> None:
        timers = self._timers.get(run_id, {})
        timers.pop((timer.kind, timer.subject_id), None)
        if not timers:
            self._timers.pop(run_id, None)
        if self._clock.now() < timer.due:
            # The loop's clock and the wall's need not agree; a scheduler goes by the wall's.
            self.arm(run_id, timer)
            return
        record = Fired(timer.kind, timer.subject_id)
        if (driver := self._drivers.get(run_id)) is not None:
            driver.deliver(record)
        else:
            task = asyncio.get_running_loop().create_task(self._wake(run_id, record))
            self._firing.add(task)
            task.add_done_callback(self._firing.discard)

    async def _wake(self, run_id: str, record: Fired) -> None:
        """A timer of a parked run. Nobody awaits this, so an error goes to the log of the process."""
        try:
            await self._tell(run_id, record)
        except Exception:  # the last to hear of it
            logger.exception("run %s: timer %s could not be delivered", run_id, v1.TimerKind.Name(record.timer_kind))

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
        return RunInfo(
            start.run_id, hooks, start.namespace, start.definition.definition_name, trace_context=start.trace_context
        )

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

    def _begun_span(self, start: Start, parent: v1.TraceContext | None) -> Span | None:
        """A span for a stretch of the run, until it is parked: waiting for people is no open span."""
        if self._tracer is None:
            return None
        name = start.definition.definition_name
        return self._tracer.start_span(
            f"{tracing.RUN_SPAN} {name}",
            context=tracing.parent_from(parent),
            attributes={
                tracing.OPERATION: tracing.RUN_SPAN,
                tracing.WORKFLOW_NAME: name,
                tracing.RUN_ID: start.run_id,
            },
        )


def _context_of(span: Span) -> v1.TraceContext | None:
    from opentelemetry import trace

    with trace.use_span(span):
        return tracing.current_context()


def new_run_id() -> str:
    return secrets.token_hex(8)


def _closed(run_id: str) -> RefusedError:
    return RefusedError(f"run {run_id!r} was in progress when its mesh was closed")


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
