"""Events as the text that a journal stores: a kind, a version, and a JSON body.

The kind is the event's name, the version counts up when its fields change their meaning; a body of
an older version is read by a reader of its own, kept in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast, get_args

import msgspec

from fangcheng_rules import events as play
from fangcheng_rules.actions import Action, ActionKind
from fangcheng_rules.analysis import Analysis, DiscardChoice, KongChoice, Wait
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.scoring import Dissolved, Draw, EightFlowers, End, Escape, Score, Win

from .events import Event, Offered, OwnEvent

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


# What a seat may do and what the evaluator told are most of what a hand has to say. They are stored
# as rows without names, from the end of which what is usual is left out.


class _Action(msgspec.Struct, array_like=True):
    kind: ActionKind
    tile: int | None = None
    declare: str = ""
    tiles: tuple[int, ...] = ()
    meld: MeldKind | None = None
    amount: int = 0


class _Offered(msgspec.Struct):
    seat: int
    decision: int
    actions: tuple[_Action, ...]


_Waits = tuple[tuple[int, int, int], ...]
_Kongs = tuple[tuple[int, MeldKind, _Waits], ...]


class _Analysis(msgspec.Struct):
    """An analysis as far as a hand is played by it."""

    question: int
    seat: int
    wins: bool = False
    waits: _Waits = ()
    discards: tuple[tuple[int, _Waits, _Kongs], ...] = ()
    kongs: _Kongs = ()
    claim_kongs: _Kongs = ()


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


def _read_offered(body: str) -> Event:
    stored = msgspec.json.decode(body, type=_Offered)
    actions = tuple(
        Action(row.kind, row.tile, row.tiles, row.declare, row.amount, row.meld)
        for row in stored.actions
    )
    return Offered(stored.seat, stored.decision, actions)


def _offered(event: Offered) -> object:
    rows = []
    for action in event.actions:
        row: list[object] = [action.kind]
        row += (action.tile, action.declare, action.tiles, action.meld, action.amount)
        while len(row) > 1 and row[-1] == _USUAL[len(row) - 1]:
            row.pop()
        rows.append(row)
    return {"seat": event.seat, "decision": event.decision, "actions": rows}


# Tile 0 is a tile; what is left out depends on the place.
_USUAL: tuple[object, ...] = ("", None, "", (), None, 0)


def _read_analysis(body: str) -> Event:
    stored = msgspec.json.decode(body, type=_Analysis)
    analysis = Analysis(
        wins=stored.wins,
        waits=_from_rows(stored.waits),
        discards=tuple(
            DiscardChoice(tile, _from_rows(rows), claim_kongs=_kongs_from_rows(kongs))
            for tile, rows, kongs in stored.discards
        ),
        kongs=_kongs_from_rows(stored.kongs),
        claim_kongs=_kongs_from_rows(stored.claim_kongs),
    )
    return play.AnalysisKept(stored.question, stored.seat, analysis)


def _analysis(event: play.AnalysisKept) -> object:
    analysis = event.analysis
    return _Analysis(
        question=event.question,
        seat=event.seat,
        wins=analysis.wins,
        waits=_to_rows(analysis.waits),
        discards=tuple(
            (choice.tile, _to_rows(choice.waits), _kongs_to_rows(choice.claim_kongs))
            for choice in analysis.discards
        ),
        kongs=_kongs_to_rows(analysis.kongs),
        claim_kongs=_kongs_to_rows(analysis.claim_kongs),
    )


def _to_rows(waits: tuple[Wait, ...]) -> _Waits:
    return tuple((wait.tile, wait.least_fan, wait.least_units) for wait in waits)


def _from_rows(rows: _Waits) -> tuple[Wait, ...]:
    return tuple(Wait(*row) for row in rows)


def _kongs_to_rows(kongs: tuple[KongChoice, ...]) -> _Kongs:
    return tuple((kong.tile, kong.kind, _to_rows(kong.waits)) for kong in kongs)


def _kongs_from_rows(rows: _Kongs) -> tuple[KongChoice, ...]:
    return tuple(KongChoice(tile, kind, _from_rows(waits)) for tile, kind, waits in rows)


def _reader(kind: type[Any]) -> Callable[[str], Event]:
    decoder = msgspec.json.Decoder(kind)
    return lambda body: cast(Event, decoder.decode(body))


_READERS: dict[tuple[str, int], Callable[[str], Event]] = {
    (kind.__name__, VERSION): _reader(kind)
    for kind in (*get_args(OwnEvent), *get_args(play.Event))
    if kind not in (play.PlayEnded, play.HandEnded, play.AnalysisKept)
}
_READERS["Offered", VERSION] = _read_offered
_READERS["AnalysisKept", VERSION] = _read_analysis
_READERS["PlayEnded", VERSION] = _read_play_ended
_READERS["HandEnded", VERSION] = _read_hand_ended


def encode(event: Event) -> StoredEvent:
    """An event as the journal stores it. Of an analysis, what no hand is played by is left out."""
    body: object = event
    match event:
        case Offered():
            body = _offered(event)
        case play.AnalysisKept():
            body = _analysis(event)
        case play.PlayEnded():
            body = _PlayEnded(_end_to_raw(event.end))
        case play.HandEnded():
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
