"""Hints: what the evaluator says of the own hand, in words. `Analyze` is all that is asked."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from rich.text import Text

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import TableView
from fangcheng_rules.players import PLAYERS, STRENGTH
from fangcheng_rules.tiles import COPIES
from fangcheng_suite.bots.brain import Analyst, Brain

from .choices import told
from .tiles import FAINT, GOLD, GOOD
from .tongue import Tongue

SHOWN = 3
"""Discards that a hint compares."""
HOPELESS = 14
"""The shanten of a hand that can win no more."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What to show."""

    lines: list[Text]
    starred: frozenset[int] = frozenset()
    """Tiles that it would discard."""


async def hint(
    view: TableView, prompt: events_pb2.Prompt | None, analyst: Analyst, say: Tongue
) -> Hint:
    """What the efficient bot would do here, and why. Raises what the analyst raises."""
    asked: dict[bytes, evaluation_pb2.Analysis] = {}

    async def once(hand: evaluation_pb2.Hand) -> evaluation_pb2.Analysis:
        key = hand.SerializeToString(deterministic=True)
        if key not in asked:
            asked[key] = await analyst(hand)
        return asked[key]

    own = view.own
    now = await once(evaluation_pb2.Hand(concealed=own.concealed, melds=own.melds))
    seen = view.seen()
    lines: list[Text] = []
    starred: frozenset[int] = frozenset()
    if prompt is not None and prompt.kind != "before_deal":
        chance = random.Random(0)  # noqa: S311 # nosec B311 # it has no part in these decisions
        action = await Brain(once, PLAYERS[STRENGTH](chance)).choose(view, prompt)
        if action.kind == "discard":
            starred = frozenset({action.tile})
        lines.append(Text(_advice(action, view, say), f"bold {GOLD}"))
    if now.discards:
        lines += _discards(now, seen, say)
    else:
        lines.append(_standing(now, seen, say))
    return Hint(lines, starred)


def _advice(action: state_pb2.Action, view: TableView, say: Tongue) -> str:
    return say("建议：", "Try: ") + told(action, say, view.rules.id)


def _discards(now: evaluation_pb2.Analysis, seen: Counter[int], say: Tongue) -> list[Text]:
    """The best discards and what each leaves."""

    def rank(choice: evaluation_pb2.DiscardChoice) -> tuple[float, int]:
        winning = sum(_left(wait.tile, seen) for wait in choice.waits)
        if winning:
            return 0.0, -winning
        return max(choice.shanten, 0.5), -sum(_left(tile, seen) for tile in choice.useful_tiles)

    best = sorted(now.discards, key=rank)[:SHOWN]
    lines = []
    for choice in best:
        line = Text(say.mark(choice.tile), "bold").append(" → ", FAINT)
        lines.append(line.append_text(_left_with(choice, seen, say)))
    return lines


def _left_with(
    choice: evaluation_pb2.DiscardChoice | evaluation_pb2.Analysis, seen: Counter[int], say: Tongue
) -> Text:
    if choice.waits:
        left = sum(_left(wait.tile, seen) for wait in choice.waits)
        waits = say.list([wait.tile for wait in choice.waits])
        return Text(say(f"听 {waits}，剩 {left} 张", f"ready: {waits}, {left} left"), GOOD)
    if choice.shanten >= HOPELESS:
        return Text(say("胡不了了", "cannot win any more"), FAINT)
    left = sum(_left(tile, seen) for tile in choice.useful_tiles)
    away = max(choice.shanten, 0)
    if not away:
        return Text(say("没有能胡的牌了", "no winning tile is left"), FAINT)
    return Text(say(f"差 {away} 张听，进张 {left}", f"{away} from ready, {left} help"))


def _standing(now: evaluation_pb2.Analysis, seen: Counter[int], say: Tongue) -> Text:
    return Text(say("手牌：", "Now: "), FAINT).append_text(_left_with(now, seen, say))


def _left(tile: int, seen: Counter[int]) -> int:
    return max(COPIES - seen[tile], 0)
