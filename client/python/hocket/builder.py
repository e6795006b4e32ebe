"""Workflows written down in Python.

The builder only notes what it is told; `build` writes the definition in one pass and reports everything that is wrong
at once. What a definition can say wrong is the server's to judge, through the mesh. Here is what it cannot say at all:
two objects under one id, a name that was never defined, a function that must be awaited.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, runtime_checkable

from hocket import v1
from hocket.errors import DefinitionError, DefinitionWarning
from hocket.executor import Executor, FunctionExecutor, is_count
from hocket.mesh import check_definition
from hocket.workflow import NestedWorkflow, Workflow

Condition: TypeAlias = str | Callable[..., Any]
"""CEL over `message`, `message_type`, `source`, `state` and `superstep`, or a function of the message that gives a
bool."""

Selection: TypeAlias = str | Callable[..., Any]
"""CEL that also sees `targets`, or a function; it gives a list of node ids."""

WaitFor: TypeAlias = int | Literal["all", "any", "reachable"]
MergePolicy: TypeAlias = Literal["append", "reject", "last_writer", "merge", "sum"]

_JOIN_POLICIES: Final[Mapping[str, v1.JoinPolicy.ValueType]] = {
    "all": v1.JOIN_POLICY_ALL,
    "any": v1.JOIN_POLICY_ANY,
    "reachable": v1.JOIN_POLICY_REACHABLE,
}
_MERGE_POLICIES: Final[Mapping[str, v1.MergePolicy.ValueType]] = {
    "append": v1.MERGE_POLICY_APPEND,
    "reject": v1.MERGE_POLICY_REJECT,
    "last_writer": v1.MERGE_POLICY_LAST_WRITER,
    "merge": v1.MERGE_POLICY_MERGE,
    "sum": v1.MERGE_POLICY_SUM,
}
_FUNCTION_PREFIX: Final = "function:"


@runtime_checkable
class SupportsAsExecutor(Protocol):
    """Anything that can stand at a node, such as an agent. Asked once by each builder."""

    def as_executor(self) -> Executor: ...


NodeLike: TypeAlias = Executor | Workflow | NestedWorkflow | SupportsAsExecutor | Callable[..., Any] | str
"""What may stand at a node: an executor, a function, a workflow, an agent; or the id of a node that is named
elsewhere."""


@dataclass(frozen=True)
class Case:
    """`target` gets the message if `condition` is the first that is true."""

    condition: Condition
    target: NodeLike


@dataclass(frozen=True)
class Default:
    """`target` gets the message that no case took."""

    target: NodeLike


OutputSelection: TypeAlias = Sequence[NodeLike] | Literal["all", "all_other"]


_Kind: TypeAlias = Literal["single", "fan_out", "fan_in", "switch_case", "multi_selection"]


@dataclass(slots=True)
class _Group:
    """An edge group as noted: ids of nodes and what the author gave for the rest."""

    kind: _Kind
    sources: Sequence[str]
    targets: Sequence[str]
    conditions: Sequence[Condition | None] = ()
    wait_for: object = "all"
    optional: bool = False
    defaults: Sequence[str] = ()


class WorkflowBuilder:
    """Notes a graph, then builds it. All methods but `build` give the builder back.

    `output_from` and `intermediate_output_from` choose whose yields are outputs (G26): a list of nodes, "all", or
    "all_other", which is all that the other of the two does not list. Neither given, every yield is an output.
    `state` gives keys of the run's state their merge policy (G23). `name` is the definition's; nested workflows need
    different ones. The default is made of the start node's id.
    """

    def __init__(
        self,
        start_executor: NodeLike,
        *,
        name: str | None = None,
        max_supersteps: int = 100,
        state: Mapping[str, MergePolicy] | None = None,
        output_from: OutputSelection | None = None,
        intermediate_output_from: OutputSelection | None = None,
        description: str = "",
    ) -> None:
        self._nodes: dict[str, Executor | NestedWorkflow] = {}
        self._duplicates: dict[str, str] = {}
        # Of functions and agents: the executors made of them, which they share the life of.
        self._made: dict[tuple[int, int], tuple[object, Executor]] = {}
        self._groups: list[_Group] = []
        self._start = self._node(start_executor)
        self._name = f"{self._start}-workflow" if name is None else name
        self._max_supersteps = max_supersteps
        self._state = dict(state or {})
        self._output_from = self._designated(output_from)
        self._intermediate_output_from = self._designated(intermediate_output_from)
        self._description = description

    def add_edge(self, source: NodeLike, target: NodeLike, condition: Condition | None = None) -> Self:
        """Every message from `source` that `target` handles and for which the condition holds."""
        return self._add("single", [source], [target], conditions=[condition])

    def add_chain(self, nodes: Sequence[NodeLike]) -> Self:
        """An edge from each to the next."""
        ids = [self._node(node) for node in nodes]
        self._groups += [_Group("single", (one,), (other,)) for one, other in pairwise(ids)]
        return self

    def add_fan_out_edges(
        self, source: NodeLike, targets: Sequence[NodeLike], selection: Selection | None = None
    ) -> Self:
        """Every message from `source` to all targets that handle it, or to those that `selection` names."""
        if selection is not None:
            return self.add_multi_selection_edge_group(source, targets, selection)
        return self._add("fan_out", [source], targets)

    def add_fan_in_edges(
        self, sources: Sequence[NodeLike], target: NodeLike, wait_for: WaitFor = "all", optional: bool = False
    ) -> Self:
        """One list for `target`, once all, any, or so many of the sources have sent, or no other can any more (G18).

        A join that still holds messages at the end fails the run, unless it is optional (G20).
        """
        return self._add("fan_in", sources, [target], wait_for=wait_for, optional=optional)

    def add_switch_case_edge_group(self, source: NodeLike, cases: Sequence[Case | Default]) -> Self:
        """Every message from `source` to the target of the first case that is true, else to that of the one Default."""
        self._node(source)
        # In the order written: positions of nodes fix the order of a run.
        written = [(case, self._node(case.target)) for case in cases]
        conditions = [case.condition for case, _ in written if isinstance(case, Case)]
        targets = [node_id for case, node_id in written if isinstance(case, Case)]
        self._add("switch_case", [source], targets, conditions=conditions)
        self._groups[-1].defaults = [node_id for case, node_id in written if isinstance(case, Default)]
        return self

    def add_multi_selection_edge_group(
        self, source: NodeLike, targets: Sequence[NodeLike], selection: Selection
    ) -> Self:
        """Every message from `source` to those of the targets that `selection` names."""
        return self._add("multi_selection", [source], targets, conditions=[selection])

    def build(self) -> Workflow:
        """Raises DefinitionError with every fault there is (G5); doubts are issued as DefinitionWarning."""
        self._note_handoffs()
        result = _Build(self._name)
        result.write(self._description, self._start, self._nodes, self._groups, self._max_supersteps, self._state)
        result.choose_outputs(self._output_from, self._intermediate_output_from)
        for id, message in self._duplicates.items():
            result.fault(f"graph.nodes[{list(self._nodes).index(id)}].id", message)
        found = [*result.faults, *result.server_faults()]
        if faults := [fault for fault in found if not fault.warning]:
            raise DefinitionError(self._name, faults)
        for fault in found:
            if fault.path.startswith("nested["):
                continue  # was said when that workflow was built
            warnings.warn(f"{self._name}: {fault.path}: {fault.message}", DefinitionWarning, stacklevel=2)
        return Workflow(result.definition, result.executors, result.functions)

    def _add(
        self,
        kind: _Kind,
        sources: Sequence[NodeLike],
        targets: Sequence[NodeLike],
        *,
        conditions: Sequence[Condition | None] = (),
        wait_for: object = "all",
        optional: bool = False,
    ) -> Self:
        source_ids = [self._node(source) for source in sources]
        target_ids = [self._node(target) for target in targets]
        self._groups.append(_Group(kind, source_ids, target_ids, conditions, wait_for, optional))
        return self

    def _node(self, given: NodeLike) -> str:
        """The id of the node that stands for it. A node is noted when it is met first."""
        if isinstance(given, str):
            return given
        node = self._placed(given)
        known = self._nodes.setdefault(node.id, node)
        if known is not node and not _is_same(known, node):
            self._duplicates[node.id] = (
                f"two nodes have the id {node.id!r}: {_described(known)} and {_described(node)}; give one another id"
            )
        return node.id

    def _note_handoffs(self) -> None:
        """Notes the executors that those noted hand off to, and so on."""
        todo = list(self._nodes.values())
        for node in todo:
            for target in node.handoffs if isinstance(node, Executor) else ():
                if isinstance(target, Executor) and target.id not in self._nodes:
                    todo.append(target)
                if isinstance(target, Executor):
                    self._node(target)

    def _placed(self, given: NodeLike) -> Executor | NestedWorkflow:
        if isinstance(given, Executor | NestedWorkflow):
            return given
        if isinstance(given, Workflow):
            return NestedWorkflow(given, given.name)
        # A bound method is a new object each time it is asked for.
        key = (id(given.__func__), id(given.__self__)) if inspect.ismethod(given) else (id(given), 0)
        if key not in self._made:
            self._made[key] = given, _made_executor(given)
        return self._made[key][1]

    def _designated(self, chosen: OutputSelection | None) -> list[str] | str | None:
        if chosen is None or isinstance(chosen, str):
            return chosen
        return [one if isinstance(one, str) else self._placed(one).id for one in chosen]


def _made_executor(given: object) -> Executor:
    if inspect.isclass(given):
        raise TypeError(f"{given.__qualname__} is a class; a node needs an object of it")
    if isinstance(given, SupportsAsExecutor):
        return given.as_executor()
    if inspect.isfunction(given) or inspect.ismethod(given):
        return FunctionExecutor(given, frame=inspect.currentframe())
    raise TypeError(f"{given!r} cannot stand at a node; give an executor, a function, a workflow or an agent")


def _is_same(one: Executor | NestedWorkflow, other: Executor | NestedWorkflow) -> bool:
    """Whether two objects stand for one node: the same workflow, or a function made an executor twice in the same
    way."""
    if isinstance(one, NestedWorkflow) or isinstance(other, NestedWorkflow):
        return one == other
    if isinstance(one, FunctionExecutor) and isinstance(other, FunctionExecutor):
        return bool(one.function == other.function) and one.node() == other.node()
    return one is other


def _described(node: Executor | NestedWorkflow) -> str:
    return repr(node if isinstance(node, Executor) else node.workflow)


# Building


@dataclass
class _Build:
    """One definition being written, with what belongs to it and what is wrong in it."""

    name: str
    definition: v1.Definition = field(default_factory=v1.Definition)
    executors: dict[str, Executor] = field(default_factory=dict)
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    faults: list[v1.Fault] = field(default_factory=list)
    # Of what it holds, by name.
    _held: dict[str, v1.Definition] = field(default_factory=dict)

    def fault(self, path: str, message: str) -> None:
        self.faults.append(v1.Fault(path=path, message=message))

    def server_faults(self) -> list[v1.Fault]:
        """What the definition itself says wrong, without what follows from a fault that is known already."""
        known = {fault.path for fault in self.faults}
        return [fault for fault in check_definition(self.definition, self.functions) if fault.path not in known]

    def write(
        self,
        description: str,
        start: str,
        nodes: Mapping[str, Executor | NestedWorkflow],
        groups: Iterable[_Group],
        max_supersteps: int,
        state: Mapping[str, str],
    ) -> None:
        definition, graph = self.definition, self.definition.graph
        definition.definition_name = self.name
        definition.description = description
        graph.start_node_id = start
        if is_count(max_supersteps):
            graph.max_supersteps = max_supersteps
        else:
            self.fault("graph.max_supersteps", f"max_supersteps is {max_supersteps!r}; it is a whole number from 1")
        for position, (key, policy) in enumerate(state.items()):
            if policy not in _MERGE_POLICIES:
                known = ", ".join(_MERGE_POLICIES)
                message = f"the merge policy of {key!r} is {policy!r}; known: {known}"
                self.fault(f"graph.state_keys[{position}].merge_policy", message)
            graph.state_keys.add(key=key, merge_policy=_MERGE_POLICIES.get(policy))
        for position, node in enumerate(nodes.values()):
            if isinstance(node, Executor):
                node.fill_node(graph.nodes.add())
                self._host(position, node.executor_type, node)
            else:
                self._nest(position, graph.nodes.add(), node)
        for position, group in enumerate(groups):
            self._write_group(position, graph.edge_groups.add(), group)

    def _host(self, position: int, executor_type: str, executor: Executor) -> None:
        known = self.executors.setdefault(executor_type, executor)
        if known is not executor and not _is_same(known, executor):
            message = (
                f"two executors have the type {executor_type!r}: {known!r} and {executor!r}; "
                "a worker could not tell them apart. Give one another executor_type"
            )
            self.fault(f"graph.nodes[{position}].executor.executor_type", message)

    def _nest(self, position: int, node: v1.Node, nested: NestedWorkflow) -> None:
        workflow = nested.workflow
        node.id = nested.id
        node.nested.definition_name = workflow.name
        node.types.CopyFrom(workflow._node_types)
        self._hold(position, workflow)
        for executor_type, executor in workflow.executors.items():
            self._host(position, executor_type, executor)

    def _hold(self, position: int, workflow: Workflow) -> None:
        """The workflow's definition and all that it holds: flat, each once."""
        path = f"graph.nodes[{position}].nested.definition_name"
        for definition in (workflow.definition, *workflow.definition.nested):
            name = definition.definition_name
            known = self._held.get(name)
            if name == self.name:
                self.fault(path, f"a workflow in it has its own name, {name!r}; give one of the two another name")
            elif known is None:
                own = self.definition.nested.add(definition_name=name, description=definition.description)
                own.graph.CopyFrom(definition.graph)
                self._held[name] = own
            elif known.graph != definition.graph:
                self.fault(path, f"two workflows have the name {name!r}; give one another name")
        for name, function in workflow.functions.items():
            if self.functions.setdefault(name, function) != function:
                self.fault(path, f"two workflows have a function under the name {name!r}; give one another name")

    # Edge groups

    def _write_group(self, position: int, written: v1.EdgeGroup, group: _Group) -> None:
        path = f"graph.edge_groups[{position}].{group.kind}"
        match group.kind:
            case "single":
                single = written.single
                single.source_node_id, single.target_node_id = group.sources[0], group.targets[0]
                if (condition := group.conditions[0] if group.conditions else None) is not None:
                    name = f"{group.sources[0]}->{group.targets[0]}"
                    single.condition = self._expression(condition, name, f"{path}.condition", "condition")
            case "fan_out":
                written.fan_out.source_node_id = group.sources[0]
                written.fan_out.target_node_ids.extend(group.targets)
            case "fan_in":
                self._write_fan_in(written.fan_in, group, path)
            case "switch_case":
                self._write_switch(written.switch_case, group, path)
            case "multi_selection":
                selected = written.multi_selection
                selected.source_node_id = group.sources[0]
                selected.target_node_ids.extend(group.targets)
                name = f"{group.sources[0]}->selection"
                selected.selection = self._expression(group.conditions[0], name, f"{path}.selection", "selection")

    def _write_fan_in(self, fan_in: v1.FanIn, group: _Group, path: str) -> None:
        fan_in.source_node_ids.extend(group.sources)
        fan_in.target_node_id = group.targets[0]
        fan_in.optional = group.optional
        wait_for = group.wait_for
        if isinstance(wait_for, str) and wait_for in _JOIN_POLICIES:
            fan_in.join_policy = _JOIN_POLICIES[wait_for]
        elif isinstance(wait_for, int) and not isinstance(wait_for, bool) and 1 <= wait_for <= len(set(group.sources)):
            fan_in.join_policy, fan_in.quorum = v1.JOIN_POLICY_QUORUM, wait_for
        else:
            known = f"{', '.join(map(repr, _JOIN_POLICIES))} and the numbers from 1 to that of its sources"
            self.fault(f"{path}.join_policy", f"wait_for is {wait_for!r}; known: {known} ({len(set(group.sources))})")

    def _write_switch(self, switch: v1.SwitchCase, group: _Group, path: str) -> None:
        switch.source_node_id = group.sources[0]
        for index, (target, condition) in enumerate(zip(group.targets, group.conditions, strict=True)):
            name = f"{group.sources[0]}->case{index}->{target}"
            where = f"{path}.cases[{index}].condition"
            switch.cases.add(condition=self._expression(condition, name, where, "condition"), target_node_id=target)
        if group.defaults:
            switch.default_node_id = group.defaults[0]
        if len(group.defaults) != 1:
            count = "no Default" if not group.defaults else f"{len(group.defaults)} Defaults"
            self.fault(
                f"{path}.default_node_id", f"the switch after {group.sources[0]!r} has {count}; give exactly one"
            )

    def _expression(self, given: object, name: str, path: str, role: str) -> str:
        """CEL as it is; a function by a name made of where it stands, the same whenever the graph is built again."""
        if isinstance(given, str):
            if not given.strip():
                self.fault(path, f"the {role} is empty; leave it out, or give CEL or a function")
            return given
        if not callable(given):
            self.fault(path, f"the {role} is {given!r}; give CEL as text, or a function")
            return ""
        if _is_awaited(given):
            shown = getattr(given, "__qualname__", repr(given))
            self.fault(
                path, f"the {role} {shown} is a coroutine function; routing does not wait, so make it a plain one"
            )
        name = unique = f"{self.name}.{name}"
        ordinal = 1
        while unique in self.functions:
            ordinal += 1
            unique = f"{name}#{ordinal}"
        self.functions[unique] = given
        return _FUNCTION_PREFIX + unique

    # Outputs

    def choose_outputs(self, output: list[str] | str | None, intermediate: list[str] | str | None) -> None:
        """Writes the role of every node, unless neither was given (G26)."""
        if output is None and intermediate is None:
            return
        ids = {node.id for node in self.definition.graph.nodes}
        outputs = self._chosen("output_from", output, intermediate, ids)
        intermediates = self._chosen("intermediate_output_from", intermediate, output, ids)
        if both := sorted(outputs & intermediates):
            message = f"{', '.join(map(repr, both))} in output_from too; a node has one role"
            advice = ' ("all_other" is all that output_from does not list)' if "all" in (output, intermediate) else ""
            self.fault("intermediate_output_from", message + advice)
        for node in self.definition.graph.nodes:
            if node.id in outputs:
                node.output_role = v1.OUTPUT_ROLE_OUTPUT
            else:
                hidden = node.id not in intermediates
                node.output_role = v1.OUTPUT_ROLE_HIDDEN if hidden else v1.OUTPUT_ROLE_INTERMEDIATE

    def _chosen(
        self, parameter: str, chosen: list[str] | str | None, other: list[str] | str | None, ids: set[str]
    ) -> set[str]:
        match chosen:
            case None:
                return set()
            case "all":
                return ids
            case "all_other" if other == "all_other":
                self.fault(parameter, 'both selections are "all_other"; list the nodes of one of them')
                return set()
            case "all_other":
                listed = ids if other == "all" else set(other or ())
                return ids - listed
            case str():
                self.fault(parameter, f'{parameter} is {chosen!r}; give a list of nodes, "all" or "all_other"')
                return set()
            case _:
                for index, id in enumerate(chosen):
                    if id not in ids:
                        known = ", ".join(sorted(ids)[:20])
                        self.fault(f"{parameter}[{index}]", f"node {id!r} is not in the graph; known: {known}")
                return ids.intersection(chosen)


def _is_awaited(function: Any) -> bool:
    calls = (function, inspect.unwrap(function), type(function).__call__)
    return any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in calls)
