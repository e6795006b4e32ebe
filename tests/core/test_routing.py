"""Who gets a message (G13 to G21), one boundary at a time: what is sent, and what the next superstep delivers."""

import json
from collections.abc import Callable, Mapping, Sequence

import pytest

from hocket import v1
from hocket.records import Message
from hocket_server.core.routing import Buffer, ConditionError, Plan
from hocket_server.core.scheduler import Hooks
from hocket_server.core.topology import compile_topology
from tests.core.language import definition, plain


class Board:
    """A graph in the language of transcripts, and what its joins hold from one boundary to the next."""

    def __init__(self, *lines: str, functions: Mapping[str, Callable[..., object]] | None = None) -> None:
        self.topology = compile_topology(definition(list(lines), {}))
        self.hooks = Hooks(plain, functions or {})
        self.buffers: dict[int, Buffer] = {}
        self.drops: list[str] = []

    def plan(self, sent: Mapping[str, Sequence[object]], state: Mapping[str, v1.Payload] | None = None) -> Plan:
        """`sent`: values by node, in order of sending; `(value, target)` names a target."""
        plan = Plan(self.topology, self.hooks, state or {}, 1, self.buffers)
        self.drops = []
        for node in self.topology.nodes:
            for each in sent.get(node.id, ()):
                value, target = each if isinstance(each, tuple) else (each, "")
                payload = value if isinstance(value, v1.Payload) else payload_of(value)
                if reason := plan.route(Message("m", node.id, payload, target), node):
                    self.drops.append(v1.DropReason.Name(reason).removeprefix("DROP_REASON_"))
        return plan

    def next(self, sent: Mapping[str, Sequence[object]], busy: Sequence[str] = ()) -> dict[str, list[object]]:
        """What is delivered by target: a message as its value, the list of a join as a list."""
        plan = self.plan(sent)
        plan.fire(sum(1 << self.topology.by_id[each].index for each in busy))
        self.buffers = plan.buffers
        return {
            self.topology.nodes[index].id: [
                each
                for delivery in plan.deliveries[index]
                for values in [[plain(message.payload) for message in delivery.messages]]
                for each in ([values] if delivery.joined else values)
            ]
            for index in sorted(plan.deliveries)
        }

    def held(self) -> dict[str, list[object]]:
        nodes = self.topology.nodes
        return {
            nodes[source].id: [plain(message.payload) for message in messages]
            for buffer in self.buffers.values()
            for source, messages in sorted(buffer.messages.items())
        }


def payload_of(value: object) -> v1.Payload:
    names = {str: "string", int: "int", bool: "bool", dict: "map<any>", list: "list<any>"}
    return v1.Payload(type=names[type(value)], data=json.dumps(value).encode())


# Edges


def test_a_message_goes_along_every_edge_group_of_its_sender() -> None:
    board = Board("start: a", "a -> b", "a -> c, d", "a -> e if message > 1")
    assert board.next({"a": [1, 2]}) == {"b": [1, 2], "c": [1, 2], "d": [1, 2], "e": [2]}


def test_messages_of_several_senders_come_in_order_of_position() -> None:
    board = Board("start: s", "nodes: s, a, b, c, t", "s -> a, b, c", "c -> t", "a -> t", "b -> t")
    assert board.next({"c": ["c1", "c2"], "a": ["a"], "b": ["b"]}) == {"t": ["a", "b", "c1", "c2"]}


def test_a_target_takes_a_type_by_any_of_its_supertypes() -> None:
    board = Board("start: a", "a -> b, c, d", "node b: takes Animal", "node c: takes Cat", "node d: takes *")
    dog = v1.Payload(type="Dog", supertypes=["Mammal", "Animal"], data=b'"Rex"')
    assert board.next({"a": [dog]}) == {"b": ["Rex"], "d": ["Rex"]}


def test_a_named_target_gets_the_message_alone_and_only_when_its_condition_holds() -> None:
    board = Board("start: a", "a -> b, c", "a -> d if message > 1")
    assert board.next({"a": [(1, "c"), (1, "d"), (2, "d")]}) == {"c": [1], "d": [2]}
    assert board.drops == ["CONDITION_FALSE"]


@pytest.mark.parametrize(
    ("graph", "sent", "reason"),
    [
        (["a -> b", "node b: takes int"], "text", "NO_HANDLER"),
        (["a -> b if false"], 1, "CONDITION_FALSE"),
        (["a -> b if false", "node b: takes int"], "text", "NO_HANDLER"),
        (["b -> a"], 1, "NO_EDGE"),
        (["a -> b", "b -> c"], (1, "c"), "NO_EDGE"),
        (["a -> b, c", "node b: takes int", "node c: takes string"], ("text", "b"), "NO_HANDLER"),
        (["a, c => b", "node b: takes list<int>"], "text", "NO_HANDLER"),
        (["select a: [] -> b, c"], 1, "CONDITION_FALSE"),
        (["switch a: false -> b; default -> c", "node c: takes int"], "text", "CONDITION_FALSE"),
    ],
)
def test_why_nobody_gets_a_message(graph: list[str], sent: object, reason: str) -> None:
    board = Board("start: a", *graph)
    assert board.next({"a": [sent]}) == {}
    assert board.drops == [reason]


def test_one_who_gets_it_is_enough_for_it_not_to_be_dropped() -> None:
    board = Board("start: a", "a -> b", "a -> c if false", "node b: takes int")
    board.next({"a": [1]})
    assert board.drops == []


# Conditions


def test_a_condition_sees_the_message_its_type_its_source_the_state_and_the_superstep() -> None:
    board = Board(
        "start: a", "a -> b if message == 1 && message_type == 'int' && source == 'a' && state.k == 2 && superstep == 1"
    )
    plan = board.plan({"a": [1]}, {"k": payload_of(2)})
    assert list(plan.deliveries) == [1]


def test_the_state_is_decoded_once_and_only_when_it_is_read() -> None:
    decoded: list[bytes] = []

    def noted(payload: v1.Payload) -> object:
        decoded.append(payload.data)
        return plain(payload)

    board = Board("start: a", "a -> b if state.k == 2")
    board.hooks = Hooks(noted)
    board.plan({"a": [1, 1, 1]}, {"k": payload_of(2)})
    assert decoded == [b"2"]
    board = Board("start: a", "a -> b")
    board.hooks = Hooks(noted)
    board.plan({"a": [1]}, {"k": payload_of(2)})
    assert decoded == [b"2"]


@pytest.mark.parametrize("condition", ["message.size > 1", "state.missing == 1", "message / 0 == 1"])
def test_a_condition_that_errs_names_its_edge_group(condition: str) -> None:
    with pytest.raises(ConditionError, match=r"edge a -> b \(group 'single:0'\)"):
        Board("start: a", f"a -> b if {condition}").next({"a": [1]})


@pytest.mark.parametrize("given", [1, "yes", None, [True]])
def test_only_a_boolean_is_an_answer(given: object) -> None:
    board = Board("start: a", "a -> b if function:f", functions={"f": lambda payload: given})
    with pytest.raises(ConditionError, match=r"gave .*; a condition gives true or false"):
        board.next({"a": [1]})


def test_a_function_is_given_the_payload_and_one_that_raises_is_named() -> None:
    seen: list[v1.Payload] = []

    def noted(payload: v1.Payload) -> bool:
        seen.append(payload)
        return True

    board = Board("start: a", "a -> b if function:f", functions={"f": noted})
    assert board.next({"a": [5]}) == {"b": [5]}
    assert [plain(each) for each in seen] == [5]

    def broken(payload: v1.Payload) -> bool:
        raise KeyError("size")

    with pytest.raises(ConditionError, match=r"edge a -> b .*'function:f' raised KeyError: 'size'"):
        Board("start: a", "a -> b if function:f", functions={"f": broken}).next({"a": [1]})


def test_a_function_that_this_process_lacks_is_named_with_those_it_has() -> None:
    board = Board("start: a", "a -> b if function:far", functions={"near": bool})
    with pytest.raises(ConditionError, match=r"no function 'function:far'; known: near"):
        board.next({"a": [1]})


def test_later_cases_are_not_asked() -> None:
    board = Board("start: a", "switch a: message > 1 -> b; message.size > 1 -> c; default -> d")
    assert board.next({"a": [2]}) == {"b": [2]}
    with pytest.raises(ConditionError, match="switch_case:0"):
        board.next({"a": [1]})


def test_a_selection_is_given_the_targets_and_each_counts_once_in_their_order() -> None:
    seen: list[object] = []

    def chosen(payload: v1.Payload, targets: list[str]) -> list[str]:
        seen.append(targets)
        return ["d", "b", "d"]

    board = Board("start: a", "select a: function:f -> b, c, d", functions={"f": chosen})
    assert board.next({"a": [1]}) == {"b": [1], "d": [1]}
    assert seen == [["b", "c", "d"]]


@pytest.mark.parametrize(
    ("given", "why"), [(["nobody"], "named 'nobody'"), ("b", "gives a list"), ([1], "gives a list")]
)
def test_a_selection_names_targets_of_its_group(given: object, why: str) -> None:
    board = Board("start: a", "select a: function:f -> b, c", functions={"f": lambda payload, targets: given})
    with pytest.raises(ConditionError, match=why):
        board.next({"a": [1]})


# Joins


def test_all_waits_for_each_source_and_takes_all_that_they_have_sent() -> None:
    board = Board("start: s", "s -> a, b", "b, a => j")
    assert board.next({"a": ["a1", "a2"]}) == {}
    assert board.next({"a": ["a3"]}) == {}
    assert board.held() == {"a": ["a1", "a2", "a3"]}
    assert board.next({"b": ["b"]}) == {"j": [["b", "a1", "a2", "a3"]]}
    assert board.held() == {}


def test_any_fires_with_what_is_there() -> None:
    board = Board("start: s", "s -> a, b", "a, b => j any")
    assert board.next({"b": [2]}) == {"j": [[2]]}
    assert board.next({"a": [1], "b": [2]}) == {"j": [[1, 2]]}
    assert board.next({}) == {}


def test_a_quorum_counts_sources_not_messages() -> None:
    board = Board("start: s", "s -> a, b, c", "a, b, c => j quorum 2")
    assert board.next({"a": [1, 1, 1]}) == {}
    assert board.next({"c": [3]}) == {"j": [[1, 1, 1, 3]]}
    assert board.next({"b": [2]}) == {}
    assert board.held() == {"b": [2]}


def test_a_boundary_that_fails_leaves_buffers_as_they_were() -> None:
    board = Board("start: s", "s -> a, b", "a, b => j", "b -> x if message.size > 1")
    board.next({"a": [1]})
    before = board.buffers
    with pytest.raises(ConditionError):
        board.plan({"a": [2], "b": [3]})
    assert board.buffers is before
    assert board.held() == {"a": [1]}
    # Nor does a plan that is thrown away without having failed.
    board.plan({"a": [2]}).fire(0)
    assert board.held() == {"a": [1]}


def test_a_join_takes_what_is_addressed_to_its_target() -> None:
    board = Board("start: s", "s -> a, b", "a, b => j any", "a -> x")
    assert board.next({"a": [(1, "j"), (2, "x")]}) == {"j": [[1]], "x": [2]}


def test_lists_come_after_single_messages_by_edge_group_whatever_fired_first() -> None:
    board = Board(
        *("start: s", "nodes: s, a, b, c, d, e, t", "s -> a, b, c, d, e"),
        *("a, b => t reachable", "c, d => t", "e -> t"),
    )
    sent = {"a": ["a"], "b": ["b"], "c": ["c"], "d": ["d"], "e": ["e"]}
    assert board.next(sent) == {"t": ["e", ["a", "b"], ["c", "d"]]}


# Reachable


def test_reachable_fires_when_no_message_can_come_to_a_missing_source() -> None:
    board = Board("start: s", "s -> a, b", "b -> b2", "b2 -> b3", "a, b3 => j reachable")
    assert board.next({"s": [0]}) == {"a": [0], "b": [0]}
    assert board.next({"a": [1], "b": [2]}) == {"b2": [2]}
    assert board.next({"b2": [2]}) == {"b3": [2]}
    assert board.next({"b3": []}) == {"j": [[1]]}


def test_reachable_waits_for_whoever_may_still_send_without_a_message() -> None:
    """An open question, a nested run that waits: the node is busy."""
    board = Board("start: s", "s -> a, b", "b -> c", "a, c => j reachable")
    assert board.next({"a": [1]}, busy=["b"]) == {}
    assert board.next({}, busy=["a"]) == {"j": [[1]]}


def test_a_source_that_has_a_message_itself_is_waited_for() -> None:
    board = Board("start: s", "s -> a, b", "a, b => j reachable")
    assert board.next({"a": [1]}, busy=["b"]) == {}
    assert board.next({"b": []}) == {"j": [[1]]}


def test_a_path_through_the_join_itself_does_not_count() -> None:
    """In a cycle the join would otherwise wait for itself."""
    board = Board("start: s", "s -> a, b", "a, b => j reachable", "j -> b")
    assert board.next({"a": [1]}) == {"j": [[1]]}
    assert board.next({"j": [2]}) == {"b": [2]}
    assert board.next({"b": [3]}) == {"j": [[3]]}


def test_a_handoff_is_a_path() -> None:
    board = Board("start: s", "s -> a, h", "node h: handoff c", "s -> c", "a, c => j reachable")
    assert board.next({"a": [1]}, busy=["h"]) == {}


def test_of_joins_in_a_row_each_waits_for_those_before() -> None:
    board = Board(
        *("start: s", "s -> a, b, c, d", "a, b => j1 reachable", "c -> x"),
        *("j1, c => j2 reachable", "j2, d => j3 reachable"),
    )
    assert board.next({"a": [1], "c": [3], "d": [4]}, busy=["b"]) == {"x": [3]}
    assert board.next({}) == {"j1": [[1]]}
    assert board.next({"j1": [5]}) == {"j2": [[5, 3]]}
    assert board.next({"j2": [6]}) == {"j3": [[6, 4]]}


def test_joins_that_wait_for_each_other_go_on_with_the_first() -> None:
    board = Board(
        *("start: s", "s -> a, b", "a, y => x reachable", "x, b => y reachable"),
    )
    assert board.next({"a": [1], "b": [2]}) == {"x": [[1]]}
    assert board.next({"x": [3]}) == {"y": [[3, 2]]}


def test_a_join_that_starves_holds_no_reachable_one_up_for_ever() -> None:
    board = Board("start: s", "s -> a, b, c", "a, b => starved", "starved, c => j reachable")
    assert board.next({"a": [1], "c": [3]}) == {"j": [[3]]}
    assert board.held() == {"a": [1]}


def test_a_dynamic_number_of_items_is_one_list() -> None:
    board = Board("start: s", "s -> work, audit", "work -> done", "done, audit => j reachable")
    assert board.next({"s": [1, 2, 3]}) == {"work": [1, 2, 3], "audit": [1, 2, 3]}
    assert board.next({"work": [1, 2, 3], "audit": ["ok"]}) == {"done": [1, 2, 3]}
    assert board.next({"done": [10, 20, 30]}) == {"j": [[10, 20, 30, "ok"]]}
    assert board.next({"s": []}) == {}
