"""What a seat may do now: every action, spelled out.

Each function goes through the permitted calls in the order of rules/README ("A turn",
"Claims"); what is a rule set's own is asked of its `Calls`.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from .actions import PASS, Action
from .analysis import Analysis
from .melds import MeldKind
from .ruleset import Options, RuleSet, SeatInPlay, WallCount
from .tiles import is_suited, rank


class SeatInTurn(SeatInPlay, Protocol):
    """A seat about whose hand the evaluator has answered."""

    @property
    def analysis(self) -> Analysis | None:
        """The evaluator's answer for this turn."""


@cache
def discard(tile: int, declare: str = "") -> Action:
    """The action of discarding a tile; made once, since each turn offers a dozen of them."""
    return Action("discard", tile, declare=declare)


def turn_actions(
    rules: RuleSet, options: Options, seat: SeatInTurn, wall: WallCount
) -> tuple[Action, ...]:
    """What a seat may do in its own turn: after a draw win, kong or discard.

    After its own chi or pong it discards and never wins. A seat that has declared is locked: it
    is offered its wins and kongs, and to pass them (the table then discards the drawn tile);
    empty when there are none.
    """
    analysis = seat.analysis
    if analysis is None:
        raise ValueError("nothing is known of the hand yet")
    calls = rules.calls
    after_draw = seat.drawn is not None
    actions: list[Action] = []
    if may_win_by_draw(rules, options, seat):
        actions.append(Action("win", seat.drawn))
    if (after_draw or calls.kongs_after_claim) and analysis.kongs and rules.wall.may_kong(wall):
        for kong in analysis.kongs:
            if calls.may_kong(options, seat, kong.kind, kong.tile, kong.waits):
                declares = calls.declarations(options, seat, kong.waits, kong.kind)
                actions += [
                    Action("kong", kong.tile, declare=declare, meld=kong.kind)
                    for declare in ("", *declares)
                ]
    if seat.declared:
        return (*actions, PASS) if actions else ()
    for choice in analysis.discards:
        if calls.may_discard(options, seat, choice.tile):
            actions.append(discard(choice.tile))
            if choice.waits:  # nothing is declared that does not wait
                declares = calls.declarations(options, seat, choice.waits, None)
                actions += [discard(choice.tile, declare) for declare in declares]
    return tuple(actions)


def claim_actions(
    rules: RuleSet,
    options: Options,
    seat: SeatInPlay,
    tile: int,
    is_next: bool,
    wall: WallCount,
) -> tuple[Action, ...]:
    """What a seat may do with another's discard; `is_next`: its turn would be next (下家).

    Empty when it can only pass. The strongest claim stands first.
    """
    calls = rules.calls
    actions: list[Action] = []
    if _waits_on(seat, tile) and calls.may_win(options, seat, tile, "discard"):
        actions.append(Action("win", tile))
    alike = seat.concealed.count(tile)
    if (
        alike == 3
        and calls.may_claim(options, seat, MeldKind.EXPOSED_KONG)
        and rules.wall.may_kong(wall)
    ):
        actions.append(Action("kong", tile, meld=MeldKind.EXPOSED_KONG))
    if alike >= 2 and calls.may_claim(options, seat, MeldKind.PONG):
        actions.append(Action("pong", tile))
    if is_next and is_suited(tile) and calls.may_claim(options, seat, MeldKind.CHI):
        actions += [Action("chi", tile, pair) for pair in _chi_pairs(seat, tile)]
    return (*actions, PASS) if actions else ()


def rob_actions(
    rules: RuleSet, options: Options, seat: SeatInPlay, tile: int
) -> tuple[Action, ...]:
    """What a seat may do with the tile of another's added kong (抢杠); empty: nothing."""
    if _waits_on(seat, tile) and rules.calls.may_win(options, seat, tile, "rob_kong"):
        return (Action("win", tile), PASS)
    return ()


def may_win_by_draw(rules: RuleSet, options: Options, seat: SeatInTurn) -> bool:
    """Whether a seat may win on the tile that it has just drawn."""
    if seat.drawn is None or seat.analysis is None or not seat.analysis.wins:
        return False
    return rules.calls.may_win(options, seat, seat.drawn, "self_draw")


def _waits_on(seat: SeatInPlay, tile: int) -> bool:
    return any(wait.tile == tile for wait in seat.waits)


def _chi_pairs(seat: SeatInPlay, tile: int) -> list[tuple[int, int]]:
    place = rank(tile)
    pairs = []
    for low, high in ((-2, -1), (-1, 1), (1, 2)):
        fits = place + low >= 1 and place + high <= 9
        if fits and tile + low in seat.concealed and tile + high in seat.concealed:
            pairs.append((tile + low, tile + high))
    return pairs
