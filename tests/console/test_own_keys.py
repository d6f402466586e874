"""A console that knows no development key: people's tokens are checked by a key set."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fangcheng_console.settings import ConsoleSettings
from fangcheng_kit.settings import BadSettings, load
from tests.console.world import KEY, console
from tests.kit.keys import Signer, publish

SECRET = "a secret of this console, long enough"


async def test_people_sign_in_with_tokens_of_the_key_set(tmp_path: Path) -> None:
    staff, players = Signer("staff"), Signer("players")
    path = publish(
        tmp_path / "jwks.json",
        staff.public(kinds=["operator", "viewer"]),
        players.public(kinds=["player"]),
    )
    settings = {"dev_key": "", "secret": SECRET, "jwks": str(path)}
    async with console(tmp_path, **settings) as world, world.browser() as browser:
        for token, status in (
            (players.token("operator:mei"), 401),  # a key for players alone
            (world.token("operator:mei"), 401),  # of development
            (staff.token("operator:mei", aud="another"), 401),
            (staff.token("operator:mei"), 200),
        ):
            assert (await browser.post("/api/session", {"token": token})).status_code == status
        assert (await browser.get("/api/session")).json()["person"]["name"] == "mei"
        fresh = Signer("fresh")
        publish(path, fresh.public())
        while True:  # who came with a key that is withdrawn is out
            if (await browser.get("/api/session")).json()["person"] is None:
                break
            await asyncio.sleep(0.01)
        answer = await browser.post("/api/session", {"token": fresh.token("viewer:wang")})
        assert answer.json()["person"] == {"name": "wang", "role": "viewer"}


async def test_another_secret_ends_all_sessions(tmp_path: Path) -> None:
    cookies = {}
    async with console(tmp_path, secret=SECRET) as world, world.browser("operator:mei") as browser:
        cookies = dict(browser.client.cookies)
    for secret, is_known in ((SECRET, True), (SECRET + "!", False), ("", False)):
        async with (
            console(tmp_path, secret=secret) as world,
            world.browser(cookies=cookies) as browser,
        ):
            person = (await browser.get("/api/session")).json()["person"]
            assert (person is not None) == is_known


async def test_another_development_key_ends_the_sessions_that_it_opened(tmp_path: Path) -> None:
    jwks = publish(tmp_path / "jwks.json", Signer("staff").public())
    settings = {"secret": SECRET, "jwks": str(jwks)}
    async with (
        console(tmp_path, **settings) as world,
        world.browser("operator:mei") as browser,
    ):
        cookies = dict(browser.client.cookies)
    for key, is_known in ((KEY, True), (KEY + "!", False), ("", False)):
        async with (
            console(tmp_path, dev_key=key, **settings) as world,
            world.browser(cookies=cookies) as browser,
        ):
            person = (await browser.get("/api/session")).json()["person"]
            assert (person is not None) == is_known


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"JWKS": "jwks.json"}, "FANGCHENG_CONSOLE_SECRET: it must be set where there is no DEV"),
        ({"DEV_KEY": KEY, "SECRET": "short"}, "FANGCHENG_CONSOLE_SECRET: it has 5 characters"),
    ],
)
def test_a_console_needs_something_to_sign_with(
    given: dict[str, str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in given.items():
        monkeypatch.setenv(f"FANGCHENG_CONSOLE_{name}", text)
    with pytest.raises(BadSettings, match=complaint) as caught:
        load("console", ConsoleSettings)
    assert "short" not in str(caught.value)
