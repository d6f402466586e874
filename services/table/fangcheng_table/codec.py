"""Events as the text that a journal stores: a kind, a version, and a JSON body.

The kind is the event's name, the version counts up when its fields change their meaning; a body of
an older version is read by a reader of its own, kept in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast, get_args

import msgspec

from fangcheng_rules import events as play
from fangcheng_rules.melds import Meld
from fangcheng_rules.scoring import Dissolved, Draw, EightFlowers, End, Escape, Score, Win

from .events import Event, OwnEvent

VERSION = 1


class StoredEvent(NamedTuple):
    """An event as the journal stores it."""

    kind: str
    version: int
    body: str


class UnknownEvent(Exception):
    """The journal holds an event that this version cannot read."""


# JSON does not say which of several types a value is, so an end carries its name.
_ENDS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Win, Draw, Escape, Dissolved, EightFlowers)
}


class _PlayEnded(msgspec.Struct):
    end: tuple[str, msgspec.Raw]


class _HandEnded(msgspec.Struct):
    end: tuple[str, msgspec.Raw]
    hands: tuple[tuple[int, ...], ...]
    melds: tuple[tuple[Meld, ...], ...]
    score: Score


_ENCODER = msgspec.json.Encoder()


def _end_to_raw(end: End) -> tuple[str, msgspec.Raw]:
    return type(end).__name__, msgspec.Raw(_ENCODER.encode(end))


def _end_from_raw(stored: tuple[str, msgspec.Raw]) -> Any:
    name, body = stored
    return msgspec.json.decode(body, type=_ENDS[name])


def _read_play_ended(body: str) -> Event:
    stored = msgspec.json.decode(body, type=_PlayEnded)
    return play.PlayEnded(_end_from_raw(stored.end))


def _read_hand_ended(body: str) -> Event:
    stored = msgspec.json.decode(body, type=_HandEnded)
    return play.HandEnded(_end_from_raw(stored.end), stored.hands, stored.melds, stored.score)


def _reader(kind: type[Any]) -> Callable[[str], Event]:
    decoder = msgspec.json.Decoder(kind)
    return lambda body: cast(Event, decoder.decode(body))


_READERS: dict[tuple[str, int], Callable[[str], Event]] = {
    (kind.__name__, VERSION): _reader(kind)
    for kind in (*get_args(OwnEvent), *get_args(play.Event))
    if kind not in (play.PlayEnded, play.HandEnded)
}
_READERS["PlayEnded", VERSION] = _read_play_ended
_READERS["HandEnded", VERSION] = _read_hand_ended


def encode(event: Event) -> StoredEvent:
    """An event as the journal stores it."""
    body: object = event
    if isinstance(event, play.PlayEnded):
        body = _PlayEnded(_end_to_raw(event.end))
    elif isinstance(event, play.HandEnded):
        body = _HandEnded(_end_to_raw(event.end), event.hands, event.melds, event.score)
    return StoredEvent(type(event).__name__, VERSION, _ENCODER.encode(body).decode())


def decode(stored: StoredEvent) -> Event:
    """The event; raises `UnknownEvent` for a kind, a version or a body that cannot be read."""
    reader = _READERS.get((stored.kind, stored.version))
    if reader is None:
        raise UnknownEvent(f"{stored.kind} version {stored.version}")
    try:
        return reader(stored.body)
    except (msgspec.MsgspecError, KeyError) as error:
        raise UnknownEvent(f"{stored.kind} version {stored.version}: {error}") from error
