"""All runs of a process: parked and woken, their timers, resumed, forked, cancelled, told things from outside."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any, Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import (
    LimitReached,
    NotFoundError,
    PayloadError,
    QuestionClosedError,
    RefusedError,
    RunCancelledError,
    RunExistsError,
    RunFailedError,
    RunNotResumableError,
    RunTerminalError,
    SignatureMismatchError,
)
from hocket.executor import Executor, RetryPolicy, executor, handler, response_handler
from hocket.testing import canonical
from hocket.workflow import Workflow
from tests.runtime.conftest import Stage


class Asking(Executor):
    """Asks with what `terms` say of expiry."""

    def __init__(self, id: str = "asking", **terms: Any) -> None:
        super().__init__(id)
        self.terms = terms

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, str, **self.terms)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(answer)
        await ctx.yield_output(f"{question} {answer}")


class Out(Executor):
    @handler
    async def out(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{self.id}: {text}")


def asking(**terms: Any) -> Workflow:
    return WorkflowBuilder(Asking(**terms)).build()


# Parked and woken, G36


async def test_a_run_that_waits_holds_no_task_and_no_driver(stage: Stage) -> None:
    workflow = asking()
    waiting = await workflow.run("ok?", mesh=stage.mesh, run_id="run")
    await stage.clock.settle()
    assert waiting.outcome == "WAITING"
    assert stage.own_tasks() == set()
    runs = stage.mesh.embedded.runs
    assert runs.driver("run") is None
    done = await workflow.run(responses={waiting.questions[0].question_id: "yes"}, mesh=stage.mesh)
    assert done.get_outputs() == ["ok? yes"]
    assert runs.driver("run") is None
    assert [event.sequence for event in done.events] == list(range(1, len(done.events) + 1))


async def test_a_run_that_waits_for_a_retry_goes_on_when_it_is_due(stage: Stage) -> None:
    class Flaky(Executor):
        @handler
        async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            if ctx.attempt < 3:
                raise ConnectionError(f"attempt {ctx.attempt}")
            await ctx.yield_output(f"{text} at attempt {ctx.attempt} after {ctx.last_failure is not None}")

    workflow = WorkflowBuilder(Flaky("flaky", retry=RetryPolicy(1, 3, max_attempts=3))).build()
    running = asyncio.create_task(workflow.run("x", mesh=stage.mesh, run_id="run"))
    for seconds, attempts in ((0.9, 1), (0.1, 2), (2.9, 2), (0.1, 3)):
        await stage.clock.advance(seconds)
        assert len(await stage.started("run")) == attempts
    result = await running
    assert result.get_outputs() == ["x at attempt 3 after True"]


async def test_a_question_may_expire_long_after_the_run_was_parked(stage: Stage) -> None:
    workflow = asking(expires_in=3600, default="no answer")
    await workflow.run("ok?", mesh=stage.mesh, run_id="run")
    await stage.clock.advance(3599)
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_WAITING
    await stage.clock.advance(1)
    run = await stage.mesh.get_run("run")
    assert run.state == v1.RUN_STATE_COMPLETED
    assert [payload.data for payload in run.outputs] == [b'"ok? no answer"']
    [answered] = [
        event.question_answered for event in await stage.mesh.list_events("run") if event.HasField("question_answered")
    ]
    assert answered.expired


async def test_a_question_that_expires_without_a_default_fails_the_run_and_can_be_resumed(stage: Stage) -> None:
    workflow = asking(expires_in=60)
    waiting = await workflow.run("ok?", mesh=stage.mesh, run_id="run")
    await stage.clock.advance(60)
    run = await stage.mesh.get_run("run")
    assert (run.state, run.failure.kind) == (v1.RUN_STATE_FAILED, v1.FAILURE_KIND_QUESTION_EXPIRED)
    resumed = await stage.mesh.resume("run")
    assert resumed.outcome == "WAITING"
    await stage.clock.advance(59)
    done = await workflow.run(responses={waiting.questions[0].question_id: "late"}, mesh=stage.mesh)
    assert done.get_outputs() == ["ok? late"]
    await stage.clock.advance(10)
    assert (await stage.kinds("run"))[-1] == "run_ended"


async def test_an_answered_question_does_not_expire(stage: Stage) -> None:
    class Two(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.request_info("soon", str, expires_in=10)
            await ctx.request_info("later", str)

        @response_handler
        async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output(f"{question} {answer}")

    workflow = WorkflowBuilder(Two("two")).build()
    waiting = await workflow.run("x", mesh=stage.mesh, run_id="run")
    soon, later = (question.question_id for question in waiting.questions)
    await workflow.run(responses={soon: "yes"}, mesh=stage.mesh)
    await stage.clock.advance(100)
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_WAITING
    done = await workflow.run(responses={later: "yes"}, mesh=stage.mesh)
    assert done.get_outputs() == ["soon yes", "later yes"]


async def test_a_timer_of_an_evicted_run_is_nothing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    await asking(expires_in=60).run("ok?", mesh=stage.mesh, run_id="run")
    await stage.mesh.embedded.store.delete("run")
    await stage.clock.advance(60)
    assert "could not be delivered" in caplog.text


async def test_a_timer_that_comes_too_early_is_set_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's clock and the wall's need not agree."""
    call_later = stage.clock.call_later
    monkeypatch.setattr(stage.clock, "call_later", lambda seconds, callback: call_later(seconds * 0.999, callback))
    running = asyncio.create_task(hanging().run("x", mesh=stage.mesh, run_id="run", run_timeout=10))
    await stage.clock.advance(10.1)
    with pytest.raises(RunFailedError, match="run_timeout"):
        async with asyncio.timeout(2):
            await running


# Time for a whole run (G30)


class Hanging(Executor):
    @handler
    async def hang(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await asyncio.Event().wait()


def hanging() -> Workflow:
    return WorkflowBuilder(Hanging("hanging")).build()


async def test_run_timeout_ends_the_run_failed_with_timeout(stage: Stage) -> None:
    running = asyncio.create_task(hanging().run("x", mesh=stage.mesh, run_id="run", run_timeout=5))
    await stage.clock.advance(4.9)
    assert not running.done()
    await stage.clock.advance(0.1)
    with pytest.raises(RunFailedError) as caught:
        await running
    assert caught.value.failure is not None
    assert caught.value.failure.kind == v1.FAILURE_KIND_TIMEOUT
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_FAILED
    assert stage.clock.pending == 0


async def test_run_timeout_goes_on_while_the_run_waits_and_begins_anew_when_it_is_resumed(stage: Stage) -> None:
    workflow = asking()
    await workflow.run("ok?", mesh=stage.mesh, run_id="run", run_timeout=100)
    await stage.clock.advance(100)
    run = await stage.mesh.get_run("run")
    assert (run.state, run.failure.kind) == (v1.RUN_STATE_FAILED, v1.FAILURE_KIND_TIMEOUT)
    assert (await stage.mesh.resume("run")).outcome == "WAITING"
    await stage.clock.advance(99)
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_WAITING
    await stage.clock.advance(1)
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_FAILED


async def test_run_timeout_leaves_a_run_alone_that_has_ended(stage: Stage) -> None:
    workflow = WorkflowBuilder(Out("out")).build()
    await workflow.run("x", mesh=stage.mesh, run_id="run", run_timeout=5)
    assert stage.clock.pending == 0
    await stage.clock.advance(10)
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_COMPLETED


# Resumed, G32 and G35


class Broken(Executor):
    def __init__(self, broken: set[str], id: str = "broken", calls: list[str] | None = None) -> None:
        super().__init__(id)
        self.broken, self.calls = broken, [] if calls is None else calls

    @handler
    async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.calls.append(f"{self.id} attempt {ctx.attempt}")
        if self.id in self.broken:
            raise ConnectionError(f"{self.id} is broken")
        await ctx.send_message(text)
        await ctx.yield_output(self.id)


async def test_resumed_only_what_did_not_complete_runs_again_and_attempts_go_on(stage: Stage) -> None:
    broken, calls = {"b"}, list[str]()
    a, b, c = (Broken(broken, id, calls) for id in "abc")
    workflow = WorkflowBuilder(a).add_fan_out_edges(a, [b, c]).build()
    with pytest.raises(ConnectionError, match="b is broken"):
        await workflow.run("x", mesh=stage.mesh, run_id="run")
    assert calls == ["a attempt 1", "b attempt 1", "c attempt 1"]
    with pytest.raises(ConnectionError):
        await stage.mesh.resume("run")
    broken.clear()
    result = await stage.mesh.resume("run")
    assert calls[3:] == ["b attempt 2", "b attempt 3"]
    assert result.get_outputs() == ["a", "b", "c"]
    kinds = await stage.kinds("run")
    assert kinds.count("run_resumed") == 2
    assert kinds.count("run_ended") == 3


@pytest.mark.parametrize("state", ["COMPLETED", "WAITING", "RUNNING"])
async def test_only_a_run_that_ended_without_success_can_be_resumed(stage: Stage, state: str) -> None:
    workflow = {"COMPLETED": WorkflowBuilder(Out("out")).build(), "WAITING": asking(), "RUNNING": hanging()}[state]
    running = asyncio.create_task(workflow.run("x", mesh=stage.mesh, run_id="run"))
    await stage.clock.settle()
    before = await stage.mesh.list_events("run")
    with pytest.raises(RunNotResumableError, match=state):
        await stage.mesh.resume("run")
    assert await stage.mesh.list_events("run") == before
    running.cancel()


async def test_two_that_resume_at_once_resume_once(stage: Stage) -> None:
    broken = {"broken"}
    workflow = WorkflowBuilder(Broken(broken)).build()
    with pytest.raises(ConnectionError):
        await workflow.run("x", mesh=stage.mesh, run_id="run")
    broken.clear()
    results = await asyncio.gather(
        stage.mesh.resume("run"), stage.mesh.resume("run"), stage.mesh.resume("run"), return_exceptions=True
    )
    refused = [result for result in results if isinstance(result, RunNotResumableError)]
    assert len(refused) == 2
    assert (await stage.kinds("run")).count("run_resumed") == 1


async def test_another_definition_is_refused_with_a_readable_difference(stage: Stage) -> None:
    broken = {"broken"}
    node = Broken(broken)
    workflow = WorkflowBuilder(node, name="tale").build()
    with pytest.raises(ConnectionError):
        await workflow.run("x", mesh=stage.mesh, run_id="run")
    broken.clear()
    other = WorkflowBuilder(node, name="tale").add_edge(node, Out("added"), condition="message == 'x'").build()
    before = await stage.mesh.list_events("run")
    with pytest.raises(SignatureMismatchError) as caught:
        await stage.mesh.resume("run", workflow=other)
    assert any("added" in line for line in caught.value.difference)
    with pytest.raises(SignatureMismatchError):
        await other.run(checkpoint_id="run/0", mesh=stage.mesh)
    assert await stage.mesh.list_events("run") == before
    # It stays resumable with the definition it has; a description may change.
    described = WorkflowBuilder(node, name="tale", description="better described").build()
    assert (await stage.mesh.resume("run", workflow=described)).get_outputs() == ["broken"]


async def test_a_resume_with_too_low_a_limit_changes_nothing(stage: Stage) -> None:
    nodes = [Broken(set(), f"n{number}") for number in range(5)]
    workflow = WorkflowBuilder(nodes[0]).add_chain(nodes).build()
    with pytest.raises(LimitReached):
        await workflow.run("x", mesh=stage.mesh, run_id="run", max_supersteps=3)
    before = await stage.mesh.list_events("run")
    for limit in (None, 1, 3):
        with pytest.raises(RunNotResumableError, match="max_supersteps above"):
            await stage.mesh.resume("run", max_supersteps=limit)
    assert await stage.mesh.list_events("run") == before
    assert (await stage.mesh.resume("run", max_supersteps=5)).get_outputs() == ["n0", "n1", "n2", "n3", "n4"]


# Forked, G21, G34 and G37


async def test_forks_of_one_checkpoint_are_alike_and_have_ids_of_their_own(stage: Stage) -> None:
    nodes = [Broken(set(), f"n{number}") for number in range(4)]
    workflow = WorkflowBuilder(nodes[0]).add_chain(nodes).build()
    source = await workflow.run("x", mesh=stage.mesh, run_id="source")
    before = await stage.mesh.list_events("source")
    forks = [await workflow.run(checkpoint_id="source/2", mesh=stage.mesh) for _ in range(2)]
    assert len({source.run_id, *(fork.run_id for fork in forks)}) == 3
    assert canonical(forks[0].events) == canonical(forks[1].events)
    for fork in forks:
        # Outputs of supersteps before the checkpoint are the source's; the fork's log has its own.
        assert fork.get_outputs() == ["n2", "n3"]
        assert fork.run.parent_run_id == "source"
        assert fork.run.parent_checkpoint_id == "source/2"
        assert fork.events[0].run_started.parent_checkpoint_id == "source/2"
    assert await stage.mesh.list_events("source") == before


async def test_a_fork_may_begin_with_other_state(stage: Stage) -> None:
    class Writing(Executor):
        @handler
        async def write(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.set_state("name", text)
            await ctx.set_state("kept", 1)
            await ctx.send_message(text)

    class Reading(Executor):
        @handler
        async def read(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(f"{text} {ctx.get_state('name')} {ctx.get_state('kept')}")

    writing = Writing("writing")
    workflow = WorkflowBuilder(writing).add_edge(writing, Reading("reading")).build()
    await workflow.run("x", mesh=stage.mesh, run_id="source")
    fork = await workflow.run(checkpoint_id="source/1", state={"name": "other"}, mesh=stage.mesh)
    assert fork.get_outputs() == ["x other 1"]
    assert fork.state == {"name": "other", "kept": 1}


async def test_a_checkpoint_that_is_not_there_and_a_run_id_that_is_taken(stage: Stage) -> None:
    workflow = WorkflowBuilder(Out("out")).build()
    await workflow.run("x", mesh=stage.mesh, run_id="source")
    with pytest.raises(NotFoundError, match="source/9"):
        await workflow.run(checkpoint_id="source/9", mesh=stage.mesh)
    with pytest.raises(RunExistsError, match="source"):
        await workflow.run(checkpoint_id="source/0", run_id="source", mesh=stage.mesh)


@pytest.mark.parametrize("fork_from", ["source/0", "source/1", "source/2", "source/3", "source/4"])
async def test_a_fork_asks_again_what_a_stopped_handler_has_asked(stage: Stage, fork_from: str) -> None:
    """G37 for `ask`, with one question answered and one open when the checkpoint was made."""

    class Interview(Executor):
        @handler
        async def interview(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            name = ctx.ask("name?", str)
            town = ctx.ask("town?", str)
            await ctx.yield_output(f"{name} of {town}")

    start = Broken(set(), "start")
    workflow = WorkflowBuilder(start).add_fan_out_edges(start, [Interview("interview"), Asking()]).build()
    waiting = await workflow.run("x", mesh=stage.mesh, run_id="source")
    texts = {question.payload.data.decode(): question.question_id for question in waiting.questions}
    waiting = await workflow.run(responses={texts['"name?"']: "Ada"}, mesh=stage.mesh)
    await workflow.run(responses={texts['"x"']: "side"}, mesh=stage.mesh)

    fork = await workflow.run(checkpoint_id=fork_from, mesh=stage.mesh)
    for _ in range(5):
        if fork.outcome == "COMPLETED":
            break
        assert all(question.question_id.startswith(f"{fork.run_id}/") for question in fork.questions)
        answers = {question.question_id: question.payload.data.decode().strip('"?') for question in fork.questions}
        fork = await workflow.run(responses=answers, mesh=stage.mesh)
    assert "name of town" in fork.get_outputs()


# Told from outside (G33, G36, G40)


async def test_a_run_that_waits_can_be_cancelled(stage: Stage) -> None:
    workflow = asking(expires_in=100)
    waiting = await workflow.run("ok?", mesh=stage.mesh, run_id="run")
    run = await stage.mesh.cancel("run", "not any more")
    assert (run.state, run.reason) == (v1.RUN_STATE_CANCELLED, "not any more")
    assert stage.clock.pending == 0, "its timers are gone"
    with pytest.raises(RunTerminalError):
        await stage.mesh.answer("run", waiting.questions[0].question_id, "yes")
    # It can be resumed, and waits again.
    assert (await stage.mesh.resume("run")).outcome == "WAITING"


async def test_cancel_is_for_runs_that_go_on_and_once_is_enough(stage: Stage) -> None:
    running = asyncio.create_task(hanging().run("x", mesh=stage.mesh, run_id="run"))
    await stage.clock.settle()
    first, second = await asyncio.gather(stage.mesh.cancel("run"), stage.mesh.cancel("run"))
    assert first.state == second.state == v1.RUN_STATE_CANCELLED
    with pytest.raises(RunCancelledError):
        await running
    assert (await stage.kinds("run")).count("run_cancel_requested") == 1
    with pytest.raises(RunTerminalError):
        await stage.mesh.cancel("run")
    with pytest.raises(NotFoundError):
        await stage.mesh.cancel("nobody")


class Gate(Executor):
    def __init__(self, gate: asyncio.Event) -> None:
        super().__init__("gate")
        self.gate = gate

    @handler
    async def wait(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await self.gate.wait()
        await ctx.yield_output(f"{text} {ctx.get_state('note', 'no note')}")


async def test_a_signal_is_a_delivery_of_the_next_superstep(stage: Stage) -> None:
    gate = asyncio.Event()
    node = Gate(gate)
    workflow = WorkflowBuilder(node).add_edge(node, Out("out")).build()
    running = asyncio.create_task(workflow.run("input", mesh=stage.mesh, run_id="run"))
    await stage.clock.settle()
    await stage.mesh.signal("run", "signal", state={"note": "noted"})
    await stage.mesh.signal("run", "aside", target_id="out")
    with pytest.raises(NotFoundError, match="'nowhere'"):
        await stage.mesh.signal("run", "lost", target_id="nowhere")
    with pytest.raises(PayloadError):
        await stage.mesh.signal("run", 42)
    gate.set()
    result = await running
    # The state it carried is committed with the superstep that was open.
    assert result.get_outputs() == ["input no note", "signal noted", "out: aside"]
    assert result.run.superstep == 2
    assert (await stage.kinds("run")).count("signal_received") == 2


async def test_a_signal_wakes_a_run_that_waits(stage: Stage) -> None:
    workflow = asking()
    waiting = await workflow.run("first?", mesh=stage.mesh, run_id="run")
    await stage.mesh.signal("run", "second?")
    await stage.clock.settle()
    assert len(await stage.mesh.list_questions()) == 2
    await stage.mesh.signal("run", state={"note": "only state"})
    await stage.clock.settle()
    answers = {question.question_id: "yes" for question in await stage.mesh.list_questions()}
    assert waiting.questions[0].question_id in answers
    done = await workflow.run(responses=answers, mesh=stage.mesh)
    assert sorted(done.get_outputs()) == ["first? yes", "second? yes"]
    assert done.state == {"note": "only state"}


@pytest.mark.parametrize("how", ["completed", "failed", "cancelled"])
async def test_a_run_that_has_ended_takes_nothing_more(stage: Stage, how: str) -> None:
    if how == "completed":
        await WorkflowBuilder(Out("out")).build().run("x", mesh=stage.mesh, run_id="run")
    elif how == "failed":
        with pytest.raises(ConnectionError):
            await WorkflowBuilder(Broken({"broken"})).build().run("x", mesh=stage.mesh, run_id="run")
    else:
        await asking().run("x", mesh=stage.mesh, run_id="run")
        await stage.mesh.cancel("run")
    before = await stage.mesh.list_events("run")
    with pytest.raises(RunTerminalError):
        await stage.mesh.signal("run", "late")
    with pytest.raises(RunTerminalError):
        await stage.mesh.cancel("run")
    with pytest.raises((NotFoundError, RunTerminalError)):
        await stage.mesh.answer("run", "run/1/x/1", "late")
    assert await stage.mesh.list_events("run") == before
    assert stage.mesh.embedded.runs.driver("run") is None


async def test_a_wrong_answer_is_refused_and_the_question_stays_open(stage: Stage) -> None:
    workflow = asking()
    waiting = await workflow.run("ok?", mesh=stage.mesh, run_id="run")
    question_id = waiting.questions[0].question_id
    with pytest.raises(PayloadError, match="string"):
        await stage.mesh.answer("run", question_id, 42)
    with pytest.raises(NotFoundError):
        await stage.mesh.answer("run", "run/1/asking/2", "yes")
    assert [question.question_id for question in await stage.mesh.list_questions()] == [question_id]
    await stage.mesh.answer("run", question_id, "yes", answered_by="me")
    with pytest.raises(QuestionClosedError):
        await stage.mesh.answer("run", question_id, "no")
    await stage.clock.settle()
    [answered] = [
        event.question_answered for event in await stage.mesh.list_events("run") if event.HasField("question_answered")
    ]
    assert answered.answered_by == "me"


# At once


async def test_runs_at_once_each_have_their_own_log(stage: Stage) -> None:
    workflow = asking()
    waiting = await asyncio.gather(*(workflow.run(f"q{number}", mesh=stage.mesh) for number in range(20)))
    results = await asyncio.gather(
        *(
            workflow.run(responses={each.questions[0].question_id: f"a{number}"}, mesh=stage.mesh)
            for number, each in enumerate(waiting)
        )
    )
    assert [result.get_outputs() for result in results] == [[f"q{number} a{number}"] for number in range(20)]
    for result in results:
        assert {event.run_id for event in result.events} == {result.run_id}
        assert [event.sequence for event in result.events] == list(range(1, len(result.events) + 1))


async def test_an_input_that_the_start_does_not_take_begins_no_run(stage: Stage) -> None:
    workflow = WorkflowBuilder(Out("out")).build()
    for wrong in (42, None, ["x"], b"x"):
        with pytest.raises(PayloadError, match="'out'"):
            await workflow.run(wrong, mesh=stage.mesh, run_id="run")
    assert await stage.mesh.list_runs() == []
    assert (await workflow.run("right", mesh=stage.mesh, run_id="run")).get_outputs() == ["out: right"]


@executor(id="pass")
async def hand_on(text: str) -> str:
    return text


async def test_a_workflow_that_is_gone_leaves_nothing_in_the_mesh(stage: Stage) -> None:
    workflow = WorkflowBuilder(Out("out")).build()
    gone = weakref.ref(workflow)
    await workflow.run("x", mesh=stage.mesh, run_id="run")
    stage.mesh._runnables.clear()
    stage.mesh.embedded.runs._programs.clear()
    del workflow
    gc.collect()
    assert gone() is None


async def test_a_closed_mesh_begins_nothing_and_can_be_closed_again(stage: Stage) -> None:
    workflow = asking(expires_in=10)
    waiting = await workflow.run("ok?", mesh=stage.mesh, run_id="run")
    await stage.mesh.close()
    await stage.mesh.close()
    with pytest.raises(RefusedError, match="closed"):
        await workflow.run("again", mesh=stage.mesh)
    with pytest.raises(RefusedError, match="closed"):
        await stage.mesh.answer("run", waiting.questions[0].question_id, "yes")
    await stage.clock.advance(20)
    assert (await stage.mesh.get_run("run")).state == v1.RUN_STATE_WAITING


async def test_closing_a_mesh_ends_who_waits_for_a_retry(stage: Stage) -> None:
    class Failing(Executor):
        @handler
        async def fail(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            raise ConnectionError("no")

    workflow = WorkflowBuilder(Failing("failing", retry=RetryPolicy(60, max_attempts=9))).build()
    running = asyncio.create_task(workflow.run("x", mesh=stage.mesh))
    await stage.clock.settle()
    await stage.mesh.close()
    with pytest.raises(RefusedError, match="closed"):
        async with asyncio.timeout(2):
            await running
