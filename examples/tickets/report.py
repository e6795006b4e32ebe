"""The reports: report.json for programs, report.md for people. Equal input gives equal bytes: no clock, no path, no chance."""

import json
import os
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from examples.tickets.model import Broken, Channel, Facts, Finding, Routed, Tone, Total
from examples.tickets.rules import CATEGORIES, RULES

FORMAT = 1
_SUBJECT = 60
_ORDERS = {
    "category": CATEGORIES,
    "priority": tuple(RULES["hours"]),
    "desk": tuple(RULES["first_steps"]),
    "channel": tuple(Channel),
}


class Report:
    """What was found, sorted by record. Raises ValueError when a record is not accounted for: better no report than one
    that has lost a ticket."""

    def __init__(self, input: str, findings: Iterable[Finding]) -> None:
        self.input = input
        self.records = 0
        self.broken: list[Broken] = []
        self._routed: dict[int, Routed] = {}
        self._facts: dict[int, Facts] = {}
        self._tones: dict[int, Tone] = {}
        for finding in findings:
            match finding:
                case Total():
                    self.records = finding.records
                case Broken():
                    self.broken.append(finding)
                case Routed():
                    self._routed[finding.record] = finding
                case Facts():
                    self._facts[finding.record] = finding
                case Tone():
                    self._tones[finding.record] = finding
                case _:
                    raise TypeError(f"{finding!r} is of no kind that is reported")
        self.broken.sort(key=lambda each: each.record)
        whole = self._routed.keys() & self._facts.keys() & self._tones.keys()
        told = whole | {each.record for each in self.broken}
        if lost := sorted(set(range(1, self.records + 1)) - told):
            raise ValueError(f"{len(lost)} records are not accounted for: {', '.join(map(str, lost[:20]))}")

    @cached_property
    def results(self) -> list[dict[str, Any]]:
        """One for each ticket, as in report.json."""
        return [self._result(record) for record in sorted(self._routed)]

    def _result(self, record: int) -> dict[str, Any]:
        routed, facts, tone = self._routed[record], self._facts[record], self._tones[record]
        ticket = routed.ticket
        return {
            "record": record,
            "id": ticket.id,
            "created_at": ticket.created_at.isoformat(),
            "channel": ticket.channel.value,
            "subject": ticket.subject,
            "category": ticket.category,
            "priority": ticket.priority,
            "desk": routed.desk,
            "due": routed.due.isoformat(),
            "first_step": routed.first_step,
            "language": tone.language,
            "mood": tone.mood,
            "orders": facts.orders,
            "emails": facts.emails,
            "amounts": [{"currency": each.currency, "value": str(each.value)} for each in facts.amounts],
        }

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        """By category, priority and so on, every value that is known also with 0; languages by their number."""
        counts = {}
        for name, order in _ORDERS.items():
            counter = Counter(result[name] for result in self.results)
            counts[name] = {str(value): counter[value] for value in order}
        languages = Counter(result["language"] for result in self.results)
        counts["language"] = dict(sorted(languages.items(), key=lambda item: (-item[1], item[0])))
        counts["broken"] = dict(sorted(Counter(each.code for each in self.broken).items()))
        return counts

    @property
    def amounts(self) -> dict[str, str]:
        """Sums of all amounts named, by currency."""
        sums: dict[str, Decimal] = {}
        for result in self.results:
            for amount in result["amounts"]:
                sums[amount["currency"]] = sums.get(amount["currency"], Decimal(0)) + Decimal(amount["value"])
        return {currency: str(sums[currency]) for currency in sorted(sums)}

    def as_json(self) -> str:
        tree = {
            "format": FORMAT,
            "input": self.input,
            "records": self.records,
            "tickets": len(self.results),
            "broken": len(self.broken),
            "counts": self.counts,
            "amounts": self.amounts,
            "results": self.results,
            "broken_records": [
                {
                    "record": each.record,
                    "line": each.line,
                    "code": each.code,
                    "detail": each.detail,
                    "excerpt": each.excerpt,
                }
                for each in self.broken
            ],
        }
        return json.dumps(tree, ensure_ascii=False, indent=2) + "\n"

    def as_markdown(self) -> str:
        urgent = [result for result in self.results if result["priority"] == "urgent"]
        parts = [
            f"# Tickets in {_shown(self.input)}",
            f"{self.records} records: {len(self.results)} tickets and {len(self.broken)} broken records.",
        ]
        for name in ("category", "priority", "desk", "language"):
            counted = [(value, str(count)) for value, count in self.counts[name].items()]
            parts += [f"## By {name}", _table((name, "tickets"), counted, right=(1,))]
        if self.amounts:
            parts += ["## Amounts named", _table(("currency", "sum"), list(self.amounts.items()), right=(1,))]
        parts += ["## Urgent", _tickets(urgent) if urgent else "None."]
        parts += ["## All tickets", _tickets(self.results) if self.results else "None."]
        parts += ["## Broken records", self._broken_table() if self.broken else "None."]
        return "\n\n".join(parts) + "\n"

    def _broken_table(self) -> str:
        rows = [
            (str(each.record), str(each.line), each.code, _shown(each.detail, 100), _shown(each.excerpt))
            for each in self.broken
        ]
        return _table(("record", "line", "code", "detail", "begins with"), rows, right=(0, 1))


def write_reports(report: Report, out: Path) -> list[Path]:
    """Each file is there whole or not at all, also when the handler is attempted again."""
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for name, text in (("report.md", report.as_markdown()), ("report.json", report.as_json())):
        handle, temporary = tempfile.mkstemp(dir=out, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(out / name)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        files.append(out / name)
    return files


# Markdown


def _tickets(results: Iterable[dict[str, Any]]) -> str:
    rows = [
        (
            str(result["record"]),
            _shown(result["id"]),
            _shown(result["subject"], _SUBJECT) or "(none)",
            result["category"],
            result["priority"],
            result["desk"],
            result["language"],
            f"{result['mood']:+d}" if result["mood"] else "0",
            ", ".join(_shown(order) for order in result["orders"][:3]),
        )
        for result in results
    ]
    return _table(
        ("record", "id", "subject", "category", "priority", "desk", "language", "mood", "orders"), rows, right=(0, 7)
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    rule = ["---:" if index in right else "---" for index in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _shown(text: str, width: int = 80) -> str:
    """Text as text in a cell: one line, cut, nothing in it means anything to Markdown, its direction kept to itself."""
    line = "".join(char if char.isprintable() else _unprinted(char) for char in " ".join(text.split()))
    cut = _cut(line, width)
    escaped = re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", cut)
    is_mixed = any(unicodedata.bidirectional(char) in ("R", "AL", "RLE", "RLO", "RLI") for char in cut)
    return f"\u2068{escaped}\u2069" if is_mixed else escaped


def _unprinted(char: str) -> str:
    """Joiners belong to emoji and to Indic scripts; what else does not print is left out."""
    return char if char in "\u200c\u200d" else ""


def _cut(text: str, width: int) -> str:
    """Not between a letter and its marks, and not inside a joined emoji."""
    if len(text) <= width:
        return text
    end = width
    while end and (_is_joined(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return f"{text[:end].rstrip()}…"


def _is_joined(char: str) -> bool:
    return char == "\u200d" or unicodedata.combining(char) > 0 or unicodedata.category(char) in ("Mn", "Me", "Mc", "Sk")
