"""What matchmaking asks of others: the wallet that holds buy-ins, the service that has the tables,
and the evaluators, which know the rule sets.

A call that changes something there ends in one of three ways. It is done; or it is refused, and
surely nothing has changed (`Refused`); or nobody knows (`Unanswered`), and it must be repeated with
the same key until it is known. To give up on an unknown outcome would leave a hold or a table
behind that belongs to nobody.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import (
    operators_pb2_grpc,
    records_pb2,
    records_pb2_grpc,
    state_pb2,
    table_pb2,
    table_pb2_grpc,
)
from fangcheng.wallet.v1 import (
    settlement_pb2,
    settlement_pb2_grpc,
    wallet_pb2,
    wallet_pb2_grpc,
)
from fangcheng_client import explain

from . import convert
from .core import Match, Problem, Rating, Terms
from .store import FinishedHand

# The partner has looked at the key and the request before it answers one of these. A repeat that
# is refused for its token, say, tells nothing about the call before it.
_DEFINITE = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
    }
)

_PLAYERS_OWN = {
    "INSUFFICIENT_BALANCE": "Less is available than the buy-in.",
    "UNKNOWN_WALLET": "The player has no wallet.",
    "PLAYER_FROZEN": "The player may stake nothing now.",
}
"""What is a player's own fault, in words that tell of nobody else: the wallet's name all."""
_PAGE = 500
_LIST_SECONDS = 2.0


class Unanswered(Exception):
    """The outcome of a call is not known: repeat it."""


class Refused(Exception):
    """A call was refused; nothing has changed at the partner."""

    def __init__(self, problem: Problem, ticket_ids: Sequence[str] = ()) -> None:
        super().__init__(f"{problem.reason}: {problem.message}")
        self.problem = problem
        self.ticket_ids = tuple(ticket_ids)
        """The tickets whose fault it was; empty: none's."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A seat at an open table."""

    table_id: str
    seat: int
    endpoint: str


@dataclass(frozen=True, slots=True)
class TableNow:
    """A table as it stands."""

    is_open: bool
    endpoint: str
    """Where its owner listens."""
    player_ids: tuple[str, ...]
    """By seat; empty: the seat waits for another player."""


class Wallet:
    """The wallet: the suite's, or a studio's own behind the same contract."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._accounts = wallet_pb2_grpc.WalletServiceStub(channel)
        self._settlement = settlement_pb2_grpc.SettlementServiceStub(channel)

    async def check(self, player_id: str, terms: Terms, rating: Rating | None) -> float:
        """The player's rating, 0 where there is none.

        Raises Refused where he could not bring what the terms ask for now, or is frozen. Behind a
        wallet without WalletService everybody passes, rated 0. Raises AioRpcError where it does
        not answer.
        """
        try:
            answer = await self._accounts.GetBalances(
                wallet_pb2.GetBalancesRequest(player_id=player_id)
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                # Intended, for good: a studio's own wallet may serve SettlementService alone, which
                # is all that a table needs. There is no balance to look at then; who has too little
                # is refused when the match asks for his hold, and falls out of it alone.
                return 0.0
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise _own_fault("UNKNOWN_WALLET") from error
            raise
        if answer.player.frozen:
            raise _own_fault("PLAYER_FROZEN")
        available = {(one.currency, one.book): one.available for one in answer.balances}
        for stake in terms.stakes:
            # Nothing to bring: then a balance below 0 is no hindrance either.
            needed = max(stake.buy_in, stake.entry_minimum)
            has = available.get((stake.currency, stake.book), 0)
            if needed and has < needed:
                raise Refused(
                    Problem(
                        "INSUFFICIENT_BALANCE",
                        # Not how much: it may be another of his party who is told.
                        f"The pool asks for {needed} {stake.currency}; less is available.",
                    )
                )
        if rating is None or rating.by_skill:
            return 0.0
        return float(available.get((rating.currency, rating.book), 0))

    async def place_holds(self, match: Match) -> list[list[str]]:
        """Holds the buy-ins of a match: the ids, a list for each seat."""
        request = convert.holds_request(match)
        try:
            answer = await self._settlement.PlaceHolds(request)
        except grpc.aio.AioRpcError as error:
            raise _outcome(error, match, request) from error
        holds: list[list[str]] = [[] for _ in match.seats]
        seat_of = {seat.player_id: number for number, seat in enumerate(match.seats)}
        for hold in answer.holds:
            holds[seat_of[hold.player_id]].append(hold.hold_id)
        return holds

    async def release(self, hold_id: str) -> None:
        """Releases a hold; one that the wallet does not know is none."""
        try:
            await self._settlement.ReleaseHolds(
                settlement_pb2.ReleaseHoldsRequest(hold_ids=[hold_id])
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return
            raise Unanswered(str(explain(error))) from error


class Evaluators:
    """Those who know the rule sets."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)

    async def rule_sets(self) -> Sequence[rules_pb2.RuleSet]:
        """What they play, the newest revision of each first. Raises Unanswered."""
        try:
            answer = await self._stub.ListRuleSets(
                evaluation_pb2.ListRuleSetsRequest(), timeout=_LIST_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            raise Unanswered(str(explain(error))) from error
        return answer.rule_sets


class Tables:
    """The table service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._records = records_pb2_grpc.TableRecordServiceStub(channel)
        self._stub = table_pb2_grpc.TableServiceStub(channel)
        self._operations = operators_pb2_grpc.TableOperationsServiceStub(channel)

    async def create(self, match: Match) -> tuple[str, str]:
        """Creates the table of a match: its id and where its owner listens."""
        try:
            answer = await self._stub.CreateTable(convert.table_request(match))
        except grpc.aio.AioRpcError as error:
            raise _outcome(error, match) from error
        return answer.table.table_id, answer.table.endpoint

    async def seat(self, match: Match) -> tuple[str, str]:
        """Gives the player of a match its seat: the table's id and where its owner listens."""
        try:
            answer = await self._operations.SeatPlayer(convert.seat_request(match))
        except grpc.aio.AioRpcError as error:
            raise _outcome(error, match) from error
        return answer.table.table_id, answer.table.endpoint

    async def vacancies(self) -> AsyncGenerator[dict[str, bool], None]:
        """Tables, and whether a seat waits there: all where one does, then as it changes; at times
        none. Raises AioRpcError."""
        async for answer in self._stub.WatchTables(table_pb2.WatchTablesRequest(vacant=True)):
            told = dict.fromkeys(answer.changes.gone, False)
            for table in answer.changes.tables:
                told[table.table_id] = not all(seat.player_id for seat in table.seats)
            yield told

    async def look(self, table_id: str) -> TableNow | None:
        """The table as it stands; None: there is no such table. Raises AioRpcError."""
        try:
            answer = await self._stub.GetTable(table_pb2.GetTableRequest(table_id=table_id))
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return None
            raise
        table = answer.table
        return TableNow(
            is_open=table.phase != state_pb2.TABLE_PHASE_CLOSED,
            endpoint=table.endpoint,
            player_ids=tuple(seat.player_id for seat in table.seats),
        )

    async def seat_of(self, player_id: str) -> Seat | None:
        """The player's seat at an open table, whoever had it created. Raises AioRpcError."""
        # Tables that he has left, and that go on, are in the list too.
        async for table in self._open_tables(player_id):
            for seat in table.seats:
                if seat.player_id == player_id:
                    return Seat(table.table_id, seat.seat, table.endpoint)
        return None

    async def finished_hands(self, cursor: str) -> AsyncGenerator[FinishedHand, None]:
        """Every hand as it is finished, after a cursor. Raises AioRpcError."""
        request = records_pb2.StreamFinishedHandsRequest(cursor=cursor, with_records=True)
        async for answer in self._records.StreamFinishedHands(request):
            if answer.WhichOneof("message") == "hand":
                yield convert.finished_hand(answer.hand)

    async def leave(self, table_id: str, player_id: str) -> None:
        """A player leaves his table after the hand in play. Raises AioRpcError."""
        await self._stub.LeaveTable(
            table_pb2.LeaveTableRequest(table_id=table_id, mode=table_pb2.LEAVE_MODE_AFTER_HAND),
            metadata=[("fangcheng-act-as-bin", player_id.encode())],
        )

    async def open_tables(self) -> AsyncGenerator[str, None]:
        """Ids of the tables that are not closed. Raises AioRpcError."""
        async for table in self._open_tables():
            yield table.table_id

    async def _open_tables(self, player_id: str = "") -> AsyncGenerator[state_pb2.Table, None]:
        """The tables that are not closed, or those at which a player sits or has sat."""
        request = table_pb2.ListTablesRequest(player_id=player_id, page_size=_PAGE)
        while True:
            answer = await self._stub.ListTables(request)
            for table in answer.tables:
                yield table
            if not answer.next_page_token:
                return
            request.page_token = answer.next_page_token


def _own_fault(reason: str, ticket_ids: Sequence[str] = ()) -> Refused:
    return Refused(Problem(reason, _PLAYERS_OWN[reason]), ticket_ids)


def _outcome(
    error: grpc.aio.AioRpcError,
    match: Match,
    holds: settlement_pb2.PlaceHoldsRequest | None = None,
) -> Refused | Unanswered:
    """What an error means for the match."""
    told = explain(error)
    if told.code not in _DEFINITE:
        return Unanswered(str(told))
    if holds is None or told.reason not in _PLAYERS_OWN:
        return Refused(Problem(told.reason, told.message))
    # The metadata names everybody; the field, the first. Long lists of long ids are cut off.
    players = set(told.metadata.get("player_ids", "").split(","))
    found = re.match(r"holds\[(\d+)\]", told.field or "")
    if found and int(found[1]) < len(holds.holds):
        players.add(holds.holds[int(found[1])].player_id)
    at_fault = [seat.ticket_id for seat in match.seats if seat.player_id in players]
    # A wallet that does not say whose fault it was: any of them could keep the others for ever.
    return _own_fault(told.reason, at_fault or [seat.ticket_id for seat in match.seats])
