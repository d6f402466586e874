"""Checks a hand's shuffle, written from docs/fairness.md alone: nothing of ours is imported.

python tests/fairness/second.py RECORD.json [COMMITMENT]
"""

from __future__ import annotations

import base64
import json
import struct
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any


def sha(data: bytes) -> bytes:
    return sha256(data).digest()


def secrets(root: bytes, hands: int) -> tuple[bytes, list[bytes]]:
    """The commitment, and the secrets of hands 1, 2, 3, ..."""
    chain = [root]
    for _ in range(hands):
        chain.append(sha(chain[-1]))
    return chain[hands], chain[hands - 1 :: -1]


def numbers(seed: bytes) -> Iterator[int]:
    """The words of 4 bytes that follow from a seed."""
    block = 0
    while True:
        yield from struct.unpack(">8I", sha(seed + struct.pack(">Q", block)))
        block += 1


def shuffled(
    secret: bytes,
    entropy: Sequence[bytes],
    table_id: str,
    hand_number: int,
    tiles: Sequence[int],
    dice: int,
) -> tuple[list[int], list[int]]:
    """The wall and the dice."""
    name = table_id.encode()
    text = b"fangcheng/wall/v1" + secret
    text += b"".join(struct.pack(">I", len(share)) + share for share in entropy)
    text += struct.pack(">I", len(name)) + name + struct.pack(">Q", hand_number)
    words = numbers(sha(text))

    def below(n: int) -> int:
        return next(word % n for word in words if word < 2**32 // n * n)

    wall = sorted(tiles)
    for i in range(len(wall) - 1, 0, -1):
        j = below(i + 1)
        wall[i], wall[j] = wall[j], wall[i]
    return wall, [1 + below(6) for _ in range(dice)]


def check(record: dict[str, Any], commitment: bytes) -> None:
    """Raise AssertionError where a record (as JSON) does not follow from a table's commitment."""
    number, wall = record["hand_number"], record["wall"]
    secret = base64.b64decode(record["secret"])
    hashed = secret
    for _ in range(number):
        hashed = sha(hashed)
    assert hashed == commitment, "the secret is not of the table's chain"
    entropy = [base64.b64decode(share) for share in record["entropy"]]
    dice = record.get("dice", [])
    expected = shuffled(secret, entropy, record["table_id"], number, wall, len(dice))
    assert (wall, dice) == expected, "wall or dice do not follow"

    front, back, turned, dealer = 53, len(wall) - 1, set[int](), 0
    for event in record["events"]:
        if "hand_started" in event:
            dealer = event["hand_started"].get("dealer", 0)
            assert base64.b64decode(event["hand_started"]["commitment"]) == sha(secret)
        elif "dealt" in event:
            for step in range(4):
                places = [16 * turn + 4 * step + tile for turn in range(3) for tile in range(4)]
                places += [48 + step, 52] if step == 0 else [48 + step]
                hand = event["dealt"]["hands"][(dealer + step) % 4]["tiles"]
                assert sorted(hand) == sorted(wall[place] for place in places), "another deal"
        elif "treasure_turned" in event and "index" in event["treasure_turned"]:
            turned.add(event["treasure_turned"]["index"])
        elif "drawn" in event and event["drawn"]["origin"] in ("front", "dealt_out"):
            assert event["drawn"]["tile"] == wall[front], f"another tile at {front}"
            front += 1
        elif "drawn" in event:
            while back in turned:
                back -= 1
            assert event["drawn"]["tile"] == wall[back], f"another tile at {back}"
            back -= 1


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        told = json.load(file)
    given = sys.argv[2:]
    check(told, bytes.fromhex(given[0]) if given else base64.b64decode(told["table_commitment"]))
    print("The shuffle checks out.")
