"""What the journal keeps of a table, sealed: who gets hold of the database learns no tile of it.

Sealed are events and openings, whole, by AES-256-GCM. A sealed body is::

    7, the length of the key's id, the key's id, a nonce of 12 bytes, the sealed text, a tag of 16

No plain body begins with a 7: it would be field 0, of a kind that protobuf does not have. So what
was written before there were keys is told apart, and stays readable.

Each table has a key of its own, derived (HKDF) from the journal's; under it every nonce is random.
A nonce that follows from table, sequence and epoch would be used twice, which gives GCM's secret
away: an owner whose append has failed goes on from what is stored and writes *another* event under
the same three, while the first one may have reached the disk, a log of the database or a backup
after all; and a restored backup counts epochs from before. Random nonces do not care. What they
cost is a bound on how much one key may seal, 2^32 bodies by NIST SP 800-38D: a busy journal's key
would reach it in some days, a table's never does; it has a few hundred thousand events at most, and
two equal nonces among them are less likely than 1 in 10^17.

The table and the place of a body are sealed with it: none can be moved to another place.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from .codec import UnknownEvent

VARIABLE = "FANGCHENG_TABLE_JOURNAL_KEYS"

_SEALED = 7
_KEY_BYTES = 32
_NONCE_BYTES = 12
_ID = re.compile(r"[A-Za-z0-9._-]{1,32}", re.ASCII)
_MOST_TABLES = 8_192
"""Whose keys are kept at hand; others are derived again, in some microseconds."""


class BadJournalKeys(ValueError):
    """The keys cannot be used with this journal, or at all; the message names the key, never it."""


class Unsealable(UnknownEvent):
    """A body is sealed with a key that is not there, or is not what was sealed in its place."""


class JournalKeys:
    """The keys of a journal: the first one seals, all open. Without any nothing is sealed."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """`keys`: of 32 bytes each, by their ids."""
        self._keys = dict(keys)
        self.first = next(iter(self._keys), "")
        """Id of the key that seals; '': none does."""
        self._head = _head(self.first)
        self._of_table = lru_cache(_MOST_TABLES)(self._derived)

    @classmethod
    def parse(cls, text: str) -> JournalKeys:
        """`id:base64,older:base64`, as the setting has them; raises `BadJournalKeys`."""
        keys: dict[str, bytes] = {}
        for number, part in enumerate(text.split(",") if text.strip() else (), start=1):
            name, colon, value = part.strip().partition(":")
            if not (colon and _ID.fullmatch(name)):
                raise BadJournalKeys(
                    f"key {number} is no ID:BASE64; an id has up to 32 letters, figures, '.', '_' "
                    "or '-'"
                )
            if name in keys:
                raise BadJournalKeys(f"key {name} is named twice")
            try:
                keys[name] = base64.b64decode(value, validate=True)
            except ValueError:  # signs beyond ASCII too
                raise BadJournalKeys(f"key {name} is not in base64") from None
            if len(keys[name]) != _KEY_BYTES:
                raise BadJournalKeys(
                    f"key {name} has {len(keys[name])} bytes; 32 are needed, such as "
                    "`openssl rand -base64 32` makes"
                )
        return cls(keys)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __repr__(self) -> str:
        return f"JournalKeys({', '.join(self._keys)})"

    def seal(self, table_id: str, what: str, body: bytes) -> bytes:
        """A body as it is stored. `what`: its place in its table, such as `event 12`."""
        if not self.first:
            return body
        nonce = os.urandom(_NONCE_BYTES)
        box = self._of_table(self.first, table_id)
        return self._head + nonce + box.encrypt(nonce, body, _bound(table_id, what))

    def open(self, table_id: str, what: str, stored: bytes) -> bytes:
        """The body again, sealed or plain; raises `Unsealable`."""
        if stored[:1] != bytes([_SEALED]):
            return stored
        key_id = key_id_of(stored)
        if key_id not in self._keys:
            raise Unsealable(
                f"{what} of table {table_id} is sealed with the key {key_id}, which {VARIABLE} "
                "does not have"
            )
        start = len(_head(key_id))
        nonce, sealed = stored[start : start + _NONCE_BYTES], stored[start + _NONCE_BYTES :]
        try:
            return self._of_table(key_id, table_id).decrypt(nonce, sealed, _bound(table_id, what))
        except (InvalidTag, ValueError):
            raise Unsealable(
                f"{what} of table {table_id} does not open with the key {key_id}: the key is "
                "another one, or what is stored has been changed"
            ) from None

    def is_current(self, stored: bytes) -> bool:
        """Whether a body is stored as it would be now."""
        return stored.startswith(self._head) if self.first else stored[:1] != bytes([_SEALED])

    def proof(self) -> bytes:
        """By which the first key is known again, and nothing else of it."""
        return self._expanded(self.first, b"proof")

    def check(self, proofs: Iterable[tuple[str, bytes]]) -> None:
        """Compare with the keys that a journal was written with; raises `BadJournalKeys`."""
        for key_id, proof in proofs:
            if key_id not in self._keys:
                raise BadJournalKeys(
                    f"it was written with the key {key_id}, which {VARIABLE} does not have; where "
                    "nothing needs that key any more, `fangcheng journal reseal` strikes it off"
                )
            if not hmac.compare_digest(self._expanded(key_id, b"proof"), proof):
                raise BadJournalKeys(
                    f"it was written with another key {key_id} than {VARIABLE} has"
                )

    def _derived(self, key_id: str, table_id: str) -> AESGCM:
        return AESGCM(self._expanded(key_id, b"table " + table_id.encode()))

    def _expanded(self, key_id: str, use: bytes) -> bytes:
        expand = HKDFExpand(hashes.SHA256(), _KEY_BYTES, b"fangcheng journal " + use)
        return expand.derive(self._keys[key_id])


def new_key(key_id: str) -> str:
    """A key as the setting has it, drawn by the system."""
    return f"{key_id}:{base64.b64encode(os.urandom(_KEY_BYTES)).decode()}"


def key_id_of(stored: bytes) -> str:
    """With which key a body is sealed; '': it is plain."""
    if stored[:1] != bytes([_SEALED]):
        return ""
    return stored[2 : 2 + stored[1]].decode("ascii", "replace") if len(stored) > 1 else "?"


def event_place(sequence: int) -> str:
    """What an event is sealed as."""
    return f"event {sequence}"


def opening_place(sequence: int) -> str:
    """What an opening is sealed as."""
    return f"opening {sequence}"


def _head(key_id: str) -> bytes:
    return bytes([_SEALED, len(key_id)]) + key_id.encode()


def _bound(table_id: str, what: str) -> bytes:
    return f"{what} of {table_id}".encode()


NO_KEYS = JournalKeys({})
