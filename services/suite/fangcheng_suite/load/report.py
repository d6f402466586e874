"""A load's outcome for people and for machines: lines, a page, JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fangcheng_suite.pages import Bars, Figures, Grid, Lines, Part, Section, write_page

from .measured import ACTS, HANDS, MEASURES, SEATED, SEEN, TAKEN, Slice
from .outcome import EXPECTED, Outcome

SHARES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
MIB = 2**20
MOST_LINES = 8
LEAST_POINTS = 3
"""From which on a figure is shown over time."""

EXPLAINED = {
    SEEN: "from when a discard is sent until every seat of its table has been told.",
    TAKEN: "from when an answer is sent until the table says that it was accepted.",
    SEATED: "from JoinQueue until there is a table; a player waits for three others too.",
    "Analyze": "a call to the evaluators, as a client makes it that shows a hint.",
    "hand ended until settled": "from when a hand ends until the wallet has it.",
    "the load's own delay": "how late the load's own clocks were; it is in all other figures.",
}


def summary(outcome: Outcome) -> str:
    """The outcome in a sentence or two."""
    text = (
        f"{outcome.tables:,} tables were in play at the same time, {outcome.pace} pace, and "
        f"measured for {outcome.seconds:,.0f} s after {outcome.seating_seconds:,.0f} s of seating."
    )
    if outcome.tables < outcome.wanted_tables:
        text += f" {outcome.wanted_tables:,} were wanted."
    if outcome.interrupted:
        text += " It was interrupted."
    return text


def verdict(outcome: Outcome) -> str:
    """Whether the load itself was what was slow."""
    if outcome.bottleneck:
        return (
            f"The load itself was a bottleneck: {outcome.bottleneck}. Give it more --clients, or a "
            "computer of its own."
        )
    return "The load itself was not the bottleneck."


def audited(outcome: Outcome) -> str:
    """What the ledger's audit found."""
    audit = outcome.audit
    if audit is None:
        return "The ledger was not audited."
    if audit.balanced:
        return (
            f"The ledger is balanced: {audit.entries:,} entries, {audit.settlements:,} settlements."
        )
    return "The ledger is not balanced: " + "; ".join(audit.findings)


def lines(outcome: Outcome) -> Iterator[RenderableType]:
    """For a terminal."""
    yield Text(summary(outcome))
    if outcome.trouble:
        yield Text(f"It ended early: {outcome.trouble}", "red")
    yield Text(
        f"{outcome.a_minute(HANDS):,.0f} hands and {outcome.a_minute(ACTS):,.0f} acts a minute, "
        f"{outcome.unexpected:,} errors"
    )
    times = Table(box=None, pad_edge=False, header_style="bold")
    times.add_column("milliseconds")
    for name in ("times", *(name for name, _ in SHARES), "longest"):
        times.add_column(name, justify="right")
    for row in _times(outcome):
        times.add_row(*(f"{cell:,.1f}" if isinstance(cell, float) else str(cell) for cell in row))
    yield times
    if outcome.errors:
        yield _table("errors", ("call", "reason", "times", ""), _errors(outcome))
    if outcome.processes:
        rows = [
            (label, f"{mean:.2f}", f"{most:.2f}", f"{size / MIB:,.0f}")
            for label, (mean, most, size) in outcome.processes.items()
        ]
        yield _table("processes", ("", "cores", "at most", "MiB"), rows)
    yield Text(verdict(outcome), "yellow" if outcome.bottleneck else "")
    good = outcome.audit is not None and outcome.audit.balanced
    yield Text(audited(outcome), "green" if good else "red")


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        table.add_column(name or (title if not place else ""), justify="left")
    for row in rows:
        table.add_row(*map(str, row))
    return table


def write_report(outcome: Outcome, path: Path) -> None:
    """As a page; raises SuiteError where it cannot be written."""
    lead = f"{outcome.command}\n\n{outcome.began}, {outcome.where}; {outcome.machine}"
    write_page(path, f"Load: {outcome.tables:,} tables", _sections(outcome), lead=lead)


def _sections(outcome: Outcome) -> list[Section]:
    spreads = outcome.spreads
    seen = spreads[SEEN].percentile(0.99) if SEEN in spreads else None
    good = outcome.audit is not None and outcome.audit.balanced
    early = f"\n\nIt ended early: {outcome.trouble}" if outcome.trouble else ""
    figures = Figures(
        [
            ("tables in play", outcome.tables),
            ("hands a minute", round(outcome.a_minute(HANDS))),
            ("acts a second", outcome.a_minute(ACTS) / 60),
            (f"{SEEN}, 99 of 100 within", "–" if seen is None else f"{1e3 * seen:.1f} ms"),
            ("errors", outcome.unexpected),
            ("ledger", "balanced" if good else "see below"),
        ]
    )
    columns = ("", "times", *(f"{name} ms" for name, _ in SHARES), "longest ms")
    times = _times(outcome)
    explained = "\n".join(f"{row[0]}: {EXPLAINED[str(row[0])]}" for row in times)
    found = [
        Section(
            "What came of it",
            f"{summary(outcome)}{early}\n\n{verdict(outcome)}\n\n{audited(outcome)}",
            [figures],
        ),
        Section("How long it took", explained, [Grid(columns, times)]),
        Section(
            "Over time",
            "Seconds since the first player queued. In the first "
            f"{outcome.seating_seconds:,.0f} s players were seated: these are in no figure above "
            "but that of the seating.",
            _over_time(outcome),
        ),
    ]
    if outcome.processes:
        found.append(_processes(outcome))
    errors = _errors(outcome)
    if errors:
        grid = Grid(("call", "reason", "times", ""), errors)
        found.append(Section("What went wrong", "From the first player on.", [grid]))
    return found


def _over_time(outcome: Outcome) -> list[Part]:
    def line(of: Callable[[Slice], float | None]) -> list[tuple[float, float]]:
        return [
            (round(one.until_seconds, 1), value)
            for one in outcome.moments
            if (value := of(one.happened)) is not None
        ]

    def percentile(measure: str, share: float) -> list[tuple[float, float]]:
        def of(happened: Slice) -> float | None:
            seconds = happened.spread(measure).percentile(share)
            return None if seconds is None else 1e3 * seconds

        return line(of)

    def rate(what: str, seconds: float) -> list[tuple[float, float]]:
        return [
            (round(one.until_seconds, 1), seconds * one.happened.counts[what] / one.seconds)
            for one in outcome.moments
        ]

    tables = [(round(one.until_seconds, 1), one.tables) for one in outcome.moments]
    charts: list[Part] = [
        Lines("Tables in play", {"tables": tables}, "s"),
        Lines("Acts a second", {"acts": rate(ACTS, 1)}, "s"),
        Lines("Hands a minute", {"hands": rate(HANDS, 60)}, "s"),
    ]
    for measure in MEASURES:
        series = {name: percentile(measure, share) for name, share in SHARES if name != "p90"}
        if max(map(len, series.values())) >= LEAST_POINTS:
            charts.append(Lines(_title(measure), series, "s", "ms"))
    return charts


def _processes(outcome: Outcome) -> Section:
    processes = outcome.processes
    rows = [
        (label, mean, most, round(size / MIB)) for label, (mean, most, size) in processes.items()
    ]
    busiest = sorted(processes, key=lambda label: -processes[label][0])[:MOST_LINES]
    over_time = {
        label: [
            (round(one.until_seconds, 1), one.cores[label])
            for one in outcome.moments
            if label in one.cores
        ]
        for label in sorted(busiest)
    }
    return Section(
        "Processes",
        "Cores used: 1 is a whole processor core. The clients are the load's own.",
        [
            Grid(("", "cores on average", "cores at most", "MiB at most"), rows),
            Bars("Cores on average", [(label, mean) for label, mean, _, _ in rows]),
            Lines("Cores over time", over_time, "s"),
        ],
    )


def _title(measure: str) -> str:
    return measure[:1].upper() + measure[1:]


def _times(outcome: Outcome) -> list[tuple[str | int | float, ...]]:
    """Of each measure its name, how many times there are, percentiles and the longest, in ms."""
    return [
        (
            measure,
            spread.count,
            *(1e3 * (spread.percentile(share) or 0.0) for _, share in SHARES),
            1e3 * spread.longest,
        )
        for measure, spread in outcome.spreads.items()
    ]


def _errors(outcome: Outcome) -> list[tuple[str, str, int, str]]:
    return [
        (call, reason, count, "as it may happen" if (call, reason) in EXPECTED else "")
        for (call, reason), count in outcome.errors.items()
    ]


def as_json(outcome: Outcome) -> dict[str, Any]:
    """For a machine. Milliseconds, and seconds since the first player queued."""
    audit = outcome.audit
    return {
        "command": outcome.command,
        "where": outcome.where,
        "machine": outcome.machine,
        "began": outcome.began,
        "pools": list(outcome.pools),
        "pace": outcome.pace,
        "wanted_tables": outcome.wanted_tables,
        "tables": outcome.tables,
        "seating_seconds": round(outcome.seating_seconds, 2),
        "seconds": round(outcome.seconds, 2),
        "interrupted": outcome.interrupted,
        "trouble": outcome.trouble,
        "hands_a_minute": round(outcome.a_minute(HANDS), 2),
        "acts_a_second": round(outcome.a_minute(ACTS) / 60, 2),
        "milliseconds": {
            str(measure): {
                "times": times,
                **{
                    name: round(float(one), 3)
                    for (name, _), one in zip(SHARES, shares, strict=True)
                },
                "longest": round(float(longest), 3),
            }
            for measure, times, *shares, longest in _times(outcome)
        },
        "errors": [
            {"call": call, "reason": reason, "times": count, "expected": (call, reason) in EXPECTED}
            for (call, reason), count in outcome.errors.items()
        ],
        "processes": {
            label: {
                "cores": round(mean, 3),
                "cores_at_most": round(most, 3),
                "bytes_at_most": int(size),
            }
            for label, (mean, most, size) in outcome.processes.items()
        },
        "bottleneck": outcome.bottleneck,
        "ledger": None
        if audit is None
        else {
            "balanced": audit.balanced,
            "entries": audit.entries,
            "settlements": audit.settlements,
            "findings": list(audit.findings),
        },
    }
