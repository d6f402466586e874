"""Private keys that sign tokens: what a studio's own sign-in has, and commands for trying."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

from fangcheng_kit.jwks import SHORTEST_RSA_BITS

_WRITTEN = frozenset({"kty", "crv", "x", "n", "e"})
"""What a public key is, of all that a JWK may say of it."""


class SigningKey:
    """A private key: Ed25519, or RSA of at least 2,048 bits."""

    def __init__(self, pem: bytes, key_id: str = "") -> None:
        """``key_id``: as in the key set; without it the thumbprint of the key, by RFC 7638.

        Raises ``ValueError`` for anything but such a key, unencrypted, in PEM.
        """
        try:
            key = load_pem_private_key(pem, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise ValueError("expected a private key in PEM, without a password") from None
        written: dict[str, Any]
        if isinstance(key, Ed25519PrivateKey):
            self.algorithm = "EdDSA"
            written = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
        elif isinstance(key, RSAPrivateKey) and key.key_size >= SHORTEST_RSA_BITS:
            self.algorithm = "RS256"
            written = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        else:
            raise ValueError(
                f"expected a key of Ed25519, or of RSA with at least {SHORTEST_RSA_BITS} bits"
            )
        self._key = key
        self._written: dict[str, str] = {
            name: text for name, text in written.items() if name in _WRITTEN
        }
        self.id = key_id or _thumbprint(self._written)

    @classmethod
    def new(cls) -> tuple[SigningKey, bytes]:
        """A new key, of Ed25519, and its PEM."""
        key = Ed25519PrivateKey.generate()
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return cls(pem), pem

    def sign(self, claims: dict[str, Any]) -> str:
        """A token of these claims."""
        return jwt.encode(claims, self._key, self.algorithm, headers={"kid": self.id})

    def key_set(self) -> str:
        """The key set that holds its public half, as services read it."""
        key = {"kid": self.id, "alg": self.algorithm, "use": "sig", **self._written}
        return json.dumps({"keys": [key]}, indent=2) + "\n"


def _thumbprint(written: Mapping[str, str]) -> str:
    text = json.dumps(written, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
