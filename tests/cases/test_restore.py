"""B07, B10: a join's buffer in the checkpoint, and time travel over a question."""

from __future__ import annotations

from typing import Never

import pytest

from hocket import v1
from hocket.builder import WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.executor import Executor, executor, handler, response_handler
from hocket.workflow import Workflow
from tests.cases.conftest import World

# B07: restored joins


class Source(Executor):
    """Sends its id and what it got. One whose id is in `broken` raises."""

    def __init__(self, id: str, broken: set[str], calls: list[str]) -> None:
        super().__init__(id)
        self.broken, self.calls = broken, calls

    @handler
    async def send(self, text: str, ctx: WorkflowContext[str]) -> None:
        self.calls.append(self.id)
        if self.id in self.broken:
            raise ConnectionError(f"{self.id} is broken")
        await ctx.send_message(f"{text}>{self.id}")


class Join(Executor):
    @handler
    async def join(self, texts: list[str], ctx: WorkflowContext[Never, list[str]]) -> None:
        await ctx.yield_output(texts)


@executor(id="split")
async def split(text: str) -> str:
    return text


def joined(broken: set[str], calls: list[str]) -> Workflow:
    a, b = Source("A", broken, calls), Source("B", broken, calls)
    builder = WorkflowBuilder(split).add_fan_out_edges(split, [a, b])
    return builder.add_fan_in_edges([a, b], Join("join")).build()


async def test_b07_a_restored_join_gets_one_message_of_each_source(world: World) -> None:
    broken, calls = {"B"}, list[str]()
    workflow = joined(broken, calls)
    with pytest.raises(ConnectionError):
        await world.run(workflow, "x", run_id="broken")
    assert sorted(calls) == ["A", "B"]
    broken.clear()
    calls.clear()

    # Restored from the checkpoint of superstep 1: both run again, and nothing of the first A is left.
    for attempt in range(2):
        result = await world.run(workflow, checkpoint_id="broken/1")
        assert result.get_outputs() == [["x>A", "x>B"]], f"fork {attempt + 1}"
    assert sorted(calls) == ["A", "A", "B", "B"]
    calls.clear()

    # Resumed: A's completion is in the journal, only B runs again.
    result = await world.finish(world.mesh.resume("broken"))
    assert result.get_outputs() == [["x>A", "x>B"]]
    assert calls == ["B"]


async def test_b07_what_a_join_holds_over_supersteps_is_in_the_checkpoint(world: World) -> None:
    broken, calls = {"late"}, list[str]()
    early, middle, late = (Source(id, broken, calls) for id in ("early", "middle", "late"))
    workflow = (
        WorkflowBuilder(split)
        .add_fan_out_edges(split, [early, middle])
        .add_edge(middle, late)
        .add_fan_in_edges([early, late], Join("join"))
        .build()
    )
    with pytest.raises(ConnectionError):
        await world.run(workflow, "x", run_id="held")
    broken.clear()
    calls.clear()
    for _ in range(2):  # G21: the same checkpoint twice gives the same twice
        result = await world.run(workflow, checkpoint_id="held/2")
        assert result.get_outputs() == [["x>early", "x>middle>late"]]
    assert calls == ["late", "late"], "the early message was restored, not sent again"


# B10: time travel


class Approval(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(f"approve {text}?", str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"{question} {answer}")


class Publish(Executor):
    def __init__(self, broken: set[str]) -> None:
        super().__init__("publish")
        self.broken = broken

    @handler
    async def publish(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        if self.id in self.broken:
            raise ConnectionError("no printer")
        await ctx.yield_output(text)


def approving(broken: set[str]) -> Workflow:
    approval = Approval("approval")
    return WorkflowBuilder(split).add_chain([split, approval, Publish(broken)]).build()


async def test_b10_a_fork_from_before_the_question_asks_again_and_leaves_its_source_alone(world: World) -> None:
    workflow = approving(set())
    waiting = await world.run(workflow, "draft", run_id="source")
    assert waiting.outcome == "WAITING"
    [question] = waiting.questions
    done = await world.run(workflow, responses={question.question_id: "yes"})
    assert done.get_outputs() == ["approve draft? yes"]
    log = [event.SerializeToString(deterministic=True) for event in await world.log("source")]
    run = (await world.mesh.get_run("source")).SerializeToString(deterministic=True)

    # Checkpoint 1 is before the question, in 2 it is open: both ask, neither knows of the "yes".
    for checkpoint_id in ("source/1", "source/2"):
        fork = await world.run(workflow, checkpoint_id=checkpoint_id)
        assert fork.run_id != "source"
        assert fork.outcome == "WAITING"
        [again] = fork.questions
        assert again.question_id.startswith(f"{fork.run_id}/")
        assert [event.HasField("question_answered") for event in fork.events].count(True) == 0
        other = await world.run(workflow, responses={again.question_id: "no"})
        assert other.get_outputs() == ["approve draft? no"]

    assert [event.SerializeToString(deterministic=True) for event in await world.log("source")] == log
    assert (await world.mesh.get_run("source")).SerializeToString(deterministic=True) == run


async def test_b10_a_resume_after_the_question_keeps_the_answer(world: World) -> None:
    broken = {"publish"}
    workflow = approving(broken)
    waiting = await world.run(workflow, "draft", run_id="source")
    with pytest.raises(ConnectionError):
        await world.run(workflow, responses={waiting.questions[0].question_id: "yes"})
    broken.clear()
    done = await world.finish(world.mesh.resume("source"))
    assert done.get_outputs() == ["approve draft? yes"]
    kinds = await world.kinds("source")
    assert (kinds.count("question_asked"), kinds.count("question_answered")) == (1, 1)
    assert done.run.state == v1.RUN_STATE_COMPLETED
