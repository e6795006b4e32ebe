"""The values that travel between the nodes."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class Channel(StrEnum):
    EMAIL = "email"
    CHAT = "chat"
    WEB = "web"
    PHONE = "phone"


@dataclass(frozen=True)
class Job:
    """The input of a run: the file to read and the directory for the reports."""

    path: str
    out: str


@dataclass(frozen=True)
class Ticket:
    """`record` counts the records of the file from 1 and is the one name of a ticket that is always there and unique."""

    record: int
    line: int
    id: str
    created_at: datetime
    channel: Channel
    subject: str
    text: str


@dataclass(frozen=True)
class Classified:
    """A ticket without its text, which no desk needs."""

    record: int
    id: str
    created_at: datetime
    channel: Channel
    subject: str
    category: str
    priority: str


@dataclass(frozen=True)
class Finding:
    """Something to report about a record. The join takes any of them, since they have this type above them."""

    record: int


@dataclass(frozen=True)
class Total(Finding):
    """How many records there were: what the report must account for. Its own `record` is 0."""

    records: int


@dataclass(frozen=True)
class Broken(Finding):
    """A record that is no ticket, and why. `excerpt` is printable whatever the record holds."""

    line: int
    code: str
    detail: str
    excerpt: str


@dataclass(frozen=True)
class Routed(Finding):
    ticket: Classified
    desk: str
    due: datetime
    first_step: str


@dataclass(frozen=True)
class Amount:
    currency: str
    value: Decimal


@dataclass(frozen=True)
class Facts(Finding):
    orders: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)
    amounts: list[Amount] = field(default_factory=list)


@dataclass(frozen=True)
class Tone(Finding):
    """`mood` from -3 to 3."""

    language: str
    mood: int


@dataclass(frozen=True)
class Summary:
    """The output of a run: what the terminal shows, and where the rest is."""

    records: int
    tickets: int
    broken: int
    counts: dict[str, dict[str, int]]
    files: list[str]
