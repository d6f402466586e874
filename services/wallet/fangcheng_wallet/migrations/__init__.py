"""The tables of the ledger, made and brought up to date with Alembic.

A revision is a Python file in ``versions`` that runs the SQL file of the same name, once for each
kind of database. The connection is handed in: there is no ``alembic.ini`` and nothing to configure.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from fangcheng_wallet.store import BadDatabase

if TYPE_CHECKING:
    from sqlalchemy import Connection

HEAD = "0002"
"""The revision that this program reads and writes."""


def upgrade(connection: Connection, revision: str = HEAD) -> None:
    """Bring the tables up to a revision, in the transaction that the connection is in."""
    # Alembic takes a third of a second to import, and is not needed at every start.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def check(revision: str | None) -> bool:
    """Whether tables have to be brought up to date; ``BadDatabase`` where they are newer."""
    if revision is not None and revision > HEAD:
        raise BadDatabase(f"the database has revision {revision}; this version reads {HEAD}")
    return revision != HEAD


def statements(dialect: str, name: str) -> Iterator[str]:
    """The statements of a revision's SQL file, one by one."""
    script = files(__package__).joinpath(dialect, f"{name}.sql").read_text(encoding="utf-8")
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if _is_whole(dialect, statement):
            yield statement
            statement = ""


def _is_whole(dialect: str, statement: str) -> bool:
    if dialect == "sqlite":
        return sqlite3.complete_statement(statement)
    return statement.rstrip().endswith(";") and statement.count("$$") % 2 == 0
