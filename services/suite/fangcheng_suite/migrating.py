"""`fangcheng migrate`."""

from __future__ import annotations

from rich.console import Console

from fangcheng_console.migrations import LOG
from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.postgres import migrate
from fangcheng_kit.settings import is_postgres
from fangcheng_matchmaking.migrations import QUEUES
from fangcheng_table.migrations import JOURNAL
from fangcheng_wallet.migrations import LEDGER

from .errors import SuiteError
from .progress import progress

TABLES = {"wallet": LEDGER, "table": JOURNAL, "matchmaking": QUEUES, "console": LOG}


async def migrate_all(databases: dict[str, str | None], console: Console) -> None:
    """Bring the tables of these services' databases up to date; raises SuiteError."""
    named = {service: database for service, database in databases.items() if database}
    if not named:
        raise SuiteError(
            "no database is named", "Name one: fangcheng migrate --wallet postgresql://db/wallet"
        )
    for service, database in named.items():
        if not is_postgres(database):
            raise SuiteError(
                f"{service}: only a PostgreSQL database is brought up to date beforehand",
                "An SQLite file is when its service starts.",
            )
        try:
            with progress(f"Bringing the database of {service} up to date"):
                await migrate(database, TABLES[service])
        except BadDatabase as error:
            raise SuiteError(
                f"{service}: {error}",
                "Check the address and what its user may do there: it has to own the tables, or be "
                "allowed to make them. What was brought up to date before stays so.",
            ) from error
        console.print(f"{service}: {TABLES[service].what}, revision {TABLES[service].head}")
