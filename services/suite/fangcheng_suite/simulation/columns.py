"""The rows as a Parquet file: one row for each hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fangcheng_suite.errors import SuiteError
from fangcheng_suite.written import written_whole

from .hands import ENDS, REASONS, Rows, seats_of
from .plan import Plan

Columns = dict[str, tuple[NDArray[np.generic], str]]
"""By name: the values, and what they are."""


def needed() -> None:
    """Raise SuiteError unless Parquet files can be written here."""
    try:
        import pyarrow  # noqa: F401 # whether it is there
    except ImportError:
        raise SuiteError(
            "Parquet files need pyarrow, which is not installed",
            "Install it with: pip install 'fangcheng[parquet]'",
        ) from None


def columns_of(plan: Plan, rows: Rows, variant: int = 0) -> Columns:
    """The columns of a plan's hands, each with what it is."""
    kinds = np.array(plan.players)
    seated = kinds[rows["players"]]
    winners = seats_of(rows["winners"])
    declared, flat, bankrupt = (seats_of(rows[name]) for name in ("declared", "flat", "bankrupt"))
    source, fan = rows["source"], rows["fan"]
    found: Columns = {
        "variant": (np.full(len(rows), variant, np.int8), "0: as asked for; 1: what is compared"),
        "session": (rows["session"], "Which session, from 0"),
        "hand": (rows["hand"], "Which hand of its session, from 1"),
        "dealer": (rows["dealer"], "The dealer's seat, 0 to 3"),
        "end": (np.array(ENDS)[rows["end"]], f"How the hand ended: {', '.join(ENDS)}"),
        "source": (
            np.ma.masked_less(source, 0),
            "The seat that dealt in, or whose kong was robbed; null: none",
        ),
        "dealer_stays": (rows["stays"], "The dealer deals the next hand too"),
        "discards": (rows["discards"], "Discards of all four seats"),
        "kongs": (rows["kongs"], "Kongs made and not robbed"),
        "tiles_left": (rows["left"], "Tiles of the wall that nobody has taken"),
        "payments": (rows["payments"], "Payments of a loser to a winner for a win"),
        "capped": (rows["capped"], "How many of those the cap cut"),
        "settled": (
            rows["settled"],
            "The table had not closed before, with the buy-in asked for: what stands below in "
            "coins, and in bankrupt, is of such hands alone",
        ),
        "unpaid": (rows["unpaid"], "Coins that the bankrupt owed and had not"),
    }
    for seat in range(4):
        found |= {
            f"player_{seat}": (seated[:, seat], f"The kind of player in seat {seat}"),
            f"wins_{seat}": (winners[:, seat], f"Seat {seat} has won"),
            f"declared_{seat}": (declared[:, seat], f"Seat {seat} had declared a wait"),
            f"fan_{seat}": (
                np.ma.masked_less(fan[:, seat], 0),
                f"Fan of seat {seat} that count against every loser; null: no win, or a fixed "
                "amount",
            ),
            f"flat_{seat}": (flat[:, seat], f"Seat {seat} is paid a fixed amount, not by fan"),
            f"won_{seat}": (rows["won"][:, seat], f"Units owed to seat {seat} for its win"),
            f"net_{seat}": (rows["net"][:, seat], f"Units that seat {seat} won or lost in all"),
            f"coins_{seat}": (rows["coins"][:, seat], f"Coins that seat {seat} gained or lost"),
            f"bankrupt_{seat}": (bankrupt[:, seat], f"Seat {seat} cannot go on"),
        }
    for place, reason in enumerate(REASONS):
        found[f"moved_{reason}"] = (rows["moved"][:, place], f"Units paid for {reason}")
    for place, item in enumerate(plan.rules.fan_items):
        if item.whose != "loser":
            found[f"item_{item.id}"] = (
                rows["items"][:, place],
                f"Winners with {item.name_zh} {item.name_en}",
            )
    return found


def write(path: Path, played: Sequence[tuple[Plan, Rows]], version: str) -> None:
    """Write the hands of a plan, and those of what it is compared with; raises SuiteError."""
    needed()
    import pyarrow
    from pyarrow import parquet

    parts = []
    for variant, (plan, rows) in enumerate(played):
        columns = columns_of(plan, rows, variant)
        schema = pyarrow.schema(
            [
                pyarrow.field(name, pyarrow.array(values).type, metadata={"meaning": meaning})
                for name, (values, meaning) in columns.items()
            ],
            metadata={
                "fangcheng": json.dumps(
                    {"version": version, "plans": [asdict(plan) for plan, _ in played]}
                )
            },
        )
        arrays = [pyarrow.array(values) for values, _ in columns.values()]
        parts.append(pyarrow.Table.from_arrays(arrays, schema=schema))
    with written_whole(path) as draft:
        parquet.write_table(pyarrow.concat_tables(parts), draft, compression="zstd")
