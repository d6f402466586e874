"""Take the pictures of `fangcheng play` that docs/images has: part of `make screenshots`.

A game is played by keys against bots, on a screen of 80 by 24, until there is something to see;
then a hint is asked for. Chromium draws what Textual exports, with a Chinese font of the computer's
(Debian's `fonts-noto-cjk`).
"""

from __future__ import annotations

import asyncio
import html
import re
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack

from playwright.sync_api import Browser
from rich.cells import cell_len

from fangcheng_rules.players import STRENGTH
from fangcheng_rules.rulesets import rule_set
from fangcheng_suite.play.app import PlayApp
from fangcheng_suite.play.places import LocalWay, embedded, open_wallet
from fangcheng_suite.play.session import Way
from fangcheng_suite.play.tongue import Tongue
from fangcheng_suite.pools import practice_pool
from tests.system.browser import chromium
from tools.screenshots import IMAGES, with_palette

RULES = {"en": "baishan_dazui", "zh": "jintan"}
PLAYER = {"en": "Ming", "zh": "小明"}
UNDER_WAY = range(30, 62)
"""Tiles left in the wall."""
CELL = 12.2
"""Columns of a terminal in the units of the export."""


def main(languages: tuple[str, ...]) -> None:
    """Take the pictures in these languages."""
    exported = {language: asyncio.run(played(language)) for language in languages}
    with chromium() as browser:
        for language, svg in exported.items():
            path = IMAGES / f"play-{language}.png"
            path.write_bytes(drawn(browser, svg))
            print(f"{path.name}: {path.stat().st_size / 1_000:.0f} KB", flush=True)


async def played(language: str) -> str:
    """The screen as SVG in the player's turn, in the midst of a hand, with a hint."""
    rules = rule_set(RULES[language])
    async with AsyncExitStack() as stack:

        async def open_way(tell: Callable[[str, str], None]) -> Way:
            access = await stack.enter_async_context(embedded(rules, STRENGTH, 0.0))
            await open_wallet(access, "ming")
            return LocalWay(access, "ming")

        say = Tongue(chinese=language == "zh")
        app = PlayApp(open_way, practice_pool(rules), say, name=PLAYER[language])
        try:
            async with app.run_test(size=(80, 24)) as pilot:
                while True:
                    await pilot.pause(0.02)
                    offer = None if app.scene.sent else app.scene.offer
                    if offer is None:
                        continue
                    if app.scene.hint and offer.discards and app.scene.view.own.drawn is not None:
                        await pilot.pause()
                        return app.export_screenshot(title="fangcheng play")
                    if offer.discards and app.scene.view.wall_tiles in UNDER_WAY:
                        if not app.scene.note:
                            app.press("h")
                    else:
                        calls = {choice.action.kind: choice.key for choice in offer.calls}
                        app.press(calls.get("chi") or calls.get("pong") or "x")
                        app.press("enter")
        finally:
            await app.ended()


def drawn(browser: Browser, svg: str) -> bytes:
    """A PNG of an export, in which Chinese signs are as wide as in a terminal: two columns."""

    def widened(found: re.Match[str]) -> str:
        before, after, text = found.groups()
        return f"{before}{CELL * cell_len(html.unescape(text)):.1f}{after}{text}<"

    # The fonts that it would fetch are on another host.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(textLength=")[\d.]+("[^>]*>)([^<]+)<', widened, svg)
    page = browser.new_page(viewport={"width": 1_000, "height": 660})
    page.set_content(f'<body style="margin: 0">{svg}</body>')
    return with_palette(page, page.locator("svg").first.screenshot())


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or tuple(RULES))
