"""Executors: what their classes say of types, which handler takes what, and what is refused when a class is defined."""

import functools
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Never, TypeVar

import pytest

from hocket import v1
from hocket.context import Done, WorkflowContext
from hocket.errors import DefinitionError, StatefulExecutorWarning
from hocket.executor import Executor, FunctionExecutor, RetryPolicy, executor, handler, response_handler


@dataclass
class Animal:
    __hocket_type__ = "zoo.Animal"


@dataclass
class Cat(Animal):
    __hocket_type__ = "zoo.Cat"


@dataclass
class Kitten(Cat):
    __hocket_type__ = "zoo.Kitten"


@dataclass
class Stone:
    __hocket_type__ = "zoo.Stone"


T = TypeVar("T")


def refusal(define: Callable[[], object]) -> str:
    with pytest.raises(DefinitionError) as caught:
        define()
    return str(caught.value)


class Recorder(WorkflowContext[Any, Any]):
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[object] = []

    def send_message(self, message: Any, target_id: str | None = None) -> Done:
        self.sent.append(message)
        return Done()


# What a class says


class Keeper(Executor):
    @handler
    async def feed(self, animal: Animal, ctx: WorkflowContext[str | int, Cat]) -> None: ...

    @handler
    def weigh(self, stone: Stone, ctx: WorkflowContext) -> None: ...

    @response_handler
    async def on_answer(self, question: Animal, answer: bool, ctx: WorkflowContext[Stone]) -> None: ...


def test_types_come_from_the_annotations() -> None:
    feed, weigh = Keeper.handlers
    assert (feed.name, feed.input_names, feed.is_async, feed.takes_context) == ("feed", ("zoo.Animal",), True, True)
    assert feed.message_annotations == (str, int)
    assert feed.output_annotations == (Cat,)
    assert (weigh.is_async, weigh.message_annotations, weigh.output_annotations) == (False, (), ())
    [on_answer] = Keeper.response_handlers
    assert (on_answer.question_names, on_answer.input_names) == (("zoo.Animal",), ("bool",))


def test_the_types_of_all_handlers_are_those_of_the_executor() -> None:
    types = Keeper("keeper").types
    assert list(types.input_types) == ["zoo.Animal", "zoo.Stone"]  # an answer is no message
    assert [one.name for one in types.message_types] == ["int", "string", "zoo.Stone"]
    assert [(one.name, list(one.supertypes)) for one in types.output_types] == [("zoo.Cat", ["zoo.Animal"])]
    assert Keeper("a").types is Keeper("b").types


def test_the_order_of_handlers_does_not_change_the_types() -> None:
    class One(Executor):
        @handler
        def a(self, m: Cat, ctx: WorkflowContext[str]) -> None: ...
        @handler
        def b(self, m: Stone, ctx: WorkflowContext[int]) -> None: ...

    class Other(Executor):
        @handler
        def b(self, m: Stone, ctx: WorkflowContext[int]) -> None: ...
        @handler
        def a(self, m: Cat, ctx: WorkflowContext[str]) -> None: ...

    assert One.handlers[0].name != Other.handlers[0].name
    assert One().types == Other().types


def test_never_sends_nothing_and_any_sends_everything() -> None:
    class Two(Executor):
        @handler
        def quiet(self, m: str, ctx: WorkflowContext[Never, int]) -> None: ...
        @handler
        def loud(self, m: Any, ctx: WorkflowContext[Any]) -> None: ...

    types = Two().types
    assert list(types.input_types) == ["*", "string"]
    assert [one.name for one in types.message_types] == ["*"]
    assert [one.name for one in types.output_types] == ["int"]


def test_explicit_types_turn_the_annotations_off() -> None:
    class Told(Executor):
        @handler(input=Cat | Stone, output=str)
        async def take(self, message: int, ctx: WorkflowContext[bytes, bytes]) -> None: ...

        @response_handler(request="Cat", response=bool | None)
        async def on_answer(self, question, answer, ctx) -> None: ...  # type: ignore[no-untyped-def]

    [take] = Told.handlers
    assert take.input_names == ("zoo.Cat", "zoo.Stone")
    assert (take.message_annotations, take.output_annotations) == ((str,), ())
    [on_answer] = Told.response_handlers
    assert (on_answer.question_names, on_answer.input_names) == (("zoo.Cat",), ("bool", "null"))


def test_names_are_found_where_the_class_is_written() -> None:
    @dataclass
    class Local:
        __hocket_type__ = "local"

    class Reader(Executor):
        @dataclass
        class Own:
            __hocket_type__ = "own"

        @handler
        def a(self, m: "Local", ctx: "WorkflowContext[Own]") -> None: ...  # found in the class
        @handler
        def b(self, m: "list[Local]", ctx: "WorkflowContext") -> None: ...

    assert [spec.input_names for spec in Reader.handlers] == [("local",), ("list<local>",)]
    assert [one.name for one in Reader().types.message_types] == ["own"]


def test_postponed_annotations_are_read_too() -> None:
    space: dict[str, Any] = {"__name__": "postponed"}
    program = """
        from __future__ import annotations
        from hocket.executor import Executor, handler
        from hocket.context import WorkflowContext

        def make():
            class Local: __hocket_type__ = "local"
            class Late(Executor):
                @handler
                async def take(self, m: Local | None, ctx: WorkflowContext[Local, str]) -> Unknown: ...
            return Late
    """
    exec(textwrap.dedent(program), space)
    late: type[Executor] = space["make"]()
    assert late.handlers[0].input_names == ("local", "null")
    assert [one.name for one in late().types.message_types] == ["local"]


def test_a_handler_that_needs_no_context_is_called_without() -> None:
    class Plain(Executor):
        @handler
        def take(self, m: str) -> None:
            seen.append(m)

    seen: list[str] = []
    [spec] = Plain.handlers
    assert not spec.takes_context
    spec.function(Plain(), "one", Recorder())
    spec.function(Plain(), "two")
    assert seen == ["one", "two"]


def test_decorators_may_stand_above_and_below() -> None:
    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return function(*args)

        return call

    class Traced(Executor):
        @traced
        @handler
        async def above(self, m: str, ctx: WorkflowContext) -> None: ...
        @handler
        @traced
        async def below(self, m: int, ctx: WorkflowContext) -> None: ...

    above, below = Traced.handlers
    assert above.function is vars(Traced)["above"]
    assert (above.is_async, below.is_async) == (True, True)
    assert (above.input_names, below.input_names) == (("string",), ("int",))


# Inheritance


def test_handlers_are_inherited_and_an_override_replaces() -> None:
    class Junior(Keeper):
        @handler
        async def feed(self, animal: Cat, ctx: WorkflowContext) -> None: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]

    assert [spec.name for spec in Junior.handlers] == ["feed", "weigh"]
    assert Junior.handlers[0].input_names == ("zoo.Cat",)
    assert Keeper.handlers[0].input_names == ("zoo.Animal",)
    assert Junior.response_handlers == Keeper.response_handlers


def test_a_mixin_brings_handlers_and_none_takes_one_away() -> None:
    class Mixin:
        @handler
        def count(self, m: int, ctx: WorkflowContext) -> None: ...

    class Both(Mixin, Keeper):
        weigh = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

    assert [spec.name for spec in Both.handlers] == ["feed", "count"]


def test_an_override_that_is_no_handler_is_refused() -> None:
    def define() -> None:
        class Junior(Keeper):
            async def feed(self, animal: Animal, ctx: WorkflowContext[str | int, Cat]) -> None: ...

    assert "Junior.feed: overrides a handler without being one" in refusal(define)


# What is refused when a class is defined (G5)


def test_all_that_is_wrong_in_a_class_is_said_at_once() -> None:
    missing: Any = "Missing"

    def define() -> None:
        class Wrong(Executor, Generic[T]):
            @handler
            def unannotated(self, message, ctx: WorkflowContext) -> None: ...  # type: ignore[no-untyped-def]
            @handler
            def no_context(self, message: str, ctx) -> None: ...  # type: ignore[no-untyped-def]
            @handler
            def generic(self, message: list[T], ctx: WorkflowContext) -> None: ...
            @handler
            def sends_generic(self, message: int, ctx: WorkflowContext[T]) -> None: ...
            @handler
            def unknown(self, message: missing, ctx: WorkflowContext) -> None: ...  # pyright: ignore[reportInvalidTypeForm]
            @handler
            def other_context(self, message: bytes, ctx: int) -> None: ...
            @handler
            def too_much(self, message: str, more: str, ctx: WorkflowContext) -> None: ...
            @handler
            async def generator(self, message: float, ctx: WorkflowContext) -> Any:
                yield 1

            @staticmethod
            @handler
            def static(whom: Any, message: Cat, ctx: WorkflowContext) -> None: ...
            @handler
            def select(self, payload: Any, ctx: Any = None) -> Any: ...
            @handler(output=str)
            def half_told(self, message: bool, ctx: WorkflowContext) -> None: ...

    with pytest.raises(DefinitionError) as caught:
        define()
    found = {fault.path: fault.message for fault in caught.value.faults}
    for name, part in {
        "unannotated": "no annotation for 'message'",
        "no_context": "no annotation for 'ctx'; write WorkflowContext",
        "generic": "TypeVar ~T",
        "sends_generic": "TypeVar ~T",
        "unknown": "name 'Missing' is not defined",
        "other_context": "int is no WorkflowContext",
        "too_much": "a handler takes (self, message, ctx)",
        "generator": "is a generator",
        "static": "is a staticmethod",
        "select": "name of an attribute of Executor",
        "half_told": "no type for its message; give input=",
    }.items():
        assert part in found.pop(f"Wrong.{name}")
    assert found == {}


def test_two_handlers_for_one_type_are_refused() -> None:
    def define() -> None:
        class Twice(Executor):
            @handler
            def a(self, m: str | Cat, ctx: WorkflowContext) -> None: ...
            @handler
            def b(self, m: Cat | int, ctx: WorkflowContext) -> None: ...
            @response_handler
            def c(self, question: str, answer: int | bool, ctx: WorkflowContext) -> None: ...
            @response_handler
            def d(self, question: str, answer: bool, ctx: WorkflowContext) -> None: ...

    message = refusal(define)
    assert "handlers 'a' and 'b' both take 'zoo.Cat'" in message
    assert "response handlers 'c' and 'd' both take a 'bool' in answer to a 'string'" in message
    assert "2 faults" in message


def test_a_handler_inherited_counts_as_one() -> None:
    def define() -> None:
        class Second(Keeper):
            @handler
            def weigh_again(self, stone: Stone, ctx: WorkflowContext) -> None: ...

    assert "handlers 'weigh' and 'weigh_again' both take 'zoo.Stone'" in refusal(define)


def test_only_functions_are_handlers() -> None:
    with pytest.raises(TypeError, match="@handler is for a method"):
        handler(staticmethod(len))


# State between invocations


def test_state_kept_between_invocations_is_warned_of() -> None:
    with pytest.warns(StatefulExecutorWarning) as caught:

        class Counting(Executor):
            def __init__(self) -> None:
                super().__init__()
                self.limit = 3
                self.count = 0
                self.hidden = ""

            @handler
            async def take(self, m: str, ctx: WorkflowContext) -> None:
                self.last = m
                self.count += 1
                self.last = m + m

                def later() -> None:
                    self.hidden = m

                later()

    messages = [str(one.message) for one in caught]
    assert [message.split(",")[0] for message in messages] == [
        f"Counting.take sets self.{name}" for name in ("last", "count", "hidden")
    ]
    assert all("ctx.set_private or ctx.set_state" in message for message in messages)
    assert {one.filename for one in caught} == {__file__}


def test_other_assignments_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Clean(Executor):
            @handler
            def take(self, m: Any, ctx: WorkflowContext) -> None:
                m.owner = self
                m.count += self.handlers
                other = m
                other.seen = True

        # One warning for one mistake: who inherits is not warned again.
        with pytest.warns(StatefulExecutorWarning):

            class Dirty(Executor):
                @handler
                def take(self, m: Any, ctx: WorkflowContext) -> None:
                    self.x = m

        class Heir(Dirty): ...


# Settings


def test_the_id_is_that_of_the_class_and_the_type_that_of_the_id() -> None:
    assert (Keeper().id, Keeper().executor_type) == ("Keeper", "Keeper")
    assert (Keeper("k").id, Keeper("k").executor_type) == ("k", "k")
    assert Keeper("k", executor_type="zoo.keeper").executor_type == "zoo.keeper"


def test_a_node_without_settings_says_only_what_runs_there() -> None:
    node = Keeper("k").node()
    assert [field.name for field, _ in node.ListFields()] == ["id", "executor", "types"]


def test_settings_stand_in_the_node() -> None:
    billing = Keeper("billing")
    node = Keeper(
        "k",
        retry=RetryPolicy(
            initial_interval=0.5,
            maximum_interval=8,
            max_attempts=4,
            non_retryable=[ValueError, DefinitionError, "go.Bad"],
        ),
        timeout=1.5,
        schedule_timeout=timedelta(minutes=1),
        idle_timeout=2,
        concurrency=3,
        state_reads=["a", "b"],
        on_stuck="fail",
        handoffs=["sales", billing],
    ).node()
    assert node.retry_policy.initial_interval.ToTimedelta() == timedelta(seconds=0.5)
    assert node.retry_policy.maximum_interval.ToTimedelta() == timedelta(seconds=8)
    assert (node.retry_policy.max_attempts, node.retry_policy.max_redeliveries) == (4, 3)
    assert list(node.retry_policy.non_retryable_failure_types) == [
        "ValueError",
        "hocket.errors.DefinitionError",
        "go.Bad",
    ]
    assert node.timeout.ToTimedelta() == timedelta(seconds=1.5)
    assert node.schedule_timeout.ToTimedelta() == timedelta(minutes=1)
    assert node.idle_timeout.ToTimedelta() == timedelta(seconds=2)
    assert (node.concurrency, list(node.state_reads), node.on_stuck) == (3, ["a", "b"], v1.ON_STUCK_FAIL)
    assert list(node.handoff_node_ids) == ["sales", "billing"]


def test_wrong_settings_are_refused_all_at_once() -> None:
    nonsense: Any = "explode"
    message = refusal(
        lambda: Keeper(
            "k",
            timeout=0,
            idle_timeout=float("nan"),
            concurrency=0,
            on_stuck=nonsense,
            state_reads="abc",
        )
    )
    for part in ("timeout is 0", "idle_timeout is nan", "concurrency is 0", "on_stuck is 'explode'", "the text 'abc'"):
        assert part in message


@pytest.mark.parametrize(
    "settings",
    [
        {"initial_interval": 0},
        {"backoff_coefficient": 0.5},
        {"maximum_interval": 0.1},
        {"max_attempts": 0},
        {"max_redeliveries": 0},
    ],
)
def test_a_retry_policy_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        RetryPolicy(**settings)


def test_a_class_without_handlers_is_refused_when_it_is_made() -> None:
    class Empty(Executor): ...

    assert "class Empty has no handler" in refusal(Empty)


def test_a_forgotten_init_is_named() -> None:
    class Forgetful(Keeper):
        def __init__(self) -> None:
            pass

    assert "did not call super().__init__" in refusal(lambda: Forgetful().id)
    assert repr(Forgetful()) == "Forgetful(id=None)"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(Forgetful(), "nothing")  # noqa: B009  # no type checker lets it pass otherwise


# Functions


def test_a_function_becomes_an_executor() -> None:
    @executor(id="upper", concurrency=2)
    async def upper_case(text: str, ctx: WorkflowContext[str, int]) -> None: ...

    @executor
    def lower(text: str) -> str:
        return text.lower()

    assert isinstance(upper_case, FunctionExecutor)
    assert (upper_case.id, upper_case.concurrency, lower.id) == ("upper", 2, "lower")
    assert [one.name for one in upper_case.types.output_types] == ["int"]
    assert [one.name for one in lower.types.message_types] == ["string"]
    assert lower.function("A") == "a"
    assert (upper_case.handlers[0].is_async, lower.handlers[0].is_async) == (True, False)
    assert lower.select(v1.Payload(type="string")) is lower.handlers[0]


async def test_what_a_function_returns_is_sent_on() -> None:
    @executor
    async def later(text: str) -> str | None:
        return text or None

    @executor
    def now(number: int, ctx: WorkflowContext[str]) -> int:
        ctx.send_message("first")
        return number

    assert [one.name for one in later.types.message_types] == ["string"]
    assert [one.name for one in now.types.message_types] == ["int", "string"]
    ctx = Recorder()
    await later.handlers[0].function(later, "text", ctx)
    await later.handlers[0].function(later, "", ctx)  # None is not sent
    now.handlers[0].function(now, 0, ctx)
    assert ctx.sent == ["text", "first", 0]


def test_functions_may_be_told_their_types() -> None:
    @executor(id="told", input=Cat, output=str)
    def told(message, ctx):  # type: ignore[no-untyped-def]
        ...

    assert list(told.types.input_types) == ["zoo.Cat"]
    assert [one.name for one in told.types.message_types] == ["string"]


def test_a_function_that_says_too_little_is_refused() -> None:
    def silent(text: str):  # type: ignore[no-untyped-def]
        ...

    assert "neither a context nor a return annotation" in refusal(lambda: executor(silent))
    assert "no annotation for 'x'" in refusal(lambda: executor(lambda x: x))
    with pytest.raises(TypeError, match="made of a function"):
        executor(len)


def test_the_module_is_the_decorator_too() -> None:
    import hocket.executor as module
    from hocket import executor as decorator

    def twice(number: int) -> int:
        return 2 * number

    called: Any = module
    assert decorator(id="two")(twice).id == "two"
    assert called(id="two")(twice).id == "two"
    assert module.Executor is Executor
