"""Conditions, selections and affinities: what compiles, what it gives, and how each fault reads.

cel-cpp returns some errors as values, raises others, cuts text at a NUL and ends the process on a value nested deeply
enough. Here nothing but `ExpressionError` comes out, whatever goes in.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hocket import v1
from hocket_server.core.expressions import (
    MAX_CONTEXT_DEPTH,
    MAX_CONTEXT_ITEMS,
    MAX_SOURCE_BYTES,
    Expression,
    ExpressionError,
    compile_condition,
    compile_selection,
    compile_text,
)

ORDER = {"priority": "high", "total": 120, "lines": [{"sku": "a", "count": 2}], "note": None}
VALUES: dict[str, object] = {
    "message": ORDER,
    "message_type": "acme.Order",
    "source": "intake",
    "state": {"limit": 100},
    "superstep": 3,
    "targets": ["ship", "refuse"],
}


def condition(source: str, message: object = None) -> object:
    return compile_condition(source).evaluate({**VALUES, "message": ORDER if message is None else message})


def fault_of(compile_source: Callable[[str], Expression], source: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        compile_source(source)
    return str(caught.value)


def failure_of(source: str, message: object) -> str:
    with pytest.raises(ExpressionError) as caught:
        condition(source, message)
    return str(caught.value)


# What an expression sees and gives


@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("message.priority == 'high'", True),
        ("message.total > state.limit && superstep < 3", False),
        ("message_type == 'acme.Order' && source == 'intake'", True),
        ("message.lines.exists(line, line.count > 1)", True),
        ("has(message.discount)", False),
        ("has(message.note) && message.note == null", True),
        ("message['priority'] in ['low', 'high']", True),
        ("message.gone == 1 || true", True),
    ],
)
def test_a_condition_reads_message_type_source_state_and_superstep(source: str, holds: bool) -> None:
    assert condition(source) is holds


def test_a_selection_gives_node_ids_and_sees_its_targets() -> None:
    assert compile_selection("targets.filter(t, t != 'refuse')").evaluate(VALUES) == ["ship"]
    assert compile_selection("message.total > 500 ? ['refuse'] : []").evaluate(VALUES) == []


def test_an_affinity_gives_text() -> None:
    assert compile_text("source + '/' + message.priority").evaluate(VALUES) == "intake/high"


def test_targets_are_for_selections_only() -> None:
    assert "undeclared reference to 'targets'" in fault_of(compile_condition, "targets == []")


# What it says it reads, so that nobody decodes more


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("true", set()),
        ("message.state.source == 'superstep'", {"message"}),
        ("'message' == source", {"source"}),
        (".message == 1", {"message"}),
        ("state.message == superstep", {"state", "superstep"}),
        ("[1].exists(message, message == 1)", set()),
        ("[message].exists(message, message == 1)", {"message"}),
        ("{'source': message_type} == {'source': 'x'}", {"message_type"}),
        ("has(state.a)", {"state"}),
        ("message > 1.5 || message.a == 1 || message.a[0].b == 2", {"message"}),
        ("message[superstep] == [source][0]", {"message", "superstep", "source"}),
    ],
)
def test_variables_are_those_in_the_syntax_tree(source: str, variables: set[str]) -> None:
    assert compile_condition(source).variables == variables


def test_a_variable_it_does_not_read_needs_no_value() -> None:
    assert compile_condition("superstep == 3").evaluate({"superstep": 3}) is True
    with pytest.raises(ExpressionError, match="variable 'source' has no value here"):
        compile_condition("source == 'a'").evaluate({})


# Faults when it is compiled (G5)


@pytest.mark.parametrize(
    ("compile_source", "source", "fault"),
    [
        (compile_condition, "", "is empty"),
        (compile_condition, "message.", "line 1, column 9: Syntax error"),
        (compile_condition, "true\n && 1", "line 2, column 2: found no matching overload"),
        (compile_condition, "1 + 'a' == 2", "found no matching overload for '_+_' applied to '(int, string)'"),
        (compile_condition, "priority == 1", "known variables: message, message_type, source, state, superstep"),
        (compile_condition, "type == 'x'", "the name of the message's type is `message_type`"),
        (compile_condition, "superstep", "gives int; it must give a bool"),
        (compile_selection, "[1]", "gives list<int>; it must give a list of strings"),
        (compile_selection, "source", "gives string; it must give a list of strings"),
        (compile_text, "superstep", "gives int; it must give a string"),
        (compile_condition, "(" * 40 + "true" + ")" * 40, "limit: 32"),
        (compile_condition, "!" * 3 + "\ud800", "it is not text that can be encoded as UTF-8"),
        (compile_condition, "a\0b", "Syntax error"),
        (compile_condition, f"source == '{'é' * (MAX_SOURCE_BYTES // 2)}'", "bytes long; at most 4096"),
    ],
)
def test_a_fault_says_what_and_where(compile_source: Callable[[str], Expression], source: str, fault: str) -> None:
    message = fault_of(compile_source, source)

    assert fault in message
    assert "INVALID_ARGUMENT" not in message
    assert ExpressionError.reason == v1.ERROR_REASON_DEFINITION_INVALID


def test_the_fault_is_the_same_when_asked_again() -> None:
    assert fault_of(compile_condition, "message.") == fault_of(compile_condition, "message.")


def test_equal_sources_share_one_program_but_not_over_roles() -> None:
    assert compile_condition("message.a") is compile_condition("message.a")
    assert compile_text("message.a").evaluate({"message": {"a": "x"}}) == "x"
    with pytest.raises(ExpressionError, match="a bool is needed"):
        compile_condition("message.a").evaluate({"message": {"a": "x"}})


# Faults when it is evaluated (G16)


@pytest.mark.parametrize(
    ("source", "message", "failure"),
    [
        ("message.gone == 1", {}, 'there is no key "gone"; guard it with has()'),
        ("message.a == 1", [1], "SELECT"),
        ("1 / message == 1", 0, "divide by zero"),
        ("message", 1, "it gave '1' of type int; a bool is needed"),
        ("message.a", {"a": "true"}, "of type string; a bool is needed"),
        ("message.matches('(')", "x", "missing )"),
        ("message.all(x, message.all(y, message.all(z, true)))", list(range(99)), "10,000 steps"),
    ],
)
def test_a_failure_is_an_error_with_the_source(source: str, message: object, failure: str) -> None:
    text = failure_of(source, message)

    assert text.startswith(f"condition {source!r} failed: ")
    assert failure in text


def test_a_selection_must_give_text() -> None:
    with pytest.raises(ExpressionError, match="a list of strings is needed"):
        compile_selection("message.to").evaluate({"message": {"to": [1]}})


# What a message may hold


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**64 - 1, 2**53 + 1])
def test_integers_of_64_bits_are_exact(number: int) -> None:
    literal = f"{number}u" if number >= 2**63 else str(number)
    assert condition(f"message.n == {literal}", {"n": number}) is True


@pytest.mark.parametrize(
    ("value", "failure"),
    [
        (2**64, "message.x is an integer beyond 64 bits"),
        (object(), "message.x is a object, which CEL has no type for"),
        ("a\0b", "message.x is text with a NUL"),
        ("\ud800", "message.x is text with a lone surrogate"),
        ({1.5: 1}, "message.x has the key 1.5"),
    ],
)
def test_a_value_that_cel_cannot_take_matters_only_where_it_is_read(value: object, failure: str) -> None:
    message = {"x": value, "kind": "a"}

    assert condition("message.kind == 'a'", message) is True
    assert condition("has(message.x)", message) is True
    assert failure in failure_of("message.x == 1", message)


def test_bytes_and_maps_with_number_keys_are_read() -> None:
    assert condition("message.raw == b'ab' && message.by_number[1] == 'x'", {"raw": b"ab", "by_number": {1: "x"}})
    assert condition("message == ['a', 'b']", ("a", "b")) is True


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"d": value}
    return value


@pytest.mark.parametrize(
    ("big", "failure"),
    [
        ("x" * 70_000, "more than 65,536 bytes, at message.big"),
        ("é" * 40_000, "more than 65,536 bytes, at message.big"),
        (list(range(MAX_CONTEXT_ITEMS + 1)), "message.big has 1,001 items"),
        ({str(n): n for n in range(MAX_CONTEXT_ITEMS + 1)}, "more than 1,000 values"),
        (nested(50_000), "nested more than 32 levels deep"),
    ],
    ids=["text", "two-byte text", "list", "map", "deep"],
)
def test_a_big_value_is_refused_where_it_is_read_and_ignored_where_not(big: object, failure: str) -> None:
    message = {"big": big, "kind": "a"}

    assert condition("message.kind == 'a'", message) is True
    assert failure in failure_of("message.big == 1", message)
    assert failure in failure_of("message == {}", message)


def test_a_value_as_deep_as_allowed_is_read() -> None:
    assert condition("message == 1", nested(MAX_CONTEXT_DEPTH)) is False


def test_a_value_that_holds_itself_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    assert "nested more than" in failure_of("message == [1]", circle)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.law
@given(PLAIN)
def test_whatever_the_message_the_answer_is_a_bool_or_an_expression_error(message: object) -> None:
    for source in ("message == message", "message.a", "message.a.b[0] == 1", "size(message) > 1", "'a' in message"):
        try:
            result = compile_condition(source).evaluate({"message": message})
        except ExpressionError:
            continue
        assert isinstance(result, bool)


@pytest.mark.law
@given(st.text() | st.text(alphabet="message.ab[]()'\"\\?:&|!=<>+-*/%{},0123 \n\0\ud800"))
def test_whatever_the_source_it_compiles_or_is_an_expression_error(source: str) -> None:
    for compile_source in (compile_condition, compile_selection, compile_text):
        try:
            expression = compile_source(source)
        except ExpressionError:
            continue
        assert expression.variables <= VALUES.keys()
