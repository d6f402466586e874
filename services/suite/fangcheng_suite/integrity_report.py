"""`fangcheng integrity`: the report on pairs of players, and one player's case."""

from __future__ import annotations

import csv
import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import prometheus_client
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from .errors import SuiteError
from .integrity.facts import HandFacts, cells_of
from .integrity.findings import Finding, PairReport, Report, Signal

Form = Literal["table", "json", "csv"]

SAID: dict[Signal, str] = {
    "deal_in": "{one} deals in to {other}",
    "feed": "{one} feeds {other}",
    "pay": "{one} pays {other} large amounts",
    "soft": "{one} and {other} spare each other",
}
"""What each question asks, in words."""

NOTE = (
    "Beyond chance means: look at the hands. It proves nothing; chance alone names somebody in "
    "about {share} of 100 such reports."
)

COLUMNS = (
    *("one", "other", "tables", "hands", "units_one_to_other", "units_other_to_one"),
    *("signal", "from", "to", "observed", "expected", "ratio", "p", "adjusted", "beyond_chance"),
)
"""Of the CSV, a row for each question; `one` and `other` are the pair."""


def show_report(told: Report, mute: int, console: Console, form: Form, *, all_: bool) -> None:
    """Print a report; `all_`: of all pairs that were asked about, not only those beyond chance.

    `mute`: hands that told nothing.
    """
    pairs = told.pairs if all_ else told.beyond
    if form == "json":
        _print(console, json.dumps(_as_json(told, pairs, mute), ensure_ascii=False, indent=1))
    elif form == "csv":
        _print(console, _as_csv(pairs))
    else:
        for part in (*_headlines(told, mute), *_findings(told, pairs)):
            console.print(part)


def show_case(
    told: Report,
    facts: Sequence[HandFacts],
    player: str,
    partner: str | None,
    console: Console,
    *,
    most: int,
    as_json: bool,
) -> None:
    """Print what the report tells of one player, and the hands to look at; raises SuiteError.

    `partner`: the hands with this player, whatever the report tells. `most`: hands of each partner,
    the newest first.
    """
    for known in (player, partner):
        if known is not None and not any(known in hand.players for hand in facts):
            raise SuiteError(
                f"{known} has played none of these hands", "Give the player's whole id."
            )
    pairs = [
        pair
        for pair in told.pairs
        if player in (pair.one, pair.other) and partner in (None, pair.one, pair.other)
    ]
    to_look_at: dict[str, list[tuple[HandFacts, list[str]]]] = {}
    for pair in pairs:
        if pair.beyond or partner is not None:
            other = pair.other if pair.one == player else pair.one
            to_look_at[other] = hands_to_look_at(pair, facts)
    if partner is not None and not pairs:
        pair = PairReport(player, partner, 0, 0, 0, 0, ())
        to_look_at[partner] = hands_to_look_at(pair, facts)
    if as_json:
        case = _as_json(told, pairs, 0) | {
            "player": player,
            "to_look_at": {
                other: [_hand_as_json(hand, why) for hand, why in hands[:most]]
                for other, hands in to_look_at.items()
            },
        }
        _print(console, json.dumps(case, ensure_ascii=False, indent=1))
        return
    played = [hand for hand in facts if player in hand.players]
    tables = len({hand.table_id for hand in played})
    console.print(
        Text(f"{player}: {len(played):,} hands at {tables:,} tables, {len(pairs)} partners often")
    )
    if partner is not None and not pairs:
        console.print(Text(f"Fewer than {told.least_hands} hands with {partner}: not asked about"))
    else:
        for part in _findings(told, pairs):
            console.print(part)
    for other, hands in to_look_at.items():
        console.print(Text(f"\nHands with {other}, newest first", "bold"))
        if not hands:
            console.print(Text("  none"))
        for hand, why in hands[:most]:
            line = Text(f"  fangcheng replay {hand.table_id} {hand.hand_number}")
            console.print(line.append(f"  {_date(hand)}  {'; '.join(why)}", "dim"))
        if len(hands) > most:
            console.print(Text(f"  and {len(hands) - most:,} more (--hands)", "dim"))


def hands_to_look_at(
    pair: PairReport, facts: Sequence[HandFacts]
) -> list[tuple[HandFacts, list[str]]]:
    """The hands in which a pair did what it is conspicuous for, and what it was, newest first.

    Of a pair that is not conspicuous: those in which anything went between the two. Of one that
    spares each other: also those in which one of them won.
    """
    both = [(pair.one, pair.other), (pair.other, pair.one)]
    asked: list[tuple[Signal, str, str]] = [
        (finding.signal, finding.one, finding.other) for finding in pair.findings if finding.beyond
    ] or [(signal, *names) for signal in ("deal_in", "feed", "pay") for names in both]
    found = []
    for hand in facts:
        if not cells_of(hand, both[:1]):
            continue
        why = [said for question in asked if (said := _happened(hand, *question))]
        if why:
            found.append((hand, why))
    found.sort(key=lambda one: (one[0].ended_ms, one[0].table_id, one[0].hand_number), reverse=True)
    return found


def _happened(hand: HandFacts, signal: Signal, one: str, other: str) -> str:
    """What of it happened in a hand; empty: nothing."""
    ((giver, taker),) = cells_of(hand, [(one, other)])
    if signal == "deal_in":
        return f"{one} deals in to {other}" if (giver, taker) in hand.deal_ins else ""
    if signal == "feed":
        return f"{other} lays down {one}'s discard" if (giver, taker) in hand.claims else ""
    if signal == "pay":
        units = sum(amount for *cell, amount in hand.paid if cell == [giver, taker])
        return f"{one} pays {other} {units:,} units" if units else ""
    winners = {hand.players[winner] for _, winner in hand.deal_ins} & {one, other}
    return " and ".join(f"{name} wins from a third" for name in sorted(winners))


def write_metrics(told: Report, file: Path) -> None:
    """Write counts, never a player, for Prometheus' textfile collector; raises SuiteError."""
    registry = prometheus_client.CollectorRegistry()

    def gauge(name: str, what: str, *labels: str) -> prometheus_client.Gauge:
        full = f"fangcheng_integrity_{name}"
        return prometheus_client.Gauge(full, what, labels, registry=registry)

    gauge("hands", "Hands in the last report.").set(told.hands)
    gauge("questions", "Questions that the last report asked.").set(told.questions)
    pairs = gauge("pairs", "Pairs of players in the last report.", "state")
    pairs.labels("met").set(told.met)
    pairs.labels("asked_about").set(len(told.pairs))
    pairs.labels("beyond_chance").set(len(told.beyond))
    signals = gauge("findings", "Findings beyond chance in the last report.", "signal")
    counts = Counter(f.signal for pair in told.pairs for f in pair.findings if f.beyond)
    for signal in SAID:
        signals.labels(signal).set(counts[signal])
    gauge("report_time_seconds", "When the last report was made, since 1970.").set(time.time())
    try:
        prometheus_client.write_to_textfile(str(file), registry)
    except OSError as error:
        raise SuiteError(f"cannot write {file}", str(error)) from None


def _headlines(told: Report, mute: int) -> list[RenderableType]:
    silent = f"; {mute:,} more tell nothing (dissolved or archived)" if mute else ""
    return [
        Text(
            f"{told.hands:,} hands at {told.tables:,} tables between {told.players:,} players"
            f"{silent}",
            "bold",
        ),
        Text(
            f"{told.met:,} pairs have met, {len(told.pairs):,} of them in {told.least_hands} hands "
            f"or more; {told.questions:,} questions asked of these"
        ),
    ]


def _findings(told: Report, pairs: Sequence[PairReport]) -> list[RenderableType]:
    shown = [(pair, finding) for pair in pairs for finding in pair.findings]
    if pairs and all(pair in told.beyond for pair in pairs):
        shown = [(pair, finding) for pair, finding in shown if finding.beyond]
    if not shown:
        return [Text("Nothing is beyond chance.")]
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("who", overflow="fold")
    for name in ("hands", "tables", "seen", "by chance", "times", "p", "adjusted"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for pair, finding in shown:
        table.add_row(
            # A Text, for an id may look like markup.
            Text(SAID[finding.signal].format(one=finding.one, other=finding.other)),
            f"{pair.hands:,}",
            f"{pair.tables:,}",
            f"{finding.observed:,}",
            f"{finding.expected:,.1f}",
            f"{finding.ratio:.1f}",
            f"{finding.p:.1e}",
            f"{finding.adjusted:.1e}",
            Text("beyond chance", "bold yellow") if finding.beyond else "",
        )
    return [table, Text(NOTE.format(share=f"{100 * told.level:g}"), "dim")]


def _as_json(told: Report, pairs: Sequence[PairReport], mute: int) -> dict[str, Any]:
    return {
        "hands": told.hands,
        "mute_hands": mute,
        "tables": told.tables,
        "players": told.players,
        "pairs_met": told.met,
        "pairs_asked_about": len(told.pairs),
        "questions": told.questions,
        "level": told.level,
        "least_hands": told.least_hands,
        "pair_spreads": told.spreads,
        "note": NOTE.format(share=f"{100 * told.level:g}"),
        "pairs": [
            {
                "players": [pair.one, pair.other],
                "tables": pair.tables,
                "hands": pair.hands,
                "units": [pair.paid_to_other, pair.paid_to_one],
                "beyond_chance": pair.beyond,
                "findings": [_finding_as_json(finding) for finding in pair.findings],
            }
            for pair in pairs
        ],
    }


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    return {
        "signal": finding.signal,
        "from": finding.one,
        "to": finding.other,
        "observed": finding.observed,
        "expected": round(finding.expected, 3),
        "ratio": round(finding.ratio, 3),
        "p": finding.p,
        "adjusted": finding.adjusted,
        "beyond_chance": finding.beyond,
    }


def _hand_as_json(hand: HandFacts, why: list[str]) -> dict[str, Any]:
    return {
        "table_id": hand.table_id,
        "hand_number": hand.hand_number,
        "ended": _date(hand),
        "why": why,
    }


def _as_csv(pairs: Sequence[PairReport]) -> str:
    text = StringIO()
    rows = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    rows.writeheader()
    for pair in pairs:
        for finding in pair.findings:
            rows.writerow(
                {
                    "one": pair.one,
                    "other": pair.other,
                    "tables": pair.tables,
                    "hands": pair.hands,
                    "units_one_to_other": pair.paid_to_other,
                    "units_other_to_one": pair.paid_to_one,
                    **_finding_as_json(finding),
                    "beyond_chance": str(finding.beyond).lower(),
                }
            )
    return text.getvalue().rstrip("\n")


def _date(hand: HandFacts) -> str:
    if not hand.ended_ms:
        return ""
    return datetime.fromtimestamp(hand.ended_ms / 1000, UTC).isoformat(" ", "minutes")[:16]


def _print(console: Console, text: str) -> None:
    console.out(text, highlight=False)
