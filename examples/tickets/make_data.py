"""Makes data/tickets.jsonl and data/labels.json of data/texts.txt: python -m examples.tickets.make_data [--csv FILE]

Every text is used twice, filled in differently; some grow long, some are decorated, and among them are broken records. The
same bytes come out every time. `labels.json` says what each ticket was written as.
"""

import argparse
import csv
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

DATA = Path(__file__).parent / "data"
COLUMNS = ("id", "created_at", "channel", "subject", "text")
_SEED = 1377
_LONG_EVERY = 19

_NAMES = {
    "de": ["Jürgen Weiß", "Anke Groß", "Übel & Söhne"],
    "fr": ["Chloé Lefèvre", "Gaël Noël", "Benoît Çelik"],
    "es": ["Íñigo Muñoz", "Begoña Peña"],
    "pt": ["João Conceição", "Inês Magalhães"],
    "zh": ["王小明", "李雷"],
    "ja": ["佐藤", "髙橋"],
    "ar": ["ليلى", "يوسف"],
    "hi": ["अनिल", "प्रिया"],
    "ru": ["Ольга", "Пётр"],
}
_ENGLISH = [
    "Maeve O'Brien",
    'Sam "Ace" Turner',
    "Zoë van der Berg",
    "Nguyễn Thị Minh",
    "Bob; DROP TABLE tickets",
    "A. B.",
]
_MONTHS = {
    "en": ["January", "March", "October"],
    "de": ["Januar", "März", "Oktober"],
    "es": ["enero", "marzo"],
    "zh": ["一月", "三月"],
    "hi": ["जनवरी", "मार्च"],
}
_AMOUNTS = {
    "en": ["$49.00", "$1,249.50", "USD 80", "£12.99", "€ 30"],
    "de": ["49,00 €", "1.249,50 €", "EUR 80"],
    "fr": ["49,90 €", "1 249,50 €"],
    "es": ["49,90 €", "120 EUR"],
    "pt": ["R$ 1.499,90", "R$49,00"],
    "zh": ["¥199", "1,280元", "¥35.50"],
    "ja": ["¥12,000", "9800円", "¥12,345"],
    "ar": ["١٬٢٥٠ ريال", "99.50 ريال"],
    "hi": ["₹1,499", "₹ 250.75"],
    "ru": ["1 990 ₽", "450 ₽"],
}
_PRODUCTS = ["Quillmark", "Harbour", "Tallybook", "Fernweh"]
_HOSTS = ["api.example.com", "eu-2.api.example.org", "xn--bcher-kva.example"]
_ENDINGS = {
    "en": ["", "", "\nSent from my phone", "\nRegards", "\n\n--\nThis message is confidential."],
    "de": ["", "", "\nViele Grüße", "\nMit freundlichen Grüßen"],
    "fr": ["", "\nCordialement", "\nBien à vous"],
    "es": ["", "\nUn saludo"],
    "zh": ["", "\n此致\n敬礼"],
    "ja": ["", "\n以上"],
}
_DECORATIONS = [
    " 👨‍👩‍👧‍👦",
    " 🏳️‍🌈🤷🏽‍♀️",
    " \u202bשלום\u202c",
    " e\u0301\u0323",
    "\u200b\u200b",
    " 🇩🇪🇫🇷",
    " |<b>&amp;</b>|",
    " ﷽",
    "\r\nPS: \ttabs",
]


@dataclass(frozen=True)
class Text:
    theme: str
    language: str
    subject: str
    body: str


def read_texts(path: Path = DATA / "texts.txt") -> list[Text]:
    texts = []
    theme = language = ""
    for block in path.read_text("utf-8").split("\n\n"):
        lines = [line for line in block.strip().split("\n") if line and not line.startswith("# ")]
        if lines and lines[0].startswith("## "):
            _, theme, language = lines.pop(0).split()
        if not lines:
            continue
        subject, body = lines
        texts.append(Text(theme, language, subject, body.replace("¶", "\n")))
    return texts


def make_tickets() -> tuple[list[dict[str, str]], dict[str, dict[str, str]]]:
    """The good ones, and how each was meant, by id."""
    dice = random.Random(_SEED)
    texts = read_texts() * 2
    dice.shuffle(texts)
    moment = datetime(2026, 3, 1, 6, 0, tzinfo=UTC)
    tickets = []
    labels = {}
    for position, text in enumerate(texts, start=1):
        moment += timedelta(minutes=dice.randrange(1, 90), seconds=dice.randrange(60))
        zone = timezone(timedelta(minutes=dice.choice([0, 0, 60, 330, 480, 540, -300])))
        fill = _filling(dice, text.language)
        body = text.body.format(**fill) + dice.choice(_ENDINGS.get(text.language, [""]))
        if position % 7 == 0:
            body += dice.choice(_DECORATIONS)
        if position % _LONG_EVERY == 0:
            body += _long_tail(dice, body)
        ticket = {
            "id": f"T-{position:04d}",
            "created_at": moment.astimezone(zone).isoformat(),
            "channel": dice.choice(["email", "email", "web", "chat", "phone"]),
            "subject": text.subject.format(**fill),
            "text": body,
        }
        tickets.append(ticket)
        labels[ticket["id"]] = {"category": text.theme, "language": text.language}
    return tickets, labels


def _filling(dice: random.Random, language: str) -> dict[str, str]:
    order = f"{dice.choice(['ORD', 'WEB', 'DE'])}-{dice.randrange(10_000, 9_999_999)}"
    user = f"{dice.choice(['kim', 'a.meyer', 'o+tag', 'support_team', 'x'])}{dice.randrange(100)}"
    return {
        "name": dice.choice(_NAMES.get(language, _ENGLISH)),
        "order": order,
        "amount": dice.choice(_AMOUNTS.get(language, _AMOUNTS["en"])),
        "email": f"{user}@{dice.choice(['example.com', 'mail.example.co.uk', 'post.example.de'])}",
        "product": dice.choice(_PRODUCTS),
        "month": dice.choice(_MONTHS.get(language, _MONTHS["en"])),
        "n": str(dice.randrange(2, 60)),
        "host": dice.choice(_HOSTS),
    }


def _long_tail(dice: random.Random, body: str) -> str:
    """A quoted thread, or a log, until it is 20 to 50 thousand bytes long."""
    size = dice.randrange(20_000, 50_000)
    quoted = "\n".join(f"> {line}" for line in body.split("\n"))
    parts = ["\n"]
    length = 0
    while length < size:
        if dice.random() < 0.3:
            part = f"\n{quoted}\n> > {dice.choice(_PRODUCTS)} wrote {dice.randrange(2, 30)} days ago:\n"
        else:
            part = "".join(
                f"2026-03-{dice.randrange(1, 28):02d}T{dice.randrange(24):02d}:17:{dice.randrange(60):02d}Z "
                f"worker-{dice.randrange(64)} span={dice.getrandbits(64):016x} took {dice.randrange(900)} ms\n"
                for _ in range(dice.randrange(5, 25))
            )
        parts.append(part)
        length += len(part.encode())
    return "".join(parts)


def broken_lines() -> list[str]:
    """One line each; each is broken in a way of its own."""
    good = {"id": "B-1", "created_at": "2026-03-02T08:00:00+00:00", "channel": "web", "subject": "s", "text": "a text"}

    def line(**changes: object) -> str:
        return json.dumps({**good, **changes}, ensure_ascii=False)

    def without(name: str) -> str:
        return json.dumps({key: value for key, value in good.items() if key != name})

    return [
        '{"id": "B-2", "created_at": "2026-03-02T08:00:00Z", "text": "cut off in the mid',
        "this line was never JSON",
        "{'id': 'B-3', 'text': 'single quotes'}",
        '["B-4", "2026-03-02T08:00:00Z", "a list"]',
        "null",
        '"just text"',
        without("id"),
        without("text"),
        without("created_at"),
        line(text=42),
        line(text=None),
        line(subject=["a", "list"]),
        line(id=7),
        line(created_at=1772438400),
        line(created_at="yesterday"),
        line(created_at="2026-03-02T08:00:00"),
        line(channel="carrier pigeon"),
        line(text=""),
        line(text=" \t\n \u3000"),
        line(id="  "),
        '{"id": "B-5", "created_at": "2026-03-02T08:00:00Z", "text": "half an emoji \\ud83d here"}',
        '{"id": "B-6", "created_at": "2026-03-02T08:00:00Z", "text": "NUL \\u0000 inside"}',
        '{"id": "B-7\\u0000", "created_at": "2026-03-02T08:00:00Z", "text": "NUL in the id"}',
        line(id="T-0001", text="This id was used before."),
        "[" * 3_000,
    ]


def make_lines() -> tuple[list[str], dict[str, dict[str, str]]]:
    tickets, labels = make_tickets()
    dice = random.Random(_SEED + 1)
    lines = [json.dumps(ticket, ensure_ascii=False) for ticket in tickets]
    for line in broken_lines():
        lines.insert(dice.randrange(20, len(lines)), line)
    lines.insert(50, "")  # no record
    return lines, labels


def _as_csv(tickets: list[dict[str, str]]) -> Iterator[list[str]]:
    yield list(COLUMNS)
    for ticket in tickets:
        yield [ticket[name] for name in COLUMNS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="write the good tickets there as CSV, and nothing else"
    )
    options = parser.parse_args()
    if options.csv:
        with options.csv.open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file).writerows(_as_csv(make_tickets()[0]))
        return
    lines, labels = make_lines()
    (DATA / "tickets.jsonl").write_text("\n".join(lines) + "\n", "utf-8", newline="\n")
    (DATA / "labels.json").write_text(json.dumps(labels, indent=0) + "\n", "utf-8", newline="\n")


if __name__ == "__main__":
    main()
