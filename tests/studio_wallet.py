"""A studio's own wallet, as small as it can be: ``SettlementService`` on dictionaries.

Written from the contract alone and with nothing of ours but its stubs. Each call is done in one go
between two awaits, so nothing comes between; what a real one does in a database transaction.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import Any

import grpc
import grpc.aio
from google.protobuf.json_format import MessageToDict
from google.rpc import error_details_pb2, status_pb2

from fangcheng.wallet.v1 import settlement_pb2 as wire
from fangcheng.wallet.v1 import settlement_pb2_grpc

LARGEST = 2**53
DAY_SECONDS = 86_400

Code = grpc.StatusCode


class Refused(Exception):
    """A call is refused."""

    def __init__(
        self, code: grpc.StatusCode, reason: str, field: str = "", **metadata: str
    ) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.field = field
        self.metadata = metadata


Account = tuple[str, str, str]
"""Owner (a player, ``hold:`` with its id, or the house, empty), currency and book."""


class StudioWallet(settlement_pb2_grpc.SettlementServiceServicer):
    """The wallet. ``currencies``: id to whether it has books; ``points`` alone has no floor."""

    def __init__(self, players: Sequence[str] = (), silver: int = 0) -> None:
        self.currencies = {"silver": False, "points": True}
        self.players = set(players)
        self.balances: dict[Account, int] = defaultdict(int)
        self.holds: dict[str, wire.Hold] = {}
        self.answers: dict[tuple[str, str], tuple[Any, Any]] = {}
        self._ids = itertools.count(1)
        for player in players:
            self.balances[player, "silver", ""] = silver

    def available(self, player: str) -> int:
        return self.balances[player, "silver", ""]

    @property
    def settled(self) -> list[str]:
        """The keys that were settled."""
        return [key for verb, key in self.answers if verb == "Settle"]

    # The calls.

    async def PlaceHolds(self, request: wire.PlaceHoldsRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._once("PlaceHolds", request, self._place))

    async def TopUpHold(self, request: wire.TopUpHoldRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._once("TopUpHold", request, self._top_up))

    async def HandOverHolds(self, request: wire.HandOverHoldsRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._hand_over(request))

    async def ExtendHolds(self, request: wire.ExtendHoldsRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._extend(request))

    async def ReleaseHolds(self, request: wire.ReleaseHoldsRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._release(request))

    async def GetHolds(self, request: wire.GetHoldsRequest, context: Any) -> Any:
        return await self._call(
            context, lambda: wire.GetHoldsResponse(holds=self._found(request.hold_ids))
        )

    async def Settle(self, request: wire.SettleRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._once("Settle", request, self._settle))

    async def SettleBatch(self, request: wire.SettleBatchRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._batch(request))

    async def GetSettlement(self, request: wire.GetSettlementRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._get_settlement(request))

    async def ReverseSettlement(self, request: wire.ReverseSettlementRequest, context: Any) -> Any:
        return await self._call(context, lambda: self._once("Reverse", request, self._reverse))

    async def _call(self, context: Any, do: Callable[[], Any]) -> Any:
        self._expire()
        try:
            return do()
        except Refused as refused:
            await abort(context, refused)

    # Once for each key.

    def _once(self, verb: str, request: Any, do: Callable[[Any], Any]) -> Any:
        key = request.key if hasattr(request, "key") else request.request_id
        kept = self.answers.get((verb, key))
        if kept is not None:
            asked, answered = kept
            if asked != request:
                reason = {"Settle": "SETTLEMENT_KEY_REUSED", "Reverse": "SETTLEMENT_REVERSED"}
                raise Refused(
                    Code.ALREADY_EXISTS,
                    reason.get(verb, "REQUEST_ID_REUSED"),
                    differs=",".join(_differences(_plain(asked), _plain(request))),
                )
            again = type(answered)()
            again.CopyFrom(answered)
            again.replayed = True
            return again
        answer = do(request)
        asked = type(request)()
        asked.CopyFrom(request)
        kept_answer = type(answer)()
        kept_answer.CopyFrom(answer)
        self.answers[verb, key] = asked, kept_answer
        return answer

    # Holds.

    def _place(self, request: wire.PlaceHoldsRequest) -> wire.PlaceHoldsResponse:
        seen = set()
        for number, one in enumerate(request.holds):
            self._check_money(one, f"holds[{number}].")
            if (one.player_id, one.currency, one.book) in seen:
                raise Refused(Code.INVALID_ARGUMENT, "DUPLICATE_HOLD", f"holds[{number}]")
            seen.add((one.player_id, one.currency, one.book))
            self._check_player(one.player_id, f"holds[{number}].player_id")
        poor = [
            (number, one.player_id)
            for number, one in enumerate(request.holds)
            if self._spendable(one.player_id, one.currency, one.book) < one.amount
        ]
        if poor:
            raise Refused(
                Code.FAILED_PRECONDITION,
                "INSUFFICIENT_BALANCE",
                f"holds[{poor[0][0]}].amount",
                player_ids=",".join(player for _, player in poor),
            )
        answer = wire.PlaceHoldsResponse()
        for one in request.holds:
            hold = answer.holds.add(
                hold_id=f"studio-{next(self._ids)}",
                player_id=one.player_id,
                currency=one.currency,
                book=one.book,
                amount=one.amount,
                remaining=one.amount,
                state=wire.HOLD_STATE_OPEN,
            )
            self._live(hold, request.lifetime_seconds)
            self.holds[hold.hold_id] = wire.Hold()
            self.holds[hold.hold_id].CopyFrom(hold)
            self._move(one.player_id, _pocket(hold), hold, one.amount)
        return answer

    def _top_up(self, request: wire.TopUpHoldRequest) -> wire.TopUpHoldResponse:
        (hold,) = self._found([request.hold_id])
        self._check_open([hold])
        if self._spendable(hold.player_id, hold.currency, hold.book) < request.amount:
            raise Refused(
                Code.FAILED_PRECONDITION, "INSUFFICIENT_BALANCE", player_ids=hold.player_id
            )
        self.holds[hold.hold_id].amount += request.amount
        self._move(hold.player_id, _pocket(hold), hold, request.amount)
        return wire.TopUpHoldResponse(hold=self._found([hold.hold_id])[0])

    def _hand_over(self, request: wire.HandOverHoldsRequest) -> wire.HandOverHoldsResponse:
        holds = self._found(request.hold_ids)
        self._check_open(holds)
        taken = [hold.hold_id for hold in holds if hold.table_id not in ("", request.table_id)]
        if taken:
            raise Refused(Code.FAILED_PRECONDITION, "HOLD_TAKEN", hold_ids=",".join(taken))
        for hold in holds:
            self.holds[hold.hold_id].table_id = request.table_id
            self._live(self.holds[hold.hold_id], request.lifetime_seconds)
        return wire.HandOverHoldsResponse(holds=self._found(request.hold_ids))

    def _extend(self, request: wire.ExtendHoldsRequest) -> wire.ExtendHoldsResponse:
        self._check_open(self._found(request.hold_ids))
        for hold_id in request.hold_ids:
            self._live(self.holds[hold_id], request.lifetime_seconds)
        return wire.ExtendHoldsResponse(holds=self._found(request.hold_ids))

    def _release(self, request: wire.ReleaseHoldsRequest) -> wire.ReleaseHoldsResponse:
        before = self._found(request.hold_ids)
        for hold in before:
            self._give_back(hold.hold_id, wire.HOLD_STATE_RELEASED)
        answer = wire.ReleaseHoldsResponse(holds=self._found(request.hold_ids))
        for hold, was in zip(answer.holds, before, strict=True):
            hold.remaining = was.remaining
        return answer

    def _give_back(self, hold_id: str, state: wire.HoldState.ValueType) -> None:
        hold = self.holds[hold_id]
        if hold.state == wire.HOLD_STATE_OPEN:
            self._move(_pocket(hold), hold.player_id, hold, self._left(hold))
            hold.state = state

    def _expire(self) -> None:
        for hold in self.holds.values():
            if hold.expires.ToMicroseconds() <= time.time_ns() // 1_000:
                self._give_back(hold.hold_id, wire.HOLD_STATE_EXPIRED)

    def _live(self, hold: wire.Hold, seconds: int) -> None:
        until = time.time_ns() // 1_000 + (seconds or DAY_SECONDS) * 1_000_000
        hold.expires.FromMicroseconds(max(until, hold.expires.ToMicroseconds()))

    def _found(self, hold_ids: Sequence[str]) -> list[wire.Hold]:
        found = []
        for number, hold_id in enumerate(hold_ids):
            if hold_id not in self.holds:
                raise Refused(Code.NOT_FOUND, "UNKNOWN_HOLD", f"hold_ids[{number}]")
            hold = wire.Hold()
            hold.CopyFrom(self.holds[hold_id])
            hold.remaining = self._left(hold)
            found.append(hold)
        return found

    def _left(self, hold: wire.Hold) -> int:
        return self.balances[_pocket(hold), hold.currency, hold.book]

    def _check_open(self, holds: Sequence[wire.Hold]) -> None:
        over = [hold.hold_id for hold in holds if hold.state != wire.HOLD_STATE_OPEN]
        if over:
            raise Refused(Code.FAILED_PRECONDITION, "HOLD_NOT_OPEN", hold_ids=",".join(over))

    # Settlements.

    def _batch(self, request: wire.SettleBatchRequest) -> wire.SettleBatchResponse:
        answer = wire.SettleBatchResponse()
        for one in request.settlements:
            result = answer.results.add(key=one.key)
            try:
                result.settled.CopyFrom(self._once("Settle", one, self._settle))
            except Refused as refused:
                result.refused.code = refused.code.value[0]
                result.refused.reason = refused.reason
                result.refused.field = refused.field
                result.refused.metadata.update(refused.metadata)
        return answer

    def _settle(self, request: wire.SettleRequest) -> wire.SettleResponse:
        self._check_settlement(request)
        answer = wire.SettleResponse()
        settled = answer.settlement
        settled.key, settled.hold_only = request.key, request.hold_only
        settled.parties.extend(request.parties)
        settled.caps.extend(request.caps)
        settled.labels.update(request.labels)
        settled.time.GetCurrentTime()
        for fee in request.fees:
            paid = min(fee.amount, self._means(request, fee.party, fee.currency, fee.book))
            self._pay(request, fee.party, None, fee, paid)
            settled.fees.add(fee=fee, paid=paid)
        units = dict.fromkeys((one.currency, one.book) for one in request.transfers)
        shares: dict[int, int] = {}
        for unit in units:
            shares |= self._shares(request, *unit)
        # What comes in may be what goes out: first all go into one pot, then out of it.
        for number, transfer in enumerate(request.transfers):
            settled.transfers.add(transfer=transfer, paid=shares[number])
        for number, transfer in enumerate(request.transfers):
            payee = transfer.to_party if transfer.HasField("to_party") else None
            owner = "" if payee is None else request.parties[payee].player_id
            self._move("pot", owner, transfer, shares[number])
        for number, transfer in enumerate(request.transfers):
            payer = transfer.from_party if transfer.HasField("from_party") else None
            self._pay(request, payer, "pot", transfer, shares[number])
        units |= dict.fromkeys((one.currency, one.book) for one in request.fees)
        for currency, book in units:
            for number, party in enumerate(request.parties):
                settled.balances.add(
                    party=number,
                    currency=currency,
                    book=book,
                    available=self.balances[party.player_id, currency, book],
                    held=self._held(party, currency, book),
                )
        return answer

    def _check_settlement(self, request: wire.SettleRequest) -> None:
        players = [party.player_id for party in request.parties]
        for number, one in enumerate(request.transfers):
            self._check_money(one, f"transfers[{number}].")
            ends = [
                getattr(one, end) if one.HasField(end) else None
                for end in ("from_party", "to_party")
            ]
            if any(end is not None and end >= len(players) for end in ends):
                raise Refused(Code.INVALID_ARGUMENT, "UNKNOWN_PARTY", f"transfers[{number}]")
            if ends[0] == ends[1]:
                raise Refused(Code.INVALID_ARGUMENT, "SELF_TRANSFER", f"transfers[{number}]")
        for number, party in enumerate(request.parties):
            self._check_player(party.player_id, f"parties[{number}].player_id")
            if party.player_id in players[:number]:
                raise Refused(Code.INVALID_ARGUMENT, "DUPLICATE_PARTY", f"parties[{number}]")
            for hold_id in party.hold_ids:
                if hold_id not in self.holds or self.holds[hold_id].player_id != party.player_id:
                    raise Refused(Code.NOT_FOUND, "UNKNOWN_HOLD", f"parties[{number}]")

    def _held(self, party: wire.SettlementParty, currency: str, book: str) -> int:
        return sum(
            self._left(self.holds[one])
            for one in party.hold_ids
            if (self.holds[one].currency, self.holds[one].book) == (currency, book)
        )

    def _means(self, request: wire.SettleRequest, number: int, currency: str, book: str) -> int:
        party = request.parties[number]
        held = self._held(party, currency, book)
        available = self._spendable(party.player_id, currency, book)
        return held if request.hold_only and currency != "points" else held + available

    def _shares(self, request: wire.SettleRequest, currency: str, book: str) -> dict[int, int]:
        """What is paid of each transfer: begin with everything, and take away what is not there."""
        due = {
            number: one
            for number, one in enumerate(request.transfers)
            if (one.currency, one.book) == (currency, book)
        }
        paid = {number: one.amount for number, one in due.items()}
        for _ in range(100):
            before = dict(paid)
            for party in range(len(request.parties)):
                mine = [n for n, one in due.items() if one.HasField("from_party")
                        and one.from_party == party]  # fmt: skip
                comes = sum(paid[n] for n, one in due.items() if one.HasField("to_party")
                            and one.to_party == party)  # fmt: skip
                caps = [one.most for one in request.caps
                        if (one.currency, one.book) == (currency, book)]  # fmt: skip
                has = comes + min([self._means(request, party, currency, book), *caps])
                owed = sum(due[n].amount for n in mine)
                if has < owed:
                    paid.update(self._divided(has, [(n, due[n]) for n in mine]))
            if paid == before:
                return paid
        raise Refused(Code.INTERNAL, "CIRCLE")

    def _divided(
        self, has: int, owed: Sequence[tuple[int, wire.SettlementTransfer]]
    ) -> dict[int, int]:
        total = sum(one.amount for _, one in owed)
        exact = {number: Fraction(has * one.amount, total) for number, one in owed}
        paid = {number: int(share) for number, share in exact.items()}
        order = sorted(
            owed,
            key=lambda one: (
                -(exact[one[0]] % 1),
                one[1].to_party if one[1].HasField("to_party") else 99,
                one[0],
            ),
        )
        for number, _ in order[: has - sum(paid.values())]:
            paid[number] += 1
        return paid

    def _pay(
        self, request: wire.SettleRequest, payer: int | None, to: str | None, unit: Any, coins: int
    ) -> None:
        target = to or ""
        if payer is None:
            self._move("", target, unit, coins)
            return
        party = request.parties[payer]
        for hold_id in party.hold_ids:
            hold = self.holds[hold_id]
            if (hold.currency, hold.book) == (unit.currency, unit.book):
                part = min(coins, self._left(hold))
                self._move(_pocket(hold), target, unit, part)
                coins -= part
        self._move(party.player_id, target, unit, coins)

    def _get_settlement(self, request: wire.GetSettlementRequest) -> wire.GetSettlementResponse:
        kept = self.answers.get(("Settle", request.key))
        if kept is None:
            raise Refused(Code.NOT_FOUND, "UNKNOWN_SETTLEMENT", "key")
        answer = wire.GetSettlementResponse(settlement=kept[1].settlement)
        if ("Reverse", request.key) in self.answers:
            answer.settlement.reversal.CopyFrom(self.answers["Reverse", request.key][1].reversal)
        return answer

    def _reverse(self, request: wire.ReverseSettlementRequest) -> wire.ReverseSettlementResponse:
        settled = self._get_settlement(wire.GetSettlementRequest(key=request.key)).settlement
        answer = wire.ReverseSettlementResponse()
        answer.reversal.key, answer.reversal.reason = request.key, request.reason
        answer.reversal.case_id = request.case_id
        answer.reversal.time.GetCurrentTime()
        gained: dict[tuple[int | None, str, str], int] = defaultdict(int)
        for one in settled.transfers:
            unit = one.transfer.currency, one.transfer.book
            payer = one.transfer.from_party if one.transfer.HasField("from_party") else None
            payee = one.transfer.to_party if one.transfer.HasField("to_party") else None
            gained[payer, *unit] -= one.paid
            gained[payee, *unit] += one.paid
        for (party, currency, book), coins in gained.items():
            if party is None or not coins:
                continue
            player = settled.parties[party].player_id
            unit = wire.HoldRequest(currency=currency, book=book)
            taken = min(coins, self._spendable(player, currency, book))
            self._move(player, "pot", unit, taken)
            self._move(f"owed:{player}", "pot", unit, coins - taken)
            answer.reversal.parties.add(
                party=party,
                currency=currency,
                book=book,
                amount=-taken,
                owed=coins - taken,
                available=self.balances[player, currency, book],
            )
        for (party, currency, book), coins in gained.items():
            if party is None:
                self._move("", "pot", wire.HoldRequest(currency=currency, book=book), coins)
        return answer

    # Money.

    def _move(self, source: str, target: str, unit: Any, coins: int) -> None:
        self.balances[source, unit.currency, unit.book] -= coins
        self.balances[target, unit.currency, unit.book] += coins

    def _spendable(self, player: str, currency: str, book: str) -> int:
        return LARGEST if currency == "points" else self.balances[player, currency, book]

    def _check_money(self, one: Any, where: str) -> None:
        if not 1 <= one.amount <= LARGEST:
            raise Refused(Code.INVALID_ARGUMENT, "INVALID_REQUEST", f"{where}amount")
        if one.currency not in self.currencies:
            raise Refused(Code.NOT_FOUND, "UNKNOWN_CURRENCY", f"{where}currency")
        if self.currencies[one.currency] != bool(one.book):
            raise Refused(Code.INVALID_ARGUMENT, "INVALID_BOOK", f"{where}book")

    def _check_player(self, player: str, where: str) -> None:
        if player not in self.players:
            raise Refused(Code.NOT_FOUND, "UNKNOWN_WALLET", where)


def _pocket(hold: wire.Hold) -> str:
    return f"hold:{hold.hold_id}"


def _plain(request: Any) -> Any:
    return MessageToDict(request, preserving_proto_field_name=True)


def _differences(first: Any, second: Any, path: str = "") -> list[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        return [
            found
            for key in sorted({*first, *second})
            for found in _differences(
                first.get(key), second.get(key), f"{path}.{key}" if path else key
            )
        ]
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return [
            found
            for number, pair in enumerate(zip(first, second, strict=True))
            for found in _differences(*pair, f"{path}[{number}]")
        ]
    return [] if first == second else [path]


async def abort(context: Any, refused: Refused) -> None:
    """End a call with what it is refused for, as the contract says that errors are told."""
    status = status_pb2.Status(code=refused.code.value[0], message=refused.reason)
    info = error_details_pb2.ErrorInfo(
        reason=refused.reason,
        domain="studio",
        metadata={**refused.metadata, "field": refused.field},
    )
    status.details.add().Pack(info)
    await context.abort(
        refused.code,
        refused.reason,
        (("grpc-status-details-bin", status.SerializeToString()),),
    )


@asynccontextmanager
async def serving(wallet: StudioWallet) -> AsyncIterator[str]:
    """Serve a wallet on this host; its address."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    settlement_pb2_grpc.add_SettlementServiceServicer_to_server(wallet, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await asyncio.shield(server.stop(None))
