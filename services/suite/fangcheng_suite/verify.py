"""Checks a finished hand as a distrustful player would: from its record and what was told before.

The server committed to its secrets when the table was made. Here it is recomputed, with nothing but
SHA-256 and the published algorithm (docs/fairness.md), that this hand's secret is one of them, that
the wall follows from it, and that what was dealt and drawn is that wall in its order. Then the hand
is played again by its rules, to the score, and what was paid is compared with that.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from google.protobuf.message import Message

from fangcheng.table.v1 import records_pb2
from fangcheng_rules import tiles, wall
from fangcheng_rules.errors import RulesError, UnknownRevision, UnknownRuleSet
from fangcheng_rules.ruleset import WallCount, WallPolicy
from fangcheng_rules.rulesets import rule_set
from fangcheng_table.convert_settlement import FEE
from fangcheng_table.life import MOST_HANDS

from .errors import SuiteError, VerificationFailed
from .playing_again import play_again


@dataclass(frozen=True, slots=True)
class VerifiedShuffle:
    """What was checked of a hand's shuffle."""

    hand_number: int
    wall_tiles: int
    """Length of the wall that was recomputed."""
    dealt: int
    drawn_front: int
    """Draws from the front after the deal, those dealt out among them."""
    drawn_back: int


@dataclass(frozen=True, slots=True)
class Verified:
    """What was checked."""

    shuffle: VerifiedShuffle
    steps: int
    """Steps of play that follow from the rules, the score among them."""
    payments: int | None
    """Payments that follow from the score; None: nothing was paid yet."""


def verify(record: records_pb2.HandRecord, commitment: bytes) -> Verified:
    """Check all of a hand's record against the commitment told when the table was made.

    Raises VerificationFailed at the first thing that does not follow, and SuiteError where the
    rules that it was played by are not known here.
    """
    with followed():
        shuffle = verify_shuffle(record, commitment)
        steps = play_again(record)
        return Verified(shuffle, steps, verify_payments(record))


@contextmanager
def followed() -> Iterator[None]:
    """While a record that anybody may have written is followed: tells what is wrong with it.

    It may name a fifth seat or a tile that there is not, or lack what the next event needs.
    """
    try:
        yield
    except (UnknownRuleSet, UnknownRevision) as error:
        raise SuiteError(
            f"the hand cannot be followed: {error.message}",
            "`fangcheng rules` lists what this version knows; a newer one may know more.",
        ) from error
    except RulesError as error:
        raise VerificationFailed(f"the record is of no hand: {error.message}") from error
    except (LookupError, ValueError) as error:
        raise VerificationFailed(f"the record is of no hand: {error}") from error


def verify_shuffle(record: records_pb2.HandRecord, commitment: bytes) -> VerifiedShuffle:
    """Check where the tiles of a hand came from; raises VerificationFailed."""
    number = record.hand_number
    _check(
        record.table_commitment == commitment,
        "the record names another commitment than the table did",
    )
    _check(1 <= number <= MOST_HANDS, f"no table has a hand {number}")
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


def _replayed(
    record: records_pb2.HandRecord, codes: Sequence[int], policy: WallPolicy
) -> VerifiedShuffle:
    """Compare what was dealt, turned up and drawn with the wall."""
    front, back, dealt, dealer = wall.DEALT, 0, 0, 0
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
    _check(dealt > 0 or _ended_before_the_deal(record), "the record has no deal")
    _check(front + back <= len(codes), "more tiles were drawn than the wall has")
    return VerifiedShuffle(record.hand_number, len(codes), dealt, front - wall.DEALT, back)


def _ended_before_the_deal(record: records_pb2.HandRecord) -> bool:
    """A player left, or the hand was dissolved, while the seats chose their piao."""
    ends = [event.hand_ended.hand for event in record.events if event.HasField("hand_ended")]
    return any(end.HasField("escape") or end.HasField("dissolved") for end in ends)


Due = tuple[str, str, int | None, int | None, int, str]
"""Currency, book, who pays, who is paid (None: the house), how much, and what for."""


def verify_payments(record: records_pb2.HandRecord) -> int | None:
    """Check that what was paid is what the hand scored, times what a unit is worth.

    How many payments that were; None where nothing was paid (yet). Raises VerificationFailed.
    """
    ended = [event.hand_ended for event in record.events if event.HasField("hand_ended")]
    settled = [event.hand_settled for event in record.events if event.HasField("hand_settled")]
    if not settled:
        return None
    _check_paid(len(ended) == 1 and len(settled) == 1, "the record has not one end and one payment")
    key = f"{record.table_id}/{record.hand_number}"
    _check_paid(settled[0].key == key, f"it was paid under another key than {key}")
    units: Counter[tuple[int | None, int | None, str]] = Counter()
    for transfer in ended[0].score.transfers:
        units[_seat(transfer, "from_seat"), _seat(transfer, "to_seat"), transfer.reason] += (
            transfer.amount
        )
    due: Counter[Due] = Counter(
        (stake.currency, stake.book, payer, payee, amount * stake.per_unit, reason)
        for stake in record.stakes
        for (payer, payee, reason), amount in units.items()
    )
    fees: Counter[Due] = Counter(
        (fee.currency, fee.book, seat, None, fee.amount, FEE)
        for fee in record.fees
        for seat in ((fee.seat,) if fee.HasField("seat") else range(4))
    )
    told: Counter[Due] = Counter()
    for payment in settled[0].payments:
        payer, payee = _seat(payment, "from_seat"), _seat(payment, "to_seat")
        told[payment.currency, payment.book, payer, payee, payment.due, payment.reason] += 1
        _check_paid(
            0 <= payment.paid <= payment.due,
            f"{payment.paid} {payment.currency} were paid where {payment.due} were due",
        )
    for stake in record.stakes:
        for seat in range(4) if stake.loss_cap else ():
            lost = sum(
                payment.paid
                * ((_seat(payment, "from_seat") == seat) - (_seat(payment, "to_seat") == seat))
                for payment in settled[0].payments
                if (payment.currency, payment.book) == (stake.currency, stake.book)
                and payment.reason != FEE
            )
            _check_paid(
                lost <= stake.loss_cap,
                f"seat {seat} lost {lost} {stake.currency} where {stake.loss_cap} is the cap",
            )
    _check_paid(
        told in (due, due + fees),
        "what was due is not what the hand scored, times what a unit is worth, and the fees",
    )
    return told.total()


def _seat(message: Message, field: str) -> int | None:
    return getattr(message, field) if message.HasField(field) else None


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise VerificationFailed(f"the shuffle does not check out: {otherwise}")


def _check_paid(holds: bool, otherwise: str) -> None:
    if not holds:
        raise VerificationFailed(f"the payments do not check out: {otherwise}")
