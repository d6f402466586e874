"""Tokens and the callers that they name."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from structlog.testing import capture_logs

from fangcheng_kit import tokens
from fangcheng_kit.errors import ServiceError
from fangcheng_kit.jwks import KeySet
from fangcheng_kit.principal import Principal
from fangcheng_kit.tokens import (
    BadTokenFile,
    InvalidToken,
    TokenFile,
    TokenVerifier,
    UnknownKey,
    claims_of,
    mint_token,
)
from tests.kit.echo import KEY
from tests.kit.keys import Signer, publish


def verified(token: str, verifier: TokenVerifier | None = None) -> Principal:
    verifier = verifier or TokenVerifier(KEY, leeway_seconds=5)
    return verifier.verified(token).principal


def reason(token: str, verifier: TokenVerifier | None = None) -> str:
    with pytest.raises(ServiceError) as caught:
        verified(token, verifier)
    return caught.value.reason


def why(token: str, verifier: TokenVerifier) -> str:
    """Why a token is not valid, as the service's log says it."""
    with pytest.raises(InvalidToken) as caught:
        verified(token, verifier)
    assert token not in caught.value.why
    return caught.value.why


def signed(**claims: object) -> str:
    known = {"sub": "operator", "exp": time.time() + 60, "aud": "fangcheng"}
    return jwt.encode({**known, **claims}, KEY, "HS256")


async def verifier_of(folder: Path, *keys: dict[str, Any], **more: Any) -> TokenVerifier:
    """One with a set of these keys, and no development key."""
    found = KeySet(str(publish(folder / "jwks.json", *keys)))
    await found.read()
    return TokenVerifier(keys=found, **more)


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


@pytest.mark.parametrize("subject", ["", "player", "player:", "admin:x", "player:\0"])
def test_a_subject_that_names_nobody_is_refused(subject: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        mint_token(KEY, subject)
    assert reason(signed(sub=subject)) == "TOKEN_INVALID"


def test_a_short_key_makes_no_token() -> None:
    with pytest.raises(ValueError, match="at least 32"):
        mint_token("short", "operator")


def test_clocks_may_be_off_by_the_leeway() -> None:
    now = time.time()
    assert verified(signed(iat=int(now) + 3, nbf=int(now) + 3)).kind == "operator"
    assert verified(signed(exp=now - 3)).kind == "operator"
    assert reason(signed(iat=int(now) + 30)) == "TOKEN_INVALID"
    assert reason(signed(nbf=int(now) + 30)) == "TOKEN_INVALID"
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


@pytest.mark.parametrize("missing", ["sub", "exp", "aud"])
def test_a_token_says_who_for_whom_and_until_when(missing: str) -> None:
    claims = claims_of("operator")
    del claims[missing]
    assert reason(jwt.encode(claims, KEY, "HS256")) == "TOKEN_INVALID"


@pytest.mark.parametrize(
    "claims",
    [
        {"scopes": "act_as"},
        {"scopes": [1]},
        {"scope": ["act_as"]},
        {"sub": 7},
        {"exp": []},
        {"exp": "soon"},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"aud": 7},
        {"aud": "another"},
        {"aud": []},
    ],
    ids=str,
)
def test_claims_of_another_shape_are_invalid(claims: dict[str, object]) -> None:
    assert reason(signed(**claims)) == "TOKEN_INVALID"


@pytest.mark.parametrize("part", [0, 1])
def test_parts_that_no_parser_reads_are_invalid(part: int) -> None:
    """Nested so deeply that reading them ends with an error of its own kind."""
    nested = base64.urlsafe_b64encode(b"[" * 9_999).decode().rstrip("=")
    parts = signed().split(".")
    parts[part] = nested
    assert reason(".".join(parts)) == "TOKEN_INVALID"
    with pytest.raises(RecursionError):
        json.loads(b"[" * 9_999)


def test_scopes_are_a_list_or_a_text_with_spaces() -> None:
    assert verified(signed(scopes=["act_as", "bot"])).scopes == {"act_as", "bot"}
    assert verified(signed(scope="act_as bot")).scopes == {"act_as", "bot"}
    assert verified(signed(scope="")).scopes == frozenset()


def test_tokens_are_for_one_audience_and_from_one_issuer_where_that_is_set() -> None:
    ours = TokenVerifier(KEY, audience="club", issuer="https://sign-in.example")
    both = {"audience": "club", "issuer": "https://sign-in.example"}
    assert verified(mint_token(KEY, "operator", **both), ours).kind == "operator"
    assert verified(signed(aud=["x", "club"], iss=both["issuer"]), ours).kind == "operator"
    assert "udience" in why(mint_token(KEY, "operator", issuer=both["issuer"]), ours)
    assert "ssuer" in why(mint_token(KEY, "operator", audience="club", issuer="another"), ours)
    assert "iss" in why(mint_token(KEY, "operator", audience="club"), ours)


def test_more_tokens_than_are_remembered_are_still_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "_MOST_CACHED", 2)
    verifier = TokenVerifier(KEY, leeway_seconds=5)
    made = [mint_token(KEY, f"player:{number}") for number in range(5)]
    for _ in range(2):
        assert [verified(token, verifier).id for token in made] == ["0", "1", "2", "3", "4"]


# Algorithms and keys.


def test_the_token_does_not_choose_its_algorithm() -> None:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = claims_of("operator")
    unsigned = f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}."
    assert reason(unsigned) == "TOKEN_INVALID"
    other = jwt.encode(claims, KEY * 2, "HS512")
    assert reason(other, TokenVerifier(KEY * 2, leeway_seconds=5)) == "TOKEN_INVALID"


@pytest.mark.parametrize("algorithm", ["EdDSA", "RS256"])
async def test_a_key_of_the_set_checks_what_it_has_signed(tmp_path: Path, algorithm: str) -> None:
    signer = Signer("one", algorithm)
    verifier = await verifier_of(tmp_path, signer.public())
    caller = verified(signer.token("player:ming", ("bot",)), verifier)
    assert caller == Principal("player", "ming", frozenset({"bot"}))
    if algorithm == "EdDSA":
        another = Signer("one")  # of the same id
        assert "ignature" in why(another.token(), verifier)


async def test_a_key_is_for_its_one_algorithm(tmp_path: Path) -> None:
    edwards, rivest = Signer("edwards"), Signer("rivest", "RS256")
    verifier = await verifier_of(tmp_path, edwards.public(), rivest.public())
    claims = claims_of("operator")
    swapped = jwt.encode(claims, rivest.private, "RS256", headers={"kid": "edwards"})
    assert why(swapped, verifier) == "the key edwards is for EdDSA alone"
    longer = jwt.encode(claims, rivest.private, "RS512", headers={"kid": "rivest"})
    assert why(longer, verifier) == "the key rivest is for RS256 alone"


async def test_a_public_key_is_no_secret_that_signs(tmp_path: Path) -> None:
    """The old trick: the public key as the secret of HS256."""
    signer = Signer("one", "RS256")
    secret = signer.public()["n"]
    forged = jwt.encode(claims_of("operator"), secret, "HS256", headers={"kid": "one"})
    assert why(forged, await verifier_of(tmp_path, signer.public())).startswith("the key one is")
    found = KeySet(str(tmp_path / "jwks.json"))
    await found.read()
    assert "ignature" in why(forged, TokenVerifier(KEY, found))


async def test_without_a_development_key_its_tokens_are_not_taken(tmp_path: Path) -> None:
    signer = Signer("one")
    verifier = await verifier_of(tmp_path, signer.public())
    assert why(mint_token(KEY, "operator"), verifier) == "no key for alg 'HS256', kid None"
    both = TokenVerifier(KEY, verifier._keys)
    assert verified(mint_token(KEY, "operator"), both).kind == "operator"
    assert verified(signer.token("player:ming"), both).kind == "player"


async def test_a_key_signs_only_for_those_that_the_set_says(tmp_path: Path) -> None:
    players, staff = Signer("players"), Signer("staff")
    verifier = await verifier_of(
        tmp_path,
        players.public(kinds=["player"]),
        staff.public(kinds=["operator", "viewer"]),
    )
    assert verified(players.token("player:ming"), verifier).id == "ming"
    assert verified(staff.token("operator:mei"), verifier).id == "mei"
    assert why(players.token("operator:mei"), verifier) == (
        "the key players may not sign for a operator"
    )
    assert reason(staff.token("service:table"), verifier) == "TOKEN_INVALID"


async def test_a_key_that_is_not_known_is_told_apart(tmp_path: Path) -> None:
    verifier = await verifier_of(tmp_path, Signer("one").public())
    with pytest.raises(UnknownKey) as caught:
        verified(Signer("two").token(), verifier)
    assert caught.value.why == "the key set has no key 'two'"


# The token of a service's own.


def test_a_file_holds_the_token_of_a_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_LOOKS_SECONDS", 0.0)
    path = tmp_path / "token"
    first = mint_token(KEY, "service:table")
    path.write_text(first + "\n")
    file = TokenFile(path, "service:table")
    assert file.token() == first
    second = mint_token(KEY, "service:table", ttl_seconds=60)
    path.write_text(second)
    assert file.token() == second
    path.write_text("")
    with capture_logs() as logged:
        assert {file.token(), file.token()} == {second}
        path.unlink()
        assert file.token() == second
    # Each problem is told once, however many calls are made meanwhile.
    told = [line["problem"] for line in logged]
    assert told == ["what it holds is no token", "it cannot be read: No such file or directory"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "it cannot be read: No such file or directory"),
        ("", "what it holds is no token"),
        ("王", "what it holds is no token"),
        (mint_token(KEY, "service:wallet"), "its token is of 'service:wallet', not of service:"),
    ],
)
def test_a_file_without_it_is_refused(tmp_path: Path, content: str | None, complaint: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content.encode() + os.linesep.encode())
    with pytest.raises(BadTokenFile, match=complaint):
        TokenFile(path, "service:table")
