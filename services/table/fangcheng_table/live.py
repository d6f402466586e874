"""A table as it lives in a process: one task that stores what happens before anyone sees it.

Everything that changes a table goes through its task, one batch after the other: inputs that have
come, what is due, one append to the journal, then the viewers, then whoever waits for an outcome.
Where the append fails, or a fault of ours shows, the table is rebuilt from the journal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng_kit.errors import ServiceError
from fangcheng_kit.tracing import NOBODY, Origin, Trace, origin

from . import convert, convert_play, operating, votes
from .asking import Asking
from .codec import UnknownEvent
from .core import Table, tell_nobody
from .errors import (
    JournalUnavailable,
    Moved,
    NotSeated,
    RemovedFromTable,
    StaleDecision,
    TableIsClosed,
    UnknownTable,
)
from .events import (
    Event,
    HoldsReleased,
    OperatorActed,
    PlayerSeated,
    TableClosed,
)
from .feed import Reader, no_time_left
from .finished import FOLLOWED, FinishedHands
from .ids import read_table_id
from .openings import Openings, thaw
from .operating import Order
from .state import TableState
from .store import (
    HandEntry,
    JournalError,
    Opening,
    OperatorAction,
    Record,
    Superseded,
)
from .surroundings import Surroundings
from .talk import Talk
from .telling import Telling
from .troubles import TAKEN_OVER_MS, Trouble, waiting_for
from .viewers import Viewers

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0


@dataclass(slots=True)
class _Input:
    """Something for the table to do, and where its outcome goes."""

    do: Callable[[Table], Any]
    outcome: asyncio.Future[Any]
    origin: Origin
    value: Any = None
    error: ServiceError | None = None

    def tell(self, failure: ServiceError | None = None) -> None:
        error = failure or self.error
        if self.outcome.done():  # whoever asked was cancelled
            return
        if error is None:
            self.outcome.set_result(self.value)
        else:
            self.outcome.set_exception(error)


class LiveTable:
    """A table, its viewers, and the task that plays it."""

    def __init__(
        self,
        records: Sequence[Record],
        around: Surroundings,
        epoch: int,
        opening: Opening | None = None,
        made_by: Trace | None = None,
        *,
        taken_over: bool = False,
    ) -> None:
        """`records`: its journal; with an `opening`, what follows after it. `epoch`: under which
        this process owns it; 0: it does not, as it need not where nothing is left to do. `made_by`:
        the call that has just created it. `taken_over`: from a process that had not given it up.

        Raises `UnknownEvent` for an opening that cannot be read.
        """
        self._viewers = Viewers(around.most_kept, around.metrics)
        self.feed = self._viewers.feed
        self._epoch = epoch
        self._moved = False
        self._hands = FinishedHands()
        self._around = around
        self._sequence = 0
        self._openings = Openings(around.journal, around.log)
        if opening is not None:
            state, numbers = thaw(opening.state)
            self.feed.resume(state, numbers)
            self._hands = FinishedHands.between_hands(state)
            self._sequence = opening.sequence
        self._table = self._folded(records, opening)
        self._telling = Telling(self._table.state.created, around, made_by)
        self._talk = Talk(self._table.state.created.talk, around.phrases)
        self._counted = around.metrics.table(self.state.created)
        self._time_ms = 0
        self._done = False
        self._stored(records)
        self._inbox: list[_Input] = []
        self._work = asyncio.Event()
        self._asking = Asking(self.state.created, around)
        self._busy_since_ms: int | None = None
        """Since when its task has been at what is to be done and stored."""
        self._due_ms: int | None = None
        """When that has something to do again."""
        self._taken_over_ms = around.clock.now_ms() if taken_over else None
        if not self._done:
            self.feed.ms_left = self._ms_left

    @classmethod
    async def load(
        cls, table_id: str, around: Surroundings, epoch: int, *, taken_over: bool = False
    ) -> LiveTable:
        """A table from the journal, as far back as it has to be read.

        Raises `UnknownTable`, `JournalError`; `UnknownEvent` and `RulesError` for what this version
        cannot play.
        """
        try:
            opening = await around.journal.opening(table_id)
            if opening is not None:
                records = await around.journal.read(table_id, opening.sequence)
                return cls(records, around, epoch, opening, taken_over=taken_over)
        except UnknownEvent as error:
            around.log.warning("an opening is left aside", table_id=table_id, problem=str(error))
        records = await around.journal.read(table_id)
        if not records:
            raise UnknownTable(table_id)
        return cls(records, around, epoch, taken_over=taken_over)

    def _folded(self, records: Sequence[Record], opening: Opening | None) -> Table:
        """The table of a journal, or of what follows after an opening."""
        events = (record.event for record in records)
        if opening is None:
            table = Table.replay(events, self._around.patience)
        else:
            state, _ = thaw(opening.state)
            for event in events:
                state.follow(event)
            table = Table(state, self._around.patience, resumed=True)
        table.before_hand = self._openings.before_hand
        return table

    @property
    def epoch(self) -> int:
        """Under which this process owns it."""
        return self._epoch

    @property
    def done(self) -> bool:
        """Nothing is left to do, and that is stored."""
        return self._done

    @property
    def moved(self) -> bool:
        """Another process owns it now; this one has let go of it."""
        return self._moved

    @property
    def state(self) -> TableState:
        """The table as it stands; may be ahead of what is stored by what is being stored."""
        return self._table.state

    @property
    def table_id(self) -> str:
        """The table's id."""
        return self.state.created.table_id

    @property
    def stored_ms(self) -> int:
        """When something of it was last stored, by the time of day."""
        return self._time_ms

    def troubles(self, now_ms: int, long_ms: int) -> tuple[Trouble, ...]:
        """What is wrong with it, in the order of the contract; times are the game clock's.

        `long_ms`: how long it may take that something due is done, or asked of others is answered.
        """
        long_ago_ms, taken_over_ms = now_ms - long_ms, self._taken_over_ms
        due_ms = self._due_ms if self._busy_since_ms is None else self._busy_since_ms
        is_stuck = due_ms is not None and due_ms <= long_ago_ms
        # Asked of thousands of tables again and again, nearly all of which are well.
        if not (is_stuck or self._asking.waiting or taken_over_ms is not None):
            return ()
        found = [Trouble("stuck", due_ms)] if is_stuck and due_ms is not None else []
        found += waiting_for(self._asking.waiting, long_ago_ms)
        if taken_over_ms is not None and now_ms < taken_over_ms + TAKEN_OVER_MS:
            found.append(Trouble("taken_over", taken_over_ms))
        return tuple(found)

    # What callers do.

    def seat_of(self, player_id: str) -> int:
        """A player's seat; raises `NotSeated` or `RemovedFromTable`.

        Whoever is given a seat has it once that is stored: up to then its events are another's.
        """
        seat = self.state.seat_of(player_id)
        if seat is None or self.feed.open_view.seats[seat].player_id != player_id:
            raise NotSeated(self.table_id)
        if self.state.seats[seat].removed:
            raise RemovedFromTable(self.table_id)
        return seat

    async def do(self, change: Callable[[Table], T]) -> T:
        """Have something done, in its turn; the outcome once it is stored and shown."""
        return await self._post(change)

    async def shown(self) -> state_pb2.Table:
        """The table as it is stored, for operators and services; without its endpoint."""
        return await self.do(lambda table: convert.table_to_wire(table.state))

    async def act(self, seat: int, decision_id: str, answer: state_pb2.Action) -> bool:
        """A player's act; whether it was a repeat of an answer that had been taken."""
        if convert_play.hands_over(answer):
            return await self.do(lambda table: table.hand_over(seat, decision_id))
        if read_table_id(decision_id) is not None:
            word = convert_play.word_from_wire(answer)
            return await self.do(lambda table: votes.reply(table, seat, decision_id, word))
        started = time.perf_counter()
        action = convert_play.action_from_wire(answer)
        try:
            replayed = await self.do(lambda table: table.act(seat, decision_id, action))
        except StaleDecision:
            if self.feed.has_answered(seat, decision_id, answer):
                return True
            raise
        self._around.metrics.acts.observe(time.perf_counter() - started)
        return replayed

    def attend(
        self,
        seat: int,
        number: int,
        entropy: bytes,
        on_news: Callable[[], None],
        *,
        snapshot: bool = False,
        muted: Collection[int] = (),
    ) -> Reader:
        """Follow a seat's events; an older reader of the seat is ended."""
        again = self.state.seats[seat].attended
        reader = self._viewers.attend(
            seat, number, on_news, again=again, snapshot=snapshot, muted=muted
        )
        if not self.state.closed:
            self._post(lambda table: table.attach(seat))
            if entropy:
                self._post(lambda table: table.give_entropy(seat, entropy))
        return reader

    def watch(self, number: int, on_news: Callable[[], None], *, snapshot: bool = False) -> Reader:
        """Follow the spectators' events."""
        return self._viewers.watch(number, on_news, snapshot=snapshot)

    async def reveal(self, order: Order, on_news: Callable[[], None]) -> Reader:
        """Follow a hand with all tiles open, from a snapshot on; it is noted who does, and why.

        Raises `TableIsClosed` and `RequestIdReused`.
        """
        hand = await self.do(lambda table: operating.reveal(table, order))
        first, last = self._hands.first_sequence, self._sequence
        return await self._viewers.reveal(
            self.table_id, hand, self._around.journal, first, last, on_news
        )

    def say(self, seat: int, request: table_pb2.SayRequest) -> None:
        """Let the others hear what a seat says."""
        if self.state.closed:
            raise TableIsClosed
        talk = self._talk.say(seat, request)
        self.feed.say(talk, spectators=self.state.created.talk.spectators)

    def leave(self, reader: Reader) -> None:
        """A reader is gone. Only if it is the seat's newest, the seat has nobody now."""
        # When the service stops, its streams end; that counts against nobody.
        if self._viewers.leave(reader) and not (
            self.state.closed or self._around.stopping.is_set()
        ):
            self._post(lambda table: table.detach(reader.viewer))

    def _post(self, change: Callable[[Table], T]) -> asyncio.Future[T]:
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # Nobody need wait for it; then a failure is no news either, since the table goes on.
        outcome.add_done_callback(lambda done: done.cancelled() or done.exception())
        given = _Input(change, outcome, origin())
        if self._done:
            # Nothing changes any more, so that there is nothing to store.
            _do(given, self._table)
            given.tell()
        elif self._moved:
            given.tell(Moved(self.table_id))
        else:
            self._inbox.append(given)
            self._work.set()
        return outcome

    # The task.

    async def run(self) -> None:
        """Play the table until nothing is left to do for it. Cancel it to stop."""
        pause_seconds, is_broken = FIRST_PAUSE_SECONDS, False
        try:
            while not (self._done or self._moved):
                inputs, self._inbox = self._inbox, []
                self._work.clear()
                if self._busy_since_ms is None:
                    self._busy_since_ms = self._around.clock.now_ms()
                (inputs[0].origin if inputs else NOBODY).enter()
                try:
                    if is_broken:
                        await self._rebuild()
                    await self._turn(inputs)
                    pause_seconds, is_broken = FIRST_PAUSE_SECONDS, False
                except asyncio.CancelledError:
                    for given in inputs:
                        given.tell(JournalUnavailable())
                    raise
                except Superseded:
                    self._around.metrics.superseded.inc()
                    self._around.log.warning("a table has another owner", table_id=self.table_id)
                    self._moved = True
                    for given in inputs:
                        given.tell(Moved(self.table_id))
                except Exception as error:
                    is_broken = True
                    self._failed(inputs, error)
                    await asyncio.sleep(pause_seconds)
                    pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
                    continue
                self._busy_since_ms = None
                if not (self._done or self._moved):
                    await self._wait()
        finally:
            # So that nothing in here holds on to the whole: it goes without the garbage collector.
            self.feed.ms_left = no_time_left
            self._table.before_hand = tell_nobody
            self._asking.stop()
            inputs, self._inbox = self._inbox, []
            for given in inputs:
                if self._done:
                    _do(given, self._table)
                    given.tell()
                else:
                    given.tell(Moved(self.table_id) if self._moved else JournalUnavailable())
            self._counted.gone()

    def let_go(self) -> None:
        """Play it no longer: another process does, or will. Its task ends, then its readers do."""
        self._moved = True
        self._work.set()

    def end_readers(self) -> None:
        """Tell all who follow the table to look for it elsewhere."""
        self._viewers.end(Moved(self.table_id))

    async def _turn(self, inputs: Sequence[_Input]) -> None:
        """One batch: inputs, what is due, the journal, the viewers, the outcomes."""
        table, began_ns = self._table, time.time_ns()
        for given in inputs:
            _do(given, table)
        table.advance(self._around.clock.now_ms())
        told = table.take()
        causes = [given.origin.trace for given in inputs]
        with self._telling.span(causes, told, began_ns, table.state.hand_number):
            if told:
                await self._store(told)
            for given in inputs:
                given.tell()
            table.arm(self._around.clock.now_ms())
            self._asking.ask(table, self._post)
        self._counted.stands(table.state)

    async def _store(self, told: Sequence[Event]) -> None:
        self._time_ms = max(self._time_ms, time.time_ns() // 1_000_000)
        records = [
            Record(self._sequence + place, self._time_ms, event)
            for place, event in enumerate(told, 1)
        ]
        closed = next((event for event in told if isinstance(event, TableClosed)), None)
        hands: list[HandEntry] = []
        if any(isinstance(event, FOLLOWED) for event in told):
            following = copy(self._hands)
            hands = [hand for record in records if (hand := following.see(record)) is not None]
        await self._around.journal.append(
            self.table_id,
            records,
            epoch=self._epoch,
            closed=convert.table_to_wire(self.state).SerializeToString() if closed else None,
            done=any(isinstance(event, HoldsReleased) for event in told),
            hands=hands,
            actions=[
                OperatorAction(
                    # Known by its request id at this table, and by both everywhere.
                    action_id=f"{self.table_id}/{event.action_id}",
                    table_id=self.table_id,
                    time_ms=self._time_ms,
                    operator=event.operator,
                    verb=event.verb,
                    reason=event.reason,
                    case_id=event.case_id,
                    detail=event.detail,
                )
                for event in told
                if isinstance(event, OperatorActed)
            ],
            seated=[event.plan.player_id for event in told if isinstance(event, PlayerSeated)],
        )
        self._around.storing(True)
        self._stored(records)
        if hands:
            self._around.finished()
        if (opening := self._openings.among(records, self.feed.numbers_at_hand)) is not None:
            self._asking.start(self._openings.save(self.table_id, opening))
        self._counted.tells(told)
        self._telling.log(told, self.state.hand_number)

    def _stored(self, records: Sequence[Record]) -> None:
        if records:
            self._sequence = records[-1].sequence
            self._time_ms = records[-1].time_ms
            self._done = isinstance(records[-1].event, HoldsReleased)
        for record in records:
            self._hands.see(record)
        self._viewers.publish(self.table_id, records)

    async def _wait(self) -> None:
        deadline = self._due_ms = self._table.next_deadline()
        if deadline is None:
            await self._work.wait()
            return
        seconds = max(0.0, (deadline - self._around.clock.now_ms()) / 1_000)
        due = asyncio.get_running_loop().call_later(seconds, self._work.set)
        try:
            await self._work.wait()
        finally:
            due.cancel()

    def _failed(self, inputs: Sequence[_Input], error: Exception) -> None:
        if isinstance(error, JournalError):
            self._around.metrics.journal_failures.inc()
            self._around.storing(False)
            self._around.log.error(
                "the journal did not store", table_id=self.table_id, problem=str(error)
            )
        else:
            self._around.metrics.failures.inc()
            self._around.log.error("a table failed", table_id=self.table_id, exc_info=error)
        for given in inputs:
            given.tell(JournalUnavailable())

    async def _rebuild(self) -> None:
        """Begin again from what is stored; the viewers have seen nothing else."""
        await self._around.journal.check()
        self._around.storing(True)
        opening = await self._around.journal.opening(self.table_id)
        after = 0 if opening is None else opening.sequence
        records = await self._around.journal.read(self.table_id, after)
        self._asking.stop()
        self._table = self._folded(records, opening)
        self._asking = Asking(self.state.created, self._around)
        self._stored([record for record in records if record.sequence > self._sequence])
        for seat in self._viewers.seats:
            self._table.attach(seat)
        self._table.arm(self._around.clock.now_ms())

    def _ms_left(self, seat: int, decision_id: str) -> tuple[int, int]:
        return self._table.ms_left(seat, decision_id, self._around.clock.now_ms())


def _do(given: _Input, table: Table) -> None:
    try:
        given.value = given.do(table)
    except ServiceError as error:
        given.error = error
