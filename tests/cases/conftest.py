"""The world of a case: a mesh with a clock turned by hand and a tracer that is watched, and the checks every case ends with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from hocket import v1
from hocket.mesh import Mesh, RunResult
from hocket.testing import FakeClock
from hocket.workflow import Workflow

T = TypeVar("T")

TERMINAL = frozenset({v1.RUN_STATE_COMPLETED, v1.RUN_STATE_FAILED, v1.RUN_STATE_CANCELLED, v1.RUN_STATE_LIMIT_REACHED})


class SpanBook(SpanProcessor):
    """Which spans have begun, and which have ended."""

    def __init__(self) -> None:
        self.open: dict[int, str] = {}
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.open[span.get_span_context().span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        assert context is not None
        del self.open[context.span_id]
        self.ended.append(span)


class World:
    """Use `mesh`, or `run` for what needs time to pass. When the test is over every run in the mesh is checked."""

    def __init__(self, **options: Any) -> None:
        self.clock = FakeClock()
        self.spans = SpanBook()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self.spans)
        self.mesh = Mesh(tracer=provider.get_tracer("tests"), clock=self.clock, **options)

    async def run(self, workflow: Workflow, message: object = None, **options: Any) -> RunResult:
        return await self.finish(workflow.run(message, mesh=self.mesh, **options))

    async def finish(self, waiting: Awaitable[T], *, minutes: int = 60) -> T:
        """Let time pass until it is there."""
        task = asyncio.ensure_future(waiting)
        for _ in range(minutes):
            if task.done():
                return task.result()
            await self.clock.advance(60)
        task.cancel()
        raise AssertionError(f"nothing came out of {waiting} in {minutes} minutes")

    async def log(self, run_id: str) -> list[v1.Event]:
        return await self.mesh.list_events(run_id)

    async def kinds(self, run_id: str) -> list[str]:
        return [event.WhichOneof("kind") or "" for event in await self.log(run_id)]

    async def check(self) -> None:
        """What every case ends with: logs without a gap, one terminal event a stretch and last, no task, no open span."""
        for run in await self.mesh.list_runs():
            check_log(await self.log(run.run_id), run)
        await self.clock.settle()
        left = {
            task for task in asyncio.all_tasks() if "hocket" in task.get_name() or "hocket" in repr(task.get_coro())
        }
        assert not left, f"tasks are left: {left}"
        assert not self.spans.open, f"spans are open: {sorted(self.spans.open.values())}"


def check_log(events: list[v1.Event], run: v1.Run) -> None:
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert {event.run_id for event in events} <= {run.run_id}
    stretches: list[list[str]] = []
    for event in events:
        kind = event.WhichOneof("kind") or ""
        if kind in ("run_started", "run_resumed"):
            stretches.append([])
        stretches[-1].append(kind)
    for number, stretch in enumerate(stretches, start=1):
        is_last = number == len(stretches)
        ends = 1 if run.state in TERMINAL or not is_last else 0
        assert stretch.count("run_ended") == ends, f"stretch {number} of {run.run_id} has {stretch}"
        assert not ends or stretch[-1] == "run_ended", f"stretch {number} of {run.run_id} ends with {stretch[-1]}"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    tasks = asyncio.all_tasks()
    world = World()
    yield world
    await world.check()
    await world.mesh.close()
    await world.clock.settle()
    left = asyncio.all_tasks() - tasks - {asyncio.current_task()}
    assert not left, f"tasks are left: {left}"
    assert not world.clock.pending, "timers are left"
