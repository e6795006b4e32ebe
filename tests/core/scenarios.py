"""Random graphs and a random world around them, for the laws: everything follows from a seed, in any process.

What an attempt ends in depends on its id, its number and on what it got, in the order it got it: so whatever reaches a
handler differently shows in all that comes after. Run as a program it prints a digest of many scenarios.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from zlib import crc32

from hocket import v1
from hocket.errors import RefusedError
from hocket.records import (
    Answered,
    Begin,
    Cancel,
    Completed,
    Effects,
    Failed,
    Fired,
    Input,
    Invocation,
    Message,
    Resume,
    Signalled,
    StateWrite,
    Suspended,
)
from hocket.wire import put_invocation
from hocket_server.core.run import RESUMABLE, RunScheduler
from hocket_server.core.scheduler import Decision, Hooks, RunInfo
from hocket_server.core.topology import Topology, compile_topology
from tests.core.definitions import define, edge, fan_in, fan_out, nested, node, select, switch

CONDITIONS = ("message % 2 == 0", "superstep < 3", "message > 40", "has(state.total) && state.total > 50")
POLICIES = {
    "log": v1.MERGE_POLICY_APPEND,
    "total": v1.MERGE_POLICY_SUM,
    "last": v1.MERGE_POLICY_LAST_WRITER,
    "map": v1.MERGE_POLICY_MERGE,
}
RUN_ID = "r"
MOST_INPUTS = 150


def number(value: int) -> v1.Payload:
    return v1.Payload(type="int", data=b"%d" % value)


def hooks() -> Hooks:
    return Hooks(lambda payload: json.loads(payload.data) if payload.data else None)


@dataclass(frozen=True)
class Scenario:
    seed: int
    definition: v1.Definition
    topology: Topology
    max_invocation_bytes: int

    def info(self, run_id: str = RUN_ID) -> RunInfo:
        return RunInfo(run_id, hooks(), max_invocation_bytes=self.max_invocation_bytes)


def scenario(seed: int) -> Scenario:
    random = Random(seed)
    definition = graph(random)
    limit = 12 if random.random() < 0.2 else 2**21
    return Scenario(seed, definition, compile_topology(definition), limit)


# A graph.


def graph(random: Random, depth: int = 0) -> v1.Definition:
    names = [f"n{place}" for place in range(random.randint(2, 7 - 2 * depth))]
    nodes = [node(each) for each in names]
    inner: list[v1.Definition] = []
    for each in nodes:
        if depth < 2 and random.random() < 0.2:
            inner.append(graph(random, depth + 1))
            inner[-1].definition_name = f"inner{len(inner)}"
            each.CopyFrom(nested(each.id, inner[-1].definition_name))
        _vary(random, each, names)
    made = define(nodes, list(_groups(random, names)), inner)
    made.graph.max_supersteps = random.randint(4, 16)
    for key, policy in POLICIES.items():
        made.graph.state_keys.add(key=key, merge_policy=policy)
    return made


def _vary(random: Random, each: v1.Node, names: list[str]) -> None:
    each.concurrency = random.choice((1, 1, 1, 2, 3))
    each.output_role = random.choice((v1.OUTPUT_ROLE_OUTPUT, v1.OUTPUT_ROLE_INTERMEDIATE, v1.OUTPUT_ROLE_HIDDEN))
    each.retry_policy.max_attempts = random.randint(1, 4)
    each.retry_policy.max_redeliveries = random.randint(1, 3)
    if random.random() < 0.2:
        each.handoff_node_ids.append(random.choice(names))


def _groups(random: Random, names: list[str]) -> Iterator[v1.EdgeGroup]:
    """Mostly forward; each pair of nodes is joined by one group at most."""
    taken: set[tuple[str, str]] = set()

    def free(pairs: list[tuple[str, str]]) -> bool:
        if taken.isdisjoint(pairs):
            taken.update(pairs)
            return True
        return False

    for place, source in enumerate(names):
        later = names[place + 1 :]
        kind = random.choice(("single", "fan_out", "fan_out", "condition", "switch", "select"))
        if later and kind in ("single", "condition"):
            target = random.choice(later)
            free([(source, target)])
            yield edge(source, target, random.choice(CONDITIONS) if kind == "condition" else "")
        elif len(later) > 1:
            targets = sorted(random.sample(later, random.randint(2, len(later))))
            free([(source, target) for target in targets])
            match kind:
                case "fan_out":
                    yield fan_out(source, *targets)
                case "switch":
                    yield switch(source, [(random.choice(CONDITIONS), each) for each in targets[1:]], targets[0])
                case _:
                    yield select(source, targets, f"message % 3 == 0 ? ['{targets[1]}', '{targets[0]}'] : targets")
    for _ in range(random.choice((0, 1, 2))):
        sources = random.sample(names, min(len(names), random.choice((2, 2, 3))))
        target = random.choice(names)
        if free([(source, target) for source in sources]):
            policy = random.choice((v1.JOIN_POLICY_ALL, *v1.JoinPolicy.values()[1:], v1.JOIN_POLICY_REACHABLE))
            yield fan_in(sources, target, policy, random.randint(2, len(sources)), optional=random.random() < 0.7)
    if random.random() < 0.5:
        back = (random.choice(names), names[0])
        if free([back]):
            yield edge(*back, "superstep < 5")


# A world.


@dataclass
class Play:
    """What happened: inputs, the decision on each as bytes, and the snapshot where it was a boundary."""

    inputs: list[Input] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    snapshots: dict[int, v1.Snapshot] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def written(self) -> list[bytes]:
        return [written(decision) for decision in self.decisions]


def written(decision: Decision) -> bytes:
    """A decision byte for byte."""
    parts = [event.SerializeToString(deterministic=True) for event in decision.events]
    for invocation in decision.invocations:
        message = v1.Invocation()
        put_invocation(invocation, message)
        parts.append(message.SerializeToString(deterministic=True))
    rest = (decision.checkpoint_id, decision.abandoned, decision.timers, decision.outcome)
    return b"\n".join([*parts, repr(rest).encode()])


class World:
    """Executors, clocks and people around one run. `order` picks what comes next; a calm world lets no run fail or be
    disturbed, answers only when nothing else is left to do, and so ends the same in every order."""

    def __init__(self, made: Scenario, order: Random, *, is_calm: bool = False) -> None:
        self.scenario = made
        self.play = Play()
        self._order = order
        self._is_calm = is_calm
        self._flying: dict[tuple[str, int], Input] = {}
        self._late: list[Input] = []
        self._timers: dict[str, int] = {}
        self._questions: dict[str, v1.Question] = {}
        self._resumes = 0

    def run(self, scheduler: RunScheduler, first: Input | None = None) -> Play:
        following: Input | None = first or Begin(number(1))
        while following is not None and len(self.play.inputs) < MOST_INPUTS:
            self._step(scheduler, following)
            following = self._next(scheduler)
        return self.play

    def _step(self, scheduler: RunScheduler, record: Input) -> None:
        try:
            decision = scheduler.step(record)
        except RefusedError:
            self.play.seen["refused"] += 1
            return
        self.play.inputs.append(record)
        self.play.decisions.append(decision)
        if decision.checkpoint_id:
            self.play.snapshots[len(self.play.decisions) - 1] = scheduler.snapshot()
        for event in decision.events:
            self._note(event)
        for invocation in decision.invocations:
            self._flying[invocation.invocation_id, invocation.attempt] = self._end_of(invocation)
            self.play.seen["retried"] += invocation.attempt > 1
            self.play.seen["joined"] += any(delivery.joined for delivery in invocation.deliveries)
            self.play.seen["split"] += "#" in invocation.invocation_id.rpartition("/")[2]
        for timer in decision.timers:
            self._timers[timer.subject_id] = timer.due
        for key in list(self._flying):
            if key[0] in decision.abandoned:
                failure = v1.Failure(kind=v1.FAILURE_KIND_CANCELLED, type="CANCELLED")
                self._flying[key] = Failed(*key, failure)

    def _note(self, event: v1.Event) -> None:
        kind = event.WhichOneof("kind") or ""
        self.play.seen[f"nested {kind}" if event.path else kind] += 1
        if kind == "question_asked":
            self._questions[event.question_asked.question.question_id] = event.question_asked.question
        elif kind == "question_answered":
            self._questions.pop(event.question_answered.question_id, None)
        elif kind == "run_ended":
            self.play.seen[event.run_ended.failure.type or v1.RunState.Name(event.run_ended.state)] += 1

    def _next(self, scheduler: RunScheduler) -> Input | None:
        if scheduler.outcome is not None:
            self._late.clear()
            self._timers.clear()
            if self._is_calm or scheduler.outcome.state not in RESUMABLE or self._resumes == 2:
                return None
            self._resumes += 1
            return Resume(max_supersteps=scheduler.standing().superstep + 3)
        timers = [Fired(v1.TIMER_KIND_RETRY, subject) for subject in self._timers]
        if not self._is_calm:
            chance = self._order.random()
            if chance < 0.01:
                return Cancel("enough")
            if chance < 0.04:
                return Signalled(number(self._order.randint(0, 99)), "", [StateWrite("total", number(1))])
            if self._questions and chance < 0.3:
                return self._answer(self._order.choice(sorted(self._questions)))
            if self._late and chance < 0.4:
                return self._late.pop()
        if self._flying or timers:
            choice = self._order.randrange(len(self._flying) + len(timers))
            if choice >= len(self._flying):
                chosen = timers[choice - len(self._flying)]
                del self._timers[chosen.subject_id]
                return chosen
            return self._flying.pop(list(self._flying)[choice])
        return self._answer(min(self._questions)) if self._questions else None

    def _answer(self, question_id: str) -> Answered:
        return Answered(question_id, number(crc32(question_id.partition("/")[2].encode()) % 100))

    def _end_of(self, invocation: Invocation) -> Input:
        """What this attempt ends in: by its place, its number, and what it got."""
        invocation_id, attempt = invocation.invocation_id, invocation.attempt
        own = invocation_id.partition("/")[2]
        got = repr([[m.payload.data for m in each.messages] for each in invocation.deliveries])
        state = sorted((key, value.data) for key, value in invocation.state.items())
        random = Random(f"{self.scenario.seed} {own} {attempt} {got} {state} {invocation.private_state}")
        chance = random.random()
        policy = self._policy(own)
        may_fail = attempt < policy.max_attempts if self._is_calm else True
        may_be_lost = attempt <= policy.max_redeliveries if self._is_calm else True
        if chance < 0.10 and may_fail and not (self._is_calm and attempt > 1):
            failure = v1.Failure(kind=v1.FAILURE_KIND_APPLICATION, type="Broken")
            return Failed(invocation_id, attempt, failure, jitter=random.choice((0.0, 1.0)))
        completed = Completed(invocation_id, attempt, self._outcome(random, invocation, own))
        if 0.10 < chance < 0.20 and may_be_lost and not (self._is_calm and attempt > 1):
            if not self._is_calm and random.random() < 0.5:
                self._late.append(completed)
            return Failed(invocation_id, attempt, v1.Failure(kind=v1.FAILURE_KIND_EXECUTOR_LOST), jitter=1.0)
        return completed

    def _node(self, own: str) -> v1.Node:
        definition = self.scenario.definition
        places = [part.partition("#")[0] for part in own.split("/")[1::2]]
        for place in places[:-1]:
            found = next(each for each in definition.graph.nodes if each.id == place)
            definition = next(
                each for each in definition.nested if each.definition_name == found.nested.definition_name
            )
        return next(each for each in definition.graph.nodes if each.id == places[-1])

    def _policy(self, own: str) -> v1.RetryPolicy:
        return self._node(own).retry_policy

    def _outcome(self, random: Random, invocation: Invocation, own: str) -> Effects | Suspended:
        made = self._node(own)
        if random.random() < 0.06:
            return Suspended([v1.Question(question_id=f"w{invocation.attempt}", payload=number(0))], [], number(7))
        sent = [
            Message(f"{invocation.invocation_id}/{ordinal}", made.id, number(random.randint(0, 99)))
            for ordinal in range(1, random.choice((2, 2, 2, 3, 4)))
        ]
        writes = [StateWrite(key, self._value(key, random)) for key in POLICIES if random.random() < 0.25]
        if random.random() < 0.03 and self.scenario.max_invocation_bytes > 100:
            writes.append(StateWrite("mine", number(1)))
        asked = [v1.Question(question_id="q", payload=number(1))] if random.random() < 0.12 else []
        noted = [v1.CustomEvent(name="noted", data=number(random.randint(0, 9)))] if random.random() < 0.1 else []
        effects = Effects(sent, [number(random.randint(0, 99))] if random.random() < 0.3 else [], writes, asked, noted)
        if made.handoff_node_ids and random.random() < 0.3:
            effects.handoff = v1.Handoff(target_node_id=made.handoff_node_ids[0], payload=number(random.randint(0, 99)))
        if made.concurrency == 1 and random.random() < 0.3:
            effects.private_state = number(random.randint(0, 99))
        return effects

    def _value(self, key: str, random: Random) -> v1.Payload:
        value = random.randint(0, 99)
        return v1.Payload(type="map<int>", data=b'{"k%d":%d}' % (value % 3, value)) if key == "map" else number(value)


def played(seed: int, *, order: int = 0, is_calm: bool = False) -> Play:
    made = scenario(seed)
    scheduler = RunScheduler(made.topology, made.info())
    return World(made, Random(order), is_calm=is_calm).run(scheduler)


def digest(count: int) -> str:
    found = sha256()
    for seed in range(count):
        play = played(seed, order=seed)
        found.update(b"\n\n".join(play.written))
        for snapshot in play.snapshots.values():
            found.update(snapshot.SerializeToString(deterministic=True))
    return found.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest(int(sys.argv[1])))
