"""Who is calling.

It follows from the credentials of the call, never from a field. They name one of four kinds of
caller and may carry scopes: ``act_as`` lets a studio's gateway call for its players, ``bot`` marks
a player that is a program. A viewer may look around in the console and make no call at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

Kind = Literal["player", "operator", "service", "viewer"]

ACT_AS_SCOPE = "act_as"
BOT_SCOPE = "bot"
MOST_ID = 128
"""Characters of an id."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a call."""

    kind: Kind
    id: str
    """The player's id, the service's name, or that of a person of the studio's; empty for the
    operator that has none."""
    scopes: frozenset[str] = frozenset()
    """What the token allows besides."""
    via: str | None = None
    """The subject of the gateway that acts for this player, if one does."""
    expires: float = field(default=math.inf, compare=False)
    """Until when it is known who calls, in seconds since 1970: the end of the token."""

    @property
    def subject(self) -> str:
        """``player:<id>``, ``service:<name>``, ``operator[:<name>]``, ``viewer:<name>``."""
        return f"{self.kind}:{self.id}" if self.id else self.kind


_current: ContextVar[Principal] = ContextVar("fangcheng_principal")


def current() -> Principal:
    """The caller of the call that is being handled; ``LookupError`` outside of calls."""
    return _current.get()


def enter(principal: Principal) -> None:
    """Make this the caller for the rest of the present task; the kit does so for each call."""
    _current.set(principal)


@contextmanager
def calling(principal: Principal) -> Iterator[None]:
    """Make this the caller within a ``with``: for code that runs outside of a call."""
    token = _current.set(principal)
    try:
        yield
    finally:
        _current.reset(token)


def parse_subject(subject: str, scopes: Iterable[str] = ()) -> Principal:
    """The principal that a subject names; ``ValueError`` for anything else."""
    kind, colon, name = subject.partition(":")
    if subject == "operator":
        return Principal("operator", "", frozenset(scopes))
    if kind in get_args(Kind) and colon and is_id(name):
        return Principal(cast(Kind, kind), name, frozenset(scopes))
    raise ValueError(
        f"{subject!r} is none of player:<id>, service:<name>, operator, operator:<name>, "
        "viewer:<name>"
    )


def is_id(name: str) -> bool:
    """Whether this can be somebody's id: texts of requests have the same limits."""
    if not 1 <= len(name) <= MOST_ID or "\0" in name:
        return False
    # JSON can name half of a sign outside of the plane, which is no text and cannot be sent on.
    return name.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in name)
