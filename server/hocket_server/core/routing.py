"""Who gets a message. Given the messages of a superstep in order, the deliveries of the next one.

A `Plan` is begun at each boundary on the state just committed, the senders' own writes included (G7), and filled in the
order of senders' positions, so the order of deliveries is that order (G8). What joins hold back is copied before it is
changed: a superstep that fails leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hocket import v1
from hocket.errors import HocketError
from hocket.records import Delivery, Message
from hocket_server.core.expressions import Expression, ExpressionError, compile_condition, compile_selection
from hocket_server.core.scheduler import Hooks
from hocket_server.core.topology import Group, Node, Topology

FUNCTION_PREFIX = "function:"

# A message that reaches nobody, and why.
Drop: TypeAlias = tuple[Message, v1.DropReason.ValueType]


class ConditionError(HocketError):
    """A condition, case or selection erred or gave what its place cannot use. The message names the edge."""

    reason = v1.ERROR_REASON_ARGUMENT_INVALID

    def __init__(self, what: str, group: Group, message: Message) -> None:
        self.source_node_id = message.source_node_id
        targets = ", ".join(node.id for node in group.targets)
        super().__init__(f"edge {self.source_node_id} -> {targets} (group {group.id!r}): {what}")


@dataclass(slots=True)
class Buffer:
    """What a join holds back: messages by source index. `fired`: it has fired in this run."""

    messages: dict[int, list[Message]] = field(default_factory=dict)
    fired: bool = False

    def copy(self) -> Buffer:
        return Buffer({source: list(messages) for source, messages in self.messages.items()}, self.fired)


class Plan:
    """The deliveries of the next superstep, by target index, in the making."""

    __slots__ = (
        "_decoded",
        "_hooks",
        "_open",
        "_state",
        "_superstep",
        "_topology",
        "_touched",
        "buffers",
        "deliveries",
    )

    def __init__(
        self,
        topology: Topology,
        hooks: Hooks,
        state: Mapping[str, v1.Payload],
        superstep: int,
        buffers: dict[int, Buffer],
    ) -> None:
        self.deliveries: dict[int, list[Delivery]] = {}
        self.buffers = dict(buffers) if topology.joins else buffers
        self._topology = topology
        self._hooks = hooks
        self._state = state
        self._superstep = superstep
        # The state as expressions see it: decoded once, and only when one of them reads it.
        self._decoded: dict[str, object] | None = None
        self._touched: set[int] = set()
        # Where the next message of an edge group to a target is added, by the two indexes.
        self._open: dict[tuple[int, int], Delivery] = {}

    def route(self, message: Message, source: Node) -> v1.DropReason.ValueType:
        """Take a message of `source` along its edge groups. UNSPECIFIED when somebody gets it, else why nobody does."""
        wanted, payload = message.target_node_id, message.payload
        has_edge = is_handled = reached = False
        for group in source.groups:
            if wanted and all(node.id != wanted for node in group.targets):
                continue
            has_edge = True
            if group.kind == "fan_in":
                if group.targets[0].takes_joined(payload):
                    reached = True
                    self._hold(group, source, message)
                continue
            targets = group.targets if group.is_direct else self._chosen(group, message)
            for target in targets:
                if (not wanted or target.id == wanted) and target.takes(payload):
                    reached = True
                    self.deliver(target, message, group.index, group.id)
            if not reached and not is_handled:
                is_handled = any(node.takes(payload) for node in group.targets if not wanted or node.id == wanted)
        if reached:
            return v1.DROP_REASON_UNSPECIFIED
        if not has_edge:
            return v1.DROP_REASON_NO_EDGE
        return v1.DROP_REASON_CONDITION_FALSE if is_handled else v1.DROP_REASON_NO_HANDLER

    def deliver(self, target: Node, message: Message, group_index: int, group_id: str) -> None:
        """Add to the delivery of an edge group; what comes without one (a handoff) has a negative index of its sender's."""
        key = (group_index, target.index)
        delivery = self._open.get(key)
        if delivery is not None:
            delivery.messages.append(message)
            return
        delivery = self._open[key] = Delivery([message], group_id)
        deliveries = self.deliveries.get(target.index)
        if deliveries is None:
            self.deliveries[target.index] = [delivery]
        else:
            deliveries.append(delivery)

    def _chosen(self, group: Group, message: Message) -> Iterable[Node]:
        match group.kind:
            case "single":
                return group.targets if self._holds(group.conditions[0], group, message) else ()
            case "switch_case":
                for condition, target in zip(group.conditions, group.targets, strict=False):
                    if self._holds(condition, group, message):
                        return (target,)
                return (group.targets[-1],)
            case _:
                return self._selected(group, message)

    def _holds(self, condition: str, group: Group, message: Message) -> bool:
        if condition.startswith(FUNCTION_PREFIX):
            value = self._call(condition, group, message)
        else:
            value = self._evaluate(compile_condition(condition), group, message)
        if not isinstance(value, bool):
            raise ConditionError(
                f"condition {condition!r} gave {value!r}; a condition gives true or false", group, message
            )
        return value

    def _selected(self, group: Group, message: Message) -> list[Node]:
        targets = [node.id for node in group.targets]
        if group.selection.startswith(FUNCTION_PREFIX):
            value = self._call(group.selection, group, message, targets)
        else:
            value = self._evaluate(compile_selection(group.selection), group, message, targets=targets)
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise ConditionError(
                f"selection {group.selection!r} gave {value!r}; a selection gives a list of node ids", group, message
            )
        if unknown := [each for each in value if each not in targets]:
            raise ConditionError(
                f"the selection named {unknown[0]!r}; its targets are {', '.join(targets)}", group, message
            )
        # In the group's order, each once, whatever order the selection gave.
        return [node for node in group.targets if node.id in value]

    def _call(self, name: str, group: Group, message: Message, *arguments: object) -> object:
        function = self._hooks.functions.get(name.removeprefix(FUNCTION_PREFIX))
        if function is None:
            known = ", ".join(sorted(self._hooks.functions)) or "none"
            raise ConditionError(f"this process has no function {name!r}; known: {known}", group, message)
        try:
            return function(message.payload, *arguments)
        except Exception as error:  # users' code
            raise ConditionError(f"{name!r} raised {type(error).__name__}: {error}", group, message) from error

    def _evaluate(self, expression: Expression, group: Group, message: Message, **more: object) -> object:
        wanted = expression.variables
        values = dict(more)
        if "message" in wanted:
            values["message"] = self._hooks.plain(message.payload)
        if "message_type" in wanted:
            values["message_type"] = message.payload.type
        if "source" in wanted:
            values["source"] = message.source_node_id
        if "state" in wanted:
            if self._decoded is None:
                self._decoded = {key: self._hooks.plain(value) for key, value in self._state.items()}
            values["state"] = self._decoded
        if "superstep" in wanted:
            values["superstep"] = self._superstep
        try:
            return expression.evaluate(values)
        except ExpressionError as error:
            raise ConditionError(str(error), group, message) from error

    def _hold(self, join: Group, source: Node, message: Message) -> None:
        self._writable(join).messages.setdefault(source.index, []).append(message)

    def _writable(self, join: Group) -> Buffer:
        if join.index not in self._touched:
            before = self.buffers.get(join.index)
            self.buffers[join.index] = before.copy() if before else Buffer()
            self._touched.add(join.index)
        return self.buffers[join.index]

    def fire(self, busy: int) -> None:
        """Let every join that is ready deliver its list, by position (G17 to G19).

        `busy` is the bit set of nodes that may still send though nothing is delivered to them: those with an open question
        or a waiting nested run. A join that still holds messages may fire later, so its target counts as busy for the
        others, unless nothing else is left to happen: then the first one goes.
        """
        holding = [join for join in self._topology.joins if self._holds_messages(join)]
        released: dict[int, Delivery] = {}
        for join in holding:
            if join.policy != v1.JOIN_POLICY_REACHABLE and self._is_complete(join):
                released[join.index] = self._release(join)
        for target in self.deliveries:
            busy |= 1 << target
        waiting = [join for join in holding if join.policy == v1.JOIN_POLICY_REACHABLE]
        while waiting:
            for index in released:
                busy |= 1 << self._topology.groups[index].targets[0].index
            fired = self._first_settled(waiting, busy)
            if fired is None:
                break
            waiting.remove(fired)
            released[fired.index] = self._release(fired)
        # After single messages, by edge group (G8), whichever fired first.
        for index in sorted(released):
            target_index = self._topology.groups[index].targets[0].index
            self.deliveries.setdefault(target_index, []).append(released[index])

    def _first_settled(self, waiting: list[Group], busy: int) -> Group | None:
        for join in waiting:
            active = busy
            for other in self._topology.joins:
                if other is not join and self._holds_messages(other):
                    active |= 1 << other.targets[0].index
            if self._is_settled(join, active):
                return join
        if busy:
            return None
        return waiting[0]

    def _is_settled(self, join: Group, active: int) -> bool:
        held = self.buffers[join.index].messages
        return not any(
            source.index not in held and self._topology.reaching(join, source) & active for source in join.sources
        )

    def _is_complete(self, join: Group) -> bool:
        count = len(self.buffers[join.index].messages)
        match join.policy:
            case v1.JOIN_POLICY_ANY:
                return True
            case v1.JOIN_POLICY_QUORUM:
                return count >= join.quorum
            case _:
                return count == len(join.sources)

    def _holds_messages(self, join: Group) -> bool:
        buffer = self.buffers.get(join.index)
        return buffer is not None and bool(buffer.messages)

    def _release(self, join: Group) -> Delivery:
        """One list: each source's messages in order of sending, sources in declared order."""
        held = self._writable(join)
        messages = [message for source in join.sources for message in held.messages.get(source.index, ())]
        self.buffers[join.index] = Buffer(fired=True)
        return Delivery(messages, join.id, joined=True)
