"""What every store keeps its word on (`hocket_server.store.protocol`). Written once: a store's own test file subclasses
`StoreConformance` and gives it a fixture `store`, empty and of its own for each test."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hocket import v1
from hocket.errors import NotFoundError, RunExistsError
from hocket.payload import Codec
from hocket.records import Answered, Begin, Completed, Effects, Input, Message, StateWrite
from hocket_server.core.scheduler import Outcome, Standing
from hocket_server.store.protocol import Entry, Start, Store

CREATED = 1_700_000_000_000_000_000
RUNNING = v1.RUN_STATE_RUNNING


def text(value: str) -> v1.Payload:
    return Codec().encode(value)


def started(run_id: str) -> Start:
    definition = v1.Definition(definition_name="tale", version=3, signature=b"signature")
    definition.graph.start_node_id = "n"
    return Start(
        run_id,
        definition,
        namespace="space",
        max_supersteps=7,
        run_timeout=5,
        labels={"who": "me"},
        trace_context=v1.TraceContext(traceparent="00-1-2-01"),
    )


def event(run_id: str, sequence: int, custom: v1.CustomEvent | None = None) -> v1.Event:
    made = v1.Event(run_id=run_id, sequence=sequence, custom=custom)
    made.time.FromNanoseconds(CREATED + sequence)
    return made


def standing(
    state: v1.RunState.ValueType = RUNNING,
    superstep: int = 0,
    checkpoint_id: str = "",
    *,
    questions: Sequence[v1.Question] = (),
    outcome: Outcome | None = None,
) -> Standing:
    return Standing(state, superstep, checkpoint_id, list(questions), outcome)


def completed(number: int) -> Completed:
    message = Message(f"m{number}", "n", text(f"message {number}"))
    effects = Effects([message], state_writes=[StateWrite("key", text(str(number))), StateWrite("gone", None)])
    return Completed(f"run/{number}/n", 1, effects, time=CREATED + number)


class Tale:
    """A run written into a store, input by input: every input has one event."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.store, self.run_id = store, run_id
        self.inputs: list[Input] = []
        self.events: list[v1.Event] = []

    async def begin(self) -> Tale:
        await self.store.create(started(self.run_id), CREATED)
        return self

    def entry(self, record: Input, *, checkpoint_id: str = "", snapshot: v1.Snapshot | None = None) -> Entry:
        made = event(self.run_id, len(self.events) + 1, custom=v1.CustomEvent(name=f"input {len(self.inputs)}"))
        self.inputs.append(record)
        self.events.append(made)
        return Entry(record, [made.SerializeToString()], [], checkpoint_id, snapshot)

    async def tell(self, record: Input, *, checkpoint_id: str = "", snapshot: v1.Snapshot | None = None) -> None:
        entry = self.entry(record, checkpoint_id=checkpoint_id, snapshot=snapshot)
        await self.store.commit(self.run_id, [entry], standing(checkpoint_id=checkpoint_id))

    async def end(self, state: v1.RunState.ValueType = v1.RUN_STATE_COMPLETED) -> None:
        entry = self.entry(completed(99))
        await self.store.commit(self.run_id, [entry], standing(state, outcome=Outcome(state)))


async def log(store: Store, run_id: str, after: int = 0, limit: int = 1000) -> list[v1.Event]:
    return [v1.Event.FromString(encoded) for encoded in await store.log(run_id, after, limit)]


class StoreConformance:
    # Runs

    async def test_a_run_is_there_once_it_is_created_and_pending_until_its_first_commit(self, store: Store) -> None:
        await store.create(started("run"), CREATED)
        run = await store.run("run")
        assert (run.run_id, run.namespace, run.definition_name, run.definition_version) == ("run", "space", "tale", 3)
        assert dict(run.labels) == {"who": "me"}
        assert run.create_time.ToNanoseconds() == CREATED
        assert (run.state, run.last_sequence) == (v1.RUN_STATE_PENDING, 0)
        assert await store.state("run") == v1.RUN_STATE_PENDING
        assert await log(store, "run") == []
        assert not run.HasField("end_time")

    async def test_a_run_id_is_taken_once(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        await tale.tell(Begin(text("x")))
        with pytest.raises(RunExistsError, match="'run'"):
            await store.create(started("run"), CREATED + 1)
        assert await log(store, "run") == tale.events, "the first is untouched"

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        await store.create(started("other"), CREATED)
        for asking in (
            store.run("run"),
            store.state("run"),
            store.load("run"),
            store.log("run", 0, 10),
            store.checkpoints("run"),
            store.delete("run"),
            store.commit("run", [], standing()),
            store.load_checkpoint("run/0"),
            store.load_checkpoint("other/0"),
        ):
            with pytest.raises(NotFoundError):
                await asking

    async def test_runs_are_listed_newest_first(self, store: Store) -> None:
        for number in range(3):
            await store.create(started(f"run{number}"), CREATED + number)
        assert [run.run_id for run in await store.runs()] == ["run2", "run1", "run0"]

    async def test_a_run_shows_what_it_was_told_last(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        question = v1.Question(question_id="run/1/n/1", node_id="n", payload=text("?"))
        entries = [
            Entry(
                Begin(text("x")),
                [event("run", 1).SerializeToString()],
                outputs=[text("one"), text("two")],
                checkpoint_id="run/0",
            ),
            Entry(completed(1), [event("run", 2).SerializeToString()], outputs=[text("three")]),
        ]
        await store.commit(tale.run_id, entries, standing(v1.RUN_STATE_WAITING, 4, "run/0", questions=[question]))
        run = await store.run("run")
        assert (run.state, run.superstep, run.last_sequence) == (v1.RUN_STATE_WAITING, 4, 2)
        assert run.latest_checkpoint_id == "run/0"
        assert list(run.outputs) == [text("one"), text("two"), text("three")]
        assert list(run.open_questions) == [question]

        failure = v1.Failure(kind=v1.FAILURE_KIND_APPLICATION, message="broken")
        outcome = Outcome(v1.RUN_STATE_FAILED, "broken", failure, converged_without_output=True)
        last = Entry(completed(2), [event("run", 3).SerializeToString()])
        await store.commit("run", [last], standing(v1.RUN_STATE_FAILED, 5, "run/0", outcome=outcome))
        run = await store.run("run")
        assert (run.state, run.reason, run.failure) == (v1.RUN_STATE_FAILED, "broken", failure)
        assert run.converged_without_output
        assert run.end_time.ToNanoseconds() == CREATED + 2, "when its last input was taken"
        assert not run.open_questions
        assert list(run.outputs) == [text("one"), text("two"), text("three")]

        # It is resumed: nothing of its end is left.
        again = Entry(completed(3), [event("run", 4).SerializeToString()])
        await store.commit("run", [again], standing(RUNNING, 5, "run/0"))
        run = await store.run("run")
        assert (run.state, run.reason) == (RUNNING, "")
        assert not run.HasField("failure")
        assert not run.HasField("end_time")

    async def test_what_is_given_out_is_a_copy(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        await tale.tell(Begin(text("x")))
        run = await store.run("run")
        run.reason = "mine"
        del run.labels["who"]
        events = await store.log("run", 0, 10)
        events.clear()
        saved = await store.load("run")
        saved.inputs.clear()
        assert (await store.run("run")).reason == ""
        assert dict((await store.run("run")).labels) == {"who": "me"}
        assert len(await store.log("run", 0, 10)) == 1
        assert len((await store.load("run")).inputs) == 1

    # The log

    async def test_the_log_is_read_strictly_after_a_cursor_in_parts(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        for number in range(10):
            await tale.tell(completed(number))
        assert await log(store, "run") == tale.events
        for after in range(11):
            assert await log(store, "run", after, 3) == tale.events[after : after + 3]
        assert await log(store, "run", 10) == []

    async def test_an_input_without_events_is_journaled_all_the_same(self, store: Store) -> None:
        await store.create(started("run"), CREATED)
        await store.commit("run", [Entry(completed(1), [])], standing())
        assert (await store.load("run")).inputs == [completed(1)]
        assert await log(store, "run") == []

    async def test_runs_do_not_see_each_other(self, store: Store) -> None:
        # One id is the beginning of another.
        tales = [await Tale(store, run_id).begin() for run_id in ("run", "run1", "run10")]
        for number in range(3):
            for tale in tales:
                await tale.tell(completed(number), checkpoint_id=f"{tale.run_id}/{number}")
        for tale in tales:
            assert await log(store, tale.run_id) == tale.events
            ids = [checkpoint.checkpoint_id for checkpoint in await store.checkpoints(tale.run_id)]
            assert ids == [f"{tale.run_id}/{number}" for number in range(3)]
            saved = await store.load_checkpoint(f"{tale.run_id}/1")
            assert (saved.start.run_id, len(saved.inputs)) == (tale.run_id, 2)

    # Journal, snapshots, checkpoints

    async def test_a_run_is_its_start_and_the_inputs_since(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        records: list[Input] = [Begin(text("x"), time=1), completed(1), Answered("q", text("yes"), "me", time=2)]
        for record in records:
            await tale.tell(record)
        saved = await store.load("run")
        assert saved.start == started("run")
        assert saved.snapshot is None
        assert saved.inputs == records

    async def test_inputs_of_one_commit_keep_their_order(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        entries = [tale.entry(completed(number)) for number in range(20)]
        await store.commit("run", entries, standing())
        assert (await store.load("run")).inputs == tale.inputs
        assert await log(store, "run") == tale.events

    async def test_a_snapshot_stands_for_the_inputs_before_it(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        await tale.tell(Begin(text("x")), checkpoint_id="run/0")
        snapshot = v1.Snapshot(format=1, latest_checkpoint_id="run/1", input=text("x"))
        await tale.tell(completed(1), checkpoint_id="run/1", snapshot=snapshot)
        saved = await store.load("run")
        assert (saved.snapshot, saved.inputs) == (snapshot, [])
        await tale.tell(completed(2))
        saved = await store.load("run")
        assert (saved.snapshot, saved.inputs) == (snapshot, [completed(2)])

    async def test_a_checkpoint_is_a_snapshot_and_the_inputs_up_to_the_boundary(self, store: Store) -> None:
        """By law (c) that is the same as a snapshot taken there."""
        tale = await Tale(store, "run").begin()
        await tale.tell(Begin(text("x")), checkpoint_id="run/0")
        await tale.tell(completed(1))
        await tale.tell(completed(2), checkpoint_id="run/1")
        snapshot = v1.Snapshot(format=1, latest_checkpoint_id="run/2")
        await tale.tell(completed(3), checkpoint_id="run/2", snapshot=snapshot)
        await tale.tell(completed(4))
        await tale.tell(completed(5), checkpoint_id="run/3")
        await tale.tell(completed(6))
        found = {}
        for number in range(4):
            saved = await store.load_checkpoint(f"run/{number}")
            found[number] = (saved.snapshot is not None, len(saved.inputs))
            if saved.snapshot is None:
                assert saved.inputs == tale.inputs[: len(saved.inputs)]
        # Of checkpoint 2 either form will do: the snapshot taken there, or all inputs up to it.
        assert found.pop(2) in ((True, 0), (False, 4))
        assert found == {0: (False, 1), 1: (False, 3), 3: (True, 2)}

    async def test_every_checkpoint_that_is_listed_can_be_loaded_and_the_newest_is_the_run_s(
        self, store: Store
    ) -> None:
        tale = await Tale(store, "run").begin()
        for number in range(40):
            checkpoint_id = f"run/{number}"
            snapshot = v1.Snapshot(latest_checkpoint_id=checkpoint_id) if number % 10 == 9 else None
            await tale.tell(completed(number), checkpoint_id=checkpoint_id, snapshot=snapshot)
        listed = await store.checkpoints("run")
        assert listed[-1].checkpoint_id == (await store.run("run")).latest_checkpoint_id == "run/39"
        assert len(listed) >= 2
        supersteps = [checkpoint.superstep for checkpoint in listed]
        assert supersteps == list(range(supersteps[0], 40)), "without a gap, oldest first"
        for before, checkpoint in zip([None, *listed], listed, strict=False):
            saved = await store.load_checkpoint(checkpoint.checkpoint_id)
            reached = 0 if saved.snapshot is None else int(saved.snapshot.latest_checkpoint_id.partition("/")[2]) + 1
            assert reached + len(saved.inputs) == checkpoint.superstep + 1
            assert (checkpoint.run_id, checkpoint.signature) == ("run", b"signature")
            if before is not None:
                assert checkpoint.parent_checkpoint_id == before.checkpoint_id

    async def test_a_nested_boundary_is_a_checkpoint_too(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        await tale.tell(completed(1), checkpoint_id="run/1/inner/1")
        [checkpoint] = await store.checkpoints("run")
        assert (checkpoint.checkpoint_id, checkpoint.superstep) == ("run/1/inner/1", 1)
        assert len((await store.load_checkpoint("run/1/inner/1")).inputs) == 1

    async def test_a_fork_begins_with_its_snapshot(self, store: Store) -> None:
        start = started("fork")
        start.parent_run_id, start.parent_checkpoint_id = "run", "run/4"
        start.snapshot = v1.Snapshot(format=1, latest_checkpoint_id="run/4")
        await store.create(start, CREATED)
        run = await store.run("fork")
        assert (run.parent_run_id, run.parent_checkpoint_id) == ("run", "run/4")
        saved = await store.load("fork")
        assert saved.snapshot == start.snapshot
        assert saved.start == start

    async def test_what_is_deleted_is_gone_and_its_id_is_free(self, store: Store) -> None:
        tale = await Tale(store, "run").begin()
        other = await Tale(store, "other").begin()
        for each in (tale, other):
            await each.tell(completed(1), checkpoint_id=f"{each.run_id}/1")
            await each.end()
        await store.delete("run")
        with pytest.raises(NotFoundError):
            await store.run("run")
        with pytest.raises(NotFoundError):
            await store.load_checkpoint("run/1")
        assert [run.run_id for run in await store.runs()] == ["other"]
        await store.create(started("run"), CREATED)
        assert await log(store, "run") == []
