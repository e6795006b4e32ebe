"""The language of transcripts: a graph, an attempt's end, a failure, each from its line of text.

    start: a                           switch a: CEL -> b; default -> c
    a -> b, c                          select a: CEL -> b, c
    a -> b if CEL                      state total sum
    a, b => c quorum 2 optional        node b: concurrency 2, max_attempts 3, nested inner

Lines indented below `inner:` are the definition that a node names. Values are JSON, of the type that it shows unless one is
named: `Dog<Animal:"Rex"`.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration

from hocket import v1
from hocket.records import Effects, Message, StateWrite, Suspended
from hocket.wire import SECOND
from tests.core.definitions import define, edge, fan_in, fan_out, nested, node, select, switch

T = TypeVar("T")


class Words:
    """What is left of a line."""

    def __init__(self, line: str) -> None:
        self.rest = line.strip()

    def word(self) -> str:
        found = re.match(r"[^\s,=]+", self.rest)
        if found is None:
            raise ValueError(f"a word is missing before {self.rest!r}")
        self.rest = self.rest[found.end() :].lstrip()
        return found[0]

    def takes(self, token: str) -> bool:
        found = re.match(re.escape(token) + (r"\b" if token.isalpha() else ""), self.rest)
        if found:
            self.rest = self.rest[found.end() :].lstrip()
        return found is not None

    def after(self, token: str, read: Callable[[], T], default: T) -> T:
        return read() if self.takes(token) else default

    def payload(self) -> v1.Payload:
        """JSON, of a type that it shows unless one is named: `Dog<Animal:"Rex"`."""
        name = re.match(r"([A-Z]\w*(?:<\w+)*):", self.rest)
        value, end = json.JSONDecoder().raw_decode(self.rest, name.end() if name else 0)
        self.rest = self.rest[end:].lstrip()
        data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if name:
            own, *supertypes = name[1].split("<")
            return v1.Payload(type=own, supertypes=supertypes, data=data)
        return v1.Payload() if value is None else v1.Payload(type=_TYPES[type(value)], data=data)

    def number(self) -> float:
        return float(self.word())

    def count(self) -> int:
        return int(self.word())

    def parts(self) -> Iterator[str]:
        """The verb of each of the parts that commas separate."""
        self.takes(",")
        while self.rest:
            yield self.word()
            if self.rest and not self.takes(","):
                raise ValueError(f"not understood: {self.rest!r}")

    def write(self, verb: str) -> StateWrite:
        key = self.word()
        self.takes("=")
        return StateWrite(key, self.payload() if verb == "set" else None)


_TYPES: dict[type, str] = {str: "string", bool: "bool", int: "int", float: "float", list: "list<any>", dict: "map<any>"}


def duration(seconds: float) -> Duration:
    return Duration(seconds=int(seconds), nanos=round(seconds % 1 * SECOND))


def plain(payload: v1.Payload) -> object:
    return json.loads(payload.data) if payload.data else None


# A graph.


def definition(lines: list[str], limits: dict[str, int], name: str = "order") -> v1.Definition:
    """`limits` takes those of the run, which are no part of a definition."""
    nodes: dict[str, v1.Node] = {}
    groups: list[v1.EdgeGroup] = []
    inner: dict[str, list[str]] = {}
    graph = v1.Graph()

    def named(text: str) -> list[str]:
        names = [each.strip() for each in text.split(",")]
        for each in names:
            nodes.setdefault(each, node(each))
        return names

    for line in lines:
        if line.startswith(" "):
            inner[next(reversed(inner))].append(line[2:])
        elif (found := re.fullmatch(r"start: (\w+)", line)) or (found := re.fullmatch(r"nodes: (.+)", line)):
            named(found[1])
        elif found := re.fullmatch(r"(\w+):", line):
            inner[found[1]] = []
        elif found := re.fullmatch(r"node (\w+): (.+)", line):
            _describe(nodes.setdefault(found[1], node(found[1])), found[2])
        elif found := re.fullmatch(r"state (\w+) (\w+)", line):
            graph.state_keys.add(key=found[1], merge_policy=v1.MergePolicy.Value(f"MERGE_POLICY_{found[2].upper()}"))
        elif found := re.fullmatch(r"max_supersteps (\d+)", line):
            graph.max_supersteps = int(found[1])
        elif found := re.fullmatch(r"(max_invocation_bytes|run_timeout) (\d+)", line):
            limits[found[1]] = int(found[2])
        elif found := re.fullmatch(r"(.+) => (\w+)(?: (any|reachable|quorum (\d+)))?( optional)?", line):
            policy = v1.JoinPolicy.Value(f"JOIN_POLICY_{(found[3] or 'all').split()[0].upper()}")
            sources, (target,) = named(found[1]), named(found[2])
            groups.append(fan_in(sources, target, policy, int(found[4] or 0), bool(found[5])))
        elif found := re.fullmatch(r"switch (\w+): (.+); default -> (\w+)", line):
            cases = [case.rsplit(" -> ", 1) for case in found[2].split("; ")]
            named(found[1])
            groups.append(switch(found[1], [(when, named(to)[0]) for when, to in cases], *named(found[3])))
        elif found := re.fullmatch(r"select (\w+): (.+) -> (.+)", line):
            named(found[1])
            groups.append(select(found[1], named(found[3]), found[2]))
        elif found := re.fullmatch(r"(\w+) -> (\w+)(?: if (.+))?", line):
            (source,), (target,) = named(found[1]), named(found[2])
            groups.append(edge(source, target, found[3] or ""))
        elif found := re.fullmatch(r"(\w+) -> (.+)", line):
            groups.append(fan_out(*named(found[1]), *named(found[2])))
        else:
            raise ValueError(f"not understood in a graph: {line!r}")
    made = define(list(nodes.values()), groups, [definition(inner[each], limits, each) for each in inner], name)
    graph.MergeFrom(made.graph)
    made.graph.CopyFrom(graph)
    return made


def _describe(described: v1.Node, text: str) -> None:
    words = Words(text)
    types = v1.ExecutorTypes()
    for verb in words.parts():
        match verb:
            case "concurrency":
                described.concurrency = words.count()
            case "role":
                described.output_role = v1.OutputRole.Value(f"OUTPUT_ROLE_{words.word().upper()}")
            case "nested":
                described.MergeFrom(nested(described.id, words.word()))
            case "handoff":
                described.handoff_node_ids.append(words.word())
            case "reads":
                described.state_reads.append(words.word())
            case "takes":
                types.input_types.append(words.word())
            case "sends":
                types.message_types.add(name=words.word())
            case "yields":
                types.output_types.add(name=words.word())
            case "max_attempts" | "max_redeliveries":
                setattr(described.retry_policy, verb, words.count())
            case "initial":
                described.retry_policy.initial_interval.CopyFrom(duration(words.number()))
            case "maximum":
                described.retry_policy.maximum_interval.CopyFrom(duration(words.number()))
            case "final":
                described.retry_policy.non_retryable_failure_types.append(words.word())
            case _:
                raise ValueError(f"not understood of a node: {verb!r}")
    if types.ListFields():
        described.types.CopyFrom(types)


# An input.


def question(words: Words) -> v1.Question:
    asked = v1.Question(question_id=words.word(), payload=words.payload())
    while words.rest and not words.rest.startswith(","):
        if words.takes("expires"):
            asked.expires_in.CopyFrom(duration(words.number()))
        elif words.takes("default"):
            asked.default_answer.CopyFrom(words.payload())
        else:
            asked.response_types.append(words.word())
    return asked


def outcome(words: Words, invocation_id: str, node_id: str) -> Effects | Suspended:
    effects = Effects()
    messages: list[Message] = []
    outputs: list[v1.Payload] = []
    writes: list[StateWrite] = []
    questions: list[v1.Question] = []
    events: list[v1.CustomEvent] = []
    suspended: Suspended | None = None
    for verb in words.parts():
        match verb:
            case "send":
                payload, ordinal = words.payload(), len(messages) + 1
                target = words.after("to", words.word, "")
                messages.append(Message(f"{invocation_id}/{ordinal}", node_id, payload, target))
            case "yield":
                outputs.append(words.payload())
            case "set" | "delete":
                writes.append(words.write(verb))
            case "private":
                effects.private_state = words.payload()
            case "ask":
                questions.append(question(words))
            case "event":
                events.append(v1.CustomEvent(name=words.word(), data=words.payload()))
            case "handoff":
                effects.handoff = v1.Handoff(target_node_id=words.word(), task=str(plain(words.payload())))
            case "wait":
                suspended = suspended or Suspended([])
                suspended.questions.append(question(words))
            case "keep":
                suspended = suspended or Suspended([])
                suspended.continuation = words.payload()
            case _:
                raise ValueError(f"not understood of a completion: {verb!r}")
    effects.messages, effects.outputs, effects.state_writes = messages, outputs, writes
    effects.questions, effects.events = questions, events
    return suspended or effects


FAILURES = {
    "failed": v1.FAILURE_KIND_APPLICATION,
    "timed-out": v1.FAILURE_KIND_TIMEOUT,
    "lost": v1.FAILURE_KIND_EXECUTOR_LOST,
    "undelivered": v1.FAILURE_KIND_UNDELIVERED,
    "stopped": v1.FAILURE_KIND_CANCELLED,
}


def failure(verb: str, words: Words) -> v1.Failure:
    kind = FAILURES[verb]
    made = v1.Failure(kind=kind, type=words.word() if verb == "failed" else verb, message="it broke")
    while words.rest:
        if words.takes("final"):
            made.non_retryable = True
        elif words.takes("after"):
            made.next_retry_delay.CopyFrom(duration(words.number()))
        elif words.takes("leaf"):
            made.leaves.add(kind=kind, type=words.word())
        else:
            raise ValueError(f"not understood of a failure: {words.rest!r}")
    return made
