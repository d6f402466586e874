"""Take the pictures of the console that docs/images has: `make screenshots`.

A suite is started, bots play, and a real Chromium (Debian's package, as for `make test-system`)
opens every page in English and Chinese. Pictures get a palette, which screens of text, tiles and
plain areas lose nothing by, so that each stays below `MOST_BYTES`.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page

from fangcheng_client import follow_tables
from tests.system.browser import beside, chromium, opened, pixels_of
from tests.system.pages import READY, Places, link, places, token
from tests.system.running import Running, running

IMAGES = Path(__file__).parent.parent / "docs" / "images"
MOST_BYTES = 150_000
WIDTH = 1_280
HEIGHTS = {"replay": 1_500}
USUAL_HEIGHT = 900
TABLES, THINK_SECONDS = "5", "0.6"
SHOWN = tuple(name for name in READY if name not in ("link", "leaderboards", "sign-in"))
DARK = {("lobby", "zh"), ("table", "zh"), ("health", "en")}

QUERY = {"try": "?rules=baishan_kele&hand=123m456p777s1122z9s"}
LIVE = {"table", "lobby", "health"}
"""They are never done with what they are sent."""
UNDER_WAY = range(34, 48)
"""Tiles left in the wall."""
IN_PLAY = """
() => document.querySelector(".result-panel") === null
  && Number(document.querySelector("[data-wall]").dataset.wall) < 50
"""


def main(names: tuple[str, ...]) -> None:
    """Take the pictures of these pages."""
    IMAGES.mkdir(exist_ok=True)
    words = ("--tables", TABLES, "--think", THINK_SECONDS)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), *words, PYTHONPATH="") as suite,  # without the tests' rule set
        chromium() as browser,
    ):
        languages: tuple[Literal["en", "zh"], ...] = ("en", "zh")
        for name in names:
            found = beside(places(suite))  # anew: tables come to their end
            for lang in languages:
                path = IMAGES / f"{name}-{lang}.png"
                path.write_bytes(taken(browser, suite, found, name, lang))
                print(f"{path.name}: {path.stat().st_size / 1_000:.0f} KB", flush=True)


def taken(
    browser: Browser, suite: Running, found: Places, name: str, lang: Literal["en", "zh"]
) -> bytes:
    """A picture of a page."""
    address, height = suite.console, HEIGHTS.get(name, USUAL_HEIGHT)
    theme: Literal["light", "dark"] = "dark" if (name, lang) in DARK else "light"
    with opened(browser, lang=lang, theme=theme, width=WIDTH, height=height) as tab:
        tab.sign_in(address, token(suite, "operator:mei"))
        if name == "log":
            link(tab.page, found)  # so that something stands there
        showing = False
        while not showing:  # a hand at the table may end while its page is opened
            if name == "table":
                found = replace(found, table_id=beside(under_way(suite)))
            tab.page.goto(address + found.path(name) + QUERY.get(name, ""))
            tab.page.locator(READY[name]).first.wait_for()
            showing = name != "table" or tab.page.evaluate(IN_PLAY)
        if name not in LIVE:
            tab.page.wait_for_load_state("networkidle")
        if name == "replay":
            tab.page.keyboard.press("End")
            tab.page.wait_for_load_state("networkidle")
        tab.page.evaluate("() => document.fonts.ready")
        return with_palette(tab.page, tab.page.screenshot())


async def under_way(suite: Running) -> str:
    """A table at which there is something to see: its hand is neither new nor about to end."""
    async with suite.access.channel("table") as channel:
        async for news in follow_tables(channel):
            for table_id, table in news.tables.items():
                if table.wall_tiles in UNDER_WAY:
                    return table_id
    raise SystemExit("no table is told of any more")


def with_palette(page: Page, png: bytes) -> bytes:
    """A picture with few colours; the others become the nearest of them.

    They are 256, or fewer where the picture would be larger than `MOST_BYTES`.
    """
    picture = pixels_of(page, png)
    height, width, _ = picture.shape
    pixels = picture.view("<u4").ravel() & 0xFFFFFF  # without the opacity
    packed, which, counts = np.unique(pixels, return_inverse=True, return_counts=True)
    colours = packed[:, None] >> np.array([0, 8, 16]) & 0xFF
    for most in (256, 192, 128, 96, 64):
        palette = _palette(colours, counts, most)
        nearest = np.concatenate([_nearest(some, palette) for some in np.array_split(colours, 64)])
        rows = nearest[which.reshape(-1)].reshape(height, width)
        raw = np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()  # 0: no filter
        made = b"\x89PNG\r\n\x1a\n" + b"".join(
            _chunk(kind, data)
            for kind, data in (
                (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
                (b"PLTE", palette.astype(np.uint8).tobytes()),
                (b"IDAT", zlib.compress(raw, 9)),
                (b"IEND", b""),
            )
        )
        if len(made) < MOST_BYTES:
            return made
    raise SystemExit(f"a picture cannot be made smaller than {MOST_BYTES / 1_000:.0f} KB")


def _palette(colours: NDArray[np.int64], counts: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The most frequent colours, and those that would be missed most: many, and far from these."""
    order = np.argsort(-counts, kind="stable")
    palette = list(colours[order[: most // 2]])
    apart = np.min([((colours - one) ** 2).sum(1) for one in palette], axis=0)
    while len(palette) < min(most, len(colours)):
        palette.append(colours[(apart * np.sqrt(counts)).argmax()])
        apart = np.minimum(apart, ((colours - palette[-1]) ** 2).sum(1))
    return np.array(palette)


def _nearest(colours: NDArray[np.int64], palette: NDArray[np.int64]) -> NDArray[np.uint8]:
    nearest: NDArray[np.intp] = ((colours[:, None] - palette[None]) ** 2).sum(2).argmin(1)
    return nearest.astype(np.uint8)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or SHOWN)
