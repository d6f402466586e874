"""Everybody who may call, with tokens made by hand: nothing of the kit makes them."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt

from .oracle import Caller

OWN, OTHER = "ann", "eve"
"""The player whose seat, ticket and wallet it is, and one who has nothing to do with them."""
HOST = "fay"
"""The player whose private room it is."""
SERVICES = ("evaluation", "table", "matchmaking", "wallet", "console")
BOT = "bot"


def claims(subject: str, **more: Any) -> dict[str, Any]:
    """Of a token that is good for ten minutes; None takes a claim away."""
    found = {"sub": subject, "exp": int(time.time()) + 600, **more}
    return {name: value for name, value in found.items() if value is not None}


def signed(header: dict[str, str], claims: dict[str, Any], key: str) -> str:
    """A token as its header says, be it nonsense; with SHA-384 for HS384, otherwise SHA-256."""

    def part(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    body = b".".join(part(json.dumps(one).encode()) for one in (header, claims))
    digest = "sha384" if header["alg"] == "HS384" else "sha256"
    return (body + b"." + part(hmac.digest(key.encode(), body, digest))).decode()


def bearing(
    name: str, token: str, kind: str = "", id: str = "", *scopes: str, **more: Any
) -> Caller:
    """Somebody with a token."""
    metadata = (("authorization", f"Bearer {token}"), *more.pop("metadata", ()))
    return Caller(name, metadata, kind, id, frozenset(scopes), **more)


def players(key: str) -> Iterator[Caller]:
    """Those who own something, in the order of `OWN` and `HOST`, and those who do not."""
    for player in (OWN, HOST, OTHER):
        token = jwt.encode(claims(f"player:{player}"), key, "HS256")
        yield bearing(f"player {player}", token, "player", player)
        gateway = jwt.encode(claims("service:gateway", scopes=["act_as"]), key, "HS256")
        named = (("fangcheng-act-as", player),)
        yield bearing(f"a gateway for {player}", gateway, "player", player, metadata=named)
        named_in_bytes = (("fangcheng-act-as-bin", player.encode()),)
        yield bearing(
            f"a gateway for {player}, in bytes", gateway, "player", player, metadata=named_in_bytes
        )


def others(key: str) -> Iterator[Caller]:
    """Everybody who is no player, and everybody who is nobody."""

    def token(subject: str, **more: Any) -> str:
        return jwt.encode(claims(subject, **more), key, "HS256")

    for name in (*SERVICES, "shop"):
        yield bearing(f"service {name}", token(f"service:{name}"), "service", name)
    with_act_as = token("service:gateway", scopes=["act_as"])
    yield bearing("a gateway", with_act_as, "service", "gateway", "act_as")
    yield bearing("an operator", token("operator"), "operator")
    yield bearing("an operator by name", token("operator:lin"), "operator", "lin")
    yield bearing(
        "an operator with act_as", token("operator", scopes=["act_as"]), "operator", "", "act_as"
    )
    yield bearing("a viewer", token("viewer:guest"), "viewer", "guest")

    for subject, kind in (("service:shop", "service"), ("operator", "operator")):
        named = (("fangcheng-act-as", OWN),)
        yield bearing(
            f"{kind} that acts without the scope",
            token(subject),
            kind,
            refused="PERMISSION_DENIED",
            metadata=named,
        )
    yield bearing(
        "a gateway for nobody",
        with_act_as,
        "service",
        refused="INVALID_ARGUMENT",
        metadata=(("fangcheng-act-as", ""),),
    )

    yield Caller("nobody")
    yield Caller("a word", (("authorization", "Bearer let-me-in"),))
    yield Caller("the key itself", (("authorization", f"Bearer {key}"),))
    yield Caller("another scheme", (("authorization", f"Basic {token('operator')}"),))
    for name, wrong in (
        ("expired", token("operator", exp=int(time.time()) - 600)),
        ("without an end", token("operator", exp=None)),
        ("not begun", token("operator", nbf=int(time.time()) + 600)),
        ("without a subject", token("", sub=None)),
        ("of no kind", token("king:lear")),
        ("of a player without an id", token("player:")),
        ("with scopes that are no list", token("operator", scopes={"act_as": True})),
        ("of another key", jwt.encode(claims("operator"), key[::-1], "HS256")),
        ("of another algorithm", signed({"alg": "HS384"}, claims("operator"), key)),
        ("that names another algorithm", signed({"alg": "RS256"}, claims("operator"), key)),
        ("without a signature", jwt.encode(claims("operator"), None, "none")),
    ):
        yield bearing(f"a token {name}", wrong)
