"""A file to tickets: JSON Lines, or CSV (RFC 4180). What is no ticket comes out as Broken, in its place.

Bytes that are not UTF-8 are kept as lone surrogates until the record they are in has been reported.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import NoneType

from examples.tickets.model import Broken, Channel, Ticket

COLUMNS = ("id", "created_at", "channel", "subject", "text")
REQUIRED = ("id", "created_at", "text")
MAX_FIELD = 16 * 1024 * 1024
_EXCERPT = 80
_JSON_NAMES = {
    dict: "an object",
    list: "an array",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    NoneType: "null",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class _RecordError(Exception):
    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        super().__init__(detail)


def read_records(path: Path) -> Iterator[Ticket | Broken]:
    """Raises OSError, and ValueError for a CSV file without the columns."""
    text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
    rows = _csv_rows(text) if path.suffix.lower() == ".csv" else _json_lines(text)
    for record, (line, raw, fields) in enumerate(rows, start=1):
        try:
            if _SURROGATE.search(raw):
                raise _RecordError("not_utf8", "bytes that are not UTF-8")
            if isinstance(fields, _RecordError):
                raise fields
            yield _ticket(record, line, _fields_of(raw) if fields is None else fields)
        except _RecordError as error:
            yield broken(record, line, error.code, str(error), raw)


def broken(record: int, line: int, code: str, detail: str, raw: str) -> Broken:
    return Broken(record, line, code, detail, printable(raw))


def printable(raw: str) -> str:
    """The beginning of a text, with all escaped that does not print or cannot travel."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in raw[:_EXCERPT])
    return f"{shown}…" if len(raw) > _EXCERPT else shown


def _json_lines(text: str) -> Iterator[tuple[int, str, None]]:
    """Lines end with LF or CR LF, and with nothing else that Unicode calls a line end. Blank ones are no records."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r"), None


def _csv_rows(text: str) -> Iterator[tuple[int, str, Mapping[str, object] | _RecordError]]:
    """The first row names the columns. A quote that is never closed takes the rest of the file with it, as one record."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_FIELD))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next((row for row in reader if row), None)
    if header is None:
        return
    if missing := [name for name in REQUIRED if name not in header]:
        raise ValueError(f"the first row names no column {', '.join(missing)}; it has {', '.join(header)}")
    lines = text.split("\n")
    while True:
        before = reader.line_num
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield before + 1, "\n".join(lines[before : reader.line_num]), _RecordError("not_csv", str(error))
            continue
        raw = "\n".join(lines[before : reader.line_num])
        if len(row) == len(header):
            yield before + 1, raw, dict(zip(header, row, strict=True))
        elif row:
            yield before + 1, raw, _RecordError("wrong_columns", f"{len(row)} columns, {len(header)} are named")


def _fields_of(line: str) -> object:
    try:
        value: object = json.loads(line)
    except RecursionError:
        raise _RecordError("not_json", "it nests too deeply") from None
    except ValueError as error:
        raise _RecordError("not_json", str(error)) from None
    return value


def _ticket(record: int, line: int, fields: object) -> Ticket:
    if not isinstance(fields, dict):
        raise _RecordError("not_object", f"it is {_JSON_NAMES[type(fields)]}, not an object")
    for name in REQUIRED:
        if name not in fields:
            raise _RecordError("missing_field", f"no field {name!r}")
    texts: dict[str, str] = {}
    for name in COLUMNS:
        value = fields.get(name, "")
        if not isinstance(value, str):
            raise _RecordError("wrong_type", f"{name!r} is {_JSON_NAMES[type(value)]}, not text")
        texts[name] = value
    for name in ("id", "text"):
        if not texts[name].strip():
            raise _RecordError("empty_field", f"{name!r} is empty")
    try:
        created_at = datetime.fromisoformat(texts["created_at"])
    except ValueError:
        raise _RecordError("wrong_value", "'created_at' is no ISO 8601 time") from None
    if created_at.tzinfo is None:
        raise _RecordError("wrong_value", "'created_at' has no time zone")
    try:
        channel = Channel(texts["channel"] or Channel.WEB)
    except ValueError:
        raise _RecordError("wrong_value", f"'channel' is none of {', '.join(Channel)}") from None
    return Ticket(record, line, texts["id"], created_at, channel, texts["subject"], texts["text"])
