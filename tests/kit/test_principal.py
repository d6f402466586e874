"""Tokens and the callers that they name."""

from __future__ import annotations

import base64
import json
import time

import jwt
import pytest

from fangcheng_kit import principal
from fangcheng_kit.errors import ServiceError
from fangcheng_kit.principal import Principal, TokenVerifier, calling, mint_token, parse_subject
from tests.kit.echo import KEY


def verified(token: str, verifier: TokenVerifier | None = None) -> Principal:
    verifier = verifier or TokenVerifier(KEY, leeway_seconds=5)
    return verifier.principal([("authorization", f"Bearer {token}")])


def reason(token: str, verifier: TokenVerifier | None = None) -> str:
    with pytest.raises(ServiceError) as caught:
        verified(token, verifier)
    return caught.value.reason


def signed(**claims: object) -> str:
    return jwt.encode({"sub": "operator", "exp": time.time() + 60, **claims}, KEY, "HS256")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("player:ming", Principal("player", "ming", frozenset({"bot"}))),
        ("player:a:b", Principal("player", "a:b", frozenset({"bot"}))),
        ("operator", Principal("operator", "", frozenset({"bot"}))),
        ("operator:mei", Principal("operator", "mei", frozenset({"bot"}))),
        ("operator:王 梅", Principal("operator", "王 梅", frozenset({"bot"}))),
        ("viewer:wang", Principal("viewer", "wang", frozenset({"bot"}))),
        ("service:table", Principal("service", "table", frozenset({"bot"}))),
    ],
)
def test_a_token_names_its_caller(subject: str, expected: Principal) -> None:
    caller = verified(mint_token(KEY, subject, ["bot"]))
    assert caller == expected
    assert caller.subject == subject


@pytest.mark.parametrize(
    "subject",
    ["", "player", "player:", "operator:", "viewer", "viewer:", "admin:x", "Operator", "player:\0"],
)
def test_a_subject_that_names_nobody_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        mint_token(KEY, subject)
    with pytest.raises(ValueError, match="is none of"):
        parse_subject(subject)
    assert reason(signed(sub=subject)) == "TOKEN_INVALID"


def test_a_short_key_makes_no_token() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        mint_token("short", "operator")


def test_clocks_may_be_off_by_the_leeway() -> None:
    now = time.time()
    assert verified(signed(iat=int(now) + 3)).kind == "operator"
    assert verified(signed(exp=now - 3)).kind == "operator"
    assert reason(signed(iat=int(now) + 30)) == "TOKEN_INVALID"
    assert reason(signed(exp=now - 30)) == "TOKEN_EXPIRED"


def test_a_token_that_was_good_expires_though_it_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verifier = TokenVerifier(KEY, leeway_seconds=0)
    token = mint_token(KEY, "operator", ttl_seconds=60)
    assert verified(token, verifier).kind == "operator"
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    assert reason(token, verifier) == "TOKEN_EXPIRED"


def test_a_token_without_expiry_or_subject_is_invalid() -> None:
    assert reason(jwt.encode({"sub": "operator"}, KEY, "HS256")) == "TOKEN_INVALID"
    assert reason(jwt.encode({"exp": time.time() + 60}, KEY, "HS256")) == "TOKEN_INVALID"


def test_scopes_that_are_no_list_of_strings_are_invalid() -> None:
    assert reason(signed(scopes="act_as")) == "TOKEN_INVALID"
    assert reason(signed(scopes=[1])) == "TOKEN_INVALID"


def test_the_token_does_not_choose_its_algorithm() -> None:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"sub": "operator", "exp": time.time() + 60}
    unsigned = f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}."
    assert reason(unsigned) == "TOKEN_INVALID"
    other = jwt.encode(claims, KEY * 2, "HS512")
    assert reason(other, TokenVerifier(KEY * 2, leeway_seconds=5)) == "TOKEN_INVALID"


@pytest.mark.parametrize("player", ["", "x" * 129, "a\0b"])
def test_acting_for_nobody_is_refused(player: str) -> None:
    token = mint_token(KEY, "service:gateway", ["act_as"])
    with pytest.raises(ServiceError) as caught:
        TokenVerifier(KEY, 5).principal(
            [("authorization", f"Bearer {token}"), ("fangcheng-act-as", player)]
        )
    assert caught.value.reason == "INVALID_ACT_AS"


def test_more_tokens_than_are_remembered_are_still_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(principal, "_MOST_CACHED", 2)
    verifier = TokenVerifier(KEY, leeway_seconds=5)
    tokens = [mint_token(KEY, f"player:{number}") for number in range(5)]
    for _ in range(2):
        assert [verified(token, verifier).id for token in tokens] == ["0", "1", "2", "3", "4"]


def test_a_caller_is_known_only_within() -> None:
    with calling(Principal("player", "ming")):
        assert principal.current().id == "ming"
    with pytest.raises(LookupError):
        principal.current()
