"""What a user tests executors and workflows with: one handler by itself, a clock turned by hand, logs compared (G9)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any, Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import EffectError, PayloadError
from hocket.executor import Executor, RetryPolicy, executor, handler, response_handler
from hocket.mesh import Mesh
from hocket.testing import DELETED, Asked, FakeClock, HandedOff, canonical, run_handler
from hocket.workflow import Workflow

# One handler


class Everything(Executor):
    @handler
    async def do(self, text: str, ctx: WorkflowContext[str | int, str]) -> None:
        await ctx.send_message(text.upper())
        await ctx.send_message(1, target_id="other")
        await ctx.yield_output(f"{ctx.get_state('name', 'nobody')} {ctx.get_private()} {ctx.config}")
        await ctx.set_state("a", [1])
        await ctx.delete_state("b")
        await ctx.set_private({"count": 2})
        await ctx.request_info("sure?", bool, request_id="sure", expires_in=90, default=False)
        await ctx.add_event("seen", text)
        await ctx.report(0.5, token="x")
        await ctx.hand_off("desk", "look at this", {"case": 7})

    @response_handler
    async def answered(self, question: str, answer: bool, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{question} {answer}")


async def test_all_that_a_handler_did_is_collected_as_values() -> None:
    collected = await run_handler(Everything("all"), "hi", state={"name": "Ada"}, private_state=1, config={"x": 1})
    assert collected.messages == [("HI", None), (1, "other")]
    assert collected.sent == ["HI", 1]
    assert collected.outputs == ["Ada 1 {'x': 1}"]
    assert collected.state_writes == [("a", [1]), ("b", DELETED)]
    assert collected.private_state == {"count": 2}
    assert collected.questions == [Asked("sure", "sure?", ("bool",), 90.0, False)]
    assert collected.events == [("seen", "hi")]
    assert collected.reports == [(0.5, {"token": "x"})]
    assert collected.handoff == HandedOff("desk", "look at this", {"case": 7})
    assert collected.suspended == []


async def test_a_response_handler_gets_its_question_with_the_answer() -> None:
    collected = await run_handler(Everything("all"), True, question="sure?")
    assert collected.outputs == ["sure? True"]


async def test_a_handler_that_asks_stops_until_its_answers_are_given() -> None:
    class Interview(Executor):
        @handler
        async def interview(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.set_state("never", "committed while it waits")
            name = ctx.ask("name?", str)
            age = ctx.ask("age?", int)
            await ctx.yield_output(f"{name} {age}")

    interview = Interview("interview")
    first = await run_handler(interview, "x")
    assert [asked.data for asked in first.suspended] == ["name?"]
    assert first.state_writes == first.outputs == []
    second = await run_handler(interview, "x", answers=["Ada"])
    assert [asked.data for asked in second.suspended] == ["age?"]
    third = await run_handler(interview, "x", answers=["Ada", 36])
    assert third.outputs == ["Ada 36"]
    assert third.suspended == []


async def test_a_fan_in_gets_its_list_and_who_sent_each() -> None:
    class Join(Executor):
        @handler
        async def join(self, numbers: list[int], ctx: WorkflowContext[Never, Any]) -> None:
            await ctx.yield_output([numbers, list(ctx.source_executor_ids)])

    collected = await run_handler(Join("join"), [1, 2, 3], sources=["a", "b", "a"])
    assert collected.outputs == [[[1, 2, 3], ["a", "b", "a"]]]
    with pytest.raises(ValueError, match="2 sources"):
        await run_handler(Join("join"), [1], sources=["a", "b"])


async def test_functions_and_plain_handlers_are_run_too() -> None:
    def double(number: int) -> int:
        return 2 * number

    assert (await run_handler(double, 4)).messages == [(8, None)]

    @executor(id="shout")
    async def shout(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"{text} from {ctx.source_executor_ids[0]}, attempt {ctx.attempt}")

    assert (await run_handler(shout, "hi", sources="me", attempt=3)).sent == ["hi from me, attempt 3"]


async def test_the_handler_s_own_error_is_raised() -> None:
    class Bad(Executor):
        @handler
        async def do(self, how: str, ctx: WorkflowContext[int]) -> None:
            if how == "raise":
                raise LookupError("mine")
            wrong: Any = "a text" if how == "undeclared" else object()
            await ctx.send_message(wrong)

    bad = Bad("bad")
    with pytest.raises(LookupError, match="mine"):
        await run_handler(bad, "raise")
    with pytest.raises(EffectError, match=r"Bad.do.*string"):
        await run_handler(bad, "undeclared")
    with pytest.raises(PayloadError):
        await run_handler(bad, "unknown")
    with pytest.raises(EffectError, match="no handler"):
        await run_handler(bad, 5)


# The clock


async def test_time_stands_still_until_it_is_told() -> None:
    clock = FakeClock(start=1_000)
    assert clock.now() == clock.now() == 1_000
    await clock.advance(1.5)
    assert clock.now() == 1_500_001_000


async def test_what_is_due_is_called_in_order_and_tasks_run_in_between() -> None:
    clock = FakeClock()
    begin = clock.now()
    seen: list[tuple[str, float]] = []

    def note(name: str) -> None:
        seen.append((name, (clock.now() - begin) / 1e9))

    async def chain() -> None:
        for _ in range(3):
            rung = asyncio.Event()
            clock.call_later(1, rung.set)
            await rung.wait()
            note("chain")

    task = asyncio.create_task(chain())
    clock.call_later(2.5, lambda: note("late"))
    clock.call_later(0.5, lambda: note("early"))
    clock.call_later(2.5, lambda: note("late, second"))
    cancelled = clock.call_later(1, lambda: note("never"))
    cancelled.cancel()
    assert clock.pending == 3
    await clock.advance(2.5)
    assert seen == [("early", 0.5), ("chain", 1.0), ("chain", 2.0), ("late", 2.5), ("late, second", 2.5)]
    assert not task.done()
    await clock.advance(0.5)
    assert seen[-1] == ("chain", 3.0)
    await task
    assert clock.pending == 0


async def test_a_call_that_is_due_at_once_waits_for_the_next_advance() -> None:
    clock = FakeClock(jitter=0.25)
    called: list[int] = []
    clock.call_later(-1, lambda: called.append(1))
    assert called == []
    await clock.advance(0)
    assert called == [1]
    assert clock.jitter() == 0.25


# Logs in canonical form


class Work(Executor):
    """Takes as many turns of the loop as it is told, and fails as often."""

    def __init__(self, id: str, turns: int = 0, failures: int = 0) -> None:
        super().__init__(id, retry=RetryPolicy(1, max_attempts=9))
        self.turns, self.failures = turns, failures

    @handler
    async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        if ctx.attempt <= self.failures:
            raise ConnectionError("again")
        await ctx.send_message(f"{text}>{self.id}")
        await ctx.yield_output(self.id)


class Join(Executor):
    @handler
    async def join(self, texts: list[str], ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output("+".join(texts))


def diamond(a: tuple[int, int], b: tuple[int, int]) -> Workflow:
    start, left, right = Work("start"), Work("left", *a), Work("right", *b)
    builder = WorkflowBuilder(start).add_fan_out_edges(start, [left, right])
    return builder.add_fan_in_edges([left, right], Join("join")).build()


async def log_of(workflow: Workflow, message: object = "x") -> list[v1.Event]:
    clock = FakeClock()
    async with Mesh(clock=clock) as mesh:
        running = asyncio.create_task(workflow.run(message, mesh=mesh))
        await clock.advance(600)
        return list((await running).events)


async def test_runs_that_differ_in_order_time_and_retries_are_equal_in_canonical_form() -> None:
    logs = [await log_of(diamond(a, b)) for a, b in [((0, 0), (9, 0)), ((9, 0), (0, 0)), ((0, 2), (3, 1))]]
    shown = [[event.WhichOneof("kind") for event in log] for log in logs]
    ends = [[event.invocation_completed.node_id for event in log] for log in logs]
    assert len({str(each) for each in (*shown, *ends)}) > 2, "the logs themselves differ"
    first, *others = [canonical(log) for log in logs]
    for other in others:
        assert other == first


async def test_runs_that_differ_in_what_they_did_differ_in_canonical_form() -> None:
    first = canonical(await log_of(diamond((0, 0), (0, 0))))
    assert canonical(await log_of(diamond((0, 0), (0, 0)), "y")) != first
    start = Work("start")
    assert canonical(await log_of(WorkflowBuilder(start).build())) != first


async def test_the_canonical_form_has_ids_relative_to_the_run_and_nothing_of_the_moment() -> None:
    log = await log_of(diamond((0, 1), (0, 0)))
    form = canonical(log)
    assert log[0].run_id not in str(form)
    assert "time" not in {key for event in form for key in event}
    starts = [event["invocation_id"] for event in form if "invocation_started" in event]
    assert starts == ["1/start", "2/left", "2/right", "3/join"]
    assert [next(iter(event.keys() - {"invocation_id"})) for event in form] == [
        "run_started",
        "superstep_started",
        "invocation_started",
        "invocation_completed",
        "output_yielded",
        "superstep_completed",
        "superstep_started",
        "invocation_started",
        "invocation_completed",
        "invocation_started",
        "invocation_completed",
        "output_yielded",
        "output_yielded",
        "superstep_completed",
        "superstep_started",
        "invocation_started",
        "invocation_completed",
        "output_yielded",
        "superstep_completed",
        "run_ended",
    ]


async def test_nested_runs_stand_between_the_start_and_the_end_of_their_node() -> None:
    def outer(turns: tuple[int, int]) -> Workflow:
        start = Work("start")
        inner = [
            WorkflowBuilder(Work(f"first {name}", turn), name=name)
            .add_edge(f"first {name}", Work(f"second {name}"))
            .build()
            for name, turn in zip("ab", turns, strict=True)
        ]
        return WorkflowBuilder(start, name="outer").add_fan_out_edges(start, inner).build()

    logs = [await log_of(outer(turns)) for turns in [(0, 7), (7, 0)]]
    assert [list(event.path) for event in logs[0]] != [list(event.path) for event in logs[1]]
    forms = [canonical(log) for log in logs]
    assert forms[0] == forms[1]
    paths = [event.get("path", []) for event in forms[0]]
    first_of_b = paths.index(["b"])
    assert ["a"] not in paths[first_of_b:]


async def test_concurrent_invocations_are_in_the_order_of_their_numbers() -> None:
    class Split(Executor):
        @handler
        async def split(self, count: int, ctx: WorkflowContext[int]) -> None:
            for number in range(count):
                await ctx.send_message(number)

    class Each(Executor):
        @handler
        async def each(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
            for _ in range(12 - number):
                await asyncio.sleep(0)
            await ctx.yield_output(number)

    split = Split("split")
    workflow = WorkflowBuilder(split).add_edge(split, Each("each", concurrency=4)).build()
    form = canonical(await log_of(workflow, 12))
    ends = [event["invocation_id"] for event in form if event.get("invocation_completed", {}).get("node_id") == "each"]
    assert ends == [f"2/each#{number}" for number in range(1, 13)]


def test_it_needs_no_server() -> None:
    program = (
        "import sys, hocket.testing; sys.exit(any(m.startswith('hocket_server') or m == 'grpc' for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
