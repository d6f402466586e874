"""Who follows a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fangcheng_kit.errors import ServiceError

from .errors import AttendedElsewhere, LeftTable, RemovedFromTable
from .events import OperatorActed, SeatVacated
from .feed import Feed, Reader
from .metrics import TableMetrics
from .store import Journal, Record
from .views import RECORD, SPECTATORS


class Viewers:
    """A table's feed, one more for each operator who looks at all tiles, and the seats' streams."""

    def __init__(self, most_kept: int, metrics: TableMetrics) -> None:
        self.feed = Feed(most_kept)
        self._revealed: set[Feed] = set()
        self._attending: dict[int, Reader] = {}
        self._metrics = metrics

    @property
    def seats(self) -> Collection[int]:
        """The seats that have a stream."""
        return self._attending.keys()

    def attend(
        self,
        seat: int,
        number: int,
        on_news: Callable[[], None],
        *,
        again: bool,
        snapshot: bool = False,
        muted: Collection[int] = (),
    ) -> Reader:
        """Follow a seat's events; an older reader of the seat is ended.

        `again`: the seat was attended before.
        """
        reader = self.feed.open(seat, number, on_news, snapshot=snapshot, muted=muted)
        older = self._attending.get(seat)
        self._attending[seat] = reader
        if older is not None:
            older.end(AttendedElsewhere())
        elif again:
            self._metrics.reconnects.inc()
        self._metrics.seat_streams.inc()
        return reader

    def watch(self, number: int, on_news: Callable[[], None], *, snapshot: bool = False) -> Reader:
        """Follow the spectators' events."""
        reader = self.feed.open(SPECTATORS, number, on_news, snapshot=snapshot)
        self._metrics.spectator_streams.inc()
        return reader

    async def reveal(
        self,
        table_id: str,
        hand_number: int,
        journal: Journal,
        first: int,
        last: int,
        on_news: Callable[[], None],
    ) -> Reader:
        """Follow the table with all tiles open, from a snapshot on, until that hand is over.

        `first`, `last`: the newest hand's records up to now; 0 for `first`: there was no hand.
        """
        feed = self.feed.revealed(hand_number)
        self._revealed.add(feed)
        try:
            feed.catch_up(await journal.read(table_id, first - 1, last) if first else [])
            reader = feed.open(RECORD, feed.last(RECORD), on_news, snapshot=True)
        except BaseException:
            self._revealed.discard(feed)
            raise
        self._metrics.spectator_streams.inc()
        return reader

    def leave(self, reader: Reader) -> bool:
        """A reader is gone; whether its seat has nobody now, as it was the seat's newest."""
        reader.feed.close(reader)
        self._revealed.discard(reader.feed)
        is_seat = reader.viewer not in (SPECTATORS, RECORD)
        (self._metrics.seat_streams if is_seat else self._metrics.spectator_streams).dec()
        if self._attending.get(reader.viewer) is not reader:
            return False
        del self._attending[reader.viewer]
        return True

    def publish(self, table_id: str, records: Sequence[Record]) -> None:
        """Show what was stored, and end the streams of those who are no longer at the table."""
        for feed in (self.feed, *self._revealed):
            feed.publish(records)
        for record in records:
            match record.event:
                case OperatorActed(verb="remove", seat=int(seat)):
                    why: ServiceError = RemovedFromTable(table_id)
                case SeatVacated(seat):
                    why = LeftTable()
                case _:
                    continue
            reader = self._attending.pop(seat, None)
            if reader is not None:
                reader.end(why)

    def end(self, why: ServiceError) -> None:
        """End all streams."""
        for feed in (self.feed, *self._revealed):
            feed.end(why)
