"""The lobby and the health page in Chromium, over a suite that plays and over 2,000 tables."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from fangcheng.table.v1 import table_pb2
from fangcheng_kit.tokens import mint_token
from tests.console.many_tables import ManyTables, a_table, many_tables
from tests.console.world import KEY, console

from .browser import LONG_MS, Tab, opened
from .running import LONG_SECONDS, Running, running

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

MANY = 2_000
expect.set_options(timeout=LONG_MS)
SERVICES = ("matchmaking", "table", "wallet", "evaluation", "console")


class Crowd:
    """A console over a table service of 2,000 tables, served by a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self.address = ""
        self._folder = folder
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self._tables: ManyTables | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        async with (
            many_tables(MANY) as (table, tables),
            console(self._folder, table=table, log_level="error") as world,
        ):
            self.address, self._tables = world.address, tables
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            await self._over.wait()

    def tell(self, *tables: table_pb2.TableSummary, gone: tuple[str, ...] = ()) -> None:
        """Tables have changed, or are over."""
        assert self._tables is not None
        assert self._loop is not None
        told = self._tables.tell
        self._loop.call_soon_threadsafe(lambda: told(*tables, gone=gone))

    @contextmanager
    def serving(self) -> Iterator[None]:
        self._thread.start()
        try:
            assert self._ready.wait(LONG_SECONDS)
            yield
        finally:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join()


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    crowd = Crowd(tmp_path_factory.mktemp("crowd"))
    with crowd.serving():
        yield crowd


@contextmanager
def looking(crowd: Crowd, browser: Browser, path: str = "/", **more: Any) -> Iterator[Tab]:
    """A viewer's tab on the crowd's console."""
    with opened(browser, **more) as tab:
        tab.sign_in(crowd.address, mint_token(KEY, "viewer:wang"))
        tab.page.goto(crowd.address + path)
        # Nobody evaluates here, so that rule sets have no names but their ids.
        tab.provoked("/api/rule-sets")
        yield tab
        tab.problems = [one for one in tab.problems if "/api/rule-sets" not in one]


def shown(page: Page) -> list[str]:
    """The ids of the tables that are drawn."""
    found: list[str] = page.eval_on_selector_all(
        ".row", "rows => rows.map((row) => row.dataset.table)"
    )
    return found


def the_number(number: int) -> str:
    """The id of a table of the crowd."""
    return a_table(number).table_id


def test_two_thousand_tables_scroll_and_few_are_drawn(crowd: Crowd, browser: Browser) -> None:
    with looking(crowd, browser) as tab:
        page = tab.page
        expect(page.get_by_role("heading", name="Live tables: 2,000", exact=True)).to_be_visible()
        # The newest first.
        assert shown(page)[0] == the_number(MANY - 1)
        assert len(shown(page)) < 60
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.wait_for_function(
            "last => document.querySelector(`[data-table='${last}']`)", arg=the_number(0)
        )
        assert shown(page)[-1] == the_number(0)
        assert len(shown(page)) < 60
        last = page.locator(f"[data-table='{the_number(0)}']")
        assert last.get_attribute("aria-posinset") == last.get_attribute("aria-setsize") == "2000"
        page.evaluate("scrollTo(0, 0)")
        page.locator(f"[data-table='{the_number(MANY - 1)}']").wait_for()


def test_a_table_is_followed_comes_and_goes(crowd: Crowd, browser: Browser) -> None:
    with looking(crowd, browser) as tab:
        page = tab.page
        table = a_table(MANY - 1)
        row = page.locator(f"[data-table='{table.table_id}']")
        expect(row).to_have_attribute("data-wall", str(table.wall_tiles))
        table.wall_tiles, table.hand_number = 83, 7
        crowd.tell(table)
        expect(row).to_have_attribute("data-wall", "83")
        expect(row).to_have_attribute("data-hand", "7")
        expect(row).to_contain_text("Hand 7 of 8")
        another = a_table(MANY)
        crowd.tell(another)
        expect(page.get_by_role("heading", name="Live tables: 2,001", exact=True)).to_be_visible()
        crowd.tell(gone=(another.table_id,))
        expect(page.locator(f"[data-table='{another.table_id}']")).to_have_count(0)
        crowd.tell(a_table(MANY - 1))


def test_filters_work_together_and_stand_in_the_address(crowd: Crowd, browser: Browser) -> None:
    with looking(crowd, browser) as tab:
        page = tab.page
        expect(page.get_by_role("heading", name="Live tables: 2,000", exact=True)).to_be_visible()
        page.get_by_label("Rule set").select_option("baicheng")
        expect(page.get_by_role("heading", name="Live tables: 400 of 2,000")).to_be_visible()
        page.get_by_label("Pool").select_option("gold")
        expect(page.get_by_role("heading", name="Live tables: 100 of 2,000")).to_be_visible()
        page.get_by_role("button", name=re.compile("Settlement refused")).click()
        expect(page.get_by_role("heading", name="Live tables: 19 of 2,000")).to_be_visible()
        assert urlsplit(page.url).query == "rule_set=baicheng&pool=gold&trouble=parked"
        # What the other choices would show is told beside them.
        options = page.get_by_label("Pool").locator("option").all_text_contents()
        assert options == ["All pools (19)", "gold (19)"]

        page.get_by_role("button", name="Clear filters").click()
        expect(page.get_by_role("heading", name="Live tables: 2,000", exact=True)).to_be_visible()
        assert urlsplit(page.url).query == ""

        page.get_by_label("Player, table or label").first.fill(f"player-{4 * 1_234} ")
        expect(page.get_by_role("heading", name="Live tables: 1 of 2,000")).to_be_visible()
        assert shown(page) == [the_number(1_234)]


def test_a_view_is_shared_by_its_address_and_the_table_page_knows_its_order(
    crowd: Crowd, browser: Browser
) -> None:
    view = "/?trouble=stuck&sort=oldest"
    with looking(crowd, browser, view) as tab:
        page = tab.page
        expect(page.get_by_role("heading", name="Live tables: 19 of 2,000")).to_be_visible()
        stuck = [the_number(number) for number in range(100, MANY, 100)]
        assert shown(page)[:5] == stuck[:5]
        page.locator(f"[data-table='{stuck[2]}'] a").click()
        page.wait_for_url(f"**/tables/{stuck[2]}")
        stored = page.evaluate("[sessionStorage['lobby.order'], sessionStorage['lobby.search']]")
        assert json.loads(stored[0]) == stuck
        assert stored[1] == "?trouble=stuck&sort=oldest"
        tab.problems.clear()  # the crowd's tables can be told of, but not be watched


@pytest.mark.parametrize(("lang", "theme", "width"), [("zh", "dark", 1_440), ("en", "light", 390)])
def test_it_fits_every_width_and_says_what_is_missing(
    crowd: Crowd, browser: Browser, lang: str, theme: str, width: int
) -> None:
    with looking(crowd, browser, lang=lang, theme=theme, width=width) as tab:
        page = tab.page
        page.locator(".row").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        said = {"zh": "没有已知的钱包进程", "en": "No process of wallet is known"}[lang]
        expect(page.locator("[data-figure=ledger]")).to_contain_text(said)
        expect(page.locator("[data-figure=tables] .value")).to_have_text("2,000")
        heights = page.eval_on_selector_all(
            ".row",
            "rows => rows.map((row) => [row.offsetHeight, row.firstElementChild.scrollHeight])",
        )
        # As high as the page counts on, and nothing is cut off.
        height = 58 if width > 1_000 else 122
        assert {row for row, _ in heights} == {height}
        assert max(inside for _, inside in heights) <= height


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("suite")
    with running(folder, "--tables", "2", "--think", "0.05", "--evaluators", "2") as suite:
        yield suite


@contextmanager
def signed_in(
    suite: Running, browser: Browser, subject: str, path: str
) -> Iterator[tuple[Tab, Page]]:
    with opened(browser) as tab:
        tab.sign_in(suite.console, mint_token(suite.suite.key, subject))
        tab.page.goto(suite.console + path)
        yield tab, tab.page


def grows(page: Page, selector: str, attribute: str) -> Callable[[], None]:
    """Wait until a number in the page is larger than it is now."""
    before = int(page.locator(selector).get_attribute(attribute) or 0)
    return lambda: page.wait_for_function(
        "([at, name, before]) => Number(document.querySelector(at)?.getAttribute(name)) > before",
        arg=[selector, attribute, before],
    ).dispose()


def test_a_table_that_bots_play_is_followed(suite: Running, browser: Browser) -> None:
    with signed_in(suite, browser, "viewer:wang", "/") as (_, page):
        rows = page.locator(".row[data-phase=playing]")
        rows.first.wait_for()
        table = rows.first.get_attribute("data-table")
        row = f"[data-table='{table}']"
        wall = int(page.locator(row).get_attribute("data-wall") or 0)
        page.wait_for_function(
            "([row, wall]) => Number(document.querySelector(row)?.dataset.wall) !== wall",
            arg=[row, wall],
        )
        grows(page, row, "data-hand")()
        # Rule sets have their names, and the suite its figures.
        expect(page.locator(row)).to_contain_text("mahjong")
        for figure in ("tables", "hands", "load", "ledger"):
            page.wait_for_function(
                "name => document.querySelector(`[data-figure=${name}]`)?.dataset.value !== ''",
                arg=figure,
            )
        expect(page.locator("[data-figure=ledger] .value")).to_have_text("Balanced")


def test_health_shows_all_processes_and_one_that_was_killed_as_away(
    suite: Running, browser: Browser
) -> None:
    with signed_in(suite, browser, "viewer:wang", "/health") as (_, page):
        page.locator("[data-findings]").wait_for()
        for service in SERVICES:
            count = 2 if service == "evaluation" else 1
            there = page.locator(f"[data-service={service}] [data-process][data-away=false]")
            expect(there).to_have_count(count)
        second = suite.suite.services["evaluation"][1].metrics
        process = page.locator(f"[data-process='{second}']")
        # Who would start it again waits meanwhile.
        suite.process.send_signal(signal.SIGSTOP)
        try:
            os.kill(suite.pid("evaluation-2"), signal.SIGKILL)
            expect(process).to_have_attribute("data-away", "true")
            expect(process).to_contain_text("Away since")
            finding = page.locator("[data-finding=ProcessDown]")
            expect(finding).to_contain_text(second)
            expect(finding).to_contain_text("docs/operations/alerts/ProcessDown.md")
        finally:
            suite.process.send_signal(signal.SIGCONT)
        expect(process).to_have_attribute("data-away", "false")
        expect(finding).to_have_count(0)
        # Viewers see the checks, and only operators begin one.
        expect(page.locator("#ledger")).to_contain_text("Not done since this console was started")
        assert page.locator("#ledger button").count() == 0


def test_an_operator_has_the_ledger_checked(suite: Running, browser: Browser) -> None:
    with signed_in(suite, browser, "operator:mei", "/health") as (_, page):
        page.get_by_role("button", name="Audit now").click()
        audit = page.locator("[data-check=audit]")
        expect(audit).to_contain_text(re.compile("Balanced: [1-9]"))
        expect(audit).to_contain_text("by operator:mei")
        page.get_by_role("button", name="Verify now").click()
        expect(page.locator("[data-check=verify] code")).to_have_text(re.compile("^[0-9a-f]{64}$"))


def test_the_lobby_stays_when_matchmaking_and_wallet_hang(suite: Running, browser: Browser) -> None:
    with signed_in(suite, browser, "viewer:wang", "/") as (_, page):
        page.locator(".row").first.wait_for()
        others = [suite.pid("matchmaking"), suite.pid("wallet")]
        try:
            for pid in others:
                os.kill(pid, signal.SIGSTOP)
            expect(page.locator("[data-figure=ledger]")).to_contain_text(
                "No process of wallet answers since"
            )
            expect(page.locator("[data-figure=wait]")).to_contain_text(
                "No process of matchmaking answers since"
            )
            assert page.locator(".row").count() > 0
            assert page.locator("[data-figure=tables]").get_attribute("data-value") != ""
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)
        expect(page.locator("[data-figure=ledger] .value")).to_have_text("Balanced")
