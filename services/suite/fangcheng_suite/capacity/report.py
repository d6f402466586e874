"""A plan as tables, for a terminal and for a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .figures import Figure
from .model import Assumptions, Costs, Plan
from .prices import Prices, costs_a_month

LARGEST_RUN_PLAYERS = 5_000
"""The most that were ever run, at 1,250 tables; what is planned for more is reckoned."""
_ONE_SUITE_PLAYERS = 100_000
"""The most for whom one suite is reckoned; beyond it more is assumed than proportional costs."""

_RECKONED = (
    "Never run at this size: the costs are those of 5,000 players at 1,250 tables, multiplied."
)
_EXTRAPOLATED = (
    "An extrapolation: nothing of this size was ever run. It assumes that all costs stay "
    "proportional; that a cell is a suite of its own, with its own PostgreSQL servers, wallets, "
    "tables and pools, and knows of no other; that players are spread over the cells evenly; and "
    "that whatever stands before the cells (gateways, names, TLS) is somebody else's."
)


@dataclass(frozen=True, slots=True)
class Section:
    """A table with a heading."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def sections(plan: Plan, costs: Costs, prices: Prices | None = None) -> list[Section]:
    """A plan, told."""
    found = [
        _pace(plan),
        _services(plan),
        _databases(plan, costs),
        _network(plan),
        _limits(plan),
    ]
    if prices is not None:
        found.append(_prices(plan, prices))
    return found


def heading(plan: Plan) -> str:
    """What the plan is for."""
    cells = "one cell" if plan.cells == 1 else f"{plan.cells:,} cells"
    return f"{plan.players:,} players online at the busiest time: {cells}"


def caution(plan: Plan) -> str:
    """How far a plan is from what was run; empty: it is not."""
    if plan.players > _ONE_SUITE_PLAYERS:
        return _EXTRAPOLATED
    return _RECKONED if plan.players > LARGEST_RUN_PLAYERS else ""


def as_json(plan: Plan, given: Assumptions, prices: Prices | None) -> str:
    """All of a plan, with what it assumes."""
    told: dict[str, Any] = {
        "is_extrapolation": plan.players > LARGEST_RUN_PLAYERS,
        "plan": {**asdict(plan), "cores": plan.cores, "memory_bytes": plan.memory_bytes},
        "assumptions": asdict(given),
    }
    if prices is not None:
        told["currency"] = prices.currency
        told["costs_a_month"] = costs_a_month(plan, prices)
    return json.dumps(told, indent=2)


def _pace(plan: Plan) -> Section:
    pace = plan.pace
    rows = (
        ("tables", number(pace.tables)),
        ("open streams", number(pace.streams)),
        ("hands a second", number(pace.hands_per_second)),
        ("answers of players a second", number(pace.acts_per_second)),
        ("seats taken from queues a second", number(pace.seats_per_second)),
        ("hands analysed for clients a second", number(pace.analyses_per_second)),
        ("hands a day", number(pace.hands_per_day)),
    )
    return Section("What happens at the busiest time", ("what", "how much"), rows)


def _services(plan: Plan) -> Section:
    rows = [
        (one.name, number(one.busy_cores), f"{one.replicas:,}", size(one.memory_bytes))
        for one in plan.services
    ]
    rows.append(
        (
            "PostgreSQL, primaries",
            number(plan.database_busy_cores),
            _cores(plan.database_cores),
            "",
        )
    )
    rows.append(("PostgreSQL, standbys", "", _cores(plan.database_cores), ""))
    rows.append(("all", "", _cores(plan.cores), size(plan.memory_bytes)))
    return Section(
        "Processes",
        ("service", "cores busy", "replicas of a core", "memory"),
        tuple(rows),
        "PostgreSQL's memory is not in these figures: give it what holds the hands of some hours.",
    )


def _databases(plan: Plan, costs: Costs) -> Section:
    pace = plan.pace
    rows = (
        ("journal", size(pace.hands_per_day * costs.journal_bytes_per_hand)),
        ("ledger", size(pace.hands_per_day * costs.ledger_bytes_per_hand)),
        ("journal and ledger, 30 days", size(30 * plan.growth_bytes_per_day)),
        ("queues, deleted after some days", size(plan.queues_bytes_per_day)),
        ("write-ahead log", size(plan.log_bytes_per_day)),
    )
    return Section("What a day adds to the databases", ("what", "size"), rows)


def _network(plan: Plan) -> Section:
    rows = (
        ("at the busiest time", f"{number(plan.network_bits_per_second / 1e6)} Mbit/s"),
        ("a player", f"{number(plan.network_bits_per_second / plan.players / 1e3)} kbit/s"),
        ("a day", size(plan.network_bytes_per_day)),
    )
    return Section("Network, to and from clients", ("what", "how much"), rows)


def _limits(plan: Plan) -> Section:
    rows = tuple((limit.name, number(limit.most_players), limit.why) for limit in plan.limits)
    return Section("Where one cell ends", ("what", "players", "why"), rows)


def _prices(plan: Plan, prices: Prices) -> Section:
    paid = costs_a_month(plan, prices)
    rows = [(what, f"{amount:,.0f}") for what, amount in paid.items()]
    total = sum(paid.values())
    rows.append(("all", f"{total:,.0f}"))
    rows.append(("a player", f"{total / plan.players:,.4f}"))
    return Section(f"Thirty days, in {prices.currency}", ("what", "cost"), tuple(rows))


def assumed(given: Assumptions) -> Section:
    """What the plan assumes, by the names of the options."""
    rows = tuple((name.replace("_", "-"), f"{value:g}") for name, value in asdict(given).items())
    return Section("Assumed", ("option", "value"), rows)


def measured(figures: Sequence[Figure]) -> Section:
    """What the plan rests on."""
    rows = tuple(
        (figure.name, f"{number(figure.value)} {figure.unit}".strip(), figure.source)
        for figure in figures
    )
    return Section("Measured", ("figure", "value", "how"), rows)


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count:,} cores"


def number(value: float) -> str:
    """Three figures, or all in front of the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def size(count: float) -> str:
    """Bytes for a person."""
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20)):
        if count >= 2**power:
            return f"{number(count / 2**power)} {unit}"
    return f"{number(count / 2**10)} KiB"
