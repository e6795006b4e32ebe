"""Which handler takes a payload, a fan-in's list, an answer: always the most specific, in whatever order they are written."""

from dataclasses import dataclass
from typing import Any

import pytest

from hocket import selection, v1
from hocket.context import WorkflowContext
from hocket.executor import Executor, HandlerSpec, handler, response_handler
from hocket.payload import payload_type


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


def payload(annotation: object) -> v1.Payload:
    """What a value of this type travels as, without the value."""
    found = payload_type(annotation)
    return v1.Payload(type=found.name, supertypes=found.supertypes)


def name_of(spec: HandlerSpec | None) -> str | None:
    return None if spec is None else spec.name


def chosen(node: Executor, annotation: object) -> str | None:
    return name_of(node.select(payload(annotation)))


def joined(node: Executor, *annotations: object) -> str | None:
    return name_of(node.select_joined([payload(annotation) for annotation in annotations]))


def answered(node: Executor, question: object, answer: object) -> str | None:
    return name_of(node.select_answer(payload(question), payload(answer)))


class Keeper(Executor):
    @handler
    def feed(self, animal: Animal, ctx: WorkflowContext) -> None: ...


# Single messages: rule G1


class Chooser(Executor):
    @handler
    def anything(self, m: Any, ctx: WorkflowContext) -> None: ...
    @handler
    def animal(self, m: Animal, ctx: WorkflowContext) -> None: ...
    @handler
    def cat(self, m: Cat, ctx: WorkflowContext) -> None: ...
    @handler
    def stone_or_text(self, m: Stone | str, ctx: WorkflowContext) -> None: ...
    @handler
    def number(self, m: int, ctx: WorkflowContext) -> None: ...


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (Cat, "cat"),  # the exact type
        (Kitten, "cat"),  # the nearest supertype
        (Animal, "animal"),
        (str, "stone_or_text"),  # a member of a union
        (int, "number"),
        (bool, "anything"),  # a bool is no int (G2)
        (list[Cat], "anything"),
    ],
)
def test_the_most_specific_handler_wins(annotation: object, name: str) -> None:
    assert chosen(Chooser(), annotation) == name


def test_a_type_of_its_own_is_nearer_than_a_union() -> None:
    class Picky(Executor):
        @handler
        def union(self, m: Kitten | Stone, ctx: WorkflowContext) -> None: ...
        @handler
        def animal(self, m: Animal, ctx: WorkflowContext) -> None: ...

    # G1 in its words: exact type, then nearest supertype, then union member.
    assert chosen(Picky(), Kitten) == "animal"
    assert chosen(Picky(), Stone) == "union"


def test_what_no_handler_takes_is_taken_by_none() -> None:
    assert chosen(Keeper(), str) is None
    assert chosen(Keeper(), str) is None  # remembered too


def test_what_is_remembered_of_foreign_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "_CACHE_SIZE", 8)
    node = Chooser()
    for number in range(20):
        assert name_of(node.select(v1.Payload(type=f"foreign.T{number}"))) == "anything"
    assert len(node._table._payloads) <= 8


# Lists of a fan-in: rule G17


class Joiner(Executor):
    @handler
    def cats(self, m: list[Cat], ctx: WorkflowContext) -> None: ...
    @handler
    def animals(self, m: list[Animal], ctx: WorkflowContext) -> None: ...
    @handler
    def any_list(self, m: list[Any], ctx: WorkflowContext) -> None: ...
    @handler
    def anything(self, m: Any, ctx: WorkflowContext) -> None: ...
    @handler
    def one_cat(self, m: Cat, ctx: WorkflowContext) -> None: ...


@pytest.mark.parametrize(
    ("annotations", "name"),
    [
        ([Cat, Cat], "cats"),
        ([Cat, Kitten], "cats"),  # a common supertype
        ([Kitten, Animal], "animals"),
        ([Cat, Stone], "any_list"),
        ([str], "any_list"),
    ],
)
def test_a_joined_list_goes_to_the_nearest_list_that_takes_every_message(annotations: list[object], name: str) -> None:
    assert joined(Joiner(), *annotations) == name


def test_without_a_list_handler_any_takes_a_joined_list() -> None:
    assert joined(Chooser(), Cat, Cat) == "anything"
    assert joined(Keeper(), Animal, Animal) is None


def test_one_list_type_must_take_all_of_a_joined_list() -> None:
    class Either(Executor):
        @handler
        def take(self, m: list[str] | list[int], ctx: WorkflowContext) -> None: ...

    assert joined(Either(), str, str) == "take"
    assert joined(Either(), str, int) is None


# Answers


def test_the_nearest_question_wins_then_the_nearest_answer() -> None:
    class Asker(Executor):
        @handler
        def start(self, m: str, ctx: WorkflowContext) -> None: ...
        @response_handler
        def any_of_cat(self, question: Cat, answer: Any, ctx: WorkflowContext) -> None: ...
        @response_handler
        def text_of_animal(self, question: Animal, answer: str, ctx: WorkflowContext) -> None: ...
        @response_handler
        def flag_of_cat(self, question: Cat, answer: bool, ctx: WorkflowContext) -> None: ...

    assert answered(Asker(), Kitten, str) == "any_of_cat"
    assert answered(Asker(), Cat, bool) == "flag_of_cat"
    assert answered(Asker(), Animal, str) == "text_of_animal"
    assert answered(Asker(), Animal, bool) is None
