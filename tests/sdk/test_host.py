"""The host: which handler is called with what, and how what goes wrong becomes data."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Never

import pytest

from hocket import v1
from hocket.context import WorkflowContext
from hocket.errors import EffectError, PayloadError
from hocket.executor import Executor, executor, handler
from hocket.host import Host, failure_of
from hocket.payload import Codec
from hocket.records import Completed, Delivery, Effects, Failed, GraphPosition, Invocation, Message
from hocket.testing import run_handler

# Failures as data, G31 and B06


def raised(make: Callable[[], Any]) -> BaseException:
    """What it raises, as a handler would: with a traceback."""
    try:
        make()
    except BaseException as error:  # noqa: BLE001  # whatever it is
        return error
    raise AssertionError("nothing was raised")


def fail(error: BaseException) -> Never:
    raise error


class AppError(Exception):
    next_retry_delay: float | None = None
    non_retryable: bool = False


def test_a_failure_has_the_name_and_text_of_the_error() -> None:
    failure = failure_of(raised(lambda: fail(ValueError("too low"))))
    assert (failure.kind, failure.type, failure.message) == (v1.FAILURE_KIND_APPLICATION, "ValueError", "too low")
    assert "ValueError: too low" in failure.stack_trace
    assert "in fail" in failure.stack_trace
    own = failure_of(AppError())
    assert own.type == f"{__name__}.AppError"
    assert own.message == ""


def test_the_chain_of_causes_is_kept() -> None:
    def outer() -> None:
        try:
            try:
                raise KeyError("deepest")
            except KeyError as error:
                raise ValueError("middle") from error
        except ValueError:
            raise AppError("outer")  # noqa: B904  # its context is what is tested

    failure = failure_of(raised(outer))
    chain = []
    while True:
        chain.append(failure.message)
        if not failure.HasField("cause"):
            break
        failure = failure.cause
    assert chain == ["outer", "middle", "'deepest'"]


def test_a_context_that_was_hidden_stays_hidden() -> None:
    def outer() -> None:
        try:
            raise KeyError("secret")
        except KeyError:
            raise AppError("shown") from None

    failure = failure_of(raised(outer))
    assert not failure.HasField("cause")
    assert "secret" not in failure.stack_trace


def test_a_chain_of_any_length_and_a_circle_come_to_an_end() -> None:
    error: Exception = ValueError("0")
    for number in range(1, 500):
        following = ValueError(str(number))
        following.__cause__ = error
        error = following
    failure_of(error).SerializeToString()
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    failure_of(one).SerializeToString()


def test_a_group_keeps_every_leaf_in_its_order() -> None:
    cause = KeyError("why")
    leaf = ValueError("b")
    leaf.__cause__ = cause
    group = ExceptionGroup("outer", [ValueError("a"), ExceptionGroup("inner", [leaf, TypeError("c")]), OSError("d")])
    failure = failure_of(group)
    assert [leaf.message for leaf in failure.leaves] == ["a", "b", "c", "d"]
    assert failure.leaves[1].cause.message == "'why'"
    assert failure.kind == v1.FAILURE_KIND_APPLICATION
    many = failure_of(ExceptionGroup("many", [ValueError(str(number)) for number in range(300)]))
    assert [leaf.message for leaf in many.leaves] == [str(number) for number in range(300)]


@pytest.mark.parametrize("inner", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()])
def test_an_interrupt_in_a_group_makes_it_a_cancellation(inner: BaseException) -> None:
    group = BaseExceptionGroup("several", [ValueError("a"), BaseExceptionGroup("deeper", [inner])])
    assert failure_of(group).kind == v1.FAILURE_KIND_CANCELLED


def test_what_a_handler_may_not_do_is_not_worth_a_retry() -> None:
    assert failure_of(EffectError("undeclared")).kind == v1.FAILURE_KIND_PROTOCOL
    assert failure_of(PayloadError("unknown")).kind == v1.FAILURE_KIND_PROTOCOL


def test_an_error_may_say_that_it_is_final_or_when_to_come_again() -> None:
    error = AppError("busy")
    error.next_retry_delay = 2.5
    assert failure_of(error).next_retry_delay.ToMilliseconds() == 2500
    assert not failure_of(error).non_retryable
    error.non_retryable = True
    assert failure_of(error).non_retryable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("lone \ud83d", "lone \\ud83d"),
        ("nul \0", "nul \\x00"),
        ("fine 👩🏽‍🚀", "fine 👩🏽‍🚀"),
        ("line\nbreak", "line\nbreak"),
    ],
)
def test_whatever_a_message_quotes_it_travels(text: str, shown: str) -> None:
    failure = failure_of(raised(lambda: fail(ValueError(text))))
    assert failure.message == shown
    assert v1.Failure.FromString(failure.SerializeToString()) == failure
    assert "\0" not in failure.stack_trace


def test_a_long_stack_is_cut() -> None:
    def deep(number: int) -> None:
        if not number:
            raise ValueError("x" * 100_000)
        deep(number - 1)

    failure = failure_of(raised(lambda: deep(100)))
    assert len(failure.stack_trace) <= 16 * 1024 * 4


async def test_an_error_whose_text_cannot_be_made_is_a_failure_all_the_same() -> None:
    class UnspeakableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    class Raising(Executor):
        @handler
        async def work(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            raise UnspeakableError

    with pytest.raises(UnspeakableError):
        await run_handler(Raising("raising"), "x")


# Which handler, G1 and G17


@dataclass
class Animal:
    name: str


@dataclass
class Dog(Animal):
    pass


@dataclass
class Puppy(Dog):
    weeks: int


class Choosing(Executor):
    """Says which of its handlers was called; they stand in an order that must not matter."""

    @handler
    async def anything(self, value: Any, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"anything {value!r}")

    @handler
    async def animal(self, value: Animal, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"animal {type(value).__name__}")

    @handler
    async def dog(self, value: Dog, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"dog {type(value).__name__}")

    @handler
    async def union(self, value: int | bytes, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"union {value!r}")

    @handler
    async def strings(self, value: list[str], ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"strings {value}")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Animal("a"), "animal Animal"),
        (Dog("d"), "dog Dog"),
        (Puppy("p", 3), "dog Puppy"),
        (1, "union 1"),
        (b"x", "union b'x'"),
        (True, "anything True"),
        ("text", "anything 'text'"),
        (1.5, "anything 1.5"),
        (None, "anything None"),
        (["a"], "strings ['a']"),
        ([], "strings []"),
        ([1], "anything [1]"),
    ],
)
async def test_the_most_specific_handler_is_called(value: object, expected: str) -> None:
    codec = Codec()
    codec.register(Puppy)
    assert (await run_handler(Choosing("choosing"), value, codec=codec)).outputs == [expected]


async def test_a_list_goes_to_a_list_handler_with_its_elements_decoded() -> None:
    class Join(Executor):
        @handler
        async def dogs(self, dogs: list[Dog], ctx: WorkflowContext[Never, Any]) -> None:
            await ctx.yield_output(["dogs", [type(dog).__name__ for dog in dogs]])

        @handler
        async def anything(self, values: list[Any], ctx: WorkflowContext[Never, Any]) -> None:
            await ctx.yield_output(["any", values])

    join = Join("join")
    dogs = await run_handler(join, [Dog("a"), Dog("b")], sources=["x", "y"])
    assert dogs.outputs == [["dogs", ["Dog", "Dog"]]]
    mixed = await run_handler(join, [Dog("a"), 1, None], sources=["x", "y", "z"])
    assert mixed.outputs == [["any", [Dog("a"), 1, None]]]
    lists = await run_handler(join, [[1], [2, 3]], sources=["x", "y"])
    assert lists.outputs == [["any", [[1], [2, 3]]]]


async def test_what_is_returned_by_a_function_is_sent_and_by_a_method_is_not() -> None:
    @executor(id="function")
    async def function(text: str) -> str | None:
        return text or None

    class Method(Executor):
        @handler
        async def method(self, text: str, ctx: WorkflowContext[str]) -> str:
            return "ignored"

    assert (await run_handler(function, "x")).sent == ["x"]
    assert (await run_handler(function, "")).sent == []
    assert (await run_handler(Method("method"), "x")).sent == []


async def test_what_a_function_returns_must_be_what_it_declares() -> None:
    @executor(id="function")
    def function(text: str) -> int:
        undeclared: Any = text
        return undeclared  # type: ignore[no-any-return]

    with pytest.raises(EffectError, match="'string'"):
        await run_handler(function, "x")


# Invocations


def invocation(*messages: object, executor_type: str = "e", attempt: int = 1) -> Invocation:
    codec = Codec()
    delivery = Delivery([Message(f"m{number}", "s", codec.encode(value)) for number, value in enumerate(messages)])
    return Invocation("run/1/e", attempt, "run", GraphPosition(1, "e"), executor_type, [delivery])


def silent(sign: object) -> None:
    pass


class Echo(Executor):
    def __init__(self) -> None:
        super().__init__("e")
        self.running = self.most = 0

    @handler
    async def echo(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        if text == "bad":
            raise ValueError("bad")
        await asyncio.sleep(0)
        await ctx.send_message(text)


async def test_messages_are_handled_one_after_the_other_and_all_or_none_count() -> None:
    host = Host({"e": Echo()}, Codec())
    done = await host.handle(invocation("a", "b", "c"), silent)
    assert isinstance(done, Completed)
    assert isinstance(done.outcome, Effects)
    assert [message.payload.data for message in done.outcome.messages] == [b'"a"', b'"b"', b'"c"']
    assert [message.message_id for message in done.outcome.messages] == [f"run/1/e/{n}" for n in (1, 2, 3)]
    failed = await host.handle(invocation("a", "bad", "c"), silent)
    assert isinstance(failed, Failed)
    assert failed.failure.message == "bad"


async def test_the_original_error_is_there_until_it_is_taken_or_the_invocation_succeeds() -> None:
    host = Host({"e": Echo()}, Codec())
    await host.handle(invocation("bad"), silent)
    error = host.take_error("run", "run/1/e")
    assert isinstance(error, ValueError)
    assert host.take_error("run", "run/1/e") is None
    await host.handle(invocation("bad"), silent)
    await host.handle(invocation("good", attempt=2), silent)
    assert host.errors == {}


async def test_an_executor_that_is_not_there_and_a_type_that_nobody_handles() -> None:
    host = Host({"e": Echo()}, Codec())
    for wrong, text in ((invocation("x", executor_type="f"), "known: e"), (invocation(1), "no handler for 'int'")):
        failed = await host.handle(wrong, silent)
        assert isinstance(failed, Failed)
        assert failed.failure.kind == v1.FAILURE_KIND_PROTOCOL
        assert text in failed.failure.message


async def test_a_cancellation_passes_through() -> None:
    class Hanging(Executor):
        @handler
        async def hang(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
            await asyncio.Event().wait()

    host = Host({"e": Hanging("e")}, Codec())
    task = asyncio.create_task(host.handle(invocation("x"), silent))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert host.errors == {}


# Plain handlers


class Threaded(Executor):
    def __init__(self, act: Callable[[WorkflowContext[Any, Any]], Any]) -> None:
        super().__init__("e")
        self.act = act

    @handler
    def work(self, text: str, ctx: WorkflowContext[Any, Any]) -> None:
        self.act(ctx)


async def test_plain_handlers_run_in_a_bounded_pool_of_threads() -> None:
    lock, meeting = threading.Lock(), threading.Barrier(2, timeout=10)
    names: set[str] = set()

    def act(ctx: WorkflowContext[Any, Any]) -> None:
        with lock:
            names.add(threading.current_thread().name)
        meeting.wait()

    host = Host({"e": Threaded(act)}, Codec(), max_threads=2)
    await asyncio.gather(*(host.handle(invocation("x"), silent) for _ in range(6)))
    host.close()
    assert len(names) == 2
    assert threading.main_thread().name not in names


async def test_a_plain_handler_sees_the_context_variables_of_its_caller() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="none")
    seen: list[str] = []
    host = Host({"e": Threaded(lambda ctx: seen.append(variable.get()))}, Codec())
    variable.set("mine")
    await host.handle(invocation("x"), silent)
    host.close()
    assert seen == ["mine"]


async def test_reports_of_a_thread_arrive_in_the_loop_before_its_end() -> None:
    threads: list[int] = []
    signs: list[Any] = []

    def live(sign: Any) -> None:
        threads.append(threading.get_ident())
        signs.append(sign.fraction)

    def act(ctx: WorkflowContext[Any, Any]) -> None:
        for number in range(5):
            ctx.report(number / 10)

    host = Host({"e": Threaded(act)}, Codec())
    await host.handle(invocation("x"), live)
    host.close()
    assert signs == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert set(threads) == {threading.get_ident()}


async def test_a_plain_handler_that_gives_back_an_awaitable_is_awaited() -> None:
    class Lazy(Executor):
        @handler
        def work(self, text: str, ctx: WorkflowContext[str]) -> Awaitable[None]:
            async def later() -> None:
                await asyncio.sleep(0)
                await ctx.send_message(text)

            return later()

    assert (await run_handler(Lazy("lazy"), "x")).sent == ["x"]


async def test_a_cancelled_thread_is_told_and_awaited() -> None:
    begun, go_on = threading.Event(), threading.Event()
    seen: list[bool] = []

    def act(ctx: WorkflowContext[Any, Any]) -> None:
        seen.append(ctx.cancelled)
        begun.set()
        go_on.wait(10)
        seen.append(ctx.cancelled)

    host = Host({"e": Threaded(act)}, Codec())
    task = asyncio.create_task(host.handle(invocation("x"), silent))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    host.close()
    assert seen == [False, True]


async def test_a_thread_that_is_cancelled_twice_is_still_awaited() -> None:
    """G33: it keeps its slot, visibly, until it returns. A time-out and then a cancel of the run cancel twice."""
    begun, go_on = threading.Event(), threading.Event()

    def act(ctx: WorkflowContext[Any, Any]) -> None:
        begun.set()
        go_on.wait(10)

    host = Host({"e": Threaded(act)}, Codec())
    task = asyncio.create_task(host.handle(invocation("x"), silent))
    await asyncio.to_thread(begun.wait, 10)
    try:
        for _ in range(2):
            task.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
        assert not task.done()
    finally:
        go_on.set()
        await asyncio.wait({task})
        host.close()


async def test_a_plain_handler_that_is_cancelled_before_it_began_never_begins() -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def act(ctx: WorkflowContext[Any, Any]) -> None:
        calls.append(ctx.invocation_id)
        begun.set()
        go_on.wait(10)

    host = Host({"e": Threaded(act)}, Codec(), max_threads=1)
    first = asyncio.create_task(host.handle(invocation("x"), silent))
    await asyncio.to_thread(begun.wait, 10)
    second = asyncio.create_task(host.handle(invocation("x"), silent))
    await asyncio.sleep(0)
    second.cancel()
    try:
        await asyncio.sleep(0)
    finally:
        go_on.set()
        await asyncio.wait({first, second})
        host.close()
    assert len(calls) == 1
