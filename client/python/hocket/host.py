"""Runs one handler for one invocation: the in-process half of a worker.

A host has executors by type. It decodes what came, calls the handler nearest to each payload's type, one message after the
other, and gives back what the handlers did as one Completed, or the first thing that went wrong as a Failed. It knows
neither retries nor deadlines: one attempt is all it sees. Plain handlers run in a bounded pool of threads; a thread cannot
be interrupted, so a cancelled one is told (`ctx.cancelled`) and awaited.
"""

import asyncio
import contextlib
import contextvars
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias

from hocket import v1
from hocket.context import Handling, Suspension, WorkflowContext
from hocket.errors import EffectError, PayloadError, error_name
from hocket.payload import Codec
from hocket.records import Completed, Delivery, Failed, Invocation, Live, Message

MAX_STACK = 16 * 1024


class Handler(Protocol):
    """What a host needs to know of a handler (`executor.HandlerSpec`)."""

    @property
    def name(self) -> str: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def input_annotation(self) -> Any: ...
    @property
    def question_annotation(self) -> Any: ...
    @property
    def message_annotations(self) -> tuple[Any, ...]: ...
    @property
    def output_annotations(self) -> tuple[Any, ...]: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def takes_context(self) -> bool: ...


_Call: TypeAlias = tuple[Handler, Sequence[Any]]


class Hosted(Protocol):
    """What a host needs of an executor: the choice of its handlers."""

    @property
    def handlers(self) -> Sequence[Handler]: ...
    @property
    def response_handlers(self) -> Sequence[Handler]: ...
    def select(self, payload: v1.Payload) -> Handler | None: ...
    def select_joined(self, payloads: Sequence[v1.Payload]) -> Handler | None: ...
    def select_answer(self, question: v1.Payload, answer: v1.Payload) -> Handler | None: ...


class Host:
    """`executors` by executor type. `errors` holds the exception behind each Failed, by invocation id, until it is
    taken: in-process callers get the original."""

    def __init__(self, executors: Mapping[str, Hosted], codec: Codec, *, max_threads: int = 32) -> None:
        self.executors = dict(executors)
        self.codec = codec
        self.errors: dict[str, BaseException] = {}
        self._handling: dict[int, Handling] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._max_threads = max_threads
        for executor in self.executors.values():
            for handler in (*executor.handlers, *executor.response_handlers):
                self._register(handler)

    def _register(self, handler: Handler) -> None:
        annotations = (handler.input_annotation, handler.question_annotation)
        for annotation in (*annotations, *handler.message_annotations, *handler.output_annotations):
            if annotation is not None:
                self.codec.register(annotation)

    async def handle(self, invocation: Invocation, live: Live) -> Completed | Failed:
        """Run it. CancelledError passes through, once the handler has ended."""
        context: WorkflowContext[Any, Any] = WorkflowContext(invocation, self.codec, live)
        try:
            executor = self.executors.get(invocation.executor_type)
            if executor is None:
                known = ", ".join(sorted(self.executors)) or "none"
                raise EffectError(f"executor {invocation.executor_type!r} is not registered here; known: {known}")
            answers = context._answers = _answers_to(invocation) if invocation.attempt > 1 else None
            for delivery in invocation.deliveries:
                if delivery.joined:
                    await self._call(*self._list_call(executor, delivery, context), context)
                    continue
                for message in delivery.messages:
                    if not message.question_id:
                        handler, arguments = self._message_call(executor, message, context)
                        # The common case without the detour of another coroutine.
                        if handler.is_async:
                            await handler.function(*arguments)
                        else:
                            await self._call(handler, arguments, context)
                    elif answers is None or message.question_id not in answers:
                        await self._call(*self._answer_call(executor, message, context), context)
        except Suspension as suspension:
            return Completed(invocation.invocation_id, invocation.attempt, suspension.suspended)
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001  # users' code
            self.errors[invocation.invocation_id] = error
            return Failed(invocation.invocation_id, invocation.attempt, failure_of(error))
        if self.errors:
            self.errors.pop(invocation.invocation_id, None)
        return Completed(invocation.invocation_id, invocation.attempt, context.effects())

    async def _call(self, handler: Handler, arguments: Sequence[Any], context: WorkflowContext[Any, Any]) -> None:
        if handler.is_async:
            await handler.function(*arguments)
        else:
            await self._in_thread(handler.function, arguments, context)

    def _message_call(self, executor: Hosted, message: Message, context: WorkflowContext[Any, Any]) -> _Call:
        handler = executor.select(message.payload)
        if handler is None:
            raise EffectError(f"{type(executor).__name__} has no handler for {message.payload.type!r}")
        value = self.codec.decode(message.payload, handler.input_annotation)
        context._handling = self._handling.get(id(handler)) or self._new_handling(executor, handler)
        context._sources = (message.source_node_id,) if message.source_node_id else ()
        return handler, (executor, value, context) if handler.takes_context else (executor, value)

    def _list_call(self, executor: Hosted, delivery: Delivery, context: WorkflowContext[Any, Any]) -> _Call:
        payloads = [message.payload for message in delivery.messages]
        handler = executor.select_joined(payloads)
        if handler is None:
            types = ", ".join(dict.fromkeys(payload.type for payload in payloads))
            raise EffectError(f"{type(executor).__name__} has no handler for a list of {types}")
        element = _element_of(handler.input_annotation)
        values = [self.codec.decode(payload, element) for payload in payloads]
        sources = [message.source_node_id for message in delivery.messages]
        return self._prepare(executor, handler, context, sources, values)

    def _answer_call(self, executor: Hosted, message: Message, context: WorkflowContext[Any, Any]) -> _Call:
        question = message.question or v1.Payload(type="null")
        handler = executor.select_answer(question, message.payload)
        if handler is None:
            raise EffectError(
                f"{type(executor).__name__} has no response handler for {message.payload.type!r} "
                f"in answer to {question.type!r}"
            )
        asked = self.codec.decode(question, handler.question_annotation)
        answer = self.codec.decode(message.payload, handler.input_annotation)
        return self._prepare(executor, handler, context, (), asked, answer)

    def _prepare(
        self,
        executor: Hosted,
        handler: Handler,
        context: WorkflowContext[Any, Any],
        sources: Sequence[str],
        *values: Any,
    ) -> _Call:
        context._handling = self._handling.get(id(handler)) or self._new_handling(executor, handler)
        context._sources = sources
        return handler, (executor, *values, context) if handler.takes_context else (executor, *values)

    def _new_handling(self, executor: Hosted, handler: Handler) -> Handling:
        place = f"handler '{type(executor).__name__}.{handler.name}'"
        handling = Handling(place, handler.message_annotations, handler.output_annotations)
        self._handling[id(handler)] = handling
        return handling

    async def _in_thread(
        self, function: Callable[..., Any], arguments: Sequence[Any], context: WorkflowContext[Any, Any]
    ) -> None:
        loop = asyncio.get_running_loop()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._max_threads, thread_name_prefix="hocket-handler")
        live = context._live

        def live_from_thread(sign: v1.Progress | v1.LiveEvent) -> None:
            loop.call_soon_threadsafe(live, sign)

        context._live = live_from_thread
        variables = contextvars.copy_context()
        job = self._pool.submit(variables.run, function, *arguments)
        thread = asyncio.wrap_future(job)
        try:
            result = await asyncio.shield(thread)
        except asyncio.CancelledError:
            context._cancelled = True
            if not job.cancel():
                # It has begun. However often it is cancelled, it keeps its slot until it returns (G33).
                while not thread.done():
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.wait({thread})
                if not thread.cancelled():
                    thread.exception()
            raise
        finally:
            context._live = live
        if isinstance(result, Awaitable):
            await result

    def take_error(self, run_id: str, invocation_id: str) -> BaseException | None:
        """The exception behind an invocation's failure; the run's others are let go."""
        error = self.errors.get(invocation_id)
        for each in [each for each in self.errors if each.startswith(f"{run_id}/")]:
            del self.errors[each]
        return error

    def close(self) -> None:
        """Take no more plain handlers; those that run are not waited for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _answers_to(invocation: Invocation) -> Mapping[str, v1.Payload]:
    """Answers to what this invocation itself asked and stopped for: they are read by `ask`, not handled."""
    own = f"{invocation.invocation_id}/"
    return {
        message.question_id: message.payload
        for delivery in invocation.deliveries
        for message in delivery.messages
        if message.question_id.startswith(own)
    }


def _element_of(annotation: Any) -> Any:
    """The element's annotation of a list handler; Any where it says nothing of elements."""
    for member in (annotation, *getattr(annotation, "__args__", ())):
        if getattr(member, "__origin__", None) is list:
            return member.__args__[0]
    return Any


def failure_of(error: BaseException, *, depth: int = 16) -> v1.Failure:
    """An exception as data: its type's name, text, stack, cause chain, and every leaf of a group in the group's order."""
    failure = v1.Failure(kind=_kind_of(error), type=error_name(type(error)), message=_text_of(error))
    failure.stack_trace = _stack_of(error)
    failure.non_retryable = bool(getattr(error, "non_retryable", False))
    delay = getattr(error, "next_retry_delay", None)
    if isinstance(delay, int | float):
        failure.next_retry_delay.FromNanoseconds(int(delay * 1_000_000_000))
    if depth == 0:
        return failure
    if isinstance(error, BaseExceptionGroup):
        failure.leaves.extend(failure_of(leaf, depth=depth - 1) for leaf in _leaves(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        failure.cause.CopyFrom(failure_of(cause, depth=depth - 1))
    return failure


def _kind_of(error: BaseException) -> v1.FailureKind.ValueType:
    """A cancellation inside a group is a cancellation (B06); what a handler may not do is no failure of its code."""
    if isinstance(error, BaseExceptionGroup):
        if any(not isinstance(leaf, Exception) for leaf in _leaves(error)):
            return v1.FAILURE_KIND_CANCELLED
    elif isinstance(error, EffectError | PayloadError):
        return v1.FAILURE_KIND_PROTOCOL
    return v1.FAILURE_KIND_APPLICATION


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    leaves: list[BaseException] = []
    for error in group.exceptions:
        leaves.extend(_leaves(error) if isinstance(error, BaseExceptionGroup) else [error])
    return leaves


def _text_of(error: BaseException) -> str:
    try:
        return _clean(str(error))
    except Exception as failed:  # noqa: BLE001  # users' code: the error's own __str__
        return f"<no text: its __str__ raised {type(failed).__name__}>"


def _stack_of(error: BaseException) -> str:
    try:
        return _clean("".join(traceback.format_exception(error, chain=False))[-MAX_STACK:])
    except Exception:  # noqa: BLE001  # users' code
        return _clean("".join(traceback.format_tb(error.__traceback__))[-MAX_STACK:])


def _clean(text: str) -> str:
    """Text of an error must travel whatever it quotes: lone surrogates and NUL are shown escaped."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
