"""The tables of the kernels: per suit, what it is and what it lacks.

All of them are one flat array of 32-bit integers, so that one argument carries them:

==========  ==========================================================================
`HEADER`    where the other parts begin, and small lists
`OCTAL`     words for each count of three ranks (see `octal_words`): their bits, and
            their share of a key where they are the first three, the next, the last
`ROWS`      a word for each key of a suit (see below); first the 5**9 keys of a
            numbered suit, then the 5**7 of the honours, then those of the
            honours where dragon runs are sets
`CLASSES`   for each of these rows the class of the suit's distances, four to a word:
            in a hand with whatever melds, none of them in this suit
`WANTED`    a word for each key of a numbered suit: see `distances.wanted`
`SPLITS`    two words for each reading of a complete suit
`WALKS`     the shanten walks of suits that have melds, 15 words a state
`MERGE`     the class of two suits together, by the classes of either, two to a word
`FINAL`     for each number of melds the hand's distance, by the classes of two and two
            suits, eight to a word
==========  ==========================================================================

A *key* has a base-5 digit for each rank, the first rank's lowest: how many are concealed. A
suit's *row* is its key, for honours `PLAIN_HONOURS` or `RUN_HONOURS` more; a tile more or less
moves the row by a power of 5.

A row: bits 0-8, the ranks that would make it complete; bit 9, whether it is complete with a pair;
bits 10-12, how many readings it has as it is (0: it is not complete); from bit 13, the first of
them among the splits.

First word of a split: bits 0-8, triplets; bits 9-12, the pair's rank (from 1; 0: none). Second
word: sequences, in seven fields of three bits; of the honours, dragon runs.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .distances import (
    DRAGON_RUNS,
    SEQUENCES,
    SYMBOLS,
    SYMBOLS_FOR_LAID,
    Ints,
    Walk,
    together,
    walk,
    wanted,
)
from .folders import cache_folder, digest_of

Table = npt.NDArray[np.int32]

KEYS = 5**9
HONOUR_KEYS = 5**7
PLAIN_HONOURS = KEYS
"""The row of no honours,"""
RUN_HONOURS = KEYS + HONOUR_KEYS
"""... and where dragon runs are sets."""

# The header's parts.
MAGIC = 0
PARTS = 1  # the `Layout`
STEP = 10  # by how much a tile of each of the 34 kinds moves its suit's row
SYMBOL = 44  # by copies laid down, the first of a rank's symbols
START = 50  # by number of melds, the first state of the walk,
RUN_START = 55  # ... and of that of honours where dragon runs are sets
HEADER = 64

MAGIC_WORD = 0x66616E67


class Layout(NamedTuple):
    """Where the parts of a table begin."""

    ROWS: int
    CLASSES: int
    WANTED: int
    SPLITS: int
    WALKS: int
    MERGE: int
    FINAL: int
    MERGE_WIDTH: int
    """How many classes a suit has,"""
    FINAL_WIDTH: int
    """... and two of them together."""


OCTAL = HEADER
FIRST_THREE = OCTAL + 512
MIDDLE_THREE = OCTAL + 1024
LAST_THREE = OCTAL + 1536
# How many readings, states and classes there are is not ours to choose. Known beforehand, they
# are constants to compiled code; `build` finds out whether it counts the same.
LAYOUT = Layout(2112, 2111487, 2638831, 4591956, 4641926, 4974401, 5003926, 243, 403)
FINAL_WORDS = -(-(LAYOUT.FINAL_WIDTH**2) // 8)
"""How many words `FINAL` has for each number of melds."""
ROWS, CLASSES, WANTED, SPLITS, WALKS, MERGE, FINAL, MERGE_WIDTH, FINAL_WIDTH = LAYOUT


def layout(table: Table) -> Layout:
    """The layout that the table's header tells."""
    return Layout(*(int(word) for word in table[PARTS : PARTS + len(LAYOUT)]))


@cache
def load() -> Table:
    """The table: from its file where there is one, else built (a second) and kept there.

    Read-only either way, for numba takes a read-only array as another type than one that can be
    written.
    """
    folder = cache_folder()
    if folder is None:
        return build()
    here = Path(__file__)
    file = folder / f"tables-{digest_of(here, here.with_name('distances.py'))}.npy"
    table = _read(file)
    if table is None:
        table = build()
        write_words(file, table)
    return table


def build() -> Table:
    """The table, made from nothing."""
    numbers, number_splits = _rows(9, SEQUENCES, first_split=0)
    honours, honour_splits = _rows(7, range(0), first_split=len(number_splits))
    splits = len(number_splits) + len(honour_splits)
    run_honours, run_splits = _rows(7, DRAGON_RUNS, first_split=splits)
    plain = walk(0)
    lone = walk(0, ranks=7, runs=range(0))
    running = walk(0, ranks=7, runs=DRAGON_RUNS)
    melded = [walk(melds) for melds in range(1, 5)]
    melded += [walk(melds, ranks=7, runs=DRAGON_RUNS) for melds in range(1, 5)]

    # Classes: equal vectors of whatever walk are one.
    walks = [plain, lone, running, *melded]
    everything = np.concatenate([each.vectors[..., 0] for each in walks])
    vectors, numbered = np.unique(everything, axis=0, return_inverse=True)
    classes = np.split(numbered, np.cumsum([len(each.vectors) for each in walks])[:-1])
    of_rows = [classes[i][last_states(way)] for i, way in enumerate(walks[:3])]

    width = len(vectors)
    pairs = together(np.repeat(vectors, width, axis=0), np.tile(vectors, (width, 1, 1)))
    pair_vectors, merge = np.unique(pairs, axis=0, return_inverse=True)
    pair_width = len(pair_vectors)
    final = together(
        np.repeat(pair_vectors, pair_width, axis=0),
        np.tile(pair_vectors, (pair_width, 1, 1)),
    )
    # A hand has no melds to walk over where the plain rows do.
    walk_words, starts = walk_words_of(melded, classes[3:])

    parts = [
        octal_words(),
        np.concatenate([numbers, honours, run_honours]),
        _packed(np.concatenate(of_rows), 8),
        wanted(),
        np.concatenate([number_splits, honour_splits, run_splits]).ravel(),
        walk_words,
        _packed(merge.ravel(), 16),
        *(_packed(final[:, 4 - melds, 1], 4) for melds in range(5)),
    ]
    begins = np.cumsum([HEADER, *(len(part) for part in parts[:8])])
    header = np.zeros(HEADER, np.int64)
    header[MAGIC] = MAGIC_WORD
    found = Layout._make([*map(int, begins[1:-1]), width, pair_width])
    if found != LAYOUT:
        raise ValueError(f"the tables are laid out otherwise than compiled code has it: {found}")
    header[PARTS : PARTS + len(found)] = found
    header[STEP : STEP + 34] = [5 ** (kind % 9) for kind in range(34)]
    header[SYMBOL : SYMBOL + 5] = SYMBOLS_FOR_LAID
    header[START : START + 5] = [0, *starts[:4]]
    header[RUN_START : RUN_START + 5] = [0, *starts[4:]]
    table = np.concatenate([header, *parts]).astype(np.uint32).view(np.int32)
    table.flags.writeable = False
    return table


def octal_words() -> Ints:
    """Words for each count of three ranks, three bits each; counts above four are nobody's.

    512 words of masks: bits 0-2, the ranks that have the bit of value 1; bits 9-11, that of value
    2; bits 18-20, that of value 4. Then three times 512: the three ranks as a key's first, its
    middle and its last digits.
    """
    counts = np.arange(512)[:, None] >> np.array([0, 3, 6]) & 7
    masks: Ints = sum(
        ((counts >> value & 1) @ np.array([1, 2, 4])) << (9 * value) for value in range(3)
    )
    keys = np.where(counts.max(axis=1) > 4, 0, counts @ np.array([1, 5, 25]))
    return np.concatenate([masks, keys, 125 * keys, 15625 * keys])


def _rows(ranks: int, runs: range, *, first_split: int) -> tuple[Ints, Ints]:
    """Rows of all keys of a suit, and the splits they point to.

    `runs`: where three different ranks in a row begin a set.
    """
    steps = 5 ** np.arange(ranks)
    blocks = [3 * np.eye(ranks, dtype=np.int64)]
    words = [np.array([(1 << rank, 0) for rank in range(ranks)])]
    if runs:
        blocks.append(np.array([[int(r <= i < r + 3) for i in range(ranks)] for r in runs]))
        words.append(np.array([(0, 1 << (3 * (rank - runs[0]))) for rank in runs]))
    # Every way to take up to four sets, and to add a pair or none.
    sets = np.concatenate([*blocks, np.zeros((1, ranks), np.int64)])
    set_words = np.concatenate([*words, [(0, 0)]])
    chosen = np.array(list(itertools.combinations_with_replacement(range(len(sets)), 4)))
    pairs = np.concatenate([np.zeros((1, ranks), np.int64), 2 * np.eye(ranks, dtype=np.int64)])
    counts = (sets[chosen].sum(axis=1)[:, None] + pairs[None]).reshape(-1, ranks)
    splits = np.repeat(set_words[chosen].sum(axis=1), ranks + 1, axis=0)
    pair_ranks = np.tile(np.arange(ranks + 1), len(chosen))
    splits[:, 0] |= pair_ranks << 9
    possible = (counts <= 4).all(axis=1)
    keys, splits, pair_ranks = counts[possible] @ steps, splits[possible], pair_ranks[possible]
    order = np.argsort(keys, kind="stable")
    keys, splits, pair_ranks = keys[order], splits[order], pair_ranks[order]

    rows = np.zeros(5**ranks, np.int64)
    complete, first, readings = np.unique(keys, return_index=True, return_counts=True)
    with_pair = (pair_ranks[first] > 0).astype(np.int64)
    rows[complete] = with_pair << 9 | readings << 10 | (first + first_split) << 13
    for rank in range(ranks):
        has = complete[complete // steps[rank] % 5 > 0]
        rows[has - steps[rank]] |= 1 << rank
    return rows, splits


def _packed(numbers: npt.NDArray[Any], bits: int) -> Ints:
    """Numbers of so many bits, as many to a word as it has room for; the first one lowest."""
    each = 32 // bits
    padded = np.zeros((-(-len(numbers) // each), each), np.int64)
    padded.ravel()[: len(numbers)] = numbers
    words: Ints = (padded << bits * np.arange(each)).sum(axis=1)
    return words


def last_states(way: Walk) -> Ints:
    """The last state of the walk for every key without melds."""
    states = np.zeros(1, np.int64)
    for step in way.steps:
        # Keys that no hand has (more than fourteen tiles) end in state 0; nobody asks.
        states = np.concatenate([np.maximum(step[states, held], 0) for held in range(5)])
    return states


def walk_words_of(walks: list[Walk], classes: list[Ints]) -> tuple[Ints, list[int]]:
    """The walks as words, each the place of the next state's words, at last the class."""
    words: list[Ints] = []
    starts: list[int] = []
    size = 0
    for way, last_classes in zip(walks, classes, strict=True):
        starts.append(size)
        for rank, step in enumerate(way.steps):
            size += step.size
            last = rank == len(way.steps) - 1
            target = last_classes[step] if last else size + SYMBOLS * step
            words.append(np.where(step < 0, 0, target).ravel())
    return np.concatenate(words), starts


def _read(file: Path) -> Table | None:
    table = read_words(file)
    if table is None:
        return None
    places = layout(table)
    return table if places == LAYOUT and len(table) == FINAL + 5 * FINAL_WORDS else None


def read_words(file: Path) -> Table | None:
    """What a table's file holds, if it begins like one; how long it must be is not asked."""
    try:
        table = np.load(file, mmap_mode="r").view(np.ndarray)
    except (OSError, ValueError, EOFError):
        return None
    whole = table.ndim == 1 and table.dtype == np.int32 and len(table) > HEADER
    return table if whole and table[MAGIC] == MAGIC_WORD else None


def write_words(file: Path, table: Table) -> None:
    """Keep the table, whole or not at all; a folder that cannot be written does no harm."""
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as stream:
            np.save(stream, table)
        os.replace(name, file)
    except OSError:
        Path(name).unlink(missing_ok=True)
