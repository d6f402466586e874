"""The page of a table: what it shows everybody, and what an operator has revealed.

A stream of the spectators' view is followed once for all pages that show the table, however many;
each page of a hand that an operator has revealed follows a stream of that operator's own. A stream
that breaks is told in the page, which keeps the last picture until the table answers again.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2
from fangcheng_client import explain
from fangcheng_client.streams import MissingEvent, resumed

from .hub import Feed, Feeds, Picture
from .oplog import Status, Target
from .problems import Refused, of_call
from .session import Person, operator, viewer
from .shown import PHASES, Shown, options
from .verbs import is_text
from .web import Console, Part, body_of

GIVE_UP_SECONDS = 1.0
"""A stream that was not to be had again for so long is told of as broken."""
SILENCE_SECONDS = 30.0
FIRST_SECONDS = 10.0
"""For what a reveal shows first."""
AGAIN_SECONDS = 0.5
SETTLE_SECONDS = 0.06
"""What had happened before comes in a burst: it is shown when it is there."""
MOST_REVEALS = 1_000

FINAL = frozenset(
    {
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ALREADY_EXISTS,
    }
)
"""What does not pass by trying again."""

OpenStream = Callable[[int, bool], Any]
"""Opens a Watch after a number, beginning with a snapshot or not."""


@dataclass(frozen=True, slots=True)
class Revealed:
    """A hand whose tiles an operator has revealed."""

    id: str
    person: Person
    table_id: str
    hand_number: int
    reveal: table_pb2.Reveal


@dataclass(slots=True)
class Follower:
    """Follows one stream of a table and tells the pages that show it."""

    open_stream: OpenStream
    hand_number: int = 0
    """Of a reveal: the hand that it is for."""
    shown: Shown = field(default_factory=Shown)
    status: str = "live"
    """`live`; `broken`: it is tried again; `ended`: nothing more comes."""
    problem: dict[str, str] | None = None

    async def follow(self, feed: Feed) -> None:
        """Until the stream has ended for good."""
        number = 0
        while self.status != "ended":
            try:
                await self._read(feed, number)
                self._tell(feed, "ended")
            except grpc.aio.AioRpcError as error:
                refused = of_call(error)
                self.problem = {"reason": refused.reason, "message": refused.message}
                is_ahead = refused.reason == "INVALID_NUMBER"  # of a table that was restored
                number = 0 if is_ahead else self.shown.view.last_number
                is_final = error.code() in FINAL and not (is_ahead and self.shown.view.last_number)
                self._tell(feed, "ended" if is_final else "broken")
            except (TimeoutError, MissingEvent) as error:
                self.problem = {"reason": "STREAM_LOST", "message": "The table says nothing."}
                number = 0 if isinstance(error, MissingEvent) else self.shown.view.last_number
                self._tell(feed, "broken")
            if self.status == "broken":
                await asyncio.sleep(AGAIN_SECONDS)

    async def _read(self, feed: Feed, number: int) -> None:
        loop = asyncio.get_running_loop()
        settled = loop.time() + SETTLE_SECONDS
        settling: asyncio.TimerHandle | None = None
        begins = number == 0
        try:
            events = resumed(
                self.open_stream,
                number,
                GIVE_UP_SECONDS,
                SILENCE_SECONDS,
                on_heartbeat=lambda _: self._hear(feed),
            )
            async for event in events:
                if begins:
                    self.shown, begins = Shown(), False
                self.shown.apply(event)
                self.problem = None
                if loop.time() >= settled:
                    self._tell(feed, "live")
                elif settling is None:
                    settling = loop.call_at(settled, self._tell, feed, "live")
        finally:
            if settling is not None:
                settling.cancel()

    def _hear(self, feed: Feed) -> None:
        """Nothing has happened at the table, but its stream is there again."""
        if self.status != "live":
            self.problem = None
            self._tell(feed, "live")

    def _tell(self, feed: Feed, status: str) -> None:
        self.status = status
        feed.publish(self._picture)

    def _picture(self) -> Picture:
        return {
            **self.shown.message(),
            "stream": {"status": self.status, "problem": self.problem},
            "revealed": self.hand_number,
        }


class Tables:
    """The calls of the page, and what they follow."""

    def __init__(self, console: Console) -> None:
        self._backend = console.backend
        self._metrics = console.metrics
        self._log = console.log
        self.feeds = Feeds()
        self._reveals: dict[str, Revealed] = {}

    async def get(self, request: Request, person: Person) -> Response:
        """What is known of the table besides its picture."""
        table = await self._table(request.path_params["id"])
        return JSONResponse({"table": _about(table)})

    async def events(self, request: Request, person: Person) -> Response:
        """The spectators' view, the same for all: nothing that a viewer may not see."""
        table_id = request.path_params["id"]
        await self._table(table_id)

        def open_stream(number: int, snapshot: bool) -> Any:
            watch = table_pb2.WatchRequest(table_id=table_id, from_number=number, snapshot=snapshot)
            return self._backend.tables.Watch(watch)

        return self._feed(("viewer", table_id), Follower(open_stream), "table").stream(request)

    async def reveal(self, request: Request, person: Person) -> Response:
        """Have the tiles of the hand in play, or else of the next, shown to this operator.

        Body: `{reason, case_id}`. Answers `{reveal_id, hand_number}`.
        """
        table_id = request.path_params["id"]
        body = await body_of(request)
        reason, case_id = _text(body, "reason", 256), _text(body, "case_id", 128)
        if not reason:
            raise Refused(400, "INVALID_REQUEST", "Say why the tiles are to be seen.", "reason")
        reveal_id = secrets.token_hex(16)
        reveal = table_pb2.Reveal(request_id=f"console/{reveal_id}", reason=reason, case_id=case_id)
        act = await self._log.begin(
            person.subject,
            "reveal",
            Target(table_id=table_id),
            request_id=reveal.request_id,
            reason=reason,
            case_id=case_id,
        )
        call = self._open_revealed(person, table_id, reveal)(0, False)
        status: Status = "done"
        try:
            async with asyncio.timeout(FIRST_SECONDS):
                hand_number = _hand_of(await _first_of(call))
        except grpc.aio.AioRpcError as error:
            told, status = of_call(error), "unknown" if explain(error).passes else "refused"
        except TimeoutError:
            told, status = Refused(503, "NO_ANSWER", "The table says nothing."), "unknown"
        finally:
            call.cancel()
        if status != "done":
            problem = {"reason": told.reason, "message": told.message}
            await self._log.end(act, person.subject, status, problem)
            raise told
        await self._log.end(act, person.subject, "done", {"hand_number": hand_number})
        if len(self._reveals) >= MOST_REVEALS:
            del self._reveals[next(iter(self._reveals))]
        self._reveals[reveal_id] = Revealed(reveal_id, person, table_id, hand_number, reveal)
        return JSONResponse({"reveal_id": reveal_id, "hand_number": hand_number})

    async def revealed(self, request: Request, person: Person) -> Response:
        """The view with all tiles open, for who has asked for it alone."""
        table_id = request.path_params["id"]
        found = self._reveals.get(request.path_params["reveal"])
        if found is None or found.table_id != table_id or found.person != person:
            raise Refused(404, "UNKNOWN_REVEAL", "This is not open any more; reveal anew.")
        follower = Follower(self._open_revealed(person, table_id, found.reveal), found.hand_number)
        return self._feed(("revealed", found.id), follower, "revealed").stream(request)

    def _open_revealed(self, person: Person, table_id: str, reveal: table_pb2.Reveal) -> OpenStream:
        def open_stream(number: int, snapshot: bool) -> Any:
            watch = table_pb2.WatchRequest(
                table_id=table_id, from_number=number, snapshot=snapshot, reveal=reveal
            )
            metadata = self._backend.as_operator(person)
            return self._backend.tables.Watch(watch, metadata=metadata)

        return open_stream

    def _feed(self, key: tuple[str, str], follower: Follower, kind: str) -> Feed:
        viewing = functools.partial(self._metrics.stream, kind)
        return self.feeds.get(key, follower.follow, viewing=viewing)

    async def _table(self, table_id: str) -> state_pb2.Table:
        request = table_pb2.GetTableRequest(table_id=table_id)
        answer: table_pb2.GetTableResponse = await self._backend.tables.GetTable(request)
        return answer.table


def feature(console: Console) -> Part:
    """The page of a table."""
    tables = Tables(console)
    return Part(
        [
            Route("/api/tables/{id}", viewer(tables.get)),
            Route("/api/tables/{id}/events", viewer(tables.events)),
            Route("/api/tables/{id}/revealed", operator(tables.reveal), methods=["POST"]),
            Route("/api/tables/{id}/revealed/{reveal}/events", operator(tables.revealed)),
        ],
        functools.partial(tables.feeds.running, console.kit.draining),
    )


def _about(table: state_pb2.Table) -> dict[str, Any]:
    return {
        "table_id": table.table_id,
        "rules": {
            "id": table.rules.id,
            "revision": table.rules.revision,
            "options": options(table.rules.options),
        },
        "phase": PHASES[table.phase],
        "hand_number": table.hand_number,
        "hands": table.hands,
        "labels": dict(table.labels),
        "pool_id": table.pool_id,
        "endpoint": table.endpoint,
        "created_ms": table.created.ToMilliseconds(),
        "closed_reason": table.closed_reason,
        "bots": [seat.seat for seat in table.seats if seat.is_bot],
    }


def _hand_of(event: events_pb2.TableEvent) -> int:
    """The hand that a reveal is for, by its first message: the one in play, or else the next."""
    hand = event.snapshot.hand
    over = not event.snapshot.HasField("hand") or hand.HasField("ended")
    return hand.started.hand_number + (1 if over else 0)


async def _first_of(call: Any) -> events_pb2.TableEvent:
    """The first event of a stream; TimeoutError for one that ends before it."""
    async for told in call:
        event: events_pb2.TableEvent = told.event
        return event
    raise TimeoutError


def _text(body: dict[str, Any], name: str, longest: int) -> str:
    text = body.get(name, "")
    if not isinstance(text, str) or not is_text(text, longest):
        raise Refused(400, "INVALID_REQUEST", f"{name}: at most {longest} characters.", name)
    return text.strip()
