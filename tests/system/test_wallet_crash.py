"""``kill -9`` of the wallet and of its database, again and again, under load."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.system.wallets import ENGINES, ledger

ROUNDS = 30


@pytest.mark.system
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ENGINES)
async def test_nothing_acknowledged_is_lost_and_nothing_is_done_twice(
    tmp_path: Path, engine: str
) -> None:
    chance = random.Random(4242)
    async with ledger(tmp_path, engine, seed=1) as (database, wallet, load):
        async with load.running():
            for number in range(ROUNDS):
                await load.until(chance.randrange(1, 150))
                # Somewhere between two commits, inside one, or between a commit and its answers.
                await asyncio.sleep(chance.random() * 0.01)
                if engine == "sqlite" or number % 2:
                    await wallet.kill()
                if engine == "postgres" and number % 3 != 1:
                    await asyncio.to_thread(database.kill)
                    await asyncio.to_thread(database.start)
                if not wallet.alive:
                    await wallet.start()
            await load.until(100)
        assert load.repeats, "nothing was ever killed with calls in flight"
        await load.check()
        print(f"{engine}: {len(load.answers)} calls answered, {load.repeats} repeated")
