"""What lies in a definition: what its nodes name, how deep, in what circles, and what each takes and sends as a node.

Each nested definition is read once, where it lies, however many nodes name it. They may lie deep or in a circle:
nothing here recurses over them, and beyond MAX_DEPTH nothing is read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from hocket import v1
from hocket_server.core.faults import CONTROL, NOT_STORABLE, SHOWN, character, first_of, known_names, quoted
from hocket_server.core.signature import Scope

MAX_DEPTH: Final = 32
"""Of nested definitions."""

MAX_NODES: Final = 100_000
"""Of one graph."""


@dataclass(frozen=True)
class Types:
    """Names of types; of what is sent, with all ancestors. `shown` are the first few as declared."""

    names: frozenset[str]
    shown: tuple[str, ...]
    has_list: bool
    has_map: bool

    @classmethod
    def of(cls, names: Iterable[str]) -> "Types":
        ordered = dict.fromkeys(names)
        has_list = has_map = False
        for name in ordered:
            has_list = has_list or name.startswith("list<")
            has_map = has_map or name.startswith("map<")
        return cls(frozenset(ordered), tuple(islice(ordered, SHOWN + 1)), has_list, has_map)

    def meets(self, other: "Types") -> bool:
        """A value may be of both. Of two open containers either side may be the open one: no fault on suspicion."""
        if not self.names or not other.names:
            return False
        return (
            not self.names.isdisjoint(other.names)
            or "*" in self.names
            or "*" in other.names
            or ("list<any>" in self.names and other.has_list)
            or ("list<any>" in other.names and self.has_list)
            or ("map<any>" in self.names and other.has_map)
            or ("map<any>" in other.names and self.has_map)
        )

    @cached_property
    def elements(self) -> "Types":
        """Of the lists among them; `*` is any list too."""
        found = sorted(name[5:-1] for name in self.names if name.startswith("list<") and name.endswith(">"))
        return Types.of(["*"] if "*" in self.names or "any" in found else found)

    def __str__(self) -> str:
        return first_of(self.shown, len(self.names)) if self.names else "nothing"


class Ends(NamedTuple):
    """What a node takes and sends; None where it is not known."""

    takes: Types | None
    sends: Types | None


UNKNOWN: Final = Ends(None, None)


def _flat(types: Iterable[v1.PayloadType]) -> Iterator[str]:
    for one in types:
        yield one.name
        yield from one.supertypes


@dataclass(slots=True, eq=False)
class Place:
    """A definition where it lies. `faults` come before those of its graph, `late_faults` after."""

    scope: Scope
    path: str
    level: int
    root: "Place | None" = None
    # Read once; none of a graph that is too large.
    nodes: list[v1.Node] = field(default_factory=list)
    faults: list[v1.Fault] = field(default_factory=list)
    late_faults: list[v1.Fault] = field(default_factory=list)
    # By position of the node: what it names, and why it must not; empty when the fault is reported elsewhere.
    children: "dict[int, Place]" = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    is_named: bool = False
    # Of the nodes by position, and of the definition as a node.
    ends: list[Ends] = field(default_factory=list)
    outer: Ends = UNKNOWN

    @property
    def name(self) -> str:
        return self.scope.definition.definition_name


def places_of(definition: v1.Definition) -> list[Place]:
    """All definitions that are not too deep, each before what it holds."""
    places: list[Place] = []
    todo = [Place(Scope(definition), "", 0)]
    while todo:
        place = todo.pop()
        places.append(place)
        _check_definition(place)
        nodes = place.scope.definition.graph.nodes
        if len(nodes) <= MAX_NODES:
            place.nodes = list(nodes)
        held = place.scope.definition.nested
        if not held:
            continue
        if place.level == MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels of definitions lie in each other; nothing below was read"
            place.late_faults.append(v1.Fault(path=f"{place.path}nested", message=message))
            continue
        inner = [
            Place(scope, f"{place.path}nested[{position}].", place.level + 1, root=places[0])
            for position, scope in enumerate(place.scope.held)
        ]
        _check_held(inner)
        todo += reversed(inner)
    return places


def _check_definition(place: Place) -> None:
    definition = place.scope.definition

    def fault(path: str, message: str) -> None:
        place.faults.append(v1.Fault(path=place.path + path, message=message))

    if bad := CONTROL.search(definition.definition_name):
        fault("definition_name", f"name {quoted(definition.definition_name)} holds {character(bad[0])}; take it out")
    if definition.version < 0:
        fault("version", f"version is {definition.version}; it is 0 or more")
    if definition.WhichOneof("kind") is None:
        fault("graph", f"definition {quoted(definition.definition_name)} is of no kind this server knows; set `graph`")
    if bad := NOT_STORABLE.search(definition.description):
        fault("description", f"the description holds {character(bad[0])}; take it out")
    for key, value in sorted(definition.labels.items()):
        if bad := NOT_STORABLE.search(key + value):
            fault("labels", f"label {quoted(key)} holds {character(bad[0])}; take it out")


def _check_held(inner: Sequence[Place]) -> None:
    first: dict[tuple[str, int], int] = {}
    for position, place in enumerate(inner):
        name, version = place.name, place.scope.definition.version
        if not name:
            message = "a nested definition needs a name; nodes find it by it"
            place.faults.append(v1.Fault(path=f"{place.path}definition_name", message=message))
        earlier = first.setdefault((name, version), position)
        if earlier != position:
            message = f"definition {quoted(name)} version {version} is here twice, first as nested[{earlier}]; drop one"
            place.faults.append(v1.Fault(path=f"{place.path}definition_name", message=message))


def link(places: Sequence[Place]) -> None:
    """Finds what each node names; what is too deep, in a circle, or named by nobody; and the types of nested nodes."""
    by_scope = {id(place.scope): place for place in places}
    for place in places:
        for position, node in enumerate(place.nodes):
            if not node.HasField("nested"):
                continue
            scope = place.scope.find(node.nested)
            child = by_scope.get(id(scope)) if scope is not None else None
            if child is not None:
                place.children[position] = child
                child.is_named = True
            else:
                place.refused[position] = "" if scope is not None else _not_found(place, node.nested)
    children_first = _children_first(places)
    _check_depth(places[0], children_first)
    is_all_read = all(len(place.scope.definition.graph.nodes) <= MAX_NODES for place in places)
    for place in places[1:]:
        if is_all_read and not place.is_named:
            message = f"no node names definition {quoted(place.name)}; take it out, or name it"
            place.faults.insert(0, v1.Fault(path=place.path[:-1], message=message, warning=True))
    for place in children_first:
        _find_types(place)


def _not_found(place: Place, reference: v1.DefinitionRef) -> str:
    name, version = reference.definition_name, reference.version
    if not name:
        return "the reference names no definition; set definition_name"
    root = (place.root or place).scope.definition
    if name == root.definition_name and version in {0, root.version}:
        return f"definition {quoted(name)} holds itself"
    if versions := place.scope.versions(name):
        shown = first_of(list(islice(versions, SHOWN)), len(versions))
        return f"definition {quoted(name)} has no version {version} in `nested`; there are: {shown}"
    names = place.scope.names() or (place.root or place).scope.names()
    return f"definition {quoted(name)} is not in `nested`; {known_names(list(islice(names, SHOWN)), len(names))}"


def _children_first(places: Sequence[Place]) -> list[Place]:
    """Each after those that its nodes name, the root last. A node that closes a circle is refused and not followed."""
    done: list[Place] = []
    seen: set[int] = set()
    for start in reversed(places):
        if id(start) in seen:
            continue
        seen.add(id(start))
        chain = [start]
        where = {id(start): 0}
        todo = [iter(start.children.items())]
        while todo:
            position, child = next(todo[-1], (-1, start))
            if position == -1:
                todo.pop()
                place = chain.pop()
                del where[id(place)]
                done.append(place)
            elif id(child) in where:
                chain[-1].refused[position] = _circle(chain, where[id(child)])
            elif id(child) not in seen:
                seen.add(id(child))
                where[id(child)] = len(chain)
                chain.append(child)
                todo.append(iter(child.children.items()))
    return done


def _circle(chain: Sequence[Place], start: int) -> str:
    length = len(chain) - start
    shown = chain[start:] if length <= 6 else [*chain[start : start + 3], *chain[-2:]]
    names = [quoted(place.name) for place in shown]
    if length > 6:
        names.insert(3, "...")
    return f"definition {names[0]} holds itself: {' -> '.join([*names, names[0]])}"


def _check_depth(root: Place, children_first: Sequence[Place]) -> None:
    depths = {id(root): 0}
    for place in reversed(children_first):
        depth = depths.get(id(place))
        if depth is None:
            continue
        for position, child in place.children.items():
            if position in place.refused:
                continue
            if depth == MAX_DEPTH:
                message = f"definition {quoted(child.name)} lies {depth + 1} levels deep; {MAX_DEPTH} are allowed"
                place.refused[position] = message
            else:
                depths[id(child)] = max(depths.get(id(child), 0), depth + 1)


def _find_types(place: Place) -> None:
    """The types of a node are those it declares; a nested one takes what its start takes and sends what it yields."""
    outputs: list[str] | None = []
    seen: dict[bytes, Ends] = {}
    takes = None
    start = place.scope.definition.graph.start_node_id
    for position, node in enumerate(place.nodes):
        child = place.children.get(position)
        ends = UNKNOWN
        if node.HasField("types"):
            types = node.types
            key = types.SerializeToString(deterministic=True)
            known = seen.get(key)
            if known is None:
                known = Ends(Types.of(types.input_types), Types.of(_flat(types.message_types)))
                seen[key] = known
            ends = known
        if node.HasField("nested"):
            inner = child.outer if child is not None and position not in place.refused else UNKNOWN
            ends = Ends(inner.takes, inner.sends or ends.sends)
        place.ends.append(ends)
        if place.root is None:
            continue
        if takes is None and node.id == start:
            takes = ends.takes
        if node.output_role in {v1.OUTPUT_ROLE_UNSPECIFIED, v1.OUTPUT_ROLE_OUTPUT}:
            if not node.HasField("types"):
                outputs = None
            elif outputs is not None:
                outputs += _flat(node.types.output_types)
    place.outer = Ends(takes, None if outputs is None else Types.of(outputs))
