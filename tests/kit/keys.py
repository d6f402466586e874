"""Key pairs of the tests, and the sets that publish them."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

from fangcheng_kit.tokens import claims_of


@functools.cache
def rsa_key(number: int = 0, bits: int = 2_048) -> rsa.RSAPrivateKey:
    """One of the tests' keys: making them takes a while."""
    return rsa.generate_private_key(65_537, bits)


class Signer:
    """A key that signs, as a studio's sign-in has it."""

    def __init__(self, kid: str, algorithm: str = "EdDSA") -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.private: Any = (
            ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else rsa_key()
        )

    def public(self, **more: Any) -> dict[str, Any]:
        """Its public half, as a set lists it."""
        algorithm = OKPAlgorithm if self.algorithm == "EdDSA" else RSAAlgorithm
        written: dict[str, Any] = algorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {"kid": self.kid, "alg": self.algorithm, **written, **more}

    def token(
        self,
        subject: str = "player:ming",
        scopes: tuple[str, ...] = (),
        ttl_seconds: float = 3_600.0,
        **claims: Any,
    ) -> str:
        """A token that it has signed; a claim that is given as None is left out."""
        known = {**claims_of(subject, scopes, ttl_seconds), **claims}
        kept = {name: claim for name, claim in known.items() if claim is not None}
        return jwt.encode(kept, self.private, self.algorithm, headers={"kid": self.kid})


def key_set(*keys: dict[str, Any]) -> str:
    """A set of these keys."""
    return json.dumps({"keys": keys})


def publish(path: Path, *keys: dict[str, Any]) -> Path:
    """Put a set of these keys where services read it, at once as a whole."""
    draft = path.with_suffix(".draft")
    draft.write_text(key_set(*keys), "utf-8")
    draft.replace(path)
    return path
