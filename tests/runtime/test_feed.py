"""The feed: a cursor on the log with live signs beside it, which costs a run nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import NotFoundError
from hocket.executor import Executor, RetryPolicy, handler, response_handler
from hocket.mesh import Mesh
from hocket_server.runtime import feed as feed_module
from tests.runtime.conftest import Stage


class Reporting(Executor):
    """Reports the numbers it is let report."""

    def __init__(self) -> None:
        super().__init__("reporting")
        self.numbers: asyncio.Queue[int] = asyncio.Queue()

    @handler
    async def report(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        while (number := await self.numbers.get()) >= 0:
            await ctx.report(number=number)
        await ctx.yield_output(text)


def numbers(mesh: Mesh, workflow_events: list[v1.Event]) -> list[int]:
    from hocket.payload import Codec

    return [Codec().decode(event.progress.details)["number"] for event in workflow_events if event.HasField("progress")]


async def test_live_signs_come_at_once_and_durable_events_in_sequence(stage: Stage) -> None:
    reporting = Reporting()
    stream = WorkflowBuilder(reporting).build().run("x", stream=True, mesh=stage.mesh)
    events: AsyncIterator[v1.Event] = aiter(stream)
    seen = [await anext(events) for _ in range(3)]
    assert [event.sequence for event in seen] == [1, 2, 3]
    for number in range(3):
        reporting.numbers.put_nowait(number)
        event = await anext(events)
        assert (event.sequence, event.run_id) == (0, stream.run_id)
        assert event.invocation_id == f"{stream.run_id}/1/reporting"
        assert event.HasField("time")
    reporting.numbers.put_nowait(-1)
    rest = [event async for event in events]
    assert [event.sequence for event in rest] == list(range(4, 4 + len(rest)))
    assert rest[-1].HasField("run_ended")


async def test_live_signs_are_never_stored(stage: Stage) -> None:
    reporting = Reporting()
    for number in (1, 2, -1):
        reporting.numbers.put_nowait(number)
    result = await WorkflowBuilder(reporting).build().run("x", mesh=stage.mesh)
    assert all(event.sequence for event in result.events)
    assert not [event for event in result.events if event.HasField("progress")]


async def test_a_slow_reader_loses_live_signs_first_and_no_event(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "MAX_LIVE", 5)
    reporting = Reporting()
    workflow = WorkflowBuilder(reporting).build()
    feed = stage.mesh.embedded.feed
    slow, fast = feed.attach("run"), feed.attach("run")
    running = asyncio.create_task(workflow.run("x", mesh=stage.mesh, run_id="run"))
    fast_events: list[v1.Event] = []

    async def read_fast() -> None:
        async for batch in fast.batches():
            fast_events.extend(batch)

    reading = asyncio.create_task(read_fast())
    for number in range(20):
        reporting.numbers.put_nowait(number)
        await stage.clock.settle()
    reporting.numbers.put_nowait(-1)
    await running
    await reading
    slow_events = [event async for batch in slow.batches() for event in batch]
    assert numbers(stage.mesh, fast_events) == list(range(20)), "one reader does not slow another"
    assert numbers(stage.mesh, slow_events) == list(range(15, 20)), "the newest are kept"
    assert slow.dropped == 15
    for events in (slow_events, fast_events):
        durable = [event for event in events if event.sequence]
        assert durable == await stage.mesh.list_events("run")
    slow.close()
    fast.close()
    assert feed._readers == {}


async def test_live_signs_stand_with_their_attempt(stage: Stage) -> None:
    """A reader that comes to the loop late gets what an attempt reported before the attempt's end."""

    class Twice(Executor):
        @handler
        async def work(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.report(number=ctx.attempt)
            if ctx.attempt < 3:
                raise ValueError("again")

    workflow = WorkflowBuilder(Twice("twice", retry=RetryPolicy(1, max_attempts=3))).build()
    reader = stage.mesh.embedded.feed.attach("run")
    running = asyncio.create_task(workflow.run("x", mesh=stage.mesh, run_id="run"))
    await stage.clock.advance(60)
    await running
    events = [event async for batch in reader.batches() for event in batch]
    reader.close()
    kinds = [event.WhichOneof("kind") for event in events]
    attempt = ["invocation_started", "progress", "invocation_failed"]
    assert kinds[2:11] == [*attempt, *attempt, "invocation_started", "progress", "invocation_completed"]
    assert numbers(stage.mesh, events) == [1, 2, 3]


async def test_a_reader_that_comes_late_or_again_goes_on_after_its_cursor(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "BATCH", 3)
    reporting = Reporting()
    reporting.numbers.put_nowait(-1)
    await WorkflowBuilder(reporting).build().run("x", mesh=stage.mesh, run_id="run")
    log = await stage.mesh.list_events("run")
    for after in range(len(log) + 1):
        batches = [batch async for batch in stage.mesh.embedded.watch("run", after)]
        assert [event for batch in batches for event in batch] == log[after:]
        assert all(len(batch) <= 3 for batch in batches)


async def test_leaving_early_detaches_and_the_run_goes_on(stage: Stage) -> None:
    reporting = Reporting()
    stream = WorkflowBuilder(reporting).build().run("x", stream=True, mesh=stage.mesh)
    async for event in stream:
        if event.HasField("invocation_started"):
            break
    await stage.clock.settle()
    assert stage.mesh.embedded.feed._readers == {}
    reporting.numbers.put_nowait(-1)
    assert (await stream.result()).outcome == "COMPLETED"
    rest = [event.sequence async for event in stream]
    assert rest == list(range(4, rest[-1] + 1)), "iterated again it goes on where it was left"


async def test_an_unknown_run_is_not_found_and_leaves_no_reader(stage: Stage) -> None:
    with pytest.raises(NotFoundError):
        await anext(aiter(stage.mesh.embedded.watch("nobody")))
    await stage.clock.settle()
    assert stage.mesh.embedded.feed._readers == {}


class Asking(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.report(number=1)
        await ctx.yield_output(answer)


async def test_a_stream_ends_when_its_run_waits_and_another_begins_with_the_answers(stage: Stage) -> None:
    workflow = WorkflowBuilder(Asking("asking")).build()
    async with asyncio.timeout(2):
        stream = workflow.run("ok?", stream=True, mesh=stage.mesh)
        first = [event async for event in stream]
        waiting = await stream.result()
        assert waiting.outcome == "WAITING"
        answering = workflow.run(responses={waiting.questions[0].question_id: "yes"}, stream=True, mesh=stage.mesh)
        second = [event async for event in answering]
    assert first[-1].HasField("superstep_completed")
    assert answering.run_id == stream.run_id
    durable = [event for event in second if event.sequence]
    assert durable[0].HasField("question_answered")
    assert [event.sequence for event in (*first, *durable)] == list(range(1, len(first) + len(durable) + 1))
    assert (await answering.result()).get_outputs() == ["yes"]


async def test_a_reader_of_the_feed_itself_stays_while_its_run_waits(stage: Stage) -> None:
    workflow = WorkflowBuilder(Asking("asking")).build()
    waiting = await workflow.run("ok?", mesh=stage.mesh, run_id="run")
    kinds: list[str] = []

    async def read() -> None:
        async for batch in stage.mesh.embedded.watch("run"):
            kinds.extend(event.WhichOneof("kind") or "" for event in batch)

    reading = asyncio.create_task(read())
    await stage.clock.settle()
    assert not reading.done()
    await stage.mesh.answer("run", waiting.questions[0].question_id, "yes")
    async with asyncio.timeout(2):
        await reading
    assert kinds[-1] == "run_ended"


async def test_a_stream_that_is_iterated_and_awaited_at_once_is_one_run(stage: Stage) -> None:
    reporting = Reporting()
    reporting.numbers.put_nowait(-1)
    stream = WorkflowBuilder(reporting).build().run("x", stream=True, mesh=stage.mesh)

    async def read() -> list[int]:
        return [event.sequence async for event in stream]

    sequences, result = await asyncio.gather(read(), stream.result())
    assert len(await stage.mesh.list_runs()) == 1
    assert sequences == [event.sequence for event in result.events]
