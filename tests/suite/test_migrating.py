"""`fangcheng migrate`: the tables are there before the services are."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator

import asyncpg
import pytest
from rich.console import Console

from fangcheng_kit.postgres import connector, is_due, prepared, session
from fangcheng_suite.doctor.deployment import Deployment
from fangcheng_suite.doctor.findings import Finding
from fangcheng_suite.doctor.keeping import kept
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.migrating import TABLES, migrate_all
from tests.postgres import new_database


async def all_of(findings: AsyncIterator[Finding]) -> list[Finding]:
    return [one async for one in findings]


async def test_every_services_tables_are_made_and_a_second_time_left_alone() -> None:
    databases = {service: await new_database(f"migrate_{service}") for service in TABLES}
    for service, address in databases.items():
        assert await is_due(address, TABLES[service])
        looked = await all_of(kept(Deployment({}, databases={service: address})))
        assert [(one.check, one.level) for one in looked] == [("database", "fail")]
    out = io.StringIO()
    for _ in range(2):
        await migrate_all({**databases}, Console(file=out, width=200))
    assert out.getvalue().splitlines() == 2 * [
        f"{service}: {tables.what}, revision {tables.head}" for service, tables in TABLES.items()
    ]
    looked = await all_of(kept(Deployment({}, databases=databases)))
    assert {one.level for one in looked} == {"ok"}
    for service, tables in TABLES.items():
        async with prepared(connector(databases[service], session("test")), tables) as db:
            assert await db.fetchval("SELECT version_num FROM alembic_version") == tables.head


async def test_a_database_that_is_anothers_is_left_alone() -> None:
    address = await new_database("migrate_anothers")
    db = await asyncpg.connect(address)
    await db.execute("CREATE TABLE theirs (it int)")
    await db.close()
    with pytest.raises(SuiteError, match="wallet: the database has other tables than a ledger's"):
        await migrate_all({"wallet": address}, Console(file=io.StringIO()))
    (told,) = await all_of(kept(Deployment({}, databases={"wallet": address})))
    assert "other tables than a ledger's" in told.told


@pytest.mark.parametrize(
    ("databases", "problem"),
    [
        ({"wallet": None, "table": ""}, "no database is named"),
        ({"table": "table.db"}, "table: only a PostgreSQL database"),
        ({"wallet": "postgresql://127.0.0.1:1/none"}, "wallet: the database cannot be used"),
    ],
)
async def test_what_cannot_be_migrated_is_told(
    databases: dict[str, str | None], problem: str
) -> None:
    with pytest.raises(SuiteError, match=problem):
        await migrate_all(databases, Console(file=io.StringIO()))
