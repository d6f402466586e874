"""Which hands of a table are finished: what the journal's index of hands is written from."""

from __future__ import annotations

import re

from fangcheng_rules import events as play
from fangcheng_rules.scoring import End

from .events import HandOpened, HandSettled, PlayerSeated, TableCreated
from .settlement import is_owed
from .state import TableState
from .store import HandEntry, Record


def word_of(end: type[End]) -> str:
    """How a hand ended, in a word: `win`, `draw`, `escape`, `dissolved`, `eight_flowers`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", end.__name__).lower()


FOLLOWED = (TableCreated, PlayerSeated, HandOpened, play.HandEnded, HandSettled)
"""The events that `FinishedHands` heeds."""


class FinishedHands:
    """Follows a journal and tells the hands that it finishes.

    A hand is finished when it is settled; where nothing is to be settled, when it has ended.
    """

    def __init__(self) -> None:
        self._created: TableCreated | None = None
        self._players: tuple[str, ...] = ()
        self._number = 0
        self._first_sequence = 0
        self._charged = False
        self._ended_ms = 0
        self._ending = ""

    @classmethod
    def between_hands(cls, state: TableState) -> FinishedHands:
        """As it is before a hand begins, for those that follow."""
        hands = cls()
        hands._created = state.created
        hands._players = tuple(seat.plan.player_id for seat in state.seats)
        hands._charged = state.charged
        return hands

    @property
    def first_sequence(self) -> int:
        """Of the newest hand's `HandOpened`; 0: there was no hand."""
        return self._first_sequence

    def see(self, record: Record) -> HandEntry | None:
        """The hand that is finished with this record, if one is."""
        match record.event:
            case TableCreated() as created:
                self._created = created
                self._players = tuple(plan.player_id for plan in created.seats)
            case PlayerSeated(seat, plan):
                self._players = (*self._players[:seat], plan.player_id, *self._players[seat + 1 :])
            case HandOpened(hand_number):
                self._number, self._first_sequence = hand_number, record.sequence
            case play.HandEnded() as ended:
                self._ended_ms, self._ending = record.time_ms, word_of(type(ended.end))
                if not is_owed(self._table, ended.end, charged=self._charged):
                    return self._entry(record)
            case HandSettled():
                self._charged = True
                return self._entry(record)
            case _:
                pass
        return None

    @property
    def _table(self) -> TableCreated:
        if self._created is None:
            raise ValueError("a table's first event is TableCreated")
        return self._created

    def _entry(self, record: Record) -> HandEntry:
        table = self._table
        return HandEntry(
            table_id=table.table_id,
            hand_number=self._number,
            rule_set=table.rule_set,
            player_ids=self._players,
            labels=table.labels,
            ended_ms=self._ended_ms,
            ending=self._ending,
            first_sequence=self._first_sequence,
            last_sequence=record.sequence,
        )
