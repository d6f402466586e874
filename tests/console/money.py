"""A wallet in the test's loop with four players, and hands settled between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect
from fangcheng_kit import serving
from fangcheng_kit.tokens import mint_token
from fangcheng_wallet.service import open_service
from fangcheng_wallet.settings import WalletSettings

PLAYERS = ("ann", "bob", "cat", "dan")
TABLE = "0197f0a4c1d27d3e8b52a90c6e4f1b77"
SHORT, REVERSED = f"{TABLE}/7", f"{TABLE}/8"


class Bank:
    """The wallet as everybody calls it who may change it."""

    def __init__(self, operator: Any, operator_settles: Any, table: Any, matchmaking: Any) -> None:
        self.operator = operator
        self.operator_settles = operator_settles
        self.table = table
        self.matchmaking = matchmaking

    async def deposit(
        self, player: str, currency: str, amount: int, *, request_id: str = "", **more: str
    ) -> None:
        request = wallet_pb2.DepositRequest(
            request_id=request_id or f"{player} {currency}",
            player_id=player,
            currency=currency,
            amount=amount,
            **more,
        )
        await self.operator.Deposit(request)

    async def live(self) -> None:
        """Four players: buy-ins, a hand that one cannot pay, one that is taken back, a freeze."""
        for player in PLAYERS:
            await self.operator.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player))
            await self.deposit(player, "silver", 1_000)
        await self.deposit("ann", "points", 1_050, book="baishan_dazui", memo="the season's start")
        holds = [
            settlement_pb2.HoldRequest(player_id=player, currency="silver", amount=300)
            for player in ("ann", "bob")
        ]
        placed = await self.matchmaking.PlaceHolds(
            settlement_pb2.PlaceHoldsRequest(request_id="match", holds=holds)
        )
        ids = {hold.player_id: hold.hold_id for hold in placed.holds}
        parties = [
            settlement_pb2.SettlementParty(
                player_id=player, hold_ids=[ids[player]] if player in ids else []
            )
            for player in PLAYERS
        ]
        await self.table.Settle(
            settlement_pb2.SettleRequest(
                key=SHORT,
                parties=parties,
                transfers=[
                    paid("silver", 1, 0, 1_234_567),
                    paid("silver", 2, 0, 320),
                    paid("points", 0, 3, 64, book="baishan_dazui", reason="kong"),
                ],
                fees=[settlement_pb2.SettlementFee(party=0, currency="silver", amount=50)],
                labels={"club": "17"},
            )
        )
        await self.table.Settle(
            settlement_pb2.SettleRequest(
                key=REVERSED, parties=parties[:2], transfers=[paid("silver", 0, 1, 400)]
            )
        )
        await self.operator.Withdraw(
            wallet_pb2.WithdrawRequest(
                request_id="payout", player_id="bob", currency="silver", amount=300
            )
        )
        await self.operator_settles.ReverseSettlement(
            settlement_pb2.ReverseSettlementRequest(
                key=REVERSED, reason="the line of two seats was cut", case_id="case-81"
            )
        )
        await self.operator.FreezePlayer(
            wallet_pb2.FreezePlayerRequest(
                request_id="freeze", player_id="bob", reason="under review", case_id="case-82"
            )
        )

    async def one_more(self, transfer: settlement_pb2.SettlementTransfer) -> str:
        """Settle another hand, between dan (party 0) and cat; its key."""
        key = f"{TABLE}/9"
        parties = [settlement_pb2.SettlementParty(player_id=one) for one in ("dan", "cat")]
        await self.table.Settle(
            settlement_pb2.SettleRequest(key=key, parties=parties, transfers=[transfer])
        )
        return key


def paid(
    currency: str, source: int, target: int, amount: int, *, book: str = "", reason: str = "win"
) -> settlement_pb2.SettlementTransfer:
    return settlement_pb2.SettlementTransfer(
        currency=currency,
        book=book,
        from_party=source,
        to_party=target,
        amount=amount,
        reason=reason,
    )


@asynccontextmanager
async def bank_at(address: str, key: str) -> AsyncIterator[Bank]:
    """A wallet that serves somewhere, as those call it who may change it."""
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(connect(address, mint_token(key, subject)))
            for subject in ("operator", "service:table", "service:matchmaking")
        ]
        operator, table, matchmaking = channels
        yield Bank(
            WalletServiceStub(operator),
            SettlementServiceStub(operator),
            SettlementServiceStub(table),
            SettlementServiceStub(matchmaking),
        )


@asynccontextmanager
async def bank(folder: Path, key: str) -> AsyncIterator[tuple[str, Bank]]:
    """A wallet of its own: its address, and how it is called."""
    settings = WalletSettings(dev_key=key, database=str(folder / "wallet.db"), drain_seconds=0)
    async with (
        serving("wallet", settings, open_service) as running,
        bank_at(running.address, key) as called,
    ):
        yield running.address, called
