"""`fangcheng bots` beside a suite: who plays for silver with bots plays against the house."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import watch
from fangcheng_suite.bots.player import Bot, Place

from .running import COMMAND, LONG_SECONDS, Running, environment, running

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

POOL = {
    "id": "with-bots",
    "name": "With bots",
    "rules": {"id": "baishan_kele"},
    "stakes": [{"currency": "silver", "per_unit": 10, "buy_in": 5000}],
    "hands": 64,
    "timing": {"claim_window_ms": 0, "between_hands_ms": 0},
    "fill_with_bots_after_ms": 100,
    "bots_where_silver_is_staked": True,
}
BOTS = [f"guest-with-bots-{number}" for number in (1, 2, 3)]


class Person(Bot):
    """Plays as a bot does, and nobody knows it for one."""

    def _channel(self, service: str, target: str | None = None) -> grpc.aio.Channel:
        return self.access.channel(service, f"player:{self.player_id}", target=target)


@contextmanager
def bots_beside(suite: Running, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command, told where each service is, until the end of the block at the latest."""
    words = ["bots", "--pool", "with-bots", "--count", "3", "--think", "0.01"]
    for service in ("matchmaking", "table", "wallet", "evaluation"):
        words += [f"--{service}", suite.suite.target(service)]
    with output.open("wb") as out:
        process = subprocess.Popen(
            [COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment(FANGCHENG_DEV_KEY=suite.suite.key),
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def open_pool(suite: Running) -> None:
    """Have matchmaking take the pool up."""
    pools = suite.state / "pools.yaml"
    text = pools.read_text("utf-8")
    pools.write_text(text.replace("pools:\n", f"pools:\n  - {json.dumps(POOL)}\n", 1), "utf-8")
    os.kill(suite.pid("matchmaking"), signal.SIGHUP)
    async with suite.access.channel("matchmaking") as channel:
        stub = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        while True:
            answer = await stub.ListPools(matchmaking_pb2.ListPoolsRequest())
            if any(pool.pool_id == POOL["id"] for pool in answer.pools):
                return
            await asyncio.sleep(0.05)


async def until_hand(suite: Running, place: Place, number: int) -> None:
    """Wait until a table plays this hand."""
    async with suite.access.channel("table") as channel:
        async for event in watch(channel, place.table_id):
            if event.HasField("hand_started") and event.hand_started.hand_number >= number:
                return


async def test_bots_play_with_the_money_of_the_house_and_bring_back_what_they_have(
    tmp_path: Path,
) -> None:
    # A person who answers at the speed of a machine.
    fast = {"FANGCHENG_PLAYER_CALLS_PER_SECOND": "0"}
    with running(tmp_path, "--tables", "0", "--think", "0", **fast) as suite:
        await open_pool(suite)
        output = tmp_path / "bots.txt"
        with bots_beside(suite, output) as bots:
            async with suite.access.channel("wallet") as channel:
                await play_and_stop(suite, bots, wallet_pb2_grpc.WalletServiceStub(channel))
        assert "the bots have left" in output.read_text()
        assert "Traceback" not in output.read_text()
        audited = suite.fangcheng("ledger", "audit")
        assert audited.returncode == 0, audited.stderr


async def play_and_stop(
    suite: Running,
    bots: subprocess.Popen[bytes],
    wallet: wallet_pb2_grpc.WalletServiceAsyncStub,
) -> None:
    """A person plays with them, and they are stopped in the midst of a hand."""
    await wallet.OpenWallet(wallet_pb2.OpenWalletRequest(player_id="ming"))
    deposit = wallet_pb2.DepositRequest(
        request_id="d", player_id="ming", currency="silver", amount=5_000
    )
    await wallet.Deposit(deposit)
    seated: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
    person = Person("ming", suite.access, on_seated=seated.set_result)
    playing = asyncio.create_task(person.play("with-bots"))
    await asyncio.wait([seated, playing], return_when=asyncio.FIRST_COMPLETED)
    await until_hand(suite, await seated, 2)
    bots.send_signal(signal.SIGTERM)
    await playing
    assert await asyncio.to_thread(bots.wait, LONG_SECONDS) == 0
    for player in BOTS:
        answer = await wallet.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player))
        assert answer.player.is_bot
        assert [(one.available, one.held) for one in answer.balances] == [(0, 0)]
    sums = dict.fromkeys(wallet_pb2.AccountKind.values(), 0)
    async for message in wallet.StreamEntries(wallet_pb2.StreamEntriesRequest()):
        for entry in message.entries:
            sums[entry.kind] += entry.entry.amount
    # Nothing came from outside but his own money; what he won or lost, the house has paid or has.
    assert sums[wallet_pb2.ACCOUNT_KIND_EXTERNAL] == -5_000
    mine = sums[wallet_pb2.ACCOUNT_KIND_PLAYER] + sums[wallet_pb2.ACCOUNT_KIND_HOLD]
    assert mine == 5_000 - sums[wallet_pb2.ACCOUNT_KIND_HOUSE]
