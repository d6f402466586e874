"""What a pool of matchmaking plays, and for what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fangcheng_matchmaking.core import Terms
from fangcheng_matchmaking.pools import BadPools, load_pools
from fangcheng_suite.errors import SuiteError

from .plan import Stakes


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """The part of a pool's terms that can be simulated."""

    rules: str
    revision: int
    """0: the newest."""
    options: tuple[str, ...]
    """`cap=64`, those that differ from the defaults."""
    session_hands: int | None
    """None: its tables are not played for a number of hands."""
    stakes: Stakes | None
    """Of the currency that a buy-in is held of; None: there is none."""


def terms_of(pool_id: str, file: Path | None) -> PoolTerms:
    """The terms of a pool; without a file of one that comes with matchmaking. Raises SuiteError."""
    try:
        pools = load_pools(file).pools
    except BadPools as error:
        first, *more = str(error).splitlines()
        raise SuiteError(
            first, "Mend the file, or name another with --pools.", tuple(more)
        ) from None
    if pool_id not in pools:
        raise SuiteError(
            f"--pool: no pool {pool_id!r} in {file or 'the pools that come with matchmaking'}",
            f"There are: {', '.join(pools)}.",
        )
    terms = pools[pool_id].pool.terms
    return PoolTerms(
        terms.rule_set,
        terms.revision,
        tuple(f"{id}={value}" for id, value in terms.options.items()),
        terms.hands or None,
        _stakes(terms),
    )


def _stakes(terms: Terms) -> Stakes | None:
    for stake in terms.buy_ins:
        fees = [
            fee.amount
            for fee in terms.fees
            if (fee.currency, fee.book) == (stake.currency, stake.book)
        ]
        return Stakes(
            stake.per_unit, stake.buy_in, stake.minimum, stake.loss_cap_per_hand, sum(fees)
        )
    return None
