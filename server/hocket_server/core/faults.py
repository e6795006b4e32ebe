"""Faults in single values, and the words for all faults: the thing, its value, the legal ones, the next step."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Final

from google.protobuf.duration_pb2 import Duration

from hocket import v1

MERGE_POLICIES: Final[Mapping[int, str]] = {number: name for name, number in v1.MergePolicy.items()}
OUTPUT_ROLES: Final[Mapping[int, str]] = {number: name for name, number in v1.OutputRole.items()}
ON_STUCK: Final[Mapping[int, str]] = {number: name for name, number in v1.OnStuck.items()}
JOIN_POLICIES: Final[Mapping[int, str]] = {number: name for name, number in v1.JoinPolicy.items()}

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NOT_IN_NODE_ID = re.compile(r"[/#\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NOT_STORABLE = re.compile(r"[\x00\ud800-\udfff]")

SHOWN: Final = 8
"""How many of many names a fault shows."""


def quoted(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def character(one: str) -> str:
    return repr(one) if one.isprintable() else f"U+{ord(one):04X}"


def first_of(items: Sequence[object], total: int = 0) -> str:
    """The first few; `total` is how many there are when `items` are not all."""
    total = max(total, len(items))
    shown = ", ".join(str(item) for item in items[:SHOWN])
    return shown if total <= SHOWN else f"{shown} and {total - SHOWN} more"


def known_names(names: Sequence[str], total: int = 0) -> str:
    return f"known: {first_of([quoted(name) for name in names], total)}" if names else "there is none"


def duration_fault(name: str, duration: Duration) -> str:
    seconds, nanos = duration.seconds, duration.nanos
    if seconds < 0 or nanos < 0:
        return f"{name} is {seconds + nanos / 1e9:g} s; a duration is not negative"
    if seconds > _MAX_SECONDS or nanos > 999_999_999:
        return f"{name} is {seconds} s and {nanos} ns; at most {_MAX_SECONDS} s and 999999999 ns are a duration"
    return ""


_MAX_SECONDS: Final = 315_576_000_000


def retry_faults(policy: v1.RetryPolicy) -> Iterator[tuple[str, str]]:
    are_durations = True
    for name in ("initial_interval", "maximum_interval"):
        if policy.HasField(name) and (message := duration_fault(name, getattr(policy, name))):
            are_durations = False
            yield name, message
    first, longest = policy.initial_interval.ToNanoseconds(), policy.maximum_interval.ToNanoseconds()
    if are_durations and 0 < longest < first:
        yield (
            "maximum_interval",
            f"maximum_interval {longest / 1e9:g} s is below initial_interval {first / 1e9:g} s; raise it",
        )
    coefficient = policy.backoff_coefficient
    if coefficient != 0 and not (isfinite(coefficient) and coefficient >= 1):
        yield "backoff_coefficient", f"backoff_coefficient is {coefficient:g}; it is 1 or more, or 0 for the default"
    for name, value in (("max_attempts", policy.max_attempts), ("max_redeliveries", policy.max_redeliveries)):
        if value < 0:
            yield name, f"{name} is {value}; it is 1 or more, or 0 for the default"


def enum_fault(names: Mapping[int, str], value: int) -> str:
    if value in names:
        return ""
    return f"{value} is no value that this server knows; there are: {', '.join(names.values())}"
