"""Everything that is wrong in a definition, found before anything runs (rule G5).

One pass over the nodes, one over the edge groups, each fault with the path of its field; nothing stops at the first.
A fault refuses the definition, a warning does not. What a definition does not show is not judged: ends of an edge whose
types are not known, an executor type that nobody has offered yet, what a function does.

A graph may be long: nothing here recurses over it, or does for each node what grows with the graph.
"""

from collections.abc import Callable, Collection, Container, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from hocket import v1
from hocket_server.core.choices import ALWAYS, Choice, ChoiceKind, Join, Route, choices_of
from hocket_server.core.expressions import (
    Expression,
    ExpressionError,
    compile_condition,
    compile_selection,
    compile_text,
)
from hocket_server.core.faults import (
    CONTROL,
    JOIN_POLICIES,
    MERGE_POLICIES,
    NOT_IN_NODE_ID,
    NOT_STORABLE,
    ON_STUCK,
    OUTPUT_ROLES,
    SHOWN,
    character,
    duration_fault,
    enum_fault,
    known_names,
    quoted,
    retry_faults,
)
from hocket_server.core.nesting import MAX_DEPTH, MAX_NODES, Place, link, places_of
from hocket_server.core.signature import edge_group_id

__all__ = ["FUNCTION_PREFIX", "MAX_DEPTH", "validate"]

FUNCTION_PREFIX: Final = "function:"


def validate(definition: v1.Definition, functions: Container[str] | None = None) -> list[v1.Fault]:
    """All faults and warnings, in order of position; none means that the definition can run.

    `functions` are the names that `function:NAME` may use here; None accepts every name.
    """
    places = places_of(definition)
    link(places)
    faults: list[v1.Fault] = []
    for place in places:
        faults += place.faults
        if place.scope.definition.HasField("graph"):
            faults += _Graph(place, functions).check()
        faults += place.late_faults
    return faults


class _Graph:
    """The checks of one graph."""

    def __init__(self, place: Place, functions: Container[str] | None) -> None:
        self._place = place
        self._functions = functions
        self._graph = place.scope.definition.graph
        self._ends = place.ends
        self._node_faults: list[tuple[int, v1.Fault]] = []
        self._group_faults: list[tuple[int, v1.Fault]] = []
        self._index: dict[str, int] = {}
        self._ids: list[str] = []
        # By source: the targets. By target: the ways in.
        self._links: list[list[int]] = []
        self._routes: list[list[Route]] = []
        self._joins: list[Join] = []
        self._switches: dict[int, tuple[int, frozenset[int]]] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self._conditions: dict[tuple[int, str], int] = {}

    def check(self) -> list[v1.Fault]:
        """In order of the fields of Graph; of one node or edge group in the order found."""
        count = len(self._graph.nodes)
        if count > MAX_NODES:
            message = (
                f"the graph has {count:,} nodes; at most {MAX_NODES:,} are allowed. Nothing else in it was checked"
            )
            return [self._fault("nodes", message)]
        self._check_nodes()
        for position, group in enumerate(self._graph.edge_groups):
            self._check_edge_group(position, group)
        self._check_group_ids()
        others = list(self._check_rest())
        start = self._index.get(self._graph.start_node_id)
        if start is not None:
            self._check_reachable(start)
            self._check_joins(start)
        return [
            *(fault for _, fault in sorted(self._node_faults, key=lambda pair: pair[0])),
            *(fault for _, fault in sorted(self._group_faults, key=lambda pair: pair[0])),
            *others,
        ]

    def _fault(self, path: str, message: str, warning: bool = False) -> v1.Fault:
        return v1.Fault(path=f"{self._place.path}graph.{path}", message=message, warning=warning)

    def _node_fault(self, position: int, path: str, message: str) -> None:
        where = f"nodes[{position}].{path}" if path else f"nodes[{position}]"
        self._node_faults.append((position, self._fault(where, message)))

    def _group_fault(self, position: int, path: str, message: str, warning: bool = False) -> None:
        where = f"edge_groups[{position}].{path}" if path else f"edge_groups[{position}]"
        self._group_faults.append((position, self._fault(where, message, warning)))

    @cached_property
    def _known_nodes(self) -> str:
        return known_names([node_id for node_id in islice(self._index, SHOWN + 1) if node_id], len(self._index))

    # The graph itself

    def _check_rest(self) -> Iterator[v1.Fault]:
        graph = self._graph
        if not graph.nodes:
            yield self._fault("nodes", "the graph has no nodes; it needs at least its start node")
        if not graph.start_node_id:
            yield self._fault("start_node_id", f"no start node is named; {self._known_nodes}")
        elif graph.start_node_id not in self._index:
            message = f"start node {quoted(graph.start_node_id)} is not in the graph; {self._known_nodes}"
            yield self._fault("start_node_id", message)
        first: dict[str, int] = {}
        for position, state_key in enumerate(graph.state_keys):
            key = state_key.key
            path = f"state_keys[{position}]"
            earlier = first.setdefault(key, position)
            if earlier != position:
                message = f"state key {quoted(key)} is declared twice, first as state_keys[{earlier}]; keep one"
                yield self._fault(f"{path}.key", message)
            if bad := NOT_STORABLE.search(key):
                yield self._fault(f"{path}.key", f"state key {quoted(key)} holds {character(bad[0])}; take it out")
            if message := enum_fault(MERGE_POLICIES, state_key.merge_policy):
                yield self._fault(f"{path}.merge_policy", message)
        if graph.max_supersteps < 0:
            message = f"max_supersteps is {graph.max_supersteps}; it is 1 or more, or 0 for the default"
            yield self._fault("max_supersteps", message)

    # Nodes

    def _check_nodes(self) -> None:
        nodes = self._place.nodes
        for position, node in enumerate(nodes):
            node_id = node.id
            self._ids.append(node_id)
            if not node_id:
                self._node_fault(position, "id", "the id is empty; every node needs its own")
            elif bad := NOT_IN_NODE_ID.search(node_id):
                self._node_fault(position, "id", f"node id {quoted(node_id)} holds {character(bad[0])}; take it out")
            earlier = self._index.setdefault(node_id, position)
            if earlier != position and node_id:
                message = f"node id {quoted(node_id)} is taken by nodes[{earlier}]; every node needs its own"
                self._node_fault(position, "id", message)
        self._links = [[] for _ in nodes]
        self._routes = [[] for _ in nodes]
        for position, node in enumerate(nodes):
            if node.HasField("executor"):
                self._check_executor(position, node.executor)
            elif node.HasField("nested"):
                if message := self._place.refused.get(position, ""):
                    self._node_fault(position, "nested", message)
                if node.nested.version < 0:
                    message = f"version is {node.nested.version}; it is 1 or more, or 0 for the current one"
                    self._node_fault(position, "nested.version", message)
            else:
                message = f"node {quoted(node.id)} runs nothing; set `executor` or `nested`"
                self._node_fault(position, "", message)
            self._check_settings(position, node)
            if node.handoff_node_ids:
                self._check_handoffs(position, node.handoff_node_ids)

    def _check_executor(self, position: int, executor: v1.ExecutorRef) -> None:
        kind = executor.executor_type
        if not kind:
            message = f"node {quoted(self._ids[position])} names no executor type; set executor_type"
            self._node_fault(position, "executor.executor_type", message)
        elif bad := CONTROL.search(kind):
            message = f"executor type {quoted(kind)} holds {character(bad[0])}; take it out"
            self._node_fault(position, "executor.executor_type", message)
        if executor.affinity_expression:
            try:
                compile_text(executor.affinity_expression)
            except ExpressionError as error:
                self._node_fault(position, "executor.affinity_expression", str(error))

    def _check_settings(self, position: int, node: v1.Node) -> None:
        for name in ("timeout", "lease_duration", "schedule_timeout", "idle_timeout"):
            if node.HasField(name):
                duration = getattr(node, name)
                message = duration_fault(name, duration)
                if not message and not duration.seconds and not duration.nanos:
                    message = f"{name} is 0 s; leave it unset or give a positive duration"
                if message:
                    self._node_fault(position, name, message)
        if node.HasField("retry_policy"):
            for path, message in retry_faults(node.retry_policy):
                self._node_fault(position, f"retry_policy.{path}", message)
        if node.concurrency < 0:
            message = f"concurrency is {node.concurrency}; it is 1 or more, or 0 for one invocation at a time"
            self._node_fault(position, "concurrency", message)
        if node.output_role and (message := enum_fault(OUTPUT_ROLES, node.output_role)):
            self._node_fault(position, "output_role", message)
        if node.on_stuck and (message := enum_fault(ON_STUCK, node.on_stuck)):
            self._node_fault(position, "on_stuck", message)
        for index, key in enumerate(node.state_reads):
            if bad := NOT_STORABLE.search(key):
                message = f"state key {quoted(key)} holds {character(bad[0])}; take it out"
                self._node_fault(position, f"state_reads[{index}]", message)

    def _check_handoffs(self, position: int, targets: Sequence[str]) -> None:
        seen: set[str] = set()
        for index, target in enumerate(targets):
            found = self._index.get(target)
            path = f"handoff_node_ids[{index}]"
            if found is None:
                self._node_fault(position, path, self._unknown("handoff target", target))
            elif target in seen:
                message = f"node {quoted(self._ids[position])} names {quoted(target)} twice; keep one"
                self._node_fault(position, path, message)
            else:
                self._links[position].append(found)
                self._routes[found].append(Route(position, Choice(ChoiceKind.HANDED_OFF, position, found)))
            seen.add(target)

    def _unknown(self, role: str, node_id: str) -> str:
        if not node_id:
            return f"no {role} is named; {self._known_nodes}"
        return f"{role} {quoted(node_id)} is not in the graph; {self._known_nodes}"

    def _check_reachable(self, start: int) -> None:
        seen = {start}
        todo = [start]
        while todo:
            for target in self._links[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        if len(seen) == len(self._ids):
            return
        for position, node_id in enumerate(self._ids):
            if position not in seen and self._index[node_id] == position:
                message = (
                    f"node {quoted(node_id)} cannot be reached from start node {quoted(self._ids[start])}; "
                    "lead an edge to it, or take it out"
                )
                self._node_fault(position, "", message)

    # Edge groups

    def _check_edge_group(self, position: int, group: v1.EdgeGroup) -> None:
        kind = group.WhichOneof("kind")
        if group.id and (bad := CONTROL.search(group.id)):
            message = f"edge group id {quoted(group.id)} holds {character(bad[0])}; take it out"
            self._group_fault(position, "id", message)
        match kind:
            case "single":
                self._check_single(position, group.single)
            case "fan_out":
                self._check_fan_out(position, group.fan_out)
            case "fan_in":
                self._check_fan_in(position, group.fan_in)
            case "switch_case":
                self._check_switch_case(position, group.switch_case)
            case "multi_selection":
                self._check_multi_selection(position, group.multi_selection)
            case None:
                message = "the edge group is of no kind this server knows; set single, fan_out, fan_in, ..."
                self._group_fault(position, "", message)

    def _check_group_ids(self) -> None:
        if not any(group.id for group in self._graph.edge_groups):
            return
        first: dict[str, int] = {}
        for position, group in enumerate(self._graph.edge_groups):
            group_id = edge_group_id(group, position)
            earlier = first.setdefault(group_id, position)
            if earlier != position:
                what = "the edge group id is" if group.id else "the empty edge group id stands for"
                message = f"{what} {quoted(group_id)}, which edge_groups[{earlier}] has; every group needs its own"
                self._group_fault(position, "id", message)

    def _check_single(self, position: int, edge: v1.SingleEdge) -> None:
        source = self._end(position, "single.source_node_id", "source", edge.source_node_id)
        target = self._end(position, "single.target_node_id", "target", edge.target_node_id)
        choice = None
        if condition := edge.condition:
            self._check_condition(position, "single.condition", condition)
            if source is not None:
                # The same question to the same message has one answer, however many edges ask it.
                first = self._conditions.setdefault((source, condition), position)
                choice = Choice(ChoiceKind.CONDITION, first)
        elif source is not None and source == target:
            self._warn_of_loop(position, "single.target_node_id", source)
        self._connect(position, "single.target_node_id", source, target, choice)

    def _check_fan_out(self, position: int, group: v1.FanOut) -> None:
        source = self._end(position, "fan_out.source_node_id", "source", group.source_node_id)
        path = "fan_out.target_node_ids"
        for index, target in self._several(position, path, "target", group.target_node_ids):
            if source is not None and source == target:
                self._warn_of_loop(position, f"{path}[{index}]", source)
            self._connect(position, f"{path}[{index}]", source, target, None)

    def _check_multi_selection(self, position: int, group: v1.MultiSelection) -> None:
        source = self._end(position, "multi_selection.source_node_id", "source", group.source_node_id)
        path = "multi_selection.target_node_ids"
        for index, target in self._several(position, path, "target", group.target_node_ids):
            choice = Choice(ChoiceKind.SELECTED, position, target)
            self._connect(position, f"{path}[{index}]", source, target, choice)
        if not group.selection:
            message = "the selection is empty; give CEL or a function that gives a list of node ids"
            self._group_fault(position, "multi_selection.selection", message)
        else:
            self._check_expression(position, "multi_selection.selection", group.selection, compile_selection)

    def _check_switch_case(self, position: int, group: v1.SwitchCase) -> None:
        source = self._end(position, "switch_case.source_node_id", "source", group.source_node_id)
        if not group.cases:
            message = "the switch has no cases; add one, or use a single edge"
            self._group_fault(position, "switch_case.cases", message)
        # Cases may share a target: they are one edge.
        targets: dict[int, str] = {}
        for index, case in enumerate(group.cases):
            path = f"switch_case.cases[{index}]"
            if not case.condition:
                message = "the condition of the case is empty; what always holds is the default"
                self._group_fault(position, f"{path}.condition", message)
            else:
                self._check_condition(position, f"{path}.condition", case.condition)
            target = self._end(position, f"{path}.target_node_id", "target", case.target_node_id)
            if target is not None:
                targets.setdefault(target, f"{path}.target_node_id")
        default = self._end(position, "switch_case.default_node_id", "default", group.default_node_id)
        if default is not None:
            targets.setdefault(default, "switch_case.default_node_id")
            if source is not None:
                self._switches[position] = (source, frozenset(targets))
        for target, path in targets.items():
            self._connect(position, path, source, target, Choice(ChoiceKind.CASE, position, target))

    def _check_fan_in(self, position: int, group: v1.FanIn) -> None:
        target = self._end(position, "fan_in.target_node_id", "target", group.target_node_id)
        path = "fan_in.source_node_ids"
        sources = []
        for index, source in self._several(position, path, "source", group.source_node_ids):
            sources.append(source)
            if target is not None:
                self._claim_pair(position, f"{path}[{index}]", source, target)
                self._links[source].append(target)
        count = len(set(group.source_node_ids))
        policy = group.join_policy
        if message := enum_fault(JOIN_POLICIES, policy):
            self._group_fault(position, "fan_in.join_policy", message)
        if policy == v1.JOIN_POLICY_QUORUM:
            if not 1 <= group.quorum <= count:
                message = f"quorum is {group.quorum}; it is from 1 to {count}, the number of sources"
                self._group_fault(position, "fan_in.quorum", message)
        elif group.quorum:
            message = f"quorum is {group.quorum}, but the join does not use it; set JOIN_POLICY_QUORUM or take it out"
            self._group_fault(position, "fan_in.quorum", message)
        if target is None:
            return
        self._check_list_handler(position, sources, target)
        if len(sources) == count >= 2:
            match policy:
                case v1.JOIN_POLICY_ANY | v1.JOIN_POLICY_REACHABLE:
                    needed = 1
                case v1.JOIN_POLICY_QUORUM:
                    needed = group.quorum
                case _:
                    needed = count
            self._joins.append(Join(position, tuple(sources), target, needed, group.optional))

    def _end(self, position: int, path: str, role: str, node_id: str) -> int | None:
        found = self._index.get(node_id) if node_id else None
        if found is None:
            self._group_fault(position, path, self._unknown(role, node_id))
        return found

    def _several(self, position: int, path: str, role: str, node_ids: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Index and position of each node that is there, once; there must be two."""
        seen: set[str] = set()
        for index, node_id in enumerate(node_ids):
            if node_id in seen:
                message = f"{role} {quoted(node_id)} is named twice in one edge group; keep one"
                self._group_fault(position, f"{path}[{index}]", message)
                continue
            seen.add(node_id)
            found = self._end(position, f"{path}[{index}]", role, node_id)
            if found is not None:
                yield index, found
        if len(seen) < 2:
            kind, _, _ = path.partition(".")
            message = (
                f"{kind} has {len(seen)} {role}{'' if len(seen) == 1 else 's'}; it needs two, else use a single edge"
            )
            self._group_fault(position, path, message)

    def _connect(self, position: int, path: str, source: int | None, target: int | None, choice: Choice | None) -> None:
        if source is None or target is None:
            return
        self._claim_pair(position, path, source, target)
        self._links[source].append(target)
        self._routes[target].append(Route(source, choice))
        sends, takes = self._ends[source].sends, self._ends[target].takes
        if sends is not None and takes is not None and not takes.meets(sends):
            message = (
                f"node {quoted(self._ids[source])} sends {sends} and node {quoted(self._ids[target])} takes {takes}; "
                "they have no type in common, so nothing would ever pass"
            )
            self._group_fault(position, path, message)

    def _claim_pair(self, position: int, path: str, source: int, target: int) -> None:
        """Between two nodes there is at most one group in each direction; inside one, `_several` has looked."""
        first = self._pairs.setdefault((source, target), position)
        if first != position:
            message = (
                f"{quoted(self._ids[source])} -> {quoted(self._ids[target])} is in edge_groups[{first}] as well; "
                "join both in one group, or take one out"
            )
            self._group_fault(position, path, message)

    def _check_list_handler(self, position: int, sources: Sequence[int], target: int) -> None:
        takes = self._ends[target].takes
        if takes is None:
            return
        elements = takes.elements
        sends = [self._ends[source].sends for source in sources]
        known = [types for types in sends if types is not None]
        if elements.names and (len(known) < len(sends) or any(elements.meets(types) for types in known)):
            return
        wanted = next((f"list<{name}>" for types in known for name in types.shown), "list<T>")
        message = (
            f"join {quoted(self._ids[target])} takes {takes}, not the list that a fan-in gives; "
            f"let it handle {wanted} or list<any>"
        )
        self._group_fault(position, "fan_in.target_node_id", message)

    def _warn_of_loop(self, position: int, path: str, node: int) -> None:
        message = f"node {quoted(self._ids[node])} sends to itself without a condition and may never end; add one"
        self._group_fault(position, path, message, warning=True)

    def _check_condition(self, position: int, path: str, source: str) -> None:
        self._check_expression(position, path, source, compile_condition)

    def _check_expression(
        self, position: int, path: str, source: str, compile_source: Callable[[str], Expression]
    ) -> None:
        if not source.startswith(FUNCTION_PREFIX):
            try:
                compile_source(source)
            except ExpressionError as error:
                self._group_fault(position, path, str(error))
            return
        name = source.removeprefix(FUNCTION_PREFIX)
        if not name:
            self._group_fault(position, path, f"{source!r} names no function; write function:NAME, or CEL")
        elif self._functions is not None and name not in self._functions:
            message = f"function {quoted(name)} is not registered here; {self._known_functions}"
            self._group_fault(position, path, message)

    @cached_property
    def _known_functions(self) -> str:
        functions = self._functions
        return known_names(sorted(map(str, functions))) if isinstance(functions, Collection) else "not known here"

    # Joins that may starve

    def _check_joins(self, start: int) -> None:
        if all(join.optional or join.needed == 1 for join in self._joins):
            return
        choices = choices_of(start, self._links, self._routes, self._joins, self._switches)
        for join in self._joins:
            sets = [choices[source] for source in join.sources]
            known = [one for one in sets if one is not None]
            if (
                join.optional
                or join.needed == 1
                or len(known) < len(sets)
                or known.count(ALWAYS) >= join.needed
                or known.count(known[0]) == len(known)
            ):
                continue
            self._warn_of_join(join, known)

    def _warn_of_join(self, join: Join, sets: Sequence[frozenset[Choice]]) -> None:
        other = next(index for index, one in enumerate(sets) if one != sets[0])
        bound, free = (other, 0) if sets[other] - sets[0] - ALWAYS else (0, other)
        choice = min(sets[bound] - sets[free] - ALWAYS, default=Choice(ChoiceKind.MANY, 0))
        message = (
            f"join {quoted(self._ids[join.target])} may starve: its source {quoted(self._ids[join.sources[bound]])} "
            f"depends on {self._described(choice)}, its source {quoted(self._ids[join.sources[free]])} does not; "
            "a run in which it waits in vain fails. Use JOIN_POLICY_REACHABLE, or mark the join optional"
        )
        self._group_fault(join.group, "fan_in.join_policy", message, warning=True)

    def _described(self, choice: Choice) -> str:
        match choice.kind:
            case ChoiceKind.CONDITION:
                condition = self._graph.edge_groups[choice.place].single.condition
                return f"the condition {quoted(condition)} of edge_groups[{choice.place}]"
            case ChoiceKind.CASE:
                return f"a case of edge_groups[{choice.place}]"
            case ChoiceKind.SELECTED:
                return f"the selection of edge_groups[{choice.place}]"
            case ChoiceKind.HANDED_OFF:
                return f"a handoff of node {quoted(self._ids[choice.place])}"
            case ChoiceKind.JOINED:
                return f"the join of edge_groups[{choice.place}], which may starve as well"
            case ChoiceKind.ALWAYS | ChoiceKind.MANY:
                return "several conditions"
