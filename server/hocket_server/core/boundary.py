"""What a superstep comes to when all its invocations have ended: worked out here from their effects, with nothing changed,
so that a boundary that fails leaves no trace."""

from collections.abc import Iterator, Mapping, Sequence

from hocket import v1
from hocket.records import Message, StateWrite
from hocket_server.core.check import handed
from hocket_server.core.ledger import Work
from hocket_server.core.merge import ConflictError, Writer, merge
from hocket_server.core.routing import Buffer, ConditionError, Drop, Plan
from hocket_server.core.scheduler import Hooks
from hocket_server.core.topology import Group, Topology


def merged(topology: Topology, state: dict[str, v1.Payload], works: Sequence[Work]) -> dict[str, v1.Payload]:
    """The state after the writes of `works`, given by position. Raises ConflictError."""
    writing = [work for work in works if work.effects is not None and work.effects.state_writes]
    if not writing:
        return state
    writers = [
        Writer(work.position.node_id, _writer_id(topology, work), work.effects.state_writes)
        for work in writing
        if work.effects is not None
    ]
    return merge(state, topology.merge_policies, writers)


def _writer_id(topology: Topology, work: Work) -> str:
    """Parts of an input that was split for its size are one writer."""
    if topology.by_id[work.position.node_id].concurrency > 1:
        return work.invocation_id
    return work.invocation_id.partition("#")[0]


def signalled(topology: Topology, state: dict[str, v1.Payload], writes: Sequence[StateWrite]) -> dict[str, v1.Payload]:
    """The state after a signal's writes. It is no writer of a superstep, and conflicts with nobody. Raises ConflictError
    for a value that its key's policy cannot merge."""
    return merge(state, topology.merge_policies, [Writer("", "", writes)]) if writes else state


def routed(
    topology: Topology,
    hooks: Hooks,
    works: Sequence[Work],
    state: Mapping[str, v1.Payload],
    superstep: int,
    buffers: dict[int, Buffer],
) -> tuple[Plan, dict[str, list[Drop]]]:
    """Where the messages of `works`, given by position, go; and by invocation what reaches nobody. Raises ConditionError."""
    plan = Plan(topology, hooks, state, superstep, buffers)
    drops: dict[str, list[Drop]] = {}
    by_id = topology.by_id
    for work in works:
        effects = work.effects
        if effects is None:
            continue
        source = by_id[work.position.node_id]
        for message in effects.messages:
            reason = plan.route(message, source)
            if reason:
                drops.setdefault(work.invocation_id, []).append((message, reason))
        if effects.handoff is not None:
            handoff = effects.handoff
            message = Message(f"{work.invocation_id}/handoff", source.id, handed(handoff), handoff.target_node_id)
            plan.deliver(by_id[handoff.target_node_id], message, -1 - source.index, "")
    return plan, drops


def boundary_failure(error: ConflictError | ConditionError) -> v1.Failure:
    """What ends the run; its `source` is the node whose message or write it was, where there is one."""
    if isinstance(error, ConflictError):
        return v1.Failure(kind=v1.FAILURE_KIND_CONFLICT, type="CONFLICT", message=str(error))
    return v1.Failure(kind=v1.FAILURE_KIND_CONDITION, type="CONDITION", message=str(error), source=error.source_node_id)


def starved(topology: Topology, buffers: Mapping[int, Buffer]) -> v1.Failure | None:
    """The first join that waits in vain (G20). A quorum is met by fewer than all: what comes after it has fired is left
    over, and no fault."""
    for join, buffer in _holding(topology, buffers):
        if join.optional or (join.policy == v1.JOIN_POLICY_QUORUM and buffer.fired):
            continue
        missing = [source.id for source in join.sources if source.index not in buffer.messages]
        target_id = join.targets[0].id
        text = (
            f"join {target_id!r} (edge group {join.id!r}) still holds messages and waits for {', '.join(missing)}; "
            "use wait_for 'reachable' or 'any', or mark it optional"
        )
        return v1.Failure(kind=v1.FAILURE_KIND_JOIN_STARVED, type="JOIN_STARVED", message=text, source=target_id)
    return None


def leftovers(topology: Topology, buffers: Mapping[int, Buffer]) -> Iterator[tuple[Group, Message]]:
    """What joins that do not starve still hold."""
    for join, buffer in _holding(topology, buffers):
        for source in join.sources:
            for message in buffer.messages.get(source.index, ()):
                yield join, message


def _holding(topology: Topology, buffers: Mapping[int, Buffer]) -> Iterator[tuple[Group, Buffer]]:
    for join in topology.joins:
        buffer = buffers.get(join.index)
        if buffer is not None and buffer.messages:
            yield join, buffer
