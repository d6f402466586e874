"""The language of the game on the screen: Chinese or English, each text beside its twin."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fangcheng.rules.v1 import rules_pb2

CHINESE, ENGLISH = "zh", "en"
LANGUAGES = (CHINESE, ENGLISH)

_DIGITS = "一二三四五六七八九"
_SUITS = "万饼条"
_HONOURS = ("东", "南", "西", "北", "白", "发", "中")
_FLOWERS = ("春", "夏", "秋", "冬", "梅", "兰", "竹", "菊")
_HONOURS_EN = ("E", "S", "W", "N", "Wh", "Gr", "Rd")
_SPOKEN_EN = ("East", "South", "West", "North", "White", "Green", "Red")
_WINDS_EN = ("E", "S", "W", "N")


@dataclass(frozen=True, slots=True)
class Tongue:
    """Says a thing in the player's language: `say("碰", "pong")`."""

    chinese: bool = False

    def __call__(self, zh: str, en: str) -> str:
        """The one of two texts that the player reads."""
        return zh if self.chinese and zh else en

    @property
    def other(self) -> Tongue:
        """The other language."""
        return Tongue(not self.chinese)

    def mark(self, tile: int) -> str:
        """A tile as it stands in a river, at most three columns: `3万`, `东`, `3m`, `Gr`."""
        suit, rank = divmod(tile, 10)
        if suit <= 3:
            return f"{rank}{_SUITS[suit - 1]}" if self.chinese else f"{rank}{'mps'[suit - 1]}"
        if suit == 4:
            return self(_HONOURS[rank - 1], _HONOURS_EN[rank - 1])
        return self(_FLOWERS[rank - 1], f"{rank}f")

    def spoken(self, tile: int) -> str:
        """A tile as a player names it: `三万`, `红中`; `3m`, `Red`."""
        suit, rank = divmod(tile, 10)
        if not self.chinese:
            return _SPOKEN_EN[rank - 1] if suit == 4 else self.mark(tile)
        if suit <= 3:
            return f"{_DIGITS[rank - 1]}{_SUITS[suit - 1]}"
        return "".join(self.faces(tile)).strip() if suit == 4 else self.mark(tile)

    def faces(self, tile: int) -> tuple[str, str]:
        """The two lines on a drawn tile: what it is called, and its sign."""
        suit, rank = divmod(tile, 10)
        if suit <= 3:
            if self.chinese:
                return _DIGITS[rank - 1], _SUITS[suit - 1]
            return self.mark(tile), ("万", "●", "║")[suit - 1]
        if suit == 4:
            if self.chinese:
                return (
                    (_HONOURS[rank - 1], "风")
                    if rank <= 4
                    else (("白", "板"), ("发", "财"), ("红", "中"))[rank - 5]
                )
            return _HONOURS_EN[rank - 1], _HONOURS[rank - 1]
        return (_FLOWERS[rank - 1], "花") if self.chinese else (f"{rank}f", _FLOWERS[rank - 1])

    def list(self, tiles: Iterable[int]) -> str:
        """Tiles in a row, neighbours of a suit together: `345万 东`, `345m E`."""
        groups: list[list[int]] = []
        for tile in tiles:
            if groups and tile // 10 == groups[-1][-1] // 10 <= 3:
                groups[-1].append(tile)
            else:
                groups.append([tile])
        return " ".join(
            "".join(str(tile % 10) for tile in group[:-1]) + self.mark(group[-1])
            for group in groups
        )

    def wind(self, seat: int, dealer: int) -> str:
        """A seat's wind in the hand; the dealer is East."""
        number = (seat - dealer) % 4
        return self(_HONOURS[number], _WINDS_EN[number])

    def signed(self, amount: int) -> str:
        """An amount with its sign: `+1,240`, `−80`, `0`."""
        if amount == 0:
            return "0"
        return f"{'+' if amount > 0 else '−'}{abs(amount):,}"

    def item(self, item: rules_pb2.FanItem) -> str:
        """A fan item: `清一色 8`, `four of a suit tile ×2 2`."""
        times = f" ×{item.count}" if item.count > 1 else ""
        fan = f" {item.fan}" if item.fan else ""
        return f"{self(item.name_zh, item.name_en)}{times}{fan}"


def tongue_of(language: str | None, environment: Mapping[str, str] = os.environ) -> Tongue:
    """The tongue of a language, or of the terminal's locale where none is named."""
    if language is not None:
        return Tongue(language == CHINESE)
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return Tongue(locale.lower().startswith("zh"))
