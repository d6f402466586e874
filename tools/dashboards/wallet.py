"""Wallet & ledger: is money right, is it on time, what is held, how fast the ledger writes."""

from __future__ import annotations

from .board import Board, Limits, Link, Panel, Query, Row, Variable, stat
from .promql import WALLET, percentile, percentiles, rate, share_of

MINE = 'instance=~"$wallet"'
SETTLEMENTS = "fangcheng_wallet_settlements_total"
IMBALANCE = f'fangcheng_wallet_ledger_imbalance{{{MINE}, currency=~"$currency"}}'

# The overview shows these two as well.
REFUSED = stat(
    "Refused settlements",
    "Settlements and releases of holds that the wallet has refused and tables keep. They are "
    "not paid until somebody looks: the table's log names them and the reason.",
    "none",
    "sum(fangcheng_table_parked)",
    Limits(1, 1),
    to=Link("fangcheng-wallet", "What tables still owe"),
)

OLDEST_UNPAID = stat(
    "Oldest unpaid hand",
    "Age of the oldest settlement or release that the wallet has not acknowledged. Beyond a "
    "minute the wallet or its database is away: see whether it serves.",
    "s",
    "max(fangcheng_table_outbox_oldest_age_seconds)",
    Limits(10, 60),
    to=Link("fangcheng-wallet", "Age of what tables still owe"),
)

# Processes on one database see the same ledger: their gauges of it are not summed up.
_TILES = (
    stat(
        "Ledger imbalance",
        "The largest sum of all accounts of a currency. Anything but 0 is a fault of ours: stop "
        "pay-outs and run fangcheng ledger audit.",
        "none",
        f"max(abs({IMBALANCE}))",
        Limits(0.5, 0.5),
    ),
    REFUSED,
    OLDEST_UNPAID,
    stat(
        "Settlements a second",
        "Settlements that were paid. At 0 while hands end, money stands still: look at what "
        "tables still owe.",
        "cps",
        rate(f'{SETTLEMENTS}{{{MINE}, outcome=~"paid|short"}}'),
        to=Link("fangcheng-tables", "Hands by ending"),
    ),
    stat(
        "Open holds",
        "Holds that are not released; about one for each seat that plays for silver. Where it "
        "grows while live tables do not, holds are left behind: look at their age.",
        "none",
        f"max(fangcheng_wallet_open_holds{{{MINE}}})",
        to=Link("fangcheng-wallet", "Age of the oldest hold"),
    ),
    stat(
        "Failed commits",
        "Commits that the database refused as a whole, a second. Callers repeat them and nothing "
        "is lost; where it goes on, look at the database's log.",
        "cps",
        rate(f"fangcheng_wallet_failed_commits_total{{{MINE}}}"),
        Limits(0.01, 0.1),
        to=Link("fangcheng-wallet", "One commit of the ledger"),
    ),
)

_RIGHT = (
    Panel(
        "Imbalance by currency",
        "Sum of all accounts, house included, which is 0. Anything else is a fault of ours: stop "
        "pay-outs, run fangcheng ledger audit, and keep the database as it is.",
        "none",
        (Query(f"max by (currency) (abs({IMBALANCE}))", "{{currency}}"),),
        limits=Limits(0.5, 0.5),
    ),
    Panel(
        "Settlements by outcome",
        "What was answered, a second. Replayed ones are repeats and harmless; failed ones are "
        "repeated by themselves; refused ones need somebody.",
        "cps",
        (Query(rate(f"{SETTLEMENTS}{{{MINE}}}", "outcome"), "{{outcome}}"),),
        stacked=True,
    ),
    Panel(
        "Hands that could not be paid in full",
        "Share of settlements in which somebody had too little. Where it grows, buy-ins of a pool "
        "are too low for what is lost there.",
        "percentunit",
        (
            Query(
                share_of(
                    rate(f'{SETTLEMENTS}{{{MINE}, outcome="short"}}'),
                    rate(f'{SETTLEMENTS}{{{MINE}, outcome=~"paid|short"}}'),
                    WALLET,
                ),
                "short",
            ),
        ),
        to=Link("fangcheng-matchmaking"),
    ),
    Panel(
        "Settlements that were taken back",
        "Reversals a second; each was an operator's decision. More than somebody can account for: "
        "ask who made them (fangcheng ledger export names the operator).",
        "cps",
        (Query(rate(f"fangcheng_wallet_reversals_total{{{MINE}}}"), "reversals"),),
    ),
    Panel(
        "Operations without a hash",
        "Operations that the hash chain has not reached yet. It follows within seconds; where it "
        "only grows, nobody keeps the chain: see the wallet's log.",
        "none",
        (Query(f"max(fangcheng_wallet_unchained_operations{{{MINE}}})", "operations"),),
    ),
    Panel(
        "Hands ended and settled",
        "What tables ended and what the wallet paid, a second. The lines lie together but for "
        "hands in which nothing is owed; where they part, look at what tables still owe.",
        "cps",
        (
            Query(rate("fangcheng_table_hands_total"), "hands ended"),
            Query(rate("fangcheng_table_settlements_total"), "settled, say tables"),
            Query(rate(f'{SETTLEMENTS}{{outcome=~"paid|short"}}'), "paid, says the wallet"),
        ),
        to=Link("fangcheng-tables", "Hands by ending"),
    ),
)

_OWED = (
    Panel(
        "What tables still owe",
        "Settlements and releases on their way to the wallet, and those that it has refused. "
        "Where they pile up, the wallet or its database is slow or away; tables pay once it is "
        "back.",
        "none",
        (
            Query(
                "sum by (kind) (fangcheng_table_outbox)",
                "{{kind}}",
            ),
            Query(
                "sum by (kind) (fangcheng_table_parked)",
                "{{kind}}, refused",
            ),
        ),
        width=12,
    ),
    Panel(
        "Age of what tables still owe",
        "How long the oldest waits, by kind. Seconds are usual; beyond a minute the wallet or its "
        "database is away: see whether it serves.",
        "s",
        (
            Query(
                "max by (kind) (fangcheng_table_outbox_oldest_age_seconds)",
                "{{kind}}",
            ),
        ),
        width=12,
        limits=Limits(10, 60),
    ),
)

_HOLDS = (
    Panel(
        "Holds",
        "Holds that are not released. They follow the seats that play for silver; where they grow "
        "while live tables do not, holds are left behind.",
        "none",
        (Query(f"max(fangcheng_wallet_open_holds{{{MINE}}})", "open"),),
        to=Link("fangcheng-tables", "Tables by phase"),
    ),
    Panel(
        "Age of the oldest hold",
        "Of holds that are neither released nor expired. Older than any table plays, it belongs "
        "to a table that is gone: find its player and release it.",
        "s",
        (Query(f"max(fangcheng_wallet_oldest_hold_age_seconds{{{MINE}}})", "oldest"),),
    ),
    Panel(
        "Holds that ran out",
        "Holds that expired by themselves, a second. Each is a table or a match that was lost: "
        "the player has his silver back, and somebody should know why.",
        "cps",
        (Query(rate(f"fangcheng_wallet_expired_holds_total{{{MINE}}}"), "expired"),),
        to=Link("fangcheng-matchmaking", "What was left behind"),
    ),
)

_SPEED = (
    Panel(
        "One commit of the ledger",
        "Time of a commit, from its first statement until it is on disk; every settlement waits "
        "for one. Above 100 ms look at the disk or at the PostgreSQL server.",
        "s",
        percentiles(f"fangcheng_wallet_commit_seconds_bucket{{{MINE}}}", WALLET),
        promise=0.1,
    ),
    Panel(
        "Calls that share a commit",
        "How many calls one commit takes. It grows with the load, which is what it is for; at its "
        "limit the ledger is as fast as it gets on this disk.",
        "none",
        percentiles(f"fangcheng_wallet_commit_items_bucket{{{MINE}}}", WALLET),
    ),
    Panel(
        "Postings",
        "Lines of the ledger that were committed, a second. What the database grows by: compare "
        "with the capacity that was planned.",
        "cps",
        (Query(rate(f"fangcheng_wallet_postings_total{{{MINE}}}"), "postings"),),
    ),
    Panel(
        "Time of a call",
        "The slowest hundredth of each call of the wallet. All slow together are the database; "
        "one alone reads much: see who asks it.",
        "s",
        (
            Query(
                percentile(
                    0.99,
                    f'grpc_server_handling_seconds_bucket{{{MINE}, job="wallet",'
                    ' grpc_type="unary"}',
                    WALLET,
                    grpc_method="none",
                ),
                "{{grpc_method}}",
            ),
        ),
        width=24,
    ),
)

BOARD = Board(
    uid="fangcheng-wallet",
    title="Wallet & ledger",
    tells="Is money right, is it paid in time, what is held for tables, how fast the ledger "
    "writes.",
    variables=(
        Variable("wallet", "Wallet process", 'fangcheng_build_info{service="wallet"}', "instance"),
        Variable("currency", "Currency", "fangcheng_wallet_ledger_imbalance", "currency"),
    ),
    rows=(
        Row("Now", _TILES),
        Row("Is money right?", _RIGHT),
        Row("Is it paid in time?", _OWED),
        Row("Holds", _HOLDS),
        Row("How fast the ledger writes", _SPEED),
    ),
)
