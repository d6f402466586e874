"""The wall against a second implementation of what its page says, and fixed vectors."""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Callable

import pytest

from fangcheng_rules.errors import InvalidWall
from fangcheng_rules.rulesets.baishan_kele import RULE_SET as KELE
from fangcheng_rules.wall import DEALT, SecretChain, dealt_indices, derive, follows

ROOT = bytes(range(32))
SECRET = hashlib.sha256(b"a secret").digest()
NO_ENTROPY = (b"", b"", b"", b"")

VECTOR_WALL = (4, 6, 14, 17, 18, 8, 9, 0, 19, 5, 15, 3, 1, 2, 12, 11, 7, 13, 16, 10)
VECTOR_DICE = (3, 6, 2, 5, 6)
VECTOR_COMMITMENT = "4e05063392f42b5180353ef82da86c714042155044d91ab3253f1bab08120a0a"


def second_implementation(
    secret: bytes, entropy: tuple[bytes, ...], table_id: str, hand: int, tiles: list[int], dice: int
) -> tuple[list[int], list[int]]:
    """The algorithm as a reader of the page would write it: all words first, then one pass."""
    packed = b"fangcheng/wall/v1" + secret
    for text in entropy:
        packed += struct.pack(">I", len(text)) + text
    name = table_id.encode("utf-8")
    packed += struct.pack(">I", len(name)) + name + struct.pack(">Q", hand)
    seed = hashlib.sha256(packed).digest()
    stream = b"".join(hashlib.sha256(seed + struct.pack(">Q", i)).digest() for i in range(100))
    words = list(struct.unpack(f">{len(stream) // 4}I", stream))

    def number(n: int) -> int:
        while True:
            word = words.pop(0)
            if word < (2**32 // n) * n:
                return word % n

    wall = list(tiles)
    for i in reversed(range(1, len(wall))):
        j = number(i + 1)
        wall[i], wall[j] = wall[j], wall[i]
    return wall, [number(6) + 1 for _ in range(dice)]


@pytest.mark.parametrize(
    ("entropy", "table_id", "hand"),
    [
        (NO_ENTROPY, "", 1),
        (NO_ENTROPY, "table-1", 1),
        (NO_ENTROPY, "table-1", 2),
        ((b"north", b"", b"\x00\xff", b"w" * 300), "桌子", 2**40),
    ],
)
@pytest.mark.parametrize("size", [120, 136, 144])
def test_a_second_implementation_finds_the_same_wall_and_dice(
    entropy: tuple[bytes, ...], table_id: str, hand: int, size: int
) -> None:
    tiles = [i // 4 for i in range(size)]
    wall, dice = derive(SECRET, entropy, table_id, hand, tiles=tiles, dice=4)
    assert (list(wall), list(dice)) == second_implementation(
        SECRET, entropy, table_id, hand, tiles, 4
    )


def test_the_vectors_of_the_page() -> None:
    wall, dice = derive(SECRET, (b"a", b"bc", b"", b"d"), "table-7", 3, tiles=range(20), dice=5)
    assert wall == VECTOR_WALL
    assert dice == VECTOR_DICE


def test_the_commitment_of_a_chain_is_fixed() -> None:
    assert SecretChain(ROOT, 3).commitment.hex() == VECTOR_COMMITMENT


def test_a_wall_has_every_tile_of_the_rule_set_once() -> None:
    wall, dice = derive(SECRET, NO_ENTROPY, "t", 1, tiles=KELE.wall_tiles, dice=2)
    assert Counter(wall) == Counter(KELE.wall_tiles)
    assert len(dice) == 2
    assert all(1 <= die <= 6 for die in dice)


def test_everything_that_goes_in_changes_the_wall() -> None:
    tiles = KELE.wall_tiles

    def wall(
        secret: bytes = SECRET,
        entropy: tuple[bytes, ...] = NO_ENTROPY,
        table_id: str = "t",
        hand: int = 1,
    ) -> tuple[int, ...]:
        return derive(secret, entropy, table_id, hand, tiles=tiles)[0]

    walls = [
        wall(),
        wall(secret=ROOT),
        wall(entropy=(b"x", b"", b"", b"")),
        wall(entropy=(b"", b"x", b"", b"")),
        wall(entropy=(b"", b"x", b"y", b"")),
        wall(entropy=(b"", b"xy", b"", b"")),
        wall(table_id="u"),
        wall(hand=2),
    ]
    assert len(set(walls)) == len(walls)
    assert wall() == wall()


def test_each_place_gets_each_tile_about_equally_often() -> None:
    # Chi-square with 35 degrees of freedom stays below 100 but for once in 40 million.
    counts = Counter[tuple[int, int]]()
    for hand in range(3_000):
        wall, _ = derive(SECRET, NO_ENTROPY, "t", hand, tiles=range(6))
        counts.update(enumerate(wall))
    chi_square = sum((counts[i, t] - 500) ** 2 / 500 for i in range(6) for t in range(6))
    assert chi_square < 100


def test_each_secret_hashes_to_the_one_before_and_the_first_to_the_commitment() -> None:
    chain = SecretChain(ROOT, 5)
    before = chain.commitment
    for hand in range(1, 6):
        assert follows(chain.secret(hand), before)
        assert not follows(before, chain.secret(hand))
        before = chain.secret(hand)
    assert before == ROOT


@pytest.mark.parametrize(
    ("call", "reason", "field"),
    [
        (lambda: SecretChain(b"short", 3), "INVALID_SECRET", "root"),
        (lambda: SecretChain(ROOT, 0), "INVALID_CHAIN", "length"),
        (lambda: SecretChain(ROOT, 3).secret(0), "CHAIN_EXHAUSTED", "hand_number"),
        (lambda: SecretChain(ROOT, 3).secret(4), "CHAIN_EXHAUSTED", "hand_number"),
        (lambda: derive(b"", NO_ENTROPY, "t", 1, tiles=[1]), "INVALID_SECRET", "secret"),
        (lambda: derive(SECRET, (b"",), "t", 1, tiles=[1]), "INVALID_ENTROPY", "entropy"),
        (
            lambda: derive(SECRET, NO_ENTROPY, "", -1, tiles=[1]),
            "INVALID_HAND_NUMBER",
            "hand_number",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], object], reason: str, field: str) -> None:
    with pytest.raises(InvalidWall) as caught:
        call()
    assert (caught.value.reason, caught.value.field) == (reason, field)


@pytest.mark.parametrize("dealer", range(4))
def test_the_deal_takes_fours_from_the_dealer_on_and_then_single_tiles(dealer: int) -> None:
    seats = dealt_indices(dealer)
    after = [(dealer + turn) % 4 for turn in range(4)]
    assert seats[after[0]] == (0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35, 48, 52)
    assert seats[after[1]] == (4, 5, 6, 7, 20, 21, 22, 23, 36, 37, 38, 39, 49)
    assert seats[after[2]] == (8, 9, 10, 11, 24, 25, 26, 27, 40, 41, 42, 43, 50)
    assert seats[after[3]] == (12, 13, 14, 15, 28, 29, 30, 31, 44, 45, 46, 47, 51)
    assert sorted(index for indices in seats for index in indices) == list(range(DEALT))
