"""Pictures: a definition as Mermaid and as Graphviz text, whatever people call their nodes."""

import re

import pytest

from hocket import v1
from hocket.picture import dot, mermaid

NASTY = [
    "end",
    'say "hi"',
    "a[b](c){d}",
    "subgraph x",
    "%%{init: {}}%%",
    "<b>bold</b> & more",
    "back\\slash\\n",
    "#quot; &amp;",
    "**loud** _soft_ `code` ~~gone~~",
    "1. first",
    "- item",
    "😀 面板 \u200fעברית",
    "two\nlines\ttab\u2028end",
    "$$x^2$$",
    " ",
    "n0",
    "-->|x|",
    "class n0 start; click n0",
]


def graph(*ids: str, start: str = "") -> v1.Definition:
    definition = v1.Definition(definition_name="drawn")
    definition.graph.start_node_id = start or ids[0]
    for id in ids:
        definition.graph.nodes.add(id=id).executor.executor_type = id
    return definition


def edge(definition: v1.Definition, source: str, target: str, condition: str = "") -> None:
    definition.graph.edge_groups.add().single.MergeFrom(
        v1.SingleEdge(source_node_id=source, target_node_id=target, condition=condition)
    )


def everything() -> v1.Definition:
    """One of each kind of edge group, and a nested graph."""
    definition = graph("split", "a", "b", "join", "inner", "late")
    groups = definition.graph.edge_groups
    groups.add(fan_out=v1.FanOut(source_node_id="split", target_node_ids=["a", "b"]))
    groups.add(
        fan_in=v1.FanIn(source_node_ids=["a", "b"], target_node_id="join", join_policy=v1.JOIN_POLICY_QUORUM, quorum=1)
    )
    case = v1.ConditionalTarget(condition="message > 1", target_node_id="inner")
    groups.add(switch_case=v1.SwitchCase(source_node_id="join", cases=[case], default_node_id="late"))
    groups.add(multi_selection=v1.MultiSelection(source_node_id="late", target_node_ids=["late"], selection="targets"))
    inner = definition.nested.add()
    inner.CopyFrom(graph("x", "y"))
    inner.definition_name = "child"
    edge(inner, "x", "y", "message == 'é'")
    definition.graph.nodes[4].nested.definition_name = "child"
    return definition


def test_a_graph_in_mermaid() -> None:
    assert mermaid(everything()) == (
        "flowchart TD\n"
        '    n0(["split"])\n'
        "    class n0 start\n"
        '    n1["a"]\n'
        '    n2["b"]\n'
        '    n3["join"]\n'
        '    subgraph n4["inner"]\n'
        '        n4_0(["x"])\n'
        "        class n4_0 start\n"
        '        n4_1["y"]\n'
        "        n4_0 -->|\"message == 'é'\"| n4_1\n"
        "    end\n"
        '    n5["late"]\n'
        '    j1(("1 of 2"))\n'
        "    n0 --> n1\n"
        "    n0 --> n2\n"
        "    n1 --> j1\n"
        "    n2 --> j1\n"
        "    j1 --> n3\n"
        '    n3 -->|"message #62; 1"| n4\n'
        '    n3 -->|"Default"| n5\n'
        '    n5 -->|"targets"| n5\n'
        "    classDef start stroke-width:3px\n"
        "    classDef missing stroke-dasharray:4\n"
    )


def test_a_graph_in_dot() -> None:
    assert dot(everything()) == (
        "digraph workflow {\n"
        '    label="drawn"\n'
        "    compound=true\n"
        "    node [shape=box]\n"
        '    n0 [label="split", style=bold, peripheries=2]\n'
        '    n1 [label="a"]\n'
        '    n2 [label="b"]\n'
        '    n3 [label="join"]\n'
        "    subgraph cluster_n4 {\n"
        '        label="inner"\n'
        "        style=solid\n"
        '        n4_0 [label="x", style=bold, peripheries=2]\n'
        '        n4_1 [label="y"]\n'
        "        n4_0 -> n4_1 [label=\"message == 'é'\"]\n"
        "    }\n"
        '    n5 [label="late"]\n'
        '    j1 [label="1 of 2", shape=circle]\n'
        "    n0 -> n1\n"
        "    n0 -> n2\n"
        "    n1 -> j1\n"
        "    n2 -> j1\n"
        "    j1 -> n3\n"
        '    n3 -> n4_0 [label="message > 1", lhead=cluster_n4]\n'
        '    n3 -> n5 [label="Default"]\n'
        '    n5 -> n5 [label="targets"]\n'
        "}\n"
    )


@pytest.mark.parametrize(
    ("policy", "label"),
    [
        (v1.JOIN_POLICY_UNSPECIFIED, "all"),
        (v1.JOIN_POLICY_ALL, "all"),
        (v1.JOIN_POLICY_ANY, "any"),
        (v1.JOIN_POLICY_REACHABLE, "reachable"),
    ],
)
def test_a_join_shows_what_it_waits_for(policy: v1.JoinPolicy.ValueType, label: str) -> None:
    definition = graph("a", "b", "c")
    group = definition.graph.edge_groups.add().fan_in
    group.MergeFrom(v1.FanIn(source_node_ids=["a", "b"], target_node_id="c", join_policy=policy))
    assert f'(("{label}"))' in mermaid(definition)
    group.optional = True
    assert f'[label="{label}, optional", shape=circle]' in dot(definition)


def test_a_picture_depends_on_the_definition_alone() -> None:
    definition = everything()
    before = definition.SerializeToString(deterministic=True)
    copy = v1.Definition.FromString(before)
    assert (mermaid(definition), dot(definition)) == (mermaid(copy), dot(copy))
    assert definition.SerializeToString(deterministic=True) == before


# What Mermaid and Graphviz take: every line has one of these forms, every label is one quoted text.

_MERMAID_TEXT = r'"(?:[^"#<>&;`\\%*~|\[\]{}^@$\n]|#\d+;|<br/>)+"'
_MERMAID_LINE = re.compile(
    rf"flowchart TD|\s+(?:(?:n|m)[\d_]+(?:\[{_MERMAID_TEXT}\]|\(\[{_MERMAID_TEXT}\]\))|j[\d_]+\(\({_MERMAID_TEXT}\)\)"
    rf"|subgraph n[\d_]+\[{_MERMAID_TEXT}\]|end|class [nm][\d_]+ (?:start|missing)|classDef .*"
    rf"|[nmj][\d_]+ -->(?:\|{_MERMAID_TEXT}\|)? [nmj][\d_]+)"
)
_DOT_TEXT = r'"(?:[^"\\\n]|\\["\\n])+"'
_DOT_LINE = re.compile(
    rf"digraph workflow {{|}}|\s+(?:label={_DOT_TEXT}|compound=true|node \[shape=box\]|style=\w+|}}"
    rf"|subgraph cluster_n[\d_]+ {{|[nmj][\d_]+ \[label={_DOT_TEXT}(?:, \w+=\w+)*\]"
    rf"|[nmj][\d_]+ -> [nmj][\d_]+(?: \[(?:(?:label={_DOT_TEXT}|l(?:head|tail)=cluster_n[\d_]+)(?:, )?)+\])?)"
)


def assert_well_formed(definition: v1.Definition) -> None:
    for text, form in ((mermaid(definition), _MERMAID_LINE), (dot(definition), _DOT_LINE)):
        for line in text.removesuffix("\n").split("\n"):
            assert form.fullmatch(line), line


def test_one_of_each_kind_is_well_formed() -> None:
    assert_well_formed(everything())


@pytest.mark.parametrize("text", NASTY)
def test_no_name_and_no_condition_breaks_a_picture(text: str) -> None:
    definition = graph(text, "other")
    definition.definition_name = text
    edge(definition, text, "other", text)
    group = definition.graph.edge_groups.add().switch_case
    group.cases.add(condition=text, target_node_id=text)
    group.source_node_id, group.default_node_id = "other", "other"
    nested = definition.nested.add()
    nested.CopyFrom(graph(text))
    nested.definition_name = "child"
    definition.graph.nodes.add(id=f"{text} nested").nested.definition_name = "child"
    assert_well_formed(definition)


def test_escapes_say_what_was_written() -> None:
    definition = graph('a "b" #1 _x_ snake_case', "c")
    edge(definition, "c", "c", 'x == "\\n" && y\nthen')
    assert '"a #34;b#34; #35;1 #95;x#95; snake_case"' in mermaid(definition)
    assert '"x == #34;#92;n#34; #38;#38; y<br/>then"' in mermaid(definition)
    assert r'"a \"b\" #1 _x_ snake_case"' in dot(definition)
    assert r'"x == \"\\n\" &amp;&amp; y\nthen"' in dot(definition)


@pytest.mark.parametrize(("text", "label"), [("1. first", "#49;. first"), ("- item", "#45; item"), ("1.5", "1.5")])
def test_what_would_begin_a_list_does_not(text: str, label: str) -> None:
    assert f'"{label}"' in mermaid(graph(text))


# Definitions that are wrong can be looked at


def test_what_is_named_but_not_there_is_dashed() -> None:
    definition = graph("a")
    edge(definition, "a", "ghost")
    edge(definition, "ghost", "a")
    assert 'm1["ghost"]\n    class m1 missing\n' in mermaid(definition)
    assert 'm1 [label="ghost", style=dashed]' in dot(definition)
    assert mermaid(definition).count("ghost") == 1
    assert_well_formed(definition)


def test_a_definition_that_holds_itself_is_drawn_once() -> None:
    definition = graph("a", "self")
    definition.graph.nodes[1].nested.definition_name = "child"
    child = definition.nested.add(definition_name="child")
    child.graph.nodes.add(id="again").nested.definition_name = "child"
    assert mermaid(definition).count("subgraph") == 1
    assert_well_formed(definition)


def test_an_empty_definition_has_a_picture() -> None:
    assert_well_formed(v1.Definition(nested=[v1.Definition(definition_name="child")]))
    assert mermaid(v1.Definition()).startswith("flowchart TD\n")


def test_an_edge_of_a_nested_graph_starts_at_its_deepest_start() -> None:
    definition = graph("outer", "next")
    middle, inner = definition.nested.add(), definition.nested.add()
    middle.CopyFrom(graph("first", "deep", start="deep"))
    middle.definition_name = "middle"
    middle.graph.nodes[1].nested.definition_name = "inner"
    inner.CopyFrom(graph("innermost"))
    inner.definition_name = "inner"
    definition.graph.nodes[0].nested.definition_name = "middle"
    edge(definition, "outer", "next")
    assert "n0_1_0 -> n1 [ltail=cluster_n0]" in dot(definition)
    assert "n0 --> n1" in mermaid(definition)
    assert_well_formed(definition)
