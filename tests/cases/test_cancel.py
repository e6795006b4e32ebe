"""B18, B20: a cancelled run leaves nothing behind, and no attempt runs beside the one before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import RunCancelledError, RunFailedError
from hocket.executor import Executor, OnStuck, RetryPolicy, handler
from hocket.workflow import Workflow
from tests.cases.conftest import World

# Three in line, cancelled in the second (B18).


class Slow(Executor):
    """Waits until it is let through, then appends to a list outside."""

    def __init__(self, id: str, gate: asyncio.Event, done: list[str]) -> None:
        super().__init__(id)
        self.gate, self.done = gate, done

    @handler
    async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await self.gate.wait()
        self.done.append(self.id)
        await ctx.send_message(text)


class Line:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.gates = {id: asyncio.Event() for id in ("first", "second", "third")}
        nodes = [Slow(id, gate, self.done) for id, gate in self.gates.items()]
        self.workflow: Workflow = WorkflowBuilder(nodes[0]).add_chain(nodes).build()


async def test_b18_cancelled_during_the_second_of_three(world: World) -> None:
    line = Line()
    running = asyncio.create_task(line.workflow.run("x", mesh=world.mesh, run_id="line"))
    line.gates["first"].set()
    await world.clock.settle()
    run = await world.mesh.cancel("line", "enough")
    with pytest.raises(RunCancelledError, match="enough"):
        await running
    assert (run.state, run.reason) == (v1.RUN_STATE_CANCELLED, "enough")
    assert line.done == ["first"]
    log = await world.log("line")
    assert [event.invocation_started.node_id for event in log if event.HasField("invocation_started")] == [
        "first",
        "second",
    ]
    failed = [event.invocation_failed for event in log if event.HasField("invocation_failed")]
    assert [(each.node_id, each.failure.kind) for each in failed] == [("second", v1.FAILURE_KIND_CANCELLED)]
    assert (await world.kinds("line"))[-1] == "run_ended"


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_b18_a_stream_that_is_left_cancels_only_when_asked_to(world: World, policy: str) -> None:
    line = Line()
    line.gates["first"].set()
    stream = line.workflow.run("x", stream=True, mesh=world.mesh)
    async for event in stream:
        if event.invocation_started.node_id == "second":
            break
    if policy == "cancel":
        await stream.cancel()
        with pytest.raises(RunCancelledError):
            await stream.result()
        assert line.done == ["first"]
    else:
        for gate in line.gates.values():
            gate.set()
        result = await stream.result()
        assert result.outcome == "COMPLETED"
        assert line.done == ["first", "second", "third"]
    await world.clock.settle()
    assert not world.mesh.embedded.feed._readers, "the reader is gone"


# B20: a blocking executor, a time-out, and what comes after


class Blocking(Executor):
    """A plain handler that blocks until it is let go, once for each attempt, and counts how many of it run."""

    def __init__(self, on_stuck: OnStuck) -> None:
        super().__init__("blocking", timeout=2, retry=RetryPolicy(1, 1, max_attempts=3), on_stuck=on_stuck)
        self.lock = threading.Lock()
        self.begun = self.over = self.most = 0
        self.let_go = threading.Semaphore(0)

    @handler
    def block(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        with self.lock:
            bump(self, begun=1)
        if not self.let_go.acquire(timeout=30):
            raise AssertionError("nobody let it go")
        with self.lock:
            bump(self, over=1)
        ctx.yield_output(f"attempt {ctx.attempt}")


def bump(blocking: Blocking, *, begun: int = 0, over: int = 0) -> None:
    blocking.begun += begun
    blocking.over += over
    blocking.most = max(blocking.most, blocking.begun - blocking.over)


@pytest.fixture
def blocked() -> Iterator[list[Blocking]]:
    """Whatever a test asserts, no thread stays."""
    made: list[Blocking] = []
    yield made
    for each in made:
        for _ in range(10):
            each.let_go.release()


async def thread_has(blocking: Blocking, *, begun: int = 0, over: int = 0) -> None:
    """Threads are not turned by the clock: look until they are there."""
    async with asyncio.timeout(10):
        while blocking.begun < begun or blocking.over < over:  # noqa: ASYNC110  # threads set no event of the loop
            await asyncio.sleep(0.0005)
    await asyncio.sleep(0.001)


def failures(log: list[v1.Event]) -> list[tuple[int, bool]]:
    return [
        (event.attempt, event.invocation_failed.will_retry)
        for event in log
        if event.HasField("invocation_failed") and event.invocation_failed.failure.kind == v1.FAILURE_KIND_TIMEOUT
    ]


async def test_b20_by_default_the_next_attempt_waits_for_the_one_that_is_stuck(
    world: World, blocked: list[Blocking]
) -> None:
    blocking = Blocking("wait")
    blocked.append(blocking)
    running = asyncio.create_task(WorkflowBuilder(blocking).build().run("x", mesh=world.mesh, run_id="wait"))
    await world.clock.settle()
    for attempt in (1, 2):
        await thread_has(blocking, begun=attempt)
        await world.clock.advance(10)
        assert blocking.begun == attempt, "time-outs pass, and no second attempt begins beside it"
        assert len(failures(await world.log("wait"))) == attempt - 1, "its end is told when it has ended"
        blocking.let_go.release()
        await thread_has(blocking, over=attempt)
        await world.clock.advance(1)  # the interval before the next
    await thread_has(blocking, begun=3)
    blocking.let_go.release()
    result = await running
    assert result.get_outputs() == ["attempt 3"], "results of attempts that are out of time count for nothing"
    assert failures(list(result.events)) == [(1, True), (2, True)]
    assert (blocking.most, blocking.begun, blocking.over) == (1, 3, 3)


async def test_b20_attempts_overlap_where_it_is_declared(world: World, blocked: list[Blocking]) -> None:
    blocking = Blocking("overlap")
    blocked.append(blocking)
    running = asyncio.create_task(WorkflowBuilder(blocking).build().run("x", mesh=world.mesh, run_id="overlap"))
    await world.clock.settle()
    await thread_has(blocking, begun=1)
    await world.clock.advance(2 + 10 + 1)  # the time-out, the grace, the interval
    await thread_has(blocking, begun=2)
    assert blocking.over == 0, "the first still runs"
    for _ in range(2):
        blocking.let_go.release()
    result = await running
    assert result.get_outputs() == ["attempt 2"]
    assert failures(list(result.events)) == [(1, True)]
    assert blocking.most == 2
    await thread_has(blocking, over=2)


async def test_b20_a_node_that_may_neither_wait_nor_overlap_fails(world: World, blocked: list[Blocking]) -> None:
    blocking = Blocking("fail")
    blocked.append(blocking)
    running = asyncio.create_task(WorkflowBuilder(blocking).build().run("x", mesh=world.mesh, run_id="fail"))
    await world.clock.settle()
    await thread_has(blocking, begun=1)
    await world.clock.advance(2 + 10)
    with pytest.raises(RunFailedError, match="timeout of 2 s"):
        await running
    assert failures(await world.log("fail")) == [(1, False)]
    assert (blocking.begun, blocking.over) == (1, 0)
    blocking.let_go.release()
    await thread_has(blocking, over=1)
    await world.clock.settle()
    assert (await world.kinds("fail"))[-1] == "run_ended", "what it returns now is refused"
