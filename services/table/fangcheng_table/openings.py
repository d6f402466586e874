"""A table as a hand is about to begin, as bytes: see `stored/v1/state.proto`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from fangcheng_rules.errors import RulesError

from .codec import UnknownEvent
from .events import HandOpened
from .state import TableState
from .store import Journal, JournalError, Opening, Record
from .stored.mapping import mapped
from .stored.v1 import state_pb2 as stored

# The hand before is over and settled; the next one begins with the events that follow.
_TO, _BACK = mapped(TableState, stored.TableState.DESCRIPTOR, {}, frozenset({"hand"}))


class Openings:
    """Keeps what a table was before its newest hand, so that it is resumed from there."""

    def __init__(self, journal: Journal, log: Any) -> None:
        self._journal = journal
        self._log = log
        self._state = b""

    def before_hand(self, state: TableState) -> None:
        """A hand is about to begin."""
        self._state = freeze(state)

    def among(self, records: Iterable[Record], numbers: Sequence[int]) -> Opening | None:
        """The opening of the hand that has begun with these records, if one has.

        `numbers`: the last number of each viewer then.
        """
        state, self._state = self._state, b""
        for record in records:
            if state and isinstance(record.event, HandOpened):
                return Opening(record.sequence - 1, with_numbers(state, numbers))
        return None

    async def save(self, table_id: str, opening: Opening) -> None:
        """Keep it; without it more of the journal has to be read."""
        try:
            await self._journal.save_opening(table_id, opening)
        except JournalError as error:
            self._log.warning("an opening was not kept", table_id=table_id, problem=str(error))


def freeze(state: TableState) -> bytes:
    """The state of a table that is about to begin a hand."""
    body: bytes = _TO(state).SerializeToString()
    return body


def with_numbers(state: bytes, numbers: Sequence[int]) -> bytes:
    """An opening: the state, and the last number of each viewer then."""
    opening = stored.Opening(state=stored.TableState.FromString(state), numbers=numbers)
    return opening.SerializeToString()


def thaw(opening: bytes) -> tuple[TableState, Sequence[int]]:
    """State and numbers of an opening; raises `UnknownEvent` for one that cannot be read."""
    try:
        read = stored.Opening.FromString(opening)
        state: TableState = _BACK(read.state)
    except (DecodeError, LookupError, ValueError, RulesError) as error:
        raise UnknownEvent(f"an opening that this version cannot read: {error}") from error
    return state, read.numbers
