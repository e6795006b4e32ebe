"""The driver: who carries a run, what it does with inputs that come meanwhile, and what happens when it cannot go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import RefusedError, RunCancelledError
from hocket.executor import Executor, RetryPolicy, handler, response_handler
from hocket.mesh import Mesh
from hocket.testing import FakeClock, canonical
from hocket.workflow import Workflow
from hocket_server.store.memory import MemoryStore
from tests.runtime.conftest import Stage

TRY_SOON = 2.0
"""Seconds of real time after which a test that would hang fails."""

SOON = 0.2
"""The same where it does hang for now."""


class Record(Executor):
    """Notes the task it runs in, and sends on."""

    def __init__(self, id: str, tasks: list[asyncio.Task[Any]]) -> None:
        super().__init__(id)
        self.tasks = tasks

    @handler
    async def record(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        await ctx.send_message(text)


class Gated(Executor):
    """Says that it has begun, and waits to be let on. `stubborn` ones go on when they are cancelled."""

    def __init__(self, id: str, *, stubborn: bool = False, **settings: Any) -> None:
        super().__init__(id, **settings)
        self.begun, self.gate, self.stubborn = asyncio.Event(), asyncio.Event(), stubborn
        self.cancelled: list[str] = []

    @handler
    async def wait(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.begun.set()
        while not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled.append(self.id)
                if not self.stubborn:
                    raise
        await ctx.set_state(self.id, text)
        await ctx.yield_output(f"{self.id}: {text}")


class Asking(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question} {answer}")


# Who carries a run


async def test_one_active_node_runs_without_a_task_of_its_own(stage: Stage) -> None:
    tasks: list[asyncio.Task[Any]] = []
    nodes = [Record(f"n{number}", tasks) for number in range(5)]
    await WorkflowBuilder(nodes[0]).add_chain(nodes).build().run("x", mesh=stage.mesh)
    assert len(tasks) == 5
    assert len(set(tasks)) == 1, "a chain is carried by one task"


async def test_nodes_side_by_side_run_in_tasks_of_their_own(stage: Stage) -> None:
    tasks: list[asyncio.Task[Any]] = []
    first, *others = nodes = [Record(f"n{number}", tasks) for number in range(4)]
    await WorkflowBuilder(first).add_fan_out_edges(first, others).build().run("x", mesh=stage.mesh)
    assert len(set(tasks)) == len(nodes)


async def test_a_long_chain_lets_others_have_the_loop(stage: Stage) -> None:
    tasks: list[asyncio.Task[Any]] = []
    nodes = [Record(f"n{number}", tasks) for number in range(80)]
    running = asyncio.create_task(WorkflowBuilder(nodes[0]).add_chain(nodes).build().run("x", mesh=stage.mesh))
    seen = set()
    while not running.done():
        seen.add(len(tasks))
        await asyncio.sleep(0)
    assert len(seen) > 2, "another task saw it on its way"


async def test_an_input_that_comes_while_a_handler_runs_inline_is_acknowledged_at_once(stage: Stage) -> None:
    """The carrier is lent to the handler; whoever tells the run something does not wait for that."""
    gated = Gated("gated")

    class Both(Executor):
        @handler
        async def both(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.request_info(text, str)
            await ctx.send_message(text)

        @response_handler
        async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output(f"{question} {answer}")

    both = Both("both")
    workflow = WorkflowBuilder(both).add_edge(both, gated).build()
    running = asyncio.create_task(workflow.run("x", mesh=stage.mesh, run_id="run"))
    await gated.begun.wait()
    [question] = await stage.mesh.list_questions()
    async with asyncio.timeout(TRY_SOON):
        await stage.mesh.answer("run", question.question_id, "yes")
    assert not gated.gate.is_set()
    assert (await stage.kinds("run"))[-1] == "question_answered", "it is durable"
    gated.gate.set()
    result = await running
    assert sorted(result.get_outputs()) == ["gated: x", "x yes"]


async def test_a_cancel_reaches_a_handler_that_runs_inline(stage: Stage) -> None:
    gated = Gated("gated")
    running = asyncio.create_task(WorkflowBuilder(gated).build().run("x", mesh=stage.mesh, run_id="run"))
    await gated.begun.wait()
    async with asyncio.timeout(TRY_SOON):
        run = await stage.mesh.cancel("run", "stop")
    assert run.state == v1.RUN_STATE_CANCELLED
    assert gated.cancelled == ["gated"]
    with pytest.raises(RunCancelledError):
        await running


async def test_a_handler_that_swallows_its_cancellation_is_fenced_and_its_late_result_refused(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    gated = Gated("gated", stubborn=True)
    running = asyncio.create_task(WorkflowBuilder(gated).build().run("x", mesh=stage.mesh, run_id="run"))
    await gated.begun.wait()
    cancelling = asyncio.create_task(stage.mesh.cancel("run", grace=5))
    await stage.clock.advance(4.9)
    assert not cancelling.done(), "it has its grace time"
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_CANCELLING
    await stage.clock.advance(0.1)
    assert (await cancelling).state == v1.RUN_STATE_CANCELLED
    with pytest.raises(RunCancelledError):
        await running
    before = await stage.mesh.list_events("run")
    gated.gate.set()
    await stage.clock.settle()
    assert await stage.mesh.list_events("run") == before, "no trace of what it returned"
    assert "fenced" in caplog.text
    assert stage.own_tasks() == set()


async def test_a_result_in_the_grace_time_is_recorded_and_without_effect(stage: Stage) -> None:
    gated = Gated("gated", stubborn=True)
    running = asyncio.create_task(WorkflowBuilder(gated).build().run("x", mesh=stage.mesh, run_id="run"))
    await gated.begun.wait()
    cancelling = asyncio.create_task(stage.mesh.cancel("run", grace=5))
    await stage.clock.settle()
    gated.gate.set()
    assert (await cancelling).state == v1.RUN_STATE_CANCELLED
    with pytest.raises(RunCancelledError):
        await running
    kinds = await stage.kinds("run")
    assert kinds[-2:] == ["invocation_completed", "run_ended"]
    assert "output_yielded" not in kinds
    # Resumed, it runs again (G32).
    result = await stage.mesh.resume("run")
    assert result.get_outputs() == ["gated: x"]


async def test_a_run_goes_on_after_a_time_out_that_its_handler_swallowed(stage: Stage) -> None:
    """The cancellation was meant for the attempt, not for the task that carries the run on."""

    class Timed(Executor):
        attempts: list[int] = []  # noqa: RUF012  # of this test alone

        @handler
        async def work(self, text: str, ctx: WorkflowContext[str]) -> None:
            self.attempts.append(ctx.attempt)
            if ctx.attempt == 1:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return  # as badly behaved code does
            await ctx.send_message(text)

    class Inner(Executor):
        """Cancels from within, as a library may."""

        @handler
        async def work(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            try:
                async with asyncio.timeout(0):
                    await asyncio.Event().wait()
            except TimeoutError:
                await ctx.yield_output("timed out inside")

    timed = Timed("timed", timeout=1, retry=RetryPolicy(max_attempts=2))
    workflow = WorkflowBuilder(timed).add_edge(timed, Inner("inner")).build()
    running = asyncio.create_task(workflow.run("x", mesh=stage.mesh))
    await stage.clock.advance(5)
    async with asyncio.timeout(TRY_SOON):
        result = await running
    assert result.get_outputs() == ["timed out inside"]
    assert Timed.attempts == [1, 2]


# Commits


class Counting(MemoryStore):
    """Counts commits, gives others the loop in each, as a store on a disk does, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[int] = []
        self.fails_after: int | None = None
        self.blocks: asyncio.Event | None = None

    async def commit(self, run_id: str, entries: Sequence[Any], standing: Any) -> None:
        await asyncio.sleep(0)
        if self.fails_after is not None and len(self.commits) >= self.fails_after:
            raise OSError("no space left on the disk")
        self.commits.append(len(entries))
        await super().commit(run_id, entries, standing)

    async def load(self, run_id: str) -> Any:
        await asyncio.sleep(0)
        if self.blocks is not None:
            await self.blocks.wait()
        return await super().load(run_id)

    async def run(self, run_id: str) -> v1.Run:
        await asyncio.sleep(0)
        return await super().run(run_id)


@pytest.fixture
async def slow() -> AsyncIterator[tuple[Mesh, Counting]]:
    """A mesh on a store that takes its time."""
    mesh, store = Mesh(clock=FakeClock()), Counting()
    embedded = mesh.embedded
    embedded._store = embedded.feed.store = embedded.runs.store = store
    yield mesh, store
    await mesh.close()


def wide(width: int) -> Workflow:
    start = Record("start", [])
    others = [Record(f"n{number}", []) for number in range(width)]
    return WorkflowBuilder(start).add_fan_out_edges(start, others).build()


async def test_inputs_that_are_queued_share_a_commit(slow: tuple[Mesh, Counting]) -> None:
    mesh, store = slow
    await wide(50).run("x", mesh=mesh)
    assert sum(store.commits) == 52, "every input is journaled"
    assert len(store.commits) <= 6, f"50 completions took {store.commits}"


async def test_a_slow_store_changes_nothing(slow: tuple[Mesh, Counting], stage: Stage) -> None:
    mesh, _ = slow
    for workflow in (wide(5), question_and_answer()):
        logs = []
        for each in (mesh, stage.mesh):
            result = await workflow.run("x", mesh=each)
            if result.questions:
                result = await workflow.run(responses={result.questions[0].question_id: "yes"}, mesh=each)
            logs.append(canonical(result.events))
        assert logs[0] == logs[1]


def question_and_answer() -> Workflow:
    asking = Asking("asking")
    return WorkflowBuilder(asking).build()


async def test_two_that_wake_a_parked_run_at_once_wake_it_once(slow: tuple[Mesh, Counting]) -> None:
    """On a store that takes its time, two drivers of one run would write its log twice."""
    mesh, _ = slow

    class Two(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            for number in range(6):
                await ctx.request_info(f"{text}{number}", str)

        @response_handler
        async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output(f"{question}={answer}")

    workflow = WorkflowBuilder(Two("two")).build()
    waiting = await workflow.run("q", mesh=mesh, run_id="run")
    async with asyncio.timeout(TRY_SOON):
        # One after the other, each while the one before is on its way.
        answering = []
        for i, question in enumerate(waiting.questions):
            answering.append(asyncio.create_task(mesh.answer("run", question.question_id, str(i))))
            await asyncio.sleep(0)
        await asyncio.gather(*answering)
        while (await mesh.get_run("run")).state != v1.RUN_STATE_COMPLETED:  # noqa: ASYNC110  # a fake with no bell
            await asyncio.sleep(0)
    log = await mesh.list_events("run")
    assert [event.sequence for event in log] == list(range(1, len(log) + 1))
    assert sorted(payload.data for payload in (await mesh.get_run("run")).outputs) == [
        b'"q%d=%d"' % (i, i) for i in range(6)
    ]


# A driver that cannot go on


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_store_that_fails_is_an_error_for_who_waits_for_the_run(
    slow: tuple[Mesh, Counting], after: int
) -> None:
    mesh, store = slow
    store.fails_after = after
    nodes = [Record(f"n{number}", []) for number in range(3)]
    workflow = WorkflowBuilder(nodes[0]).add_chain(nodes).build()
    with pytest.raises(OSError, match="no space left"):
        async with asyncio.timeout(SOON):
            await workflow.run("x", mesh=mesh, run_id="run")


async def test_a_store_that_fails_is_an_error_for_who_told_the_run_something(slow: tuple[Mesh, Counting]) -> None:
    mesh, store = slow
    workflow = question_and_answer()
    waiting = await workflow.run("x", mesh=mesh, run_id="run")
    store.fails_after = 0
    with pytest.raises(OSError, match="no space left"):
        async with asyncio.timeout(SOON):
            await mesh.answer("run", waiting.questions[0].question_id, "yes")
    # The store has it as it was; when the store works again the run goes on from there.
    store.fails_after = None
    await mesh.answer("run", waiting.questions[0].question_id, "yes")
    async with asyncio.timeout(SOON):
        while (await mesh.get_run("run")).state != v1.RUN_STATE_COMPLETED:  # noqa: ASYNC110  # a fake with no bell
            await asyncio.sleep(0)
    log = await mesh.list_events("run")
    assert [event.sequence for event in log] == list(range(1, len(log) + 1))


async def test_what_comes_late_to_a_broken_driver_is_not_written_over_a_gap(slow: tuple[Mesh, Counting]) -> None:
    mesh, store = slow
    gates = [Gated("a"), Gated("b")]
    start = Record("start", [])
    workflow = WorkflowBuilder(start).add_fan_out_edges(start, gates).build()
    running = asyncio.create_task(workflow.run("x", mesh=mesh, run_id="run"))
    for gated in gates:
        await gated.begun.wait()
    store.fails_after = 0
    gates[0].gate.set()
    with pytest.raises(OSError, match="no space left"):
        async with asyncio.timeout(TRY_SOON):
            await running
    store.fails_after = None
    gates[1].gate.set()
    for _ in range(20):
        await asyncio.sleep(0)
    log = await mesh.list_events("run")
    assert [event.sequence for event in log] == list(range(1, len(log) + 1))


async def test_a_mesh_that_is_closed_leaves_nobody_waiting(stage: Stage) -> None:
    gated = Gated("gated")
    running = asyncio.create_task(WorkflowBuilder(gated).build().run("x", mesh=stage.mesh, run_id="run"))
    await gated.begun.wait()
    await stage.mesh.close()
    assert gated.cancelled == ["gated"]
    with pytest.raises(RefusedError, match="closed"):
        async with asyncio.timeout(TRY_SOON):
            await running


async def test_a_mesh_is_closed_while_a_timer_wakes_a_run(slow: tuple[Mesh, Counting]) -> None:
    mesh, store = slow
    workflow = WorkflowBuilder(Expiring("expiring")).build()
    waiting = await workflow.run("x", mesh=mesh, run_id="run")
    store.blocks = asyncio.Event()
    clock = mesh.embedded._clock
    assert isinstance(clock, FakeClock)
    await clock.advance(10)
    answering = asyncio.create_task(mesh.answer("run", waiting.questions[0].question_id, "yes"))
    await clock.settle()
    async with asyncio.timeout(TRY_SOON):
        await mesh.close()
        with pytest.raises(RefusedError, match="closed"):
            await answering
    assert (await mesh.get_run("run")).state == v1.RUN_STATE_WAITING


class Expiring(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.request_info(text, str, expires_in=10, default="none")

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(answer)


async def test_a_handler_that_raises_its_own_cancellation_ends_the_run_cancelled(stage: Stage) -> None:
    class Cancelling(Executor):
        @handler
        async def cancel(self, how: str, ctx: WorkflowContext[Never, str]) -> None:
            if how == "raise":
                raise asyncio.CancelledError
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    workflow = WorkflowBuilder(Cancelling("cancelling")).build()
    with pytest.raises(RunCancelledError):
        async with asyncio.timeout(TRY_SOON):
            await workflow.run("raise", mesh=stage.mesh)


@pytest.mark.parametrize("awaits", [True, False])
async def test_a_handler_that_cancels_its_own_task_does_not_hang_the_run(stage: Stage, awaits: bool) -> None:
    class Cancelling(Executor):
        @handler
        async def cancel(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            if awaits:
                await asyncio.sleep(0)

    workflow = WorkflowBuilder(Cancelling("cancelling")).build()
    async with asyncio.timeout(TRY_SOON):
        if awaits:
            with pytest.raises(RefusedError, match="interrupted"):
                await workflow.run("x", mesh=stage.mesh)
        else:
            # It had done its work before anybody noticed.
            await workflow.run("x", mesh=stage.mesh)


async def test_a_handler_may_cancel_the_run_it_belongs_to(stage: Stage) -> None:
    class Cancelling(Executor):
        @handler
        async def cancel(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            await stage.mesh.cancel(ctx.run_id, "from within")

    workflow = WorkflowBuilder(Cancelling("cancelling")).build()
    with pytest.raises(RunCancelledError, match="from within"):
        async with asyncio.timeout(TRY_SOON):
            await workflow.run("x", mesh=stage.mesh, run_id="run")
    assert (await stage.kinds("run"))[-1] == "run_ended"
