"""How long players wait whose table service was killed."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from fangcheng_table.journals import open_journal
from fangcheng_table.store import Journal
from tests.system.players import Bot, Goal, visits_of
from tests.system.replicas import until
from tests.system.tables import Cluster

TABLES = 20
POOL = """
pools:
  - id: bots
    name: bots
    rules: {id: baishan_kele}
    hands: 4
    timing: {claim_window_ms: 0, between_hands_ms: 0, turn_ms: 120000, claim_ms: 120000}
"""


@pytest.mark.system
async def test_the_tables_of_a_killed_process_go_on_at_another(tmp_path: Path) -> None:
    """Within five seconds, which no test asserts: it prints them for docs/operations/tables.md."""
    cluster = Cluster(tmp_path, POOL)
    goal = Goal(TABLES)
    bots = [Bot(cluster, f"bot-{one}", goal, random.Random(one)) for one in range(4 * TABLES)]

    def seen() -> dict[str, int]:
        """By table, how many events its players have seen."""
        counts: dict[str, int] = {}
        for _, visit in visits_of(bots):
            table_id = visit.outcome.table_id
            counts[table_id] = counts.get(table_id, 0) + len(visit.seen)
        return counts

    async def all_play() -> bool:
        counts = seen()
        return all(counts.get(table_id) for table_id in goal.begun) and len(goal.begun) >= TABLES

    try:
        await cluster.start()
        playing = asyncio.gather(*(bot.play("bots") for bot in bots))
        await until(all_play, "all play")
        killed, *_ = cluster.tables
        journal = await open_journal(cluster.journal, keys=cluster.keys)
        try:
            theirs = await tables_of(journal, killed.address)
        finally:
            await journal.close()
        await killed.kill()
        begun, before = time.monotonic(), seen()

        async def all_go_on() -> bool:
            return all(
                number > before[table_id]
                for table_id, number in seen().items()
                if table_id in theirs
            )

        assert theirs
        await until(all_go_on, "the tables go on")
        print(f"{len(theirs)} tables go on after {time.monotonic() - begun:.1f} s")
        await playing
        assert all(
            visit.seen[-1].table_closed.reason == "hands_played"
            for _, visit in visits_of(bots)
            if visit.seen
        )
    finally:
        await cluster.close()


async def tables_of(journal: Journal, address: str) -> set[str]:
    """The tables that the process at an address plays."""
    (owner,) = [one for one in await journal.owners() if one.endpoint == address]
    return {claim.table_id for claim in await journal.held(owner.owner_id)}
