"""The ticket example against a second computation, which shares the words of rules.json with it and no code."""

import csv
import json
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from examples.tickets.__main__ import main
from examples.tickets.make_data import make_lines

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "tickets" / "data"
RULES: dict[str, Any] = json.loads((DATA / "rules.json").read_text("utf-8"))
LABELS: dict[str, dict[str, str]] = json.loads((DATA / "labels.json").read_text("utf-8"))

# The second computation


def has_word(word: str, text: str) -> bool:
    open_ended = word.endswith("*")
    word = squeezed(word.rstrip("*"))
    start = text.find(word)
    while start >= 0:
        before = text[start - 1] if start else " "
        after = text[start + len(word)] if start + len(word) < len(text) else " "
        fits_before = not is_cased(word[0]) or not in_word(before)
        fits_after = open_ended or not is_cased(word[-1]) or not in_word(after)
        if fits_before and fits_after:
            return True
        start = text.find(word, start + 1)
    return False


def is_cased(char: str) -> bool:
    return char.isdigit() or char.upper() != char.lower()


def in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def squeezed(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def count(words: Sequence[str], text: str) -> int:
    return sum(1 for word in words if has_word(word, text))


def guess_category(text: str) -> str:
    best, most = "other", 0
    categories: dict[str, list[str]] = RULES["categories"]
    for category, words in categories.items():
        if (hits := count(words, text)) > most:
            best, most = category, hits
    return best


def guess_language(text: str) -> str:
    weights: dict[str, int] = dict.fromkeys(("cjk", "ar", "hi", "ru", "latin"), 0)
    opening = text[:2000]
    for char in opening:
        name = unicodedata.name(char, "") if char.isalpha() else ""
        if name.startswith("LATIN"):
            weights["latin"] += 1
        elif name.startswith(("CJK", "HIRAGANA", "KATAKANA")):
            weights["cjk"] += 3
        elif name.startswith(("ARABIC", "DEVANAGARI", "CYRILLIC")):
            weights[{"A": "ar", "D": "hi", "C": "ru"}[name[0]]] += 3
    for script, weight in sorted(weights.items(), key=lambda item: -item[1]):
        if not weight:
            break
        if script == "cjk":
            kana = any(unicodedata.name(char, "").startswith(("HIRAGANA", "KATAKANA")) for char in opening)
            return "ja" if kana else "zh"
        if script != "latin":
            return script
        spaced = "".join(char if in_word(char) else " " for char in opening)
        words = [word for word in spaced.split() if word.isalpha()]
        small_words: dict[str, list[str]] = RULES["languages"]
        scores = [(sum(word in small for word in words), name) for name, small in small_words.items()]
        if (top := max(score for score, _ in scores)) > 0:
            return next(name for score, name in scores if score == top)
    return "und"


def find_orders(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text)
    spaced = "".join(char if char.isascii() and (char.isalnum() or char == "-") else " " for char in plain)
    orders = []
    for token in spaced.split():
        letters, _, digits = token.partition("-")
        is_prefix = letters.isupper() and letters.isalpha() and len(letters) in (2, 3)
        if is_prefix and digits.isdigit() and 4 <= len(digits) <= 8:
            orders.append(token)
    return list(dict.fromkeys(orders))


def find_emails(text: str) -> list[str]:
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789._%+-")
    spaced = "".join(char if char in allowed or char == "@" else " " for char in squeezed(text))
    found = []
    for token in spaced.split():
        local, at, domain = token.partition("@")
        domain = domain.rstrip(".-")
        if local and at and "." in domain and domain.rpartition(".")[2].isalpha():
            found.append(f"{local}@{domain}")
    return list(dict.fromkeys(found))


def find_amounts(text: str) -> list[dict[str, str]]:
    plain = ""
    for char in unicodedata.normalize("NFKC", text):
        digit = unicodedata.decimal(char, None)
        plain += str(digit) if digit is not None else {"٬": ",", "٫": "."}.get(char, char)
    found = []
    position = 0
    while position < len(plain):
        sign = sign_at(plain, position)
        start = position
        if sign:
            start += len(sign)
            start += plain[start : start + 1] == " "
        end = end_of_number(plain, start)
        if end > start and sign:
            found.append((sign, plain[start:end]))
            position = end
        elif end > start and not plain[position - 1 : position].isdigit():
            after = end + (plain[end : end + 1] == " ")
            if sign := sign_at(plain, after):
                found.append((sign, plain[start:end]))
                end = after + len(sign)
            position = end
        else:
            position += 1
    amounts = [{"currency": RULES["currencies"][sign], "value": number_of(text)} for sign, text in found]
    return [amount for index, amount in enumerate(amounts) if amount not in amounts[:index]]


def sign_at(text: str, position: int) -> str:
    for sign in RULES["currencies"]:
        if text.startswith(sign, position):
            after = text[position + len(sign) : position + len(sign) + 1]
            around = text[position - 1 : position] + after
            if not (sign.isascii() and sign.isalpha()) or not any(char.isascii() and char.isalpha() for char in around):
                return str(sign)
    return ""


def end_of_number(text: str, position: int) -> int:
    """Behind digits with separators in them; a space or an apostrophe parts thousands only."""
    while position < len(text):
        if text[position] in "0123456789":
            position += 1
            continue
        rest = text[position + 1 : position + 5]
        is_thousand = rest[:3].isdigit() and not rest[3:].isdigit()
        if not text[position - 1 : position].isdigit() or not rest[:1].isdigit():
            break
        if (text[position] in " '" and not is_thousand) or text[position] not in " '.,":
            break
        position += 1
    return position


def number_of(text: str) -> str:
    for size in (1, 2):
        if len(text) > size and text[-size - 1] in ".,":
            return f"{''.join(filter(str.isdigit, text[: -size - 1]))}.{text[-size:]}"
    return "".join(filter(str.isdigit, text))


def judge(record: int, ticket: dict[str, str]) -> dict[str, Any]:
    both = f"{ticket.get('subject', '')}\n{ticket['text']}"
    text = squeezed(both)
    category = guess_category(text)
    calls = count(RULES["urgent"], text)
    if (calls and category == "outage") or calls > 1:
        priority = "urgent"
    elif calls or category == "outage":
        priority = "high"
    else:
        priority = "low" if category == "feature" else "normal"
    desk = {"outage": "incident", "feature": "product", "other": "front_desk"}.get(category, category)
    if priority == "urgent":
        desk = "incident"
    created = datetime.fromisoformat(ticket["created_at"])
    mood = count(RULES["good"], text) - count(RULES["bad"], text) - (1 if "!!!" in text else 0)
    return {
        "record": record,
        "id": ticket["id"],
        "created_at": created.isoformat(),
        "channel": ticket.get("channel") or "web",
        "subject": ticket.get("subject", ""),
        "category": category,
        "priority": priority,
        "desk": desk,
        "due": (created + timedelta(hours=RULES["hours"][priority])).isoformat(),
        "first_step": RULES["first_steps"][desk],
        "language": guess_language(text),
        "mood": min(3, max(-3, mood)),
        "orders": find_orders(both),
        "emails": find_emails(both),
        "amounts": find_amounts(both),
    }


def fault_of(value: object, seen: set[str]) -> str:
    if not isinstance(value, dict):
        return "not_object"
    if not {"id", "created_at", "text"} <= value.keys():
        return "missing_field"
    known = [value[name] for name in ("id", "created_at", "channel", "subject", "text") if name in value]
    if not all(isinstance(each, str) for each in known):
        return "wrong_type"
    if not value["id"].strip() or not value["text"].strip():
        return "empty_field"
    try:
        has_zone = datetime.fromisoformat(value["created_at"]).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone or value.get("channel", "web") not in ("", "email", "chat", "web", "phone"):
        return "wrong_value"
    if value["id"] in seen:
        return "duplicate_id"
    whole = "".join(known)
    if "\0" in whole or any(0xD800 <= ord(char) < 0xE000 for char in whole):
        return "bad_text"
    return ""


Expected = tuple[list[dict[str, Any]], list[tuple[int, int, str]]]


def expected_of_lines(lines: Sequence[str]) -> Expected:
    results: list[dict[str, Any]] = []
    broken: list[tuple[int, int, str]] = []
    seen: set[str] = set()
    record = 0
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        record += 1
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            broken.append((record, line, "not_json"))
            continue
        if code := fault_of(value, seen):
            broken.append((record, line, code))
        else:
            seen.add(value["id"])
            results.append(judge(record, value))
    return results, broken


# Running it


def run(path: Path, out: Path) -> dict[str, Any]:
    assert main(["--input", str(path), "--out", str(out), "--quiet"]) == 0
    report: dict[str, Any] = json.loads((out / "report.json").read_text("utf-8"))
    return report


def compare(report: dict[str, Any], expected: Expected) -> None:
    results, broken = expected
    assert report["results"] == results
    assert [(each["record"], each["line"], each["code"]) for each in report["broken_records"]] == broken
    assert (report["tickets"], report["broken"]) == (len(results), len(broken))
    assert report["records"] == len(results) + len(broken)
    for name in ("category", "priority", "desk", "channel", "language"):
        assert +Counter(report["counts"][name]) == Counter(result[name] for result in results), name
    assert report["counts"]["broken"] == Counter(code for _, _, code in broken)
    sums: dict[str, Decimal] = {}
    for result in results:
        for amount in result["amounts"]:
            sums[amount["currency"]] = sums.get(amount["currency"], Decimal(0)) + Decimal(amount["value"])
    assert {currency: Decimal(value) for currency, value in report["amounts"].items()} == sums


def table_rows(markdown: str, heading: str) -> list[str]:
    section = markdown.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [line for line in section.splitlines() if line.startswith("|")][2:]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return (DATA / "tickets.jsonl").read_text("utf-8").split("\n")


def test_the_data_is_what_the_script_makes(lines: list[str]) -> None:
    made, labels = make_lines()
    assert [*made, ""] == lines
    assert labels == LABELS


def test_the_data_is_varied(lines: list[str]) -> None:
    results, broken = expected_of_lines(lines)
    assert len(results) > 250
    assert len({code for _, _, code in broken}) >= 8
    assert len({result["language"] for result in results}) >= 9
    assert sum(20_000 < len(line.encode()) < 60_000 for line in lines) >= 10
    assert "\u200d" in "".join(lines)
    assert "\u202b" in "".join(lines)


def test_the_report_says_what_a_second_computation_says(lines: list[str], tmp_path: Path) -> None:
    report = run(DATA / "tickets.jsonl", tmp_path)
    compare(report, expected_of_lines(lines))
    assert report["input"] == "tickets.jsonl"


def test_the_rules_mostly_agree_with_who_wrote_the_tickets(tmp_path: Path) -> None:
    results = run(DATA / "tickets.jsonl", tmp_path)["results"]
    for name in ("category", "language"):
        right = sum(result[name] == LABELS[result["id"]][name] for result in results)
        assert right / len(results) > 0.95, name


def test_the_page_for_people_shows_every_record(lines: list[str], tmp_path: Path) -> None:
    results, broken = expected_of_lines(lines)
    run(DATA / "tickets.jsonl", tmp_path)
    markdown = (tmp_path / "report.md").read_text("utf-8")
    rows = table_rows(markdown, "All tickets")
    assert [row.split(" | ")[0] for row in rows] == [f"| {result['record']}" for result in results]
    assert {row.replace("\\|", "").count("|") for row in rows} == {10}
    assert len(table_rows(markdown, "Broken records")) == len(broken)
    assert len(table_rows(markdown, "Urgent")) == sum(result["priority"] == "urgent" for result in results)


def test_two_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for out in ("one", "two"):
        run(DATA / "tickets.jsonl", tmp_path / out)
    for name in ("report.md", "report.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["report.json", "report.md"]


# CSV


def good_tickets(lines: Sequence[str]) -> Iterator[dict[str, str]]:
    known = {result["record"] for result in expected_of_lines(lines)[0]}
    records = [line for line in lines if line.strip()]
    return (json.loads(line) for record, line in enumerate(records, start=1) if record in known)


def test_csv_gives_the_same_results(lines: list[str], tmp_path: Path) -> None:
    tickets = list(good_tickets(lines))
    with (tmp_path / "tickets.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, ["text", "id", "subject", "channel", "created_at", "ignored"])
        writer.writeheader()
        writer.writerows(ticket | {"ignored": "x"} for ticket in tickets)
    data = (tmp_path / "tickets.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    assert data.count(b"\r\n") > len(tickets)
    assert any("\n" in ticket["text"] for ticket in tickets)
    report = run(tmp_path / "tickets.csv", tmp_path / "out")
    compare(report, ([judge(record, ticket) for record, ticket in enumerate(tickets, start=1)], []))


def test_broken_rows_of_csv_are_reported_and_the_others_read(tmp_path: Path) -> None:
    good = "2026-03-02T08:00:00Z,hello there"
    rows = [
        b"id,created_at,text",
        f"A,{good}".encode(),
        f"B,{good},one too many".encode(),
        b"C,2026-03-02T08:00:00Z",
        b'D,2026-03-02T08:00:00Z,"two\r\nlines, and a ""quote"""',
        b'E,2026-03-02T08:00:00Z,"quoted" and not',
        b"",
        b"F,2026-03-02T08:00:00Z,caf\xe9",
        f"A,{good}".encode(),
        b"G,2026-03-02T08:00:00Z,NUL \0 inside",
        f"H,{good}".encode(),
        f'I,2026-03-02T08:00:00Z,"never closed\r\nJ,{good}'.encode(),
    ]
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\r\n".join(rows))
    report = run(path, tmp_path / "out")
    assert [result["id"] for result in report["results"]] == ["A", "D", "H"]
    assert [(each["record"], each["line"], each["code"]) for each in report["broken_records"]] == [
        (2, 3, "wrong_columns"),
        (3, 4, "wrong_columns"),
        (5, 7, "not_csv"),
        (6, 9, "not_utf8"),
        (7, 10, "duplicate_id"),
        (8, 11, "bad_text"),
        (10, 13, "not_csv"),
    ]


# What else may come


def test_json_lines_from_another_system_are_read(tmp_path: Path) -> None:
    ticket = {"id": "A", "created_at": "2026-03-02T08:00:00+05:30", "text": "line\u2028separator, \u0085 and tab\t"}
    raw = json.dumps(ticket, ensure_ascii=False).encode()
    path = tmp_path / "theirs.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + raw + b"\r\n\r\n" + raw.replace(b'"A"', b'"B"') + b"\r\n\xff\xfe\r\n")
    report = run(path, tmp_path / "out")
    assert [result["id"] for result in report["results"]] == ["A", "B"]
    assert [each["code"] for each in report["broken_records"]] == ["not_utf8"]


def test_a_ticket_too_long_for_a_message_is_reported(tmp_path: Path) -> None:
    ticket = {"id": "A", "created_at": "2026-03-02T08:00:00Z"}
    path = tmp_path / "long.jsonl"
    path.write_text(
        "\n".join(json.dumps(ticket | {"id": str(n), "text": "x" * n}) for n in (200_000, 300_000)), "utf-8"
    )
    report = run(path, tmp_path / "out")
    assert [result["id"] for result in report["results"]] == ["200000"]
    assert [(each["record"], each["code"]) for each in report["broken_records"]] == [(2, "too_long")]


@pytest.mark.parametrize("name", ["empty.jsonl", "empty.csv", "header.csv"])
def test_a_file_without_tickets_gives_an_empty_report(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("id,created_at,text\r\n" if name == "header.csv" else "", "utf-8")
    report = run(tmp_path / name, tmp_path / "out")
    assert (report["records"], report["results"], report["broken_records"]) == (0, [], [])
    assert "None." in (tmp_path / "out" / "report.md").read_text("utf-8")


def test_nothing_in_a_ticket_breaks_the_page(tmp_path: Path) -> None:
    subject = "| a | `b` <script>alert(1)</script> *c* [d](e)\n\n# f \u202e" + "👩‍👩‍👧" * 30
    ticket = {"id": "<|>", "created_at": "2026-03-02T08:00:00Z", "subject": subject, "text": "t"}
    path = tmp_path / "nasty.jsonl"
    path.write_text(json.dumps(ticket), "utf-8")
    run(path, tmp_path / "out")
    (row,) = table_rows((tmp_path / "out" / "report.md").read_text("utf-8"), "All tickets")
    assert "\\| a \\| \\`b\\` \\<script\\>" in row
    assert "\u202e" not in row
    assert not row.split("…")[0].endswith("\u200d")


def test_a_missing_file_is_said_and_told_by_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nowhere.jsonl"
    assert main(["--input", str(path), "--out", str(tmp_path / "out")]) == 3
    captured = capsys.readouterr()
    assert captured.err == f"tickets: there is no file {str(path)!r}; give --input a file of tickets\n"
    assert not (tmp_path / "out").exists()


def test_a_csv_file_without_the_columns_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.csv"
    path.write_text("name,age\r\nx,1\r\n", "utf-8")
    assert main(["--input", str(path), "--out", str(tmp_path / "out"), "--quiet"]) == 1
    assert "names no column id, created_at, text; it has name, age" in capsys.readouterr().err


def test_reports_that_cannot_be_written_fail_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("a file", "utf-8")
    assert main(["--out", str(tmp_path / "out"), "--quiet"]) == 1
    assert capsys.readouterr().err == f"tickets: {tmp_path / 'out'}: File exists\n"


@pytest.mark.process
def test_the_command_shows_how_it_goes_and_where_the_reports_are(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.tickets", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout
    assert "\x1b" not in shown
    for superstep, node in enumerate(("read", "classify", "incident", "report"), start=1):
        assert any(line.startswith(f"superstep {superstep}") and node in line for line in shown.splitlines())
    assert shown.endswith(f"wrote {tmp_path / 'report.md'}\nwrote {tmp_path / 'report.json'}\n")
    for name in ("category", "priority", "language", "broken"):
        assert f"\n  {name} " in shown
