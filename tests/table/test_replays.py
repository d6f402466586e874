"""A client as an opponent: whatever it repeats, reorders or duplicates changes nothing more."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from fangcheng_kit.errors import ServiceError
from fangcheng_table import operating, votes
from fangcheng_table.core import Table
from fangcheng_table.errors import NotSeated
from fangcheng_table.events import OperatorActed, SeatPlan, Timing, VoteOpened
from fangcheng_table.ids import prompt_id
from fangcheng_table.operating import Order
from fangcheng_table.state import TableState

from .tables import SILVER, Drive, at_random, created, of

Call = Callable[[Table], object]

TIMING = Timing(
    claim_window_ms=0,
    between_hands_ms=0,
    turn_ms=1_000,
    claim_ms=1_000,
    reserve_ms=2_000,
    ready_ms=5_000,
    vote_ms=3_000,
    away_grace_ms=60_000,
    vacancy_ms=60_000,
)


class Opponent:
    """Makes every call there is, at random, and repeats what it has made before."""

    def __init__(self, seed: int, rules_id: str) -> None:
        self.rng = random.Random(seed)
        table = created(
            root=bytes([seed % 250 + 1]) * 32,
            rules_id=rules_id,
            timing=TIMING,
            hands=12,
            stakes=[SILVER],
            holds=True,
        )
        self.drive = Drive.of(table)
        self.drive.is_ready = False
        self.drive.attend(0, 1, 2, 3)
        self.made: list[Call] = []
        self.orders = 0
        self.choose = at_random(seed)

    @property
    def table(self) -> Table:
        return self.drive.table

    def call(self, call: Call) -> None:
        """Make a call for the first time. One that is refused changes nothing and is not made."""
        assert self.table.take() == []
        try:
            call(self.table)
        except ServiceError:
            assert self.table.take() == []
        else:
            self.made.append(call)
            self.drive.settle()

    def repeat(self) -> None:
        """Make calls again that were made, in any order: none of them does anything."""
        for call in self.rng.sample(self.made, min(len(self.made), self.rng.randrange(1, 6))):
            with contextlib.suppress(ServiceError):
                call(self.table)
            assert self.table.take() == []

    def step(self) -> None:
        """The next thing that somebody does."""
        state, rng = self.table.state, self.rng
        seat = rng.randrange(4)
        player = state.seats[seat].plan.player_id
        chance = rng.random()
        if any(one.vacant for one in state.seats) and chance < 0.5:
            self.order(seat, player)
        elif chance < 0.80:
            self.play()
        elif chance < 0.86 and state.checking:
            self.call(as_player(player, lambda t, s: votes.reply(t, s, check(state), "ready")))
        elif chance < 0.88:
            number = state.hand_number
            self.call(as_player(player, lambda t, s: votes.propose(t, s, number)))
        elif chance < 0.93 and state.vote is not None:
            vote = f"vote-{state.vote.number}"
            word = rng.choice(["agree", "agree", "agree", "refuse"])
            self.call(as_player(player, lambda t, s: votes.reply(t, s, vote, word)))
        elif chance < 0.95 and seat in self.drive.prompt_ids():
            decision = self.drive.prompt_ids()[seat]
            self.call(as_player(player, lambda t, s: t.hand_over(s, decision)))
        elif chance < 0.97 and state.seats[seat].trustee:
            back = f"back-{state.seats[seat].trustee_times}"
            self.call(as_player(player, lambda t, s: t.act(s, back, None)))
        elif chance < 0.975:
            self.call(as_player(player, lambda t, s: t.leave(s, now=False)))
        elif chance < 0.976:
            self.call(as_player(player, lambda t, s: t.leave(s, now=True)))
        elif chance < 0.985:
            self.order(seat, player)
        else:
            self.drive.pass_time(rng.randrange(1, 3_000))

    def play(self) -> None:
        hand = self.table.state.in_play
        prompts = hand.prompts() if hand is not None else {}
        if not prompts:
            at = self.table.next_deadline()
            if at is not None:
                self.drive.pass_time(max(0, at - self.drive.now_ms))
            return
        seat, prompt = self.rng.choice(list(prompts.items()))
        action = self.choose(seat, prompt)
        decision = prompt_id(self.table.state.hand_number, prompt.decision)
        player = self.table.state.seats[seat].plan.player_id
        self.call(as_player(player, lambda t, s: t.act(s, decision, action)))

    def order(self, seat: int, player: str) -> None:
        """What an operator does, mostly nothing that ends the table at once."""
        self.orders += 1
        order = Order(f"o-{self.orders}", "operator", "a reason", "case-1")
        number = self.table.state.hand_number
        vacant = [n for n, one in enumerate(self.table.state.seats) if one.vacant]
        if vacant:
            plan = SeatPlan(f"new-{self.orders}")
            self.call(lambda t: operating.seat_player(t, order, vacant[0], plan))
            self.drive.attend(vacant[0])
        elif self.rng.random() < 0.7:
            self.call(lambda t: operating.void_hand(t, order, number))
        elif self.rng.random() < 0.9:
            self.call(lambda t: operating.remove(t, order, player))
        else:
            self.call(lambda t: operating.close_table(t, order, after_hand=True))


def check(state: TableState) -> str:
    return f"ready-{state.checks}"


def as_player(player_id: str, change: Callable[[Table, int], object]) -> Call:
    """A call of a player, who has whatever seat it has when the call arrives."""

    def call(table: Table) -> object:
        seat = table.state.seat_of(player_id)
        if seat is None:
            raise NotSeated(table.state.created.table_id)
        return change(table, seat)

    return call


@pytest.mark.parametrize("rules_id", ["baishan_kele", "shandong", "jintan"])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_repeated_reordered_or_duplicated_changes_nothing(seed, rules_id):
    it = Opponent(seed, rules_id)
    for _ in range(700):
        it.step()
        if it.rng.random() < 0.3:
            it.repeat()
        if it.table.state.done:
            break
    for _ in range(20):
        it.repeat()
    assert TableState.replay(it.drive.events) == it.table.state


def test_the_opponent_makes_every_kind_of_call():
    """So that the test above means something."""
    seen: set[str] = set()
    for seed in range(12):
        it = Opponent(seed, "shandong")
        for _ in range(700):
            it.step()
            if it.table.state.done:
                break
        seen |= {event.verb for event in of(OperatorActed, it.drive.events)}
        seen |= {"vote"} if of(VoteOpened, it.drive.events) else set()
        seen |= {type(event).__name__ for event in it.drive.events}
    assert {"remove", "void_hand", "vote", "seat_player"} <= seen
    assert {"VoteAnswered", "ReadyGiven", "TrusteeSet", "LeaveAnnounced", "ReserveSpent"} <= seen


def test_an_order_under_an_id_that_was_used_is_refused_and_changes_nothing():
    it = Opponent(1, "baishan_kele")
    order = Order("o-1", "operator", "a reason", "")
    it.call(lambda table: operating.void_hand(table, order, 1))
    with pytest.raises(ServiceError, match="another request"):
        operating.void_hand(it.table, replace(order, reason="another"), 1)
    assert it.table.take() == []
