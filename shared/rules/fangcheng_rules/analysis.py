"""What a hand of 13 or 14 tiles is: its waits, its readings, what each discard would leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from .hand import Hand
from .kernels.bound import FoundReading, Kernels, bind, kinds_in
from .kernels.facts import SEVEN_PAIRS, STANDARD, total_fan
from .kernels.templates import ALL_DRAGONS, FOUR_ALIKE, WINS
from .melds import Meld, MeldKind
from .tiles import COPIES, DRAGONS, ORPHANS, PLAY_KINDS, Kind
from .values import value

if TYPE_CHECKING:
    from .ruleset import Options, RuleSet

Shape = Literal["standard", "seven_pairs", "thirteen_orphans"]


@value
class Wait:
    """A kind that completes a legal win."""

    tile: Kind
    least_fan: int
    """Fan that count against every loser when it is won on a discard, by the hand alone: nothing
    of the moment. 0 for a win of a fixed amount."""
    least_units: int = 0
    """Units that the discarder pays then; 0 where no discard is won with it (Jintan), and where the
    rule set does not tell (`RuleSet.worth`)."""


@value
class KongChoice:
    """What a hand is after a kong, before its replacement."""

    tile: Kind
    """The kind of the four, the tile added, or the lowest dragon of a whirlwind laid down."""
    kind: MeldKind
    """`CONCEALED_KONG`; `ADDED_KONG`, to a pong or, a dragon, to a whirlwind; `WHIRLWIND`, laid
    down; `EXPOSED_KONG`, of a discard."""
    waits: tuple[Wait, ...] = ()
    """Empty for a whirlwind laid down: fourteen tiles are left."""


@value
class DiscardChoice:
    """What fourteen tiles are after a discard."""

    tile: Kind
    waits: tuple[Wait, ...] = ()
    shanten: int | None = None
    """As in `Analysis`. None unless progress was asked for."""
    useful: tuple[Kind, ...] = ()
    """The kinds that lower the shanten; empty unless progress was asked for."""
    claim_kongs: tuple[KongChoice, ...] = ()
    """The exposed kongs that the thirteen could make of a discard, where they wait."""


@value
class Reading:
    """One way to read a winning hand."""

    shape: Shape
    sets: tuple[tuple[Kind, ...], ...]
    """Standard: melds first, then the concealed sets, the pair last. Seven pairs: seven sets of
    two, four alike being two of them. Thirteen orphans: twelve single tiles, the pair last."""


@value
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
    claim_kongs: tuple[KongChoice, ...] = ()
    """13 tiles that wait: the exposed kongs that they could make of a discard."""
    shanten: int | None = None
    """Under the rule set's conditions (`Hot.needs`): 0 has a legal wait, -1 wins; `NEVER` can win
    no more, whatever comes. None unless progress was asked for."""
    useful: tuple[Kind, ...] = ()
    """13 tiles: the kinds that lower the shanten; empty unless progress was asked for."""
    shape_shanten: int | None = None
    """By shape alone: 0 waits, -1 is complete. None unless progress was asked for."""


def analyze(
    rule_set: RuleSet,
    options: Options,
    hand: Hand,
    *,
    progress: bool = False,
    flowers: tuple[Kind, ...] = (),
) -> Analysis:
    """Analyse a hand of 13 or 14 tiles; with `progress`, shanten and useful tiles too.

    Legal waits are the kinds that complete a win by shape and conditions, whatever the moment,
    without a kind of which the seat holds all four (rules page, "What a win needs"). `flowers`
    are the seat's; they matter for what a wait is worth (`RuleSet.worth`).
    """
    return Analyzer(rule_set, options)(hand, progress=progress, flowers=flowers)


class Analyzer:
    """`analyze` under the options of one table: what follows from them is found once."""

    __slots__ = ("_bits", "_kernels", "_options", "_rule_set")

    def __init__(self, rule_set: RuleSet, options: Options) -> None:
        self._rule_set = rule_set
        self._options = options
        self._kernels = bind(rule_set.hot)
        self._bits = rule_set.hot.pack_options(options)

    def __call__(
        self, hand: Hand, progress: bool = False, flowers: tuple[Kind, ...] = ()
    ) -> Analysis:
        """Analyse a hand of 13 or 14 tiles."""
        concealed, melds, kernels = hand.concealed, hand.melds, self._kernels
        if hand.size == 14:
            # Most hands neither win nor wait nor hold four alike, and one look tells it.
            brings, waiting = kernels.turn(concealed, melds, self._bits)
            if not brings and not waiting and not progress:
                return Analysis(discards=_none_waiting(concealed))
        worth = _Worth(self._rule_set, self._options, kernels, self._bits, flowers)
        if hand.size == 13:
            waits = worth.waits(concealed, melds)
            claim_kongs = worth.claim_kongs(concealed, melds) if waits else ()
            if not progress:
                return Analysis(waits=waits, claim_kongs=claim_kongs)
            shanten, useful = kernels.progress(concealed, melds)
            return Analysis(
                waits=waits,
                claim_kongs=claim_kongs,
                shanten=shanten,
                shape_shanten=kernels.shanten(concealed, melds),
                useful=_played(self._rule_set, useful),
            )

        found = []
        if brings & WINS:
            found = winning_readings(self._rule_set, self._options, concealed, melds)
        return Analysis(
            wins=bool(found),
            readings=tuple(reading for reading, _ in found),
            items=tuple(found[0][1].items()) if found else (),
            discards=worth.discards(hand, waiting, progress),
            kongs=worth.kongs(hand) if brings & (FOUR_ALIKE | ALL_DRAGONS) else (),
            shanten=kernels.legal_shanten(concealed, melds) if progress else None,
            shape_shanten=kernels.shanten(concealed, melds) if progress else None,
        )


_NOT_WAITING = tuple(DiscardChoice(kind) for kind in range(PLAY_KINDS))
"""Discards that leave no wait; made once, since each hand has a dozen of them."""


def _none_waiting(concealed: tuple[Kind, ...]) -> tuple[DiscardChoice, ...]:
    # From a list and not as it goes, which would be slower.
    return tuple([_NOT_WAITING[kind] for kind in dict.fromkeys(concealed)])


@value
class _Worth:
    """The kernels of a rule set, and what its waits are worth with these options and flowers."""

    rule_set: RuleSet
    options: Options
    kernels: Kernels
    bits: int
    flowers: tuple[Kind, ...]

    def waits(self, concealed: tuple[Kind, ...], melds: tuple[Meld, ...]) -> tuple[Wait, ...]:
        """The legal waits of thirteen tiles."""
        found = self.kernels.waits(concealed, melds, self.bits)
        worth = self.rule_set.worth
        if worth is None or not found:
            return tuple(
                Wait(kind, sum(self.kernels.item_fan(items).values()))
                for kind, items in found.items()
            )
        hand = Hand(concealed, melds)
        return tuple(Wait(kind, *worth(self.options, hand, self.flowers, kind)) for kind in found)

    def discards(
        self, hand: Hand, waiting: Mapping[Kind, int], progress: bool
    ) -> tuple[DiscardChoice, ...]:
        """What fourteen tiles are after each discard; `waiting` are those that leave a wait."""
        concealed, melds = hand.concealed, hand.melds
        if not waiting and not progress:
            return _none_waiting(concealed)
        after = self.kernels.discard_progress(concealed, melds) if progress else {}
        choices = []
        for kind in dict.fromkeys(concealed):
            waits: tuple[Wait, ...] = ()
            claim_kongs: tuple[KongChoice, ...] = ()
            if kind in waiting:
                rest = _without(concealed, kind, 1)
                waits = self.waits(rest, melds)
                claim_kongs = self.claim_kongs(rest, melds)
            if progress:
                shanten, useful = after[kind]
                choices.append(
                    DiscardChoice(kind, waits, shanten, _played(self.rule_set, useful), claim_kongs)
                )
            else:
                choices.append(DiscardChoice(kind, waits, claim_kongs=claim_kongs))
        return tuple(choices)

    def claim_kongs(
        self, concealed: tuple[Kind, ...], melds: tuple[Meld, ...]
    ) -> tuple[KongChoice, ...]:
        """The exposed kongs that thirteen tiles could make of a discard."""
        choices = []
        for kind in sorted({*concealed}):
            # The fourth may lie in a chi of the seat's own; then nobody discards it.
            if concealed.count(kind) == 3 and not any(kind in meld.tiles for meld in melds):
                laid = Meld(MeldKind.EXPOSED_KONG, (kind,) * 4)
                waits = self.waits(_without(concealed, kind, 3), (*melds, laid))
                choices.append(KongChoice(kind, laid.kind, waits))
        return tuple(choices)

    def kongs(self, hand: Hand) -> tuple[KongChoice, ...]:
        """Any four alike in hand, any tile that fits a pong (rules page, "A turn").

        And, where the rule set has the whirlwind, the three dragons, and any dragon added to them.
        """
        concealed, melds = hand.concealed, hand.melds
        takers = {meld.first: meld for meld in melds if meld.kind is MeldKind.PONG}
        whirlwind = next((meld for meld in melds if meld.kind is MeldKind.WHIRLWIND), None)
        if whirlwind is not None:
            takers |= dict.fromkeys(DRAGONS, whirlwind)
        choices = []
        if self.rule_set.whirlwind and whirlwind is None and {*DRAGONS} <= {*concealed}:
            choices.append(KongChoice(DRAGONS[0], MeldKind.WHIRLWIND))
        before = None
        for place, kind in enumerate(concealed):  # sorted
            if kind == before:
                continue
            before = kind
            if kind in takers:
                taker = takers[kind]
                laid = tuple(meld.plus(kind) if meld is taker else meld for meld in melds)
                rest = _without(concealed, kind, 1)
                choices.append(KongChoice(kind, MeldKind.ADDED_KONG, self.waits(rest, laid)))
            elif concealed[place + COPIES - 1 : place + COPIES] == (kind,):
                laid = (*melds, Meld(MeldKind.CONCEALED_KONG, (kind,) * COPIES))
                rest = _without(concealed, kind, COPIES)
                choices.append(KongChoice(kind, MeldKind.CONCEALED_KONG, self.waits(rest, laid)))
        return tuple(choices)


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


def _played(rule_set: RuleSet, kinds: int) -> tuple[Kind, ...]:
    """The kinds of a mask that the rule set has (a wind that is not there helps nobody)."""
    return kinds_in(kinds & rule_set.play_mask)


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
    triplets, sequences, runs = found.triplets, found.sequences, found.runs
    for meld in melds:
        if meld.kind is MeldKind.CHI:
            sequences -= 1 << _field(meld.first)
        elif meld.kind is MeldKind.WHIRLWIND:
            runs -= 1
        else:
            triplets &= ~(1 << meld.first)
    sets: list[tuple[Kind, ...]] = [(kind,) * 3 for kind in kinds_in(triplets)]
    sets += [tuple(DRAGONS)] * runs
    for kind in range(25):
        if kind % 9 < 7:
            times = sequences >> _field(kind) & 7
            sets += [(kind, kind + 1, kind + 2)] * times
    return Reading("standard", (*(meld.tiles for meld in melds), *sorted(sets), pair))


def _field(lowest: Kind) -> int:
    """Where a sequence is counted: seven fields a suit, three bits each."""
    return 3 * (lowest - 2 * (lowest // 9))
