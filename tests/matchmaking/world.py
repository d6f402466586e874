"""A small world around matchmaking: a wallet and a table service that keep their promises, with
faults that a test can order, and players who call the real service over real gRPC."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import urllib.request
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2 as pb
from fangcheng.matchmaking.v1 import (
    matchmaking_pb2_grpc,
    operations_pb2_grpc,
    rooms_pb2,
    rooms_pb2_grpc,
)
from fangcheng.table.v1 import (
    events_pb2,
    records_pb2,
    records_pb2_grpc,
    state_pb2,
    table_pb2,
    table_pb2_grpc,
)
from fangcheng.wallet.v1 import (
    settlement_pb2,
    settlement_pb2_grpc,
    wallet_pb2,
    wallet_pb2_grpc,
)
from fangcheng_client import connect
from fangcheng_evaluation.convert import rule_set_to_wire
from fangcheng_kit import Kit, Running, Servicer, Settings, principal, serving
from fangcheng_kit.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    NotFound,
    ServiceError,
    Unavailable,
)
from fangcheng_kit.principal import mint_token
from fangcheng_matchmaking.service import open_service
from fangcheng_matchmaking.settings import MatchmakingSettings
from fangcheng_rules.rulesets import RULE_SETS

KEY = "a development key of the tests, long enough"

POOLS = """
pools:
  - id: silver
    name: for silver
    rules: {id: baishan_kele, options: {cap: 0, piao: false}}
    stakes:
      - {currency: silver, per_unit: 10, buy_in: 1000}
      - {currency: points, book: baishan_kele, per_unit: 1}
    hands: 8
    rounds: 2
    timing: {turn_ms: 3000, claim_window_ms: 0, vote_ms: 5000, away: trustee_to_end}
    least_client_version: 3
  - id: free
    name: for nothing
    rules: {id: baishan_kele}
  - id: practice
    name: with bots
    rules: {id: baishan_kele}
    stakes: [{currency: points, book: baishan_kele, per_unit: 1}]
    fill_with_bots_after_ms: 200
"""

Fault = Callable[[Callable[[], Any]], Awaitable[Any]]
"""What happens to a call: given what it would do, does it or not, and answers or not."""


async def lost(do: Callable[[], Any]) -> Any:
    """The call never arrives."""
    raise Aborted("LOST", "the call was lost")


async def dropped(do: Callable[[], Any]) -> Any:
    """The call is done, and its answer lost."""
    do()
    raise Aborted("DROPPED", "the answer was lost")


def refused(error: ServiceError) -> Fault:
    """The call is refused."""

    async def refuse(do: Callable[[], Any]) -> Any:
        raise error

    return refuse


class Halt:
    """A call that stands still, before or after it was done, until the test goes on."""

    def __init__(self, *, done: bool) -> None:
        self._done = done
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __call__(self, do: Callable[[], Any]) -> Any:
        answer = do() if self._done else None
        self.reached.set()
        await self.go_on.wait()
        return answer if self._done else do()


class _Faulty:
    def __init__(self) -> None:
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.calls: Counter[str] = Counter()

    async def handle(self, name: str, do: Callable[[], Any]) -> Any:
        self.calls[name] += 1
        if self.faults[name]:
            return await self.faults[name].popleft()(do)
        return do()


class FakeWallet(
    _Faulty, wallet_pb2_grpc.WalletServiceServicer, settlement_pb2_grpc.SettlementServiceServicer
):
    """Balances and holds, idempotent by request id as the contract says."""

    def __init__(self) -> None:
        super().__init__()
        self.silver: dict[str, int] = {}
        self.frozen: set[str] = set()
        self.holds: dict[str, settlement_pb2.Hold] = {}
        self._placed: dict[str, tuple[bytes, settlement_pb2.PlaceHoldsResponse]] = {}

    @property
    def open_holds(self) -> dict[str, settlement_pb2.Hold]:
        return {
            key: hold
            for key, hold in self.holds.items()
            if hold.state == settlement_pb2.HOLD_STATE_OPEN
        }

    async def GetBalances(
        self, request: wallet_pb2.GetBalancesRequest, context: Any
    ) -> wallet_pb2.GetBalancesResponse:
        def do() -> wallet_pb2.GetBalancesResponse:
            if request.player_id not in self.silver:
                raise NotFound("UNKNOWN_WALLET", "no wallet", "player_id")
            silver = wallet_pb2.Balance(currency="silver", available=self.silver[request.player_id])
            return wallet_pb2.GetBalancesResponse(
                player_id=request.player_id,
                balances=[silver],
                player=wallet_pb2.PlayerState(frozen=request.player_id in self.frozen),
            )

        return await self.handle("GetBalances", do)

    async def PlaceHolds(
        self, request: settlement_pb2.PlaceHoldsRequest, context: Any
    ) -> settlement_pb2.PlaceHoldsResponse:
        def do() -> settlement_pb2.PlaceHoldsResponse:
            body = request.SerializeToString(deterministic=True)
            before = self._placed.get(request.request_id)
            if before is not None:
                if before[0] != body:
                    raise AlreadyExists("REQUEST_ID_REUSED", "another body")
                return settlement_pb2.PlaceHoldsResponse(holds=before[1].holds, replayed=True)
            for number, hold in enumerate(request.holds):
                if hold.player_id not in self.silver:
                    raise NotFound("UNKNOWN_WALLET", "no wallet", f"holds[{number}].player_id")
            frozen = [
                (number, hold.player_id)
                for number, hold in enumerate(request.holds)
                if hold.player_id in self.frozen
            ]
            if frozen:
                raise FailedPrecondition(
                    "PLAYER_FROZEN",
                    "frozen",
                    f"holds[{frozen[0][0]}].player_id",
                    {"player_ids": ",".join(player for _, player in frozen)},
                )
            poor = [
                (number, hold.player_id)
                for number, hold in enumerate(request.holds)
                if self.silver[hold.player_id] < hold.amount
            ]
            if poor:
                raise FailedPrecondition(
                    "INSUFFICIENT_BALANCE",
                    "too little",
                    f"holds[{poor[0][0]}].amount",
                    {"player_ids": ",".join(player for _, player in poor)},
                )
            response = settlement_pb2.PlaceHoldsResponse()
            for hold in request.holds:
                self.silver[hold.player_id] -= hold.amount
                placed = response.holds.add(
                    hold_id=f"hold-{len(self.holds)}",
                    player_id=hold.player_id,
                    currency=hold.currency,
                    amount=hold.amount,
                    remaining=hold.amount,
                    state=settlement_pb2.HOLD_STATE_OPEN,
                )
                self.holds[placed.hold_id] = placed
            self._placed[request.request_id] = (body, response)
            return response

        return await self.handle("PlaceHolds", do)

    async def ReleaseHolds(
        self, request: settlement_pb2.ReleaseHoldsRequest, context: Any
    ) -> settlement_pb2.ReleaseHoldsResponse:
        def do() -> settlement_pb2.ReleaseHoldsResponse:
            if any(hold_id not in self.holds for hold_id in request.hold_ids):
                raise NotFound("UNKNOWN_HOLD", "no such hold")
            self.release(request.hold_ids)
            return settlement_pb2.ReleaseHoldsResponse()

        return await self.handle("ReleaseHolds", do)

    def release(self, hold_ids: Iterable[str]) -> None:
        for hold_id in hold_ids:
            hold = self.holds[hold_id]
            if hold.state == settlement_pb2.HOLD_STATE_OPEN:
                hold.state = settlement_pb2.HOLD_STATE_RELEASED
                self.silver[hold.player_id] += hold.amount


class FakeTables(_Faulty, table_pb2_grpc.TableServiceServicer):
    """Tables that are created once for each request id, and closed by the test."""

    def __init__(self, wallet: FakeWallet) -> None:
        super().__init__()
        self._wallet = wallet
        self.requests: dict[str, table_pb2.CreateTableRequest] = {}
        """By table id."""
        self.tables: dict[str, state_pb2.Table] = {}
        self.left: list[tuple[str, str]] = []
        """Tables, and players who leave them after the hand."""
        self._created: dict[str, tuple[bytes, str]] = {}

    @property
    def open_tables(self) -> list[state_pb2.Table]:
        return [
            table for table in self.tables.values() if table.phase != state_pb2.TABLE_PHASE_CLOSED
        ]

    def create(self, request: table_pb2.CreateTableRequest) -> table_pb2.CreateTableResponse:
        body = request.SerializeToString(deterministic=True)
        before = self._created.get(request.request_id)
        if before is not None:
            if before[0] != body:
                raise AlreadyExists("REQUEST_ID_REUSED", "another body")
            return table_pb2.CreateTableResponse(table=self.tables[before[1]], replayed=True)
        table_id = f"table-{len(self.tables)}"
        table = state_pb2.Table(
            table_id=table_id,
            phase=state_pb2.TABLE_PHASE_PLAYING,
            endpoint="127.0.0.1:7999",
            seats=[
                state_pb2.Seat(seat=number, player_id=seat.player_id)
                for number, seat in enumerate(request.seats)
            ],
        )
        self.tables[table_id] = table
        self.requests[table_id] = request
        self._created[request.request_id] = (body, table_id)
        return table_pb2.CreateTableResponse(table=table)

    def close(self, table_id: str) -> None:
        """As a table does at its end: it releases its holds."""
        self.tables[table_id].phase = state_pb2.TABLE_PHASE_CLOSED
        for seat in self.requests[table_id].seats:
            self._wallet.release(seat.hold_ids)

    def forget(self, table_id: str) -> None:
        """As a table service that lost its database."""
        del self.tables[table_id]

    async def CreateTable(
        self, request: table_pb2.CreateTableRequest, context: Any
    ) -> table_pb2.CreateTableResponse:
        return await self.handle("CreateTable", lambda: self.create(request))

    async def LeaveTable(
        self, request: table_pb2.LeaveTableRequest, context: Any
    ) -> table_pb2.LeaveTableResponse:
        assert request.mode == table_pb2.LEAVE_MODE_AFTER_HAND
        self.left.append((request.table_id, principal.current().id))
        return table_pb2.LeaveTableResponse(table=self.tables[request.table_id])

    async def GetTable(
        self, request: table_pb2.GetTableRequest, context: Any
    ) -> table_pb2.GetTableResponse:
        def do() -> table_pb2.GetTableResponse:
            if request.table_id not in self.tables:
                raise NotFound("UNKNOWN_TABLE", "no such table", "table_id")
            return table_pb2.GetTableResponse(table=self.tables[request.table_id])

        return await self.handle("GetTable", do)

    async def ListTables(
        self, request: table_pb2.ListTablesRequest, context: Any
    ) -> table_pb2.ListTablesResponse:
        def do() -> table_pb2.ListTablesResponse:
            found = [
                table
                for table in self.open_tables
                if not request.player_id
                or any(seat.player_id == request.player_id for seat in table.seats)
            ]
            start = int(request.page_token or 0)
            page = found[start : start + 2]  # small pages, so that they are turned
            rest = len(found) > start + 2
            return table_pb2.ListTablesResponse(
                tables=page, next_page_token=str(start + 2) if rest else ""
            )

        return await self.handle("ListTables", do)


class FakeRecords(records_pb2_grpc.TableRecordServiceServicer):
    """Finished hands, which the test adds."""

    def __init__(self) -> None:
        self.hands: list[records_pb2.FinishedHand] = []
        self.cursors: list[str] = []
        """Those from which a stream was asked for."""

    def finish(
        self,
        table: state_pb2.Table,
        number: int,
        nets: Sequence[int],
        *,
        dissolved: bool = False,
        ended: float | None = None,
    ) -> None:
        entry = records_pb2.FinishedHandEntry(
            table_id=table.table_id,
            hand_number=number,
            rule_set="baishan_kele",
            player_ids=[seat.player_id for seat in table.seats],
            ending="dissolved" if dissolved else "win",
        )
        entry.ended.FromMilliseconds(int(1_000 * (time.time() if ended is None else ended)))
        ended = events_pb2.TableEvent(hand_ended=events_pb2.HandEnded(net=nets))
        self.hands.append(
            records_pb2.FinishedHand(
                cursor=str(len(self.hands) + 1),
                entry=entry,
                record=records_pb2.HandRecord(events=[events_pb2.TableEvent(), ended]),
            )
        )

    async def StreamFinishedHands(
        self, request: records_pb2.StreamFinishedHandsRequest, context: Any
    ) -> AsyncIterator[records_pb2.StreamFinishedHandsResponse]:
        self.cursors.append(request.cursor)
        assert request.with_records
        place = int(request.cursor or 0)
        while True:
            for hand in self.hands[place:]:
                yield records_pb2.StreamFinishedHandsResponse(hand=hand)
            place = len(self.hands)
            yield records_pb2.StreamFinishedHandsResponse(heartbeat=events_pb2.Heartbeat())
            await asyncio.sleep(0.01)


class FakeEvaluators(_Faulty, evaluation_pb2_grpc.EvaluationServiceServicer):
    """Evaluators that list rule sets."""

    def __init__(self) -> None:
        super().__init__()
        self.rule_sets = [rule_set_to_wire(rules) for rules in RULE_SETS]

    async def ListRuleSets(self, request: Any, context: Any) -> Any:
        return await self.handle(
            "ListRuleSets",
            lambda: evaluation_pb2.ListRuleSetsResponse(rule_sets=self.rule_sets),
        )


async def _never(self: object, request: Any, context: Any) -> Any:
    raise Unavailable("NOT_HERE", "matchmaking does not call this")


# A server has to have every call of its contract, also those that are added to it.
for _fake, _contract in (
    (FakeTables, table_pb2),
    (FakeRecords, records_pb2),
    (FakeEvaluators, evaluation_pb2),
    (FakeWallet, wallet_pb2),
    (FakeWallet, settlement_pb2),
):
    for _service in _contract.DESCRIPTOR.services_by_name.values():
        for _method in _service.methods:
            if _method.name not in vars(_fake):
                setattr(_fake, _method.name, _never)


class World:
    """Partners that run, and matchmaking that is started and stopped at will."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.wallet = FakeWallet()
        self.tables = FakeTables(self.wallet)
        self.records = FakeRecords()
        self.evaluators = FakeEvaluators()
        self.running: Running | None = None
        self._stack = stack
        self._service = AsyncExitStack()
        self._targets: dict[str, str] = {}
        self._channels = AsyncExitStack()
        self._probes = 0

    async def open(self) -> None:
        wallet = [
            Servicer(
                wallet_pb2_grpc.add_WalletServiceServicer_to_server,
                self.wallet,
                "fangcheng.wallet.v1.WalletService",
            ),
            Servicer(
                settlement_pb2_grpc.add_SettlementServiceServicer_to_server,
                self.wallet,
                "fangcheng.wallet.v1.SettlementService",
            ),
        ]
        tables = [
            Servicer(
                table_pb2_grpc.add_TableServiceServicer_to_server,
                self.tables,
                "fangcheng.table.v1.TableService",
            ),
            Servicer(
                records_pb2_grpc.add_TableRecordServiceServicer_to_server,
                self.records,
                "fangcheng.table.v1.TableRecordService",
            ),
        ]
        evaluators = [
            Servicer(
                evaluation_pb2_grpc.add_EvaluationServiceServicer_to_server,
                self.evaluators,
                "fangcheng.evaluation.v1.EvaluationService",
            )
        ]
        partners = {"wallet": wallet, "table": tables, "evaluation": evaluators}
        for name, servicers in partners.items():
            running = await self._stack.enter_async_context(
                serving(name, Settings(dev_key=KEY, grace_seconds=0.1), _opens(servicers))
            )
            self._targets[name] = running.address
        (self.folder / "pools.yaml").write_text(POOLS, "utf-8")

    def settings(self, **more: Any) -> MatchmakingSettings:
        fields: dict[str, Any] = {
            "dev_key": KEY,
            "grace_seconds": 0.1,
            "database": str(self.folder / "matchmaking.db"),
            "pools": self.folder / "pools.yaml",
            "table": self._targets["table"],
            "wallet": self._targets["wallet"],
            "evaluation": self._targets["evaluation"],
            "table_check_seconds": 0.05,
            "longest_backoff_seconds": 0.1,
            **more,
        }
        return MatchmakingSettings(**fields)

    async def start(self, **settings: Any) -> None:
        self.running = await self._service.enter_async_context(
            serving("matchmaking", self.settings(**settings), open_service)
        )

    async def stop(self) -> None:
        """As a crash would: nothing is written at a stop that was not written before."""
        await self._channels.aclose()
        await self._service.aclose()
        self.running = None

    async def restart(self, **settings: Any) -> None:
        await self.stop()
        await self.start(**settings)

    async def stub(
        self, subject: str, *scopes: str
    ) -> matchmaking_pb2_grpc.MatchmakingServiceAsyncStub:
        assert self.running is not None
        channel = await self._channels.enter_async_context(
            connect(self.running.address, token=mint_token(KEY, subject, scopes))
        )
        stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub = (
            matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        )
        return stub

    async def gateway(self, player_id: str) -> matchmaking_pb2_grpc.MatchmakingServiceAsyncStub:
        """The stub of a gateway that acts for a player."""
        self.wallet.silver.setdefault(player_id, 10_000)
        assert self.running is not None
        token = mint_token(KEY, "service:gateway", ["act_as"])
        channel = await self._channels.enter_async_context(
            connect(self.running.address, token=token, act_as=player_id)
        )
        stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub = (
            matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        )
        return stub

    async def operations(
        self,
    ) -> operations_pb2_grpc.MatchmakingOperationsServiceAsyncStub:
        """The stub of an operator."""
        assert self.running is not None
        channel = await self._channels.enter_async_context(
            connect(self.running.address, token=mint_token(KEY, "operator"))
        )
        stub: operations_pb2_grpc.MatchmakingOperationsServiceAsyncStub = (
            operations_pb2_grpc.MatchmakingOperationsServiceStub(channel)
        )
        return stub

    async def reload(self) -> None:
        """Has the service read its pools anew, and waits until it has."""

        async def reloads() -> float:
            assert self.running is not None
            url = f"http://{self.running.metrics_address}/metrics"
            page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
            return sum(
                float(line.rpartition(" ")[2])
                for line in page.splitlines()
                if line.startswith("fangcheng_matchmaking_pool_reloads_total")
            )

        before = await reloads()
        os.kill(os.getpid(), signal.SIGHUP)

        async def reloaded() -> bool:
            return await reloads() > before

        await eventually(reloaded)

    async def settled(self, last: str = "probe") -> None:
        """Waits until whoever may be matched now has been: four others in the last pool are.

        Pools are gone through in their order, so that by then the others have had their turn.
        """
        self._probes += 1
        probes = [await self.player(f"probe{self._probes}.{seat}") for seat in range(4)]
        for probe in probes:
            await probe.join(last)
        self.tables.close((await probes[0].outcome()).table_id)

    async def player(self, player_id: str, *scopes: str) -> Player:
        self.wallet.silver.setdefault(player_id, 10_000)
        return Player(player_id, await self.stub(f"player:{player_id}", *scopes))

    async def guest(self, player_id: str) -> Guest:
        self.wallet.silver.setdefault(player_id, 10_000)
        assert self.running is not None
        channel = await self._channels.enter_async_context(
            connect(self.running.address, token=mint_token(KEY, f"player:{player_id}"))
        )
        return Guest(
            player_id,
            rooms_pb2_grpc.RoomServiceStub(channel),
            matchmaking_pb2_grpc.MatchmakingServiceStub(channel),
        )

    async def players(self, count: int) -> list[Player]:
        return [await self.player(f"p{number}") for number in range(count)]

    def check(self) -> None:
        """What must hold whenever nothing is under way: nobody twice, nothing left over."""
        seated = Counter(
            seat.player_id for table in self.tables.open_tables for seat in table.seats
        )
        assert all(times == 1 for times in seated.values()), f"seated twice: {seated}"
        for table in self.tables.tables.values():
            assert len({seat.player_id for seat in table.seats}) == 4
        at_tables = {
            hold_id
            for table in self.tables.open_tables
            for seat in self.tables.requests[table.table_id].seats
            for hold_id in seat.hold_ids
        }
        assert set(self.wallet.open_holds) == at_tables


class Player:
    """A player's client."""

    def __init__(
        self, player_id: str, stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub
    ) -> None:
        self.player_id = player_id
        self.stub = stub
        self.ticket = pb.Ticket()

    async def join(self, pool_id: str, request_id: str = "r", **more: Any) -> pb.Ticket:
        request = pb.JoinQueueRequest(
            request_id=request_id, pool_id=pool_id, client_version=3, **more
        )
        self.ticket = (await self.stub.JoinQueue(request)).ticket
        return self.ticket

    async def leave(self) -> pb.Ticket:
        request = pb.LeaveQueueRequest(ticket_id=self.ticket.ticket_id)
        return (await self.stub.LeaveQueue(request)).ticket

    async def watch(self) -> list[pb.Ticket]:
        """All that the ticket's stream tells, to its end."""
        request = pb.WatchTicketRequest(ticket_id=self.ticket.ticket_id)
        return [answer.ticket async for answer in self.stub.WatchTicket(request)]

    async def outcome(self) -> pb.Ticket:
        async with asyncio.timeout(20):
            return (await self.watch())[-1]

    async def now(self) -> pb.Ticket:
        request = pb.WatchTicketRequest(ticket_id=self.ticket.ticket_id)
        call = self.stub.WatchTicket(request)
        answer = await call.read()
        call.cancel()
        assert not isinstance(answer, type(grpc.aio.EOF))
        return answer.ticket

    async def status(self) -> pb.GetPlayerStatusResponse:
        return await self.stub.GetPlayerStatus(pb.GetPlayerStatusRequest())


class Guest:
    """A client of a player in a private room."""

    def __init__(
        self,
        player_id: str,
        stub: rooms_pb2_grpc.RoomServiceAsyncStub,
        queues: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub,
    ) -> None:
        self.player_id = player_id
        self.stub = stub
        self.room = rooms_pb2.Room()
        self._queues = queues

    async def open(self, template_id: str, request_id: str = "r", **more: Any) -> rooms_pb2.Room:
        request = rooms_pb2.OpenRoomRequest(request_id=request_id, template_id=template_id, **more)
        self.room = (await self.stub.OpenRoom(request)).room
        return self.room

    async def enter(self, code: str) -> rooms_pb2.Room:
        self.room = (await self.stub.EnterRoom(rooms_pb2.EnterRoomRequest(code=code))).room
        return self.room

    async def leave(self) -> None:
        await self.stub.LeaveRoom(rooms_pb2.LeaveRoomRequest(room_id=self.room.room_id))

    async def sit(self, seat: int) -> rooms_pb2.Room:
        request = rooms_pb2.ChooseSeatRequest(room_id=self.room.room_id, seat=seat)
        return (await self.stub.ChooseSeat(request)).room

    async def ready(self) -> rooms_pb2.Room:
        request = rooms_pb2.SetReadyRequest(room_id=self.room.room_id, ready=True)
        return (await self.stub.SetReady(request)).room

    async def start(self) -> rooms_pb2.Room:
        request = rooms_pb2.StartRoomRequest(room_id=self.room.room_id)
        return (await self.stub.StartRoom(request)).room

    async def turn_out(self, player_id: str) -> rooms_pb2.Room:
        request = rooms_pb2.TurnOutRequest(room_id=self.room.room_id, player_id=player_id)
        return (await self.stub.TurnOut(request)).room

    async def watch_until(self, condition: Callable[[rooms_pb2.Room], bool]) -> rooms_pb2.Room:
        """The first state of the room, from now on, of which something is true."""
        request = rooms_pb2.WatchRoomRequest(room_id=self.room.room_id)
        async with asyncio.timeout(20):
            call = self.stub.WatchRoom(request)
            async for answer in call:
                if condition(answer.room):
                    call.cancel()
                    return answer.room
        raise AssertionError("the stream has ended before")

    async def watch_to(self, state: rooms_pb2.RoomState.ValueType) -> rooms_pb2.Room:
        return await self.watch_until(lambda room: room.state == state)

    async def now(self) -> rooms_pb2.Room:
        return await self.watch_until(lambda room: True)

    async def status(self) -> pb.GetPlayerStatusResponse:
        return await self._queues.GetPlayerStatus(pb.GetPlayerStatusRequest())


def _opens(servicers: Sequence[Servicer]) -> Any:
    @asynccontextmanager
    async def opened(settings: Settings, kit: Kit) -> AsyncIterator[Sequence[Servicer]]:
        yield servicers

    return opened


async def eventually(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 15) -> None:
    """Waits until something is so; fails when it takes longer than it may."""
    deadline = time.monotonic() + seconds
    while True:
        met = condition()
        if met if isinstance(met, bool) else await met:
            return
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.005)
