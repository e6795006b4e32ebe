"""Workflows: what the builder writes, what `build` refuses and warns of, and what the value that comes out knows."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Never

import pytest

import hocket
from hocket import v1
from hocket.builder import Case, Default, NodeLike, WorkflowBuilder
from hocket.context import WorkflowContext
from hocket.errors import DefinitionError, DefinitionWarning
from hocket.executor import Executor, executor, handler
from hocket.workflow import Workflow


class Pass(Executor):
    @handler
    async def take(self, text: str, ctx: WorkflowContext[str, str]) -> None: ...


class Join(Executor):
    @handler
    async def take(self, texts: list[str], ctx: WorkflowContext[Never, int]) -> None: ...


def nodes(*ids: str) -> list[Pass]:
    return [Pass(id) for id in ids]


def ids(workflow: Workflow) -> list[str]:
    return [node.id for node in workflow.definition.graph.nodes]


def groups(workflow: Workflow) -> list[v1.EdgeGroup]:
    return list(workflow.definition.graph.edge_groups)


def faults(builder: WorkflowBuilder) -> dict[str, str]:
    with pytest.raises(DefinitionError) as caught:
        builder.build()
    return {fault.path: fault.message for fault in caught.value.faults}


def roles(workflow: Workflow) -> dict[str, str]:
    return {
        node.id: v1.OutputRole.Name(node.output_role).removeprefix("OUTPUT_ROLE_").lower()
        for node in workflow.definition.graph.nodes
    }


def is_high(message: str) -> bool:
    return message == "high"


# What the builder writes


def test_a_chain_is_nodes_and_single_edges() -> None:
    a, b, c = nodes("a", "b", "c")
    workflow = WorkflowBuilder(start_executor=a, name="letters", description="three").add_chain([a, b, c]).build()
    assert (workflow.name, workflow.start, workflow.definition.description) == ("letters", "a", "three")
    assert ids(workflow) == ["a", "b", "c"]
    assert [(group.single.source_node_id, group.single.target_node_id) for group in groups(workflow)] == [
        ("a", "b"),
        ("b", "c"),
    ]
    assert workflow.executors == {"a": a, "b": b, "c": c}
    assert workflow.functions == {}
    assert workflow.definition.graph.max_supersteps == 100


def test_each_kind_of_edge_group_is_written() -> None:
    a, b, c, d = nodes("a", "b", "c", "d")
    join = Join("join")
    workflow = (
        WorkflowBuilder(a, max_supersteps=7)
        .add_fan_out_edges(a, [b, c])
        .add_fan_in_edges([b, c], join, wait_for=1, optional=True)
        .add_switch_case_edge_group(b, [Case("message == 'x'", c), Case("message == 'y'", c), Default(d)])
        .add_multi_selection_edge_group(d, [a, b], "targets")
        .build()
    )
    fan_out, fan_in, switch, selected = groups(workflow)
    assert fan_out.fan_out == v1.FanOut(source_node_id="a", target_node_ids=["b", "c"])
    assert fan_in.fan_in == v1.FanIn(
        source_node_ids=["b", "c"],
        target_node_id="join",
        join_policy=v1.JOIN_POLICY_QUORUM,
        quorum=1,
        optional=True,
    )
    assert [(case.condition, case.target_node_id) for case in switch.switch_case.cases] == [
        ("message == 'x'", "c"),
        ("message == 'y'", "c"),
    ]
    assert switch.switch_case.default_node_id == "d"
    assert selected.multi_selection.selection == "targets"
    assert workflow.definition.graph.max_supersteps == 7


def test_a_fan_out_with_a_selection_is_a_multi_selection() -> None:
    a, b, c = nodes("a", "b", "c")
    workflow = WorkflowBuilder(a).add_fan_out_edges(a, [b, c], selection="['b']").build()
    assert groups(workflow)[0].multi_selection == v1.MultiSelection(
        source_node_id="a", target_node_ids=["b", "c"], selection="['b']"
    )


@pytest.mark.parametrize(
    ("wait_for", "policy", "quorum"),
    [
        ("all", v1.JOIN_POLICY_ALL, 0),
        ("any", v1.JOIN_POLICY_ANY, 0),
        ("reachable", v1.JOIN_POLICY_REACHABLE, 0),
        (2, v1.JOIN_POLICY_QUORUM, 2),
    ],
)
def test_a_join_waits_as_told(wait_for: Any, policy: v1.JoinPolicy.ValueType, quorum: int) -> None:
    a, b, c = nodes("a", "b", "c")
    builder = WorkflowBuilder(a).add_fan_out_edges(a, [b, c]).add_fan_in_edges([b, c], Join("j"), wait_for=wait_for)
    fan_in = groups(builder.build())[1].fan_in
    assert (fan_in.join_policy, fan_in.quorum) == (policy, quorum)  # G18


def test_state_keys_have_their_merge_policies() -> None:
    [a] = nodes("a")
    state: Any = {"log": "append", "one": "reject", "last": "last_writer", "map": "merge", "sum": "sum"}
    workflow = WorkflowBuilder(a, state=state).build()
    assert [(key.key, v1.MergePolicy.Name(key.merge_policy)) for key in workflow.definition.graph.state_keys] == [
        ("log", "MERGE_POLICY_APPEND"),  # G23
        ("one", "MERGE_POLICY_REJECT"),
        ("last", "MERGE_POLICY_LAST_WRITER"),
        ("map", "MERGE_POLICY_MERGE"),
        ("sum", "MERGE_POLICY_SUM"),
    ]


def test_the_builder_may_go_on_after_it_built() -> None:
    a, b, c = nodes("a", "b", "c")
    builder = WorkflowBuilder(a).add_edge(a, b)
    first = builder.build()
    second = builder.add_edge(b, c).build()
    assert (ids(first), ids(second)) == (["a", "b"], ["a", "b", "c"])
    assert first.signature != second.signature


# What may stand at a node


def test_functions_stand_at_nodes_and_the_same_one_is_one_node() -> None:
    def lower(text: str) -> str:
        return text.lower()

    @executor(id="strip")
    async def stripped(text: str, ctx: WorkflowContext[str]) -> None: ...

    workflow = WorkflowBuilder(lower).add_edge(lower, stripped).add_edge(stripped, lower).build()
    assert ids(workflow) == ["lower", "strip"]
    assert len(groups(workflow)) == 2


def test_a_method_of_an_object_is_one_node() -> None:
    class Service:
        def lower(self, text: str) -> str:
            return text.lower()

    service = Service()
    [a] = nodes("a")
    workflow = WorkflowBuilder(service.lower).add_edge(service.lower, a).add_edge(a, service.lower).build()
    assert ids(workflow) == ["lower", "a"]


def test_what_can_be_made_an_executor_is_asked_once() -> None:
    class Agent:
        asked = 0

        def as_executor(self) -> Executor:
            self.asked += 1
            return Pass("agent")

    agent, a = Agent(), Pass("a")
    workflow = WorkflowBuilder(agent, output_from=[agent]).add_edge(agent, a).add_edge(a, agent).build()
    assert (ids(workflow), agent.asked) == (["agent", "a"], 1)
    assert roles(workflow) == {"agent": "output", "a": "hidden"}


def test_nodes_may_be_named_by_their_id() -> None:
    a, b = nodes("a", "b")
    workflow = WorkflowBuilder(a).add_edge(a, b).add_edge("b", "a").build()
    assert groups(workflow)[1].single.target_node_id == "a"


def test_handoff_targets_become_nodes() -> None:
    sales = Pass("sales")
    billing = Pass("billing", handoffs=[sales, "triage"])
    triage = Pass("triage", handoffs=[billing])
    sales.handoffs = [triage]  # they may point at each other
    workflow = WorkflowBuilder(triage).build()
    assert ids(workflow) == ["triage", "billing", "sales"]
    assert list(workflow.definition.graph.nodes[1].handoff_node_ids) == ["sales", "triage"]


@pytest.mark.parametrize("thing", [Pass, 7, None, len])
def test_other_things_cannot_stand_at_a_node(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"is a class; a node needs an object|cannot stand at a node"):
        WorkflowBuilder(thing)


# Conditions: rule G13


def test_functions_are_registered_under_names_made_of_their_place() -> None:
    a, b, c, d = nodes("a", "b", "c", "d")

    def build() -> Workflow:
        return (
            WorkflowBuilder(a, name="w")
            .add_edge(a, b, condition=lambda message: True)
            .add_switch_case_edge_group(b, [Case(is_high, c), Case(is_high, c), Default(d)])
            .add_multi_selection_edge_group(c, [a, d], lambda message, targets: targets)
            .add_multi_selection_edge_group(c, [b, c], lambda message, targets: targets)
            .build()
        )

    workflow = build()
    assert list(workflow.functions) == [
        "w.a->b",
        "w.b->case0->c",
        "w.b->case1->c",
        "w.c->selection",
        "w.c->selection#2",
    ]
    assert workflow.functions["w.b->case0->c"] is is_high
    edge, switch, selected, _ = groups(workflow)
    assert edge.single.condition == "function:w.a->b"
    assert switch.switch_case.cases[1].condition == "function:w.b->case1->c"
    assert selected.multi_selection.selection == "function:w.c->selection"
    # G35: no address of a lambda is in the signature.
    assert build().signature == workflow.signature


async def awaited(message: Any) -> bool:
    return True


class Awaited:
    async def __call__(self, message: Any) -> bool:
        return True


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return function(*args)

    return call


@pytest.mark.parametrize("function", [awaited, Awaited(), functools.partial(awaited), traced(awaited)])
def test_a_coroutine_as_a_condition_is_refused(function: Any) -> None:
    a, b, c = nodes("a", "b", "c")
    found = faults(
        WorkflowBuilder(a)
        .add_edge(a, b, condition=function)
        .add_switch_case_edge_group(b, [Case(function, a), Default(c)])
        .add_multi_selection_edge_group(c, [a, b], function)
    )
    assert set(found) == {
        "graph.edge_groups[0].single.condition",
        "graph.edge_groups[1].switch_case.cases[0].condition",
        "graph.edge_groups[2].multi_selection.selection",
    }
    assert all("is a coroutine function" in message for message in found.values())


def test_a_condition_that_is_none_is_refused() -> None:
    a, b, c = nodes("a", "b", "c")
    flag: Any = True
    found = faults(WorkflowBuilder(a).add_edge(a, b, condition=" ").add_edge(b, c, condition=flag))
    assert "the condition is empty" in found["graph.edge_groups[0].single.condition"]
    assert "the condition is True" in found["graph.edge_groups[1].single.condition"]


# Outputs: rule G26


@pytest.mark.parametrize(
    ("output_from", "intermediate", "expected"),
    [
        (None, None, "unspecified unspecified unspecified"),
        ("all", None, "output output output"),
        (["a"], None, "output hidden hidden"),
        ([], None, "hidden hidden hidden"),
        (["c"], ["a"], "intermediate hidden output"),
        (["c"], "all_other", "intermediate intermediate output"),
        ("all_other", ["b"], "output intermediate output"),
        (None, "all_other", "intermediate intermediate intermediate"),
        (None, ["b"], "hidden intermediate hidden"),
    ],
)
def test_outputs_are_chosen_by_node(output_from: Any, intermediate: Any, expected: str) -> None:
    a, b, c = nodes("a", "b", "c")
    workflow = (
        WorkflowBuilder(a, output_from=output_from, intermediate_output_from=intermediate).add_chain([a, b, c]).build()
    )
    assert " ".join(roles(workflow).values()) == expected


def test_an_executor_may_be_chosen_before_it_is_placed() -> None:
    a, b = nodes("a", "b")
    assert roles(WorkflowBuilder(a, output_from=[b]).add_edge(a, b).build()) == {"a": "hidden", "b": "output"}


def test_wrong_choices_are_refused() -> None:
    a, b = nodes("a", "b")

    def chosen(output: Any, intermediate: Any = None) -> dict[str, str]:
        return faults(WorkflowBuilder(a, output_from=output, intermediate_output_from=intermediate).add_edge(a, b))

    assert chosen(["a", "nope"]) == {"output_from[1]": "node 'nope' is not in the graph; known: a, b"}
    assert "not in the graph" in chosen(None, [Pass("c")])["intermediate_output_from[0]"]
    assert "'b' in output_from too" in chosen(["a", "b"], ["b"])["intermediate_output_from"]
    assert '"all_other" is all that' in chosen(["a"], "all")["intermediate_output_from"]
    assert "both selections" in chosen("all_other", "all_other")["output_from"]
    assert "output_from is 'every'" in chosen("every")["output_from"]


# All that is wrong, at once (G5)


def test_all_faults_come_at_once() -> None:
    a, b, c = nodes("a", "b", "c")
    state: Any = {"key": "average"}
    found = faults(
        WorkflowBuilder(
            a,
            max_supersteps=0,
            state=state,
            output_from=["ghost"],
        )
        .add_edge(a, Pass("a"))
        .add_switch_case_edge_group(a, [Case("message ==", b)])
        .add_switch_case_edge_group(b, [Case("true", a), Default(b), Default(c)])
        .add_fan_in_edges([a, b], Join("join"), wait_for=3)
        .add_edge(c, "nowhere")
    )
    for path, part in {
        "graph.nodes[0].id": "two nodes have the id 'a'",
        "graph.max_supersteps": "max_supersteps is 0",
        "graph.state_keys[0].merge_policy": "'key' is 'average'; known: append, reject",
        "output_from[0]": "'ghost'",
        "graph.edge_groups[1].switch_case.default_node_id": "has no Default; give exactly one",
        "graph.edge_groups[1].switch_case.cases[0].condition": "does not compile",
        "graph.edge_groups[2].switch_case.default_node_id": "has 2 Defaults",
        "graph.edge_groups[3].fan_in.join_policy": "wait_for is 3",
        "graph.edge_groups[4].single.target_node_id": "nowhere",
    }.items():
        assert part in found[path], path


@pytest.mark.parametrize("wait_for", [0, 3, True, "most", None])
def test_a_join_cannot_wait_for_what_never_comes(wait_for: Any) -> None:
    a, b, c = nodes("a", "b", "c")
    builder = WorkflowBuilder(a).add_fan_out_edges(a, [b, c]).add_fan_in_edges([b, c], Join("j"), wait_for=wait_for)
    assert "the numbers from 1 to that of its sources (2)" in faults(builder)["graph.edge_groups[1].fan_in.join_policy"]


def test_what_the_server_finds_is_refused_too() -> None:
    a, b = nodes("a", "b")
    found = faults(WorkflowBuilder(a).add_edge(b, Join("join")))
    assert any("cannot be reached" in message or "unreachable" in message for message in found.values())
    assert any("'join'" in message and "string" in message for message in found.values())


def test_an_unknown_start_is_refused() -> None:
    a, b = nodes("a", "b")
    assert "graph.start_node_id" in faults(WorkflowBuilder("nowhere").add_edge(a, b))


def test_two_objects_with_one_executor_type_are_refused() -> None:
    a, b = Pass("a", executor_type="pass"), Pass("b", executor_type="pass")
    found = faults(WorkflowBuilder(a).add_edge(a, b))
    assert "two executors have the type 'pass'" in found["graph.nodes[1].executor.executor_type"]


def test_doubts_are_warnings() -> None:
    [a] = nodes("a")
    with pytest.warns(DefinitionWarning, match=r"a-workflow: graph\.edge_groups\[0\]") as caught:
        workflow = WorkflowBuilder(a).add_edge(a, a).build()
    assert isinstance(workflow, Workflow)
    assert caught[0].filename == __file__
    WorkflowBuilder(Pass("b"), name="parent").add_edge("b", workflow).build()  # a doubt is said once, where it belongs


# The value


def test_a_workflow_knows_its_types() -> None:
    a, join = Pass("a"), Join("join")
    workflow = (
        WorkflowBuilder(a, output_from=[join]).add_chain([a, b := Pass("b")]).add_fan_in_edges([a, b], join).build()
    )
    assert workflow.input_types == ("string",)
    assert workflow.output_types == ("int",)  # those of hidden nodes are none
    everything = WorkflowBuilder(a).add_chain([a, b]).add_fan_in_edges([a, b], join).build()
    assert everything.output_types == ("int", "string")


def test_a_workflow_does_not_change() -> None:
    workflow = WorkflowBuilder(Pass("a")).build()
    with pytest.raises(AttributeError):
        setattr(workflow, "definition", v1.Definition())  # noqa: B010  # no type checker lets it pass otherwise
    assert repr(workflow) == "Workflow('a-workflow', 1 nodes)"


def test_a_workflow_draws_itself() -> None:
    a, b = nodes("a", "b")
    workflow = WorkflowBuilder(a).add_edge(a, b, condition="message == ''").build()
    assert "n0 -->|\"message == ''\"| n1" in workflow.as_mermaid()
    assert "n0 -> n1 [label=\"message == ''\"]" in workflow.as_dot()


def test_the_signature_is_that_of_the_structure() -> None:
    def signature(description: str = "", condition: str | None = None, limit: int = 100) -> bytes:
        a, b = nodes("a", "b")
        builder = WorkflowBuilder(a, description=description, max_supersteps=limit)
        return builder.add_edge(a, b, condition).build().signature

    assert len(signature()) == 32
    assert signature() == signature(description="for people")  # G35
    assert signature() != signature(condition="true")
    assert signature() != signature(limit=5)


# Nesting: rule G38


def child(*names: str, name: str = "child") -> Workflow:
    parts = nodes(*(names or ("x", "y")))
    return WorkflowBuilder(parts[0], name=name, output_from=[parts[-1]]).add_chain(parts).build()


def test_a_workflow_is_a_node_of_another() -> None:
    inner, a, b = child(), Pass("a"), Pass("b")
    workflow = WorkflowBuilder(a, name="parent").add_chain([a, inner, b]).build()
    assert ids(workflow) == ["a", "child", "b"]
    node = workflow.definition.graph.nodes[1]
    assert node.nested == v1.DefinitionRef(definition_name="child")
    assert list(node.types.input_types) == ["string"]
    assert [one.name for one in node.types.message_types] == ["string"]  # its outputs are the node's messages
    assert list(node.types.output_types) == []
    assert [nested.definition_name for nested in workflow.definition.nested] == ["child"]
    assert workflow.definition.nested[0].graph == inner.definition.graph
    assert set(workflow.executors) == {"a", "b", "x", "y"}


def test_what_is_nested_lies_flat_and_once() -> None:
    deep = child("p", name="deep")
    middle = WorkflowBuilder(deep, name="middle").add_edge(deep, q := Pass("q")).build()
    a = Pass("a")
    workflow = (
        WorkflowBuilder(a, name="parent")
        .add_chain([a, middle, deep, middle.as_node("again")])
        .add_edge(deep, q)
        .build()
    )
    assert ids(workflow) == ["a", "middle", "deep", "again", "q"]
    assert [nested.definition_name for nested in workflow.definition.nested] == ["middle", "deep"]
    assert not any(nested.nested for nested in workflow.definition.nested)
    assert set(workflow.executors) == {"a", "p", "q"}
    assert workflow.executors["q"] is q


def test_the_same_workflow_used_twice_is_one_node() -> None:
    inner, a = child(), Pass("a")
    workflow = WorkflowBuilder(a).add_edge(a, inner).add_edge(inner, a).build()
    assert ids(workflow) == ["a", "child"]
    assert ids(WorkflowBuilder(a).add_edge(a, inner.as_node("n")).add_edge(inner.as_node("n"), a).build()) == ["a", "n"]


def test_functions_of_all_levels_are_held() -> None:
    x, y, a = nodes("x", "y", "a")
    inner = WorkflowBuilder(x, name="child").add_edge(x, y, is_high).build()
    workflow = WorkflowBuilder(a, name="parent").add_edge(a, inner, is_high).build()
    assert set(workflow.functions) == {"child.x->y", "parent.a->child"}


def test_a_function_may_stand_at_two_levels() -> None:
    def lower(text: str) -> str:
        return text.lower()

    inner = WorkflowBuilder(lower, name="child").build()
    workflow = WorkflowBuilder(lower, name="parent").add_edge(lower, inner).build()
    assert set(workflow.executors) == {"lower"}


def test_names_that_clash_between_levels_are_refused() -> None:
    a = Pass("a")

    def clash(*inner: NodeLike) -> str:
        builder = WorkflowBuilder(a, name="parent")
        for node in inner:
            builder.add_edge(a, node)
        return "\n".join(faults(builder).values())

    assert "two workflows have the name 'child'" in clash(child(), child("z").as_node("other"))
    assert "has its own name, 'parent'" in clash(child(name="parent").as_node("inner"))
    assert "two executors have the type 'a'" in clash(child("a"))
    assert "two executors have the type 'y'" in clash(child("x", "y", name="one"), child("z", "y", name="two"))


def test_a_change_inside_changes_the_signature_outside() -> None:
    a = Pass("a")

    def around(inner: Workflow) -> bytes:
        return WorkflowBuilder(a, name="parent").add_edge(a, inner).build().signature

    assert around(child("x", "y")) == around(child("x", "y"))
    assert around(child("x", "y")) != around(child("x", "y", "z"))


def test_a_node_is_written_once_however_often_it_is_named() -> None:
    written: list[str] = []

    class Counted(Pass):
        def fill_node(self, node: v1.Node) -> None:
            written.append(self.id)
            super().fill_node(node)

    parts = [Counted(f"n{i}") for i in range(50)]
    WorkflowBuilder(parts[0]).add_fan_out_edges(parts[0], parts[1:]).add_chain(parts[1:]).build()
    assert written == [part.id for part in parts]


# The surface of the package


def stub() -> ast.Module:
    return ast.parse((Path(hocket.__file__).parent / "__init__.pyi").read_text())


def test_the_stub_and_the_table_say_the_same() -> None:
    imported = {
        alias.asname: f"{statement.module}.{alias.name}"
        for statement in stub().body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert imported == {name: f"hocket.{module}.{name}" for name, module in vars(hocket)["_MODULE_OF"].items()}
    [listed] = [
        ast.literal_eval(statement.value)
        for statement in stub().body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"
    ]
    assert listed == hocket.__all__


def test_names_are_fetched_when_they_are_used() -> None:
    assert hocket.Executor is Executor
    assert hocket.WorkflowBuilder is WorkflowBuilder
    assert hocket.__version__.count(".") >= 2
    assert {"Executor", "executor", "Mesh", "__version__"} <= set(dir(hocket))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(hocket, "Nothing")  # noqa: B009  # no type checker lets it pass otherwise
