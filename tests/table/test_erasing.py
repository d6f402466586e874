"""Personal data at tables: exported whole, and erased so that hands, records and cursors stay."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng_kit.privacy import Erasure
from fangcheng_table import convert, postgres
from fangcheng_table.archive import archive
from fangcheng_table.erasing import Personal
from fangcheng_table.erasures import Erasures
from fangcheng_table.errors import PlayerAtTable, RequestIdReused
from fangcheng_table.events import OperatorActed, PlayerSeated, SeatPlan
from fangcheng_table.migrations import JOURNAL
from fangcheng_table.records import Records
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.store import Filter, HandFilter, Journal, NewTable, OperatorAction, Record
from tests.postgres import database_of

from .journals import KEYS, finish, hand, new, some
from .tables import created

LABELS = {"club": "17", "nickname": "Ann Lee"}
PROFILE = "安的头像".encode()
ERASURE = Erasure(
    request_id="erase-1",
    player_id="ann",
    labels=frozenset({("nickname", "")}),
    reason="case 81",
)
SECRETS = ("安的头像", PROFILE.hex(), "Ann Lee", "insulted Bob", repr(PROFILE)[2:-1])


def first() -> Record:
    """A table at which ann sits, known by her profile."""
    plain = created()
    seats = (replace(plain.seats[0], player_id="ann", profile=PROFILE), *plain.seats[1:])
    return Record(1, 1_000, replace(plain, seats=seats, labels=LABELS))


def asked() -> NewTable:
    """What is kept of the request that made it."""
    request = table_pb2.CreateTableRequest(
        request_id="r1",
        seats=[table_pb2.SeatAssignment(player_id="ann", profile=PROFILE)]
        + [
            table_pb2.SeatAssignment(player_id=one, profile=b"of bob")
            for one in ("bob", "cat", "dan")
        ],
        labels=LABELS,
    )
    return new(labels=LABELS, request=convert.canonical(request))


async def over(journal: Journal) -> None:
    """The table has closed; an operator has removed ann, and seated eve."""
    table = asked()
    await journal.create(table, [first()], "me")
    await finish(journal, hand(table, 1), 2)
    eve = SeatPlan("eve", b"of eve")
    said = "insulted Bob"
    summary = state_pb2.Table(
        table_id="t1",
        labels=LABELS,
        seats=[state_pb2.Seat(player_id="ann", profile=PROFILE)],
    )
    records = [
        Record(4, 3_000, OperatorActed("t1/a", "remove", "operator", said, "case-1", 0)),
        Record(5, 3_000, PlayerSeated(0, eve)),
        Record(6, 3_000, PlayerSeated(0, SeatPlan("ann", PROFILE))),
    ]
    details = {
        "a": ("remove", "ann"),
        "b": ("seat_player", repr((0, "eve", b"of eve", (), False))),
        "c": ("seat_player", repr((0, "ann", PROFILE, (), False))),
    }
    actions = [
        OperatorAction(f"t1/{name}", "t1", 3_000, "operator", verb, said, "case-1", detail)
        for name, (verb, detail) in details.items()
    ]
    await journal.append(
        "t1",
        some(3),
        epoch=1,
    )
    await journal.append(
        "t1",
        records,
        epoch=1,
        closed=summary.SerializeToString(),
        done=True,
        actions=actions,
        seated=["eve"],
    )


async def everything(journal: Journal) -> str:
    """All that a journal tells."""
    found = await journal.find(Filter(include_closed=True), None, 9)
    return repr(
        [
            await journal.read("t1"),
            await journal.by_request("r1"),
            [state_pb2.Table.FromString(one.summary or b"") for one in found],
            await journal.hands(HandFilter(), None, 9),
            await journal.operator_actions("t1", None, 9),
        ]
    ) + "".join(
        str(seat.profile, "utf-8")
        for one in found
        for seat in state_pb2.Table.FromString(one.summary or b"").seats
    )


async def test_what_is_personal_goes_and_the_rest_stays(journal: Journal) -> None:
    await over(journal)
    before = await journal.read("t1")
    hands = await journal.hands(HandFilter(), None, 9)
    personal = Personal(journal, Records(journal))
    kept = await journal.erasures()
    done = await personal.erase(ERASURE)
    assert (done.tables, done.archived, done.replayed) == (1, 0, False)
    assert await journal.erasures() != kept
    text = await everything(journal)
    assert [secret for secret in SECRETS if secret in text] == []
    assert "of eve" in text
    assert "of bob" in text or b"of bob".hex() in text
    after = await journal.read("t1")
    assert [(one.sequence, one.time_ms) for one in after] == [
        (one.sequence, one.time_ms) for one in before
    ]
    assert [one for one in after if one not in before] == [after[0], after[3], after[5]]
    assert [one.entry.last_sequence for one in await journal.hands(HandFilter(), None, 9)] == [
        one.entry.last_sequence for one in hands
    ]
    assert [one.action.case_id for one in await journal.operator_actions("t1", None, 9)] == [
        "case-1"
    ] * 3
    again = await personal.erase(ERASURE)
    assert (again.tables, again.replayed) == (0, True)
    with pytest.raises(RequestIdReused):
        await personal.erase(replace(ERASURE, player_id="bob"))


async def test_reasons_stay_where_texts_are_kept(journal: Journal) -> None:
    await over(journal)
    await Personal(journal, Records(journal)).erase(replace(ERASURE, keep_texts=True))
    text = await everything(journal)
    assert [secret for secret in SECRETS if secret in text] == ["insulted Bob"]


async def test_who_sits_or_sat_at_a_table_that_goes_on_is_not_erased(journal: Journal) -> None:
    table = asked()
    await journal.create(table, [first()], "me")
    personal = Personal(journal, Records(journal))
    with pytest.raises(PlayerAtTable) as refused:
        await personal.erase(ERASURE)
    assert refused.value.metadata["table_id"] == "t1"
    await journal.append("t1", some(2), epoch=1, closed=b"")
    with pytest.raises(PlayerAtTable):
        await personal.erase(ERASURE)
    assert await journal.read("t1") == [first(), *some(2)]
    assert await journal.erasures_of("ann") == []  # what was refused was not done
    await journal.append("t1", some(3), epoch=1, done=True)
    assert not (await personal.erase(ERASURE)).replayed
    assert [one[0] for one in await journal.erasures_of("ann")] == ["erase-1"]


async def test_what_was_done_to_its_end_is_not_done_again(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is written anew meanwhile, and all who play wait for it."""
    await over(journal)
    personal, wiped = Personal(journal, Records(journal)), []
    assert isinstance(journal, Erasures)
    wipe = journal._wipe

    async def counted() -> None:
        wiped.append(1)
        await wipe()

    monkeypatch.setattr(journal, "_wipe", counted)
    for replayed in (False, True, True):
        assert (await personal.erase(ERASURE)).replayed == replayed
    assert len(wiped) == 1


async def test_the_same_again_finishes_what_a_crash_left(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await over(journal)

    async def fails(request_id: str) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(journal, "end_erasure", fails)
        with pytest.raises(ZeroDivisionError):
            await Personal(journal, Records(journal)).erase(ERASURE)
    again = await Personal(journal, Records(journal)).erase(ERASURE)
    assert (again.tables, again.replayed) == (1, False)


async def test_what_is_kept_beside_an_archive_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await database_of(tmp_path, JOURNAL)
    journal = await postgres.open_postgres(address, keys=KEYS)
    try:
        monkeypatch.setattr(postgres, "month_now", lambda: 202601)
        await over(journal)
        monkeypatch.setattr(postgres, "month_now", lambda: 202602)
        await archive(address, "2026-01", tmp_path / "january.json.gz", keys=KEYS)
        personal = Personal(journal, Records(journal))
        told = [json.loads(one) async for one in personal.lines("ann")]
        assert told[0] == {"kind": "table", "table_id": "t1", "archived": True}
        done = await personal.erase(ERASURE)
        assert (done.tables, done.archived) == (1, 1)
        found = await journal.find(Filter(include_closed=True), None, 9)
        kept = (
            await journal.by_request("r1"),
            state_pb2.Table.FromString(found[0].summary or b""),
            await journal.hands(HandFilter(), None, 9),
            await journal.operator_actions("t1", None, 9),
        )
        assert [secret for secret in SECRETS if secret in repr(kept)] == []
        assert await journal.find(Filter(True, labels={"nickname": "Ann Lee"}), None, 9) == []
    finally:
        await journal.close()


async def test_an_export_has_everything_about_a_player(journal: Journal) -> None:
    await over(journal)
    personal = Personal(journal, Records(journal))
    told = [json.loads(one) async for one in personal.lines("eve")]
    assert [one["kind"] for one in told] == ["table", *["operator_action"] * 3]
    assert (told[0]["profile"], told[0]["labels"]) == ("of eve", LABELS)
    assert PROFILE.decode() not in json.dumps(told, ensure_ascii=False)
    assert [one async for one in personal.lines("nobody")] == []
    await personal.erase(ERASURE)
    told = [json.loads(one) async for one in personal.lines("eve")]
    assert "nickname" not in json.dumps(told)


async def test_no_byte_of_it_is_left_in_the_file(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "folder" / "table.db")  # without keys, so that it shows
    try:
        await over(journal)
        assert left_in(tmp_path / "folder") != []
        await Personal(journal, Records(journal)).erase(ERASURE)
        assert left_in(tmp_path / "folder") == []
    finally:
        await journal.close()
    assert left_in(tmp_path / "folder") == []


def left_in(folder: Path) -> list[str]:
    """What is personal of ann and in a file of a folder."""
    files = b"".join(file.read_bytes() for file in folder.iterdir())
    return [secret for secret in SECRETS if secret.encode() in files]
