"""Types of an edge's ends, and what lies in a definition: names, circles, depth, faults with a path (G5, G38)."""

from collections.abc import Callable

import pytest

from hocket import v1
from hocket_server.core.validate import MAX_DEPTH, validate
from tests.core.definitions import (
    define,
    edge,
    fan_in,
    fan_out,
    found,
    nested,
    node,
    only_fault,
    warned,
)

# Types of an edge's ends


@pytest.mark.parametrize(
    ("sends", "takes", "passes"),
    [
        ("string", "string", True),
        ("string", "int", False),
        ("Dog < Animal", "Animal", True),
        ("Animal", "Dog", False),
        ("string", "*", True),
        ("*", "int", True),
        ("list<string>", "list<any>", True),
        ("list<any>", "list<string>", True),
        ("map<int>", "map<any>", True),
        ("map<int>", "list<any>", False),
        ("string", "list<string>", False),
    ],
)
def test_the_ends_of_an_edge_have_a_type_in_common(sends: str, takes: str, passes: bool) -> None:
    faults = found(define([node("a", ["string"], [sends]), node("b", [takes])], [edge("a", "b")]))
    assert [path for path, _ in faults] == ([] if passes else ["graph.edge_groups[0].single.target_node_id"])


def test_a_node_that_sends_nothing_has_no_edges() -> None:
    definition = define([node("a", ["string"]), node("b", ["*"])], [edge("a", "b")])
    assert "node 'a' sends nothing and node 'b' takes *" in only_fault(definition)[1]


def test_types_that_are_not_known_are_not_judged() -> None:
    assert found(define(["a", node("b", ["int"])], [edge("a", "b")])) == []
    assert found(define([node("a", [], ["int"]), "b"], [edge("a", "b")])) == []


def test_each_target_of_a_group_is_judged() -> None:
    nodes = [node("a", ["int"], ["int"]), node("b", ["int"]), node("c", ["string"])]
    assert only_fault(define(nodes, [fan_out("a", "b", "c")]))[0] == "graph.edge_groups[0].fan_out.target_node_ids[1]"


@pytest.mark.parametrize(
    ("takes", "passes"),
    [
        ("list<string>", True),
        ("list<int>", True),
        ("list<any>", True),
        ("*", True),
        ("list<Animal>", True),
        ("string", False),
        ("list<float>", False),
    ],
)
def test_the_target_of_a_join_handles_lists_of_what_a_source_sends(takes: str, passes: bool) -> None:
    """G17."""
    nodes = [
        node("s", ["int"], ["int"]),
        node("a", ["int"], ["string"]),
        node("b", ["int"], ["int", "Dog < Animal"]),
        node("join", [takes]),
    ]
    faults = found(define(nodes, [fan_out("s", "a", "b"), fan_in(["a", "b"], "join")]))
    assert [path for path, _ in faults] == ([] if passes else ["graph.edge_groups[1].fan_in.target_node_id"])
    if not passes:
        assert "let it handle list<string> or list<any>" in faults[0][1]


def test_a_source_of_unknown_type_may_send_any_element() -> None:
    nodes = [node("s"), node("a"), node("b", ["int"], ["int"]), node("join", ["list<float>"])]
    assert found(define(nodes, [fan_out("s", "a", "b"), fan_in(["a", "b"], "join")])) == []


def test_a_nested_node_takes_what_its_start_takes_and_sends_what_it_yields() -> None:
    """G38."""
    inside = define([node("in", ["int"], ["int"]), node("out", ["int"]), node("aside", ["int"])], name="inner")
    inside.graph.edge_groups.append(fan_out("in", "out", "aside"))
    inside.graph.nodes[1].types.output_types.add(name="float")
    inside.graph.nodes[2].types.output_types.add(name="bytes")
    inside.graph.nodes[2].output_role = v1.OUTPUT_ROLE_HIDDEN

    def around(sends: str, takes: str) -> list[str]:
        nodes = [node("a", ["*"], [sends]), nested("n", "inner"), node("b", [takes])]
        return [path for path, _ in found(define(nodes, [edge("a", "n"), edge("n", "b")], [inside]))]

    assert around("int", "float") == []
    assert around("string", "float") == ["graph.edge_groups[0].single.target_node_id"]
    assert around("int", "bytes") == ["graph.edge_groups[1].single.target_node_id"]


# Nested definitions


def test_a_nested_definition_is_named_by_name_and_version() -> None:
    inner = define(["only"], name="inner")
    inner.version = 3
    nodes = [
        nested("a", "inner", 3),
        nested("b", "inner", 4),
        nested("c", "other"),
        nested("d", ""),
        nested("e", "inner"),
    ]
    groups = [edge("a", "b"), edge("b", "c"), edge("c", "d"), edge("d", "e")]
    assert found(define(nodes, groups, [inner])) == [
        ("graph.nodes[1].nested", "definition 'inner' has no version 4 in `nested`; there are: 3"),
        ("graph.nodes[2].nested", "definition 'other' is not in `nested`; known: 'inner'"),
        ("graph.nodes[3].nested", "the reference names no definition; set definition_name"),
    ]


def test_faults_of_what_is_nested_have_its_path_and_are_told_once() -> None:
    inner = define(["only", "lost"], name="inner")
    middle = define([nested("n", "inner")], name="middle")
    definition = define([nested("a", "middle"), nested("b", "inner")], [edge("a", "b")], [middle, inner])
    assert [path for path, _ in found(definition)] == ["nested[1].graph.nodes[1]"]


def test_what_a_nested_definition_holds_itself_comes_first() -> None:
    own = define(["only", "lost"], name="inner")
    middle = define([nested("n", "inner")], name="middle", nested=[own])
    definition = define([nested("a", "middle")], nested=[middle])
    assert [path for path, _ in found(definition)] == ["nested[0].nested[0].graph.nodes[1]"]


def test_a_version_is_not_negative() -> None:
    inner = define(["only"], name="inner")
    inner.version = -1
    faults = found(define([nested("a", "inner", -1)], nested=[inner]))
    assert [path for path, _ in faults] == ["graph.nodes[0].nested.version", "nested[0].version"]


def test_nested_names_are_there_and_different() -> None:
    inner = define(["only"], name="inner")
    nameless = define(["only"], name="")
    faults = found(define([nested("a", "inner")], nested=[inner, inner, nameless]))
    assert [path for path, _ in faults] == ["nested[1].definition_name", "nested[2].definition_name"]
    assert faults[0][1] == "definition 'inner' version 0 is here twice, first as nested[0]; drop one"


def test_a_nested_definition_that_nobody_names_is_a_warning() -> None:
    assert warned(define(["a"], nested=[define(["only"], name="inner")])) == [
        ("nested[0]", "no node names definition 'inner'; take it out, or name it")
    ]


def test_a_definition_does_not_hold_itself() -> None:
    assert only_fault(define([nested("a", "order")])) == (
        "graph.nodes[0].nested",
        "definition 'order' holds itself",
    )
    parts = [define([nested("n", after)], name=name) for name, after in (("x", "y"), ("y", "z"), ("z", "x"))]
    faults = found(define([nested("a", "x")], nested=parts))
    assert len(faults) == 1
    assert faults[0][1].startswith("definition ")
    assert " holds itself: " in faults[0][1]


def test_of_a_long_circle_the_ends_are_shown() -> None:
    parts = [define([nested("n", f"d{(number + 1) % 20}")], name=f"d{number}") for number in range(20)]
    _, message = only_fault(define([nested("a", "d0")], nested=parts))
    assert message == "definition 'd19' holds itself: 'd19' -> 'd0' -> 'd1' -> ... -> 'd17' -> 'd18' -> 'd19'"


def line_of(levels: int) -> v1.Definition:
    """Each names the next; all lie in the first."""
    parts = [define([nested("n", f"d{level + 1}")], name=f"d{level}") for level in range(1, levels)]
    return define([nested("n", "d1")], nested=[*parts, define(["end"], name=f"d{levels}")])


def boxes_of(levels: int) -> v1.Definition:
    """Each lies in the one before."""
    outer = v1.Definition()
    inner = outer
    for level in range(levels):
        inner.graph.start_node_id = "n"
        inner.graph.nodes.append(nested("n", f"d{level}"))
        inner = inner.nested.add(definition_name=f"d{level}")
    inner.graph.start_node_id = "n"
    inner.graph.nodes.append(node("n"))
    return outer


@pytest.mark.parametrize(("deep", "deepest"), [(line_of, 100), (boxes_of, 2000)])
def test_depth_is_limited_by_one_clear_fault(deep: Callable[[int], v1.Definition], deepest: int) -> None:
    """G38, B08."""
    assert validate(deep(MAX_DEPTH)) == []
    for levels in (MAX_DEPTH + 1, deepest):
        _, message = only_fault(deep(levels))
        assert str(MAX_DEPTH) in message
        assert "levels" in message


def test_the_definition_has_legal_words() -> None:
    definition = define(["a"])
    definition.definition_name = "a\nb"
    definition.version = -1
    definition.description = "\0"
    definition.labels["team"] = "\0"
    assert [path for path, _ in found(definition)] == ["definition_name", "version", "description", "labels"]
