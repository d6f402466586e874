"""Every page of the console: in both languages and themes, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from fangcheng_console.guard import HEADERS

from .browser import Tab, beside, opened
from .pages import READY, Places, link, places, token
from .running import Running, running

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

# Each pair of language, theme and width is among them.
LOOKS = (("en", "light", 1_440), ("en", "dark", 390), ("zh", "dark", 1_440), ("zh", "light", 390))
POLICY = "content-security-policy"


@dataclass(frozen=True)
class Look:
    """A tab of an operator, in a language, a theme and a width."""

    tab: Tab
    address: str
    places: Places

    def open(self, name: str) -> None:
        """Go to a page, and wait until it shows what it is for."""
        path = link(self.tab.page, self.places) if name == "link" else self.places.path(name)
        answer = self.tab.page.goto(self.address + path)
        assert answer is not None
        assert answer.headers[POLICY] == HEADERS[POLICY]
        self.tab.page.locator(READY[name]).first.wait_for()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Bots play at two tables, as fast as they can."""
    folder = tmp_path_factory.mktemp("played")
    with running(folder, "--tables", "2", "--think", "0.3") as started:
        yield started


@pytest.fixture(scope="module")
def found(suite: Running) -> Places:
    return beside(places(suite))


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: "-".join(map(str, look)))
def look(
    request: pytest.FixtureRequest, browser: Browser, suite: Running, found: Places
) -> Iterator[Look]:
    lang, theme, width = request.param
    address = suite.console
    with opened(browser, lang=lang, theme=theme, width=width) as tab:
        tab.sign_in(address, token(suite, "operator:mei"))
        yield Look(tab, address, found)


@pytest.mark.parametrize("name", READY)
def test_a_page_is_for_everybody(look: Look, name: str) -> None:
    """No serious fault that axe-core finds, no error, nothing beside the screen."""
    look.open(name)
    faults = [
        (fault["id"], node["html"])
        for fault in Axe().run(look.tab.page).response["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
    assert faults == []
    overhang = look.tab.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert overhang <= 0
    problems, look.tab.problems = look.tab.problems, []  # not told of the pages after it
    assert problems == []
