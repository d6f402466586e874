"""Who of a queue gets a seat at a table under way, and the match that offers it."""

from __future__ import annotations

from dataclasses import replace

from fangcheng_matchmaking.core import Mode, Pool, Ticket, Vacancy, form_offer
from fangcheng_matchmaking.matching import MOST_SEEN, Queue
from tests.matchmaking.test_matching import POOL, queue_of, ticket

CASUAL = replace(POOL, rating=None)
SEATED = [ticket(number, at=-100_000) for number in (91, 92, 93)]
TABLE = Vacancy(
    table_id="table",
    seat=2,
    player_ids=frozenset({"p91", "p92", "p93"}),
    tickets=tuple(SEATED),
    sat=frozenset({"p90", "p91", "p92", "p93"}),
    since_ms=0,
)


def filled(queue: Queue, now_ms: int = 0, vacancy: Vacancy = TABLE) -> str | None:
    found, _ = queue.fill(vacancy, now_ms)
    return None if found is None else found.ticket_id


def with_seated(first: Ticket) -> Vacancy:
    return replace(TABLE, tickets=(first, *SEATED[1:]))


def of(pool: Pool, *tickets: Ticket) -> Queue:
    return queue_of(*tickets, pool=pool)


def test_the_oldest_gets_the_seat_and_is_out_of_the_queue() -> None:
    queue = of(CASUAL, *(ticket(number, at=10 - number) for number in range(3)))
    assert [filled(queue) for _ in range(4)] == ["t2", "t1", "t0", None]
    assert len(queue) == 0


def test_a_party_does_not_get_it() -> None:
    assert filled(of(CASUAL, ticket(0, size=2), ticket(1, at=5))) == "t1"


def test_who_sits_there_or_has_does_not_get_it() -> None:
    assert filled(of(CASUAL, ticket(90), ticket(91), ticket(1, at=5))) == "t1"


def test_who_waits_is_rated_about_as_all_who_sit_there() -> None:
    far = with_seated(ticket(91, rating=300, at=-100_000))
    queue = queue_of(ticket(0))
    assert filled(queue, 3_999, far) is None
    assert filled(queue, 4_000, far) == "t0"
    assert filled(queue_of(ticket(0)), 10**9, with_seated(ticket(91, rating=1_001))) is None


def test_who_avoids_or_is_avoided_by_one_who_sits_there_does_not_get_it() -> None:
    avoided = with_seated(ticket(91, apart=frozenset({"p0"})))
    assert filled(of(CASUAL, ticket(0), ticket(1, at=5)), 5, avoided) == "t1"
    avoiding = ticket(0, apart=frozenset({"p92"}))
    assert filled(of(CASUAL, avoiding, ticket(1, at=5)), 5) == "t1"


def test_who_avoids_one_whom_an_operator_has_seated_does_not_get_it() -> None:
    stranger = replace(TABLE, player_ids=TABLE.player_ids | {"stranger"})
    assert filled(of(CASUAL, ticket(0, apart=frozenset({"stranger"}))), 5, stranger) is None


def test_who_shares_a_trait_with_one_who_sits_there_gets_it_but_where_it_is_forbidden() -> None:
    one = with_seated(ticket(91, traits=frozenset({"device"})))
    strict = replace(CASUAL, mode=Mode.ANTI_CHEAT)
    for pool, gets in ((CASUAL, "t0"), (strict, None)):
        assert filled(of(pool, ticket(0, traits=frozenset({"device"}))), 0, one) == gets


def test_who_has_just_met_one_who_sits_there_waits_however_long_that_one_has_sat() -> None:
    queue = of(CASUAL, ticket(0, met=frozenset({"p93"})))
    assert filled(queue, 4_999) is None
    assert filled(queue, 5_000) == "t0"


def test_bots_come_where_the_pool_is_filled_after_its_time_and_no_player_does() -> None:
    bot = ticket(7, standby=True, is_bot=True)
    assert filled(of(CASUAL, bot), 10**9) is None
    bots = replace(CASUAL, fill_with_bots_after_ms=1_000)
    queue = of(bots, ticket(90, standby=True), bot, ticket(0, met=frozenset({"p93"})))
    assert filled(queue, 999) is None
    assert filled(queue, 1_000) == "t7"
    assert filled(of(bots, bot, ticket(0, at=900)), 1_000) == "t0"


def test_a_bot_that_sits_there_keeps_nobody_away() -> None:
    bot = ticket(91, rating=10**6, met=frozenset({"p0"}), standby=True)
    assert filled(queue_of(ticket(0)), 0, with_seated(bot)) == "t0"


def test_a_crowd_that_may_not_have_it_is_gone_through_by_and_by() -> None:
    crowd = [ticket(number, apart=frozenset({"p91"})) for number in range(2 * MOST_SEEN)]
    queue = of(CASUAL, *crowd, ticket(5_000, at=5))
    after, looks = None, 0
    while True:
        found, after = queue.fill(TABLE, 5, after)
        looks += 1
        if after is None:
            break
    assert found is not None
    assert (found.ticket_id, looks) == ("t5000", 3)
    assert queue.fill(TABLE, 5) != (None, None)  # and from the front again


def test_the_offer_is_a_match_of_one_for_the_seat() -> None:
    match = form_offer("m", POOL, TABLE, ticket(3), 7)
    assert [(one.ticket_id, one.player_id) for one in match.seats] == [("t3", "p3")]
    assert (match.table_id, match.seat, match.terms, match.formed_ms) == (
        "table",
        2,
        POOL.terms,
        7,
    )
    assert match.filled is False
