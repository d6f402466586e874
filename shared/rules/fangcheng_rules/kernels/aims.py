"""The tables of what is still possible under a rule set's conditions: per suit, how far it is.

Beside the shanten tables (`tables`), which know shapes alone, these tell the features of
`distances` apart, or know pairs of 2, 5 and 8 only. There is one for each kind of need, built when
a rule set first asks for it, and kept in a file like the other. A flat array again:

==========  ==========================================================================
`HEADER`    where the other parts begin, and the walks
`ROWS`      a state for each key of a suit: numbered suits, honours, honours with runs
`WALKS`     the walks of suits that have melds, 15 words a state
`STATES`    eight words a state: its distances by features and with a pair or without,
            four bits for each number of sets
==========  ==========================================================================
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .distances import (
    ANY_RANK,
    DRAGON_RUNS,
    SEQUENCES,
    SYMBOLS_FOR_LAID,
    Bytes,
    Ints,
    unique_rows,
    walk,
)
from .facts import NEEDS_258, NEEDS_TERMINAL, NEEDS_TRIPLET
from .folders import cache_folder, digest_of
from .tables import (
    HEADER,
    MAGIC,
    MAGIC_WORD,
    SYMBOL,
    Table,
    last_states,
    read_words,
    walk_words_of,
    write_words,
)

# The header's parts; the magic number and the symbols stand where those of `tables` do.
AIM_WALKS = 1  # where WALKS begin (ROWS do right after the header), ...
AIM_STATES = 2  # ... where STATES begin, ...
AIM_END = 3  # ... and how long all is
AIM_START = 10  # by number of melds, the first state of the numbered suits' walk, ...
AIM_RUN_START = 15  # ... and of the honours' where dragon runs are sets

RANKS_258 = frozenset((1, 4, 7))
NO_RANK: frozenset[int] = frozenset()


@cache
def load(needs: int) -> Table:
    """The table for these needs (`Hot.needs`): from its file where there is one, else built."""
    pair_258 = bool(needs & NEEDS_258)
    if pair_258 and needs & (NEEDS_TRIPLET | NEEDS_TERMINAL):
        raise ValueError("a pair of 2, 5 or 8 together with other needs is not provided for")
    folder = cache_folder()
    if folder is None:
        return build(pair_258)
    here = Path(__file__)
    digest = digest_of(here, here.with_name("tables.py"), here.with_name("distances.py"))
    file = folder / f"aims{'-258' if pair_258 else ''}-{digest}.npy"
    table = read_words(file)
    if table is None or len(table) != table[AIM_END]:
        table = build(pair_258)
        write_words(file, table)
    return table


def build(pair_258: bool) -> Table:
    """The table, made from nothing."""
    numbers: dict[str, Any] = {"features": 1 if pair_258 else 4}
    honours = {**numbers, "ranks": 7, "pairs": NO_RANK if pair_258 else ANY_RANK}
    numbers["pairs"] = RANKS_258 if pair_258 else ANY_RANK
    plain = [
        walk(0, **numbers),
        walk(0, **honours, runs=range(0)),
        walk(0, **honours, runs=DRAGON_RUNS),
    ]
    melded = [walk(melds, **numbers, runs=SEQUENCES) for melds in range(1, 5)]
    melded += [walk(melds, **honours, runs=DRAGON_RUNS) for melds in range(1, 5)]

    # Equal distances of whatever walk are one state.
    walks = [*plain, *melded]
    vectors, numbered = unique_rows(np.concatenate([each.vectors for each in walks]))
    states = np.split(numbered, np.cumsum([len(each.vectors) for each in walks])[:-1])
    walk_words, starts = walk_words_of(melded, states[3:])
    parts = [
        np.concatenate([states[i][last_states(way)] for i, way in enumerate(plain)]),
        walk_words,
        _packed(vectors).ravel(),
    ]
    header = np.zeros(HEADER, np.int64)
    header[MAGIC] = MAGIC_WORD
    header[AIM_WALKS : AIM_END + 1] = HEADER + np.cumsum([len(part) for part in parts])
    header[AIM_START : AIM_START + 5] = [0, *starts[:4]]
    header[AIM_RUN_START : AIM_RUN_START + 5] = [0, *starts[4:]]
    header[SYMBOL : SYMBOL + 5] = SYMBOLS_FOR_LAID
    table = np.concatenate([header, *parts]).astype(np.int32)
    table.flags.writeable = False
    return table


def _packed(vectors: Bytes) -> Ints:
    """Eight words for each state: word 2 * features + pair."""
    words = np.zeros((len(vectors), 8), np.int64)
    for feature in range(vectors.shape[3]):
        for pair in (0, 1):
            for sets in range(5):
                here = vectors[:, sets, pair, feature].astype(np.int64)
                words[:, 2 * feature + pair] |= here << (4 * sets)
    return words
