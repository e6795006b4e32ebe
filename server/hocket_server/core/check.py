"""What makes a result one that cannot be committed (contract 4), and an answer or a signal one that is not taken."""

from collections.abc import Iterable, Sequence

from hocket import v1
from hocket.errors import PayloadError
from hocket.records import Effects, Suspended
from hocket_server.core.merge import text_of
from hocket_server.core.topology import Node, Topology, covers


def fault(topology: Topology, node: Node, outcome: Effects | Suspended) -> str:
    """The first thing wrong with what `node` returned; empty when nothing is."""
    if isinstance(outcome, Suspended):
        if not outcome.questions:
            return "a suspended result asks nothing; it would never go on"
        return _question_fault(node, outcome.questions)
    types = node.message_types
    for message in outcome.messages:
        if types is not None and message.payload.type not in types and not covers(types, message.payload):
            return _undeclared(node, "sends", message.payload, node.message_types)
        if message.target_node_id and message.target_node_id not in node.targets:
            return f"node {node.id!r} sent to {message.target_node_id!r}; its edges lead to: {listed(node.targets, 'none')}"
    for output in outcome.outputs:
        if not covers(node.output_types, output):
            return _undeclared(node, "yields", output, node.output_types)
    if outcome.handoff is not None and (wrong := _handoff_fault(topology, node, outcome.handoff)):
        return wrong
    if outcome.private_state is not None and node.concurrency > 1:
        return f"node {node.id!r} runs with concurrency {node.concurrency} and so has no private state"
    return _question_fault(node, outcome.questions) if len(outcome.questions) > 1 else ""


def _question_fault(node: Node, questions: Sequence[v1.Question]) -> str:
    keys = [question.question_id for question in questions]
    if len(set(keys)) == len(keys):
        return ""
    return f"node {node.id!r} asked two questions under one id; ids: {listed(keys)}"


def _handoff_fault(topology: Topology, node: Node, handoff: v1.Handoff) -> str:
    target_id = handoff.target_node_id
    if target_id not in node.handoffs:
        return f"node {node.id!r} handed off to {target_id!r}; its declared targets: {listed(node.handoffs, 'none')}"
    target, payload = topology.by_id[target_id], handed(handoff)
    if target.takes(payload):
        return ""
    return f"node {node.id!r} handed {payload.type!r} to {target_id!r}, which takes: {listed(target.input_types)}"


def handed(handoff: v1.Handoff) -> v1.Payload:
    """The payload, or the task's words when there is none."""
    return handoff.payload if handoff.HasField("payload") else text_of(handoff.task)


def type_error(place: str, payload: v1.Payload, types: Iterable[str] | None) -> PayloadError:
    return PayloadError(f"{place} takes {listed(types)}, not {payload.type!r}", type_name=payload.type)


def _undeclared(node: Node, verb: str, payload: v1.Payload, types: Iterable[str] | None) -> str:
    return f"node {node.id!r} {verb} {payload.type!r}, which it does not declare; declared: {listed(types)}"


def listed(names: Iterable[str] | None, nothing: str = "nothing") -> str:
    return ", ".join(sorted(names or ())) or nothing
