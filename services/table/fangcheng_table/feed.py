"""What the viewers of a table have seen, and the readers that follow it.

A reader is a cursor over its viewer's events, woken when there are more: however slow it is,
nothing queues up for it. The events of the hand in play and of the one before are kept; who asks
for older ones is sent a snapshot. That is folded from the viewer's own events, by the same
`TableView` that clients use, so that it tells nothing which they did not.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence

from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2
from fangcheng_client import TableView
from fangcheng_kit.errors import ServiceError

from . import convert
from .errors import InvalidNumber, ReaderTooSlow
from .events import Event, HandOpened, OperatorActed, TableClosed
from .ids import trustee_id
from .state import TableState
from .store import Record
from .views import RECORD, SEATS, SPECTATORS, VIEWERS, Projector

MOST_TALK = 20
"""Things said that wait for a reader at most; older ones are not heard."""


class Reader:
    """One viewer's place in a feed."""

    def __init__(
        self,
        feed: Feed,
        viewer: int,
        number: int,
        on_news: Callable[[], None],
        *,
        snapshot: bool,
        muted: Collection[int],
    ) -> None:
        """`number`: the last event that is known; raises `InvalidNumber` if there is none such."""
        if number > feed.last(viewer):
            raise InvalidNumber(number, feed.last(viewer))
        self.feed = feed
        self.viewer = viewer
        self.number = number
        self.on_news = on_news
        self._wants_snapshot = snapshot or number < feed.oldest(viewer)
        # What had happened before it came does not count as its slowness.
        self._from = feed.last(viewer)
        self._ended: ServiceError | None = None
        self._muted = muted
        self._talk: deque[table_pb2.Talk] = deque(maxlen=MOST_TALK)

    def hear(self, talk: table_pb2.Talk) -> None:
        """Something was said; what is not read in time is not heard."""
        if talk.seat not in self._muted:
            self._talk.append(talk)
            self.on_news()

    def heard(self) -> table_pb2.Talk | None:
        """The next thing that was said, None where there is none yet."""
        return self._talk.popleft() if self._talk else None

    def end(self, why: ServiceError) -> None:
        """Let the reader go no further."""
        self._ended = why
        self.on_news()

    def next(self, most_behind: int) -> events_pb2.TableEvent | None:
        """The next event, None where there is none yet.

        Raises what it was ended with, and `ReaderTooSlow` where more than `most_behind` events have
        come since it began that it has not read, or the next one is kept no longer.
        """
        if self._ended is not None:
            raise self._ended
        last = self.feed.last(self.viewer)
        behind = last - max(self.number, self._from)
        if behind > most_behind:
            raise ReaderTooSlow(behind)
        if self._wants_snapshot:
            self._wants_snapshot = False
            self.number = last
            return self.feed.snapshot(self.viewer)
        if self.number >= last:
            return None
        if self.number < self.feed.oldest(self.viewer):
            raise ReaderTooSlow(last - self.number)
        self.number += 1
        return self.feed.event(self.viewer, self.number)

    @property
    def at_end(self) -> bool:
        """The table has closed and every event was read."""
        return self.feed.finished and self.number >= self.feed.last(self.viewer)


class _Seen:
    """What one viewer was shown: the newest events, and what those before add up to."""

    __slots__ = ("_base", "_base_number", "_bodies", "hand", "oldest")

    def __init__(self) -> None:
        self.oldest = 0
        """The number from which on a reader can be sent every event that follows."""
        # Without their numbers, so that all who see the same share one copy.
        self._bodies: list[bytes] = []
        self._base = b""
        self._base_number = 0
        self.hand = 0
        """The last number before the newest hand began."""

    @property
    def last(self) -> int:
        """Number of the newest event."""
        return self.oldest + len(self._bodies)

    def add(self, body: bytes) -> None:
        self._bodies.append(body)

    def body(self, number: int) -> bytes:
        if number <= self.oldest:
            raise IndexError(f"event {number} is not kept")
        return self._bodies[number - self.oldest - 1]

    def newest_first(self) -> Iterable[bytes]:
        return reversed(self._bodies)

    def rest_on(self, snapshot: events_pb2.Snapshot, keep_from: int) -> None:
        """Begin snapshots at this one, of now; forget the events up to `keep_from`."""
        self._base, self._base_number = snapshot.SerializeToString(), self.last
        if keep_from > self.oldest:
            del self._bodies[: keep_from - self.oldest]
            self.oldest = keep_from

    def new_hand(self, snapshot: events_pb2.Snapshot) -> None:
        """A hand is about to begin; keep the events of the one before."""
        self.rest_on(snapshot, self.hand)
        self.hand = self.last

    def view(self) -> TableView:
        """All of it, as the viewer's client knows it."""
        view = TableView(last_number=self._base_number)
        if self._base:
            base = events_pb2.Snapshot.FromString(self._base)
            view.apply(events_pb2.TableEvent(number=self._base_number, snapshot=base))
        for number in range(self._base_number + 1, self.last + 1):
            event = events_pb2.TableEvent.FromString(self.body(number))
            event.number = number
            view.apply(event)
        return view


def no_time_left(seat: int, decision_id: str) -> tuple[int, int]:
    """Nothing is open any more."""
    return 0, 0


class Feed:
    """The events of all viewers of a table."""

    def __init__(self, most_kept: int = 1_000, projector: Projector | None = None) -> None:
        """`most_kept`: events of a viewer; more are not kept, however long a hand takes.

        `projector`: of the one viewer `RECORD`, who sees everything; None: of all others.
        """
        self.finished = False
        """No more events come: the table has closed, or the hand that is revealed is over."""
        self.ms_left: Callable[[int, str], tuple[int, int]] = no_time_left
        """How long a seat's prompt, or what all are asked, is still open; and the reserve."""
        self.open_view = TableView()
        """The table as spectators see it, up to now."""
        self._most_kept = most_kept
        self._projector = projector or Projector()
        self._open = SPECTATORS if projector is None else RECORD
        """Whose view `open_view` is."""
        self._seen = {viewer: _Seen() for viewer in (VIEWERS if projector is None else (RECORD,))}
        self._at_hand: tuple[bytes, Projector] | None = None
        """What spectators saw before the newest hand, and who would show all of it."""
        self._waiting: list[Record] | None = None
        self._last_hand = math.inf
        """With the hand after this one it is finished."""
        self._back_ids = dict.fromkeys(VIEWERS, "")
        self._readers: set[Reader] = set()

    def publish(self, records: Iterable[Record]) -> None:
        """Show what was stored."""
        if self._waiting is not None:
            self._waiting += records
            return
        for record in records:
            if self._open == RECORD and _is_reveal(record.event):
                continue
            if isinstance(record.event, HandOpened) and record.event.hand_number > self._last_hand:
                self.finished = True
                break
            for viewers, event in self._projector.see(record):
                self._show(viewers, event)
            self.finished |= isinstance(record.event, TableClosed)
        for reader in self._readers:
            reader.on_news()

    def _show(self, viewers: tuple[int, ...], event: events_pb2.TableEvent) -> None:
        if event.HasField("hand_started"):
            self._new_hand()
        body = event.SerializeToString()
        for viewer in viewers:
            seen = self._seen[viewer]
            seen.add(body)
            if seen.last - seen.oldest > self._most_kept:
                seen.rest_on(seen.view().to_snapshot(), seen.last - self._most_kept // 2)
        if self._open in viewers:
            self.open_view.apply(event)
        elif event.HasField("trustee_changed"):
            self._back_ids[event.trustee_changed.seat] = event.trustee_changed.decision_id
        if event.HasField("player_seated") and self._open == SPECTATORS:
            # What was asked of whoever had the seat before is not for the one who has it now.
            seat = event.player_seated.seat.seat
            self._back_ids[seat] = ""
            seen = self._seen[seat]
            seen.rest_on(seen.view().to_snapshot(), seen.last)

    @property
    def numbers_at_hand(self) -> tuple[int, ...]:
        """The last number of each viewer before the hand in play, or the last one, began."""
        return tuple(seen.hand for seen in self._seen.values())

    def resume(self, state: TableState, numbers: Sequence[int]) -> None:
        """Go on from the moment before a hand begins; `numbers`: `numbers_at_hand` of it.

        The records from `HandOpened` on are to be published next. What was seen before is not kept.
        """
        self._projector = Projector.between_hands(state)
        table = convert.table_to_wire(state)
        convert.hide_from_players(table)
        self.open_view = TableView()
        self.open_view.apply(events_pb2.TableEvent(snapshot=events_pb2.Snapshot(table=table)))
        for viewer, number in zip(VIEWERS, numbers, strict=True):
            self._seen[viewer].oldest = number
        for number, seat in enumerate(state.seats):
            may_return = seat.trustee and not seat.removed
            self._back_ids[number] = trustee_id(seat.trustee_times) if may_return else ""
        self._new_hand()

    def _new_hand(self) -> None:
        # Between two hands all know the same, but who they are and how to take their seat back.
        snapshot = self.open_view.to_snapshot()
        snapshot.ClearField("hand")
        for viewer, seen in self._seen.items():
            if viewer == self._open:
                snapshot.ClearField("seat")
                self._at_hand = snapshot.SerializeToString(), self._projector.revealed()
            else:
                snapshot.seat = viewer
            snapshot.back_decision_id = self._back_ids.get(viewer, "")
            seen.new_hand(snapshot)

    def revealed(self, hand_number: int) -> Feed:
        """A feed in which all tiles are open, and what each seat is asked.

        Its numbers count all of that since the table was opened, the spectators' events and the
        prompts of all seats, so that they are the same in each such feed, on any replica. It is
        finished when that hand is over and the next one begins, or with the table.

        It goes on from the newest hand's beginning, or from now where there was none; `catch_up`
        gives it what was published since then, and until then it shows nothing.
        """
        before, projector = self._at_hand or (
            self.open_view.to_snapshot().SerializeToString(),
            self._projector.revealed(),
        )
        # Each has one of its own: several operators may look at the same hand.
        feed = Feed(self._most_kept, projector.revealed())
        numbers = [seen.hand if self._at_hand else seen.last for seen in self._seen.values()]
        # A seat sees what spectators see, and its own prompts.
        open_ = numbers[SPECTATORS]
        feed._seen[RECORD].oldest = open_ + sum(numbers[seat] - open_ for seat in SEATS)
        feed.ms_left = lambda seat, decision_id: self.ms_left(seat, decision_id)
        snapshot = events_pb2.Snapshot.FromString(before)
        feed._seen[RECORD].rest_on(snapshot, 0)
        feed.open_view.apply(events_pb2.TableEvent(snapshot=snapshot))
        feed._waiting = []
        feed._last_hand = hand_number
        return feed

    def catch_up(self, records: Sequence[Record]) -> None:
        """Show what had been stored before this feed was made, and since."""
        waiting, self._waiting = self._waiting or [], None
        self.publish([*records, *waiting])

    def last(self, viewer: int) -> int:
        """Number of a viewer's newest event."""
        return self._seen[viewer].last

    def oldest(self, viewer: int) -> int:
        """Number from which on every event that follows is kept."""
        return self._seen[viewer].oldest

    @property
    def spectators(self) -> int:
        """Readers that watch."""
        return sum(reader.viewer == SPECTATORS for reader in self._readers)

    def event(self, viewer: int, number: int) -> events_pb2.TableEvent:
        """An event of a viewer that is kept, as it is to be sent now."""
        event = events_pb2.TableEvent.FromString(self._seen[viewer].body(number))
        event.number = number
        match event.WhichOneof("kind"):
            case "prompt":
                self._tell_time(viewer, event.prompt)
            case "seat_prompted":
                self._tell_time(event.seat_prompted.seat, event.seat_prompted.prompt)
            case "ready_asked":
                asked = event.ready_asked
                asked.ms_left = self.ms_left(viewer, asked.decision_id)[0]
            case "vote_opened":
                vote = event.vote_opened
                vote.ms_left = self.ms_left(viewer, vote.decision_id)[0]
        return event

    def _tell_time(self, viewer: int, prompt: events_pb2.Prompt) -> None:
        prompt.ms_left, prompt.reserve_ms_left = self.ms_left(viewer, prompt.decision_id)

    def snapshot(self, viewer: int) -> events_pb2.TableEvent:
        """All that a viewer has been told up to now."""
        event = events_pb2.TableEvent(
            number=self.last(viewer), snapshot=self._seen[viewer].view().to_snapshot()
        )
        event.time.GetCurrentTime()
        if event.snapshot.HasField("prompt"):
            self._tell_time(viewer, event.snapshot.prompt)
        for prompted in event.snapshot.prompts:
            self._tell_time(prompted.seat, prompted.prompt)
        return event

    def has_answered(self, seat: int, decision_id: str, action: state_pb2.Action) -> bool:
        """Whether a seat has given this answer to this prompt, as far back as events are kept."""
        wanted = decision_id.encode()
        for body in self._seen[seat].newest_first():
            if wanted not in body:
                continue
            closed = events_pb2.TableEvent.FromString(body).prompt_closed
            if closed.decision_id == decision_id:
                return closed.why == "answered" and closed.action == action
        return False

    def open(
        self,
        viewer: int,
        number: int,
        on_news: Callable[[], None],
        *,
        snapshot: bool = False,
        muted: Collection[int] = (),
    ) -> Reader:
        """A reader that knows the events up to `number` already; `on_news`: there are more.

        It begins with a snapshot where that is asked for, or what follows `number` is not kept.
        What the seats in `muted` say is not heard.
        """
        reader = Reader(self, viewer, number, on_news, snapshot=snapshot, muted=muted)
        self._readers.add(reader)
        return reader

    def end(self, why: ServiceError) -> None:
        """End all readers."""
        for reader in self._readers:
            reader.end(why)

    def say(self, talk: table_pb2.Talk, *, spectators: bool) -> None:
        """Let all seats hear what one says, and spectators where they may."""
        for reader in self._readers:
            if spectators or reader.viewer != SPECTATORS:
                reader.hear(talk)

    def close(self, reader: Reader) -> None:
        """Forget a reader."""
        self._readers.discard(reader)


def _is_reveal(event: Event) -> bool:
    return isinstance(event, OperatorActed) and event.verb == "reveal"


class Waiter:
    """Waits for the news of one or more readers, or until a stream has been silent for long.

    Readers are also woken by what they may not see. So the silence is counted from the last message
    and by nothing else: the time of a heartbeat must not tell that something hidden has happened.
    """

    def __init__(self, silence_seconds: float) -> None:
        """`silence_seconds`: how long a stream may be without a message."""
        self._silence_seconds = silence_seconds
        self._news = asyncio.Event()
        self.spoke()

    def spoke(self) -> None:
        """A message was sent."""
        self._spoken = asyncio.get_running_loop().time()

    async def since_spoken(self, seconds: float) -> None:
        """Wait until the last message is so long ago; not at all where it is."""
        rest = self._spoken + seconds - asyncio.get_running_loop().time()
        if rest > 0:
            await asyncio.sleep(rest)

    @property
    def is_due(self) -> bool:
        """The stream has been silent for long."""
        return asyncio.get_running_loop().time() >= self._spoken + self._silence_seconds

    def wake(self) -> None:
        """There is something to do."""
        self._news.set()

    async def wait(self) -> bool:
        """Wait for news, until the silence is over; whether there are any."""
        try:
            async with asyncio.timeout_at(self._spoken + self._silence_seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


def heartbeat(last_number: int = 0) -> events_pb2.Heartbeat:
    """What is sent where nothing else is; `last_number`: the newest event of the viewer."""
    beat = events_pb2.Heartbeat(last_number=last_number)
    beat.server_time.GetCurrentTime()
    return beat
