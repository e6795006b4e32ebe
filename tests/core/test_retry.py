"""Whether an invocation that failed is attempted again, and when (G30, contract 1)."""

import pytest
from google.protobuf.duration_pb2 import Duration

from hocket import v1
from hocket.records import Failed
from hocket.wire import SECOND
from hocket_server.core.retry import Budget, Policy, charge, is_final, policy_from

APPLICATION, TIMEOUT = v1.FAILURE_KIND_APPLICATION, v1.FAILURE_KIND_TIMEOUT
LOST, UNDELIVERED = v1.FAILURE_KIND_EXECUTOR_LOST, v1.FAILURE_KIND_UNDELIVERED


def failed(
    kind: v1.FailureKind.ValueType = APPLICATION, jitter: float = 1.0, failure: v1.Failure | None = None
) -> Failed:
    return Failed("r/1/a", 1, failure or v1.Failure(kind=kind, type="Broken"), jitter=jitter)


def delays(policy: Policy, *kinds: v1.FailureKind.ValueType, jitter: float = 1.0) -> list[float | None]:
    """In seconds, of one failure after the other."""
    budget = Budget()
    charged = [charge(policy, budget, failed(kind, jitter)) for kind in kinds]
    return [None if delay is None else delay / SECOND for delay in charged]


def test_by_default_nothing_is_repeated_that_the_users_code_did() -> None:
    assert delays(Policy(), APPLICATION) == [None]
    assert delays(Policy(), TIMEOUT) == [None]


def test_max_attempts_counts_attempts_and_max_redeliveries_what_comes_on_top() -> None:
    policy = Policy(max_attempts=3, max_redeliveries=2)
    assert delays(policy, APPLICATION, TIMEOUT, APPLICATION) == [1, 2, None]
    assert delays(policy, LOST, LOST, LOST) == [1, 2, None]


def test_each_budget_pays_for_its_own() -> None:
    policy = Policy(max_attempts=2, max_redeliveries=1)
    assert delays(policy, LOST, APPLICATION, APPLICATION) == [1, 1, None]
    assert delays(policy, APPLICATION, LOST, LOST) == [1, 1, None]


def test_what_was_never_delivered_goes_out_again_at_once_and_costs_nothing() -> None:
    policy = Policy(max_attempts=1, max_redeliveries=1)
    assert delays(policy, *[UNDELIVERED] * 20, LOST) == [*[0] * 20, 1]


@pytest.mark.parametrize(
    "name",
    ["CANCELLED", "PROTOCOL", "CONDITION", "CONFLICT", "JOIN_STARVED", "QUESTION_EXPIRED", "UNSCHEDULED", "INTERNAL"],
)
def test_other_kinds_are_never_repeated(name: str) -> None:
    kind = v1.FailureKind.Value(f"FAILURE_KIND_{name}")
    assert delays(Policy(max_attempts=9, max_redeliveries=9), kind) == [None]


def test_the_delay_grows_to_the_maximum() -> None:
    policy = Policy(initial_interval=2, coefficient=3, maximum_interval=20, max_attempts=9)
    assert delays(policy, *[APPLICATION] * 5) == [2, 6, 18, 20, 20]


def test_jitter_is_full() -> None:
    """Between nothing and the bound; the dice are in the input."""
    policy = Policy(initial_interval=8, max_attempts=9)
    assert delays(policy, APPLICATION, jitter=0) == [0]
    assert delays(policy, APPLICATION, APPLICATION, jitter=0.25) == [2, 4]


@pytest.mark.parametrize("coefficient", [1.0, 2.0, 1e5, 1e300])
def test_no_series_is_too_long_to_be_reckoned(coefficient: float) -> None:
    policy = Policy(coefficient=coefficient, maximum_interval=60, max_attempts=10**9)
    budget = Budget(failures=10**6)
    assert charge(policy, budget, failed()) == (1 if coefficient == 1 else 60) * SECOND


def test_a_failure_may_name_its_delay_which_no_maximum_shortens() -> None:
    named = v1.Failure(kind=APPLICATION, next_retry_delay=Duration(seconds=500))
    policy, budget = Policy(max_attempts=3, maximum_interval=60), Budget()
    assert charge(policy, budget, failed(failure=named, jitter=0)) == 500 * SECOND
    # Once: the next failure names none, and the series has gone on.
    assert charge(policy, budget, failed()) == 2 * SECOND
    assert charge(policy, budget, failed(failure=named)) is None


# What is final


def test_a_failure_is_final_by_its_own_word_or_by_its_type() -> None:
    assert is_final(v1.Failure(non_retryable=True), frozenset())
    assert is_final(v1.Failure(type="acme.BadInput"), frozenset({"acme.BadInput"}))
    assert not is_final(v1.Failure(type="acme.BadInput"), frozenset({"BadInput"}))


def test_the_leaf_that_may_not_be_repeated_wins() -> None:
    """B06."""
    group = v1.Failure(kind=APPLICATION, type="ExceptionGroup")
    group.leaves.add(type="Flaky")
    assert not is_final(group, frozenset({"BadInput"}))
    group.leaves.add(type="ExceptionGroup").leaves.add(type="BadInput")
    assert is_final(group, frozenset({"BadInput"}))
    assert (
        charge(Policy(max_attempts=9, non_retryable=frozenset({"BadInput"})), Budget(), failed(failure=group)) is None
    )


def test_a_final_failure_is_charged_too() -> None:
    budget = Budget()
    charge(Policy(max_attempts=9), budget, failed(failure=v1.Failure(kind=APPLICATION, non_retryable=True)))
    charge(Policy(), budget, failed(LOST))
    assert budget == Budget(failures=1, redeliveries=1)


# A policy as it is declared


def test_what_a_policy_leaves_out_is_the_default() -> None:
    assert policy_from(v1.RetryPolicy()) == Policy()
    assert policy_from(v1.RetryPolicy(initial_interval=Duration(seconds=3))).maximum_interval == 300


def test_a_policy_is_read_whole() -> None:
    declared = v1.RetryPolicy(
        initial_interval=Duration(nanos=500_000_000),
        backoff_coefficient=1.5,
        maximum_interval=Duration(seconds=9),
        max_attempts=4,
        max_redeliveries=5,
        non_retryable_failure_types=["BadInput"],
    )
    assert policy_from(declared) == Policy(0.5, 1.5, 9, 4, 5, frozenset({"BadInput"}))
    assert len(v1.RetryPolicy.DESCRIPTOR.fields) == 6, "a new field of the policy is not read"
