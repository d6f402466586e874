"""One table: what happens when, around the hands that it plays.

The table takes input and the time, and hands back what is to be stored. It keeps no clock, opens
no connection, and waits for nothing::

    table = Table.replay(events)                # or Table.create(...)
    while not table.state.done:
        table.act(...); table.answer(...)       # inputs; a refusal changes nothing
        table.advance(clock())                  # what time and the rules bring about by themselves
        store(table.take())                     # then show it
        table.arm(clock())                      # clocks begin to run when a prompt is shown
        ask(table.questions()); settle(table.settlement())
        wait(input, until=table.next_deadline())

Times are milliseconds of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fangcheng_rules import errors as rules_errors
from fangcheng_rules import events as play
from fangcheng_rules.actions import (
    Action,
    Analysed,
    Choose,
    Command,
    Dissolve,
    Leave,
    Question,
    Scored,
    SetTrustee,
    TimeOut,
    TrusteeReason,
    WindowOver,
)
from fangcheng_rules.analysis import Analysis
from fangcheng_rules.round import Round
from fangcheng_rules.scoring import Score

from . import votes
from .clocks import Clocks, Key, Patience, Wait, decision_waits, reserve_left
from .dealing import dealt
from .errors import NotOffered, StaleDecision
from .events import (
    ConnectionChanged,
    EntropyGiven,
    Event,
    GraceEnded,
    HandSettled,
    HoldsReleased,
    HoldsReturned,
    LeaveAnnounced,
    Offered,
    Payment,
    ReadyAsked,
    ReadyGiven,
    ReadyMissed,
    ReserveSpent,
    SeatVacated,
    TableClosed,
    TableCreated,
    TableDeserted,
    VoteClosed,
)
from .ids import BACK, read_prompt_id, read_table_id, read_trustee_id, trustee_id
from .life import SEATS, closing_reason, is_checked, may_seat_others
from .settlement import Settlement, settlement_of
from .state import TableState


def tell_nobody(_: TableState) -> None:
    """For `Table.before_hand`, where nobody wants to know."""


class Table:
    """A table that is played."""

    def __init__(self, state: TableState, patience: Patience, *, resumed: bool = False) -> None:
        self.state = state
        self._patience = patience
        self._told: list[Event] = []
        self._clocks = Clocks()
        self._attending: set[int] = set()
        self._resumed = set(SEATS) if resumed else set[int]()
        self.before_hand: Callable[[TableState], None] = tell_nobody
        """Told the state as a hand is about to begin."""

    @classmethod
    def create(cls, created: TableCreated, patience: Patience | None = None) -> Table:
        """A new table."""
        table = cls(TableState.opened(created), patience or Patience())
        table._told.append(created)
        return table

    @classmethod
    def replay(cls, events: Iterable[Event], patience: Patience | None = None) -> Table:
        """The table of a journal; its clocks begin anew, nobody attends it yet."""
        return cls(TableState.replay(events), patience or Patience(), resumed=True)

    def take(self) -> list[Event]:
        """What has happened since the last call, to be stored and then shown."""
        told, self._told = self._told, []
        return told

    # Inputs. A refusal changes nothing.

    def attach(self, seat: int) -> None:
        """A stream attends the seat; not of one who was removed while it came."""
        state = self.state.seats[seat]
        if state.removed:
            return
        self._attending.add(seat)
        self._resumed.discard(seat)
        if self.state.closed or state.connected:
            return
        self.tell(ConnectionChanged(seat, True))
        if state.trustee_reason == "disconnected":
            self.set_trustee(seat, False, "back")

    def detach(self, seat: int) -> None:
        """No stream attends the seat any more; unless one comes soon, it is disconnected."""
        self._attending.discard(seat)
        if not self._attending:
            # All were lost together; each gets time to find back.
            self._resumed = set(SEATS)

    def give_entropy(self, seat: int, entropy: bytes) -> None:
        """The seat's own share in the shuffles of the hands that begin from now on."""
        if not self.state.closed and entropy != self.state.seats[seat].entropy:
            self.tell(EntropyGiven(seat, entropy))

    def act(self, seat: int, decision_id: str, action: Action | None) -> bool:
        """Answer a prompt; whether the same answer had been taken before.

        None stands for taking the seat back from the table, the only answer to its `trustee_id`.
        Raises StaleDecision or NotOffered.
        """
        times = read_trustee_id(decision_id)
        if times is not None:
            return self._take_back(seat, times, action)
        # Of a hand that has ended nothing is told: another player may have the seat by now.
        place, hand = read_prompt_id(decision_id), self.state.in_play
        if place is None or hand is None or place[0] != self.state.hand_number:
            raise StaleDecision(decision_id)
        if action is None:
            raise NotOffered(f"{BACK} is no answer to a prompt.", "action.kind")
        try:
            self.step(Choose(seat, place[1], action))
        except rules_errors.AlreadyAnswered:
            return True
        except rules_errors.NotOffered as error:
            raise NotOffered(error.message) from error
        except rules_errors.ActionRefused as error:
            raise StaleDecision(decision_id) from error
        return False

    def hand_over(self, seat: int, decision_id: str) -> bool:
        """Have the table play for the seat from its open prompt on; whether it does so already.

        All see that it does; so it takes a prompt of which all know. Raises StaleDecision or
        NotOffered.
        """
        place, state, hand = read_prompt_id(decision_id), self.state.seats[seat], self.state.in_play
        if place is not None and state.trustee_reason == "asked":
            return True
        prompt = hand.prompts().get(seat) if hand is not None else None
        if prompt is None or place != (self.state.hand_number, prompt.decision):
            raise StaleDecision(decision_id)
        if prompt.kind not in ("piao", "turn"):
            raise NotOffered("A claim is answered or passed.", "action.kind")
        self.set_trustee(seat, True, "asked")
        return False

    def _take_back(self, seat: int, times: int, action: Action | None) -> bool:
        state = self.state.seats[seat]
        if times > state.trustee_times or (times == state.trustee_times and self.state.closed):
            raise StaleDecision(trustee_id(times))
        if action is not None:
            raise NotOffered(f"A seat that the table plays for is offered {BACK} alone.")
        if times < state.trustee_times or not state.trustee:
            return True
        if not state.connected or state.removed:
            raise NotOffered("A seat that nobody attends is played for; attend it.")
        self.set_trustee(seat, False, "back")
        return False

    def has_acted(self, seat: int) -> None:
        """Any action of the player ends it that the table plays for the seat (rules/README)."""
        state = self.state.seats[seat]
        if state.trustee and state.connected and not state.removed:
            self.set_trustee(seat, False, "back")

    def leave(self, seat: int, *, now: bool) -> None:
        """The player leaves after the hand, or now: in a hand that is an escape (逃跑).

        Not one who was removed while he said so: that is without a penalty.
        """
        state = self.state.seats[seat]
        if self.state.closed or state.removed:
            return
        if state.leaving == "now" or (state.leaving and not now):
            return
        self.tell(LeaveAnnounced(seat, now))
        if now and self.state.in_play is not None:
            self.step(Leave(seat))

    def answer(self, hand_number: int, question: int, value: Analysis | Score) -> None:
        """The evaluator's answer; one that comes too late changes nothing."""
        if hand_number != self.state.hand_number or self.state.in_play is None:
            return
        if isinstance(value, Analysis):
            self.step(Analysed(question, value))
        else:
            self.step(Scored(question, value))

    def settled(
        self, settlement: Settlement, payments: tuple[Payment, ...], short: tuple[int, ...] = ()
    ) -> None:
        """The wallet has paid a hand; `short`: seats that it leaves with too little to go on."""
        if settlement.hand_number == self.state.hand_number and not self.state.settled:
            self.tell(HandSettled(settlement.hand_number, settlement.key, payments, short))

    def returned(self, vacancy: int) -> None:
        """The wallet has given back the holds of one who left."""
        if vacancy in self.state.owed:
            self.tell(HoldsReturned(vacancy))

    def released(self) -> None:
        """The wallet has given the holds back."""
        if self.state.closed and not self.state.released:
            self.tell(HoldsReleased())

    # What is asked of others.

    def questions(self) -> tuple[Question, ...]:
        """What the evaluator has not answered yet."""
        hand = self.state.in_play
        return hand.questions() if hand is not None else ()

    def settlement(self) -> Settlement | None:
        """What the wallet has not acknowledged yet."""
        state = self.state
        if state.settled or state.hand is None or not state.hand.ended:
            return None
        plans = tuple(seat.plan for seat in state.seats)
        return settlement_of(state.created, plans, state.hand, charged=state.charged)

    def holds(self) -> tuple[tuple[str, ...], ...]:
        """Holds of each seat that are to be given back now; empty: none.

        Those of who left before come first, so that nothing is left to do after these.
        """
        if not self.state.closed or self.state.released or self.state.owed:
            return ()
        holds = tuple(seat.plan.hold_ids for seat in self.state.seats)
        return holds if any(holds) else ()

    def returns(self) -> dict[int, tuple[str, ...]]:
        """Holds of those who left before the table closed, to be given back, by vacancy."""
        return self.state.owed

    # Time.

    def arm(self, now_ms: int) -> None:
        """Start the clocks of what is shown from now on, stop those of what is over."""
        self._clocks.set(dict(self._wanted()), now_ms, self._stands)

    def next_deadline(self) -> int | None:
        """When `advance` has something to do at the latest."""
        return self._clocks.next_ms()

    def ms_left(self, seat: int, decision_id: str, now_ms: int) -> tuple[int, int]:
        """Time left for a prompt, or what all are asked; and of the seat's reserve after that.

        None of either where it is closed.
        """
        if (question := read_table_id(decision_id)) is not None:
            return self._clocks.left((*question, 0, 0), now_ms)
        place = read_prompt_id(decision_id)
        if place is None:
            return 0, 0
        return self._clocks.left(("decision", place[0], seat, place[1]), now_ms)

    def advance(self, now_ms: int) -> None:
        """All that time and the rules bring about by themselves."""
        self._spend_reserves(now_ms)
        while self._time_passes(now_ms) or self._by_itself():
            pass

    @property
    def _is_deserted(self) -> bool:
        """Nobody attends any seat, so that no clock of the game runs."""
        return not self._attending and self.state.verdict != "deserted"

    @property
    def _is_kept_waiting(self) -> bool:
        """An evaluator or the wallet has not answered, which counts against nobody."""
        return bool(self.questions()) or not (self.state.settled or self.state.in_play)

    def _stands(self, key: Key) -> bool:
        kind, seat = key[:2]
        if kind in ("away", "deserted") and self._is_kept_waiting:
            return True
        if not self._is_deserted or kind == "deserted":
            return False
        # That a stream is lost is told even so.
        return kind != "lost" or not self.state.seats[seat].connected

    def _wanted(self) -> Iterator[tuple[Key, Wait]]:
        state, timing = self.state, self.state.created.timing
        if state.closed:
            return
        number, hand = state.hand_number, state.in_play
        if hand is not None:
            yield from decision_waits(state)
            window = hand.window()
            if window is not None:
                yield ("window", number, window, 0), Wait(timing.claim_window_ms)
        elif state.settled:
            yield self._between_hands()
        if state.vote is not None and state.vote.is_open:
            yield ("vote", state.vote.number, 0, 0), Wait(timing.vote_ms)
        if self._is_deserted:
            yield ("deserted", 0, 0, 0), Wait(timing.away_grace_ms)
        for place, seat in enumerate(state.seats):
            if seat.vacant or place in self._attending:
                continue
            if seat.connected or (hand is not None and not seat.trustee):
                resumed = place in self._resumed
                wait_ms = self._patience.resume_ms if resumed else self._patience.linger_ms
                yield ("lost", place, 0, 0), Wait(wait_ms)
            if not (seat.connected or seat.overdue or seat.removed) and number:
                yield ("away", place, 0, 0), Wait(timing.away_grace_ms)

    def _between_hands(self) -> tuple[Key, Wait]:
        state, timing = self.state, self.state.created.timing
        if any(seat.vacant for seat in state.seats):
            return ("vacant", state.vacancies, 0, 0), Wait(timing.vacancy_ms)
        if state.checking:
            return ("ready", state.checks, 0, 0), Wait(timing.ready_ms)
        all_came = all(seat.attended for seat in state.seats)
        wait_ms = timing.between_hands_ms if all_came else self._patience.start_ms
        return ("begin", state.hand_number + 1, state.vacancies, 0), Wait(wait_ms)

    def _spend_reserves(self, now_ms: int) -> None:
        open_keys = {key for key, _ in decision_waits(self.state)}
        for seat, ms in self._clocks.spent(open_keys, now_ms):
            self.tell(ReserveSpent(seat, ms))

    def _time_passes(self, now_ms: int) -> bool:
        """Do what is due first; whether anything was."""
        key = self._clocks.due(now_ms, self.state.dealer)
        if key is not None:
            self._ring(key)
        return key is not None

    def _ring(self, key: Key) -> None:
        state = self.state
        is_hand = key[1] == state.hand_number and state.in_play is not None
        match key:
            case ("decision", _, seat, decision) if is_hand:
                self._run_out(seat, decision)
            case ("window", _, window, _) if is_hand:
                self.step(WindowOver(window))
            case ("lost", seat, _, _) if seat not in self._attending:
                self._lose(seat)
            case ("away", seat, _, _) if not state.seats[seat].connected:
                if state.is_played_to_the_end:
                    self.tell(GraceEnded(seat))
                else:
                    self.leave(seat, now=True)
            case ("vote", number, _, _) if state.vote is not None and state.vote.is_open:
                self.tell(VoteClosed(number, "timed_out"))
            case ("ready", check, _, _) if state.checking:
                for seat in SEATS:
                    if not state.seats[seat].ready:
                        self.tell(ReadyMissed(check, seat))
            case ("vacant", _, _, _):
                self.tell(TableClosed("player_left"))
            case ("deserted", _, _, _) if not self._attending:
                self._desert()
            case ("begin", number, _, _) if number == state.hand_number + 1:
                if state.in_play is None and state.settled and not state.closed:
                    self._begin_hand()
            case _:
                pass

    def _run_out(self, seat: int, decision: int) -> None:
        hand = self.state.in_play
        prompt = hand.prompts().get(seat) if hand is not None else None
        left_ms = reserve_left(self.state.created.timing, self.state, seat)
        if prompt is not None and prompt.kind == "turn" and left_ms:
            self.tell(ReserveSpent(seat, left_ms))
        self.step(TimeOut(seat, decision))

    def _lose(self, seat: int) -> None:
        if self.state.seats[seat].connected:
            self.tell(ConnectionChanged(seat, False))
        # While all are lost together, no hand is played on without them.
        if not self._is_deserted:
            self.set_trustee(seat, True, "disconnected")

    def _desert(self) -> None:
        """Nobody came back: nothing of the hand is paid, or the table plays it to the end."""
        self.tell(TableDeserted())
        if not self.state.is_played_to_the_end:
            self.dissolve("deserted")
        elif self.state.in_play is not None:
            for seat in SEATS:
                self.set_trustee(seat, True, "disconnected")

    def _by_itself(self) -> bool:
        """Do what needs no time; whether there was anything."""
        state = self.state
        if state.closed:
            if not (state.released or self.holds() or state.owed):
                self.tell(HoldsReleased())
                return True
            return False
        if votes.count(self):
            return True
        hand = state.in_play
        if hand is not None:
            window = hand.window()
            if window is None or state.created.timing.claim_window_ms or self._is_deserted:
                return False
            self.step(WindowOver(window))
            return True
        return state.settled and self._go_on()

    def _go_on(self) -> bool:
        """The next step between two hands; whether there was one to take."""
        state = self.state
        if reason := closing_reason(state):
            self.tell(TableClosed(reason))
            return True
        if may_seat_others(state):
            for number, seat in enumerate(state.seats):
                if seat.leaves:
                    self._vacate(number, seat.leaves)
                    return True
        if any(seat.vacant for seat in state.seats) or self._is_deserted:
            return False
        if is_checked(state) and not state.checking:
            self.tell(ReadyAsked(state.checks + 1))
            return True
        if state.checking:
            for number, seat in enumerate(state.seats):
                if seat.trustee and not seat.ready:
                    self.tell(ReadyGiven(state.checks, number))
            begins = all(seat.ready for seat in state.seats)
        else:
            everybody = all(seat.attended for seat in state.seats)
            waits = bool(state.hand_number and state.created.timing.between_hands_ms)
            begins = everybody and not waits
        if begins:
            self._begin_hand()
        return begins

    def _vacate(self, seat: int, why: str) -> None:
        self._attending.discard(seat)
        self._resumed.discard(seat)
        self.tell(SeatVacated(seat, why))

    # Hands.

    def _begin_hand(self) -> None:
        for seat, seat_state in enumerate(self.state.seats):
            if not seat_state.connected and not seat_state.trustee:
                self.tell(play.TrusteeSet(seat, True, "disconnected"))
        self.before_hand(self.state)
        opened, setup = dealt(self.state)
        self.tell(opened)
        self.state.hand, events = Round.begin(setup)
        self._tell_play(self.state.hand, events)

    def dissolve(self, reason: str) -> None:
        """End the hand in play unpaid (解散), unless it is decided already."""
        if self.state.in_play is not None:
            self.step(Dissolve(reason))

    def step(self, command: Command) -> None:
        """Do something in the hand."""
        hand = self.state.hand
        if hand is not None:
            self._tell_play(hand, hand.step(command))

    def _tell_play(self, hand: Round, events: list[play.Event]) -> None:
        for event in events:
            self.tell(event)
            if isinstance(event, play.Asked):
                prompt = hand.prompts().get(event.seat)
                if prompt is not None and prompt.decision == event.decision:
                    self.tell(Offered(event.seat, event.decision, prompt.actions))

    def set_trustee(self, seat: int, on: bool, reason: TrusteeReason) -> None:
        """Have the table play for a seat, or no longer."""
        if self.state.seats[seat].trustee == on:
            return
        if self.state.in_play is not None:
            self.step(SetTrustee(seat, on, reason))
        else:
            self.tell(play.TrusteeSet(seat, on, reason))

    def tell(self, event: Event) -> None:
        """Something has happened."""
        self.state.note(event)
        self._told.append(event)
