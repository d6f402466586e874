"""A table as it lives in a process: one task that stores what happens before anyone sees it.

Everything that changes a table goes through its task, one batch after the other: inputs that have
come, what is due, one append to the journal, then the viewers, then whoever waits for an outcome.
Where the append fails, or a fault of ours shows, the table is rebuilt from the journal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import state_pb2, table_pb2
from fangcheng_kit.errors import ServiceError
from fangcheng_rules import events as play
from fangcheng_rules.actions import AnalyzeQuestion, Question

from . import convert, convert_play, operating, votes
from .clocks import Patience
from .codec import UnknownEvent
from .core import Table, tell_nobody
from .errors import (
    AttendedElsewhere,
    JournalUnavailable,
    LeftTable,
    Moved,
    NotSeated,
    RemovedFromTable,
    StaleDecision,
    TableIsClosed,
    UnknownTable,
)
from .evaluator import Evaluator
from .events import (
    Event,
    HandOpened,
    HoldsReleased,
    OperatorActed,
    PlayerSeated,
    SeatVacated,
    TableClosed,
)
from .feed import Feed, Reader, no_time_left
from .finished import FOLLOWED, FinishedHands
from .gameclock import GameClock
from .ids import read_table_id
from .metrics import TableMetrics
from .openings import freeze, thaw, with_numbers
from .operating import Order
from .outbox import Outbox
from .settlement import Settlement
from .state import Phase, TableState
from .store import (
    HandEntry,
    Journal,
    JournalError,
    Opening,
    OperatorAction,
    Record,
    Superseded,
)
from .talk import Talk
from .views import RECORD, SPECTATORS

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the tables of a process share."""

    journal: Journal
    evaluator: Evaluator
    outbox: Outbox
    metrics: TableMetrics
    log: Any
    patience: Patience
    clock: GameClock
    most_kept: int
    """Events of a viewer that are kept in memory at most."""
    storing: Callable[[bool], None]
    """Told whether the journal takes what it is given."""
    finished: Callable[[], None]
    """Told when a hand was finished, and can be found in the journal."""
    stopping: asyncio.Event
    """The service is being stopped."""
    phrases: Collection[str] = ()
    """Ids of the phrases that seats may say."""


@dataclass(slots=True)
class _Input:
    """Something for the table to do, and where its outcome goes."""

    do: Callable[[Table], Any]
    outcome: asyncio.Future[Any]
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


@dataclass(slots=True)
class _Asked:
    """What is under way for a table at the evaluator and the wallet."""

    hand: int = 0
    questions: set[int] = field(default_factory=set)
    """Of the hand, by their numbers."""
    settlement: int = 0
    keeping: asyncio.Task[None] | None = None
    kept: tuple[tuple[str, ...], ...] | None = None
    """The holds that it keeps."""
    returns: set[int] = field(default_factory=set)
    """By vacancy."""
    release: bool = False


class LiveTable:
    """A table, its viewers, and the task that plays it."""

    def __init__(
        self,
        records: Sequence[Record],
        around: Surroundings,
        epoch: int,
        opening: Opening | None = None,
    ) -> None:
        """`records`: its journal; with an `opening`, what follows after it. `epoch`: under which
        this process owns it; 0: it does not, as it need not where nothing is left to do.

        Raises `UnknownEvent` for an opening that cannot be read.
        """
        self.feed = Feed(around.most_kept)
        self._epoch = epoch
        self._moved = False
        self._revealed: set[Feed] = set()
        """With all tiles open, one for each operator who looks."""
        self._hands = FinishedHands()
        self._around = around
        self._sequence = 0
        self._opened_with = b""
        if opening is not None:
            state, numbers = thaw(opening.state)
            self.feed.resume(state, numbers)
            self._hands = FinishedHands.between_hands(state)
            self._sequence = opening.sequence
        self._table = self._folded(records, opening)
        self._talk = Talk(self._table.state.created.talk, around.phrases)
        self._choice = _choice(self._table.state)
        self._time_ms = 0
        self._done = False
        self._attending: dict[int, Reader] = {}
        self._stored(records)
        self._inbox: list[_Input] = []
        self._work = asyncio.Event()
        self._asked = _Asked()
        self._tasks: set[asyncio.Task[None]] = set()
        self._counted: tuple[str, Phase] | None = None
        if not self._done:
            self.feed.ms_left = self._ms_left

    @classmethod
    async def load(cls, table_id: str, around: Surroundings, epoch: int) -> LiveTable:
        """A table from the journal, as far back as it has to be read.

        Raises `UnknownTable`, `JournalError`; `UnknownEvent` and `RulesError` for what this version
        cannot play.
        """
        opening = await around.journal.opening(table_id)
        if opening is not None:
            records = await around.journal.read(table_id, opening.sequence)
            try:
                return cls(records, around, epoch, opening)
            except UnknownEvent as error:
                around.log.warning(
                    "an opening is left aside", table_id=table_id, problem=str(error)
                )
        records = await around.journal.read(table_id)
        if not records:
            raise UnknownTable(table_id)
        return cls(records, around, epoch)

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
        table.before_hand = self._before_hand
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
        reader = self.feed.open(seat, number, on_news, snapshot=snapshot, muted=muted)
        older = self._attending.get(seat)
        self._attending[seat] = reader
        if older is not None:
            older.end(AttendedElsewhere())
        elif self.state.seats[seat].attended:
            self._around.metrics.reconnects.inc()
        self._around.metrics.streams.labels("seat").inc()
        if not self.state.closed:
            self._post(lambda table: table.attach(seat))
            if entropy:
                self._post(lambda table: table.give_entropy(seat, entropy))
        return reader

    def watch(self, number: int, on_news: Callable[[], None], *, snapshot: bool = False) -> Reader:
        """Follow the spectators' events."""
        reader = self.feed.open(SPECTATORS, number, on_news, snapshot=snapshot)
        self._around.metrics.streams.labels("spectator").inc()
        return reader

    async def reveal(self, order: Order, on_news: Callable[[], None]) -> Reader:
        """Follow the table with all tiles open, from a snapshot on; it is noted who does, and why.

        Raises `TableIsClosed` and `RequestIdReused`.
        """
        await self.do(lambda table: operating.reveal(table, order))
        feed, first, upto = self.feed.revealed(), self._hands.first_sequence, self._sequence
        self._revealed.add(feed)
        try:
            if first:
                journal = self._around.journal
                feed.catch_up(await journal.read(self.table_id, first - 1, upto))
            else:
                feed.catch_up([])
            reader = feed.open(RECORD, feed.last(RECORD), on_news, snapshot=True)
        except BaseException:
            self._revealed.discard(feed)
            raise
        self._around.metrics.streams.labels("spectator").inc()
        return reader

    def say(self, seat: int, request: table_pb2.SayRequest) -> None:
        """Let the others hear what a seat says."""
        if self.state.closed:
            raise TableIsClosed
        talk = self._talk.say(seat, request)
        self.feed.say(talk, spectators=self.state.created.talk.spectators)

    def leave(self, reader: Reader) -> None:
        """A reader is gone. Only if it is the seat's newest, the seat has nobody now."""
        reader.feed.close(reader)
        self._revealed.discard(reader.feed)
        kind = "spectator" if reader.viewer in (SPECTATORS, RECORD) else "seat"
        self._around.metrics.streams.labels(kind).dec()
        if self._attending.get(reader.viewer) is reader:
            del self._attending[reader.viewer]
            # When the service stops, its streams end; that counts against nobody.
            if not self.state.closed and not self._around.stopping.is_set():
                self._post(lambda table: table.detach(reader.viewer))

    def _post(self, change: Callable[[Table], T]) -> asyncio.Future[T]:
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        # Nobody need wait for it; then a failure is no news either, since the table goes on.
        outcome.add_done_callback(lambda done: done.cancelled() or done.exception())
        given = _Input(change, outcome)
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
                if not (self._done or self._moved):
                    await self._wait()
        finally:
            # So that nothing in here holds on to the whole: it goes without the garbage collector.
            self.feed.ms_left = no_time_left
            self._table.before_hand = tell_nobody
            for task in self._tasks:
                task.cancel()
            inputs, self._inbox = self._inbox, []
            for given in inputs:
                if self._done:
                    _do(given, self._table)
                    given.tell()
                else:
                    given.tell(Moved(self.table_id) if self._moved else JournalUnavailable())
            self._count(None)

    def let_go(self) -> None:
        """Play it no longer: another process does, or will. Its task ends, then its readers do."""
        self._moved = True
        self._work.set()

    def end_readers(self) -> None:
        """Tell all who follow the table to look for it elsewhere."""
        for feed in (self.feed, *self._revealed):
            feed.end(Moved(self.table_id))

    async def _turn(self, inputs: Sequence[_Input]) -> None:
        """One batch: inputs, what is due, the journal, the viewers, the outcomes."""
        table = self._table
        for given in inputs:
            _do(given, table)
        table.advance(self._around.clock.now_ms())
        told = table.take()
        if told:
            await self._store(told)
        for given in inputs:
            given.tell()
        table.arm(self._around.clock.now_ms())
        self._ask_others()
        self._count(table.state.phase)

    async def _store(self, told: Sequence[Event]) -> None:
        self._time_ms = max(self._time_ms, time.time_ns() // 1_000_000)
        records = [
            Record(self._sequence + place, self._time_ms, event)
            for place, event in enumerate(told, 1)
        ]
        closed = any(isinstance(event, TableClosed) for event in told)
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
        self._keep_opening(records)
        self._measure(told)

    def _part(self, records: Sequence[Record]) -> None:
        """End the streams of those who are no longer at the table."""
        for record in records:
            match record.event:
                case OperatorActed(verb="remove", seat=int(seat)):
                    why: ServiceError = RemovedFromTable(self.table_id)
                case SeatVacated(seat):
                    why = LeftTable()
                case _:
                    continue
            reader = self._attending.pop(seat, None)
            if reader is not None:
                reader.end(why)

    def _stored(self, records: Sequence[Record]) -> None:
        if records:
            self._sequence = records[-1].sequence
            self._time_ms = records[-1].time_ms
            self._done = isinstance(records[-1].event, HoldsReleased)
        for record in records:
            self._hands.see(record)
        for feed in (self.feed, *self._revealed):
            feed.publish(records)
        self._part(records)

    def _before_hand(self, state: TableState) -> None:
        self._opened_with = freeze(state)

    def _keep_opening(self, records: Sequence[Record]) -> None:
        """Where a hand has begun, keep what the table was before it, to resume from there."""
        state, self._opened_with = self._opened_with, b""
        for record in records:
            if state and isinstance(record.event, HandOpened):
                opening = with_numbers(state, self.feed.numbers_at_hand)
                self._start(self._save(Opening(record.sequence - 1, opening)))

    async def _save(self, opening: Opening) -> None:
        try:
            await self._around.journal.save_opening(self.table_id, opening)
        except JournalError as error:
            self._around.log.warning(
                "an opening was not kept", table_id=self.table_id, problem=str(error)
            )

    async def _wait(self) -> None:
        deadline = self._table.next_deadline()
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
        for task in self._tasks:
            task.cancel()
        self._asked = _Asked()
        self._table = self._folded(records, opening)
        self._stored([record for record in records if record.sequence > self._sequence])
        for seat in self._attending:
            self._table.attach(seat)
        self._table.arm(self._around.clock.now_ms())

    # Evaluator and wallet.

    def _ask_others(self) -> None:
        table, asked = self._table, self._asked
        number = table.state.hand_number
        if number != asked.hand:
            asked.hand = number
            asked.questions.clear()
        for question in table.questions():
            if question.number not in asked.questions:
                asked.questions.add(question.number)
                self._start(self._question(number, question))
        settlement = table.settlement()
        if settlement is not None and settlement.hand_number != asked.settlement:
            asked.settlement = settlement.hand_number
            self._start(self._settle(settlement))
        kept = tuple(seat.plan.hold_ids for seat in table.state.seats)
        if asked.kept != kept and not table.state.closed:
            asked.kept = kept
            if asked.keeping is not None:
                asked.keeping.cancel()
            asked.keeping = self._start(self._around.outbox.keep(self.table_id, kept))
        for vacancy, hold_ids in table.returns().items():
            if vacancy not in asked.returns:
                asked.returns.add(vacancy)
                self._start(self._return(vacancy, hold_ids))
        holds = table.holds()
        if holds and not asked.release:
            asked.release = True
            if asked.keeping is not None:
                asked.keeping.cancel()
            self._start(self._release(holds))

    async def _question(self, hand_number: int, question: Question) -> None:
        evaluator = self._around.evaluator
        if isinstance(question, AnalyzeQuestion):
            analysis = await evaluator.analyze(self._choice, question.hand, question.flowers)
            self._post(lambda table: table.answer(hand_number, question.number, analysis))
        else:
            score = await evaluator.score(self._choice, question.finished)
            self._post(lambda table: table.answer(hand_number, question.number, score))

    async def _settle(self, settlement: Settlement) -> None:
        paid = await self._around.outbox.settle(settlement, self.state.created.labels)
        self._post(lambda table: table.settled(settlement, paid.payments, paid.short))

    async def _return(self, vacancy: int, hold_ids: Sequence[str]) -> None:
        await self._around.outbox.release(self.table_id, [hold_ids])
        self._post(lambda table: table.returned(vacancy))

    async def _release(self, holds: Sequence[Sequence[str]]) -> None:
        await self._around.outbox.release(self.table_id, holds)
        self._post(lambda table: table.released())

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._around.metrics.failures.inc()
            self._around.log.error("a table failed", table_id=self.table_id, exc_info=error)

    # What is measured.

    def _ms_left(self, seat: int, decision_id: str) -> tuple[int, int]:
        return self._table.ms_left(seat, decision_id, self._around.clock.now_ms())

    def _count(self, phase: Phase | None) -> None:
        """Count the table under its phase; None: no more."""
        now = None if phase is None else (self.state.created.rule_set, phase)
        if now == self._counted:
            return
        gauge = self._around.metrics.tables
        if self._counted is not None:
            gauge.labels(*self._counted).dec()
        if now is not None:
            gauge.labels(*now).inc()
        self._counted = now

    def _measure(self, told: Sequence[Event]) -> None:
        metrics = self._around.metrics
        for event in told:
            match event:
                case play.HandEnded():
                    ending = type(event.end).__name__.lower()
                    metrics.hands.labels(self.state.created.rule_set, ending).inc()
                case TableClosed(reason):
                    self._around.log.info("table closed", table_id=self.table_id, reason=reason)
                case play.TimedOut():
                    metrics.timed_out.inc()
                case play.TrusteeSet():
                    metrics.trustees.labels(event.reason).inc()
                case _:
                    pass


def _do(given: _Input, table: Table) -> None:
    try:
        given.value = given.do(table)
    except ServiceError as error:
        given.error = error


def _choice(state: TableState) -> rules.RuleSetChoice:
    created = state.created
    return convert.choice_to_wire(created.rule_set, created.revision, created.options)
