"""A second, slow scorer of `baishan_dazui`, written from the rule page on its own.

Hands, shapes and conditions are told as for its sister set (`kele_oracle.py`), whose conditions of
a win are the same; what counts and who pays is this page's. Fan are counted for one loser at a
time as a list of words. Where it and the package differ, one of them has misread the page.
"""

from __future__ import annotations

from collections import Counter

from tests.rules.kele_oracle import GREAT, Ending, Player, readings


def words_against(
    players: list[Player], dealer: int, end: Ending, loser: int, sets: list[list[str]]
) -> list[tuple[str, int]]:
    """What counts between the winner and one loser, in one standard reading."""
    winner, paying = players[end.winner], players[loser]
    others = [player for player in players if player is not winner]
    everything = [*winner.concealed, end.tile]
    for meld in winner.melds:
        everything += meld.tiles
    closed_around = all(player.closed for player in others)

    said: list[tuple[str, int]] = []
    if winner.ting:
        said.append(("winner declared", 1))
    if paying.ting:
        said.append(("loser declared", 1))
    if closed_around and winner.closed:
        said.append(("four closed", 3))
    elif closed_around:
        said.append(("three closed", 2))
    else:
        said += [("winner closed", 1)] if winner.closed else []
        said += [("loser closed", 1)] if paying.closed else []
    if end.source == loser:
        said.append(("discarder", 1))
        if end.discard_after_kong:
            said.append(("discard after kong", 1))
    if end.how == "self_draw":
        said.append(("self-draw", 1))
        if end.after_kong:
            said.append(("kong's replacement", 1))
    if dealer in (end.winner, loser):
        said.append(("dealer", 1))
    if all(len(set(tiles)) == 1 for tiles in sets):
        said.append(("all triplets", 1))
    suits = "".join(sorted({tile[1] for tile in everything}))
    if suits in ("m", "p", "s"):
        said.append(("one suit", 2))
    elif suits in ("mz", "pz", "sz", "z"):
        said.append(("one suit and honours, or these alone", 1))
    said += [("winner's last tile", 1)] if len(winner.melds) == 4 else []
    said += [("loser's last tile", 1)] if len(paying.melds) == 4 else []

    runs = Counter(tuple(sorted(tiles)) for tiles in sets if len(set(tiles)) == 3)
    for run, times in runs.items():
        if times == 2:
            said.append((f"two {run}", 1))
        elif times > 2:
            said.append((f"three {run}", 2))
    kongs = [meld.tiles[0] for meld in winner.melds if len(meld.tiles) == 4]
    for tile in sorted(set(everything)):
        if everything.count(tile) == 4 and tile not in kongs and tile[1] != "z":
            said.append((f"four {tile} in one", 1))
    chis = [tuple(sorted(meld.tiles)) for meld in paying.melds if meld.how == "chi"]
    for run in sorted(set(chis)):
        if chis.count(run) == 2:
            said.append((f"loser's two {run}", 1))
        elif chis.count(run) > 2:
            said.append((f"loser's three {run}", 2))
    face_up = [t for meld in paying.melds if meld.how in ("chi", "pong") for t in meld.tiles]
    for tile in sorted(set(face_up)):
        if face_up.count(tile) == 4 and tile[1] != "z":
            said.append((f"loser's four {tile} in one", 1))
    return said


def amounts(
    players: list[Player], dealer: int, end: Ending, cap: int, discarder_pays: bool
) -> dict[int, int]:
    """What each loser pays for the win, in the reading that wins the most."""
    winner = players[end.winner]
    losers = [seat for seat in range(4) if seat != end.winner]
    best: dict[int, int] = {}
    for shape, sets in readings([*winner.concealed, end.tile], winner.melds):
        paid = {}
        for loser in losers:
            if shape == "pairs":
                units = cap or 64
            elif shape == "orphans":
                units = 2 * (cap or 64)
            else:
                said = words_against(players, dealer, end, loser, sets)
                units = 2 ** sum(fan for _, fan in said)
                units = min(units, cap) if cap else units
            if discarder_pays and end.how != "self_draw" and loser != end.source:
                units = 0
            paid[loser] = units
        if sum(paid.values()) > sum(best.values()):
            best = paid
    return best


def kongs(players: list[Player], dealer: int, unit: int) -> list[int]:
    """What each of the four has won or lost by kongs."""
    total = [0, 0, 0, 0]
    for seat, player in enumerate(players):
        for meld in player.melds:
            if len(meld.tiles) < 4:
                continue
            for other in range(4):
                if other == seat:
                    continue
                units = unit
                if meld.how == "concealed_kong":
                    units *= 2
                if meld.tiles[0] in GREAT:
                    units *= 2
                if dealer in (seat, other):
                    units *= 2
                total[seat] += units
                total[other] -= units
    return total


def net(
    players: list[Player],
    dealer: int,
    end: Ending | None,
    unit: int = 1,
    cap: int = 64,
    discarder_pays: bool = False,
) -> list[int]:
    """What each of the four has won or lost after everything; end None: a drawn hand."""
    total = kongs(players, dealer, unit)
    if end is not None:
        for loser, units in amounts(players, dealer, end, cap, discarder_pays).items():
            total[loser] -= units
            total[end.winner] += units
    return total
