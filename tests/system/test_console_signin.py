"""The page around the pages, in a real Chromium: signing in and out, keys, languages, themes."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from fangcheng_kit.tokens import mint_token

from .browser import opened
from .running import Running

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def token(suite: Running, subject: str, ttl_seconds: float = 3_600) -> str:
    return mint_token(suite.suite.key, subject, ttl_seconds=ttl_seconds)


def path_of(page: Page) -> str:
    return urlsplit(page.url).path


def kept(page: Page) -> str:
    """All that scripts of the page can find: address, history, storages, cookies, markup."""
    found: str = page.evaluate(
        "() => [location.href, document.cookie, JSON.stringify(localStorage),"
        " JSON.stringify(sessionStorage), JSON.stringify(history.state), document.referrer,"
        " document.documentElement.outerHTML].join(' ')"
    )
    return found


def test_a_link_signs_in_and_leaves_no_token_in_the_page(
    browser: Browser, quiet_suite: Running
) -> None:
    made = quiet_suite.fangcheng("console", "--name", "mei")
    link = made.stdout.strip()
    with opened(browser) as tab:
        sent: list[str] = []
        tab.page.on("request", lambda request: sent.append(request.url))
        tab.page.goto(link)
        tab.page.wait_for_url(lambda url: urlsplit(url).path == "/")
        expect(tab.page.locator(".who")).to_have_text(re.compile(r"mei\s*operator"))
        expect(tab.page.get_by_role("link", name="Operate")).to_be_visible()
        secret = link.partition("#")[2]
        assert secret
        assert secret not in kept(tab.page)
        assert not [url for url in sent if secret in url and "#" not in url]
        (cookie,) = tab.page.context.cookies()
        assert cookie["httpOnly"] is True
        assert cookie["sameSite"] == "Strict"
        assert secret not in cookie["value"]
        # Back leads to no page that would sign in once more.
        tab.page.go_back()
        assert tab.page.url == "about:blank"


def test_a_token_is_pasted_and_a_viewer_has_no_operators_pages(
    browser: Browser, quiet_suite: Running
) -> None:
    with opened(browser) as tab:
        page = tab.page
        page.goto(f"{quiet_suite.console}/try")
        page.wait_for_url(lambda url: urlsplit(url).path == "/sign-in")
        page.get_by_label("Token").fill(token(quiet_suite, "viewer:wang"))
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda url: urlsplit(url).path == "/try")
        expect(page.locator(".who")).to_have_text(re.compile(r"wang\s*viewer"))
        expect(
            page.get_by_role("navigation").get_by_role("link", name="Try a hand")
        ).to_have_attribute("aria-current", "page")
        expect(page.get_by_role("link", name="Operate")).to_have_count(0)
        page.goto(f"{quiet_suite.console}/operate")
        expect(page.get_by_text("This page is for operators")).to_be_visible()


@pytest.mark.parametrize(
    ("subject", "ttl_seconds", "told", "status"),
    [
        ("player:ming", 60, "a player's or a service's token", 403),
        ("operator:mei", -60, "has expired", 401),
        ("", 0, "not a token of this suite", 401),
    ],
)
def test_a_token_that_does_not_sign_in_is_told_why(
    browser: Browser,
    quiet_suite: Running,
    subject: str,
    ttl_seconds: float,
    told: str,
    status: int,
) -> None:
    with opened(browser) as tab:
        made = token(quiet_suite, subject, ttl_seconds) if subject else "nonsense"
        tab.page.goto(f"{quiet_suite.console}/sign-in#{made}")
        expect(tab.page.get_by_role("alert")).to_contain_text(told)
        assert path_of(tab.page) == "/sign-in"
        assert made not in kept(tab.page)
        expect(tab.page.get_by_label("Token")).to_be_focused()
        tab.provoked(f"status of {status}")


def test_where_one_goes_after_signing_in_is_a_page_of_the_console(
    browser: Browser, quiet_suite: Running
) -> None:
    for following in ("https://evil.example/", "//evil.example/", "/nothing-here", "javascript:1"):
        with opened(browser) as tab:
            secret = token(quiet_suite, "viewer:wang")
            tab.page.goto(f"{quiet_suite.console}/sign-in?next={following}#{secret}")
            tab.page.wait_for_url(f"{quiet_suite.console}/")


def test_who_signs_out_is_asked_to_sign_in_again(browser: Browser, quiet_suite: Running) -> None:
    with opened(browser) as tab:
        tab.sign_in(quiet_suite.console, token(quiet_suite, "operator:mei"))
        tab.page.get_by_role("button", name="Sign out").click()
        tab.page.wait_for_url(lambda url: urlsplit(url).path == "/sign-in")
        expect(tab.page.get_by_role("navigation")).to_have_count(0)
        assert tab.page.context.cookies() == []
        tab.page.goto(f"{quiet_suite.console}/log")
        tab.page.wait_for_url(lambda url: urlsplit(url).path == "/sign-in")


def test_language_and_theme_change_at_once_and_are_remembered(
    browser: Browser, quiet_suite: Running
) -> None:
    with opened(browser, lang="zh", theme="dark") as tab:
        page = tab.page
        html = page.locator("html")
        tab.sign_in(quiet_suite.console, token(quiet_suite, "operator:mei"))
        expect(html).to_have_attribute("lang", "zh-CN")
        expect(html).to_have_attribute("data-theme", "dark")
        expect(page).to_have_title(re.compile("· 方城$"))
        expect(page.get_by_role("navigation").get_by_role("link", name="牌桌")).to_be_visible()
        page.goto(f"{quiet_suite.console}/hands?player={'x' * 200}")
        expect(page.get_by_role("alert")).to_contain_text("请求超出了接口约定的限制。（player_id")
        tab.provoked("400")
        page.goto(quiet_suite.console)
        page.get_by_role("button", name="English").click()
        expect(html).to_have_attribute("lang", "en-GB")
        expect(page).to_have_title(re.compile("· Fangcheng$"))
        page.get_by_role("button", name="Light theme").click()
        expect(html).to_have_attribute("data-theme", "light")
        assert path_of(page) == "/"
        page.reload()
        expect(html).to_have_attribute("data-theme", "light")
        expect(page.get_by_role("navigation").get_by_role("link", name="Tables")).to_be_visible()


def test_the_keyboard_is_enough(browser: Browser, quiet_suite: Running) -> None:
    with opened(browser) as tab:
        page = tab.page
        tab.sign_in(quiet_suite.console, token(quiet_suite, "operator:mei"))
        page.keyboard.press("?")
        keys = page.get_by_role("dialog", name="Keys")
        expect(keys).to_be_visible()
        expect(keys.get_by_text("Go to: Try a hand")).to_be_visible()
        page.keyboard.press("Escape")
        expect(keys).to_be_hidden()
        page.keyboard.press("g")
        page.keyboard.press("y")
        page.wait_for_url(lambda url: urlsplit(url).path == "/try")
        page.go_back()
        page.wait_for_url(lambda url: urlsplit(url).path == "/")
        page.goto(f"{quiet_suite.console}/try")
        page.locator("body").focus()
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()


def test_on_a_phone_the_pages_are_behind_a_button(browser: Browser, quiet_suite: Running) -> None:
    with opened(browser, width=390, height=844) as tab:
        page = tab.page
        tab.sign_in(quiet_suite.console, token(quiet_suite, "operator:mei"))
        menu = page.get_by_role("button", name="Menu")
        entry = page.get_by_role("navigation").get_by_role("link", name="Try a hand")
        expect(entry).to_be_hidden()
        expect(menu).to_have_attribute("aria-expanded", "false")
        menu.click()
        expect(menu).to_have_attribute("aria-expanded", "true")
        entry.click()
        page.wait_for_url(lambda url: urlsplit(url).path == "/try")
        expect(entry).to_be_hidden()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_where_nothing_is_the_page_says_so(browser: Browser, quiet_suite: Running) -> None:
    with opened(browser) as tab:
        tab.sign_in(quiet_suite.console, token(quiet_suite, "viewer:wang"))
        tab.page.goto(f"{quiet_suite.console}/nothing/<img src=x>")
        expect(tab.page.get_by_role("heading", name="There is no page here")).to_be_visible()
        tab.provoked("404")
        tab.page.get_by_role("link", name="To the tables").click()
        tab.page.wait_for_url(lambda url: urlsplit(url).path == "/")


def test_a_console_that_is_away_is_told_of_until_it_is_back(
    browser: Browser, quiet_suite: Running
) -> None:
    with opened(browser) as tab:
        page = tab.page
        with page.expect_response("**/api/lobby/events"):
            tab.sign_in(quiet_suite.console, token(quiet_suite, "viewer:wang"))
        # It may be back before anybody looks, so the page itself remembers.
        page.evaluate(
            "() => new MutationObserver(() => {"
            "  if (!document.querySelector('.away').hidden) window.wasAway = true;"
            "}).observe(document.querySelector('.away'), {attributes: true})"
        )
        quiet_suite.killed("console")
        page.wait_for_function("() => window.wasAway")
        expect(page.locator(".away")).to_be_hidden()
        tab.provoked("ERR_")
