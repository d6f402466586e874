"""One table's story, out of the logs of all services.

Lines that name the table lead to its match, requests and traces, those to its tickets, and so on:
the files are read again until nothing new is found. Only the story is kept in memory. A line that
names another table is none of this one, whatever else it shares with it: a gateway's stream is one
request for many tables.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .errors import SuiteError

_IDS = re.compile(
    rb'"(table_id|match_id|ticket_id|request_id|trace_id|settlement_key)": ?"([^"]+)"'
    rb'|"ticket_ids": ?\[([^\]]*)\]'
)
_PLAIN = frozenset(
    {"event", "time", "level", "service", "table_id", "span_id", "exception", "logger"}
)
"""What is told by its place in the line, or of no use to a reader."""
_IDS_OF_CALLS = ("request_id", "trace_id")
_CHUNK_BYTES = 1 << 20

Reading = Callable[[int], None]
"""Told how many bytes have been read since it was told last."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a service's log."""

    time: datetime
    """In the time zone of whoever reads."""
    service: str
    level: str
    event: str
    more: dict[str, Any]

    def words(self, *, ids: bool = False) -> str:
        """What is told beside time, service and event; `ids`: also the request's and trace's."""
        return "  ".join(
            f"{name} {_spoken(value)}"
            for name, value in self.more.items()
            if name not in _PLAIN and value is not None and (ids or name not in _IDS_OF_CALLS)
        )


def printable(text: str) -> str:
    """A text of a log with nothing in it that a terminal obeys, and in one line.

    What callers have sent may stand in a log: it must neither colour nor clear the screen of
    whoever reads, nor look like a line of its own.
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def _spoken(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_spoken, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def read_line(data: bytes) -> Line | None:
    """A line; None: it is none of a service's."""
    try:
        told = json.loads(data)
        time = datetime.fromisoformat(told["time"])
        return Line(
            (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(),
            str(told["service"]),
            str(told["level"]),
            str(told["event"]),
            told,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


@dataclass(slots=True)
class Story:
    """What belongs to a table, as far as it has been found."""

    table_id: str
    known: set[bytes] = field(default_factory=set)
    """The ids that lead to it."""

    def __post_init__(self) -> None:
        self.known.add(os.fsencode(self.table_id))

    def take(self, data: bytes) -> bool:
        """Whether a line belongs to it; its ids lead to it then."""
        found = _IDS.findall(data)
        tables = {value for name, value, _ in found if name == b"table_id"}
        tables |= {
            value.partition(b"/")[0] for name, value, _ in found if name == b"settlement_key"
        }
        if tables - self.known:
            return False
        ids = tables | {value for _, value, _ in found if value}
        for _, _, tickets in found:
            ids.update(re.findall(rb'"([^"]+)"', tickets))
        if ids.isdisjoint(self.known):
            return False
        self.known |= ids
        return True


@dataclass(frozen=True, slots=True)
class Told:
    """A story, and how much of the logs nobody can read."""

    lines: list[Line]
    """By time."""
    malformed: int


def gather(
    story: Story, files: Mapping[Path, int | None], reading: Reading = lambda size: None
) -> Told:
    """Find all lines of a story. `files`: each with where to stop; None: at its end.

    The first characters of the table's id will do, if no other's begins so. Raises `OSError`,
    `EOFError`, `zlib.error`; `SuiteError` if several do.
    """
    # At first only what names the table: that is quick.
    name = os.fsencode(story.table_id)
    begun = re.compile(rb'"table_id": ?"(%b[^"]*)"' % re.escape(name))
    tables: set[bytes] = set()
    for data in _lines(files, reading):
        if name in data:
            tables.update(begun.findall(data))
            story.take(data)
    if name not in tables and len(tables) > 1:
        raise SuiteError(
            f"the ids of {len(tables)} tables begin with {story.table_id!r}",
            "Give more of it; it stands in the line 'table created'.",
        )
    story.known |= tables if name not in tables else set()
    while True:
        before = len(story.known)
        taken, malformed = [], 0
        for data in _lines(files, reading):
            if not (data.startswith(b"{") and data.rstrip().endswith(b"}")):
                malformed += bool(data.strip())
            elif story.take(data):
                line = read_line(data)
                if line is None:
                    malformed += 1
                else:
                    taken.append(line)
        if len(story.known) == before:
            return Told(sorted(taken, key=lambda line: line.time), malformed)


def of_hand(lines: Iterable[Line], number: int) -> list[Line]:
    """Those of a story that tell of one hand: that name it, or were written while it lasted."""
    lines = list(lines)
    its = [line.time for line in lines if line.more.get("hand") == number]
    if not its:
        return []
    first, last = min(its), max(its)
    return [
        line
        for line in lines
        if line.more.get("hand", number) == number and first <= line.time <= last
    ]


def _opened(path: Path) -> AbstractContextManager[Iterable[bytes]]:
    """A log, whether or not it was packed with gzip."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _lines(files: Mapping[Path, int | None], reading: Reading) -> Iterator[bytes]:
    for path, end in files.items():
        with _opened(path) as file:
            done = told = 0
            for data in file:
                if end is not None and done >= end:
                    break
                done += len(data)
                if done - told >= _CHUNK_BYTES:
                    reading(done - told)
                    told = done
                yield data
            reading(done - told)
