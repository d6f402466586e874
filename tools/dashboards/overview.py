"""Suite overview: are players playing, is money right, are promises kept, on one screen.

Each question has a third of the width: tiles above, the graphs behind them below.
"""

from __future__ import annotations

from .board import Board, Choice, Limits, Link, Panel, Query, Row, stat
from .promql import (
    FAILED,
    MATCHMAKING,
    SERVICES,
    TABLE,
    kept,
    or_zero,
    percentile,
    percentiles,
    rate,
    share_of,
)
from .wallet import OLDEST_UNPAID, REFUSED

LIVE = 'fangcheng_tables{phase!="closed"}'
UP = f"up{{{SERVICES}}}"
CALLS = f"grpc_server_handled_total{{{SERVICES}}}"
FAILED_CALLS = f"grpc_server_handled_total{{{SERVICES}, {FAILED}}}"

_TILES = (
    stat(
        "Live tables",
        "Tables that are not closed. A sudden fall while processes are up means that no new ones "
        "open: look at the queues.",
        "none",
        f"sum({LIVE})",
        to=Link("fangcheng-tables", "Tables by phase"),
    ),
    stat(
        "Hands a minute",
        "Hands that ended, however they did. At 0 with tables live, play hangs: look at the "
        "tables' questions to evaluators and at the journal.",
        "cpm",
        f"60 * {rate('fangcheng_table_hands_total')}",
        to=Link("fangcheng-tables", "Hands by ending"),
    ),
    stat(
        "Ledger imbalance",
        "The largest sum of all accounts of a currency. Anything but 0 is a fault of ours: stop "
        "pay-outs and run fangcheng ledger audit.",
        "none",
        "max(abs(fangcheng_wallet_ledger_imbalance))",
        Limits(0.5, 0.5),
        to=Link("fangcheng-wallet", "Imbalance by currency"),
    ),
    REFUSED,
    stat(
        "Seated within 3 s",
        "Share of players who had their seat 3 s after they joined a queue. Below 99 % our "
        "promise breaks: look at which pool waits, and for what.",
        "percentunit",
        kept("seated"),
        Limits(0.99, 0.95),
        to=Link("fangcheng-matchmaking", "From the queue to the seat"),
    ),
    stat(
        "Acts shown within 50 ms",
        "Share of acts that were stored and shown 50 ms after they came. Below 99 % our promise "
        "breaks: look at the journal's commits and at the tables' event loop.",
        "percentunit",
        kept("act"),
        Limits(0.99, 0.95),
        to=Link("fangcheng-tables", "From an act to its events"),
    ),
    stat(
        "Players waiting",
        "Players in all queues. Where it only grows, nobody is seated: look at the age of the "
        "oldest ticket, pool by pool.",
        "none",
        'sum(max by (pool) (fangcheng_matchmaking_waiting_tickets{kind="player"}))',
        to=Link("fangcheng-matchmaking", "Waiting players"),
    ),
    stat(
        "Processes down",
        "Processes that Prometheus knows of and does not reach. Start them again, then read in "
        "their logs why they stopped.",
        "none",
        or_zero(f"count({UP} == 0)", UP),
        Limits(1, 1),
        to=Link("fangcheng-runtime", "Processes that are up"),
    ),
    OLDEST_UNPAID,
    stat(
        "Oldest hold",
        "Age of the oldest hold that is neither released nor expired. Older than any table plays, "
        "it belongs to one that is gone: find its player and release it.",
        "s",
        "max(fangcheng_wallet_oldest_hold_age_seconds)",
        to=Link("fangcheng-wallet", "Age of the oldest hold"),
    ),
    stat(
        "Fullest evaluator",
        "How full the fullest queue of an evaluator is. From 80 % on calls are soon refused: add "
        "evaluators.",
        "percentunit",
        "max(fangcheng_evaluation_waiting_hands / fangcheng_evaluation_waiting_hands_limit)",
        Limits(0.5, 0.8),
        to=Link("fangcheng-evaluation", "How full the queues are"),
    ),
    stat(
        "Failed calls",
        "Share of all calls that failed by a fault of ours or of what is below us. Above 1 % "
        "players notice: the graph names the call and its status.",
        "percentunit",
        share_of(f"({or_zero(rate(FAILED_CALLS), UP)})", rate(CALLS), UP),
        Limits(0.001, 0.01),
        to=Link("fangcheng-runtime", "Failed calls by status"),
    ),
)

_GRAPHS = (
    Panel(
        "Live tables by rule set",
        "Where people play. One rule set that falls alone has a fault of its own: its pools, its "
        "newest revision, or what evaluators answer for it.",
        "none",
        (Query(f"sum by (rule_set) ({LIVE})", "{{rule_set}}"),),
        stacked=True,
        to=Link("fangcheng-tables"),
        chooses=Choice("fangcheng-tables", "rule_set", "rule_set"),
    ),
    Panel(
        "Settlements by outcome",
        "What the wallet answered, a second. Failed ones are repeated by themselves, short ones "
        "are players who had too little; refused ones need somebody.",
        "cps",
        (Query(rate("fangcheng_wallet_settlements_total", "outcome"), "{{outcome}}"),),
        to=Link("fangcheng-wallet"),
    ),
    Panel(
        "Wait for a seat",
        "From the queue to the seat, over all pools; the line is what we promise. Above it, look "
        "at the pools one by one: too few players, or steps that are repeated.",
        "s",
        percentiles("fangcheng_matchmaking_wait_seconds_bucket", MATCHMAKING),
        promise=3,
        to=Link("fangcheng-matchmaking"),
    ),
    Panel(
        "Oldest ticket by pool",
        "How long the longest waiting player of a pool waits already. Where it only grows, the "
        "pool is stuck: see whether it is paused and whether matchmaking repeats its steps.",
        "s",
        (Query("max by (pool) (fangcheng_matchmaking_oldest_ticket_age_seconds)", "{{pool}}"),),
        promise=3,
        to=Link("fangcheng-matchmaking"),
        chooses=Choice("fangcheng-matchmaking", "pool", "pool"),
    ),
    Panel(
        "What tables still owe",
        "Settlements and releases on their way to the wallet. Where they pile up, the wallet or "
        "its database is slow or away: tables play on and pay later, once it is back.",
        "none",
        (
            Query(
                "sum by (kind) (fangcheng_table_outbox)",
                "{{kind}}",
            ),
        ),
        to=Link("fangcheng-wallet", "What tables still owe"),
    ),
    Panel(
        "From an act to its events",
        "From a player's act to the moment its events are stored and shown; the line is what we "
        "promise. Above it, compare with the journal's commits and the event loop.",
        "s",
        percentiles("fangcheng_table_act_seconds_bucket", TABLE),
        promise=0.05,
        to=Link("fangcheng-tables", "One commit of the journal"),
    ),
)

_BELOW = (
    Panel(
        "Alerts that fire",
        "By urgency and name; page means that players are hurt or money is wrong now. Each has a "
        "page in docs/operations/alerts that says what to do.",
        "none",
        (
            Query(
                or_zero(
                    'sum by (severity, alertname) (ALERTS{alertstate="firing"})',
                    UP,
                    severity="none",
                    alertname="",
                ),
                "{{severity}} {{alertname}}",
            ),
        ),
        stacked=True,
        width=6,
    ),
    Panel(
        "How fast error budgets burn",
        "How many times faster than 1 % of slow ones in 30 days allows. Above 14 over an hour, or "
        "6 over six, the month's budget is soon gone and an alert wakes somebody: its page tells "
        "what to do.",
        "none",
        tuple(
            Query(
                or_zero(f"fangcheng:{promise}_slow:ratio_rate{hours} / 0.01 >= 0", there),
                f"{legend}, {hours}",
            )
            for promise, there, legend in (
                ("seated", MATCHMAKING, "seated in 3 s"),
                ("act", TABLE, "acts in 50 ms"),
            )
            for hours in ("1h", "6h")
        ),
        limits=Limits(6, 14.4),
        width=6,
    ),
    Panel(
        "Failed calls by service",
        "Calls that failed by a fault of ours or of what is below us, a second. Go to the service "
        "that has them first in time: others only pass them on.",
        "reqps",
        (
            Query(
                or_zero(rate(FAILED_CALLS, "job"), UP, job="none"),
                "{{job}}",
            ),
        ),
        width=6,
        to=Link("fangcheng-runtime", "Failed calls by status"),
        chooses=Choice("fangcheng-runtime", "job", "job"),
    ),
    Panel(
        "Event loop, 99th percentile",
        "How late the loop of a service comes back. Above 50 ms every call to it is late: see its "
        "CPU, and add processes.",
        "s",
        (
            Query(
                percentile(
                    0.99, f"fangcheng_event_loop_lag_seconds_bucket{{{SERVICES}}}", UP, job="none"
                ),
                "{{job}}",
            ),
        ),
        promise=0.05,
        width=6,
        to=Link("fangcheng-runtime", "How late the event loop is"),
        chooses=Choice("fangcheng-runtime", "job", "job"),
    ),
)

BOARD = Board(
    uid="fangcheng-overview",
    title="Suite overview",
    tells="Are players playing, is money right, are promises kept? Begin here; every panel leads "
    "on to the one behind it.",
    variables=(),
    rows=(
        Row("Do players play?  ·  Is money right?  ·  Are promises kept?", (*_TILES, *_GRAPHS)),
        Row("What burns", _BELOW),
    ),
)
