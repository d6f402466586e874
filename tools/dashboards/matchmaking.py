"""Matchmaking: who waits, how long, what comes of it, and what is left behind."""

from __future__ import annotations

from .board import Board, Limits, Link, Panel, Query, Row, Variable, stat
from .promql import MATCHMAKING, percentile, percentiles, rate, share_of

MINE = 'instance=~"$matchmaker"'
OF = f'{MINE}, pool=~"$pool"'
WAITS = "fangcheng_matchmaking_wait_seconds"
WAITING = "fangcheng_matchmaking_waiting_tickets"
"""Each replica tells all, so that the sum of theirs would be too many."""
OLDEST = f"fangcheng_matchmaking_oldest_ticket_age_seconds{{{OF}}}"


def _rate_by(metric: str, label: str, match: str = OF) -> tuple[Query, ...]:
    """A counter's growth by a label."""
    query = rate(f"{metric}{{{match}}}", label)
    return (Query(query, f"{{{{{label}}}}}"),)


_TILES = (
    stat(
        "Players waiting",
        "Players in the queues. Where it only grows, nobody is seated: look at the age of the "
        "oldest ticket, pool by pool.",
        "none",
        f'sum(max by (pool) ({WAITING}{{{OF}, kind="player"}}))',
    ),
    stat(
        "Oldest ticket",
        "How long the longest waiting player waits already. Where it only grows, a pool is stuck: "
        "see whether it is paused and whether steps are repeated.",
        "s",
        f"max({OLDEST})",
        Limits(3, 30),
        to=Link("fangcheng-matchmaking", "Age of the oldest ticket"),
    ),
    stat(
        "Seated within 3 s",
        "Share of players who had their seat 3 s after they joined. Below 99 % our promise "
        "breaks: let bots fill up sooner, or find what repeats the steps.",
        "percentunit",
        share_of(
            rate(f'{WAITS}_bucket{{{OF}, le="3.0"}}'),
            rate(f"{WAITS}_count{{{OF}}}"),
            MATCHMAKING,
            of_nothing=1,
        ),
        Limits(0.99, 0.95),
        to=Link("fangcheng-matchmaking", "From the queue to the seat"),
    ),
    stat(
        "Matches a minute",
        "Matches that got their table. At 0 while players wait, look at the matches under way and "
        "at the steps that are repeated.",
        "cpm",
        "60 * " + rate(f'fangcheng_matchmaking_matches_total{{{OF}, outcome="seated"}}'),
        to=Link("fangcheng-matchmaking", "Matches by outcome"),
    ),
    stat(
        "Matches under way",
        "Matches that are neither seated nor returned. For a moment each is; where it stays, "
        "wallet or tables do not answer.",
        "none",
        f"sum(fangcheng_matchmaking_unfinished_matches{{{MINE}}})",
        to=Link("fangcheng-matchmaking", "Steps that are repeated"),
    ),
    stat(
        "Tickets that failed",
        "Tickets that could not be seated, a minute. Those without means are usual; others are a "
        "fault: look at the reasons.",
        "cpm",
        f"60 * {rate(f'fangcheng_matchmaking_failed_tickets_total{{{OF}}}')}",
        to=Link("fangcheng-matchmaking", "Why tickets fail"),
    ),
)

_WAIT = (
    Panel(
        "Waiting players",
        "Who waits, by pool. A pool that only grows has too few players for its terms, or is "
        "stuck: its oldest ticket tells which.",
        "none",
        (
            Query(
                f'max by (pool) ({WAITING}{{{OF}, kind="player"}})',
                "{{pool}}",
            ),
        ),
        stacked=True,
    ),
    Panel(
        "Age of the oldest ticket",
        "How long the longest waiting player of a pool waits already; the line is what we "
        "promise. Where it only grows, the pool is stuck.",
        "s",
        (Query(f"max by (pool) ({OLDEST})", "{{pool}}"),),
        promise=3,
    ),
    Panel(
        "From the queue to the seat",
        "How long players waited who got a seat; the line is what we promise. Above it, see which "
        "pool it is and whether bots fill it up.",
        "s",
        percentiles(f"{WAITS}_bucket{{{OF}}}", MATCHMAKING),
        promise=3,
    ),
    Panel(
        "Wait by pool",
        "The slowest tenth of each pool. A slow pool with players in it spreads ratings too "
        "narrowly; one without needs bots or fewer pools beside it.",
        "s",
        (Query(percentile(0.9, f"{WAITS}_bucket{{{OF}}}", MATCHMAKING, pool="none"), "{{pool}}"),),
        promise=3,
    ),
    Panel(
        "Waits by how long they were",
        "All waits of a minute. Two bands are usual, players among themselves and those whom bots "
        "joined; a third above them is a fault.",
        "s",
        (
            Query(
                f"60 * {rate(f'{WAITS}_bucket{{{OF}}}', 'le')}",
                "{{le}}",
            ),
        ),
        kind="heatmap",
    ),
    Panel(
        "Bots on standby",
        "Bots that wait to fill tables up, by pool. At 0 in a pool that is filled up, its players "
        "wait for people: start bots (fangcheng bots).",
        "none",
        (
            Query(
                f'max by (pool) ({WAITING}{{{OF}, kind="standby"}})',
                "{{pool}}",
            ),
        ),
    ),
)

_OUTCOME = (
    Panel(
        "Matches by outcome",
        "A second. Those returned fell through at the wallet or a table, and their players queue "
        "on: look at why tickets fail and which steps are repeated.",
        "cps",
        _rate_by("fangcheng_matchmaking_matches_total", "outcome"),
        stacked=True,
    ),
    Panel(
        "Filled up",
        "Tables at which bots were seated, and seats of tables under way that were given to "
        "somebody, a second. More of both than usual: too few people for so many pools.",
        "cps",
        (
            Query(
                rate(f"fangcheng_matchmaking_filled_tables_total{{{OF}}}"),
                "tables filled with bots",
            ),
            Query(
                rate(f"fangcheng_matchmaking_backfilled_seats_total{{{OF}}}"),
                "seats given again",
            ),
        ),
        to=Link("fangcheng-tables", "Tables by mode"),
    ),
    Panel(
        "Why tickets fail",
        "Reasons a second. Without means are the players' own; an unknown pool or one that "
        "changed follows a change of pools; unreadable ones are a fault of ours.",
        "cps",
        _rate_by("fangcheng_matchmaking_failed_tickets_total", "reason"),
        stacked=True,
    ),
)

_FAULTS = (
    Panel(
        "Steps that are repeated",
        "Steps of matches that had no answer from wallet or table, a second, and matches under "
        "way. Players wait meanwhile: see which of the two is away.",
        "none",
        (
            Query(
                rate(f"fangcheng_matchmaking_repeated_steps_total{{{MINE}}}"), "repeated a second"
            ),
            Query(f"sum(fangcheng_matchmaking_unfinished_matches{{{MINE}}})", "under way"),
        ),
        width=6,
        to=Link("fangcheng-runtime", "Failed calls by status"),
    ),
    Panel(
        "What was left behind",
        "Tables that were made and never played, and holds that ran out, a second: a match was "
        "lost between the services. The reaper has cleaned up; find what was killed then.",
        "cps",
        (
            Query(
                rate('fangcheng_table_closed_total{reason="deserted"}'),
                "tables deserted",
            ),
            Query(rate("fangcheng_wallet_expired_holds_total"), "holds that ran out"),
        ),
        width=6,
        to=Link("fangcheng-wallet", "Holds that ran out"),
    ),
    Panel(
        "Pools read anew",
        "Times that the pools' file was read, a second. A refused one changed nothing: the log "
        "tells line, key and reason.",
        "cps",
        _rate_by("fangcheng_matchmaking_pool_reloads_total", "outcome", MINE),
        width=6,
    ),
    Panel(
        "Paused pools",
        "1 while an operator has paused a pool: nobody is matched in it, and who waits keeps his "
        "place. Nobody remembers why: end it (PausePool), players wait.",
        "none",
        (Query(f"max by (pool) (fangcheng_matchmaking_paused{{{OF}}})", "{{pool}}"),),
        width=6,
        highest=1,
    ),
)

BOARD = Board(
    uid="fangcheng-matchmaking",
    title="Matchmaking",
    tells="Who waits, how long, what comes of it, and what is left behind.",
    variables=(
        Variable(
            "matchmaker",
            "Matchmaking process",
            'fangcheng_build_info{service="matchmaking"}',
            "instance",
        ),
        Variable("pool", "Pool", "fangcheng_matchmaking_waiting_tickets", "pool"),
    ),
    rows=(
        Row("Now", _TILES),
        Row("Who waits, and how long", _WAIT),
        Row("What comes of it", _OUTCOME),
        Row("Faults", _FAULTS),
    ),
)
