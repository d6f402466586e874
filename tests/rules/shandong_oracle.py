"""A second, slow scorer of `shandong`, written from the rule page on its own.

It shares nothing with the package but the shapes of the values: tiles are names such as '5m', a
hand is split by taking sets away one at a time, and what is counted is a list of words. Where it
and the package differ, one of them has misread the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

PLAYED = [f"{rank}{suit}" for suit in "mps" for rank in range(1, 10)]
PLAYED += [f"{rank}z" for rank in range(1, 8)]


@dataclass
class Laid:
    how: str
    """chi, pong, exposed_kong, added_kong or concealed_kong"""
    tiles: list[str]
    fed_by: int | None = None


@dataclass
class Player:
    concealed: list[str]
    melds: list[Laid] = field(default_factory=list)
    flowers: int = 0
    lou: str = ""
    """'', open or hidden"""
    has_discarded: bool = False


@dataclass
class Ending:
    winners: list[int]
    tile: str
    how: str
    """self_draw, discard or rob_kong"""
    source: int | None = None
    kong: str = ""
    """'', exposed, added or concealed: the tile came from that kong's replacement"""
    kong_from: int | None = None
    flower: bool = False
    dealt: bool = False
    first_round: bool = False


def parts(tiles: list[str]) -> Iterator[list[list[str]]]:
    """Every way to part tiles into triplets and sequences."""
    if not tiles:
        yield []
        return
    tile = tiles[0]
    candidates = [[tile] * 3]
    if tile[1] != "z":
        candidates.append([f"{int(tile[0]) + step}{tile[1]}" for step in range(3)])
    for candidate in candidates:
        rest = list(tiles)
        try:
            for one in candidate:
                rest.remove(one)
        except ValueError:
            continue
        for more in parts(rest):
            yield [candidate, *more]


def ways(player: Player, tile: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Every way in which the hand wins: 'pairs', or 'sets' with the sets in hand."""
    tiles = sorted([*player.concealed, tile], key=PLAYED.index)
    if len(tiles) + 3 * len(player.melds) != 14:
        return
    counts = Counter(tiles)
    if not player.melds and not any(n % 2 for n in counts.values()):
        yield "pairs", []
    for pair, copies in counts.items():
        if copies >= 2 and pair[0] in "258" and pair[1] in "mps":
            rest = list(tiles)
            rest.remove(pair)
            rest.remove(pair)
            for sets in parts(rest):
                yield "sets", sets


def wins(player: Player, tile: str) -> bool:
    return next(ways(player, tile), None) is not None


def waits(player: Player) -> list[str]:
    held = Counter(player.concealed)
    for meld in player.melds:
        held.update(meld.tiles)
    return [tile for tile in PLAYED if held[tile] < 4 and wins(player, tile)]


def flowers_of(player: Player) -> int:
    """Flower points: the flowers, pongs of honours, kongs."""
    points = player.flowers
    for meld in player.melds:
        honour = meld.tiles[0][1] == "z"
        if meld.how == "pong" and honour:
            points += 1
        if meld.how in ("exposed_kong", "added_kong"):
            points += 2 if honour else 1
        if meld.how == "concealed_kong":
            points += 3 if honour else 2
    return points


def spoken(
    player: Player, is_dealer: bool, end: Ending, way: str, sets: list[list[str]]
) -> dict[str, int]:
    """What the winner counts, read in one way."""
    said: dict[str, int] = {}
    everything = [*player.concealed, end.tile, *(t for meld in player.melds for t in meld.tiles)]
    all_sets = sets + [meld.tiles for meld in player.melds]
    suits = {tile[1] for tile in everything}
    if len(suits - {"z"}) == 1 and "z" not in suits:
        said["full_flush"] = 5
    if "z" in suits and len(suits) <= 2:
        said["half_flush"] = 2
    for suit in "mps":
        runs = [[f"{low + step}{suit}" for step in range(3)] for low in (1, 4, 7)]
        if way == "sets" and all(run in all_sets for run in runs):
            said["straight"] = 2
    if way == "sets" and all(len(set(tiles)) == 1 for tiles in all_sets):
        said["all_triplets"] = 2
    if way == "pairs":
        said["seven_pairs"] = 2
    if all(tile[0] in "258" and tile[1] != "z" for tile in everything):
        said["all_258"] = 5
    if end.dealt:
        said["heavenly"] = 6
    elif end.kong or end.flower:
        said["kong_win"] = 2
    if end.first_round and not is_dealer and not player.has_discarded:
        said["earthly"] = 5
    return said or {"basic": 1}


def counted(
    players: list[Player], dealer: int, end: Ending, winner: int, concealed_honours: bool
) -> tuple[int, dict[str, int], int]:
    """Units of the plain amount (no doubling yet), the items, the flower points."""
    player = players[winner]
    best: tuple[int, dict[str, int], int] = (0, {}, 0)
    for way, sets in ways(player, end.tile):
        said = spoken(player, winner == dealer, end, way, sets)
        points = flowers_of(player)
        if concealed_honours:
            for tiles in sets:
                whole_before = player.concealed.count(tiles[0]) >= 3
                if tiles[0][1] == "z" and whole_before:
                    points += 1
        units = (5 + points) * sum(said.values())
        if units > best[0]:
            best = (units, said, points)
    return best


def paid(
    players: list[Player], dealer: int, end: Ending, winner: int, units: int, drawn_before: int
) -> dict[int, int]:
    """Who pays what to one winner."""
    for _ in range(min(drawn_before, 5)):
        units *= 2
    if players[winner].lou == "open":
        units *= 2
    others = [seat for seat in range(4) if seat != winner]
    # As if nobody stood in for anyone:
    if end.how == "discard":
        due = {end.source: units * (2 if players[end.source or 0].lou == "open" else 1)}
    elif end.how == "rob_kong":
        due = {end.source: 3 * units}
    elif end.kong == "exposed" and not end.flower:
        due = {end.kong_from: 3 * units}
    else:
        due = dict.fromkeys(others, units)
    fed = Counter(
        meld.fed_by
        for meld in players[winner].melds
        if meld.how in ("chi", "pong", "exposed_kong", "added_kong")
    )
    for seat in others:
        if fed[seat] >= 3 and due.keys() != {seat}:
            if end.how == "discard":
                due = {seat: units}
            else:
                due = {seat: sum(due.values())}
    return {seat: amount for seat, amount in due.items() if seat is not None}


def net(
    players: list[Player],
    dealer: int,
    end: Ending,
    drawn_before: int = 0,
    concealed_honours: bool = False,
) -> list[int]:
    total = [0, 0, 0, 0]
    for winner in end.winners:
        units, _, _ = counted(players, dealer, end, winner, concealed_honours)
        for seat, amount in paid(players, dealer, end, winner, units, drawn_before).items():
            total[seat] -= amount
            total[winner] += amount
    return total
