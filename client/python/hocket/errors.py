"""Every error that Hocket raises, one tree.

    HocketError
    ├── DefinitionError             a graph, flow or team is wrong; holds every fault
    ├── PayloadError                a value cannot travel; holds its path
    │   └── PayloadTooLargeError    it is above a limit
    ├── EffectError                 a handler did what its node did not declare
    ├── NotFoundError               a run, question, checkpoint, definition or node that is not there
    ├── RefusedError                a request that the state of things forbids
    │   ├── RunTerminalError        the run has ended
    │   ├── RunNotResumableError    the run has not ended, or ended as COMPLETED
    │   ├── RunExistsError          the run id is taken
    │   ├── QuestionClosedError     it was answered otherwise, or has expired
    │   ├── CursorExpiredError      events after this cursor are no longer kept
    │   └── SignatureMismatchError  another definition; holds the difference
    └── RunError                    how a run ended, for who awaits its result
        ├── RunFailedError
        ├── RunCancelledError
        └── LimitReached

    UserWarning
    ├── DefinitionWarning           a definition can run, but does not look meant
    └── StatefulExecutorWarning     an executor keeps something between invocations

`reason` is the name that the API gives the error in every language (`hocket.v1.ErrorReason`).
"""

from collections.abc import Sequence

from hocket import v1


class HocketError(Exception):
    """Root of all errors."""

    reason: v1.ErrorReason.ValueType = v1.ERROR_REASON_UNSPECIFIED


class DefinitionError(HocketError):
    """A definition is wrong. `faults` holds all that is, warnings left out."""

    reason = v1.ERROR_REASON_DEFINITION_INVALID

    def __init__(self, name: str, faults: Sequence[v1.Fault]) -> None:
        self.faults = list(faults)
        lines = "".join(f"\n  {fault.path}: {fault.message}" for fault in self.faults)
        plural = "" if len(self.faults) == 1 else "s"
        super().__init__(f"definition {name!r} has {len(self.faults)} fault{plural}:{lines}")


class PayloadError(HocketError):
    """A value cannot be encoded or decoded. `path` leads to the culprit (`$.items[3].price`), `type_name` is its type."""

    reason = v1.ERROR_REASON_PAYLOAD_INVALID

    def __init__(self, message: str, *, path: str = "$", type_name: str = "") -> None:
        self.path = path
        self.type_name = type_name
        super().__init__(f"{path}: {message}")


class PayloadTooLargeError(PayloadError):
    """A value is above the inline limit and no blob store is there to take it."""

    reason = v1.ERROR_REASON_PAYLOAD_TOO_LARGE


class EffectError(HocketError):
    """A handler sent an undeclared type, named a target without an edge, or wrote what it may not. Never retried."""

    reason = v1.ERROR_REASON_ARGUMENT_INVALID


class NotFoundError(HocketError):
    """What was named is not there, or not for the caller to see."""

    def __init__(self, message: str, reason: v1.ErrorReason.ValueType = v1.ERROR_REASON_RUN_NOT_FOUND) -> None:
        self.reason = reason
        super().__init__(message)


class RefusedError(HocketError):
    """The request is well formed, but the state of things forbids it. Nothing was changed."""

    reason = v1.ERROR_REASON_ARGUMENT_INVALID


class RunTerminalError(RefusedError):
    reason = v1.ERROR_REASON_RUN_TERMINAL


class RunNotResumableError(RefusedError):
    reason = v1.ERROR_REASON_RUN_NOT_RESUMABLE


class RunExistsError(RefusedError):
    reason = v1.ERROR_REASON_RUN_EXISTS


class QuestionClosedError(RefusedError):
    reason = v1.ERROR_REASON_QUESTION_CLOSED


class CursorExpiredError(RefusedError):
    reason = v1.ERROR_REASON_CURSOR_EXPIRED


class SignatureMismatchError(RefusedError):
    """The definition is not the one the checkpoint was made under. `difference` names each change, one a line."""

    reason = v1.ERROR_REASON_SIGNATURE_MISMATCH

    def __init__(self, message: str, difference: Sequence[str]) -> None:
        self.difference = list(difference)
        super().__init__(message + "".join(f"\n  {line}" for line in self.difference))


class RunError(HocketError):
    """A run ended without success."""

    def __init__(self, message: str, *, run_id: str, failure: v1.Failure | None = None) -> None:
        self.run_id = run_id
        self.failure = failure
        super().__init__(message)


class RunFailedError(RunError):
    """The run ended FAILED. `failure` has kind, node and cause chain; in-process the original error is `__cause__`."""


class RunCancelledError(RunError):
    """The run ended CANCELLED."""


class LimitReached(RunError):  # noqa: N818  # the name the guide and the peers' users know
    """The run ended LIMIT_REACHED: a bound its author set. It can be resumed with a higher one."""


class DefinitionWarning(UserWarning):
    """A fault that does not refuse the definition: a loop without a condition, a join that may starve."""


class StatefulExecutorWarning(UserWarning):
    """A handler sets an attribute of its executor, which every run shares and no checkpoint holds."""


def error_name(error: type[BaseException]) -> str:
    """The name by which a failure of this type is known (`Failure.type`): built-in ones bare, others with their module."""
    if error.__module__ == "builtins":
        return error.__qualname__
    return f"{error.__module__}.{error.__qualname__}"
