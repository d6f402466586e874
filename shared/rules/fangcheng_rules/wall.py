"""The wall, so shuffled that everybody can check it afterwards.

The server cannot choose a wall and the players cannot foresee one:

1. **Commitment.** When a table is made, the server draws a random *root* of 32 bytes and tells
   the *commitment*: SHA-256 applied *N* times to the root, *N* being the number of hands that
   the chain is for. The *secret* of hand *k* (1 to *N*) is SHA-256 applied *N - k* times to the
   root. So the secret of hand 1 hashes to the commitment, that of hand 2 to the secret of hand
   1, and so on: a revealed secret is checked by one hash, and tells nothing of the next one.
2. **Seed.** Each seat may add entropy of its own, which is shown before the deal. The seed is the
   SHA-256 of, one after the other:

   - the 17 ASCII bytes ``fangcheng/wall/v1``,
   - the secret (32 bytes),
   - for seats 0, 1, 2, 3: the entropy's length as 4 bytes, then the entropy (none: length 0),
   - the length of the table's id in UTF-8 as 4 bytes, then the id,
   - the hand's number as 8 bytes.

   All integers here and below are unsigned and big-endian.
3. **Stream.** Block *i* (0, 1, 2, ...) is the SHA-256 of the seed and *i* as 8 bytes. The blocks
   are read as words of 4 bytes, eight to a block.
4. **A number below n** is the first word that is less than the greatest multiple of *n* not above
   2**32, modulo *n*; words that are not less are thrown away.
5. **Shuffle.** Start with the rule set's tiles in the order in which it lists them. For *i* from
   the last index down to 1, draw a number *j* below *i + 1* and swap the tiles at *i* and *j*.
   The result is the wall, index 0 is drawn first.
6. **Dice** are drawn next from the same stream, each 1 plus a number below 6: first those that go
   with every hand, then those for the first dealer.

Vectors. The root of bytes 0, 1, 2, ..., 31 has for three hands the commitment
``4e05063392f42b5180353ef82da86c714042155044d91ab3253f1bab08120a0a``. With the secret
``984ca5162200734c592148f1820b71057f098573d138666b48663e4e30cd8d3a``, the ASCII entropies ``a``,
``bc``, none and ``d``, the table ``table-7`` and hand 3, twenty tiles 0, 1, 2, ..., 19 become
4 6 14 17 18 8 9 0 19 5 15 3 1 2 12 11 7 13 16 10, and five dice then show 3 6 2 5 6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .errors import InvalidWall
from .tiles import Kind

SECRET_BYTES: Final = 32
"""Length of a root, a secret and a commitment."""

DEALT: Final = 53
"""Tiles dealt from the front: index 52 is the dealer's fourteenth, its drawn tile."""

_LABEL = b"fangcheng/wall/v1"


@dataclass(frozen=True, slots=True)
class SecretChain:
    """The secrets of a table's hands, all following from one root."""

    root: bytes
    length: int
    """How many hands it is for, 1 or more."""

    def __post_init__(self) -> None:
        _check_length(self.root, "root")
        if self.length < 1:
            raise InvalidWall("INVALID_CHAIN", "a chain is for one hand at least", "length")

    @property
    def commitment(self) -> bytes:
        """What is told before the first hand."""
        return _hashed(self.root, self.length)

    def secret(self, hand_number: int) -> bytes:
        """The secret of a hand, counted from 1; told when the hand has ended or is void."""
        if not 1 <= hand_number <= self.length:
            raise InvalidWall(
                "CHAIN_EXHAUSTED",
                f"hand {hand_number} of a chain for {self.length}",
                "hand_number",
            )
        return _hashed(self.root, self.length - hand_number)


def follows(secret: bytes, before: bytes) -> bool:
    """Whether a secret is the one after `before`, the hand's before it or the commitment."""
    return hashlib.sha256(secret).digest() == before


def derive(
    secret: bytes,
    entropy: Sequence[bytes],
    table_id: str,
    hand_number: int,
    *,
    tiles: Sequence[Kind],
    dice: int = 0,
) -> tuple[tuple[Kind, ...], tuple[int, ...]]:
    """The wall of a hand and its dice.

    `entropy` has the four seats' bytes, empty where a seat gave none; `tiles` are the rule set's,
    in its order; `dice` is how many are rolled. Raises `InvalidWall` for a secret that is not 32
    bytes long, or not four entropies.
    """
    _check_length(secret, "secret")
    if len(entropy) != 4:
        raise InvalidWall("INVALID_ENTROPY", "four seats, four entropies", "entropy")
    if not 0 <= hand_number < 2**64:
        raise InvalidWall("INVALID_HAND_NUMBER", f"no hand {hand_number}", "hand_number")
    parts = [_LABEL, secret]
    for text in (*entropy, table_id.encode()):
        parts += [len(text).to_bytes(4, "big"), text]
    parts.append(hand_number.to_bytes(8, "big"))
    words = _words(hashlib.sha256(b"".join(parts)).digest())

    wall = list(tiles)
    for i in range(len(wall) - 1, 0, -1):
        j = _below(i + 1, words)
        wall[i], wall[j] = wall[j], wall[i]
    return tuple(wall), tuple(1 + _below(6, words) for _ in range(dice))


def dealt_indices(dealer: int) -> tuple[tuple[int, ...], ...]:
    """Which indices of the wall each seat is dealt, seat 0 first (rules page, "the deal").

    The dealer has fourteen; the last of them, index 52, stands as its drawn tile.
    """
    seats: list[list[int]] = [[], [], [], []]
    for turn in range(4):
        for round_ in range(3):
            start = 16 * round_ + 4 * turn
            seats[(dealer + turn) % 4] += range(start, start + 4)
        seats[(dealer + turn) % 4].append(48 + turn)
    seats[dealer].append(52)
    return tuple(tuple(indices) for indices in seats)


def _hashed(value: bytes, times: int) -> bytes:
    for _ in range(times):
        value = hashlib.sha256(value).digest()
    return value


def _words(seed: bytes) -> Iterator[int]:
    block = 0
    while True:
        digest = hashlib.sha256(seed + block.to_bytes(8, "big")).digest()
        for start in range(0, 32, 4):
            yield int.from_bytes(digest[start : start + 4], "big")
        block += 1


def _below(n: int, words: Iterator[int]) -> int:
    limit = 2**32 - 2**32 % n
    word = next(words)
    while word >= limit:
        word = next(words)
    return word % n


def _check_length(value: bytes, field: str) -> None:
    if len(value) != SECRET_BYTES:
        raise InvalidWall(
            "INVALID_SECRET", f"{len(value)} bytes; a {field} has {SECRET_BYTES}", field
        )
