"""Shapes, waits and shanten straight from their definitions, slowly.

Nothing here is shared with the package. Tiles are kinds (0 to 33); hands are lists of counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

ORPHANS = [0, 8, 9, 17, 18, 26, *range(27, 34)]

Set = tuple[int, ...]


def splits(counts: list[int]) -> Iterator[list[Set]]:
    """Every way to split the tiles into triplets and sequences, some found more than once."""
    first = next((kind for kind in range(34) if counts[kind]), None)
    if first is None:
        yield []
        return
    candidates = [(first,) * 3]
    if first < 27 and first % 9 <= 6:
        candidates.append((first, first + 1, first + 2))
    for tiles in candidates:
        left = list(counts)
        for tile in tiles:
            left[tile] -= 1
        if min(left) >= 0:
            yield from ([tiles, *more] for more in splits(left))


def standard_readings(concealed: list[int]) -> set[tuple[int, tuple[Set, ...]]]:
    """Each pair with each way to split the rest."""
    found = set()
    for pair in range(34):
        if concealed[pair] >= 2:
            rest = list(concealed)
            rest[pair] -= 2
            found |= {(pair, tuple(sorted(sets))) for sets in splits(rest)}
    return found


def is_seven_pairs(concealed: list[int]) -> bool:
    return sum(concealed) == 14 and all(n % 2 == 0 for n in concealed)


def is_thirteen_orphans(concealed: list[int]) -> bool:
    return sum(concealed) == 14 and all(
        (concealed[kind] > 0) == (kind in ORPHANS) for kind in range(34)
    )


def is_complete(concealed: list[int], laid: list[int], *, orphans: bool) -> bool:
    """Whether concealed tiles and melds make a shape; 14 less three a meld are concealed."""
    if sum(laid) == 0 and (
        is_seven_pairs(concealed) or (orphans and is_thirteen_orphans(concealed))
    ):
        return True
    return bool(standard_readings(concealed))


def shape_waits(concealed: list[int], laid: list[int], *, orphans: bool) -> list[int]:
    """Every kind tried, but for those of which no fifth exists."""
    found = []
    for kind in range(34):
        if concealed[kind] + laid[kind] < 4:
            more = list(concealed)
            more[kind] += 1
            if is_complete(more, laid, orphans=orphans):
                found.append(kind)
    return found


@cache
def targets(ranks: int) -> list[list[npt.NDArray[np.int8]]]:
    """All that a suit can hold of 0 to 4 sets without and with a pair, as counts in rows."""
    sets = [tuple(3 * (i == rank) for i in range(ranks)) for rank in range(ranks)]
    if ranks == 9:
        sets += [tuple(int(r <= i < r + 3) for i in range(9)) for r in range(7)]
    pairs = [tuple(2 * (i == rank) for i in range(ranks)) for rank in range(ranks)]
    found = []
    for n in range(5):
        of_sets = {
            tuple(map(sum, zip([0] * ranks, *chosen, strict=False)))
            for chosen in itertools.combinations_with_replacement(sets, n)
        }
        with_pair = {tuple(map(sum, zip(s, p, strict=True))) for s in of_sets for p in pairs}
        found.append(
            [
                np.array([row for row in rows if max(row) <= 4], np.int8)
                for rows in (of_sets, with_pair)
            ]
        )
    return found


def standard_distance(concealed: list[int], laid: list[int], melds: int) -> int:
    """Tiles that must come for the nearest hand of 4 - melds sets and a pair.

    Every target of every suit is compared with what is held, and thrown out if it wants more of a
    kind than the four copies less those laid down.
    """
    sets = 4 - melds
    nearest = {(0, 0): 0}
    for first, ranks in ((0, 9), (9, 9), (18, 9), (27, 7)):
        here = np.array(concealed[first : first + ranks], np.int8)
        most = 4 - np.array(laid[first : first + ranks], np.int8)
        after: dict[tuple[int, int], int] = {}
        for n in range(sets + 1):
            for pair in (0, 1):
                rows = targets(ranks)[n][pair]
                rows = rows[(rows <= most).all(axis=1)]
                if not len(rows):
                    continue
                cost = int(np.maximum(rows - here, 0).sum(axis=1).min())
                for (n_before, pair_before), before in nearest.items():
                    key = (n_before + n, pair_before + pair)
                    if key[0] <= sets and key[1] <= 1:
                        after[key] = min(after.get(key, 99), before + cost)
        nearest = after
    return nearest[sets, 1]


def seven_pairs_distance(concealed: list[int]) -> int:
    """Two tiles for each of seven pairs, four alike being two of them."""
    wanted = [(kind, half) for kind in range(34) for half in (0, 1)]
    kept = sorted(
        (min(2, max(0, concealed[kind] - 2 * half)) for kind, half in wanted), reverse=True
    )
    return 14 - sum(kept[:7])


def thirteen_orphans_distance(concealed: list[int]) -> int:
    return min(
        sum(max(0, 1 + (kind == twice) - concealed[kind]) for kind in ORPHANS) for twice in ORPHANS
    )


def shanten(concealed: list[int], laid: list[int], melds: int, *, orphans: bool) -> int:
    """Tiles that must come for a complete shape, less one."""
    distances = [standard_distance(concealed, laid, melds)]
    if melds == 0:
        distances.append(seven_pairs_distance(concealed))
        if orphans:
            distances.append(thirteen_orphans_distance(concealed))
    return min(distances) - 1
