"""Tables that never lose a hand: bots play at forty tables while the processes around them are
killed and paused. At the end every hand that began has ended and was settled once.

`make chaos` plays more hands.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import settlement_pb2_grpc, wallet_pb2, wallet_pb2_grpc
from fangcheng_client import attend, connect, explain
from fangcheng_kit.principal import mint_token
from fangcheng_rules import events as play
from fangcheng_table.events import HandOpened, HandSettled
from fangcheng_table.journals import open_journal
from fangcheng_table.state import TableState
from fangcheng_table.store import Journal
from tests.system.processes import KEY, Service
from tests.system.replicas import until
from tests.system.running import until as wait_until
from tests.system.tables import Cluster
from tests.system.wallets import patiently

TABLES = 40
HANDS = int(os.environ.get("FANGCHENG_CHAOS_HANDS", "8"))
"""At each table; 8 are 320 in all."""
SEED = int(os.environ.get("FANGCHENG_CHAOS_SEED", "1"))
BETWEEN_FAULTS_SECONDS = 2.0
PAUSE_SECONDS = 3.0
BUY_IN = 5_000
PER_UNIT = 2
SEATS = 4

_LOST = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    }
)


def player_id(table: int, seat: int) -> str:
    return f"bot-{table}-{seat}"


class Bots:
    """Four bots at a table, on one connection to all replicas."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self.number = number
        self.table_id = ""
        self.seen: list[list[events_pb2.TableEvent]] = [[] for _ in range(SEATS)]
        self.snapshots = 0
        self._cluster = cluster

    async def sit_down(self) -> None:
        """Open wallets, hold buy-ins, make the table."""
        operator = self._channel(self._cluster.wallet.address, "operator")
        matchmaking = self._channel(self._cluster.wallet.address, "service:matchmaking")
        tables = self._channel(self._cluster.all_tables, "service:matchmaking")
        async with operator, matchmaking, tables:
            wallets: Any = wallet_pb2_grpc.WalletServiceStub(operator)
            players = [player_id(self.number, seat) for seat in range(SEATS)]
            for player in players:
                opened = wallet_pb2.OpenWalletRequest(player_id=player)
                await patiently(wallets.OpenWallet, opened)
                deposit = wallet_pb2.DepositRequest(
                    request_id=f"first of {player}",
                    player_id=player,
                    currency="silver",
                    amount=2 * BUY_IN,
                )
                await patiently(wallets.Deposit, deposit)
            place = settling.PlaceHoldsRequest(
                request_id=f"buy-ins {self.number}",
                holds=[
                    settling.HoldRequest(player_id=player, currency="silver", amount=BUY_IN)
                    for player in players
                ],
            )
            holding: Any = settlement_pb2_grpc.SettlementServiceStub(matchmaking)
            held = await patiently(holding.PlaceHolds, place)
            stub: Any = TableServiceStub(tables)
            made = await patiently(
                stub.CreateTable,
                wire.CreateTableRequest(
                    request_id=f"table {self.number}",
                    rules=rules_pb2.RuleSetChoice(id="baishan_kele"),
                    seats=[
                        wire.SeatAssignment(player_id=player, hold_ids=[hold.hold_id], is_bot=True)
                        for player, hold in zip(players, held.holds, strict=True)
                    ],
                    hands=HANDS,
                    stakes=[state_pb2.Stake(currency="silver", per_unit=PER_UNIT)],
                    timing=state_pb2.Timing(
                        claim_window_ms=0, between_hands_ms=0, turn_ms=120_000, claim_ms=120_000
                    ),
                ),
            )
            self.table_id = made.table.table_id

    async def play(self) -> None:
        """Until the table has closed."""
        await asyncio.gather(*(self._play(seat) for seat in range(SEATS)))

    async def _play(self, seat: int) -> None:
        subject = f"player:{player_id(self.number, seat)}"
        async with self._channel(self._cluster.all_tables, subject) as channel:
            stub: Any = TableServiceStub(channel)
            async for event in attend(channel, self.table_id, give_up_seconds=300):
                self.seen[seat].append(event)
                prompt = event.prompt
                if event.HasField("snapshot"):
                    self.snapshots += 1
                    prompt = event.snapshot.prompt
                if prompt.decision_id and prompt.actions:
                    await self._answer(stub, prompt)
                elif event.trustee_changed.decision_id:
                    back = state_pb2.Action(kind="back")
                    await self._act(stub, event.trustee_changed.decision_id, back)

    async def _answer(self, stub: Any, prompt: events_pb2.Prompt) -> None:
        wins = [action for action in prompt.actions if action.kind == "win"]
        passes = prompt.actions[-1] if prompt.kind in ("claim", "dealt_out") else prompt.actions[0]
        await self._act(stub, prompt.decision_id, wins[0] if wins else passes)

    async def _act(self, stub: Any, decision_id: str, action: state_pb2.Action) -> None:
        """Answer, until it is known that the answer was taken or came too late."""
        act = wire.ActRequest(table_id=self.table_id, decision_id=decision_id, action=action)
        while True:
            try:
                await stub.Act(act, timeout=5)
            except grpc.aio.AioRpcError as error:
                if error.code() in _LOST or explain(error).passes:
                    await asyncio.sleep(0.1)
                    continue
                assert error.code() is grpc.StatusCode.FAILED_PRECONDITION, error  # noqa: PT017
            return

    def _channel(self, target: str, subject: str) -> grpc.aio.Channel:
        return connect(target, mint_token(KEY, subject, ttl_seconds=36_000))


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
async def test_no_hand_is_lost_or_paid_twice_whoever_is_killed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        await cluster.start()
        print(f"seed {SEED}")
        bots = [Bots(cluster, number) for number in range(TABLES)]
        await asyncio.gather(*(four.sit_down() for four in bots))

        def seen() -> int:
            return sum(len(events) for four in bots for events in four.seen)

        going_wrong = asyncio.create_task(faults(cluster, random.Random(SEED), seen))
        playing = asyncio.gather(*(four.play() for four in bots))
        await asyncio.wait([going_wrong, playing], return_when=asyncio.FIRST_COMPLETED)
        assert not going_wrong.done(), going_wrong.result()
        going_wrong.cancel()
        print(dict(await going_wrong))
        await playing
        await nothing_is_left(cluster)
        hands = await check(cluster, bots)
        assert hands == TABLES * HANDS
        print(f"{hands} hands, {sum(four.snapshots for four in bots)} snapshots")
    finally:
        await cluster.close()


async def nothing_is_left(cluster: Cluster) -> None:
    """Wait until no table, stream or unpaid settlement is left."""
    names = ("fangcheng_tables", "fangcheng_table_streams", "fangcheng_table_outbox")

    def left() -> dict[str, float]:
        return {
            f"{name} of {service.name}": value
            for service in cluster.tables
            for name in names
            if (value := service.metric(name))
        }

    what = f"nothing is left of {names}"
    await asyncio.to_thread(wait_until, lambda: not left(), what, 120)


async def check(cluster: Cluster, bots: list[Bots]) -> int:
    """What must hold at the end; how many hands were played."""
    journal = await open_journal(cluster.journal)
    try:
        census = await journal.census()
        assert (sum(census.owners.values()), census.unowned) == (0, 0)
        standings: dict[str, int] = {}
        for four in bots:
            standings |= await check_table(journal, four)
        finished = await journal.finished(0, 100_000)
        assert len({(f.entry.table_id, f.entry.hand_number) for f in finished}) == len(finished)
    finally:
        await journal.close()
    await check_ledger(cluster, standings, len(finished))
    return len(finished)


async def check_table(journal: Journal, four: Bots) -> dict[str, int]:
    """The journal of a table folds to what its players saw; what each has won, in units."""
    records = await journal.read(four.table_id)
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    events = [record.event for record in records]
    numbers = list(range(1, HANDS + 1))
    assert [e.hand_number for e in events if isinstance(e, HandOpened)] == numbers
    assert [e.hand_number for e in events if isinstance(e, HandSettled)] == numbers
    assert sum(isinstance(event, play.HandEnded) for event in events) == HANDS
    state = TableState.replay(events)
    assert state.done
    for seen in four.seen:
        last = 0
        for event in seen:
            assert event.number == last + 1 or event.HasField("snapshot")
            last = event.number
        assert seen[-1].table_closed.reason == "hands_played"
        assert list(seen[-1].table_closed.standings) == [seat.standing for seat in state.seats]
    return {
        player_id(four.number, number): seat.standing for number, seat in enumerate(state.seats)
    }


async def check_ledger(cluster: Cluster, standings: dict[str, int], hands: int) -> None:
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
        for player, units in standings.items():
            answer = await patiently(
                wallets.GetBalances, wallet_pb2.GetBalancesRequest(player_id=player)
            )
            (silver,) = [one for one in answer.balances if one.currency == "silver"]
            assert (silver.available, silver.held) == (2 * BUY_IN + PER_UNIT * units, 0), player
