"""The fingerprint of a definition, and what differs between two.

Two definitions have one signature when a run of either is a run of the other: name, nodes, edges and their positions,
conditions, types, policies and everything nested are in it. Retry policies, timeouts, limits and concurrency are in it
too: they decide what becomes of a run, `version` grows by one for each different signature, and a setting left out
would be changed under a stored version, which never changes. (One run's limit is raised by resuming with a higher one.)

Left out is what no run depends on: namespace, labels, descriptions, times, the order of maps and of `nested`, nested
definitions that no node names, and version numbers: what a node names enters by its content. A value that means the
same as none (JOIN_POLICY_ALL, a concurrency of 1, the edge group id that an empty one stands for) is the same as none.

The signature is the SHA-256 of the canonical definition in protobuf's deterministic form: cleared of the above, with
all that is nested in one list, numbered from 1 in `version` in the order in which nodes first name it.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from hocket import v1

DEFAULT_MAX_SUPERSTEPS: Final = 100


class Scope:
    """Where the nodes of a definition find what they name: in what it holds, else in what holds it."""

    def __init__(self, definition: v1.Definition, parent: "Scope | None" = None) -> None:
        self.definition = definition
        self.parent = parent

    @cached_property
    def held(self) -> Sequence["Scope"]:
        return [Scope(nested, self) for nested in self.definition.nested]

    @cached_property
    def _by_name(self) -> Mapping[str, Mapping[int, "Scope"]]:
        found: dict[str, dict[int, Scope]] = {}
        for scope in self.held:
            found.setdefault(scope.definition.definition_name, {}).setdefault(scope.definition.version, scope)
        return found

    @cached_property
    def _current(self) -> Mapping[str, "Scope"]:
        return {name: versions[max(versions)] for name, versions in self._by_name.items()}

    def find(self, reference: v1.DefinitionRef) -> "Scope | None":
        """Version 0 that nobody has stands for the highest there is."""
        name, version = reference.definition_name, reference.version
        scope: Scope | None = self
        while scope is not None:
            if versions := scope._by_name.get(name):
                if version in versions:
                    return versions[version]
                if version == 0:
                    return scope._current[name]
            scope = scope.parent
        return None

    def names(self) -> Collection[str]:
        """Of what it holds itself."""
        return self._by_name.keys()

    def versions(self, name: str) -> Collection[int]:
        """Of what has the name, where it is held nearest."""
        scope: Scope | None = self
        while scope is not None:
            if versions := scope._by_name.get(name):
                return versions.keys()
            scope = scope.parent
        return ()


def edge_group_id(group: v1.EdgeGroup, position: int) -> str:
    """The id that an empty one stands for is `{kind}:{position}`."""
    return group.id or f"{group.WhichOneof('kind')}:{position}"


def signature(definition: v1.Definition) -> bytes:
    """32 bytes. Equal for two definitions exactly when `difference` finds nothing."""
    return hashlib.sha256(canonical(definition).SerializeToString(deterministic=True)).digest()


def canonical(definition: v1.Definition) -> v1.Definition:
    """A copy with all that the signature holds and nothing else."""
    root = Scope(definition)
    found = [root]
    numbers = {id(root): 0}
    result = v1.Definition()
    for number, scope in enumerate(found):
        clean = result.nested.add() if number else result
        clean.definition_name = scope.definition.definition_name
        clean.version = number
        if not scope.definition.HasField("graph"):
            continue
        clean.graph.CopyFrom(scope.definition.graph)
        _clear_defaults(clean.graph)
        for node in clean.graph.nodes:
            if not node.HasField("nested"):
                continue
            child = scope.find(node.nested)
            if child is None:
                continue
            if id(child) not in numbers:
                numbers[id(child)] = len(found)
                found.append(child)
            node.nested.version = numbers[id(child)]
    return result


def _clear_defaults(graph: v1.Graph) -> None:
    """Descriptions too."""
    for node in graph.nodes:
        if node.description:
            node.description = ""
        if node.output_role == v1.OUTPUT_ROLE_OUTPUT:
            node.output_role = v1.OUTPUT_ROLE_UNSPECIFIED
        if node.on_stuck == v1.ON_STUCK_WAIT:
            node.on_stuck = v1.ON_STUCK_UNSPECIFIED
        if node.concurrency == 1:
            node.concurrency = 0
    for position, group in enumerate(graph.edge_groups):
        if group.id and group.id == f"{group.WhichOneof('kind')}:{position}":
            group.id = ""
        if group.HasField("fan_in") and group.fan_in.join_policy == v1.JOIN_POLICY_ALL:
            group.fan_in.join_policy = v1.JOIN_POLICY_UNSPECIFIED
    for key in graph.state_keys:
        if key.merge_policy == v1.MERGE_POLICY_REJECT:
            key.merge_policy = v1.MERGE_POLICY_UNSPECIFIED
    if graph.max_supersteps == DEFAULT_MAX_SUPERSTEPS:
        graph.max_supersteps = 0


def difference(old: v1.Definition, new: v1.Definition) -> list[str]:
    """What changed, one readable line each; of what is nested with its name first. Empty for equal signatures."""
    before, after = canonical(old), canonical(new)
    if before.SerializeToString(deterministic=True) == after.SerializeToString(deterministic=True):
        return []
    was, now = _named(before), _named(after)
    names = ({d.version: name for name, d in was.items()}, {d.version: name for name, d in now.items()})
    lines = [*_scalar_changes(before, after, "definition_name"), *_definition_changes(before, after, names)]
    lines += [f"nested {name!r} removed" for name in was if name not in now]
    lines += [f"nested {name!r} added" for name in now if name not in was]
    for name in was:
        if name in now:
            lines += [f"nested {name!r}: {line}" for line in _definition_changes(was[name], now[name], names)]
    # Fields that this version of the contract does not know are in the signature as well.
    return lines or ["order of what is nested, or fields that this version does not know, changed"]


_Names: TypeAlias = "tuple[Mapping[int, str], Mapping[int, str]]"
"""Of what is nested, by number: in the old definition and in the new one."""


def _named(definition: v1.Definition) -> dict[str, v1.Definition]:
    """Several versions of one name are told apart by the order in which they are named."""
    found: dict[str, v1.Definition] = {}
    for (name, occurrence), nested in _keyed(definition.nested, lambda nested: nested.definition_name).items():
        found[f"{name} ({occurrence + 1})" if occurrence else name] = nested
    return found


def _definition_changes(old: v1.Definition, new: v1.Definition, names: _Names) -> Iterator[str]:
    kinds = old.WhichOneof("kind"), new.WhichOneof("kind")
    if kinds[0] != kinds[1]:
        yield f"kind changed: {kinds[0] or 'none'} -> {kinds[1] or 'none'}"
        return
    yield from _scalar_changes(old.graph, new.graph, "start_node_id", "max_supersteps")
    yield from _node_changes(old.graph.nodes, new.graph.nodes, names)
    yield from _edge_group_changes(old.graph.edge_groups, new.graph.edge_groups)
    yield from _state_key_changes(old.graph.state_keys, new.graph.state_keys)


def _node_changes(old: Sequence[v1.Node], new: Sequence[v1.Node], names: _Names) -> Iterator[str]:
    was, now = _keyed(old, lambda node: node.id), _keyed(new, lambda node: node.id)
    yield from (f"node {key[0]!r} removed" for key in was if key not in now)
    yield from (f"node {key[0]!r} added" for key in now if key not in was)
    for key, node in was.items():
        other = now.get(key)
        if other is None:
            continue
        nested = _nested_name(node, names[0]), _nested_name(other, names[1])
        if nested[0] != nested[1]:
            yield f"node {key[0]!r} nested changed: {nested[0]} -> {nested[1]}"
        if node != other:
            yield from (f"node {key[0]!r} {line}" for line in _changes(node, other, skip="nested"))
    yield from _order_changes("node", [key for key in was if key in now], [key for key in now if key in was])


def _nested_name(node: v1.Node, names: Mapping[int, str]) -> str:
    if not node.HasField("nested"):
        return "none"
    reference = node.nested
    return repr(names.get(reference.version, f"{reference.definition_name}@{reference.version}"))


def _edge_group_changes(old: Sequence[v1.EdgeGroup], new: Sequence[v1.EdgeGroup]) -> Iterator[str]:
    was, now = _keyed(enumerate(old), _edge_group_key), _keyed(enumerate(new), _edge_group_key)
    pairs = [(group, now[key]) for key, group in was.items() if key in now]
    added = {position: group for key, (position, group) in now.items() if key not in was}
    for key, (position, group) in was.items():
        if key in now:
            continue
        other = added.get(position)
        if other is not None and other.WhichOneof("kind") == group.WhichOneof("kind"):
            pairs.append(((position, group), (position, added.pop(position))))
        else:
            yield f"edge group {position} removed: {_ends(group)}"
    yield from (f"edge group {position} added: {_ends(group)}" for position, group in added.items())
    for (position, group), (_, other) in sorted(pairs, key=lambda pair: pair[0][0]):
        if group == other:
            continue
        prefix = f"edge group {position} "
        yield from (prefix + line for line in _scalar_changes(group, other, "id"))
        if kind := group.WhichOneof("kind"):
            yield from (prefix + line for line in _changes(getattr(group, kind), getattr(other, kind)))
    yield from _order_changes("edge group", [key for key in was if key in now], [key for key in now if key in was])


def _edge_group_key(numbered: tuple[int, v1.EdgeGroup]) -> str:
    group = numbered[1]
    return group.id or _ends(group)


def _ends(group: v1.EdgeGroup) -> str:
    """`fan_out 'a' -> 'b', 'c'`"""
    match group.WhichOneof("kind"):
        case "single":
            sources, targets = [group.single.source_node_id], [group.single.target_node_id]
        case "fan_out":
            sources, targets = [group.fan_out.source_node_id], list(group.fan_out.target_node_ids)
        case "fan_in":
            sources, targets = list(group.fan_in.source_node_ids), [group.fan_in.target_node_id]
        case "switch_case":
            switch = group.switch_case
            sources = [switch.source_node_id]
            targets = [*(case.target_node_id for case in switch.cases), switch.default_node_id]
        case "multi_selection":
            sources = [group.multi_selection.source_node_id]
            targets = list(group.multi_selection.target_node_ids)
        case _:
            return "of no kind"
    return f"{group.WhichOneof('kind')} {', '.join(map(repr, sources))} -> {', '.join(map(repr, targets))}"


def _state_key_changes(old: Sequence[v1.StateKey], new: Sequence[v1.StateKey]) -> Iterator[str]:
    was, now = _keyed(old, lambda key: key.key), _keyed(new, lambda key: key.key)
    yield from (f"state key {key[0]!r} removed" for key in was if key not in now)
    yield from (f"state key {key[0]!r} added" for key in now if key not in was)
    for key, old_key in was.items():
        if key in now:
            yield from (f"state key {key[0]!r} {line}" for line in _changes(old_key, now[key]))
    yield from _order_changes("state key", [key for key in was if key in now], [key for key in now if key in was])


_Item = TypeVar("_Item")


def _keyed(items: Iterable[_Item], key: Callable[[_Item], str]) -> dict[tuple[str, int], _Item]:
    """By key and occurrence, in order: what is wrongly there twice is compared as well."""
    counts: dict[str, int] = {}
    found: dict[tuple[str, int], _Item] = {}
    for item in items:
        name = key(item)
        counts[name] = counts.get(name, -1) + 1
        found[name, counts[name]] = item
    return found


def _order_changes(what: str, old: Sequence[tuple[str, int]], new: Sequence[tuple[str, int]]) -> Iterator[str]:
    """`old` and `new` hold the same keys."""
    first = next((i for i, (one, other) in enumerate(zip(old, new, strict=True)) if one != other), None)
    if first is not None:
        yield f"{what} order changed: {_shown([key for key, _ in old])} -> {_shown([key for key, _ in new])}"


def _scalar_changes(old: Message, new: Message, *names: str) -> Iterator[str]:
    for name in names:
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield f"{name} changed: {_shown(before)} -> {_shown(after)}"


def _changes(old: Message, new: Message, prefix: str = "", skip: str = "") -> Iterator[str]:
    """Field by field, down to what has no fields of its own or is read as a whole."""
    for field in old.DESCRIPTOR.fields:
        if field.name == skip:
            continue
        path = prefix + field.name
        before, after = _value(old, field.name), _value(new, field.name)
        if _is_same(before, after):
            continue
        if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
            for index, (one, other) in enumerate(zip(before, after, strict=True)):
                if _is_same(one, other):
                    continue
                if isinstance(one, Message):
                    yield from _changes(one, other, f"{path}[{index}].")
                else:
                    yield f"{path}[{index}] changed: {_shown(one)} -> {_shown(other)}"
        elif isinstance(before, _PARTED) and isinstance(after, _PARTED):
            yield from _changes(before, after, f"{path}.")
        else:
            yield f"{path} changed: {_shown(before)} -> {_shown(after)}"


class _Word(str):
    """Shown without quotes."""

    __slots__ = ()


_PARTED: Final = (v1.ExecutorRef, v1.RetryPolicy, v1.ExecutorTypes)


def _value(message: Message, name: str) -> object:
    value: object = getattr(message, name)
    if isinstance(value, Message):
        return value if message.HasField(name) else None
    if isinstance(value, Mapping):
        return dict(sorted(value.items()))
    enum = message.DESCRIPTOR.fields_by_name[name].enum_type
    if enum is not None and isinstance(value, int):
        known = enum.values_by_number.get(value)
        return _Word(known.name) if known is not None else value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    return value


def _is_same(one: object, other: object) -> bool:
    """A NaN is itself."""
    if isinstance(one, Message) and isinstance(other, Message):
        return one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
    return one == other or (one != one and other != other)


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case Duration():
            return f"{value.seconds + value.nanos / 1e9:g} s"
        case v1.Payload():
            text = f"{value.type or 'null'} {value.data!r}" if value.HasField("data") else value.type or "null"
        case Message():
            text = " ".join(str(value).split()) or "empty"
        case list() if value and isinstance(value[0], Message):
            text = f"[{', '.join(map(_shown, value))}]"
        case _Word():
            text = str(value)
        case _:
            text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
