"""docs/performance.md and its charts, from what the benchmarks kept in results/.

    python benchmarks/report.py [--check]

With --check nothing is written; the exit code is 1 where a page is not what the results make it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import chart
from measure import RESULTS, Line

DOCS = Path(__file__).parent.parent / "docs"
PAGE = "performance.md"
KERNELS_CHART = "performance-kernels.svg"
TABLES_CHART = "performance-tables.svg"
HANDS_CHART = "performance-hands.svg"
BULK_CHART = "performance-bulk.svg"
WALLET_CHART = "performance-wallet.svg"
WAITS_CHART = "performance-waits.svg"
DAY_CHART = "performance-day.svg"
SEATING_CHART = "performance-seating.svg"

HEAD = """\
# Performance

Measured by `make bench`, which prints the same lines and takes some minutes; this page is made of
what it found. Absolute figures move with the machine, and with what else it does. So each figure
with a reference was measured beside it: same machine, same minutes, same seeded hands; but for the
wallet, with the process pinned to a core, the median of five rounds. A red mark in a chart is what
we promise.
"""

ABOUT = {
    "kernels": f"""\
## In one process, on one core

Peers are called as their users call them, in the way that is quickest for many hands. They know
other rules: where the rules coincide the benchmark compares every answer with ours, and stops at
the first that differs.

![How many times the peers' speed]({KERNELS_CHART})
""",
    "hands": f"""\
## Whole hands in one process

A hand from the deal to what is paid, between four random players: any action that is offered, and
ours win where they can, which such players seldom do; so nearly all hands last until the wall is
drawn. RiichiEnv is asked through its Python interface, as ours are, and plays its own rules in
Rust. Ours are plain Python around the kernels, the state machine that a table plays with, and every
event of a hand is there at its end; so RiichiEnv keeps its log, which it can leave as well. Counted
in CPU time. *Simple bots* look for the shortest way to a win in every turn.

![Times RiichiEnv's hands a second]({HANDS_CHART})
""",
    "evaluation": f"""\
## Through the service

Bulk is `EvaluateHands` (unary, eight callers) and `StreamHands` (one stream, three messages ahead),
scoring alone, which is the hardest on what lies between. The reference is the rate in one process
on one core, on the same records. What gRPC alone costs for the same messages stands below: with
smaller messages it is most of all, so send many hands at a time.

![Share of the rate in one process, by hands a message]({BULK_CHART})

The evaluators share the cores named below with their client, one Python process: there, more of
them than cores is not quicker, and calls for single hands are bounded by the client. Plan by CPU
time, which is what a hand costs wherever it is evaluated. Evaluators share nothing, so with a core
each their rates add up. A replica's start is that of its process, the interpreter's included, with
tables and machine code kept from an earlier one, until its health says that it serves.
""",
    "tables": f"""\
## Live tables

One table service on one core, SQLite in WAL mode with `synchronous=FULL` under it, every event
stored before anyone sees it; the evaluator and the players, four to a table through a gateway's
streams (`AttendMany`, a stream for 250 tables), on the other core. At each table somebody discards
every three seconds and the claim window is a second long, as it comes; players discard anything,
pass what they could claim and win where they can. What is measured is the time from sending a
discard until all four seats have been told of it, the gateway's own time included. More tables come
until one in a hundred takes longer than is promised, 50 ms; promised are 2,000 tables.

![Milliseconds until all seats know, by tables]({TABLES_CHART})

Where the interpreter's time goes, by `py-spy` at 1,000 tables: a third to the gateway's streams (22
% gathering and sending events, 11 % reading and checking acts), 22 % to gRPC and the event loop
beneath them, 13 % to turns and clocks, 12 % to the journal, 8 % to asking the evaluator, 6 % to
what each viewer sees and 5 % to the hand itself. So what comes thick is gathered: events of a busy
stream for 10 ms, appends for 3, questions for 5, appends in one statement for all tables; and the
garbage collector, which took up to 300 ms at a time, looks through what tables keep only seldom.
""",
    "matchmaking": f"""\
## Matchmaking

First the matcher alone, one process on one core, with a clock of the benchmark's own that goes on
by the CPU time that the matcher takes. The pool is ranked by skill: ratings two points to either
side at first, a point more for every second, 25 at most. Ratings are drawn about 25 with a
deviation of 25/3, which is what OpenSkill takes players to be before it has seen them; arrivals are
a Poisson process. That somebody waits until four have come, and until the spread reaches them, is
the pool's doing; the matcher adds the time that it takes itself, and that is in the figures too.

![Seconds waited, by share of the players]({WAITS_CHART})

Then whole days of that pool. How many come in an hour follows a curve of our own after what games
publish of their servers: nine times as many at nine in the evening as before dawn. One ticket in
ten is two friends, two players in three queue again after their table, which takes twelve minutes
on average, and who have just met do not meet again within ten seconds. A small pool waits for its
players, above all at night: there, let bots fill it up, or let the spread widen faster.

![Seconds waited, by the hour of a day]({DAY_CHART})

And the whole way, from `JoinQueue` to the first prompt of the first hand, with evaluator, tables,
wallet and matchmaking as processes, each with its database in a file (`synchronous=FULL`): the
ticket, the match, the holds (in the pool for silver), the table, the seat in the gateway's stream,
the deal, and from then on a discard every three seconds at each of the tables. In the pools with
bots no four come in a second and a half, mostly: that wait is most of theirs.

![Seconds from JoinQueue to the first prompt, by players a second]({SEATING_CHART})

The services, the gateway and its players share the cores named below.
""",
    "series": """\
## Series and scrapes

What a Prometheus finds at each process once 8,000 players have come to 20 of its 32 pools, each
once, with their buy-ins held, and 2,000 tables of all rule sets are in play. No label names a
player or a table, so series are as many as with a hundred tables; [the page of
metrics](operations/metrics.md) says how many there are at most. Another process scrapes, while the
tables go on. Promised are fewer than 2,000 series a process, and less than 100 ms a scrape.
""",
    "console": """\
## The console

A whole suite, each service a process of its own, and one console, alone on a core; bots play at the
pace of people, a discard every three seconds at each table. Viewers read the streams that pages
read: a fifth of them the lobby, which is told every second, each other one a table of his own. Of
every event the time is taken from when the table service wrote it until the viewer has it, and
until the page of a real Chromium has it in its document; the console gathers events for up to
100 ms. Bots, viewers, Chromium and the other services share the other core.
""",
    "wallet": f"""\
## Settlements

Each is committed for good before it is answered, by SQLite in WAL mode with `synchronous=FULL`, or
by PostgreSQL as it comes. Beside it, on the same server, pgbench: TPC-B-like, `-M simple`, 8
clients, scale 10. *Five legs*: three losers pay the winner, who pays the house. *Ten legs with
holds*: silver out of the four players' holds, and points besides. Callers wait for their answer
before they call again. What is promised is measured in five rounds, in turn with what it is held
against; of the others, pgbench before and after each group of four.

![Times pgbench, five legs, by callers]({WALLET_CHART})

Callers, wallet, database and pgbench share the cores named below.
""",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What one benchmark kept."""

    name: str
    machine: str
    load: float | None
    """The load average before it began: what else the machine did."""
    date: str
    lines: tuple[Line, ...]

    @classmethod
    def read(cls, path: Path) -> Result:
        """From its file."""
        kept = json.loads(path.read_text("utf-8"))
        lines = tuple(Line(**line) for line in kept["lines"])
        return cls(path.stem, kept["machine"], kept.get("load"), kept["date"], lines)

    @property
    def referenced(self) -> list[tuple[Line, float]]:
        """The lines that have a reference, with their ratio."""
        return [(line, line.ratio) for line in self.lines if line.ratio is not None]


def table(result: Result) -> str:
    """All lines, below their headings."""
    parts = []
    for group, lines in groupby(result.lines, key=lambda line: line.group):
        listed = list(lines)
        head = "a second" if all(line.rate for line in listed) else ""
        rows = [f"| | {head} | against | ratio | promised | |", "| --- " * 6 + "|"]
        for line in listed:
            beside = f"{line.reference} {line.reference_per_second:,.0f}" if line.ratio else ""
            ratio = f"**{line.ratio:.3g}**" if line.ratio is not None else ""
            goal = f"≥ {line.goal:g}" if line.goal is not None else ""
            rows.append(
                f"| {line.what} | {line.per_second:,.0f} {line.unit} | {beside} | {ratio} "
                f"| {goal} | {line.note} |"
            )
        parts.append(f"### {group}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def kernels_chart(result: Result) -> str:
    """How many times each peer."""
    rows = [
        (f"{line.what} ({line.reference})", ratio, line.goal) for line, ratio in result.referenced
    ]
    return chart.bars("Times the peer's speed, one core", rows)


def hands_chart(result: Result) -> str:
    """How many times RiichiEnv, by rule set."""
    rows = [(line.what, ratio, line.goal) for line, ratio in result.referenced]
    return chart.bars("Times RiichiEnv's hands a second, random players", rows)


def bulk_chart(result: Result) -> str:
    """By size of message."""
    points: dict[str, list[tuple[int, float]]] = {}
    goals = []
    for line, ratio in result.referenced:
        way, _, size = line.what.removesuffix(" a message").partition(", ")
        hands = int(size.replace(",", ""))
        points.setdefault(way, []).append((hands, ratio))
        if line.goal is not None:
            goals.append((hands, line.goal))
    return chart.curves("Share of the rate in one process", "hands a message", points, goals)


def tables_chart(result: Result) -> str:
    """Milliseconds, by tables."""
    points: dict[str, list[tuple[int, float]]] = {}
    goals = []
    for figures in (line.figures for line in result.lines if line.figures):
        tables = int(figures["tables"])
        for name, key in (("one in a hundred", "p99"), ("half of them", "p50")):
            points.setdefault(name, []).append((tables, figures[key]))
        goals.append((tables, figures["promised"]))
    return chart.curves("Milliseconds until all seats know", "tables", points, goals, even=True)


def waits_chart(result: Result) -> str:
    """Seconds waited where tickets come to an empty pool, by share of the players."""
    points: dict[str, list[tuple[int, float]]] = {}
    for figures in (line.figures for line in result.lines if "rate" in line.figures):
        if not figures["waiting"]:
            shares = [(int(key[1:]), one) for key, one in figures.items() if key.startswith("p")]
            points[f"{figures['rate']:,.0f} tickets/s"] = shares
    title = "Seconds waited at most, tickets that come to an empty pool"
    return chart.curves(title, "% of the players", points, (), even=True)


def day_chart(result: Result) -> str:
    """Seconds waited, by the hour."""
    points: dict[str, list[tuple[int, float]]] = {}
    for figures in (line.figures for line in result.lines if "hour" in line.figures):
        for name, key in (("one in a hundred", "p99"), ("half of them", "p50")):
            points.setdefault(name, []).append((int(figures["hour"]), figures[key]))
    return chart.curves("Seconds waited, by the hour of a day", "o'clock", points, (), even=True)


def seating_chart(result: Result) -> str:
    """Seconds until the first prompt, by players a second."""
    points: dict[str, list[tuple[int, float]]] = {}
    goals = []
    for line in (line for line in result.lines if "players" in line.figures):
        players = int(line.figures["players"])
        pools = "bots allowed" if "bots after" in line.group else "no bots"
        for name, key in (("p99", "p99"), ("p50", "p50")):
            points.setdefault(f"{pools}, {name}", []).append((players, line.figures[key]))
        goals.append((players, line.figures["promised"]))
    title = "Seconds from JoinQueue to the first prompt of the first hand"
    return chart.curves(title, "players a second", points, goals[-1:], even=True)


def wallet_chart(result: Result) -> str:
    """Hands of five legs, by callers."""
    points: dict[str, list[tuple[int, float]]] = {}
    goals = []
    for line, ratio in result.referenced:
        legs, _, callers = line.what.partition(" legs, ")
        if legs != "5" or line.reference != "pgbench":
            continue
        count = int(callers.split()[0])
        if line.goal is None:
            points.setdefault(line.group, []).append((count, ratio))
        else:
            goals.append((count, line.goal))
    return chart.curves("Times pgbench, five legs", "callers", points, goals)


CHARTS = {
    "kernels": {KERNELS_CHART: kernels_chart},
    "hands": {HANDS_CHART: hands_chart},
    "evaluation": {BULK_CHART: bulk_chart},
    "tables": {TABLES_CHART: tables_chart},
    "matchmaking": {
        WAITS_CHART: waits_chart,
        DAY_CHART: day_chart,
        SEATING_CHART: seating_chart,
    },
    "series": {},
    "console": {},
    "wallet": {WALLET_CHART: wallet_chart},
}


def pages() -> dict[str, str]:
    """Every file of the report, by name."""
    found = {path.stem: Result.read(path) for path in RESULTS.glob("*.json")}
    made: dict[str, str] = {}
    text = [HEAD]
    for name, about in ABOUT.items():
        result = found.get(name)
        if result is None:  # measured on its own, so far
            continue
        made |= {file: draw(result) for file, draw in CHARTS[name].items()}
        busy = "" if result.load is None else f"; load average before it began: {result.load:.1f}"
        text.append(
            f"{about}\nMeasured on {result.date}: {result.machine}{busy}.\n\n{table(result)}"
        )
    made[PAGE] = "\n".join(text)
    return made


def main() -> None:
    """Write the pages, or compare them."""
    made = pages()
    if "--check" not in sys.argv[1:]:
        for name, text in made.items():
            (DOCS / name).write_text(text, "utf-8")
        return
    stale = [name for name, text in made.items() if (DOCS / name).read_text("utf-8") != text]
    if stale:
        sys.exit(
            f"not what benchmarks/results make them: {', '.join(stale)}; run it without --check"
        )


if __name__ == "__main__":
    main()
