"""What a rule set states.

A rule set is one value of `RuleSet`, made in one file of `rulesets/`, listed in `RULE_SETS`.
It says only what is its own: tiles, end of the wall, permitted calls, conditions of a win, fan,
payments, dealer, options, titles. `round.py` plays any of them, `scoring.py` settles any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from .errors import InvalidHand, InvalidOption
from .kernels.facts import Hot
from .melds import Meld, MeldKind
from .tiles import PLAY_KINDS, is_flower, name
from .values import value

if TYPE_CHECKING:
    from .analysis import KongChoice, Wait
    from .hand import Hand
    from .moments import Moment
    from .scoring import FinishedHand, Score

OptionValue = bool | int | str
Options = Mapping[str, OptionValue]
"""Every option of the rule set with its value, as `RuleSet.complete` returns it."""

WinBy = Literal["self_draw", "discard", "rob_kong"]
ReadyCheck = Literal["never", "unless_drawn", "always"]
"""When the seats are asked between two hands whether they are ready for the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpec:
    """One option of a table: its default tells its type, the bounds what else it may be."""

    id: str
    name_zh: str
    meaning: str
    """What it changes, in one sentence."""
    default: OptionValue
    minimum: int = 0
    """Least value of an integer option."""
    maximum: int = 0
    """Greatest value of an integer option."""
    choices: tuple[str, ...] = ()
    """What a text option may be."""

    def check(self, value: object) -> OptionValue:
        """The value, if this option may have it; else InvalidOption, naming the option."""
        where = f"options.{self.id}"
        if isinstance(self.default, bool):
            if isinstance(value, bool):
                return value
            raise InvalidOption("INVALID_OPTION", f"{self.id} is true or false", where)
        if isinstance(self.default, int):
            # True and False are whole numbers to Python, but not to us.
            if type(value) is int and self.minimum <= value <= self.maximum:
                return value
            raise InvalidOption(
                "INVALID_OPTION",
                f"{self.id} is a whole number from {self.minimum} to {self.maximum}",
                where,
            )
        if isinstance(value, str) and value in self.choices:
            return value
        raise InvalidOption(
            "INVALID_OPTION", f"{self.id} is one of {', '.join(self.choices)}", where
        )


@dataclass(frozen=True, slots=True)
class FanItemSpec:
    """One line of a rule page's fan table."""

    id: str
    name_zh: str
    name_en: str
    fan: int
    """Fan for each time the item counts; 0 for a flat amount."""
    whose: Literal["winner", "loser", "both"]
    """Counted against every loser, against one loser for its own state, or either way."""
    meaning: str
    """When it counts, in one sentence."""
    excludes: tuple[str, ...] = ()
    """Items that are not counted beside it."""

    @property
    def is_flat(self) -> bool:
        """The item stands for a fixed amount instead of fan."""
        return self.fan == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a seat can declare with a discard, or a kong, that leaves it waiting."""

    id: str
    name_zh: str
    name_en: str
    meaning: str
    """What it binds the seat to and brings, in one sentence."""
    worth_from: int | None = 0
    """For bots: how many tiles to win on must be left for it to be worth declaring; None: never."""


@dataclass(frozen=True, slots=True)
class Title:
    """A rank title and the points from which it is held (None: below every other)."""

    from_points: int | None
    name_zh: str
    name_en: str


@value
class WallCount:
    """How far a wall has been taken; all that an end-of-wall rule may look at."""

    size: int
    """Tiles in the wall before the deal."""
    front: int
    """Index of the next tile drawn from the front."""
    replacements: int
    """Tiles taken from the back, for kongs and for flowers."""
    kongs: int
    """Kongs made and not robbed."""
    turned: tuple[int, ...] = ()
    """Places of the tiles turned up on the wall (the treasures), newest last. None of them is
    ever drawn; those that were taken from the back when one was turned up lie behind it."""
    due: int = 0
    """1 while a kong lies whose replacement has not been drawn; else 0."""

    @property
    def left(self) -> int:
        """Tiles that nobody has taken."""
        return self.size - self.front - self.replacements


def last_tile_first(wall: WallCount) -> int:
    """Index of the next replacement: the last tile of the list first (rules/README, the wall)."""
    return wall.size - 1 - wall.replacements


@dataclass(frozen=True, slots=True, kw_only=True)
class WallPolicy:
    """The end of the wall."""

    drawable: Callable[[WallCount], int]
    """How many tiles can still be drawn, those that will be dealt out included."""
    may_kong: Callable[[WallCount], bool]
    """Whether a kong can be made now, its replacement included. A flower is replaced while a tile
    is drawable."""
    dealt_out: int = 0
    """How many of the last drawable tiles are dealt out, one to each seat (分张): 4 or 0."""
    replacement: Callable[[WallCount], int] = last_tile_first


class SeatInPlay(Protocol):
    """What permitted calls may look at: one seat in the middle of a hand."""

    @property
    def number(self) -> int:
        """Which seat it is, 0 to 3."""

    @property
    def concealed(self) -> Sequence[int]:
        """Concealed tiles, sorted, the drawn one among them."""

    @property
    def melds(self) -> Sequence[Meld]:
        """Melds in the order in which they were laid down."""

    @property
    def flowers(self) -> Sequence[int]:
        """Flowers in the order in which they were laid down."""

    @property
    def is_open(self) -> bool:
        """开门: a chi, a pong, an exposed or an added kong lies there."""

    @property
    def drawn(self) -> int | None:
        """The tile just drawn, in the seat's own turn after a draw."""

    @property
    def waits(self) -> tuple[Wait, ...]:
        """Legal waits of the thirteen tiles that the seat keeps between its turns."""

    @property
    def declared(self) -> str:
        """'' or what was declared ('ting')."""

    @property
    def declared_open(self) -> bool:
        """The seat was open when it declared."""

    @property
    def spoilt(self) -> bool:
        """A kong spoilt the declared wait: dead for the hand."""

    @property
    def first_discard(self) -> int | None:
        """Its first discard in this hand; None: it has not discarded yet."""

    @property
    def turn_claim(self) -> Meld | None:
        """The claim with which its turn began, until it acts anew; None after a draw.

        A turn goes on through its kongs and their replacements.
        """

    @property
    def last_discard(self) -> int | None:
        """The kind that it discarded last; None as soon as it acts (draw, chi, pong, kong)."""

    @property
    def passed(self) -> tuple[Wait, ...]:
        """Waits that others discarded since it last acted, and on which it did not win."""


class TableInPlay(Protocol):
    """What permitted calls may look at besides the seat."""

    @property
    def options(self) -> Options:
        """The table's options, complete."""

    @property
    def dealer(self) -> int:
        """The dealer's seat."""

    @property
    def treasure(self) -> int | None:
        """The kind of the treasure, if there is one now."""

    @property
    def wall_count(self) -> WallCount:
        """How far the wall has been taken."""


def may_always(table: TableInPlay, seat: SeatInPlay, tile: int) -> bool:
    """Whatever it is."""
    return True


def _never_must(table: TableInPlay, seat: SeatInPlay, kong: KongChoice) -> bool:
    return False


def _all_counted(by_hand: Mapping[str, int], moment: Moment, is_open: bool) -> dict[str, int]:
    return dict(by_hand)


def _no(options: Options) -> bool:
    return False


def _open_ended(options: Options) -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The permitted calls. Every function takes the table and the seat that would call."""

    may_claim: Callable[[TableInPlay, SeatInPlay, Meld, tuple[Wait, ...]], bool]
    """Chi, pong or exposed kong of a discard: the meld it would make (`claimed` and `source` are
    filled in), and the waits that an exposed kong would leave (chi and pong: none are given; nor
    where the seat has none as it is)."""
    may_kong: Callable[[TableInPlay, SeatInPlay, KongChoice], bool]
    """A kong in the seat's own turn, with the waits that it leaves. That a replacement is there
    is for `WallPolicy.may_kong` to say; a whirlwind laid down needs none."""
    may_win: Callable[[TableInPlay, SeatInPlay, int, WinBy], bool]
    """No lock of the seat's own forbids it to win on this tile, one of its waits, in this way."""
    declarations: Callable[
        [TableInPlay, SeatInPlay, tuple[Wait, ...], MeldKind | None], tuple[str, ...]
    ]
    """What may be declared with a discard (None) or a kong that leaves these waits. A seat that
    has declared is locked: it claims nothing that `may_claim` does not allow, and discards what
    it draws unless it wins or kongs."""
    spoils: Callable[[tuple[Wait, ...]], bool]
    """A kong of a declared seat that leaves these waits makes its wait dead."""
    may_discard: Callable[[TableInPlay, SeatInPlay, int], bool] = may_always
    """This kind may be discarded now (Jintan's swap chi); a seat that could discard nothing may
    discard anything."""
    must_kong: Callable[[TableInPlay, SeatInPlay, KongChoice], bool] = _never_must
    """This kong, permitted, must be made before the seat discards, unless it wins."""
    kongs_after_claim: bool = False
    """Kongs of one's own may follow a chi or pong in the same turn (Jintan)."""
    several_winners: Callable[[Options], bool] = _no
    """All that claim one tile win it; otherwise the nearest seat alone (截胡)."""
    false_wins: Callable[[Options], bool] = _no
    """A win may be called without having one (诈胡), once in each decision; it is paid for."""
    shown: tuple[str, ...] = ()
    """The declarations that show the seat's concealed tiles to all (明楼)."""


def counted_round(dice: tuple[int, ...]) -> int:
    """The seat at which the dice's sum ends, counted round from seat 0, which is one."""
    return (sum(dice) - 1) % 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleSet:
    """A rule set, whole. Two rule sets are the same when they are the same object."""

    id: str
    revision: int
    """Raised whenever a hand would be played or scored differently."""
    name_zh: str
    name_en: str
    wall_tiles: tuple[int, ...]
    """Every tile of the wall, unshuffled."""
    hand_dice: int
    """Dice rolled and shown before each deal."""
    first_dealer_dice: int
    """Dice rolled for the first dealer; 0: it is seat 0."""
    options: tuple[OptionSpec, ...]
    fan_items: tuple[FanItemSpec, ...]
    wall: WallPolicy
    calls: Calls
    hot: Hot
    """Shapes, conditions of a win, and the winner's fan by the hand alone."""
    score: Callable[[Options, FinishedHand], Score]
    """Settle a finished hand that has been checked; raise IllegalWin for what cannot be."""
    next_dealer: Callable[[FinishedHand], int | None]
    """Dealer of the next hand; None: a new first dealer."""
    counted: Callable[[Mapping[str, int], Moment, bool], dict[str, int]] = _all_counted
    """All of a winner's items that count against every loser, each with its fan: those of its hand
    read in one way, those of the moment, none that another excludes. The last argument tells
    whether the winner is open. 0 stands for a fixed amount."""
    declares: tuple[Declaration, ...] = ()
    """Everything that a seat of this rule set can have declared."""
    whirlwind: bool = False
    """旋风杠: the three dragons can be laid down as a kong, and more dragons be added to it."""
    turn_up: Callable[[Options, WallCount], int | None] | None = None
    """Place in the wall of the tile that is turned up next, the first one after the deal; its
    kind is the treasure (宝牌). Asked again once the three other copies are all face up; None
    then: there is no treasure any more. A seat whose thirteen tiles wait wins when it draws the
    treasure (摸宝), but not as dealt. No function: no treasure."""
    flowers_win: int = 0
    """A seat that lays down all the flowers, so many, wins at once (`EightFlowers`); 0: none."""
    worth: Callable[[Options, Hand, tuple[int, ...], int], tuple[int, int]] | None = None
    """Fan and units that a discarder pays for this wait of thirteen tiles, with these flowers, by
    the hand alone (`Wait.least_fan`, `Wait.least_units`). Without it, the fan of the kernels."""
    table_length: Callable[[Options], int] = _open_ended
    """How often the deal passes on to another seat before the table ends (圈, 局); 0: open."""
    first_dealer: Callable[[tuple[int, ...]], int] = counted_round
    """Seat of the first dealer from its own dice."""
    ready_check: ReadyCheck = "never"
    starts_over: bool = False
    """When a player leaves between two hands, another may have the seat: the table starts over with
    a new first dealer, and nothing of the hands before counts any more."""
    piao_choices: Callable[[Options], tuple[int, ...]] = lambda options: ()
    """Amounts a seat may choose before the deal, 0 first; empty: nothing is asked."""
    titles: tuple[Title, ...] = ()
    items: Mapping[str, FanItemSpec] = field(init=False)
    """`fan_items` by id."""
    declarations: Mapping[str, Declaration] = field(init=False)
    """`declares` by id."""
    kinds: frozenset[int] = field(init=False)
    """The kinds among `wall_tiles`."""
    play_mask: int = field(init=False)
    """Those of them that are played, as a mask: bit *k* for kind *k*."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", frozenset(self.wall_tiles))
        mask = sum(1 << kind for kind in self.kinds if kind < PLAY_KINDS)
        object.__setattr__(self, "play_mask", mask)
        object.__setattr__(self, "items", {item.id: item for item in self.fan_items})
        object.__setattr__(self, "declarations", {one.id: one for one in self.declares})

    def __deepcopy__(self, memo: object) -> RuleSet:
        # A copied hand of play is still played by the same rules.
        return self

    def complete(self, given: Mapping[str, object] | None = None) -> dict[str, OptionValue]:
        """All options with their values: what is given, and defaults for the rest.

        Raises InvalidOption for an option that this rule set does not have or a value that it
        cannot take; its field is `options.<id>`.
        """
        values = {spec.id: spec.default for spec in self.options}
        specs = {spec.id: spec for spec in self.options}
        for key, wanted in (given or {}).items():
            if key not in specs:
                raise InvalidOption(
                    "INVALID_OPTION", f"{self.id} has no option {key}", f"options.{key}"
                )
            values[key] = specs[key].check(wanted)
        return values

    def check_tiles(self, hand: Hand, flowers: tuple[int, ...] = ()) -> None:
        """Raise InvalidHand for tiles or melds that are not played under this rule set."""
        for tile in hand.concealed:
            if tile not in self.kinds:
                raise InvalidHand("TILE_NOT_PLAYED", f"{self.id} has no {name(tile)}", "concealed")
        for number, meld in enumerate(hand.melds):
            if meld.kind is MeldKind.WHIRLWIND and not self.whirlwind:
                raise InvalidHand("INVALID_MELD", f"{self.id} has no whirlwind", f"melds[{number}]")
            if not self.kinds.issuperset(meld.tiles):
                raise InvalidHand(
                    "TILE_NOT_PLAYED", f"{self.id} has no {name(meld.first)}", f"melds[{number}]"
                )
        for number, tile in enumerate(flowers):
            if not is_flower(tile) or tile not in self.kinds:
                raise InvalidHand(
                    "TILE_NOT_PLAYED", f"{self.id} has no such flower", f"flowers[{number}]"
                )


def first_dealer(rule_set: RuleSet, dice: tuple[int, ...]) -> int:
    """Seat of the first dealer from its own dice; seat 0 where none are rolled."""
    return rule_set.first_dealer(dice) if rule_set.first_dealer_dice else 0
