"""Graphs drawn: a definition as Mermaid or as Graphviz text, a pure function of it, in the order of its lists.

What people wrote (ids, conditions) stands in labels only, escaped; names in the picture are positions, so no id can be
taken for a word of the language. What a definition names but does not hold is drawn dashed: a wrong definition can be
looked at.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from hocket import v1

_MAX_DEPTH: Final = 32


@dataclass(slots=True)
class _Edge:
    source: str
    target: str
    label: str = ""


@dataclass(slots=True)
class _Join:
    key: str
    label: str


@dataclass(slots=True)
class _Node:
    """`inside` is the graph of a nested definition; without it the node is drawn as a box."""

    key: str
    label: str
    is_start: bool = False
    is_missing: bool = False
    inside: "_Picture | None" = None


@dataclass(slots=True)
class _Picture:
    nodes: list[_Node] = field(default_factory=list)
    joins: list[_Join] = field(default_factory=list)
    edges: list[_Edge] = field(default_factory=list)


def mermaid(definition: v1.Definition) -> str:
    """A Mermaid flowchart, from top to bottom."""
    lines = ["flowchart TD", *_mermaid_lines(_picture(definition), "    ")]
    lines += ["    classDef start stroke-width:3px", "    classDef missing stroke-dasharray:4"]
    return "\n".join(lines) + "\n"


def dot(definition: v1.Definition) -> str:
    """A Graphviz digraph, from top to bottom."""
    lines = [
        "digraph workflow {",
        f"    label={_dot_text(definition.definition_name)}",
        "    compound=true",
        "    node [shape=box]",
        *_dot_lines(_picture(definition), "    "),
        "}",
    ]
    return "\n".join(lines) + "\n"


# Reading a definition


def _picture(definition: v1.Definition) -> _Picture:
    return _read(definition, "", {}, (definition.definition_name,))


def _by_name(definition: v1.Definition) -> dict[str, v1.Definition]:
    """What it holds; of several versions the first."""
    return {one.definition_name: one for one in reversed(definition.nested)}


def _read(
    definition: v1.Definition, prefix: str, nested: Mapping[str, v1.Definition], path: tuple[str, ...]
) -> _Picture:
    """`path` is the names of the definitions around it: one that holds itself is not drawn again."""
    graph = definition.graph
    known = {**nested, **_by_name(definition)} if definition.nested else nested
    picture = _Picture()
    keys: dict[str, str] = {}
    for position, node in enumerate(graph.nodes):
        key = f"n{prefix}{position}"
        keys.setdefault(node.id, key)
        drawn = _Node(key, node.id, is_start=node.id == graph.start_node_id)
        inner = known.get(node.nested.definition_name) if node.HasField("nested") else None
        if inner is not None and inner.graph.nodes and inner.definition_name not in path and len(path) < _MAX_DEPTH:
            drawn.inside = _read(inner, f"{prefix}{position}_", known, (*path, inner.definition_name))
        picture.nodes.append(drawn)

    def key_of(id: str) -> str:
        if id not in keys:
            keys[id] = f"m{prefix}{len(picture.nodes)}"
            picture.nodes.append(_Node(keys[id], id, is_missing=True))
        return keys[id]

    for position, group in enumerate(graph.edge_groups):
        if group.WhichOneof("kind") == "fan_in":
            join = _Join(f"j{prefix}{position}", _join_label(group.fan_in))
            picture.joins.append(join)
            picture.edges += [_Edge(key_of(source), join.key) for source in group.fan_in.source_node_ids]
            picture.edges.append(_Edge(join.key, key_of(group.fan_in.target_node_id)))
        else:
            for source, target, label in _routes(group):
                picture.edges.append(_Edge(key_of(source), key_of(target), label))
    return picture


def _routes(group: v1.EdgeGroup) -> Iterator[tuple[str, str, str]]:
    match group.WhichOneof("kind"):
        case "single":
            yield group.single.source_node_id, group.single.target_node_id, group.single.condition
        case "fan_out":
            for target in group.fan_out.target_node_ids:
                yield group.fan_out.source_node_id, target, ""
        case "switch_case":
            for case in group.switch_case.cases:
                yield group.switch_case.source_node_id, case.target_node_id, case.condition
            yield group.switch_case.source_node_id, group.switch_case.default_node_id, "Default"
        case "multi_selection":
            for target in group.multi_selection.target_node_ids:
                yield group.multi_selection.source_node_id, target, group.multi_selection.selection
        case "fan_in" | None:
            return


def _join_label(fan_in: v1.FanIn) -> str:
    match fan_in.join_policy:
        case v1.JOIN_POLICY_ANY:
            label = "any"
        case v1.JOIN_POLICY_QUORUM:
            label = f"{fan_in.quorum} of {len(set(fan_in.source_node_ids))}"
        case v1.JOIN_POLICY_REACHABLE:
            label = "reachable"
        case _:
            label = "all"
    return f"{label}, optional" if fan_in.optional else label


# Mermaid


def _mermaid_lines(picture: _Picture, indent: str) -> Iterator[str]:
    for node in picture.nodes:
        text = _mermaid_text(node.label)
        if node.inside is not None:
            yield f"{indent}subgraph {node.key}[{text}]"
            yield from _mermaid_lines(node.inside, indent + "    ")
            yield f"{indent}end"
        else:
            yield f"{indent}{node.key}([{text}])" if node.is_start else f"{indent}{node.key}[{text}]"
        if node.is_start:
            yield f"{indent}class {node.key} start"
        if node.is_missing:
            yield f"{indent}class {node.key} missing"
    for join in picture.joins:
        yield f"{indent}{join.key}(({_mermaid_text(join.label)}))"
    for edge in picture.edges:
        label = f"|{_mermaid_text(edge.label)}|" if edge.label else ""
        yield f"{indent}{edge.source} -->{label} {edge.target}"


_MERMAID_SPECIAL: Final = re.compile(
    # Ends of text and entities, directives, Markdown, HTML, math, icons;
    r'["#&<>;`\\%*~|\[\]{}^@$]'
    # a word in underscores;
    r"|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"
    # and what would begin a list or a rule.
    r"|^[-+=]|^\d+(?=[.)](?:\s|$))"
)


def _mermaid_text(text: str) -> str:
    """Quoted; what Mermaid or its Markdown could read as theirs becomes a character code."""
    lines = [line.strip() for line in _visible(text).split("\n")]
    shown = "<br/>".join(_MERMAID_SPECIAL.sub(_character_codes, line) for line in lines)
    return f'"{shown or "#160;"}"'


def _character_codes(match: re.Match[str]) -> str:
    return "".join(f"#{ord(character)};" for character in match[0])


# Graphviz


def _dot_lines(picture: _Picture, indent: str) -> Iterator[str]:
    inside = {node.key: node.inside for node in picture.nodes if node.inside is not None}
    for node in picture.nodes:
        text = _dot_text(node.label)
        bold = ", style=bold, peripheries=2" if node.is_start else ""
        if node.inside is not None:
            yield f"{indent}subgraph cluster_{node.key} {{"
            yield f"{indent}    label={text}"
            yield f"{indent}    style={'bold' if node.is_start else 'solid'}"
            yield from _dot_lines(node.inside, indent + "    ")
            yield f"{indent}}}"
        elif node.is_missing:
            yield f"{indent}{node.key} [label={text}, style=dashed]"
        else:
            yield f"{indent}{node.key} [label={text}{bold}]"
    for join in picture.joins:
        yield f"{indent}{join.key} [label={_dot_text(join.label)}, shape=circle]"
    for edge in picture.edges:
        attributes = [f"label={_dot_text(edge.label)}"] if edge.label else []
        # Graphviz joins nodes only: an edge of a cluster is one of a node in it, cut at the border.
        if edge.source in inside:
            attributes.append(f"ltail=cluster_{edge.source}")
        if edge.target in inside:
            attributes.append(f"lhead=cluster_{edge.target}")
        suffix = f" [{', '.join(attributes)}]" if attributes else ""
        yield f"{indent}{_anchor(edge.source, inside)} -> {_anchor(edge.target, inside)}{suffix}"


def _anchor(key: str, inside: Mapping[str, _Picture]) -> str:
    """The key itself; of a cluster that of the node where it starts."""
    picture = inside.get(key)
    while picture is not None:
        start = next((node for node in picture.nodes if node.is_start), picture.nodes[0])
        key, picture = start.key, start.inside
    return key


def _dot_text(text: str) -> str:
    """Quoted; backslashes and entities are plain text."""
    escaped = _visible(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;").replace("\n", "\\n")
    return f'"{escaped}"'


def _visible(text: str) -> str:
    """Line ends as they are in Unix, other control characters as spaces; never empty."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    shown = re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", " ", unix)
    return shown if shown.strip() else " "
