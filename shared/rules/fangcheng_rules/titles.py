"""Rank titles by rating points: most are named after tiles, from the white dragon up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .ruleset import Title

NAMES_EN: Final = {
    "白板": "White Dragon",
    "一万": "One of Characters",
    "二万": "Two of Characters",
    "三万": "Three of Characters",
    "四万": "Four of Characters",
    "五万": "Five of Characters",
    "六万": "Six of Characters",
    "七万": "Seven of Characters",
    "八万": "Eight of Characters",
    "九万": "Nine of Characters",
    "东风": "East Wind",
    "西风": "West Wind",
    "南风": "South Wind",
    "北风": "North Wind",
    "红中": "Red Dragon",
    "发财": "Green Dragon",
    "雀神": "Sparrow God",
}
"""Every title, in Chinese and English."""


def titles_from(lowest: str, from_points: Mapping[str, int]) -> tuple[Title, ...]:
    """Titles by the points from which each is held; the lowest is held below all of them."""
    rows: list[tuple[str, int | None]] = [(lowest, None), *from_points.items()]
    return tuple(Title(points, name, NAMES_EN[name]) for name, points in rows)


def titles_up_to(up_to_points: Mapping[str, int], highest: str) -> tuple[Title, ...]:
    """Titles by the most points with which each is held; the highest is held above all of them."""
    names = [*up_to_points, highest]
    froms = [None, *(points + 1 for points in up_to_points.values())]
    return tuple(
        Title(points, name, NAMES_EN[name]) for points, name in zip(froms, names, strict=True)
    )
