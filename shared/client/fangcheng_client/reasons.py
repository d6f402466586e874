"""Every reason that a refusal can have: what it means, what it comes from, and what to do about it.

    find("STALE_DECISION").cure("zh")

The catalogue itself is ``reasons.json`` beside this file, for other languages; ``docs/errors.md``
is made of it. ``Problem.cure`` of ``explain`` looks a refused call up in it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any

import grpc

LANGUAGES = ("en", "zh")
EVERY = "every"
"""Among a reason's services: what all services share refuses with it."""


class Retry(StrEnum):
    """Whether the same request may be made again."""

    NEVER = "never"
    """It would be refused again: change it, or what it is about."""
    AFTER = "after"
    """It may be accepted once something has happened that the cure names."""
    SAME = "same"
    """It passes: repeat it as it is, with the same request id, at growing intervals. A stream is
    opened again where it broke off."""


@dataclass(frozen=True, slots=True)
class Text:
    """What is told of a reason in one language, each a sentence or a few."""

    message: str
    """What is wrong, so that a player may read it too."""
    cause: str
    """What it comes from."""
    cure: str
    """What to do: in a client, or for who runs the service."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason."""

    id: str
    statuses: tuple[grpc.StatusCode, ...]
    """Those that it comes with; empty: it is told otherwise, as in the problem of a ticket."""
    http: tuple[int, ...]
    """Statuses of HTTP by which the console refuses with it, of its own."""
    services: tuple[str, ...]
    """Who refuses with it: services; ``every``; ``rules``: the package fangcheng_rules; ``client``:
    gRPC itself and what stands between client and service."""
    retry: Retry
    texts: Mapping[str, Text]
    """By language, ``LANGUAGES``."""

    def text(self, language: str = "en") -> Text:
        """In a language such as ``zh`` or ``zh-Hans``; in English for one that there is not."""
        return self.texts[language[:2] if language[:2] in self.texts else "en"]

    def cure(self, language: str = "en") -> str:
        """What to do about it; see ``text``."""
        return self.text(language).cure


@functools.cache
def catalogue() -> Mapping[str, Reason]:
    """All reasons, by their ids, in the order of the alphabet."""
    text = resources.files(__package__).joinpath("reasons.json").read_text("utf-8")
    return {name: _reason(name, told) for name, told in json.loads(text).items()}


def find(reason: str, code: grpc.StatusCode | None = None) -> Reason | None:
    """A reason; for one that is not known here, as of a newer server or a studio's own service,
    what is to be said of the status alone; ``None`` where neither is known."""
    known = catalogue().get(reason)
    return known if known is not None or code is None else catalogue().get(code.name)


def _reason(name: str, told: Any) -> Reason:
    return Reason(
        id=name,
        statuses=tuple(grpc.StatusCode[status] for status in told["statuses"]),
        http=tuple(told.get("http", ())),
        services=tuple(told["services"]),
        retry=Retry(told["retry"]),
        texts={language: Text(**told[language]) for language in LANGUAGES},
    )
