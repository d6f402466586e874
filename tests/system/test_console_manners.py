"""What all pages of the console have in common, in a real Chromium: they show what is so."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from fangcheng_kit.tokens import mint_token

from .browser import Tab, opened
from .running import Running

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def enter(tab: Tab, suite: Running, path: str) -> Page:
    tab.sign_in(suite.console, mint_token(suite.suite.key, "operator:mei"))
    tab.page.goto(suite.console + path)
    tab.page.locator(".page h1").first.wait_for()
    return tab.page


def test_skipping_to_the_content_opens_no_page_again(
    browser: Browser, quiet_suite: Running
) -> None:
    with opened(browser) as tab:
        page = enter(tab, quiet_suite, "/hands")
        page.get_by_label("Player").fill("an")
        entries = page.evaluate("history.length")
        page.get_by_role("link", name="Skip to the content").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        expect(page.get_by_label("Player")).to_have_value("an")
        assert page.evaluate("[location.pathname + location.hash, history.length]") == [
            "/hands",
            entries,
        ]


@pytest.mark.parametrize(
    ("path", "text", "choice", "value"),
    [("/hands", "Player", "Rule set", "jintan"), ("/log", "Who", "What", "freeze_player")],
)
def test_clear_empties_what_was_sought_and_what_is_only_typed(
    browser: Browser, quiet_suite: Running, path: str, text: str, choice: str, value: str
) -> None:
    with opened(browser) as tab:
        page = enter(tab, quiet_suite, path)
        typed = page.get_by_label(text, exact=True)
        chosen = page.locator("main select").first
        page.locator(f"main option[value={value}]").wait_for(state="attached")
        expect(page.get_by_label(choice, exact=True)).to_have_count(1)
        for find in (True, False):
            typed.fill("nobody")
            chosen.select_option(value)
            if find:
                page.get_by_role("button", name="Find").click()
                page.wait_for_url(f"**{path}?*{value}*")
            page.get_by_role("button", name="Clear").click()
            page.wait_for_url(f"**{path}")
            expect(typed).to_have_value("")
            expect(chosen).to_have_value("")


def test_a_choice_shows_what_is_so_after_it_was_changed_by_hand(
    browser: Browser, quiet_suite: Running
) -> None:
    with opened(browser) as tab:
        page = enter(tab, quiet_suite, "/try?mode=score&rules=jintan")
        end = page.locator("[data-key=end]")
        for one in ("draw", "win", "draw"):
            end.select_option(one)
        page.wait_for_url("**end=draw*")
        page.locator("[data-do=clear]").click()
        page.locator("[data-key=winners]").first.wait_for()
        expect(end).to_have_value("win")


def test_no_dialog_stays_open_over_another_page(browser: Browser, quiet_suite: Running) -> None:
    with opened(browser) as tab:
        page = enter(tab, quiet_suite, "/hands")
        page.get_by_role("link", name="Operate").click()
        page.locator("[data-pool] .button").first.click()
        page.locator("dialog.act[open]").wait_for()
        page.go_back()
        page.locator(".hands-filters").wait_for()
        expect(page.locator("dialog[open]")).to_have_count(0)


def test_that_the_console_is_away_is_told_until_it_answers(
    browser: Browser, quiet_suite: Running
) -> None:
    with opened(browser) as tab:
        page = enter(tab, quiet_suite, "/hands")
        page.route("**/api/session", lambda route: route.abort())
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator(".away")).to_contain_text("does not answer")
        tab.provoked("ERR_FAILED")
        page.get_by_role("button", name="Find").click()
        expect(page.locator(".away")).to_be_hidden()
        assert page.url.endswith("/hands")


COUNTED = """
  window.running = new Set();
  const [RealSource, begin, end] = [EventSource, setInterval, clearInterval];
  window.EventSource = class extends RealSource {
    constructor(path) { super(path); running.add(this); }
    close() { super.close(); running.delete(this); }
  };
  window.setInterval = (...given) => { const id = begin(...given); running.add(id); return id; };
  window.clearInterval = (id) => { running.delete(id); end(id); };
"""


def test_nothing_runs_on_for_a_page_that_was_left(browser: Browser, quiet_suite: Running) -> None:
    with opened(browser) as tab:
        tab.page.add_init_script(COUNTED)
        page = enter(tab, quiet_suite, "/try")
        pages = {"t": ".figures", "s": "[data-process]", "o": "[data-pool]", "w": ".wallet"}
        for key, seen in [*pages.items(), *pages.items()]:
            page.keyboard.press("g")
            page.keyboard.press(key)
            page.locator(seen).first.wait_for()
            assert page.evaluate("running.size") <= 1
        # One that is left before it has been opened is closed as well.
        page.evaluate(
            "() => { document.querySelector('#nav a[href=\"/\"]').click();"
            " document.querySelector('#nav a[href=\"/try\"]').click(); }"
        )
        page.locator("[data-do=clear]").wait_for()
        page.wait_for_function("() => running.size === 0")
