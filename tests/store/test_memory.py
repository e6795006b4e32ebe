"""The memory store keeps the word of every store, within its bounds."""

from __future__ import annotations

import asyncio

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import CursorExpiredError, NotFoundError
from hocket.executor import Executor, handler, response_handler
from hocket.mesh import Mesh
from hocket_server.store.memory import MemoryStore
from hocket_server.store.protocol import Store
from tests.store.conformance import StoreConformance, Tale, completed, log, standing, started


class TestMemory(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


async def test_the_newest_events_are_kept_and_a_cursor_before_them_has_expired() -> None:
    store = MemoryStore(max_events=100)
    tale = await Tale(store, "run").begin()
    for number in range(500):
        await tale.tell(completed(number))
        if number % 10 == 9:
            kept = await newest(store)
            assert min(number + 1, 100) <= len(kept) <= 125
            assert kept == tale.events[-len(kept) :]
    assert (await store.run("run")).last_sequence == 500
    oldest = (await newest(store))[0].sequence
    with pytest.raises(CursorExpiredError, match=f"oldest left is {oldest}"):
        await store.log("run", oldest - 2, 10)
    assert await log(store, "run", oldest - 1, 1) == [tale.events[oldest - 1]]


async def newest(store: Store) -> list[v1.Event]:
    """All that can still be read."""
    after = 0
    while True:
        try:
            return await log(store, "run", after)
        except CursorExpiredError:
            after += 1


async def test_the_oldest_of_ended_runs_leave_when_another_begins() -> None:
    store = MemoryStore(max_ended=3)
    for number in range(6):
        await (await Tale(store, f"run{number}").begin()).end()
    await store.create(started("last"), 1)
    assert [run.run_id for run in await store.runs()] == ["last", "run5", "run4", "run3"]
    with pytest.raises(NotFoundError):
        await store.load("run0")


async def test_runs_that_go_on_or_wait_are_never_evicted() -> None:
    store = MemoryStore(max_ended=2)
    waiting = await Tale(store, "waiting").begin()
    await store.commit("waiting", [waiting.entry(completed(1))], standing(v1.RUN_STATE_WAITING))
    await (await Tale(store, "running").begin()).tell(completed(1))
    resumed = await Tale(store, "resumed").begin()
    await resumed.end(v1.RUN_STATE_FAILED)
    await resumed.tell(completed(2))
    for number in range(20):
        await (await Tale(store, f"run{number}").begin()).end()
    assert {"waiting", "running", "resumed"} <= {run.run_id for run in await store.runs()}


async def test_the_last_two_snapshots_and_all_since_the_older_can_be_loaded() -> None:
    store = MemoryStore()
    tale = await Tale(store, "run").begin()
    for number in range(60):
        snapshot = v1.Snapshot(latest_checkpoint_id=f"run/{number}") if number in (10, 30, 50) else None
        await tale.tell(completed(number), checkpoint_id=f"run/{number}", snapshot=snapshot)
    for number in range(30, 60):
        await store.load_checkpoint(f"run/{number}")
    for number in (0, 10, 29):
        with pytest.raises(NotFoundError, match="checkpoint"):
            await store.load_checkpoint(f"run/{number}")
    assert [checkpoint.superstep for checkpoint in await store.checkpoints("run")] == list(range(30, 60))
    assert len((await store.load("run")).inputs) == 9


# The bounds as a user of a mesh meets them.


class Count(Executor):
    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        if number:
            await ctx.send_message(number - 1)
        else:
            await ctx.yield_output(number)


@pytest.mark.filterwarnings("ignore::hocket.errors.DefinitionWarning")
async def test_a_long_run_ends_with_the_newest_ten_thousand_events() -> None:
    count = Count("count")
    workflow = WorkflowBuilder(count, max_supersteps=5000).add_edge(count, count).build()
    async with Mesh() as mesh:
        result = await workflow.run(3500, mesh=mesh, run_id="long")
        assert result.get_outputs() == [0]
        assert len(result.events) == 10_000
        last = result.run.last_sequence
        assert [event.sequence for event in result.events] == list(range(last - 9_999, last + 1))
        with pytest.raises(CursorExpiredError):
            await mesh.list_events("long")
        checkpoints = await mesh.list_checkpoints("long")
        assert checkpoints[-1].checkpoint_id == result.checkpoint_id
        # The oldest that is listed can be forked and ends as its run did.
        fork = await workflow.run(checkpoint_id=checkpoints[0].checkpoint_id, mesh=mesh)
        assert fork.get_outputs() == [0]


async def test_a_burst_of_runs_beyond_the_bound_gives_every_caller_its_result() -> None:
    """They all end before the first of their callers gets the loop."""
    count = Count("count")
    workflow = WorkflowBuilder(count).build()
    async with Mesh() as mesh:
        results = await asyncio.gather(*(workflow.run(0, mesh=mesh) for _ in range(1500)))
        assert [result.get_outputs() for result in results] == [[0]] * 1500
        again = await asyncio.gather(*(workflow.run(0, mesh=mesh) for _ in range(1500)))
        assert [result.get_outputs() for result in again] == [[0]] * 1500
        await workflow.run(0, mesh=mesh)
        assert len(await mesh.list_runs()) <= 1001


class Asking(Executor):
    @handler
    async def ask(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.request_info(number, int)

    @response_handler
    async def answered(self, question: int, answer: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(question + answer)


async def test_a_run_that_waits_outlives_any_number_of_others() -> None:
    asking = WorkflowBuilder(Asking("asking")).build()
    count = WorkflowBuilder(Count("count")).build()
    async with Mesh() as mesh:
        waiting = await asking.run(40, mesh=mesh, run_id="waiting")
        for _ in range(1200):
            await count.run(0, mesh=mesh)
        done = await asking.run(responses={waiting.questions[0].question_id: 2}, mesh=mesh)
        assert done.get_outputs() == [42]
