"""What `Store` promises, each store (`conftest`); backfill in `test_store_backfill`."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from pathlib import Path

import pytest

from fangcheng_kit.migrations import BadDatabase
from fangcheng_matchmaking.core import (
    Match,
    MatchSeat,
    MatchState,
    Member,
    NewTicket,
    Problem,
    Stake,
    Terms,
    Ticket,
    TicketState,
)
from fangcheng_matchmaking.migrations import QUEUES
from fangcheng_matchmaking.postgres import open_postgres
from fangcheng_matchmaking.rooms import Room, RoomState
from fangcheng_matchmaking.sqlite import open_sqlite
from fangcheng_matchmaking.store import (
    Apart,
    Changes,
    Joined,
    LiveTicket,
    NotWaiting,
    Pause,
    RequestReused,
    SomebodyLeaves,
    Store,
    StoreUnavailable,
    UnknownMatch,
    UnknownTicket,
    WrongStep,
)
from tests.matchmaking.conftest import Open
from tests.matchmaking.world import eventually
from tests.postgres import database_of, execute

TERMS = Terms(
    rule_set="baishan_kele",
    options={"cap": 0, "piao": False},
    stakes=(Stake(currency="silver", per_unit=10, buy_in=1_000),),
    hands=8,
)
POOR = Problem(reason="INSUFFICIENT_BALANCE", message="too little")

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  # names are random


def new(number: int, request_id: str = "r", **more: object) -> NewTicket:
    fields: dict[str, object] = {
        "ticket_id": f"t{number}-{request_id}",
        "request_id": request_id,
        "members": (Member(player_id=f"p{number}"),),
        "pool_id": "pool",
        "queued_ms": 1_000 + number,
        **more,
    }
    return NewTicket(**fields)


def match_of(tickets: list[Ticket], match_id: str = "m") -> Match:
    return Match(
        match_id=match_id,
        pool_id="pool",
        terms=TERMS,
        labels={"club": "a"},
        formed_ms=5_000,
        seats=tuple(
            MatchSeat(ticket_id=one.ticket_id, player_id=member.player_id, profile=member.profile)
            for one in tickets
            for member in one.members
        ),
    )


async def four(store: Store, request_id: str = "r") -> list[Ticket]:
    return [(await store.join(new(number, request_id))).ticket for number in range(4)]


async def formed(store: Store) -> Match:
    match = match_of(await four(store))
    await store.form(match)
    return match


HOLDS = [["h0"], ["h1"], ["h2"], ["h3"]]


async def asked(store: Store) -> Match:
    match = await formed(store)
    await store.held(match.match_id, HOLDS)
    return await store.ask(match.match_id)


async def states(store: Store, *ids: str) -> list[str]:
    return [(await store.ticket(ticket_id)).state.value for ticket_id in ids]


async def test_a_ticket_is_stored_as_it_was_given(store: Store) -> None:
    given = new(
        1,
        client_version=7,
        members=(Member(player_id="p1", profile=b"\x00\xff"), Member(player_id="阿")),
        labels={"club": "阿"},
        traits=frozenset({"x", "y"}),
        rating=-7.5,
        standby=True,
        is_bot=True,
    )
    joined = await store.join(given)
    assert not joined.replayed
    ticket = joined.ticket
    assert ticket == await store.ticket(ticket.ticket_id)
    assert {name: getattr(ticket, name) for name in NewTicket.__dataclass_fields__} == {
        name: getattr(given, name) for name in NewTicket.__dataclass_fields__
    }
    assert (ticket.state, ticket.leaving, ticket.version) == (TicketState.WAITING, False, 1)


async def test_numbers_follow_the_order_of_joining(store: Store) -> None:
    numbers = [ticket.number for ticket in await four(store)]
    assert numbers == sorted(set(numbers))


async def test_the_same_request_id_answers_with_the_same_ticket_whatever_became_of_it(
    store: Store,
) -> None:
    first = (await store.join(new(1))).ticket
    assert await store.replay(new(1, ticket_id="another")) == first
    again = await store.join(new(1, ticket_id="another", queued_ms=9_999))
    assert again.replayed
    assert again.ticket == first
    await store.leave(first.ticket_id)
    late = await store.join(new(1, ticket_id="another"))
    assert late.replayed
    assert late.ticket.state is TicketState.LEFT


async def test_the_same_request_id_with_other_contents_is_refused(store: Store) -> None:
    await store.join(new(1))
    for other in (
        {"pool_id": "other"},
        {"client_version": 3},
        {"members": (Member(player_id="p1", profile=b"x"),)},
        {"members": (Member(player_id="p1"), Member(player_id="p2"))},
        {"traits": frozenset({"x"})},
        {"labels": {"a": "b"}},
        {"standby": True},
    ):
        with pytest.raises(RequestReused):
            await store.join(new(1, **other))
        with pytest.raises(RequestReused):
            await store.replay(new(1, **other))
    assert len((await store.live_tickets()).tickets) == 1


async def test_request_ids_of_two_players_do_not_meet(store: Store) -> None:
    await store.join(new(1, "same"))
    assert await store.replay(new(2, "same")) is None
    assert not (await store.join(new(2, "same"))).replayed


async def test_a_player_has_one_live_ticket(store: Store) -> None:
    first = (await store.join(new(1, "a"))).ticket
    with pytest.raises(LiveTicket) as refused:
        await store.join(new(1, "b"))
    assert refused.value.ticket == first
    assert await store.live_ticket("p1") == first
    await store.leave(first.ticket_id)
    assert await store.live_ticket("p1") is None
    assert not (await store.join(new(1, "b"))).replayed


async def test_fifty_joins_of_one_player_at_once_make_one_ticket(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.join(new(1, f"r{number}")) for number in range(50)), return_exceptions=True
    )
    assert sum(not isinstance(outcome, BaseException) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, LiveTicket) for outcome in outcomes) == 49


async def test_fifty_repeats_of_one_join_at_once_make_one_ticket(store: Store) -> None:
    joined = await asyncio.gather(
        *(store.join(new(1, ticket_id=f"id{number}")) for number in range(50))
    )
    assert len({one.ticket.ticket_id for one in joined}) == 1
    assert sum(not one.replayed for one in joined) == 1


async def test_one_refused_call_takes_nothing_from_those_beside_it(store: Store) -> None:
    await store.join(new(0))
    results = await asyncio.gather(
        store.join(new(1)),
        store.ticket("none"),
        store.join(new(0, "other")),
        store.join(new(2)),
        return_exceptions=True,
    )
    assert isinstance(results[1], UnknownTicket)
    assert isinstance(results[2], LiveTicket)
    assert [one.player_id for one in (await store.live_tickets()).tickets] == ["p0", "p1", "p2"]


async def test_a_caller_that_goes_away_does_not_undo_what_it_began(store: Store) -> None:
    joining = asyncio.ensure_future(store.join(new(1)))
    await asyncio.sleep(0)  # begun, not answered
    joining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await joining
    assert (await store.join(new(1, ticket_id="another"))).replayed


async def test_what_is_not_there_is_said_to_be_unknown(store: Store) -> None:
    for call in (store.ticket, store.leave):
        with pytest.raises(UnknownTicket):
            await call("none")
    with pytest.raises(UnknownTicket):
        await store.fail("none", POOR)
    for step in (store.match, store.ask, store.returned):
        with pytest.raises(UnknownMatch):
            await step("none")
    with pytest.raises(UnknownMatch):
        await store.held("none", HOLDS)
    with pytest.raises(UnknownMatch):
        await store.seated("none", "table", "host:1")
    with pytest.raises(UnknownMatch):
        await store.give_up("none", {})
    assert await store.live_ticket("nobody") is None
    assert await store.table_closed("none") == []


async def test_a_match_goes_from_the_queue_to_the_table(store: Store) -> None:
    match = match_of(await four(store))
    tickets = await store.form(match)
    assert [(one.state, one.match_id, one.members[0].seat) for one in tickets] == [
        (TicketState.MATCHED, "m", seat) for seat in range(4)
    ]
    assert await store.match("m") == match
    held = await store.held("m", HOLDS)
    assert held.state is MatchState.HELD
    assert [seat.hold_ids for seat in held.seats] == [("h0",), ("h1",), ("h2",), ("h3",)]
    assert held.terms == TERMS
    assert held.labels == {"club": "a"}
    assert (await store.ticket("t2-r")).members[0].hold_ids == ("h2",)
    assert (await store.ask("m")).state is MatchState.ASKED
    assert [one.match_id for one in await store.unfinished_matches()] == ["m"]
    tickets = (await store.seated("m", "table", "host:1")).tickets
    assert [(one.state, one.table_id, one.endpoint, one.members[0].seat) for one in tickets] == [
        (TicketState.ASSIGNED, "table", "host:1", seat) for seat in range(4)
    ]
    assert await store.unfinished_matches() == []
    assert (await store.match("m")).table_id == "table"


async def test_every_step_can_be_repeated(store: Store) -> None:
    match = match_of(await four(store))
    assert await store.form(match) == await store.form(match)
    assert await store.held("m", HOLDS) == await store.held("m", HOLDS)
    assert await store.ask("m") == await store.ask("m")
    ended = await store.seated("m", "t", "e")
    assert not ended.replayed
    assert await store.seated("m", "t", "e") == replace(ended, replayed=True)


async def test_giving_up_can_be_repeated(store: Store) -> None:
    await formed(store)
    assert await store.give_up("m", {"t0-r": POOR}) == await store.give_up("m", {})
    ended = await store.returned("m")
    assert not ended.replayed
    assert await store.returned("m") == replace(ended, replayed=True)


async def test_a_step_that_does_not_follow_is_refused(store: Store) -> None:
    await formed(store)
    with pytest.raises(WrongStep):
        await store.seated("m", "t", "e")
    with pytest.raises(WrongStep):
        await store.returned("m")
    await store.ask("m")
    with pytest.raises(WrongStep):
        await store.held("m", HOLDS)
    await store.seated("m", "t", "e")
    with pytest.raises(WrongStep):
        await store.give_up("m", {})
    with pytest.raises(WrongStep):
        await store.ask("m")


async def test_a_match_with_a_ticket_that_left_is_not_formed(store: Store) -> None:
    tickets = await four(store)
    await store.leave("t1-r")
    with pytest.raises(NotWaiting) as refused:
        await store.form(match_of(tickets))
    assert [(one.ticket_id, one.state) for one in refused.value.tickets] == [
        ("t1-r", TicketState.LEFT)
    ]
    assert await states(store, "t0-r", "t2-r", "t3-r") == ["waiting"] * 3
    with pytest.raises(UnknownMatch):
        await store.match("m")


async def test_a_ticket_is_never_in_two_matches(store: Store) -> None:
    tickets = await four(store)
    tickets.append((await store.join(new(4))).ticket)
    outcomes = await asyncio.gather(
        store.form(match_of(tickets[:4], "m1")),
        store.form(match_of(tickets[1:], "m2")),
        return_exceptions=True,
    )
    assert [isinstance(outcome, NotWaiting) for outcome in outcomes] == [False, True]


async def test_leaving_the_queue_is_at_once_and_final(store: Store) -> None:
    await four(store)
    left = await store.leave("t0-r")
    assert left.state is TicketState.LEFT
    assert await store.leave("t0-r") == left


async def test_leaving_a_match_before_the_table_is_asked_for_stops_it(store: Store) -> None:
    await formed(store)
    marked = await store.leave("t1-r")
    assert (marked.state, marked.leaving) == (TicketState.MATCHED, True)
    assert await store.leave("t1-r") == marked
    await store.held("m", HOLDS)
    with pytest.raises(SomebodyLeaves):
        await store.ask("m")
    await store.give_up("m", {})
    await store.returned("m")
    assert await states(store, "t0-r", "t1-r", "t2-r", "t3-r") == [
        "waiting",
        "left",
        "waiting",
        "waiting",
    ]


async def test_leaving_after_the_table_was_asked_for_is_too_late(store: Store) -> None:
    await asked(store)
    assert (await store.leave("t1-r")).state is TicketState.MATCHED
    tickets = (await store.seated("m", "table", "e")).tickets
    assert [one.state for one in tickets] == [TicketState.ASSIGNED] * 4
    assert not any(one.leaving for one in tickets)
    assert (await store.leave("t1-r")).state is TicketState.ASSIGNED


async def test_a_leaving_ticket_is_out_when_the_table_is_refused(store: Store) -> None:
    await asked(store)
    await store.leave("t1-r")
    await store.give_up("m", {})
    await store.returned("m")
    assert (await store.ticket("t1-r")).state is TicketState.LEFT


async def test_tickets_go_back_with_their_age_and_nothing_of_the_match(store: Store) -> None:
    before = {ticket.ticket_id: ticket for ticket in await four(store)}
    await store.form(match_of(list(before.values())))
    await store.held("m", HOLDS)
    await store.give_up("m", {"t2-r": POOR})
    assert (await store.match("m")).failed == {"t2-r": POOR}
    tickets = {ticket.ticket_id: ticket for ticket in (await store.returned("m")).tickets}
    failed = tickets.pop("t2-r")
    assert (failed.state, failed.problem) == (TicketState.FAILED, POOR)
    for ticket_id, ticket in tickets.items():
        assert ticket.state is TicketState.WAITING
        assert ticket.age_key == before[ticket_id].age_key
        assert (ticket.match_id, ticket.members) == (None, before[ticket_id].members)
        assert ticket.version > before[ticket_id].version
    assert await store.unfinished_matches() == []


async def test_only_a_waiting_ticket_fails(store: Store) -> None:
    await formed(store)
    await store.join(new(4))
    assert (await store.fail("t4-r", POOR)).problem == POOR
    assert (await store.fail("t0-r", POOR)).state is TicketState.MATCHED


async def test_a_closed_table_frees_its_players(store: Store) -> None:
    await asked(store)
    await store.seated("m", "table", "e")
    with pytest.raises(LiveTicket):
        await store.join(new(0, "again"))
    assert [one.player_id for one in await store.at_table("table")] == ["p0", "p1", "p2", "p3"]
    assert [one.state for one in await store.table_closed("table")] == [TicketState.ENDED] * 4
    assert await store.at_table("table") == []
    assert await store.table_closed("table") == []
    assert not (await store.join(new(0, "again"))).replayed


async def test_live_tickets_come_oldest_first(store: Store) -> None:
    for number in (3, 1, 2):
        await store.join(new(number, queued_ms=10 * number))
    await store.join(new(4, queued_ms=20))
    assert [one.player_id for one in (await store.live_tickets()).tickets] == [
        "p1",
        "p2",
        "p4",
        "p3",
    ]


async def test_rooms_are_forgotten_once_they_have_closed(store: Store) -> None:
    for number, state in enumerate((RoomState.OPEN, RoomState.CLOSED)):
        room = Room(
            room_id=f"r{number}",
            code="",
            request_id="q",
            opener_id=f"p{number}",
            template_id="free",
            terms=TERMS,
            expires_ms=2_000,
            state=state,
        )
        await store.open_room(room, [f"{number}"], new(number, pool_id="", room_id=room.room_id))
    await store.forget(2_000)
    assert (await store.opened_room("p1", "q")) is not None
    await store.forget(2_001)
    assert (await store.opened_room("p1", "q")) is None
    assert (await store.room("r0")).state is RoomState.OPEN


async def test_forgetting_spares_what_is_live_or_young(store: Store) -> None:
    await asked(store)
    await store.seated("m", "table", "e")
    await store.join(new(5, queued_ms=1))
    await store.join(new(6, queued_ms=1))
    await store.leave("t6-r")
    await store.join(new(7, queued_ms=9_000))
    await store.leave("t7-r")
    assert await store.forget(before_ms=8_000) == 1
    assert (await store.match("m")).state is MatchState.SEATED
    await store.table_closed("table")
    assert await store.forget(before_ms=8_000) == 4
    with pytest.raises(UnknownMatch):
        await store.match("m")
    assert await states(store, "t5-r", "t7-r") == ["waiting", "left"]


@pytest.mark.parametrize("steps", range(6))
async def test_a_restart_after_any_step_finds_everything_as_it_was(
    reopen: Open, steps: int
) -> None:
    store = await reopen()
    match = match_of(await four(store))
    if steps >= 1:
        await store.form(match)
    if steps >= 2:
        await store.held("m", HOLDS)
    if steps >= 3:
        await store.ask("m")
    if steps == 4:
        await store.seated("m", "table", "e")
    if steps == 5:
        await store.give_up("m", {"t0-r": POOR})
    tickets, matches = await store.live_tickets(), await store.unfinished_matches()
    store = await reopen()
    assert await store.live_tickets() == tickets
    assert await store.unfinished_matches() == matches
    assert len(tickets.tickets) == 4


async def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "matchmaking.db"
    await (await open_sqlite(path)).close()
    db = sqlite3.connect(path)
    db.execute("UPDATE alembic_version SET version_num = '9999'")
    db.commit()
    db.close()
    with pytest.raises(BadDatabase, match="revision 9999"):
        await open_sqlite(path)


PAIR = Apart(player_id="p1", other_id="p2", origin="operator", reason="collusion", case_id="c")


async def test_a_party_has_one_ticket_and_each_of_it_no_other(store: Store) -> None:
    pair = (Member(player_id="p1"), Member(player_id="p2"))
    first = (await store.join(new(1, members=pair))).ticket
    with pytest.raises(LiveTicket) as refused:
        await store.join(new(3, members=(Member(player_id="p3"), Member(player_id="p2"))))
    assert (refused.value.player_id, refused.value.ticket) == ("p2", first)
    assert await store.live_ticket("p2") == first
    assert await store.live_ticket("p3") is None
    await store.leave(first.ticket_id)
    assert not (await store.join(new(2))).replayed


async def test_seats_and_holds_of_a_party_are_each_players_own(store: Store) -> None:
    pair = (Member(player_id="p0"), Member(player_id="p9"))
    tickets = [(await store.join(new(0, members=pair))).ticket]
    tickets += [(await store.join(new(number))).ticket for number in (1, 2)]
    await store.form(match_of(tickets))
    await store.held("m", HOLDS)
    members = (await store.ticket("t0-r")).members
    assert [(one.player_id, one.seat, one.hold_ids) for one in members] == [
        ("p0", 0, ("h0",)),
        ("p9", 1, ("h1",)),
    ]


async def test_changes_are_told_once_each_as_the_tickets_stand(store: Store) -> None:
    first = await store.changes(0)
    await store.join(new(1))
    await store.join(new(2))
    await store.leave("t1-r")
    told = await store.changes(first.head)
    assert [(one.player_id, one.state) for one in told.tickets] == [
        ("p2", TicketState.WAITING),
        ("p1", TicketState.LEFT),
    ]
    assert (await store.live_tickets()).head == told.head
    assert await store.changes(told.head) == Changes([], told.head)


async def test_whom_players_met_and_avoid_is_on_their_next_ticket(store: Store) -> None:
    await asked(store)
    await store.seated("m", "table", "e")
    await store.table_closed("table")
    await store.keep_apart(Apart(player_id="p0", other_id="p7", origin="player"))
    ticket = (await store.join(new(0, "again"))).ticket
    assert ticket.met == {"p1", "p2", "p3"}
    assert ticket.apart == {"p7"}
    assert (await store.join(new(7))).ticket.apart == frozenset(), "the other does not learn of it"


async def test_a_pair_that_is_barred_is_so_for_both_and_for_tickets_that_wait(
    store: Store,
) -> None:
    await store.join(new(1))
    await store.join(new(2))
    changed = await store.keep_apart(PAIR)
    assert {one.player_id: one.apart for one in changed} == {"p1": {"p2"}, "p2": {"p1"}}
    assert await store.keep_apart(PAIR) == []
    assert await store.apart("p1") == [PAIR]
    assert [one.other_id for one in await store.apart("p2")] == ["p1"]
    changed = await store.bring_together(replace(PAIR, player_id="p2", other_id="p1"))
    assert [one.apart for one in changed] == [frozenset()] * 2
    assert await store.apart("p1") == []


async def test_a_ticket_that_waits_moves_to_another_revision(store: Store) -> None:
    await store.join(new(1))
    assert (await store.move("t1-r", 2)).revision == 2
    assert (await store.move("t1-r", 2)).version == 2
    await store.leave("t1-r")
    assert (await store.move("t1-r", 3)).revision == 2


async def test_a_pool_is_matched_by_one_owner_until_the_lease_ends(store: Store) -> None:
    assert await store.lease("a", {"x", "y"}, 60_000) == {"x", "y"}
    assert await store.lease("b", {"x", "z"}, 60_000) == {"z"}
    assert await store.lease("a", {"x", "y", "z"}, 60_000) == {"x", "y"}
    assert await store.lease("a", {"x"}, 0) == {"x"}

    async def taken_over() -> bool:
        return await store.lease("b", {"x", "y"}, 60_000) == {"x"}

    await eventually(taken_over)
    await store.give_up_leases("a")
    assert await store.lease("b", {"x", "y"}, 60_000) == {"x", "y"}


async def test_twenty_owners_at_once_have_each_pool_once(store: Store) -> None:
    pools = {f"pool {number}" for number in range(10)}
    held = await asyncio.gather(*(store.lease(f"o{n}", pools, 60_000) for n in range(20)))
    assert sorted(pool for mine in held for pool in mine) == sorted(pools)


async def test_pauses_are_kept_until_they_are_ended(reopen: Open) -> None:
    pause = Pause(closed=True, reason="maintenance", time_ms=7)
    store = await reopen()
    await store.pause("x", replace(pause, closed=False))
    await store.pause("x", pause)
    store = await reopen()
    assert await store.pauses() == {"x": pause}
    await store.pause("x", None)
    assert await store.pauses() == {}


async def test_two_stores_on_one_postgres_take_no_player_twice(tmp_path: Path) -> None:
    """One live ticket a player, from two connections and two replicas (nakama 2.7.0)."""
    database = await database_of(tmp_path, QUEUES)
    one, other = await open_postgres(database), await open_postgres(database)
    try:
        calls = [
            store.join(new(number % 5, f"r{number}-{place}"))
            for number in range(50)
            for place, store in enumerate((one, other))
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        joined = [one.ticket.player_id for one in answers if isinstance(one, Joined)]
        assert sorted(joined) == [f"p{number}" for number in range(5)]
        refused = [one for one in answers if not isinstance(one, Joined)]
        assert all(isinstance(one, LiveTicket) for one in refused)
        told = await other.changes(0)
        assert sorted(one.player_id for one in told.tickets) == sorted(joined)
    finally:
        await one.close()
        await other.close()


async def test_a_postgres_that_was_away_is_used_again(tmp_path: Path) -> None:
    store = await open_postgres(await database_of(tmp_path, QUEUES))
    try:
        await store.join(new(1))
        await execute(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'fangcheng-matchmaking'",
        )

        async def answers() -> bool:
            try:
                await store.check()
            except StoreUnavailable:
                return False
            return True

        await eventually(answers)
        assert (await store.join(new(1))).replayed
    finally:
        await store.close()


@pytest.fixture
async def quick_store() -> AsyncIterator[Store]:
    """A store in memory where there is such a place, for tests of very many steps."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        store = await open_sqlite(f"{folder}/matchmaking.db")
        yield store
        await store.close()


async def test_cancel_against_commit_ten_thousand_times_has_one_outcome(
    quick_store: Store,
) -> None:
    """The race of open-match and nakama: a player leaves while a match forms around it."""
    store = quick_store
    outcomes = set()
    for turn in range(1_000):  # ten calls to leave in each
        joined = await asyncio.gather(*(store.join(new(seat, f"r{turn}")) for seat in range(4)))
        tickets = [one.ticket for one in joined]
        match_id = f"m{turn}"
        leaver = turn % 4
        calls: list[Awaitable[object]] = [
            store.form(match_of(tickets, match_id)),
            *(store.leave(tickets[leaver].ticket_id) for _ in range(10)),
        ]
        if turn % 8 >= 4:
            calls.reverse()
        first = (await asyncio.gather(*calls, return_exceptions=True))[0 if turn % 8 < 4 else -1]
        left = await store.ticket(tickets[leaver].ticket_id)
        if isinstance(first, NotWaiting):
            assert left.state is TicketState.LEFT
            assert await states(store, *(one.ticket_id for one in tickets)) == [
                "left" if seat == leaver else "waiting" for seat in range(4)
            ]
        else:
            assert not isinstance(first, BaseException)
            assert (left.state, left.leaving) == (TicketState.MATCHED, True)
            await store.give_up(match_id, {})
            await store.returned(match_id)
        outcomes.add(type(first))
        await asyncio.gather(*(store.leave(one.ticket_id) for one in tickets))
    assert outcomes == {list, NotWaiting}
