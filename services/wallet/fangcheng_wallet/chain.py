"""The chain of hashes: what was written cannot be changed later without it showing.

Each operation has a *link*: a digest of each of its postings, and a *head*, the hash of the head
before, these digests and the operation itself. A changed posting no longer has its digest; a
changed digest no longer leads to the head. Who rewrites everything that follows as well is found by
whoever has noted an earlier head elsewhere. The links are written a moment after the operations,
so that no settlement waits for them.

Of an operation that was masked (see ``masks``) the chain goes by the digest of it that was noted,
and of its postings those that lost their memo are passed over; what is left of it must be what the
last ``mask`` in the chain says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fangcheng_wallet.canonical import fingerprint, loads
from fangcheng_wallet.masks import MaskBody, left, may_lack_memo, own
from fangcheng_wallet.store import ChainReport

START = bytes(32)
"""The head before the first operation."""

DIGEST = 16
"""Bytes of a posting's digest."""

LinkedPosting = Sequence[Any]
"""A posting as the chain covers it, as read from the database: number; kind, owner, currency and
book of its account; version, amount, balance after, reason, reference, memo, time."""


class LinkedOperation(NamedTuple):
    """An operation as the chain covers it."""

    number: int
    verb: str
    key: str | None
    time_us: int
    body: str
    answer: str
    postings: Sequence[LinkedPosting]


class Link(NamedTuple):
    """What the chain keeps of an operation."""

    operation: int
    digests: bytes
    """Of its postings, in order."""
    head: bytes


class Linked(NamedTuple):
    """A link with what it is of."""

    link: Link
    operation: LinkedOperation | None
    """``None``: it is not there."""
    own: bytes | None = None
    """The digest of the operation as it was written; ``None``: it was not masked."""


def extend(head: bytes, operations: Iterable[LinkedOperation]) -> list[Link]:
    """The links of operations that follow a head."""
    links = []
    for operation in operations:
        digests = b"".join(map(digest_of, operation.postings))
        head = _head(head, digests, own(operation[:-1]))
        links.append(Link(operation.number, digests, head))
    return links


def verify(
    chain: Iterable[Linked],
    *,
    start: bytes = START,
    begins_at: int = 0,
    noted: tuple[int, bytes] | None = None,
    unchained: int = 0,
    masks: Sequence[str] = (),
) -> ChainReport:
    """Compare operations with their links, up to the first that differs.

    ``None``: a link has no operation. ``begins_at``, ``start``: the last operation that was
    archived, and the head after it. ``noted``: the head that stood after so many operations.
    ``unchained``: operations without a link, for the report. ``masks``: the bodies of those among
    them that mask others, in order.
    """
    head, postings, last = start, 0, begins_at
    noted_number, noted_head = noted or (0, b"")
    are_left: dict[int, str] = {}
    said: dict[int, str] = {}

    def report(finding: str = "", posting: int | None = None) -> ChainReport:
        erased = len(are_left)
        return ChainReport(last, postings, head.hex(), unchained, finding, posting, erased)

    if noted and noted_number == begins_at and noted_head != start:
        return report(f"The head after operation {begins_at} is not the one that was noted.")
    for link, operation, own_digest in chain:
        if link.operation != last + 1 or operation is None:
            return report(f"Operation {last + 1} is missing.")
        if own_digest is not None:
            are_left[operation.number] = left(operation[:-1], operation.postings)
        elif operation.verb == "mask":
            said.update(loads(operation.body, MaskBody).operations)
        digests = [link.digests[at : at + DIGEST] for at in range(0, len(link.digests), DIGEST)]
        for posting, digest in zip(operation.postings, digests, strict=False):
            has_lost = own_digest is not None and may_lack_memo(operation.verb, posting)
            if not has_lost and digest_of(posting) != digest:
                return report(
                    f"Posting {posting[0]} of operation {operation.number} is not as it was "
                    "written.",
                    posting[0],
                )
        if len(operation.postings) != len(digests):
            missing = len(operation.postings) < len(digests)
            number = (
                operation.postings[-1][0] + 1
                if missing and operation.postings
                else operation.postings[len(digests)][0]
                if not missing
                else None
            )
            what = "has lost postings" if missing else "has postings that were not written with it"
            return report(f"Operation {operation.number} {what}.", number)
        expected = _head(head, link.digests, own_digest or own(operation[:-1]))
        if expected != link.head:
            return report(f"Operation {operation.number}, or its link, is not as it was written.")
        head, last = link.head, link.operation
        postings += len(operation.postings)
        if noted and noted_number == last and noted_head != head:
            return report(f"The head after operation {last} is not the one that was noted.")
    for body in masks:
        said.update(loads(body, MaskBody).operations)
    for number, rest in are_left.items():
        if said.get(number) != rest:
            return report(f"Operation {number} is not as the erasure has left it.")
    if noted and noted_number > last:
        return report(f"The chain ends after operation {last}; {noted_number} were noted.")
    return report()


def digest_of(posting: LinkedPosting) -> bytes:
    """What the chain keeps of a posting."""
    return fingerprint(posting)[:DIGEST]


def _head(before: bytes, digests: bytes, own_digest: bytes) -> bytes:
    return hashlib.sha256(before + digests + own_digest).digest()
