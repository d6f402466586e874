"""What bots are lent by the house, at a wallet that serves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng_client import explain
from fangcheng_rules.players import STRENGTH
from fangcheng_suite.access import Access
from fangcheng_suite.bots.house import House
from fangcheng_suite.bots.keeping import keep_bots
from fangcheng_suite.errors import SuiteError
from tests.wallet.wire import KEY, Served, served

POOL = matchmaking_pb2.Pool(
    pool_id="silver",
    stakes=[
        matchmaking_pb2.PoolStake(currency="silver", buy_in=500, entry_minimum=800),
        matchmaking_pb2.PoolStake(currency="points", book="baishan_kele", per_unit=1),
    ],
)


async def available(wallet: Served, player_id: str) -> list[tuple[str, int]]:
    request = wallet_pb2.GetBalancesRequest(player_id=player_id)
    answer = await wallet.operator.wallet.GetBalances(request)
    return [(one.currency, one.available) for one in answer.balances]


async def test_a_bot_is_lent_what_a_pool_asks_for_and_gives_everything_back(tmp_path: Path) -> None:
    async with served(tmp_path) as wallet:
        house = House(Access(lambda service: wallet.running.address, KEY))
        for _ in range(2):  # what it has is enough the second time
            await house.fund("robo", POOL)
            assert await available(wallet, "robo") == [("silver", 800)]
        assert await house.give_back("robo") == 0
        assert await available(wallet, "robo") == [("silver", 0)]
        entries = [
            entry
            async for message in wallet.operator.wallet.StreamEntries(
                wallet_pb2.StreamEntriesRequest()
            )
            for entry in message.entries
        ]
        assert [(entry.owner, entry.entry.reason) for entry in entries] == [
            ("robo", "fund"),
            ("", "fund"),
            ("robo", "give_back"),
            ("", "give_back"),
        ]
        assert {entry.kind for entry in entries if not entry.owner} == {
            wallet_pb2.ACCOUNT_KIND_HOUSE
        }


async def test_no_person_is_lent_anything(tmp_path: Path) -> None:
    async with served(tmp_path) as wallet:
        await wallet.operator.wallet.OpenWallet(wallet_pb2.OpenWalletRequest(player_id="amy"))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await House(Access(lambda service: wallet.running.address, KEY)).fund("amy", POOL)
        assert explain(refused.value).reason == "WALLET_DIFFERS"
        assert await available(wallet, "amy") == []


async def test_bots_wait_for_services_that_do_not_answer_yet() -> None:
    told: list[str] = []
    twice = asyncio.Event()

    def report(text: str) -> None:
        told.append(text)
        if len(told) == 2:
            twice.set()

    nobody = Access(lambda service: "127.0.0.1:1", KEY)
    keeping = asyncio.create_task(
        keep_bots(
            *(nobody, ["silver"], 1),
            prefix="guest",
            strength=STRENGTH,
            turn_seconds=0,
            report=report,
        )
    )
    waiting = asyncio.create_task(twice.wait())
    await asyncio.wait([keeping, waiting], return_when=asyncio.FIRST_COMPLETED)
    assert not keeping.done()
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert all("asking for the pools" in text for text in told)


async def test_tokens_leave_this_host_in_plain_text_only_where_that_was_asked_for(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as wallet:
        # Linux takes this address for its own, but it is none of loopback's.
        target = wallet.running.address.replace("127.0.0.1", "0.0.0.0")  # noqa: S104
        with pytest.raises(SuiteError, match="in plain text"):
            await House(Access(lambda service: target, KEY)).fund("robo", POOL)
        await House(Access(lambda service: target, KEY, plaintext=True)).fund("robo", POOL)
        assert await available(wallet, "robo") == [("silver", 800)]
