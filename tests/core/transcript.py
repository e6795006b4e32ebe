"""Plays a transcript: inputs to a run and what its scheduler decides, the specification of the graph in text files.

A file is a sentence that says the rule, then blocks of input lines, `----` and what is expected; the first holds the graph
(`language`). Inputs are dated by a clock that `wait` moves. An attempt's end is by default that of the attempt handed out
last, `2/a@1` is another's. Ids are shown without the run's. Each decision is also held against what all of them promise:
a refused input has changed nothing, an attempt is announced and handed out, the last event of a run says how it ended.
"""

import json
import re
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
    Delivery,
    Failed,
    Fired,
    Input,
    Invocation,
    Message,
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
        hooks = Hooks(plain, {"explode": _explode, "say": lambda payload: plain(payload)})
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
                ", ".join(f"{key}={_value(value)}" for key, value in sorted(self._scheduler.shared_state.items()))
                or "{}"
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
                return Resume(int(words.after("max", words.number, 0)), "", _writes(words), time, self._jitter)
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
        limit = int(words.after("max", words.number, 0))
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


class Show:
    """A decision as text, a line for each thing in it. Started attempts are shown as what is handed out."""

    def __init__(self, run_id: str) -> None:
        self._prefix = f"{run_id}/"

    def decision(self, decision: Decision) -> list[str]:
        handed_out = {each.invocation_id for each in decision.invocations}
        lines = [
            "".join(f"{name} > " for name in event.path) + " ".join(filter(None, self._event(event)))
            for event in decision.events
            if not (event.HasField("invocation_started") and event.invocation_id in handed_out)
        ]
        if decision.checkpoint_id:
            lines.append(f"*checkpoint {decision.checkpoint_id}*")
        lines += [f"abandon {self._own(each)}" for each in decision.abandoned]
        lines += [self._invocation(each) for each in decision.invocations]
        for timer in decision.timers:
            kind = v1.TimerKind.Name(timer.kind).removeprefix("TIMER_KIND_").lower()
            lines.append(f"timer {kind} {self._own(timer.subject_id)}".rstrip() + f" at {timer.due / SECOND:g}")
        return lines

    def _own(self, full: str) -> str:
        return full.removeprefix(self._prefix)

    def _event(self, event: v1.Event) -> Iterator[str]:
        kind = event.WhichOneof("kind") or ""
        yield "".join(word.capitalize() for word in kind.split("_"))
        if event.invocation_id:
            yield self._own(event.invocation_id) + (f"@{event.attempt}" if event.attempt > 1 else "")
        match kind:
            case "run_started":
                yield _value(event.run_started.input)
                if parent := event.run_started.parent_checkpoint_id:
                    yield f"from {parent}"
            case "run_resumed":
                yield f"from {event.run_resumed.checkpoint_id}, at most {event.run_resumed.max_supersteps} supersteps"
            case "run_ended":
                ended = event.run_ended
                yield v1.RunState.Name(ended.state).removeprefix("RUN_STATE_")
                yield "without output" if ended.converged_without_output else ""
                yield _failure(ended.failure) if ended.HasField("failure") else ended.reason
            case "run_cancel_requested":
                yield event.run_cancel_requested.reason
            case "signal_received":
                yield f"{event.signal_received.target_node_id} {event.signal_received.payload.text}".rstrip()
            case "superstep_started":
                yield str(event.superstep_started.superstep)
            case "superstep_completed":
                yield str(event.superstep_completed.superstep)
            case "invocation_completed":
                yield ", ".join(self._effects(event.invocation_completed))
            case "invocation_failed":
                failed = event.invocation_failed
                yield _failure(failed.failure) + (", will retry" if failed.will_retry else "")
            case "invocation_suspended":
                yield f"waits for {', '.join(map(self._own, event.invocation_suspended.question_ids))}"
            case "output_yielded":
                yield ("intermediate " if event.output_yielded.intermediate else "") + _value(
                    event.output_yielded.payload
                )
            case "message_dropped":
                dropped = event.message_dropped
                yield f"{self._own(dropped.message_id)} {dropped.payload.text}"
                yield f"for {dropped.target_node_id}" if dropped.target_node_id else ""
                yield v1.DropReason.Name(dropped.reason).removeprefix("DROP_REASON_")
            case "question_asked":
                asked = event.question_asked.question
                yield f"{self._own(asked.question_id)} {_value(asked.payload)} {' '.join(asked.response_types)}".rstrip()
            case "question_answered":
                answered = event.question_answered
                yield f"{self._own(answered.question_id)} {_value(answered.answer)}"
                yield "expired" if answered.expired else f"by {answered.answered_by}" if answered.answered_by else ""
            case "handed_off":
                yield f"{event.handed_off.from_id} to {event.handed_off.to_id}"
            case "custom":
                yield f"{event.custom.name} {_value(event.custom.data)}"

    def _effects(self, completed: v1.InvocationCompleted) -> Iterator[str]:
        for message in completed.messages:
            yield f"sent {message.text}" + (f" to {message.target_node_id}" if message.target_node_id else "")
        for output in completed.outputs:
            yield f"yielded {output.text}"

    def _invocation(self, invocation: Invocation) -> str:
        own = self._own(invocation.invocation_id) + (f"@{invocation.attempt}" if invocation.attempt > 1 else "")
        shown = f"invoke {own}({', '.join(_delivery(each) for each in invocation.deliveries)})"
        if invocation.state:
            shown += " state " + ", ".join(f"{key}={_value(value)}" for key, value in sorted(invocation.state.items()))
        if invocation.private_state is not None:
            shown += f" private {_value(invocation.private_state)}"
        if invocation.continuation is not None:
            shown += f" goes on from {_value(invocation.continuation)}"
        return shown


def _delivery(delivery: Delivery) -> str:
    values = ", ".join(map(_message, delivery.messages))
    return f"[{values}]" if delivery.joined else values


def _message(message: Message) -> str:
    asked = "" if message.question is None else f" to {_value(message.question)}"
    return _value(message.payload) + asked


def _value(payload: v1.Payload) -> str:
    value = json.dumps(plain(payload), ensure_ascii=False)
    return f"{payload.type}:{value}" if re.match("[A-Z]", payload.type) else value


def _failure(failure: v1.Failure) -> str:
    kind = v1.FailureKind.Name(failure.kind).removeprefix("FAILURE_KIND_")
    where = f" at {failure.source}" if failure.source else ""
    shown = kind if failure.type.upper().replace("-", "_") == kind else f"{kind} {failure.type}"
    return shown + where + ("" if failure.message == "it broke" else f": {failure.message}")
