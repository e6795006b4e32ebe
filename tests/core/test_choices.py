"""Joins that may starve (G20): a source depends on a choice that another does not."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hocket import v1
from hocket_server.core.validate import validate
from tests.core.definitions import (
    define,
    edge,
    fan_in,
    fan_out,
    node,
    select,
    switch,
    warned,
)

EVEN, ODD = "message % 2 == 0", "message % 2 == 1"


def test_b01_a_join_of_branches_that_exclude_each_other_may_starve() -> None:
    """B01, G20."""
    nodes = ["start", "A", "B", "join"]
    groups = [edge("start", "A", EVEN), edge("start", "B", ODD), fan_in(["A", "B"], "join")]
    assert warned(define(nodes, groups)) == [
        (
            "graph.edge_groups[2].fan_in.join_policy",
            "join 'join' may starve: its source 'B' depends on the condition 'message % 2 == 1' of edge_groups[1], "
            "its source 'A' does not; a run in which it waits in vain fails. Use JOIN_POLICY_REACHABLE, or mark the "
            "join optional",
        )
    ]


QUORUM = v1.JOIN_POLICY_QUORUM
JOIN = fan_in(["A", "B"], "join")


@pytest.mark.parametrize(
    ("groups", "starves"),
    [
        # Both always run.
        ([fan_out("start", "A", "B"), JOIN], False),
        ([edge("start", "A"), edge("A", "B"), JOIN], False),
        # One runs always, one if ...
        ([edge("start", "A"), edge("start", "B", EVEN), JOIN], True),
        ([edge("start", "A"), edge("A", "B", EVEN), JOIN], True),
        ([switch("start", [(EVEN, "A")], "B"), JOIN], True),
        ([select("start", ["A", "B"]), JOIN], True),
        # Both lie behind the same choice, and share it.
        ([edge("start", "x", EVEN), fan_out("x", "A", "B"), JOIN], False),
        ([edge("start", "A", EVEN), edge("start", "B", EVEN), JOIN], False),
        ([edge("start", "x", EVEN), edge("x", "A"), edge("x", "y"), edge("y", "B"), JOIN], False),
        # All cases together are no choice.
        ([switch("start", [(EVEN, "x")], "y"), fan_out("x", "A", "B"), fan_out("y", "A", "B"), JOIN], False),
        ([edge("start", "B"), switch("start", [(EVEN, "x")], "y"), edge("x", "A"), edge("y", "A"), JOIN], False),
        ([edge("start", "B"), switch("start", [(EVEN, "x"), (ODD, "y")], "z"), edge("x", "A"), edge("y", "A"), JOIN], True),
        # A loop back changes nothing.
        ([edge("start", "x"), fan_out("x", "A", "B"), JOIN, edge("join", "x", EVEN)], False),
        ([fan_out("start", "A", "B"), edge("A", "A", EVEN), JOIN], False),
        # A choice of what has run anyway changes nothing.
        ([edge("start", "x", EVEN), fan_out("x", "A", "B"), edge("A", "y"), edge("y", "B", ODD), JOIN], False),
        # Behind another join.
        ([fan_out("start", "x", "y"), edge("start", "z", EVEN), fan_in(["x", "y", "z"], "A", QUORUM, 2),
          edge("y", "B"), JOIN], False),
        ([fan_out("start", "x", "y"), fan_in(["x", "y"], "z"), fan_out("z", "A", "B"), JOIN], False),
        ([fan_out("start", "x", "y"), fan_in(["x", "y"], "A"), edge("y", "B"), JOIN], False),
        # What does not wait for all does not starve.
        ([edge("start", "A", EVEN), edge("start", "B", ODD), fan_in(["A", "B"], "join", v1.JOIN_POLICY_ANY)], False),
        ([edge("start", "A", EVEN), edge("start", "B", ODD), fan_in(["A", "B"], "join", v1.JOIN_POLICY_REACHABLE)], False),
        ([edge("start", "A", EVEN), edge("start", "B", ODD), fan_in(["A", "B"], "join", optional=True)], False),
        ([edge("start", "A", EVEN), edge("start", "B", ODD), fan_in(["A", "B"], "join", QUORUM, 1)], False),
        ([edge("start", "A", EVEN), edge("start", "B", ODD), fan_in(["A", "B"], "join", QUORUM, 2)], True),
        ([fan_out("start", "A", "B"), edge("start", "x", EVEN), fan_in(["A", "B", "x"], "join", QUORUM, 2)], False),
        ([select("start", ["A", "B", "x"]), fan_in(["A", "B", "x"], "join", QUORUM, 2)], True),
    ],
)  # fmt: skip
def test_a_join_may_starve_when_a_source_depends_on_a_choice_that_another_does_not(
    groups: list[v1.EdgeGroup], starves: bool
) -> None:
    named = {"start": None}
    for group in groups:
        for field in ("single", "fan_out", "fan_in", "switch_case", "multi_selection"):
            if group.HasField(field):
                ends = getattr(group, field)
                named |= dict.fromkeys(getattr(ends, "source_node_ids", [getattr(ends, "source_node_id", "")]))
                named |= dict.fromkeys(getattr(ends, "target_node_ids", [getattr(ends, "target_node_id", "")]))
                if field == "switch_case":
                    named |= dict.fromkeys([*(case.target_node_id for case in ends.cases), ends.default_node_id])
    definition = define([name for name in named if name], groups)

    assert ["may starve" in message for _, message in warned(definition)] == ([True] if starves else [])


def test_a_handoff_is_a_choice_as_well() -> None:
    start = node("start")
    start.handoff_node_ids.append("B")
    ((_, message),) = warned(define([start, "A", "B", "join"], [edge("start", "A"), JOIN]))
    assert "source 'B' depends on a handoff of node 'start'" in message


def test_what_lies_behind_a_join_that_may_starve_may_not_come_either() -> None:
    groups = [edge("start", "x", EVEN), edge("start", "y", ODD), fan_in(["x", "y"], "A"), edge("start", "B"), JOIN]
    (first, second) = warned(define(["start", "x", "y", "A", "B", "join"], groups))
    assert first[0] == "graph.edge_groups[2].fan_in.join_policy"
    assert second[0] == "graph.edge_groups[4].fan_in.join_policy"
    assert "source 'A' depends on the join of edge_groups[2], which may starve as well" in second[1]


def test_very_many_choices_count_as_one() -> None:
    middle = [f"n{number}" for number in range(70)]
    groups = [edge("start", each, f"message == {number}") for number, each in enumerate(middle)]
    groups += [edge(each, "A") for each in middle]
    (warning,) = warned(define(["start", *middle, "A", "B", "join"], [*groups, edge("start", "B"), JOIN]))
    assert "source 'A' depends on several conditions" in warning[1]
    assert warned(define(["start", *middle, "A", "B", "join"], [*groups, edge("A", "B"), JOIN])) == []


# The law: where nothing is warned of, no run starves


Choices = dict[tuple[int, str], int]


def running(
    count: int, edges: dict[tuple[int, int], str], join: tuple[int, int, int] | None, taken: Choices
) -> set[int]:
    """The nodes that run when the choices fall so; edges lead to higher numbers only."""
    found = {0}
    for target in range(1, count):
        for source in range(target):
            kind = edges.get((source, target), "none")
            if source not in found or kind == "none":
                continue
            if (
                kind == "always"
                or (kind in CONDITIONS and taken[source, kind])
                or (kind == "switch" and taken[source, kind] == target)
            ):
                found.add(target)
        if join is not None and join[2] == target and {join[0], join[1]} <= found:
            found.add(target)
    return found


CONDITIONS = (EVEN, ODD)


@pytest.mark.law
@given(st.data())
def test_a_join_without_a_warning_never_waits_in_vain(data: st.DataObject) -> None:
    count = data.draw(st.integers(3, 7))
    pairs = [(source, target) for target in range(1, count) for source in range(target)]
    kinds = st.sampled_from(["none", "none", "always", EVEN, ODD, "switch"])
    edges = {pair: data.draw(kinds) for pair in pairs}
    join = None
    if count > 3 and data.draw(st.booleans()):
        target = data.draw(st.integers(2, count - 1))
        first, second = data.draw(st.lists(st.integers(0, target - 1), min_size=2, max_size=2, unique=True))
        join = (first, second, target)
        edges[first, target] = edges[second, target] = "none"
    sources = data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=3, unique=True))

    groups = []
    for (source, target), kind in edges.items():
        if kind in {"always", *CONDITIONS}:
            groups.append(edge(str(source), str(target), "" if kind == "always" else kind))
    switched = {
        source: [target for target in range(count) if edges.get((source, target)) == "switch"]
        for source in range(count)
    }
    for source, targets in switched.items():
        if targets:
            *cases, default = map(str, targets)
            groups.append(switch(str(source), [("true", case) for case in cases] or [("true", default)], default))
    if join is not None:
        groups.append(fan_in([str(join[0]), str(join[1])], str(join[2])))
    groups.append(fan_in([str(source) for source in sources], "join"))
    faults = validate(define([*map(str, range(count)), "join"], groups))
    assume(all(fault.warning for fault in faults))
    if any(fault.path.startswith(f"graph.edge_groups[{len(groups) - 1}]") for fault in faults):
        return

    for _ in range(20):
        taken: Choices = {}
        for source in range(count):
            for condition in CONDITIONS:
                taken[source, condition] = data.draw(st.integers(0, 1))
            taken[source, "switch"] = data.draw(st.sampled_from(switched[source] or [-1]))
        ran = running(count, edges, join, taken)
        assert len(ran & set(sources)) in {0, len(sources)}
