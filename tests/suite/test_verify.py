"""A hand's record is believed only where everything in it follows from the commitment."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, records_pb2
from fangcheng_rules import tiles, wall
from fangcheng_rules.rulesets import rule_set
from fangcheng_suite.errors import VerificationFailed
from fangcheng_suite.verify import verify_shuffle

KELE = rule_set("baishan_kele")
CHAIN = wall.SecretChain(root=b"r" * 32, length=8)
ENTROPY = (b"", b"two", b"", b"four")
DEALER = 2
HAND = 3


def record() -> records_pb2.HandRecord:
    """An honest record: the deal, two draws from the front, one from the back."""
    secret = CHAIN.secret(HAND)
    shuffled, dice = wall.derive(
        secret, ENTROPY, "t1", HAND, tiles=KELE.wall_tiles, dice=KELE.hand_dice
    )
    codes = [tiles.code(kind) for kind in shuffled]
    hands = [
        events_pb2.SeatTiles(tiles=sorted(codes[index] for index in indices))
        for indices in wall.dealt_indices(DEALER)
    ]
    events = [
        events_pb2.TableEvent(
            hand_started=events_pb2.HandStarted(
                hand_number=HAND,
                dealer=DEALER,
                dice=dice,
                commitment=hashlib.sha256(secret).digest(),
                entropy=ENTROPY,
            )
        ),
        events_pb2.TableEvent(dealt=events_pb2.Dealt(hands=hands)),
        events_pb2.TableEvent(drawn=events_pb2.Drawn(seat=3, tile=codes[53], origin="front")),
        events_pb2.TableEvent(drawn=events_pb2.Drawn(seat=3, tile=codes[135], origin="back")),
        events_pb2.TableEvent(drawn=events_pb2.Drawn(seat=0, tile=codes[54], origin="dealt_out")),
    ]
    return records_pb2.HandRecord(
        table_id="t1",
        hand_number=HAND,
        rules=rules_pb2.RuleSetChoice(id=KELE.id, revision=KELE.revision),
        table_commitment=CHAIN.commitment,
        secret=secret,
        entropy=ENTROPY,
        wall=codes,
        dice=dice,
        events=events,
    )


def test_an_honest_record_checks_out() -> None:
    found = verify_shuffle(record(), CHAIN.commitment)
    assert (found.wall_tiles, found.dealt, found.drawn_front, found.drawn_back) == (136, 53, 2, 1)


def _other_secret(record: records_pb2.HandRecord) -> None:
    record.secret = CHAIN.secret(HAND + 1)


def _swap_in_the_wall(record: records_pb2.HandRecord) -> None:
    there = next(i for i in range(100, 136) if record.wall[i] != record.wall[99])
    record.wall[99], record.wall[there] = record.wall[there], record.wall[99]


def _other_dice(record: records_pb2.HandRecord) -> None:
    record.dice[0] = record.dice[0] % 6 + 1


def _other_entropy(record: records_pb2.HandRecord) -> None:
    record.entropy[1] = b"too late"


def _entropy_not_told_before(record: records_pb2.HandRecord) -> None:
    record.events[0].hand_started.entropy[1] = b"other"


def _other_hand_commitment(record: records_pb2.HandRecord) -> None:
    record.events[0].hand_started.commitment = b"0" * 32


def _other_deal(record: records_pb2.HandRecord) -> None:
    hand = record.events[1].dealt.hands[0].tiles
    hand[0] = hand[0] % 9 + 11 if hand[0] < 20 else 11


def _other_draw(record: records_pb2.HandRecord) -> None:
    drawn = record.events[2].drawn
    drawn.tile = 12 if drawn.tile == 11 else 11


def _other_end_of_the_wall(record: records_pb2.HandRecord) -> None:
    drawn = record.events[3].drawn
    drawn.tile = 12 if drawn.tile == 11 else 11


def _other_hand(record: records_pb2.HandRecord) -> None:
    record.hand_number += 1


def _no_deal(record: records_pb2.HandRecord) -> None:
    del record.events[1]


@pytest.mark.parametrize(
    "tamper",
    [
        _other_secret,
        _swap_in_the_wall,
        _other_dice,
        _other_entropy,
        _entropy_not_told_before,
        _other_hand_commitment,
        _other_deal,
        _other_draw,
        _other_end_of_the_wall,
        _other_hand,
        _no_deal,
    ],
)
def test_a_record_that_was_changed_is_refused(
    tamper: Callable[[records_pb2.HandRecord], None],
) -> None:
    changed = record()
    tamper(changed)
    with pytest.raises(VerificationFailed, match="the shuffle does not check out"):
        verify_shuffle(changed, CHAIN.commitment)


def test_a_record_of_another_commitment_is_refused() -> None:
    with pytest.raises(VerificationFailed, match="another commitment"):
        verify_shuffle(record(), hashlib.sha256(b"other").digest())
