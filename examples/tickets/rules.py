"""What is said of a ticket: plain rules over the words in `data/rules.json`, the same whoever runs them and when.

A text is compared in Unicode's NFKC form, case folded, with single spaces. A word ends where letters, digits and
underscores end, in scripts that have capital letters; in others it is found anywhere. `*` at its end stands for any ending.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from examples.tickets.model import Amount

T = TypeVar("T")
RULES: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "rules.json").read_text("utf-8"))
CATEGORIES = (*RULES["categories"], "other")

_ORDER = re.compile(r"(?<![A-Za-z0-9-])[A-Z]{2,3}-[0-9]{4,8}(?![A-Za-z0-9-])")
_EMAIL = re.compile(r"(?<![a-z0-9._%+-])[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}")
_NUMBER = r"[0-9]{1,3}(?:[ .,'][0-9]{3})+(?:[.,][0-9]{1,2})?(?![0-9])|[0-9]+(?:[.,][0-9]{1,2})?(?![0-9])"
_WORD = re.compile(r"(?<!\w)[^\W\d_]+(?!\w)")
_OPENING = 2000
_SCRIPTS = (
    ("cjk", "぀", "ヿ"),
    ("cjk", "㐀", "鿿"),
    ("ar", "؀", "ۿ"),
    ("hi", "ऀ", "ॿ"),
    ("ru", "Ѐ", "ӿ"),
    ("latin", "A", "ɏ"),
)


def normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def category_of(text: str) -> str:
    """That of which most words are found, the first in the list of equals; `other` if none is."""
    counts = {category: len(_found(words, text)) for category, words in RULES["categories"].items()}
    best = max(counts, key=lambda category: counts[category])
    return best if counts[best] else "other"


def priority_of(category: str, text: str) -> str:
    calls = len(_found(RULES["urgent"], text))
    if calls >= 2 or (calls and category == "outage"):
        return "urgent"
    if calls or category == "outage":
        return "high"
    return "low" if category == "feature" else "normal"


def mood_of(text: str) -> int:
    score = len(_found(RULES["good"], text)) - len(_found(RULES["bad"], text)) - ("!!!" in text)
    return max(-3, min(3, score))


def language_of(text: str) -> str:
    """What the first 2,000 characters are written in: logs and quoted threads come later.

    By script, where a letter of another script than Latin counts three times; Latin by the commonest small words. Latin
    without any of them gives way to the commonest other script.
    """
    text = text[:_OPENING]
    scripts: Counter[str] = Counter()
    for char in text:
        if char.isalpha():
            script = next((name for name, first, last in _SCRIPTS if first <= char <= last), "")
            scripts[script] += 1 if script == "latin" else 3
    scripts.pop("", None)
    order = [name for name, _, _ in _SCRIPTS]
    for script in sorted(scripts, key=lambda name: (-scripts[name], order.index(name))):
        language = _latin_language(text) if script == "latin" else script
        if language == "cjk":
            return "ja" if any("぀" <= char <= "ヿ" for char in text) else "zh"
        if language != "und":
            return language
    return "und"


def _latin_language(text: str) -> str:
    words = Counter(_WORD.findall(text))
    counts = {language: sum(words[word] for word in small) for language, small in RULES["languages"].items()}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] else "und"


def orders_in(text: str) -> list[str]:
    return _distinct(_ORDER.findall(unicodedata.normalize("NFKC", text)))


def emails_in(text: str) -> list[str]:
    return _distinct(_EMAIL.findall(normal(text)))


def amounts_in(text: str) -> list[Amount]:
    """Numbers beside a currency. The last point or comma with one or two digits after it begins the fraction."""
    plain = "".join(_digit(char) for char in unicodedata.normalize("NFKC", text))
    found = []
    for match in _amount_pattern().finditer(plain):
        before, number, other, after = match.groups()
        found.append(Amount(RULES["currencies"][before or after], _value(number or other)))
    return _distinct(found)


def _value(number: str) -> Decimal:
    fraction = re.search(r"[.,]([0-9]{1,2})$", number)
    whole = re.sub(r"[^0-9]", "", number[: fraction.start()] if fraction else number)
    return Decimal(f"{whole}.{fraction[1]}" if fraction else whole)


def _digit(char: str) -> str:
    if char in "٫٬":
        return "." if char == "٫" else ","
    value = unicodedata.decimal(char, None)
    return char if value is None else str(value)


@cache
def _amount_pattern() -> re.Pattern[str]:
    signs = [
        rf"(?<![A-Za-z]){re.escape(sign)}(?![A-Za-z])" if sign.isascii() and sign.isalpha() else re.escape(sign)
        for sign in RULES["currencies"]
    ]
    sign = "|".join(signs)
    return re.compile(rf"({sign}) ?({_NUMBER})|(?<![0-9])({_NUMBER}) ?({sign})")


def _found(words: Iterable[str], text: str) -> list[str]:
    return [word for word in words if _finder(word)(text)]


@cache
def _finder(word: str) -> Callable[[str], bool]:
    bare = normal(word.removesuffix("*"))
    head = r"(?<!\w)" if _is_bounded(bare[0]) else ""
    tail = r"(?!\w)" if _is_bounded(bare[-1]) and not word.endswith("*") else ""
    pattern = re.compile(head + re.escape(bare) + tail)
    return lambda text: bare in text and pattern.search(text) is not None


def _is_bounded(char: str) -> bool:
    return char.isdigit() or char.lower() != char.upper()


def _distinct(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
