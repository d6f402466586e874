"""Whatever is sent to a running suite: it lives, answers in time and in words, and what it refuses
has changed nothing."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.examples import examples_of, protodoc
from tests.fuzz.attack import MOST_GROWTH_BYTES, Attack
from tests.fuzz.calls import Maker, described, reflected
from tests.fuzz.mutations import connection
from tests.fuzz.shares import chance, counted, share
from tests.fuzz.suite import Suite

pytestmark = pytest.mark.system
TABLES = 8
"""So often the table that calls are about is a new one."""
AT_ONCE = 40


async def test_no_call_harms_a_running_suite(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    async with suite.running(), AsyncExitStack() as stack:
        methods = [
            method
            for name, service in suite.services.items()
            for method in await asyncio.to_thread(reflected, name, service.address)
        ]
        files = await asyncio.to_thread(protodoc.load)
        assert {method.path for method in methods} == described(files)
        maker = Maker(chance("calls"), methods, examples_of(files), suite.known, suite.acts)
        attack = Attack(suite, stack)
        count = share("calls")
        for number in counted("calls"):
            if number % max(1, count // TABLES) == 0:
                await suite.new_table(number)
                await attack.settled()
            if number == count // 3:
                attack.weigh()
            await attack.one(number, maker.one())
        for number in counted("bursts", AT_ONCE):
            await attack.at_once(number, [maker.one() for _ in range(AT_ONCE)])
        await attack.flood(await suite.new_table(count))
        rng = chance("sockets")
        for _ in counted("sockets"):
            await attack.raw(rng.choice([*suite.services]), connection(rng))
        growth = attack.growth()
        await attack.audited()
        await attack.started_again()
    codes = ", ".join(f"{code} {count:,}" for code, count in attack.codes.most_common())
    print(f"\n  {codes}; grown by {growth}; {attack.unexplained}")
    assert all(grown < MOST_GROWTH_BYTES for grown in growth.values()), growth
    # Tables and queues go on by themselves now and then.
    assert len(attack.unexplained) <= 2 + count // 200, attack.unexplained
