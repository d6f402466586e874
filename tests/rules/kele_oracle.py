"""A second, slow scorer of `baishan_kele`, written from the rule page on its own.

It shares nothing with the package but the shapes of the values: hands are lists of tile names
such as '5m', every way to split a hand is tried by taking tiles away one set at a time, and fan
are counted for one loser at a time as a list of words. Where it and the package differ, one of
them has misread the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

ALL = [f"{rank}{suit}" for suit in "mps" for rank in range(1, 10)]
ALL += [f"{rank}z" for rank in range(1, 8)]
GREAT = {"1m", "1p", "1s"}


@dataclass
class Laid:
    how: str
    """chi, pong, exposed_kong, added_kong or concealed_kong"""
    tiles: list[str]


@dataclass
class Player:
    concealed: list[str]
    melds: list[Laid] = field(default_factory=list)
    ting: bool = False
    piao: int = 0
    first_discard: str = ""

    @property
    def closed(self) -> bool:
        return all(meld.how == "concealed_kong" for meld in self.melds)


@dataclass
class Ending:
    winner: int
    tile: str
    how: str
    """self_draw, discard or rob_kong"""
    source: int | None = None
    after_kong: bool = False
    discard_after_kong: bool = False
    on_deal: bool = False


def splits(tiles: list[str]) -> Iterator[list[list[str]]]:
    """Every way to part the tiles into triplets and sequences."""
    if not tiles:
        yield []
        return
    first = min(tiles, key=ALL.index)
    if tiles.count(first) >= 3:
        yield from ([[first] * 3, *more] for more in splits(without(tiles, [first] * 3)))
    rank, suit = int(first[0]), first[1]
    run = [first, f"{rank + 1}{suit}", f"{rank + 2}{suit}"]
    if suit != "z" and rank <= 7 and all(tile in tiles for tile in run):
        yield from ([run, *more] for more in splits(without(tiles, run)))


def without(tiles: list[str], taken: list[str]) -> list[str]:
    rest = list(tiles)
    for tile in taken:
        rest.remove(tile)
    return rest


def readings(concealed: list[str], melds: list[Laid]) -> Iterator[tuple[str, list[list[str]]]]:
    """Every legal reading of a whole hand: its shape, and its sets without the pair."""
    everything = concealed + [tile for meld in melds for tile in meld.tiles]
    has_terminal = any(tile[0] in "19" or tile[1] == "z" for tile in everything)
    orphans = [tile for tile in ALL if tile[1] == "z" or tile[0] in "19"]
    if not melds and set(concealed) == set(orphans) and len(concealed) == 14:
        yield "orphans", []
    counts = Counter(concealed)
    if not has_terminal:
        return
    if not melds and len(concealed) == 14 and all(n % 2 == 0 for n in counts.values()):
        yield "pairs", []
    laid = [meld.tiles for meld in melds]
    for pair in [tile for tile, n in counts.items() if n >= 2]:
        for sets in splits(without(concealed, [pair, pair])):
            if any(len(set(tiles)) == 1 for tiles in laid + sets):
                yield "standard", laid + sets


def wins(concealed: list[str], melds: list[Laid]) -> bool:
    return next(readings(concealed, melds), None) is not None


def waits(concealed: list[str], melds: list[Laid]) -> list[str]:
    held = Counter(concealed + [tile for meld in melds for tile in meld.tiles])
    return [tile for tile in ALL if held[tile] < 4 and wins([*concealed, tile], melds)]


def words_against(
    players: list[Player],
    dealer: int,
    end: Ending,
    loser: int,
    shape: str,
    sets: list[list[str]],
) -> list[tuple[str, int]]:
    """What one loser pays for, in the order of the rule page."""
    winner = players[end.winner]
    paying = players[loser]
    concealed = [*winner.concealed, end.tile]
    everything = concealed + [tile for meld in winner.melds for tile in meld.tiles]
    others = [player for player in players if player is not winner]
    everyone_closed = all(player.closed for player in players)
    three_closed = not winner.closed and all(player.closed for player in others)
    said: list[tuple[str, int]] = []
    if winner.ting:
        said.append(("winner declared", 1))
    if paying.ting:
        said.append(("loser declared", 1))
    if winner.closed and shape != "pairs" and not everyone_closed:
        said.append(("winner closed", 1))
    if paying.closed and not everyone_closed and not three_closed:
        said.append(("loser closed", 1))
    if end.how == "self_draw" and not end.after_kong:
        said.append(("self-draw", 1))
    if end.source == loser and not end.discard_after_kong:
        said.append(("discarder", 1))
    if dealer in (end.winner, loser):
        said.append(("dealer", 1))
    said += [("winner's last tile", 1)] if has_last_tile(winner) else []
    said += [("loser's last tile", 1)] if has_last_tile(paying) else []
    runs = Counter(" ".join(tiles) for tiles in sets if len(set(tiles)) == 3)
    said += [("two alike", 1) for n in runs.values() if n == 2]
    said += [("three alike", 2) for n in runs.values() if n >= 3]
    kongs = {meld.tiles[0] for meld in winner.melds if len(meld.tiles) == 4}
    said += [
        ("four in one", 1)
        for tile, n in Counter(everything).items()
        if n == 4 and tile[1] != "z" and tile not in kongs
    ]
    chis = Counter(" ".join(sorted(m.tiles)) for m in paying.melds if m.how == "chi")
    said += [("loser's two alike", 1) for n in chis.values() if n == 2]
    said += [("loser's three alike", 2) for n in chis.values() if n >= 3]
    shown = Counter(t for m in paying.melds if m.how in ("chi", "pong") for t in m.tiles)
    said += [("loser's four in one", 1) for t, n in shown.items() if n == 4 and t[1] != "z"]
    if shape == "standard" and all(len(set(tiles)) == 1 for tiles in sets):
        said.append(("all triplets", 2))
    if three_closed:
        said.append(("three closed", 2))
    if everyone_closed:
        said.append(("four closed", 4))
    suits = {tile[1] for tile in everything}
    if len(suits) == 1:
        said.append(("one suit", 3))
    elif len(suits) == 2 and "z" in suits:
        said.append(("one suit and honours", 2))
    if end.after_kong:
        said.append(("kong's replacement", 2))
    if end.discard_after_kong and end.source == loser:
        said.append(("discard after kong", 2))
    if shape == "pairs":
        said.append(("seven pairs", 3))
    return said


def has_last_tile(player: Player) -> bool:
    return len(player.melds) == 4 and all(m.how != "concealed_kong" for m in player.melds)


def amounts(
    players: list[Player], dealer: int, end: Ending, cap: int, discarder_pays: bool
) -> dict[int, int]:
    """What each loser pays for the win, in the reading that wins the most."""
    winner = players[end.winner]
    losers = [seat for seat in range(4) if seat != end.winner]
    payers = [s for s in losers if not discarder_pays or end.how == "self_draw" or s == end.source]
    best: dict[int, int] = {}
    for shape, sets in readings([*winner.concealed, end.tile], winner.melds):
        paid = dict.fromkeys(losers, 0)
        for loser in payers:
            if shape == "orphans":
                paid[loser] = 2 * (cap or 50)
            elif end.on_deal:
                paid[loser] = cap or 50
            else:
                said = words_against(players, dealer, end, loser, shape, sets)
                paid[loser] = 2 ** sum(fan for _, fan in said)
                if cap:
                    paid[loser] = min(paid[loser], cap)
        if sum(paid.values()) > sum(best.values()):
            best = paid
    return best


def net(
    players: list[Player], dealer: int, end: Ending | None, cap: int, discarder_pays: bool
) -> list[int]:
    """What each of the four has won or lost after everything; end None: a drawn hand."""
    total = [0, 0, 0, 0]

    def pay(giver: int, taker: int, units: int) -> None:
        total[giver] -= units
        total[taker] += units

    if end is None:
        for other in range(4):
            pay(dealer, other, 2)
    else:
        for loser, units in amounts(players, dealer, end, cap, discarder_pays).items():
            if units:
                pay(loser, end.winner, units + players[loser].piao + players[end.winner].piao)
    for seat, player in enumerate(players):
        for meld in player.melds:
            if len(meld.tiles) == 4:
                units = 4 if meld.how == "concealed_kong" else 2
                for other in range(4):
                    pay(other, seat, units * 2 if meld.tiles[0] in GREAT else units)
    first = [player.first_discard for player in players]
    if first[0] and len(set(first)) == 1:
        for other in range(4):
            pay(dealer, other, 4 if first[0] in GREAT else 2)
    return total
