"""Copies of a ledger that is in use, and ledgers made of such copies.

On SQLite a backup is the database itself, read in one transaction beside the writer. On PostgreSQL
it is what ``pg_dump`` writes, in its custom format; ``pg_dump`` and ``pg_restore`` must be of the
server's version or newer. A backup is whole or it is not there; nothing is ever restored over a
ledger that is there.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from fangcheng_kit.files import keep
from fangcheng_kit.settings import is_postgres

_SQLITE = b"SQLite format 3\0"
_POSTGRES = b"PGDMP"

# What an address may say besides, and how the programs of PostgreSQL are told.
_PARAMETERS = {"host": "PGHOST", "port": "PGPORT", "sslmode": "PGSSLMODE", "user": "PGUSER"}


class BackupFailed(Exception):
    """A ledger was not copied, or not made of a copy; nothing was left behind."""


async def backup(database: str, target: Path) -> None:
    """Copy a ledger as it is now to a file that is not there yet.

    ``database``: as in the settings. Raises ``BackupFailed``.
    """
    if await asyncio.to_thread(target.exists):
        raise BackupFailed(f"{target} is there already")
    fresh = target.with_name(target.name + ".part")
    try:
        if is_postgres(database):
            await _run("pg_dump", database, "--format=custom", "--no-owner", f"--file={fresh}")
        else:
            await asyncio.to_thread(_copy, Path(database), fresh)
        await asyncio.to_thread(keep, fresh, target)
    except (OSError, sqlite3.Error) as error:
        raise BackupFailed(str(error)) from error
    finally:
        fresh.unlink(missing_ok=True)


async def restore(source: Path, database: str) -> None:
    """Make a ledger of a backup: a file that is not there, or a database without tables.

    Raises ``BackupFailed``.
    """
    try:
        with source.open("rb") as file:
            head = file.read(len(_SQLITE))
        if is_postgres(database):
            if not head.startswith(_POSTGRES):
                raise BackupFailed(f"{source} is no backup of a ledger on PostgreSQL")
            await _run(
                "pg_restore",
                database,
                "--no-owner",
                "--exit-on-error",
                "--single-transaction",
                f"--dbname={_name(database)}",
                str(source),
            )
            return
        if head != _SQLITE:
            raise BackupFailed(f"{source} is no backup of a ledger on SQLite")
        await asyncio.to_thread(_copy_new, source, Path(database))
    except (OSError, sqlite3.Error) as error:
        raise BackupFailed(str(error)) from error


def _copy(source: Path, target: Path) -> None:
    """Copy a database in one go: a writer beside it neither waits nor shows up in part."""
    if not source.exists():
        raise BackupFailed(f"{source} is not there")
    # Read only: it is not for this connection to carry the write-ahead log over.
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
        # A file of its own, without a log beside it.
        new.execute("PRAGMA journal_mode = DELETE")
        (found,) = new.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise BackupFailed(f"{source} is damaged: {found}")


def _copy_new(source: Path, target: Path) -> None:
    if target.exists():
        raise BackupFailed(f"{target} is there already")
    fresh = target.with_name(target.name + ".part")
    try:
        _copy(source, fresh)
        keep(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)


def _name(database: str) -> str:
    return unquote(urlsplit(database).path.lstrip("/"))


def _environment(database: str) -> Mapping[str, str]:
    """How the programs are told an address: not as an argument, which everybody could read."""
    address = urlsplit(database)
    told = {
        "PGHOST": address.hostname or "",
        "PGPORT": str(address.port or ""),
        "PGUSER": unquote(address.username or ""),
        "PGPASSWORD": unquote(address.password or ""),
        "PGDATABASE": _name(database),
    }
    for name, value in parse_qsl(address.query):
        if name not in _PARAMETERS:
            raise BackupFailed(f"an address with {name} is not understood")
        told[_PARAMETERS[name]] = value
    return {**os.environ, **{name: value for name, value in told.items() if value}}


async def _run(program: str, database: str, *arguments: str) -> None:
    path = shutil.which(program)
    if path is None:
        raise BackupFailed(f"{program} is not there; it comes with PostgreSQL's client programs")
    process = await asyncio.create_subprocess_exec(
        path,
        *arguments,
        env=_environment(database),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await process.communicate()
    if process.returncode:
        lines = told.decode(errors="replace").strip().splitlines()
        raise BackupFailed(lines[0] if lines else f"{program} failed")
