"""The rules in one process, on one core: how many a second, and how many times the peers.

    python benchmarks/kernels.py

Runs in an environment of its own, which has the peers: RiichiEnv (Rust), PyMahjongGB (C++) and
xiangting (Rust). Each is called as its users call it, once for each hand, in the way that is
quickest, with everything that can be made ready before made ready before. Ours are records of many
hands, checked and evaluated. Where rules coincide the answers are compared, and a difference ends
the benchmark.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import MahjongGB
import numpy as np
import numpy.typing as npt
import xiangting
from measure import ROUNDS, Line, Lines, cores, pin
from riichienv import _riichienv as riichi

from fangcheng_rules import packed
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import BUILT_IN, rule_set

HANDS = 200_000
"""Distinct ones."""
SEED = 20_240_601
FOUR = xiangting.PlayerCount.FOUR

Counts = npt.NDArray[np.int64]

RUNS = [(kind, kind + 1, kind + 2) for kind in range(27) if kind % 9 < 7]
SETS = np.zeros((len(RUNS) + 34, 34), np.int64)
"""Tiles of each set: sequences, then triplets."""
for _place, _tiles in enumerate([*RUNS, *((kind,) * 3 for kind in range(34))]):
    np.add.at(SETS[_place], list(_tiles), 1)
LOWEST = np.array([*(tiles[0] for tiles in RUNS), *range(34)])


def records_of(counts: Counts) -> packed.Records:
    """Records of concealed tiles."""
    records: packed.Records = np.zeros(len(counts), packed.HAND)
    for suit in range(4):
        own = counts[:, 9 * suit : 9 * suit + 9]
        records["concealed"][:, suit] = (own << 3 * np.arange(own.shape[1])).sum(axis=1)
    return records


def concealed_of(records: packed.Records) -> Counts:
    """The concealed tiles of records: how many of each of the 34 kinds."""
    suits = [
        records["concealed"][:, suit, None] >> 3 * np.arange(7 if suit == 3 else 9) & 7
        for suit in range(4)
    ]
    return np.concatenate(suits, axis=1).astype(np.int64)


def complete_hands(
    chance: np.random.Generator, rules: RuleSet, count: int, most_melds: int
) -> packed.Records:
    """Hands of four sets and a pair, some of the sets laid down, one of the tiles won."""
    played = np.array([rules.play_mask >> kind & 1 == 1 for kind in range(34)])
    sets = chance.integers(0, len(RUNS), (count, 4))
    triplets = chance.random((count, 4)) < 0.4
    sets[triplets] = len(RUNS) + chance.integers(0, 34, np.count_nonzero(triplets))
    pairs = chance.integers(0, 34, count)
    held = SETS[sets].sum(axis=1) + 2 * np.eye(34, dtype=np.int64)[pairs]
    good = (held.max(axis=1) <= 4) & ~held[:, ~played].any(axis=1)
    sets, held = sets[good], held[good]
    melds = chance.integers(0, most_melds + 1, len(held))
    laid = np.arange(4) < melds[:, None]
    concealed = held - (SETS[sets] * laid[:, :, None]).sum(axis=1)
    records = records_of(concealed)
    is_triplet = sets >= len(RUNS)
    # A triplet of which the fourth is nowhere else may be a kong.
    alone = np.take_along_axis(held, LOWEST[sets], axis=1) == 3
    kong = np.where(alone, chance.choice([0, 0, 1, 2], sets.shape), 0)
    how = np.where(is_triplet, 1 + kong, 0)
    records["melds"] = np.where(laid, how << 6 | LOWEST[sets] + 1, 0)
    won = (chance.random(concealed.shape) * (concealed > 0)).argmax(axis=1)
    records["won"] = won + 1
    return records


def distinct(make: Callable[[], packed.Records]) -> packed.Records:
    """Records until there are enough different ones, in no order."""
    found: packed.Records = np.zeros(0, packed.HAND)
    while len(found) < HANDS:
        words = np.concatenate([found, make()]).view("V32")
        found = np.unique(words).view(packed.HAND)
    np.random.default_rng(SEED).shuffle(found)
    return found[:HANDS].copy()


def won_hands(chance: np.random.Generator, rules: RuleSet, most_melds: int) -> packed.Records:
    """Hands that win under the rule set's conditions."""

    def make() -> packed.Records:
        records = complete_hands(chance, rules, 2 * HANDS, most_melds)
        results = packed.evaluate(rules, records, packed.SCORE)
        if results["status"].any():
            raise AssertionError("a made hand is not in order")
        won: packed.Records = records[results["win"] == 1]
        return won

    return distinct(make)


def ready_hands(chance: np.random.Generator, rules: RuleSet) -> packed.Records:
    """Concealed hands of thirteen that have a legal wait."""

    def make() -> packed.Records:
        records = complete_hands(chance, rules, 2 * HANDS, 0)
        counts = concealed_of(records)
        counts[np.arange(len(counts)), records["won"].astype(np.int64) - 1] -= 1
        thirteen = records_of(counts)
        found = packed.evaluate(rules, thirteen, packed.WAITS)["waits"]
        ready: packed.Records = thirteen[found > 0]
        return ready

    return distinct(make)


def random_hands(chance: np.random.Generator, most_melds: int) -> packed.Records:
    """Hands of fourteen: melds as they are made, the rest drawn from what the wall has left."""
    rules = rule_set("jintan")

    def make() -> packed.Records:
        records = complete_hands(chance, rules, 2 * HANDS, most_melds)
        concealed = concealed_of(records)
        laid = (records["melds"] > 0).sum(axis=1)
        held = np.zeros_like(concealed)
        for place in range(4):
            byte = records["melds"][:, place].astype(np.int64)
            kind, how = np.maximum((byte & 63) - 1, 0), byte >> 6
            for step in range(3):
                np.add.at(
                    held,
                    (np.arange(len(held)), np.minimum(kind + step, 33)),
                    (byte > 0) & (how == 0),
                )
            np.add.at(
                held, (np.arange(len(held)), kind), np.where(how > 0, np.minimum(how + 2, 4), 0)
            )
        # One draw of the whole wall each; what lies in melds comes last.
        copies = np.arange(136) % 4 < 4 - held[:, np.arange(136) // 4]
        order = np.argsort(chance.random((len(held), 136)) + ~copies, axis=1)
        counts = np.zeros_like(held)
        for place in range(14):
            drawn = order[:, place] // 4
            np.add.at(counts, (np.arange(len(held)), drawn), place < 14 - 3 * laid)
        again = records_of(counts)
        again["melds"] = records["melds"]
        in_order: packed.Records = again[packed.check(rules, again) == 0]
        return in_order

    return distinct(make)


# ---- The same hands for the peers ----


def kinds_of(counts: Iterable[int]) -> list[int]:
    """Tiles, a kind each."""
    return [kind for kind, copies in enumerate(counts) for _ in range(copies)]


def each_tile(kinds: list[int], held: dict[int, int]) -> list[int]:
    """The tiles one by one, as RiichiEnv numbers all 136; `held` tells which are gone already."""
    found = []
    for kind in kinds:
        copy = held.get(kind, 0)
        held[kind] = copy + 1
        found.append(4 * kind + copy)
    return found


def melds_of(record: Any) -> list[tuple[int, int]]:
    """How each was laid down, and its lowest tile."""
    return [(int(byte) >> 6, (int(byte) & 63) - 1) for byte in record["melds"] if byte]


RIICHI_MELDS = (
    riichi.MeldType.Chi,
    riichi.MeldType.Pon,
    riichi.MeldType.Daiminkan,
    riichi.MeldType.Ankan,
)
NO_CONDITIONS = riichi.Conditions()


def for_riichi(record: Any, counts: list[int]) -> tuple[list[int], list[Any], int]:
    """Concealed tiles without the winning one, melds, the winning tile."""
    held: dict[int, int] = {}
    melds = []
    for how, kind in melds_of(record):
        kinds = [kind, kind + 1, kind + 2] if how == 0 else [kind] * (3 if how == 1 else 4)
        tiles = each_tile(kinds, held)
        melds.append(riichi.Meld(RIICHI_MELDS[how], tiles, how != 3))
    won = int(record["won"]) - 1
    rest = list(counts)
    rest[won] -= 1
    tiles = each_tile(kinds_of(rest), held)
    return tiles, melds, each_tile([won], held)[0]


GB_NAMES = [f"{suit}{rank}" for suit in "WTB" for rank in range(1, 10)]
GB_NAMES += [f"F{rank}" for rank in range(1, 5)] + [f"J{rank}" for rank in range(1, 4)]


def for_gb(record: Any, counts: list[int]) -> tuple[Any, ...]:
    """Melds, concealed tiles without the winning one, the winning tile, and so on."""
    melds = []
    for how, kind in melds_of(record):
        if how == 0:
            melds.append(("CHI", GB_NAMES[kind + 1], 1))
        else:
            melds.append(("PENG" if how == 1 else "GANG", GB_NAMES[kind], 0 if how == 3 else 1))
    won = int(record["won"]) - 1
    rest = list(counts)
    rest[won] -= 1
    hand = tuple(GB_NAMES[kind] for kind in kinds_of(rest))
    return tuple(melds), hand, GB_NAMES[won], 0, False, False, False, False, 0, 0


def riichi_score(hand: tuple[list[int], list[Any], int]) -> Any:
    """A hand's score, the evaluator made for it as one has to be."""
    tiles, melds, won = hand
    return riichi.HandEvaluator(tiles, melds).calc(won, [], [], NO_CONDITIONS)


def each(work: Callable[[Any], object], hands: list[Any]) -> Callable[[], None]:
    """A peer that takes one hand at a time, put to all of them."""

    def all_of_them() -> None:
        for hand in hands:
            work(hand)

    return all_of_them


def rates(hands: int, *works: Callable[[], object]) -> list[float]:
    """Hands a second of each: medians of five rounds, in each of which all take their turn.

    By CPU time, so that what else the machine does falls on all alike or on none; for at least
    a tenth of a second at a time.
    """
    times: list[int] = []
    for work in works:
        started = time.process_time()
        work()
        times.append(1 + int(0.1 / max(time.process_time() - started, 1e-3)))
    found: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for place, work in enumerate(works):
            started = time.process_time()
            for _ in range(times[place]):
                work()
            found[place].append(hands * times[place] / (time.process_time() - started))
    return [statistics.median(rounds) for rounds in found]


def agree(what: str, ours: Iterable[Any], theirs: Iterable[Any]) -> None:
    """Stop at the first difference."""
    pairs = list(zip(ours, theirs, strict=True))
    for number, (own, other) in enumerate(pairs):
        if own != other:
            raise SystemExit(f"{what}: hand {number} is {own} here and {other} there")
    print(f"  {what}: {len(pairs):,} answers agree", flush=True)


# ---- What is measured ----


def scoring(lines: Lines, rules: RuleSet, chance: np.random.Generator) -> None:
    """Full scoring of won hands, concealed ones and ones with melds alike."""
    hands = won_hands(chance, rules, 4)
    out: packed.Records = np.empty(len(hands), packed.RESULT)
    few = list(zip(hands, concealed_of(hands).tolist(), strict=True))
    gb = [for_gb(*hand) for hand in few]
    riichi_hands = [for_riichi(*hand) for hand in few]
    ours, by_gb, by_riichi = rates(
        len(hands),
        lambda: packed.evaluate(rules, hands, packed.SCORE, out),
        each(lambda hand: MahjongGB.MahjongFanCalculator(*hand), gb),
        each(riichi_score, riichi_hands),
    )
    group = "Full scoring of winning hands"
    lines.add(
        Line(group, rules.id, ours, reference="PyMahjongGB", reference_per_second=by_gb, goal=50)
    )
    lines.add(
        Line(group, rules.id, ours, reference="RiichiEnv", reference_per_second=by_riichi, goal=25)
    )
    if rules.id == "jintan":  # no conditions: what is complete wins
        compare_wins(few)


def compare_wins(hands: list[tuple[Any, list[int]]]) -> None:
    """Won hands, and the same with another tile: which of them are complete, in standard shape."""
    jintan = rule_set("jintan")
    records: packed.Records = np.array([record for record, _ in hands], packed.HAND)
    counts = np.array([own for _, own in hands])
    rows = np.arange(len(counts))
    counts[rows, records["won"].astype(np.int64) - 1] -= 1
    near = records_of(counts)
    near["melds"] = records["melds"]
    into = np.random.default_rng(SEED).integers(0, 34, len(counts))
    counts[rows, into] += 1
    near["concealed"][rows, into // 9] += (1 << 3 * (into % 9)).astype(np.uint32)
    near["won"] = into + 1
    # Seven pairs are other ones there where four are alike.
    good = (packed.check(jintan, near) == 0) & ~(counts % 2 == 0).all(axis=1)
    near, counts = near[good], counts[good]
    ours = packed.evaluate(jintan, near, packed.SCORE)["win"] == 1
    theirs = [
        riichi_score(for_riichi(*hand)).has_win_shape
        for hand in zip(near, counts.tolist(), strict=True)
    ]
    agree("complete or not, standard shape (RiichiEnv)", ours.tolist(), theirs)


def shanten(lines: Lines, chance: np.random.Generator) -> None:
    """Shanten by shape, of concealed hands and of hands with melds."""
    kele = rule_set("baishan_kele")
    for what, most_melds in (("random 14 tiles", 0), ("random hands with 0 to 4 melds", 4)):
        hands = random_hands(chance, most_melds)
        out: packed.Records = np.empty(len(hands), packed.RESULT)
        counts = concealed_of(hands).tolist()
        tiles = [each_tile(kinds_of(own), {}) for own in counts]
        ours, by_riichi, by_xiangting = rates(
            len(hands),
            partial(packed.evaluate, kele, hands, packed.SHANTEN, out),
            each(riichi.calculate_shanten, tiles),
            each(lambda own: xiangting.calculate_replacement_number(own, FOUR), counts),
        )
        group = "Shanten"
        lines.add(
            Line(group, what, ours, reference="RiichiEnv", reference_per_second=by_riichi, goal=10)
        )
        lines.add(Line(group, what, ours, reference="xiangting", reference_per_second=by_xiangting))
        if not most_melds:
            compare_shanten(out["shape_shanten"].tolist(), counts, tiles)


def compare_shanten(ours: list[int], counts: list[list[int]], tiles: list[list[int]]) -> None:
    """Standard shape, seven pairs, thirteen orphans, where seven pairs are the same ones."""
    same = [max(own) < 4 and len(own) - own.count(0) >= 7 for own in counts]
    own = list(itertools.compress(ours, same))
    agree(
        "shanten (xiangting)",
        own,
        [
            xiangting.calculate_replacement_number(hand, FOUR) - 1
            for hand in itertools.compress(counts, same)
        ],
    )
    agree(
        "shanten (RiichiEnv)",
        own,
        [riichi.calculate_shanten(hand) for hand in itertools.compress(tiles, same)],
    )


def waits(lines: Lines, rules: RuleSet, chance: np.random.Generator) -> None:
    """Legal waits of hands that have some."""
    hands = ready_hands(chance, rules)
    out: packed.Records = np.empty(len(hands), packed.RESULT)
    counts = concealed_of(hands).tolist()
    ours, by_xiangting = rates(
        len(hands),
        lambda: packed.evaluate(rules, hands, packed.WAITS, out),
        each(lambda own: xiangting.calculate_necessary_tiles(own, FOUR), counts),
    )
    group = "Legal waits of ready hands"
    lines.add(
        Line(
            group, rules.id, ours, reference="xiangting", reference_per_second=by_xiangting, goal=7
        )
    )
    if rules.id == "jintan":
        same = [max(own) < 4 and len(own) - own.count(0) >= 7 for own in counts]
        found = itertools.compress(out["waits"].tolist(), same)
        theirs = [
            xiangting.calculate_necessary_tiles(own, FOUR)
            for own in itertools.compress(counts, same)
        ]
        agree("waits (xiangting)", found, [mask if number == 1 else 0 for number, mask in theirs])


def main() -> None:
    """All of it."""
    pin(cores()[0])
    lines = Lines("kernels")
    for rules in BUILT_IN:
        scoring(lines, rules, np.random.default_rng(SEED))
    shanten(lines, np.random.default_rng(SEED))
    for rules in BUILT_IN:
        waits(lines, rules, np.random.default_rng(SEED))
    lines.save()


if __name__ == "__main__":
    main()
