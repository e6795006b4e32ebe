"""Running workflows in this process: what `Workflow.run` and `Mesh` promise to who calls them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Never, TypedDict

import pytest

from hocket import v1
from hocket.builder import Case, Default, WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import (
    LimitReached,
    NotFoundError,
    PayloadError,
    RunCancelledError,
    RunExistsError,
    RunFailedError,
    SignatureMismatchError,
)
from hocket.executor import Executor, executor, handler, response_handler
from hocket.mesh import Mesh
from hocket.testing import FakeClock, canonical
from hocket.workflow import Workflow
from tests.upper_reverse import Reverse, Upper, upper_reverse


class Act(Executor):
    """Does what the test says."""

    def __init__(self, id: str, act: Callable[[Any, WorkflowContext[Any, Any]], Any]) -> None:
        super().__init__(id)
        self.act = act

    @handler
    async def do(self, message: Any, ctx: WorkflowContext[Any, Any]) -> None:
        result = self.act(message, ctx)
        if asyncio.iscoroutine(result):
            await result


class Asking(Executor):
    def __init__(self, id: str = "asking", questions: int = 1) -> None:
        super().__init__(id)
        self.questions = questions

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        for number in range(self.questions):
            await ctx.request_info(f"{text}{number}?", str)

    @response_handler
    async def answered(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question} {answer}")


# A result


async def test_the_example_of_the_guide() -> None:
    result = await upper_reverse().run("hello")
    assert result.get_outputs() == ["OLLEH"]
    assert result.outcome == "COMPLETED"
    assert result.run_id
    assert result.events[0].HasField("run_started")
    assert result.events[-1].HasField("run_ended")
    assert result.questions == []
    assert result.state == {}
    assert result.checkpoint_id == f"{result.run_id}/2"
    assert not result.converged_without_output


async def test_a_graph_of_plain_functions() -> None:
    def double(number: int) -> int:
        return 2 * number

    async def show(number: int, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"<{number}>")

    result = await WorkflowBuilder(double).add_edge(double, show).build().run(4)
    assert result.get_outputs() == ["<8>"]


async def test_outputs_and_intermediate_outputs_and_those_that_are_hidden() -> None:
    """G26."""
    nodes = [Act(id, lambda message, ctx: (ctx.yield_output(message), ctx.send_message(message))) for id in "abc"]

    def workflow(**chosen: Any) -> Workflow:
        return WorkflowBuilder(nodes[0], **chosen).add_chain(nodes).build()

    async def yielded(**chosen: Any) -> tuple[int, int]:
        result = await workflow(**chosen).run("x")
        return len(result.get_outputs()), len(result.get_intermediate_outputs())

    assert await yielded() == (3, 0)
    assert await yielded(output_from=["c"]) == (1, 0)
    assert await yielded(output_from=["c"], intermediate_output_from=["a"]) == (1, 1)
    assert await yielded(output_from=["c"], intermediate_output_from="all_other") == (1, 2)
    assert await yielded(intermediate_output_from="all") == (0, 3)


async def test_a_run_without_an_output_that_was_declared_says_so() -> None:
    """G12."""
    silent = Act("silent", lambda message, ctx: None)
    assert (await WorkflowBuilder(silent).build().run("x")).converged_without_output


async def test_functions_as_conditions_get_the_decoded_message() -> None:
    seen: list[object] = []

    def is_even(number: int) -> bool:
        seen.append(number)
        return number % 2 == 0

    @executor(id="start")
    async def start(number: int) -> int:
        return number

    even, odd = (Act(id, lambda message, ctx: ctx.yield_output(ctx.invocation_id[-3:])) for id in ("evn", "odd"))
    workflow = WorkflowBuilder(start).add_switch_case_edge_group(start, [Case(is_even, even), Default(odd)]).build()
    assert (await workflow.run(2)).get_outputs() == ["evn"]
    assert (await workflow.run(3)).get_outputs() == ["odd"]
    assert seen == [2, 3]


async def test_a_condition_that_raises_fails_the_run_and_names_the_edge() -> None:
    """G16."""
    start = Upper("start")
    workflow = WorkflowBuilder(start).add_edge(start, Reverse("end"), condition=lambda text: text.missing).build()
    with pytest.raises(RunFailedError, match=r"start->end.*AttributeError"):
        await workflow.run("x")


# Errors of the caller


@pytest.mark.parametrize(
    "wrong",
    [
        {"message": "x", "checkpoint_id": "source/0"},
        {"message": "", "responses": {"q": 1}},
        {"responses": {"q": 1}, "checkpoint_id": "source/0"},
        {"responses": {}},
        {"message": "x", "state": {"k": 1}},
        {"responses": {"q": 1}, "run_id": "other"},
        {"responses": {"q": 1}, "max_supersteps": 3},
        {"checkpoint_id": "source/0", "run_timeout": 3},
        {"checkpoint_id": "source/0", "labels": {"a": "b"}},
    ],
)
async def test_a_run_begins_in_one_way_and_takes_no_option_it_has_no_use_for(wrong: dict[str, Any]) -> None:
    workflow: Any = upper_reverse()
    for stream in (True, False):
        with pytest.raises(ValueError, match="give"):
            await workflow.run(mesh=Mesh(), stream=stream, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"run_id": ""},
        {"run_id": "a/b"},
        {"run_id": "a\n"},
        {"max_supersteps": 0},
        {"run_timeout": 0},
        {"run_timeout": -1},
    ],
)
async def test_an_option_that_means_nothing_begins_no_run(wrong: dict[str, Any]) -> None:
    workflow: Any = upper_reverse()
    mesh = Mesh()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        await workflow.run("x", mesh=mesh, **wrong)
    assert await mesh.list_runs() == []


async def test_a_run_id_is_taken_once() -> None:
    workflow, mesh = upper_reverse(), Mesh()
    await workflow.run("first", mesh=mesh, run_id="mine")
    with pytest.raises(RunExistsError, match="mine"):
        await workflow.run("second", mesh=mesh, run_id="mine")
    assert [run.run_id for run in await mesh.list_runs()] == ["mine"]
    assert (await mesh.get_run("mine")).state == v1.RUN_STATE_COMPLETED
    # Each mesh has its own.
    assert (await workflow.run("third", mesh=Mesh(), run_id="mine")).get_outputs() == ["DRIHT"]


async def test_an_unknown_store_is_refused() -> None:
    with pytest.raises(ValueError, match="postgresql"):
        Mesh("postgresql://nowhere")


async def test_what_is_not_there_is_not_found() -> None:
    workflow, mesh = upper_reverse(), Mesh()
    for asking in (
        mesh.get_run("nobody"),
        mesh.list_events("nobody"),
        mesh.list_checkpoints("nobody"),
        mesh.resume("nobody"),
        mesh.resume("nobody", workflow=workflow),
        mesh.cancel("nobody"),
        mesh.signal("nobody", "x"),
        mesh.answer("nobody", "nobody/1/n/1", "x"),
        workflow.run(responses={"nobody/1/n/1": "x"}, mesh=mesh),
        workflow.run(checkpoint_id="nobody/1", mesh=mesh),
    ):
        with pytest.raises(NotFoundError):
            await asking


# How a run fails


async def test_the_original_exception_is_raised_with_a_note_of_its_run() -> None:
    error = LookupError("mine")

    def act(message: str, ctx: object) -> None:
        raise error

    with pytest.raises(LookupError) as caught:
        await WorkflowBuilder(Act("act", act)).build().run("x", run_id="run")
    assert caught.value is error
    assert any("'run'" in note and "'act'" in note for note in error.__notes__)


async def test_of_several_that_failed_it_is_the_one_that_ended_the_run() -> None:
    tidied = asyncio.Event()

    async def slow(message: str, ctx: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            tidied.set()
            raise ValueError("while it was cancelled") from None

    async def first(message: str, ctx: object) -> None:
        await asyncio.sleep(0)
        raise LookupError("the cause")

    start = Upper("start")
    workflow = WorkflowBuilder(start).add_fan_out_edges(start, [Act("slow", slow), Act("first", first)]).build()
    mesh = Mesh()
    with pytest.raises(LookupError, match="the cause"):
        await workflow.run("x", mesh=mesh, run_id="run")
    assert tidied.is_set(), "siblings are cancelled and awaited first (G31)"
    run = await mesh.get_run("run")
    assert (run.failure.source, run.failure.type) == ("first", "LookupError")


async def test_a_handler_that_errs_when_its_run_is_out_of_time_does_not_hide_why() -> None:
    async def act(message: str, ctx: object) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("while it was cancelled") from None

    clock = FakeClock()
    async with Mesh(clock=clock) as mesh:
        running = asyncio.create_task(WorkflowBuilder(Act("act", act)).build().run("x", mesh=mesh, run_timeout=5))
        await clock.advance(5)
        with pytest.raises(RunFailedError, match="RUN_TIMEOUT"):
            await running


async def test_an_error_in_a_nested_workflow_is_the_original_too() -> None:
    def act(message: str, ctx: object) -> None:
        raise LookupError("deep")

    inner = WorkflowBuilder(Act("inner", act), name="inner").build()
    outer = WorkflowBuilder(Upper("start"), name="outer").add_chain(["start", inner]).build()
    with pytest.raises(LookupError, match="deep") as caught:
        await outer.run("x")
    assert any("inner/inner" in note for note in caught.value.__notes__)


async def test_runs_that_fail_at_once_each_raise_their_own() -> None:
    async def act(message: int, ctx: object) -> None:
        await asyncio.sleep(0)
        raise LookupError(str(message))

    workflow = WorkflowBuilder(Act("act", act)).build()
    mesh = Mesh()
    results = await asyncio.gather(*(workflow.run(n, mesh=mesh) for n in range(20)), return_exceptions=True)
    assert [str(result) for result in results] == [str(number) for number in range(20)]
    assert mesh.embedded._hosted(workflow)[0].errors == {}, "nothing of them is kept"


async def test_a_run_that_is_cancelled_raises_its_reason() -> None:
    mesh = Mesh()
    waiting = Act("waiting", lambda message, ctx: asyncio.Event().wait())
    running = asyncio.create_task(WorkflowBuilder(waiting).build().run("x", mesh=mesh, run_id="run"))
    await asyncio.sleep(0.001)
    run = await mesh.cancel("run", "not needed")
    assert run.state == v1.RUN_STATE_CANCELLED
    with pytest.raises(RunCancelledError, match="not needed") as caught:
        await running
    assert caught.value.run_id == "run"
    assert caught.value.failure is not None


async def test_who_stops_waiting_does_not_stop_the_run() -> None:
    mesh, gate = Mesh(), asyncio.Event()

    async def act(message: str, ctx: WorkflowContext[Any, Any]) -> None:
        await gate.wait()
        ctx.yield_output(message)

    running = asyncio.create_task(WorkflowBuilder(Act("act", act)).build().run("x", mesh=mesh, run_id="run"))
    await FakeClock().settle()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    gate.set()
    await FakeClock().settle()
    assert (await mesh.get_run("run")).state == v1.RUN_STATE_COMPLETED


@pytest.mark.filterwarnings("ignore::hocket.errors.DefinitionWarning")
async def test_a_limit_may_be_given_for_one_run_and_raised() -> None:
    def act(message: int, ctx: WorkflowContext[Any, Any]) -> None:
        if message == 7:
            ctx.yield_output(message)
        else:
            ctx.send_message(message + 1)

    loop = Act("loop", act)
    workflow, mesh = WorkflowBuilder(loop).add_edge(loop, loop).build(), Mesh()
    with pytest.raises(LimitReached) as caught:
        await workflow.run(1, mesh=mesh, run_id="run", max_supersteps=3)
    assert caught.value.run_id == "run"
    with pytest.raises(LimitReached):
        await mesh.resume("run", max_supersteps=4)
    result = await mesh.resume("run", max_supersteps=7)
    assert result.get_outputs() == [7]
    assert result.run.superstep == 7
    assert (await workflow.run(1, mesh=mesh)).get_outputs() == [7], "the workflow's own limit is what it was"


# Resume with another object


async def test_a_run_is_resumed_with_a_mended_workflow() -> None:
    """G32: another object of the same definition, with other code."""

    def workflow(act: Callable[[Any, WorkflowContext[Any, Any]], Any]) -> Workflow:
        start = Upper("start")
        return WorkflowBuilder(start, name="tale").add_edge(start, Act("end", act)).build()

    def broken(message: str, ctx: WorkflowContext[Any, Any]) -> None:
        raise LookupError("broken")

    mesh = Mesh()
    with pytest.raises(LookupError):
        await workflow(broken).run("x", mesh=mesh, run_id="run")
    with pytest.raises(LookupError):
        await mesh.resume("run")
    result = await mesh.resume("run", workflow=workflow(lambda message, ctx: ctx.yield_output(f"mended {message}")))
    assert result.get_outputs() == ["mended X"]
    with pytest.raises(SignatureMismatchError):
        await upper_reverse().run(checkpoint_id="run/0", mesh=mesh)


# Questions


async def test_several_questions_are_answered_some_now_and_some_later() -> None:
    workflow, mesh = WorkflowBuilder(Asking(questions=3)).build(), Mesh()
    waiting = await workflow.run("q", mesh=mesh)
    first, second, third = (question.question_id for question in waiting.questions)
    later = await workflow.run(responses={third: "c", first: "a"}, mesh=mesh)
    assert later.outcome == "WAITING"
    assert [question.question_id for question in later.questions] == [second]
    assert sorted(later.get_outputs()) == ["q0? a", "q2? c"]
    done = await workflow.run(responses={second: "b"}, mesh=mesh)
    assert sorted(done.get_outputs()) == ["q0? a", "q1? b", "q2? c"]


async def test_answers_are_for_one_run_and_all_of_them_must_travel() -> None:
    workflow, mesh = WorkflowBuilder(Asking(questions=2)).build(), Mesh()
    one, other = await workflow.run("a", mesh=mesh), await workflow.run("b", mesh=mesh)
    with pytest.raises(ValueError, match="several runs"):
        await workflow.run(responses={run.questions[0].question_id: "x" for run in (one, other)}, mesh=mesh)
    first, second = (question.question_id for question in one.questions)
    with pytest.raises(PayloadError):
        await workflow.run(responses={first: "fine", second: object()}, mesh=mesh)
    assert len((await mesh.get_run(one.run_id)).open_questions) == 2, "nothing was answered"


class Form(TypedDict):
    name: str
    tags: list[str]


async def test_an_answer_is_named_as_what_its_handler_takes() -> None:
    """An empty list, or a plain dict for a TypedDict, shows nothing of its type."""

    class Forms(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[Any, Any]) -> None:
            await ctx.request_info("form?", Form)
            await ctx.request_info("numbers?", list[int])

        @response_handler
        async def form(self, question: str, answer: Form, ctx: WorkflowContext[Any, Any]) -> None:
            await ctx.yield_output(answer)

        @response_handler
        async def numbers(self, question: str, answer: list[int], ctx: WorkflowContext[Any, Any]) -> None:
            await ctx.yield_output(answer)

    workflow, mesh = WorkflowBuilder(Forms("forms")).build(), Mesh()
    waiting = await workflow.run("x", mesh=mesh)
    form, numbers = (question.question_id for question in waiting.questions)
    done = await workflow.run(responses={form: {"name": "Ada", "tags": []}, numbers: []}, mesh=mesh)
    assert done.get_outputs() == [{"name": "Ada", "tags": []}, []]


async def test_questions_of_all_runs_are_listed() -> None:
    workflow, mesh = WorkflowBuilder(Asking()).build(), Mesh()
    runs = [await workflow.run(text, mesh=mesh) for text in "ab"]
    assert {question.question_id for question in await mesh.list_questions()} == {
        run.questions[0].question_id for run in runs
    }
    await mesh.answer(runs[0].run_id, runs[0].questions[0].question_id, "yes")
    await FakeClock().settle()
    assert len(await mesh.list_questions()) == 1


async def test_a_question_of_a_nested_workflow_surfaces_with_its_path() -> None:
    """G38."""
    inner = WorkflowBuilder(Asking(), name="inner").build()
    start, end = Upper("start"), Reverse("end")
    outer, mesh = WorkflowBuilder(start, name="outer").add_chain([start, inner, end]).build(), Mesh()
    waiting = await outer.run("x", mesh=mesh)
    [question] = waiting.questions
    assert list(question.path) == ["inner"]
    assert question.node_id == "asking"
    done = await outer.run(responses={question.question_id: "yes"}, mesh=mesh)
    assert done.get_outputs() == ["sey ?0X"]


# Side by side


async def test_one_workflow_runs_any_number_of_times_at_once() -> None:
    """B04."""
    workflow, mesh = upper_reverse(), Mesh()
    results = await asyncio.gather(*(workflow.run(f"text {n}", mesh=mesh) for n in range(50)))
    assert [result.get_outputs() for result in results] == [[f"TEXT {n}"[::-1]] for n in range(50)]
    form = canonical(results[0].events)
    assert [event.keys() for event in form] == [event.keys() for event in canonical(results[49].events)]


async def test_workflows_with_equal_names_and_ids_do_not_mix() -> None:
    """Same definition byte for byte, other lambdas and other executors."""

    def workflow(mark: str) -> Workflow:
        async def act(message: str, ctx: WorkflowContext[Any, Any]) -> None:
            await asyncio.sleep(0)
            if message == "fail":
                raise LookupError(mark)
            ctx.yield_output(f"{mark} {message}")

        async def hand_on(message: str, ctx: WorkflowContext[Any, Any]) -> None:
            await asyncio.sleep(0)
            ctx.send_message(message)

        start, end = Act("start", hand_on), Act("end", act)
        builder = WorkflowBuilder(start, name="same")
        return builder.add_edge(start, end, condition=lambda message: message != f"not for {mark}").build()

    mesh = Mesh()
    one, other = workflow("one"), workflow("other")
    assert one.definition == other.definition
    assert one.signature == other.signature
    results = await asyncio.gather(*(each.run("x", mesh=mesh) for each in (one, other) * 10))
    assert [result.get_outputs() for result in results] == [["one x"], ["other x"]] * 10
    assert (await one.run("not for other", mesh=mesh)).get_outputs() == ["one not for other"]
    assert (await other.run("not for other", mesh=mesh)).get_outputs() == []
    failed = await asyncio.gather(*(each.run("fail", mesh=mesh) for each in (one, other)), return_exceptions=True)
    assert [str(error) for error in failed] == ["one", "other"]
    # A fork by the other's object runs the other's code: its definition is the same.
    await one.run("y", mesh=mesh, run_id="source")
    assert (await other.run(checkpoint_id="source/1", mesh=mesh)).get_outputs() == ["other y"]


async def test_two_meshes_never_meet() -> None:
    workflow, one, other = WorkflowBuilder(Asking()).build(), Mesh(), Mesh()
    waiting = await workflow.run("x", mesh=one, run_id="run")
    assert await other.list_runs() == []
    with pytest.raises(NotFoundError):
        await workflow.run(responses={waiting.questions[0].question_id: "yes"}, mesh=other)


async def test_a_mesh_serves_several_loops_one_after_the_other() -> None:
    """A script may call asyncio.run more than once."""
    workflow = upper_reverse()

    def in_own_loop() -> list[Any]:
        return [asyncio.run(workflow.run(text)).get_outputs() for text in ("a", "b")]

    assert await asyncio.to_thread(in_own_loop) == [["A"], ["B"]]


async def test_values_above_the_limit_are_refused_when_they_are_sent() -> None:
    from hocket.errors import PayloadTooLargeError

    mesh = Mesh(max_inline_bytes=100)
    workflow = WorkflowBuilder(Act("act", lambda message, ctx: ctx.yield_output("x" * 200))).build()
    with pytest.raises(PayloadTooLargeError, match="100 bytes"):
        await workflow.run("x", mesh=mesh)
    with pytest.raises(PayloadTooLargeError):
        await workflow.run("x" * 200, mesh=mesh)
    assert len(await mesh.list_runs()) == 1


# What is loaded


@pytest.mark.process
@pytest.mark.parametrize(
    "program",
    [
        "import hocket",
        "from hocket import *",
        "import hocket.workflow, hocket.mesh, hocket.testing",
    ],
)
def test_importing_hocket_loads_neither_server_nor_grpc(program: str) -> None:
    check = "; import sys; print(*(m for m in sys.modules if m.split('.')[0] in ('hocket_server', 'grpc')))"
    done = subprocess.run([sys.executable, "-c", program + check], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.process
def test_running_a_workflow_loads_no_grpc_and_no_tracing() -> None:
    program = """
import asyncio, sys
from hocket import WorkflowBuilder, executor

@executor(id="double")
async def double(number: int) -> int:
    return 2 * number

asyncio.run(WorkflowBuilder(double).build().run(2))
loaded = {module.split(".")[0] for module in sys.modules} & {"grpc", "opentelemetry", "pydantic", "temporalio"}
print(*sorted(loaded))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
