"""B01 to B06: joins that starve, writers of one key, leaks between runs, many runs, the limit, exception groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Never

import pytest

from hocket import v1
from hocket.builder import MergePolicy, WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import DefinitionWarning, LimitReached, RunCancelledError, RunFailedError
from hocket.executor import Executor, RetryPolicy, executor, handler
from hocket.mesh import Mesh
from hocket.workflow import Workflow
from tests.cases.conftest import World

# B01: a fan-in whose sources are not all activated


@executor(id="start")
async def hand_on(number: int) -> int:
    return number


class Add(Executor):
    @handler
    async def add(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number + 1)


class Joining(Executor):
    @handler
    async def join(self, numbers: list[int], ctx: WorkflowContext[Never, list[int]]) -> None:
        await ctx.yield_output(numbers)


def even_and_odd(wait_for: Any, *, steps_of_a: int = 1) -> Workflow:
    """start sends even numbers along A, of `steps_of_a` nodes, and odd ones to B; join takes what comes of both."""
    a = [Add("A" if not step else f"A{step}") for step in range(steps_of_a)]
    b, join = Add("B"), Joining("join")
    return (
        WorkflowBuilder(hand_on)
        .add_edge(hand_on, a[0], condition="message % 2 == 0")
        .add_chain(a)
        .add_edge(hand_on, b, condition="message % 2 == 1")
        .add_fan_in_edges([a[-1], b], join, wait_for=wait_for)
        .build()
    )


async def test_b01_a_join_that_waits_for_all_fails_when_one_source_was_never_activated(world: World) -> None:
    with pytest.warns(DefinitionWarning, match="join"):
        workflow = even_and_odd("all")
    with pytest.raises(RunFailedError) as caught:
        await world.run(workflow, 4, run_id="starved")
    failure = caught.value.failure
    assert failure is not None
    assert (failure.kind, failure.source) == (v1.FAILURE_KIND_JOIN_STARVED, "join")
    assert "'join'" in failure.message
    assert "waits for B" in failure.message
    run = await world.mesh.get_run("starved")
    assert run.state == v1.RUN_STATE_FAILED
    assert "'join'" in run.reason
    assert not [event for event in await world.log("starved") if event.invocation_started.node_id == "join"]


@pytest.mark.parametrize(("number", "expected"), [(4, [5]), (5, [6])])
async def test_b01_a_join_of_what_is_reachable_fires_once_with_what_came(
    world: World, number: int, expected: list[int]
) -> None:
    result = await world.run(even_and_odd("reachable"), number)
    assert result.get_outputs() == [expected]
    assert [event.invocation_started.node_id for event in result.events].count("join") == 1
    assert result.run.superstep == 3, "the join fires as soon as nothing can reach the other source"


async def test_b01_a_reachable_join_waits_for_a_branch_that_is_three_supersteps_longer(world: World) -> None:
    result = await world.run(even_and_odd("reachable", steps_of_a=4), 4)
    assert result.get_outputs() == [[8]]
    assert result.run.superstep == 6


async def test_b01_a_reachable_join_takes_both_branches_together_whatever_their_length(world: World) -> None:
    long = [Add("long1"), Add("long2"), Add("long3"), Add("long4")]
    short, join = Add("short"), Joining("join")
    workflow = (
        WorkflowBuilder(hand_on)
        .add_fan_out_edges(hand_on, [long[0], short])
        .add_chain(long)
        .add_fan_in_edges([long[-1], short], join, wait_for="reachable")
        .build()
    )
    result = await world.run(workflow, 0)
    assert result.get_outputs() == [[4, 1]], "once, in declared order, though the short one came first"


# B02: two branches write one key


class Note(Executor):
    """Writes a key of its own and the shared one; "A" fails in its first attempt, after it has written."""

    @handler
    async def note(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.set_state(self.id, text)
        await ctx.set_state("notes", f"{text} of {self.id}")
        await ctx.yield_output(self.id)
        if self.id == "A" and ctx.attempt == 1:
            raise ConnectionError("the first attempt fails")


@executor(id="split")
async def split(text: str) -> str:
    return text


def noting(policies: Mapping[str, MergePolicy]) -> Workflow:
    a, b = Note("A", retry=RetryPolicy(max_attempts=2)), Note("B")
    builder = WorkflowBuilder(split, state=policies)
    return builder.add_fan_out_edges(split, [a, b]).build()


async def test_b02_a_retried_branch_is_one_writer_and_the_order_is_that_of_branches(world: World) -> None:
    result = await world.run(noting({"notes": "append"}), "note")
    # A finished last, being retried, and is first nevertheless.
    assert result.state == {"A": "note", "B": "note", "notes": ["note of A", "note of B"]}
    assert result.get_outputs() == ["A", "B"]
    completed = [event for event in result.events if event.HasField("invocation_completed")]
    assert [(event.invocation_completed.node_id, event.attempt) for event in completed] == [
        ("split", 1),
        ("B", 1),
        ("A", 2),
    ]


async def test_b02_without_a_merge_policy_two_writers_conflict_and_nothing_is_committed(world: World) -> None:
    workflow = noting({})
    with pytest.raises(RunFailedError) as caught:
        await world.run(workflow, "note", run_id="conflict")
    failure = caught.value.failure
    assert failure is not None
    assert failure.kind == v1.FAILURE_KIND_CONFLICT
    for named in ("'notes'", "'A'", "'B'"):
        assert named in failure.message
    kinds = await world.kinds("conflict")
    assert kinds.count("superstep_completed") == 1
    assert "output_yielded" not in kinds
    checkpoints = await world.mesh.list_checkpoints("conflict")
    assert [checkpoint.superstep for checkpoint in checkpoints] == [0, 1]
    assert await states_of(world.mesh, "conflict") == [[], []]


async def states_of(mesh: Mesh, run_id: str) -> list[list[str]]:
    """The keys of the state in each checkpoint of a run."""
    found = []
    for checkpoint in await mesh.list_checkpoints(run_id):
        saved = await mesh.embedded.store.load_checkpoint(checkpoint.checkpoint_id)
        scheduler = mesh.embedded.runs._replayed(saved, None)
        found.append(sorted(scheduler.shared_state))
    return found


# B03: state of a superstep that did not end well


class Flag(Executor):
    @handler
    async def act(self, how: str, ctx: WorkflowContext[Never, str]) -> None:
        if how == "calm":
            return
        await ctx.set_state("flag", 1)
        await ctx.set_private("mine")
        if how == "raise":
            raise ValueError("after writing")
        await asyncio.Event().wait()


class Sibling(Executor):
    @handler
    async def act(self, how: str, ctx: WorkflowContext[Never, str]) -> None:
        if how != "calm":
            await ctx.set_state("flag of the sibling", 1)
        await ctx.yield_output(repr(ctx.get_private()))


def flagging() -> Workflow:
    return WorkflowBuilder(split).add_fan_out_edges(split, [Flag("flag"), Sibling("sibling")]).build()


@pytest.mark.parametrize("how", ["raise", "hang"])
async def test_b03_a_run_sees_nothing_of_what_a_failed_or_cancelled_run_wrote(world: World, how: str) -> None:
    workflow = flagging()
    running = asyncio.create_task(workflow.run(how, mesh=world.mesh, run_id="first"))
    await world.clock.settle()
    if how == "hang":
        await world.mesh.cancel("first")
    with pytest.raises(ValueError if how == "raise" else RunCancelledError):
        await running
    completed = [event.invocation_completed.node_id for event in await world.log("first")]
    assert "sibling" in completed, "the sibling succeeded, and is not committed either"

    result = await world.run(workflow, "calm", run_id="second")
    assert result.state == {}
    assert result.get_outputs() == ["None"]
    assert await states_of(world.mesh, "second") == [[], [], []]
    assert await states_of(world.mesh, "first") == [[], []]


# B04: one definition, fifty runs


class Counter(Executor):
    """Counts its calls in the node's own state."""

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, tuple[int, int]]) -> None:
        count = ctx.get_private(0) + 1
        await asyncio.sleep(0)
        await ctx.set_private(count)
        if count < 5:
            await ctx.send_message(number)
        else:
            await ctx.yield_output((number, count))


@pytest.mark.filterwarnings("ignore::hocket.errors.DefinitionWarning")
async def test_b04_fifty_runs_at_once_of_one_definition_do_not_see_each_other(world: World) -> None:
    counter = Counter("counter")
    workflow = WorkflowBuilder(counter).add_edge(counter, counter).build()
    results = await asyncio.gather(*(workflow.run(number, mesh=world.mesh) for number in range(50)))
    assert [result.get_outputs() for result in results] == [[(number, 5)] for number in range(50)]
    assert len({result.run_id for result in results}) == 50
    assert {result.outcome for result in results} == {"COMPLETED"}


# B05: a cycle and its limit


class Paddle(Executor):
    @handler
    async def hit(self, ball: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(ball + 1)


def ping_pong(limit: int) -> Workflow:
    ping, pong = Paddle("ping"), Paddle("pong")
    return WorkflowBuilder(ping, max_supersteps=limit).add_edge(ping, pong).add_edge(pong, ping).build()


@pytest.mark.filterwarnings("ignore::hocket.errors.DefinitionWarning")
async def test_b05_the_limit_is_exact_is_an_outcome_of_its_own_and_can_be_raised(world: World) -> None:
    workflow = ping_pong(10)
    with pytest.raises(LimitReached, match="10 supersteps"):
        await world.run(workflow, 0, run_id="game")
    run = await world.mesh.get_run("game")
    assert (run.state, run.superstep) == (v1.RUN_STATE_LIMIT_REACHED, 10)
    assert not run.HasField("failure")
    assert (await world.kinds("game")).count("superstep_completed") == 10
    started = [event.superstep_started.superstep for event in await world.log("game")]
    assert max(started) == 10

    # The checkpoint is loadable: a fork of it begins behind superstep 10.
    with pytest.raises(LimitReached):
        await world.run(workflow, checkpoint_id="game/10", run_id="fork", max_supersteps=12)
    assert [e.superstep_started.superstep for e in await world.log("fork") if e.HasField("superstep_started")] == [
        11,
        12,
    ]

    with pytest.raises(LimitReached, match="20 supersteps"):
        await world.mesh.resume("game", max_supersteps=20)
    log = await world.log("game")
    supersteps = [event.superstep_started.superstep for event in log if event.HasField("superstep_started")]
    assert supersteps == list(range(1, 21)), "ten more, none of them twice"
    balls = [event.invocation_completed.messages[0].text for event in log if event.HasField("invocation_completed")]
    assert balls == [str(ball) for ball in range(1, 21)]


async def test_b05_a_graph_that_needs_exactly_the_limit_succeeds(world: World) -> None:
    nodes = [Add(f"n{number}") for number in range(9)]
    end = Ending("end")
    workflow = WorkflowBuilder(nodes[0], max_supersteps=10).add_chain([*nodes, end]).build()
    result = await world.run(workflow, 0)
    assert (result.outcome, result.get_outputs(), result.run.superstep) == ("COMPLETED", [9], 10)


class Ending(Executor):
    @handler
    async def end(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output(number)


# B06: exception groups


class RetryableError(Exception):
    pass


class FatalError(Exception):
    pass


class Group(Executor):
    """Three inner tasks; `errors` of them raise. Raises what `raising` makes instead, if it is given."""

    def __init__(self, *errors: Exception, raising: Callable[[], BaseException] | None = None) -> None:
        super().__init__("group", retry=RetryPolicy(max_attempts=3, non_retryable=[FatalError]))
        self.errors = errors
        self.raising = raising

    @handler
    async def work(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        if self.raising is not None:
            raise self.raising()

        async def fail(error: Exception) -> None:
            raise error

        async with asyncio.TaskGroup() as tasks:
            for error in self.errors:
                tasks.create_task(fail(error))
            tasks.create_task(asyncio.Event().wait())


async def test_b06_a_group_keeps_every_leaf_and_the_one_that_may_not_be_repeated_wins(world: World) -> None:
    retryable, fatal = RetryableError("again"), FatalError("never")
    workflow = WorkflowBuilder(Group(retryable, fatal)).build()
    with pytest.raises(ExceptionGroup) as caught:
        await world.run(workflow, "x", run_id="group")
    assert caught.value.exceptions == (retryable, fatal), "the original exceptions"
    run = await world.mesh.get_run("group")
    assert run.state == v1.RUN_STATE_FAILED
    assert [(leaf.type.rpartition(".")[2], leaf.message) for leaf in run.failure.leaves] == [
        ("RetryableError", "again"),
        ("FatalError", "never"),
    ]
    assert (await world.kinds("group")).count("invocation_started") == 1, "no retry"
    # Over the wire the leaves are repeated messages.
    assert len(v1.Failure.FromString(run.failure.SerializeToString()).leaves) == 2


async def test_b06_a_group_of_errors_that_may_all_be_repeated_is_repeated(world: World) -> None:
    workflow = WorkflowBuilder(Group(RetryableError("one"), RetryableError("two"))).build()
    with pytest.raises(ExceptionGroup):
        await world.run(workflow, "x", run_id="group")
    failed = [event for event in await world.log("group") if event.HasField("invocation_failed")]
    assert [event.attempt for event in failed] == [1, 2, 3]
    assert [event.invocation_failed.will_retry for event in failed] == [True, True, False]
    for event in failed:
        assert [leaf.message for leaf in event.invocation_failed.failure.leaves] == ["one", "two"]


@pytest.mark.parametrize("inner", [KeyboardInterrupt, asyncio.CancelledError, SystemExit])
async def test_b06_an_interrupt_in_a_group_is_a_cancellation_and_not_retried(
    world: World, inner: type[BaseException]
) -> None:
    def group() -> BaseException:
        return BaseExceptionGroup("several", [RetryableError("again"), BaseExceptionGroup("inner", [inner()])])

    workflow = WorkflowBuilder(Group(raising=group)).build()
    with pytest.raises(RunCancelledError):
        await world.run(workflow, "x", run_id="group")
    kinds = await world.kinds("group")
    assert kinds.count("invocation_started") == 1
    run = await world.mesh.get_run("group")
    assert run.state == v1.RUN_STATE_CANCELLED
    assert [leaf.type.rpartition(".")[2] for leaf in run.failure.leaves] == ["RetryableError", inner.__name__]
