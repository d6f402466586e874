"""Replicas of several versions: new tables open on the newest, and old ones are played on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import grpc.aio
import pytest

from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1 import table_pb2_grpc
from fangcheng_kit.errors import FailedPrecondition, ServiceError, Unavailable, details
from fangcheng_table.postgres import open_postgres
from fangcheng_table.store import Owner

from .test_replicas import make, replicas
from .world import World, play_all, refused, request


@asynccontextmanager
async def versions(folder: Path, *versions: str) -> AsyncIterator[list[World]]:
    """Services of these versions on one database."""
    async with replicas(folder, len(versions)) as worlds:
        for world, version in zip(worlds, versions, strict=True):
            world.more["version"] = version
            await world.restart()
        yield worlds


async def owner_of(service: World, table_id: str) -> str:
    asked = wire.GetTableRequest(table_id=table_id)
    return str((await service.stub("operator").GetTable(asked)).table.endpoint)


async def test_new_tables_open_on_the_newest_version_while_old_ones_finish(tmp_path):
    async with versions(tmp_path, "0.9", "0.9") as (old, new):
        # Whatever is loaded by a first hand is there then: it holds up everything in this process.
        await play_all(old, await make(old, "r0"))
        before = await make(old, "r1", hands=2)
        playing = asyncio.create_task(play_all(old, before))
        new.more["version"] = "0.10"
        await new.restart()
        after = await make(old, "r2")
        assert await owner_of(old, after) == new.address
        assert await owner_of(new, await make(new, "r3")) == new.address
        again = await old.stub("operator").CreateTable(request("r2"))
        assert (again.table.table_id, again.replayed) == (after, True)
        # The table of before is still the older one's, and played to its end there.
        assert await owner_of(new, before) == old.address
        players = await asyncio.wait_for(playing, 60)
        assert players[0].events[-1].table_closed.reason == "hands_played"
        changed = old.stub("operator").CreateTable(request("r2", hands=2))
        assert (await refused(changed))[1] == "REQUEST_ID_REUSED"


async def test_a_version_that_is_taken_back_gets_no_more_tables(tmp_path):
    async with versions(tmp_path, "0.1.0", "0.2.0") as (old, new):
        assert await owner_of(old, await make(old, "r1")) == new.address
        await new.stop()
        table_id = await make(old, "r2")
        assert await owner_of(old, table_id) == old.address


def straight(service: World) -> Any:
    """A client that calls a replica which says that it drains, as another replica does."""
    options = [("grpc.service_config", "{}")]
    return table_pb2_grpc.TableServiceStub(service.channel("operator", options=options))


async def test_who_leaves_its_tables_to_others_leaves_new_ones_to_the_newest(tmp_path):
    async with versions(tmp_path, "3", "1", "2") as (leaving, _, next_best):
        assert await owner_of(leaving, await make(leaving, "r0")) == leaving.address
        assert leaving._running is not None
        await leaving._running.drain()
        # It answers until it is gone, and makes tables until it has begun to leave them to others.
        for number in itertools.count(1):
            made = await straight(leaving).CreateTable(request(f"r{number}"))
            if made.table.endpoint != leaving.address:
                break
        assert made.table.endpoint == next_best.address


class Newer(table_pb2_grpc.TableServiceServicer):
    """A newer replica that makes no table."""

    def __init__(self, refusal: ServiceError) -> None:
        self.asked = 0
        self._refusal = refusal

    async def CreateTable(self, request: Any, context: Any) -> Any:
        self.asked += 1
        await context.abort(
            self._refusal.code,
            self._refusal.message,
            (("grpc-status-details-bin", details(self._refusal)),),
        )


@asynccontextmanager
async def newer(service: World, refusal: ServiceError) -> AsyncIterator[Newer]:
    """One beside a service, which has told the journal that it is there."""
    fake, server = Newer(refusal), grpc.aio.server()
    table_pb2_grpc.add_TableServiceServicer_to_server(fake, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    journal = await open_postgres(service.settings().database)
    try:
        await journal.join(Owner("newer", f"127.0.0.1:{port}", "99"), 600_000)
        yield fake
    finally:
        await journal.close()
        await server.stop(None)


@pytest.mark.parametrize(
    "refusal",
    [
        FailedPrecondition("UNKNOWN_REVISION", "not here", "rules.revision"),
        Unavailable("EVALUATOR_UNAVAILABLE", "not now"),
    ],
    ids=["it lacks the revision", "it does not answer"],
)
async def test_a_table_that_the_newest_cannot_make_opens_on_an_older_one(tmp_path, refusal):
    async with replicas(tmp_path, 1) as (old,), newer(old, refusal) as fake:
        table_id = await make(old)
        assert fake.asked == 1
        assert await owner_of(old, table_id) == old.address


async def test_what_the_newest_refuses_is_refused(tmp_path):
    refusal = FailedPrecondition("SOME_REASON", "it must not be", "hands")
    async with replicas(tmp_path, 1) as (old,), newer(old, refusal):
        answer = await refused(old.stub("operator").CreateTable(request()))
        assert answer == ("FAILED_PRECONDITION", "SOME_REASON", "hands")


async def test_a_newer_one_that_is_gone_without_a_word_is_done_without(tmp_path):
    async with replicas(tmp_path, 1) as (old,):
        journal = await open_postgres(old.settings().database)
        try:
            await journal.join(Owner("newer", "127.0.0.1:1", "99"), 600_000)
            assert await owner_of(old, await make(old)) == old.address
        finally:
            await journal.close()


async def test_a_replica_from_before_versions_takes_part_and_counts_as_the_oldest(tmp_path):
    async with replicas(tmp_path, 1) as (new,):
        # As it takes part: it knows of no versions.
        db = await asyncpg.connect(new.settings().database)
        await db.execute(
            "INSERT INTO owners VALUES ('old', '127.0.0.1:1', now() + interval '1 hour')"
        )
        await db.close()
        assert await owner_of(new, await make(new)) == new.address
        journal = await open_postgres(new.settings().database)
        try:
            (old,) = [one for one in await journal.owners() if one.owner_id == "old"]
        finally:
            await journal.close()
        assert old.release < (0, 0, 1)
