"""What operators do: shown before it is done, written down first, and done once.

An act goes: the page asks for a preview and shows it; the operator gives a reason; the page sends
the act under a request id that it has made for this one dialog, with what the preview rested on.
Where that still holds, the act is written into the operator log, the call is made in the
operator's own name, and what came of it is written behind it. The same request id sent again, by a
double click, after a lost answer or after the console was killed, does nothing twice: an outcome
that is known is answered again, one that is not is found out by the same call.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any
from weakref import WeakValueDictionary

import grpc
import grpc.aio
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fangcheng.matchmaking.v1 import matchmaking_pb2

from .currencies import currencies_of
from .looking import Look
from .oplog import Ended, Entry, LogUnavailable, RequestUsed, Sought, Status, Story
from .previews import preview_of
from .previews_players import player as player_of
from .problems import Refused, of_call
from .session import Person, operator
from .verbs import VERBS, as_asked, given, is_text
from .web import Console, Part, body_of

_REQUEST_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{7,63}", re.ASCII)
_LONGEST_REASON = 256
_LONGEST_CASE = 128

# After these nobody knows whether it was done; after any other it was not.
_UNKNOWN = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DATA_LOSS,
    }
)

_PAUSES = ("pause_pool", "close_pool", "resume_pool")


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody has asked for."""

    person: str
    verb: str
    target: dict[str, Any]
    seen: dict[str, Any]
    reason: str
    case_id: str
    request_id: str


class Acts:
    """Does what operators ask for."""

    def __init__(self, console: Console) -> None:
        self._backend = console.backend
        self._log = console.log
        self._doing: dict[str, tuple[Order | None, asyncio.Task[dict[str, Any]]]] = {}
        """By request id: what has no outcome yet."""
        self._turns: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()
        """By what acts are about."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """At the end, wait for the outcome of what was begun."""
        yield
        await asyncio.gather(*(task for _, task in self._doing.values()), return_exceptions=True)

    async def do(self, order: Order, person: Person) -> dict[str, Any]:
        """Do what was asked for, once; what came of it, as the page reads it.

        `Refused`: what the service refuses; 409 STALE_PREVIEW, IMPOSSIBLE_NOW, REQUEST_ID_REUSED;
        503 OUTCOME_UNKNOWN, after which the same may be asked for again, and LOG_UNAVAILABLE.
        """
        doing = self._doing.get(order.request_id)
        if doing is None:
            return await self._begun(order.request_id, order, lambda: self._in_turn(order, person))
        if doing[0] is not None and doing[0] != order:
            raise _reused(order.request_id)
        return await asyncio.shield(doing[1])

    async def repeat(self, request_id: str, person: Person) -> dict[str, Any]:
        """Find out what came of an act, by asking for it again; as `do`."""
        doing = self._doing.get(request_id)
        if doing is not None:
            return await asyncio.shield(doing[1])
        return await self._begun(request_id, None, lambda: self._repeat(request_id, person))

    async def _begun(
        self, request_id: str, order: Order | None, work: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Work that goes on to its outcome even when nobody waits for it any more."""

        async def worked() -> dict[str, Any]:
            try:
                return await work()
            finally:
                del self._doing[request_id]

        task = asyncio.create_task(worked())
        # What nobody waits for is in the log all the same.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._doing[request_id] = order, task
        return await asyncio.shield(task)

    async def _in_turn(self, order: Order, person: Person) -> dict[str, Any]:
        """One after the other about one thing: what was seen holds until the call is made."""
        turn = self._turns.setdefault(next(iter(order.target.values())), asyncio.Lock())
        async with turn:
            return await self._do(order, person)

    async def _do(self, order: Order, person: Person) -> dict[str, Any]:
        with _nothing_done():
            story = await self._log.story(order.request_id)
        if story is None:
            preview = await preview_of(Look(self._backend, person), order.verb, order.target)
            seen = json.loads(json.dumps(preview.seen))
            if seen != order.seen:
                raise Refused(
                    409, "STALE_PREVIEW", "Something has changed meanwhile; look again.", "seen"
                )
            if preview.impossible is not None:
                raise Refused(409, "IMPOSSIBLE_NOW", "This cannot be done as things stand.")
            detail = {
                "target": order.target,
                "seen": seen,
                "request": as_asked(preview.request),
                "preview": preview.as_json(),
            }
            try:
                with _nothing_done():
                    entry = await self._log.begin(
                        order.person,
                        order.verb,
                        preview.target,
                        request_id=order.request_id,
                        reason=order.reason,
                        case_id=order.case_id,
                        detail=detail,
                    )
                return await self._call(entry, person)
            except RequestUsed as used:  # another console was quicker
                story = used.story
        if order != _ordered(story.entry):
            raise _reused(order.request_id)
        return await self._again(story, person)

    async def _repeat(self, request_id: str, person: Person) -> dict[str, Any]:
        with _nothing_done():
            story = await self._log.story(request_id)
        if story is None:
            raise Refused(404, "UNKNOWN_ACT", "No act has this request id.", "request_id")
        return await self._again(story, person)

    async def _again(self, story: Story, person: Person) -> dict[str, Any]:
        """Answer what came of an act, or find it out."""
        try:
            if story.status != "unknown":
                raise Ended
            with _nothing_done():
                await self._log.repeat(story.entry, person.subject)
        except Ended:
            with _nothing_done():
                (story,) = await self._log.followed([story.entry])
            return _known(story)
        return await self._call(story.entry, person)

    async def _call(self, act: Entry, person: Person) -> dict[str, Any]:
        """Make the call of an act and write down what came of it."""
        verb = VERBS[act.verb]
        order = {"request_id": act.request_id, "reason": act.reason, "case_id": act.case_id}
        request = verb.filled(act.detail["request"], order)
        call = getattr(getattr(self._backend, verb.stub), verb.call)
        try:
            response = await call(request, metadata=self._backend.as_operator(person))
        except grpc.aio.AioRpcError as error:
            problem = of_call(error)
            is_known = error.code() not in _UNKNOWN
            told = {
                "http": problem.status,
                "reason": problem.reason,
                "message": problem.message,
                "field": problem.field,
            }
            await self._end(act, person, "refused" if is_known else "unknown", told)
            raise (problem if is_known else _unknown(problem)) from None
        says = [asdict(one) for one in verb.outcome(request, response, act.detail["seen"])]
        detail = {"says": says, "replayed": getattr(response, "replayed", False)}
        is_logged = await self._end(act, person, "done", detail)
        return _done(act, detail, is_logged=is_logged)

    async def _end(
        self, act: Entry, person: Person, status: Status, detail: dict[str, Any]
    ) -> bool:
        """Whether what came of an act could be written down; what was done is done."""
        try:
            await self._log.end(act, person.subject, status, detail)
        except LogUnavailable as error:
            structlog.get_logger().error(
                "the outcome of an operator's act was not written", act=act.number, verb=act.verb,
                request_id=act.request_id, status=status, problem=str(error),
            )  # fmt: skip
            return False
        return True


def _ordered(act: Entry) -> Order:
    """What was asked for when an act was begun."""
    return Order(
        person=act.person,
        verb=act.verb,
        target=act.detail["target"],
        seen=act.detail["seen"],
        reason=act.reason,
        case_id=act.case_id,
        request_id=act.request_id,
    )


def _known(story: Story) -> dict[str, Any]:
    """The outcome that the log has, as it was answered the first time."""
    detail = next(one for one in story.later if one.status == story.status).detail
    if story.status == "refused":
        raise Refused(detail["http"], detail["reason"], detail["message"], detail["field"])
    return _done(story.entry, {**detail, "replayed": True}, is_logged=True)


def _done(act: Entry, detail: Any, *, is_logged: bool) -> dict[str, Any]:
    return {"status": "done", "number": act.number, "is_logged": is_logged, **detail}


def _unknown(problem: Refused) -> Refused:
    return Refused(
        503,
        "OUTCOME_UNKNOWN",
        f"Whether it was done is not known ({problem.reason}): {problem.message}",
    )


def _reused(request_id: str) -> Refused:
    return Refused(409, "REQUEST_ID_REUSED", f"{request_id} belongs to another act.", "request_id")


class _nothing_done:  # noqa: N801 - read as a statement
    """Where the log fails before a call is made, nothing was done, and that is what is said."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LogUnavailable):
            structlog.get_logger().error("the operator log is away", problem=str(error))
            raise Refused(
                503,
                "LOG_UNAVAILABLE",
                "The operator log cannot be written now, so nothing was done.",
            ) from error


def _order(body: dict[str, Any], person: Person) -> Order:
    """What a request asks for; `Refused` (400) names the field that is wrong."""
    verb, target = given(body.get("verb"), body.get("target"))
    reason, case_id = body.get("reason"), body.get("case_id", "")
    if not is_text(reason, _LONGEST_REASON) or not str(reason).strip():
        raise Refused(
            400, "INVALID_REQUEST", f"A reason of 1 to {_LONGEST_REASON} characters is needed.",
            "reason",
        )  # fmt: skip
    if not is_text(case_id, _LONGEST_CASE):
        raise Refused(
            400, "INVALID_REQUEST", f"A case has at most {_LONGEST_CASE} characters.", "case_id"
        )
    request_id, seen = body.get("request_id"), body.get("seen")
    if not isinstance(request_id, str) or not _REQUEST_ID.fullmatch(request_id):
        raise Refused(
            400, "INVALID_REQUEST", "A request id has 8 to 64 letters, digits, . _ -", "request_id"
        )
    if not isinstance(seen, dict):
        raise Refused(400, "INVALID_REQUEST", "What the preview rested on is needed.", "seen")
    return Order(
        person=person.subject,
        verb=verb,
        target=target,
        seen=seen,
        reason=str(reason).strip(),
        case_id=str(case_id).strip(),
        request_id=request_id,
    )


def feature(console: Console) -> Part:
    """`/api/operate…`: previews, acts, and what can be acted upon. For operators."""
    acts = Acts(console)
    backend, log = console.backend, console.log

    @operator
    async def preview(request: Request, person: Person) -> Response:
        asked = dict(request.query_params)
        verb, target = given(asked.pop("verb", None), asked)
        look = Look(backend, person)
        found, currencies = await asyncio.gather(
            preview_of(look, verb, target), currencies_of(backend)
        )
        return JSONResponse(
            {
                "verb": verb,
                "target": target,
                **found.as_json(),
                "seen": found.seen,
                "confirm": found.confirm,
                "call": {"name": VERBS[verb].call, "request": as_asked(found.request)},
                "currencies": currencies,
            }
        )

    @operator
    async def act(request: Request, person: Person) -> Response:
        return JSONResponse(await acts.do(_order(await body_of(request), person), person))

    @operator
    async def repeat(request: Request, person: Person) -> Response:
        request_id = (await body_of(request)).get("request_id")
        if not isinstance(request_id, str) or not _REQUEST_ID.fullmatch(request_id):
            raise Refused(400, "INVALID_REQUEST", "An act's request id is needed.", "request_id")
        return JSONResponse(await acts.repeat(request_id, person))

    @operator
    async def pools(request: Request, person: Person) -> Response:
        found = await backend.matchmaking.ListPools(matchmaking_pb2.ListPoolsRequest())
        return JSONResponse({"pools": [await _pool(pool) for pool in found.pools]})

    async def _pool(pool: matchmaking_pb2.Pool) -> dict[str, Any]:
        told = {
            "pool_id": pool.pool_id,
            "name": pool.name,
            "rules": pool.rules.id,
            "waiting": pool.waiting,
            "paused": pool.paused,
            "closed": pool.closed,
            "pause": None,
        }
        if pool.paused:
            told["pause"] = await _pause(pool.pool_id)
        return told

    async def _pause(pool_id: str) -> dict[str, Any] | None:
        """Who has paused a pool and why, where it was done here."""
        for story in await log.find(Sought(target=pool_id, verbs=_PAUSES, status="done"), 1):
            entry = story.entry
            if entry.verb != "resume_pool":
                told = {"person": entry.person, "reason": entry.reason, "case_id": entry.case_id}
                return {**told, "ms": entry.time_us // 1_000}
        return None

    @operator
    async def player(request: Request, person: Person) -> Response:
        player_id = request.path_params["player"]
        if not is_text(player_id, 128):
            raise Refused(404, "UNKNOWN_PLAYER", "That is no player's id.", "player")
        return JSONResponse(await player_of(Look(backend, person), player_id))

    return Part(
        [
            Route("/api/operate/preview", preview, methods=["GET"]),
            Route("/api/operate/pools", pools, methods=["GET"]),
            Route("/api/operate/players/{player:path}", player, methods=["GET"]),
            Route("/api/operate/repeat", repeat, methods=["POST"]),
            Route("/api/operate", act, methods=["POST"]),
        ],
        acts.running,
    )
