"""From rows of either storage to what they stand for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from fangcheng_wallet.chain import LinkedOperation
from fangcheng_wallet.ledger import (
    AccountKey,
    Balance,
    Entry,
    Hold,
    HoldState,
    Kind,
    Player,
    StreamedEntry,
)

_HOLD = (
    "hold_id, holds.player_id, currency, book, amount, balance, state, table_id, expires_at_us,"
    " given_back FROM holds JOIN accounts ON accounts.id = account"
)
HOLDS = f"SELECT {_HOLD}"
ALL_HOLDS = f"SELECT accounts.id, {_HOLD}"


def mention(player_id: str) -> str:
    """What the body of an operation about a player has in it; see ``canonical``."""
    return f'"player_id":{msgspec.json.encode(player_id).decode()}'


def player(row: Sequence[Any]) -> Player:
    """A player from a row of ``players``."""
    player_id, frozen, reason, case_id, changed_us, is_bot = row
    return Player(player_id, bool(frozen), reason, case_id, changed_us, bool(is_bot))


def hold(row: Sequence[Any]) -> Hold:
    """A hold from a row of ``HOLDS``."""
    (hold_id, player_id, currency, book, amount, remaining, state, *rest) = row
    return Hold(hold_id, player_id, currency, book, amount, remaining, HoldState(state), *rest)


def balances_of(rows: Iterable[tuple[str, str, str, int]]) -> Sequence[Balance]:
    """The balances of one player from his accounts: kind, currency, book, balance."""
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for kind, currency, book, balance in rows:
        unit = sums.setdefault((currency, book), {})
        unit[kind] = unit.get(kind, 0) + balance
    return [
        Balance(
            *unit,
            available=by_kind.get(Kind.PLAYER, 0),
            held=by_kind.get(Kind.HOLD, 0),
            owed=-by_kind.get(Kind.RECEIVABLE, 0),
        )
        for unit, by_kind in sorted(sums.items())
    ]


def entry(version: int, unit: Sequence[str], rest: Sequence[Any], labels: str | None) -> Entry:
    """An entry; ``rest``: amount, balance after, reason, reference, memo, time."""
    amount, balance_after, reason, reference, memo, time_us = rest
    return Entry(
        *(version, unit[0], unit[1], amount, balance_after, reason, reference, memo, time_us),
        labels=json.loads(labels) if labels else {},
    )


def streamed(row: Sequence[Any]) -> StreamedEntry:
    """A streamed entry from the columns that ``stream`` selects."""
    number, kind, owner, currency, book, version = row[:6]
    key = AccountKey(Kind(kind), owner, currency, book)
    shown = entry(version, (currency, book), row[6:12], row[12])
    return StreamedEntry(number, key, shown, verb=row[13], operation=row[14])


def with_postings(
    operations: Iterable[Sequence[Any]], postings: Iterable[Sequence[Any]]
) -> Iterator[LinkedOperation]:
    """Put rows of operations and of postings, both in order, together."""
    groups = groupby(postings, key=lambda row: row[0])
    number, group = next(groups, (0, iter(())))
    for row in operations:
        while number and number < row[0]:
            number, group = next(groups, (0, iter(())))
        own = [one[1:] for one in group] if number == row[0] else []
        yield LinkedOperation._make((*row, own))
