"""The Chinese characters that the console shows, as a font for machines that have none.

In it are the characters of every text that we show (dictionaries of the pages, names of the rule
sets) and those of GB 2312's first level, so that what people write (names, reasons) can be read.
"""

from __future__ import annotations

import io
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "services" / "console" / "fangcheng_console" / "static"
RULES = ROOT / "shared" / "rules" / "fangcheng_rules"
FONT = "NotoSansCJK-Regular.ttc"
FACE = "Noto Sans CJK SC"
OURS = STATIC / "fonts" / "noto-sans-sc.woff2"

_CHINESE = range(0x2E80, 0x10000)
"""What comes before is in every font; what comes after are pictures."""


def shown() -> dict[str, Path]:
    """The Chinese signs in whatever we show, each with a file that has it."""
    texts = [*STATIC.rglob("*.js"), *STATIC.glob("*.html"), *RULES.rglob("*.py")]
    return {
        sign: path for path in sorted(texts) for sign in path.read_text() if ord(sign) in _CHINESE
    }


def first_level() -> set[str]:
    """The 3,755 characters of GB 2312's first level, and its punctuation and full-width signs."""
    signs = set()
    for row in (1, 3, *range(16, 56)):
        for cell in range(1, 95):
            try:
                sign = bytes((0xA0 + row, 0xA0 + cell)).decode("gb2312")
            except UnicodeDecodeError:
                continue
            signs.add(sign)
    return {sign for sign in signs if ord(sign) in _CHINESE}


def written(font: TTFont) -> bytes:
    """The font that is sent to browsers: a WOFF2 of the signs above."""
    options = subset.Options(
        flavor="woff2", hinting=False, layout_features=[], name_IDs=[0, 1, 2, 13, 14]
    )
    options.drop_tables += ["vhea", "vmtx", "VORG", "BASE", "GSUB", "GPOS"]
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(first_level() | set(shown())))
    subsetter.subset(font)
    out = io.BytesIO()
    font.flavor = "woff2"
    font.save(out)
    return out.getvalue()


def missing() -> dict[str, Path]:
    """The signs that we show and that our font has not, each with a file that has it."""
    has = TTFont(OURS).getBestCmap() if OURS.exists() else {}
    return {sign: path for sign, path in shown().items() if ord(sign) not in has}
