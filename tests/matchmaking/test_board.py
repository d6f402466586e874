"""What watchers are told, and what hides what."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from fangcheng_matchmaking.board import MOST_PENDING, PACE_SEATINGS, Board, Pace
from fangcheng_matchmaking.core import Member, Offer, Pool, Terms, Ticket, TicketState

POOL = Pool(pool_id="pool", name="pool", terms=Terms(rule_set="baishan_kele"))
TICKET = Ticket(
    ticket_id="t",
    request_id="r",
    members=(Member(player_id="p"),),
    pool_id="pool",
    queued_ms=0,
    number=1,
)


def changed(ticket: Ticket, state: TicketState) -> Ticket:
    return replace(ticket, state=state, version=ticket.version + 1)


async def test_an_older_state_never_hides_a_newer_one() -> None:
    board = Board({"pool": Offer(pool=POOL)})
    matched = changed(TICKET, TicketState.MATCHED)
    board.put(matched)
    board.put(TICKET)
    assert board.view(TICKET).position == 0
    with board.watching("t") as watch:
        watch.show(board.view(matched))
        watch.show(board.view(TICKET))
        assert (await watch.next()).ticket == matched
        board.put(changed(matched, TicketState.LEFT))
        assert (await watch.next()).is_last


async def test_a_slow_watcher_keeps_the_outcome_and_costs_no_more_than_its_bound() -> None:
    board = Board({"pool": Offer(pool=POOL)})
    ticket = TICKET
    with board.watching("t") as watch:
        for _ in range(10 * MOST_PENDING):
            ticket = changed(ticket, TicketState.MATCHED)
            board.put(ticket)
            ticket = changed(ticket, TicketState.WAITING)
            board.put(ticket)
        board.put(changed(ticket, TicketState.LEFT))
        views = [await watch.next()]
        while not views[-1].is_last:
            views.append(await watch.next())
    assert len(views) == MOST_PENDING
    versions = [view.ticket.version for view in views]
    assert versions == sorted(versions)


async def test_only_the_newest_position_is_kept_for_a_watcher() -> None:
    board = Board({"pool": Offer(pool=POOL)})
    others = [replace(TICKET, ticket_id=f"o{n}", number=0, queued_ms=-n) for n in range(1, 4)]
    board.put(TICKET, *others)
    with board.watching("t") as watch:
        for other in others:
            board.put(changed(other, TicketState.LEFT))
            board.show_positions()
        assert (await watch.next()).position == 1
        reading = asyncio.ensure_future(watch.next())
        await asyncio.sleep(0)
        assert not reading.done()
        reading.cancel()
    assert not board.moved.is_set()


async def test_watches_that_ended_leave_nothing() -> None:
    board = Board({"pool": Offer(pool=POOL)})
    board.put(TICKET)
    for _ in range(10_000):
        with board.watching("t") as watch:
            watch.show(board.view(TICKET))
    assert not board._watches


def test_an_estimate_is_made_of_the_pace_of_the_last_seatings() -> None:
    pace = Pace()
    assert pace.estimate_ms(5) is None
    pace.seated(1_000, 4)
    assert pace.estimate_ms(5) is None, "one seating is no pace"
    pace.seated(3_000, 4)
    pace.seated(5_000, 4)
    assert pace.estimate_ms(1) == 500
    assert pace.estimate_ms(8) == 4_000
    for _ in range(PACE_SEATINGS):
        pace.seated(9_000, 4)
    assert pace.estimate_ms(8) == 0


async def test_who_waits_is_told_how_long_yet_and_a_standby_ticket_is_not() -> None:
    board = Board({"pool": Offer(pool=POOL)})
    board.put(TICKET, replace(TICKET, ticket_id="bot", standby=True))
    for now_ms in (0, 8_000):
        board.note_seated("pool", now_ms, 4)
    assert board.view(TICKET).estimate_ms == 2_000
    assert board.view(replace(TICKET, ticket_id="bot", standby=True)).estimate_ms is None


async def test_tickets_taken_for_a_match_that_was_not_formed_wait_again() -> None:
    board = Board({"pool": Offer(pool=POOL)})
    tickets = [replace(TICKET, ticket_id=f"t{n}", number=n) for n in range(4)]
    tickets = [replace(one, members=(Member(player_id=f"p{one.number}"),)) for one in tickets]
    board.put(*tickets)
    (queue,) = board.of_pool("pool")
    (group,) = queue.take(10**6)
    assert len(queue) == 0
    board.put(changed(tickets[2], TicketState.LEFT))
    board.put_back(group)
    assert [queue.position(one.ticket_id) for one in tickets] == [1, 2, 0, 3]
