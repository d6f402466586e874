"""Operators, votes and ready checks over a channel: who may, what is told, what is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import operators_pb2 as wire
from fangcheng.table.v1 import records_pb2 as records
from fangcheng.table.v1 import table_pb2 as table_wire
from fangcheng.table.v1.operators_pb2_grpc import TableOperationsServiceStub
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceStub
from fangcheng_client import TableView, attend

from .world import PLAYERS, Player, World, refused, request, simple, until

SHANDONG = rules.RuleSetChoice(id="shandong")
SILVER = state_pb2.Stake(currency="silver", per_unit=10)


class Guest(Player):
    """Attends and answers prompts, is ready, and says what it is told to in a vote."""

    def __init__(self, world: World, name: str, word: str = "agree") -> None:
        super().__init__(world, name)
        self.word = word
        self.view = TableView()
        self.stub = world.player(name)
        self.stops = asyncio.Event()
        """It answers no more prompts."""

    async def play(self, table_id: str) -> None:
        channel = self._world.channel(f"player:{self._name}")
        async for event in attend(channel, table_id):
            self.events.append(event)
            self.view.apply(event)
            if event.HasField("prompt") and not self.stops.is_set():
                await self._answer(table_id, event.prompt.decision_id, simple(event.prompt))
            elif event.HasField("ready_asked"):
                await self._say(table_id, event.ready_asked.decision_id, "ready")
            elif event.HasField("vote_opened") and event.vote_opened.seat != self.view.own_seat:
                await self._say(table_id, event.vote_opened.decision_id, self.word)

    async def _say(self, table_id: str, decision_id: str, word: str) -> None:
        await self._answer(table_id, decision_id, state_pb2.Action(kind=word))

    async def _answer(self, table_id: str, decision_id: str, action: state_pb2.Action) -> None:
        act = table_wire.ActRequest(table_id=table_id, decision_id=decision_id, action=action)
        try:
            await self.stub.Act(act)
        except Exception as error:
            self.refused.append(str(error))


def operations(service: World, subject: str = "operator") -> Any:
    return TableOperationsServiceStub(service.channel(subject))


async def seated(service: World, message: table_wire.CreateTableRequest, **words: str) -> Any:
    """A table, its guests and their tasks, once the first hand has begun."""
    made = await service.stub("operator").CreateTable(message)
    table_id = made.table.table_id
    guests = [Guest(service, name, words.get(name, "agree")) for name in PLAYERS]
    tasks = [asyncio.create_task(guest.play(table_id)) for guest in guests]
    await until(lambda: all(guest.view.hand_number for guest in guests))
    return table_id, guests, tasks


def told(guest: Guest, kind: str) -> list[Any]:
    return [getattr(event, kind) for event in guest.events if event.HasField(kind)]


def slow(**more: Any) -> table_wire.CreateTableRequest:
    """A table that waits for its players."""
    timing = state_pb2.Timing(turn_ms=600_000, before_deal_ms=600_000, **more)
    options = {"piao": rules.OptionValue(boolean=False)}
    return request(hands=8, timing=timing, rules=rules.RuleSetChoice(options=options))


async def test_a_voided_hand_is_told_recorded_and_logged_once(service):
    message = slow()
    message.stakes.append(SILVER)
    table_id, guests, tasks = await seated(service, message)
    for guest in guests:
        guest.stops.set()
    stub = operations(service)
    number = guests[0].view.hand_number
    void = wire.VoidHandRequest(
        request_id="o-1",
        table_id=table_id,
        hand_number=number,
        reason="the connection of two seats was cut",
        case_id="case-82",
    )
    answers = await asyncio.gather(*(stub.VoidHand(void) for _ in range(20)))
    assert [answer.replayed for answer in answers].count(False) == 1
    await until(lambda: all(guest.view.hand_number > number for guest in guests))
    for guest in guests:
        (acted,) = told(guest, "operator_acted")
        assert acted == events_pb2.OperatorActed(
            verb="void_hand", reason=void.reason, case_id="case-82"
        )
        ended = next(e for e in told(guest, "hand_ended") if e.hand_number == number)
        assert ended.hand.dissolved.reason == void.reason
        assert list(ended.net) == [0, 0, 0, 0]
    assert not [one for one in told(guests[0], "hand_settled") if one.hand_number == number]

    record = await TableRecordServiceStub(service.channel("operator")).GetHandRecord(
        records.GetHandRecordRequest(table_id=table_id, hand_number=number)
    )
    assert [
        e.operator_acted.verb for e in record.record.events if e.HasField("operator_acted")
    ] == ["void_hand"]
    assert await refused(stub.VoidHand(with_id(void, "o-2"))) == (
        "FAILED_PRECONDITION", "STALE_HAND", "hand_number",
    )  # fmt: skip
    void.reason = "another"
    assert (await refused(stub.VoidHand(void)))[:2] == ("ALREADY_EXISTS", "REQUEST_ID_REUSED")
    (logged,) = (await stub.ListOperatorActions(wire.ListOperatorActionsRequest())).actions
    assert (logged.table_id, logged.request_id, logged.verb) == (table_id, "o-1", "void_hand")
    assert (logged.operator, logged.case_id, logged.detail) == ("operator", "case-82", str(number))

    close = wire.CloseTableRequest(request_id="o-3", table_id=table_id, reason="enough")
    assert (await stub.CloseTable(close)).table.closed_reason == "closed"
    await asyncio.gather(*tasks)
    assert (await stub.CloseTable(close)).replayed
    assert (await refused(stub.CloseTable(with_id(close, "o-4"))))[1] == "TABLE_CLOSED"


def with_id(message: Any, request_id: str) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    copy.request_id = request_id
    return copy


async def test_the_same_request_id_at_two_tables_is_two_orders(service):
    stub = operations(service)
    tables = []
    for number in range(2):
        message = slow()
        message.request_id = f"r{number}"
        made = await service.stub("operator").CreateTable(message)
        tables.append(made.table.table_id)
    for table_id in tables:
        close = wire.CloseTableRequest(request_id="o-1", table_id=table_id, reason="enough")
        assert not (await stub.CloseTable(close)).replayed
    listed = await stub.ListOperatorActions(wire.ListOperatorActionsRequest(page_size=1))
    assert [one.table_id for one in listed.actions] == [tables[1]]
    rest = wire.ListOperatorActionsRequest(page_size=1, page_token=listed.next_page_token)
    assert [one.table_id for one in (await stub.ListOperatorActions(rest)).actions] == [tables[0]]
    wanted = wire.ListOperatorActionsRequest(table_id=tables[0])
    assert len((await stub.ListOperatorActions(wanted)).actions) == 1


async def test_a_removed_player_sees_and_does_nothing_more(service):
    table_id, guests, tasks = await seated(service, slow())
    stub = operations(service)
    removal = wire.RemoveFromTableRequest(
        request_id="o-1", table_id=table_id, player_id="cat", reason="two accounts", case_id="c-1"
    )
    assert not (await stub.RemoveFromTable(removal)).replayed
    with pytest.raises(Exception, match="removed"):
        await tasks[2]
    cat = service.player("cat")
    again = cat.Attend(table_wire.AttendRequest(table_id=table_id))
    assert (await refused(again.read()))[:2] == ("PERMISSION_DENIED", "REMOVED")
    leave = table_wire.LeaveTableRequest(table_id=table_id, mode=table_wire.LEAVE_MODE_NOW)
    assert (await refused(cat.LeaveTable(leave)))[1] == "REMOVED"
    await asyncio.gather(tasks[0], tasks[1], tasks[3])
    assert told(guests[0], "table_closed")[0].reason == "removed"
    (ended,) = told(guests[0], "hand_ended")
    assert ended.hand.WhichOneof("end") != "escape"
    assert (await stub.RemoveFromTable(removal)).replayed


async def test_a_vote_of_all_dissolves_a_table_and_its_holds_are_released(service):
    message = slow()
    message.stakes.append(SILVER)
    for number, seat in enumerate(message.seats):
        seat.hold_ids.append(f"h-{number}")
    table_id, guests, tasks = await seated(service, message)
    number = guests[0].view.hand_number
    propose = table_wire.ProposeDissolutionRequest(table_id=table_id, hand_number=number)
    ann = service.player("ann")
    first = await ann.ProposeDissolution(propose)
    assert (first.decision_id, first.replayed) == ("vote-1", False)
    assert (await ann.ProposeDissolution(propose)).replayed
    await asyncio.gather(*tasks)
    for guest in guests:
        assert [answered.seat for answered in told(guest, "vote_answered")] != []
        assert told(guest, "vote_closed")[0].outcome == "agreed"
        assert told(guest, "table_closed")[0].reason == "dissolved"
    await until(lambda: len(service.wallet.released) == 4)
    assert service.wallet.settled == {}


async def test_a_vote_that_one_refuses_shows_in_the_table_and_changes_nothing(service):
    table_id, guests, tasks = await seated(service, slow(), dan="refuse")
    number = guests[0].view.hand_number
    propose = table_wire.ProposeDissolutionRequest(table_id=table_id, hand_number=number)
    await service.player("ann").ProposeDissolution(propose)
    await until(lambda: bool(told(guests[1], "vote_closed")))
    assert told(guests[1], "vote_closed")[0].outcome == "refused"
    eve = service.player("eve")
    assert (await refused(eve.ProposeDissolution(propose)))[1] == "NOT_SEATED"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_shandong_table_is_played_through_its_ready_checks(service):
    message = request(hands=4, rules=SHANDONG)
    _, guests, tasks = await seated(service, message)
    await asyncio.gather(*tasks)
    closed = told(guests[0], "table_closed")[0]
    assert closed.reason == "hands_played"
    assert closed.ranking[0].place == 1
    asked, ends = told(guests[0], "ready_asked"), told(guests[0], "hand_ended")[:-1]
    assert len(asked) == sum(ended.hand.WhichOneof("end") != "draw" for ended in ends)
    assert not any(guest.refused for guest in guests)


async def test_another_player_takes_a_seat_and_sees_nothing_of_who_had_it(service):
    message = request(hands=3, rules=SHANDONG, timing=state_pb2.Timing(vacancy_ms=60_000))
    for number, seat in enumerate(message.seats):
        seat.hold_ids.append(f"h-{number}")
    table_id, guests, tasks = await seated(service, message)
    leave = table_wire.LeaveTableRequest(table_id=table_id, mode=table_wire.LEAVE_MODE_AFTER_HAND)
    bob = service.player("bob")
    await bob.LeaveTable(leave)
    with pytest.raises(Exception, match="left"):
        await tasks[1]
    await until(lambda: service.wallet.released == ["h-1"])
    assert (await bob.LeaveTable(leave)).table.seats[1].player_id == ""
    seat = wire.SeatPlayerRequest(
        request_id="s-1",
        table_id=table_id,
        seat=1,
        player=table_wire.SeatAssignment(player_id="eve", hold_ids=["h-eve"]),
        reason="from the waiting list",
    )
    matchmaking = operations(service, "service:matchmaking")
    assert (await matchmaking.SeatPlayer(seat)).table.seats[1].player_id == "eve"
    eve = Guest(service, "eve")
    await asyncio.gather(eve.play(table_id), tasks[0], tasks[2], tasks[3])
    assert eve.events[0].HasField("snapshot")
    assert not told(eve, "hand_started") or told(eve, "hand_started")[0].hand_number > 1
    assert told(guests[0], "player_seated")[0].seat.player_id == "eve"
    assert told(guests[0], "table_closed")[0].reason == "hands_played"
    assert (await matchmaking.SeatPlayer(seat)).replayed
    listed = await service.stub("operator").ListTables(
        table_wire.ListTablesRequest(player_id="eve", include_closed=True)
    )
    assert [table.table_id for table in listed.tables] == [table_id]
    await until(lambda: set(service.wallet.released) == {"h-0", "h-1", "h-2", "h-3", "h-eve"})


@pytest.mark.parametrize("subject", ["player:ann", "service:matchmaking", "service:table"])
async def test_only_operators_intervene(service, subject):
    made = await service.stub("operator").CreateTable(slow())
    stub, table_id = operations(service, subject), made.table.table_id
    calls = [
        stub.VoidHand(
            wire.VoidHandRequest(request_id="x", table_id=table_id, hand_number=1, reason="x")
        ),
        stub.CloseTable(wire.CloseTableRequest(request_id="x", table_id=table_id, reason="x")),
        stub.RemoveFromTable(
            wire.RemoveFromTableRequest(
                request_id="x", table_id=table_id, player_id="ann", reason="x"
            )
        ),
        stub.ListOperatorActions(wire.ListOperatorActionsRequest()),
    ]
    for call in calls:
        assert (await refused(call))[0] == "PERMISSION_DENIED"


async def test_chips_are_for_tables_without_stakes(service):
    message = request(starting_chips=100, stakes=[SILVER])
    create = service.stub("operator").CreateTable
    assert await refused(create(message)) == (
        "INVALID_ARGUMENT", "CHIPS_WITH_STAKES", "starting_chips",
    )  # fmt: skip
    del message.stakes[:]
    table = (await create(message)).table
    assert [seat.chips for seat in table.seats] == [100] * 4
