"""A table between the real evaluation service and the real wallet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wallet
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect
from fangcheng_evaluation.service import open_service as open_evaluation
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import serving
from fangcheng_kit.principal import mint_token
from fangcheng_wallet.service import open_service as open_wallet
from fangcheng_wallet.settings import WalletSettings

from .world import DEV_KEY, PLAYERS, play_all, request, until, world


@pytest.mark.parametrize("balance", [10_000, 60])
async def test_a_table_is_paid_to_the_last_coin(tmp_path: Path, balance: int):
    """Holds taken over, every hand settled from them, what is left given back; also by the poor."""
    common: dict[str, Any] = {"dev_key": DEV_KEY, "drain_seconds": 0.0, "grace_seconds": 1.0}
    wallet_settings = WalletSettings(database=tmp_path / "wallet.db", **common)
    async with (
        serving("evaluation", EvaluationSettings(**common), open_evaluation) as evaluator,
        serving("wallet", wallet_settings, open_wallet) as bank,
        world(tmp_path, evaluation=evaluator.address, wallet=bank.address) as service,
        connect(bank.address, mint_token(DEV_KEY, "operator")) as operator,
        connect(bank.address, mint_token(DEV_KEY, "service:matchmaking")) as matchmaking,
    ):
        wallets: Any = WalletServiceStub(operator)
        settlements: Any = SettlementServiceStub(matchmaking)
        for player in PLAYERS:
            await wallets.OpenWallet(wallet.OpenWalletRequest(player_id=player))
            await wallets.Deposit(
                wallet.DepositRequest(
                    request_id=f"d-{player}", player_id=player, currency="silver", amount=balance
                )
            )
        held = await settlements.PlaceHolds(
            settling.PlaceHoldsRequest(
                request_id="holds",
                holds=[
                    settling.HoldRequest(player_id=player, currency="silver", amount=50)
                    for player in PLAYERS
                ],
            )
        )
        message = request(hands=4, stakes=[wire.Stake(currency="silver", per_unit=10)])
        for seat, hold in zip(message.seats, held.holds, strict=True):
            seat.hold_ids.append(hold.hold_id)
        made = await service.stub("service:matchmaking").CreateTable(message)
        players = await play_all(service, made.table.table_id)

        paid = dict.fromkeys(PLAYERS, balance)
        short = 0
        for event in players[1].events:
            for payment in event.hand_settled.payments:
                assert 0 <= payment.paid <= payment.due
                short += payment.due - payment.paid
                if payment.HasField("from_seat"):
                    paid[PLAYERS[payment.from_seat]] -= payment.paid
                if payment.HasField("to_seat"):
                    paid[PLAYERS[payment.to_seat]] += payment.paid
        assert bool(short) == (balance == 60)

        kele = {"rule_set": "baishan_kele", "phase": "closed"}
        await until(lambda: not service.value("fangcheng_tables", **kele))
        audit = await wallets.AuditLedger(wallet.AuditLedgerRequest())
        assert audit.balanced
        assert audit.settlements == 4
        assert not any(audit.held.values())
        for player in PLAYERS:
            told = await wallets.GetBalances(wallet.GetBalancesRequest(player_id=player))
            (silver,) = [b for b in told.balances if b.currency == "silver"]
            assert (silver.available, silver.held) == (paid[player], 0)
