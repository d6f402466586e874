"""What a table tells its operators: the spans of what happens there, and the lines of its log.

A line for what a person would tell of an evening: hands, leavings, interventions. Not for every
tile, nor for connections that come and go; those are in the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from fangcheng_kit.tracing import Trace, first, within
from fangcheng_rules import events as play

from .events import (
    Event,
    GraceEnded,
    HandOpened,
    HandSettled,
    HoldsReleased,
    LeaveAnnounced,
    OperatorActed,
    PlayerSeated,
    SeatVacated,
    TableClosed,
    TableCreated,
    TableDeserted,
    VoteClosed,
)
from .finished import word_of
from .surroundings import Surroundings


class Telling:
    """Tells of one table."""

    def __init__(
        self, created: TableCreated, around: Surroundings, made_by: Trace | None = None
    ) -> None:
        """`made_by`: the call that has just created it."""
        self._created = created
        self._tracing = around.tracing
        self._log = around.log.bind(table_id=created.table_id)
        self._made_by = made_by  # until the first deal

    def span(
        self, causes: Sequence[Trace | None], told: Sequence[Event], began_ns: int, hand: int
    ) -> AbstractContextManager[object]:
        """The span of what has just happened, of the trace of what has brought it about.

        What the first hand begins with, up to its deal, belongs to the table's creation, whatever
        was the last thing that it took.
        """
        name = "table.turn"
        if any(isinstance(event, HandOpened | play.Dealt) for event in told):
            name = "table.deal"
            if self._made_by is not None:
                causes = [self._made_by, *causes]
                self._dealt(told)
        if not told or not self._tracing.is_on:
            return within(first(causes))
        return self._tracing.span(
            name,
            causes,
            began_ns=began_ns,
            table_id=self._created.table_id,
            hand=hand,
            events=" ".join(type(event).__name__ for event in told),
        )

    def log(self, told: Sequence[Event], hand: int) -> None:
        """Write what has been stored."""
        for event in told:
            line = _line(event)
            if line is not None:
                what, more = line
                self._log.info(what, **{"hand": hand, **more})

    def _dealt(self, told: Sequence[Event]) -> None:
        """The first hand begins: the span of how long its players were waited for."""
        if any(isinstance(event, HandOpened) for event in told):
            self._tracing.span(
                "table.wait_for_players",
                [self._made_by],
                began_ns=self._created.created_ms * 1_000_000,
                table_id=self._created.table_id,
            ).end()
        if any(isinstance(event, play.Dealt) for event in told):
            self._made_by = None


def _line(event: Event) -> tuple[str, dict[str, Any]] | None:
    """The words for an event, and what is told with them; None: it is not told."""
    match event:
        case HandOpened(number):
            return "hand started", {"hand": number}
        case play.HandEnded():
            return "hand ended", {"ending": word_of(type(event.end))}
        case HandSettled(number, key, _, short):
            return "hand settled", {"hand": number, "settlement_key": key, "short_seats": short}
        case play.TrusteeSet():
            what = "seat played by the table" if event.on else "seat plays again"
            return what, {"seat": event.seat, "reason": event.reason}
        case GraceEnded(seat):
            return "seat away for too long", {"seat": seat}
        case LeaveAnnounced(seat, now):
            return "player leaves", {"seat": seat, "at_once": now}
        case SeatVacated(seat, why):
            return "seat vacated", {"seat": seat, "reason": why}
        case PlayerSeated(seat, _):
            return "player seated", {"seat": seat}
        case VoteClosed(_, outcome):
            return "vote closed", {"outcome": outcome}
        case OperatorActed():
            return "operator acted", {"verb": event.verb, "case_id": event.case_id}
        case TableDeserted():
            return "table deserted", {}
        case TableClosed(reason):
            return "table closed", {"reason": reason}
        case HoldsReleased():
            return "holds released", {}
        case _:
            return None
