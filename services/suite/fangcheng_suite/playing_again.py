"""Plays a recorded hand again, from its wall, by the rules, and compares every step.

Whatever a seat did is seen in what followed; so each decision that the rules open is answered by
the next step of the record, and where that tells of nothing for a seat, the seat has passed. What
then happens, to the last unit of the score, must be what the record says. Who was absent, or played
for by the table, does not matter: the seats' decisions count, whoever made them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, records_pb2
from fangcheng_rules import events as play
from fangcheng_rules.actions import (
    FALSE_WIN,
    PASS,
    Action,
    Analysed,
    AnalyzeQuestion,
    Choose,
    Command,
    Dissolve,
    Leave,
    Prompt,
    Question,
    Scored,
    ScoreQuestion,
    WindowOver,
)
from fangcheng_rules.analysis import Analyzer
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import score
from fangcheng_rules.tiles import DRAGONS, code, from_code
from fangcheng_table.convert import options_from_wire
from fangcheng_table.convert_play import meld_to_wire
from fangcheng_table.events import HandOpened, SeatPlan, TableCreated, Timing
from fangcheng_table.store import Record
from fangcheng_table.views import Projector

from .errors import VerificationFailed

STEPS = frozenset(
    {
        "hand_started",
        "piao_shown",
        "dealt",
        "drawn",
        "flower_laid",
        "treasure_turned",
        "discarded",
        "melded",
        "kong_robbed",
        "false_win_called",
        "hand_ended",
    }
)
"""Kinds of events that belong to the play; the others tell of the table around it."""

MOST_IDLE = 64
"""Commands in a row of which nothing is seen, at most: passes, and answers to questions."""

_CALLS = {"chi": "chi", "pong": "pong", "exposed_kong": "kong"}


def play_again(record: records_pb2.HandRecord) -> int:
    """Play a hand again; how many steps were compared.

    Raises VerificationFailed at the first one that does not follow.
    """
    steps = [event for event in record.events if event.WhichOneof("kind") in STEPS]
    if not steps or not steps[0].HasField("hand_started") or not steps[-1].HasField("hand_ended"):
        raise VerificationFailed("the record does not go from the beginning of a hand to its end")
    again = _Again(record, steps)
    while not again.hand.ended:
        again.go_on()
    if again.compared < len(steps):
        raise again.differs("the hand has ended")
    return again.compared


class _Again:
    """The hand that is played again, compared up to some step of the record."""

    def __init__(
        self, record: records_pb2.HandRecord, steps: Sequence[events_pb2.TableEvent]
    ) -> None:
        self.compared = 0
        self._idle = 0
        self._steps = steps
        self._rules = rule_set(record.rules.id, record.rules.revision)
        self._options = self._rules.complete(options_from_wire(record.rules.options))
        self._analyze = Analyzer(self._rules, self._options)
        started = steps[0].hand_started
        self._projector = Projector(record=True)
        opened = HandOpened(record.hand_number, record.secret, tuple(record.entropy))
        for event in (_table(record, self._options), opened):
            list(self._projector.see(Record(0, 0, event)))
        setup = HandSetup(
            rule_set_id=self._rules.id,
            revision=self._rules.revision,
            options=self._options,
            hand_number=record.hand_number,
            dealer=started.dealer,
            dice=tuple(record.dice),
            wall=tuple(from_code(tile) for tile in record.wall),
            drawn_hands_before=started.drawn_hands_before,
        )
        self.hand, events = Round.begin(setup)
        self._compare(events)

    def go_on(self) -> None:
        """The next command, and what comes of it."""
        if self.compared == len(self._steps):
            raise VerificationFailed("the hand goes on after the record has ended")
        before = self.compared
        self._compare(self.hand.step(self._command()))
        self._idle = 0 if self.compared > before else self._idle + 1
        if self._idle > MOST_IDLE:
            raise self.differs("nothing comes of what was done before")

    def differs(self, what: str) -> VerificationFailed:
        """What is wrong with the step that is to be compared next."""
        event = self._steps[self.compared]
        kind = (event.WhichOneof("kind") or "").replace("_", " ")
        return VerificationFailed(f"event {event.number} ({kind}) does not follow: {what}")

    # What the record tells.

    def _step(self, ahead: int = 0) -> events_pb2.TableEvent:
        at = self.compared + ahead
        return self._steps[at] if at < len(self._steps) else events_pb2.TableEvent()

    def _command(self) -> Command:
        hand, end = self.hand, self._step().hand_ended.hand
        for question in hand.questions():
            if isinstance(question, ScoreQuestion):  # the play is over
                return self._answer(question)
        if end.HasField("escape"):
            return Leave(end.escape.seat)
        if end.HasField("dissolved"):
            return Dissolve(end.dissolved.reason)
        for question in hand.questions():
            return self._answer(question)
        for seat, prompt in hand.prompts().items():
            action = self._chosen(seat, prompt)
            if not prompt.offers(action):
                raise self.differs(f"seat {seat} may not do that here")
            return Choose(seat, prompt.decision, action)
        window = hand.window()
        if window is None:
            raise self.differs("nobody is to play")
        return WindowOver(window)

    def _answer(self, question: Question) -> Command:
        if isinstance(question, AnalyzeQuestion):
            return Analysed(question.number, self._analyze(question.hand, flowers=question.flowers))
        return Scored(question.number, score(self._rules, self._options, question.finished))

    def _chosen(self, seat: int, prompt: Prompt) -> Action:
        step = self._step()
        if step.false_win_called.seat == seat and step.HasField("false_win_called"):
            return FALSE_WIN
        if step.hand_ended.hand.HasField("win") or step.HasField("kong_robbed"):
            won = self._won(seat, prompt, step)
            if won is not None:
                return won
        match prompt.kind:
            case "piao":
                return self._piao(seat, step)
            case "turn":
                return self._played(seat, prompt, step)
            case _:
                return self._claimed(seat, prompt)

    def _won(self, seat: int, prompt: Prompt, step: events_pb2.TableEvent) -> Action | None:
        # A robbed kong may end the hand at once, or be told before it does.
        end = step.hand_ended.hand if step.HasField("hand_ended") else self._step(1).hand_ended.hand
        if end.HasField("win") and seat in end.win.winners:
            return next((action for action in prompt.actions if action.kind == "win"), None)
        return None

    def _piao(self, seat: int, step: events_pb2.TableEvent) -> Action:
        if not step.HasField("piao_shown"):
            raise self.differs("the seats choose their piao first")
        return Action("piao", amount=step.piao_shown.units[seat])

    def _played(self, seat: int, prompt: Prompt, step: events_pb2.TableEvent) -> Action:
        if step.HasField("discarded") and step.discarded.seat == seat:
            if prompt.offers(PASS):  # who has declared discards what it drew, unless it wins
                return PASS
            discarded = step.discarded
            return Action("discard", from_code(discarded.tile), declare=discarded.declared)
        if step.HasField("melded") and step.melded.seat == seat:
            meld = step.melded.meld
            for action in prompt.actions:
                lying = self.hand.seats[seat].melds
                if _makes(action, meld, lying) and action.declare == step.melded.declared:
                    return action
        raise self.differs(f"it is the turn of seat {seat}")

    def _claimed(self, seat: int, prompt: Prompt) -> Action:
        step = self._step(1) if self._step().HasField("kong_robbed") else self._step()
        if not step.HasField("melded") or step.melded.seat != seat:
            return PASS
        meld = step.melded.meld
        for action in prompt.actions:
            if action.kind == _CALLS.get(meld.kind) and _uses(action, meld):
                return action
        raise self.differs(f"seat {seat} may not claim that")

    # What the rules tell.

    def _compare(self, events: Sequence[play.Event]) -> None:
        for event in events:
            for _, told in self._projector.see(Record(0, 0, event)):
                if told.WhichOneof("kind") not in STEPS:
                    continue
                if self.compared == len(self._steps):
                    raise VerificationFailed("the hand goes on after the record has ended")
                if _bare(told) != _bare(self._steps[self.compared]):
                    raise self.differs(f"by the rules it is {_short(told)}")
                self.compared += 1


def _table(record: records_pb2.HandRecord, options: Any) -> TableCreated:
    return TableCreated(
        table_id=record.table_id,
        created_ms=0,
        rule_set=record.rules.id,
        revision=record.rules.revision,
        options=options,
        seats=tuple(SeatPlan(player_id) for player_id in record.player_ids),
        stakes=(),
        hands=0,
        timing=Timing(),
        labels={},
        root=b"",
        commitment=record.table_commitment,
    )


def _makes(action: Action, meld: rules_pb2.Meld, lying: Sequence[Meld]) -> bool:
    """Whether a kong of a seat's own turn makes this meld; `lying`: the seat's melds before."""
    if action.kind != "kong" or action.tile is None:
        return False
    if action.meld is MeldKind.ADDED_KONG:
        return any(
            meld_to_wire(one.plus(action.tile)).tiles == meld.tiles
            for one in lying
            if one.takes(action.tile)
        )
    if action.meld is MeldKind.WHIRLWIND:
        return meld.kind == action.meld and len(meld.tiles) == len(DRAGONS)
    return action.meld == meld.kind and code(action.tile) in meld.tiles


def _uses(action: Action, meld: rules_pb2.Meld) -> bool:
    """Whether a claim makes this meld."""
    tiles = list(meld.tiles)
    if action.kind == "chi":
        if meld.claimed_tile in tiles:
            tiles.remove(meld.claimed_tile)
        return sorted(code(tile) for tile in action.tiles) == tiles
    return action.tile is None or code(action.tile) in tiles


def _bare(event: events_pb2.TableEvent) -> events_pb2.TableEvent:
    """An event without its number and its time."""
    bare = events_pb2.TableEvent()
    bare.CopyFrom(event)
    bare.ClearField("number")
    bare.ClearField("time")
    return bare


def _short(event: events_pb2.TableEvent) -> str:
    kind = event.WhichOneof("kind") or ""
    if kind == "hand_ended":
        return "another end of the hand, or another score"
    return f"{kind.replace('_', ' ')}: " + " ".join(str(getattr(event, kind)).split())
