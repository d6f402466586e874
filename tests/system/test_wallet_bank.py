"""The bank test: payments of all kinds while faults are injected and replies get lost, and reads of
the whole ledger in between. Every read adds up to zero, and no balance is ever below its floor.

Runs for twenty seconds, or as long as FANGCHENG_CHAOS_SECONDS says.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from fangcheng.wallet.v1 import wallet_pb2 as wire
from tests.system.processes import Service
from tests.system.wallets import ENGINES, Caller, Database, ledger

SECONDS = float(os.environ.get("FANGCHENG_CHAOS_SECONDS", "20"))
SEED = int(os.environ.get("FANGCHENG_CHAOS_SEED", "1"))
SWALLOWED = 0.01
"""Share of the replies that never arrive; the connection goes with each."""


class Reader:
    """Reads the whole ledger again and again, as an audit and as the stream of its entries."""

    def __init__(self, address: str) -> None:
        self._warehouse = Caller(address, "service:warehouse", 60)
        self._cursor = ""
        self._balances: Counter[tuple[int, str, str, str]] = Counter()
        self._sequence = 0
        self.audits = 0
        self.entries = 0

    async def read(self) -> None:
        """An audit, and the entries since the last read; nothing where the wallet is down."""
        try:
            audit = await self._warehouse.wallet.AuditLedger(wire.AuditLedgerRequest())
            request = wire.StreamEntriesRequest(cursor=self._cursor)
            messages = [one async for one in self._warehouse.wallet.StreamEntries(request)]
        except grpc.aio.AioRpcError as error:
            assert error.code() in (  # noqa: PT017
                grpc.StatusCode.UNAVAILABLE,
                grpc.StatusCode.CANCELLED,
            ), error
            await asyncio.sleep(0.05)
            return
        assert list(audit.findings) == []
        assert set(audit.sums.values()) <= {0}
        self.audits += 1
        for message in messages:
            self._follow(message)

    def _follow(self, message: Any) -> None:
        for streamed in message.entries:
            entry = streamed.entry
            self._sequence += 1
            assert streamed.sequence == self._sequence
            account = (streamed.kind, streamed.owner, entry.currency, entry.book)
            self._balances[account] += entry.amount
            assert self._balances[account] == entry.balance_after, account
            if entry.currency == "silver" and streamed.kind in (
                wire.ACCOUNT_KIND_PLAYER,
                wire.ACCOUNT_KIND_HOLD,
            ):
                assert entry.balance_after >= 0, account
            self.entries += 1
        self._cursor = message.cursor
        sums: Counter[tuple[str, str]] = Counter()
        for (_, _, currency, book), balance in self._balances.items():
            sums[currency, book] += balance
        if not message.entries or len(message.entries) < 500:
            # The stream's end: behind a whole operation.
            assert set(sums.values()) <= {0}, sums

    async def close(self) -> None:
        await self._warehouse.channel.close()


async def faults(database: Database, wallet: Service, chance: random.Random) -> int:
    """Something goes wrong every half second or so; how often it did."""
    until = time.monotonic() + SECONDS
    count = 0
    while time.monotonic() < until:
        await asyncio.sleep(chance.uniform(0.1, 1.0))
        count += 1
        match chance.choice(["kill", "pause", "database", "both"]):
            case "pause":
                wallet.pause()
                await asyncio.sleep(chance.uniform(0.1, 1.0))
                wallet.go_on()
            case fault:
                if fault in ("kill", "both"):
                    await wallet.kill()
                if fault in ("database", "both") and database.engine == "postgres":
                    await asyncio.to_thread(database.kill)
                    await asyncio.to_thread(database.start)
                if not wallet.alive:
                    await wallet.start()
    return count


@pytest.mark.system
@pytest.mark.timeout(SECONDS * 3 + 300)
@pytest.mark.parametrize("engine", ENGINES)
async def test_the_bank_adds_up_at_every_read_whatever_happens(tmp_path: Path, engine: str) -> None:
    chance = random.Random(f"replies {SEED}")
    swallowed = 0

    def swallow() -> bool:
        nonlocal swallowed
        lost = chance.random() < SWALLOWED
        swallowed += lost
        return lost

    async with ledger(tmp_path, engine, SEED, swallow) as (database, wallet, load):
        print(f"{engine}: seed {SEED}")
        reader = Reader(wallet.address)
        async with load.running(), asyncio.TaskGroup() as group:
            wrong = group.create_task(faults(database, wallet, random.Random(SEED)))
            # On a machine so busy that little was answered meanwhile, it goes on.
            while not (wrong.done() and swallowed and reader.audits > 1 and reader.entries):
                await reader.read()
        await load.check()
        await reader.read()
        await reader.close()
        print(
            f"{engine}: {wrong.result()} faults, {swallowed} replies lost, {reader.audits} audits, "
            f"{reader.entries} entries streamed, {len(load.answers)} calls answered, "
            f"{load.repeats} repeated"
        )
