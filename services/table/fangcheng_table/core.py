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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fangcheng_rules import errors as rules_errors
from fangcheng_rules import events as play
from fangcheng_rules.actions import (
    Action,
    Analysed,
    Choose,
    Command,
    Leave,
    PromptKind,
    Question,
    Scored,
    SetTrustee,
    TimeOut,
    TrusteeReason,
    WindowOver,
)
from fangcheng_rules.analysis import Analysis
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.ruleset import first_dealer
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import Score
from fangcheng_rules.wall import SecretChain, derive

from .errors import NotOffered, StaleDecision
from .events import (
    ConnectionChanged,
    EntropyGiven,
    Event,
    HandOpened,
    HandSettled,
    HoldsReleased,
    LeaveAnnounced,
    Offered,
    Payment,
    TableClosed,
    TableCreated,
)
from .ids import BACK, read_prompt_id, read_trustee_id, trustee_id
from .settlement import Settlement, settlement_of
from .state import TableState

SEATS = (0, 1, 2, 3)
MOST_HANDS = 1_000
"""Hands of a table that is played until somebody leaves."""

Key = tuple[str, int, int, int]
"""A timer: what it is for (`decision`, `window`, `lost`, `away`, `begin`), and of what."""

_ORDER = {"decision": 0, "window": 1, "lost": 2, "away": 3, "begin": 4}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a table waits for its players' streams; settings of the service."""

    start_ms: int = 5_000
    """For all four to attend, before the first hand begins without them."""
    linger_ms: int = 2_000
    """For a new stream of a seat whose stream has ended, before it counts as disconnected."""
    resume_ms: int = 10_000
    """The same after the service itself was away."""


def chain_of(root: bytes, hands: int) -> SecretChain:
    """The secrets of a table's hands."""
    return SecretChain(root, hands or MOST_HANDS)


class Table:
    """A table that is played."""

    def __init__(self, state: TableState, patience: Patience, *, resumed: bool = False) -> None:
        self.state = state
        self._patience = patience
        self._told: list[Event] = []
        self._timers: dict[Key, int] = {}
        self._attending: set[int] = set()
        self._resumed = set(SEATS) if resumed else set[int]()
        self._suspended_since: int | None = None

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
        """A stream attends the seat."""
        self._attending.add(seat)
        self._resumed.discard(seat)
        state = self.state.seats[seat]
        if self.state.closed or state.connected:
            return
        self._tell(ConnectionChanged(seat, True))
        if state.trustee and state.trustee_reason == "disconnected":
            self._set_trustee(seat, False, "back")

    def detach(self, seat: int) -> None:
        """No stream attends the seat any more; unless one comes soon, it is disconnected."""
        self._attending.discard(seat)

    def give_entropy(self, seat: int, entropy: bytes) -> None:
        """The seat's own share in the shuffles of the hands that begin from now on."""
        if not self.state.closed and entropy != self.state.seats[seat].entropy:
            self._tell(EntropyGiven(seat, entropy))

    def act(self, seat: int, decision_id: str, action: Action | None) -> bool:
        """Answer a prompt; whether the same answer had been taken before.

        None stands for taking the seat back from the table, the only answer to its `trustee_id`.
        Raises StaleDecision or NotOffered.
        """
        times = read_trustee_id(decision_id)
        if times is not None:
            return self._take_back(seat, times, action)
        place, hand = read_prompt_id(decision_id), self.state.hand
        if place is None or hand is None or place[0] != self.state.hand_number:
            raise StaleDecision(decision_id)
        if action is None:
            raise NotOffered(f"{BACK} is no answer to a prompt.", "action.kind")
        try:
            self._play(Choose(seat, place[1], action))
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
        self._set_trustee(seat, True, "asked")
        return False

    def _take_back(self, seat: int, times: int, action: Action | None) -> bool:
        state = self.state.seats[seat]
        if times > state.trustee_times or (times == state.trustee_times and self.state.closed):
            raise StaleDecision(trustee_id(times))
        if action is not None:
            raise NotOffered(f"A seat that the table plays for is offered {BACK} alone.")
        if times < state.trustee_times or not state.trustee:
            return True
        if not state.connected:
            raise NotOffered("A seat that nobody attends is played for; attend it.")
        self._set_trustee(seat, False, "back")
        return False

    def leave(self, seat: int, *, now: bool) -> None:
        """The player leaves after the hand, or now: in a hand that is an escape (逃跑)."""
        state = self.state.seats[seat]
        if self.state.closed or state.leaving == "now" or (state.leaving and not now):
            return
        self._tell(LeaveAnnounced(seat, now))
        if now and self.state.in_play is not None:
            self._play(Leave(seat))

    def answer(self, hand_number: int, question: int, value: Analysis | Score) -> None:
        """The evaluator's answer; one that comes too late changes nothing."""
        if hand_number != self.state.hand_number or self.state.in_play is None:
            return
        if isinstance(value, Analysis):
            self._play(Analysed(question, value))
        else:
            self._play(Scored(question, value))

    def settled(self, settlement: Settlement, payments: tuple[Payment, ...]) -> None:
        """The wallet has paid a hand."""
        if settlement.hand_number == self.state.hand_number and not self.state.settled:
            self._tell(HandSettled(settlement.hand_number, settlement.key, payments))

    def released(self) -> None:
        """The wallet has given the holds back."""
        if self.state.closed and not self.state.released:
            self._tell(HoldsReleased())

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
        return settlement_of(state.created, state.hand, charged=state.charged)

    def holds(self) -> tuple[tuple[str, ...], ...]:
        """Holds of each seat that are to be given back now; empty: none."""
        if not self.state.closed or self.state.released:
            return ()
        holds = tuple(plan.hold_ids for plan in self.state.created.seats)
        return holds if any(holds) else ()

    # Time.

    def arm(self, now_ms: int) -> None:
        """Start the clocks of what is shown from now on, stop those of what is over."""
        self._suspend(now_ms)
        wanted = dict(self._wanted())
        timers = self._timers
        self._timers = {
            key: timers[key] if key in timers else now_ms + wait for key, wait in wanted.items()
        }

    def next_deadline(self) -> int | None:
        """When `advance` has something to do at the latest."""
        suspended = self._suspended_since is not None
        return min(
            (at for key, at in self._timers.items() if not (suspended and key[0] == "away")),
            default=None,
        )

    def ms_left(self, seat: int, decision_id: str, now_ms: int) -> int:
        """Time left for a prompt; 0 where it is closed."""
        place = read_prompt_id(decision_id)
        if place is None:
            return 0
        at = self._timers.get(("decision", place[0], seat, place[1]))
        return max(0, at - now_ms) if at is not None else 0

    def advance(self, now_ms: int) -> None:
        """All that time and the rules bring about by themselves."""
        while self._time_passes(now_ms) or self._by_itself():
            pass

    def _wanted(self) -> Iterator[tuple[Key, int]]:
        state, timing = self.state, self.state.created.timing
        if state.closed:
            return
        waits: dict[PromptKind, int] = {
            "piao": timing.before_deal_ms,
            "turn": timing.turn_ms,
            "claim": timing.claim_ms,
            "dealt_out": timing.claim_ms,
        }
        hand, number = state.in_play, state.hand_number
        if hand is not None:
            for seat, prompt in hand.prompts().items():
                yield ("decision", number, seat, prompt.decision), waits[prompt.kind]
            window = hand.window()
            if window is not None:
                yield ("window", number, window, 0), timing.claim_window_ms
        elif state.settled:
            wait = timing.between_hands_ms if number else self._patience.start_ms
            yield ("begin", number + 1, 0, 0), wait
        for place, seat_state in enumerate(state.seats):
            if not seat_state.connected:
                if number:
                    yield ("away", place, 0, 0), timing.away_grace_ms
            elif place not in self._attending:
                resumed = place in self._resumed
                wait = self._patience.resume_ms if resumed else self._patience.linger_ms
                yield ("lost", place, 0, 0), wait

    def _suspend(self, now_ms: int) -> None:
        """Time in which the suite keeps a table waiting counts against nobody who is away."""
        waiting = bool(self.questions()) or not (self.state.settled or self.state.in_play)
        if waiting and self._suspended_since is None:
            self._suspended_since = now_ms
        elif not waiting and self._suspended_since is not None:
            lost = now_ms - self._suspended_since
            self._suspended_since = None
            for key in self._timers:
                if key[0] == "away":
                    self._timers[key] += lost

    def _time_passes(self, now_ms: int) -> bool:
        """Do what is due first; whether anything was."""
        suspended = self._suspended_since is not None
        due = [
            (at, _ORDER[key[0]], (key[1] - self.state.dealer) % 4, key)
            for key, at in self._timers.items()
            if at <= now_ms and not (suspended and key[0] == "away")
        ]
        if not due:
            return False
        # If two seats pass their grace at once, the first in turn order from the dealer is the one
        # that escapes (rules/README, Leaving).
        key = min(due)[-1]
        del self._timers[key]
        self._ring(key)
        return True

    def _ring(self, key: Key) -> None:
        match key:
            case ("decision", number, seat, decision):
                if number == self.state.hand_number and self.state.in_play is not None:
                    self._play(TimeOut(seat, decision))
            case ("window", number, window, _):
                if number == self.state.hand_number and self.state.in_play is not None:
                    self._play(WindowOver(window))
            case ("lost", seat, _, _):
                if seat not in self._attending and self.state.seats[seat].connected:
                    self._tell(ConnectionChanged(seat, False))
                    self._set_trustee(seat, True, "disconnected")
            case ("away", seat, _, _):
                if not self.state.seats[seat].connected:
                    self.leave(seat, now=True)
            case ("begin", number, _, _) if number == self.state.hand_number + 1:
                if self.state.in_play is None and self.state.settled and not self.state.closed:
                    self._begin_hand()
            case _:
                pass

    def _by_itself(self) -> bool:
        """Do what needs no time; whether there was anything."""
        state = self.state
        if state.closed:
            if not state.released and not self.holds():
                self._tell(HoldsReleased())
                return True
            return False
        hand = state.in_play
        if hand is not None:
            window = hand.window()
            if window is None or state.created.timing.claim_window_ms:
                return False
            self._play(WindowOver(window))
            return True
        if not state.settled:
            return False
        if reason := self._closing():
            self._tell(TableClosed(reason))
            return True
        everybody = all(seat.attended for seat in state.seats)
        first, pause_ms = state.hand_number == 0, state.created.timing.between_hands_ms
        if everybody if first else pause_ms == 0:
            self._begin_hand()
            return True
        return False

    def _closing(self) -> str:
        """Why the table closes between two hands; '' where it goes on."""
        state = self.state
        if state.escaped:
            return "escape"
        if state.hand_number >= (state.created.hands or MOST_HANDS):
            return "hands_played"
        if state.gone or any(seat.leaving for seat in state.seats):
            return "player_left"
        if self._is_played_through():
            return "hands_played"
        return ""

    def _is_played_through(self) -> bool:
        """The deal has passed on as often as the rule set's options say (圈, 局)."""
        state, created = self.state, self.state.created
        rules = rule_set(created.rule_set, created.revision)
        length = rules.table_length(created.options)
        if not length or state.hand is None:
            return False
        passes_on = rules.next_dealer(state.hand.finished) != state.dealer
        return state.deals_passed + passes_on >= length

    # Hands.

    def _begin_hand(self) -> None:
        state, created = self.state, self.state.created
        number = state.hand_number + 1
        rules = rule_set(created.rule_set, created.revision)
        secret = chain_of(created.root, created.hands).secret(number)
        entropy = tuple(seat.entropy for seat in state.seats)
        dealer = rules.next_dealer(state.hand.finished) if state.hand is not None else None
        wall, dice = derive(
            secret,
            entropy,
            created.table_id,
            number,
            tiles=rules.wall_tiles,
            dice=rules.hand_dice + (rules.first_dealer_dice if dealer is None else 0),
        )
        if dealer is None:
            dealer = first_dealer(rules, dice[rules.hand_dice :])
        for seat, seat_state in enumerate(state.seats):
            if not seat_state.connected and not seat_state.trustee:
                self._tell(play.TrusteeSet(seat, True, "disconnected"))
        self._tell(HandOpened(number, secret, entropy))
        setup = HandSetup(
            rule_set_id=created.rule_set,
            revision=created.revision,
            options=created.options,
            hand_number=number,
            dealer=dealer,
            dice=dice,
            wall=wall,
            trustees=tuple(seat.trustee for seat in state.seats),
            run_outs=tuple(seat.run_outs for seat in state.seats),
            drawn_hands_before=state.drawn_hands,
        )
        state.hand, events = Round.begin(setup)
        self._tell_play(state.hand, events)

    def _play(self, command: Command) -> None:
        hand = self.state.hand
        if hand is not None:
            self._tell_play(hand, hand.step(command))

    def _tell_play(self, hand: Round, events: list[play.Event]) -> None:
        for event in events:
            self._tell(event)
            if isinstance(event, play.Asked):
                prompt = hand.prompts().get(event.seat)
                if prompt is not None and prompt.decision == event.decision:
                    self._tell(Offered(event.seat, event.decision, prompt.actions))

    def _set_trustee(self, seat: int, on: bool, reason: TrusteeReason) -> None:
        if self.state.seats[seat].trustee == on:
            return
        if self.state.in_play is not None:
            self._play(SetTrustee(seat, on, reason))
        else:
            self._tell(play.TrusteeSet(seat, on, reason))

    def _tell(self, event: Event) -> None:
        self.state.note(event)
        self._told.append(event)
