"""Performs one attempt: an endpoint, a deadline, a cancellation with grace, a span. Whether another follows is the
scheduler's to decide.

Every attempt ends once. Its end is what the endpoint gave back, or, when it was told to stop and did not within the grace
time, what the dispatcher says of it: it is fenced, and what its handler returns later is refused. A handler that goes on
after its timeout holds its end back by default, so that no second attempt runs beside it (`Node.on_stuck`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from hocket import tracing, v1
from hocket.records import Completed, Failed, GraphPosition, Invocation
from hocket_server.runtime.clock import Clock, Handle
from hocket_server.runtime.endpoints import Endpoint

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

logger = logging.getLogger(__name__)

DEFAULT_GRACE = 10.0

Ended: TypeAlias = Completed | Failed
Deliver: TypeAlias = Callable[[Ended], None]
Sign: TypeAlias = Callable[[Invocation, v1.Progress | v1.LiveEvent], None]


@dataclass(slots=True)
class Attempt:
    """An attempt that is running, and what has been decided about it."""

    invocation: Invocation
    deliver: Deliver
    task: asyncio.Task[None]
    failure: v1.Failure | None = None
    is_over: bool = False
    deadline: Handle | None = None
    idle: Handle | None = None
    fence: Handle | None = None
    last_progress: v1.Payload | None = None

    def disarm(self) -> None:
        for handle in (self.deadline, self.idle, self.fence):
            if handle is not None:
                handle.cancel()


class Dispatcher:
    """`grace` in seconds is what a handler has to end after it was told to."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        clock: Clock,
        *,
        grace: float = DEFAULT_GRACE,
        tracer: Tracer | None = None,
    ) -> None:
        self.endpoints = list(endpoints)
        self._clock = clock
        self._grace = grace
        self._tracer = tracer
        self.attempts: dict[str, Attempt] = {}
        self._is_stopping = False

    async def attempt(
        self, invocation: Invocation, task: asyncio.Task[None], deliver: Deliver, sign: Sign
    ) -> Ended | None:
        """Carry it out in `task`, the current one. None when it was fenced: its end has been delivered already."""
        endpoint = self._endpoint(invocation.executor_type)
        if endpoint is None:
            return Failed(invocation.invocation_id, invocation.attempt, self._unscheduled(invocation))
        attempt = Attempt(invocation, deliver, task)
        self.attempts[invocation.invocation_id] = attempt
        if invocation.timeout is not None:
            attempt.deadline = self._clock.call_later(invocation.timeout, lambda: self._time_out(attempt, "timeout"))
        if invocation.idle_timeout is not None:
            self._watch_idle(attempt, invocation.idle_timeout)

        def live(progress: v1.Progress | v1.LiveEvent) -> None:
            self._progressed(attempt, progress, sign)

        try:
            if self._tracer is None:
                ended = await endpoint.execute(invocation, live)
            else:
                with self._span(self._tracer, invocation) as span:
                    try:
                        ended = await endpoint.execute(invocation, live)
                    finally:
                        if attempt.failure is not None:
                            _tell(span, attempt.failure)
                    if attempt.failure is None:
                        _tell(span, ended.failure if isinstance(ended, Failed) else None)
        except asyncio.CancelledError:
            if attempt.failure is None and task.cancelling():
                raise  # the whole process is being stopped
            failure = attempt.failure or v1.Failure(
                kind=v1.FAILURE_KIND_CANCELLED, type="CANCELLED", message="the handler was cancelled from within"
            )
            ended = Failed(invocation.invocation_id, invocation.attempt, failure)
        finally:
            if attempt.deadline is not None or attempt.idle is not None or attempt.fence is not None:
                attempt.disarm()
            if self.attempts.get(invocation.invocation_id) is attempt:
                del self.attempts[invocation.invocation_id]
        if task.cancelling():
            await self._absorb(task)
        if attempt.is_over:
            logger.warning(
                "%s attempt %d returned after it was fenced; its result is refused",
                invocation.invocation_id,
                invocation.attempt,
            )
            return None
        if attempt.failure is not None and attempt.failure.kind == v1.FAILURE_KIND_TIMEOUT:
            # It may have returned in the moment it was cancelled: a result after the deadline is none.
            ended = Failed(invocation.invocation_id, invocation.attempt, attempt.failure)
        if isinstance(ended, Failed) and attempt.last_progress is not None:
            ended.last_progress = attempt.last_progress
        return ended

    def stop(self) -> None:
        """The process is being stopped: what is cancelled from now on ends for good, also if a handler swallows it."""
        self._is_stopping = True

    async def _absorb(self, task: asyncio.Task[None]) -> None:
        """A cancellation that a handler swallowed, or asked for itself, is not for who goes on in its task. (Until Python
        3.12 a TaskGroup that fails leaves one behind.)"""
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        if self._is_stopping:
            raise asyncio.CancelledError
        while task.cancelling():
            task.uncancel()

    def cancel(self, invocation_id: str, grace: float | None = None) -> None:
        """Tell the attempt to stop; after the grace time it is fenced."""
        attempt = self.attempts.get(invocation_id)
        if attempt is not None:
            self._stop(attempt, unwanted(), self._grace if grace is None else grace)

    def _time_out(self, attempt: Attempt, what: str) -> None:
        invocation = attempt.invocation
        seconds = invocation.timeout if what == "timeout" else invocation.idle_timeout
        failure = v1.Failure(
            kind=v1.FAILURE_KIND_TIMEOUT,
            type="TIMEOUT",
            message=f"attempt {invocation.attempt} of {invocation.invocation_id} is over its {what} of {seconds:g} s",
        )
        match invocation.on_stuck:
            case v1.ON_STUCK_OVERLAP:
                self._stop(attempt, failure, self._grace)
            case v1.ON_STUCK_FAIL:
                self._stop(attempt, failure, self._grace, is_final=True)
            case _:
                self._stop(attempt, failure, None)

    def _stop(self, attempt: Attempt, failure: v1.Failure, grace: float | None, *, is_final: bool = False) -> None:
        """With `grace` None its end is awaited however long it takes; `is_final` makes a fenced one the last."""
        attempt.failure = failure
        attempt.task.cancel()
        if attempt.fence is not None:
            attempt.fence.cancel()
        if grace is not None:
            attempt.fence = self._clock.call_later(grace, lambda: self._fence(attempt, is_final=is_final))

    def _fence(self, attempt: Attempt, *, is_final: bool) -> None:
        if attempt.is_over or attempt.failure is None:
            return
        attempt.is_over = True
        if is_final:
            attempt.failure.non_retryable = True
        invocation = attempt.invocation
        attempt.deliver(
            Failed(
                invocation.invocation_id,
                invocation.attempt,
                attempt.failure,
                last_progress=attempt.last_progress,
            )
        )

    def _watch_idle(self, attempt: Attempt, seconds: float) -> None:
        if attempt.idle is not None:
            attempt.idle.cancel()
        attempt.idle = self._clock.call_later(seconds, lambda: self._time_out(attempt, "idle_timeout"))

    def _progressed(self, attempt: Attempt, progress: v1.Progress | v1.LiveEvent, sign: Sign) -> None:
        if attempt.is_over:
            return
        if isinstance(progress, v1.Progress):
            if progress.HasField("details"):
                attempt.last_progress = progress.details
            if attempt.invocation.idle_timeout is not None and attempt.failure is None:
                self._watch_idle(attempt, attempt.invocation.idle_timeout)
        sign(attempt.invocation, progress)

    def _endpoint(self, executor_type: str) -> Endpoint | None:
        for endpoint in self.endpoints:
            if endpoint.offers(executor_type):
                return endpoint
        return None

    def _unscheduled(self, invocation: Invocation) -> v1.Failure:
        return v1.Failure(
            kind=v1.FAILURE_KIND_UNSCHEDULED,
            type="UNSCHEDULED",
            message=f"executor {invocation.executor_type!r} is not registered with this mesh",
        )

    def _span(self, tracer: Tracer, invocation: Invocation) -> AbstractContextManager[Span]:
        position = invocation.position
        node_id = position.node_id if isinstance(position, GraphPosition) else ""
        return tracer.start_as_current_span(
            f"{tracing.EXECUTOR_SPAN} {node_id}",
            context=tracing.parent_from(invocation.trace_context),
            attributes={
                tracing.RUN_ID: invocation.run_id,
                tracing.INVOCATION_ID: invocation.invocation_id,
                tracing.NODE_ID: node_id,
                tracing.ATTEMPT: invocation.attempt,
                **({tracing.SUPERSTEP: position.superstep} if isinstance(position, GraphPosition) else {}),
            },
        )


def _tell(span: Span, failure: v1.Failure | None) -> None:
    from opentelemetry.trace import Status, StatusCode

    if failure is None:
        span.set_status(Status(StatusCode.OK))
    else:
        span.set_status(Status(StatusCode.ERROR, f"{failure.type}: {failure.message}"))


def unwanted() -> v1.Failure:
    """How an attempt ends that its run abandoned."""
    return v1.Failure(kind=v1.FAILURE_KIND_CANCELLED, type="CANCELLED", message="the run no longer wants it")
