"""A table of bots' brains in this process: the rules' state machine, no services, no clock.

The brains see what a player's client sees: a `TableView` with the other hands face down.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import SeatView, TableView
from fangcheng_rules import tiles, wall
from fangcheng_rules.actions import (
    Action,
    Analysed,
    AnalyzeQuestion,
    Choose,
    Prompt,
    Scored,
    WindowOver,
)
from fangcheng_rules.analysis import Analysis, Wait, analyze
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.players import PLAYERS, STRENGTH
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.scoring import score
from fangcheng_suite.bots.brain import Brain

PROMPT_KINDS = {
    "piao": "before_deal",
    "turn": "turn",
    "claim": "claim",
    "dealt_out": "dealt_out",
}


@dataclass(slots=True)
class Arena:
    """Plays hands of a rule set between four brains."""

    rules: RuleSet
    chance: random.Random
    strength: str = STRENGTH

    async def hand(self, number: int = 1, dealer: int = 0) -> Round:
        """Play one hand to its end."""
        options = self.rules.complete()
        shuffled, dice = wall.derive(
            self.chance.randbytes(32),
            (b"", b"", b"", b""),
            "arena",
            number,
            tiles=self.rules.wall_tiles,
            dice=self.rules.hand_dice,
        )
        play, _ = Round.begin(
            HandSetup(
                rule_set_id=self.rules.id,
                revision=self.rules.revision,
                options=options,
                hand_number=number,
                dealer=dealer,
                dice=dice,
                wall=shuffled,
            )
        )
        brains = [
            Brain(self.analyse, PLAYERS[self.strength](random.Random(self.chance.random())))
            for _ in range(4)
        ]
        while not play.ended:
            if questions := play.questions():
                for question in questions:
                    if isinstance(question, AnalyzeQuestion):
                        found = analyze(self.rules, options, question.hand)
                        play.step(Analysed(question.number, found))
                    else:
                        play.step(
                            Scored(question.number, score(self.rules, options, question.finished))
                        )
                continue
            if prompts := play.prompts():
                seat, prompt = next(iter(prompts.items()))
                asked = prompt_message(prompt)
                chosen = await brains[seat].choose(view_of(play, seat), asked)
                place = list(asked.actions).index(chosen)
                play.step(Choose(seat, prompt.decision, prompt.actions[place]))
                continue
            window = play.window()
            assert window is not None, "the hand waits for nothing"
            play.step(WindowOver(window))
        return play

    async def analyse(self, hand: evaluation_pb2.Hand) -> evaluation_pb2.Analysis:
        """What the evaluation service would answer."""
        melds = tuple(
            Meld(MeldKind(meld.kind), tuple(tiles.from_code(code) for code in meld.tiles))
            for meld in hand.melds
        )
        concealed = tuple(tiles.from_code(code) for code in hand.concealed)
        found = analyze(self.rules, self.rules.complete(), Hand(concealed, melds), progress=True)
        return analysis_message(found)


def analysis_message(found: Analysis) -> evaluation_pb2.Analysis:
    return evaluation_pb2.Analysis(
        wins=found.wins,
        waits=_waits(found.waits),
        discards=[
            evaluation_pb2.DiscardChoice(
                tile=tiles.code(choice.tile),
                waits=_waits(choice.waits),
                shanten=choice.shanten or 0,
                useful_tiles=[tiles.code(kind) for kind in choice.useful],
            )
            for choice in found.discards
        ],
        kongs=[
            evaluation_pb2.KongChoice(
                tile=tiles.code(kong.tile), kind=kong.kind, waits=_waits(kong.waits)
            )
            for kong in found.kongs
        ],
        shanten=found.shanten or 0,
        useful_tiles=[tiles.code(kind) for kind in found.useful],
    )


def _waits(waits: tuple[Wait, ...]) -> list[evaluation_pb2.Wait]:
    return [
        evaluation_pb2.Wait(tile=tiles.code(wait.tile), least_fan=wait.least_fan) for wait in waits
    ]


def prompt_message(prompt: Prompt) -> events_pb2.Prompt:
    return events_pb2.Prompt(
        decision_id=str(prompt.decision),
        kind=PROMPT_KINDS[prompt.kind],
        actions=[action_message(action) for action in prompt.actions],
        ms_left=1000,
    )


def action_message(action: Action) -> state_pb2.Action:
    return state_pb2.Action(
        kind=action.kind,
        tile=0 if action.tile is None else tiles.code(action.tile),
        tiles=[tiles.code(kind) for kind in action.tiles],
        meld=action.meld or "",
        declare=action.declare,
        amount=action.amount,
    )


def view_of(play: Round, viewer: int) -> TableView:
    """What the client of a seat knows now."""
    seats = []
    open_ = play.claimable
    for number, seat in enumerate(play.seats):
        own = number == viewer
        shows = own or seat.declared in play.rule_set.calls.shown
        seats.append(
            SeatView(
                player_id=f"player-{number}",
                concealed=[
                    tiles.code(kind) if own or (shows and kind != seat.drawn) else 0
                    for kind in seat.concealed
                ],
                drawn=None if seat.drawn is None else (tiles.code(seat.drawn) if own else 0),
                melds=[_meld(meld, own) for meld in seat.melds],
                river=[tiles.code(kind) for kind in seat.discards],
                flowers=[tiles.code(kind) for kind in seat.flowers],
                declared=seat.declared,
                piao=seat.piao or 0,
            )
        )
    return TableView(
        table_id="arena",
        rules=rules_pb2.RuleSetChoice(id=play.rule_set.id),
        wall_tiles=play.tiles_left,
        last_discard=None if open_ is None else (open_.seat, tiles.code(open_.tile)),
        turned=[tiles.code(play.wall[place]) for place in play.turned],
        treasure=0 if play.treasure is None else tiles.code(play.treasure),
        own_seat=viewer,
        seats=seats,
        hand_number=play.hand_number,
        dealer=play.dealer,
    )


def _meld(meld: Meld, own: bool) -> rules_pb2.Meld:
    hidden = meld.kind is MeldKind.CONCEALED_KONG and not own
    return rules_pb2.Meld(
        kind=meld.kind,
        tiles=[0 if hidden else tiles.code(kind) for kind in meld.tiles],
        from_seat=meld.source,
        claimed_tile=0 if meld.claimed is None else tiles.code(meld.claimed),
        treasure=meld.treasure,
    )
