"""The docs as a site: built without a complaint, complete, and read without any other host."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from .browser import opened
from .running import LONG_SECONDS

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?https?:|<link[^>]*\shref=["']?https?:"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it: with --strict a broken link or anchor is an error."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where a web server of this host has the site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: the browser tells what goes wrong."""

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_every_page_of_the_docs_is_in_it_and_fetches_nothing_from_elsewhere(site: Path) -> None:
    pages = {
        page.relative_to(site).as_posix(): page.read_text("utf-8") for page in site.rglob("*.html")
    }
    for written in (ROOT / "docs").rglob("*.md"):
        name = written.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert name.replace("README.html", "index.html") in pages
    assert {"CHANGELOG.html", "CONTRIBUTING.html"} <= set(pages)
    for name, text in pages.items():
        assert not FETCHED.search(text), name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_reader_finds_a_call_and_follows_a_link_to_a_file_of_the_repository(
    browser: Browser, address: str, theme: Literal["light", "dark"]
) -> None:
    with opened(browser, theme=theme) as tab:
        page = tab.page
        page.goto(f"{address}/index.html")
        page.get_by_role("link", name="Concepts").first.click()
        page.get_by_role("heading", name="Who is who").wait_for()
        shown = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", shown)[:3])) < 384) == (theme == "dark")
        # By keys: what only is put there may come before the search listens.
        page.get_by_placeholder("Search").press_sequentially("LeaveTable")
        page.locator(".md-search-result__link", has_text="LeaveTable").first.click()
        page.wait_for_url(re.compile("api|tables"))
        page.goto(f"{address}/matchmaking.html")
        page.get_by_role("link", name="pools.yaml").first.click()
        page.get_by_text("baishan_kele-practice").first.wait_for()
