"""Which nodes run together: joins that may starve are found by it.

Each node has the set of choices (a condition, a case, a selected target, a handoff) of which one must fall its way for
it to run; the start node always runs. Along an edge without a condition the set is handed on, where paths meet sets are
united, all cases of a switch together are no choice at all, and an edge that leads back adds nothing, since its end has
run already. Nodes with equal sets run together. A join whose sources have different sets waits for one that may never
come.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple


class ChoiceKind(IntEnum):
    ALWAYS = 0
    CONDITION = 1
    CASE = 2
    SELECTED = 3
    HANDED_OFF = 4
    JOINED = 5
    MANY = 6


class Choice(NamedTuple):
    """A branch that must be taken: of the edge group or node at a place, to a target where that matters."""

    kind: ChoiceKind
    place: int
    target: int = 0


ALWAYS: Final = frozenset({Choice(ChoiceKind.ALWAYS, 0)})

_MAX_CHOICES: Final = 64
"""Beyond, the choices of a node count as one of its own."""


class Route(NamedTuple):
    source: int
    choice: Choice | None


class Join(NamedTuple):
    """A fan-in whose ends are all known; `needed` is the number of sources that it waits for."""

    group: int
    sources: tuple[int, ...]
    target: int
    needed: int
    optional: bool


def choices_of(
    start: int,
    links: Sequence[Sequence[int]],
    routes: Sequence[Sequence[Route]],
    joins: Sequence[Join],
    switches: Mapping[int, tuple[int, frozenset[int]]],
) -> list[frozenset[Choice] | None]:
    """Of each node the choices of which one must fall its way; None where no path leads. See the module's docstring."""
    found: list[frozenset[Choice] | None] = [None] * len(links)
    joins_at: dict[int, list[Join]] = {}
    for join in joins:
        joins_at.setdefault(join.target, []).append(join)
    many: dict[frozenset[Choice], int] = {}

    def settled(choices: set[Choice]) -> set[Choice]:
        """All cases of a switch together are what its source depends on."""
        todo = {choice.place for choice in choices if choice.kind == ChoiceKind.CASE}
        while todo:
            place = todo.pop()
            source, targets = switches.get(place, (-1, frozenset[int]()))
            before = found[source] if 0 < len(targets) <= len(choices) else None
            if before is None:
                continue
            cases = {Choice(ChoiceKind.CASE, place, target) for target in targets}
            if cases <= choices:
                choices = (choices - cases) | before
                todo |= {choice.place for choice in before if choice.kind == ChoiceKind.CASE}
        return choices

    for node in _forward(start, links):
        if node == start:
            found[node] = ALWAYS
            continue
        choices: set[Choice] = set()
        asked: list[tuple[frozenset[Choice], Choice]] = []
        for source, choice in routes[node]:
            before = found[source]
            if before is None:
                # It leads back: whoever sends along it has run because this node has.
                continue
            if choice is None:
                choices |= before
            else:
                asked.append((before, choice))
        for join in joins_at.get(node, ()):
            sets = [one for one in (found[source] for source in join.sources) if one is not None]
            if not sets:
                continue
            if join.needed == 1 or sets.count(sets[0]) == len(sets):
                choices.update(*sets)
            elif sets.count(ALWAYS) >= join.needed:
                choices |= ALWAYS
            else:
                choices.add(Choice(ChoiceKind.JOINED, join.group))
        choices = settled(choices)
        # A choice of a source that runs only when this node runs anyway adds nothing.
        choices |= {choice for before, choice in asked if not before <= choices}
        choices = settled(choices)
        if not choices.isdisjoint(ALWAYS):
            found[node] = ALWAYS
        elif len(choices) > _MAX_CHOICES:
            whole = frozenset(choices)
            found[node] = frozenset({Choice(ChoiceKind.MANY, many.setdefault(whole, len(many)))})
        else:
            found[node] = frozenset(choices)
    return found


def _forward(start: int, links: Sequence[Sequence[int]]) -> list[int]:
    """Each node before those it leads to, edges that lead back left out."""
    done: list[int] = []
    seen = {start}
    todo = [(start, iter(links[start]))]
    while todo:
        node, targets = todo[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                todo.append((target, iter(links[target])))
                break
        else:
            todo.pop()
            done.append(node)
    done.reverse()
    return done
