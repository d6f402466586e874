"""What a seat may do now: every action, spelled out.

Each function goes through the permitted calls in the order of rules/README ("A turn",
"Claims"); what is a rule set's own is asked of its `Calls`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Protocol

from .actions import FALSE_WIN, PASS, Action, ActionKind
from .analysis import Analysis, KongChoice, Wait
from .melds import Meld, MeldKind
from .ruleset import RuleSet, SeatInPlay, TableInPlay, may_always
from .tiles import PLAY_KINDS, is_suited, rank


class TableInTurn(TableInPlay, Protocol):
    """The table as it stands in a turn."""

    @property
    def rule_set(self) -> RuleSet:
        """The rule set that is played."""

    @property
    def origin(self) -> str:
        """Where the drawn tile of this turn came from, or 'deal'; '' after a claim."""


class SeatInTurn(SeatInPlay, Protocol):
    """A seat about whose hand the evaluator has answered."""

    @property
    def analysis(self) -> Analysis | None:
        """The evaluator's answer for this turn."""

    @property
    def claim_kongs(self) -> tuple[KongChoice, ...]:
        """The exposed kongs that its thirteen tiles could make of a discard, where they wait."""


@cache
def action(
    kind: ActionKind,
    tile: int | None = None,
    tiles: tuple[int, ...] = (),
    declare: str = "",
    meld: MeldKind | None = None,
) -> Action:
    """An action to offer; each is made once, since a turn offers a dozen of them."""
    return Action(kind, tile, tiles, declare, meld=meld)


_DISCARDS = tuple(action("discard", tile) for tile in range(PLAY_KINDS))
"""Of each kind, without a declaration."""


@cache
def claimed_meld(claim: Action, source: int, treasure: bool = False) -> Meld:
    """The meld that a claim of a discard makes; `treasure`: of what is the treasure now."""
    tile = claim.tile if claim.tile is not None else -1
    match claim.kind:
        case "chi":
            return Meld(MeldKind.CHI, (*claim.tiles, tile), source, tile)
        case "pong":
            return Meld(MeldKind.PONG, (tile,) * 3, source, tile, treasure)
        case _:
            return Meld(MeldKind.EXPOSED_KONG, (tile,) * 4, source, tile)


def turn_actions(table: TableInTurn, seat: SeatInTurn) -> tuple[Action, ...]:
    """What a seat may do in its own turn: after a draw win, kong or discard.

    After its own chi or pong it discards and never wins. A seat that has declared is locked: it
    is offered its wins and kongs, and to pass them (the table then discards the drawn tile);
    empty when there are none. A kong that must be made stands in for the discards.
    """
    calls = table.rule_set.calls
    analysis = _analysis(seat)
    actions: list[Action] = []
    if may_win_by_draw(table, seat):
        actions.append(action("win", seat.drawn))
    elif calls.false_wins(table.options):
        actions.append(FALSE_WIN)
    must_kong = False
    if analysis.kongs:
        for kong in permitted_kongs(table, seat):
            declares = calls.declarations(table, seat, kong.waits, kong.kind)
            actions += [
                action("kong", kong.tile, declare=declare, meld=kong.kind)
                for declare in ("", *declares)
            ]
            must_kong = must_kong or calls.must_kong(table, seat, kong)
    if seat.declared:
        return (*actions, PASS) if actions else ()
    if must_kong:
        return tuple(actions)
    permitted = None if calls.may_discard is may_always else permitted_discards(table, seat)
    for choice in analysis.discards:
        tile = choice.tile
        if permitted is None or tile in permitted:
            actions.append(_DISCARDS[tile])
            if choice.waits:  # nothing is declared that does not wait
                declares = calls.declarations(table, seat, choice.waits, None)
                actions += [action("discard", tile, declare=declare) for declare in declares]
    return tuple(actions)


def permitted_kongs(table: TableInTurn, seat: SeatInTurn) -> list[KongChoice]:
    """The kongs that a seat may make now in its own turn."""
    rules = table.rule_set
    kongs = _analysis(seat).kongs
    if not kongs or not (table.origin or rules.calls.kongs_after_claim):
        return []
    is_replaced = rules.wall.may_kong(table.wall_count)
    return [
        kong
        for kong in kongs
        # A whirlwind laid down needs no replacement.
        if (is_replaced or kong.kind is MeldKind.WHIRLWIND)
        and rules.calls.may_kong(table, seat, kong)
    ]


def permitted_discards(table: TableInTurn, seat: SeatInTurn) -> list[int]:
    """The kinds that a seat may discard now; all that it holds where it could discard none."""
    held = list(dict.fromkeys(seat.concealed))
    may_discard = table.rule_set.calls.may_discard
    if may_discard is may_always:
        return held
    return [tile for tile in held if may_discard(table, seat, tile)] or held


def claim_actions(
    table: TableInTurn, seat: SeatInTurn, tile: int, source: int
) -> tuple[Action, ...]:
    """What a seat may do with another's discard; chi is for the seat after it alone (下家).

    Empty when it can only pass. The strongest claim stands first.
    """
    concealed = seat.concealed
    is_held = tile in concealed
    is_next = seat.number == source + 1 or source - seat.number == 3
    if not is_held and not is_next and not seat.waits:
        return ()
    pairs = _chi_pairs(concealed, tile) if is_next else ()
    if not is_held and not pairs and not seat.waits:
        return ()
    rules, calls = table.rule_set, table.rule_set.calls
    actions: list[Action] = []
    claims: list[Action] = []
    if waits_on(seat, tile) and calls.may_win(table, seat, tile, "discard"):
        actions.append(action("win", tile))
    alike = concealed.count(tile) if is_held else 0
    if alike == 3 and rules.wall.may_kong(table.wall_count):
        claims.append(action("kong", tile, meld=MeldKind.EXPOSED_KONG))
    if alike >= 2:
        claims.append(action("pong", tile))
    if pairs:
        claims += [action("chi", tile, pair) for pair in pairs]
    for claim in claims:
        waits: tuple[Wait, ...] = ()
        if claim.kind == "kong":
            waits = next((kong.waits for kong in seat.claim_kongs if kong.tile == tile), ())
        if calls.may_claim(table, seat, claimed_meld(claim, source), waits):
            actions.append(claim)
    return _or_pass(table, actions)


def rob_actions(table: TableInTurn, seat: SeatInTurn, tile: int) -> tuple[Action, ...]:
    """What a seat may do with the tile of another's added kong; empty: nothing.

    It may win (抢杠). Of a dragon added to a whirlwind it may hold two, and pong it (抢碰).
    """
    calls = table.rule_set.calls
    actions: list[Action] = []
    if waits_on(seat, tile) and calls.may_win(table, seat, tile, "rob_kong"):
        actions.append(action("win", tile))
    if seat.concealed.count(tile) >= 2:
        actions.append(action("pong", tile))
    return _or_pass(table, actions)


def _or_pass(table: TableInTurn, actions: list[Action]) -> tuple[Action, ...]:
    if not actions:
        return ()
    if actions[0].kind != "win" and table.rule_set.calls.false_wins(table.options):
        actions.append(FALSE_WIN)
    return (*actions, PASS)


def may_win_by_draw(table: TableInTurn, seat: SeatInTurn) -> bool:
    """Whether a seat may win on the tile that it has just drawn."""
    if seat.drawn is None or seat.analysis is None:
        return False
    if not seat.analysis.wins and not draws_treasure(table, seat):
        return False
    return table.rule_set.calls.may_win(table, seat, seat.drawn, "self_draw")


def draws_treasure(table: TableInTurn, seat: SeatInTurn) -> bool:
    """摸宝: the seat waits, and drew the treasure; the tiles dealt win only as they are."""
    return seat.drawn == table.treasure and table.origin != "deal" and bool(seat.waits)


def waits_on(seat: SeatInPlay, tile: int) -> bool:
    """Whether the tile is a legal wait of the seat's thirteen tiles."""
    return bool(seat.waits) and any(wait.tile == tile for wait in seat.waits)


def _analysis(seat: SeatInTurn) -> Analysis:
    if seat.analysis is None:
        raise ValueError("nothing is known of the hand yet")
    return seat.analysis


def _chi_pairs(concealed: Sequence[int], tile: int) -> Sequence[tuple[int, int]]:
    """The pairs in hand that make a sequence with this tile."""
    pairs = _PAIRS[tile]
    return pairs and [pair for pair in pairs if pair[0] in concealed and pair[1] in concealed]


def _pairs(tile: int) -> Iterator[tuple[int, int]]:
    if is_suited(tile):
        for low, high in ((-2, -1), (-1, 1), (1, 2)):
            if rank(tile) + low >= 1 and rank(tile) + high <= 9:
                yield tile + low, tile + high


_PAIRS = tuple(tuple(_pairs(tile)) for tile in range(PLAY_KINDS))
"""By tile, what makes a sequence with it."""
