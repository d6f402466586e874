"""A real Chromium that looks at the console: Debian's package, driven by Playwright.

    with chromium() as browser, opened(browser, lang="zh", theme="dark") as tab:
        tab.sign_in(address, token)
        tab.page.get_by_role("heading", name="牌桌").wait_for()

A tab that is closed has met no error: nothing in its console, no exception, nothing asked of
another host. What a test provokes it takes out of `tab.problems` by `tab.provoked`.

Playwright runs a loop in the thread of the test: a file of tests with a browser has no `async`
test, and what is async runs `beside` it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from .debian import installed
from .running import LONG_SECONDS

LONG_MS = LONG_SECONDS * 1_000

T = TypeVar("T")

PIXELS = """
async (png) => {
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < pixels.length; at += 32768) {
    text += String.fromCharCode(...pixels.subarray(at, at + 32768));
  }
  return [image.width, image.height, btoa(text)];
}
"""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without tabs, until the end of the block."""
    program = installed("chromium", "chromium")
    with sync_playwright() as playwright:
        # Headless and alone: no sandbox, for tests in containers run as root.
        browser = playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Tab:
    """A page of a browser's profile of its own, and what went wrong in it."""

    page: Page
    problems: list[str] = field(default_factory=list)

    def sign_in(self, address: str, token: str) -> None:
        """Sign in to the console at `http://host:port` by the link that carries a token."""
        self.page.goto(f"{address}/sign-in#{token}")
        self.page.wait_for_url(lambda url: urlsplit(url).path != "/sign-in")

    def provoked(self, pattern: str) -> None:
        """Wait for a problem that the test has brought about on purpose, and forget it."""
        for _ in range(int(LONG_SECONDS * 20)):
            found = [problem for problem in self.problems if re.search(pattern, problem)]
            if found:
                self.problems = [problem for problem in self.problems if problem not in found]
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"nothing like {pattern!r} has happened: {self.problems}")


@contextlib.contextmanager
def opened(
    browser: Browser,
    *,
    lang: Literal["en", "zh"] = "en",
    theme: Literal["light", "dark"] = "light",
    width: int = 1_280,
    height: int = 900,
) -> Iterator[Tab]:
    """A tab in a profile of its own, without a session. Fails the test where it meets an error."""
    context = browser.new_context(
        locale={"en": "en-US", "zh": "zh-CN"}[lang],
        color_scheme=theme,
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
    )
    context.set_default_timeout(LONG_MS)
    tab = Tab(context.new_page())

    def told(message: ConsoleMessage) -> None:
        if message.type == "error":
            tab.problems.append(f"console: {message.text} ({message.location.get('url', '')})")

    def asked(request: Request) -> None:
        here, there = urlsplit(tab.page.url), urlsplit(request.url)
        if here.netloc and there.netloc and there.netloc != here.netloc:
            tab.problems.append(f"asked of another host: {request.url}")

    tab.page.on("console", told)
    tab.page.on("pageerror", lambda error: tab.problems.append(f"exception: {error}"))
    tab.page.on("request", asked)
    try:
        yield tab
    finally:
        context.close()
    assert tab.problems == [], tab.problems


def pixels_of(page: Page, png: bytes) -> NDArray[np.uint8]:
    """The pixels of a picture, by row, column and channel (red, green, blue, opacity)."""
    width, height, text = page.evaluate(PIXELS, base64.b64encode(png).decode())
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)


def beside(work: Coroutine[Any, Any, T]) -> T:
    """Run something async to its end, in a thread with a loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
