"""A workflow: a graph with what carries it out in this process, as a value that can run."""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, overload

from hocket import picture, v1
from hocket.executor import Executor
from hocket.mesh import Mesh, RunResult, RunStream, definition_signature, new_run_id


@dataclass(frozen=True, eq=False, repr=False)
class Workflow:
    """A graph that can run, any number of times and also at once. Made by `WorkflowBuilder.build`; nothing in it
    changes.

    `executors` are by executor type and `functions` by name, both of this graph and of all that are nested in it.
    """

    definition: v1.Definition
    executors: Mapping[str, Executor]
    functions: Mapping[str, Callable[..., Any]]

    def __repr__(self) -> str:
        return f"Workflow({self.name!r}, {len(self.definition.graph.nodes)} nodes)"

    @property
    def name(self) -> str:
        return self.definition.definition_name

    @property
    def start(self) -> str:
        """Id of the node that takes the input."""
        return self.definition.graph.start_node_id

    @cached_property
    def signature(self) -> bytes:
        """Fingerprint of structure, conditions and all that is nested (G35): what a checkpoint may be resumed with."""
        return definition_signature(self.definition)

    @cached_property
    def input_types(self) -> tuple[str, ...]:
        """Names of the types that the start node takes."""
        return tuple(name for node in self._start_nodes() for name in node.types.input_types)

    @cached_property
    def output_types(self) -> tuple[str, ...]:
        """Names of the types that its output nodes yield."""
        return tuple(one.name for one in self._yielded())

    @overload
    def run(
        self,
        message: object = ...,
        *,
        stream: Literal[True],
        responses: Mapping[str, object] | None = None,
        checkpoint_id: str | None = None,
        mesh: Mesh | None = None,
        run_id: str | None = None,
        max_supersteps: int | None = None,
        run_timeout: float | None = None,
        state: Mapping[str, object] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> RunStream: ...
    @overload
    def run(
        self,
        message: object = ...,
        *,
        stream: Literal[False] = False,
        responses: Mapping[str, object] | None = None,
        checkpoint_id: str | None = None,
        mesh: Mesh | None = None,
        run_id: str | None = None,
        max_supersteps: int | None = None,
        run_timeout: float | None = None,
        state: Mapping[str, object] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Coroutine[Any, Any, RunResult]: ...
    def run(
        self,
        message: object = None,
        *,
        stream: bool = False,
        responses: Mapping[str, object] | None = None,
        checkpoint_id: str | None = None,
        mesh: Mesh | None = None,
        run_id: str | None = None,
        max_supersteps: int | None = None,
        run_timeout: float | None = None,
        state: Mapping[str, object] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> RunStream | Coroutine[Any, Any, RunResult]:
        """Run it on `message`; or go on with a run that waits, with `responses` by question id; or begin a new run from
        `checkpoint_id`, with `state` written over the copied one. Await it for the result, or with `stream` iterate it.

        `max_supersteps` and `run_timeout` (seconds) bound this run. Without a `mesh` the workflow has one of its own, in
        memory, that keeps only its last few runs once they have ended. Returns for COMPLETED and WAITING. Raises the error
        that a handler failed with; RunFailedError for other failures, RunCancelledError, LimitReached; PayloadError for an
        input that cannot travel.
        """
        runner = mesh or self._own_mesh
        ways = [
            name for name, given in (("responses", responses), ("checkpoint_id", checkpoint_id)) if given is not None
        ]
        if len(ways) + (message is not None) > 1:
            given_message = [] if message is None else ["message"]
            raise ValueError(f"a run begins in one way; given: {', '.join([*ways, *given_message])}")
        if responses is not None and not responses:
            raise ValueError("responses is empty; give {question_id: answer}")
        options = (run_id, max_supersteps, run_timeout, state, labels)
        if any(option is not None for option in options) and (
            unused := _unused(responses is not None, checkpoint_id is not None, *options)
        ):
            raise ValueError(unused)
        if stream and responses is None:
            run_id = run_id or new_run_id()
        begin = partial(
            self._begin,
            runner,
            message,
            responses,
            checkpoint_id,
            run_id,
            max_supersteps,
            run_timeout,
            state,
            labels,
        )
        if not stream:
            return self._result(runner, begin)
        if responses:
            return RunStream(runner, begin, self, question_id=next(iter(responses)))
        return RunStream(runner, begin, self, run_id=run_id or "")

    def _begin(
        self,
        runner: Mesh,
        message: object,
        responses: Mapping[str, object] | None,
        checkpoint_id: str | None,
        run_id: str | None,
        max_supersteps: int | None,
        run_timeout: float | None,
        state: Mapping[str, object] | None,
        labels: Mapping[str, str] | None,
    ) -> Coroutine[Any, Any, Any]:
        if responses is not None:
            return runner.answer_all(self, responses)
        if checkpoint_id is not None:
            return runner.fork(self, checkpoint_id, run_id=run_id, max_supersteps=max_supersteps, state=state)
        return runner.start(
            self, message, run_id=run_id, max_supersteps=max_supersteps, run_timeout=run_timeout, labels=labels
        )

    async def _result(self, runner: Mesh, begin: Callable[[], Coroutine[Any, Any, Any]]) -> RunResult:
        return await runner.result(await begin(), self)

    @cached_property
    def _own_mesh(self) -> Mesh:
        return Mesh(keep_ended=KEPT_WITHOUT_MESH)

    def as_mermaid(self) -> str:
        return picture.mermaid(self.definition)

    def as_dot(self) -> str:
        return picture.dot(self.definition)

    def as_node(self, id: str) -> "NestedWorkflow":
        """It as a node under another id than its name."""
        return NestedWorkflow(self, id)

    def _start_nodes(self) -> Iterator[v1.Node]:
        return (node for node in self.definition.graph.nodes if node.id == self.start)

    def _yielded(self) -> Sequence[v1.PayloadType]:
        found: dict[str, v1.PayloadType] = {}
        for node in self.definition.graph.nodes:
            if node.output_role in _OUTPUT_ROLES:
                types = node.types.message_types if node.HasField("nested") else node.types.output_types
                found |= {one.name: one for one in types}
        return [found[name] for name in sorted(found)]

    @cached_property
    def _node_types(self) -> v1.ExecutorTypes:
        """Its outputs are the messages of the node it is (G38)."""
        return v1.ExecutorTypes(input_types=self.input_types, message_types=self._yielded())


def _unused(
    is_answer: bool,
    is_fork: bool,
    run_id: str | None,
    max_supersteps: int | None,
    run_timeout: float | None,
    state: Mapping[str, object] | None,
    labels: Mapping[str, str] | None,
) -> str:
    """What is wrong with options that the way this run begins has no use for; empty when nothing is."""
    options = {
        "run_id": run_id,
        "max_supersteps": max_supersteps,
        "run_timeout": run_timeout,
        "state": state,
        "labels": labels,
    }
    if is_answer:
        how, used = "responses", set[str]()
    elif is_fork:
        how, used = "checkpoint_id", {"run_id", "max_supersteps", "state"}
    else:
        how, used = "a message", set(options) - {"state"}
    wrong = [name for name, given in options.items() if given is not None and name not in used]
    return f"{', '.join(wrong)} cannot be given with {how}" if wrong else ""


# Runs of a workflow without a mesh are mostly run and forgotten.
KEPT_WITHOUT_MESH: Final = 4

_OUTPUT_ROLES: Final = frozenset({v1.OUTPUT_ROLE_UNSPECIFIED, v1.OUTPUT_ROLE_OUTPUT})


@dataclass(frozen=True)
class NestedWorkflow:
    """A workflow as a node of another."""

    workflow: Workflow
    id: str
