"""An operator who has all tiles shown: what it sees, and what is noted of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import grpc
import pytest

from fangcheng.table.v1 import (
    events_pb2,
    operators_pb2,
    operators_pb2_grpc,
    records_pb2,
)
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_client import TableView, watch
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_table import operating
from fangcheng_table.errors import RequestIdReused
from fangcheng_table.events import HandOpened, OperatorActed
from fangcheng_table.feed import Feed
from fangcheng_table.operating import Order
from fangcheng_table.views import RECORD, SPECTATORS

from .tables import SLOW, Drive, at_random, created, of
from .world import PLAYERS, play_all, refused, request, until_attended, world


def driven(rules_id: str, seed: int = 3) -> Drive:
    drive = Drive.of(created(root=bytes([seed + 1]) * 32, hands=3, rules_id=rules_id))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(seed))
    return drive


def prompted(event: events_pb2.TableEvent) -> events_pb2.Prompt | events_pb2.PromptClosed | None:
    """What a seat is asked, or is no more, as only an operator with all tiles shown is told."""
    if event.HasField("seat_prompted"):
        return event.seat_prompted.prompt
    return event.seat_prompt_closed.closed if event.HasField("seat_prompt_closed") else None


def unnumbered(event: events_pb2.TableEvent) -> events_pb2.TableEvent:
    copy = events_pb2.TableEvent()
    copy.CopyFrom(event)
    copy.number = 0
    return copy


def read(feed: Feed, viewer: int) -> dict[int, events_pb2.TableEvent]:
    numbers = range(feed.oldest(viewer) + 1, feed.last(viewer) + 1)
    return {number: feed.event(viewer, number) for number in numbers}


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_whenever_it_begins_it_is_the_spectators_stream_with_open_tiles_and_prompts(rules):
    drive = driven(rules.id)
    known: dict[int, events_pb2.TableEvent] = {}
    opened = [r.sequence for r in drive.records if isinstance(r.event, HandOpened)]
    for cut in range(1, len(drive.records), 61):
        feed = Feed()
        feed.publish(drive.records[:cut])
        first = max((sequence for sequence in opened if sequence <= cut), default=0)
        shown = feed.revealed(3)
        # What is stored while the hand's beginning is read waits.
        both = drive.records[cut : cut + 9]
        for one in (feed, shown):
            one.publish(both)
        shown.catch_up(drive.records[first - 1 : cut] if first else [])
        for one in (feed, shown):
            one.publish(drive.records[cut + 9 :])
        all_open = read(shown, RECORD)
        assert list(all_open) == list(range(shown.oldest(RECORD) + 1, shown.last(RECORD) + 1))
        # What they have in common, from the end.
        open_to_all = [event for event in all_open.values() if not prompted(event)]
        seen_by_all = list(read(feed, SPECTATORS).values())
        count = min(len(open_to_all), len(seen_by_all))
        assert count
        for seen, shown_open in zip(seen_by_all[-count:], open_to_all[-count:], strict=True):
            kind = seen.WhichOneof("kind")
            assert shown_open.WhichOneof("kind") == kind
            if kind not in ("drawn", "dealt", "melded"):
                assert unnumbered(shown_open) == unnumbered(seen)
        for event in all_open.values():
            assert event.drawn.tile or not event.HasField("drawn")
            assert all(tile for hand in event.dealt.hands for tile in hand.tiles)
        # What each seat is sent, as far as both are kept.
        for seat in range(4):
            sent = [e for e in read(feed, seat).values() if e.HasField("prompt")]
            told = [prompted(e) for e in all_open.values() if e.seat_prompted.seat == seat]
            asked = [one for one in told if isinstance(one, events_pb2.Prompt)]
            assert [event.prompt for event in sent][-len(asked) :] == asked[-len(sent) :]
        # The numbers are the same, whenever somebody looks.
        for number, event in all_open.items():
            assert known.setdefault(number, event) == event
        assert shown.open_view.standing_table() == feed.open_view.standing_table()
        assert shown.finished


def test_two_looks_at_one_hand_show_the_same():
    drive = driven("baishan_kele")
    opened = next(r.sequence for r in drive.records if isinstance(r.event, HandOpened))
    feed = Feed()
    feed.publish(drive.records[: opened + 20])
    looks = [feed.revealed(1), feed.revealed(1)]
    for look in looks:
        look.catch_up(drive.records[opened - 1 : opened + 20])
    for look in looks:
        look.publish(drive.records[opened + 20 : opened + 40])
    one, other = (read(look, RECORD) for look in looks)
    assert one
    assert one == other


@pytest.mark.parametrize("in_play", [True, False])
def test_it_ends_with_the_hand_that_it_was_noted_for(in_play):
    """Else who is looked at in the next one would never learn of it."""
    drive = Drive.of(created(hands=3, timing=SLOW))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(3), until=lambda it: it.table.state.hand_number > 1)
    if not in_play:
        drive.play(at_random(3), until=lambda it: it.table.state.in_play is None)
    order = Order("o-1", "ming", "do 1 and 3 play together?", "")
    hand = operating.reveal(drive.table, order)
    assert hand == (2 if in_play else 3)
    drive.settle()
    (acted,) = of(OperatorActed, drive.events)
    assert operating.reveal(drive.table, order) == hand
    assert not drive.table.take()
    with pytest.raises(RequestIdReused):
        operating.reveal(drive.table, replace(order, operator="lan"))

    feed, so_far = Feed(), len(drive.records)
    feed.publish(drive.records)
    first = max(r.sequence for r in drive.records if isinstance(r.event, HandOpened))
    shown = feed.revealed(hand)
    shown.catch_up(drive.records[first - 1 :])
    assert not shown.finished
    if in_play:
        drive.play(at_random(3), until=lambda it: it.table.state.hand_number > hand)
        with pytest.raises(RequestIdReused):
            operating.reveal(drive.table, order)
    drive.play(at_random(3))
    assert of(OperatorActed, drive.events) == [acted]
    shown.publish(drive.records[so_far:])
    assert shown.finished
    begun = [e.hand_started.hand_number for e in read(shown, RECORD).values()]
    assert max(begun) == hand


# Over a real channel.


async def collected(events: AsyncIterator[events_pb2.TableEvent]) -> list[events_pb2.TableEvent]:
    return [event async for event in events]


def reveal(request_id: str = "case-81/1", reason: str = "do 1 and 3 play together?") -> wire.Reveal:
    return wire.Reveal(request_id=request_id, reason=reason, case_id="case-81")


async def opened(service: Any) -> str:
    made = await service.stub("operator").CreateTable(request(hands=9))
    table_id: str = made.table.table_id
    return table_id


async def asked(service: Any, table_id: str) -> list[Any]:
    """Streams of all seats, at a table that has dealt; every seat has chosen its piao."""
    calls = [await until_attended(service, table_id, name) for name in PLAYERS]
    for name in PLAYERS:
        async for message in service.player(name).Attend(wire.AttendRequest(table_id=table_id)):
            if message.event.HasField("prompt"):
                prompt = message.event.prompt
                act = wire.ActRequest(
                    table_id=table_id, decision_id=prompt.decision_id, action=prompt.actions[0]
                )
                await service.player(name).Act(act)
                break
    return calls


def log(service: Any) -> Any:
    stub = operators_pb2_grpc.TableOperationsServiceStub(service.channel("operator"))
    return stub.ListOperatorActions(operators_pb2.ListOperatorActionsRequest())


async def test_an_operator_sees_all_tiles_and_is_noted_with_the_reason(service):
    table_id = await opened(service)
    await asked(service, table_id)
    watching = wire.WatchRequest(table_id=table_id, reveal=reveal())
    view = TableView()
    for _ in range(2):  # a stream that is resumed is noted once
        call = service.stub("operator").Watch(watching)
        view.apply((await call.read()).event)
        call.cancel()
    while not all(seat.concealed for seat in view.seats):
        call = service.stub("operator").Watch(watching)
        view.apply((await call.read()).event)
        call.cancel()
    assert all(tile for seat in view.seats for tile in seat.concealed)
    assert sorted(len(seat.concealed) for seat in view.seats) == [13, 13, 13, 14]
    (action,) = (await log(service)).actions
    assert (action.verb, action.operator, action.reason, action.case_id) == (
        "reveal",
        "operator",
        "do 1 and 3 play together?",
        "case-81",
    )


async def test_an_operator_sees_what_each_seat_is_asked_and_nobody_else_does(tmp_path):
    async with world(tmp_path) as service:
        made = await service.stub("operator").CreateTable(request(hands=2))
        table_id = made.table.table_id
        for name in PLAYERS:
            await until_attended(service, table_id, name)
        channel = service.channel("operator")
        looking = watch(channel, table_id, reveal=reveal())
        first = await anext(looking)
        asked = {prompted.seat: prompted.prompt for prompted in first.snapshot.prompts}
        while len(asked) < 4:  # all choose their piao
            event = await anext(looking)
            if event.HasField("seat_prompted"):
                asked[event.seat_prompted.seat] = event.seat_prompted.prompt
        assert {prompt.kind for prompt in asked.values()} == {"before_deal"}
        assert all(0 < prompt.ms_left <= 10_000 for prompt in asked.values())
        # Another look begins with what is open now.
        again = await anext(watch(channel, table_id, reveal=reveal("case-81/again")))
        open_now = {one.seat: one.prompt for one in again.snapshot.prompts}
        assert {seat: prompt.decision_id for seat, prompt in open_now.items()} == {
            seat: prompt.decision_id for seat, prompt in asked.items()
        }
        assert all(0 < prompt.ms_left <= 10_000 for prompt in open_now.values())

        view, events = TableView(), [first]
        view.apply(again)
        numbers = [again.number]
        watching = asyncio.create_task(collected(watch(service.channel("player:eve"), table_id)))
        playing = asyncio.create_task(play_all(service, table_id))
        kinds: set[str] = set()
        async for event in looking:
            if event.number <= again.number:
                continue
            numbers.append(event.number)
            events.append(event)
            view.apply(event)
            kinds |= {prompt.kind for prompt in view.prompts.values()}
            copy = TableView()
            copy.apply(events_pb2.TableEvent(number=event.number, snapshot=view.to_snapshot()))
            assert copy.prompts == view.prompts
        assert numbers == list(range(again.number, again.number + len(numbers)))
        assert view.ended is not None
        assert not view.prompts
        assert {"before_deal", "turn"} <= kinds
        closed = [e.seat_prompt_closed for e in events if e.HasField("seat_prompt_closed")]
        assert {(one.closed.why, one.closed.HasField("action")) for one in closed} >= {
            ("answered", True)
        }

        players, spectated = await playing, await watching
        record = (
            await service.records("operator").GetHandRecord(
                records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=1)
            )
        ).record
        for others in (*(player.events for player in players), spectated, record.events):
            assert others
            assert not any(prompted(event) for event in others)


async def test_those_who_are_looked_at_learn_it_from_the_record(service):
    made = await service.stub("operator").CreateTable(request())
    table_id = made.table.table_id
    await asked(service, table_id)
    call = service.stub("operator").Watch(wire.WatchRequest(table_id=table_id, reveal=reveal()))
    seen = [(await call.read()).event]
    players = await play_all(service, table_id)
    while (message := await call.read()) is not grpc.aio.EOF:
        seen.append(message.event)
    assert seen[0].HasField("snapshot")
    numbers = [event.number for event in seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert seen[-1].HasField("table_closed")
    drawn = [event.drawn.tile for event in seen if event.HasField("drawn")]
    assert drawn
    assert all(drawn)
    for player in players:
        assert not any(event.HasField("operator_acted") for event in player.events)
    got = await service.records("operator").GetHandRecord(
        records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=1)
    )
    (acted,) = [e.operator_acted for e in got.record.events if e.HasField("operator_acted")]
    assert (acted.verb, acted.reason) == ("reveal", "do 1 and 3 play together?")
    got = await service.records("player:ann").GetHandRecord(
        records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=1)
    )
    (acted,) = [e.operator_acted for e in got.record.events if e.HasField("operator_acted")]
    assert (acted.verb, acted.reason, acted.case_id) == ("reveal", "", "")


@pytest.mark.parametrize(
    ("subject", "given", "refusal"),
    [
        ("player:ann", reveal(), ("PERMISSION_DENIED", "NOT_OPERATOR", "reveal")),
        ("service:matchmaking", reveal(), ("PERMISSION_DENIED", "NOT_OPERATOR", "reveal")),
        ("operator", reveal(reason=""), ("INVALID_ARGUMENT", "INVALID_REQUEST", "reveal.reason")),
    ],
)
async def test_tiles_are_shown_to_operators_with_a_reason_alone(service, subject, given, refusal):
    table_id = await opened(service)
    call = service.stub(subject).Watch(wire.WatchRequest(table_id=table_id, reveal=given))
    assert await refused(call.read()) == refusal
    assert not (await log(service)).actions


async def test_a_closed_table_has_nothing_to_reveal(service):
    made = await service.stub("operator").CreateTable(request())
    await play_all(service, made.table.table_id)
    call = service.stub("operator").Watch(
        wire.WatchRequest(table_id=made.table.table_id, reveal=reveal())
    )
    assert (await refused(call.read()))[1] == "TABLE_CLOSED"
