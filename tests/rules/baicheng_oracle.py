"""A second, slow scorer of `baicheng`, written from the rule page on its own.

It shares nothing with the package: tiles are names such as '5m', hands are lists of them, and every
way to part a hand is tried by taking one set away at a time. Where it and the package differ, one
of them has misread the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

DRAGONS = ["5z", "6z", "7z"]
ALL = [f"{rank}{suit}" for suit in "mps" for rank in range(1, 10)] + DRAGONS


@dataclass
class Laid:
    how: str
    """chi, pong, treasure pong, exposed_kong, added_kong, concealed_kong or whirlwind"""
    tiles: list[str]


@dataclass
class Player:
    concealed: list[str] | None
    melds: list[Laid] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        return all(meld.how == "concealed_kong" for meld in self.melds)

    @property
    def laid(self) -> list[str]:
        return [tile for meld in self.melds for tile in meld.tiles]


@dataclass
class Ending:
    winner: int
    tile: str
    how: str
    """self_draw, discard or rob_kong"""
    source: int | None = None
    after_kong: bool = False
    on_deal: bool = False


@dataclass
class Reading:
    pair: str
    own: list[list[str]]
    """The concealed sets."""
    laid: list[list[str]]

    @property
    def sets(self) -> list[list[str]]:
        return self.own + self.laid


def is_run(tiles: list[str]) -> bool:
    """One in three suits: a sequence, not a triplet and not the three dragons."""
    return len(set(tiles)) == 3 and tiles[0] not in DRAGONS


def without(tiles: list[str], taken: list[str]) -> list[str]:
    rest = list(tiles)
    for tile in taken:
        rest.remove(tile)
    return rest


def neighbour(tile: str, by: int) -> str:
    """The tile so many ranks further in its suit; '' where there is none."""
    rank = int(tile[0]) + by
    return f"{rank}{tile[1]}" if tile[1] != "z" and 1 <= rank <= 9 else ""


def partings(tiles: list[str]) -> Iterator[list[list[str]]]:
    """Every way to part the tiles into triplets, sequences and dragon runs."""
    if not tiles:
        yield []
        return
    first = min(tiles, key=ALL.index)
    candidates = [[first] * 3]
    if first[1] == "z":
        candidates.append(list(DRAGONS))
    else:
        candidates.append([first, neighbour(first, 1), neighbour(first, 2)])
    for candidate in candidates:
        if all(tile and tiles.count(tile) >= candidate.count(tile) for tile in candidate):
            for more in partings(without(tiles, candidate)):
                yield [candidate, *more]


def readings(concealed: list[str], melds: list[Laid]) -> list[Reading]:
    """Every legal reading of a whole hand."""
    everything = concealed + [tile for meld in melds for tile in meld.tiles]
    if {tile[1] for tile in everything} - {"z"} != {"m", "p", "s"}:
        return []
    if not any(tile[0] in "19" or tile in DRAGONS for tile in everything):
        return []
    found: list[Reading] = []
    for pair in sorted({*concealed}):
        if concealed.count(pair) >= 2:
            for own in partings(without(concealed, [pair, pair])):
                # The same sets may have been taken away in another order.
                reading = Reading(pair, sorted(own), [meld.tiles for meld in melds])
                if reading in found:
                    continue
                if pair in DRAGONS or not all(is_run(tiles) for tiles in reading.sets):
                    found.append(reading)
    return found


def waits(concealed: list[str], melds: list[Laid]) -> list[str]:
    held = concealed + [tile for meld in melds for tile in meld.tiles]
    return [tile for tile in ALL if held.count(tile) < 4 and readings([*concealed, tile], melds)]


def narrow(reading: Reading, won: str) -> bool:
    """夹胡 by the place of the winning tile in this reading."""
    for tiles in reading.own:
        if won in DRAGONS and sorted(tiles) == DRAGONS:
            return True
        if is_run(tiles) and (
            tiles[1] == won
            or (tiles[0][0] == "1" and tiles[2] == won)
            or (tiles[2][0] == "9" and tiles[0] == won)
        ):
            return True
    if reading.pair != won:
        return False
    ends = [tiles for tiles in reading.own if is_run(tiles)]
    return not any(
        tiles[0] == neighbour(won, 1) or tiles[2] == neighbour(won, -1) for tiles in ends
    )


def words(
    players: list[Player], dealer: int, end: Ending, won: str, treasure: str, reading: Reading
) -> Counter[str]:
    """What counts against every loser; `won` is what a drawn treasure stands for."""
    winner = players[end.winner]
    concealed = winner.concealed or []
    whole = [*concealed, won]
    mapped = end.how == "self_draw" and end.tile == treasure and not end.on_deal
    only = len(waits(concealed, winner.melds)) == 1
    jia = only or any(narrow(other, won) for other in readings(whole, winner.melds))
    said: Counter[str] = Counter()
    if "1s" in whole + winner.laid:
        said["yaoji"] = 1
    if winner.closed:
        said["closed"] = 1
    piao = not any(is_run(tiles) for tiles in reading.sets)
    if piao and reading.pair == won:
        said["single_piao"] = 3
        narrow_wait = True
    elif piao:
        said["double_piao"] = 2
        narrow_wait = won in DRAGONS and DRAGONS in [sorted(tiles) for tiles in reading.own]
    else:
        narrow_wait = jia
        if jia:
            said["jia"] = 1
    if mapped and won == treasure and narrow_wait:
        said["double_treasure"] = 3
    elif mapped:
        said["treasure_draw"] = 2
    elif end.how == "self_draw":
        said["self_draw"] = 1
    if end.after_kong:
        said["kong_win"] = 1
    if dealer == end.winner:
        said["dealer"] = 1
    return said


def more_from(players: list[Player], dealer: int, end: Ending, loser: int) -> int:
    """Fan that one loser pays more."""
    return sum((players[loser].closed, dealer == loser, end.source == loser))


def best(
    players: list[Player], dealer: int, end: Ending, treasure: str, cap: int
) -> tuple[dict[int, int], list[Counter[str]], set[str]]:
    """What each loser pays, the items of every way to count that pays so, and as which tile."""
    winner = players[end.winner]
    concealed = winner.concealed or []
    tiles = [end.tile]
    if end.how == "self_draw" and end.tile == treasure and not end.on_deal:
        tiles = waits(concealed, winner.melds)
    ways = []
    for won in tiles:
        for reading in readings([*concealed, won], winner.melds):
            said = words(players, dealer, end, won, treasure, reading)
            paid = {}
            for loser in range(4):
                if loser != end.winner:
                    units = 2 ** (said.total() + more_from(players, dealer, end, loser))
                    paid[loser] = min(units, cap) if cap else units
            triplets = sum(len(set(tiles)) == 1 for tiles in reading.sets)
            ways.append((sum(paid.values()), said.total(), triplets, paid, said, won))
    most = max(way[:3] for way in ways)
    top = [way for way in ways if way[:3] == most]
    return top[0][3], [way[4] for way in top], {way[5] for way in top}


def kong_units(player: Player, treasure: str, more: list[str], *, finished: bool) -> int:
    """What each other seat pays a seat for its kongs, in units of an exposed one."""
    units = 0
    for meld in player.melds:
        if meld.how == "whirlwind":
            units += 1 + len(meld.tiles) - 3
        elif meld.how == "concealed_kong":
            units += 2
        elif meld.how != "chi" and meld.how != "pong":
            units += 1
    if finished and player.concealed is not None:
        held = player.concealed + more
        if treasure and held.count(treasure) >= 3:
            units += 2
        if all(dragon in held for dragon in DRAGONS) and not any(
            meld.how == "whirlwind" for meld in player.melds
        ):
            units += 1
    return units
