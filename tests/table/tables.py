"""A table without a process: a clock that stands still, the evaluator's answers at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fangcheng.table.v1 import events_pb2
from fangcheng_rules.actions import Action, AnalyzeQuestion, Prompt
from fangcheng_rules.analysis import Analysis, analyze
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import score
from fangcheng_table import codec, votes
from fangcheng_table.clocks import Patience
from fangcheng_table.convert_settlement import FEE
from fangcheng_table.core import Table
from fangcheng_table.dealing import chain_of
from fangcheng_table.errors import StaleDecision
from fangcheng_table.events import (
    Event,
    HandSettled,
    Payment,
    SeatPlan,
    Stake,
    TableCreated,
    Timing,
)
from fangcheng_table.ids import prompt_id
from fangcheng_table.settlement import Settlement
from fangcheng_table.store import Record
from fangcheng_table.views import VIEWERS, Projector

SILVER = Stake("silver", "", 10)
POINTS = Stake("points", "kele/2026", 1)
SLOW = Timing(claim_window_ms=1_000, between_hands_ms=5_000)
NO_PIAO = {"piao": False}

PLAYERS = ("ann", "bob", "cat", "dan")
RULE_SET = "baishan_kele"

Choice = Callable[[int, Prompt], Action | None]
"""What a seat answers to its prompt; None: it lets it be."""


def created(
    *,
    root: bytes = b"r" * 32,
    hands: int = 1,
    timing: Timing | None = None,
    stakes: Sequence[Stake] = (),
    holds: bool = False,
    options: dict[str, bool | int | str] | None = None,
    is_bot: bool = False,
    rules_id: str = RULE_SET,
) -> TableCreated:
    """A table of four."""
    rules = rule_set(rules_id)
    return TableCreated(
        table_id="t1",
        created_ms=1_000,
        rule_set=rules.id,
        revision=rules.revision,
        options=rules.complete(options or {}),
        seats=tuple(
            SeatPlan(player, f"profile of {player}".encode(), (f"h-{player}",) * holds, is_bot)
            for player in PLAYERS
        ),
        stakes=tuple(stakes),
        hands=hands,
        timing=timing or Timing(claim_window_ms=0, between_hands_ms=0),
        labels={"club": "17"},
        root=root,
        commitment=chain_of(root, hands).commitment,
    )


def told(analysis: Analysis) -> Analysis:
    """An analysis as a table is told it: nothing by which no hand is played."""
    return replace(analysis, readings=(), items=())


def passing(seat: int, prompt: Prompt) -> Action | None:
    """Claims nothing, discards the first it may."""
    return prompt.actions[-1] if prompt.kind in ("claim", "dealt_out") else prompt.actions[0]


def at_random(seed: int, eagerness: float = 0.7) -> Choice:
    """Wins where it can, claims and declares often, otherwise anything."""
    rng = random.Random(seed)

    def choose(seat: int, prompt: Prompt) -> Action | None:
        wins = [action for action in prompt.actions if action.kind == "win"]
        if wins and rng.random() < 0.9:
            return wins[0]
        calls = ("kong", "pong", "chi", "false_win")
        bold = [a for a in prompt.actions if a.declare or a.kind in calls]
        if bold and rng.random() < eagerness:
            return rng.choice(bold)
        return rng.choice(prompt.actions)

    return choose


@dataclass
class Drive:
    """A table, its journal, and the time."""

    table: Table
    now_ms: int = 0
    records: list[Record] = field(default_factory=list)
    answers: bool = True
    """The evaluator answers."""
    scores: bool = True
    """It tells what a finished hand pays."""
    pays: bool = True
    """The wallet answers."""
    is_ready: bool = True
    """All seats are ready for the next hand at once."""

    @classmethod
    def of(cls, event: TableCreated, patience: Patience | None = None) -> Drive:
        drive = cls(Table.create(event, patience))
        drive.settle()
        return drive

    def store(self) -> list[Event]:
        """Store what has happened, through the codec, and let the clocks begin to run."""
        told = self.table.take()
        for event in told:
            stored = codec.decode(codec.encode(event))
            assert stored == event, (stored, event)
            self.records.append(Record(len(self.records) + 1, self.now_ms, stored))
        self.table.arm(self.now_ms)
        return told

    def settle(self) -> list[Event]:
        """Let everything happen that waits for no player and no time."""
        told: list[Event] = []
        while True:
            self.table.advance(self.now_ms)
            news = self.store()
            told += news
            if not self._others() and not news:
                return told

    def _others(self) -> bool:
        state, before = self.table.state, self.table.take()
        assert not before
        if self.answers:
            rules = rule_set(state.created.rule_set)
            for question in self.table.questions():
                if isinstance(question, AnalyzeQuestion):
                    value = told(
                        analyze(
                            rules, state.created.options, question.hand, flowers=question.flowers
                        )
                    )
                    self.table.answer(state.hand_number, question.number, value)
                elif not self.scores:
                    continue
                else:
                    result = score(rules, state.created.options, question.finished)
                    self.table.answer(state.hand_number, question.number, result)
                return True
        if self.is_ready and state.checking and not state.closed:
            check = f"ready-{state.checks}"
            if not all(votes.reply(self.table, seat, check, "ready") for seat in range(4)):
                return True
        if self.pays:
            settlement = self.table.settlement()
            if settlement is not None:
                self.table.settled(settlement, paid(settlement))
                return True
            for vacancy in list(self.table.returns()):
                self.table.returned(vacancy)
                return True
            if self.table.holds():
                self.table.released()
                return True
        return False

    def attend(self, *seats: int) -> list[Event]:
        for seat in seats:
            self.table.attach(seat)
        return self.settle()

    def pass_time(self, ms: int) -> list[Event]:
        """Let time pass, ringing everything on its way."""
        until, told = self.now_ms + ms, list[Event]()
        while True:
            at = self.table.next_deadline()
            if at is None or at > until:
                break
            self.now_ms = max(self.now_ms, at)
            told += self.settle()
        self.now_ms = until
        return told + self.settle()

    def prompt(self, seat: int) -> Prompt | None:
        hand = self.table.state.in_play
        return hand.prompts().get(seat) if hand is not None else None

    def prompt_ids(self) -> dict[int, str]:
        """The open prompt of each seat that is asked."""
        hand, number = self.table.state.in_play, self.table.state.hand_number
        prompts = hand.prompts() if hand is not None else {}
        return {seat: prompt_id(number, prompt.decision) for seat, prompt in prompts.items()}

    def act(self, seat: int, action: Action) -> list[Event]:
        """Answer the seat's open prompt."""
        prompt = self.prompt(seat)
        assert prompt is not None
        number = self.table.state.hand_number
        assert not self.table.act(seat, prompt_id(number, prompt.decision), action)
        return self.settle()

    def play(self, choose: Choice, until: Callable[[Drive], bool] | None = None) -> None:
        """Answer prompts until the table is done, or until something."""
        while not self.table.state.done and not (until is not None and until(self)):
            hand = self.table.state.in_play
            acted = False
            for seat, prompt in hand.prompts().items() if hand is not None else ():
                action = choose(seat, prompt)
                if action is not None:
                    self.act(seat, action)
                    acted = True
                    break
            if not acted:
                at = self.table.next_deadline()
                if at is None:
                    return
                self.pass_time(max(0, at - self.now_ms))

    @property
    def events(self) -> list[Event]:
        return [record.event for record in self.records]


@dataclass(frozen=True)
class Race:
    """An act around the end of a prompt's time."""

    seat: int
    prompt: Prompt
    own_ms: int
    """Time that the prompt had, and of the reserve after that, when the wait for the act began."""
    reserve_ms: int
    waited_ms: int
    was_taken: bool
    told: list[Event]
    """What happened by it."""


def races(drive: Drive, rng: random.Random, end: Callable[[int, int], int]) -> Iterator[Race]:
    """Answers each prompt up to 50 ms before or after `end(own_ms, reserve_ms)`."""
    while not drive.table.state.closed:
        hand = drive.table.state.in_play
        asked = list(hand.prompts().items()) if hand is not None else []
        if not asked:
            drive.pass_time(1)
            continue
        seat, prompt = asked[0]
        decision = prompt_id(drive.table.state.hand_number, prompt.decision)
        own_ms, reserve_ms = drive.table.ms_left(seat, decision, drive.now_ms)
        waited_ms = max(0, end(own_ms, reserve_ms) + rng.randrange(-50, 51))
        drive.pass_time(waited_ms)
        try:
            drive.table.act(seat, decision, prompt.actions[-1])
            was_taken = True
        except StaleDecision:
            was_taken = False
        yield Race(seat, prompt, own_ms, reserve_ms, waited_ms, was_taken, drive.settle())
        # Take the seat back, so that turns go on being asked.
        state = drive.table.state.seats[seat]
        if state.trustee:
            drive.table.act(seat, f"back-{state.trustee_times}", None)
            drive.settle()


def paid(settlement: Settlement) -> tuple[Payment, ...]:
    """Everything was paid in full."""
    return tuple(
        Payment(p.currency, p.book, p.source, p.target, p.amount, p.amount, p.reason)
        for p in settlement.postings
    ) + tuple(
        Payment(fee.currency, fee.book, fee.seat, None, fee.amount, fee.amount, FEE)
        for fee in settlement.fees
    )


def sights(records: Sequence[Record]) -> dict[int, list[events_pb2.TableEvent]]:
    """What each viewer was shown, with its numbers."""
    projector = Projector()
    seen: dict[int, list[events_pb2.TableEvent]] = {viewer: [] for viewer in VIEWERS}
    for record in records:
        for viewers, event in projector.see(record):
            for viewer in viewers:
                one = events_pb2.TableEvent.FromString(event.SerializeToString())
                one.number = len(seen[viewer]) + 1
                seen[viewer].append(one)
    return seen


def settled_hands(events: Sequence[Event]) -> list[int]:
    return [event.hand_number for event in events if isinstance(event, HandSettled)]


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def of(kind: type, events: list[Event]) -> list:
    return [event for event in events if isinstance(event, kind)]


def playing(timing: Timing = SLOW, *, hands: int = 1, **more: object) -> Drive:
    """A table where the dealer has been asked for its first discard."""
    drive = Drive.of(created(timing=timing, hands=hands, options=NO_PIAO, **more))
    drive.attend(0, 1, 2, 3)
    assert drive.prompt(drive.table.state.dealer) is not None
    return drive


def decided(drive: Drive) -> None:
    """Play until the hand is decided, and nobody tells what it pays."""
    drive.scores = False
    drive.play(at_random(4), until=lambda d: bool(d.table.questions()))


def first_discard(drive: Drive) -> list[Event]:
    """The dealer discards something that nobody can claim."""
    dealer = drive.table.state.dealer
    hand, prompt = drive.table.state.in_play, drive.prompt(dealer)
    assert hand is not None
    assert prompt is not None
    for action in prompt.actions:
        others = [hand.seats[(dealer + step) % 4].concealed for step in (1, 2, 3)]
        near = {action.tile + step for step in (-2, -1, 1, 2)} if action.tile < 27 else set()
        if any(other.count(action.tile) >= 2 for other in others) or near & set(others[0]):
            continue
        return drive.act(dealer, action)
    raise AssertionError("every discard can be claimed")


def away(drive: Drive, *seats: int) -> None:
    for seat in seats:
        drive.table.detach(seat)
    drive.settle()
    drive.pass_time(2_000)
