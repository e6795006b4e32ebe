"""A decision as text, a line for each thing in it: what transcripts expect."""

import json
import re
from collections.abc import Iterator

from hocket import v1
from hocket.records import Delivery, Invocation, Message
from hocket.wire import SECOND
from hocket_server.core.scheduler import Decision
from tests.core.language import plain


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
                yield value(event.run_started.input)
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
                yield ("intermediate " if event.output_yielded.intermediate else "") + value(
                    event.output_yielded.payload
                )
            case "message_dropped":
                dropped = event.message_dropped
                yield f"{self._own(dropped.message_id)} {dropped.payload.text}"
                yield f"for {dropped.target_node_id}" if dropped.target_node_id else ""
                yield v1.DropReason.Name(dropped.reason).removeprefix("DROP_REASON_")
            case "question_asked":
                asked = event.question_asked.question
                yield f"{self._own(asked.question_id)} {value(asked.payload)} {' '.join(asked.response_types)}".rstrip()
            case "question_answered":
                answered = event.question_answered
                yield f"{self._own(answered.question_id)} {value(answered.answer)}"
                yield "expired" if answered.expired else f"by {answered.answered_by}" if answered.answered_by else ""
            case "handed_off":
                yield f"{event.handed_off.from_id} to {event.handed_off.to_id}"
            case "custom":
                yield f"{event.custom.name} {value(event.custom.data)}"
            case _:
                pass

    def _effects(self, completed: v1.InvocationCompleted) -> Iterator[str]:
        for message in completed.messages:
            yield f"sent {message.text}" + (f" to {message.target_node_id}" if message.target_node_id else "")
        for output in completed.outputs:
            yield f"yielded {output.text}"

    def _invocation(self, invocation: Invocation) -> str:
        own = self._own(invocation.invocation_id) + (f"@{invocation.attempt}" if invocation.attempt > 1 else "")
        shown = f"invoke {own}({', '.join(_delivery(each) for each in invocation.deliveries)})"
        if invocation.state:
            shown += " state " + ", ".join(f"{key}={value(each)}" for key, each in sorted(invocation.state.items()))
        if invocation.private_state is not None:
            shown += f" private {value(invocation.private_state)}"
        if invocation.continuation is not None:
            shown += f" goes on from {value(invocation.continuation)}"
        return shown


def _delivery(delivery: Delivery) -> str:
    values = ", ".join(map(_message, delivery.messages))
    return f"[{values}]" if delivery.joined else values


def _message(message: Message) -> str:
    asked = "" if message.question is None else f" to {value(message.question)}"
    return value(message.payload) + asked


def value(payload: v1.Payload) -> str:
    value = json.dumps(plain(payload), ensure_ascii=False)
    return f"{payload.type}:{value}" if re.match("[A-Z]", payload.type) else value


def _failure(failure: v1.Failure) -> str:
    kind = v1.FailureKind.Name(failure.kind).removeprefix("FAILURE_KIND_")
    where = f" at {failure.source}" if failure.source else ""
    shown = kind if failure.type.upper().replace("-", "_") == kind else f"{kind} {failure.type}"
    return shown + where + ("" if failure.message == "it broke" else f": {failure.message}")
