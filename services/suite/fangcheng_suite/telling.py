"""`fangcheng logs`: tells a table's story to whoever looks into a complaint."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from rich.console import Console
from rich.text import Text

from .errors import SuiteError
from .progress import progress
from .stories import Line, Story, gather, of_hand, printable, read_line

LOOK_SECONDS = 0.2
"""How often a followed log is looked at."""
_BLOCK_BYTES = 64 * 1024

_SPANS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_STYLES = {"debug": "dim", "info": "", "warning": "yellow", "error": "bold red"}


def since(text: str, now: datetime) -> datetime:
    """From when on: a span before now (`90s`, `10m`, `2h`, `3d`) or a time as ISO 8601 has it."""
    found = re.fullmatch(r"(\d+)([smhd])", text)
    try:
        if found:
            return now - timedelta(**{_SPANS[found[2]]: int(found[1])})
        told = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise SuiteError(
            f"{text!r} is no time",
            "Give a span such as 90s, 10m, 2h, 3d, or a time such as 2026-11-30T18:00:00+08:00.",
        ) from None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def tell(
    console: Console,
    table_id: str,
    paths: Sequence[Path],
    *,
    hand: int | None = None,
    begin: datetime | None = None,
    ids: bool = False,
    follow: bool = False,
) -> None:
    """Print the story of a table; with `follow` go on as it goes on, until interrupted.

    `paths`: files, folders of them, `-` for standard input. Raises SuiteError.
    """
    story = Story(table_id)
    with _files(paths, follow=follow) as files, ExitStack() as opened:
        until: dict[Path, int | None] = dict.fromkeys(files)
        tails: list[_Tail] = []
        try:
            if follow:
                logs = [path for path in files if path.suffix == ".log"]
                tails = [_Tail(path, opened) for path in logs]
                until.update({tail.path: tail.at for tail in tails})
            # Logs are gone through several times, so how much there is to read is not known.
            with progress("Reading logs", unit="bytes") as bar:
                told = gather(story, until, bar.advance)
        except (OSError, EOFError, zlib.error) as error:
            raise SuiteError(
                f"a log cannot be read: {error}",
                "Leave the file out, or unpack it by hand: one that ends in .gz has to be whole.",
            ) from error
        lines = told.lines if hand is None else of_hand(told.lines, hand)
        lines = [line for line in lines if begin is None or line.time >= begin]
        for line in lines:
            show(console, line, ids=ids)
        if told.malformed:
            Console(stderr=True, highlight=False).print(
                f"{told.malformed} lines are no service's and were left out."
            )
        if follow:
            for line in _followed(story, tails, opened):
                if hand is None or line.more.get("hand", hand) == hand:
                    show(console, line, ids=ids)
        elif not lines:
            what = f"table {table_id}" if hand is None else f"hand {hand} of table {table_id}"
            raise SuiteError(
                f"nothing in {len(files)} files tells of {what}",
                "Its id stands in the line 'table created', and in `fangcheng tables`. Services "
                "that log at warning or error tell no stories.",
            )


def show(console: Console, line: Line, *, ids: bool = False) -> None:
    """Print a line of a story."""
    words = Text()
    words.append(f"{line.time:%Y-%m-%d %H:%M:%S.%f}"[:-3], "dim")
    words.append(f"  {printable(line.service):<11} ")
    words.append(f"{printable(line.level):<7} ", _STYLES.get(line.level, ""))
    words.append(f"{printable(line.event):<26} ", "bold")
    words.append(printable(line.words(ids=ids)))
    console.print(words, soft_wrap=True)
    for trace in str(line.more.get("exception") or "").splitlines():
        console.print(Text(f"    {printable(trace)}", "dim"), soft_wrap=True)


@contextmanager
def _files(paths: Sequence[Path], *, follow: bool) -> Iterator[list[Path]]:
    """The files that are meant; standard input as one of them, since it is read several times."""
    with tempfile.TemporaryDirectory(prefix="fangcheng-logs-") as folder:
        found: list[Path] = []
        for path in paths:
            if path == Path("-"):
                if follow:
                    raise SuiteError("standard input cannot be followed", "Name files or a folder.")
                spool = Path(folder) / "stdin.log"
                with spool.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file)
                found.append(spool)
            elif path.is_dir():
                found += sorted(one for one in path.glob("*.log*") if one.is_file())
            elif path.is_file():
                found.append(path)
            else:
                raise SuiteError(
                    f"{path} is not there",
                    "Name files or folders of logs; without any, those of the suite that runs here "
                    "are read.",
                )
        if not found:
            raise SuiteError(
                f"no logs in {', '.join(map(str, paths))}",
                "Name the files, or a folder with files *.log: what the services wrote to their "
                "standard error.",
            )
        yield found


def _whole_lines(file: BinaryIO) -> int:
    """How many bytes of a log are whole lines: the last one may be being written."""
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - _BLOCK_BYTES)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


class _Tail:
    """A log that grows. Stays with the file that it was opened for, whatever that is called."""

    def __init__(self, path: Path, opened: ExitStack, *, is_new: bool = False) -> None:
        """Begins behind what is written already, unless the file `is_new`. Raises OSError."""
        self.path = path
        self.file = opened.enter_context(path.open("rb"))
        self.at = 0 if is_new else _whole_lines(self.file)
        self._rest = b""

    def lines(self) -> list[bytes]:
        """Those that have been written since."""
        size = os.fstat(self.file.fileno()).st_size
        if size < self.at:  # begun anew
            self.at, self._rest = 0, b""
        self.file.seek(self.at)
        data = self.file.read(size - self.at)
        self.at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return whole

    def is_called_so(self) -> bool:
        """Whether its name is still that of its file, or of none."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self.file.fileno()))
        except FileNotFoundError:
            return True  # moved away, and soon begun anew


def _followed(story: Story, tails: Sequence[_Tail], opened: ExitStack) -> Iterator[Line]:
    """Lines of the story as they are written from now on.

    A log that was moved away is read on, since its service may still write there, and beside it
    the one that has its name now.
    """
    latest = {tail.path: tail for tail in tails}
    tails = list(tails)
    while True:
        for path, tail in latest.items():
            if not tail.is_called_so():
                with suppress(FileNotFoundError):  # moved away again
                    latest[path] = _Tail(path, opened, is_new=True)
                    tails.append(latest[path])
        new = [
            line
            for tail in tails
            for one in tail.lines()
            if story.take(one) and (line := read_line(one)) is not None
        ]
        yield from sorted(new, key=lambda line: line.time)
        time.sleep(LOOK_SECONDS)
