from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import AsyncIterator
from pathlib import Path

import jwt
import pytest

from fangcheng_console.signing_in import MOST_FAILURES, MOST_SIGN_INS
from tests.console.world import KEY, World, console

COOKIE = "fangcheng_console"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with console(tmp_path) as served:
        yield served


def cookie(key: bytes | None = None, **claims: object) -> str:
    """A session's cookie as the console makes it, but for what is given."""
    known = {
        "sub": "operator:mei",
        "exp": time.time() + 86_400,  # it is made when tests are collected, long before some run
        "jti": "one",
        "aud": "fangcheng-console",
        "key": "dev " + hmac.digest(KEY.encode(), b"console fingerprint", hashlib.sha256).hex(),
    }
    own = hmac.digest(KEY.encode(), b"console sessions", hashlib.sha256)
    return jwt.encode({**known, **claims}, key or own, algorithm="HS256")


@pytest.mark.parametrize(
    ("subject", "name", "role"),
    [
        ("viewer:wang", "wang", "viewer"),
        ("operator:mei", "mei", "operator"),
        ("operator:王 梅", "王 梅", "operator"),
        ("operator", "", "operator"),
    ],
)
async def test_a_token_of_a_viewer_or_an_operator_opens_a_session(
    world: World, subject: str, name: str, role: str
) -> None:
    async with world.browser() as browser:
        assert (await browser.get("/api/session")).json() == {"person": None}
        answer = await browser.post("/api/session", {"token": world.token(subject)})
        assert answer.status_code == 200
        assert answer.json()["person"] == {"name": name, "role": role}
        again = await browser.get("/api/session")
    assert again.json() == answer.json()


async def test_the_cookie_is_of_no_use_to_scripts_and_other_sites(world: World) -> None:
    async with world.browser() as browser:
        token = world.token("viewer:wang")
        answer = await browser.post("/api/session", {"token": token})
    (given,) = answer.headers.get_list("set-cookie")
    attributes = {part.strip().lower() for part in given.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert "secure" not in attributes
    assert token not in given


async def test_behind_tls_the_cookie_is_for_tls_and_this_host_alone(tmp_path: Path) -> None:
    url = "https://console.example"
    async with console(tmp_path, public_url=url) as world, world.browser() as browser:
        body = {"token": world.token("viewer:wang")}
        answer = await browser.post("/api/session", body, origin=url, host="console.example")
    (given,) = answer.headers.get_list("set-cookie")
    assert given.startswith("__Host-fangcheng=")
    assert "; Secure" in given


@pytest.mark.parametrize("subject", ["player:ming", "service:table"])
async def test_a_token_of_a_player_or_a_service_is_refused_with_what_is_needed(
    world: World, subject: str
) -> None:
    async with world.browser() as browser:
        answer = await browser.post("/api/session", {"token": world.token(subject)})
        assert answer.status_code == 403
        error = answer.json()["error"]
        assert error["reason"] == "ROLE_NOT_ALLOWED"
        assert subject.partition(":")[0] in error["message"]
        assert "operator:<name>" in error["message"]
        assert (await browser.get("/api/session")).json() == {"person": None}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"token": "nonsense"}, "TOKEN_INVALID"),
        ({"token": ""}, "TOKEN_INVALID"),
        ({"token": "x" * 5_000}, "TOKEN_INVALID"),
        ({"token": "方城"}, "TOKEN_INVALID"),
        ({"token": 7}, "TOKEN_INVALID"),
        ({}, "TOKEN_INVALID"),
    ],
)
async def test_what_is_no_token_is_refused(world: World, body: object, reason: str) -> None:
    async with world.browser() as browser:
        answer = await browser.post("/api/session", body)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (401, reason)


async def test_an_expired_token_and_one_of_another_suite_are_refused(world: World) -> None:
    async with world.browser() as browser:
        old = await browser.post("/api/session", {"token": world.token("operator", -60)})
        foreign = world.token("operator", key="the key of another suite, long too")
        other = await browser.post("/api/session", {"token": foreign})
    assert old.json()["error"]["reason"] == "TOKEN_EXPIRED"
    assert other.json()["error"]["reason"] == "TOKEN_INVALID"


async def test_a_session_ends_with_its_token_at_the_latest(tmp_path: Path) -> None:
    async with console(tmp_path, session_hours=2.0) as world, world.browser() as browser:
        ends = []
        for ttl_seconds in (600, 86_400):
            token = world.token("viewer:wang", ttl_seconds)
            answer = await browser.post("/api/session", {"token": token})
            ends.append(answer.json()["expires_ms"] / 1_000 - time.time())
    assert 0 < ends[0] <= 600
    assert 600 < ends[1] <= 7_200


@pytest.mark.parametrize(
    "forged",
    [
        cookie(exp=time.time() - 1),
        cookie(key=KEY.encode()),
        cookie(key=b"a key that somebody has guessed, wrongly"),
        cookie(aud="another page"),
        cookie(sub="player:ming"),
        cookie(sub="nobody"),
        jwt.encode({"sub": "operator", "exp": time.time() + 86_400}, None, algorithm="none"),
        "x" * 5_000,
        "",
    ],
    ids=["expired", "token's key", "guessed", "audience", "player", "nobody", "none", "long", "no"],
)
async def test_a_cookie_that_is_not_the_consoles_own_is_none(world: World, forged: str) -> None:
    async with world.browser() as browser:
        answer = await browser.get("/api/session", cookie=f"{COOKIE}={forged}")
    assert answer.json() == {"person": None}


async def test_a_token_of_the_suite_is_no_cookie_and_a_cookie_no_token(world: World) -> None:
    async with world.browser() as browser:
        token = world.token("operator")
        as_cookie = await browser.get("/api/session", cookie=f"{COOKIE}={token}")
        as_token = await browser.post("/api/session", {"token": cookie()})
    assert as_cookie.json() == {"person": None}
    assert as_token.json()["error"]["reason"] == "TOKEN_INVALID"


async def test_the_consoles_own_cookie_is_one(world: World) -> None:
    async with world.browser() as browser:
        answer = await browser.get("/api/session", cookie=f"{COOKIE}={cookie()}")
    assert answer.json()["person"] == {"name": "mei", "role": "operator"}


async def test_who_signs_out_has_no_session_and_neither_has_a_copy_of_it(world: World) -> None:
    async with world.browser("operator:mei") as browser:
        copied = browser.client.cookies[COOKIE]
        answer = await browser.post("/api/session", method="DELETE")
        assert answer.json() == {"person": None}
        assert (await browser.get("/api/session")).json() == {"person": None}
        copy = await browser.get("/api/session", cookie=f"{COOKIE}={copied}")
        assert copy.json() == {"person": None}


async def test_too_many_failures_make_an_address_wait(world: World) -> None:
    async with world.browser() as browser:
        for _ in range(MOST_FAILURES):
            assert (await browser.post("/api/session", {"token": "no"})).status_code == 401
        answer = await browser.post("/api/session", {"token": world.token("operator")})
        assert (answer.status_code, answer.json()["error"]["reason"]) == (429, "TOO_MANY_ATTEMPTS")
    sign_ins = {
        outcome: world.running.kit.registry.get_sample_value(
            "fangcheng_console_sign_ins_total", {"outcome": outcome}
        )
        for outcome in ("viewer", "operator", "refused", "limited")
    }
    assert sign_ins == {"viewer": 0, "operator": 0, "refused": MOST_FAILURES, "limited": 1}


async def test_nobody_fills_the_log_by_signing_in(world: World) -> None:
    async with world.browser() as browser:
        token = {"token": world.token("viewer:wang")}
        for _ in range(MOST_SIGN_INS):
            assert (await browser.post("/api/session", token)).status_code == 200
        answer = await browser.post("/api/session", token)
        assert (answer.status_code, answer.json()["error"]["reason"]) == (429, "TOO_MANY_ATTEMPTS")
        other = await browser.post("/api/session", {"token": world.token("viewer:li")})
        assert other.status_code == 200


async def test_behind_a_proxy_only_the_address_that_failed_waits(tmp_path: Path) -> None:
    async with console(tmp_path, trusted_proxies="127.0.0.1") as world, world.browser() as browser:
        for _ in range(MOST_FAILURES + 1):
            answer = await browser.post(
                "/api/session", {"token": "no"}, **{"x-forwarded-for": "192.0.2.1"}
            )
        assert answer.status_code == 429
        other = await browser.post(
            "/api/session",
            {"token": world.token("operator")},
            **{"x-forwarded-for": "192.0.2.2"},
        )
        assert other.status_code == 200
