"""``kill -9`` of a wallet under load: what was acknowledged is stored, the rest converges."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import pytest

from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wire
from tests.wallet.ledgers import PLAYERS
from tests.wallet.wire import KEY, Caller

ROOT = Path(__file__).parents[2]
CALLERS = 16
FIRST = 1_000_000


@asynccontextmanager
async def wallet_process(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """A wallet on the ledger in a folder: the process and its address. Killed at the end."""
    port_file = folder / "port.json"
    port_file.unlink(missing_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if "FANGCHENG" not in name},
        "FANGCHENG_DEV_KEY": KEY,
        "FANGCHENG_LOG_LEVEL": "warning",
        "FANGCHENG_WALLET_DATABASE": str(folder / "wallet.db"),
        "FANGCHENG_WALLET_PORT_FILE": str(port_file),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fangcheng_wallet", cwd=ROOT, env=environment
    )
    try:
        async with asyncio.timeout(30):
            while not port_file.exists():
                assert process.returncode is None, "the wallet did not start"
                await asyncio.sleep(0.02)
        yield process, json.loads(port_file.read_text())["listen"]
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Load:
    """Callers that settle without a pause, and remember what was acknowledged."""

    def __init__(self) -> None:
        self.asked: dict[str, settling.SettleRequest] = {}
        self.acknowledged: dict[str, settling.Settlement] = {}

    async def run(self, caller: Caller, name: str) -> None:
        """Settle until the wallet is gone."""
        number = 0
        while True:
            number += 1
            request = self.request(f"{name}/{number}", number)
            self.asked[request.key] = request
            try:
                answer = await caller.settlement.Settle(request)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                return
            self.acknowledged[request.key] = answer.settlement

    def request(self, key: str, number: int) -> settling.SettleRequest:
        """Two losers pay the winner, who pays the house; in silver and in points."""
        winner = number % 4
        losers = [(winner + 1) % 4, (winner + 2) % 4]
        pays = [(loser, winner, 5, "silver", "") for loser in losers]
        pays += [(loser, winner, 1, "points", "kele") for loser in losers]
        return settling.SettleRequest(
            key=key,
            parties=[settling.SettlementParty(player_id=player) for player in PLAYERS],
            transfers=[
                settling.SettlementTransfer(
                    from_party=payer,
                    to_party=payee,
                    amount=amount,
                    currency=currency,
                    book=book,
                    reason="win",
                )
                for payer, payee, amount, currency, book in pays
            ],
        )


@pytest.mark.system
@pytest.mark.timeout(300)
async def test_what_was_acknowledged_is_stored_when_the_wallet_is_killed(tmp_path: Path) -> None:
    load = Load()
    chance = random.Random(4242)
    async with wallet_process(tmp_path) as (_, address):
        operator = Caller(address, "operator").wallet
        for player in PLAYERS:
            await operator.OpenWallet(wire.OpenWalletRequest(player_id=player))
            await operator.Deposit(
                wire.DepositRequest(
                    request_id=f"first of {player}",
                    player_id=player,
                    currency="silver",
                    amount=FIRST,
                )
            )
    for round_number in range(8):
        async with wallet_process(tmp_path) as (process, address):
            caller = Caller(address, "service:table", retries=False)
            before = len(load.acknowledged)
            running = [
                asyncio.create_task(load.run(caller, f"{round_number}.{number}"))
                for number in range(CALLERS)
            ]
            goal = before + chance.randrange(1, 400)
            while len(load.acknowledged) < goal:
                assert not any(task.done() for task in running)
                await asyncio.sleep(0.001)
            # Somewhere between two commits, inside one, or between a commit and its answers.
            await asyncio.sleep(chance.random() * 0.01)
            process.kill()
            await process.wait()
            await asyncio.gather(*running)
            await caller.channel.close()
    unknown = load.asked.keys() - load.acknowledged.keys()
    assert unknown, "the wallet was never killed with calls in flight"

    async with wallet_process(tmp_path) as (_, address):
        caller = Caller(address, "service:table")
        for key, settlement in load.acknowledged.items():
            stored = await caller.settlement.GetSettlement(settling.GetSettlementRequest(key=key))
            assert stored.settlement == settlement
        for key in sorted(unknown):
            first = await caller.settlement.Settle(load.asked[key])
            again = await caller.settlement.Settle(load.asked[key])
            assert again.replayed
            assert again.settlement == first.settlement
        audit = await Caller(address, "operator").wallet.AuditLedger(wire.AuditLedgerRequest())
        assert list(audit.findings) == []
        assert audit.settlements == len(load.asked)
        assert dict(audit.sums) == {"silver": 0, "points": 0}
        operator = Caller(address, "operator").wallet
        silver, points = dict.fromkeys(PLAYERS, FIRST), dict.fromkeys(PLAYERS, 0)
        for request in load.asked.values():
            for transfer in request.transfers:
                have = silver if transfer.currency == "silver" else points
                have[PLAYERS[transfer.from_party]] -= transfer.amount
                have[PLAYERS[transfer.to_party]] += transfer.amount
        for player in PLAYERS:
            answer = await operator.GetBalances(wire.GetBalancesRequest(player_id=player))
            assert [balance.available for balance in answer.balances] == [
                points[player],
                silver[player],
            ]
