"""Rows in Parquet files by day, and the cursor of the stream that they came from.

    lake/hands/day=2026-12-01/0000000004.parquet        the fourth batch of the stream of hands
    lake/hands.cursor.json                              {"batch": 5, "cursor": "4711"}

A batch's files are written under the number of the batch; then the cursor behind it is put in place
of the one before, in one step. A process that is killed in between leaves files of a batch whose
cursor was never kept: whoever opens the lake next takes them away, and is sent those rows again.
So nothing is lost, and nothing is there twice.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

TIME = pa.timestamp("us", tz="UTC")
HAND = [("table_id", pa.string()), ("hand_number", pa.int32()), ("ended", TIME)]

SCHEMAS = {
    "hands": pa.schema(
        [
            *HAND,
            ("rule_set", pa.string()),
            ("ending", pa.string()),
            ("won_by", pa.string()),
            ("discards", pa.int32()),
            ("labels", pa.map_(pa.string(), pa.string())),
        ]
    ),
    "seats": pa.schema(
        [
            *HAND,
            ("rule_set", pa.string()),
            ("seat", pa.int32()),
            ("player_id", pa.string()),
            ("is_dealer", pa.bool_()),
            ("won", pa.bool_()),
            ("dealt_in", pa.bool_()),
            ("fan", pa.int32()),
            ("units", pa.int64()),
        ]
    ),
    "items": pa.schema(
        [
            *HAND,
            ("rule_set", pa.string()),
            ("seat", pa.int32()),
            ("item", pa.string()),
            ("name_zh", pa.string()),
            ("fan", pa.int32()),
            ("count", pa.int32()),
        ]
    ),
    "transfers": pa.schema(
        [
            *HAND,
            ("rule_set", pa.string()),
            ("number", pa.int32()),
            ("from_player", pa.string()),
            ("to_player", pa.string()),
            ("units", pa.int64()),
            ("reason", pa.string()),
        ]
    ),
    "entries": pa.schema(
        [
            ("sequence", pa.int64()),
            ("operation", pa.int64()),
            ("time", TIME),
            ("account", pa.string()),
            ("owner", pa.string()),
            ("currency", pa.string()),
            ("book", pa.string()),
            ("amount", pa.int64()),
            ("verb", pa.string()),
            ("reason", pa.string()),
            ("reference", pa.string()),
            ("labels", pa.map_(pa.string(), pa.string())),
        ]
    ),
}
"""The tables. `ended` and `time` are in UTC; `units` are the rules' units, `amount` is money."""

OF_STREAM = {"hands": ("hands", "seats", "items", "transfers"), "entries": ("entries",)}
"""The tables that a stream fills."""

Row = dict[str, Any]


class LakeDamaged(Exception):
    """What the lake says of itself cannot be read."""


class LakeInUse(Exception):
    """Another process writes into this lake."""


@dataclass
class Shelf:
    """What one stream has filled, and how far. Only one process may have it.

    `open` raises LakeInUse and LakeDamaged.
    """

    folder: Path
    stream: str
    batch: int = 1
    cursor: str = ""
    """To go on after; empty: from the first there is."""
    _lock: IO[bytes] | None = field(default=None, repr=False)

    @classmethod
    def open(cls, folder: Path, stream: str) -> Shelf:
        """What there is; what was left of a batch that never came to its end is taken away."""
        folder.mkdir(parents=True, exist_ok=True)
        shelf = cls(folder, stream)
        shelf._lock = (folder / f"{stream}.lock").open("wb")
        try:
            fcntl.flock(shelf._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            shelf.close()
            raise LakeInUse(
                f"another process writes {stream} into {folder}: end it first"
            ) from None
        if shelf._kept.exists():
            try:
                kept = json.loads(shelf._kept.read_text("utf-8"))
                shelf.batch, shelf.cursor = int(kept["batch"]), str(kept["cursor"])
            except (KeyError, TypeError, ValueError):
                shelf.close()
                raise LakeDamaged(
                    f"{shelf._kept} does not say how far {stream} has come: restore it, or begin "
                    "anew with another --lake"
                ) from None
        for table in OF_STREAM[stream]:
            for file in (folder / table).glob("day=*/*.parquet*"):
                batch, _, rest = file.name.partition(".")  # whatever else lies there is not ours
                if batch.isdigit() and (rest != "parquet" or int(batch) >= shelf.batch):
                    file.unlink()
        return shelf

    def close(self) -> None:
        """Let another process have it."""
        if self._lock is not None:
            self._lock.close()

    def keep(self, rows: Mapping[str, Sequence[Row]], cursor: str) -> None:
        """Keep a batch, `rows` by table, and the cursor behind it: both or neither."""
        for table, of_table in rows.items():
            moment = "time" if table == "entries" else "ended"
            by_day: dict[str, list[Row]] = {}
            for row in of_table:
                day: datetime = row[moment]
                by_day.setdefault(f"day={day:%Y-%m-%d}", []).append(row)
            for day_name, of_day in by_day.items():
                self._write(self.folder / table / day_name, table, of_day)
        self.batch, self.cursor = self.batch + 1, cursor
        told = json.dumps({"batch": self.batch, "cursor": cursor})
        _replace(self._kept, lambda path: path.write_text(told, "utf-8"))

    def _write(self, folder: Path, table: str, rows: Sequence[Row]) -> None:
        if not folder.exists():
            folder.mkdir(parents=True)
            _settle(folder.parent)
        content = pa.Table.from_pylist(list(rows), schema=SCHEMAS[table])
        file = folder / f"{self.batch:010d}.parquet"
        _replace(file, lambda path: pq.write_table(content, path, compression="zstd"))

    @property
    def _kept(self) -> Path:
        return self.folder / f"{self.stream}.cursor.json"


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside, and put it in its place in one step; it is on the disk then."""
    beside = path.with_name(f"{path.name}.part")
    write(beside)
    _settle(beside)
    beside.replace(path)
    _settle(path.parent)


def _settle(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
