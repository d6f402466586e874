"""Personal data: what is to be erased of a player, and the lines in which it is exported.

The same in every service that keeps something. Ids are opaque and stay; what goes are profiles,
texts, and those labels that the studio says name a person.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

MOST_LINES = 500
"""Of a message of an export."""


class _Label(Protocol):
    """``ErasedLabel`` of any service."""

    @property
    def key(self) -> str: ...

    @property
    def value(self) -> str: ...


class _Request(Protocol):
    """``ErasePlayerRequest`` of any service."""

    request_id: str
    player_id: str
    keep_texts: bool
    reason: str

    @property
    def erase_labels(self) -> Iterable[_Label]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What is to be erased of a player."""

    request_id: str
    player_id: str
    labels: frozenset[tuple[str, str]] = frozenset()
    """Key, and the value that it must have to go; empty: any."""
    keep_texts: bool = False
    reason: str = ""

    def without(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Those of some labels that stay."""
        return {
            key: value
            for key, value in labels.items()
            if not self.labels & {(key, ""), (key, value)}
        }

    @property
    def labels_digest(self) -> str:
        """Tells other labels under the same request id: what is erased is not kept for that."""
        asked = [self.request_id, self.player_id, sorted(self.labels)]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def erasure_of(request: _Request) -> Erasure:
    """What a request asks for."""
    return Erasure(
        request_id=request.request_id,
        player_id=request.player_id,
        labels=frozenset((label.key, label.value) for label in request.erase_labels),
        keep_texts=request.keep_texts,
        reason=request.reason,
    )


def line(kind: str, **fields: Any) -> str:
    """A line of an export: JSON, its ``kind`` first; what is empty or ``None`` is left out."""
    told = {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}
    return json.dumps({"kind": kind, **told}, ensure_ascii=False)


def profile_field(profile: bytes) -> dict[str, str]:
    """A profile for ``line``: as text where it is one, or in base64."""
    try:
        return {"profile": profile.decode()}
    except UnicodeDecodeError:
        return {"profile_base64": base64.b64encode(profile).decode()}


async def in_messages(lines: AsyncIterable[str]) -> AsyncIterator[list[str]]:
    """Lines put together, as many as a message takes."""
    message: list[str] = []
    async for one in lines:
        message.append(one)
        if len(message) == MOST_LINES:
            yield message
            message = []
    if message:
        yield message
