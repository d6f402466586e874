"""The settlements of a journal: what a wallet that was restored from a backup is told again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass

from .errors import TableArchived
from .events import HandSettled, TableCreated
from .settlement import Settlement, settlement_of
from .state import TableState
from .store import Filter, Journal, Record

_PAGE = 100


@dataclass(frozen=True, slots=True)
class SettledHand:
    """A settlement that a wallet has acknowledged."""

    table: TableCreated
    settlement: Settlement
    settled: HandSettled
    """What the wallet has paid."""
    time_ms: int
    """When it was acknowledged, in milliseconds since 1970."""


def settled_of(records: Sequence[Record]) -> Iterator[SettledHand]:
    """The settled hands of a table's whole journal, in the order in which they were played."""
    first = records[0].event
    if not isinstance(first, TableCreated):
        raise ValueError("a table's first event is TableCreated")
    state = TableState.opened(first)
    for record in records[1:]:
        if isinstance(record.event, HandSettled) and state.hand is not None:
            plans = tuple(seat.plan for seat in state.seats)
            settlement = settlement_of(first, plans, state.hand, charged=state.charged)
            yield SettledHand(first, settlement, record.event, record.time_ms)
        state.follow(record.event)


async def settled_hands(journal: Journal) -> AsyncGenerator[SettledHand, None]:
    """The settled hands of all tables, the newest table's first."""
    before: int | None = None
    while True:
        found = await journal.find(Filter(include_closed=True), before, _PAGE)
        for one in found:
            try:
                records = await journal.read(one.table_id)
            except TableArchived:
                continue  # older than any backup that is still of use
            for hand in settled_of(records):
                yield hand
        if len(found) < _PAGE:
            return
        before = found[-1].place
