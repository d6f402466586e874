"""What lies in the journal tells nobody a tile, and keys come and go without losing an event."""

from __future__ import annotations

import base64
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest
from pydantic import ValidationError

from fangcheng_rules import events as play
from fangcheng_table.codec import decode, encode
from fangcheng_table.events import HandOpened, TableCreated
from fangcheng_table.journals import open_journal
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.sealing import (
    NO_KEYS,
    BadJournalKeys,
    JournalKeys,
    Unsealable,
    event_place,
    key_id_of,
)
from fangcheng_table.settings import TableSettings
from fangcheng_table.store import Journal, JournalError, Opening, Record, Resealed
from tests.postgres import database_of

from .journals import new, some
from .tables import Drive, at_random, created

A, B = b"a" * 32, b"b" * 32
ONE, BOTH = JournalKeys({"a": A}), JournalKeys({"b": B, "a": A})

Opened = Callable[[JournalKeys], Awaitable[Journal]]


class Place:
    """Where a journal lies."""

    def __init__(self, database: str) -> None:
        self.database = database
        self._open: list[Journal] = []

    async def open(self, keys: JournalKeys) -> Journal:
        await self.close()
        self._open.append(await open_journal(self.database, keys=keys))
        return self._open[-1]

    async def close(self) -> None:
        while self._open:
            await self._open.pop().close()

    async def execute(self, statement: str) -> list[tuple[object, ...]]:
        """A statement of the test's own, beside the journal."""
        if not self.database.startswith("postgresql"):
            with closing(sqlite3.connect(self.database, isolation_level=None)) as db:
                return db.execute(statement).fetchall()
        db = await asyncpg.connect(self.database)
        try:
            return [tuple(row) for row in await db.fetch(statement)]
        finally:
            await db.close()


@pytest.fixture(params=["postgres", "sqlite"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    sqlite = request.param == "sqlite"
    it = Place(str(tmp_path / "table.db") if sqlite else await database_of(tmp_path, JOURNAL))
    yield it
    await it.close()


def played() -> list[Record]:
    """The journal of a table of two hands, up to the middle of the second."""
    drive = Drive.of(created(root=bytes(range(32)), hands=2))
    drive.table.give_entropy(1, b"a share of my own")
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(7))
    opened = [n for n, one in enumerate(drive.records) if isinstance(one.event, HandOpened)]
    return drive.records[: opened[1] + 60]


PLAYED = played()


async def stored(journal: Journal, records: list[Record] = PLAYED) -> None:
    await journal.create(new(), records[:1], "me")
    await journal.append("t1", records[1:], epoch=1)


def secrets(records: list[Record]) -> Iterator[bytes]:
    """What nobody may find: roots and secrets of hands, walls, and every tile that was dealt."""
    for record in records:
        match record.event:
            case TableCreated() as table:
                yield table.root
            case HandOpened(secret=secret):
                yield secret
            case play.HandStarted(wall=wall):
                yield bytes(wall)
                yield bytes(wall[:13])
            case play.Dealt() as dealt:
                yield encode(dealt)[-20:]
            case _:
                pass


async def test_nobody_learns_a_hand_from_the_database(place):
    journal = await place.open(ONE)
    await stored(journal)
    opening = Opening(5, b"state with " + A)
    await journal.save_opening("t1", opening)
    assert await journal.read("t1") == PLAYED
    assert await journal.opening("t1") == opening
    rows = await place.execute("SELECT body FROM events UNION ALL SELECT state FROM openings")
    lying = b"".join(bytes(row[0]) for row in rows)
    if not place.database.startswith("postgresql"):
        # All that is on the disk: pages that were let go of, and the log of what is being written.
        folder = Path(place.database).parent
        lying += b"".join(file.read_bytes() for file in folder.glob("table.db*"))
    wanted = [*secrets(PLAYED), A]
    assert len(wanted) > 8
    assert not [one for one in wanted if one in lying]


async def test_the_same_search_finds_all_of_it_where_there_is_no_key(place):
    journal = await place.open(NO_KEYS)
    await stored(journal)
    lying = b"".join(bytes(row[0]) for row in await place.execute("SELECT body FROM events"))
    assert all(one in lying for one in secrets(PLAYED))


async def test_what_was_written_without_a_key_stays_readable_with_one(place):
    journal = await place.open(NO_KEYS)
    await stored(journal, PLAYED[:50])
    await journal.save_opening("t1", Opening(5, b"plain"))
    journal = await place.open(ONE)
    await journal.append("t1", PLAYED[50:], epoch=1)
    assert await journal.read("t1") == PLAYED
    assert await journal.opening("t1") == Opening(5, b"plain")
    ids = [key_id_of(bytes(row[0])) for row in await place.execute("SELECT body FROM events")]
    assert sorted(ids) == [""] * 50 + ["a"] * (len(PLAYED) - 50)


async def test_a_new_key_seals_and_the_older_one_still_opens(place):
    journal = await place.open(ONE)
    await stored(journal, PLAYED[:50])
    # First every replica gets to know the new key, then one after the other seals with it.
    journal = await place.open(JournalKeys({"a": A, "b": B}))
    await journal.append("t1", PLAYED[50:60], epoch=1)
    journal = await place.open(BOTH)
    await journal.append("t1", PLAYED[60:], epoch=1)
    assert await journal.read("t1") == PLAYED
    ids = [key_id_of(bytes(row[0])) for row in await place.execute("SELECT body FROM events")]
    assert sorted(ids) == ["a"] * 60 + ["b"] * (len(PLAYED) - 60)


async def test_what_is_sealed_anew_needs_no_older_key(place):
    """Beside a journal that goes on."""
    journal = await place.open(NO_KEYS)
    await stored(journal, PLAYED[:50])
    await journal.save_opening("t1", Opening(5, b"plain"))
    await journal.create(new(2), PLAYED[:1], "me")
    journal = await place.open(ONE)
    await journal.append("t1", PLAYED[50:60], epoch=1)
    journal = await place.open(BOTH)
    await journal.append("t1", PLAYED[60:], epoch=1)
    other = await open_journal(place.database, keys=BOTH)
    assert await other.reseal() == Resealed(62, ("a",), in_use=False)
    assert await other.reseal() == Resealed(0, (), in_use=False)
    await other.close()
    assert await journal.read("t1") == PLAYED
    journal = await place.open(JournalKeys({"b": B}))
    assert await journal.read("t1") == PLAYED
    assert await journal.read("t2") == PLAYED[:1]
    assert await journal.opening("t1") == Opening(5, b"plain")
    if not place.database.startswith("postgresql"):
        folder = Path(place.database).parent
        lying = b"".join(file.read_bytes() for file in folder.glob("table.db*"))
        assert not [one for one in [*secrets(PLAYED), b"plain"] if one in lying]


async def test_no_key_is_struck_off_while_a_service_writes_with_it(place):
    """One that was not told of the new key yet, and stores an event at each of its steps."""
    journal = await place.open(ONE)
    await stored(journal, PLAYED[:50])
    other = await open_journal(place.database, keys=BOTH)
    do, rest = other._execute, iter(PLAYED[50:])

    async def meanwhile(queries):
        await do(queries)
        if queries:
            await journal.append("t1", [next(rest)], epoch=1)

    other._execute = meanwhile
    done = await other.reseal()
    await other.close()
    assert done == Resealed(51, (), in_use=True)
    assert await (await place.open(BOTH)).read("t1") == PLAYED[:52]
    with pytest.raises(JournalError, match="written with the key a"):
        await place.open(JournalKeys({"b": B}))


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (NO_KEYS, "written with the key a, which FANGCHENG_TABLE_JOURNAL_KEYS does not have"),
        (JournalKeys({"b": B}), "written with the key a, which"),
        (JournalKeys({"a": B}), "written with another key a than"),
    ],
)
async def test_a_journal_opens_with_its_own_keys_only(place, keys, why):
    journal = await place.open(ONE)
    await stored(journal, PLAYED[:3])
    with pytest.raises(JournalError, match=why):
        await place.open(keys)
    assert await (await place.open(ONE)).read("t1") == PLAYED[:3]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        # The 3rd event in the place of the 2nd; all of another table.
        ("UPDATE events SET body = (SELECT body FROM events WHERE sequence = 3) WHERE sequence = 2",
         "event 2 of table t1 does not open with the key a"),
        ("UPDATE tables SET table_id = 'other' WHERE table_id = 't1'",
         "event 1 of table other does not open with the key a"),
    ],
)  # fmt: skip
async def test_a_body_opens_in_its_own_place_only(place, change, what):
    journal = await place.open(ONE)
    await stored(journal, PLAYED[:5])
    await place.execute(change)
    with pytest.raises(Unsealable, match=re.escape(what)):
        await journal.read("other" if "other" in change else "t1")


async def test_two_owners_that_race_for_a_place_never_seal_under_the_same_nonce(place):
    """Nor does one that tries the same place again with something else."""
    await place.open(ONE)
    event = encode(some(2)[0].event)
    bodies = {ONE.seal("t1", event_place(2), event) for _ in range(1_000)}
    start = len(b"\x07\x01a")
    assert len({body[start : start + 12] for body in bodies}) == 1_000
    assert all(decode(ONE.open("t1", event_place(2), body)) == some(2)[0].event for body in bodies)


@pytest.mark.parametrize("length", [1, 2, 3, 10, 15, 30])
def test_a_body_that_was_cut_is_refused(length):
    sealed = ONE.seal("t1", event_place(2), encode(some(2)[0].event))
    with pytest.raises(Unsealable):
        ONE.open("t1", event_place(2), sealed[:length])


@pytest.mark.parametrize("at", [4, 20, -1], ids=["nonce", "text", "tag"])
def test_a_body_of_which_a_bit_was_changed_is_refused(at):
    body = encode(some(2)[0].event)
    sealed = bytearray(ONE.seal("t1", event_place(2), body))
    assert ONE.open("t1", event_place(2), bytes(sealed)) == body
    sealed[at] ^= 1
    with pytest.raises(Unsealable, match="what is stored has been changed"):
        ONE.open("t1", event_place(2), bytes(sealed))


def text(**keys: bytes) -> str:
    return ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in keys.items())


def test_keys_are_read_in_their_order():
    keys = JournalKeys.parse(text(b=B, a=A))
    assert keys.first == "b"
    assert keys.proof() == BOTH.proof() != ONE.proof()
    assert not JournalKeys.parse("")
    assert not JournalKeys.parse("  ")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("no-colon", "key 1 is no ID:BASE64"),
        (text(a=A) + ",", "key 2 is no ID:BASE64"),
        (":" + base64.b64encode(A).decode(), "key 1 is no ID:BASE64"),
        (text(**{"x" * 33: A}), "key 1 is no ID:BASE64"),
        (text(a=A) + "," + text(a=B), "key a is named twice"),
        (text(a=A[:-1]), "key a has 31 bytes"),
        ("a:" + base64.b64encode(A).decode()[:-2] + "!!", "key a is not in base64"),
        ("a:schlüssel", "key a is not in base64"),
    ],
)
def test_keys_that_are_none_are_refused_and_never_told(given, why):
    with pytest.raises(BadJournalKeys, match=why) as refused:
        JournalKeys.parse(given)
    assert not re.search("YWFh|YmJi", str(refused.value))  # the beginnings of both keys


def test_keys_do_not_show_themselves():
    assert repr(BOTH) == "JournalKeys(b, a)"
    assert "YWFh" not in repr(TableSettings(dev_key="d" * 32, journal_keys=text(a=A)))
    with pytest.raises(ValidationError, match="key a has 31 bytes"):
        TableSettings(dev_key="d" * 32, journal_keys=text(a=A[:-1]))


def test_beyond_this_host_a_journal_has_a_key():
    beyond = {
        "listen": "10.0.0.1:7101",
        "dangerously_without_tls": True,
        "dangerously_with_dev_key": True,
        "dev_key": "d" * 32,
    }
    with pytest.raises(ValidationError, match="beyond this host the journal is sealed: set a key"):
        TableSettings(**beyond)
    assert TableSettings(**beyond, journal_keys=text(a=A)).sealing.first == "a"
    plain = TableSettings(**beyond, dangerously_with_plain_journal=True)
    assert "DANGEROUSLY_WITH_PLAIN_JOURNAL" in plain.dangers()
    assert not TableSettings(dev_key="d" * 32).sealing
