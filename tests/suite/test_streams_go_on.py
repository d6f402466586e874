"""Commands that read long streams go on where a token has run out in their midst."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from rich.console import Console

from fangcheng.table.v1 import records_pb2, records_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_kit import errors
from fangcheng_kit.tokens import ExpiredToken
from fangcheng_suite.access import Elsewhere
from fangcheng_suite.gathering import Gathered, gather
from fangcheng_suite.ledgers import export_ledger

ALL = 5
FIRST = 2
"""So many come before the token has run out."""


async def run_out(context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """End a stream as the kit does."""
    error = ExpiredToken(of_stream=True)
    await context.abort(error.code, error.message, ((errors.DETAILS_KEY, errors.details(error)),))


class Books(wallet_pb2_grpc.WalletServiceServicer):
    """A ledger of five entries."""

    async def StreamEntries(
        self, request: wallet_pb2.StreamEntriesRequest, context: Any
    ) -> AsyncIterator[wallet_pb2.StreamEntriesResponse]:
        after = int(request.cursor or "0")
        for number in range(after + 1, ALL + 1):
            if after == 0 and number > FIRST:
                await run_out(context)
            entry = wallet_pb2.LedgerEntry(sequence=number)
            yield wallet_pb2.StreamEntriesResponse(entries=[entry], cursor=str(number))


class Hands(records_pb2_grpc.TableRecordServiceServicer):
    """Five hands, dissolved all of them."""

    async def ListHandRecords(
        self, request: records_pb2.ListHandRecordsRequest, context: Any
    ) -> records_pb2.ListHandRecordsResponse:
        return records_pb2.ListHandRecordsResponse(hands=[_hand(ALL)])

    async def StreamFinishedHands(
        self, request: records_pb2.StreamFinishedHandsRequest, context: Any
    ) -> AsyncIterator[records_pb2.StreamFinishedHandsResponse]:
        after = int(request.cursor or "0")
        for number in range(after + 1, ALL + 1):
            if after == 0 and number > FIRST:
                await run_out(context)
            hand = records_pb2.FinishedHand(entry=_hand(number), cursor=str(number))
            yield records_pb2.StreamFinishedHandsResponse(hand=hand)


def _hand(number: int) -> records_pb2.FinishedHandEntry:
    return records_pb2.FinishedHandEntry(table_id="t", hand_number=number)


async def test_an_export_of_the_ledger_has_every_entry_once(tmp_path: Path) -> None:
    server = grpc.aio.server()
    wallet_pb2_grpc.add_WalletServiceServicer_to_server(Books(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    path = tmp_path / "entries.csv"
    wallet = Elsewhere(f"127.0.0.1:{port}", "a token")
    await export_ledger(wallet, Console(file=io.StringIO()), path, "", "")
    await server.stop(None)
    rows = path.read_text().splitlines()[1:]
    assert [int(row.split(",")[0]) for row in rows] == list(range(1, ALL + 1))


async def test_hands_are_gathered_once(tmp_path: Path) -> None:
    server = grpc.aio.server()
    records_pb2_grpc.add_TableRecordServiceServicer_to_server(Hands(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    with Gathered.in_file(tmp_path / "kept.db") as gathered:
        assert await gather(Elsewhere(f"127.0.0.1:{port}", "a token"), gathered) == ALL
        assert (gathered.cursor, gathered.last) == (str(ALL), f"t {ALL}")
    await server.stop(None)
