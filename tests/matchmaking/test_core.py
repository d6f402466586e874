"""The matchmaker's decisions, by example and by property."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fangcheng_matchmaking.core import (
    SEATS,
    Member,
    Pool,
    Terms,
    Ticket,
    TicketState,
    form_match,
    shared_labels,
)
from fangcheng_matchmaking.matching import Queue

POOL = Pool(pool_id="pool", name="pool", terms=Terms(rule_set="baishan_kele"))


def ticket(
    number: int, queued_ms: int = 0, *, standby: bool = False, profile: bytes = b"", **more: object
) -> Ticket:
    return Ticket(
        ticket_id=f"t{number}",
        request_id="r",
        members=(Member(player_id=f"p{number}", profile=profile),),
        pool_id="pool",
        queued_ms=queued_ms,
        number=number,
        standby=standby,
        **more,
    )


def queue_of(*tickets: Ticket, fill_after_ms: int = 0) -> Queue:
    queue = Queue(replace(POOL, fill_with_bots_after_ms=fill_after_ms, rematch_after_ms=0))
    for one in tickets:
        queue.put(one)
    return queue


def groups(queue: Queue, now_ms: int) -> list[tuple[Ticket, ...]]:
    """What the queue would seat then; it keeps them."""
    taken = queue.take(now_ms)
    for group in taken:
        for one in group:
            queue.put(one)
    return taken


def ids(seated: list[tuple[Ticket, ...]]) -> list[list[str]]:
    return [[one.ticket_id for one in group] for group in seated]


def test_three_players_wait_for_a_fourth() -> None:
    queue = queue_of(*(ticket(number) for number in range(3)))
    assert groups(queue, 10**9) == []
    queue.put(ticket(3))
    assert ids(groups(queue, 0)) == [["t0", "t1", "t2", "t3"]]


def test_the_oldest_are_seated_first_whatever_the_order_of_their_numbers() -> None:
    queue = queue_of(*(ticket(number, queued_ms=100 - number) for number in range(6)))
    assert ids(groups(queue, 200)) == [["t5", "t4", "t3", "t2"]]
    assert [queue.position(f"t{number}") for number in range(6)] == [6, 5, 4, 3, 2, 1]


def test_a_ticket_that_left_is_in_no_group_and_has_no_position() -> None:
    queue = queue_of(*(ticket(number) for number in range(5)))
    queue.remove("t1")
    queue.remove("t1")
    assert ids(groups(queue, 0)) == [["t0", "t2", "t3", "t4"]]
    assert queue.position("t1") == 0
    assert len(queue) == 4


def test_a_ticket_put_again_is_in_the_queue_once() -> None:
    queue = queue_of(ticket(1), ticket(1), ticket(2))
    assert len(queue) == 2


def test_a_returned_ticket_has_its_old_place() -> None:
    queue = queue_of(*(ticket(number, queued_ms=number) for number in range(8)))
    for number in range(4):
        queue.remove(f"t{number}")
    queue.put(ticket(2, queued_ms=2, state=TicketState.WAITING, version=3))
    assert queue.position("t2") == 1


def test_a_lonely_player_gets_bots_after_the_time_and_not_before() -> None:
    spare = [ticket(number, standby=True) for number in range(10, 15)]
    queue = queue_of(ticket(1, queued_ms=1_000), *spare, fill_after_ms=500)
    assert queue.next_ms(1_000) == 1_000, "he has not chosen yet"
    assert groups(queue, 1_000) == []
    assert queue.next_ms(1_000) == 1_500
    assert groups(queue, 1_499) == []
    assert ids(groups(queue, 1_500)) == [["t1", "t10", "t11", "t12"]]


def test_too_few_bots_fill_nothing() -> None:
    queue = queue_of(ticket(1), ticket(10, standby=True), ticket(11, standby=True), fill_after_ms=1)
    assert groups(queue, 10**6) == []
    assert queue.next_ms(10**6) is None, "only another bot can help"


def test_a_pool_that_does_not_fill_never_seats_standby_tickets() -> None:
    queue = queue_of(ticket(1), *(ticket(number, standby=True) for number in range(10, 20)))
    assert groups(queue, 10**9) == []
    assert queue.next_ms(10**9) is None


def test_a_table_of_standby_tickets_alone_is_never_made() -> None:
    queue = queue_of(*(ticket(number, standby=True) for number in range(8)), fill_after_ms=1)
    assert queue.next_ms(0) is None
    assert groups(queue, 10**9) == []
    assert len(queue) == 0
    assert queue.standby == 8


def test_players_who_could_sit_together_are_not_given_bots() -> None:
    players = [ticket(number) for number in range(5)]
    spare = [ticket(number, standby=True) for number in range(10, 13)]
    seated = groups(queue_of(*players, *spare, fill_after_ms=1), 10**6)
    assert ids(seated) == [["t0", "t1", "t2", "t3"], ["t4", "t10", "t11", "t12"]]


queues = st.lists(st.tuples(st.integers(0, 5_000), st.booleans()), max_size=40)


@given(queues, st.integers(0, 2_000), st.integers(0, 10_000))
def test_groups_are_four_distinct_players_oldest_first_and_nobody_twice(
    arrivals: list[tuple[int, bool]], fill_after_ms: int, now_ms: int
) -> None:
    tickets = [
        ticket(number, queued_ms, standby=standby)
        for number, (queued_ms, standby) in enumerate(arrivals)
    ]
    queue = queue_of(*tickets, fill_after_ms=fill_after_ms)
    taken = groups(queue, now_ms)
    seated = Counter(one.player_id for group in taken for one in group)
    assert all(times == 1 for times in seated.values())
    assert all(len(group) == SEATS for group in taken)
    assert all(any(not one.standby for one in group) for group in taken)

    players = sorted((one for one in tickets if not one.standby), key=lambda one: one.age_key)
    seated_players = [one for one in players if one.player_id in seated]
    assert seated_players == players[: len(seated_players)], "an older ticket was passed over"
    assert len(players) - len(seated_players) < SEATS, "four players were left waiting"

    fills = [group for group in taken if any(one.standby for one in group)]
    for group in fills:
        oldest = min(one.queued_ms for one in group if not one.standby)
        assert fill_after_ms
        assert now_ms >= oldest + fill_after_ms
    assert len(fills) <= 1


@given(queues, st.integers(1, 2_000))
def test_at_the_time_that_it_announces_the_queue_fills(
    arrivals: list[tuple[int, bool]], fill_after_ms: int
) -> None:
    queue = queue_of(
        *(
            ticket(number, queued_ms, standby=standby)
            for number, (queued_ms, standby) in enumerate(arrivals)
        ),
        fill_after_ms=fill_after_ms,
    )
    queue.take(0)
    due = queue.next_ms(0)
    if due is None:
        return

    def filled(now_ms: int) -> int:
        return sum(any(one.standby for one in group) for group in groups(queue, now_ms))

    assert filled(due - 1) == 0
    assert filled(due) == 1 or queue.standby < SEATS - 1


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(0, 2**32))
def test_nobody_starves_while_others_arrive(arrivals: list[int], seed: int) -> None:
    """In any pattern of arrivals at most three wait, and those are the newest."""
    queue = queue_of()
    number = 0
    for now_ms, count in enumerate(arrivals):
        for _ in range(count):
            queue.put(ticket(number, queued_ms=now_ms))
            number += 1
        for group in groups(queue, now_ms):
            match = form_match("m", POOL, group, now_ms, random.Random(seed))
            for seat in match.seats:
                queue.remove(seat.ticket_id)
        assert len(queue) < SEATS
        assert all(queue.position(f"t{old}") == 0 for old in range(number - len(queue)))


def test_seats_are_drawn_by_the_chance_that_is_passed_in() -> None:
    group = [ticket(number) for number in range(4)]
    first = form_match("m", POOL, group, 0, random.Random(1))
    again = form_match("m", POOL, group, 0, random.Random(1))
    assert first == again
    orders = {
        tuple(seat.player_id for seat in form_match("m", POOL, group, 0, random.Random(s)).seats)
        for s in range(500)
    }
    assert len(orders) == 24


def test_a_match_keeps_terms_profiles_and_who_is_a_bot() -> None:
    group = [ticket(number, profile=bytes([number]), is_bot=number == 2) for number in range(4)]
    match = form_match("m", POOL, group, 77, random.Random(5))
    assert match.terms is POOL.terms
    assert match.formed_ms == 77
    assert not match.filled
    by_player = {seat.player_id: seat for seat in match.seats}
    assert {player: seat.profile for player, seat in by_player.items()} == {
        f"p{number}": bytes([number]) for number in range(4)
    }
    assert [player for player, seat in by_player.items() if seat.is_bot] == ["p2"]


def test_labels_that_all_agree_on_go_to_the_table() -> None:
    assert shared_labels([]) == {}
    assert shared_labels([{"club": "a", "app": "x"}, {"club": "b", "app": "x"}]) == {"app": "x"}
    assert shared_labels([{"club": "a"}, {}]) == {}


def test_standby_tickets_have_no_say_in_the_labels() -> None:
    group = [
        ticket(1, labels={"club": "a"}),
        *(ticket(number, standby=True) for number in range(2, 5)),
    ]
    match = form_match("m", POOL, group, 0, random.Random(0))
    assert match.labels == {"club": "a"}
    assert match.filled
