"""A service's tables, made and brought up to date with Alembic, in SQLite or PostgreSQL.

A service has a package with a folder ``versions`` and one of SQL for each kind of database. A
revision is a Python file in ``versions`` whose ``upgrade`` is ``run(__file__)``: it runs the SQL
file of the same name. The connection is handed in: there is no ``alembic.ini`` and nothing to
configure. Needs the extra ``databases``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ENVIRONMENT = Path(__file__).parent / "alembic"


class BadDatabase(Exception):
    """The database cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Migrations:
    """The tables of a service."""

    folder: Path
    """Holds ``versions``, and a folder of SQL named after each dialect."""
    head: str
    """The revision that this program reads and writes."""
    what: str
    """What the tables hold, for messages: ``a ledger``."""

    def upgrade(self, connection: Connection, revision: str = "") -> None:
        """Bring the tables up to a revision, in the transaction that the connection is in.

        Without a revision, up to the one that this program needs.
        """
        # Alembic takes a third of a second to import, and is not needed at every start.
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", str(_ENVIRONMENT))
        config.set_main_option("path_separator", "newline")
        config.set_main_option("version_locations", str(self.folder / "versions"))
        config.attributes["connection"] = connection
        command.upgrade(config, revision or self.head)

    def upgrade_sqlite(self, path: Path, revision: str = "") -> None:
        """The same in a file, in a transaction of its own."""
        import sqlalchemy

        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
            engine = sqlalchemy.create_engine(
                "sqlite://", creator=lambda: db, poolclass=sqlalchemy.StaticPool
            )
            with engine.connect() as connection:
                db.execute("BEGIN IMMEDIATE")
                self.upgrade(connection, revision)
                if db.in_transaction:
                    db.execute("COMMIT")

    def is_due(self, tables: set[str], revision: str | None) -> bool:
        """Whether tables have to be made or brought up to date.

        ``tables``: the names of those that are there. ``revision``: what ``alembic_version`` says.
        ``BadDatabase`` where they are newer than this program, or something else's.
        """
        if tables and "alembic_version" not in tables:
            raise BadDatabase(f"the database has other tables than {self.what}'s")
        if revision is not None and revision > self.head:
            raise BadDatabase(
                f"the database has revision {revision}; this version reads {self.head}"
            )
        return revision != self.head

    def is_due_in_sqlite(self, db: sqlite3.Connection) -> bool:
        """The same of an open file."""
        tables = {
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
        row = None
        if "alembic_version" in tables:
            row = db.execute("SELECT version_num FROM alembic_version").fetchone()
        return self.is_due(tables, None if row is None else str(row[0]))


def run(file: str) -> None:
    """Execute a revision's SQL: that of the dialect, named as the revision's own ``file`` is."""
    from alembic import op

    connection, path = op.get_bind(), Path(file)
    dialect = connection.dialect.name
    script = path.parent.parent / dialect / f"{path.stem}.sql"
    for statement in _statements(dialect, script.read_text(encoding="utf-8")):
        connection.exec_driver_sql(statement)


def _statements(dialect: str, script: str) -> Iterator[str]:
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
