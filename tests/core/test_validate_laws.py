"""Whatever the definition, it is judged, and always alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hocket import v1
from hocket_server.core.validate import validate
from tests.core.definitions import (
    edge,
    fan_in,
    fan_out,
    select,
    switch,
)

IDS = st.sampled_from(["", "a", "b", "c", "d", "a/b", "\0"])
EXPRESSIONS = st.sampled_from(["", "true", "message.x == 1", "superstep", "function:f", "function:", "((", "targets"])
TYPES = st.lists(
    st.sampled_from(["", "*", "int", "list<int>", "list<any>", "list<", "map<any>", "map<int>"]), max_size=2
)
NUMBERS = st.sampled_from([0, 1, 2, -1, 99, 2**31 - 1, -(2**31)])
ID_LISTS = st.lists(IDS, max_size=4)


@st.composite
def nodes(draw: st.DrawFn) -> v1.Node:
    made = v1.Node(id=draw(IDS), handoff_node_ids=draw(ID_LISTS), concurrency=draw(NUMBERS))
    match draw(st.integers(0, 2)):
        case 1:
            made.executor.executor_type = draw(IDS)
            made.executor.affinity_expression = draw(EXPRESSIONS)
        case 2:
            made.nested.definition_name = draw(IDS)
            made.nested.version = draw(NUMBERS)
        case _:
            pass
    if draw(st.booleans()):
        made.types.input_types.extend(draw(TYPES))
        for name in draw(TYPES):
            made.types.message_types.add(name=name, supertypes=draw(TYPES))
            made.types.output_types.add(name=name)
    if draw(st.booleans()):
        made.timeout.seconds = draw(NUMBERS)
        made.timeout.nanos = draw(NUMBERS)
        made.retry_policy.max_attempts = draw(NUMBERS)
        made.retry_policy.initial_interval.seconds = draw(st.integers(-(2**63), 2**63 - 1))
        made.retry_policy.maximum_interval.nanos = draw(NUMBERS)
        made.retry_policy.backoff_coefficient = draw(st.floats())
    return made


@st.composite
def edge_groups(draw: st.DrawFn) -> v1.EdgeGroup:
    match draw(st.integers(0, 5)):
        case 1:
            group = edge(draw(IDS), draw(IDS), draw(EXPRESSIONS))
        case 2:
            group = fan_out(draw(IDS), *draw(ID_LISTS))
        case 3:
            policy = draw(st.sampled_from(v1.JoinPolicy.values()))
            group = fan_in(draw(ID_LISTS), draw(IDS), policy, draw(NUMBERS), draw(st.booleans()))
        case 4:
            group = switch(draw(IDS), draw(st.lists(st.tuples(EXPRESSIONS, IDS), max_size=3)), draw(IDS))
        case 5:
            group = select(draw(IDS), draw(ID_LISTS), draw(EXPRESSIONS))
        case _:
            group = v1.EdgeGroup()
    group.id = draw(st.sampled_from(["", "x", "single:0", "\0"]))
    return group


@st.composite
def definitions(draw: st.DrawFn, depth: int = 2) -> v1.Definition:
    made = v1.Definition(definition_name=draw(IDS), version=draw(NUMBERS))
    if draw(st.integers(0, 9)):
        made.graph.nodes.extend(draw(st.lists(nodes(), max_size=5)))
        made.graph.edge_groups.extend(draw(st.lists(edge_groups(), max_size=6)))
        made.graph.start_node_id = draw(IDS)
        made.graph.max_supersteps = draw(NUMBERS)
        for key in draw(ID_LISTS):
            made.graph.state_keys.add(key=key, merge_policy=draw(st.sampled_from([0, 1, 99])))
    if depth:
        made.nested.extend(draw(st.lists(definitions(depth - 1), max_size=2)))
    return made


@pytest.mark.law
@given(definitions())
def test_any_definition_is_judged_and_always_alike(definition: v1.Definition) -> None:
    before = definition.SerializeToString(deterministic=True)
    faults = validate(definition)

    assert all(fault.path and fault.message for fault in faults)
    assert validate(definition) == faults
    assert definition.SerializeToString(deterministic=True) == before


@pytest.mark.law
@given(st.binary(max_size=200))
def test_whatever_parses_is_judged(data: bytes) -> None:
    definition = v1.Definition()
    try:
        definition.ParseFromString(data)
    except Exception:  # noqa: BLE001  # it does not parse: nothing to judge
        return
    validate(definition)
