"""What `validate` refuses and warns about (G5, and where named another rule), each with the path of its field.

Every test begins with a definition without a fault and breaks one thing; one breaks everything at once. What is nested
is in test_nesting, joins that may starve are in test_choices.
"""

from collections.abc import Callable

import pytest
from google.protobuf.duration_pb2 import Duration

from hocket import v1
from hocket_server.core.validate import validate
from tests.core.definitions import (
    define,
    edge,
    fan_in,
    fan_out,
    found,
    nested,
    node,
    only_fault,
    select,
    switch,
    warned,
)


def rich() -> v1.Definition:
    """One of everything, and nothing wrong with it."""
    return define(
        ["start", "a", "b", "join", "cheap", "dear", "x", "y", "help", nested("inner", "inner")],
        [
            fan_out("start", "a", "b"),
            fan_in(["a", "b"], "join"),
            switch("join", [("message.total < 10", "cheap")], "dear"),
            select("cheap", ["x", "y"], "targets.filter(t, t == message.to)"),
            edge("dear", "help", "message.priority == 'high' && superstep < 9"),
            edge("help", "inner"),
        ],
        [define(["only"], name="inner")],
    )


def test_a_definition_with_one_of_everything_has_no_fault() -> None:
    assert list(validate(rich())) == []


def broken(change: Callable[[v1.Graph], object]) -> v1.Definition:
    definition = rich()
    change(definition.graph)
    return definition


# The graph


def test_a_definition_of_no_kind() -> None:
    path, message = only_fault(v1.Definition(definition_name="order"))
    assert (path, message) == ("graph", "definition 'order' is of no kind this server knows; set `graph`")


def test_an_empty_graph_has_neither_nodes_nor_a_start() -> None:
    assert [path for path, _ in found(v1.Definition(graph=v1.Graph()))] == ["graph.nodes", "graph.start_node_id"]


@pytest.mark.parametrize(
    ("start", "message"),
    [("", "no start node is named; known: 'a', 'b'"), ("c", "start node 'c' is not in the graph; known: 'a', 'b'")],
)
def test_an_unknown_start_is_one_fault_and_not_one_for_each_node(start: str, message: str) -> None:
    assert only_fault(define(["a", "b"], [edge("a", "b")], start=start)) == ("graph.start_node_id", message)


def test_what_no_path_of_edges_leads_to_is_unreachable() -> None:
    definition = define(["a", "b", "c", "d"], [edge("a", "b"), edge("c", "d"), edge("d", "c")])
    assert [path for path, _ in found(definition)] == ["graph.nodes[2]", "graph.nodes[3]"]
    assert found(definition)[0][1].startswith("node 'c' cannot be reached from start node 'a'; lead an edge to it")


def test_handoffs_and_the_sources_of_a_join_lead_somewhere() -> None:
    a = node("a")
    a.handoff_node_ids.append("b")
    assert found(define([a, "b", "c", "join"], [edge("b", "c"), fan_in(["a", "c"], "join", v1.JOIN_POLICY_ANY)])) == []


def test_negative_max_supersteps() -> None:
    def change(graph: v1.Graph) -> None:
        graph.max_supersteps = -1

    assert only_fault(broken(change))[0] == "graph.max_supersteps"


def test_too_many_nodes_is_one_fault_and_nothing_else_is_read() -> None:
    an_empty_node = b"\x0a\x00"
    path, message = only_fault(v1.Definition(graph=v1.Graph.FromString(an_empty_node * 100_001)))
    assert path == "graph.nodes"
    assert "100,001 nodes; at most 100,000" in message


def test_state_keys_are_declared_once_and_may_be_any_text_but_nul() -> None:
    def change(graph: v1.Graph) -> None:
        for key in ("total", "a/b #\n", "total", "nul\0"):
            graph.state_keys.add(key=key, merge_policy=v1.MERGE_POLICY_SUM)
        graph.state_keys.add(key="odd", merge_policy=99)  # of a later version

    faults = found(broken(change))
    assert [path for path, _ in faults] == [
        "graph.state_keys[2].key",
        "graph.state_keys[3].key",
        "graph.state_keys[4].merge_policy",
    ]
    assert faults[0][1] == "state key 'total' is declared twice, first as state_keys[0]; keep one"
    assert "U+0000" in faults[1][1]
    assert "MERGE_POLICY_LAST_WRITER" in faults[2][1]


# Nodes


@pytest.mark.parametrize(
    ("node_id", "message"),
    [
        ("", "the id is empty"),
        ("a/b", "node id 'a/b' holds '/'"),
        ("a#1", "holds '#'"),
        ("a\tb", "holds U+0009"),
        ("a\0", "holds U+0000"),
        ("a\x7f", "holds U+007F"),
        ("start", "node id 'start' is taken by nodes[0]; every node needs its own"),
    ],
)
def test_node_ids_are_there_legal_and_different(node_id: str, message: str) -> None:
    faults = dict(found(define(["start", node_id], [] if node_id in {"", "start"} else [edge("start", node_id)])))
    assert message in faults["graph.nodes[1].id"]


def test_any_other_text_is_an_id() -> None:
    assert found(define(["👩🏽‍🚀 שלום", "é ü"], [edge("👩🏽‍🚀 שלום", "é ü")])) == []


def test_a_node_runs_something() -> None:
    assert only_fault(define([v1.Node(id="a")])) == (
        "graph.nodes[0]",
        "node 'a' runs nothing; set `executor` or `nested`",
    )


@pytest.mark.parametrize(("kind", "message"), [("", "names no executor type"), ("a\n", "holds U+000A")])
def test_an_executor_has_a_type(kind: str, message: str) -> None:
    path, text = only_fault(define([v1.Node(id="a", executor=v1.ExecutorRef(executor_type=kind))]))
    assert path == "graph.nodes[0].executor.executor_type"
    assert message in text


def test_an_affinity_is_cel_that_gives_text() -> None:
    def change(graph: v1.Graph) -> None:
        graph.nodes[0].executor.affinity_expression = "message.customer"
        graph.nodes[1].executor.affinity_expression = "superstep"

    path, message = only_fault(broken(change))
    assert path == "graph.nodes[1].executor.affinity_expression"
    assert "gives int; it must give a string" in message


@pytest.mark.parametrize(
    ("targets", "index", "message"),
    [(["nobody"], 0, "handoff target 'nobody' is not in the graph"), (["a", "a"], 1, "names 'a' twice")],
)
def test_handoff_targets_are_nodes_each_once(targets: list[str], index: int, message: str) -> None:
    path, text = only_fault(broken(lambda graph: graph.nodes[0].handoff_node_ids.extend(targets)))
    assert path == f"graph.nodes[0].handoff_node_ids[{index}]"
    assert message in text


def test_a_state_key_that_is_read_holds_no_nul() -> None:
    path, _ = only_fault(broken(lambda graph: graph.nodes[0].state_reads.extend(["any / key", "nul\0"])))
    assert path == "graph.nodes[0].state_reads[1]"


@pytest.mark.parametrize("name", ["timeout", "lease_duration", "schedule_timeout", "idle_timeout"])
@pytest.mark.parametrize(
    ("duration", "message"),
    [
        (Duration(seconds=-1), "is -1 s; a duration is not negative"),
        (Duration(), "is 0 s; leave it unset or give a positive duration"),
        (Duration(seconds=1, nanos=1_000_000_000), "at most"),
        (Duration(seconds=400_000_000_000), "at most"),
    ],
)
def test_timeouts_are_positive_durations(name: str, duration: Duration, message: str) -> None:
    path, text = only_fault(broken(lambda graph: getattr(graph.nodes[3], name).CopyFrom(duration)))
    assert path == f"graph.nodes[3].{name}"
    assert message in text


@pytest.mark.parametrize(
    ("policy", "field", "message"),
    [
        (v1.RetryPolicy(backoff_coefficient=0.5), "backoff_coefficient", "is 0.5; it is 1 or more"),
        (v1.RetryPolicy(backoff_coefficient=float("nan")), "backoff_coefficient", "is nan"),
        (v1.RetryPolicy(backoff_coefficient=float("inf")), "backoff_coefficient", "is inf"),
        (v1.RetryPolicy(max_attempts=-1), "max_attempts", "is -1; it is 1 or more, or 0 for the default"),
        (v1.RetryPolicy(max_redeliveries=-3), "max_redeliveries", "is -3"),
        (v1.RetryPolicy(initial_interval=Duration(seconds=-2)), "initial_interval", "not negative"),
        (
            v1.RetryPolicy(initial_interval=Duration(seconds=5), maximum_interval=Duration(seconds=2)),
            "maximum_interval",
            "maximum_interval 2 s is below initial_interval 5 s",
        ),
    ],
)
def test_retry_policies_make_sense(policy: v1.RetryPolicy, field: str, message: str) -> None:
    path, text = only_fault(broken(lambda graph: graph.nodes[0].retry_policy.CopyFrom(policy)))
    assert path == f"graph.nodes[0].retry_policy.{field}"
    assert message in text


def test_zero_is_the_default_of_a_retry_policy() -> None:
    assert found(broken(lambda graph: graph.nodes[0].retry_policy.CopyFrom(v1.RetryPolicy()))) == []


def test_concurrency_is_not_negative_and_enums_are_known() -> None:
    def change(graph: v1.Graph) -> None:
        graph.nodes[0].concurrency = -1
        # Values of a later version.
        graph.nodes[1].MergeFrom(v1.Node.FromString(b"\x20\x63"))
        graph.nodes[2].MergeFrom(v1.Node.FromString(b"\x78\x63"))

    assert [path for path, _ in found(broken(change))] == [
        "graph.nodes[0].concurrency",
        "graph.nodes[1].output_role",
        "graph.nodes[2].on_stuck",
    ]


# Edge groups


def test_an_edge_group_of_no_kind() -> None:
    assert only_fault(define(["a"], [v1.EdgeGroup()]))[0] == "graph.edge_groups[0]"


@pytest.mark.parametrize(
    ("group", "path"),
    [
        (edge("nobody", "a"), "single.source_node_id"),
        (edge("a", "nobody"), "single.target_node_id"),
        (edge("a", ""), "single.target_node_id"),
        (fan_out("nobody", "a", "b"), "fan_out.source_node_id"),
        (fan_out("b", "c", "nobody"), "fan_out.target_node_ids[1]"),
        (fan_in(["b", "nobody"], "c"), "fan_in.source_node_ids[1]"),
        (fan_in(["b", "c"], "nobody"), "fan_in.target_node_id"),
        (switch("nobody", [("true", "b")], "c"), "switch_case.source_node_id"),
        (switch("b", [("true", "nobody")], "c"), "switch_case.cases[0].target_node_id"),
        (switch("b", [("true", "c")], "nobody"), "switch_case.default_node_id"),
        (select("nobody", ["a", "b"]), "multi_selection.source_node_id"),
        (select("b", ["c", "nobody"]), "multi_selection.target_node_ids[1]"),
    ],
)
def test_every_end_of_an_edge_is_a_node(group: v1.EdgeGroup, path: str) -> None:
    faults = found(define(["a", "b", "c"], [edge("a", "b"), edge("a", "c"), group]))
    assert [where for where, _ in faults] == [f"graph.edge_groups[2].{path}"]
    assert "known: 'a', 'b', 'c'" in faults[0][1]


def test_a_switch_has_cases_with_conditions_and_a_default() -> None:
    groups = [switch("a", [], "b"), switch("b", [("", "c")], "")]
    assert [path for path, _ in found(define(["a", "b", "c"], groups))] == [
        "graph.edge_groups[0].switch_case.cases",
        "graph.edge_groups[1].switch_case.cases[0].condition",
        "graph.edge_groups[1].switch_case.default_node_id",
    ]


def test_cases_may_share_a_target() -> None:
    cases = [("message == 1", "b"), ("message == 2", "c"), ("message == 3", "b")]
    assert found(define(["a", "b", "c"], [switch("a", cases, "b")])) == []


@pytest.mark.parametrize(
    ("group", "path", "message"),
    [
        (fan_out("a", "b"), "fan_out.target_node_ids", "fan_out has 1 target; it needs two"),
        (fan_out("a", "b", "b"), "fan_out.target_node_ids", "fan_out has 1 target; it needs two"),
        (fan_in(["a"], "b"), "fan_in.source_node_ids", "fan_in has 1 source; it needs two"),
        (
            fan_in([], "a", v1.JOIN_POLICY_QUORUM, 2),
            "fan_in.source_node_ids",
            "fan_in has 0 sources; it needs two",
        ),
        (select("a", ["b"]), "multi_selection.target_node_ids", "multi_selection has 1 target; it needs two"),
    ],
)
def test_a_fan_has_two_ends(group: v1.EdgeGroup, path: str, message: str) -> None:
    assert message in dict(found(define(["a", "b"], [group])))[f"graph.edge_groups[0].{path}"]


@pytest.mark.parametrize(
    ("group", "path"),
    [
        (fan_out("a", "b", "c", "b"), "fan_out.target_node_ids[2]"),
        (fan_in(["a", "b", "a"], "c", v1.JOIN_POLICY_ANY), "fan_in.source_node_ids[2]"),
        (select("a", ["b", "c", "c"]), "multi_selection.target_node_ids[2]"),
    ],
)
def test_an_edge_group_names_a_node_once(group: v1.EdgeGroup, path: str) -> None:
    extra = [edge("a", "b")] if group.HasField("fan_in") else []
    faults = found(define(["a", "b", "c"], [*extra, group]))
    assert [where for where, _ in faults] == [f"graph.edge_groups[{len(extra)}].{path}"]
    assert "is named twice in one edge group" in faults[0][1]


@pytest.mark.parametrize(
    ("second", "path"),
    [
        (edge("a", "b", "message == 1"), "single.target_node_id"),
        (fan_out("a", "c", "b"), "fan_out.target_node_ids[1]"),
        (switch("a", [("true", "c")], "b"), "switch_case.default_node_id"),
        (fan_in(["c", "a"], "b"), "fan_in.source_node_ids[1]"),
    ],
)
def test_between_two_nodes_there_is_one_group_in_each_direction(second: v1.EdgeGroup, path: str) -> None:
    extra = [edge("b", "c")] if second.HasField("fan_in") else []
    faults = found(define(["a", "b", "c"][: 2 if second.HasField("single") else 3], [edge("a", "b"), second, *extra]))
    assert faults[0][0] == f"graph.edge_groups[1].{path}"
    assert faults[0][1] == "'a' -> 'b' is in edge_groups[0] as well; join both in one group, or take one out"


def test_there_and_back_are_two_directions() -> None:
    assert found(define(["a", "b"], [edge("a", "b"), edge("b", "a", "message == 1")])) == []


def test_edge_group_ids_differ_also_from_what_an_empty_one_stands_for() -> None:
    groups = [edge("a", "b"), edge("b", "c"), edge("c", "d"), edge("d", "e"), edge("e", "f")]
    for group, group_id in zip(groups, ["", "x", "x", "single:0", "nul\0"], strict=True):
        group.id = group_id
    faults = found(define(list("abcdef"), groups))
    assert faults == [
        (
            "graph.edge_groups[2].id",
            "the edge group id is 'x', which edge_groups[1] has; every group needs its own",
        ),
        (
            "graph.edge_groups[3].id",
            "the edge group id is 'single:0', which edge_groups[0] has; every group needs its own",
        ),
        ("graph.edge_groups[4].id", "edge group id 'nul\\x00' holds U+0000; take it out"),
    ]


@pytest.mark.parametrize(
    ("policy", "quorum", "field"),
    [
        (v1.JOIN_POLICY_QUORUM, 0, "quorum"),
        (v1.JOIN_POLICY_QUORUM, 3, "quorum"),
        (v1.JOIN_POLICY_QUORUM, -1, "quorum"),
        (v1.JOIN_POLICY_ALL, 2, "quorum"),
        (v1.JOIN_POLICY_UNSPECIFIED, 1, "quorum"),
        (99, 0, "join_policy"),
    ],
)
def test_a_quorum_is_of_the_sources_and_with_its_policy_only(
    policy: v1.JoinPolicy.ValueType, quorum: int, field: str
) -> None:
    groups = [fan_out("s", "a", "b"), fan_in(["a", "b"], "join", policy, quorum)]
    assert only_fault(define(["s", "a", "b", "join"], groups))[0] == f"graph.edge_groups[1].fan_in.{field}"


# Expressions


@pytest.mark.parametrize(
    ("group", "path", "message"),
    [
        (edge("a", "b", "message.x =="), "single.condition", "does not compile: line 1, column 13"),
        (edge("a", "b", "superstep"), "single.condition", "gives int; it must give a bool"),
        (edge("a", "b", "size(targets) > 0"), "single.condition", "known variables: message, message_type"),
        (switch("a", [("1", "b")], "b"), "switch_case.cases[0].condition", "gives int"),
        (select("a", ["b", "a"], "source"), "multi_selection.selection", "it must give a list of strings"),
        (select("a", ["b", "a"], ""), "multi_selection.selection", "the selection is empty"),
        (edge("a", "b", "function:"), "single.condition", "names no function"),
    ],
)
def test_cel_is_compiled_and_its_type_checked(group: v1.EdgeGroup, path: str, message: str) -> None:
    where, text = only_fault(define(["a", "b"], [group]))
    assert where == f"graph.edge_groups[0].{path}"
    assert message in text


def test_functions_are_taken_on_trust_or_looked_up() -> None:
    definition = define(["a", "b", "c"], [edge("a", "b", "function:is_big"), select("b", ["a", "c"], "function:pick")])
    assert validate(definition) == []
    assert validate(definition, {"is_big", "pick"}) == []

    (fault,) = validate(definition, {"is_small", "is_big"})
    assert fault.path == "graph.edge_groups[1].multi_selection.selection"
    assert fault.message == "function 'pick' is not registered here; known: 'is_big', 'is_small'"


# Warnings


@pytest.mark.parametrize(
    ("group", "path"),
    [(edge("a", "a"), "single.target_node_id"), (fan_out("a", "b", "a"), "fan_out.target_node_ids[1]")],
)
def test_a_loop_to_itself_without_a_condition_may_never_end(group: v1.EdgeGroup, path: str) -> None:
    nodes = ["a", "b"] if group.HasField("fan_out") else ["a"]
    ((where, message),) = warned(define(nodes, [group]))
    assert where == f"graph.edge_groups[0].{path}"
    assert "without a condition" in message


def test_a_loop_with_a_condition_is_nothing_to_warn_of() -> None:
    assert warned(define(["a"], [edge("a", "a", "message < 3")])) == []


# Everything at once


def test_all_faults_come_at_once_in_order_of_position() -> None:
    """G5: thirty-one things are wrong and two are odd; each is told."""
    bad_executor = v1.Node(id="a", executor=v1.ExecutorRef(affinity_expression="superstep"))
    busy = node("busy", ["int"], ["int"])
    busy.timeout.CopyFrom(Duration(seconds=-1))
    busy.retry_policy.max_attempts = -1
    busy.retry_policy.backoff_coefficient = 0.1
    busy.concurrency = -2
    busy.handoff_node_ids.append("nobody")
    definition = define(
        [
            node("start", ["int"], ["int"]),
            bad_executor,
            busy,
            "start",
            "x/y",
            "",
            v1.Node(id="idle"),
            nested("deep", "missing"),
            node("text", ["string"], ["string"]),
            "island",
        ],
        [
            v1.EdgeGroup(),
            edge("start", "a", "message +"),
            edge("start", "busy"),
            edge("start", "nobody"),
            edge("start", "busy", "superstep"),
            fan_out("busy", "text"),
            fan_in(["start", "busy"], "text", v1.JOIN_POLICY_QUORUM, 5),
            switch("a", [("", "x/y")], ""),
            select("a", ["idle", "deep"], "[1]"),
            v1.EdgeGroup(id="single:3", single=v1.SingleEdge(source_node_id="a", target_node_id="text")),
            edge("text", "text"),
        ],
        nested=[define(["only", "lost"], name="inner")],
    )
    definition.graph.state_keys.add(key="k")
    definition.graph.state_keys.add(key="k")
    definition.graph.max_supersteps = -5

    assert [(fault.path, fault.warning) for fault in validate(definition)] == [
        ("graph.nodes[1].executor.executor_type", False),
        ("graph.nodes[1].executor.affinity_expression", False),
        ("graph.nodes[2].timeout", False),
        ("graph.nodes[2].retry_policy.backoff_coefficient", False),
        ("graph.nodes[2].retry_policy.max_attempts", False),
        ("graph.nodes[2].concurrency", False),
        ("graph.nodes[2].handoff_node_ids[0]", False),
        ("graph.nodes[3].id", False),
        ("graph.nodes[4].id", False),
        ("graph.nodes[5].id", False),
        ("graph.nodes[5]", False),
        ("graph.nodes[6]", False),
        ("graph.nodes[7].nested", False),
        ("graph.nodes[9]", False),
        ("graph.edge_groups[0]", False),
        ("graph.edge_groups[1].single.condition", False),
        ("graph.edge_groups[3].single.target_node_id", False),
        ("graph.edge_groups[4].single.condition", False),
        ("graph.edge_groups[4].single.target_node_id", False),
        ("graph.edge_groups[5].fan_out.target_node_ids[0]", False),
        ("graph.edge_groups[5].fan_out.target_node_ids", False),
        ("graph.edge_groups[6].fan_in.source_node_ids[1]", False),
        ("graph.edge_groups[6].fan_in.quorum", False),
        ("graph.edge_groups[6].fan_in.target_node_id", False),
        ("graph.edge_groups[7].switch_case.cases[0].condition", False),
        ("graph.edge_groups[7].switch_case.default_node_id", False),
        ("graph.edge_groups[8].multi_selection.selection", False),
        ("graph.edge_groups[9].id", False),
        ("graph.edge_groups[10].single.target_node_id", True),
        ("graph.state_keys[1].key", False),
        ("graph.max_supersteps", False),
        ("nested[0]", True),
        ("nested[0].graph.nodes[1]", False),
    ]
