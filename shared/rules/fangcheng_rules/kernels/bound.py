"""The hot functions of one rule set, and the way to call them from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from threading import Lock
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..melds import Meld, MeldKind
from ..tiles import DRAGONS, Kind
from . import aims, hands, nearness, records, speed, tables, templates
from .facts import FLAT, NO_KIND, Hot
from .folders import digest_of_functions

NEVER = nearness.NO_WAY - 1
"""The legal shanten of a hand that cannot become a win any more, whatever comes."""

_CHI = hands.CHI << 6
_MELD_CODES = {
    MeldKind.CHI: _CHI,
    MeldKind.PONG: hands.PONG << 6,
    MeldKind.EXPOSED_KONG: hands.OPEN_KONG << 6,
    MeldKind.ADDED_KONG: hands.OPEN_KONG << 6,
    MeldKind.CONCEALED_KONG: hands.CONCEALED_KONG << 6,
    MeldKind.WHIRLWIND: hands.CHI << 6,
}


class FoundReading(NamedTuple):
    """A reading of a winning hand as integers (see `facts`), and its fan items."""

    shape: int
    pair: int
    triplets: int
    sequences: int
    runs: int
    items: int


class Counting(NamedTuple):
    """What `score_many` needs to know of a rule set's items."""

    moments: npt.NDArray[np.int64]
    """`records.MOMENT_WORDS` for each moment, of a closed winner and of an open one."""
    shares: npt.NDArray[np.int64]
    """By two items of the hand, four bits of fan each: what to add to the three words of counts."""
    flat: int
    """All bits of the items of the hand that stand for a fixed amount."""


class Kernels:
    """The hot functions of one rule set.

    Tiles are given sorted, with melds apart; nothing is checked (a `Hand` is). Masks have bit
    *k* for kind *k*. Fan items come as one integer; `item_fan` takes it apart.
    """

    def __init__(self, hot: Hot) -> None:
        self.hot = hot
        # Compiled code wants an array; interpreted, a memoryview is ten times quicker to read.
        self._table: Any = _words(tables.load())
        self._functions = _copies(hot)
        self._discards = self._functions["discards"]
        self._own_aims: Any = None
        # Most hands do not wait: what is written here, by several threads at once, nobody reads.
        self._unread = _zeros(34)

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
        return self.turn(concealed, melds, options)[1]

    def turn(
        self, concealed: Iterable[Kind], melds: Iterable[Meld], options: int = 0
    ) -> tuple[int, dict[Kind, int]]:
        """What fourteen tiles bring: `templates.WINS` and its like, and `discards`."""
        tiles, laid = bytes(concealed), melds_as_bytes(melds)
        mask: int = self._discards(self._table, tiles, laid, options, self._unread)
        ready = mask & templates.ALL_KINDS
        if not ready:
            return mask, {}
        out = _zeros(34)
        self._discards(self._table, tiles, laid, options, out)
        waits = _plain(out)
        return mask ^ ready, {kind: waits[kind] for kind in kinds_in(ready)}

    @property
    def _aims(self) -> Any:
        """The table of what the conditions ask; not read before it is asked for."""
        if self._own_aims is None:
            # Where nothing is needed it is never looked into.
            self._own_aims = _words(aims.load(self.hot.needs)) if self.hot.needs else self._table
        return self._own_aims

    def shanten(self, concealed: Iterable[Kind], melds: Iterable[Meld]) -> int:
        """Shanten of thirteen or fourteen tiles by shape alone; -1: a complete shape."""
        return self._shanten(concealed, melds, 0)

    def legal_shanten(self, concealed: Iterable[Kind], melds: Iterable[Meld]) -> int:
        """Shanten of thirteen or fourteen tiles under the conditions (`Hot.needs`).

        -1: a legal win; 0: a legal wait; `NEVER`: no tiles that may come make it a win.
        """
        return self._shanten(concealed, melds, self.hot.needs)

    def _shanten(self, concealed: Iterable[Kind], melds: Iterable[Meld], needs: int) -> int:
        found: int = nearness.shanten_of(
            self._table,
            self._aims if needs else self._table,
            bytes(concealed),
            melds_as_bytes(melds),
            self.hot.shapes,
            needs,
            _zeros(nearness.ROOM_WORDS),
        )
        return found

    def progress(self, concealed: Iterable[Kind], melds: Iterable[Meld]) -> tuple[int, int]:
        """Legal shanten of thirteen tiles, and the mask of the kinds that lower it."""
        found, _ = self._progress(bytes(concealed), melds)
        return (found & 15) - 1, found >> 4

    def discard_progress(
        self, concealed: Iterable[Kind], melds: Iterable[Meld]
    ) -> dict[Kind, tuple[int, int]]:
        """Of fourteen tiles: `progress` after each kind's discard."""
        tiles = bytes(concealed)
        _, found = self._progress(tiles, melds)
        return {kind: ((found[kind] & 15) - 1, found[kind] >> 4) for kind in sorted({*tiles})}

    def _progress(self, tiles: bytes, melds: Iterable[Meld]) -> tuple[int, list[int]]:
        out = _zeros(34)
        found = nearness.progress(
            self._table,
            self._aims,
            tiles,
            melds_as_bytes(melds),
            self.hot.shapes,
            self.hot.needs,
            _zeros(nearness.ROOM_WORDS),
            out,
        )
        return found, _plain(out)

    def check_many(self, hands: Any, limits: Any, sizes: Any, out: Any) -> None:
        """Of each record in `hands`: 13 or 14, or its status, negated (`records.status_of`).

        In `sizes`, which are 0 before; and each result is begun.
        """
        records.check_many(_laid_down(), _words(hands), _words(limits), _words(sizes), _words(out))

    def score_many(self, hands: Any, limits: Any, sizes: Any, counting: Counting, out: Any) -> None:
        """Of each record of fourteen tiles: whether it wins, and what counts then.

        A record is checked first where its size is 0.
        """
        self._functions["score_many"](
            self._table,
            _laid_down(),
            _words(hands),
            _words(limits),
            _words(sizes),
            _words(counting.moments),
            _words(counting.shares),
            counting.flat,
            _words(out),
        )

    def waits_of_many(self, hands: Any, sizes: Any, out: Any) -> None:
        """Of each record of thirteen tiles: the mask of its legal waits."""
        self._functions["waits_of_many"](
            self._table, _laid_down(), _words(hands), _words(sizes), _words(out)
        )

    def shanten_of_many(self, hands: Any, limits: Any, sizes: Any, out: Any) -> None:
        """Of each record, checked first where its size is 0: shanten by shape alone."""
        nearness.shanten_of_many(
            self._table,
            _laid_down(),
            _words(hands),
            _words(limits),
            _words(sizes),
            self.hot.shapes,
            _words(out),
        )

    def legal_shanten_of_many(self, hands: Any, sizes: Any, out: Any) -> None:
        """Of each record: shanten under the conditions; they are some."""
        nearness.legal_shanten_of_many(
            self._table,
            _laid_down(),
            self._aims,
            _words(hands),
            _words(sizes),
            self.hot.shapes,
            self.hot.needs,
            _zeros(nearness.ROOM_WORDS),
            _words(out),
        )

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
        tiles = meld.tiles
        if len(tiles) == 3 and tiles[0] != tiles[2]:
            laid.append(_CHI | tiles[0])  # a whirlwind of three too
            continue
        laid.append(_MELD_CODES[meld.kind] | tiles[0])
        if meld.kind is MeldKind.WHIRLWIND:
            added = list(meld.tiles)
            for dragon in DRAGONS:
                added.remove(dragon)
            laid += bytes(hands.ADDED_DRAGON + dragon - DRAGONS[0] for dragon in added)
    return bytes(laid)


def _copies(hot: Hot) -> dict[str, Callable[..., Any]]:
    """Copies of the templates in which the free names are this rule set's."""
    if len(hot.items) > 15:
        raise ValueError(f"{hot.id} has {len(hot.items)} fan items by the hand alone; 15 fit")
    given = {n: getattr(hot, n) or getattr(templates, n) for n in ("allows", "fan", "marks")}
    name = f"{hot.id}-{hot.shapes}-{hot.needs}-{digest_of_functions(*given.values())}"
    space = {
        **vars(templates),
        "SHAPES": hot.shapes,
        "USES_MARKS": hot.marks is not None,
        "NEEDS": hot.needs,
    }
    space |= {n: speed.inner(_copy(function, hot.id, None)) for n, function in given.items()}
    for how, template in templates.TEMPLATES:
        copy = _copy(template, hot.id, space)
        space[template.__name__] = speed.inner(copy) if how == "inner" else speed.entry(copy, name)
    return {f.__name__: space[f.__name__] for how, f in templates.TEMPLATES if how == "entry"}


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


@cache
def _laid_down() -> Any:
    """`records.meld_words`, made once."""
    return _words(records.meld_words())


def _words(array: Any) -> Any:
    """An array as the kernels of this process take it."""
    return array if speed.COMPILED else memoryview(array)


def read_only_words(array: Any) -> Any:
    """A view that cannot be written to: to numba another type, so that all that is read is one."""
    view = array.view(np.int64)
    view.flags.writeable = False
    return view


def _plain(out: Any) -> list[int]:
    words: list[int] = out.tolist() if speed.COMPILED else out
    return words
