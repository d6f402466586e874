"""Wallets and settlements as the page shows them, and who may see what of them.

A player's money is the player's own affair: balances, statement, holds, freezes and debts are for
operators alone. A viewer learns of a player what other players may learn too: the titles, where he
sits, how he stands on a leaderboard; and of a settlement what everybody at the table was told: who
paid whom how much for what.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import Any

import grpc.aio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.rules.v1 import rules_pb2
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2

from .plain import plain
from .problems import Refused, of_call
from .session import Person, operator, viewer
from .web import Console, Part

WHERE_SECONDS = 3.0
"""How long a wallet waits to be told where its player is."""
PAGE = 50
"""Entries of a page of a statement, and standings of one of a leaderboard."""


_HAND = re.compile(r"(?P<table>.+)/(?P<hand>[1-9][0-9]{0,8})")
_OTHERS = frozenset(
    (
        *("deposit", "withdraw", "hold", "top_up", "release", "expire"),
        *("collect", "write_off", "fund", "give_back"),
    )
)
"""Reasons of entries that no settlement has made."""


def title_of(rules: rules_pb2.RuleSet, points: int) -> rules_pb2.Title | None:
    """The title that is held with these points; None where the rule set has none."""
    held = None
    for title in rules.titles:  # the lowest first; it has no bound
        if not title.HasField("from_points") or points >= title.from_points:
            held = title
    return held


def _books(rule_sets: Mapping[str, rules_pb2.RuleSet]) -> dict[str, Any]:
    """What the books of points are called: each is a rule set's."""
    return {
        id: {"name_zh": rules.name_zh, "name_en": rules.name_en} for id, rules in rule_sets.items()
    }


def _titles(
    balances: Iterable[wallet_pb2.Balance], rule_sets: Mapping[str, rules_pb2.RuleSet]
) -> list[dict[str, Any]]:
    """The titles by points, where a book is that of a rule set with titles."""
    found = []
    for balance in balances:
        rules = rule_sets.get(balance.book)
        # What is held at a table is the player's all the same.
        title = title_of(rules, balance.available + balance.held) if rules is not None else None
        if title is not None:
            named = {"name_zh": title.name_zh, "name_en": title.name_en}
            found.append({**named, "currency": balance.currency, "book": balance.book})
    return found


class Wallets:
    """Reads wallets for people of the console."""

    def __init__(self, console: Console) -> None:
        self._backend = console.backend
        self._rule_sets = console.rule_sets

    async def player(self, player_id: str, at_ms: int | None, person: Person) -> dict[str, Any]:
        """All of a player that the person may see; `money` is null for a viewer.

        `at_ms`: balances and titles as they were then, None: now.
        """
        asked = wallet_pb2.GetBalancesRequest(player_id=player_id)
        if at_ms is not None:
            asked.at.FromMilliseconds(at_ms)
        balances, currencies, rule_sets, where = await asyncio.gather(
            self._backend.wallet.GetBalances(asked),
            self._backend.wallet.ListCurrencies(wallet_pb2.ListCurrenciesRequest()),
            self._newest(),
            self._where(player_id),
        )
        told: dict[str, Any] = {
            "player_id": player_id,
            "currencies": [plain(currency) for currency in currencies.currencies],
            "books": _books(rule_sets),
            "titles": _titles(balances.balances, rule_sets),
            "where": where,
            "money": None,
        }
        if person.role == "operator":
            request = wallet_pb2.ListHoldsRequest(player_id=player_id)
            holds = await self._backend.wallet.ListHolds(request)
            told["money"] = {
                "balances": [plain(balance) for balance in balances.balances],
                "state": plain(balances.player),
                "holds": [plain(hold) for hold in holds.holds],
            }
        return told

    async def _newest(self) -> dict[str, rules_pb2.RuleSet]:
        """The rule sets by id; none while nobody can tell, so that money is shown all the same."""
        try:
            known = await self._rule_sets.known()
        except grpc.aio.AioRpcError:
            return {}
        return {rules.id: rules for rules in reversed(known)}  # the newest of each comes first

    async def _where(self, player_id: str) -> dict[str, Any]:
        """Where the player is: queued, in a room, at a table; `problem` where nobody can tell."""
        request = matchmaking_pb2.GetPlayerStatusRequest(player_id=player_id)
        try:
            status = await self._backend.matchmaking.GetPlayerStatus(request, timeout=WHERE_SECONDS)
        except grpc.aio.AioRpcError as error:
            return {"problem": of_call(error).reason}
        ticket = plain(status.ticket) if status.HasField("ticket") else None
        return {
            "problem": None,
            "table_id": status.table_id,
            "seat": status.seat,
            "in_room": bool(status.room_id),
            "ticket": ticket
            and {key: ticket[key] for key in ("pool_id", "state", "queued", "position")},
        }

    async def settlement(self, key: str, person: Person) -> dict[str, Any]:
        """A settlement; what somebody has left and why it was taken back is for operators."""
        request = settlement_pb2.GetSettlementRequest(key=key)
        found, currencies, rule_sets = await asyncio.gather(
            self._backend.settlements.GetSettlement(request),
            self._backend.wallet.ListCurrencies(wallet_pb2.ListCurrenciesRequest()),
            self._newest(),
        )
        settlement: dict[str, Any] = plain(found.settlement)
        holds: list[Any] = []
        if person.role == "operator":
            ids = [id for party in found.settlement.parties for id in party.hold_ids]
            if ids:
                asked = settlement_pb2.GetHoldsRequest(hold_ids=ids)
                holds = [
                    plain(one) for one in (await self._backend.settlements.GetHolds(asked)).holds
                ]
        else:
            settlement["balances"] = []
            for party in settlement["parties"]:
                party["hold_ids"] = []
            if settlement["reversal"] is not None:
                settlement["reversal"] = {"time": settlement["reversal"]["time"]}
        return {
            "settlement": settlement,
            "holds": holds,
            "hand": hand_of(key),
            "books": _books(rule_sets),
            "currencies": [plain(currency) for currency in currencies.currencies],
        }


def hand_of(key: str) -> dict[str, Any] | None:
    """The table and hand of a settlement's key; None for one that no table has made."""
    found = _HAND.fullmatch(key)
    return {"table_id": found["table"], "hand": int(found["hand"])} if found else None


def _paid_for(entry: wallet_pb2.Entry) -> dict[str, Any] | None:
    """The hand whose settlement, or reversal, made an entry; None where something else did."""
    # Others' references are request ids, which may look like a hand's key.
    return None if entry.reason in _OTHERS else hand_of(entry.reference)


def _moment(request: Request, name: str) -> int | None:
    """A moment of the query, in milliseconds since 1970; None: not given."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 14):
        raise Refused(400, "INVALID_TIME", f"{name} is in milliseconds since 1970", name)
    return int(text)


def _player(request: Request) -> str:
    player_id = request.query_params.get("player", "")
    if not player_id:
        raise Refused(400, "PLAYER_REQUIRED", "Name a player by his id.", "player")
    return player_id


def feature(console: Console) -> Part:
    """The calls below `/api/wallet`, `/api/settlements` and `/api/leaderboard`."""
    wallets = Wallets(console)
    wallet = console.backend.wallet

    @viewer
    async def player(request: Request, person: Person) -> Response:
        told = await wallets.player(_player(request), _moment(request, "at"), person)
        return JSONResponse(told)

    @operator
    async def entries(request: Request, person: Person) -> Response:
        """A page of a statement; filters: `currency`, `book`, `reason` (repeated), `reference`,
        `from` and `until` in milliseconds; `page` of the page before."""
        query = request.query_params
        asked = wallet_pb2.ListEntriesRequest(
            player_id=_player(request),
            currency=query.get("currency", ""),
            book=query.get("book", ""),
            reasons=query.getlist("reason"),
            reference=query.get("reference", ""),
            page_size=PAGE,
            page_token=query.get("page", ""),
        )
        for name in ("from", "until"):
            moment = _moment(request, name)
            if moment is not None:
                getattr(asked, name).FromMilliseconds(moment)
        found = await wallet.ListEntries(asked)
        listed = [{**plain(entry), "hand": _paid_for(entry)} for entry in found.entries]
        return JSONResponse({**plain(found), "entries": listed})

    @viewer
    async def settlement(request: Request, person: Person) -> Response:
        return JSONResponse(await wallets.settlement(request.path_params["key"], person))

    @viewer
    async def currencies(request: Request, person: Person) -> Response:
        return JSONResponse(plain(await wallet.ListCurrencies(wallet_pb2.ListCurrenciesRequest())))

    @viewer
    async def leaderboard(request: Request, person: Person) -> Response:
        """Filters: `currency`, `book`, `period`; `page` of the page before; `player` of whom it is
        told besides where he stands."""
        query = request.query_params
        asked = wallet_pb2.GetLeaderboardRequest(
            currency=query.get("currency", ""),
            book=query.get("book", ""),
            period=query.get("period", ""),
            page_size=PAGE,
            page_token=query.get("page", ""),
            player_id=query.get("player", ""),
        )
        return JSONResponse(plain(await wallet.GetLeaderboard(asked)))

    return Part(
        [
            Route("/api/wallet", player),
            Route("/api/wallet/entries", entries),
            Route("/api/currencies", currencies),
            Route("/api/settlements/{key:path}", settlement),
            Route("/api/leaderboard", leaderboard),
        ]
    )
