"""Players who lose neither their places nor their hands: bots queue and play at forty tables at a
time, while the processes around them, matchmaking among them, are killed and paused. At the end
every ticket had one outcome, and every hand that began has ended and was settled once.

`make chaos` plays more hands.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fangcheng.matchmaking.v1 import matchmaking_pb2 as queues
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import connect
from fangcheng_kit.tokens import mint_token
from fangcheng_matchmaking.core import MatchState
from fangcheng_matchmaking.postgres import open_postgres
from fangcheng_matchmaking.store import Store
from fangcheng_rules import events as play
from fangcheng_table.events import HandOpened, HandSettled, TableClosed
from fangcheng_table.journals import open_journal
from fangcheng_table.state import TableState
from fangcheng_table.store import Filter, Journal
from tests.system.players import Bot, Goal, Visit, visits_of
from tests.system.processes import KEY, Service
from tests.system.replicas import until
from tests.system.running import until as wait_until
from tests.system.tables import Cluster
from tests.system.wallets import patiently

TABLES = 40
"""At a time."""
HANDS = int(os.environ.get("FANGCHENG_CHAOS_HANDS", "5"))
"""For each of them; 5 are 200 in all, so that many queue again while others play."""
HANDS_AT_A_TABLE = 4
SEED = int(os.environ.get("FANGCHENG_CHAOS_SEED", "1"))
BETWEEN_FAULTS_SECONDS = 2.0
PAUSE_SECONDS = 3.0
FIRST_SILVER = 1_000_000
PER_UNIT = 2
POOL = f"""
pools:
  - id: chaos
    name: chaos
    rules: {{id: baishan_kele}}
    stakes: [{{currency: silver, per_unit: {PER_UNIT}, buy_in: 5000}}]
    hands: {HANDS_AT_A_TABLE}
    timing: {{claim_window_ms: 0, between_hands_ms: 0, turn_ms: 120000, claim_ms: 120000}}
"""


async def faults(cluster: Cluster, chance: random.Random, seen: Callable[[], int]) -> Counter[str]:
    """Every two seconds something goes wrong with somebody, until it is cancelled.

    `seen`: how many events the players have seen. On a machine so busy that the tables have not
    gone on meanwhile, nothing more goes wrong until they have: else they might never.
    """
    done: Counter[str] = Counter()
    busy: set[str] = set()

    async def fault(service: Service) -> None:
        busy.add(service.name)
        if chance.random() < 0.5:
            done[f"killed {service.name}"] += 1
            await service.kill()
            await service.start()
        else:
            done[f"paused {service.name}"] += 1
            service.pause()
            await asyncio.sleep(PAUSE_SECONDS)
            service.go_on()
        busy.discard(service.name)

    async def gone_on() -> bool:
        return seen() >= enough

    try:
        async with asyncio.TaskGroup() as group:
            while True:
                enough = seen() + TABLES
                await asyncio.sleep(BETWEEN_FAULTS_SECONDS)
                await until(gone_on, "the tables go on")
                service = chance.choice(cluster.services)
                if service.name not in busy:
                    group.create_task(fault(service))
    except asyncio.CancelledError:
        for service in cluster.services:
            if service.name in busy:
                await service.kill()
                await service.start()
        return done


@pytest.mark.system
@pytest.mark.timeout(600 + 60 * HANDS)
async def test_no_ticket_or_hand_is_lost_or_done_twice_whoever_is_killed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, POOL)
    chance = random.Random(SEED)
    goal = Goal(TABLES * HANDS // HANDS_AT_A_TABLE)
    bots = [Bot(cluster, f"bot-{number}", goal, chance) for number in range(4 * TABLES)]
    try:
        await cluster.start()
        print(f"seed {SEED}")
        await asyncio.gather(*(bot.open_wallet(FIRST_SILVER) for bot in bots))

        def seen() -> int:
            return sum(bot.events for bot in bots)

        going_wrong = asyncio.create_task(faults(cluster, random.Random(SEED), seen))
        playing = asyncio.gather(*(bot.play("chaos") for bot in bots))
        await asyncio.wait([going_wrong, playing], return_when=asyncio.FIRST_COMPLETED)
        assert not going_wrong.done(), going_wrong.result()
        going_wrong.cancel()
        print(dict(await going_wrong))
        await playing
        store = await open_postgres(cluster.queues)
        try:
            await nothing_is_left(cluster, store)
            match_ids = await check_tickets(store, bots)
        finally:
            await store.close()
        hands = await check_tables(cluster, bots, match_ids)
        assert hands >= TABLES * HANDS
        left = sum(not visit.outcome.table_id for _, visit in visits_of(bots))
        snapshots = sum(
            event.HasField("snapshot") for _, visit in visits_of(bots) for event in visit.seen
        )
        print(f"{hands} hands, {left} tickets left the queue, {snapshots} snapshots")
    finally:
        await cluster.close()


async def nothing_is_left(cluster: Cluster, store: Store) -> None:
    """Wait until no table, stream, unpaid settlement, ticket or match is left."""
    names = ("fangcheng_tables", "fangcheng_table_streams", "fangcheng_table_outbox")

    def left() -> dict[str, float]:
        return {
            f"{name} of {service.name}": value
            for service in cluster.tables
            for name in names
            if (value := service.metric(name))
        }

    async def all_done() -> bool:
        return not (await store.live_tickets()).tickets and not await store.unfinished_matches()

    what = f"nothing is left of {names}"
    await asyncio.to_thread(wait_until, lambda: not left(), what, 120)
    await until(all_done, "no ticket and no match is left")


async def check_tickets(store: Store, bots: Sequence[Bot]) -> set[str]:
    """Every ticket had the outcome that its player was told; the matches that had a table."""
    match_ids: dict[str, str] = {}
    visits = [(bot, visit.outcome) for bot, visit in visits_of(bots)]
    again = await asyncio.gather(*(bot.told_again(told.ticket_id) for bot, told in visits))
    assert again == [told for _, told in visits]
    for bot, told in visits:
        ticket = await store.ticket(told.ticket_id)
        assert ticket.player_ids == (bot.player_id,)
        assert (ticket.state == "ended") == (told.state == queues.TICKET_STATE_ASSIGNED)
        if told.state == queues.TICKET_STATE_LEFT:
            assert (ticket.state, ticket.match_id, told.table_id) == ("left", None, "")
            continue
        assert told.state == queues.TICKET_STATE_ASSIGNED, told
        assert ticket.match_id is not None
        match = await store.match(ticket.match_id)
        assert (match.state, match.table_id) == (MatchState.SEATED, told.table_id)
        assert match.seats[told.seat].ticket_id == told.ticket_id
        assert match_ids.setdefault(match.match_id, told.table_id) == told.table_id
    return set(match_ids)


async def check_tables(cluster: Cluster, bots: Sequence[Bot], match_ids: set[str]) -> int:
    """What must hold of the tables at the end; how many hands were played."""
    at_tables: dict[str, dict[int, tuple[Bot, Visit]]] = {}
    for bot, visit in visits_of(bots):
        if visit.outcome.table_id:
            seats = at_tables.setdefault(visit.outcome.table_id, {})
            assert visit.outcome.seat not in seats
            seats[visit.outcome.seat] = bot, visit
    journal = await open_journal(cluster.journal, keys=cluster.keys)
    try:
        census = await journal.census()
        assert (sum(census.owners.values()), census.unowned) == (0, 0)
        made = {match_id: await journal.by_request(match_id) for match_id in match_ids}
        assert {table and table.table_id for table in made.values()} == set(at_tables)
        found = await journal.find(Filter(include_closed=True), None, 100_000)
        assert {one.table_id for one in found} == set(at_tables)
        won: Counter[str] = Counter({bot.player_id: 0 for bot in bots})
        stays: dict[str, list[tuple[int, int]]] = {bot.player_id: [] for bot in bots}
        for table_id, seats in at_tables.items():
            standings, stay = await check_table(journal, table_id, seats)
            won.update(standings)
            for player_id in standings:
                stays[player_id].append(stay)
        for stay in stays.values():
            assert all(end <= begin for (_, end), (begin, _) in pairwise(sorted(stay))), stay
        finished = await journal.finished(0, 100_000)
        assert len({(f.entry.table_id, f.entry.hand_number) for f in finished}) == len(finished)
        assert len(finished) == HANDS_AT_A_TABLE * len(at_tables)
    finally:
        await journal.close()
    await check_ledger(cluster, won, len(finished))
    return len(finished)


async def check_table(
    journal: Journal, table_id: str, seats: dict[int, tuple[Bot, Visit]]
) -> tuple[dict[str, int], tuple[int, int]]:
    """The journal of a table folds to what its players saw.

    What each of them has won, in units, and from when to when it was there.
    """
    records = await journal.read(table_id)
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    events = [record.event for record in records]
    numbers = list(range(1, HANDS_AT_A_TABLE + 1))
    assert [e.hand_number for e in events if isinstance(e, HandOpened)] == numbers
    assert [e.hand_number for e in events if isinstance(e, HandSettled)] == numbers
    assert sum(isinstance(event, play.HandEnded) for event in events) == HANDS_AT_A_TABLE
    state = TableState.replay(events)
    assert state.done
    assert [seat.plan.player_id for seat in state.seats] == [
        seats[number][0].player_id for number in range(4)
    ]
    for _, visit in seats.values():
        last = 0
        for event in visit.seen:
            assert event.number == last + 1 or event.HasField("snapshot")
            last = event.number
        assert visit.seen[-1].table_closed.reason == "hands_played"
        standings = visit.seen[-1].table_closed.standings
        assert list(standings) == [seat.standing for seat in state.seats]
    (closed_ms,) = [one.time_ms for one in records if isinstance(one.event, TableClosed)]
    standing = {seat.plan.player_id: seat.standing for seat in state.seats}
    assert len(standing) == 4
    return standing, (records[0].time_ms, closed_ms)


async def check_ledger(cluster: Cluster, won: Counter[str], hands: int) -> None:
    """Each hand was settled once, all adds up to zero, and nothing is held any more."""
    async with connect(
        cluster.wallet.address, mint_token(KEY, "operator"), timeout_seconds=60
    ) as channel:
        wallets: Any = wallet_pb2_grpc.WalletServiceStub(channel)
        audit = await patiently(wallets.AuditLedger, wallet_pb2.AuditLedgerRequest())
        assert list(audit.findings) == []
        assert set(audit.sums.values()) == {0}
        assert set(audit.held.values()) <= {0}
        assert audit.settlements == hands
        for player, units in won.items():
            answer = await patiently(
                wallets.GetBalances, wallet_pb2.GetBalancesRequest(player_id=player)
            )
            (silver,) = [one for one in answer.balances if one.currency == "silver"]
            assert (silver.available, silver.held) == (FIRST_SILVER + PER_UNIT * units, 0), player
