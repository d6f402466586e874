"""Links by which somebody without an account sees one hand again: for customer service.

An operator makes one, with a reason, for a time. It is a token that the console signs with a key of
its own for this; it names the hand, an id and when it ends, and opens nothing else. What it shows
names no player and repeats no operator's words: links are passed on. Each one that is made, opened
and revoked stands in the operators' log, which is also asked whether one was revoked.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fangcheng.table.v1.records_pb2 import HandRecord

from .backend import Backend
from .oplog import OpLog, Sought, Target
from .problems import Refused
from .replay import Replay, Replays, answered, exported, hand_of, seat_of, shown_body
from .rule_sets import RuleSets
from .session import COOKIE_ALGORITHM, Person, key_for, operator
from .settings import ConsoleSettings
from .verbs import is_text
from .web import Console, Part, body_of

USUAL_HOURS = 24
MOST_HOURS = 24 * 30
LONGEST_REASON = 256
LONGEST_TOKEN = 1_024
NAMES = ("A", "B", "C", "D")
"""What the players of seats 0 to 3 are called where a link shows their hand."""
OPENINGS_A_MINUTE = 30
"""Of one link; each of them is written into the operators' log."""
MOST_COUNTED = 1_000
MOST_LISTED = 200

MADE, OPENED, REVOKED = "make_link", "open_link", "revoke_link"
"""What the operators' log calls it."""
NOBODY = "customer-service"
"""Who opens links, for that log: they have not signed in."""

_AUDIENCE = "fangcheng-replay-link"
_CLAIMS = ("aud", "exp", "jti", "table", "hand")


@dataclass(frozen=True, slots=True)
class Link:
    """What a link lets see, and until when."""

    id: str
    table_id: str
    hand_number: int
    expires: int
    """Seconds since 1970."""


class Signer:
    """Makes and reads the tokens of links."""

    def __init__(self, settings: ConsoleSettings) -> None:
        self._key = key_for(settings, "replay links")

    def token(self, link: Link) -> str:
        """The link as a token to put into an address."""
        claims = {
            "aud": _AUDIENCE,
            "exp": link.expires,
            "jti": link.id,
            "table": link.table_id,
            "hand": link.hand_number,
        }
        return jwt.encode(claims, self._key, algorithm=COOKIE_ALGORITHM)

    def read(self, token: str) -> Link:
        """The link that a token is. `Refused`: LINK_INVALID, LINK_EXPIRED."""
        invalid = Refused(404, "LINK_INVALID", "This link was not made here, or a part is missing.")
        if len(token) > LONGEST_TOKEN or not token.isascii():
            raise invalid
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[COOKIE_ALGORITHM],
                audience=_AUDIENCE,
                options={"require": list(_CLAIMS)},
            )
        except jwt.ExpiredSignatureError:
            raise Refused(
                410, "LINK_EXPIRED", "This link has expired; ask for a new one."
            ) from None
        except jwt.InvalidTokenError:
            raise invalid from None
        return Link(claims["jti"], claims["table"], claims["hand"], claims["exp"])


class Openings:
    """Counts how often each link is opened, so that none fills the operators' log."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def count(self, link: Link) -> None:
        """Another one. `Refused`: LINK_BUSY."""
        now = time.monotonic()
        times = self._times.setdefault(link.id, deque())
        self._times.move_to_end(link.id)
        while len(self._times) > MOST_COUNTED:
            self._times.popitem(last=False)
        while times and times[0] < now - 60:
            times.popleft()
        if len(times) >= OPENINGS_A_MINUTE:
            raise Refused(429, "LINK_BUSY", "This link was opened too often; wait for a minute.")
        times.append(now)


def anonymous(record: HandRecord) -> HandRecord:
    """A record without who the players are and without operators' words.

    What the shuffle is checked with stays.
    """
    shown = HandRecord()
    shown.CopyFrom(record)
    shown.player_ids[:] = NAMES
    shown.labels.clear()
    for event in shown.events:
        if event.HasField("operator_acted"):
            event.operator_acted.reason = event.operator_acted.case_id = ""
        elif event.HasField("player_seated"):
            seat = event.player_seated.seat
            seat.player_id, seat.profile = NAMES[seat.seat], b""
        elif event.HasField("hand_ended") and event.hand_ended.hand.HasField("dissolved"):
            event.hand_ended.hand.dissolved.reason = ""
    return shown


class Links:
    """Makes links, and shows what they lead to."""

    def __init__(
        self, settings: ConsoleSettings, backend: Backend, rule_sets: RuleSets, log: OpLog
    ) -> None:
        self._signer = Signer(settings)
        self._replays = Replays(backend, rule_sets, anonymous)
        self._log = log
        self._openings = Openings()

    async def make(
        self, person: Person, table_id: str, hand_number: int, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """`{id, path, expires}` of a new link; `body`: reason, case_id and hours."""
        reason, case_id, hours = _said(body, "reason"), _said(body, "case_id"), body.get("hours")
        if not reason:
            raise Refused(400, "REASON_MISSING", "Say why the link is made.", "reason")
        hours = USUAL_HOURS if hours is None else hours
        if type(hours) is not int or not 1 <= hours <= MOST_HOURS:
            raise Refused(400, "INVALID_HOURS", f"A link lasts 1 to {MOST_HOURS} hours.", "hours")
        await self._replays.of(table_id, hand_number)
        expires = int(time.time()) + hours * 3_600
        link = Link(secrets.token_urlsafe(9), table_id, hand_number, expires)
        await self._log.note(
            person.subject,
            MADE,
            _target(link),
            reason=reason,
            case_id=case_id,
            detail={"expires_ms": expires * 1_000},
        )
        return {"id": link.id, "path": f"/r/{self._signer.token(link)}", "expires": expires}

    async def of(self, table_id: str, hand_number: int) -> list[dict[str, Any]]:
        """The links to a hand that still show it: `{id, person, reason, case_id, expires}`."""
        told = await self._log.find(Sought(target=table_id, verbs=(MADE, REVOKED)), MOST_LISTED)
        entries = [one.entry for one in told]
        gone = {one.target.link_id for one in entries if one.verb == REVOKED}
        return [
            {
                "id": one.target.link_id,
                "person": one.person,
                "reason": one.reason,
                "case_id": one.case_id,
                "expires": one.detail["expires_ms"] // 1_000,
            }
            for one in entries
            if one.verb == MADE
            and one.target.hand_number == hand_number
            and one.target.link_id not in gone
            and one.detail["expires_ms"] > time.time() * 1_000
        ]

    async def revoke(self, person: Person, link_id: str, body: Mapping[str, Any]) -> None:
        """The link shows nothing from now on. `Refused`: UNKNOWN_LINK, LINK_REVOKED."""
        reason, case_id = _said(body, "reason"), _said(body, "case_id")
        if not reason:
            raise Refused(400, "REASON_MISSING", "Say why the link is revoked.", "reason")
        made = await self._log.find(Sought(link_id=link_id, verbs=(MADE,)), 1)
        if not made:
            raise Refused(404, "UNKNOWN_LINK", f"There is no link {link_id}.")
        if await self._is_revoked(link_id):
            raise Refused(409, "LINK_REVOKED", "This link was revoked before.")
        target = made[0].entry.target
        await self._log.note(person.subject, REVOKED, target, reason=reason, case_id=case_id)

    async def open(self, token: str) -> bytes:
        """The page's JSON, as that of the replay itself; written into the log before it is told."""
        link, replay = await self._led(token)
        self._openings.count(link)
        body = shown_body(replay)
        await self._log.note(NOBODY, OPENED, _target(link))
        return body

    async def analysis(self, token: str, seat: int) -> bytes:
        """As `Replays.analysis`."""
        _, replay = await self._led(token)
        return await self._replays.analysis(replay, seat)

    async def record(self, token: str) -> HandRecord:
        """The record as the link shows it, to be checked elsewhere."""
        return (await self._led(token))[1].record

    async def _led(self, token: str) -> tuple[Link, Replay]:
        """Where a link leads to; nothing is asked of anybody for one that is not good."""
        link = self._signer.read(token)
        if await self._is_revoked(link.id):
            raise Refused(410, "LINK_REVOKED", "This link was revoked; ask for another.")
        return link, await self._replays.of(link.table_id, link.hand_number)

    async def _is_revoked(self, link_id: str) -> bool:
        return bool(await self._log.find(Sought(link_id=link_id, verbs=(REVOKED,)), 1))


def _target(link: Link) -> Target:
    return Target(table_id=link.table_id, hand_number=link.hand_number, link_id=link.id)


def _said(body: Mapping[str, Any], name: str) -> str:
    text = body.get(name, "")
    if not isinstance(text, str) or not is_text(text, LONGEST_REASON):
        raise Refused(400, "INVALID_TEXT", f"Expected {LONGEST_REASON} characters at most.", name)
    return text.strip()


def feature(console: Console) -> Part:
    """What makes, lists and revokes links, and what /r/{token} asks for, without a session."""
    links = Links(console.settings, console.backend, console.rule_sets, console.log)

    @operator
    async def made(request: Request, person: Person) -> Response:
        link = await links.make(person, *hand_of(request), await body_of(request))
        return JSONResponse(link, 201)

    @operator
    async def listed(request: Request, person: Person) -> Response:
        return JSONResponse({"links": await links.of(*hand_of(request))})

    @operator
    async def revoked(request: Request, person: Person) -> Response:
        await links.revoke(person, request.path_params["id"], await body_of(request))
        return JSONResponse({})

    async def opened(request: Request) -> Response:
        return answered(request, await links.open(request.path_params["token"]))

    async def analysed(request: Request) -> Response:
        seat = seat_of(request)
        return answered(request, await links.analysis(request.path_params["token"], seat))

    async def downloaded(request: Request) -> Response:
        record = await links.record(request.path_params["token"])
        return exported(record, request.path_params["form"])

    hand = "/api/replay/{table}/{hand}/links"
    return Part(
        [
            Route(hand, made, methods=["POST"]),
            Route(hand, listed, methods=["GET"]),
            Route("/api/links/{id}/revoke", revoked, methods=["POST"]),
            Route("/api/r/{token}", opened, methods=["GET"]),
            Route("/api/r/{token}/analysis", analysed, methods=["GET"]),
            Route("/api/r/{token}/record.{form}", downloaded, methods=["GET"]),
        ]
    )
