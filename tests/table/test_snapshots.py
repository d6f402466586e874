"""A snapshot is what its viewer's events add up to, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_client import TableView, attend, watch
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_table import votes
from fangcheng_table.convert import table_to_wire
from fangcheng_table.errors import ReaderTooSlow
from fangcheng_table.events import HandOpened
from fangcheng_table.feed import Feed
from fangcheng_table.state import TableState
from fangcheng_table.views import RECORD, SPECTATORS, VIEWERS

from .tables import Drive, at_random, away, created
from .world import PLAYERS, play_all, request, until, world

EVERYTHING = 100_000
"""More events than any of these tables has."""


def driven(seed: int, rules_id: str, hands: int = 3) -> Drive:
    """A table of some hands, at which a seat is away for a while."""
    drive = Drive.of(created(root=bytes([seed + 1]) * 32, hands=hands, rules_id=rules_id))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(seed), until=lambda it: len(it.records) > 60 + 20 * seed)
    away(drive, seed % 4)
    drive.play(at_random(seed), until=lambda it: len(it.records) > 200 + 20 * seed)
    drive.attend(seed % 4)
    drive.play(at_random(seed))
    return drive


def from_snapshot(event: events_pb2.TableEvent) -> TableView:
    view = TableView(last_number=1)  # whatever a client knew before is forgotten
    view.apply(event)
    return view


def same(view: TableView) -> TableView:
    """A picture without the table as it was opened, in which a snapshot has changes filled in."""
    view.table = view.standing_table()
    return view


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_a_snapshot_and_every_event_add_up_to_the_same(rules):
    """At every place of a journal, for every viewer, with and without what was forgotten."""
    drive = driven(3, rules.id)
    whole, short = Feed(EVERYTHING), Feed(60)
    views = {viewer: TableView() for viewer in VIEWERS}
    for record in drive.records:
        for feed in (whole, short):
            feed.publish([record])
        for viewer, view in views.items():
            while view.last_number < whole.last(viewer):
                view.apply(whole.event(viewer, view.last_number + 1))
            if record.sequence % 7 == viewer:
                for feed in (whole, short):
                    event = feed.snapshot(viewer)
                    assert event.number == view.last_number
                    assert same(from_snapshot(event)) == same(view.copy())
        assert same(whole.open_view.copy()) == same(timeless(views[SPECTATORS]))
    assert short.oldest(0) > whole.oldest(0)


def timeless(view: TableView) -> TableView:
    """A picture that counts no events."""
    copy = view.copy()
    copy.last_number = 0
    return copy


def test_a_reader_of_what_is_kept_no_longer_begins_with_a_snapshot():
    drive = driven(1, "baishan_kele")
    feed = Feed()
    feed.publish(drive.records)
    for viewer in VIEWERS:
        oldest = feed.oldest(viewer)
        assert oldest > 0
        for number in (0, oldest - 1):
            reader = feed.open(viewer, number, lambda: None)
            event = reader.next(1)
            assert event is not None
            assert event.HasField("snapshot")
            assert event.number == feed.last(viewer)
            assert reader.next(1) is None
            assert reader.at_end
        reader = feed.open(viewer, oldest, lambda: None)
        event = reader.next(1)
        assert event is not None
        assert event.number == oldest + 1
        assert not event.HasField("snapshot")


def test_the_hand_in_play_and_the_one_before_are_kept():
    drive = driven(2, "baishan_kele", hands=4)
    feed = Feed()
    starts: list[int] = []
    for record in drive.records:
        if isinstance(record.event, HandOpened):
            starts.append(feed.last(1))
            assert feed.oldest(1) == (starts[-3] if len(starts) > 2 else 0)
        feed.publish([record])


def test_no_more_events_than_were_agreed_on_are_kept():
    """However long a hand takes, a table's memory has an end."""
    drive = driven(4, "baishan_kele")
    feed = Feed(50)
    for record in drive.records:
        feed.publish([record])
        assert all(feed.last(viewer) - feed.oldest(viewer) <= 50 for viewer in VIEWERS)


def test_a_reader_whose_next_event_was_forgotten_is_too_slow():
    drive = driven(5, "baishan_kele")
    feed = Feed(20)
    feed.publish(drive.records[:20])
    reader = feed.open(0, feed.last(0), lambda: None)
    feed.publish(drive.records[20:])
    with pytest.raises(ReaderTooSlow):
        reader.next(EVERYTHING)


def test_a_feed_resumes_between_two_hands_with_the_same_numbers():
    """A table that another replica takes over from the state at a hand's start."""
    drive = driven(0, "baishan_kele")
    events = [record.event for record in drive.records]
    places = [place for place, event in enumerate(events) if isinstance(event, HandOpened)]
    for place in places[1:]:
        before = Feed()
        before.publish(drive.records[: place + 9])
        after = Feed()
        after.resume(TableState.replay(events[:place]), before.numbers_at_hand)
        after.publish(drive.records[place : place + 9])
        for viewer in VIEWERS:
            assert after.last(viewer) == before.last(viewer)
            assert after.event(viewer, after.last(viewer)) == before.event(
                viewer, before.last(viewer)
            )
            shown = [feed.snapshot(viewer) for feed in (before, after)]
            for event in shown:
                event.ClearField("time")
            assert shown[0] == shown[1]
        # What an operator is shown there has the same numbers too.
        revealed = []
        for feed in (before, after):
            one = feed.revealed(hand_number=99)
            one.catch_up(drive.records[place : place + 9])
            numbers = range(one.oldest(RECORD) + 1, one.last(RECORD) + 1)
            revealed.append([one.event(RECORD, number) for number in numbers])
        assert revealed[0] == revealed[1]
        assert any(event.HasField("seat_prompted") for event in revealed[0])


def test_every_kind_of_event_is_taken_by_the_view():
    """A kind that the view does not take would be missing in the snapshots made with it."""
    kinds = events_pb2.TableEvent.DESCRIPTOR.oneofs_by_name["kind"].fields
    assert not [field.name for field in kinds if not hasattr(TableView, f"_{field.name}")]


# Over a real channel.


async def test_an_old_number_is_answered_with_a_snapshot_and_what_follows(tmp_path):
    async with world(tmp_path, most_behind_events=150) as service:
        table_id = await created_table(service, hands=3)
        played = await play_all(service, table_id)
        known = TableView()
        for event in played[0].events:
            known.apply(event)
        again = TableView()
        async for event in attend(service.channel("player:ann"), table_id, 1):
            again.apply(event)
        assert same(again) == same(known)
        assert again.closed is not None


async def test_a_snapshot_is_sent_to_whom_asks_for_it(service):
    table_id = await created_table(service)
    calls = [await begun(service, table_id, name) for name in PLAYERS]
    await until(lambda: service.value("fangcheng_table_streams", kind="seat") == 4)
    stub = service.player("ann")
    seen = TableView()
    async for event in attend(service.channel("player:ann"), table_id):
        seen.apply(event)
        if seen.prompt is not None or seen.wall_tiles:
            break
    message = await stub.Attend(
        wire.AttendRequest(table_id=table_id, from_number=seen.last_number, snapshot=True)
    ).read()
    assert message.event.snapshot.seat == 0
    assert message.event.number >= seen.last_number
    prompt = message.event.snapshot.prompt
    assert not prompt.decision_id or prompt.ms_left > 0
    watching = service.player("eve").Watch(wire.WatchRequest(table_id=table_id, snapshot=True))
    shown = (await watching.read()).event.snapshot
    assert not shown.HasField("seat")
    assert not shown.HasField("prompt")
    assert not any(tile for seat in shown.hand.seats for tile in seat.concealed)
    assert not any(seat.is_bot for seat in shown.table.seats)
    for call in (*calls, watching):
        call.cancel()


async def test_a_gateway_is_sent_a_snapshot_where_it_asks_for_one(service):
    table_id = await created_table(service)
    add = wire.AddSeat(player_id="bob", table_id=table_id, snapshot=True)

    async def requests() -> Any:
        yield wire.AttendManyRequest(add=add)
        await asyncio.Event().wait()

    call = service.stub("operator", "act_as").AttendMany(requests())
    message = await call.read()
    first = message.events.events[0]
    assert first.player_id == "bob"
    assert first.event.snapshot.seat == 1
    call.cancel()


async def test_spectators_that_come_late_are_sent_a_snapshot(tmp_path):
    async with world(tmp_path, most_behind_events=100) as service:
        table_id = await created_table(service, hands=2)
        await play_all(service, table_id)
        events = [event async for event in watch(service.channel("player:eve"), table_id)]
        assert [event.WhichOneof("kind") for event in events] == ["snapshot"]
        assert events[0].snapshot.closed.reason == "hands_played"


async def created_table(service: Any, **more: Any) -> str:
    made = await service.stub("operator").CreateTable(request(**more))
    table_id: str = made.table.table_id
    return table_id


async def begun(service: Any, table_id: str, name: str) -> grpc.aio.UnaryStreamCall[Any, Any]:
    call = service.player(name).Attend(wire.AttendRequest(table_id=table_id))
    await call.read()
    return call


def test_what_all_are_asked_between_two_hands_is_in_a_snapshot():
    drive = Drive.of(created(root=b"\4" * 32, hands=8, rules_id="shandong"))
    drive.attend(0, 1, 2, 3)
    drive.is_ready = False
    drive.play(at_random(4), until=lambda it: it.table.state.checking)
    votes.reply(drive.table, 2, f"ready-{drive.table.state.checks}", "ready")
    votes.propose(drive.table, 1, drive.table.state.hand_number)
    drive.settle()
    assert drive.table.state.checking
    feed = Feed()
    feed.publish(drive.records)
    for viewer in VIEWERS:
        view = from_snapshot(feed.snapshot(viewer))
        assert view.ready_check == f"ready-{drive.table.state.checks}"
        assert [seat.ready for seat in view.seats] == [False, False, True, False]
        assert view.vote is not None
        assert list(view.vote.agreed) == [1]
        assert view.standing_table() == without_bots(drive.table.state)


def without_bots(state: TableState) -> state_pb2.Table:
    """The table as events tell it."""
    table = table_to_wire(state)
    for seat in table.seats:
        seat.ClearField("is_bot")
    return table
