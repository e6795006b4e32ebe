"""Resolves the writers of shared state in one superstep, by each key's declared policy (G23).

A writer is an invocation; its writes count in the order it made them, invocations in the order of their positions, so who
finished first never matters. REJECT and LAST_WRITER replace the value. With APPEND, MERGE and SUM every write is a
contribution to what was there, also a single one; a deletion takes the key away and contributions begin anew. Payloads are
JSON, so a policy works in every language alike.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow

from hocket import v1
from hocket.errors import HocketError
from hocket.records import StateWrite

_REPLACING = frozenset({v1.MERGE_POLICY_REJECT, v1.MERGE_POLICY_LAST_WRITER})
_NATIVE = frozenset({"string", "int", "float", "bool", "null"})
DECIMAL_DIGITS = 1000
"""A sum that needs more is refused rather than rounded."""


class ConflictError(HocketError):
    """Two writers of a key whose policy forbids it, or a value its policy cannot merge."""

    reason = v1.ERROR_REASON_ARGUMENT_INVALID


@dataclass(slots=True)
class Writer:
    """An invocation's writes, in its order. `invocation_id` tells writers apart, `node_id` names them to people."""

    node_id: str
    invocation_id: str
    writes: Sequence[StateWrite]


def merge(
    state: Mapping[str, v1.Payload],
    policies: Mapping[str, v1.MergePolicy.ValueType],
    writers: Iterable[Writer],
) -> dict[str, v1.Payload]:
    """The state after the writes of `writers`, given in the order of their positions. Raises ConflictError."""
    merged = dict(state)
    last: dict[str, Writer] = {}
    for writer in writers:
        for write in writer.writes:
            policy = policies.get(write.key, v1.MERGE_POLICY_REJECT)
            before = last.setdefault(write.key, writer)
            if policy == v1.MERGE_POLICY_REJECT and before.invocation_id != writer.invocation_id:
                raise ConflictError(
                    f"state key {write.key!r} was written by {before.node_id!r} and by {writer.node_id!r} in one superstep; "
                    "declare a merge policy for it: last_writer, append, merge or sum"
                )
            if write.value is None:
                merged.pop(write.key, None)
            elif policy in _REPLACING:
                merged[write.key] = write.value
            else:
                merged[write.key] = _contribute(policy, write.key, merged.get(write.key), write.value)
    return merged


def _contribute(
    policy: v1.MergePolicy.ValueType, key: str, current: v1.Payload | None, value: v1.Payload
) -> v1.Payload:
    for payload in (current, value):
        if payload is not None and payload.WhichOneof("value") == "blob":
            raise ConflictError(
                f"state key {key!r} has a merge policy, and a value of {payload.blob.size_bytes} bytes lies in the blob "
                "store, where it cannot be merged; keep it below the inline limit"
            )
    try:
        if policy == v1.MERGE_POLICY_APPEND:
            return _append(key, current, value)
        if policy == v1.MERGE_POLICY_MERGE:
            return _merge_maps(key, current, value)
        return _sum(key, current, value)
    except (ValueError, TypeError, OverflowError, DecimalException) as error:
        # What a worker in any language has sent; its fault must not stop the scheduler.
        raise ConflictError(f"state key {key!r}: {value.type!r} cannot be merged: {error}") from error


def _append(key: str, current: v1.Payload | None, value: v1.Payload) -> v1.Payload:
    """Cut and joined as bytes: decoding a list that grows in a loop would cost its square."""
    element = element_of(value)
    if current is None:
        return _list(b"[" + element + b"]", value.type)
    if not current.type.startswith("list<"):
        raise _refusal("append", key, current, "a list")
    inner = current.data.strip()[:-1].rstrip()
    data = inner + (b"," if len(inner) > 1 else b"") + element + b"]"
    same = current.type == f"list<{value.type}>"
    return _list(data, value.type if same else "any")


def _list(data: bytes, element_type: str) -> v1.Payload:
    if element_type not in _NATIVE:
        return v1.Payload(type="list<any>", data=data)
    return v1.Payload(type=f"list<{element_type}>", supertypes=["list<any>"], data=data)


def element_of(value: v1.Payload) -> bytes:
    """The JSON of a payload as an element of a list or map: tagged with its type unless its JSON shows it."""
    if value.WhichOneof("value") is None:
        return b"null"
    if value.WhichOneof("value") == "blob":
        raise ConflictError(f"a value of {value.blob.size_bytes} bytes in the blob store cannot become an element")
    name = value.type
    if value.content_type:
        # Raw bytes: what JSON cannot hold goes as base64 (the form of bytes and protobuf messages inside a value).
        return b'{"$type":%b,"$value":%b}' % (_json(name), _json(_base64(value.data)))
    if name in _NATIVE or name in ("list<any>", "map<any>") or _is_plain_container(name):
        return value.data
    return b'{"$type":%b,"$value":%b}' % (_json(name), value.data)


def _is_plain_container(name: str) -> bool:
    outer, _, inner = name.partition("<")
    if outer not in ("list", "map") or not inner.endswith(">"):
        return False
    element = inner[:-1]
    return element in _NATIVE or element == "any" or _is_plain_container(element)


def _merge_maps(key: str, current: v1.Payload | None, value: v1.Payload) -> v1.Payload:
    if not value.type.startswith("map<"):
        raise _refusal("merge", key, value, "a map with text keys")
    if current is None:
        return value
    if not current.type.startswith("map<"):
        raise _refusal("merge", key, current, "a map with text keys")
    merged = {**json.loads(current.data), **json.loads(value.data)}
    data = json.dumps(merged, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if current.type == value.type:
        return v1.Payload(type=value.type, supertypes=value.supertypes, data=data)
    return v1.Payload(type="map<any>", data=data)


def _sum(key: str, current: v1.Payload | None, value: v1.Payload) -> v1.Payload:
    added = _number(key, value)
    if current is None:
        return value
    total = _number(key, current)
    if isinstance(total, Decimal) or isinstance(added, Decimal):
        if isinstance(total, float) or isinstance(added, float):
            raise _refusal("sum", key, value, "numbers of one kind: decimal and float do not add exactly")
        # In a context of its own: the process's may round, and round otherwise elsewhere.
        exact = Context(prec=DECIMAL_DIGITS, traps=[Inexact, InvalidOperation, Overflow])
        return v1.Payload(type="decimal", data=_json(str(exact.add(Decimal(total), Decimal(added)))))
    result = total + added
    if isinstance(result, float):
        if result != result or result in (float("inf"), float("-inf")):
            raise _refusal("sum", key, value, "a finite total")
        return v1.Payload(type="float", data=repr(result).encode())
    return v1.Payload(type="int", data=str(result).encode())


def _number(key: str, payload: v1.Payload) -> int | float | Decimal:
    if payload.type == "int":
        return int(payload.data)
    if payload.type == "float":
        return float(payload.data)
    if payload.type != "decimal":
        raise _refusal("sum", key, payload, "an int, a float or a decimal")
    return Decimal(json.loads(payload.data))


def _refusal(policy: str, key: str, payload: v1.Payload, wanted: str) -> ConflictError:
    return ConflictError(f"state key {key!r} has the policy {policy}; it takes {wanted}, not {payload.type!r}")


def _json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def list_of(payloads: Iterable[v1.Payload]) -> v1.Payload:
    """One list payload of many: what a fan-in hands to a nested definition."""
    values = list(payloads)
    types = {value.type for value in values}
    data = b"[" + b",".join(element_of(value) for value in values) + b"]"
    return _list(data, types.pop() if len(types) == 1 else "any")


def text_of(text: str) -> v1.Payload:
    """A string payload."""
    return v1.Payload(type="string", data=_json(text))
