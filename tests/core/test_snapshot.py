"""A saved scheduler: what is in it, whose it is, and what it is not (G34, G35)."""

import pytest

from hocket import v1
from hocket.errors import RefusedError
from hocket.records import Answered, Begin, Cancel, Completed, Effects, Failed, Message, Resume, StateWrite, Suspended
from hocket.wire import SECOND, time_from
from hocket_server.core.run import RunScheduler, restore
from hocket_server.core.scheduler import SNAPSHOT_FORMAT, Hooks, RunInfo, Timer
from hocket_server.core.topology import Topology, compile_topology
from tests.core.language import definition, duration, plain


def compiled(*lines: str) -> Topology:
    made = definition(list(lines), {})
    made.signature = b"signature"
    return compile_topology(made)


def info(run_id: str = "r") -> RunInfo:
    return RunInfo(run_id, Hooks(plain))


def text(value: str) -> v1.Payload:
    return v1.Payload(type="string", data=b'"%s"' % value.encode())


def sent(*values: str) -> list[Message]:
    return [Message(f"m{number}", "", text(value)) for number, value in enumerate(values)]


def begun(topology: Topology, *, run_timeout: int = 0) -> RunScheduler:
    scheduler = RunScheduler(topology, info(), run_timeout=run_timeout)
    scheduler.step(Begin(text("x"), time=5 * SECOND))
    return scheduler


GRAPH = ("start: a", "a -> b, c", "node b: max_attempts 2", "b, c => j", "state log append")


def test_a_snapshot_says_what_it_is_of() -> None:
    snapshot = begun(compiled(*GRAPH), run_timeout=60 * SECOND).snapshot()
    assert (snapshot.format, snapshot.signature) == (SNAPSHOT_FORMAT, b"signature")
    assert (snapshot.input, snapshot.state) == (text("x"), v1.RUN_STATE_RUNNING)
    assert time_from(snapshot.deadline) == 65 * SECOND
    assert snapshot.latest_checkpoint_id == "r/0"


def test_ids_are_saved_as_positions_so_that_another_run_can_begin_with_them() -> None:
    scheduler = begun(compiled("start: a"))
    asked = v1.Question(question_id="q", payload=text("?"), expires_in=duration(9))
    scheduler.step(Completed("r/1/a", 1, Effects(questions=[asked])))
    graph = scheduler.snapshot().graph
    assert [each.question.question_id for each in graph.questions] == ["1/a/q"]
    scheduler.step(Answered("r/1/a/q", text("yes")))
    graph = scheduler.snapshot().graph
    assert [each.question_id for each in graph.closed_questions] == ["1/a/q"]
    assert [each.messages[0].question_id for each in graph.work[0].deliveries] == ["1/a/q"]


def test_what_is_held_back_and_what_is_done_is_in_it() -> None:
    scheduler = begun(compiled(*GRAPH))
    first = Effects(messages=sent("1"), state_writes=[StateWrite("log", text("a"))], private_state=text("mine"))
    scheduler.step(Completed("r/1/a", 1, first))
    scheduler.step(Completed("r/2/b", 1, Effects(messages=sent("b"), outputs=[text("out")])))
    graph = scheduler.snapshot().graph
    assert graph.private_state["a"] == text("mine")
    assert {key: plain(value) for key, value in graph.state.items()} == {"log": ["a"]}
    done, running = graph.work
    assert (done.state, list(done.effects.outputs)) == (v1.WORK_STATE_DONE, [text("out")])
    assert (running.state, running.attempt) == (v1.WORK_STATE_RUNNING, 1)
    assert running.position == v1.GraphPosition(superstep=2, node_id="c")


def test_a_join_is_saved_by_its_edge_group_and_by_source_in_declared_order() -> None:
    scheduler = begun(compiled("start: a", "a -> b, c, d", "d, c, b => j", "b -> b2"))
    scheduler.step(Completed("r/1/a", 1, Effects(messages=sent("1"))))
    for node in ("b", "c"):
        message = Message("m", node, text(node))
        scheduler.step(Completed(f"r/2/{node}", 1, Effects(messages=[message])))
    scheduler.step(Completed("r/2/d", 1, Effects()))
    (join,) = scheduler.snapshot().graph.joins
    assert [message.source_node_id for message in join.messages] == ["c", "b"]
    assert (join.edge_group_id, join.fired) == ("fan_in:1", False)


def test_budgets_and_the_time_of_a_retry_survive() -> None:
    topology = compiled(*GRAPH)
    scheduler = begun(topology)
    scheduler.step(Completed("r/1/a", 1, Effects(messages=sent("1"))))
    broken = v1.Failure(kind=v1.FAILURE_KIND_APPLICATION, type="Broken")
    scheduler.step(Failed("r/2/b", 1, broken, last_progress=text("half"), time=10 * SECOND, jitter=1.0))
    restored = restore(topology, info(), scheduler.snapshot())
    assert restored.timers() == [Timer(v1.TIMER_KIND_RETRY, "r/2/b", 11 * SECOND)]
    assert restored.in_flight() == scheduler.in_flight() == [("r/2/c", 1)]
    work = restored.snapshot().graph.work[0]
    assert (work.failures, work.redeliveries, work.last_failure) == (1, 0, broken)
    assert work.last_progress == text("half")


def test_timers_of_questions_and_of_the_run_are_set_again() -> None:
    topology = compiled("start: a")
    scheduler = begun(topology, run_timeout=60 * SECOND)
    asked = v1.Question(question_id="q", payload=text("?"), expires_in=duration(9))
    scheduler.step(Completed("r/1/a", 1, Effects(questions=[asked]), time=6 * SECOND))
    restored = restore(topology, info(), scheduler.snapshot(), run_timeout=60 * SECOND)
    assert restored.timers() == [
        Timer(v1.TIMER_KIND_QUESTION, "r/1/a/q", 15 * SECOND),
        Timer(v1.TIMER_KIND_RUN, "", 65 * SECOND),
    ]


def test_a_suspended_handler_keeps_its_continuation_and_what_it_waits_for() -> None:
    topology = compiled("start: a")
    scheduler = begun(topology)
    asked = [v1.Question(question_id=key, payload=text("?")) for key in ("one", "two")]
    scheduler.step(Completed("r/1/a", 1, Suspended(asked, continuation=text("history"))))
    (saved,) = scheduler.snapshot().graph.suspended
    assert list(saved.waits_for) == ["1/a/one", "1/a/two"]
    restored = restore(topology, info(), scheduler.snapshot())
    assert restored.state == v1.RUN_STATE_WAITING
    assert restored.step(Answered("r/1/a/one", text("1"))).invocations == []
    (invocation,) = restored.step(Answered("r/1/a/two", text("2"))).invocations
    assert (invocation.invocation_id, invocation.attempt) == ("r/1/a", 2)
    assert invocation.continuation == text("history")


def test_an_ended_run_is_restored_as_ended() -> None:
    topology = compiled("start: a")
    scheduler = begun(topology)
    scheduler.step(Cancel("enough"))
    scheduler.step(Failed("r/1/a", 1, v1.Failure(kind=v1.FAILURE_KIND_CANCELLED)))
    restored = restore(topology, info(), scheduler.snapshot())
    assert restored.state == v1.RUN_STATE_CANCELLED
    assert restored.outcome is not None
    assert restored.outcome.failure == v1.Failure(
        kind=v1.FAILURE_KIND_CANCELLED, type="CANCELLED", message="enough", source="run"
    )
    assert (restored.in_flight(), restored.timers()) == ([], [])
    assert [each.attempt for each in restored.step(Resume()).invocations] == [2]


def test_a_fork_counts_attempts_and_budgets_anew_under_its_own_name() -> None:
    topology = compiled(*GRAPH)
    scheduler = begun(topology, run_timeout=60 * SECOND)
    lost = v1.Failure(kind=v1.FAILURE_KIND_EXECUTOR_LOST)
    scheduler.step(Failed("r/1/a", 1, lost))
    snapshot = scheduler.snapshot()
    before = snapshot.SerializeToString(deterministic=True)
    fork = restore(topology, info("f"), snapshot, run_timeout=60 * SECOND, is_fork=True)
    decision = fork.step(Resume(parent_checkpoint_id="r/0", time=100 * SECOND))
    assert [(each.invocation_id, each.attempt, each.run_id) for each in decision.invocations] == [("f/1/a", 1, "f")]
    assert decision.events[0].run_started.parent_checkpoint_id == "r/0"
    assert decision.checkpoint_id == "f/0"
    assert fork.timers() == [Timer(v1.TIMER_KIND_RUN, "", 160 * SECOND)]
    assert fork.snapshot().graph.work[0].redeliveries == 0
    assert snapshot.SerializeToString(deterministic=True) == before


def test_a_fork_may_begin_with_other_state() -> None:
    topology = compiled(*GRAPH)
    scheduler = begun(topology)
    writes = [StateWrite("kept", text("k")), StateWrite("gone", text("g")), StateWrite("log", text("one"))]
    scheduler.step(Completed("r/1/a", 1, Effects(messages=sent("1"), state_writes=writes)))
    fork = restore(topology, info("f"), scheduler.snapshot(), is_fork=True)
    overrides = [StateWrite("gone", None), StateWrite("log", text("replaced, not appended"))]
    fork.step(Resume(parent_checkpoint_id="r/1", state_overrides=overrides))
    assert {key: plain(value) for key, value in fork.shared_state.items()} == {
        "kept": "k",
        "log": "replaced, not appended",
    }
    assert plain(scheduler.shared_state["log"]) == ["one"]


def test_a_newer_format_is_refused() -> None:
    topology = compiled("start: a")
    snapshot = begun(topology).snapshot()
    snapshot.format = SNAPSHOT_FORMAT + 1
    with pytest.raises(RefusedError, match=f"format {SNAPSHOT_FORMAT + 1}, this server knows up to {SNAPSHOT_FORMAT}"):
        restore(topology, info(), snapshot)


def test_a_snapshot_is_not_changed_by_what_happens_after() -> None:
    scheduler = begun(compiled(*GRAPH))
    snapshot = scheduler.snapshot()
    before = snapshot.SerializeToString(deterministic=True)
    scheduler.step(Completed("r/1/a", 1, Effects(messages=sent("1"), state_writes=[StateWrite("log", text("a"))])))
    assert snapshot.SerializeToString(deterministic=True) == before
