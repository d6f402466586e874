"""The hot functions of one rule set, and the way to call them from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..melds import Meld, MeldKind
from ..tiles import DRAGONS, Kind
from . import aims, nearness, speed, tables, templates
from .facts import FLAT, NO_KIND, Hot

_SPEEDS: dict[str, Callable[[Any], Any]] = {
    "inner": speed.inner,
    "apart": speed.apart,
    "entry": speed.entry,
}

NEVER = nearness.NO_WAY - 1
"""The legal shanten of a hand that cannot become a win any more, whatever comes."""

_MELD_CODES = {
    MeldKind.CHI: templates.CHI << 6,
    MeldKind.PONG: templates.PONG << 6,
    MeldKind.EXPOSED_KONG: templates.OPEN_KONG << 6,
    MeldKind.ADDED_KONG: templates.OPEN_KONG << 6,
    MeldKind.CONCEALED_KONG: templates.CONCEALED_KONG << 6,
    MeldKind.WHIRLWIND: templates.CHI << 6,
}


class FoundReading(NamedTuple):
    """A reading of a winning hand as integers (see `facts`), and its fan items."""

    shape: int
    pair: int
    triplets: int
    sequences: int
    runs: int
    items: int


class Kernels:
    """The hot functions of one rule set.

    Tiles are given sorted, with melds apart; nothing is checked (a `Hand` is). Masks have bit
    *k* for kind *k*. Fan items come as one integer; `item_fan` takes it apart.
    """

    def __init__(self, hot: Hot) -> None:
        self.hot = hot
        table = tables.load()
        # Compiled code wants an array; interpreted, a memoryview is ten times quicker to read.
        self._table: Any = table if speed.COMPILED else table.data
        self._functions = _copies(hot, tables.layout(table))
        self._own_aims: Any = None

    def readings(
        self,
        concealed: Iterable[Kind],
        melds: Iterable[Meld],
        won: Kind | None = None,
        *,
        claimed: bool = False,
        options: int = 0,
    ) -> list[FoundReading]:
        """The readings of fourteen tiles that win; none: no win.

        `won` is the winning tile, among the concealed ones; `claimed` if another discarded it.
        """
        out = _zeros(templates.READING_WORDS * templates.MOST_READINGS)
        found = self._functions["readings"](
            self._table,
            bytes(concealed),
            melds_as_bytes(melds),
            NO_KIND if won is None else won,
            int(claimed),
            options,
            out,
        )
        if not found:
            return []
        words = _plain(out)
        size = templates.READING_WORDS
        return [FoundReading(*words[size * i : size * (i + 1)]) for i in range(found)]

    def best(
        self,
        concealed: Iterable[Kind],
        melds: Iterable[Meld],
        won: Kind | None = None,
        *,
        claimed: bool = False,
        options: int = 0,
    ) -> int | None:
        """The fan items of the reading that is worth most by the hand alone; None: no win."""
        won_kind = NO_KIND if won is None else won
        tiles, laid = bytes(concealed), melds_as_bytes(melds)
        items: int = self._functions["best"](
            self._table, tiles, laid, won_kind, int(claimed), options
        )
        return None if items < 0 else items

    def waits(
        self, concealed: Iterable[Kind], melds: Iterable[Meld], options: int = 0
    ) -> dict[Kind, int]:
        """The legal waits of thirteen tiles, each with its fan items on a discard."""
        out = _zeros(34)
        mask = self._functions["waits"](
            self._table, bytes(concealed), melds_as_bytes(melds), options, out
        )
        if not mask:
            return {}
        items = _plain(out)
        return {kind: items[kind] for kind in kinds_in(mask)}

    def discards(
        self, concealed: Iterable[Kind], melds: Iterable[Meld], options: int = 0
    ) -> dict[Kind, int]:
        """The discards that leave fourteen tiles waiting, each with the mask of its waits."""
        out = _zeros(34)
        mask = self._functions["discards"](
            self._table, bytes(concealed), melds_as_bytes(melds), options, out
        )
        if not mask:
            return {}
        waits = _plain(out)
        return {kind: waits[kind] for kind in kinds_in(mask)}

    @property
    def _aims(self) -> Any:
        """The table of what the conditions ask; not read before it is asked for."""
        if self._own_aims is None:
            if self.hot.needs:
                table = aims.load(self.hot.needs)
                self._own_aims = table if speed.COMPILED else table.data
            else:
                self._own_aims = self._table  # never looked into
        return self._own_aims

    def shanten(self, concealed: Iterable[Kind], melds: Iterable[Meld]) -> int:
        """Shanten of thirteen or fourteen tiles by shape alone; -1: a complete shape."""
        found: int = self._functions["shanten_of"](
            self._table, bytes(concealed), melds_as_bytes(melds)
        )
        return found

    def legal_shanten(self, concealed: Iterable[Kind], melds: Iterable[Meld]) -> int:
        """Shanten of thirteen or fourteen tiles under the conditions (`Hot.needs`).

        -1: a legal win; 0: a legal wait; `NEVER`: no tiles that may come make it a win.
        """
        found: int = self._functions["legal_shanten"](
            self._table,
            self._aims,
            bytes(concealed),
            melds_as_bytes(melds),
            _zeros(nearness.ROOM_WORDS),
        )
        return found

    def progress(self, concealed: Iterable[Kind], melds: Iterable[Meld]) -> tuple[int, int]:
        """Legal shanten of thirteen tiles, and the mask of the kinds that lower it."""
        found = self._functions["progress"](
            self._table,
            self._aims,
            bytes(concealed),
            melds_as_bytes(melds),
            _zeros(nearness.ROOM_WORDS),
        )
        return (found & 15) - 1, found >> 4

    def discard_progress(
        self, concealed: Iterable[Kind], melds: Iterable[Meld]
    ) -> dict[Kind, tuple[int, int]]:
        """Of fourteen tiles: `progress` after each kind's discard."""
        out = _zeros(34)
        tiles = bytes(concealed)
        room = _zeros(nearness.ROOM_WORDS)
        self._functions["discard_progress"](
            self._table, self._aims, tiles, melds_as_bytes(melds), room, out
        )
        found = _plain(out)
        return {kind: ((found[kind] & 15) - 1, found[kind] >> 4) for kind in sorted({*tiles})}

    def warm_up(self) -> None:
        """Compile everything, or fetch it from disk, before the first hand that counts."""
        thirteen = bytes([0, 0, 0, *range(1, 8), 8, 8, 8])
        fourteen = bytes([0, *thirteen])
        self.readings(fourteen, ())
        self.best(fourteen, ())
        self.waits(thirteen, ())
        self.discards(fourteen, ())
        self.shanten(thirteen, ())
        self.legal_shanten(thirteen, ())
        self.progress(thirteen, ())
        self.discard_progress(fourteen, ())

    def item_fan(self, items: int) -> dict[str, int]:
        """Fan by item, those that count; 0 for an item that stands for a fixed amount."""
        counted = {}
        for place, item in enumerate(self.hot.items):
            fan = items >> (4 * place) & 15
            if fan:
                counted[item] = 0 if fan == FLAT else fan
        return counted


_bound: dict[str, Kernels] = {}
_binding = Lock()


def bind(hot: Hot) -> Kernels:
    """The kernels of a rule set, made when first asked for.

    Raises `ValueError` for another rule set with an id that has been bound: on disk the one
    would load the machine code of the other.
    """
    kernels = _bound.get(hot.id)
    if kernels is None:
        with _binding:
            kernels = _bound.get(hot.id) or _bound.setdefault(hot.id, Kernels(hot))
    if kernels.hot is not hot:
        raise ValueError(f"two rule sets with the id {hot.id}")
    return kernels


_TWELVE = (1 << 12) - 1
_KINDS_OF_TWELVE: list[tuple[Kind, ...]] = [()]
"""The kinds of each mask of the first twelve."""
for _bit in range(12):
    _KINDS_OF_TWELVE += [(*kinds, _bit) for kinds in _KINDS_OF_TWELVE]
_KINDS_OF_NEXT = [tuple(kind + 12 for kind in kinds) for kinds in _KINDS_OF_TWELVE]
_KINDS_OF_LAST = [tuple(kind + 24 for kind in kinds) for kinds in _KINDS_OF_TWELVE]


def kinds_in(mask: int) -> tuple[Kind, ...]:
    """The kinds of a mask, ascending."""
    return (
        _KINDS_OF_TWELVE[mask & _TWELVE]
        + _KINDS_OF_NEXT[mask >> 12 & _TWELVE]
        + _KINDS_OF_LAST[mask >> 24]
    )


def melds_as_bytes(melds: Iterable[Meld]) -> bytes:
    """A byte for each meld: how it was laid down, and its lowest tile.

    A whirlwind kong's is followed by one for each dragon added to it.
    """
    if not melds:
        return b""
    laid = bytearray()
    for meld in melds:
        laid.append(_MELD_CODES[meld.kind] | meld.first)
        if meld.kind is MeldKind.WHIRLWIND:
            added = list(meld.tiles)
            for dragon in DRAGONS:
                added.remove(dragon)
            laid += bytes(templates.ADDED_DRAGON + dragon - DRAGONS[0] for dragon in added)
    return bytes(laid)


def _copies(hot: Hot, places: tables.Layout) -> dict[str, Callable[..., Any]]:
    """Copies of the templates in which the free names are this rule set's."""
    if len(hot.items) > 15:
        raise ValueError(f"{hot.id} has {len(hot.items)} fan items by the hand alone; 15 fit")
    space = {**vars(templates), **vars(nearness), **places._asdict()}
    space |= {"SHAPES": hot.shapes, "NEEDS": hot.needs, "USES_MARKS": hot.marks is not None}
    given = {n: getattr(hot, n) or getattr(templates, n) for n in ("allows", "fan", "marks")}
    kept_as = hot.id + _digest_beyond(given.values())
    for name, function in given.items():
        space[name] = speed.inner(_copy(function, kept_as, None))
    for how, template in templates.TEMPLATES:
        space[template.__name__] = _SPEEDS[how](_copy(template, kept_as, space))
    return {f.__name__: space[f.__name__] for how, f in templates.TEMPLATES if how == "entry"}


def _digest_beyond(functions: Iterable[Any]) -> str:
    """What tells the sources of a rule set of another package apart; '' for one of this package.

    The folder of machine code is named after this package's sources alone.
    """
    files = {Path(function.__code__.co_filename) for function in functions}
    package = Path(__file__).parent.parent
    beyond = sorted(f for f in files if f.is_file() and not f.is_relative_to(package))
    return f"-{speed.digest_of(*beyond)}" if beyond else ""


def _copy(function: Any, rule_set: str, space: dict[str, Any] | None) -> Callable[..., Any]:
    copy = FunctionType(
        function.__code__,
        function.__globals__ if space is None else space,
        function.__name__,
    )
    # The name under which machine code is kept; the sets' must differ.
    copy.__qualname__ = f"{function.__name__}-{rule_set}"
    return copy


def _zeros(size: int) -> Any:
    return np.zeros(size, np.int64) if speed.COMPILED else [0] * size


def _plain(out: Any) -> list[int]:
    words: list[int] = out.tolist() if speed.COMPILED else out
    return words
