"""A graph compiled for running: ids resolved to nodes, types to sets, conditions to callables.

Built once for a definition and shared by all its runs; nothing in it changes but what is remembered of it. Positions in the
definition's lists are the only order there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hocket import v1
from hocket.wire import duration_from
from hocket_server.core.retry import DEFAULT_POLICY, Policy, policy_from
from hocket_server.core.signature import DEFAULT_MAX_SUPERSTEPS, Scope, edge_group_id

ANY = "*"
CONTRIBUTING = frozenset({v1.MERGE_POLICY_APPEND, v1.MERGE_POLICY_MERGE, v1.MERGE_POLICY_SUM})


@dataclass(slots=True)
class Node:
    """`input_types`, `message_types` and `output_types` None: not known, nothing is checked."""

    index: int
    id: str
    executor_type: str = ""
    nested: Topology | None = None
    role: v1.OutputRole.ValueType = v1.OUTPUT_ROLE_OUTPUT
    policy: Policy = DEFAULT_POLICY
    timeout: float | None = None
    lease_duration: float | None = None
    schedule_timeout: float | None = None
    idle_timeout: float | None = None
    on_stuck: v1.OnStuck.ValueType = v1.ON_STUCK_WAIT
    config: v1.Payload | None = None
    state_reads: tuple[str, ...] = ()
    concurrency: int = 1
    # It declares no settings for its invocations.
    is_plain: bool = True
    # Its messages are invocations of their own (concurrency, nested runs).
    is_apart: bool = False
    handoffs: frozenset[str] = frozenset()
    input_types: frozenset[str] | None = None
    element_types: frozenset[str] = frozenset()
    message_types: frozenset[str] | None = None
    output_types: frozenset[str] | None = None
    groups: list[Group] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)

    def takes(self, payload: v1.Payload) -> bool:
        """Whether a handler names the payload's type or one of its supertypes (G1)."""
        types = self.input_types
        return types is None or payload.type in types or covers(types, payload)

    def takes_joined(self, payload: v1.Payload) -> bool:
        """Whether a list handler takes this payload as an element (G17)."""
        types = self.input_types
        if self.element_types:
            return covers(self.element_types, payload)
        if types is None or ANY in types or "list<any>" in types:
            return True
        return f"list<{payload.type}>" in types or any(f"list<{name}>" in types for name in payload.supertypes)


def covers(types: frozenset[str] | None, payload: v1.Payload) -> bool:
    if types is None or payload.type in types or ANY in types:
        return True
    return any(name in types for name in payload.supertypes)


@dataclass(slots=True)
class Group:
    """An edge group. `conditions` are parallel to `targets`; None always holds. The last target of a switch-case is its
    default."""

    index: int
    id: str
    kind: str
    targets: list[Node]
    conditions: list[str] = field(default_factory=list)
    selection: str = ""
    # Every target gets every message that it takes: nothing is evaluated.
    is_direct: bool = False
    # Of a fan-in only.
    sources: list[Node] = field(default_factory=list)
    policy: v1.JoinPolicy.ValueType = v1.JOIN_POLICY_ALL
    quorum: int = 0
    optional: bool = False


@dataclass(slots=True)
class Topology:
    name: str
    nodes: list[Node]
    by_id: dict[str, Node]
    groups: list[Group]
    joins: list[Group]
    start: Node
    merge_policies: Mapping[str, v1.MergePolicy.ValueType]
    max_supersteps: int
    signature: bytes
    # Every edge, for joins that ask what can still be reached: targets by source index, with the group's index.
    edges: list[list[tuple[int, int]]]
    contributed_keys: tuple[str, ...] = ()
    has_nested: bool = False
    _reaching: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def declares_output(self) -> bool:
        """A node's yields are outputs and its types do not say that it yields nothing (G12)."""
        return any(
            node.role == v1.OUTPUT_ROLE_OUTPUT and (node.output_types is None or node.output_types)
            for node in self.nodes
        )

    def reaching(self, join: Group, source: Node) -> int:
        """Nodes, as a bit set by index, from which `source` can be reached on edges that do not pass through `join` (G18).

        The source itself is one of them: while it has a message it may still send. Worked out once, when it is first asked.
        """
        key = (join.index, source.index)
        if key not in self._reaching:
            self._reaching[key] = _reaching(self, join, source)
        return self._reaching[key]


def _reaching(topology: Topology, join: Group, source: Node) -> int:
    into: list[list[int]] = [[] for _ in topology.nodes]
    for origin, edges in enumerate(topology.edges):
        for target, group in edges:
            if group != join.index:
                into[target].append(origin)
    found, ahead = 1 << source.index, [source.index]
    while ahead:
        for origin in into[ahead.pop()]:
            if not found >> origin & 1:
                found |= 1 << origin
                ahead.append(origin)
    return found


def compile_topology(definition: v1.Definition) -> Topology:
    """Compile a definition that `validate` found no fault in."""
    return _compile(Scope(definition), {})


def _compile(scope: Scope, compiled: dict[int, Topology]) -> Topology:
    """`compiled` holds what is nested by its scope's identity, so that one definition named twice is compiled once."""
    definition = scope.definition
    graph = definition.graph
    nodes = [_node(index, node) for index, node in enumerate(graph.nodes)]
    by_id = {node.id: node for node in nodes}
    for node, message in zip(nodes, graph.nodes, strict=True):
        if message.WhichOneof("kind") == "nested":
            node.nested = _nested(scope, message.nested, compiled)
            _take_types_of(node, node.nested)
    groups = [_group(index, group, by_id) for index, group in enumerate(graph.edge_groups)]
    edges: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for group, message_group in zip(groups, graph.edge_groups, strict=True):
        for source in _sources(group, message_group, by_id):
            source.groups.append(group)
            for target in group.targets:
                source.targets.add(target.id)
                edges[source.index].append((target.index, group.index))
    for node in nodes:
        edges[node.index].extend((by_id[target].index, -1) for target in sorted(node.handoffs))
    return Topology(
        name=definition.definition_name,
        nodes=nodes,
        by_id=by_id,
        groups=groups,
        joins=[group for group in groups if group.kind == "fan_in"],
        start=by_id[graph.start_node_id],
        merge_policies={key.key: key.merge_policy or v1.MERGE_POLICY_REJECT for key in graph.state_keys},
        max_supersteps=graph.max_supersteps or DEFAULT_MAX_SUPERSTEPS,
        signature=definition.signature,
        edges=edges,
        has_nested=any(node.nested is not None for node in nodes),
        contributed_keys=tuple(key.key for key in graph.state_keys if key.merge_policy in CONTRIBUTING),
    )


def _nested(scope: Scope, reference: v1.DefinitionRef, compiled: dict[int, Topology]) -> Topology:
    found = scope.find(reference)
    if found is None:
        raise ValueError(f"nested definition {reference.definition_name!r} is missing; validate the definition first")
    if id(found) not in compiled:
        compiled[id(found)] = _compile(found, compiled)
    return compiled[id(found)]


def _node(index: int, message: v1.Node) -> Node:
    node = Node(index, message.id, message.executor.executor_type)
    if message.output_role:
        node.role = message.output_role
    if message.HasField("retry_policy"):
        node.policy = policy_from(message.retry_policy)
    node.timeout = duration_from(message, "timeout")
    node.lease_duration = duration_from(message, "lease_duration")
    node.schedule_timeout = duration_from(message, "schedule_timeout")
    node.idle_timeout = duration_from(message, "idle_timeout")
    node.on_stuck = message.on_stuck or v1.ON_STUCK_WAIT
    if message.HasField("config"):
        node.config = message.config
    node.state_reads = tuple(message.state_reads)
    settings = (node.timeout, node.lease_duration, node.schedule_timeout, node.idle_timeout, node.config)
    node.is_plain = all(each is None for each in settings) and not node.state_reads and not message.on_stuck
    node.concurrency = max(message.concurrency, 1)
    node.is_apart = node.concurrency > 1 or message.HasField("nested")
    node.handoffs = frozenset(message.handoff_node_ids)
    if message.HasField("types"):
        node.input_types = frozenset(message.types.input_types)
        node.element_types = frozenset(message.types.element_types)
        node.message_types = frozenset(each.name for each in message.types.message_types)
        node.output_types = frozenset(each.name for each in message.types.output_types)
    return node


def _take_types_of(node: Node, child: Topology) -> None:
    """A nested node takes what its start takes and sends what it yields (G38)."""
    node.input_types, node.element_types = child.start.input_types, child.start.element_types
    yielding = [each.output_types for each in child.nodes if each.role == v1.OUTPUT_ROLE_OUTPUT]
    if all(types is not None for types in yielding):
        node.message_types = frozenset().union(*(types for types in yielding if types is not None))


def _group(index: int, message: v1.EdgeGroup, by_id: Mapping[str, Node]) -> Group:
    match message.WhichOneof("kind"):
        case "single":
            target = by_id[message.single.target_node_id]
            group = Group(index, message.id, "single", [target], [message.single.condition])
        case "fan_out":
            group = Group(index, message.id, "fan_out", [by_id[each] for each in message.fan_out.target_node_ids])
        case "fan_in":
            join = message.fan_in
            group = Group(
                index,
                message.id,
                "fan_in",
                [by_id[join.target_node_id]],
                sources=[by_id[each] for each in join.source_node_ids],
                policy=join.join_policy or v1.JOIN_POLICY_ALL,
                quorum=join.quorum,
                optional=join.optional,
            )
        case "switch_case":
            cases = message.switch_case.cases
            targets = [by_id[case.target_node_id] for case in cases]
            targets.append(by_id[message.switch_case.default_node_id])
            group = Group(index, message.id, "switch_case", targets, [case.condition for case in cases])
        case "multi_selection":
            selection = message.multi_selection
            targets = [by_id[each] for each in selection.target_node_ids]
            group = Group(index, message.id, "multi_selection", targets, selection=selection.selection)
        case _:
            raise ValueError(f"edge group {index} of graph has no kind; validate the definition first")
    group.id = edge_group_id(message, index)
    group.is_direct = group.kind == "fan_out" or (group.kind == "single" and not group.conditions[0])
    return group


def _sources(group: Group, message: v1.EdgeGroup, by_id: Mapping[str, Node]) -> list[Node]:
    match group.kind:
        case "single":
            return [by_id[message.single.source_node_id]]
        case "fan_out":
            return [by_id[message.fan_out.source_node_id]]
        case "switch_case":
            return [by_id[message.switch_case.source_node_id]]
        case "multi_selection":
            return [by_id[message.multi_selection.source_node_id]]
        case _:
            return group.sources
