"""A server without a port: the same schedulers, driver, dispatcher, store and feed, in the process that uses them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from hocket import v1
from hocket.errors import NotFoundError
from hocket.host import Host, Hosted
from hocket.payload import Codec
from hocket.records import StateWrite
from hocket.wire import SECOND
from hocket_server.core.scheduler import Hooks
from hocket_server.runtime.clock import Clock, SystemClock
from hocket_server.runtime.dispatcher import DEFAULT_GRACE, Dispatcher
from hocket_server.runtime.driver import Driver
from hocket_server.runtime.endpoints import LocalEndpoint
from hocket_server.runtime.feed import Feed
from hocket_server.runtime.runs import Program, Runs, new_run_id
from hocket_server.store.memory import MemoryStore
from hocket_server.store.protocol import Start, Store

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


class Runnable(Protocol):
    """A definition with what carries it out in this process (`workflow.Workflow`)."""

    @property
    def definition(self) -> v1.Definition: ...
    @property
    def executors(self) -> Mapping[str, Hosted]: ...
    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]: ...


@dataclass(slots=True)
class Settled:
    """A run that has ended or waits for people. `error` is the exception behind its failure, where there was one."""

    run: v1.Run
    log: list[bytes]
    state: Mapping[str, v1.Payload]
    error: BaseException | None


class Embedded:
    """`store_url`: `memory:`."""

    def __init__(
        self,
        store_url: str = "memory:",
        *,
        tracer: Tracer | None = None,
        grace: float = DEFAULT_GRACE,
        max_threads: int = 32,
        max_inline_bytes: int = 256 * 1024,
        allow_nonfinite: bool = False,
        keep_ended: int = 1_000,
        clock: Clock | None = None,
    ) -> None:
        self._store = _open_store(store_url, keep_ended)
        self._clock = clock or SystemClock()
        self._tracer = tracer
        self._grace = grace
        self._max_threads = max_threads
        self._max_inline_bytes = max_inline_bytes
        self._allow_nonfinite = allow_nonfinite
        self._hosts: WeakKeyDictionary[Runnable, tuple[Host, Program]] = WeakKeyDictionary()
        self.feed = Feed(self._store)
        self.runs = Runs(self._store, self.feed, self._clock, tracer=tracer, keeps_reports=True)

    def codec(self, runnable: Runnable) -> Codec:
        return self._hosted(runnable)[0].codec

    def _hosted(self, runnable: Runnable) -> tuple[Host, Program]:
        """Two workflows may have executors of one name, so each has a host of its own."""
        held = self._hosts.get(runnable)
        if held is None:
            codec = Codec(max_inline_bytes=self._max_inline_bytes, allow_nonfinite=self._allow_nonfinite)
            host = Host(runnable.executors, codec, max_threads=self._max_threads)
            functions = {name: _decoding(codec, function) for name, function in runnable.functions.items()}
            dispatcher = Dispatcher([LocalEndpoint(host)], self._clock, grace=self._grace, tracer=self._tracer)
            held = self._hosts[runnable] = host, Program(Hooks(codec.plain, functions), dispatcher)
        return held

    async def start(
        self,
        runnable: Runnable,
        payload: v1.Payload,
        *,
        run_id: str | None = None,
        max_supersteps: int = 0,
        run_timeout: float | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Driver:
        start = Start(
            run_id or new_run_id(),
            runnable.definition,
            max_supersteps=max_supersteps,
            run_timeout=round((run_timeout or 0) * SECOND),
            labels=dict(labels or {}),
        )
        return await self.runs.start(start, payload, program=self._hosted(runnable)[1])

    async def fork(
        self,
        runnable: Runnable,
        checkpoint_id: str,
        *,
        run_id: str | None = None,
        max_supersteps: int = 0,
        state_overrides: Sequence[StateWrite] = (),
    ) -> Driver:
        return await self.runs.fork(
            checkpoint_id,
            run_id=run_id or "",
            definition=runnable.definition,
            program=self._hosted(runnable)[1],
            max_supersteps=max_supersteps,
            state_overrides=state_overrides,
        )

    async def resume(self, run_id: str, *, runnable: Runnable | None = None, max_supersteps: int = 0) -> Driver:
        return await self.runs.resume(
            run_id,
            max_supersteps=max_supersteps,
            definition=runnable.definition if runnable else None,
            program=self._hosted(runnable)[1] if runnable else None,
        )

    async def run_of(self, scoped_id: str) -> str:
        """The run that a question or checkpoint id begins with."""
        end = scoped_id.find("/")
        while end >= 0:
            try:
                return (await self._store.run(scoped_id[:end])).run_id
            except NotFoundError:
                end = scoped_id.find("/", end + 1)
        raise NotFoundError(f"no run that {scoped_id!r} belongs to is in the store")

    async def settle(self, driver: Driver, runnable: Runnable | None = None) -> Settled:
        """Wait for the run to end or to wait for people."""
        driver = await self.runs.settled(driver)
        report = driver.report or await driver.read_report()
        error = None
        if runnable is not None and (host := self._hosted(runnable)[0]).errors:
            error = host.take_error(driver.run_id, _failed_invocation(report.log, report.run.failure))
        return Settled(report.run, report.log, driver.scheduler.shared_state, error)

    def watch(self, run_id: str, after: int = 0) -> AsyncIterator[list[v1.Event]]:
        return self.feed.watch(run_id, after)

    @property
    def store(self) -> Store:
        return self._store

    async def close(self) -> None:
        await self.runs.close()
        for host, _ in self._hosts.values():
            host.close()


MAX_EVENTS = 10_000


def _open_store(url: str, keep_ended: int) -> Store:
    if url in ("memory:", "memory://"):
        return MemoryStore(max_events=MAX_EVENTS, max_ended=keep_ended)
    raise ValueError(f"store_url {url!r} is not known; use 'memory:'")


def _decoding(codec: Codec, function: Callable[..., Any]) -> Callable[..., object]:
    """A user's function of a message, as the core calls it: with the payload."""

    def call(payload: v1.Payload, *arguments: object) -> object:
        return function(codec.decode(payload), *arguments)

    return call


def _failed_invocation(log: Sequence[bytes], cause: v1.Failure) -> str:
    """The invocation whose failure ended the run: not a sibling's that came while it was cancelled, nor that of the node
    it was nested in, which comes after it."""
    found = ""
    for event in map(v1.Event.FromString, reversed(log)):
        if event.HasField("run_started") or event.HasField("run_resumed"):
            break
        if event.HasField("invocation_failed") and not event.invocation_failed.will_retry:
            failure = event.invocation_failed.failure
            if (failure.kind, failure.type, failure.message) == (cause.kind, cause.type, cause.message):
                found = event.invocation_id
    return found
