"""The one door to the server: a mesh is an embedded one, loaded only when it is asked for.

`Mesh` runs definitions in this process and remembers their runs; `RunResult` and `RunStream` are what comes out.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from hocket import v1
from hocket.errors import LimitReached, NotFoundError, RunCancelledError, RunFailedError
from hocket.payload import Codec
from hocket.records import StateWrite

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from hocket.host import Hosted
    from hocket_server.embedded import Embedded, Settled
    from hocket_server.runtime.clock import Clock
    from hocket_server.runtime.driver import Driver


def check_definition(definition: v1.Definition, functions: Mapping[str, Callable[..., Any]]) -> list[v1.Fault]:
    """All faults and warnings of a definition whose `function:NAME` are these."""
    from hocket_server.core.validate import validate

    return validate(definition, functions)


def definition_signature(definition: v1.Definition) -> bytes:
    """SHA-256 of all that a resumed run relies on (G35)."""
    from hocket_server.core.signature import signature

    return signature(definition)


class Runnable(Protocol):
    """What a mesh runs: a definition, and what carries it out in this process (`workflow.Workflow`)."""

    @property
    def definition(self) -> v1.Definition: ...
    @property
    def executors(self) -> Mapping[str, Hosted]: ...
    @property
    def functions(self) -> Mapping[str, Callable[..., Any]]: ...


@dataclass(frozen=True, eq=False)
class RunResult:
    """A run that has ended COMPLETED, or WAITING for the answers to `questions`.

    `events` is its log: all of it, or the newest 10,000.
    """

    run: v1.Run
    _log: Sequence[bytes] = field(repr=False)
    _state: Mapping[str, v1.Payload] = field(repr=False)
    _codec: Codec = field(repr=False)

    @cached_property
    def events(self) -> Sequence[v1.Event]:
        return [v1.Event.FromString(encoded) for encoded in self._log]

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def outcome(self) -> str:
        """`COMPLETED` or `WAITING`."""
        return _state_name(self.run.state)

    @property
    def converged_without_output(self) -> bool:
        """The workflow declares outputs and gave none."""
        return self.run.converged_without_output

    @property
    def questions(self) -> Sequence[v1.Question]:
        """What is waited for; answer by `question_id`."""
        return list(self.run.open_questions)

    @property
    def state(self) -> dict[str, Any]:
        """The run's state as it was last committed."""
        return {key: self._codec.decode(value) for key, value in self._state.items()}

    @property
    def checkpoint_id(self) -> str:
        """The newest checkpoint."""
        return self.run.latest_checkpoint_id

    def get_outputs(self) -> list[Any]:
        """In the order of the log."""
        return [self._codec.decode(payload) for payload in self.run.outputs]

    def get_intermediate_outputs(self) -> list[Any]:
        return [
            self._codec.decode(event.output_yielded.payload)
            for event in self.events
            if event.output_yielded.intermediate and not event.path
        ]

    def decode(self, payload: v1.Payload) -> Any:
        """The value of a payload in one of the events."""
        return self._codec.decode(payload)


class RunStream:
    """A run as it happens: iterate it for events, durable ones and live progress (sequence 0), await `result()`.

    It ends where `Workflow.run` returns: with the run, or when it waits for answers. One that gives answers begins with them.
    Leaving it early leaves the run running; `cancel()` ends it.
    """

    def __init__(
        self,
        mesh: Mesh,
        begin: Callable[[], Coroutine[Any, Any, Driver]],
        runnable: Runnable,
        *,
        run_id: str = "",
        question_id: str = "",
    ) -> None:
        """With `run_id` of a run to begin, or the id of a question to answer."""
        self._mesh = mesh
        self._begin = begin
        self._runnable = runnable
        self._run_id = run_id
        self._question_id = question_id
        self._beginning: asyncio.Future[Driver] | None = None
        self._after = 0

    @property
    def run_id(self) -> str:
        """Of a run that is given answers: known after the first event."""
        return self._run_id

    async def _started(self) -> Driver:
        if not self._run_id:
            run_id = await self._mesh.embedded.run_of(self._question_id)
            run = await self._mesh.get_run(run_id)
            if not self._run_id:
                self._run_id, self._after = run_id, run.last_sequence
        if self._beginning is None:
            self._beginning = asyncio.ensure_future(self._begin())
        return await asyncio.shield(self._beginning)

    async def __aiter__(self) -> AsyncIterator[v1.Event]:
        if not self._run_id:
            await self._started()
        # Attached before it begins: a handler may report before this task gets the loop again.
        reader = self._mesh.embedded.feed.attach(self._run_id)
        try:
            await self._started()
            async for batch in reader.batches(self._after, stops_when_waiting=True):
                for event in batch:
                    self._after = event.sequence or self._after
                    yield event
        finally:
            reader.close()

    async def result(self) -> RunResult:
        """Raises as `Workflow.run` does."""
        return await self._mesh.result(await self._started(), self._runnable)

    async def cancel(self, reason: str = "", *, grace: float | None = None) -> None:
        await self._mesh.cancel((await self._started()).run_id, reason, grace=grace)


class Mesh:
    """Runs definitions in this process. One that is closed has cancelled what was in flight.

    `store_url` is `memory:`. `tracer` is an OpenTelemetry tracer; without one nothing is traced. `grace` is the seconds a
    handler has to end when it is cancelled. Plain handlers share `max_threads` threads. Values above `max_inline_bytes`
    are refused when they are sent; NaN and infinities are, unless `allow_nonfinite`. In memory the newest `keep_ended`
    runs that have ended are kept, to be forked, resumed or looked at.
    """

    def __init__(
        self,
        store_url: str = "memory:",
        *,
        tracer: Tracer | None = None,
        grace: float = 10.0,
        max_threads: int = 32,
        max_inline_bytes: int = 256 * 1024,
        allow_nonfinite: bool = False,
        keep_ended: int = 1_000,
        clock: Clock | None = None,
    ) -> None:
        from hocket_server.embedded import Embedded

        self.embedded: Embedded = Embedded(
            store_url,
            tracer=tracer,
            grace=grace,
            max_threads=max_threads,
            max_inline_bytes=max_inline_bytes,
            allow_nonfinite=allow_nonfinite,
            keep_ended=keep_ended,
            clock=clock,
        )
        self._runnables: dict[str, Runnable] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.embedded.close()

    # Runs of a workflow; `Workflow.run` is the usual way in.

    async def start(
        self,
        runnable: Runnable,
        message: object,
        *,
        run_id: str | None = None,
        max_supersteps: int | None = None,
        run_timeout: float | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Driver:
        """Begin a run. Raises RunExistsError, and PayloadError for an input that cannot travel or is not taken."""
        _check(run_id=run_id, max_supersteps=max_supersteps, run_timeout=run_timeout)
        payload = self.embedded.codec(runnable).encode(message, input_annotations(runnable))
        driver = await self.embedded.start(
            runnable,
            payload,
            run_id=run_id,
            max_supersteps=max_supersteps or 0,
            run_timeout=run_timeout,
            labels=labels,
        )
        return self._remember(driver, runnable)

    async def fork(
        self,
        runnable: Runnable,
        checkpoint_id: str,
        *,
        run_id: str | None = None,
        max_supersteps: int | None = None,
        state: Mapping[str, object] | None = None,
    ) -> Driver:
        """Begin a new run from a checkpoint, with `state` written over the copied state."""
        _check(run_id=run_id, max_supersteps=max_supersteps)
        codec = self.embedded.codec(runnable)
        overrides = [StateWrite(key, codec.encode(value)) for key, value in (state or {}).items()]
        driver = await self.embedded.fork(
            runnable,
            checkpoint_id,
            run_id=run_id,
            max_supersteps=max_supersteps or 0,
            state_overrides=overrides,
        )
        return self._remember(driver, runnable)

    async def answer_all(self, runnable: Runnable, responses: Mapping[str, object]) -> Driver:
        """Answer questions of one run by their ids. Those before a refused one are answered."""
        if not responses:
            raise ValueError("responses is empty; give {question_id: answer}")
        run_ids = {question_id: await self.embedded.run_of(question_id) for question_id in responses}
        if len(set(run_ids.values())) > 1:
            raise ValueError(f"responses are for several runs: {', '.join(sorted(set(run_ids.values())))}; give one's")
        payloads = {
            question_id: await self._encoded(runnable, run_ids[question_id], question_id, answer)
            for question_id, answer in responses.items()
        }
        driver: Driver | None = None
        for question_id, payload in payloads.items():
            driver = await self.embedded.runs.answer(run_ids[question_id], question_id, payload)
        assert driver is not None
        return driver

    async def _encoded(self, runnable: Runnable, run_id: str, question_id: str, answer: object) -> v1.Payload:
        """An answer, named as one of the types that the question takes, if it fits one."""
        run = await self.embedded.store.run(run_id)
        types = [
            name
            for question in run.open_questions
            if question.question_id == question_id
            for name in question.response_types
        ]
        codec = self.embedded.codec(runnable)
        return codec.encode(answer, codec.annotations_named(types))

    async def result(self, driver: Driver, runnable: Runnable) -> RunResult:
        """Wait until it has ended or waits for answers. Raises what it failed with, RunFailedError, RunCancelledError,
        LimitReached."""
        settled = await self.embedded.settle(driver, runnable)
        return _result(settled, self.embedded.codec(runnable))

    async def resume(
        self, run_id: str, *, workflow: Runnable | None = None, max_supersteps: int | None = None
    ) -> RunResult:
        """Go on with a FAILED, CANCELLED or LIMIT_REACHED run, and wait for it as `result` does.

        `workflow` may be another object of the same definition, its cause of failure mended; a changed definition is
        refused with SignatureMismatchError. Raises RunNotResumableError for a run in another state.
        """
        _check(max_supersteps=max_supersteps)
        runnable = workflow or self._runnable(run_id)
        driver = await self.embedded.resume(run_id, runnable=workflow, max_supersteps=max_supersteps or 0)
        return await self.result(self._remember(driver, runnable), runnable)

    # Any run.

    async def answer(self, run_id: str, question_id: str, answer: object, *, answered_by: str = "") -> None:
        """The same answer again is accepted. Raises QuestionClosedError, NotFoundError, PayloadError."""
        payload = await self._encoded(self._runnable(run_id), run_id, question_id, answer)
        await self.embedded.runs.answer(run_id, question_id, payload, answered_by)

    async def signal(
        self, run_id: str, message: object = None, *, target_id: str = "", state: Mapping[str, object] | None = None
    ) -> None:
        """A message from outside for the next superstep, to the start node by default; and writes of the state."""
        codec = self.embedded.codec(self._runnable(run_id))
        writes = [StateWrite(key, codec.encode(value)) for key, value in (state or {}).items()]
        payload = None if message is None else codec.encode(message)
        await self.embedded.runs.signal(run_id, payload, target_id, writes)

    async def cancel(self, run_id: str, reason: str = "", *, grace: float | None = None) -> v1.Run:
        """End it, and wait for the end: handlers have `grace` seconds. Raises RunTerminalError."""
        driver = await self.embedded.runs.cancel(run_id, reason, grace)
        await self.embedded.runs.settled(driver)
        return await self.embedded.store.run(run_id)

    async def get_run(self, run_id: str) -> v1.Run:
        return await self.embedded.store.run(run_id)

    async def list_runs(self) -> list[v1.Run]:
        """Newest first."""
        return await self.embedded.store.runs()

    async def list_questions(self) -> list[v1.Question]:
        """Open ones, over all runs."""
        return [question for run in await self.list_runs() for question in run.open_questions]

    async def list_events(self, run_id: str, after: int = 0, limit: int = 10_000) -> list[v1.Event]:
        return [v1.Event.FromString(encoded) for encoded in await self.embedded.store.log(run_id, after, limit)]

    async def list_checkpoints(self, run_id: str) -> list[v1.Checkpoint]:
        """Those that can be forked, oldest first."""
        return await self.embedded.store.checkpoints(run_id)

    def _remember(self, driver: Driver, runnable: Runnable) -> Driver:
        self._runnables[driver.run_id] = runnable
        while len(self._runnables) > MAX_REMEMBERED:
            del self._runnables[next(iter(self._runnables))]
        return driver

    def _runnable(self, run_id: str) -> Runnable:
        runnable = self._runnables.get(run_id)
        if runnable is None:
            raise NotFoundError(f"run {run_id!r} was not begun by this mesh; pass workflow= to resume it here")
        return runnable


MAX_REMEMBERED = 10_000
# Nanoseconds in 64 bits.
MAX_SECONDS = 9_000_000_000


def _check(*, run_id: str | None = None, max_supersteps: int | None = None, run_timeout: float | None = None) -> None:
    """Ids of what belongs to a run begin with the run's and a slash, so it has none itself."""
    if run_id is not None and (not run_id or "/" in run_id or not run_id.isprintable()):
        raise ValueError(f"run_id is {run_id!r}; it is printable text without a slash")
    if max_supersteps is not None and not 1 <= max_supersteps < 2**31:
        raise ValueError(f"max_supersteps is {max_supersteps!r}; it is a whole number from 1")
    if run_timeout is not None and not 0 < run_timeout <= MAX_SECONDS:
        raise ValueError(f"run_timeout is {run_timeout!r}; it is a number of seconds above 0")


def new_run_id() -> str:
    return secrets.token_hex(8)


def input_annotations(runnable: Runnable) -> list[Any]:
    """What the start node's handlers take: an input is named as the one it fits."""
    start_id = runnable.definition.graph.start_node_id
    for node in runnable.definition.graph.nodes:
        if node.id == start_id and (executor := runnable.executors.get(node.executor.executor_type)):
            return [handler.input_annotation for handler in executor.handlers]
    return []


def _result(settled: Settled, codec: Codec) -> RunResult:
    run, failure = settled.run, settled.run.failure
    if run.state in (v1.RUN_STATE_COMPLETED, v1.RUN_STATE_WAITING):
        return RunResult(run, settled.log, settled.state, codec)
    if run.state == v1.RUN_STATE_LIMIT_REACHED:
        raise LimitReached(f"run {run.run_id!r}: {run.reason}", run_id=run.run_id)
    if run.state == v1.RUN_STATE_CANCELLED:
        raise RunCancelledError(f"run {run.run_id!r} was cancelled: {run.reason}", run_id=run.run_id, failure=failure)
    where = f" at {failure.source!r}" if failure.source else ""
    if settled.error is not None:
        settled.error.add_note(f"run {run.run_id!r} failed{where}")
        raise settled.error
    raise RunFailedError(
        f"run {run.run_id!r} failed{where}: {failure.type}: {failure.message}", run_id=run.run_id, failure=failure
    )


def _state_name(state: v1.RunState.ValueType) -> str:
    return v1.RunState.Name(state).removeprefix("RUN_STATE_")
