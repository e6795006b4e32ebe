"""B13, and what of B14 needs no second client: several open questions, each with its own answer, each answered once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import NotFoundError, QuestionClosedError
from hocket.executor import Executor, executor, handler, response_handler
from hocket.workflow import Workflow
from tests.cases.conftest import World


@executor(id="split")
async def split(text: str) -> str:
    return text


class Clerk(Executor):
    """Asks two questions at the same time."""

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.request_info(f"{self.id}: first?", str)
        await ctx.request_info(f"{self.id}: second?", str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{question} {answer}")


def office() -> Workflow:
    return WorkflowBuilder(split).add_fan_out_edges(split, [Clerk("a"), Clerk("b"), Clerk("c")]).build()


def asked(questions: Sequence[v1.Question]) -> list[str]:
    return [question.payload.data.decode().strip('"') for question in questions]


async def test_b13_each_of_six_questions_gets_its_own_answer_in_any_order(world: World) -> None:
    workflow = office()
    result = await world.run(workflow, "x", run_id="office")
    questions = {question.question_id: question for question in result.questions}
    assert len(questions) == 6, "ids are unique, also inside one invocation"
    assert asked(result.questions) == [f"{id}: {ordinal}?" for id in "abc" for ordinal in ("first", "second")]

    with pytest.raises(NotFoundError):
        await world.mesh.answer("office", "", "to whom it may concern")

    # Two clients answer, turn by turn, from the last question to the first.
    for left, question_id in zip(range(5, -1, -1), reversed(questions), strict=True):
        await world.mesh.answer("office", question_id, f"answer to {asked([questions[question_id]])[0]}")
        await world.clock.settle()
        assert len((await world.mesh.get_run("office")).open_questions) == left
    run = await world.mesh.get_run("office")
    assert run.state == v1.RUN_STATE_COMPLETED
    outputs = [Clerk.__name__ and payload.data.decode().strip('"') for payload in run.outputs]
    texts = asked(list(questions.values()))
    assert sorted(outputs) == sorted(f"{text} answer to {text}" for text in texts)
    assert (await world.kinds("office")).count("question_answered") == 6


async def test_b13_all_six_answered_in_one_call(world: World) -> None:
    workflow = office()
    waiting = await world.run(workflow, "x")
    answers = {question.question_id: f"answer {number}" for number, question in enumerate(waiting.questions)}
    done = await world.run(workflow, responses=answers)
    assert sorted(done.get_outputs()) == sorted(
        f"{text} answer {number}" for number, text in enumerate(asked(waiting.questions))
    )


class Approval(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(answer)


class Out(Executor):
    @handler
    async def out(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text)


async def test_b14_one_answer_is_applied_a_repeated_one_accepted_another_refused(world: World) -> None:
    workflow = WorkflowBuilder(Approval("approval")).add_chain(["approval", Out("out")]).build()
    waiting = await world.run(workflow, "ok?", run_id="run")
    question_id = waiting.questions[0].question_id
    await world.mesh.answer("run", question_id, "yes")
    await world.mesh.answer("run", question_id, "yes")
    with pytest.raises(QuestionClosedError):
        await world.mesh.answer("run", question_id, "no")
    await world.clock.settle()
    run = await world.mesh.get_run("run")
    assert run.state == v1.RUN_STATE_COMPLETED
    assert [payload.data for payload in run.outputs] == [b'"yes"']
    # After the end of the run too (G36).
    await world.mesh.answer("run", question_id, "yes")
    with pytest.raises(QuestionClosedError):
        await world.mesh.answer("run", question_id, "no")
    kinds = await world.kinds("run")
    assert kinds.count("question_answered") == 1
    started = [event.invocation_started.node_id for event in await world.log("run")]
    assert started.count("out") == 1
