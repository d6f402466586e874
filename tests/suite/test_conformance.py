"""The conformance suite: a small wallet that was written from the contract passes it, and a wallet
that breaks a promise is found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fangcheng.wallet.v1 import settlement_pb2 as wire
from fangcheng_client import connect
from fangcheng_suite.conformance import CHECKS, Target, run_checks
from tests.studio_wallet import Code, Refused, StudioWallet, serving

PLAYERS = ("amy", "bo", "cao", "dan")


async def seen(wallet: StudioWallet, *names: str) -> dict[str, str]:
    """What checks saw instead of what is promised; without names: all."""
    checks = [check for check in CHECKS if not names or check.name in names]
    assert len(checks) == len(names or CHECKS)
    async with serving(wallet) as address, connect(address) as channel:
        target = Target([channel], [channel], PLAYERS)
        return {one.check.name: one.saw async for one in run_checks(target, checks) if not one.kept}


async def test_a_studios_own_wallet_keeps_every_promise() -> None:
    wallet = StudioWallet(PLAYERS)
    assert await seen(wallet) == {}
    assert not any(hold.state == wire.HOLD_STATE_OPEN for hold in wallet.holds.values())
    assert sum(wallet.balances.values()) == 0


def test_every_check_says_what_is_promised() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS) > 30
    for check in CHECKS:
        assert check.promise.endswith("."), check.name


# Wallets that break a promise.


class Forgetful(StudioWallet):
    """Keeps no keys."""

    def _once(self, verb: str, request: Any, do: Callable[[Any], Any]) -> Any:
        self.answers.clear()
        return super()._once(verb, request, do)


class Trusting(StudioWallet):
    """Answers a known key whatever the body."""

    def _once(self, verb: str, request: Any, do: Callable[[Any], Any]) -> Any:
        key = verb, request.key if hasattr(request, "key") else request.request_id
        if key in self.answers:
            request = self.answers[key][0]
        return super()._once(verb, request, do)


class Grudging(StudioWallet):
    """Refuses for ever what it refused once."""

    def __init__(self, players: Any) -> None:
        super().__init__(players)
        self.grudges: dict[tuple[str, str], Refused] = {}

    def _once(self, verb: str, request: Any, do: Callable[[Any], Any]) -> Any:
        key = verb, request.key if hasattr(request, "key") else request.request_id
        if key in self.grudges:
            raise self.grudges[key]
        try:
            return super()._once(verb, request, do)
        except Refused as refused:
            self.grudges[key] = refused
            raise


class Partial(StudioWallet):
    """Holds what it can of a match."""

    def _place(self, request: wire.PlaceHoldsRequest) -> wire.PlaceHoldsResponse:
        try:
            return super()._place(request)
        except Refused:
            for one in request.holds:
                if one.amount <= self.available(one.player_id):
                    alone = wire.PlaceHoldsRequest(request_id=request.request_id, holds=[one])
                    super()._place(alone)
            raise


class Blind(StudioWallet):
    """Leaves holds out of the balance check."""

    def _spendable(self, player: str, currency: str, book: str) -> int:
        held = sum(
            hold.amount
            for hold in self.holds.values()
            if hold.player_id == player and hold.state == wire.HOLD_STATE_OPEN
        )
        return super()._spendable(player, currency, book) + held


class Generous(StudioWallet):
    """Gives back a hold as often as it is asked, whatever was paid from it."""

    def _give_back(self, hold_id: str, state: wire.HoldState.ValueType) -> None:
        self.holds[hold_id].state = wire.HOLD_STATE_OPEN
        super()._give_back(hold_id, state)
        self.balances[self.holds[hold_id].player_id, "silver", ""] += 1


class Strict(StudioWallet):
    """Refuses a settlement for a hold that is over."""

    def _check_settlement(self, request: wire.SettleRequest) -> None:
        super()._check_settlement(request)
        self._check_open([self.holds[one] for party in request.parties for one in party.hold_ids])


class Loose(StudioWallet):
    """Hands holds over to whoever asks, and shortens them."""

    def _hand_over(self, request: wire.HandOverHoldsRequest) -> wire.HandOverHoldsResponse:
        for hold_id in request.hold_ids:
            self.holds[hold_id].table_id = ""
        return super()._hand_over(request)

    def _live(self, hold: wire.Hold, seconds: int) -> None:
        hold.ClearField("expires")
        super()._live(hold, seconds)


class Backwards(StudioWallet):
    """Takes what is available before what is held."""

    def _pay(
        self, request: wire.SettleRequest, payer: int | None, to: str | None, unit: Any, coins: int
    ) -> None:
        if payer is not None:
            player = request.parties[payer].player_id
            part = min(coins, self._spendable(player, unit.currency, unit.book))
            self._move(player, to or "", unit, part)
            coins -= part
        super()._pay(request, payer, to, unit, coins)


class FirstServed(StudioWallet):
    """Pays in full those who come first, and the house before all."""

    def _divided(self, has: int, owed: Any) -> dict[int, int]:
        paid = {}
        for number, one in sorted(owed, key=lambda one: one[1].HasField("to_party")):
            paid[number] = min(has, one.amount)
            has -= paid[number]
        return paid


class Hasty(StudioWallet):
    """Does not count what a seat is paid in the same settlement."""

    def _shares(self, request: wire.SettleRequest, currency: str, book: str) -> dict[int, int]:
        shares = {}
        for number, one in enumerate(request.transfers):
            has = one.amount
            if one.HasField("from_party") and one.reason != "probe":
                has = self._means(request, one.from_party, currency, book)
            shares[number] = min(has, one.amount)
        return shares


class Deaf(StudioWallet):
    """Knows neither `hold_only`, nor fees, nor caps."""

    def _settle(self, request: wire.SettleRequest) -> wire.SettleResponse:
        plain = wire.SettleRequest()
        plain.CopyFrom(request)
        plain.hold_only = False
        plain.ClearField("fees")
        plain.ClearField("caps")
        return super()._settle(plain)


class Lenient(StudioWallet):
    """Skips what it does not understand."""

    def _check_settlement(self, request: wire.SettleRequest) -> None:
        try:
            super()._check_settlement(request)
        except Refused as refused:
            if refused.reason not in ("SELF_TRANSFER", "DUPLICATE_PARTY"):
                raise


class Rigid(StudioWallet):
    """Refuses a whole batch for one of it."""

    def _batch(self, request: wire.SettleBatchRequest) -> wire.SettleBatchResponse:
        answer = super()._batch(request)
        for result in answer.results:
            if result.HasField("refused"):
                raise Refused(Code.INVALID_ARGUMENT, result.refused.reason)
        return answer


class Unjust(StudioWallet):
    """Gives back to losers only what the winner still has."""

    def _reverse(self, request: wire.ReverseSettlementRequest) -> wire.ReverseSettlementResponse:
        answer = super()._reverse(request)
        owed = sum(one.owed for one in answer.reversal.parties)
        for one in answer.reversal.parties:
            if one.amount > 0:
                one.amount -= owed
        return answer


class Racing(StudioWallet):
    """Looks, waits, and acts on what it saw."""

    async def _call(self, context: Any, do: Callable[[], Any]) -> Any:
        before = dict(self.balances)
        answer = await super()._call(context, do)
        after = {key: coins - before.get(key, 0) for key, coins in self.balances.items()}
        self.balances.update(before)
        await asyncio.sleep(0.001)
        for key, coins in after.items():
            self.balances[key] = before.get(key, 0) + coins
        return answer


BROKEN: list[tuple[type[StudioWallet], list[str]]] = [
    (Forgetful, ["holds-replayed", "settlement-replayed", "one-key", "one-request-id", "topped-up",
                 "reversed-once", "bytes-are-not-compared"]),
    (Trusting, ["holds-id-reused", "settlement-key-reused", "batch", "reversed-once"]),
    (Grudging, ["refused-holds-keep-their-id", "refused-settlement-keeps-its-key"]),
    (Partial, ["holds-all-or-none"]),
    (Blind, ["topped-up", "no-more-than-there-is"]),
    (Generous, ["released-once", "released-at-once", "expired"]),
    (Strict, ["expired", "released-hold-settles"]),
    (Loose, ["handed-over", "extended"]),
    (Backwards, ["holds-first"]),
    (FirstServed, ["shortfall", "house-last"]),
    (Hasty, ["pays-on"]),
    (Deaf, ["hold-only", "fees-first", "capped-losses"]),
    (Lenient, ["refused-whole"]),
    (Rigid, ["batch"]),
    (Unjust, ["reversed-short"]),
    (Racing, ["no-more-than-there-is", "hold-in-a-race", "no-deadlock"]),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "checks"), BROKEN, ids=lambda one: getattr(one, "__name__", ""))
async def test_a_broken_promise_is_found(broken: type[StudioWallet], checks: list[str]) -> None:
    found = await seen(broken(PLAYERS), *checks)
    assert sorted(found) == sorted(checks)
