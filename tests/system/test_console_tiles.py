"""The tiles as a browser draws them: their text and names, and whether one can tell them apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from fangcheng_client import notation
from fangcheng_rules.tiles import NAMES_ZH

from .browser import opened, pixels_of
from .running import Running

pytestmark = pytest.mark.system

TEXTS = ("123m55z", "1m9m1p9p1s9s1234567z", " 19m 28p\t", "12345678f", "??1s?", "", "11m1p1m")
NO_TEXTS = ("123", "m", "8z", "0p", "12?m", "5x", "1 m", "1m2", "9f", "1m p")
CODES = [notation.FACE_DOWN, *sorted(notation.TILES)]

DRAWN = """
async (codes) => {
  const { tileRow } = await import("/static/tiles.js");
  const { render } = await import("/static/lit.js");
  const place = document.createElement("div");
  document.body.replaceChildren(place);
  render(tileRow(codes, {height: 32}), place);
}
"""
LOADED = """
() => [...document.querySelectorAll("use")].every((drawn) => drawn.getBBox().width > 0)
"""


@pytest.fixture(scope="module")
def page(browser: Browser, quiet_suite: Running) -> Iterator[Page]:
    """The console's page, where nobody has signed in."""
    with opened(browser) as tab:
        tab.page.goto(f"{quiet_suite.console}/sign-in")
        tab.page.get_by_role("heading", level=1).wait_for()
        yield tab.page


@pytest.mark.parametrize("text", TEXTS)
def test_the_page_reads_and_writes_tiles_as_the_client_does(page: Page, text: str) -> None:
    tiles = notation.parse(text)
    call = "async (x) => { const m = await import('/static/tiles.js'); "
    assert page.evaluate(call + "return m.parseTiles(x) }", text) == tiles
    assert page.evaluate(call + "return m.formatTiles(x) }", tiles) == notation.text(tiles)


@pytest.mark.parametrize("text", NO_TEXTS)
def test_what_the_client_refuses_the_page_refuses_and_says_where(page: Page, text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]"):
        notation.parse(text)
    place, english, chinese = page.evaluate(
        """async (text) => {
          const { parseTiles } = await import("/static/tiles.js");
          try {
            return parseTiles(text);
          } catch (no) {
            return [no.place, no.told("en"), no.told("zh")];
          }
        }""",
        text,
    )
    assert 0 <= place < len(text)
    assert str(place + 1) in english
    assert str(place + 1) in chinese


def test_tiles_have_the_names_of_the_rules(page: Page) -> None:
    names = page.evaluate(
        "async () => { const m = await import('/static/tiles.js');"
        " return m.TILES.map((code) => [code, m.tileName(code, 'zh'), m.tileName(code, 'en')]) }"
    )
    assert [code for code, _, _ in names] == CODES[1:]
    assert tuple(chinese for _, chinese, _ in names) == NAMES_ZH
    assert len({english for _, _, english in names}) == len(names)


def test_no_two_tiles_look_alike_at_24_pixels(page: Page) -> None:
    """Of the pixels of two tiles at least one in twenty is of clearly another colour."""
    page.evaluate(DRAWN, CODES)
    page.wait_for_function(LOADED)
    row = page.locator("svg.tiles")
    picture = pixels_of(page, row.screenshot()).astype(np.int16)
    # A rim of a pixel, and a pixel between tiles.
    drawn = {code: picture[1:33, 25 * at + 1 : 25 * at + 25] for at, code in enumerate(CODES)}
    closest, one, other = min(
        (float((np.abs(drawn[a] - drawn[b]).sum(2) > 150).mean()), a, b)
        for a, b in combinations(CODES, 2)
    )
    assert closest > 0.05, (one, other)
