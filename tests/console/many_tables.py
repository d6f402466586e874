"""A table service that has thousands of live tables to tell of, and plays none of them.

What it sends are the messages of `WatchTables` as the real one sends them: everything first, 256
tables a message, and then every second those that have changed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.table.v1 import state_pb2, table_pb2, table_pb2_grpc

RULE_SETS = ("baishan_kele", "baicheng", "shandong", "guobiao", "changchun")
POOLS = ("silver", "gold", "practice", "club-17")
CREATED = 1_767_225_600
MOST_SUMMARIES = 256


def a_table(number: int) -> table_pb2.TableSummary:
    """One in the middle of a hand; the first of each hundred are in trouble."""
    chance = random.Random(number)
    swings = [chance.randrange(-60, 60) for _ in range(3)]
    seats = [
        table_pb2.SeatSummary(
            player_id=f"player-{4 * number + seat}",
            profile=f"{'赵钱孙李周吴郑王'[chance.randrange(8)]}{'明丽强芳伟娟军敏'[chance.randrange(8)]}".encode(),
            connected=number % 100 != 3 or seat != 2,
            trustee=number % 100 == 3 and seat == 2,
            standing=standing,
            is_bot=number % 4 == 0 and seat > 0,
        )
        for seat, standing in enumerate((*swings, -sum(swings)))
    ]
    troubles = {
        0: table_pb2.TABLE_TROUBLE_KIND_STUCK,
        1: table_pb2.TABLE_TROUBLE_KIND_PARKED,
        2: table_pb2.TABLE_TROUBLE_KIND_TAKEN_OVER,
    }
    kind = troubles.get(number % 100) if number >= 100 else None
    return table_pb2.TableSummary(
        table_id=f"{number:032x}",
        rule_set=RULE_SETS[number % len(RULE_SETS)],
        labels={"club": str(number % 20)} if number % 3 == 0 else {},
        phase=state_pb2.TABLE_PHASE_PLAYING,
        hand_number=1 + chance.randrange(8),
        hands=8,
        dealer=chance.randrange(4),
        wall_tiles=chance.randrange(84),
        seats=seats,
        spectators=int(number % 7 == 0),
        created=Timestamp(seconds=CREATED + number),
        endpoint="127.0.0.1:7101",
        pool_id=POOLS[number % len(POOLS)],
        mode=table_pb2.TABLE_MODE_CASUAL,
        troubles=[table_pb2.TableTrouble(kind=kind, since=Timestamp(seconds=CREATED))]
        if kind is not None
        else [],
    )


class ManyTables(table_pb2_grpc.TableServiceServicer):
    """Tells of its tables to whoever asks."""

    def __init__(self, count: int, changes_a_second: int = 0) -> None:
        """`changes_a_second`: tables that play on by themselves, a tile at a time."""
        self.tables = {table.table_id: table for table in map(a_table, range(count))}
        self._changes_a_second = changes_a_second
        self._queues: set[asyncio.Queue[table_pb2.TableChanges]] = set()
        self._chance = random.Random(17)

    async def WatchTables(
        self, request: Any, context: Any
    ) -> AsyncIterator[table_pb2.WatchTablesResponse]:
        queue: asyncio.Queue[table_pb2.TableChanges] = asyncio.Queue()
        self._queues.add(queue)
        try:
            for changes in split(self.tables.values()):
                yield table_pb2.WatchTablesResponse(changes=changes)
            yield table_pb2.WatchTablesResponse(changes=table_pb2.TableChanges(complete=True))
            while True:
                yield table_pb2.WatchTablesResponse(changes=await queue.get())
        finally:
            self._queues.discard(queue)

    def tell(self, *tables: table_pb2.TableSummary, gone: Iterable[str] = ()) -> None:
        """Tables have changed, or are over."""
        self.tables |= {table.table_id: table for table in tables}
        over = list(gone)
        for table_id in over:
            del self.tables[table_id]
        for queue in self._queues:
            for changes in split(tables):
                queue.put_nowait(changes)
            if over:
                queue.put_nowait(table_pb2.TableChanges(gone=over))

    async def play(self) -> None:
        """Play on, until cancelled."""
        while True:
            await asyncio.sleep(1)
            played = self._chance.sample(list(self.tables.values()), self._changes_a_second)
            for table in played:
                if table.wall_tiles:
                    table.wall_tiles -= 1
                else:
                    table.wall_tiles, table.hand_number = 83, table.hand_number % 8 + 1
            self.tell(*played)


def split(tables: Iterable[table_pb2.TableSummary]) -> list[table_pb2.TableChanges]:
    """Messages with as many tables each as one may have."""
    all_of_them = list(tables)
    return [
        table_pb2.TableChanges(tables=all_of_them[start : start + MOST_SUMMARIES])
        for start in range(0, len(all_of_them), MOST_SUMMARIES)
    ]


@asynccontextmanager
async def many_tables(
    count: int, changes_a_second: int = 0
) -> AsyncIterator[tuple[str, ManyTables]]:
    """Serves them; where, and what tells of them."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    tables = ManyTables(count, changes_a_second)
    table_pb2_grpc.add_TableServiceServicer_to_server(tables, server)
    await server.start()
    playing = asyncio.create_task(tables.play())
    try:
        yield f"127.0.0.1:{port}", tables
    finally:
        playing.cancel()
        await server.stop(0)
