"""The three laws of the core, over random graphs in random worlds (`scenarios`).

(a) `step` is deterministic, byte for byte, in any process. (b) A superstep is confluent: any order of its completions gives
the same next round. (c) Restored equals uninterrupted.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from hocket import v1
from hocket.records import Input, Resume
from hocket.wire import input_from, input_to
from hocket_server.core.run import RunScheduler, restore
from tests.core.scenarios import MOST_INPUTS, Play, Scenario, World, digest, played, scenario, written

pytestmark = pytest.mark.law

ROOT = Path(__file__).resolve().parents[2]
SEEDS = st.integers(0, 2**32)


def journaled(record: Input) -> Input:
    return input_from(v1.Input.FromString(input_to(record).SerializeToString()))


def stored(snapshot: v1.Snapshot) -> v1.Snapshot:
    return v1.Snapshot.FromString(snapshot.SerializeToString())


def saved(snapshot: v1.Snapshot) -> bytes:
    return snapshot.SerializeToString(deterministic=True)


def test_the_scenarios_cover_what_the_laws_are_about() -> None:
    seen: Counter[str] = Counter()
    for seed in range(100):
        seen += played(seed, order=seed).seen
    wanted = {
        *("joined", "split", "retried", "handed_off", "custom", "message_dropped", "output_yielded", "signal_received"),
        *("question_asked", "question_answered", "invocation_suspended", "run_cancel_requested", "run_resumed"),
        *("nested superstep_completed", "nested question_answered", "nested output_yielded"),
        *("RUN_STATE_COMPLETED", "RUN_STATE_LIMIT_REACHED", "CANCELLED", "Broken", "CONFLICT", "JOIN_STARVED"),
    }
    assert {each: seen[each] for each in wanted if seen[each] < 3} == {}
    assert seen["joined"] > 100
    assert seen["retried"] > 300


# Law a: determinism


@given(SEEDS, SEEDS)
def test_a_step_is_deterministic(seed: int, order: int) -> None:
    assert played(seed, order=order).written == played(seed, order=order).written


@pytest.mark.process
def test_a_step_is_deterministic_in_any_process() -> None:
    path = os.pathsep.join(str(ROOT / part) for part in ("client/python", "server", "."))

    def digest_under(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        command = [sys.executable, "-m", "tests.core.scenarios", "150"]
        return subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    assert digest_under("1") == digest_under("2") == digest(150)


# Law b: confluence


def normalised(snapshot: v1.GraphSnapshot) -> v1.GraphSnapshot:
    """Apart from the order in which what was set aside came to wait, and in which questions were closed."""
    made = v1.GraphSnapshot()
    made.CopyFrom(snapshot)
    made.suspended.sort(key=lambda work: (work.position.superstep, work.position.node_id, work.position.delivery))
    made.children.sort(key=lambda child: (child.position.superstep, child.position.node_id, child.position.delivery))
    made.questions.sort(key=lambda each: each.question.question_id)
    made.closed_questions.sort(key=lambda each: each.question_id)
    made.work.sort(key=lambda work: (work.position.superstep, work.position.node_id, work.position.delivery))
    for child in made.children:
        child.snapshot.graph.CopyFrom(normalised(child.snapshot.graph))
    return made


def is_final_failure(each: v1.Event) -> bool:
    return each.HasField("invocation_failed") and not each.invocation_failed.will_retry


def is_told_at_once(each: v1.Event) -> bool:
    """What happened to an invocation, and what a handler asks that stops for the answer (`w` in the scenarios)."""
    if each.HasField("question_asked"):
        return each.question_asked.question.question_id.rpartition("/")[2].startswith("w")
    return (each.WhichOneof("kind") or "").startswith("invocation_")


def rounds(play: Play) -> list[tuple[list[bytes], bytes, list[str], bytes]]:
    """Of each boundary of the run itself: its own events, what it hands out, how it ends, and what is saved."""
    found = []
    for index, snapshot in play.snapshots.items():
        decision = play.decisions[index]
        if decision.checkpoint_id.count("/") > 1:
            continue
        events = [
            each.SerializeToString(deterministic=True)
            for each in decision.events
            if not each.path and not is_told_at_once(each)
        ]
        graph = normalised(snapshot.graph).SerializeToString(deterministic=True)
        found.append((events, repr(decision.outcome).encode(), [i.invocation_id for i in decision.invocations], graph))
    return found


def happened(play: Play) -> Counter[bytes]:
    """Every event there was, in no order; which nested boundary coincides with which is a matter of order."""
    found: Counter[bytes] = Counter()
    for decision in play.decisions:
        for each in decision.events:
            plain = v1.Event()
            plain.CopyFrom(each)
            if plain.HasField("superstep_completed"):
                plain.superstep_completed.ClearField("checkpoint_id")
            found[plain.SerializeToString(deterministic=True)] += 1
    return found


@given(SEEDS, SEEDS, SEEDS)
def test_a_superstep_is_confluent(seed: int, order: int, other: int) -> None:
    one, two = played(seed, order=order, is_calm=True), played(seed, order=other, is_calm=True)
    event("another order" if one.inputs != two.inputs else "the same order")
    if len(one.inputs) == MOST_INPUTS or len(two.inputs) == MOST_INPUTS:
        shorter = min(len(rounds(one)), len(rounds(two)))
        assert rounds(one)[:shorter] == rounds(two)[:shorter]
        return
    assert rounds(one) == rounds(two)
    # How far its siblings came when a nested run has failed is a matter of order.
    if not any(is_final_failure(each) for play in (one, two) for made in play.decisions for each in made.events):
        assert happened(one) == happened(two)


def test_the_worlds_of_the_confluence_law_are_worth_it() -> None:
    """Most pairs of plays differ in order and run for several rounds, joins and questions included."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        one, two = played(seed, order=1, is_calm=True), played(seed, order=2, is_calm=True)
        seen += one.seen
        seen["another order"] += one.inputs != two.inputs
        seen["rounds"] += len(rounds(one))
    assert seen["another order"] > 30
    assert seen["rounds"] > 120
    assert {
        each: seen[each] for each in ("joined", "retried", "question_answered", "handed_off") if seen[each] < 10
    } == {}


# Law c: restoring


@given(SEEDS, SEEDS)
@settings(max_examples=30)
def test_restored_equals_uninterrupted(seed: int, order: int) -> None:
    """From every boundary: the snapshot as it is stored, then the inputs after it as they are journaled."""
    made = scenario(seed)
    play = World(made, Random(order)).run(RunScheduler(made.topology, made.info()))
    event(f"{min(len(play.snapshots), 5)} boundaries")
    # Each third of them is enough: a run has dozens, and what follows is compared to its end.
    for index, snapshot in list(play.snapshots.items())[order % 3 :: 3]:
        scheduler = restore(made.topology, made.info(), stored(snapshot))
        assert saved(scheduler.snapshot()) == saved(snapshot)
        for place in range(index + 1, len(play.inputs)):
            decision = scheduler.step(journaled(play.inputs[place]))
            assert written(decision) == play.written[place], f"input {place} after boundary {index}"
            if place in play.snapshots:
                assert saved(scheduler.snapshot()) == saved(play.snapshots[place])


def forked(made: Scenario, snapshot: v1.Snapshot, order: int) -> Play:
    scheduler = restore(made.topology, made.info("fork"), stored(snapshot), is_fork=True)
    return World(made, Random(order)).run(scheduler, Resume(parent_checkpoint_id=snapshot.latest_checkpoint_id))


@given(SEEDS, SEEDS)
@settings(max_examples=50)
def test_a_checkpoint_forked_twice_gives_the_same_twice(seed: int, order: int) -> None:
    """G21; and what the first fork did has not changed the checkpoint."""
    made = scenario(seed)
    play = World(made, Random(order)).run(RunScheduler(made.topology, made.info()))
    for snapshot in list(play.snapshots.values())[:4]:
        before = saved(snapshot)
        assert forked(made, snapshot, order).written == forked(made, snapshot, order).written
        assert saved(snapshot) == before


@given(SEEDS, SEEDS)
def test_a_fork_names_its_checkpoints_as_its_own_and_each_once(seed: int, order: int) -> None:
    made = scenario(seed)
    play = World(made, Random(order)).run(RunScheduler(made.topology, made.info()))
    for snapshot in list(play.snapshots.values())[-2:]:
        names = [d.checkpoint_id for d in forked(made, snapshot, order).decisions if d.checkpoint_id]
        assert len(set(names)) == len(names)
        assert [name for name in names if not name.startswith("fork/")] == []


# What holds in every run.


@given(SEEDS, SEEDS)
def test_checkpoints_attempts_and_ends_have_no_gap(seed: int, order: int) -> None:
    play = played(seed, order=order)
    names = [decision.checkpoint_id for decision in play.decisions if decision.checkpoint_id]
    assert len(set(names)) == len(names)
    own = [int(name.removeprefix("r/")) for name in names if name.count("/") == 1]
    assert own == list(range(len(own)))
    attempts: dict[str, int] = {}
    is_over = True
    for decision in play.decisions:
        for invocation in decision.invocations:
            assert invocation.attempt == attempts.get(invocation.invocation_id, 0) + 1
            attempts[invocation.invocation_id] = invocation.attempt
        for index, each in enumerate(decision.events):
            if each.HasField("run_started") or each.HasField("run_resumed"):
                assert is_over
                is_over = False
            elif each.HasField("run_ended"):
                assert index == len(decision.events) - 1
                is_over = True
            else:
                assert not is_over


@given(SEEDS, SEEDS)
def test_an_attempt_ends_once(seed: int, order: int) -> None:
    """Save a lost one, which may complete late: its loss was no end."""
    ended: Counter[tuple[str, int]] = Counter()
    for decision in played(seed, order=order).decisions:
        for each in decision.events:
            if is_final_failure(each) or each.HasField("invocation_completed") or each.HasField("invocation_suspended"):
                ended[each.invocation_id, each.attempt] += 1
    assert {key: count for key, count in ended.items() if count > 1} == {}
