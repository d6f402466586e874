from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fangcheng_console.guard import HEADERS
from fangcheng_console.settings import ConsoleSettings
from fangcheng_console.web import LARGEST_BODY, PAGES
from tests.console.world import KEY, World, console


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with console(tmp_path) as served:
        yield served


def reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["reason"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/static/app.js", 200),
        ("/static/nothing.js", 404),
        ("/api/session", 200),
        ("/api/nothing", 404),
        ("/nothing", 404),
    ],
)
async def test_every_answer_has_the_headers_of_safety(world: World, path: str, status: int) -> None:
    async with world.browser() as browser:
        answer = await browser.get(path)
        foreign = await browser.get(path, host="evil.example")
    assert answer.status_code == status
    assert foreign.status_code == 421
    for headers in (answer.headers, foreign.headers):
        assert {name: headers.get(name) for name in HEADERS} == HEADERS
        assert headers["cache-control"]
        assert "server" not in headers


async def test_a_refusal_says_in_chinese_too_what_is_wrong(world: World) -> None:
    async with world.browser() as browser:
        error = (await browser.get("/api/tables/t1")).json()["error"]
    assert error["reason"] == "NOT_SIGNED_IN"
    assert error["message"] == "Sign in first."
    assert error["zh"] == "尚未登录。"


async def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline() -> None:
    policy = HEADERS["content-security-policy"]
    directives = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
    assert directives.pop("default-src") == "'none'"
    assert directives.pop("img-src") == "'self' data:"
    assert set(directives.values()) == {"'self'", "'none'"}
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_the_one_page(world: World, path: str) -> None:
    async with world.browser() as browser:
        asked = (
            path.format_map(
                {"id": "t1", "table": "t1", "hand": "3", "token": "abc", "player": "ming"}
            )
            if ":" not in path
            else "/settlements/t1/3"
        )
        answer = await browser.get(asked)
    assert answer.status_code == 200
    assert '<script type="module" src="/static/app.js">' in answer.text
    assert "<script>" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://127.0.0.1"},
        {"x-fangcheng-console": ""},
        {"x-fangcheng-console": "0"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_another_sites_page_can_change_nothing(
    world: World, method: str, headers: dict[str, str]
) -> None:
    async with world.browser("operator:mei") as browser:
        answer = await browser.post("/api/session", {"token": "x"}, method, **headers)
        assert reason(answer) == (403, "FOREIGN_ORIGIN")
        assert (await browser.get("/api/session")).json()["person"] is not None


async def test_a_form_of_another_site_is_refused_before_its_body_is_read(world: World) -> None:
    async with world.browser("operator:mei") as browser:
        answer = await browser.client.post(
            "/api/session", data={"token": "x"}, headers={"origin": "https://evil.example"}
        )
    assert reason(answer) == (403, "FOREIGN_ORIGIN")


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"{}", "text/plain", (415, "NOT_JSON")),
        (b"{}", "", (415, "NOT_JSON")),
        (b"{", "application/json", (400, "NOT_JSON")),
        (b"[" * 60_000, "application/json", (400, "NOT_JSON")),
        (b"\xff", "application/json", (400, "NOT_JSON")),
        (b"[]", "application/json", (400, "NOT_AN_OBJECT")),
        (b" " * (LARGEST_BODY + 1), "application/json", (413, "TOO_LARGE")),
        (b'{"token": "x"}', "application/json; charset=utf-8", (401, "TOKEN_INVALID")),
    ],
)
async def test_a_body_that_is_no_small_json_object_is_refused(
    world: World, body: bytes, content_type: str, expected: tuple[int, str]
) -> None:
    async with world.browser() as browser:
        headers = {
            "origin": world.address,
            "x-fangcheng-console": "1",
            "content-type": content_type,
        }
        answer = await browser.client.post("/api/session", content=body, headers=headers)
    assert reason(answer) == expected


@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1:1", "localhost"])
async def test_a_name_that_is_not_the_consoles_own_is_refused(world: World, host: str) -> None:
    async with world.browser() as browser:
        answer = await browser.get("/api/session", host=host)
    assert reason(answer) == (421, "UNKNOWN_HOST")


async def test_localhost_is_a_name_of_its_own(world: World) -> None:
    port = world.address.rpartition(":")[2]
    async with world.browser() as browser:
        answer = await browser.get("/api/session", host=f"localhost:{port}")
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../web.py",
        "/static/%2e%2e/web.py",
        "/static/..%2fweb.py",
        "/static/%2e%2e%2f%2e%2e%2fpyproject.toml",
        "/static//etc/passwd",
        "/static/%00",
        "/static/" + "a" * 5_000,
        "/static/vendor",
    ],
)
async def test_nothing_but_the_pages_files_is_given_out(world: World, path: str) -> None:
    # As it stands, for clients mend such paths before they send them.
    target = httpx.URL(world.address).copy_with(raw_path=path.encode())
    async with world.browser() as browser:
        answer = await browser.client.get(target)
    assert answer.status_code == 404
    assert answer.headers["content-security-policy"]
    assert "import" not in answer.text.partition("<body>")[0]


async def test_files_are_asked_about_and_not_sent_twice(world: World) -> None:
    async with world.browser() as browser:
        first = await browser.get("/static/base.css")
        again = await browser.get("/static/base.css", **{"if-none-match": first.headers["etag"]})
        versioned = await browser.get("/static/base.css?v=1")
    assert first.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert "immutable" in versioned.headers["cache-control"]


async def test_an_unknown_method_is_refused_as_everything_is(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.post("/api/session", method="PUT")
    assert reason(answer) == (405, "METHOD_NOT_ALLOWED")


def test_beyond_this_host_the_page_must_know_its_name() -> None:
    with pytest.raises(ValueError, match="listens on this host only"):
        ConsoleSettings(dev_key=KEY, web_listen="0.0.0.0:7103")
    with pytest.raises(ValueError, match="PUBLIC_URL"):
        ConsoleSettings(dev_key=KEY, web_listen="0.0.0.0:7103", dangerously_without_tls=True)
    settings = ConsoleSettings(
        dev_key=KEY,
        web_listen="0.0.0.0:7103",
        dangerously_without_tls=True,
        public_url="https://console.example:443/",
    )
    assert settings.origins(7103) == {"https://console.example"}


@pytest.mark.parametrize(
    "url",
    ["console.example", "ftp://x", "https://x/path", "https://u@x", "https://x?y", "http://["],
)
def test_an_address_of_the_page_is_an_origin(url: str) -> None:
    with pytest.raises(ValueError, match="expected https://HOST"):
        ConsoleSettings(dev_key=KEY, public_url=url)


async def test_the_page_may_be_at_an_address_of_the_newer_kind(tmp_path: Path) -> None:
    async with console(tmp_path, web_listen="[::1]:0") as world:
        assert world.address.startswith("http://[::1]:")
        async with world.browser() as browser:
            assert (await browser.get("/")).status_code == 200
