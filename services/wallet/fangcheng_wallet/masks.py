"""What can be erased of an operation: texts about a player, and labels that name a person.

Everything else stays: amounts, times, and the ids of players, requests and cases. The chain was
made of what had been written. So a masked operation is noted with its *own* digest as the chain
has it, and an operation ``mask`` in the chain says what is *left* of each. A posting that has not
lost its memo, and so every one of a settlement, is held against its digest as before. Who writes to
the database past the service could add a ``mask`` of his own and change what lost a memo: the
number of masked operations, which ``VerifyLedger`` tells, then rises without an erasure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from fangcheng_kit.privacy import Erasure
from fangcheng_wallet.canonical import dumps, fingerprint

_TEXTS: Mapping[str, str] = {
    "deposit": "memo",
    "withdraw": "memo",
    "collect": "reason",
    "freeze": "reason",
    "reverse": "reason",
}
"""The free text of each verb. The memo of its postings is the same."""

SAYING = ("settle", *_TEXTS)
"""Verbs of which something can be erased."""

_MEMO = -2
"""Of a posting as the chain covers it."""


class Written(NamedTuple):
    """An operation, and what of it can be erased."""

    number: int
    verb: str
    key: str | None
    time_us: int
    body: str
    answer: str
    labels: dict[str, str]
    postings: Sequence[Sequence[Any]]
    """As the chain covers them; empty: there are none, or they are archived."""


class Masked(msgspec.Struct, frozen=True):
    """An operation as it is from now on."""

    number: int
    body: str
    answer: str
    labels: dict[str, str]
    memos: tuple[int, ...]
    """Numbers of the postings that lose theirs."""
    own: bytes
    """The digest of the operation as it was before."""
    left: str
    """The digest of what is left of it, with its postings."""


class MaskBody(msgspec.Struct, frozen=True):
    """What the operation that masks says."""

    player_id: str
    operations: tuple[tuple[int, str], ...]
    """Each with the digest of what is left of it."""


def own(fields: Sequence[Any]) -> bytes:
    """What the chain has of an operation: number, verb, key, time, body and answer."""
    return fingerprint(tuple(fields))


def left(fields: Sequence[Any], postings: Sequence[Sequence[Any]]) -> str:
    """What a mask says is left of an operation."""
    return fingerprint([*fields, [tuple(one) for one in postings]]).hex()


def may_lack_memo(verb: str, posting: Sequence[Any]) -> bool:
    """Whether a posting of a masked operation may be one that has lost its memo."""
    return verb in _TEXTS and not posting[_MEMO]


def mask(written: Written, erasure: Erasure) -> Masked | None:
    """An operation without what is to be erased; ``None``: there is nothing of that in it."""
    text = None if erasure.keep_texts else _TEXTS.get(written.verb)
    body = _without(written.body, text, erasure)
    answer = _without(written.answer, text, erasure)
    labels = erasure.without(written.labels)
    memos = {one[0] for one in written.postings if text and one[_MEMO]}
    if (body, answer, labels) == (written.body, written.answer, written.labels) and not memos:
        return None
    postings = [
        (*one[:_MEMO], "", *one[_MEMO + 1 :]) if one[0] in memos else one
        for one in written.postings
    ]
    return Masked(
        written.number,
        body,
        answer,
        labels,
        tuple(sorted(memos)),
        own(written[:6]),
        left((*written[:4], body, answer), postings),
    )


def _without(text: str, field: str | None, erasure: Erasure) -> str:
    """A body or an answer without what is to be erased; the same where there is nothing."""
    value = msgspec.json.decode(text)
    if not isinstance(value, dict):
        return text
    masked = dict(value)
    if masked.get("labels"):
        masked["labels"] = erasure.without(masked["labels"])
    if field is not None and masked.get(field):
        masked[field] = ""
    return text if masked == value else dumps(masked)
