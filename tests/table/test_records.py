"""Hands that have ended: their records, lists of them, and the stream that tells each one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.table.v1 import records_pb2, state_pb2
from fangcheng_table import operating
from fangcheng_table.errors import HandNotFinished, NotSeated, UnknownHand, UnknownTable
from fangcheng_table.events import Timing
from fangcheng_table.finished import FinishedHands
from fangcheng_table.operating import Order
from fangcheng_table.records import News, Records
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.store import NewTable, Record

from .tables import SILVER, Drive, at_random, created
from .world import PLAYERS, play_all, refused, request, until, world

HANDS = 3


class Watched(SqliteJournal):
    """A journal that tells how much of it was read."""

    read_records = 0

    async def read(self, table_id: str, after: int = 0, upto: int | None = None) -> list[Record]:
        records = await super().read(table_id, after, upto)
        self.read_records += len(records)
        return records


@pytest.fixture
async def kept(tmp_path):
    """A journal with a table of some hands that was played to its end, and the table."""
    drive = Drive.of(created(hands=HANDS, stakes=[SILVER], root=b"k" * 32))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(8))
    journal = Watched(tmp_path / "table.db")
    await fill(journal, drive)
    yield journal, drive
    await journal.close()


async def fill(journal: SqliteJournal, drive: Drive) -> None:
    opened = drive.table.state.created
    table = NewTable("t1", "r1", "", opened.rule_set, opened.revision, PLAYERS, dict(opened.labels))
    await journal.create(table, drive.records[:1], "owner")
    following = FinishedHands()
    following.see(drive.records[0])
    for record in drive.records[1:]:
        hand = following.see(record)
        await journal.append("t1", [record], epoch=1, hands=[hand] if hand else [])


async def test_a_record_has_the_whole_hand_and_nothing_else(kept):
    journal, drive = kept
    records = Records(journal)
    told = [await records.record("t1", number) for number in range(1, HANDS + 1)]
    for number, record in enumerate(told, 1):
        assert record.hand_number == number
        kinds = [event.WhichOneof("kind") for event in record.events]
        assert kinds[0] == "hand_started"
        assert kinds[-1] == "hand_settled"
        assert kinds.count("hand_started") == kinds.count("hand_ended") == 1
        assert not {"prompt", "prompt_closed", "table_opened", "table_closed"} & set(kinds)
        assert [event.number for event in record.events] == list(range(1, len(kinds) + 1))
        assert record.stakes[0] == state_pb2.Stake(currency="silver", per_unit=10)
        assert list(record.player_ids) == list(PLAYERS)
        assert dict(record.labels) == {"club": "17"}
    assert sum(len(record.events) for record in told) < len(drive.records)


async def test_only_the_events_of_its_hand_are_read_for_a_record(kept):
    journal, drive = kept
    records = Records(journal)
    for number in range(1, HANDS + 1):
        journal.read_records = 0
        record = await records.record("t1", number)
        assert len(record.events) < journal.read_records < len(drive.records) * 2 // HANDS


ORDER = Order("o-1", "operator", "do two of them play together?", "case-7")


@pytest.mark.parametrize(
    ("when", "recorded"),
    [
        ("before the first hand", 1),
        ("in a hand", 1),
        ("before it is paid", 1),
        ("between two hands", 2),
    ],
)
async def test_what_operators_do_stands_in_the_hand_s_record_or_in_the_next_one_s(
    tmp_path, when, recorded
):
    timing = Timing(claim_window_ms=0, between_hands_ms=5_000)
    drive = Drive.of(created(hands=2, stakes=[SILVER], root=b"k" * 32, timing=timing))
    if when != "before the first hand":
        drive.pays = when != "before it is paid"
        drive.attend(0, 1, 2, 3)
        drive.play(
            at_random(8),
            until={
                "in a hand": lambda it: len(it.records) > 60,
                "before it is paid": lambda it: bool(it.table.settlement()),
                "between two hands": lambda it: it.table.state.settled and it.table.state.hand,
            }[when],
        )
    operating.reveal(drive.table, ORDER)
    drive.pays = True
    drive.settle()
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(9))
    journal = SqliteJournal(tmp_path / "table.db")
    await fill(journal, drive)
    for number in (1, 2):
        record = await Records(journal).record("t1", number)
        acted = [e.operator_acted for e in record.events if e.HasField("operator_acted")]
        assert [one.verb for one in acted] == ["reveal"] * (number == recorded)
        assert [event.number for event in record.events] == list(range(1, len(record.events) + 1))
    await journal.close()


async def test_a_record_is_for_those_who_played_the_hand(kept):
    journal, _ = kept
    records = Records(journal)
    assert await records.record("t1", 1, "cat")
    with pytest.raises(NotSeated):
        await records.record("t1", 1, "eve")


@pytest.mark.parametrize(
    ("cut", "hand", "error"),
    [
        ("hand_settled", 1, None),  # ended, and not paid yet
        ("hand_ended", 1, HandNotFinished),
        ("hand_ended", 2, UnknownHand),
    ],
)
async def test_a_hand_that_is_not_paid_has_a_record_once_it_has_ended(tmp_path, cut, hand, error):
    drive = Drive.of(created(stakes=[SILVER], root=b"k" * 32))
    drive.pays = cut != "hand_settled"
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(8), until=lambda it: cut == "hand_ended" and len(it.records) > 40)
    journal = SqliteJournal(tmp_path / "table.db")
    await fill(journal, drive)
    records = Records(journal)
    if error is None:
        record = await records.record("t1", hand)
        assert record.events[-1].HasField("hand_ended")
        assert record.secret
    else:
        with pytest.raises(error):
            await records.record("t1", hand)
    with pytest.raises(NotSeated):
        await records.record("t1", hand, "eve")
    with pytest.raises(UnknownTable):
        await records.record("t2", hand)
    await journal.close()


# Lists.


async def played(service: Any, count: int = 3, hands: int = 2) -> list[str]:
    """Ids of tables that were played to their end, one after the other."""
    ids = []
    for number in range(count):
        labels = {"club": str(number % 2)}
        made = await service.stub("operator").CreateTable(
            request(f"r{number}", hands=hands, labels=labels)
        )
        await play_all(service, made.table.table_id)
        ids.append(made.table.table_id)
    return ids


async def listed(keeper: Any, page_size: int = 0, **wanted: Any) -> list[tuple[str, int]]:
    found, token = [], ""
    while True:
        page = await keeper.ListHandRecords(
            records_pb2.ListHandRecordsRequest(page_size=page_size, page_token=token, **wanted)
        )
        assert len(page.hands) <= (page_size or 50)
        found += [(entry.table_id, entry.hand_number) for entry in page.hands]
        token = page.next_page_token
        if not token:
            return found


async def test_finished_hands_are_listed_newest_first_by_what_is_asked(service):
    ids = await played(service)
    keeper = service.records("operator")
    all_hands = [(table_id, number) for table_id in reversed(ids) for number in (2, 1)]
    for page_size in (0, 1, 4):
        assert await listed(keeper, page_size) == all_hands
    assert await listed(keeper, table_id=ids[1]) == [(ids[1], 2), (ids[1], 1)]
    assert await listed(keeper, 1, labels={"club": "0"}) == [*all_hands[:2], *all_hands[4:]]
    assert await listed(keeper, rule_set="jintan") == []
    assert await listed(keeper, player_id="bob") == all_hands
    assert await listed(keeper, player_id="eve") == []
    entries = (await keeper.ListHandRecords(records_pb2.ListHandRecordsRequest())).hands
    assert list(entries[0].player_ids) == list(PLAYERS)
    assert entries[0].ending in ("win", "draw")
    third = entries[3].ended
    assert await listed(keeper, since=third) == all_hands[:4]
    assert await listed(keeper, until=third) == all_hands[4:]
    for bound in ("since", "until"):
        for time in (Timestamp(seconds=2**40), Timestamp(nanos=-1), Timestamp(nanos=10**9)):
            never = records_pb2.ListHandRecordsRequest(**{bound: time})
            assert await refused(keeper.ListHandRecords(never)) == (
                "INVALID_ARGUMENT", "INVALID_TIME", bound,
            )  # fmt: skip


async def test_a_player_lists_its_own_hands(service):
    ids = await played(service, 1)
    assert await listed(service.records("player:ann")) == [(ids[0], 2), (ids[0], 1)]
    assert await listed(service.records("player:ann"), player_id="ann") == await listed(
        service.records("operator")
    )
    assert await listed(service.records("player:eve")) == []
    others = service.records("player:eve").ListHandRecords(
        records_pb2.ListHandRecordsRequest(player_id="ann")
    )
    assert await refused(others) == ("PERMISSION_DENIED", "OTHER_PLAYER", "player_id")


async def test_a_page_token_is_good_for_its_list_only(service):
    await played(service, 1)
    keeper = service.records("operator")
    page = await keeper.ListHandRecords(records_pb2.ListHandRecordsRequest(page_size=1))
    other = records_pb2.ListHandRecordsRequest(page_token=page.next_page_token, rule_set="jintan")
    assert (await refused(keeper.ListHandRecords(other)))[:2] == (
        "INVALID_ARGUMENT",
        "INVALID_PAGE_TOKEN",
    )


# The stream of finished hands.


async def read(call: Any, count: int) -> list[records_pb2.FinishedHand]:
    hands: list[records_pb2.FinishedHand] = []
    while len(hands) < count:
        message = await call.read()
        assert message is not grpc.aio.EOF
        if message.HasField("hand"):
            hands.append(message.hand)
    return hands


def stream(service: Any, cursor: str = "", **more: Any) -> Any:
    wanted = records_pb2.StreamFinishedHandsRequest(cursor=cursor, **more)
    return service.records("service:ratings").StreamFinishedHands(wanted)


def keys(hands: list[records_pb2.FinishedHand]) -> list[tuple[str, int]]:
    return [(hand.entry.table_id, hand.entry.hand_number) for hand in hands]


async def test_every_finished_hand_is_streamed_in_order_from_any_cursor(service):
    live = stream(service)
    reading = asyncio.create_task(read(live, 6))
    ids = await played(service)
    hands = await reading
    assert keys(hands) == [(table_id, number) for table_id in ids for number in (1, 2)]
    for place, hand in enumerate(hands):
        rest = stream(service, hand.cursor)
        assert keys(await read(rest, 5 - place)) == keys(hands[place + 1 :])
        rest.cancel()
    live.cancel()


async def test_a_hand_comes_with_its_record_where_that_is_asked_for(service):
    (table_id,) = await played(service, 1)
    call = stream(service, with_records=True)
    for hand in await read(call, 2):
        got = await service.records("operator").GetHandRecord(
            records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=hand.entry.hand_number)
        )
        assert hand.record == got.record
    call.cancel()
    call = stream(service)
    assert not any(hand.HasField("record") for hand in await read(call, 2))
    call.cancel()


async def test_a_hand_is_told_when_it_is_paid_and_after_a_restart_again(service):
    """At least once: whoever has not kept the cursor hears it again."""
    service.wallet.settling.code = grpc.StatusCode.UNAVAILABLE
    stakes = [state_pb2.Stake(currency="silver", per_unit=10)]
    made = await service.stub("operator").CreateTable(request(stakes=stakes))
    table_id = made.table.table_id
    playing = asyncio.create_task(play_all(service, table_id))
    await until(lambda: bool(service.wallet.settling.calls))
    ended = records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=1)
    got = await service.records("operator").GetHandRecord(ended)
    assert got.record.events[-1].HasField("hand_ended")
    assert await listed(service.records("operator")) == []
    call = stream(service)
    service.wallet.settling.code = None
    assert keys(await read(call, 1)) == [(table_id, 1)]
    await playing
    await service.restart()
    call = stream(service)
    assert keys(await read(call, 1)) == [(table_id, 1)]
    call.cancel()


async def test_a_stream_of_finished_hands_has_heartbeats(tmp_path):
    async with world(tmp_path, heartbeat_seconds=0.05) as service:
        call = stream(service)
        for _ in range(3):
            assert (await call.read()).HasField("heartbeat")
        call.cancel()


@pytest.mark.parametrize("cursor", ["x", "-1", "1" * 40, "½"])
async def test_a_cursor_that_was_never_told_is_refused(service, cursor):
    call = stream(service, cursor)
    assert await refused(call.read()) == ("INVALID_ARGUMENT", "INVALID_CURSOR", "cursor")


async def test_no_player_streams_the_hands_of_all(service):
    call = service.records("player:ann").StreamFinishedHands(
        records_pb2.StreamFinishedHandsRequest()
    )
    assert (await refused(call.read()))[0] == "PERMISSION_DENIED"


async def test_a_hand_that_another_process_has_finished_is_found_by_looking(kept):
    """No news comes of it: the index is looked at again."""
    journal, _ = kept
    hands = Records(journal).finished("", News(), 0.01, with_records=False)
    seen = [hand async for hand in _some(hands, HANDS)]
    assert [hand.entry.hand_number for hand in seen] == [1, 2, 3]
    assert await anext(hands) is None
    drive = Drive.of(created(hands=1, root=b"m" * 32))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(2))
    other = NewTable("t2", "r2", "", "baishan_kele", 1, PLAYERS, {})
    await journal.create(other, drive.records[:1], "another")
    following = FinishedHands()
    entries = [hand for record in drive.records if (hand := following.see(record))]
    for entry in entries:
        moved = replace(entry, table_id="t2")
        await journal.append("t2", drive.records[1:], epoch=1, hands=[moved])
    while (hand := await anext(hands)) is None:
        pass
    assert hand.entry.table_id == "t2"
    await hands.aclose()


async def _some(hands: Any, count: int) -> Any:
    for _ in range(count):
        yield await anext(hands)
