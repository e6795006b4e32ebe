"""What the worker of every engine shares: one workload, one fresh process, one line of JSON.

A worker is `python -m tests.benchmarks.hocket_bench WORKLOAD --n N --repeat R` (or one of `peers`), started by the
Python whose environment holds the engine. So this module needs the standard library only, and knows no engine.

A workload warms up, then does its work R times. Only the work is timed: graphs are built, results checked and garbage
collected between the clock's start and stop marks, and a check that fails ends the process, so that no engine
can win by leaving work out. Handlers count themselves in a `Tally`; the check compares it with what the graph asks for.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

PAYLOAD = "a short text"
LAST = "last"  # ends a burst: whoever receives it yields
WARM_RUNS = 20

T = TypeVar("T")
Workload = Callable[[int, int], Awaitable["Sample"]]


@dataclass(slots=True)
class Sample:
    """One measurement. `ops` is what `seconds` paid for: supersteps, messages, runs, nodes or imports."""

    ops: int
    seconds: float
    rss_mb: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)


class Tally:
    """How often handlers ran since it was last asked."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def take(self) -> int:
        count, self.count = self.count, 0
        return count


def expect(what: str, actual: object, wanted: object) -> None:
    if actual != wanted:
        raise AssertionError(f"{what}: got {str(actual)[:200]}, wanted {str(wanted)[:200]}")


def refuses(attempt: Callable[[], object]) -> None:
    """A compiler that accepts anything has validated nothing."""
    try:
        attempt()
    except Exception:  # noqa: BLE001 - every engine has errors of its own
        return
    raise AssertionError("a broken graph was accepted")


async def timed(
    tally: Tally, repeat: int, ops: int, once: Callable[[], Awaitable[T]], check: Callable[[T], None]
) -> Sample:
    """Warm up with one run, then time `repeat` runs of `ops` operations, one after the other as a service would have them.

    Every run is checked, after the clock has stopped: checking in between would time cold caches, which costs the engine
    most whose runs are shortest.
    """
    check(await once())
    gc.collect()
    results: list[T] = []
    counts: list[int] = []
    started = time.perf_counter()
    for _ in range(repeat):
        results.append(await once())
        counts.append(tally.take())
    seconds = time.perf_counter() - started
    for result, count in zip(results, counts, strict=True):
        tally.count = count
        check(result)
    return Sample(ops * repeat, seconds)


async def timed_at_once(
    repeat: int,
    runs: int,
    warm: Callable[[], Awaitable[list[T]]],
    once: Callable[[], Awaitable[list[T]]],
    check: Callable[[list[T]], None],
) -> Sample:
    """Like `timed`, with a small warm-up, so that the memory of the first full pass shows (`peak_growth_mb`)."""
    check(await warm())
    gc.collect()
    before = status_mb("VmRSS")
    reset_peak()
    seconds = growth = 0.0
    for turn in range(repeat):
        gc.collect()
        started = time.perf_counter()
        results = await once()
        seconds += time.perf_counter() - started
        if turn == 0:
            growth = status_mb("VmHWM") - before
        check(results)
        del results
    return Sample(runs * repeat, seconds, extra={"peak_growth_mb": growth})


@dataclass(slots=True)
class BuildClock:
    """Times the three parts of making a graph: author it, validate and compile it, run its first superstep."""

    author: float = 0.0
    compile: float = 0.0
    first: float = 0.0

    def sample(self, nodes: int, repeat: int) -> Sample:
        each = {"author_s": self.author / repeat, "compile_s": self.compile / repeat, "first_s": self.first / repeat}
        return Sample(nodes * repeat, self.compile, extra=each)


async def import_cost(statement: str, repeat: int) -> Sample:
    """Execute an import in fresh interpreters that have imported nothing but `time`."""
    probe = (
        "import time; started = time.perf_counter()\n"
        f"{statement}\n"
        "print(time.perf_counter() - started)\n"
        "print(open('/proc/self/status').read())"
    )
    seconds = rss = 0.0
    for _ in range(repeat):
        command = [sys.executable, "-c", probe]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: ASYNC221 - alone in its loop
        first, status = done.stdout.split("\n", 1)
        seconds += float(first)
        rss += _megabytes(status, "VmRSS") / repeat
    return Sample(repeat, seconds, rss_mb=rss)


def imports(package: str) -> Mapping[str, Workload]:
    """The bare package, and the names that every workflow needs: a package may load them only then."""
    return {
        "import": lambda n, repeat: import_cost(f"import {package}", repeat),
        "import-names": lambda n, repeat: import_cost(
            f"from {package} import Executor, WorkflowBuilder, WorkflowContext, handler", repeat
        ),
    }


def status_mb(name: str) -> float:
    return _megabytes(Path("/proc/self/status").read_text(), name)


def reset_peak() -> None:
    """Let the peak start from now; where that is not allowed, it includes the imports and errs against the engine."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _megabytes(status: str, name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    if found is None:
        raise LookupError(f"{name} is not in the process's status")
    return int(found[1]) / 1024


def main(engine: str, workloads: Mapping[str, Workload]) -> None:
    parser = argparse.ArgumentParser(description=f"Run one workload on {engine} and print one line of JSON.")
    parser.add_argument("workload", choices=sorted(workloads))
    parser.add_argument("--n", type=int, default=100, help="size: nodes, rounds, branches, messages or runs")
    parser.add_argument("--repeat", type=int, default=1, help="how often the work is done after the warm-up")
    wanted = parser.parse_args()

    async def measure() -> Sample:
        return await workloads[wanted.workload](wanted.n, wanted.repeat)

    sample = asyncio.run(measure())
    line = {
        "engine": engine,
        "workload": wanted.workload,
        "n": wanted.n,
        "repeat": wanted.repeat,
        "ops": sample.ops,
        "seconds": sample.seconds,
        "rss_mb": sample.rss_mb or status_mb("VmRSS"),
        **sample.extra,
        "python": platform.python_version(),
    }
    print(json.dumps(line))
