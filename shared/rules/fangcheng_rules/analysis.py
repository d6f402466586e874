"""What a hand of 13 or 14 tiles is: its waits, its readings, what each discard would leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .hand import Hand
from .kernels.bound import FoundReading, Kernels, bind, kinds_in
from .kernels.facts import SEVEN_PAIRS, STANDARD, total_fan
from .melds import Meld, MeldKind
from .tiles import ORPHANS, Kind

if TYPE_CHECKING:
    from .ruleset import Options, RuleSet

Shape = Literal["standard", "seven_pairs", "thirteen_orphans"]


@dataclass(frozen=True, slots=True)
class Wait:
    """A kind that completes a legal win."""

    tile: Kind
    least_fan: int
    """Fan that count against every loser when it is won on a discard, by the hand alone: nothing
    of the moment. 0 for a win of a fixed amount."""


@dataclass(frozen=True, slots=True)
class DiscardChoice:
    """What fourteen tiles are after a discard."""

    tile: Kind
    waits: tuple[Wait, ...] = ()
    shanten: int | None = None
    """None unless progress was asked for."""
    useful: tuple[Kind, ...] = ()
    """The kinds that lower the shanten; empty unless progress was asked for."""


@dataclass(frozen=True, slots=True)
class KongChoice:
    """What fourteen tiles are after a kong, before its replacement."""

    tile: Kind
    kind: MeldKind
    """`CONCEALED_KONG` or `ADDED_KONG`."""
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a winning hand."""

    shape: Shape
    sets: tuple[tuple[Kind, ...], ...]
    """Standard: melds first, then the concealed sets, the pair last. Seven pairs: seven sets of
    two, four alike being two of them. Thirteen orphans: twelve single tiles, the pair last."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """All there is to know of a hand."""

    wins: bool = False
    """14 tiles: the hand wins under the rule set's conditions."""
    readings: tuple[Reading, ...] = ()
    """14 tiles: the readings under which it wins, the one worth most by the hand alone first."""
    items: tuple[tuple[str, int], ...] = ()
    """14 tiles: the first reading's fan items by the hand alone, each with its fan (0: a fixed
    amount)."""
    waits: tuple[Wait, ...] = ()
    """13 tiles: the legal waits."""
    discards: tuple[DiscardChoice, ...] = ()
    """14 tiles: one for each kind in hand."""
    kongs: tuple[KongChoice, ...] = ()
    """14 tiles: one for each kong that could be laid down in the seat's own turn."""
    shanten: int | None = None
    """By shape alone: 0 waits, -1 is complete. None unless progress was asked for."""
    useful: tuple[Kind, ...] = ()
    """13 tiles: the kinds that lower the shanten; empty unless progress was asked for."""


def analyze(rule_set: RuleSet, options: Options, hand: Hand, *, progress: bool = False) -> Analysis:
    """Analyse a hand of 13 or 14 tiles; with `progress`, shanten and useful tiles too.

    Legal waits are the kinds that complete a win by shape and conditions, whatever the moment,
    without a kind of which the seat holds all four (rules page, "What a win needs").
    """
    kernels = bind(rule_set.hot)
    bits = rule_set.hot.pack_options(options)
    if hand.size == 13:
        waits = _waits(kernels, hand.concealed, hand.melds, bits)
        if not progress:
            return Analysis(waits=waits)
        shanten, useful = kernels.progress(hand.concealed, hand.melds)
        return Analysis(waits=waits, shanten=shanten, useful=tuple(kinds_in(useful)))

    found = winning_readings(rule_set, options, hand.concealed, hand.melds)
    return Analysis(
        wins=bool(found),
        readings=tuple(reading for reading, _ in found),
        items=tuple(found[0][1].items()) if found else (),
        discards=_discards(kernels, hand, bits, progress),
        kongs=_kongs(kernels, hand, bits),
        shanten=kernels.shanten(hand.concealed, hand.melds) if progress else None,
    )


def winning_readings(
    rule_set: RuleSet,
    options: Options,
    concealed: Sequence[Kind],
    melds: tuple[Meld, ...],
    *,
    won: Kind | None = None,
    claimed: bool = False,
) -> list[tuple[Reading, dict[str, int]]]:
    """The readings of fourteen tiles that pass the conditions, each with its fan items.

    The items are those of the hand alone (`Hot.items`), with the fan of each; 0 stands for a
    fixed amount. The reading that is worth most by them comes first: most fan, then most
    triplets. `concealed` are sorted, the winning tile `won` among them; `claimed` if another
    discarded it or had it robbed. No readings: no win.
    """
    kernels = bind(rule_set.hot)
    bits = rule_set.hot.pack_options(options)
    found = kernels.readings(concealed, melds, won, claimed=claimed, options=bits)
    if len(found) > 1:
        found.sort(key=_worth, reverse=True)
    return [
        (_reading(reading, concealed, melds), kernels.item_fan(reading.items)) for reading in found
    ]


def _worth(reading: FoundReading) -> tuple[int, int]:
    return total_fan(reading.items), reading.triplets.bit_count()


def _waits(
    kernels: Kernels, concealed: tuple[Kind, ...], melds: tuple[Meld, ...], bits: int
) -> tuple[Wait, ...]:
    return tuple(
        Wait(kind, sum(kernels.item_fan(items).values()))
        for kind, items in kernels.waits(concealed, melds, bits).items()
    )


def _discards(kernels: Kernels, hand: Hand, bits: int, progress: bool) -> tuple[DiscardChoice, ...]:
    waiting = kernels.discards(hand.concealed, hand.melds, bits)
    after = kernels.discard_progress(hand.concealed, hand.melds) if progress else {}
    choices = []
    for kind in sorted({*hand.concealed}):
        waits: tuple[Wait, ...] = ()
        if kind in waiting:
            waits = _waits(kernels, _without(hand.concealed, kind, 1), hand.melds, bits)
        if progress:
            shanten, useful = after[kind]
            choices.append(DiscardChoice(kind, waits, shanten, tuple(kinds_in(useful))))
        else:
            choices.append(DiscardChoice(kind, waits))
    return tuple(choices)


def _kongs(kernels: Kernels, hand: Hand, bits: int) -> tuple[KongChoice, ...]:
    """Any four alike in hand, and any tile that fits a pong (rules page, "A turn")."""
    choices = []
    ponged = {meld.first: meld for meld in hand.melds if meld.kind is MeldKind.PONG}
    for kind in sorted({*hand.concealed}):
        if kind in ponged:
            laid = Meld(MeldKind.ADDED_KONG, (kind,) * 4)
            melds = tuple(laid if meld is ponged[kind] else meld for meld in hand.melds)
            rest = _without(hand.concealed, kind, 1)
        elif hand.concealed.count(kind) == 4:
            laid = Meld(MeldKind.CONCEALED_KONG, (kind,) * 4)
            melds = (*hand.melds, laid)
            rest = _without(hand.concealed, kind, 4)
        else:
            continue
        choices.append(KongChoice(kind, laid.kind, _waits(kernels, rest, melds, bits)))
    return tuple(choices)


def _without(tiles: tuple[Kind, ...], kind: Kind, copies: int) -> tuple[Kind, ...]:
    place = tiles.index(kind)
    return tiles[:place] + tiles[place + copies :]


def _reading(found: FoundReading, concealed: Sequence[Kind], melds: tuple[Meld, ...]) -> Reading:
    """A reading's integers as sets of tiles."""
    if found.shape == SEVEN_PAIRS:
        return Reading("seven_pairs", tuple((kind, kind) for kind in sorted(concealed)[::2]))
    pair = (found.pair, found.pair)
    if found.shape != STANDARD:
        singles = tuple((kind,) for kind in ORPHANS if kind != found.pair)
        return Reading("thirteen_orphans", (*singles, pair))
    triplets, sequences = found.triplets, found.sequences
    for meld in melds:
        if meld.kind is MeldKind.CHI:
            sequences -= 1 << _field(meld.first)
        else:
            triplets &= ~(1 << meld.first)
    sets = [(kind,) * 3 for kind in kinds_in(triplets)]
    for kind in range(25):
        if kind % 9 < 7:
            times = sequences >> _field(kind) & 7
            sets += [(kind, kind + 1, kind + 2)] * times
    return Reading("standard", (*(meld.tiles for meld in melds), *sorted(sets), pair))


def _field(lowest: Kind) -> int:
    """Where a sequence is counted: seven fields a suit, three bits each."""
    return 3 * (lowest - 2 * (lowest // 9))
