"""What a handler is given: what came along with its invocation, and the effects it has so far.

Every call records an effect or reads what is there; nothing leaves the process before the handler has ended, so a retry
never applies half an attempt twice. Calls that record give back a finished awaitable, so `await ctx.send_message(x)` in an
`async` handler and `ctx.send_message(x)` in a plain one are the same call. Only `ask` stops a handler.
"""

from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Never, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from hocket import v1
from hocket.errors import EffectError
from hocket.payload import Codec, type_names
from hocket.records import Effects, GraphPosition, Invocation, Live, Message, StateWrite, Suspended

OutT = DefaultTypeVar("OutT", default=Never)
WorkflowOutT = DefaultTypeVar("WorkflowOutT", default=Never)
T = TypeVar("T")


class Done:
    """An awaitable that is finished."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE = Done()


class Suspension(BaseException):  # not an error: the handler waits for an answer
    """Raised by `ask` and caught by the host. Not an Exception, so that `except Exception` lets it pass."""

    def __init__(self, suspended: Suspended) -> None:
        self.suspended = suspended
        super().__init__("the handler waits for an answer")


class Declared:
    """What one handler may send and yield: annotations to encode by, names to check by (G4)."""

    __slots__ = ("annotations", "names")

    def __init__(self, annotations: Sequence[Any]) -> None:
        self.annotations = tuple(annotations)
        self.names = frozenset(name for annotation in annotations for name in type_names(annotation))

    def covers(self, payload: v1.Payload) -> bool:
        names = self.names
        return payload.type in names or "*" in names or any(name in names for name in payload.supertypes)


class Handling:
    """The handler that is being called: what it declares, and its name for errors."""

    __slots__ = ("messages", "outputs", "place")

    def __init__(self, place: str, messages: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.place = place
        self.messages = Declared(messages)
        self.outputs = Declared(outputs)


NOTHING = Handling("no handler", (), ())


class WorkflowContext(Generic[OutT, WorkflowOutT]):
    """`OutT` is what the handler sends to other nodes, `WorkflowOutT` what it yields as an output of the run."""

    __slots__ = (
        "_answers",
        "_cancelled",
        "_codec",
        "_events",
        "_handling",
        "_handoff",
        "_invocation",
        "_keys",
        "_live",
        "_messages",
        "_outputs",
        "_private_write",
        "_questions",
        "_sources",
        "_writes",
    )

    def __init__(self, invocation: Invocation, codec: Codec, live: Live) -> None:
        self._invocation = invocation
        self._codec = codec
        self._live = live
        self._messages: list[Message] = []
        self._outputs: list[v1.Payload] | None = None
        self._writes: list[StateWrite] | None = None
        self._questions: list[v1.Question] | None = None
        self._events: list[v1.CustomEvent] | None = None
        self._handoff: v1.Handoff | None = None
        self._private_write: v1.Payload | None = None
        self._answers: Mapping[str, v1.Payload] | None = None
        self._keys: list[str] = []
        self._cancelled = False
        # What is being handled, and who sent it; set by the host for each call.
        self._handling = NOTHING
        self._sources: Sequence[str] = ()

    def effects(self) -> Effects:
        """All that it did, for the host."""
        return Effects(
            self._messages,
            self._outputs or (),
            self._writes or (),
            self._questions or (),
            self._events or (),
            self._handoff,
            self._private_write,
        )

    # What it does.

    def send_message(self, message: OutT, target_id: str | None = None) -> Done:
        """Send along every outgoing edge that takes it, or along the edge to `target_id` only. Delivered in the next
        superstep. Raises PayloadError for a value that cannot travel, EffectError for a type that is not declared."""
        declared = self._handling.messages
        payload = self._codec.encode(message, declared.annotations)
        if not declared.covers(payload):
            raise EffectError(self._undeclared("sent", payload, declared))
        if target_id is not None:
            self._check_text(target_id)
        messages, invocation = self._messages, self._invocation
        message_id = f"{invocation.invocation_id}/{len(messages) + 1}"
        messages.append(Message(message_id, _node_id(invocation), payload, target_id or ""))
        return _DONE

    def yield_output(self, value: WorkflowOutT) -> Done:
        """Yield an output of the run. Raises as `send_message` does."""
        declared = self._handling.outputs
        payload = self._codec.encode(value, declared.annotations)
        if not declared.covers(payload):
            raise EffectError(self._undeclared("yielded", payload, declared))
        self._outputs = self._outputs or []
        self._outputs.append(payload)
        return _DONE

    def set_state(self, key: str, value: object) -> Done:
        """Write a key of the run's state, committed with the superstep by the key's merge policy."""
        self._write(key, self._codec.encode(value))
        return _DONE

    def delete_state(self, key: str) -> Done:
        self._write(key, None)
        return _DONE

    def set_private(self, value: object) -> Done:
        """Replace the node's own state, which lasts for the run and which no other node sees."""
        self._private_write = self._codec.encode(value)
        return _DONE

    def request_info(
        self,
        data: object,
        response_type: object,
        *,
        request_id: str | None = None,
        expires_in: float | timedelta | None = None,
        default: object = None,
    ) -> Done:
        """Ask a person or another system. The answer comes to the `@response_handler` for these types, when it comes;
        other branches go on. `request_id` is unique in this invocation. At `expires_in` (seconds) `default` is taken
        for the answer; with None the run fails."""
        if request_id is not None and request_id in self._keys:
            place = self._handling.place
            raise EffectError(f"{place} asked two questions under the request_id {request_id!r}; give each its own")
        key = self._question_key(request_id)
        self._questions = self._questions or []
        self._questions.append(self._question(key, data, response_type, expires_in, default))
        return _DONE

    def ask(
        self,
        data: object,
        response_type: type[T],
        *,
        expires_in: float | timedelta | None = None,
        default: object = None,
    ) -> T:
        """Ask, stop here, and go on with the answer: the handler runs again from its start, without effects of the run
        that stopped. Code before an `ask` runs again and must ask in the same order."""
        key = self._question_key(None)
        answer = self._answers.get(f"{self._invocation.invocation_id}/{key}") if self._answers else None
        if answer is None:
            raise Suspension(Suspended([self._question(key, data, response_type, expires_in, default)]))
        value: T = self._codec.decode(answer, response_type)
        return value

    def hand_off(self, target_id: str, task: str = "", payload: object = None) -> Done:
        """Pass control on to a node declared in `handoffs`. It is given `payload`, or the words of `task`."""
        if self._handoff is not None:
            first = self._handoff.target_node_id
            raise EffectError(f"{self._handling.place} handed off to {first!r} already; an invocation hands off once")
        self._check_text(target_id)
        self._check_text(task)
        handoff = v1.Handoff(target_node_id=target_id, task=task, mode=v1.HANDOFF_MODE_TRANSFER)
        if payload is not None:
            handoff.payload.CopyFrom(self._codec.encode(payload))
        self._handoff = handoff
        return _DONE

    def add_event(self, name: str, data: object = None) -> Done:
        """A custom event in the log, committed with the superstep."""
        self._check_text(name)
        self._events = self._events or []
        self._events.append(v1.CustomEvent(name=name, data=self._codec.encode(data)))
        return _DONE

    def report(self, fraction: float | None = None, **details: object) -> Done:
        """Progress, shown at once and never stored: from 0 to 1, and details (token deltas, a phase). It renews the
        idle timeout, and the next attempt is told the last details."""
        progress = v1.Progress(fraction=fraction)
        if details:
            progress.details.CopyFrom(self._codec.encode(details))
        self._live(progress)
        return _DONE

    # What it reads.

    def get_state(self, key: str, default: Any = None) -> Any:
        """The value committed before this superstep, or this invocation's own write. A key that is merged (append,
        merge, sum) gives the committed value: writes to it are contributions."""
        reads = self._invocation.state_reads
        if reads and key not in reads:
            raise EffectError(f"{self._handling.place} read state key {key!r}; its state_reads are {', '.join(reads)}")
        payload = self._invocation.state.get(key)
        if self._writes is not None and key not in self._invocation.contributed_keys:
            for write in self._writes:
                if write.key == key:
                    payload = write.value
        return default if payload is None else self._codec.decode(payload)

    def get_private(self, default: Any = None) -> Any:
        private = self._private_write or self._invocation.private_state
        return default if private is None else self._codec.decode(private)

    @property
    def config(self) -> Any:
        """What the node was configured with, None for nothing."""
        config = self._invocation.config
        return None if config is None else self._codec.decode(config)

    @property
    def invocation_id(self) -> str:
        """The same in every attempt: the key for systems that must not act twice."""
        return self._invocation.invocation_id

    @property
    def attempt(self) -> int:
        """From 1."""
        return self._invocation.attempt

    @property
    def run_id(self) -> str:
        return self._invocation.run_id

    @property
    def last_failure(self) -> v1.Failure | None:
        """Why the attempt before this one failed."""
        return self._invocation.last_failure

    @property
    def last_progress(self) -> Any:
        """Details of the last `report` of the attempt before this one."""
        progress = self._invocation.last_progress
        return None if progress is None else self._codec.decode(progress)

    @property
    def deadline(self) -> datetime | None:
        """When this attempt is out of time, counted from now; None without a timeout."""
        timeout = self._invocation.timeout
        return None if timeout is None else datetime.now(UTC) + timedelta(seconds=timeout)

    @property
    def cancelled(self) -> bool:
        """For plain handlers, which cannot be interrupted: stop soon when this is true."""
        return self._cancelled

    @property
    def source_executor_ids(self) -> Sequence[str]:
        """Who sent what is being handled, empty for the run's input; of a fan-in, one for each element."""
        return self._sources

    # Parts.

    def _write(self, key: str, value: v1.Payload | None) -> None:
        self._check_text(key)
        self._writes = self._writes or []
        self._writes.append(StateWrite(key, value))

    def _question_key(self, given: str | None) -> str:
        """The asker's own, or the question's ordinal among all that were asked, moved on where that is taken."""
        if given is not None:
            self._check_text(given)
        ordinal = len(self._keys) + 1
        while given is None and str(ordinal) in self._keys:
            ordinal += 1
        self._keys.append(given or str(ordinal))
        return self._keys[-1]

    def _check_text(self, text: str) -> None:
        """Names become part of messages as they are: what cannot travel is refused here. Raises PayloadError."""
        self._codec.encode(text)

    def _question(
        self, key: str, data: object, response_type: object, expires_in: float | timedelta | None, default: object
    ) -> v1.Question:
        question = v1.Question(
            question_id=key,
            payload=self._codec.encode(data),
            response_types=[name for name in type_names(response_type) if name != "*"],
        )
        self._codec.register(response_type)
        if expires_in is not None:
            delta = expires_in if isinstance(expires_in, timedelta) else timedelta(seconds=expires_in)
            question.expires_in.FromTimedelta(delta)
        if default is not None:
            question.default_answer.CopyFrom(self._codec.encode(default, [response_type]))
        return question

    def _undeclared(self, verb: str, payload: v1.Payload, declared: Declared) -> str:
        known = ", ".join(sorted(declared.names)) or "nothing"
        return f"{self._handling.place} {verb} {payload.type!r}, which it does not declare; declared: {known}"


def _node_id(invocation: Invocation) -> str:
    position = invocation.position
    return position.node_id if isinstance(position, GraphPosition) else ""
