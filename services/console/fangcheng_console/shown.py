"""A table as pages are told it: plain data made of the fold of a viewer's events.

    shown = Shown()
    async for event in watch(channel, table_id):
        shown.apply(event)
        feed.publish(shown.message)

It tells what its events told and nothing else, so that the stream of a spectator makes a page
without hidden tiles. Made many times a second, by hand where protobuf's own JSON would be slow.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import SeatView, TableView

from .names import name_of

LOGGED_EVENTS = 30

PHASES = {
    state_pb2.TABLE_PHASE_BEFORE_DEAL: "before_deal",
    state_pb2.TABLE_PHASE_PLAYING: "playing",
    state_pb2.TABLE_PHASE_BETWEEN_HANDS: "between_hands",
    state_pb2.TABLE_PHASE_CLOSED: "closed",
}

_NOBODY = [state_pb2.Seat(seat=seat) for seat in range(4)]
_UNLOGGED = frozenset({"prompt", "prompt_closed", "seat_prompted", "seat_prompt_closed"})
_STARTS_A_CLOCK = frozenset({"hand_started", "dealt", "drawn", "melded", "discarded"})
_STOPS_THE_CLOCK = frozenset({"hand_ended", "table_closed", "snapshot"})


class Shown:
    """What one viewer's events add up to, and the last of them."""

    def __init__(self, view: TableView | None = None) -> None:
        self.view = view or TableView()
        self.log: deque[dict[str, Any]] = deque(maxlen=LOGGED_EVENTS)
        """The newest events as `logged` gives them."""
        self.time_ms = 0
        """When the newest event was stored."""
        self.turn_since_ms: int | None = None
        """Since when the seat whose turn it is, or those who may claim, are asked."""
        self._asked_ms: dict[tuple[int, str], int] = {}
        """When the prompts of a revealed view were told, by seat and id."""
        self._ended: tuple[object, dict[str, Any] | None] = (None, None)
        self._settled: tuple[object, dict[str, Any] | None] = (None, None)
        self._fixed: tuple[object, dict[str, Any]] = (None, {})

    def apply(self, event: events_pb2.TableEvent) -> None:
        """Take the viewer's next event."""
        kind = event.WhichOneof("kind") or ""
        self.view.apply(event)
        self.time_ms = event.time.ToMilliseconds()
        if kind in _STARTS_A_CLOCK:
            self.turn_since_ms = self.time_ms
        elif kind in _STOPS_THE_CLOCK:
            self.turn_since_ms = None
        if kind not in _UNLOGGED:
            self.log.append(logged(event))
        if self.view.prompts or self._asked_ms:
            self._note_prompts()

    def _note_prompts(self) -> None:
        """Since when the open prompts are known."""
        opened = [(seat, prompt.decision_id) for seat, prompt in self.view.prompts.items()]
        self._asked_ms = {one: self._asked_ms.get(one, self.time_ms) for one in opened}

    def message(self) -> dict[str, Any]:
        """The table's state, and the last events."""
        return {"state": self.state(), "log": list(self.log)}

    def state(self) -> dict[str, Any]:
        """The table as it stands."""
        view = self.view
        if self._fixed[0] is not view.table:
            self._fixed = view.table, _fixed(view)
        if self._ended[0] is not view.ended:
            self._ended = view.ended, _json(view.ended)
        if self._settled[0] is not view.settled:
            self._settled = view.settled, _json(view.settled)
        state = _moving(view)
        state.update(self._fixed[1])
        timing = view.table.timing
        state["ended"] = self._ended[1]
        state["settled"] = self._settled[1]
        state["prompts"] = self._prompts()
        state["number"] = view.last_number
        state["time_ms"] = self.time_ms
        state["clock"] = {
            "turn_since_ms": self.turn_since_ms,
            "turn_ms": timing.turn_ms,
            "claim_ms": timing.claim_ms,
            "before_deal_ms": timing.before_deal_ms,
            "server_ms": time.time_ns() // 1_000_000,
        }
        return state

    def _prompts(self) -> list[dict[str, Any]]:
        return [
            {
                "seat": seat,
                "kind": prompt.kind,
                "actions": [action(one) for one in prompt.actions],
                "since_ms": self._asked_ms.get((seat, prompt.decision_id), self.time_ms),
                "ms": prompt.ms_left,
            }
            for seat, prompt in sorted(self.view.prompts.items())
        ]


def table_state(view: TableView, *, number: int, time_ms: int) -> dict[str, Any]:
    """The state of a picture alone, as of an event's number and time; its clock does not run."""
    shown = Shown(view)
    shown.time_ms = time_ms
    return {**shown.state(), "number": number}


def logged(event: events_pb2.TableEvent) -> dict[str, Any]:
    """An event as protobuf JSON: `{"number", "time", <kind>: {…}}`.

    What the state tells anyway is left out: all of a snapshot and of the table as it was opened,
    and of a hand that has ended the tiles and what they count.
    """
    kind = event.WhichOneof("kind")
    if kind in ("snapshot", "table_opened"):
        return {
            "number": str(event.number),
            "time": event.time.ToJsonString(),
            kind: {},
        }
    if kind == "hand_ended":
        slim = events_pb2.TableEvent()
        slim.CopyFrom(event)
        del slim.hand_ended.hand.seats[:]
        slim.hand_ended.ClearField("score")
        event = slim
    return as_json(event)


def _fixed(view: TableView) -> dict[str, Any]:
    """What rarely changes."""
    table = view.table
    return {
        "table_id": view.table_id,
        "rules": {
            "id": view.rules.id,
            "revision": view.rules.revision,
            "options": options(view.rules.options),
        },
        "labels": dict(table.labels),
        "hands": view.hands,
        "rounds": table.rounds,
        "hold_only": table.hold_only,
        "starting_chips": table.starting_chips,
        "stakes": [
            {
                "currency": stake.currency,
                "book": stake.book,
                "per_unit": stake.per_unit,
                "minimum": stake.minimum,
                "loss_cap": stake.loss_cap,
            }
            for stake in view.stakes
        ],
    }


def _moving(view: TableView) -> dict[str, Any]:
    """What each event may change."""
    started, lying, vote, closed = view.started, view.last_discard, view.vote, view.closed
    starting_chips = view.table.starting_chips
    return {
        "phase": PHASES[view.phase],
        "hand_number": view.hand_number,
        "dealer": view.dealer,
        "wall": view.wall_tiles,
        "wall_total": started.wall_tiles if started is not None else 0,
        "dice": list(started.dice) if started is not None else [],
        "turned": list(view.turned),
        "treasure": view.treasure,
        "turn": view.turn,
        "dealing": view.dealing,
        "last_discard": lying and {"seat": lying[0], "tile": lying[1]},
        "seats": [
            _seat(seat, name_of(sits.profile, seat.player_id), starting_chips)
            for seat, sits in zip(view.seats, _sitting(view), strict=True)
        ],
        "vote": vote and {"seat": vote.seat, "agreed": list(vote.agreed)},
        "ready_check": bool(view.ready_check),
        "closed": closed
        and {
            "reason": closed.reason,
            "standings": list(closed.standings),
            "ranking": [
                {
                    "place": rank.place,
                    "seat": rank.seat,
                    "player_id": rank.player_id,
                    "standing": rank.standing,
                }
                for rank in closed.ranking
            ],
        },
    }


def _sitting(view: TableView) -> Iterable[state_pb2.Seat]:
    """Who sits there; of a table that nothing was told of yet, nobody."""
    return view.table.seats or _NOBODY


def _seat(seat: SeatView, name: str, starting_chips: int) -> dict[str, Any]:
    return {
        "player_id": seat.player_id,
        "name": name,
        "concealed": list(seat.concealed),
        "drawn": seat.drawn,
        "melds": [meld(one) for one in seat.melds],
        "river": list(seat.river),
        "flowers": list(seat.flowers),
        "declared": seat.declared,
        "piao": seat.piao,
        "false_wins": seat.false_wins,
        "connected": seat.connected,
        "trustee": seat.trustee,
        "leaving": seat.leaving,
        "ready": seat.ready,
        "standing": seat.standing,
        "chips": starting_chips + seat.standing if starting_chips else 0,
    }


def meld(laid: rules_pb2.Meld) -> dict[str, Any]:
    """A meld as plain data."""
    return {
        "kind": laid.kind,
        "tiles": list(laid.tiles),
        "from_seat": laid.from_seat if laid.HasField("from_seat") else None,
        "claimed_tile": laid.claimed_tile,
        "treasure": laid.treasure,
    }


def action(offered: state_pb2.Action) -> dict[str, Any]:
    """An answer to a prompt as plain data."""
    return {
        "kind": offered.kind,
        "tile": offered.tile,
        "tiles": list(offered.tiles),
        "meld": offered.meld,
        "declare": offered.declare,
        "amount": offered.amount,
    }


def options(given: Mapping[str, rules_pb2.OptionValue]) -> dict[str, bool | int | str]:
    """The options of a choice of rules by their ids."""
    return {name: getattr(given[name], given[name].WhichOneof("value") or "") for name in given}


def _json(message: Message | None) -> dict[str, Any] | None:
    return None if message is None else as_json(message)


def as_json(message: Message) -> dict[str, Any]:
    """A message as protobuf JSON, with the fields' own names, those at their default too."""
    made: dict[str, Any] = MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
    return made
