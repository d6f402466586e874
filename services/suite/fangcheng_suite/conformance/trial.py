"""Four players at a wallet that is put to the test, and what a check may ask of it.

All goes through ``SettlementService`` alone: a settlement of one coin in a circle moves nothing and
tells all balances, and the house, which always pays, brings everybody to what a check wants.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import grpc.aio

from fangcheng.wallet.v1 import settlement_pb2 as wire
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng_client import Problem, explain

Answer = TypeVar("Answer")

HAS = 1_000
"""What each player has available when a check begins, unless it says otherwise."""

# Nobody knows what became of the call: it is to be repeated.
_UNKNOWN = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    }
)
_MOST_REPEATS = 50


class Broken(Exception):
    """A promise is not kept; the message says what was seen instead."""


@dataclass(frozen=True, slots=True)
class Target:
    """The wallet that is put to the test."""

    table: Sequence[grpc.aio.Channel]
    """Channels on which a table calls, one for each replica."""
    matchmaking: Sequence[grpc.aio.Channel]
    """Channels on which matchmaking calls, one for each replica."""
    players: tuple[str, str, str, str]
    """Four players with wallets, whom nobody else uses meanwhile."""
    currency: str = "silver"
    """With a floor of 0."""
    book: str = ""


def expect(kept: bool, saw: str) -> None:
    """Raise Broken with what was seen, unless the promise is kept."""
    if not kept:
        raise Broken(saw)


class Trial:
    """What one check works with. Its holds are given back when it ends."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.players = target.players
        self._run = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)
        self._tables = itertools.cycle(map(SettlementServiceStub, target.table))
        self._matchmakers = itertools.cycle(map(SettlementServiceStub, target.matchmaking))
        self._placed: set[str] = set()

    @asynccontextmanager
    async def prepared(self) -> AsyncIterator[Trial]:
        """Everybody has what they should have; afterwards their holds are given back."""
        await self.give(HAS, HAS, HAS, HAS)
        try:
            yield self
        finally:
            if self._placed:
                await self.sure(self.release, *sorted(self._placed))

    @property
    def table(self) -> Any:
        """The service as a table calls it; another replica each time."""
        return next(self._tables)

    @property
    def matchmaking(self) -> Any:
        """The service as matchmaking calls it; another replica each time."""
        return next(self._matchmakers)

    def new_id(self, what: str = "check") -> str:
        """A request id or key that was never used before."""
        return f"conformance-{what}-{self._run}/{next(self._numbers)}"

    # Requests.

    def pay(
        self, payer: int | None, payee: int | None, amount: int, reason: str = "win"
    ) -> wire.SettlementTransfer:
        """A payment in the currency; ``None`` is the house."""
        return wire.SettlementTransfer(
            currency=self.target.currency,
            book=self.target.book,
            from_party=payer,
            to_party=payee,
            amount=amount,
            reason=reason,
        )

    def fee(self, party: int, amount: int) -> wire.SettlementFee:
        """A fee in the currency."""
        return wire.SettlementFee(
            party=party, currency=self.target.currency, book=self.target.book, amount=amount
        )

    def cap(self, most: int) -> wire.LossCap:
        """What nobody loses more than, in the currency."""
        return wire.LossCap(currency=self.target.currency, book=self.target.book, most=most)

    def settlement(
        self,
        *transfers: wire.SettlementTransfer,
        key: str | None = None,
        holds: Mapping[int, Iterable[str]] | None = None,
        **more: Any,
    ) -> wire.SettleRequest:
        """A settlement of the four; ``holds``: by seat."""
        return wire.SettleRequest(
            key=key or self.new_id("hand"),
            parties=[
                wire.SettlementParty(player_id=player, hold_ids=(holds or {}).get(seat, ()))
                for seat, player in enumerate(self.players)
            ],
            transfers=transfers,
            **more,
        )

    def holds_request(
        self, amounts: Mapping[int, int], request_id: str | None = None, lifetime_seconds: int = 600
    ) -> wire.PlaceHoldsRequest:
        """Buy-ins by seat."""
        return wire.PlaceHoldsRequest(
            request_id=request_id or self.new_id("match"),
            holds=[
                wire.HoldRequest(
                    player_id=self.players[seat],
                    currency=self.target.currency,
                    book=self.target.book,
                    amount=amount,
                )
                for seat, amount in amounts.items()
            ],
            lifetime_seconds=lifetime_seconds,
        )

    # Calls.

    async def settle(self, *transfers: wire.SettlementTransfer, **more: Any) -> wire.SettleResponse:
        """Settle once."""
        answer: wire.SettleResponse = await self.table.Settle(self.settlement(*transfers, **more))
        return answer

    async def place(
        self, amounts: Mapping[int, int], lifetime_seconds: int = 600
    ) -> list[wire.Hold]:
        """Place holds by seat."""
        return list(
            (await self.place_as(self.holds_request(amounts, None, lifetime_seconds))).holds
        )

    async def place_as(self, request: wire.PlaceHoldsRequest) -> wire.PlaceHoldsResponse:
        """Place holds, and remember to give them back."""
        answer: wire.PlaceHoldsResponse = await self.matchmaking.PlaceHolds(request)
        self._placed |= {hold.hold_id for hold in answer.holds}
        return answer

    async def release(self, *hold_ids: str) -> list[wire.Hold]:
        """Release holds, as many in a call as there may be."""
        holds: list[wire.Hold] = []
        for first in range(0, len(hold_ids), 64):
            request = wire.ReleaseHoldsRequest(hold_ids=hold_ids[first : first + 64])
            holds += (await self.table.ReleaseHolds(request)).holds
        return holds

    async def hold(self, hold_id: str) -> wire.Hold:
        """How a hold stands."""
        request = wire.GetHoldsRequest(hold_ids=[hold_id])
        hold: wire.Hold = (await self.table.GetHolds(request)).holds[0]
        return hold

    async def sure(self, call: Any, *arguments: Any, **more: Any) -> Any:
        """A call whose outcome must be known: repeated as it is until it is."""
        for _ in range(_MOST_REPEATS):
            try:
                return await call(*arguments, **more)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _UNKNOWN:
                    raise
                last = error
        raise Broken(f"a call is not answered, however often it is repeated: {explain(last)}")

    async def refused(self, call: Awaitable[Any], code: grpc.StatusCode, *reasons: str) -> Problem:
        """The problem of a call that must be refused so."""
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            problem = explain(error)
        else:
            raise Broken(f"it was answered: {_short(answer)}")
        expected = f"{code.name}{' (' + ' or '.join(reasons) + ')' if reasons else ''}"
        expect(
            problem.code is code and (not reasons or problem.reason in reasons),
            f"it was refused with {problem.code.name} ({problem.reason}) instead of {expected}",
        )
        return problem

    # Money.

    async def has(self) -> list[int]:
        """What is available to each of the four."""
        circle = [self.pay(seat, (seat + 1) % 4, 1, "probe") for seat in range(4)]
        request = self.settlement(*circle, key=self.new_id("probe"))
        answer = await self.sure(lambda: self.table.Settle(request))
        return _available(answer.settlement)

    async def give(self, *amounts: int) -> None:
        """Bring what is available to each of the four to these amounts, by way of the house."""
        due = [want - has for want, has in zip(amounts, await self.has(), strict=True)]
        transfers = [
            self.pay(None, seat, coins, "gift")
            if coins > 0
            else self.pay(seat, None, -coins, "gift")
            for seat, coins in enumerate(due)
            if coins
        ]
        if transfers:
            request = self.settlement(*transfers, key=self.new_id("gift"))
            answer = await self.sure(lambda: self.table.Settle(request))
            saw = _available(answer.settlement)
            expect(saw == list(amounts), f"the house cannot bring them to {amounts}, but to {saw}")

    async def expect_has(self, *amounts: int) -> None:
        """Raise Broken unless this is what is available to each of the four."""
        saw = await self.has()
        expect(saw == list(amounts), f"available are {saw} instead of {list(amounts)}")


def _available(settlement: wire.Settlement) -> list[int]:
    """What each party has available after a settlement in one currency."""
    told = {balance.party: balance.available for balance in settlement.balances}
    expect(
        sorted(told) == list(range(len(settlement.parties))),
        f"the answer tells the balances of the parties {sorted(told)}, not of all",
    )
    return [told[party] for party in sorted(told)]


def _short(answer: object) -> str:
    text = " ".join(str(answer).split())
    return text if len(text) <= 200 else text[:200] + " …"
