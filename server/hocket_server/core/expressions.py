"""Conditions, selections and affinities in CEL: compiled and checked once, evaluated in the server only.

CEL is Google's cel-cpp. This file is all that knows it, and guards against what it does with values from outside:

- a fault comes back as a value of type ERROR, or is raised as RuntimeError or TypeError: all become `ExpressionError`;
- the interpreter lock is held while it runs, and a value nested deeply enough ends the process: so what an expression
  is given is capped in bytes, items and depth. It is given only what it reads: of `message.kind == 'a'` the field
  `kind`, whatever else the message holds. So a number beyond 64 bits, or a value that CEL has no type for, matters only
  where it is read;
- text is cut at its first NUL: refused before;
- an activation kept alive grows: each evaluation makes its own.

The parser allows 32 levels of nesting, the interpreter 10,000 steps of iteration; regular expressions take linear time.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

from cel_expr_python import cel

from hocket import v1
from hocket.errors import HocketError

MAX_SOURCE_BYTES: Final = 4096
MAX_CONTEXT_BYTES: Final = 64 * 1024
MAX_CONTEXT_ITEMS: Final = 1000
MAX_CONTEXT_DEPTH: Final = 32

_VARIABLES: Final = {
    "message": cel.Type.DYN,
    "message_type": cel.Type.STRING,
    "source": cel.Type.STRING,
    "state": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    "superstep": cel.Type.INT,
}
_SELECTION_VARIABLES: Final = {**_VARIABLES, "targets": cel.Type.List(cel.Type.STRING)}
_ENVIRONMENT: Final = cel.NewEnv(variables=_VARIABLES)
_SELECTION_ENVIRONMENT: Final = cel.NewEnv(variables=_SELECTION_VARIABLES)

_FIRST_INT, _LAST_UINT = -(2**63), 2**64 - 1

Reads: TypeAlias = "dict[str, Reads] | None"
"""What is read of a value: the keys and what is read of each, {} for its presence alone, None for all of it."""


class ExpressionError(HocketError):
    """An expression does not compile, or an evaluation of it failed. The message says what and where."""

    reason = v1.ERROR_REASON_DEFINITION_INVALID


class Expression:
    """Compiled CEL. `source` is its text; it keeps nothing between evaluations."""

    def __init__(self, source: str, role: str) -> None:
        self.source = source
        self._role = role
        self._program = _program(source, role)

    @cached_property
    def variables(self) -> frozenset[str]:
        """Those of the declared variables that it reads; no other needs a value."""
        return frozenset(self._reads)

    @cached_property
    def _reads(self) -> dict[str, Reads]:
        return _reads(self._program.serialize(), frozenset(_SELECTION_VARIABLES))

    def evaluate(self, values: Mapping[str, object]) -> object:
        """A bool, a list of strings or a string, by what it was compiled as.

        Raises ExpressionError: a key that is not there, operands that do not fit, a result of another type, limits.
        """
        try:
            context = self._context(values)
            value = self._program.eval(data=context)
            if value.type() == cel.Type.ERROR:
                raise ExpressionError(_evaluation_fault(str(value.value())))
            return self._result(value)
        except ExpressionError as error:
            raise ExpressionError(f"{self._role} {_quoted(self.source)} failed: {error}") from None
        except (RuntimeError, TypeError, ValueError) as error:
            fault = _evaluation_fault(str(error))
            raise ExpressionError(f"{self._role} {_quoted(self.source)} failed: {fault}") from None

    def _context(self, values: Mapping[str, object]) -> dict[str, object]:
        left = _Left()
        context: dict[str, object] = {}
        for name, reads in self._reads.items():
            if name not in values:
                raise ExpressionError(f"variable {name!r} has no value here")
            context[name] = _lowered(values[name], reads, name, MAX_CONTEXT_DEPTH, left)
        return context

    def _result(self, value: cel.Value) -> object:
        result = value.plain_value()
        if self._role == "condition":
            fits = isinstance(result, bool)
        elif self._role == "selection":
            fits = isinstance(result, list) and all(isinstance(item, str) for item in result)
        else:
            fits = isinstance(result, str)
        if fits:
            return result
        wanted = _RESULTS[self._role][0]
        raise ExpressionError(f"it gave {_quoted(repr(result))} of type {_type_name(value.type())}; {wanted} is needed")


def compile_condition(source: str) -> Expression:
    """An expression that gives a bool. Raises ExpressionError."""
    return _compiled(source, "condition")


def compile_selection(source: str) -> Expression:
    """An expression that gives a list of node ids; `targets` holds the legal ones. Raises ExpressionError."""
    return _compiled(source, "selection")


def compile_text(source: str) -> Expression:
    """An expression that gives a string: the affinity of an executor. Raises ExpressionError."""
    return _compiled(source, "affinity")


_RESULTS: Final[Mapping[str, tuple[str, tuple[cel.Type, ...]]]] = {
    "condition": ("a bool", (cel.Type.BOOL, cel.Type.DYN)),
    "selection": (
        "a list of strings",
        (cel.Type.List(cel.Type.STRING), cel.Type.List(cel.Type.DYN), cel.Type.LIST, cel.Type.DYN),
    ),
    "affinity": ("a string", (cel.Type.STRING, cel.Type.DYN)),
}


def _compiled(source: str, role: str) -> Expression:
    outcome = _compile(source, role)
    if isinstance(outcome, str):
        raise ExpressionError(outcome)
    return outcome


@lru_cache(maxsize=4096)
def _compile(source: str, role: str) -> Expression | str:
    """The fault is kept as well: ten thousand equal ones cost one compilation."""
    try:
        return Expression(source, role)
    except ExpressionError as error:
        return f"{role} {_quoted(source)} {error}"


def _program(source: str, role: str) -> cel.Expression:
    if not source.strip():
        raise ExpressionError("is empty")
    # Four bytes are the most that a character takes: short sources, nearly all, are not encoded to be measured.
    if len(source) * 4 > MAX_SOURCE_BYTES:
        size = len(source.encode(errors="surrogatepass"))
        if size > MAX_SOURCE_BYTES:
            raise ExpressionError(f"is {size} bytes long; at most {MAX_SOURCE_BYTES} are allowed")
    environment = _SELECTION_ENVIRONMENT if role == "selection" else _ENVIRONMENT
    try:
        program = environment.compile(source)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ExpressionError(f"does not compile: {_compile_fault(str(error), role)}") from None
    name, legal = _RESULTS[role]
    given = program.return_type()
    if not any(given == one for one in legal):
        raise ExpressionError(f"gives {_type_name(given)}; it must give {name}")
    return program


_POSITION = re.compile(r"^(?:[A-Z_]+: )?ERROR: <input>:(-?\d+):(-?\d+): (.*)$", re.MULTILINE)
_STATUS = re.compile(r"^(?:[A-Z_]+: )+| \[[A-Z_]+\]\s*$")
_KEY_MISSING = re.compile(r"Key not found in map : (.*)")


def _compile_fault(text: str, role: str) -> str:
    faults = []
    for line, column, fault in _POSITION.findall(text):
        where = f"line {line}, column {column}: " if int(line) > 0 else ""
        faults.append(where + _STATUS.sub("", fault.replace(" (in container '')", "")))
    if not faults:
        if "incompatible function arguments" in text:
            return "it is not text that can be encoded as UTF-8"
        faults.append(_STATUS.sub("", text.splitlines()[0] if text else "unknown fault"))
    message = "; ".join(dict.fromkeys(faults))
    if "undeclared reference" in message:
        known = _SELECTION_VARIABLES if role == "selection" else _VARIABLES
        message += f"; known variables: {', '.join(known)}"
    elif "'(type(type)" in message:
        message += "; `type` is a function of CEL, the name of the message's type is `message_type`"
    return message


def _evaluation_fault(text: str) -> str:
    message = _STATUS.sub("", text.strip())
    if missing := _KEY_MISSING.fullmatch(message):
        return f"there is no key {missing[1]}; guard it with has()"
    if "Iteration budget exceeded" in message:
        return "it takes more than 10,000 steps of iteration; filter the list in an executor"
    return message


def _type_name(kind: cel.Type) -> str:
    return kind.name().lower()


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 120 else text[:117] + "...")


class _Left:
    """What may still be added to the context of one evaluation."""

    __slots__ = ("items", "size")

    def __init__(self) -> None:
        self.items = MAX_CONTEXT_ITEMS
        self.size = MAX_CONTEXT_BYTES


def _lowered(value: object, reads: Reads, where: str, depth: int, left: _Left) -> object:
    """A copy of what is read of the value, in the types that CEL takes."""
    if reads is not None:
        if not reads:
            return True
        if isinstance(value, Mapping):
            if depth == 0:
                raise _too_deep(where)
            return {
                key: _lowered(value[key], inner, f"{where}.{key}", depth - 1, left)
                for key, inner in reads.items()
                if key in value
            }
    left.items -= 1
    if left.items < 0:
        raise ExpressionError(f"it reads more than {MAX_CONTEXT_ITEMS:,} values, at {where}; {_SMALLER}")
    if value is None or value is True or value is False or isinstance(value, float):
        return value
    if isinstance(value, str):
        return _text(value, where, left)
    if isinstance(value, int):
        if not _FIRST_INT <= value <= _LAST_UINT:
            raise ExpressionError(f"{where} is an integer beyond 64 bits; compare it in an executor or send it as text")
        return int(value)
    if isinstance(value, Mapping):
        if depth == 0:
            raise _too_deep(where)
        return {
            _key(key, where, left): _lowered(item, None, f"{where}.{key}", depth - 1, left)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        if depth == 0:
            raise _too_deep(where)
        if len(value) > left.items:
            raise ExpressionError(
                f"{where} has {len(value):,} items, {left.items:,} are left of {MAX_CONTEXT_ITEMS:,}; {_SMALLER}"
            )
        return [_lowered(item, None, where, depth - 1, left) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        _charge(len(value), where, left)
        return bytes(value)
    raise ExpressionError(f"{where} is a {type(value).__name__}, which CEL has no type for")


_SMALLER: Final = "read single fields, or let an executor send a summary"


def _text(value: str, where: str, left: _Left) -> str:
    if "\0" in value:
        raise ExpressionError(f"{where} is text with a NUL")
    if value.isascii():
        _charge(len(value), where, left)
    else:
        try:
            _charge(len(value.encode()), where, left)
        except UnicodeEncodeError:
            raise ExpressionError(f"{where} is text with a lone surrogate") from None
    return value if type(value) is str else str.__str__(value)


def _key(key: object, where: str, left: _Left) -> object:
    if isinstance(key, str):
        return _text(key, where, left)
    if isinstance(key, int) and _FIRST_INT <= key <= _LAST_UINT:
        return key
    raise ExpressionError(f"{where} has the key {key!r}; keys are text, integers or booleans")


def _charge(size: int, where: str, left: _Left) -> None:
    left.size -= size
    if left.size < 0:
        raise ExpressionError(f"it reads more than {MAX_CONTEXT_BYTES:,} bytes, at {where}; {_SMALLER}")


def _too_deep(where: str) -> ExpressionError:
    shown = where if len(where) <= 80 else where[:77] + "..."
    return ExpressionError(f"it reads a value nested more than {MAX_CONTEXT_DEPTH} levels deep, at {shown}; {_SMALLER}")


# What an expression reads is in its syntax tree, which CEL gives as a serialized `cel.expr.CheckedExpr`, a published
# format. The walk below knows the few fields it needs, so that no generated code of CEL's is needed.

_WireField: TypeAlias = "tuple[int, int | bytes]"

_ANY_VALUE, _CHECKED_EXPR = 2, 4
_CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _COMPREHENSION = 3, 4, 5, 6, 7, 8, 9


def _reads(serialized: bytes, names: frozenset[str]) -> dict[str, Reads]:
    found: dict[str, Reads] = {}
    checked = _part(serialized, _ANY_VALUE)
    todo: list[tuple[bytes, frozenset[str]]] = [(_part(checked, _CHECKED_EXPR), frozenset())]
    while todo:
        expr, bound = todo.pop()
        path = _path(expr, names - bound)
        if path is not None:
            _note(found, *path)
            continue
        for kind, body in _fields(expr):
            if isinstance(body, bytes):
                todo.extend(_children(kind, body, bound))
    return found


def _note(found: dict[str, Reads], path: list[str], is_presence: bool) -> None:
    here = found
    for key in path[:-1]:
        inner = here.setdefault(key, {})
        if inner is None:
            return
        here = inner
    if is_presence:
        here.setdefault(path[-1], {})
    else:
        here[path[-1]] = None


def _path(expr: bytes, names: frozenset[str]) -> tuple[list[str], bool] | None:
    """The keys from a variable down to this value, and whether only its presence is asked; None for anything else."""
    keys: list[str] = []
    is_presence = False
    while True:
        kind, body = next(((k, b) for k, b in _fields(expr) if k != 2), (0, b""))
        if not isinstance(body, bytes):
            return None
        if kind == _IDENT:
            name = _part(body, 1).decode().removeprefix(".")
            return ([name, *reversed(keys)], is_presence) if name in names else None
        if kind == _SELECT:
            fields = dict(_fields(body))
            if fields.get(3):
                is_presence = True
            keys.append(_part(body, 2).decode())
            expr = _part(body, 1)
        elif kind == _CALL and _part(body, 2) == b"_[_]":
            operands = [part for number, part in _fields(body) if number == 3 and isinstance(part, bytes)]
            constant = dict(_fields(_part(operands[1], _CONST)))
            key = constant.get(6)
            if not isinstance(key, bytes):
                return None
            keys.append(key.decode())
            expr = operands[0]
        else:
            return None


def _children(kind: int, body: bytes, bound: frozenset[str]) -> Iterator[tuple[bytes, frozenset[str]]]:
    """The expressions in one, each with the names that comprehensions around it have taken."""
    parts = [(number, part) for number, part in _fields(body) if isinstance(part, bytes)]
    if kind == _COMPREHENSION:
        inner = bound | {part.decode() for number, part in parts if number in {1, 3, 8}}
        for number, part in parts:
            if number in {2, 4}:
                yield part, bound
            elif number in {5, 6, 7}:
                yield part, inner
    elif kind == _STRUCT:
        for number, entry in parts:
            if number == 2:
                for field, value in _fields(entry):
                    if field in {3, 4} and isinstance(value, bytes):
                        yield value, bound
    elif kind in {_SELECT, _CALL, _LIST}:
        for number, part in parts:
            if number == 1 or (number == 3 and kind == _CALL):
                yield part, bound


def _part(data: bytes, number: int) -> bytes:
    return next((part for field, part in _fields(data) if field == number and isinstance(part, bytes)), b"")


def _fields(data: bytes) -> Iterator[_WireField]:
    """The varints and the parts with a length; numbers of fixed width are only constants."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire_type = key & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif wire_type == 2:
            size, at = _varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        else:
            at += 8 if wire_type == 1 else 4


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
