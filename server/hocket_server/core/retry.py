"""Whether an invocation that failed is attempted again, and when.

Two budgets pay: `max_attempts` for what the user's code did wrong (APPLICATION, TIMEOUT), `max_redeliveries` for lost
executors, so that a poison invocation cannot kill workers for ever. UNDELIVERED work was never started and charges none.
Everything else is final. The delay before attempt n + 1 is drawn from 0 to min(initial × coefficient^(n-1), maximum): full
jitter, the dice being a number in the input.
"""

from dataclasses import dataclass

from hocket import v1
from hocket.records import Failed
from hocket.wire import SECOND, duration_from

CHARGED_TO_ATTEMPTS = frozenset({v1.FAILURE_KIND_APPLICATION, v1.FAILURE_KIND_TIMEOUT})
DEFAULT_INITIAL_INTERVAL = 1.0
DEFAULT_COEFFICIENT = 2.0
DEFAULT_MAX_ATTEMPTS = 1
DEFAULT_MAX_REDELIVERIES = 3


@dataclass(slots=True, frozen=True)
class Policy:
    """A RetryPolicy with every default filled in. Intervals in seconds."""

    initial_interval: float = DEFAULT_INITIAL_INTERVAL
    coefficient: float = DEFAULT_COEFFICIENT
    maximum_interval: float = 100 * DEFAULT_INITIAL_INTERVAL
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_redeliveries: int = DEFAULT_MAX_REDELIVERIES
    non_retryable: frozenset[str] = frozenset()


DEFAULT_POLICY = Policy()


def policy_from(message: v1.RetryPolicy) -> Policy:
    initial = duration_from(message, "initial_interval") or DEFAULT_INITIAL_INTERVAL
    return Policy(
        initial_interval=initial,
        coefficient=message.backoff_coefficient or DEFAULT_COEFFICIENT,
        maximum_interval=duration_from(message, "maximum_interval") or 100 * initial,
        max_attempts=message.max_attempts or DEFAULT_MAX_ATTEMPTS,
        max_redeliveries=message.max_redeliveries or DEFAULT_MAX_REDELIVERIES,
        non_retryable=frozenset(message.non_retryable_failure_types),
    )


@dataclass(slots=True)
class Budget:
    """What an invocation's failures have cost so far."""

    failures: int = 0
    redeliveries: int = 0


def charge(policy: Policy, budget: Budget, failed: Failed) -> int | None:
    """Charge the failure; the delay before the next attempt in nanoseconds, or None when there is none."""
    failure = failed.failure
    if failure.kind == v1.FAILURE_KIND_UNDELIVERED:
        return 0
    if failure.kind == v1.FAILURE_KIND_EXECUTOR_LOST:
        budget.redeliveries += 1
        spent, limit = budget.redeliveries, policy.max_redeliveries + 1
    elif failure.kind in CHARGED_TO_ATTEMPTS:
        budget.failures += 1
        spent, limit = budget.failures, policy.max_attempts
    else:
        return None
    if spent >= limit or is_final(failure, policy.non_retryable):
        return None
    if failure.HasField("next_retry_delay"):
        return failure.next_retry_delay.ToNanoseconds()
    try:
        interval = policy.initial_interval * policy.coefficient ** (spent - 1)
    except OverflowError:
        interval = policy.maximum_interval
    bound = min(interval, policy.maximum_interval)
    return int(bound * failed.jitter * SECOND)


def is_final(failure: v1.Failure, non_retryable: frozenset[str]) -> bool:
    """A failure is final by its own word, by its type, or by any leaf of a group: the leaf that may not be repeated wins."""
    if failure.non_retryable or failure.type in non_retryable:
        return True
    return any(is_final(leaf, non_retryable) for leaf in failure.leaves)
