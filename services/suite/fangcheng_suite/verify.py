"""Checks a finished hand as a distrustful player would: from its record and what was told before.

The server committed to its secrets when the table was made. Here it is recomputed, with nothing but
SHA-256 and the published algorithm, that this hand's secret is one of them, that the wall follows
from it, and that what was dealt and drawn is that wall in its order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from fangcheng.table.v1 import records_pb2
from fangcheng_rules import tiles, wall
from fangcheng_rules.ruleset import WallCount, WallPolicy
from fangcheng_rules.rulesets import rule_set

from .errors import VerificationFailed


@dataclass(frozen=True, slots=True)
class Verified:
    """What was checked."""

    hand_number: int
    wall_tiles: int
    """Length of the wall that was recomputed."""
    dealt: int
    drawn_front: int
    """Draws from the front after the deal, those dealt out among them."""
    drawn_back: int


def verify(record: records_pb2.HandRecord, commitment: bytes) -> Verified:
    """Check a hand's record against the commitment told when the table was made.

    Raises VerificationFailed at the first thing that does not follow.
    """
    number = record.hand_number
    _check(
        record.table_commitment == commitment,
        "the record names another commitment than the table did",
    )
    hashed = record.secret
    for _ in range(number):
        hashed = hashlib.sha256(hashed).digest()
    _check(hashed == commitment, f"the secret, hashed {number} times, is not the commitment")

    rules = rule_set(record.rules.id, record.rules.revision)
    expected, dice = wall.derive(
        record.secret,
        list(record.entropy),
        record.table_id,
        number,
        tiles=rules.wall_tiles,
        dice=len(record.dice),
    )
    codes = [tiles.code(kind) for kind in expected]
    _check(list(record.wall) == codes, "the wall does not follow from the secret")
    _check(list(record.dice) == list(dice), "the dice do not follow from the secret")
    return _replayed(record, codes, rules.wall)


def _replayed(record: records_pb2.HandRecord, codes: Sequence[int], policy: WallPolicy) -> Verified:
    """Compare what was dealt, turned up and drawn with the wall."""
    front, back, dealt = wall.DEALT, 0, 0
    turned: tuple[int, ...] = ()
    for event in record.events:
        kind = event.WhichOneof("kind")
        if kind == "hand_started":
            started = event.hand_started
            _check(
                started.commitment == hashlib.sha256(record.secret).digest(),
                "the hand began with another commitment than its secret has",
            )
            _check(
                list(started.entropy) == list(record.entropy),
                "the hand began with other shares of the seats than the record has",
            )
            dealer = started.dealer
        elif kind == "dealt":
            for seat, indices in enumerate(wall.dealt_indices(dealer)):
                hand = sorted(codes[index] for index in indices)
                _check(
                    sorted(event.dealt.hands[seat].tiles) == hand,
                    f"seat {seat} was dealt other tiles than the wall has",
                )
                dealt += len(hand)
        elif kind == "drawn":
            drawn = event.drawn
            if drawn.origin in ("back", "flower"):
                index = policy.replacement(WallCount(len(codes), front, back, 0, turned))
                back += 1
            else:
                index = front
                front += 1
            _check(
                drawn.tile == codes[index],
                f"seat {drawn.seat} drew another tile than the wall has at {index}",
            )
        elif kind == "treasure_turned" and event.treasure_turned.HasField("index"):
            index = event.treasure_turned.index
            _check(
                index < len(codes) and event.treasure_turned.tile == codes[index],
                f"another tile was turned up than the wall has at {index}",
            )
            turned = (*turned, index)
    _check(dealt > 0, "the record has no deal")
    _check(front + back <= len(codes), "more tiles were drawn than the wall has")
    return Verified(record.hand_number, len(codes), dealt, front - wall.DEALT, back)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise VerificationFailed(f"the shuffle does not check out: {otherwise}")
