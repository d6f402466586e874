"""How a bot chooses among the actions it is offered.

It takes every win. Otherwise it wants to be *near* a hand that it may win with: fewest tiles away
first, then most tiles still to be found that help. The evaluator tells both under the conditions of
the rule set, so that a bot never chases a hand that cannot win, whatever the rules are.

Nothing here knows the network: `Analyst` is whoever answers what a hand is worth.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import TableView
from fangcheng_rules.analysis import Wait
from fangcheng_rules.ruleset import Declaration, RuleSet
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.tiles import from_code

COPIES = 4
DRAGONS = (45, 46, 47)

PASS = state_pb2.Action(kind="pass")


class Analyst(Protocol):
    """Answers what a hand of 13 or 14 tiles is worth, with its progress."""

    async def __call__(self, hand: evaluation_pb2.Hand) -> evaluation_pb2.Analysis:
        """The analysis, with shanten and useful tiles."""


@dataclass(frozen=True, order=True, slots=True)
class Outlook:
    """How good a hand of 13 tiles is; a greater one is better. Compared field by field."""

    nearness: float
    """Minus the tiles still missing: 0 is ready on a wait that can come."""
    live: float
    """Tiles not yet seen that win (when ready) or help."""
    kinds: int = 0
    """Kinds of wait; decides between hands that are otherwise alike."""

    @property
    def ready(self) -> bool:
        """A tile that may be won on can still come."""
        return self.nearness >= 0

    def declares(self, declaration: Declaration) -> bool:
        """Whether it is worth declaring that."""
        least = declaration.worth_from
        return least is not None and self.ready and self.live >= least


@dataclass(slots=True)
class Brain:
    """One bot's way to play."""

    analyst: Analyst
    chance: random.Random = field(default_factory=random.Random)
    piao_share: float = 0.25
    """How often 5 units of piao are staked."""

    async def choose(self, view: TableView, prompt: events_pb2.Prompt) -> state_pb2.Action:
        """The answer to a prompt: always one of its actions."""
        # A bot has no reason to call a win that it does not have.
        actions = [action for action in prompt.actions if action.kind != "false_win"]
        if wins := [action for action in actions if action.kind == "win"]:
            return wins[0]
        if len(actions) == 1:
            return actions[0]
        if piao := [action for action in actions if action.kind == "piao"]:
            return self._piao(piao)
        if prompt.kind == "claim":
            return await self._claim(view, actions)
        return await self._turn(view, actions)

    def _piao(self, actions: Sequence[state_pb2.Action]) -> state_pb2.Action:
        wanted = 5 if self.chance.random() < self.piao_share else 0
        return next((action for action in actions if action.amount == wanted), actions[0])

    async def _turn(self, view: TableView, actions: Sequence[state_pb2.Action]) -> state_pb2.Action:
        own = view.own
        analysis = await self.analyst(_hand(own.concealed, own.melds))
        seen = view.seen()
        locked = own.declared != ""
        known = _rules(view).declarations

        choices = {choice.tile: choice for choice in analysis.discards}
        best: tuple[Outlook, bool, int, state_pb2.Action] | None = None
        for action in actions:
            choice = choices.get(action.tile)
            if action.kind != "discard" or choice is None:
                continue
            outlook = discard_outlook(choice, seen)
            if action.declare and not outlook.declares(known[action.declare]):
                continue
            ranked = (outlook, action.declare != "", _safety(action.tile, seen), action)
            if best is None or ranked[:3] > best[:3]:
                best = ranked

        for action in actions:
            if action.kind == "kong" and await self._kong_pays(
                view, action, None if best is None else best[0], locked
            ):
                return action
        if best is not None:
            return best[3]
        passes = [action for action in actions if action.kind == "pass"]
        return passes[0] if passes else actions[-1]

    async def _claim(
        self, view: TableView, actions: Sequence[state_pb2.Action]
    ) -> state_pb2.Action:
        passes = next((action for action in actions if action.kind == "pass"), actions[0])
        claims = [action for action in actions if action.kind in ("kong", "pong", "chi")]
        if not claims:
            return passes
        own = view.own
        locked = own.declared != ""
        now = await self.analyst(_hand(own.concealed, own.melds))
        seen = view.seen()
        stay = standing_outlook(now, seen)
        best_outlook, best_action = stay, passes
        for action in claims:
            if action.kind == "kong":
                if await self._kong_pays(view, action, stay, locked):
                    return action
                continue
            concealed, melds = after_claim(own.concealed, own.melds, action)
            then = await self.analyst(_hand(concealed, melds))
            outlook = best_discard(then, seen)
            if outlook is not None and _worth_opening(stay, outlook, best_outlook):
                best_outlook, best_action = outlook, action
        return best_action

    async def _kong_pays(
        self,
        view: TableView,
        action: state_pb2.Action,
        otherwise: Outlook | None,
        locked: bool,
    ) -> bool:
        """A kong is paid for, so it is made wherever the hand gets no worse by it."""
        own = view.own
        if action.declare and otherwise is not None and not otherwise.ready:
            return False
        concealed, melds = after_kong(own.concealed, own.melds, action)
        then = await self.analyst(_hand(concealed, melds))
        if action.meld == "whirlwind":
            # Nothing is drawn for it: fourteen tiles are left, and one of them is discarded.
            outlook = best_discard(then, view.seen())
            return otherwise is None or (outlook is not None and outlook >= otherwise)
        outlook = standing_outlook(then, view.seen())
        if locked or action.declare:
            return outlook.ready and not _rules(view).calls.spoils(_waits(then))
        return otherwise is None or outlook.nearness >= otherwise.nearness


def _rules(view: TableView) -> RuleSet:
    return rule_set(view.rules.id, view.rules.revision)


def _waits(analysis: evaluation_pb2.Analysis) -> tuple[Wait, ...]:
    return tuple(
        Wait(from_code(wait.tile), wait.least_fan, wait.least_units) for wait in analysis.waits
    )


def _worth_opening(stay: Outlook, claimed: Outlook, best: Outlook) -> bool:
    """A claim must bring the hand nearer; one that only adds tiles to wait on is not worth it."""
    return claimed.nearness > stay.nearness and claimed > best


def discard_outlook(choice: evaluation_pb2.DiscardChoice, seen: Counter[int]) -> Outlook:
    """The outlook of a hand of 14 after one of its discards."""
    return _outlook(choice.waits, choice.shanten, choice.useful_tiles, seen)


def standing_outlook(analysis: evaluation_pb2.Analysis, seen: Counter[int]) -> Outlook:
    """The outlook of a hand of 13."""
    return _outlook(analysis.waits, analysis.shanten, analysis.useful_tiles, seen)


def best_discard(analysis: evaluation_pb2.Analysis, seen: Counter[int]) -> Outlook | None:
    """The outlook of a hand of 14 after the best of its discards."""
    return max((discard_outlook(choice, seen) for choice in analysis.discards), default=None)


def _outlook(
    waits: Sequence[evaluation_pb2.Wait], shanten: int, useful: Sequence[int], seen: Counter[int]
) -> Outlook:
    live = _live(seen)
    winning = sum(live(wait.tile) for wait in waits)
    if winning:
        return Outlook(0, winning, len(waits))
    # Ready on tiles that are all gone is little better than to be one away.
    return Outlook(-max(shanten, 0.5), sum(live(tile) for tile in useful))


def after_claim(
    concealed: Sequence[int], melds: Sequence[rules_pb2.Meld], action: state_pb2.Action
) -> tuple[list[int], list[rules_pb2.Meld]]:
    """The hand of 14 after a chi or pong."""
    rest = list(concealed)
    from_hand = list(action.tiles) if action.kind == "chi" else [action.tile, action.tile]
    for tile in from_hand:
        rest.remove(tile)
    tiles = sorted([*from_hand, action.tile])
    return rest, [*melds, rules_pb2.Meld(kind=action.kind, tiles=tiles, claimed_tile=action.tile)]


def after_kong(
    concealed: Sequence[int], melds: Sequence[rules_pb2.Meld], action: state_pb2.Action
) -> tuple[list[int], list[rules_pb2.Meld]]:
    """The hand after a kong, before its replacement is drawn if there is one."""
    rest = list(concealed)
    if action.meld == "whirlwind":
        for dragon in DRAGONS:
            rest.remove(dragon)
        return rest, [*melds, rules_pb2.Meld(kind=action.meld, tiles=DRAGONS)]
    if action.meld == "added_kong":
        rest.remove(action.tile)
        return rest, [_plus(meld, action.tile) for meld in melds]
    rest = [tile for tile in rest if tile != action.tile]
    return rest, [*melds, rules_pb2.Meld(kind=action.meld, tiles=[action.tile] * COPIES)]


def _plus(meld: rules_pb2.Meld, tile: int) -> rules_pb2.Meld:
    """The meld with a tile added, if it is the one that takes it."""
    if meld.kind not in ("pong", "whirlwind") or tile not in meld.tiles:
        return meld
    kind = "added_kong" if meld.kind == "pong" else meld.kind
    return rules_pb2.Meld(kind=kind, tiles=sorted([*meld.tiles, tile]))


def _hand(concealed: Sequence[int], melds: Sequence[rules_pb2.Meld]) -> evaluation_pb2.Hand:
    return evaluation_pb2.Hand(concealed=concealed, melds=melds)


def _live(seen: Counter[int]) -> Callable[[int], int]:
    return lambda tile: max(COPIES - seen[tile], 0)


def _safety(tile: int, seen: Counter[int]) -> int:
    """Between discards that are otherwise alike, the one that others can use least."""
    return 2 * seen[tile] + _is_terminal(tile)


def _is_terminal(tile: int) -> bool:
    """A terminal, or an honour, which serves as one."""
    return tile >= 41 or tile % 10 in (1, 9)
