"""The example of a warehouse: every row once, whatever ends the process that writes them."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import records_pb2
from warehouse import lake, reading
from warehouse.asking import QUERIES, open_lake
from warehouse.lake import LakeDamaged, LakeInUse, Shelf
from warehouse.rows import of_hand

PLAYERS = ["ming", "lan", "ju", "zhu"]
BEGIN = datetime(2026, 3, 31, 23, 0, tzinfo=UTC)


def entry(sequence: int) -> lake.Row:
    """Half an hour after the one before: some are of the next day."""
    return {
        "sequence": sequence,
        "operation": (sequence + 1) // 2,
        "time": BEGIN + sequence * timedelta(minutes=30),
        "account": "player",
        "owner": "ming",
        "currency": "silver",
        "amount": 5 if sequence % 2 else -5,
        "verb": "settle",
        "reason": "win",
        "reference": "t/1",
        "labels": {"club": "17"},
    }


def sequences(folder: Path) -> list[int]:
    rows = open_lake(folder).execute("SELECT sequence FROM entries ORDER BY ALL").fetchall()
    return [row[0] for row in rows]


class Killed(BaseException):
    """Ends a process anywhere."""


@pytest.mark.parametrize("seed", range(12))
def test_a_process_that_is_killed_anywhere_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    kills = 0
    settle = lake._settle

    def perhaps(path: Path) -> None:
        nonlocal kills
        if chance.random() < 0.15:
            kills += 1
            raise Killed
        settle(path)

    monkeypatch.setattr(lake, "_settle", perhaps)
    while True:
        shelf = Shelf.open(tmp_path, "entries")
        try:
            begin = int(shelf.cursor or 0) + 1
            if begin > 40:
                break
            # What comes after a restart need not be cut as it was before.
            rows = [entry(n) for n in range(begin, min(begin + chance.randint(1, 9), 41))]
            shelf.keep({"entries": rows}, str(rows[-1]["sequence"]))
        except Killed:
            pass
        finally:
            shelf.close()
    assert kills
    assert sequences(tmp_path) == list(range(1, 41))
    assert len(list(tmp_path.glob("entries/day=*"))) == 2
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_left_of_a_batch_goes_also_where_the_next_has_fewer_days(tmp_path: Path) -> None:
    shelf = Shelf.open(tmp_path, "entries")
    shelf.keep({"entries": [entry(1), entry(2)]}, "2")
    shelf.close()
    (tmp_path / "entries.cursor.json").unlink()  # as if killed before it was kept
    assert len(list(tmp_path.glob("entries/day=*/*"))) == 2

    shelf = Shelf.open(tmp_path, "entries")
    shelf.keep({"entries": [entry(1)]}, "1")
    shelf.close()
    assert sequences(tmp_path) == [1]


def test_a_lake_has_one_writer(tmp_path: Path) -> None:
    shelf = Shelf.open(tmp_path, "entries")
    with pytest.raises(LakeInUse, match="another process writes entries"):
        Shelf.open(tmp_path, "entries")
    shelf.close()
    Shelf.open(tmp_path, "entries").close()


async def test_who_is_cancelled_keeps_the_lake_until_its_batch_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()
    keep = Shelf.keep

    def slow(shelf: Shelf, *batch: Any) -> None:
        begun.set()
        may_end.wait()
        keep(shelf, *batch)

    async def one_entry(*_: Any) -> AsyncIterator[reading.Batch]:
        yield {"entries": [entry(1)]}, "1", True

    monkeypatch.setattr(Shelf, "keep", slow)
    monkeypatch.setitem(reading._SOURCES, "entries", one_entry)
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        task = asyncio.create_task(
            reading.read("entries", channel, tmp_path, lambda *_: None, follow=True)
        )
        try:
            await asyncio.to_thread(begun.wait)
            task.cancel()
            await asyncio.wait([task], timeout=0.05)
            with pytest.raises(LakeInUse):
                Shelf.open(tmp_path, "entries")
        finally:
            may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    Shelf.open(tmp_path, "entries").close()
    assert sequences(tmp_path) == [1]


def test_a_hand_that_is_sent_again_is_there_once(tmp_path: Path) -> None:
    hand = records_pb2.FinishedHand(cursor="7")
    hand.entry.MergeFrom(
        records_pb2.FinishedHandEntry(
            table_id="t", hand_number=2, rule_set="jintan", player_ids=PLAYERS, ending="win"
        )
    )
    ended = hand.record.events.add().hand_ended
    ended.hand.dealer = 3
    ended.hand.seats.extend(rules_pb2.SeatHand() for _ in range(4))
    ended.hand.win.MergeFrom(rules_pb2.WinEnd(winners=[1], tile=11, by="discard", from_seat=2))
    ended.net.extend([0, 6, -6, 0])
    ended.score.winners.add(seat=1, fan=3).items.add(id="pongs", name_zh="碰碰胡", fan=3, count=1)
    ended.score.transfers.add(from_seat=2, to_seat=1, amount=6, reason="win")

    shelf = Shelf.open(tmp_path, "hands")
    for cursor in "78":
        shelf.keep(of_hand(hand), cursor)
    db = open_lake(tmp_path)
    assert db.execute("SELECT ending, won_by, day FROM hands").fetchall() == [
        ("win", "discard", datetime(1970, 1, 1, tzinfo=UTC).date())
    ]
    seats = db.execute(
        "SELECT player_id, is_dealer, won, dealt_in, fan, units FROM seats ORDER BY seat"
    ).fetchall()
    assert seats == [
        (PLAYERS[0], False, False, False, None, 0),
        (PLAYERS[1], False, True, False, 3, 6),
        (PLAYERS[2], False, False, True, None, -6),
        (PLAYERS[3], True, False, False, None, 0),
    ]
    flows = db.execute(QUERIES["flows"]).fetchall()
    assert flows == [("jintan", PLAYERS[2], PLAYERS[1], 6, 1)]


@pytest.mark.parametrize("name", QUERIES)
def test_every_question_is_answered_by_an_empty_lake_and_says_what_it_asks(
    tmp_path: Path, name: str
) -> None:
    assert QUERIES[name].startswith("-- ")
    assert isinstance(open_lake(tmp_path).sql(QUERIES[name]).fetchall(), list)


@pytest.mark.parametrize("text", ["", "{", "7", "{}", '{"batch": "x", "cursor": "4"}'])
def test_a_damaged_cursor_is_told_and_nothing_is_taken_away(tmp_path: Path, text: str) -> None:
    shelf = Shelf.open(tmp_path, "entries")
    shelf.keep({"entries": [entry(1)]}, "1")
    shelf.close()
    (tmp_path / "entries.cursor.json").write_text(text, "utf-8")
    with pytest.raises(LakeDamaged, match=r"entries\.cursor\.json"):
        Shelf.open(tmp_path, "entries")
    assert sequences(tmp_path) == [1]


def test_files_of_others_stay(tmp_path: Path) -> None:
    Shelf.open(tmp_path, "entries").close()
    day = tmp_path / "entries/day=2026-04-01"
    day.mkdir(parents=True)
    for name in ("notes.txt", "compacted.parquet"):
        (day / name).write_bytes(b"theirs")
    Shelf.open(tmp_path, "entries").close()
    assert {file.name for file in day.iterdir()} == {"notes.txt", "compacted.parquet"}
