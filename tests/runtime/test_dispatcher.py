"""The dispatcher: one attempt, its time, its end, its span. Retries are the scheduler's."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from hocket import tracing, v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import RunExistsError
from hocket.executor import Executor, OnStuck, RetryPolicy, executor, handler, response_handler
from hocket.host import Host
from hocket.mesh import Mesh
from hocket.payload import Codec
from hocket.records import Completed, Effects, Failed, GraphPosition, Invocation, Live
from hocket.testing import FakeClock
from hocket_server.runtime.dispatcher import Dispatcher, Ended
from hocket_server.runtime.endpoints import LocalEndpoint

Act = Callable[[Invocation, Live], Awaitable[Completed | Failed]]


class Scripted:
    """An endpoint that does what the test says."""

    def __init__(self, act: Act) -> None:
        self.act = act

    def offers(self, executor_type: str) -> bool:
        return executor_type == "work"

    async def execute(self, invocation: Invocation, live: Live) -> Completed | Failed:
        return await self.act(invocation, live)


class Trial:
    """One attempt, and all that comes of it."""

    def __init__(self, act: Act, *, grace: float = 10, executor_type: str = "work", **settings: Any) -> None:
        self.clock = FakeClock()
        self.dispatcher = Dispatcher([Scripted(act)], self.clock, grace=grace)
        self.invocation = Invocation("run/1/n", 1, "run", GraphPosition(1, "n"), executor_type, [], **settings)
        self.fenced: list[Ended] = []
        self.signs: list[v1.Progress | v1.LiveEvent] = []
        self.result: asyncio.Future[Ended | None] = asyncio.get_running_loop().create_future()
        self.holder: list[asyncio.Task[None]] = []
        self.holder.append(asyncio.get_running_loop().create_task(self._run()))

    async def _run(self) -> None:
        ended = await self.dispatcher.attempt(
            self.invocation, self.holder[0], self.fenced.append, lambda _, sign: self.signs.append(sign)
        )
        self.result.set_result(ended)

    def failure(self) -> v1.Failure:
        ended = self.result.result()
        assert isinstance(ended, Failed)
        return ended.failure


def done(invocation: Invocation) -> Completed:
    return Completed(invocation.invocation_id, invocation.attempt, Effects())


async def hang(invocation: Invocation, live: Live) -> Completed | Failed:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


# Time


async def test_an_attempt_out_of_time_is_cancelled_and_fails_with_timeout() -> None:
    trial = Trial(hang, timeout=2.0)
    await trial.clock.advance(1.9)
    assert not trial.result.done()
    await trial.clock.advance(0.1)
    failure = trial.failure()
    assert (failure.kind, failure.type) == (v1.FAILURE_KIND_TIMEOUT, "TIMEOUT")
    assert "run/1/n" in failure.message
    assert "timeout of 2 s" in failure.message
    assert trial.dispatcher.attempts == {}
    assert trial.clock.pending == 0


async def test_an_attempt_in_time_leaves_no_timer() -> None:
    async def act(invocation: Invocation, live: Live) -> Completed:
        return done(invocation)

    trial = Trial(act, timeout=2.0, idle_timeout=1.0)
    await trial.clock.settle()
    assert isinstance(trial.result.result(), Completed)
    assert trial.clock.pending == 0


async def test_a_result_that_comes_after_the_deadline_is_none() -> None:
    async def act(invocation: Invocation, live: Live) -> Completed:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return done(invocation)

    trial = Trial(act, timeout=2.0)
    await trial.clock.advance(2)
    assert trial.failure().kind == v1.FAILURE_KIND_TIMEOUT


async def test_progress_renews_the_idle_timeout_and_not_the_timeout() -> None:
    beat = asyncio.Event()

    async def act(invocation: Invocation, live: Live) -> Completed:
        while True:
            await beat.wait()
            beat.clear()
            live(v1.Progress(fraction=0.5))

    trial = Trial(act, idle_timeout=3.0, timeout=10.0)
    for _ in range(4):
        await trial.clock.advance(2)
        beat.set()
        await trial.clock.settle()
    assert len(trial.signs) == 4
    assert not trial.result.done(), "8 s, and never 3 of them in silence"
    await trial.clock.advance(1.9)
    assert not trial.result.done()
    await trial.clock.advance(0.1)
    assert "timeout of 10 s" in trial.failure().message


async def test_a_silent_handler_is_over_its_idle_timeout_and_its_last_details_are_kept() -> None:
    details = Codec().encode({"page": 7})

    async def act(invocation: Invocation, live: Live) -> Completed | Failed:
        live(v1.Progress(details=details))
        live(v1.Progress(fraction=0.9))
        return await hang(invocation, live)

    trial = Trial(act, idle_timeout=3.0)
    await trial.clock.advance(3)
    assert "idle_timeout of 3 s" in trial.failure().message
    ended = trial.result.result()
    assert isinstance(ended, Failed)
    assert ended.last_progress == details


# Cancelling


async def test_a_cancelled_attempt_ends_when_its_handler_has_ended() -> None:
    tidied = asyncio.Event()
    over: list[str] = []

    async def act(invocation: Invocation, live: Live) -> Completed | Failed:
        try:
            return await hang(invocation, live)
        finally:
            await tidied.wait()
            over.append("tidied")

    trial = Trial(act)
    await trial.clock.settle()
    trial.dispatcher.cancel("run/1/n")
    await trial.clock.advance(5)
    assert not trial.result.done()
    tidied.set()
    await trial.clock.settle()
    assert over == ["tidied"]
    assert trial.failure().kind == v1.FAILURE_KIND_CANCELLED
    assert trial.fenced == []
    assert trial.clock.pending == 0


@pytest.mark.parametrize(("grace", "expected"), [(None, 10.0), (3.0, 3.0), (0.0, 0.0)])
async def test_one_that_does_not_end_in_the_grace_time_is_fenced(grace: float | None, expected: float) -> None:
    gate = asyncio.Event()

    async def act(invocation: Invocation, live: Live) -> Completed:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                live(v1.Progress(fraction=0.1))
        live(v1.Progress(fraction=0.2))
        return done(invocation)

    trial = Trial(act)
    await trial.clock.settle()
    trial.dispatcher.cancel("run/1/n", grace)
    if expected:
        await trial.clock.advance(expected - 0.1)
        assert trial.fenced == []
    await trial.clock.advance(0.1)
    [fenced] = trial.fenced
    assert isinstance(fenced, Failed)
    assert (fenced.invocation_id, fenced.attempt) == ("run/1/n", 1)
    assert fenced.failure.kind == v1.FAILURE_KIND_CANCELLED
    signs = len(trial.signs)
    gate.set()
    await trial.clock.settle()
    assert trial.result.result() is None, "its end was told already"
    assert len(trial.signs) == signs, "a fenced attempt is not heard any more"
    assert trial.fenced == [fenced]


async def test_to_cancel_what_is_not_there_is_nothing() -> None:
    trial = Trial(hang)
    trial.dispatcher.cancel("run/9/other")
    await trial.clock.settle()
    assert not trial.result.done()
    trial.dispatcher.cancel("run/1/n")
    trial.dispatcher.cancel("run/1/n")
    await trial.clock.settle()
    assert trial.failure().kind == v1.FAILURE_KIND_CANCELLED


async def test_a_cancel_overrides_a_time_out_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()

    async def act(invocation: Invocation, live: Live) -> Completed:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return done(invocation)

    trial = Trial(act, timeout=1.0)
    await trial.clock.advance(100)
    assert trial.fenced == [], "the policy is to wait"
    trial.dispatcher.cancel("run/1/n", 2)
    await trial.clock.advance(2)
    assert [ended.failure.kind for ended in trial.fenced if isinstance(ended, Failed)] == [v1.FAILURE_KIND_CANCELLED]
    gate.set()
    await trial.clock.settle()


async def test_a_cancellation_from_within_is_a_failure_of_kind_cancelled() -> None:
    async def act(invocation: Invocation, live: Live) -> Completed:
        raise asyncio.CancelledError

    trial = Trial(act)
    await trial.clock.settle()
    assert trial.failure().kind == v1.FAILURE_KIND_CANCELLED
    assert "from within" in trial.failure().message


@pytest.mark.parametrize("swallows", [True, False])
async def test_stopping_the_process_ends_the_task(swallows: bool) -> None:
    async def act(invocation: Invocation, live: Live) -> Completed | Failed:
        try:
            return await hang(invocation, live)
        except asyncio.CancelledError:
            if swallows:
                return done(invocation)
            raise

    trial = Trial(act)
    await trial.clock.settle()
    trial.dispatcher.stop()
    trial.holder[0].cancel()
    await trial.clock.settle()
    assert trial.holder[0].cancelled()
    assert not trial.result.done()


async def test_what_nobody_offers_fails_unscheduled() -> None:
    trial = Trial(hang, executor_type="other")
    await trial.clock.settle()
    assert trial.failure().kind == v1.FAILURE_KIND_UNSCHEDULED
    assert "'other'" in trial.failure().message


# Handlers in threads, which cannot be interrupted (G33, B20)


class Plain(Executor):
    def __init__(self, gate: threading.Event, begun: asyncio.Event) -> None:
        super().__init__("work")
        self.gate, self.begun, self.loop = gate, begun, asyncio.get_running_loop()

    @handler
    def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.loop.call_soon_threadsafe(self.begun.set)
        if not self.gate.wait(10):
            raise AssertionError("nobody let it go")
        ctx.report(seen=ctx.cancelled)


@pytest.mark.parametrize("on_stuck", ["wait", "overlap", "fail"])
async def test_a_thread_that_outlives_its_attempt(on_stuck: OnStuck) -> None:
    gate, begun = threading.Event(), asyncio.Event()
    plain = Plain(gate, begun)
    codec = Codec()
    host = Host({"work": plain}, codec)
    endpoint = LocalEndpoint(host)

    async def act(invocation: Invocation, live: Live) -> Completed | Failed:
        return await endpoint.execute(invocation, live)

    from hocket.records import Delivery, Message

    kinds = {"wait": v1.ON_STUCK_WAIT, "overlap": v1.ON_STUCK_OVERLAP, "fail": v1.ON_STUCK_FAIL}
    trial = Trial(act, timeout=1.0, on_stuck=kinds[on_stuck], grace=5)
    trial.invocation.deliveries = [Delivery([Message("m", "", codec.encode("x"))])]
    async with asyncio.timeout(10):
        await begun.wait()
    await trial.clock.advance(6)
    assert not trial.result.done(), "the thread still runs"
    if on_stuck == "wait":
        assert trial.fenced == []
    else:
        [fenced] = trial.fenced
        assert isinstance(fenced, Failed)
        assert fenced.failure.kind == v1.FAILURE_KIND_TIMEOUT
        assert fenced.failure.non_retryable == (on_stuck == "fail")
    gate.set()
    async with asyncio.timeout(10):
        ended = await trial.result
    host.close()
    if on_stuck == "wait":
        assert isinstance(ended, Failed)
        assert ended.failure.kind == v1.FAILURE_KIND_TIMEOUT
        assert ended.last_progress is not None
        assert codec.decode(ended.last_progress) == {"seen": True}, "it was told to stop"
    else:
        assert ended is None


# Spans (operations 2)


class Traced:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.clock = FakeClock()
        self.mesh = Mesh(tracer=provider.get_tracer("tests"), clock=self.clock)

    def spans(self) -> dict[str, list[ReadableSpan]]:
        named: dict[str, list[ReadableSpan]] = {}
        for span in self.exporter.get_finished_spans():
            named.setdefault(span.name, []).append(span)
        return named


@executor(id="first")
async def first(text: str) -> str:
    return text


class Flaky(Executor):
    @handler
    async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        await ctx.yield_output(text)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_run_is_a_span_and_each_attempt_one_below_it() -> None:
    traced = Traced()
    flaky = Flaky("flaky", retry=RetryPolicy(1, max_attempts=2))
    workflow = WorkflowBuilder(first, name="tale").add_edge(first, flaky).build()
    running = asyncio.create_task(workflow.run("x", mesh=traced.mesh, run_id="run"))
    await traced.clock.advance(2)
    await running
    spans = traced.spans()
    assert set(spans) == {"invoke_workflow tale", "executor.process first", "executor.process flaky"}
    [run] = spans["invoke_workflow tale"]
    assert attributes(run)[tracing.RUN_ID] == "run"
    assert attributes(run)[tracing.WORKFLOW_NAME] == "tale"
    assert attributes(run)[tracing.RUN_STATE] == "RUN_STATE_COMPLETED"
    assert run.context is not None
    attempts = spans["executor.process flaky"]
    assert [attributes(span)[tracing.ATTEMPT] for span in attempts] == [1, 2]
    assert [attributes(span)[tracing.SUPERSTEP] for span in attempts] == [2, 2]
    assert [span.status.status_code for span in attempts] == [StatusCode.ERROR, StatusCode.OK]
    assert "ValueError" in (attempts[0].status.description or "")
    for span in (*attempts, *spans["executor.process first"]):
        assert span.parent is not None
        assert span.parent.span_id == run.context.span_id
        assert span.context is not None
        assert span.context.trace_id == run.context.trace_id


async def test_the_span_of_an_attempt_out_of_time_says_so() -> None:
    traced = Traced()

    class Hanging(Executor):
        @handler
        async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await asyncio.Event().wait()

    running = asyncio.create_task(WorkflowBuilder(Hanging("slow", timeout=1)).build().run("x", mesh=traced.mesh))
    await traced.clock.advance(1)
    with pytest.raises(Exception, match="timeout of 1 s"):
        await running
    [span] = traced.spans()["executor.process slow"]
    assert span.status.status_code == StatusCode.ERROR
    assert "TIMEOUT" in (span.status.description or "")


async def test_a_wait_for_people_is_no_open_span() -> None:
    traced = Traced()

    class Asking(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.request_info(text, str)

        @response_handler
        async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output(answer)

    workflow = WorkflowBuilder(Asking("asking"), name="asking").build()
    waiting = await workflow.run("ok?", mesh=traced.mesh)
    [run] = traced.spans()["invoke_workflow asking"]
    assert attributes(run)[tracing.RUN_STATE] == "RUN_STATE_WAITING"
    await workflow.run(responses={waiting.questions[0].question_id: "yes"}, mesh=traced.mesh)
    attempts = traced.spans()["executor.process asking"]
    assert len(attempts) == 2
    traces = {span.context.trace_id for span in (run, *attempts) if span.context}
    assert len(traces) == 1, "what follows the answer is of the same trace"


@pytest.mark.filterwarnings("ignore::hocket.errors.DefinitionWarning")
@pytest.mark.parametrize("supersteps", [3, 40])
async def test_all_stretches_of_a_run_are_of_one_trace_also_after_a_snapshot(supersteps: int) -> None:
    """It is loaded from the store twice: to be answered, and to be resumed."""

    class Loop(Executor):
        @handler
        async def count(self, number: int, ctx: WorkflowContext[int, str]) -> None:
            if number:
                await ctx.send_message(number - 1)
            else:
                await ctx.request_info("?", str)

        @response_handler
        async def answered(self, question: str, answer: str, ctx: WorkflowContext[int, str]) -> None:
            if ctx.attempt == 1:
                raise LookupError(answer)

    traced, loop = Traced(), Loop("loop")
    workflow = WorkflowBuilder(loop, name="loop").add_edge(loop, loop).build()
    waiting = await workflow.run(supersteps, mesh=traced.mesh)
    with pytest.raises(LookupError):
        await workflow.run(responses={waiting.questions[0].question_id: "no"}, mesh=traced.mesh)
    await traced.mesh.resume(waiting.run_id)
    fork = await workflow.run(checkpoint_id=waiting.checkpoint_id, mesh=traced.mesh)
    spans = traced.exporter.get_finished_spans()
    traces = {
        span.context.trace_id for span in spans if span.context and attributes(span)[tracing.RUN_ID] == waiting.run_id
    }
    assert len(traces) == 1
    roots = [attributes(span)[tracing.RUN_ID] for span in spans if span.parent is None]
    assert roots == [waiting.run_id, fork.run_id]


async def test_a_run_id_that_is_taken_leaves_the_span_of_its_run_alone() -> None:
    traced, gate = Traced(), asyncio.Event()

    class Waiting(Executor):
        @handler
        async def wait(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await gate.wait()

    workflow = WorkflowBuilder(Waiting("waiting"), name="one").build()
    running = asyncio.create_task(workflow.run("x", mesh=traced.mesh, run_id="run"))
    await traced.clock.settle()
    with pytest.raises(RunExistsError):
        await workflow.run("x", mesh=traced.mesh, run_id="run")
    gate.set()
    await running
    states = [attributes(span).get(tracing.RUN_STATE) for span in traced.spans()["invoke_workflow one"]]
    assert states == [None, "RUN_STATE_COMPLETED"]


async def test_without_a_tracer_a_handler_sees_no_span() -> None:
    from opentelemetry import trace

    seen = []

    class Look(Executor):
        @handler
        async def look(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            seen.append(trace.get_current_span().get_span_context().is_valid)

    workflow = WorkflowBuilder(Look("look")).build()
    await workflow.run("x", mesh=Mesh())
    await workflow.run("x", mesh=Traced().mesh)
    assert seen == [False, True]
