"""B15: what happened before the end is seen before the end of the stream."""

from __future__ import annotations

from typing import Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.executor import Executor, handler
from tests.cases.conftest import World


class Pass(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)


class Raising(Executor):
    """Reports `reports` times, then raises."""

    def __init__(self, id: str, reports: int = 0) -> None:
        super().__init__(id)
        self.reports = reports

    @handler
    async def take(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        for number in range(self.reports):
            await ctx.report(number / self.reports, token=number)
        raise LookupError("nothing there")


async def test_b15_a_failure_comes_before_the_end_and_the_end_before_the_end_of_the_stream(world: World) -> None:
    stream = WorkflowBuilder(Raising("start")).build().run("x", stream=True, mesh=world.mesh)
    events = [event async for event in stream]
    assert [event.WhichOneof("kind") for event in events] == [
        "run_started",
        "superstep_started",
        "invocation_started",
        "invocation_failed",
        "run_ended",
    ]
    failed, ended = events[-2].invocation_failed, events[-1].run_ended
    assert (failed.node_id, failed.failure.type, failed.failure.message) == ("start", "LookupError", "nothing there")
    assert events[-2].invocation_id == f"{stream.run_id}/1/start"
    assert ended.state == v1.RUN_STATE_FAILED
    assert ended.failure.source == "start"
    with pytest.raises(LookupError, match="nothing there"):
        await stream.result()


async def test_b15_progress_of_a_handler_that_fails_is_seen_before_its_failure(world: World) -> None:
    nodes = [Pass("one"), Pass("two"), Raising("three", reports=3)]
    stream = WorkflowBuilder(nodes[0]).add_chain(nodes).build().run("x", stream=True, mesh=world.mesh)
    events = [event async for event in stream]
    kinds = [event.WhichOneof("kind") for event in events]
    assert kinds[-6:] == ["invocation_started", "progress", "progress", "progress", "invocation_failed", "run_ended"]
    progress = [event for event in events if event.HasField("progress")]
    assert [event.progress.fraction for event in progress] == [0.0, 1 / 3, 2 / 3]
    assert {(event.invocation_id, event.attempt, event.sequence) for event in progress} == {
        (f"{stream.run_id}/3/three", 1, 0)
    }
    # What is durable is the same by list, and for a late reader.
    durable = [event for event in events if event.sequence]
    assert durable == await world.log(stream.run_id)
    late = [event async for batch in world.mesh.embedded.watch(stream.run_id) for event in batch]
    assert late == durable
