"""Run every engine in turn, several rounds, and print the medians beside each other.

Exit status 0: every target was met; 1: one was missed or could not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.benchmarks import report
from tests.benchmarks.environment import PINS, ROOT, python_of, variables
from tests.benchmarks.suite import AGENT, CASES, ENGINES, HOCKET, LANG, ROWS, Case, Medians, Row

MODULES = {
    HOCKET: "tests.benchmarks.hocket_bench",
    AGENT: "tests.benchmarks.peers.agent_framework_bench",
    LANG: "tests.benchmarks.peers.langgraph_bench",
}
PEERS = {AGENT: "agent_framework", LANG: "langgraph"}
TIMEOUT_S = 300

Line = dict[str, Any]


def arguments() -> argparse.Namespace:
    words = list(dict.fromkeys(case.only for case in CASES))
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=words, help="measure this; may be given more than once")
    parser.add_argument(
        "--engine", action="append", choices=ENGINES, help="run this engine; may be given more than once"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each engine runs each workload (default 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample, the medians and the table")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser.parse_args()


def run(python: Path, case: Case, engine: str) -> Line:
    size = ("--n", str(case.n), "--repeat", str(case.repeat))
    done = subprocess.run(
        [str(python), "-m", MODULES[engine], case.workload, *size],
        check=False,
        cwd=ROOT,
        env=variables(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{engine}, {MODULES[engine]}, failed:\n{done.stderr.strip()[-3000:]}")
    line: Line = json.loads(done.stdout.splitlines()[-1])
    if line["python"] != platform.python_version():
        raise RuntimeError(f"{engine} ran on Python {line['python']}, the harness on {platform.python_version()}")
    return line | {"case": case.name, "engine": engine}


def measure(cases: Iterable[Case], rounds: int, pythons: dict[str, Path]) -> tuple[list[Line], list[str]]:
    """Engine after engine, case after case, round after round: a slow minute of the machine falls on all of them."""
    plan = [(case, engine) for case in cases for engine in case.engines if engine in pythons]
    samples: list[Line] = []
    broken: dict[tuple[str, str], str] = {}
    for turn in range(1, rounds + 1):
        for case, engine in plan:
            if (case.name, engine) in broken:
                continue
            show(f"round {turn} of {rounds}: {case.name}, {engine}")
            try:
                samples.append(run(pythons[engine], case, engine))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                broken[case.name, engine] = str(error)
    show("")
    return samples, list(dict.fromkeys(broken.values()))


def show(progress: str) -> None:
    """Overwrite the progress line of a terminal; a log file gets none."""
    if sys.stderr.isatty():
        print(f"\r{progress:<70}\r", end="", file=sys.stderr, flush=True)


def medians_of(samples: Iterable[Line]) -> Medians:
    together: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for sample in samples:
        together[sample["case"], sample["engine"]].append(sample)
    return {
        key: {
            name: statistics.median(line[name] for line in lines)
            for name, value in lines[0].items()
            if isinstance(value, int | float)
        }
        for key, lines in together.items()
    }


def machine() -> dict[str, str]:
    pins = {
        name: version
        for peer in PEERS.values()
        for name, _, version in (pin.partition("==") for pin in (PINS / f"{peer}.txt").read_text().splitlines())
    }
    return {
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        AGENT: pins[AGENT],
        LANG: pins[LANG],
    }


def chosen(wanted: argparse.Namespace) -> tuple[list[Case], list[Row]]:
    cases = [case for case in CASES if not wanted.only or case.only in wanted.only]
    names = {case.name for case in cases}
    return cases, [row for row in ROWS if row.case in names]


def main() -> int:
    wanted = arguments()
    engines = wanted.engine or list(ENGINES)
    pythons = {HOCKET: Path(sys.executable)} | {engine: python_of(peer) for engine, peer in PEERS.items()}
    cases, rows = chosen(wanted)
    samples, broken = measure(cases, wanted.rounds, {engine: pythons[engine] for engine in engines})
    medians = medians_of(samples)
    lines = report.lines_of(rows, medians)
    here = machine()

    print(report.as_markdown(lines) if wanted.markdown else report.as_text(lines))
    print(f"\nMedians of {wanted.rounds} rounds; " + ", ".join(f"{name} {value}" for name, value in here.items()) + ".")
    for error in broken:
        print(error, file=sys.stderr)
    if wanted.json:
        table = [dict(zip(report.HEADER, line, strict=True)) for line in lines]
        middle = [{"case": case, "engine": engine, **figures} for (case, engine), figures in medians.items()]
        wanted.json.write_text(
            json.dumps({"machine": here, "samples": samples, "medians": middle, "table": table}, indent=1)
        )
    return 1 if report.failures(rows, medians) else 0


if __name__ == "__main__":
    sys.exit(main())
