"""What a handler is given: effects that wait for its end, state as it was committed, questions that stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import EffectError, PayloadError, RunFailedError
from hocket.executor import Executor, RetryPolicy, executor, handler, response_handler
from hocket.mesh import Mesh
from hocket.payload import Codec
from hocket.testing import DELETED, FakeClock, HandedOff, run_handler

Context = WorkflowContext[Any, Any]


class Do(Executor):
    """Does what the test says."""

    def __init__(self, act: Callable[[Context], Any], id: str = "do", **settings: Any) -> None:
        super().__init__(id, **settings)
        self.act = act

    @handler
    async def do(self, message: Any, ctx: WorkflowContext[Any, Any]) -> None:
        result = self.act(ctx)
        if asyncio.iscoroutine(result):
            await result


class DoPlain(Executor):
    def __init__(self, act: Callable[[Context], Any]) -> None:
        super().__init__("do")
        self.act = act

    @handler
    def do(self, message: Any, ctx: WorkflowContext[Any, Any]) -> None:
        self.act(ctx)


# Recording calls


async def test_every_recording_call_works_with_and_without_await() -> None:
    async def awaited(ctx: Context) -> None:
        await ctx.send_message(1)
        await ctx.yield_output(2)
        await ctx.set_state("k", 3)
        await ctx.delete_state("d")
        await ctx.set_private(4)
        await ctx.request_info("?", str)
        await ctx.add_event("e", 5)
        await ctx.report(0.5)
        await ctx.hand_off("desk", "go")

    def called(ctx: Context) -> None:
        ctx.send_message(1)
        ctx.yield_output(2)
        ctx.set_state("k", 3)
        ctx.delete_state("d")
        ctx.set_private(4)
        ctx.request_info("?", str)
        ctx.add_event("e", 5)
        ctx.report(0.5)
        ctx.hand_off("desk", "go")

    in_async = await run_handler(Do(awaited), "x")
    without = await run_handler(Do(called), "x")
    in_thread = await run_handler(DoPlain(called), "x")
    assert in_async == without == in_thread
    assert in_async.messages == [(1, None)]
    assert in_async.outputs == [2]
    assert in_async.state_writes == [("k", 3), ("d", DELETED)]
    assert in_async.private_state == 4
    assert in_async.events == [("e", 5)]
    assert in_async.reports == [(0.5, {})]
    assert in_async.handoff == HandedOff("desk", "go")


async def test_what_is_sent_is_what_it_was_when_it_was_sent() -> None:
    """Values are encoded at once: changing one afterwards changes nothing (architecture 1, payloads)."""

    def act(ctx: Context) -> None:
        value = [1]
        ctx.send_message(value)
        ctx.set_state("k", value)
        value.append(2)
        ctx.get_state("k").append(3)
        ctx.yield_output(ctx.get_state("k"))

    collected = await run_handler(Do(act), "x")
    assert collected.sent == [[1]]
    assert collected.outputs == [[1]]


async def test_effects_of_an_attempt_that_fails_are_gone() -> None:
    def act(ctx: Context) -> None:
        ctx.yield_output(f"attempt {ctx.attempt}")
        ctx.set_state("tries", ctx.attempt)
        ctx.add_event("tried", ctx.attempt)
        if ctx.attempt == 1:
            raise ConnectionError("once")

    clock = FakeClock()
    async with Mesh(clock=clock) as mesh:
        workflow = WorkflowBuilder(Do(act, retry=RetryPolicy(1, max_attempts=2))).build()
        running = asyncio.create_task(workflow.run("x", mesh=mesh))
        await clock.advance(5)
        result = await running
    assert result.get_outputs() == ["attempt 2"]
    assert result.state == {"tries": 2}
    assert len([event for event in result.events if event.HasField("custom")]) == 1


async def test_undeclared_types_are_refused_naming_handler_and_type() -> None:
    """G4, G14: when it is sent, with all that is declared."""

    class Strict(Executor):
        @handler
        async def work(self, how: str, ctx: WorkflowContext[int, bool]) -> None:
            wrong: Any = "text"
            number: Any = 1
            if how == "send":
                await ctx.send_message(wrong)
            await ctx.yield_output(number)

    with pytest.raises(EffectError, match=r"'Strict.work' sent 'string'.*declared: int"):
        await run_handler(Strict("strict"), "send")
    with pytest.raises(EffectError, match=r"'Strict.work' yielded 'int'.*declared: bool"):
        await run_handler(Strict("strict"), "yield")


async def test_a_subclass_of_a_declared_type_may_be_sent() -> None:
    @dataclass
    class Base:
        x: int

    @dataclass
    class Derived(Base):
        y: int

    class Sends(Executor):
        @handler
        async def work(self, text: str, ctx: WorkflowContext[Base]) -> None:
            await ctx.send_message(Derived(1, 2))

    collected = await run_handler(Sends("sends"), "x")
    assert collected.sent == [Derived(1, 2)]


# State, G22 to G25


async def test_a_handler_sees_what_was_committed_and_its_own_writes() -> None:
    def act(ctx: Context) -> None:
        seen = [ctx.get_state("a"), ctx.get_state("none", "default")]
        ctx.set_state("a", 2)
        seen.append(ctx.get_state("a"))
        ctx.delete_state("a")
        seen.append(ctx.get_state("a", "gone"))
        ctx.set_state("a", None)
        seen.append(ctx.get_state("a", "default for None"))
        ctx.yield_output(seen)

    collected = await run_handler(Do(act), "x", state={"a": 1})
    [seen] = collected.outputs
    assert seen[:4] == [1, "default", 2, "gone"]
    assert seen[4] is None, "None that was written is a value"


async def test_a_handler_sees_nothing_of_its_siblings() -> None:
    gate = asyncio.Event()

    async def write(ctx: Context) -> None:
        ctx.set_state("a", "written")
        gate.set()

    async def read(ctx: Context) -> None:
        await gate.wait()
        ctx.yield_output(ctx.get_state("a", "nothing"))
        ctx.send_message("next")

    async def read_later(ctx: Context) -> None:
        ctx.yield_output(ctx.get_state("a", "nothing"))

    start, reader, later = Do(lambda ctx: ctx.send_message(1), "start"), Do(read, "read"), Do(read_later, "later")
    workflow = (
        WorkflowBuilder(start).add_fan_out_edges(start, [Do(write, "write"), reader]).add_edge(reader, later).build()
    )
    result = await workflow.run("x", mesh=Mesh())
    assert result.get_outputs() == ["nothing", "written"]


async def test_writes_to_merged_keys_are_contributions() -> None:
    """G23: also when there is only one, and their own writer does not read them back."""

    def act(ctx: Context) -> None:
        seen = []
        for value in (2, 3):
            ctx.set_state("total", value)
            ctx.set_state("list", value)
            ctx.set_state("map", {str(value): value})
            seen.append([ctx.get_state("total", 0), ctx.get_state("list", []), ctx.get_state("map", {})])
        ctx.yield_output(seen)
        ctx.send_message("again")

    first, second = Do(act, "first"), Do(act, "second")
    policies: Any = {"total": "sum", "list": "append", "map": "merge"}
    workflow = WorkflowBuilder(first, state=policies).add_edge(first, second).build()
    result = await workflow.run("x", mesh=Mesh())
    assert result.get_outputs() == [[[0, [], {}]] * 2, [[5, [2, 3], {"2": 2, "3": 3}]] * 2]
    assert result.state == {"total": 10, "list": [2, 3, 2, 3], "map": {"2": 2, "3": 3}}


async def test_state_reads_limits_what_comes_along() -> None:
    def act(ctx: Context) -> None:
        ctx.yield_output(ctx.get_state("mine"))
        ctx.set_state("other", 1)  # writing is not limited
        ctx.get_state("other")

    with pytest.raises(EffectError, match=r"read state key 'other'; its state_reads are mine"):
        await run_handler(Do(act, state_reads=["mine"]), "x", state={"mine": 1})


async def test_private_state_lasts_for_the_run_and_is_of_one_node() -> None:
    def act(ctx: Context) -> None:
        count = ctx.get_private(0)
        ctx.set_private(count + 1)
        assert ctx.get_private() == count + 1
        ctx.yield_output(count)
        ctx.send_message("on")

    first, second = Do(act, "first"), Do(act, "second")
    workflow = (
        WorkflowBuilder(first)
        .add_edge(first, second, condition="superstep < 4")
        .add_edge(second, first, condition="superstep < 4")
        .build()
    )
    for _ in range(2):
        result = await workflow.run("x", mesh=Mesh())
        assert result.get_outputs() == [0, 0, 1, 1]


# Questions, G36


class Interview(Executor):
    """Asks twice, and notes how often it came how far."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__("interview")
        self.steps = steps

    @handler
    async def interview(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        _interview(self.steps, ctx)


class PlainInterview(Executor):
    def __init__(self, steps: list[str]) -> None:
        super().__init__("interview")
        self.steps = steps

    @handler
    def interview(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        _interview(self.steps, ctx)


def _interview(steps: list[str], ctx: Context) -> None:
    steps.append(f"attempt {ctx.attempt}")
    ctx.set_state("log", len(steps))
    name = ctx.ask("name?", str)
    steps.append(f"name {name}")
    age = ctx.ask(f"age of {name}?", int)
    steps.append(f"age {age}")
    ctx.yield_output(f"{name} is {age}")


@pytest.mark.parametrize("kind", [Interview, PlainInterview])
async def test_ask_stops_a_handler_and_runs_it_again_up_to_there(kind: Callable[[list[str]], Executor]) -> None:
    steps: list[str] = []
    async with Mesh() as mesh:
        workflow = WorkflowBuilder(kind(steps)).build()
        first = await workflow.run("x", mesh=mesh)
        assert (first.outcome, steps, first.state) == ("WAITING", ["attempt 1"], {})
        [question] = first.questions
        assert list(question.response_types) == ["string"]
        second = await workflow.run(responses={question.question_id: "Ada"}, mesh=mesh)
        [question] = second.questions
        assert first.decode(question.payload) == "age of Ada?"
        third = await workflow.run(responses={question.question_id: 36}, mesh=mesh)
    assert third.get_outputs() == ["Ada is 36"]
    assert third.state == {"log": 4}, "effects of the runs that stopped are gone"
    assert steps == ["attempt 1", "attempt 2", "name Ada", "attempt 3", "name Ada", "age 36"]
    suspended = [event for event in third.events if event.HasField("invocation_suspended")]
    assert len(suspended) == 2
    assert not [event for event in third.events if event.HasField("invocation_failed")], "no budget was charged"


async def test_except_exception_lets_a_handler_stop() -> None:
    def act(ctx: Context) -> None:
        try:
            ctx.yield_output(ctx.ask("?", str))
        except Exception:  # noqa: BLE001  # as users write it
            ctx.yield_output("swallowed")

    assert (await run_handler(Do(act), "x")).suspended
    assert (await run_handler(Do(act), "x", answers=["yes"])).outputs == ["yes"]


async def test_ask_has_a_default_at_its_expiry() -> None:
    def act(ctx: Context) -> None:
        ctx.yield_output(ctx.ask("?", str, expires_in=60, default="nobody"))

    clock = FakeClock()
    async with Mesh(clock=clock) as mesh:
        waiting = await WorkflowBuilder(Do(act)).build().run("x", mesh=mesh)
        await clock.advance(60)
        run = await mesh.get_run(waiting.run_id)
        assert [Codec().decode(payload) for payload in run.outputs] == ["nobody"]


async def test_a_falsy_answer_is_an_answer() -> None:
    def act(ctx: Context) -> None:
        ctx.yield_output([ctx.ask("a?", int), ctx.ask("b?", str), ctx.ask("c?", bool)])

    assert (await run_handler(Do(act), "x", answers=[0, "", False])).outputs == [[0, "", False]]


async def test_an_empty_list_answers_an_ask_for_a_list() -> None:
    def act(ctx: Context) -> None:
        ctx.yield_output(ctx.ask("which?", list[int]))

    async with Mesh() as mesh:
        workflow = WorkflowBuilder(Do(act)).build()
        waiting = await workflow.run("x", mesh=mesh)
        done = await workflow.run(responses={waiting.questions[0].question_id: []}, mesh=mesh)
    assert done.get_outputs() == [[]]


async def test_two_questions_under_one_id_are_refused() -> None:
    def act(ctx: Context) -> None:
        ctx.request_info("one?", str, request_id="mine")
        ctx.request_info("two?", str, request_id="mine")

    with pytest.raises(EffectError, match="'mine'"):
        await run_handler(Do(act), "x")


async def test_ids_made_of_ordinals_do_not_meet_those_that_were_given() -> None:
    def act(ctx: Context) -> None:
        ctx.request_info("one?", str, request_id="2")
        ctx.request_info("two?", str)

    assert len((await run_handler(Do(act), "x")).questions) == 2


async def test_ids_of_ask_and_of_request_info_do_not_meet() -> None:
    """B13: ids are unique inside one invocation."""

    class Both(Executor):
        @handler
        async def both(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            name = ctx.ask("name?", str)
            await ctx.request_info(f"sure, {name}?", str)

        @response_handler
        async def answered(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(f"{question} {answer}")

    async with Mesh() as mesh:
        workflow = WorkflowBuilder(Both("both")).build()
        waiting = await workflow.run("x", mesh=mesh)
        again = await workflow.run(responses={waiting.questions[0].question_id: "Ada"}, mesh=mesh)
        assert again.questions[0].question_id != waiting.questions[0].question_id


async def test_response_types_name_what_an_answer_may_be() -> None:
    def act(ctx: Context) -> None:
        ctx.request_info("?", int | str)
        ctx.request_info("?", Any)
        ctx.request_info("?", list[int])

    questions = (await run_handler(Do(act), "x")).questions
    assert [sorted(question.response_types) for question in questions] == [["int", "string"], [], ["list<int>"]]


# Reading


async def test_what_a_handler_may_ask_about_itself() -> None:
    seen: dict[str, Any] = {}

    def act(ctx: Context) -> None:
        seen.update(
            id=ctx.invocation_id,
            attempt=ctx.attempt,
            run=ctx.run_id,
            config=ctx.config,
            deadline=ctx.deadline,
            failure=ctx.last_failure,
            progress=ctx.last_progress,
            cancelled=ctx.cancelled,
            sources=list(ctx.source_executor_ids),
        )

    failure = v1.Failure(message="before")
    await run_handler(
        Do(act), "x", attempt=2, config={"k": 1}, timeout=30, last_failure=failure, last_progress={"page": 3}
    )
    assert (seen["attempt"], seen["config"], seen["failure"], seen["progress"]) == (2, {"k": 1}, failure, {"page": 3})
    assert seen["id"].startswith(seen["run"])
    assert seen["cancelled"] is False
    assert seen["sources"] == []
    assert timedelta(0) < seen["deadline"] - datetime.now(UTC) <= timedelta(seconds=30)
    await run_handler(Do(act), "x")
    assert (seen["deadline"], seen["config"], seen["failure"], seen["progress"]) == (None, None, None, None)


async def test_the_id_is_the_same_in_every_attempt_and_the_next_is_told_of_the_one_before() -> None:
    seen: list[tuple[str, int, str, Any]] = []

    def act(ctx: Context) -> None:
        before = ctx.last_failure.message if ctx.last_failure else ""
        seen.append((ctx.invocation_id, ctx.attempt, before, ctx.last_progress))
        ctx.report(page=ctx.attempt * 10)
        if ctx.attempt < 3:
            raise ConnectionError(f"no {ctx.attempt}")

    clock = FakeClock()
    async with Mesh(clock=clock) as mesh:
        workflow = WorkflowBuilder(Do(act, retry=RetryPolicy(1, max_attempts=3))).build()
        running = asyncio.create_task(workflow.run("x", mesh=mesh, run_id="run"))
        await clock.advance(10)
        await running
    assert seen == [
        ("run/1/do", 1, "", None),
        ("run/1/do", 2, "no 1", {"page": 10}),
        ("run/1/do", 3, "no 2", {"page": 20}),
    ]


async def test_who_sent_what() -> None:
    seen: list[list[str]] = []

    @executor(id="split")
    async def split(text: str) -> str:
        return text

    def send(ctx: Context) -> None:
        seen.append(list(ctx.source_executor_ids))
        ctx.send_message("x")
        ctx.send_message("y")

    class Join(Executor):
        @handler
        async def join(self, texts: list[str], ctx: WorkflowContext[Never, str]) -> None:
            seen.append(list(ctx.source_executor_ids))

    a, b = Do(send, "a"), Do(send, "b")
    workflow = WorkflowBuilder(split).add_fan_out_edges(split, [a, b]).add_fan_in_edges([a, b], Join("join")).build()
    await workflow.run("x", mesh=Mesh())
    assert seen == [["split"], ["split"], ["a", "a", "b", "b"]]


# Handing off, G39


async def test_a_handoff_reaches_its_declared_target() -> None:
    desk = Do(lambda ctx: ctx.yield_output(list(ctx.source_executor_ids)), "desk")
    start = Do(lambda ctx: ctx.hand_off("desk", "take over"), "start", handoffs=[desk])
    result = await WorkflowBuilder(start).build().run("x", mesh=Mesh())
    assert result.get_outputs() == [["start"]]
    [handed] = [event.handed_off for event in result.events if event.HasField("handed_off")]
    assert (handed.from_id, handed.to_id, handed.task) == ("start", "desk", "take over")


async def test_an_invocation_hands_off_once_and_only_where_it_may() -> None:
    def twice(ctx: Context) -> None:
        ctx.hand_off("a")
        ctx.hand_off("b")

    with pytest.raises(EffectError, match="'a' already"):
        await run_handler(Do(twice), "x")
    workflow = WorkflowBuilder(Do(lambda ctx: ctx.hand_off("nowhere"))).build()
    with pytest.raises(RunFailedError, match="'nowhere'"):
        await workflow.run("x", mesh=Mesh())


async def test_a_message_goes_to_its_target_along_an_edge_only() -> None:
    """G14."""
    a, b = (Do(lambda ctx: ctx.yield_output(1), id) for id in "ab")
    start = Do(lambda ctx: ctx.send_message(1, target_id="b"), "start")
    result = await WorkflowBuilder(start).add_fan_out_edges(start, [a, b]).build().run("x", mesh=Mesh())
    yielded = [event.output_yielded.node_id for event in result.events if event.HasField("output_yielded")]
    assert yielded == ["b"]
    lost = Do(lambda ctx: ctx.send_message(1, target_id="start"), "start")
    with pytest.raises(RunFailedError, match="'start'"):
        await WorkflowBuilder(lost).add_edge(lost, a).build().run("x", mesh=Mesh())


async def test_values_that_cannot_travel_are_refused_in_every_call() -> None:
    bad = object()
    for act in (
        lambda ctx: ctx.send_message(bad),
        lambda ctx: ctx.yield_output([bad]),
        lambda ctx: ctx.set_state("k", {"k": bad}),
        lambda ctx: ctx.set_private(bad),
        lambda ctx: ctx.request_info(bad, str),
        lambda ctx: ctx.ask(bad, str),
        lambda ctx: ctx.add_event("e", bad),
        lambda ctx: ctx.report(detail=bad),
        lambda ctx: ctx.hand_off("desk", payload=bad),
    ):
        with pytest.raises(PayloadError):
            await run_handler(Do(act), "x")
