"""The table, as aligned text or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.benchmarks.suite import ENGINES, Medians, Row, Verdict

HEADER = ("work", "unit", *ENGINES, "target", "measured", "verdict")


def lines_of(rows: Iterable[Row], medians: Medians) -> list[tuple[str, ...]]:
    """One line a target, the numbers only in the first of a row."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        head = (row.work, row.unit.name, *(_number(row.value(engine, medians)) for engine in ENGINES))
        if not row.targets:
            lines.append((*head, "", "", "info"))
        for target in row.targets:
            lines.append((*head, target.words(row.unit), *_judged(target.judge(row, medians))))
            head = ("",) * len(head)
    return lines


def failures(rows: Iterable[Row], medians: Medians) -> int:
    verdicts = [target.judge(row, medians) for row in rows for target in row.targets]
    return sum(verdict is None or not verdict.passed for verdict in verdicts)


def as_text(lines: Sequence[tuple[str, ...]]) -> str:
    table = [HEADER, *lines]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADER))]
    numbers = range(2, 2 + len(ENGINES))

    def fit(column: int, cell: str) -> str:
        return cell.rjust(widths[column]) if column in numbers else cell.ljust(widths[column])

    return "\n".join("  ".join(fit(column, cell) for column, cell in enumerate(line)).rstrip() for line in table)


def as_markdown(lines: Sequence[tuple[str, ...]]) -> str:
    align = ["---:" if 2 <= column < 2 + len(ENGINES) else "---" for column in range(len(HEADER))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [HEADER, align, *lines])


def _judged(verdict: Verdict | None) -> tuple[str, str]:
    if verdict is None:
        return "", "NOT RUN"
    return verdict.measured, "PASS" if verdict.passed else "FAIL"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
