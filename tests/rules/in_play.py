"""A seat and a table in the middle of a hand, for tests of a rule set's permitted calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fangcheng_rules.analysis import Wait
from fangcheng_rules.melds import Meld
from fangcheng_rules.ruleset import Options, WallCount


@dataclass
class Seat:
    """A seat in play, as far as the permitted calls look at it."""

    concealed: Sequence[int] = ()
    melds: Sequence[Meld] = ()
    flowers: Sequence[int] = ()
    waits: tuple[Wait, ...] = ()
    turn_claim: Meld | None = None
    last_discard: int | None = None
    passed: tuple[Wait, ...] = ()
    number: int = 0
    is_open: bool = False
    drawn: int | None = None
    declared: str = ""
    declared_open: bool = False
    spoilt: bool = False
    first_discard: int | None = None


@dataclass
class Table:
    """What they look at besides."""

    options: Options
    dealer: int = 0
    treasure: int | None = None
    wall_count: WallCount = field(default_factory=lambda: WallCount(144, 53, 0, 0))
