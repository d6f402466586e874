"""The player that goes straight for a win."""

from __future__ import annotations

import random
from collections.abc import Sequence

from fangcheng_rules.actions import Action, Prompt
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.tiles import ORPHANS, PLAY_KINDS
from fangcheng_rules.values import value

from .outlook import Outlook, after_discard, best_discard, standing
from .situation import Situation, after_claim, after_kong

PIAO = 5
"""Units of piao that are staked now and then."""
PIAO_SHARE = 0.25

_ORPHAN = [kind in ORPHANS for kind in range(PLAY_KINDS)]


@value
class Choice:
    """A discard that a player may make, and what it leaves."""

    action: Action
    tile: int
    outlook: Outlook
    spare: int
    """How little others can use the tile, as far as is seen: the more the better to discard."""

    @property
    def rank(self) -> tuple[Outlook, bool, int]:
        """By what it leaves; declared rather than not; then what is of no use to others."""
        return self.outlook, self.action.declare != "", self.spare


class Efficient:
    """Goes straight for a win, and looks at what can still come.

    It takes every win. Otherwise it wants to be *near* a hand that it may win with: fewest tiles
    away first, then most tiles not yet seen that help. The evaluator tells both under the
    conditions of the rule set, so that it never chases a hand that cannot win, whatever the rules
    are. It claims what brings it nearer, makes a kong that takes nothing from its hand, and
    declares a wait where that is worth it (`Declaration.worth_from`). Whom a discard may serve
    decides only between discards that are otherwise alike.
    """

    needs_progress = True

    def __init__(self, chance: random.Random, piao_share: float = PIAO_SHARE) -> None:
        """`piao_share`: how often 5 units of piao are staked."""
        self._chance = chance
        self._piao_share = piao_share

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """The action that leaves the hand nearest to a win."""
        # There is no reason to call a win that it does not have.
        actions = [action for action in prompt.actions if action.kind != "false_win"]
        for action in actions:
            if action.kind == "win":
                return action
        if len(actions) == 1:
            return actions[0]
        if prompt.kind == "piao":
            return self._piao(actions)
        if prompt.kind == "turn":
            return self._turn(situation, actions)
        return self._claim(situation, actions)

    def _piao(self, actions: Sequence[Action]) -> Action:
        wanted = PIAO if self._chance.random() < self._piao_share else 0
        return next((action for action in actions if action.amount == wanted), actions[0])

    def _turn(self, situation: Situation, actions: Sequence[Action]) -> Action:
        unseen = situation.unseen()
        choices = discards(situation, actions, unseen)
        best = max(choices, key=lambda choice: choice.rank, default=None)
        for action in actions:
            if action.kind == "kong" and self._kong_pays(
                situation, action, None if best is None else best.outlook, unseen
            ):
                return action
        if best is None:
            return next((action for action in actions if action.kind == "pass"), actions[-1])
        return self._discard(situation, choices, best, unseen).action

    def _discard(
        self,
        situation: Situation,
        choices: Sequence[Choice],
        best: Choice,
        unseen: Sequence[int],
    ) -> Choice:
        """Which of the discards it makes; `best`: the one that leaves the most."""
        return best

    def _claim(self, situation: Situation, actions: Sequence[Action]) -> Action:
        passes = next((action for action in actions if action.kind == "pass"), actions[-1])
        claims = [action for action in actions if action.kind in ("kong", "pong", "chi")]
        if not claims:
            return passes
        unseen = situation.unseen()
        stay = standing(situation.analysed(), unseen)
        best, chosen = stay, passes
        for action in claims:
            if action.kind == "kong":
                if self._kong_pays(situation, action, stay, unseen):
                    return action
                continue
            then = situation.analyse(after_claim(situation.hand, action))
            outlook = best_discard(then, unseen)
            # A claim opens the hand. It must bring it nearer; more tiles to wait on are not enough.
            if outlook is not None and outlook.nearness > stay.nearness and outlook > best:
                best, chosen = outlook, action
        return chosen

    def _kong_pays(
        self,
        situation: Situation,
        action: Action,
        otherwise: Outlook | None,
        unseen: Sequence[int],
    ) -> bool:
        """A kong is paid for, so it is made wherever the hand gets no worse by it."""
        if action.declare and otherwise is not None and not otherwise.ready:
            return False
        then = situation.analyse(after_kong(situation.hand, action))
        if action.meld is MeldKind.WHIRLWIND:
            # Nothing is drawn for it: fourteen tiles are left, and one of them is discarded.
            left = best_discard(then, unseen)
            return otherwise is None or (left is not None and left >= otherwise)
        outlook = standing(then, unseen)
        if situation.declared or action.declare:
            return outlook.ready and not situation.rule_set.calls.spoils(then.waits)
        return otherwise is None or outlook.nearness >= otherwise.nearness


def discards(
    situation: Situation, actions: Sequence[Action], unseen: Sequence[int]
) -> list[Choice]:
    """The discards among the actions, but those that declare what is not worth declaring."""
    if situation.declared:
        return []
    after = {choice.tile: choice for choice in situation.analysed().discards}
    declarations = situation.rule_set.declarations
    outlooks: dict[int, Outlook] = {}
    choices = []
    for action in actions:
        tile = action.tile
        if action.kind != "discard" or tile is None:
            continue
        outlook = outlooks.get(tile)
        if outlook is None:
            outlook = outlooks[tile] = after_discard(after[tile], unseen)
        if not action.declare or outlook.declares(declarations[action.declare]):
            # What has been seen often, and terminals and honours, fit few hands.
            choices.append(Choice(action, tile, outlook, _ORPHAN[tile] - 2 * unseen[tile]))
    return choices
