"""A small language to write definitions in, and ways to ask what is wrong in one."""

from collections.abc import Sequence

from hocket import v1
from hocket_server.core.validate import validate


def node(node_id: str, takes: Sequence[str] | None = None, sends: Sequence[str] = ()) -> v1.Node:
    made = v1.Node(id=node_id, executor=v1.ExecutorRef(executor_type="acme.Work"))
    if takes is not None:
        made.types.input_types.extend(takes)
        for name in sends:
            # `Dog < Animal` is a type with its ancestor.
            own, *supertypes = name.split(" < ")
            made.types.message_types.add(name=own, supertypes=supertypes)
    return made


def nested(node_id: str, name: str, version: int = 0) -> v1.Node:
    return v1.Node(id=node_id, nested=v1.DefinitionRef(definition_name=name, version=version))


def edge(source: str, target: str, condition: str = "") -> v1.EdgeGroup:
    return v1.EdgeGroup(single=v1.SingleEdge(source_node_id=source, target_node_id=target, condition=condition))


def fan_out(source: str, *targets: str) -> v1.EdgeGroup:
    return v1.EdgeGroup(fan_out=v1.FanOut(source_node_id=source, target_node_ids=targets))


def fan_in(
    sources: Sequence[str],
    target: str,
    policy: v1.JoinPolicy.ValueType = v1.JOIN_POLICY_ALL,
    quorum: int = 0,
    optional: bool = False,
) -> v1.EdgeGroup:
    join = v1.FanIn(
        source_node_ids=sources, target_node_id=target, join_policy=policy, quorum=quorum, optional=optional
    )
    return v1.EdgeGroup(fan_in=join)


def switch(source: str, cases: Sequence[tuple[str, str]], default: str) -> v1.EdgeGroup:
    made = v1.SwitchCase(source_node_id=source, default_node_id=default)
    for condition, target in cases:
        made.cases.add(condition=condition, target_node_id=target)
    return v1.EdgeGroup(switch_case=made)


def select(source: str, targets: Sequence[str], selection: str = "targets") -> v1.EdgeGroup:
    group = v1.MultiSelection(source_node_id=source, target_node_ids=targets, selection=selection)
    return v1.EdgeGroup(multi_selection=group)


def define(
    nodes: Sequence[v1.Node | str],
    edge_groups: Sequence[v1.EdgeGroup] = (),
    nested: Sequence[v1.Definition] = (),
    name: str = "order",
    start: str | None = None,
) -> v1.Definition:
    """The first node is the start node."""
    made = [node(each) if isinstance(each, str) else each for each in nodes]
    graph = v1.Graph(nodes=made, edge_groups=edge_groups, start_node_id=made[0].id if start is None else start)
    return v1.Definition(definition_name=name, graph=graph, nested=nested)


def found(definition: v1.Definition) -> list[tuple[str, str]]:
    """Path and message of each fault, warnings left out."""
    return [(fault.path, fault.message) for fault in validate(definition) if not fault.warning]


def warned(definition: v1.Definition) -> list[tuple[str, str]]:
    faults = validate(definition)
    assert [fault for fault in faults if not fault.warning] == []
    return [(fault.path, fault.message) for fault in faults]


def only_fault(definition: v1.Definition) -> tuple[str, str]:
    (fault,) = validate(definition)
    assert not fault.warning
    return fault.path, fault.message
