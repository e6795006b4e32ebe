"""The questions of one level: open ones with their expiry, and the digests of accepted answers.

An answer is taken once. The same one again is nothing new, another one is refused, and one of a wrong type leaves the
question open.
"""

import hashlib

from hocket import v1
from hocket.errors import QuestionClosedError
from hocket.records import Answered, Message
from hocket.wire import put_time
from hocket_server.core.check import type_error
from hocket_server.core.scheduler import Timer
from hocket_server.core.topology import covers


class Questions:
    __slots__ = (
        "closed",
        "expiries",
        "open",
    )

    def __init__(self) -> None:
        self.open: dict[str, v1.Question] = {}
        # When an open question expires, where it does.
        self.expiries: dict[str, int] = {}
        # SHA-256 of the answer of a closed one.
        self.closed: dict[str, bytes] = {}

    def ask(self, question: v1.Question, time: int) -> Timer | None:
        """Open it; the timer of its expiry."""
        put_time(time, question.create_time)
        self.open[question.question_id] = question
        if not question.HasField("expires_in"):
            return None
        due = time + question.expires_in.ToNanoseconds()
        self.expiries[question.question_id] = due
        return Timer(v1.TIMER_KIND_QUESTION, question.question_id, due)

    def check(self, question: v1.Question, record: Answered) -> None:
        """Raises PayloadError for an answer of a type that the question does not take."""
        if question.response_types and not covers(frozenset(question.response_types), record.payload):
            raise type_error(f"question {question.question_id!r}", record.payload, question.response_types)

    def is_repeated(self, record: Answered) -> bool:
        """Whether this answer was accepted before. Raises QuestionClosedError when another one was."""
        digest = self.closed.get(record.question_id)
        if digest is not None and digest != _digest(record.payload):
            raise QuestionClosedError(f"question {record.question_id!r} was answered otherwise; the answer stands")
        return digest is not None

    def close(self, question: v1.Question, record: Answered) -> Message:
        """Take the answer; the message that brings it to the asker."""
        question_id = question.question_id
        del self.open[question_id]
        self.expiries.pop(question_id, None)
        self.closed[question_id] = _digest(record.payload)
        return Message(
            f"{question_id}/answer",
            question.node_id,
            record.payload,
            question_id=question_id,
            question=question.payload,
        )

    def adopt(self, other: "Questions") -> None:
        """Remember the answers of a nested run that is over."""
        self.closed.update(other.closed)

    def renew(self, time: int) -> None:
        """A run that goes on waits anew for what has expired."""
        for question_id, due in self.expiries.items():
            if due <= time:
                self.expiries[question_id] = time + self.open[question_id].expires_in.ToNanoseconds()

    def timers(self) -> list[Timer]:
        return [Timer(v1.TIMER_KIND_QUESTION, question_id, due) for question_id, due in self.expiries.items()]


def answer_order(message: Message) -> tuple[int, str]:
    """Answers are handled in this order, not in that of their arrival (G9): of one asker, as it asked."""
    return len(message.question_id), message.question_id


def _digest(payload: v1.Payload) -> bytes:
    return hashlib.sha256(payload.SerializeToString(deterministic=True)).digest()
