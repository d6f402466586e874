"""A second, slow scorer of `jintan`, written from the rule page on its own.

It shares nothing with the package but the shapes of the values: hands are lists of tile names
such as '5m', every way to split a hand is tried by taking tiles away one set at a time, and which
triplet a discard completed is tried for each. Where it and the package differ, one of them has
misread the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.rules.kele_oracle import Laid, splits, without


@dataclass
class Player:
    concealed: list[str]
    melds: list[Laid] = field(default_factory=list)
    flowers: int = 0


@dataclass
class Ending:
    winners: list[int]
    tile: str
    how: str
    """self_draw, discard or rob_kong"""
    source: int | None = None
    after_kong: bool = False
    after_flower: bool = False


@dataclass
class Way:
    """One way to see a winning hand."""

    shape: str
    pair: str
    hidden: list[list[str]]
    """The concealed sets, those that nobody else's tile completed."""
    completed: list[str]
    """The set that another's tile completed, or nothing."""


def ways(player: Player, tile: str, from_another: bool) -> Iterator[Way]:
    """Every way to see the hand, and which set the winning tile went into."""
    tiles = [*player.concealed, tile]
    counts = Counter(tiles)
    if len(tiles) == 14 and all(n in (2, 4) for n in counts.values()):
        yield Way("pairs", "", [], [])
    for pair in [kind for kind, n in counts.items() if n >= 2]:
        for sets in splits(without(tiles, [pair, pair])):
            if pair == tile or not from_another:
                yield Way("standard", pair, sets, [])
            if from_another:
                for place, made in enumerate(sets):
                    if tile in made:
                        yield Way("standard", pair, sets[:place] + sets[place + 1 :], made)


def flower_points(player: Player, way: Way) -> int:
    points = player.flowers
    for meld in player.melds:
        wind_or_dragon = meld.tiles[0].endswith("z")
        if meld.how == "pong":
            points += 1 if wind_or_dragon else 0
        elif meld.how in ("exposed_kong", "added_kong"):
            points += 3 if wind_or_dragon else 1
        elif meld.how == "concealed_kong":
            points += 4 if wind_or_dragon else 2
    points += sum(2 for made in way.hidden if made[0] == made[1] and made[0].endswith("z"))
    if way.completed and way.completed[0] == way.completed[1] and way.completed[0].endswith("z"):
        points += 1
    return points


def fan(player: Player, end: Ending, way: Way, any_pair: bool) -> dict[str, int]:
    everything = [*player.concealed, end.tile]
    for meld in player.melds:
        everything += meld.tiles
    suits = {tile[1] for tile in everything}
    said = {}
    if suits == {"z"} or (len(suits) == 2 and "z" in suits):
        said["half_flush"] = 1
    elif len(suits) == 1:
        said["full_flush"] = 2
    if way.shape == "pairs":
        said["seven_pairs"] = 2
    else:
        sets = [*way.hidden, *([way.completed] if way.completed else [])]
        sets += [meld.tiles for meld in player.melds]
        if all(made[0] == made[1] for made in sets):
            said["all_triplets"] = 1
        if len(player.concealed) == 1 or (any_pair and way.pair == end.tile):
            said["single_tile"] = 1
    if end.after_kong and not end.after_flower:
        said["kong_win"] = 1
    return said


def best(player: Player, end: Ending, any_pair: bool, cap: int) -> tuple[int, int, int] | None:
    """Units of one share, flower points and fan of the way that pays most; None: no win."""
    found = []
    for way in ways(player, end.tile, end.how == "discard"):
        points = flower_points(player, way)
        doubled = sum(fan(player, end, way, any_pair).values())
        if end.how == "discard" and points == 0 and doubled == 0:
            continue
        units = (10 + 5 * points) * 2**doubled
        found.append((min(units, cap) if cap else units, points, doubled))
    return max(found, default=None, key=lambda way: (way[0], way[2]))


def waits(player: Player) -> list[str]:
    """The kinds on which the hand would win, drawn at least."""
    kinds = [f"{rank}{suit}" for suit in "mps" for rank in range(1, 10)]
    kinds += [f"{rank}z" for rank in range(1, 8)]
    held = Counter(player.concealed)
    for meld in player.melds:
        held.update(meld.tiles)
    return [k for k in kinds if held[k] < 4 and any(ways(player, k, from_another=False))]


def net(
    players: list[Player], end: Ending, any_pair: bool, cap: int, false_wins: list[int]
) -> list[int]:
    """What each of the four has won or lost by this win; the house keeps the false wins'."""
    total = [0, 0, 0, 0]
    for winner in end.winners:
        found = best(players[winner], end, any_pair, cap)
        if found is None:
            raise ValueError("no win")
        units = found[0]
        if end.how == "self_draw":
            for other in range(4):
                total[other] += 3 * units if other == winner else -units
        else:
            assert end.source is not None
            units = 3 * units if end.how == "rob_kong" else units
            total[winner] += units
            total[end.source] -= units
    for seat in false_wins:
        total[seat] -= 20
    return total
