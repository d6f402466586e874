"""Events as the bytes that a journal stores: see `stored/v1/event.proto`."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from fangcheng_rules import events as play
from fangcheng_rules.actions import Action
from fangcheng_rules.analysis import Analysis, DiscardChoice, KongChoice, Wait
from fangcheng_rules.errors import RulesError
from fangcheng_rules.melds import MeldKind

from .events import Event, Offered
from .stored.mapping import mapped
from .stored.v1 import event_pb2 as stored


class UnknownEvent(Exception):
    """The journal holds an event that this version cannot read."""


# What the evaluator told and what a seat may do are most of what a hand has to say; they are stored
# as rows of numbers.


def _analysis(event: play.AnalysisKept) -> stored.AnalysisKept:
    analysis = event.analysis
    return stored.AnalysisKept(
        question=event.question,
        seat=event.seat,
        wins=analysis.wins,
        waits=_numbers(analysis.waits),
        discards=[choice.tile for choice in analysis.discards],
        telling=[
            stored.AnalysisKept.Discard(
                tile=choice.tile,
                waits=_numbers(choice.waits),
                claim_kongs=_kongs(choice.claim_kongs),
            )
            for choice in analysis.discards
            if choice.waits or choice.claim_kongs
        ],
        kongs=_kongs(analysis.kongs),
        claim_kongs=_kongs(analysis.claim_kongs),
    )


def _numbers(waits: tuple[Wait, ...]) -> list[int]:
    return [number for wait in waits for number in (wait.tile, wait.least_fan, wait.least_units)]


def _kongs(kongs: tuple[KongChoice, ...]) -> list[stored.AnalysisKept.Kong]:
    return [
        stored.AnalysisKept.Kong(tile=kong.tile, kind=kong.kind, waits=_numbers(kong.waits))
        for kong in kongs
    ]


def _read_analysis(event: stored.AnalysisKept) -> play.AnalysisKept:
    telling = {
        choice.tile: DiscardChoice(
            choice.tile, _waits(choice.waits), claim_kongs=_read_kongs(choice.claim_kongs)
        )
        for choice in event.telling
    }
    return play.AnalysisKept(
        event.question,
        event.seat,
        Analysis(
            wins=event.wins,
            waits=_waits(event.waits),
            discards=tuple([telling.get(tile) or DiscardChoice(tile) for tile in event.discards]),
            kongs=_read_kongs(event.kongs),
            claim_kongs=_read_kongs(event.claim_kongs),
        ),
    )


def _waits(numbers: Any) -> tuple[Wait, ...]:
    rest = iter(numbers)
    return tuple([Wait(*three) for three in zip(rest, rest, rest, strict=True)])


def _read_kongs(kongs: Any) -> tuple[KongChoice, ...]:
    return tuple([KongChoice(kong.tile, MeldKind(kong.kind), _waits(kong.waits)) for kong in kongs])


_ACTION_TO, _ACTION_BACK = mapped(Action, stored.Action.DESCRIPTOR, {}, frozenset())
_NOT_PLAIN = -1


def _offered(event: Offered) -> stored.Offered:
    rows, others = [], []
    for action in event.actions:
        tile = action.tile
        if tile is not None and action == Action("discard", tile):
            rows.append(tile)
        else:
            rows.append(_NOT_PLAIN)
            others.append(_ACTION_TO(action))
    return stored.Offered(seat=event.seat, decision=event.decision, rows=rows, others=others)


def _read_offered(event: stored.Offered) -> Offered:
    others = iter(event.others)
    actions = [
        _ACTION_BACK(next(others)) if row == _NOT_PLAIN else Action("discard", row)
        for row in event.rows
    ]
    return Offered(event.seat, event.decision, tuple(actions))


_TO, _BACK = mapped(
    Event,
    stored.Event.DESCRIPTOR,
    {play.AnalysisKept: (_analysis, _read_analysis), Offered: (_offered, _read_offered)},
    frozenset(),
)


def encode(event: Event) -> bytes:
    """An event as the journal stores it. Of an analysis, what no hand is played by is left out."""
    body: bytes = _TO(event).SerializeToString()
    return body


def decode(body: bytes) -> Event:
    """The event; raises `UnknownEvent` for a kind or a body that cannot be read."""
    try:
        event: Event = _BACK(stored.Event.FromString(body))
    except (DecodeError, LookupError, ValueError, RulesError) as error:
        raise UnknownEvent(f"an event that this version cannot read: {error}") from error
    return event
