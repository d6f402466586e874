"""What matchmaking calls, as fakes that keep their promises: tables, finished hands, evaluators.

The wallet is in `wallet`; which faults a test can order of them, in `faults`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.table.v1 import (
    events_pb2,
    operators_pb2,
    operators_pb2_grpc,
    records_pb2,
    records_pb2_grpc,
    state_pb2,
    table_pb2,
    table_pb2_grpc,
)
from fangcheng.wallet.v1 import settlement_pb2_grpc, wallet_pb2, wallet_pb2_grpc
from fangcheng_evaluation.convert import rule_set_to_wire
from fangcheng_kit import Servicer, principal
from fangcheng_kit.errors import AlreadyExists, FailedPrecondition, NotFound, Unavailable
from fangcheng_rules.rulesets import RULE_SETS
from tests.matchmaking.faults import Faulty
from tests.matchmaking.wallet import FakeWallet


class FakeTables(
    Faulty,
    table_pb2_grpc.TableServiceServicer,
    operators_pb2_grpc.TableOperationsServiceServicer,
):
    """Tables that are created once for each request id, left, filled up again, and closed."""

    def __init__(self, wallet: FakeWallet) -> None:
        super().__init__()
        self._wallet = wallet
        self.requests: dict[str, table_pb2.CreateTableRequest] = {}
        """By table id."""
        self.tables: dict[str, state_pb2.Table] = {}
        self.left: list[tuple[str, str]] = []
        """Tables, and players who leave them after the hand."""
        self.sat: dict[str, dict[str, int]] = {}
        """Who sits at a table or has sat there, and on which seat."""
        self.held: dict[str, dict[str, list[str]]] = {}
        """Holds that each player of a table has brought."""
        self.seated: list[operators_pb2.SeatPlayerRequest] = []
        """Seats that were given to others, in their order."""
        self.cuts = 0
        """Streams of summaries that are to be cut."""
        self._created: dict[str, tuple[bytes, str]] = {}
        self._orders: dict[str, bytes] = {}

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
        self.sat[table_id] = {seat.player_id: seat.seat for seat in table.seats}
        self.held[table_id] = {seat.player_id: list(seat.hold_ids) for seat in request.seats}
        self._created[request.request_id] = (body, table_id)
        return table_pb2.CreateTableResponse(table=table)

    def close(self, table_id: str) -> None:
        """As a table does at its end: it releases its holds."""
        self.tables[table_id].phase = state_pb2.TABLE_PHASE_CLOSED
        for hold_ids in self.held[table_id].values():
            self._wallet.release(hold_ids)

    def vacate(self, table_id: str, player_id: str) -> int:
        """A player leaves between two hands: his holds are given back, and his seat waits."""
        (seat,) = [one for one in self.tables[table_id].seats if one.player_id == player_id]
        seat.player_id = ""
        self._wallet.release(self.held[table_id].pop(player_id))
        return seat.seat

    def fill(self, table_id: str, seat: int, player_id: str) -> None:
        """Somebody else gives a seat that waits to a player."""
        self.tables[table_id].seats[seat].player_id = player_id
        self.sat[table_id][player_id] = seat
        self.held[table_id][player_id] = []

    def seat(self, request: operators_pb2.SeatPlayerRequest) -> operators_pb2.SeatPlayerResponse:
        """As `SeatPlayer`."""
        body = request.SerializeToString(deterministic=True)
        if request.request_id in self._orders:
            if self._orders[request.request_id] != body:
                raise AlreadyExists("REQUEST_ID_REUSED", "another body")
            table = self.tables[request.table_id]
            return operators_pb2.SeatPlayerResponse(table=table, replayed=True)
        if request.table_id not in self.tables:
            raise NotFound("UNKNOWN_TABLE", "no such table", "table_id")
        table = self.tables[request.table_id]
        if table.phase == state_pb2.TABLE_PHASE_CLOSED:
            raise FailedPrecondition("TABLE_CLOSED", "it has closed")
        if table.seats[request.seat].player_id:
            raise FailedPrecondition("SEAT_TAKEN", "nobody has left it", "seat")
        if request.player.player_id in self.sat[request.table_id]:
            raise FailedPrecondition("SAT_BEFORE", "no way back", "player.player_id")
        self.fill(request.table_id, request.seat, request.player.player_id)
        self.held[request.table_id][request.player.player_id] = list(request.player.hold_ids)
        self._orders[request.request_id] = body
        self.seated.append(request)
        return operators_pb2.SeatPlayerResponse(table=table)

    def forget(self, table_id: str) -> None:
        """As a table service that lost its database."""
        del self.tables[table_id]

    async def CreateTable(
        self, request: table_pb2.CreateTableRequest, context: Any
    ) -> table_pb2.CreateTableResponse:
        return await self.handle("CreateTable", lambda: self.create(request))

    async def SeatPlayer(
        self, request: operators_pb2.SeatPlayerRequest, context: Any
    ) -> operators_pb2.SeatPlayerResponse:
        return await self.handle("SeatPlayer", lambda: self.seat(request))

    async def WatchTables(
        self, request: table_pb2.WatchTablesRequest, context: Any
    ) -> AsyncIterator[table_pb2.WatchTablesResponse]:
        """Of each table with a seat that waits when it has changed, and when none does any more."""
        assert request.vacant
        self.calls["WatchTables"] += 1
        told: dict[str, tuple[int, list[str]]] = {}
        while not self.cuts:
            now = {
                # One that was filled and left again between two looks has changed.
                table.table_id: (
                    len(self.sat[table.table_id]),
                    [seat.player_id for seat in table.seats],
                )
                for table in self.open_tables
                if not all(seat.player_id for seat in table.seats)
            }
            changes = table_pb2.TableChanges(
                tables=[
                    table_pb2.TableSummary(
                        table_id=table_id,
                        seats=[table_pb2.SeatSummary(player_id=one) for one in players],
                    )
                    for table_id, (sat, players) in now.items()
                    if told.get(table_id) != (sat, players)
                ],
                gone=told.keys() - now.keys(),
            )
            if changes.tables or changes.gone:
                yield table_pb2.WatchTablesResponse(changes=changes)
            else:
                yield table_pb2.WatchTablesResponse(heartbeat=events_pb2.Heartbeat())
            told = now
            await asyncio.sleep(0.01)
        self.cuts -= 1
        raise Unavailable("CUT", "the stream was cut")

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
                for table in reversed(self.open_tables)
                if not request.player_id or request.player_id in self.sat[table.table_id]
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
        labels: Mapping[str, str] | None = None,
        payments: Sequence[events_pb2.SettledPayment] = (),
    ) -> None:
        entry = records_pb2.FinishedHandEntry(
            table_id=table.table_id,
            hand_number=number,
            rule_set="baishan_kele",
            player_ids=[seat.player_id for seat in table.seats],
            ending="dissolved" if dissolved else "win",
            labels=labels,
        )
        entry.ended.FromMilliseconds(int(1_000 * (time.time() if ended is None else ended)))
        ended = events_pb2.TableEvent(hand_ended=events_pb2.HandEnded(net=nets))
        settled = events_pb2.TableEvent(hand_settled=events_pb2.HandSettled(payments=payments))
        self.hands.append(
            records_pb2.FinishedHand(
                cursor=str(len(self.hands) + 1),
                entry=entry,
                record=records_pb2.HandRecord(events=[events_pb2.TableEvent(), ended, settled]),
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


class FakeEvaluators(Faulty, evaluation_pb2_grpc.EvaluationServiceServicer):
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
    (FakeTables, operators_pb2),
    (FakeRecords, records_pb2),
    (FakeEvaluators, evaluation_pb2),
    (FakeWallet, wallet_pb2),
):
    for _service in _contract.DESCRIPTOR.services_by_name.values():
        for _method in _service.methods:
            if _method.name not in vars(_fake):
                setattr(_fake, _method.name, _never)


def servicers(
    wallet: FakeWallet, tables: FakeTables, records: FakeRecords, evaluators: FakeEvaluators
) -> dict[str, list[Servicer]]:
    """What each partner serves, by its name."""
    return {
        "wallet": [
            Servicer(
                wallet_pb2_grpc.add_WalletServiceServicer_to_server,
                wallet,
                "fangcheng.wallet.v1.WalletService",
            ),
            Servicer(
                settlement_pb2_grpc.add_SettlementServiceServicer_to_server,
                wallet,
                "fangcheng.wallet.v1.SettlementService",
            ),
        ],
        "table": [
            Servicer(
                table_pb2_grpc.add_TableServiceServicer_to_server,
                tables,
                "fangcheng.table.v1.TableService",
            ),
            Servicer(
                operators_pb2_grpc.add_TableOperationsServiceServicer_to_server,
                tables,
                "fangcheng.table.v1.TableOperationsService",
            ),
            Servicer(
                records_pb2_grpc.add_TableRecordServiceServicer_to_server,
                records,
                "fangcheng.table.v1.TableRecordService",
            ),
        ],
        "evaluation": [
            Servicer(
                evaluation_pb2_grpc.add_EvaluationServiceServicer_to_server,
                evaluators,
                "fangcheng.evaluation.v1.EvaluationService",
            )
        ],
    }
