"""What a handler's signature says: the types it takes, sends and yields, and everything that is wrong with it.

Names in annotations are looked up where the function is written: in the functions and classes around it while they
run, in what it closes over, in its module. So `from __future__ import annotations` and classes defined in a function
both work.
"""

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, NoneType, SimpleNamespace, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from typing_extensions import TypeAliasType

from hocket.context import WorkflowContext


@dataclass(frozen=True, slots=True)
class Signature:
    """What one function says of itself. With `faults` the rest is not to be relied on."""

    is_response: bool
    question: Any = None
    input: Any = None
    messages: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    takes_context: bool = True
    faults: tuple[str, ...] = ()


class _UnreadableError(Exception):
    """Internal: an annotation that cannot be used, and why."""


def read_signature(
    function: Callable[..., Any],
    roles: Sequence[str],
    explicit: Mapping[str, Any],
    frame: FrameType | None,
    *,
    is_method: bool,
) -> Signature:
    """`roles` name what comes before the context; `explicit` turns annotations off."""
    is_response = len(roles) == 2
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty or p.name == "ctx"]
    if is_method:
        parameters = parameters[1:]
    shape = f"({', '.join((*(('self',) if is_method else ()), *roles, 'ctx'))})"
    if len(parameters) not in {len(roles), len(roles) + 1} or any(
        p.kind not in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} for p in parameters
    ):
        return Signature(is_response, faults=(f"takes {inspect.signature(function)}; a handler takes {shape}",))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return Signature(
            is_response, faults=("is a generator; call ctx.send_message or ctx.yield_output instead of `yield`",)
        )
    takes_context = len(parameters) > len(roles)
    found: dict[str, Any] = {}
    faults: list[str] = []
    wanted = dict(explicit)
    if not explicit:
        for role, parameter in zip((*roles, "context"), parameters, strict=False):
            if parameter.annotation is parameter.empty:
                faults.append(f"has no annotation for {parameter.name!r}{_advice(role)}")
            else:
                wanted[role] = parameter.annotation
        if (not is_method and not takes_context) or (not is_method and _return_annotation(function) is not None):
            annotation = _return_annotation(function)
            if annotation is None:
                faults.append(
                    "has neither a context nor a return annotation; say what it returns, `-> None` for nothing"
                )
            else:
                wanted["returned"] = annotation
    for role, annotation in wanted.items():
        try:
            found[role] = _resolved(annotation, function, frame)
            if role in {*roles, "sent", "yielded", "returned"}:
                _check_annotation(found[role])
        except _UnreadableError as error:
            faults.append(f"{role}: {error}")
    faults += [
        f"has no type for its {role}; give {_KEYWORDS[role]}=" for role in roles if explicit and role not in wanted
    ]
    sent, yielded = found.get("sent"), found.get("yielded")
    if "context" in found:
        try:
            sent, yielded = _context_types(found["context"])
        except _UnreadableError as error:
            faults.append(f"context: {error}")
    messages = [*_members(sent), *(one for one in _members(found.get("returned")) if one is not NoneType)]
    return Signature(
        is_response,
        found.get("question"),
        found.get(roles[-1]),
        tuple(dict.fromkeys(messages)),
        tuple(_members(yielded)),
        takes_context,
        tuple(faults),
    )


_KEYWORDS: Final = {"message": "input", "question": "request", "answer": "response"}


def _advice(role: str) -> str:
    if role == "context":
        return "; write WorkflowContext, or WorkflowContext[sent, yielded]"
    return f"; annotate it with the type of the {role}, Any for every type"


def _return_annotation(function: Callable[..., Any]) -> Any:
    """None where nothing is said; `-> None` gives NoneType."""
    annotation = inspect.signature(function).return_annotation
    if annotation is inspect.Signature.empty:
        return None
    return NoneType if annotation is None else annotation


def _resolved(annotation: Any, function: Callable[..., Any], frame: FrameType | None) -> Any:
    """The annotation with all names in it looked up, as the function would see them where it is written."""
    inner = inspect.unwrap(function)
    names = dict(_enclosing_names(inner, frame))
    try:
        hints = typing.get_type_hints(
            SimpleNamespace(__annotations__={"it": annotation}), getattr(inner, "__globals__", {}), names
        )
    except NameError as error:
        raise _UnreadableError(
            f"{_shown(annotation)} cannot be resolved: {error}. Define or import the name before the class, "
            "not only under TYPE_CHECKING, or give the types to the decorator"
        ) from error
    except (TypeError, AttributeError, SyntaxError, ValueError) as error:
        raise _UnreadableError(f"{_shown(annotation)} is not a type: {error}") from error
    return hints["it"]


def _enclosing_names(function: Any, frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """Locals of the functions and classes around it, outermost first, then what it closes over."""
    around: list[FrameType] = []
    while frame is not None:
        if frame.f_globals is getattr(function, "__globals__", None):
            name = frame.f_code.co_qualname
            if any(function.__qualname__.startswith(name + tail) for tail in (".<locals>.", ".")):
                around.append(frame)
        frame = frame.f_back
    for enclosing in reversed(around):
        yield from enclosing.f_locals.items()
    closure = getattr(function, "__closure__", None) or ()
    for name, cell in zip(function.__code__.co_freevars, closure, strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled yet
            continue


def _check_annotation(annotation: Any) -> None:
    for part in _parts(annotation):
        if isinstance(part, TypeVar):
            raise _UnreadableError(f"{_shown(annotation)} holds the TypeVar {part}; handlers need types that are known")
        if part is WorkflowContext:
            raise _UnreadableError(f"{_shown(annotation)} is the context, which comes last")


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    if origin := get_origin(annotation):
        yield origin
    for part in get_args(annotation):
        yield from _parts(part)


def _context_types(annotation: Any) -> tuple[Any, Any]:
    """What `WorkflowContext[sent, yielded]` names."""
    origin = get_origin(annotation) or annotation
    if not (isinstance(origin, type) and issubclass(origin, WorkflowContext)):
        raise _UnreadableError(f"{_shown(annotation)} is no WorkflowContext, which the last parameter must be")
    arguments = (*get_args(annotation), typing.Never, typing.Never)
    for argument in arguments[:2]:
        _check_annotation(argument)
    return arguments[0], arguments[1]


def _members(annotation: Any) -> list[Any]:
    """Of a union all, else the type itself; nothing for Never and for what was not given."""
    if isinstance(annotation, TypeAliasType):
        return _members(annotation.__value__)
    if get_origin(annotation) in {Union, UnionType}:
        return [member for part in get_args(annotation) for member in _members(part)]
    return [] if annotation is None or annotation in (typing.Never, typing.NoReturn) else [annotation]


def _shown(annotation: Any) -> str:
    if isinstance(annotation, str):
        return repr(annotation)
    return annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
