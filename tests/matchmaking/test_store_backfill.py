"""What `Store` promises about tables that go on when a player has left them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fangcheng_matchmaking.core import Match, MatchState, Member, Ticket, TicketState
from fangcheng_matchmaking.store import (
    Apart,
    FinishedHand,
    LiveTicket,
    SeatOffered,
    SomebodyLeaves,
    Store,
)
from tests.matchmaking.conftest import Open
from tests.matchmaking.test_store import TERMS, asked, match_of, new


async def test_who_has_left_a_table_may_queue_again_and_the_others_may_not(store: Store) -> None:
    await asked(store)
    await store.seated("m", "table", "e")
    (left,) = await store.parted("table", ["p1", "stranger"])
    assert (left.player_id, left.state, left.table_id) == ("p1", TicketState.ENDED, "table")
    assert await store.parted("table", ["p1"]) == []
    assert [one.player_id for one in await store.at_table("table")] == ["p0", "p2", "p3"]
    assert (await store.join(new(1, "again"))).ticket.state is TicketState.WAITING
    with pytest.raises(LiveTicket):
        await store.join(new(2, "again"))
    # What he has now is not touched when the table closes.
    assert len(await store.table_closed("table")) == 3
    live = await store.live_ticket("p1")
    assert live is not None
    assert live.request_id == "again"


async def test_the_ticket_of_a_party_ends_with_the_last_of_it(store: Store) -> None:
    pair = (Member(player_id="p0"), Member(player_id="p1"))
    tickets = [(await store.join(new(0, members=pair))).ticket]
    tickets += [(await store.join(new(number))).ticket for number in (2, 3)]
    await store.form(match_of(tickets))
    await store.ask("m")
    await store.seated("m", "table", "e")
    assert await store.parted("table", ["p0"]) == []
    assert await store.live_ticket("p0") is None
    other = await store.live_ticket("p1")
    assert other is not None
    assert other.state is TicketState.ASSIGNED
    assert [one.ticket_id for one in await store.parted("table", ["p1"])] == ["t0-r"]
    assert len(await store.at_table("table")) == 2


def offer(ticket: Ticket, match_id: str = "o", seat: int = 1) -> Match:
    """Offers the seat of a table under way to a ticket."""
    return replace(match_of([ticket], match_id), table_id="table", seat=seat)


async def left_by_one(store: Store) -> Ticket:
    """Four sit at a table, of whom p1 has left; who waits for the seat."""
    await asked(store)
    await store.seated("m", "table", "e")
    await store.parted("table", ["p1"])
    return (await store.join(new(7))).ticket


async def test_a_seat_goes_from_the_queue_to_the_table_by_the_same_steps(store: Store) -> None:
    ticket = await left_by_one(store)
    (matched,) = await store.form(offer(ticket))
    assert (matched.state, matched.members[0].seat) == (TicketState.MATCHED, 1)
    held = await store.held("o", [["h7"]])
    assert held.seats[0].hold_ids == ("h7",)
    assert (await store.ticket("t7-r")).members[0] == replace(
        ticket.members[0], seat=1, hold_ids=("h7",)
    )
    assert (await store.ask("o")).state is MatchState.ASKED
    for _ in range(2):
        (seated,) = (await store.seated("o", "table", "e2")).tickets
        assert (seated.state, seated.table_id, seated.endpoint, seated.members[0].seat) == (
            TicketState.ASSIGNED,
            "table",
            "e2",
            1,
        )
    assert [one.player_id for one in await store.at_table("table")] == ["p0", "p2", "p3", "p7"]
    assert await store.unfinished_matches() == []


async def test_a_table_is_known_by_those_who_were_seated_there(store: Store) -> None:
    assert await store.under_way("table") is None
    ticket = await left_by_one(store)
    await store.form(offer(ticket))
    before = await store.under_way("table")
    assert before is not None
    assert (before.pool_id, before.terms) == ("pool", TERMS)
    assert [one.player_id for one in before.tickets] == ["p0", "p2", "p3"]
    assert before.sat == {"p0", "p1", "p2", "p3"}
    await store.ask("o")
    await store.seated("o", "table", "e")
    after = await store.under_way("table")
    assert after is not None
    assert [one.player_id for one in after.tickets] == ["p0", "p2", "p3", "p7"]
    assert after.sat == {*before.sat, "p7"}


async def test_of_one_table_one_seat_is_offered_at_a_time(store: Store) -> None:
    ticket = await left_by_one(store)
    other = (await store.join(new(8))).ticket
    await store.form(offer(ticket))
    assert [one.ticket_id for one in await store.form(offer(ticket))] == ["t7-r"]
    with pytest.raises(SeatOffered):
        await store.form(offer(other, "o2", seat=3))
    assert (await store.ticket(other.ticket_id)).state is TicketState.WAITING
    await store.give_up("o", {})
    with pytest.raises(SeatOffered):
        await store.form(offer(other, "o2"))
    await store.returned("o")
    assert (await store.form(offer(other, "o2")))[0].state is TicketState.MATCHED


async def test_an_offer_of_which_nothing_comes_leaves_the_ticket_and_the_table_as_they_were(
    store: Store,
) -> None:
    ticket = await left_by_one(store)
    before = await store.under_way("table")
    await store.form(offer(ticket))
    await store.held("o", [["h7"]])
    await store.ask("o")
    assert (await store.give_up("o", {})).hold_ids == ("h7",)
    (back,) = (await store.returned("o")).tickets
    assert replace(back, version=ticket.version) == ticket
    assert await store.under_way("table") == before


async def test_who_leaves_before_the_seat_is_asked_for_does_not_get_it(store: Store) -> None:
    ticket = await left_by_one(store)
    await store.form(offer(ticket))
    assert (await store.leave("t7-r")).leaving
    with pytest.raises(SomebodyLeaves):
        await store.ask("o")
    await store.give_up("o", {})
    assert [one.state for one in (await store.returned("o")).tickets] == [TicketState.LEFT]


@pytest.mark.parametrize("steps", range(5))
async def test_a_restart_after_any_step_of_an_offer_finds_it_as_it_was(
    reopen: Open, steps: int
) -> None:
    store = await reopen()
    ticket = await left_by_one(store)
    await store.form(offer(ticket))
    if steps >= 1:
        await store.held("o", [["h7"]])
    if steps >= 2:
        await store.ask("o")
    if steps == 3:
        await store.seated("o", "table", "e")
    if steps == 4:
        await store.give_up("o", {})
    before = (
        await store.match("o"),
        await store.unfinished_matches(),
        await store.under_way("table"),
        await store.ticket("t7-r"),
    )
    store = await reopen()
    assert before == (
        await store.match("o"),
        await store.unfinished_matches(),
        await store.under_way("table"),
        await store.ticket("t7-r"),
    )


async def test_who_comes_to_a_table_has_met_who_sits_there_and_not_who_had_left(
    store: Store,
) -> None:
    ticket = await left_by_one(store)
    await store.form(offer(ticket))
    await store.ask("o")
    await store.seated("o", "table", "e")
    await store.table_closed("table")
    met = {
        number: (await store.join(new(number, "again"))).ticket.met for number in (0, 1, 2, 3, 7)
    }
    assert met[0] == {"p1", "p2", "p3", "p7"}
    assert met[1] == {"p0", "p2", "p3"}
    assert met[7] == {"p0", "p2", "p3"}


async def test_a_bot_that_comes_to_a_table_meets_nobody(store: Store) -> None:
    await left_by_one(store)
    bot = (await store.join(new(8, standby=True, is_bot=True))).ticket
    (seat,) = offer(bot).seats
    await store.form(replace(offer(bot), seats=(replace(seat, is_bot=True),)))
    await store.ask("o")
    await store.seated("o", "table", "e")
    await store.table_closed("table")
    assert (await store.join(new(0, "again"))).ticket.met == {"p1", "p2", "p3"}
    assert (await store.join(new(8, "again"))).ticket.met == frozenset()


async def test_who_sits_at_a_table_is_noted_to_avoid_somebody_from_then_on(store: Store) -> None:
    ticket = await left_by_one(store)
    avoids = Apart(player_id="p2", other_id="p7", origin="player")
    (changed,) = await store.keep_apart(avoids)
    assert (changed.player_id, changed.state) == ("p2", TicketState.ASSIGNED)
    known = await store.under_way("table")
    assert known is not None
    assert [one.apart for one in known.tickets] == [frozenset(), {"p7"}, frozenset()]
    assert (await store.ticket(ticket.ticket_id)).apart == frozenset()


async def test_hands_of_a_table_count_for_skills_but_those_with_a_bot_that_came_later(
    store: Store,
) -> None:
    tickets = [(await store.join(new(number))).ticket for number in range(4)]
    await store.form(replace(match_of(tickets), rated=True))
    await store.ask("m")
    await store.seated("m", "table", "e")
    await store.parted("table", ["p1"])
    bot = (await store.join(new(8, standby=True, is_bot=True))).ticket
    (seat,) = offer(bot).seats
    await store.form(replace(offer(bot), seats=(replace(seat, is_bot=True),), rated=True))
    await store.ask("o")
    await store.seated("o", "table", "e")
    four = ("p0", "p1", "p2", "p3")
    with_bot = ("p0", "p8", "p2", "p3")
    for number, players, hands in ((1, four, 1), (2, with_bot, 1), (3, four, 2), (3, four, 2)):
        hand = FinishedHand(
            cursor=str(number),
            table_id="table",
            number=number,
            rule_set="shandong",
            player_ids=players,
            nets=(3, -1, -1, -1),
        )
        await store.note(hand, 1)
        assert (await store.skill("p0", "shandong")).hands == hands
