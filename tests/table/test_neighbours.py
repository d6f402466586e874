"""A table between the real evaluation service and the real wallet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fangcheng.table.v1 import state_pb2
from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wallet
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect
from fangcheng_evaluation.service import open_service as open_evaluation
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import serving
from fangcheng_kit.tokens import mint_token
from fangcheng_wallet.service import open_service as open_wallet
from fangcheng_wallet.settings import WalletSettings
from tests.studio_wallet import StudioWallet
from tests.studio_wallet import serving as studio_serving

from .world import DEV_KEY, PLAYERS, play_all, request, until, world


@pytest.mark.parametrize(("balance", "hands"), [(10_000, 4), (60, 400)])
async def test_a_table_is_paid_to_the_last_coin(tmp_path: Path, balance: int, hands: int):
    """Holds taken over, every hand settled from them, what is left given back; also by the poor.

    The poor have long run out of silver before their last hand, whatever the dice.
    """
    common: dict[str, Any] = {"dev_key": DEV_KEY, "drain_seconds": 0.0, "grace_seconds": 1.0}
    wallet_settings = WalletSettings(database=str(tmp_path / "wallet.db"), **common)
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
        message = request(hands=hands, stakes=[state_pb2.Stake(currency="silver", per_unit=10)])
        for seat, hold in zip(message.seats, held.holds, strict=True):
            seat.hold_ids.append(hold.hold_id)
        made = await service.stub("service:matchmaking").CreateTable(message)
        await until_taken_over(settlements, made.table.table_id, [h.hold_id for h in held.holds])
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
        # Who cannot pay all that is owed cannot go on.
        reason = players[1].events[-1].table_closed.reason
        assert reason == ("bankrupt" if balance == 60 else "hands_played")
        settled = [event for event in players[1].events if event.HasField("hand_settled")]
        assert audit.settlements == len(settled)
        assert balance == 60 or len(settled) == 4
        assert not any(audit.held.values())
        for player in PLAYERS:
            told = await wallets.GetBalances(wallet.GetBalancesRequest(player_id=player))
            (silver,) = [b for b in told.balances if b.currency == "silver"]
            assert (silver.available, silver.held) == (paid[player], 0)


async def until_taken_over(settlements: Any, table_id: str, hold_ids: list[str]) -> None:
    """Wait until the table has the holds."""
    owners: set[str] = set()
    while owners != {table_id}:
        answer = await settlements.GetHolds(settling.GetHoldsRequest(hold_ids=hold_ids))
        owners = {hold.table_id for hold in answer.holds}


async def test_a_table_is_paid_by_a_studios_own_wallet(tmp_path: Path):
    """All that a table needs is in the contract of `SettlementService`."""
    common: dict[str, Any] = {"dev_key": DEV_KEY, "drain_seconds": 0.0, "grace_seconds": 1.0}
    studio = StudioWallet(PLAYERS, silver=60)
    async with (
        serving("evaluation", EvaluationSettings(**common), open_evaluation) as evaluator,
        studio_serving(studio) as address,
        world(tmp_path, evaluation=evaluator.address, wallet=address) as service,
        connect(address) as channel,
    ):
        settlements: Any = SettlementServiceStub(channel)
        held = await settlements.PlaceHolds(
            settling.PlaceHoldsRequest(
                request_id="holds",
                holds=[
                    settling.HoldRequest(player_id=player, currency="silver", amount=50)
                    for player in PLAYERS
                ],
            )
        )
        message = request(
            hands=4,
            stakes=[state_pb2.Stake(currency="silver", per_unit=10)],
            fees=[state_pb2.TableFee(currency="silver", amount=2)],
            hold_only=True,
        )
        for seat, hold in zip(message.seats, held.holds, strict=True):
            seat.hold_ids.append(hold.hold_id)
        made = await service.stub("service:matchmaking").CreateTable(message)
        table_id = made.table.table_id
        await until_taken_over(settlements, table_id, [one.hold_id for one in held.holds])
        players = await play_all(service, table_id)
        kele = {"rule_set": "baishan_kele", "phase": "closed"}
        await until(lambda: not service.value("fangcheng_tables", **kele))
    last = max(event.hand_ended.hand_number for event in players[0].events)
    assert studio.settled == [f"{table_id}/{number}" for number in range(1, last + 1)]
    fees = [
        (payment.from_seat, payment.paid)
        for event in players[0].events
        for payment in event.hand_settled.payments
        if payment.reason == "fee"
    ]
    assert sorted(fees) == [(seat, 2) for seat in range(4)]
    assert sum(studio.balances.values()) == 4 * 60
    # Losses stop at the hold: what was not held is still there.
    assert min(map(studio.available, PLAYERS)) >= 10
    assert not any(hold.state == settling.HOLD_STATE_OPEN for hold in studio.holds.values())
