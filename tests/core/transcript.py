"""Plays a transcript: inputs to a run and what its scheduler decides, the specification of the graph in text files.

A file is a sentence that says the rule, then blocks of input lines, `----` and what is expected; the first holds the graph
(`language`). Inputs are dated by a clock that `wait` moves. An attempt's end is by default that of the attempt handed out
last, `2/a@1` is another's. Ids are shown without the run's. Each decision is also held against what all of them promise:
a refused input has changed nothing, an attempt is announced and handed out, the last event of a run says how it ended.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hocket import v1
from hocket.errors import HocketError
from hocket.records import (
    Answered,
    Begin,
    Cancel,
    Completed,
    Failed,
    Fired,
    Input,
    Resume,
    Signalled,
    StateWrite,
)
from hocket.wire import SECOND, input_from, input_to
from hocket_server.core.run import RunScheduler, restore
from hocket_server.core.scheduler import Decision, Hooks, RunInfo
from hocket_server.core.topology import compile_topology
from hocket_server.core.validate import validate
from tests.core.language import FAILURES, Words, definition, failure, outcome, plain
from tests.core.show import Show, value


class Block(NamedTuple):
    lines: list[str]
    expected: str


def read(path: Path) -> tuple[str, list[Block]]:
    """The sentence at the head of a transcript, and its blocks."""
    lines = path.read_text().splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    blocks: list[Block] = []
    for part in "\n".join(lines[end:]).strip("\n").split("\n\n"):
        inputs, _, expected = part.partition("----")
        blocks.append(Block(inputs.strip("\n").splitlines(), expected.strip("\n")))
    return "\n".join(lines[:end]), blocks


def written(sentence: str, blocks: Iterable[Block]) -> str:
    parts = ["\n".join([*block.lines, "----", block.expected]).rstrip("\n") for block in blocks]
    return sentence + "\n" + "\n\n".join(parts) + "\n"


class Player:
    """One run, and its forks. `restores`: it goes through its saved self, and each input through the journal, every time."""

    def __init__(self, *, restores: bool = False) -> None:
        self._restores = restores
        self._seconds = 0.0
        self._jitter = 1.0
        self._limits = {"max_invocation_bytes": 2**21, "run_timeout": 0}
        self._definition = v1.Definition()
        self._run_id = "r"
        self._attempts: dict[str, int] = {}
        self._checkpoints: dict[str, v1.Snapshot] = {}

    def play(self, lines: list[str]) -> str:
        if lines[0] == "graph":
            return self._define(lines[1:])
        return "\n".join(shown for line in lines for shown in self._line(line))

    def _define(self, lines: list[str]) -> str:
        self._definition = definition(lines, self._limits)
        faults = [f"{fault.path}: {fault.message}" for fault in validate(self._definition) if not fault.warning]
        if faults:
            return "\n".join(faults)
        self._topology = compile_topology(self._definition)
        self._scheduler = RunScheduler(self._topology, self._info(), run_timeout=self._run_timeout)
        return "ok"

    @property
    def _run_timeout(self) -> int:
        return self._limits["run_timeout"] * SECOND

    def _info(self) -> RunInfo:
        hooks = Hooks(plain, {"explode": _explode, "say": plain})
        return RunInfo(self._run_id, hooks, max_invocation_bytes=self._limits["max_invocation_bytes"])

    def _line(self, line: str) -> Iterator[str]:
        words = Words(line)
        verb = words.word()
        if verb == "wait":
            self._seconds += words.number()
        elif verb == "jitter":
            self._jitter = words.number()
        elif verb == "standing":
            yield v1.RunState.Name(self._scheduler.state).removeprefix("RUN_STATE_")
        elif verb == "state":
            yield (
                ", ".join(f"{key}={value(each)}" for key, each in sorted(self._scheduler.shared_state.items())) or "{}"
            )
        elif verb == "restore":
            self._restore(self._scheduler.snapshot())
        elif verb == "fork":
            yield from self._fork(words)
        else:
            yield from self._step(self._input(verb, words))

    def _input(self, verb: str, words: Words) -> Input:
        time = round(self._seconds * SECOND)
        match verb:
            case "begin":
                return Begin(words.payload(), None, time, self._jitter)
            case "completed":
                invocation_id, attempt = self._attempt(words)
                place = invocation_id.removeprefix(f"{self._run_id}/").split("/")
                ended = outcome(words, invocation_id, place[-1].partition("#")[0])
                return Completed(invocation_id, attempt, ended, {}, time, self._jitter)
            case "answer":
                question_id, answer = self._full(words.word()), words.payload()
                return Answered(question_id, answer, words.after("by", words.word, ""), time, self._jitter)
            case "signal":
                target = words.after("to", words.word, "")
                payload = None if words.rest.startswith(("set ", "delete ")) else words.payload()
                return Signalled(payload, target, _writes(words), time, self._jitter)
            case "fire":
                kind = v1.TimerKind.Value(f"TIMER_KIND_{words.word().upper()}")
                return Fired(kind, self._full(words.word()) if words.rest else "", time, self._jitter)
            case "cancel":
                return Cancel(words.rest, time, self._jitter)
            case "resume":
                return Resume(words.after("max", words.count, 0), "", _writes(words), time, self._jitter)
            case _ if verb in FAILURES:
                return Failed(*self._attempt(words), failure(verb, words), {}, None, time, self._jitter)
            case _:
                raise ValueError(f"not understood: {verb!r}")

    def _full(self, own: str) -> str:
        return f"{self._run_id}/{own}"

    def _attempt(self, words: Words) -> tuple[str, int]:
        own, _, attempt = words.word().partition("@")
        return self._full(own), int(attempt) if attempt else self._attempts.get(self._full(own), 0)

    def _restore(self, snapshot: v1.Snapshot, *, is_fork: bool = False) -> None:
        read = v1.Snapshot.FromString(snapshot.SerializeToString())
        self._scheduler = restore(self._topology, self._info(), read, run_timeout=self._run_timeout, is_fork=is_fork)

    def _fork(self, words: Words) -> Iterator[str]:
        """`fork NAME of CHECKPOINT`: what follows is about the new run."""
        name, _, checkpoint_id = words.word(), words.word(), words.word()
        limit = words.after("max", words.count, 0)
        self._run_id, self._attempts = name, {}
        self._restore(self._checkpoints[checkpoint_id], is_fork=True)
        yield from self._step(Resume(limit, checkpoint_id, _writes(words), round(self._seconds * SECOND), self._jitter))

    def _step(self, record: Input) -> Iterator[str]:
        before = self._scheduler.snapshot()
        if self._restores:
            record = input_from(v1.Input.FromString(input_to(record).SerializeToString()))
        try:
            decision = self._scheduler.step(record)
        except HocketError as error:
            assert self._scheduler.snapshot() == before, "a refused input has changed something"
            yield f"refused {type(error).__name__}: {error}".replace(f"'{self._run_id}/", "'")
            return
        _check(decision)
        self._attempts.update((each.invocation_id, each.attempt) for each in decision.invocations)
        if decision.checkpoint_id:
            self._checkpoints[decision.checkpoint_id] = self._scheduler.snapshot()
        yield from Show(self._run_id).decision(decision) or ["nothing"]
        if self._restores:
            self._restore(self._scheduler.snapshot())


def _writes(words: Words) -> list[StateWrite]:
    return [words.write(verb) for verb in words.parts()]


def _explode(payload: v1.Payload) -> bool:
    raise ZeroDivisionError("by zero")


def _check(decision: Decision) -> None:
    """What every decision promises."""
    kinds = [event.WhichOneof("kind") for event in decision.events]
    assert ("run_ended" in kinds) == (decision.outcome is not None)
    assert "run_ended" not in kinds[:-1], "the terminal event is the last"
    started = [(e.invocation_id, e.attempt) for e in decision.events if e.HasField("invocation_started")]
    handed_out = [(each.invocation_id, each.attempt) for each in decision.invocations]
    assert [each for each in started if each in handed_out] == handed_out, "an attempt is announced and handed out"
    for event in decision.events:
        if event.HasField("superstep_completed"):
            assert event.superstep_completed.checkpoint_id == decision.checkpoint_id
