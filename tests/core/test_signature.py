"""What a signature holds and what it leaves out (G35), and how a difference reads (B09)."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from hocket import v1
from hocket_server.core.signature import Scope, canonical, difference, edge_group_id, signature


def chain(*node_ids: str, name: str = "order") -> v1.Definition:
    """Nodes in a line, with an edge from each to the next."""
    graph = v1.Graph(start_node_id=node_ids[0])
    for node_id in node_ids:
        graph.nodes.add(id=node_id).executor.executor_type = "acme.Work"
    for source, target in pairwise(node_ids):
        graph.edge_groups.add().single.CopyFrom(v1.SingleEdge(source_node_id=source, target_node_id=target))
    return v1.Definition(definition_name=name, graph=graph)


def around(*inner: v1.Definition, nodes: Sequence[tuple[str, int]] | None = None) -> v1.Definition:
    """A definition whose nodes name these, in order, and which holds them."""
    references = [(each.definition_name, each.version) for each in inner] if nodes is None else nodes
    outer = v1.Definition(definition_name="outer", nested=inner)
    outer.graph.start_node_id = "n0"
    for position, (name, version) in enumerate(references):
        reference = outer.graph.nodes.add(id=f"n{position}").nested
        reference.definition_name, reference.version = name, version
    return outer


def rich() -> v1.Definition:
    """Something of every kind, none of it at its default."""
    definition = chain("a", "b", "c")
    graph = definition.graph
    graph.nodes[0].config.type = "string"
    graph.nodes[0].config.data = b'"x"'
    graph.nodes[0].executor.required_labels.update({"gpu": "yes", "zone": "eu"})
    graph.nodes[1].retry_policy.max_attempts = 2
    graph.nodes[1].types.input_types.append("int")
    graph.nodes[1].types.message_types.add(name="Dog", supertypes=["Animal"])
    graph.edge_groups[0].single.condition = "message > 1"
    graph.edge_groups.add().fan_out.CopyFrom(v1.FanOut(source_node_id="c", target_node_ids=["d", "e"]))
    graph.edge_groups.add().fan_in.CopyFrom(
        v1.FanIn(source_node_ids=["d", "e"], target_node_id="f", join_policy=v1.JOIN_POLICY_QUORUM, quorum=2)
    )
    switch = graph.edge_groups.add().switch_case
    switch.source_node_id, switch.default_node_id = "f", "g"
    switch.cases.add(condition="message == 1", target_node_id="a")
    switch.cases.add(condition="message == 2", target_node_id="b")
    selection = v1.MultiSelection(source_node_id="g", target_node_ids=["a", "b"], selection="targets")
    graph.edge_groups.add().multi_selection.CopyFrom(selection)
    graph.state_keys.add(key="total", merge_policy=v1.MERGE_POLICY_SUM)
    graph.state_keys.add(key="lines", merge_policy=v1.MERGE_POLICY_APPEND)
    inner = definition.nested.add()
    inner.CopyFrom(chain("x", "y", name="inner"))
    graph.nodes.add(id="deep").nested.definition_name = "inner"
    return definition


def changed(change: Callable[[v1.Definition], object], definition: v1.Definition | None = None) -> v1.Definition:
    copy = v1.Definition()
    copy.CopyFrom(rich() if definition is None else definition)
    change(copy)
    return copy


def assert_same(old: v1.Definition, new: v1.Definition) -> None:
    assert signature(old) == signature(new)
    assert difference(old, new) == []


def assert_differ(old: v1.Definition, new: v1.Definition, *lines: str) -> None:
    assert signature(old) != signature(new)
    assert difference(old, new) == list(lines)


def test_a_signature_is_32_bytes_that_never_change() -> None:
    """Stored with every checkpoint: a new value here refuses to resume every run that is under way."""
    assert signature(rich()).hex() == "70c88412d98e530b85405ad9e38fdc00bf85fa28b59e7bef0474954a8859a792"


def test_the_definition_itself_is_left_as_it_was() -> None:
    definition = rich()
    signature(definition)
    assert definition == rich()


# What may change


def set_labels(definition: v1.Definition) -> None:
    definition.labels["team"] = "blue"


def set_descriptions(definition: v1.Definition) -> None:
    definition.description = "for people"
    definition.graph.nodes[0].description = "for people"
    definition.nested[0].description = "for people"
    definition.nested[0].graph.nodes[0].description = "for people"


def set_what_the_server_sets(definition: v1.Definition) -> None:
    definition.namespace = "blue"
    definition.version = 7
    definition.signature = b"x"
    definition.create_time.CopyFrom(Timestamp(seconds=1))


def set_versions(definition: v1.Definition) -> None:
    """Resolved when the parent is put."""
    definition.nested[0].version = 4
    definition.graph.nodes[3].nested.version = 4


def add_what_nobody_names(definition: v1.Definition) -> None:
    definition.nested.insert(0, chain("z", name="unused"))


def name_defaults(definition: v1.Definition) -> None:
    graph = definition.graph
    graph.max_supersteps = 100
    graph.nodes[0].output_role = v1.OUTPUT_ROLE_OUTPUT
    graph.nodes[0].on_stuck = v1.ON_STUCK_WAIT
    graph.nodes[0].concurrency = 1
    graph.edge_groups[0].id = "single:0"


def other_map_order(definition: v1.Definition) -> None:
    labels = definition.graph.nodes[0].executor.required_labels
    kept = dict(labels)
    labels.clear()
    for key in reversed(list(kept)):
        labels[key] = kept[key]


@pytest.mark.parametrize(
    "change",
    [
        set_labels,
        set_descriptions,
        set_what_the_server_sets,
        set_versions,
        add_what_nobody_names,
        name_defaults,
        other_map_order,
    ],
)
def test_what_no_run_depends_on_may_change(change: Callable[[v1.Definition], None]) -> None:
    """G35, the last half of B09."""
    assert_same(rich(), changed(change))


@pytest.mark.parametrize("policy", [v1.JOIN_POLICY_UNSPECIFIED, v1.JOIN_POLICY_ALL])
def test_an_enum_that_is_not_set_is_its_default(policy: v1.JoinPolicy.ValueType) -> None:
    definition = chain("a", "b")
    definition.graph.state_keys.add(key="k")
    definition.graph.edge_groups.add().fan_in.join_policy = v1.JOIN_POLICY_ALL
    other = chain("a", "b")
    other.graph.state_keys.add(key="k", merge_policy=v1.MERGE_POLICY_REJECT)
    other.graph.edge_groups.add().fan_in.join_policy = policy
    assert_same(definition, other)


def test_where_a_nested_definition_lies_in_the_list_does_not_matter() -> None:
    one, two = chain("x", name="one"), chain("y", name="two")
    named = [("one", 0), ("two", 0)]
    assert_same(around(one, two, nodes=named), around(two, one, nodes=named))


def test_it_may_also_lie_in_the_one_that_names_it() -> None:
    deepest = chain("x", name="deepest")
    flat = around(around(nodes=[("deepest", 0)]), deepest, nodes=[("outer", 0)])
    boxed = around(around(deepest), nodes=[("outer", 0)])
    assert_same(flat, boxed)


# What may not, and how it reads


def test_b09_a_node_more_in_a_nested_definition() -> None:
    """B09: the outer graph is unchanged."""
    old, new = around(chain("A", "B", name="inner")), around(chain("A", "B", "C", name="inner"))
    assert_differ(
        old,
        new,
        "nested 'inner': node 'C' added",
        "nested 'inner': edge group 1 added: single 'B' -> 'C'",
    )


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda d: setattr(d, "definition_name", "bill"), "definition_name changed: 'order' -> 'bill'"),
        (lambda d: setattr(d.graph, "start_node_id", "b"), "start_node_id changed: 'a' -> 'b'"),
        (lambda d: setattr(d.graph, "max_supersteps", 7), "max_supersteps changed: 0 -> 7"),
        (
            lambda d: setattr(d.graph.nodes[0].executor, "executor_type", "acme.Play"),
            "node 'a' executor.executor_type changed: 'acme.Work' -> 'acme.Play'",
        ),
        (
            lambda d: d.graph.nodes[0].executor.required_labels.update({"gpu": "no"}),
            "node 'a' executor.required_labels changed: "
            "{'gpu': 'yes', 'zone': 'eu'} -> {'gpu': 'no', 'zone': 'eu'}",
        ),
        (
            lambda d: setattr(d.graph.nodes[0].config, "data", b'"y"'),
            "node 'a' config changed: string b'\"x\"' -> string b'\"y\"'",
        ),
        (
            lambda d: setattr(d.graph.nodes[1].retry_policy, "max_attempts", 3),
            "node 'b' retry_policy.max_attempts changed: 2 -> 3",
        ),
        (
            lambda d: d.graph.nodes[1].timeout.CopyFrom(Duration(seconds=1, nanos=500_000_000)),
            "node 'b' timeout changed: none -> 1.5 s",
        ),
        (
            lambda d: d.graph.nodes[1].types.input_types.append("string"),
            "node 'b' types.input_types changed: ['int'] -> ['int', 'string']",
        ),
        (
            lambda d: d.graph.nodes[1].types.message_types[0].supertypes.append("Thing"),
            "node 'b' types.message_types[0].supertypes changed: ['Animal'] -> ['Animal', 'Thing']",
        ),
        (
            lambda d: d.graph.nodes[2].types.SetInParent(),
            "node 'c' types changed: none -> empty",
        ),
        (
            lambda d: setattr(d.graph.nodes[2], "output_role", v1.OUTPUT_ROLE_HIDDEN),
            "node 'c' output_role changed: OUTPUT_ROLE_UNSPECIFIED -> OUTPUT_ROLE_HIDDEN",
        ),
        (lambda d: setattr(d.graph.nodes[2], "concurrency", 4), "node 'c' concurrency changed: 0 -> 4"),
        (lambda d: d.graph.nodes[2].state_reads.append("k"), "node 'c' state_reads changed: [] -> ['k']"),
        (
            lambda d: setattr(d.graph.edge_groups[0].single, "condition", "message > 2"),
            "edge group 0 condition changed: 'message > 1' -> 'message > 2'",
        ),
        (
            lambda d: d.graph.edge_groups[2].fan_out.target_node_ids.append("f"),
            "edge group 2 target_node_ids changed: ['d', 'e'] -> ['d', 'e', 'f']",
        ),
        (
            lambda d: setattr(d.graph.edge_groups[3].fan_in, "join_policy", v1.JOIN_POLICY_ANY),
            "edge group 3 join_policy changed: JOIN_POLICY_QUORUM -> JOIN_POLICY_ANY",
        ),
        (lambda d: setattr(d.graph.edge_groups[3].fan_in, "optional", True), "edge group 3 optional changed: False -> True"),
        (
            lambda d: setattr(d.graph.edge_groups[4].switch_case.cases[1], "condition", "true"),
            "edge group 4 cases[1].condition changed: 'message == 2' -> 'true'",
        ),
        (
            lambda d: setattr(d.graph.edge_groups[4].switch_case, "default_node_id", "c"),
            "edge group 4 default_node_id changed: 'g' -> 'c'",
        ),
        (
            lambda d: setattr(d.graph.edge_groups[5].multi_selection, "selection", "['a']"),
            "edge group 5 selection changed: 'targets' -> \"['a']\"",
        ),
        (lambda d: setattr(d.graph.edge_groups[5], "id", "pick"), "edge group 5 id changed: '' -> 'pick'"),
        (
            lambda d: setattr(d.graph.state_keys[0], "merge_policy", v1.MERGE_POLICY_MERGE),
            "state key 'total' merge_policy changed: MERGE_POLICY_SUM -> MERGE_POLICY_MERGE",
        ),
        (lambda d: d.graph.state_keys.add(key="more"), "state key 'more' added"),
        (lambda d: d.graph.state_keys.pop(), "state key 'lines' removed"),
        (lambda d: d.graph.nodes.add(id="new"), "node 'new' added"),
        (lambda d: d.graph.edge_groups.pop(), "edge group 5 removed: multi_selection 'g' -> 'a', 'b'"),
        (
            lambda d: setattr(d.nested[0].graph.edge_groups[0].single, "condition", "true"),
            "nested 'inner': edge group 0 condition changed: '' -> 'true'",
        ),
        (
            lambda d: setattr(d.nested[0].graph.nodes[1], "concurrency", 2),
            "nested 'inner': node 'y' concurrency changed: 0 -> 2",
        ),
        (lambda d: d.nested.pop(), "nested 'inner' removed"),
    ],
)  # fmt: skip
def test_every_change_of_a_run_is_named(change: Callable[[v1.Definition], object], line: str) -> None:
    new = changed(change)
    assert signature(rich()) != signature(new)
    assert line in difference(rich(), new)


def test_order_is_part_of_it_for_positions_order_the_run() -> None:
    def swap_nodes(definition: v1.Definition) -> None:
        nodes = [*definition.graph.nodes]
        del definition.graph.nodes[:]
        definition.graph.nodes.extend([nodes[1], nodes[0], *nodes[2:]])

    def swap_groups(definition: v1.Definition) -> None:
        groups = [*definition.graph.edge_groups]
        del definition.graph.edge_groups[:]
        definition.graph.edge_groups.extend(reversed(groups))

    old = chain("a", "b", "c")
    assert_differ(old, changed(swap_nodes, old), "node order changed: ['a', 'b', 'c'] -> ['b', 'a', 'c']")
    assert_differ(
        old,
        changed(swap_groups, old),
        "edge group order changed: [\"single 'a' -> 'b'\", \"single 'b' -> 'c'\"] -> "
        "[\"single 'b' -> 'c'\", \"single 'a' -> 'b'\"]",
    )


def test_a_kind_that_is_gone_is_named() -> None:
    assert_differ(chain("a"), v1.Definition(definition_name="order"), "kind changed: graph -> none")


def test_what_a_node_names_is_part_of_it() -> None:
    one, two = chain("x", name="one"), chain("y", name="two")
    assert_differ(
        around(one, two, nodes=[("one", 0), ("two", 0)]),
        around(one, two, nodes=[("two", 0), ("one", 0)]),
        "node 'n0' nested changed: 'one' -> 'two'",
        "node 'n1' nested changed: 'two' -> 'one'",
    )


def test_two_versions_of_one_name_are_told_apart() -> None:
    one, two = chain("x", name="inner"), chain("y", name="inner")
    one.version, two.version = 1, 2
    old = around(one, two)
    swapped = around(one, two, nodes=[("inner", 2), ("inner", 1)])
    assert signature(old) != signature(swapped)
    assert "nested 'inner': node 'y' added" in difference(old, swapped)
    assert "nested 'inner (2)': node 'x' added" in difference(old, swapped)


def test_long_values_are_cut() -> None:
    definition = chain("a", "b")
    other = changed(lambda d: setattr(d.graph.edge_groups[0].single, "condition", "x" * 1000), definition)
    (line,) = difference(definition, other)
    assert len(line) < 200


def test_a_field_of_a_later_version_counts() -> None:
    later = v1.Definition.FromString(chain("a").SerializeToString())
    later.graph.MergeFromString(b"\xf8\x07\x01")
    assert_differ(chain("a"), later, "order of what is nested, or fields that this version does not know, changed")


# Circles and gaps are faults, but not of the signature


def test_a_circle_and_a_missing_definition_have_a_signature() -> None:
    ring = [around(nodes=[("two", 0)]), around(nodes=[("one", 0)])]
    ring[0].definition_name, ring[1].definition_name = "one", "two"
    assert signature(around(*ring)) != signature(around(nodes=[("gone", 0)]))


# How a node finds what it names


def test_the_nearest_holder_of_a_version_wins_and_zero_is_the_highest() -> None:
    low, high, own = chain("x", name="inner"), chain("y", name="inner"), chain("z", name="inner")
    low.version, high.version, own.version = 1, 2, 1
    middle = around(own)
    middle.definition_name = "middle"
    root = Scope(v1.Definition(nested=[low, high, middle]))

    def find(scope: Scope, version: int) -> str:
        found = scope.find(v1.DefinitionRef(definition_name="inner", version=version))
        return found.definition.graph.start_node_id if found is not None else ""

    assert [find(root, version) for version in (0, 1, 2, 3)] == ["y", "x", "y", ""]
    assert [find(root.held[2], version) for version in (0, 1, 2, 3)] == ["z", "z", "y", ""]


def test_an_empty_edge_group_id_stands_for_kind_and_position() -> None:
    assert edge_group_id(v1.EdgeGroup(single=v1.SingleEdge()), 4) == "single:4"
    assert edge_group_id(v1.EdgeGroup(id="mine", single=v1.SingleEdge()), 4) == "mine"


# Laws

NAMES = st.sampled_from(["", "a", "b", "c"])


@st.composite
def definitions(draw: st.DrawFn, depth: int = 2) -> v1.Definition:
    made = v1.Definition(definition_name=draw(NAMES), version=draw(st.integers(0, 2)))
    graph = made.graph
    graph.start_node_id = draw(NAMES)
    for _ in range(draw(st.integers(0, 3))):
        node = graph.nodes.add(id=draw(NAMES), description=draw(NAMES), concurrency=draw(st.integers(0, 2)))
        match draw(st.integers(0, 2)):
            case 1:
                node.executor.required_labels.update(draw(st.dictionaries(NAMES, NAMES)))
            case 2:
                node.nested.definition_name = draw(NAMES)
                node.nested.version = draw(st.integers(0, 2))
            case _:
                pass
        if draw(st.booleans()):
            node.retry_policy.backoff_coefficient = draw(st.sampled_from([0.0, -0.0, 1.0, float("nan")]))
    for _ in range(draw(st.integers(0, 3))):
        group = graph.edge_groups.add(id=draw(st.sampled_from(["", "x", "single:0"])))
        match draw(st.integers(0, 3)):
            case 1:
                group.single.CopyFrom(v1.SingleEdge(source_node_id=draw(NAMES), condition=draw(NAMES)))
            case 2:
                group.fan_out.target_node_ids.extend(draw(st.lists(NAMES, max_size=2)))
            case 3:
                group.switch_case.cases.add(condition=draw(NAMES), target_node_id=draw(NAMES))
            case _:
                pass
    for key in draw(st.lists(NAMES, max_size=2)):
        graph.state_keys.add(key=key, merge_policy=draw(st.sampled_from([0, 1, 2])))
    if depth:
        made.nested.extend(draw(st.lists(definitions(depth - 1), max_size=2)))
    return made


@pytest.mark.law
@given(definitions(), definitions())
def test_there_is_a_difference_exactly_when_the_signatures_differ(one: v1.Definition, other: v1.Definition) -> None:
    assert (difference(one, other) == []) == (signature(one) == signature(other))
    assert difference(one, one) == []


@pytest.mark.law
@given(definitions(), st.data())
def test_one_small_change_is_a_difference_exactly_when_the_signatures_differ(
    one: v1.Definition, data: st.DataObject
) -> None:
    other = v1.Definition()
    other.CopyFrom(one)
    graph = data.draw(st.sampled_from([other, *other.nested])).graph
    match data.draw(st.integers(0, 3)):
        case 0 if graph.nodes:
            graph.nodes[0].concurrency = data.draw(st.integers(0, 3))
        case 1 if graph.edge_groups:
            del graph.edge_groups[data.draw(st.integers(0, len(graph.edge_groups) - 1))]
        case 2 if graph.nodes:
            graph.nodes.append(graph.nodes[0])
        case _:
            graph.start_node_id = data.draw(NAMES)
    assert (difference(one, other) == []) == (signature(one) == signature(other))


@pytest.mark.law
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), st.randoms(use_true_random=False))
def test_the_order_in_which_a_map_was_filled_does_not_matter(labels: dict[str, str], random: Random) -> None:
    keys = list(labels)
    random.shuffle(keys)
    one, other = chain("a"), chain("a")
    one.graph.nodes[0].executor.required_labels.update(labels)
    for key in keys:
        other.graph.nodes[0].executor.required_labels[key] = labels[key]
    assert_same(one, other)


@pytest.mark.law
@given(definitions())
def test_the_canonical_form_is_its_own_canonical_form(definition: v1.Definition) -> None:
    assert canonical(canonical(definition)) == canonical(definition)
    assert signature(canonical(definition)) == signature(definition)
