"""The two streams, read on from their cursors through whatever breaks, into the lake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc.aio

from fangcheng.table.v1 import records_pb2, records_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import explain

from .lake import Row, Shelf
from .rows import of_entry, of_hand

ROWS_A_BATCH = 20_000
"""Rows, of all tables, after which a batch is kept whatever else comes."""
SILENCE_SECONDS = 60.0
"""Both streams say sooner than this that they live."""
LONGEST_PAUSE_SECONDS = 30.0

Told = Callable[[str, int], None]
"""Told of each batch that was kept: the stream, and how many rows it had."""
Batch = tuple[dict[str, list[Row]], str, bool]
"""Rows by table, the cursor behind them, and whether there is nothing more at the moment."""


async def read(
    stream: str,
    channel: grpc.aio.Channel,
    folder: Path,
    told: Told,
    *,
    follow: bool,
    batch_seconds: float = 5.0,
) -> None:
    """Read a stream, `hands` or `entries`, into the lake.

    To its end for now, or for ever with `follow`. What came is kept with the first message, be it
    a heartbeat, after `batch_seconds`. A connection that breaks is made again. Raises LakeInUse,
    LakeDamaged, and AioRpcError where waiting does not help.
    """
    shelf = Shelf.open(folder, stream)
    pause_seconds = 0.5
    try:
        while True:
            batches = _batched(_SOURCES[stream](channel, shelf.cursor, follow), batch_seconds)
            try:
                async for rows, cursor, is_end in batches:
                    pause_seconds = 0.5
                    if cursor and cursor != shelf.cursor:
                        await _to_its_end(asyncio.to_thread(shelf.keep, rows, cursor))
                        told(stream, sum(map(len, rows.values())))
                    if is_end and not follow:
                        return
            except (grpc.aio.AioRpcError, TimeoutError) as error:
                if isinstance(error, grpc.aio.AioRpcError) and not explain(error).passes:
                    raise
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
    finally:
        shelf.close()


async def _to_its_end(keeping: Coroutine[Any, Any, None]) -> None:
    """Whoever is cancelled waits for the thread: another process may have the shelf only then."""
    task = asyncio.ensure_future(keeping)
    try:
        await asyncio.shield(task)
    finally:
        await asyncio.wait([task])


async def _batched(source: AsyncIterator[Batch], batch_seconds: float) -> AsyncIterator[Batch]:
    """Small batches put together, until there are enough rows or enough time has passed."""
    loop = asyncio.get_running_loop()
    rows: dict[str, list[Row]] = {}
    last = ""
    since = loop.time()
    async for more, cursor, is_end in source:
        for table, of_table in more.items():
            rows.setdefault(table, []).extend(of_table)
        last = cursor or last
        full = sum(map(len, rows.values())) >= ROWS_A_BATCH
        if is_end or full or loop.time() - since >= batch_seconds:
            yield rows, last, is_end
            rows, since = {}, loop.time()


async def _hands(channel: grpc.aio.Channel, cursor: str, follow: bool) -> AsyncIterator[Batch]:
    """Every finished hand with its record; a heartbeat says that there is none more yet.

    So does, for who does not follow, a hand that ended after this began: where there is much play
    no heartbeat may ever come.
    """
    begun = datetime.now(UTC)
    stub: Any = records_pb2_grpc.TableRecordServiceStub(channel)
    request = records_pb2.StreamFinishedHandsRequest(cursor=cursor, with_records=True)
    async for message in _alive(stub.StreamFinishedHands(request)):
        if message.HasField("hand"):
            is_new = not follow and message.hand.entry.ended.ToDatetime(UTC) >= begun
            yield of_hand(message.hand), message.hand.cursor, is_new
        else:
            yield {}, "", True


async def _entries(channel: grpc.aio.Channel, cursor: str, follow: bool) -> AsyncIterator[Batch]:
    """Every entry of the ledger; a message without any says that there is none more yet."""
    stub: Any = wallet_pb2_grpc.WalletServiceStub(channel)
    request = wallet_pb2.StreamEntriesRequest(cursor=cursor, follow=follow)
    async for message in _alive(stub.StreamEntries(request)):
        rows = [of_entry(line) for line in message.entries]
        yield {"entries": rows}, message.cursor, not rows
    yield {}, "", True


async def _alive(call: Any) -> AsyncIterator[Any]:
    """The messages of a stream; raises TimeoutError where it has fallen silent."""
    try:
        while True:
            async with asyncio.timeout(SILENCE_SECONDS):
                message = await call.read()
            if message is grpc.aio.EOF:
                return
            yield message
    finally:
        call.cancel()


_SOURCES = {"hands": _hands, "entries": _entries}
