"""A run as it happens: `Workflow.run(stream=True)`. What a reader of the feed gets is in `test_feed`."""

from __future__ import annotations

import asyncio

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import PayloadError
from hocket.executor import Executor, handler, response_handler
from hocket.mesh import Mesh
from hocket.testing import canonical
from tests.upper_reverse import upper_reverse


class Asking(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        for number in range(2):
            await ctx.request_info(f"{text}{number}?", str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question} {answer}")


async def test_a_stream_gives_every_event_and_then_the_result() -> None:
    workflow, mesh = upper_reverse(), Mesh()
    stream = workflow.run("hello", stream=True, mesh=mesh, run_id="run")
    assert stream.run_id == "run", "known before it has begun"
    events = [event async for event in stream]
    result = await stream.result()
    assert events == list(result.events)
    assert result.get_outputs() == ["OLLEH"]
    awaited = await workflow.run("hello", mesh=mesh)
    assert canonical(events) == canonical(awaited.events), "streamed or not, the log is the same"


async def test_a_stream_may_be_awaited_without_being_iterated() -> None:
    stream = upper_reverse().run("hello", stream=True)
    assert (await stream.result()).get_outputs() == ["OLLEH"]
    assert len([event async for event in stream]) == len((await stream.result()).events)


async def test_a_stream_of_a_run_that_cannot_begin_raises_where_it_is_used() -> None:
    mesh = Mesh()
    stream = upper_reverse().run(42, stream=True, mesh=mesh)
    for _ in range(2):
        with pytest.raises(PayloadError):
            await anext(aiter(stream))
        with pytest.raises(PayloadError):
            await stream.result()
    assert mesh.embedded.feed._readers == {}


async def test_a_fork_can_be_streamed() -> None:
    workflow, mesh = upper_reverse(), Mesh()
    await workflow.run("hello", mesh=mesh, run_id="source")
    stream = workflow.run(checkpoint_id="source/1", stream=True, mesh=mesh)
    events = [event async for event in stream]
    assert events[0].run_started.parent_checkpoint_id == "source/1"
    assert {event.run_id for event in events} == {stream.run_id}
    assert (await stream.result()).get_outputs() == ["OLLEH"]


async def test_a_question_seen_in_a_stream_can_be_answered_at_once() -> None:
    workflow, mesh = WorkflowBuilder(Asking("asking")).build(), Mesh()
    stream = workflow.run("q", stream=True, mesh=mesh)
    async with asyncio.timeout(2):
        async for event in stream:
            if event.HasField("question_asked"):
                await mesh.answer(stream.run_id, event.question_asked.question.question_id, "yes")
        while (await mesh.get_run(stream.run_id)).state != v1.RUN_STATE_COMPLETED:  # noqa: ASYNC110  # no event for it
            await asyncio.sleep(0)
        result = await stream.result()
    assert result.outcome in ("COMPLETED", "WAITING")
    assert len((await mesh.get_run(stream.run_id)).outputs) == 2
