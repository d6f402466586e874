"""What operators can do: each verb with what it is about, its call, and what is told of it.

What is told, before and after, is a list of `Said`: a key of the page's words with what stands in
the sentence, so that the page says it in the reader's language and the log keeps it in none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

from fangcheng.matchmaking.v1 import operations_pb2 as queues
from fangcheng.table.v1 import operators_pb2 as tables
from fangcheng.table.v1 import state_pb2
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2

from .oplog import Target
from .problems import Refused


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence."""

    key: str
    """Of the page's words (`static/acts.i18n.js`), without the prefix `act.`."""
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an act would do now."""

    target: Target
    request: Message
    """The call's, but for who, why and under which id."""
    says: Sequence[Said]
    warnings: Sequence[Said] = ()
    seen: Mapping[str, Any] = field(default_factory=dict)
    """What it rests on, and must still be so when it is done."""
    impossible: Said | None = None
    """Why it cannot be done now."""
    confirm: str = ""
    """To be typed before what cannot be taken back."""

    def as_json(self) -> dict[str, Any]:
        """For the page, and for the log."""
        return {
            "says": [asdict(one) for one in self.says],
            "warnings": [asdict(one) for one in self.warnings],
            "impossible": self.impossible and asdict(self.impossible),
        }


@dataclass(frozen=True, slots=True)
class Verb:
    """Something that operators can do."""

    fields: tuple[str, ...]
    """What it needs to be told."""
    stub: str
    """Of `backend.Backend`."""
    call: str
    request: type[Message]
    outcome: Callable[[Any, Any, Mapping[str, Any]], Sequence[Said]]
    """What its answer tells, from request, response and what was seen before."""

    def filled(self, asked: dict[str, Any], order: Mapping[str, str]) -> Any:
        """The request as it is sent. `asked`: as JSON; `order`: request id, reason, case."""
        request = ParseDict(asked, self.request())
        for name, value in order.items():
            if name in request.DESCRIPTOR.fields_by_name:
                setattr(request, name, value)
        return request


def as_asked(request: Message) -> dict[str, Any]:
    """A request as the log keeps it."""
    asked: dict[str, Any] = MessageToDict(request, preserving_proto_field_name=True)
    return asked


def money(currency: str, book: str, amount: int) -> dict[str, Any]:
    """An amount in a sentence."""
    return {"currency": currency, "book": book, "amount": amount}


def _removed(request: Any, response: Any, _: Any) -> list[Said]:
    return [
        Said("removed", {"player": request.player_id}),
        *_table(response.table),
    ]


def _voided(request: Any, response: Any, _: Any) -> list[Said]:
    return [
        Said("voided", {"hand": request.hand_number}),
        *_table(response.table),
    ]


def _closed(request: Any, response: Any, _: Any) -> list[Said]:
    if response.table.phase == state_pb2.TABLE_PHASE_CLOSED:
        return [Said("closed")]
    return [Said("closes_after", {"hand": response.table.hand_number})]


def _table(table: state_pb2.Table) -> list[Said]:
    if table.phase == state_pb2.TABLE_PHASE_CLOSED:
        return [Said("table_is_closed")]
    return []


def _reversed(request: Any, response: Any, seen: Mapping[str, Any]) -> list[Said]:
    said = [Said("reversed")]
    for party in response.reversal.parties:
        params = {"player": seen["parties"][party.party]}
        if party.amount:
            amount = money(party.currency, party.book, abs(party.amount))
            key = "gets_back" if party.amount > 0 else "gives_back"
            said.append(Said(key, {**params, "money": [amount]}))
        if party.owed:
            owed = money(party.currency, party.book, party.owed)
            said.append(Said("owes", {**params, "money": [owed]}))
    return said


def _collected(request: Any, response: Any, _: Any) -> list[Said]:
    paid = money(request.currency, request.book, request.amount)
    left = money(request.currency, request.book, response.owed)
    key = "written_off" if request.write_off else "collected"
    params = {"player": request.player_id}
    return [
        Said(key, {**params, "money": [paid]}),
        Said("owes", {**params, "money": [left]})
        if response.owed
        else Said("owes_nothing", params),
    ]


def _pool(key: str) -> Callable[[Any, Any, Any], list[Said]]:
    return lambda request, _, __: [Said(key, {"pool": request.pool_id})]


def _player(key: str) -> Callable[[Any, Any, Any], list[Said]]:
    return lambda request, _, __: [Said(key, {"player": request.player_id})]


def _pair(key: str) -> Callable[[Any, Any, Any], list[Said]]:
    return lambda request, _, __: [
        Said(key, {"player": request.player_id, "other": request.other_id})
    ]


_OWED = ("player_id", "currency", "book", "amount")

VERBS: Mapping[str, Verb] = {
    "remove_player": Verb(
        ("table_id", "player_id"),
        *("operations", "RemoveFromTable", tables.RemoveFromTableRequest, _removed),
    ),
    "void_hand": Verb(("table_id",), "operations", "VoidHand", tables.VoidHandRequest, _voided),
    "close_table": Verb(
        ("table_id",), "operations", "CloseTable", tables.CloseTableRequest, _closed
    ),
    "close_table_after_hand": Verb(
        ("table_id",), "operations", "CloseTable", tables.CloseTableRequest, _closed
    ),
    "pause_pool": Verb(
        ("pool_id",),
        *("queue_operations", "PausePool", queues.PausePoolRequest, _pool("pool_paused")),
    ),
    "close_pool": Verb(
        ("pool_id",),
        *("queue_operations", "PausePool", queues.PausePoolRequest, _pool("pool_closed")),
    ),
    "resume_pool": Verb(
        ("pool_id",),
        *("queue_operations", "ResumePool", queues.ResumePoolRequest, _pool("pool_resumed")),
    ),
    "freeze_player": Verb(
        ("player_id",),
        *("wallet", "FreezePlayer", wallet_pb2.FreezePlayerRequest, _player("frozen")),
    ),
    "unfreeze_player": Verb(
        ("player_id",),
        *("wallet", "UnfreezePlayer", wallet_pb2.UnfreezePlayerRequest, _player("unfrozen")),
    ),
    "bar_pair": Verb(
        ("player_id", "other_id"),
        *("queue_operations", "BarPair", queues.BarPairRequest, _pair("barred")),
    ),
    "unbar_pair": Verb(
        ("player_id", "other_id"),
        *("queue_operations", "UnbarPair", queues.UnbarPairRequest, _pair("unbarred")),
    ),
    "reverse_settlement": Verb(
        ("settlement",),
        *("settlements", "ReverseSettlement", settlement_pb2.ReverseSettlementRequest, _reversed),
    ),
    "collect_receivable": Verb(
        _OWED,
        *("wallet", "CollectReceivable", wallet_pb2.CollectReceivableRequest, _collected),
    ),
    "write_off_receivable": Verb(
        _OWED,
        *("wallet", "CollectReceivable", wallet_pb2.CollectReceivableRequest, _collected),
    ),
}

_LONGEST = {"table_id": 64, "pool_id": 64, "currency": 64, "book": 64}
_MOST_AMOUNT = 2**53


def is_text(value: object, longest: int) -> bool:
    """Whether this can stand in a request: a text of lines, that every database takes too."""
    return (
        isinstance(value, str) and len(value) <= longest and not any(_breaks(one) for one in value)
    )


def _breaks(sign: str) -> bool:
    """A control sign but the end of a line, or half of one that no text has alone."""
    return (sign < " " and sign != "\n") or "\ud800" <= sign <= "\udfff"


def given(verb: object, target: object) -> tuple[str, dict[str, Any]]:
    """A verb and what it is about, as a request names them; `Refused` (400) for anything else."""
    if not isinstance(verb, str) or verb not in VERBS:
        raise Refused(400, "UNKNOWN_VERB", "There is no such act.", "verb")
    if not isinstance(target, Mapping):
        raise Refused(400, "INVALID_REQUEST", "The target must be an object.", "target")
    fields = VERBS[verb].fields
    for name in target:
        if name not in fields:
            raise Refused(400, "INVALID_REQUEST", f"{verb} is about {', '.join(fields)}.", "target")
    found: dict[str, Any] = {}
    for name in fields:
        value = target.get(name, "")
        if name == "amount":
            found[name] = _amount(value)
        elif not is_text(value, _LONGEST.get(name, 128)) or not (value or name == "book"):
            raise Refused(
                400,
                "INVALID_REQUEST",
                f"{name}: a text of 1 to {_LONGEST.get(name, 128)} characters is needed.",
                name,
            )
        else:
            found[name] = value
    return verb, found


def _amount(value: object) -> int:
    # A number in a body; in an address it is digits.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 16:
        value = int(value)
    if type(value) is not int or not 1 <= value <= _MOST_AMOUNT:
        raise Refused(400, "INVALID_REQUEST", "amount: 1 to 2^53.", "amount")
    return value
