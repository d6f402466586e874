"""How a bot chooses among the actions it is offered.

It takes every win. Otherwise it wants to be *near* a hand that it may win with: fewest tiles away
first, then most tiles still to be found that help. The evaluator tells shanten and useful tiles by
shape alone; what the rules ask beyond the shape (a triplet, a terminal or honour) is weighed here,
so that a bot does not end up ready on a hand that may not win.

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
from fangcheng.table.v1 import table_pb2
from fangcheng_suite.view import TableView

COPIES = 4
KONG_KINDS = frozenset({"exposed_kong", "added_kong", "concealed_kong"})

PASS = table_pb2.Action(kind="pass")


class Analyst(Protocol):
    """Answers what a hand of 13 or 14 tiles is worth, with its progress."""

    async def __call__(self, hand: evaluation_pb2.Hand) -> evaluation_pb2.Analysis:
        """The analysis, with shanten and useful tiles."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a win asks of a hand beyond its shape."""

    triplet: bool = False
    terminal: bool = False


NEEDS = {"baishan_kele": Needs(triplet=True, terminal=True)}
"""By rule set; one that is not listed asks for nothing that a bot minds."""


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


@dataclass(slots=True)
class Brain:
    """One bot's way to play."""

    analyst: Analyst
    chance: random.Random = field(default_factory=random.Random)
    piao_share: float = 0.25
    """How often 5 units of piao are staked."""

    async def choose(self, view: TableView, prompt: table_pb2.Prompt) -> table_pb2.Action:
        """The answer to a prompt: always one of its actions."""
        actions = list(prompt.actions)
        if wins := [action for action in actions if action.kind == "win"]:
            return wins[0]
        if len(actions) == 1:
            return actions[0]
        if piao := [action for action in actions if action.kind == "piao"]:
            return self._piao(piao)
        if prompt.kind == "claim":
            return await self._claim(view, actions)
        return await self._turn(view, actions)

    def _piao(self, actions: Sequence[table_pb2.Action]) -> table_pb2.Action:
        wanted = 5 if self.chance.random() < self.piao_share else 0
        return next((action for action in actions if action.amount == wanted), actions[0])

    async def _turn(self, view: TableView, actions: Sequence[table_pb2.Action]) -> table_pb2.Action:
        own = view.own
        needs = NEEDS.get(view.rules.id, Needs())
        analysis = await self.analyst(_hand(own.concealed, own.melds))
        seen = view.seen()
        locked = own.declared != ""

        choices = {choice.tile: choice for choice in analysis.discards}
        best: tuple[Outlook, bool, int, table_pb2.Action] | None = None
        for action in actions:
            choice = choices.get(action.tile)
            if action.kind != "discard" or choice is None:
                continue
            outlook = discard_outlook(own.concealed, own.melds, choice, seen, needs)
            if action.declare and not outlook.ready:
                continue
            ranked = (outlook, action.declare != "", _safety(action.tile, seen), action)
            if best is None or ranked[:3] > best[:3]:
                best = ranked

        for action in actions:
            if action.kind == "kong" and await self._kong_pays(
                view, action, None if best is None else best[0], needs, locked
            ):
                return action
        if best is not None:
            return best[3]
        passes = [action for action in actions if action.kind == "pass"]
        return passes[0] if passes else actions[-1]

    async def _claim(
        self, view: TableView, actions: Sequence[table_pb2.Action]
    ) -> table_pb2.Action:
        passes = next((action for action in actions if action.kind == "pass"), actions[0])
        claims = [action for action in actions if action.kind in ("kong", "pong", "chi")]
        if not claims:
            return passes
        own = view.own
        needs = NEEDS.get(view.rules.id, Needs())
        locked = own.declared != ""
        now = await self.analyst(_hand(own.concealed, own.melds))
        seen = view.seen()
        stay = standing_outlook(own.concealed, own.melds, now, seen, needs)
        best_outlook, best_action = stay, passes
        for action in claims:
            if action.kind == "kong":
                if await self._kong_pays(view, action, stay, needs, locked):
                    return action
                continue
            concealed, melds = after_claim(own.concealed, own.melds, action)
            then = await self.analyst(_hand(concealed, melds))
            outlook = max(
                (
                    discard_outlook(concealed, melds, choice, seen, needs)
                    for choice in then.discards
                ),
                default=None,
            )
            if outlook is not None and _worth_opening(stay, outlook, best_outlook):
                best_outlook, best_action = outlook, action
        return best_action

    async def _kong_pays(
        self,
        view: TableView,
        action: table_pb2.Action,
        otherwise: Outlook | None,
        needs: Needs,
        locked: bool,
    ) -> bool:
        """A kong is paid by all three, so it is made wherever the hand gets no worse by it."""
        own = view.own
        if action.declare and otherwise is not None and not otherwise.ready:
            return False
        concealed, melds = after_kong(own.concealed, own.melds, action)
        then = await self.analyst(_hand(concealed, melds))
        outlook = standing_outlook(concealed, melds, then, view.seen(), needs)
        if locked or action.declare:
            # With any other number of waits the declared wait would be dead (听).
            return outlook.ready and len(then.waits) == 1
        return otherwise is None or outlook.nearness >= otherwise.nearness


def _worth_opening(stay: Outlook, claimed: Outlook, best: Outlook) -> bool:
    """A claim must bring the hand nearer; one that only adds tiles to wait on is not worth it."""
    return claimed.nearness > stay.nearness and claimed > best


def discard_outlook(
    concealed: Sequence[int],
    melds: Sequence[rules_pb2.Meld],
    choice: evaluation_pb2.DiscardChoice,
    seen: Counter[int],
    needs: Needs,
) -> Outlook:
    """The outlook of a hand of 14 after one of its discards."""
    rest = list(concealed)
    rest.remove(choice.tile)
    return _outlook(rest, melds, choice.waits, choice.shanten, choice.useful_tiles, seen, needs)


def standing_outlook(
    concealed: Sequence[int],
    melds: Sequence[rules_pb2.Meld],
    analysis: evaluation_pb2.Analysis,
    seen: Counter[int],
    needs: Needs,
) -> Outlook:
    """The outlook of a hand of 13."""
    return _outlook(
        concealed, melds, analysis.waits, analysis.shanten, analysis.useful_tiles, seen, needs
    )


def _outlook(
    concealed: Sequence[int],
    melds: Sequence[rules_pb2.Meld],
    waits: Sequence[evaluation_pb2.Wait],
    shanten: int,
    useful: Sequence[int],
    seen: Counter[int],
    needs: Needs,
) -> Outlook:
    live = _live(seen)
    winning = sum(live(wait.tile) for wait in waits)
    if winning:
        return Outlook(0, winning, len(waits))

    counts = Counter(concealed)
    pairs = sum(1 for count in counts.values() if count >= 2)
    seven_pairs = not melds and pairs >= 5
    missing = 0.0
    weights: Counter[int] = Counter()
    if needs.triplet and not seven_pairs and not _has_triplet(counts, melds):
        # Two pairs hold a triplet in reach at no cost in tiles; one pair is needed as it is.
        missing += 0.3 if pairs >= 2 else 0.8
        weights.update(tile for tile, count in counts.items() if count == 2)
    if needs.terminal and not _has_terminal(concealed, melds):
        missing += 0.8
        weights.update(tile for tile in useful if _is_terminal(tile))
    distance = max(shanten, 0) + missing if shanten > 0 else max(missing, 0.5)
    helping = sum(live(tile) for tile in useful)
    helping += sum(live(tile) for tile in weights)
    return Outlook(-distance, helping)


def after_claim(
    concealed: Sequence[int], melds: Sequence[rules_pb2.Meld], action: table_pb2.Action
) -> tuple[list[int], list[rules_pb2.Meld]]:
    """The hand of 14 after a chi or pong."""
    rest = list(concealed)
    from_hand = list(action.tiles) if action.kind == "chi" else [action.tile, action.tile]
    for tile in from_hand:
        rest.remove(tile)
    tiles = sorted([*from_hand, action.tile])
    return rest, [*melds, rules_pb2.Meld(kind=action.kind, tiles=tiles, claimed_tile=action.tile)]


def after_kong(
    concealed: Sequence[int], melds: Sequence[rules_pb2.Meld], action: table_pb2.Action
) -> tuple[list[int], list[rules_pb2.Meld]]:
    """The hand of 13 after a kong, before its replacement is drawn."""
    rest = [tile for tile in concealed if tile != action.tile]
    kong = rules_pb2.Meld(kind=action.meld, tiles=[action.tile] * COPIES)
    if action.meld == "added_kong":
        others = [
            kong if meld.kind == "pong" and meld.tiles[0] == action.tile else meld for meld in melds
        ]
        return rest, others
    return rest, [*melds, kong]


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


def _has_triplet(counts: Counter[int], melds: Sequence[rules_pb2.Meld]) -> bool:
    return any(count >= 3 for count in counts.values()) or any(
        meld.kind == "pong" or meld.kind in KONG_KINDS for meld in melds
    )


def _has_terminal(concealed: Sequence[int], melds: Sequence[rules_pb2.Meld]) -> bool:
    return any(_is_terminal(tile) for tile in concealed) or any(
        _is_terminal(tile) for meld in melds for tile in meld.tiles
    )
