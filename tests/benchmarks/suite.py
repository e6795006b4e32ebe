"""What is measured and what it is held to: `CASES` are the processes to start, `ROWS` the lines of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

HOCKET, AGENT, LANG = "hocket", "agent-framework-core", "langgraph"
ENGINES = (HOCKET, AGENT, LANG)

Figures = Mapping[str, float]  # a worker's line of JSON, each number the median over the rounds
Medians = Mapping[tuple[str, str], Figures]  # by case and engine


@dataclass(frozen=True, slots=True)
class Case:
    """One workload at one size; `only` is the word that selects it together with its rows."""

    name: str
    only: str
    workload: str
    n: int
    repeat: int
    engines: tuple[str, ...]


CASES = (
    Case("chain", "chain", "chain", 100, 100, ENGINES),
    Case("chain-checkpointed", "chain", "chain-checkpointed", 100, 20, (LANG,)),
    Case("loop", "loop", "loop", 1_000, 10, ENGINES),
    Case("loop-checkpointed", "loop", "loop-checkpointed", 1_000, 2, (LANG,)),
    Case("fan", "fan", "fan", 100, 100, (HOCKET, AGENT)),
    Case("burst", "burst", "burst", 10_000, 5, (HOCKET, AGENT)),
    Case("build", "build", "build", 10_000, 2, (HOCKET, LANG)),
    Case("build-1000", "build", "build", 1_000, 10, (HOCKET, LANG)),
    Case("many", "many", "many", 1_000, 5, (HOCKET, AGENT)),
    Case("cost-100", "cost", "chain", 100, 30, ENGINES),
    Case("cost-1000", "cost", "chain", 1_000, 3, ENGINES),
    Case("import", "import", "import", 1, 5, (HOCKET, AGENT)),
    Case("import-names", "import", "import-names", 1, 5, (HOCKET, AGENT)),
)


@dataclass(frozen=True, slots=True)
class Unit:
    """How a worker's figures become the number in the table."""

    name: str
    of: Callable[[Figures], float]
    more_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    measured: str
    passed: bool


class Target(Protocol):
    def words(self, unit: Unit) -> str: ...

    def judge(self, row: Row, medians: Medians) -> Verdict | None:
        """None where a number that it needs was not measured."""


@dataclass(frozen=True, slots=True)
class Better:
    """At least so many times better than a peer."""

    than: str
    times: float

    def words(self, unit: Unit) -> str:
        return f"≥ {self.times:g} × {self.than}"

    def judge(self, row: Row, medians: Medians) -> Verdict | None:
        ours, theirs = row.value(HOCKET, medians), row.value(self.than, medians)
        if ours is None or theirs is None:
            return None
        ratio = ours / theirs if row.unit.more_is_better else theirs / ours
        return Verdict(f"{ratio:.2f} ×", ratio >= self.times)


@dataclass(frozen=True, slots=True)
class NoMoreThan:
    """Not above a peer's number."""

    peer: str

    def words(self, unit: Unit) -> str:
        return f"≤ 1 × {self.peer}"

    def judge(self, row: Row, medians: Medians) -> Verdict | None:
        ours, theirs = row.value(HOCKET, medians), row.value(self.peer, medians)
        if ours is None or theirs is None:
            return None
        return Verdict(f"{ours / theirs:.2f} ×", ours <= theirs)


@dataclass(frozen=True, slots=True)
class Growth:
    """At most so many times Hocket's own number in a smaller case."""

    case: str
    times: float
    label: str

    def words(self, unit: Unit) -> str:
        return f"≤ {self.times:g} × {self.label}"

    def judge(self, row: Row, medians: Medians) -> Verdict | None:
        ours, smaller = row.value(HOCKET, medians), row.value(HOCKET, medians, self.case)
        if ours is None or smaller is None:
            return None
        ratio = ours / smaller
        return Verdict(f"{ratio:.2f} ×", ratio <= self.times)


@dataclass(frozen=True, slots=True)
class Limit:
    at_most: float

    def words(self, unit: Unit) -> str:
        return f"≤ {self.at_most:g} {unit.name}"

    def judge(self, row: Row, medians: Medians) -> Verdict | None:
        ours = row.value(HOCKET, medians)
        if ours is None:
            return None
        return Verdict(f"{ours:.1f} {row.unit.name}", ours <= self.at_most)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Without targets it is there for information."""

    work: str
    case: str
    unit: Unit
    targets: tuple[Target, ...] = ()

    def value(self, engine: str, medians: Medians, case: str | None = None) -> float | None:
        figures = medians.get((case or self.case, engine))
        return None if figures is None else self.unit.of(figures)


def _rate(name: str) -> Unit:
    return Unit(name, lambda figures: figures["ops"] / figures["seconds"], more_is_better=True)


SUPERSTEPS, MESSAGES, RUNS = _rate("supersteps/s"), _rate("messages/s"), _rate("runs/s")
COST = Unit("µs/superstep", lambda figures: figures["seconds"] / figures["ops"] * 1e6)
IMPORT = Unit("ms", lambda figures: figures["seconds"] / figures["ops"] * 1e3)
AUTHOR = Unit("ms", lambda figures: figures["author_s"] * 1e3)
COMPILE = Unit("ms", lambda figures: figures["compile_s"] * 1e3)
FIRST = Unit("ms", lambda figures: figures["first_s"] * 1e3)
WHOLE = Unit("ms", lambda figures: (figures["author_s"] + figures["compile_s"] + figures["first_s"]) * 1e3)
MEMORY = Unit("MB", lambda figures: figures["rss_mb"])
GROWTH = Unit("MB", lambda figures: figures["peak_growth_mb"])

ROWS = (
    Row("100-node chain", "chain", SUPERSTEPS, (Better(AGENT, 6), Better(LANG, 6))),
    Row("1,000-round self-loop", "loop", SUPERSTEPS, (Better(AGENT, 6), Better(LANG, 6))),
    Row("1 → 100 → 1, repeated", "fan", MESSAGES, (Better(AGENT, 4),)),
    Row("10,000 messages in one superstep", "burst", MESSAGES, (Better(AGENT, 6),)),
    Row(
        "validate and compile 10,000 nodes",
        "build",
        COMPILE,
        (Better(LANG, 3), Growth("build-1000", 13, "1,000 nodes")),
    ),
    Row("1,000 runs of a 5-node chain at once", "many", RUNS, (Better(AGENT, 8),)),
    Row("1,000 runs of a 5-node chain at once: peak memory above start", "many", GROWTH, (Limit(60),)),
    Row("superstep in a 1,000-node chain", "cost-1000", COST, (Growth("cost-100", 1.3, "100 nodes"),)),
    Row("bare import, time", "import", IMPORT, (Limit(300),)),
    Row("bare import, memory of the process", "import", MEMORY, (NoMoreThan(AGENT),)),
    Row("import of the authoring names, time", "import-names", IMPORT, (Limit(300),)),
    Row("import of the authoring names, memory", "import-names", MEMORY, (NoMoreThan(AGENT),)),
    Row("100-node chain, langgraph with InMemorySaver", "chain-checkpointed", SUPERSTEPS),
    Row("1,000-round self-loop, langgraph with InMemorySaver", "loop-checkpointed", SUPERSTEPS),
    Row("author 10,000 nodes", "build", AUTHOR),
    Row("first superstep of 10,000 nodes", "build", FIRST),
    Row("author, compile and first superstep, 10,000 nodes", "build", WHOLE),
    Row("validate and compile 1,000 nodes", "build-1000", COMPILE),
    Row("superstep in a 100-node chain", "cost-100", COST),
    Row("memory of the process after the chain", "chain", MEMORY),
)
