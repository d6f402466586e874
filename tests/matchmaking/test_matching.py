"""Who is seated with whom: ratings, parties, and those who are kept apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fangcheng_matchmaking.core import (
    SEATS,
    Member,
    Mode,
    Pool,
    Rating,
    Spread,
    Terms,
    Ticket,
)
from fangcheng_matchmaking.matching import MOST_TRIES, Queue

SPREAD = Spread(points=100, widen_per_second=50, widest=1_000)
WIDEST_AFTER_MS = 18_000
POOL = Pool(
    pool_id="pool",
    name="pool",
    terms=Terms(rule_set="baishan_kele"),
    most_party=SEATS,
    rating=Rating(currency="points", spread=SPREAD),
    rematch_after_ms=5_000,
)


def ticket(number: int, rating: float = 0, size: int = 1, at: int = 0, **more: object) -> Ticket:
    """Ticket 7 of two players is t7 of p7 and p7.1."""
    ids = [f"p{number}", *(f"p{number}.{other}" for other in range(1, size))]
    return Ticket(
        ticket_id=f"t{number}",
        request_id="r",
        members=tuple(Member(player_id=one) for one in ids),
        pool_id="pool",
        rating=rating,
        queued_ms=at,
        number=number,
        **more,
    )


def queue_of(*tickets: Ticket, pool: Pool = POOL) -> Queue:
    queue = Queue(pool)
    for one in tickets:
        queue.put(one)
    return queue


def taken(queue: Queue, now_ms: int) -> list[set[str]]:
    return [{one.ticket_id for one in group} for group in queue.take(now_ms)]


def names(*numbers: int) -> set[str]:
    return {f"t{number}" for number in numbers}


def test_who_is_too_far_off_waits_until_the_spread_reaches_him() -> None:
    queue = queue_of(*(ticket(number, 300 * (number == 3)) for number in range(4)))
    assert taken(queue, 3_999) == []
    assert queue.next_ms(3_999) == 4_000
    assert taken(queue, 4_000) == [names(0, 1, 2, 3)]


def test_nobody_meets_whom_even_the_widest_spread_does_not_reach() -> None:
    queue = queue_of(*(ticket(number, 1_001 * (number == 3)) for number in range(4)))
    assert taken(queue, 10**9) == []
    assert queue.next_ms(10**9) is None


def test_a_lone_extreme_rating_is_seated_as_soon_as_his_own_spread_reaches_three() -> None:
    """Others near each other come and go all the time: they do not take each other from him."""
    queue = queue_of(ticket(0, 1_000))
    seated_at = None
    for second in range(1, 60):
        for one in range(3):
            queue.put(ticket(10 * second + one, one, at=1_000 * second))
        if any("t0" in group for group in taken(queue, 1_000 * second)):
            seated_at = second
            break
    assert seated_at == 18


def test_without_an_end_to_the_spread_anybody_is_seated() -> None:
    pool = replace(
        POOL, rating=Rating(currency="points", spread=Spread(points=0, widen_per_second=1))
    )
    queue = queue_of(*(ticket(number, 10**6 * number) for number in range(4)), pool=pool)
    assert taken(queue, 10**8) == []
    assert taken(queue, 3 * 10**9) == [names(0, 1, 2, 3)]


def test_the_nearest_ratings_are_taken_and_of_equals_the_oldest() -> None:
    queue = queue_of(
        ticket(0, 0), ticket(1, 90), ticket(2, -30), ticket(3, 20), ticket(4, 20), ticket(5, -80)
    )
    assert taken(queue, 0) == [names(0, 3, 4, 2)]


def test_parties_are_seated_whole() -> None:
    assert taken(queue_of(ticket(0, size=4)), 0) == [names(0)]
    assert taken(queue_of(ticket(0, size=2), ticket(1, size=2)), 0) == [names(0, 1)]
    assert taken(queue_of(ticket(0, size=3), ticket(1)), 0) == [names(0, 1)]
    assert taken(queue_of(ticket(0, size=2), ticket(1), ticket(2)), 0) == [names(0, 1, 2)]
    assert taken(queue_of(ticket(0, size=3), ticket(1, size=2), ticket(2, size=3)), 0) == []
    assert taken(queue_of(ticket(0, size=3), ticket(1, size=3), ticket(2)), 0) == [names(0, 2)]


def test_a_party_of_three_is_not_passed_over_by_singles_who_come_four_at_a_time() -> None:
    queue = queue_of(ticket(0, size=3, at=0), *(ticket(one, at=1) for one in range(1, 5)))
    assert taken(queue, 1) == [names(0, 1)]


def test_whom_one_avoids_he_does_not_meet_whoever_is_older() -> None:
    for avoider in (0, 3):
        tickets = [ticket(number) for number in range(4)]
        tickets[avoider] = replace(tickets[avoider], apart=frozenset({f"p{3 - avoider}"}))
        queue = queue_of(*tickets)
        assert taken(queue, 10**9) == []
        queue.put(ticket(4))
        assert taken(queue, 10**9) == [names(0, 1, 2, 4)]


def test_two_who_avoid_each_other_do_not_keep_a_third_waiting() -> None:
    """The nearest three would not do: the search goes on behind them."""
    foes = [ticket(1, 1, apart=frozenset({"p2"})), ticket(2, 2, apart=frozenset({"p1"}))]
    queue = queue_of(ticket(0), *foes, ticket(3, 50), ticket(4, 60))
    assert taken(queue, 0) == [names(0, 1, 3, 4)]


def test_who_met_at_the_last_table_meet_again_only_after_a_while() -> None:
    met = [ticket(0), ticket(1, met=frozenset({"p0"})), ticket(2), ticket(3)]
    queue = queue_of(*met)
    assert taken(queue, 4_999) == []
    assert queue.next_ms(4_999) == 5_000
    assert taken(queue, 5_000) == [names(0, 1, 2, 3)]


def test_who_shares_an_origin_is_kept_apart_where_the_pool_says_so() -> None:
    tickets = [ticket(0, traits=frozenset({"a", "b"})), ticket(1, traits=frozenset({"b", "c"}))]
    tickets += [ticket(2, traits=frozenset({"d"})), ticket(3, traits=frozenset({"e"}))]
    strict = replace(POOL, mode=Mode.ANTI_CHEAT, most_party=1)
    queue = queue_of(*tickets, pool=strict)
    assert taken(queue, 10**9) == []
    queue.put(ticket(4, traits=frozenset({"f"})))
    assert taken(queue, 10**9) == [names(0, 2, 3, 4)]
    assert taken(queue_of(*tickets), 0) == [names(0, 1, 2, 3)]


def test_bots_fill_up_a_table_of_players_who_may_meet() -> None:
    pool = replace(POOL, fill_with_bots_after_ms=1_000)
    spare = [ticket(number, standby=True, is_bot=True) for number in range(10, 13)]
    queue = queue_of(ticket(0), ticket(1, size=2), ticket(2, 900), *spare, pool=pool)
    assert taken(queue, 999) == []
    assert taken(queue, 1_000) == [names(0, 1, 10)]
    assert queue.standby == 2
    assert taken(queue, 1_001) == [], "three bots are not there for the last"


def test_one_round_ends_after_so_many_tries_and_the_next_goes_on_from_there() -> None:
    lonely = [ticket(number, 10_000 * number, at=number) for number in range(MOST_TRIES + 5)]
    four = [ticket(number, 5_000, at=number) for number in range(10_000, 10_004)]
    queue = queue_of(*lonely, *four)
    assert taken(queue, 10_004) == []
    assert queue.next_ms(10_004) == 10_004, "others have not had their turn"
    assert taken(queue, 10_004) == [names(*range(10_000, 10_004))]


def test_a_hundred_thousand_tickets_are_all_seated() -> None:
    pool = replace(POOL, rating=Rating(currency="points", spread=Spread(points=50)))
    queue = Queue(pool)
    for number in range(100_000):
        queue.put(ticket(number, number * 7_919 % 3_000, at=number))
    assert queue.position("t99999") == 100_000
    while queue.next_ms(100_000) == 100_000 or len(queue) == 100_000:
        queue.take(100_000)
    assert len(queue) < SEATS * 3_000 / 50


def together(group: Iterable[Ticket], now_ms: int) -> bool:
    """What a group has to be, told anew: four, within the spread of one who chose the others."""
    group = list(group)
    if sum(len(one.members) for one in group) != SEATS:
        return False
    if not any(
        max(abs(one.rating - chooser.rating) for one in group)
        <= SPREAD.at(now_ms - chooser.queued_ms)
        for chooser in group
    ):
        return False
    return not any(
        set(one.apart) & set(other.player_ids)
        or set(other.apart) & set(one.player_ids)
        or (
            now_ms - min(one.queued_ms, other.queued_ms) < POOL.rematch_after_ms
            and (set(one.met) & set(other.player_ids) or set(other.met) & set(one.player_ids))
        )
        for one, other in combinations(group, 2)
    )


def possible(waiting: list[Ticket], now_ms: int) -> bool:
    return any(
        together(group, now_ms)
        for count in range(1, SEATS + 1)
        for group in combinations(waiting, count)
    )


@dataclass(frozen=True)
class Comes:
    at: int
    size: int = 1
    rating: int = 0
    avoids: frozenset[int] = frozenset()
    met: frozenset[int] = frozenset()


some_others = st.frozensets(st.integers(0, 9), max_size=2)
arrivals = st.lists(
    st.builds(
        Comes,
        at=st.integers(0, 30_000),
        size=st.sampled_from([1, 1, 1, 2, 2, 3, 4]),
        rating=st.sampled_from([0, 10, 120, 400, 1_000, 1_400, 5_000]),
        avoids=some_others,
        met=some_others,
    ),
    max_size=10,
)
LONE_EXPERT = [Comes(0, rating=1_000), *(Comes(1_000 * at) for at in range(1, 9))]
TWO_AND_TWO = [Comes(0, 2, 0), Comes(0, 1, 0), Comes(500, 2, 400), Comes(900, 1, 1_400)]
THREE_AND_ONE = [Comes(0, 3, 0), Comes(1, 2, 0), Comes(2, 3, 10), Comes(3, 1, 400)]
MET_BEFORE = [Comes(0, met=frozenset({1})), *(Comes(at) for at in (1, 2, 3))]


@settings(deadline=None, max_examples=60)
@example(LONE_EXPERT)
@example(TWO_AND_TWO)
@example(THREE_AND_ONE)
@example(MET_BEFORE)
@given(arrivals)
def test_no_ticket_that_could_be_seated_waits_and_whoever_is_seated_may_sit_together(
    pattern: list[Comes],
) -> None:
    """Tickets choose when one comes and when the queue says so. Just before, nothing is possible;
    so whoever has waited until his spread is widest has no three others whom he could meet.
    """
    pattern = sorted(pattern, key=lambda one: one.at)
    coming = [
        ticket(
            number,
            one.rating,
            one.size,
            one.at,
            apart=frozenset(f"p{other}" for other in one.avoids),
            met=frozenset(f"p{other}" for other in one.met),
        )
        for number, one in enumerate(pattern)
    ]
    queue = Queue(POOL)
    waiting: list[Ticket] = []
    now_ms = 0
    while True:
        while coming and coming[0].queued_ms <= now_ms:
            queue.put(coming[0])
            waiting.append(coming.pop(0))
        for group in queue.take(now_ms):
            assert together(group, now_ms)
            for one in group:
                waiting.remove(one)
        assert not possible(waiting, now_ms)
        due = [at for at in (queue.next_ms(now_ms), *(one.queued_ms for one in coming[:1])) if at]
        if not due:
            break
        assert min(due) > now_ms, "it is idle in between"
        now_ms = min(due)
        assert not possible(waiting, now_ms - 1), "somebody was woken too late"
    assert not possible(waiting, now_ms + max(WIDEST_AFTER_MS, POOL.rematch_after_ms))
    assert [queue.position(one.ticket_id) for one in waiting] == list(range(1, len(waiting) + 1))
