"""Which handler takes a payload: by the names of types alone (G1).

    exact type  >  nearest supertype  >  member of a union (itself, then its nearest supertype)  >  Any

Of two handlers that take a payload one is always nearer, since no type may stand in two: so the order in which
handlers are written never matters. How a handler is called, and with what context, is the host's business.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, TypeAlias, TypeVar, Union, get_args, get_origin

from hocket import v1
from hocket.payload import payload_type, type_names

_ANY: Final = "*"
_CACHE_SIZE: Final = 4096


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """One handler. `function` is called as `function(executor, message, ctx)`, of a response handler as
    `function(executor, question, answer, ctx)`; without `takes_context` it does without the last.

    For a response handler `input_annotation` and `input_names` are those of the answer.
    """

    name: str
    function: Callable[..., Any]
    input_annotation: Any
    input_names: tuple[str, ...]
    message_annotations: tuple[Any, ...]
    output_annotations: tuple[Any, ...]
    is_async: bool
    takes_context: bool
    question_annotation: Any = None
    question_names: tuple[str, ...] = ()


class HandlerTable:
    """The handlers of one class. Selection is by names of types, and remembered."""

    __slots__ = ("_answers", "_exact", "_joins", "_payloads", "_types", "handlers", "response_handlers")

    def __init__(self, handlers: Sequence[HandlerSpec], response_handlers: Sequence[HandlerSpec]) -> None:
        self.handlers = tuple(handlers)
        self.response_handlers = tuple(response_handlers)
        self._types: v1.ExecutorTypes | None = None
        # An exact match is the nearest there is, whatever the supertypes.
        self._exact = {spec.input_names[0]: spec for spec in self.handlers if len(spec.input_names) == 1}
        self._payloads: dict[tuple[str, ...], HandlerSpec | None] = {}
        self._joins: dict[frozenset[tuple[str, ...]], HandlerSpec | None] = {}
        self._answers: dict[tuple[tuple[str, ...], tuple[str, ...]], HandlerSpec | None] = {}

    def faults(self) -> Iterator[str]:
        """Types that two handlers take."""
        owners: dict[str, str] = {}
        for spec in self.handlers:
            for name in spec.input_names:
                if (first := owners.setdefault(name, spec.name)) != spec.name:
                    yield f"handlers {first!r} and {spec.name!r} both take {name!r}; a type has one handler"
        pairs: dict[tuple[str, str], str] = {}
        for spec in self.response_handlers:
            for pair in [(question, answer) for question in spec.question_names for answer in spec.input_names]:
                if (first := pairs.setdefault(pair, spec.name)) != spec.name:
                    yield (
                        f"response handlers {first!r} and {spec.name!r} both take "
                        f"a {pair[1]!r} in answer to a {pair[0]!r}"
                    )

    @property
    def types(self) -> v1.ExecutorTypes:
        """Sorted: the order of handlers must not change a definition. Do not touch it."""
        if self._types is None:
            specs = (*self.handlers, *self.response_handlers)
            self._types = v1.ExecutorTypes(
                input_types=sorted({name for spec in self.handlers for name in spec.input_names}),
                message_types=_payload_types(one for spec in specs for one in spec.message_annotations),
                output_types=_payload_types(one for spec in specs for one in spec.output_annotations),
                element_types=_element_types(spec.input_annotation for spec in self.handlers),
            )
        return self._types

    def select(self, payload: v1.Payload) -> HandlerSpec | None:
        if exact := self._exact.get(payload.type):
            return exact
        names = (payload.type, *payload.supertypes)
        try:
            return self._payloads[names]
        except KeyError:
            ranked = [(_rank(names, spec.input_names), spec) for spec in self.handlers]
            return _remember(self._payloads, names, _nearest(ranked))

    def select_joined(self, payloads: Sequence[v1.Payload]) -> HandlerSpec | None:
        kinds = frozenset((payload.type, *payload.supertypes) for payload in payloads)
        try:
            return self._joins[kinds]
        except KeyError:
            ranked = [(_joined_rank(kinds, spec.input_names), spec) for spec in self.handlers]
            return _remember(self._joins, kinds, _nearest(ranked))

    def select_answer(self, question: v1.Payload, answer: v1.Payload) -> HandlerSpec | None:
        names = (question.type, *question.supertypes), (answer.type, *answer.supertypes)
        try:
            return self._answers[names]
        except KeyError:
            ranked = [(_answer_rank(*names, spec), spec) for spec in self.response_handlers]
            return _remember(self._answers, names, _nearest(ranked))


_Rank: TypeAlias = tuple[int, ...]
_Key = TypeVar("_Key")

_EXACT, _SUPERTYPE, _UNION, _ANYTHING = range(4)


def _rank(names: Sequence[str], taken: Sequence[str]) -> _Rank | None:
    """How near a handler that takes these is to a payload of these names; less is nearer."""
    for distance, name in enumerate(names):
        if name in taken:
            return (_UNION if len(taken) > 1 else min(distance, _SUPERTYPE)), distance
    return (_ANYTHING, 0) if _ANY in taken else None


def _answer_rank(question: Sequence[str], answer: Sequence[str], spec: HandlerSpec) -> _Rank | None:
    asked, answered = _rank(question, spec.question_names), _rank(answer, spec.input_names)
    return None if asked is None or answered is None else (*asked, *answered)


def _joined_rank(kinds: frozenset[tuple[str, ...]], taken: Sequence[str]) -> _Rank | None:
    """As `_rank`, for a list: one `list<T>` must take every element, and is as near as the farthest."""
    ranks: list[_Rank] = [(_ANYTHING + 1, 0)] if _ANY in taken else []
    for name in taken:
        if name.startswith("list<") and name.endswith(">"):
            element = _ANY if name == "list<any>" else name[5:-1]
            found = [_rank(names, (element,)) for names in kinds]
            each = [rank for rank in found if rank is not None]
            if len(each) == len(found):
                kind, distance = max(each, default=(_EXACT, 0))
                ranks.append((max(kind, _UNION) if len(taken) > 1 else kind, distance))
    return min(ranks, default=None)


def _nearest(ranked: Sequence[tuple[_Rank | None, HandlerSpec]]) -> HandlerSpec | None:
    found = [(rank, spec.name, spec) for rank, spec in ranked if rank is not None]
    return min(found, key=lambda one: one[:2])[2] if found else None


def _remember(cache: dict[_Key, HandlerSpec | None], key: _Key, spec: HandlerSpec | None) -> HandlerSpec | None:
    if len(cache) >= _CACHE_SIZE:  # names of types come from outside
        cache.clear()
    cache[key] = spec
    return spec


def _element_types(annotations: Iterator[Any]) -> list[str]:
    """What lists of a fan-in may hold, said only where a handler takes a list of a union: its name is `list<any>` (G17)."""
    elements: set[str] = set()
    has_union = False
    for annotation in annotations:
        is_union = get_origin(annotation) in {Union, UnionType}
        for member in get_args(annotation) if is_union else (annotation,):
            if get_origin(member) is list:
                names = type_names(get_args(member)[0])
                has_union = has_union or len(names) > 1
                elements.update(names)
            elif member is list or member is Any:
                elements.add(_ANY)
    return sorted(elements) if has_union else []


def _payload_types(annotations: Iterator[Any]) -> list[v1.PayloadType]:
    types: dict[str, v1.PayloadType] = {}
    for annotation in annotations:
        found = payload_type(annotation)
        types[found.name] = found
    return [types[name] for name in sorted(types)]
