"""A table service that keeps some records of hands, and nothing else; and what evaluates them.

A wallet beside it names its currencies, of which one has digits after the point.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from fangcheng.table.v1 import records_pb2, records_pb2_grpc, state_pb2, table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_console.oplog import OpLog
from fangcheng_console.sqlite import open_sqlite
from fangcheng_evaluation import service as evaluation
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import serving

from .world import KEY, World, console


@dataclass
class Keeping(
    table_pb2_grpc.TableServiceServicer,
    records_pb2_grpc.TableRecordServiceServicer,
    wallet_pb2_grpc.WalletServiceServicer,
):
    """Tells records, and the commitments of their tables."""

    records: dict[tuple[str, int], records_pb2.HandRecord] = field(default_factory=dict)
    commitments: dict[str, bytes] = field(default_factory=dict)
    asked: int = 0
    """Records that were asked for."""
    evaluator: str = ""
    """Address of the evaluation service."""
    listed: records_pb2.ListHandRecordsRequest | None = None
    """What was asked for last."""
    world: World | None = None
    log: OpLog | None = None
    """The console's, through a connection of the test's own."""

    def keep(self, record: records_pb2.HandRecord) -> str:
        """Tell a record from now on; the table and the number of its hand, as a path.

        Each under a name of its own, for those that are played without a service are all of `t1`.
        """
        table_id = f"table-{len(self.records)}"
        self.records[table_id, record.hand_number] = record
        self.commitments[table_id] = bytes(record.table_commitment)
        return f"{table_id}/{record.hand_number}"

    async def GetHandRecord(
        self, request: records_pb2.GetHandRecordRequest, context: Any
    ) -> records_pb2.GetHandRecordResponse:
        self.asked += 1
        record = self.records.get((request.table_id, request.hand_number))
        if record is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such hand")
        return records_pb2.GetHandRecordResponse(record=record)

    async def WatchTables(
        self, request: table_pb2.WatchTablesRequest, context: Any
    ) -> AsyncIterator[table_pb2.WatchTablesResponse]:
        """There is no live table."""
        yield table_pb2.WatchTablesResponse(changes=table_pb2.TableChanges(complete=True))
        await asyncio.Event().wait()

    async def ListHandRecords(
        self, request: records_pb2.ListHandRecordsRequest, context: Any
    ) -> records_pb2.ListHandRecordsResponse:
        self.listed = request
        hands = [
            records_pb2.FinishedHandEntry(
                table_id=table_id,
                hand_number=number,
                rule_set=record.rules.id,
                player_ids=record.player_ids,
                ended=record.events[-1].time,
                ending="win",
            )
            for (table_id, number), record in self.records.items()
        ]
        return records_pb2.ListHandRecordsResponse(hands=hands, next_page_token="older")

    async def GetTable(
        self, request: table_pb2.GetTableRequest, context: Any
    ) -> table_pb2.GetTableResponse:
        commitment = self.commitments.get(request.table_id)
        if commitment is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "there is no such table")
        table = state_pb2.Table(table_id=request.table_id, commitment=commitment)
        return table_pb2.GetTableResponse(table=table)

    async def ListCurrencies(
        self, request: wallet_pb2.ListCurrenciesRequest, context: Any
    ) -> wallet_pb2.ListCurrenciesResponse:
        silver = wallet_pb2.Currency(currency="silver", names={"zh": "银子", "en": "Silver"})
        points = wallet_pb2.Currency(
            currency="points", books=True, minor_digits=2, names={"zh": "积分", "en": "Points"}
        )
        return wallet_pb2.ListCurrenciesResponse(currencies=[silver, points])


@asynccontextmanager
async def keeping(folder: Path, **settings: Any) -> AsyncIterator[Keeping]:
    """A console with such a table service and a real evaluation service behind it."""
    kept = Keeping()
    server = grpc.aio.server()
    table_pb2_grpc.add_TableServiceServicer_to_server(kept, server)
    records_pb2_grpc.add_TableRecordServiceServicer_to_server(kept, server)
    wallet_pb2_grpc.add_WalletServiceServicer_to_server(kept, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    evaluating = EvaluationSettings(dev_key=KEY, grace_seconds=0.1, drain_seconds=0)
    try:
        async with (
            serving("evaluation", evaluating, evaluation.open_service) as evaluator,
            console(
                folder,
                table=f"127.0.0.1:{port}",
                **{"wallet": f"127.0.0.1:{port}", "evaluation": evaluator.address, **settings},
            ) as world,
        ):
            kept.world, kept.evaluator = world, evaluator.address
            kept.log = await open_sqlite(folder / "console.db")
            try:
                yield kept
            finally:
                await kept.log.close()
    finally:
        await server.stop(None)
