"""Executors: what runs at a node.

A class is read once, when it is defined: its handlers' types from their annotations, or from what the decorator was
told. Everything wrong with it is reported then, together. A function becomes an executor of its own.
"""

import dis
import inspect
import sys
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, Literal, TypeAlias, TypeVar, overload

from hocket import v1
from hocket.annotation import Signature, read_signature
from hocket.context import WorkflowContext
from hocket.errors import DefinitionError, HocketError, StatefulExecutorWarning, error_name
from hocket.payload import payload_type, type_names
from hocket.selection import HandlerSpec, HandlerTable
from hocket.wire import put_duration

__all__ = [
    "Executor",
    "FunctionExecutor",
    "HandlerSpec",
    "OnStuck",
    "RetryPolicy",
    "executor",
    "handler",
    "is_count",
    "response_handler",
]

OnStuck: TypeAlias = Literal["wait", "overlap", "fail"]

_LONGEST: Final = 315_576_000_000
"""Seconds that a protobuf Duration can hold."""

_MARK: Final = "__hocket_handler__"
_ON_STUCK: Final[Mapping[str, v1.OnStuck.ValueType]] = {
    "wait": v1.ON_STUCK_WAIT,
    "overlap": v1.ON_STUCK_OVERLAP,
    "fail": v1.ON_STUCK_FAIL,
}

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Whether and when an invocation is attempted again (G30). Intervals are seconds, each drawn from 0 to its bound.

    `max_attempts` counts failures of the handler, `max_redeliveries` lost workers. `non_retryable` holds exception
    classes, or the names that failures have in other languages.
    """

    initial_interval: float = 1.0
    backoff_coefficient: float = 2.0
    maximum_interval: float | None = None
    max_attempts: int = 1
    max_redeliveries: int = 3
    non_retryable: Sequence[type[BaseException] | str] = ()

    def __post_init__(self) -> None:
        if not _is_time(self.initial_interval):
            raise ValueError(f"initial_interval is {self.initial_interval!r}; it is a number of seconds above 0")
        if not 1 <= self.backoff_coefficient < inf:
            raise ValueError(f"backoff_coefficient is {self.backoff_coefficient!r}; it is a number from 1")
        if self.maximum_interval is not None and not (
            _is_time(self.maximum_interval) and self.maximum_interval >= self.initial_interval
        ):
            raise ValueError(
                f"maximum_interval is {self.maximum_interval!r}; "
                f"it is a number of seconds from initial_interval, {self.initial_interval}"
            )
        if not is_count(self.max_attempts):
            raise ValueError(f"max_attempts is {self.max_attempts}; the first attempt counts, so it is 1 or more")
        if not is_count(self.max_redeliveries):
            raise ValueError(f"max_redeliveries is {self.max_redeliveries}; it is 1 or more")

    def to_proto(self) -> v1.RetryPolicy:
        policy = v1.RetryPolicy(
            backoff_coefficient=self.backoff_coefficient,
            max_attempts=self.max_attempts,
            max_redeliveries=self.max_redeliveries,
            non_retryable_failure_types=[
                name if isinstance(name, str) else error_name(name) for name in self.non_retryable
            ],
        )
        put_duration(self.initial_interval, policy.initial_interval)
        put_duration(self.maximum_interval, policy.maximum_interval)
        return policy


def _seconds(value: float | timedelta | None) -> float | None:
    return value.total_seconds() if isinstance(value, timedelta) else value


# Decorators


@overload
def handler(function: F) -> F: ...
@overload
def handler(*, input: Any = None, output: Any = None, workflow_output: Any = None) -> Callable[[F], F]: ...
def handler(
    function: F | None = None, *, input: Any = None, output: Any = None, workflow_output: Any = None
) -> F | Callable[[F], F]:
    """Makes a method `(self, message, ctx)` the handler of its message's type; async or plain.

    Types come from the annotations: of the message, and `WorkflowContext[sent, yielded]` of the context. With any of
    `input`, `output`, `workflow_output` they come from these alone, and one not given means none. Unions are allowed.
    """
    explicit = {"message": input, "sent": output, "yielded": workflow_output}
    return _decorated(function, "handler", explicit)


@overload
def response_handler(function: F) -> F: ...
@overload
def response_handler(
    *, request: Any = None, response: Any = None, output: Any = None, workflow_output: Any = None
) -> Callable[[F], F]: ...
def response_handler(
    function: F | None = None,
    *,
    request: Any = None,
    response: Any = None,
    output: Any = None,
    workflow_output: Any = None,
) -> F | Callable[[F], F]:
    """Makes a method `(self, question, answer, ctx)` the handler of answers to such questions. Types as for
    `handler`."""
    explicit = {"question": request, "answer": response, "sent": output, "yielded": workflow_output}
    return _decorated(function, "response_handler", explicit)


def _decorated(function: F | None, decorator: str, explicit: Mapping[str, Any]) -> F | Callable[[F], F]:
    frame = sys._getframe(2)
    told = {key: value for key, value in explicit.items() if value is not None}

    def decorate(function: F) -> F:
        given: object = function
        if not isinstance(given, FunctionType):
            raise TypeError(f"@{decorator} is for a method (below @staticmethod and the like), not for {function!r}")
        roles = ("question", "answer") if decorator == "response_handler" else ("message",)
        setattr(function, _MARK, read_signature(function, roles, told, frame, is_method=True))
        return function

    return decorate(function) if function is not None else decorate


# Executors


class Executor:
    """What runs at a node. Subclass it and mark its handlers with `@handler`.

    An executor keeps nothing between invocations: one object serves all runs, on any worker. What must last goes
    through `ctx.set_state` (the run's) or `ctx.set_private` (the node's own).
    """

    handlers: tuple[HandlerSpec, ...] = ()
    response_handlers: tuple[HandlerSpec, ...] = ()
    _table: HandlerTable = HandlerTable((), ())

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._table = _read_class(cls)
        cls.handlers, cls.response_handlers = cls._table.handlers, cls._table.response_handlers
        _warn_of_state(cls)

    def __init__(
        self,
        id: str | None = None,
        *,
        executor_type: str | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | timedelta | None = None,
        schedule_timeout: float | timedelta | None = None,
        idle_timeout: float | timedelta | None = None,
        concurrency: int = 1,
        state_reads: Sequence[str] = (),
        on_stuck: OnStuck = "wait",
        handoffs: "Sequence[str | Executor]" = (),
    ) -> None:
        """`id` is the node's, by default the name of the class; `executor_type` is what a worker offers, by default
        the id.

        `timeout` bounds one attempt, `schedule_timeout` the wait for a worker, `idle_timeout` the silence of the
        handler, in seconds. `concurrency` above 1 handles the messages of a superstep apart, without private state.
        `state_reads` are the keys of the run's state that come along, none for all. Raises DefinitionError.
        """
        self.id = type(self).__name__ if id is None else id
        self.executor_type = self.id if executor_type is None else executor_type
        self.retry = retry
        self.timeout = timeout
        self.schedule_timeout = schedule_timeout
        self.idle_timeout = idle_timeout
        self.concurrency = concurrency
        self.state_reads = state_reads
        self.on_stuck: OnStuck = on_stuck
        self.handoffs = handoffs
        if faults := list(self._setting_faults()):
            raise DefinitionError(self.id, faults)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.__dict__.get('id')!r})"

    if not typing.TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _SETTINGS:
                message = (
                    f"__init__ did not call super().__init__(id=...), so the executor has no {name}; call it first"
                )
                raise DefinitionError(type(self).__name__, [v1.Fault(path=f"{type(self).__name__}", message=message)])
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _setting_faults(self) -> Iterator[v1.Fault]:
        for name in ("id", "executor_type"):
            value = getattr(self, name)
            if not is_text(value):
                yield v1.Fault(path=name, message=f"{name} is {value!r}; it is text without NUL and lone surrogates")
        if not self._table.handlers:
            message = f"class {type(self).__name__} has no handler; mark a method (self, message, ctx) with @handler"
            yield v1.Fault(path="handlers", message=message)
        for name in ("timeout", "schedule_timeout", "idle_timeout"):
            value = getattr(self, name)
            if value is not None and not _is_time(value):
                yield v1.Fault(
                    path=name, message=f"{name} is {value!r}; it is a number of seconds above 0, None for no limit"
                )
        if not is_count(self.concurrency):
            yield v1.Fault(
                path="concurrency", message=f"concurrency is {self.concurrency!r}; it is a whole number from 1"
            )
        if self.on_stuck not in _ON_STUCK:
            yield v1.Fault(path="on_stuck", message=f"on_stuck is {self.on_stuck!r}; known: {', '.join(_ON_STUCK)}")
        for name in ("state_reads", "handoffs"):
            if isinstance(getattr(self, name), str):
                yield v1.Fault(path=name, message=f"{name} is the text {getattr(self, name)!r}; give a list")

    @property
    def types(self) -> v1.ExecutorTypes:
        """What its handlers take, send and yield. Shared by all objects of the class: do not touch it."""
        return self._table.types

    def node(self) -> v1.Node:
        """Its node in a definition."""
        node = v1.Node()
        self.fill_node(node)
        return node

    def fill_node(self, node: v1.Node) -> None:
        """Writes what `node` gives into an empty node that is in its place already."""
        node.id = self.id
        node.executor.executor_type = self.executor_type
        node.types.CopyFrom(self._table.types)
        if self.retry is not None:
            node.retry_policy.CopyFrom(self.retry.to_proto())
        put_duration(_seconds(self.timeout), node.timeout)
        put_duration(_seconds(self.schedule_timeout), node.schedule_timeout)
        put_duration(_seconds(self.idle_timeout), node.idle_timeout)
        if self.state_reads:
            node.state_reads.extend(self.state_reads)
        if self.handoffs:
            node.handoff_node_ids.extend(one if isinstance(one, str) else one.id for one in self.handoffs)
        if self.concurrency > 1:
            node.concurrency = self.concurrency
        if self.on_stuck != "wait":
            node.on_stuck = _ON_STUCK[self.on_stuck]

    def select(self, payload: v1.Payload) -> HandlerSpec | None:
        """The handler nearest to the payload's type (G1); None if none takes it."""
        return self._table.select(payload)

    def select_joined(self, payloads: Sequence[v1.Payload]) -> HandlerSpec | None:
        """The handler that takes these as one list (G17): `list[T]` where T takes each, else a list of anything, else
        Any."""
        return self._table.select_joined(payloads)

    def select_answer(self, question: v1.Payload, answer: v1.Payload) -> HandlerSpec | None:
        """The response handler nearest to the question's type, then to the answer's."""
        return self._table.select_answer(question, answer)


_SETTINGS: Final = frozenset(inspect.signature(Executor.__init__).parameters) - {"self"}
_OWN_NAMES: Final = frozenset(vars(Executor)) | _SETTINGS


def is_text(value: object) -> bool:
    """Text that can travel."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_count(value: object) -> bool:
    """A whole number from 1 that fits the contract."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


def _is_time(value: object) -> bool:
    """A time that fits the contract, above 0."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds <= _LONGEST


def _read_class(cls: type[Executor]) -> HandlerTable:
    """The handlers of a class and its bases. Raises DefinitionError with all that is wrong in them."""
    found: dict[str, tuple[Any, Signature]] = {}
    faults: list[v1.Fault] = []

    def fault(name: str, message: str) -> None:
        faults.append(v1.Fault(path=f"{cls.__name__}.{name}" if name else cls.__name__, message=message))

    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            mark = getattr(inner, _MARK, None) if isinstance(inner, FunctionType) else None
            if isinstance(mark, Signature):
                found[name] = value, mark
            elif name in found and value is None:
                del found[name]
            elif name in found:
                del found[name]
                fault(name, "overrides a handler without being one; mark it with @handler too, or set it to None")
    specs: list[HandlerSpec] = []
    questions: list[HandlerSpec] = []
    for name, (function, mark) in found.items():
        problems = list(mark.faults)
        if not isinstance(function, FunctionType):
            problems.append(f"is a {type(function).__name__}; a handler is a plain method")
        if name in _OWN_NAMES:
            problems.append("has the name of an attribute of Executor; rename it")
        if not problems:
            try:
                spec = _method_spec(name, function, mark)
                (questions if mark.is_response else specs).append(spec)
            except (HocketError, TypeError) as error:
                problems.append(str(error))
        for problem in problems:
            fault(name, problem)
    table = HandlerTable(specs, questions)
    for problem in table.faults():
        fault("", problem)
    if faults:
        raise DefinitionError(cls.__name__, faults)
    return table


def _method_spec(name: str, function: Callable[..., Any], mark: Signature) -> HandlerSpec:
    call = function if mark.takes_context else _without_context(function, 3 if mark.is_response else 2)
    return _spec(name, call, mark, is_async=_is_async(function), takes_context=mark.takes_context)


def _spec(name: str, call: Callable[..., Any], mark: Signature, *, is_async: bool, takes_context: bool) -> HandlerSpec:
    for annotation in (*mark.messages, *mark.outputs):
        payload_type(annotation)  # raises here, where the class is defined, what would be raised when it is used
    return HandlerSpec(
        name=name,
        function=call,
        input_annotation=mark.input,
        input_names=tuple(type_names(mark.input)),
        message_annotations=mark.messages,
        output_annotations=mark.outputs,
        is_async=is_async,
        takes_context=takes_context,
        question_annotation=mark.question,
        question_names=tuple(type_names(mark.question)) if mark.is_response else (),
    )


def _without_context(function: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        return function(*given[:arguments])

    return call


def _is_async(function: Any) -> bool:
    inner = inspect.unwrap(function)
    return any(inspect.iscoroutinefunction(one) for one in (function, inner))


def _warn_of_state(cls: type[Executor]) -> None:
    for spec in (*cls.handlers, *cls.response_handlers):
        function = vars(cls).get(spec.name)
        code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
        if code is None or not code.co_argcount:
            continue
        for attribute in dict.fromkeys(_stored_attributes(code, code.co_varnames[0])):
            warnings.warn(
                f"{cls.__name__}.{spec.name} sets {code.co_varnames[0]}.{attribute}, which all runs share and a "
                f"restart loses; keep it with ctx.set_private or ctx.set_state",
                StatefulExecutorWarning,
                stacklevel=3,
            )


def _stored_attributes(code: CodeType, owner: str) -> Iterator[str]:
    """Attributes that the code sets on the variable `owner`, by `=`, `+=` and the like, also in functions inside it."""

    def is_owner(instruction: dis.Instruction | None) -> bool:
        if instruction is None or "LOAD_" not in instruction.opname:
            return False
        loaded = instruction.argval  # of instructions that load two variables, both
        return bool(owner == (loaded[-1] if isinstance(loaded, tuple) and loaded else loaded))

    before: dis.Instruction | None = None
    is_copied = False  # `owner.x += 1` loads owner, copies it, and reads x of the copy
    for instruction in dis.get_instructions(code):
        if (is_copied and instruction.opname == "LOAD_ATTR") or (
            instruction.opname == "STORE_ATTR" and is_owner(before)
        ):
            yield instruction.argval
        is_copied = instruction.opname == "COPY" and is_owner(before)
        before = instruction
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and owner in constant.co_freevars:
            yield from _stored_attributes(constant, owner)


# Functions as executors


class FunctionExecutor(Executor):
    """A function at a node. What it returns, unless None, is sent on."""

    def __init__(
        self,
        function: Callable[..., Any],
        id: str | None = None,
        *,
        input: Any = None,
        output: Any = None,
        workflow_output: Any = None,
        frame: FrameType | None = None,
        **settings: Any,
    ) -> None:
        """`input`, `output` and `workflow_output` as for `handler`, `settings` as for Executor; the id is the
        function's name.

        `frame` is where names in annotations are looked up that are neither global nor closed over.
        """
        name = getattr(function, "__name__", "")
        if not inspect.isfunction(function) and not inspect.ismethod(function):
            raise TypeError(f"an executor is made of a function, not of {function!r}")
        explicit = {"message": input, "sent": output, "yielded": workflow_output}
        given = {key: value for key, value in explicit.items() if value is not None}
        mark = read_signature(function, ("message",), given, frame, is_method=False)
        problems = list(mark.faults)
        if not problems:
            try:
                call = _sending(function, takes_context=mark.takes_context)
                spec = _spec(name, call, mark, is_async=_is_async(function), takes_context=True)
                self._table = HandlerTable([spec], [])
                self.handlers = self._table.handlers
            except (HocketError, TypeError) as error:
                problems.append(str(error))
        if problems:
            raise DefinitionError(id or name, [v1.Fault(path=name, message=problem) for problem in problems])
        self.function = function
        super().__init__(name if id is None else id, **settings)


def _sending(function: Callable[..., Any], *, takes_context: bool) -> Callable[..., Any]:
    """A handler that sends on what the function returns; its context it needs in any case."""

    def call(executor: Executor, message: Any, ctx: WorkflowContext[Any, Any]) -> None:
        value = function(message, ctx) if takes_context else function(message)
        if value is not None:
            ctx.send_message(value)

    async def call_async(executor: Executor, message: Any, ctx: WorkflowContext[Any, Any]) -> None:
        value = await (function(message, ctx) if takes_context else function(message))
        if value is not None:
            await ctx.send_message(value)

    return call_async if _is_async(function) else call


@overload
def executor(function: Callable[..., Any]) -> FunctionExecutor: ...
@overload
def executor(
    *,
    id: str | None = None,
    executor_type: str | None = None,
    retry: RetryPolicy | None = None,
    timeout: float | timedelta | None = None,
    schedule_timeout: float | timedelta | None = None,
    idle_timeout: float | timedelta | None = None,
    concurrency: int = 1,
    state_reads: Sequence[str] = (),
    on_stuck: OnStuck = "wait",
    handoffs: Sequence[str | Executor] = (),
    input: Any = None,
    output: Any = None,
    workflow_output: Any = None,
) -> Callable[[Callable[..., Any]], FunctionExecutor]: ...
def executor(
    function: Callable[..., Any] | None = None, **settings: Any
) -> FunctionExecutor | Callable[[Callable[..., Any]], FunctionExecutor]:
    """Makes a function `(message, ctx)` or `(message)`, async or plain, an executor of its own.

    What it returns, unless None, is sent on, so its return annotation is a type it sends. Settings as for Executor.
    """
    frame = sys._getframe(1)

    def decorate(function: Callable[..., Any]) -> FunctionExecutor:
        return FunctionExecutor(function, frame=frame, **settings)

    return decorate(function) if function is not None else decorate


class _CallableModule(ModuleType):
    """`from hocket import executor` means the decorator, yet importing this module binds its name in the package to the
    module. So the module is the decorator as well, whichever of the two was found.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return executor(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
