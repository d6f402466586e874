"""Everybody who may call, with tokens made by hand: nothing of the kit makes them."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

from .oracle import SUITE, Caller

OWN, OTHER = "ann", "eve"
"""The player whose seat, ticket and wallet it is, and one who has nothing to do with them."""
HOST = "fay"
"""The player whose private room it is."""
ELSEWHERE = "elsewhere"
"""Another trust domain."""
PASSED_ON = "fangcheng-caller-bin"


@dataclass(frozen=True)
class Keys:
    """What tokens are signed with here: by the suite itself, by a studio, by its sign-in."""

    dev: str
    studio: ed25519.Ed25519PrivateKey = field(default_factory=ed25519.Ed25519PrivateKey.generate)
    """`kid` studio; for everybody."""
    players: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(65_537, 2_048)
    )
    """`kid` players; for players alone."""

    def publish(self, path: Path) -> Path:
        """Write the key set that the services read."""
        known: list[dict[str, Any]] = [
            OKPAlgorithm.to_jwk(self.studio.public_key(), as_dict=True)
            | {"kid": "studio", "alg": "EdDSA"},
            RSAAlgorithm.to_jwk(self.players.public_key(), as_dict=True)
            | {"kid": "players", "alg": "RS256", "kinds": ["player"]},
        ]
        path.write_text(json.dumps({"keys": known}), "utf-8")
        return path

    def token(self, subject: str, **more: Any) -> str:
        """By the key of development."""
        return jwt.encode(claims(subject, **more), self.dev, "HS256")

    def by_studio(self, subject: str, kid: str = "studio", **more: Any) -> str:
        """By the studio's key."""
        return jwt.encode(claims(subject, **more), self.studio, "EdDSA", {"kid": kid})

    def by_players(self, subject: str, kid: str = "players", **more: Any) -> str:
        """By the key of those who sign players in."""
        return jwt.encode(claims(subject, **more), self.players, "RS256", {"kid": kid})


def claims(subject: str, **more: Any) -> dict[str, Any]:
    """Of a token that is good for ten minutes; None takes a claim away."""
    found = {"sub": subject, "exp": int(time.time()) + 600, "aud": "fangcheng", **more}
    return {name: value for name, value in found.items() if value is not None}


def signed(header: dict[str, str], claims: dict[str, Any], key: bytes) -> str:
    """A token as its header says, be it nonsense; with SHA-384 for HS384, otherwise SHA-256."""

    def part(data: bytes) -> bytes:
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    body = b".".join(part(json.dumps(one).encode()) for one in (header, claims))
    digest = "sha384" if header["alg"] == "HS384" else "sha256"
    return (body + b"." + part(hmac.digest(key, body, digest))).decode()


def bearing(
    name: str,
    token: str,
    kind: str = "",
    id: str = "",
    *scopes: str,
    besides: tuple[tuple[str, str | bytes], ...] = (),
    **more: Any,
) -> Caller:
    """Somebody with a token; `besides`: further metadata."""
    metadata = (("authorization", f"Bearer {token}"), *besides)
    return Caller(name, metadata, kind, id, frozenset(scopes), **more)


def everybody(keys: Keys) -> list[Caller]:
    """All callers, each with a name of his own."""
    return [
        *players(keys),
        *good(keys),
        *passed_on(keys),
        *certified(keys),
        *stray(keys),
        *bad(keys),
    ]


def players(keys: Keys) -> Iterator[Caller]:
    """Those who own something, and one who does not."""
    for player in (OWN, HOST, OTHER):
        subject = f"player:{player}"
        yield bearing(f"player {player}", keys.token(subject), "player", player)
        yield bearing(f"player {player} by sign-in", keys.by_players(subject), "player", player)
        gateway = keys.by_studio("service:gateway", scope="act_as bot")
        for key, named in (("fangcheng-act-as", player), ("fangcheng-act-as-bin", player.encode())):
            yield bearing(
                f"a gateway for {player} by {key}",
                gateway,
                "player",
                player,
                besides=((key, named),),
            )


def good(keys: Keys) -> Iterator[Caller]:
    """Services and people of the studio's."""
    for name in (*SUITE, "shop"):
        yield bearing(f"service {name}", keys.token(f"service:{name}"), "service", name)
    yield bearing("shop by the studio", keys.by_studio("service:shop"), "service", "shop")
    for subject, kind in (("service:gateway", "service"), ("operator", "operator")):
        name = subject.partition(":")[2]
        token = keys.token(subject, scopes=["act_as"])
        yield bearing(f"{subject} with act_as", token, kind, name, "act_as")
    yield bearing("an operator", keys.token("operator"), "operator")
    yield bearing("an operator by name", keys.by_studio("operator:lin"), "operator", "lin")
    yield bearing("a viewer", keys.token("viewer:guest"), "viewer", "guest")
    many = keys.token("operator", aud=["elsewhere", "fangcheng"])
    yield bearing("an operator of several audiences", many, "operator")


def passed_on(keys: Keys) -> Iterator[Caller]:
    """Those for whom a service vouches to another."""

    def told(subject: str) -> tuple[tuple[str, bytes], ...]:
        return ((PASSED_ON, json.dumps({"sub": subject, "scopes": []}).encode()),)

    table, console = keys.token("service:table"), keys.token("service:console")
    for player in (OWN, OTHER):
        yield bearing(
            f"player {player} by a table's replica",
            table,
            "player",
            player,
            besides=told(f"player:{player}"),
            only_at="table",
        )
    yield bearing(
        "an operator by a table's replica",
        table,
        "operator",
        besides=told("operator"),
        only_at="table",
    )
    yield bearing(
        "an operator by the console", console, "operator", "lin", besides=told("operator:lin")
    )
    for name, token, subject in (
        ("a player by the console", console, f"player:{OWN}"),
        ("a service by the console", console, "service:table"),
        ("an operator by matchmaking", keys.token("service:matchmaking"), "operator"),
        ("an operator by a gateway", keys.token("service:gateway", scopes=["act_as"]), "operator"),
        ("an operator by a player", keys.token(f"player:{OTHER}"), "operator"),
        ("another player by a player", keys.token(f"player:{OTHER}"), f"player:{OWN}"),
    ):
        yield bearing(name, token, "service", refused="PERMISSION_DENIED", besides=told(subject))


def certified(keys: Keys) -> Iterator[Caller]:
    """Those whom their certificates name: without a token, but for the last ones."""
    for name in (*SUITE, "shop"):
        # Matchmaking takes players out of their tables, and may there whatever a gateway may.
        scopes = frozenset({"act_as"} if name == "matchmaking" else ())
        holder = f"service/{name}"
        yield Caller(f"the certificate of {name}", (), "service", name, scopes, "", holder)
    yield Caller("the certificate of lin", (), "operator", "lin", certificate="operator/lin")
    gateway = "service/gateway"
    yield Caller(
        "a gateway's certificate", (), "service", "gateway", frozenset({"act_as"}), "", gateway
    )
    for player in (OWN, OTHER):
        acts = (("fangcheng-act-as", player),)
        yield Caller(
            f"a gateway's certificate for {player}", acts, "player", player, certificate=gateway
        )
        yield Caller(
            f"the certificate of matchmaking for {player}",
            acts,
            "player",
            player,
            certificate="service/matchmaking",
            only_at="table",
        )
    yield Caller(
        "a certificate that acts without the scope",
        (("fangcheng-act-as", OWN),),
        "service",
        refused="PERMISSION_DENIED",
        certificate="service/shop",
    )
    operator = ((PASSED_ON, b'{"sub": "operator:lin"}'),)
    yield Caller(
        "an operator by the console's certificate",
        operator,
        "operator",
        certificate="service/console",
    )
    yield Caller(
        "an operator by the certificate of evaluation",
        operator,
        "service",
        refused="PERMISSION_DENIED",
        certificate="service/evaluation",
    )
    yield bearing(
        "a player with the certificate of a table",
        keys.token(f"player:{OTHER}"),
        "player",
        OTHER,
        certificate="service/table",
    )
    for name, holder in (
        ("of another trust domain", f"{ELSEWHERE}/service/table"),
        ("of no kind", "king/lear"),
        ("of a player", f"player/{OWN}"),
    ):
        yield bearing(f"a certificate {name}", keys.token("operator"), certificate=holder)
    yield bearing("a bad token with a good certificate", "let-me-in", certificate="service/table")


def stray(keys: Keys) -> Iterator[Caller]:
    """Those who may call, but not so."""
    for subject, kind in ((f"player:{OTHER}", "player"), ("viewer:guest", "viewer")):
        yield bearing(
            f"{subject} that acts with the scope",
            keys.by_studio(subject, scopes=["act_as"]),
            kind,
            refused="PERMISSION_DENIED",
            besides=(("fangcheng-act-as", OWN),),
        )
    yield bearing(
        "a player by sign-in that acts with the scope",
        keys.by_players(f"player:{OTHER}", scope="openid act_as"),
        "player",
        refused="PERMISSION_DENIED",
        besides=(("fangcheng-act-as", OWN),),
    )
    for subject, kind in (("service:shop", "service"), ("operator", "operator")):
        yield bearing(
            f"{subject} that acts without the scope",
            keys.token(subject),
            kind,
            refused="PERMISSION_DENIED",
            besides=(("fangcheng-act-as", OWN),),
        )
    for key, value in (
        ("fangcheng-act-as", ""),
        ("fangcheng-act-as-bin", b"\xff"),
        ("fangcheng-act-as-bin", b"a\0b"),
    ):
        yield bearing(
            f"a gateway for {value!r}",
            keys.token("service:gateway", scopes=["act_as"]),
            "service",
            refused="INVALID_ARGUMENT",
            besides=((key, value),),
        )
    yield bearing(
        "the console for nobody",
        keys.token("service:console"),
        "service",
        refused="INVALID_ARGUMENT",
        besides=((PASSED_ON, b"{"),),
    )


def bad(keys: Keys) -> Iterator[Caller]:
    """Those of whom nobody can tell who they are; most claim to be an operator."""
    yield Caller("nobody")
    yield Caller("a word", (("authorization", "Bearer let-me-in"),))
    yield Caller("the key itself", (("authorization", f"Bearer {keys.dev}"),))
    yield Caller("another scheme", (("authorization", f"Basic {keys.token('operator')}"),))
    public = keys.studio.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    raw = keys.studio.public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    operator, dev = claims("operator"), keys.dev.encode()
    now = int(time.time())
    for name, token in (
        ("expired", keys.token("operator", exp=now - 600)),
        ("of the studio, expired", keys.by_studio("operator", exp=now - 600)),
        ("without an end", keys.token("operator", exp=None)),
        ("not begun", keys.token("operator", nbf=now + 600)),
        ("for another audience", keys.token("operator", aud="elsewhere")),
        ("of the studio for another audience", keys.by_studio("operator", aud="elsewhere")),
        ("for no audience", keys.token("operator", aud=None)),
        ("without a subject", keys.token("", sub=None)),
        ("of no kind", keys.token("king:lear")),
        ("of a player without an id", keys.token("player:")),
        ("with scopes that are no list", keys.token("operator", scopes={"act_as": True})),
        ("of another key", jwt.encode(operator, keys.dev[::-1], "HS256")),
        ("of another algorithm", signed({"alg": "HS384"}, operator, dev)),
        ("that names another algorithm", signed({"alg": "RS256"}, operator, dev)),
        ("without a signature", jwt.encode(operator, None, "none")),
        ("without a signature, by id", jwt.encode(operator, None, "none", {"kid": "studio"})),
        ("of an unknown id", keys.by_studio("operator", "elsewhere")),
        ("of another's id", keys.by_studio("operator", "players")),
        ("of the studio's own with another's id", keys.by_players("player:ann", "studio")),
        ("of an operator by sign-in", keys.by_players("operator")),
        ("of a service by sign-in", keys.by_players("service:table")),
        ("signed with a public key", signed({"alg": "HS256", "kid": "studio"}, operator, public)),
        ("signed with its bytes", signed({"alg": "HS256", "kid": "studio"}, operator, raw)),
        ("signed with it for EdDSA", signed({"alg": "EdDSA", "kid": "studio"}, operator, public)),
    ):
        yield bearing(f"a token {name}", token)
