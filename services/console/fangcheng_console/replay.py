"""A finished hand, step by step: its record, what lay on the table after each event, and what a
seat's hand was worth then."""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf.json_format import MessageToJson
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import records_pb2, table_pb2
from fangcheng.table.v1.records_pb2 import HandRecord
from fangcheng_client.view import FACE_DOWN, TableView, before_hand

from .backend import Backend
from .currencies import currencies_of
from .problems import Refused
from .rule_sets import RuleSets
from .session import Person, viewer
from .shown import as_json, table_state
from .web import Console, Part

KEPT = 64
"""Replays that are kept in memory; one is a megabyte or so."""
HAND_SIZES = (13, 14)
FIRST_FLOWER = 51
SEATS = range(4)


@dataclass(slots=True)
class Replay:
    """A record, and what is made of it once for all who look at it."""

    record: HandRecord
    commitment: bytes | None
    """Of the table, as the table itself tells it; None where the table is not known any more."""
    rule_set: rules_pb2.RuleSet | None
    """As the evaluation service describes it; None where it does not know that revision."""
    currencies: list[dict[str, Any]]
    """Names and digits of the wallet's; none until it has told."""
    bodies: dict[str, bytes] = field(default_factory=dict)
    """JSON of what was asked of it, compressed; by what was asked."""

    @property
    def is_final(self) -> bool:
        """Whether nothing will be added to the record: it was paid, or there is nothing to pay."""
        if not (self.record.stakes or self.record.fees):
            return True
        return any(event.HasField("hand_settled") for event in self.record.events)

    def views(self) -> Iterator[TableView]:
        """The table before the first event, then after each: the same picture, which goes on.

        `Refused`: INVALID_RECORD, for what is no hand.
        """
        view = TableView()
        for event in (before_hand(self.record), *self.record.events):
            try:
                view.apply(event)
            except (LookupError, ValueError) as error:
                message = f"The record is of no hand: {error}, in event {event.number}."
                raise Refused(409, "INVALID_RECORD", message) from error
            yield view


def _as_is(record: HandRecord) -> HandRecord:
    return record


class Replays:
    """The hands that are looked at, from the services behind the console."""

    def __init__(
        self,
        backend: Backend,
        rule_sets: RuleSets,
        changed: Callable[[HandRecord], HandRecord] = _as_is,
    ) -> None:
        """`changed`: makes of a record what is to be seen of it."""
        self._backend = backend
        self._rule_sets = rule_sets
        self._changed = changed
        self._kept: OrderedDict[tuple[str, int], Replay] = OrderedDict()

    async def of(self, table_id: str, hand_number: int) -> Replay:
        """The replay of a finished hand.

        `AioRpcError`: UNKNOWN_TABLE, UNKNOWN_HAND, TABLE_ARCHIVED, HAND_NOT_FINISHED.
        """
        key = table_id, hand_number
        known = self._kept.get(key)
        if known is not None:
            self._kept.move_to_end(key)
            if known.record.stakes and not known.currencies:
                known.currencies = await currencies_of(self._backend)
                known.bodies.pop("page", None)
            return known
        request = records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=hand_number)
        answer, commitment, currencies = await asyncio.gather(
            self._backend.records.GetHandRecord(request),
            self._commitment(table_id),
            currencies_of(self._backend),
        )
        record = self._changed(answer.record)
        try:
            rule_set = await self._rule_sets.find(record.rules.id, record.rules.revision)
            is_known = True
        except grpc.aio.AioRpcError:  # a replay can be seen without, until it can be told
            rule_set, is_known = None, False
        replay = Replay(record, commitment, rule_set, currencies)
        if replay.is_final and is_known:
            self._kept[key] = replay
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return replay

    async def analysis(self, replay: Replay, seat: int) -> bytes:
        """What the evaluation service says of a seat's hand at each step, compressed JSON:
        `{seat, analyses: [Analysis], steps: [{analysis, left} | null]}`.

        `left`: of each tile that matters there, how many the seat has not seen. A step is null
        where there is nothing to say: before the deal, and while a flower is to be replaced.
        `AioRpcError` and `Refused` where the evaluation service cannot tell.
        """
        key = f"seat {seat}"
        if key not in replay.bodies:
            replay.bodies[key] = await self._analysed(replay, seat)
        return replay.bodies[key]

    async def _analysed(self, replay: Replay, seat: int) -> bytes:
        hands: dict[bytes, evaluation_pb2.AnalyzeRequest] = {}
        asked: list[tuple[bytes, Mapping[int, int]] | None] = []
        copies = Counter(replay.record.wall)
        for view, open_seats in zip(replay.views(), seats_seen(replay.record), strict=True):
            request = _request(replay.record.rules, view, seat)
            if request is None:
                asked.append(None)
                continue
            key = request.SerializeToString(deterministic=True)
            hands.setdefault(key, request)
            asked.append((key, unseen(copies, view, seat, open_seats)))
        analyses = await self._analyses(list(hands.values()))
        place = {key: number for number, key in enumerate(hands)}
        steps = [
            one and {"analysis": place[one[0]], "left": _left(analyses[place[one[0]]], one[1])}
            for one in asked
        ]
        told = {"seat": seat, "analyses": [as_json(one) for one in analyses], "steps": steps}
        return await asyncio.to_thread(compressed, told)

    async def _analyses(
        self, requests: Sequence[evaluation_pb2.AnalyzeRequest]
    ) -> list[evaluation_pb2.Analysis]:
        if not requests:
            return []
        answer = await self._backend.evaluation.AnalyzeBatch(
            evaluation_pb2.AnalyzeBatchRequest(requests=requests)
        )
        for result in answer.results:
            if result.HasField("problem"):
                raise Refused(409, result.problem.reason, result.problem.message)
        return [result.analysis for result in answer.results]

    async def _commitment(self, table_id: str) -> bytes | None:
        try:
            answer = await self._backend.tables.GetTable(
                table_pb2.GetTableRequest(table_id=table_id)
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.NOT_FOUND:
                raise
            return None
        return answer.table.commitment


def shown_body(replay: Replay) -> bytes:
    """All that the page of a replay draws, compressed JSON.

    `{record: HandRecord, states: [TableState], commitment: hex | null, rule_set: RuleSet | null,
    currencies: [{currency, names, minor_digits}]}`;
    `states[n]` is after the nth event of the record, `states[0]` before the first. `commitment` is
    the table's own word; what `record` says of it is the record's. `Refused`: INVALID_RECORD.
    """
    if "page" not in replay.bodies:
        told = {
            "record": as_json(replay.record),
            "states": list(_states(replay)),
            "commitment": replay.commitment and replay.commitment.hex(),
            "rule_set": replay.rule_set and as_json(replay.rule_set),
            "currencies": replay.currencies,
        }
        replay.bodies["page"] = compressed(told)
    return replay.bodies["page"]


def _states(replay: Replay) -> Iterator[dict[str, Any]]:
    times = [0, *(event.time.ToMilliseconds() for event in replay.record.events)]
    for number, (view, time_ms) in enumerate(zip(replay.views(), times, strict=True)):
        yield table_state(view, number=number, time_ms=time_ms)


def seats_seen(record: HandRecord) -> Iterator[frozenset[int]]:
    """The seats whose tiles all have seen (明楼; everybody's at the end), at each of the steps."""
    shown: frozenset[int] = frozenset()
    yield shown
    for event in record.events:
        if event.HasField("hand_started"):
            shown = frozenset()
        elif event.HasField("discarded") and event.discarded.shown:
            shown |= {event.discarded.seat}
        elif event.HasField("hand_ended"):
            shown = frozenset(SEATS)
        yield shown


def unseen(
    copies: Mapping[int, int], view: TableView, seat: int, shown: frozenset[int]
) -> dict[int, int]:
    """How many of each tile a seat has not seen; `shown`: the seats whose tiles all have seen."""
    seen: Counter[int] = Counter(view.turned)
    for number, known in enumerate(view.seats):
        is_open = number == seat or number in shown
        if is_open:
            seen.update(known.concealed)
            if number != seat and known.drawn is not None:
                seen[known.drawn] -= 1  # which it alone has seen
        seen.update(known.river)
        for meld in known.melds:
            if is_open or meld.kind != "concealed_kong":
                seen.update(meld.tiles)
    return {tile: max(0, count - seen[tile]) for tile, count in copies.items()}


def _request(
    rules: rules_pb2.RuleSetChoice, view: TableView, seat: int
) -> evaluation_pb2.AnalyzeRequest | None:
    known = view.seats[seat]
    has_flower = any(tile >= FIRST_FLOWER or tile == FACE_DOWN for tile in known.concealed)
    if has_flower or len(known.concealed) + 3 * len(known.melds) not in HAND_SIZES:
        return None
    hand = evaluation_pb2.Hand(concealed=sorted(known.concealed), melds=known.melds)
    return evaluation_pb2.AnalyzeRequest(
        rules=rules, hand=hand, progress=True, flowers=sorted(known.flowers)
    )


def _left(analysis: evaluation_pb2.Analysis, unseen: Mapping[int, int]) -> dict[int, int]:
    """Of the tiles that an analysis names, how many are left."""
    named = {*analysis.useful_tiles, *(wait.tile for wait in analysis.waits)}
    for discard in analysis.discards:
        named |= {*discard.useful_tiles, *(wait.tile for wait in discard.waits)}
    return {tile: unseen.get(tile, 0) for tile in sorted(named)}


def compressed(told: Any) -> bytes:
    """JSON, compressed."""
    return gzip.compress(to_json(told), 5, mtime=0)


def answered(request: Request, body: bytes) -> Response:
    """Compressed JSON as an answer; plain for a client that does not unpack it."""
    headers = {"cache-control": "private, no-store", "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
    else:
        body = gzip.decompress(body)
    return Response(body, headers=headers, media_type="application/json")


def exported(record: HandRecord, form: str) -> Response:
    """A record as a file to keep: what `fangcheng verify` reads, or the message itself."""
    name = f"hand-{record.hand_number}"
    if form == "json":
        text = MessageToJson(record, preserving_proto_field_name=True, ensure_ascii=False) + "\n"
        content, media = text.encode(), "application/json"
    elif form == "binpb":
        content, media = record.SerializeToString(), "application/x-protobuf"
    else:
        raise Refused(400, "INVALID_FORMAT", "A record is downloaded as json or binpb.", "format")
    headers = {
        "content-disposition": f'attachment; filename="{name}.{form}"',
        "cache-control": "private, no-store",
    }
    return Response(content, headers=headers, media_type=media)


def seat_of(request: Request) -> int:
    """The seat that a request names; `Refused`: INVALID_SEAT."""
    seat = request.query_params.get("seat", "")
    if seat not in ("0", "1", "2", "3"):
        raise Refused(400, "INVALID_SEAT", "A seat is 0, 1, 2 or 3.", "seat")
    return int(seat)


def hand_of(request: Request) -> tuple[str, int]:
    """The table and the hand that a path names; `Refused`: UNKNOWN_HAND."""
    text = request.path_params["hand"]
    hand = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    if not 1 <= hand < 2**32:
        raise Refused(404, "UNKNOWN_HAND", "There was no such hand.", "hand")
    return request.path_params["table"], hand


def feature(console: Console) -> Part:
    """What /replay/{table}/{hand} asks for."""
    replays = Replays(console.backend, console.rule_sets)

    @viewer
    async def shown(request: Request, person: Person) -> Response:
        return answered(request, shown_body(await replays.of(*hand_of(request))))

    @viewer
    async def analysed(request: Request, person: Person) -> Response:
        replay = await replays.of(*hand_of(request))
        return answered(request, await replays.analysis(replay, seat_of(request)))

    @viewer
    async def downloaded(request: Request, person: Person) -> Response:
        replay = await replays.of(*hand_of(request))
        return exported(replay.record, request.path_params["form"])

    hand = "/api/replay/{table}/{hand}"
    return Part(
        [
            Route(hand, shown, methods=["GET"]),
            Route(f"{hand}/analysis", analysed, methods=["GET"]),
            Route(f"{hand}/record.{{form}}", downloaded, methods=["GET"]),
        ]
    )
