"""What a deployment keeps: databases that are as the services need them, and room on the disks."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from fangcheng_kit import postgres, sqlite
from fangcheng_kit.migrations import BadDatabase, Migrations
from fangcheng_kit.settings import is_postgres

from ..migrating import TABLES
from .deployment import Deployment
from .findings import Finding, fails, fine, warns

GIB = 1024**3
LITTLE_BYTES = 5 * GIB
ALMOST_NONE_BYTES = GIB // 2


async def kept(deployment: Deployment) -> AsyncIterator[Finding]:
    """Look at every database, and at the disks of those that are files."""
    for service, database in deployment.databases.items():
        yield await _database(service, database, TABLES[service])
    files = [Path(one).parent for one in deployment.databases.values() if not is_postgres(one)]
    for folder in sorted({*files, *([deployment.folder] if deployment.folder else [])}):
        if folder.exists():  # else that was found before
            usage = shutil.disk_usage(folder)
            yield room(folder, usage.free, usage.total)


async def _database(service: str, database: str, tables: Migrations) -> Finding:
    shown = _shown(database)
    try:
        due = await (
            postgres.is_due(database, tables)
            if is_postgres(database)
            else asyncio.to_thread(_is_due_in_file, Path(database), tables)
        )
    except BadDatabase as error:
        return fails(
            "database",
            service,
            f"{shown}: {error}",
            "The service does not start with it, or has lost it.",
            f"Check the address, that the server runs, and what its user may do; "
            f"FANGCHENG_{service.upper()}_DATABASE names it for the service.",
        )
    if due:
        return fails(
            "database",
            service,
            f"{shown}: its tables are not of revision {tables.head}",
            "They are made when the service starts; until then this release does not work on it.",
            f"Start the service, or bring it up to date beforehand: `fangcheng migrate --{service} "
            "ADDRESS` (docs/operations/runbooks/upgrade.md).",
        )
    return fine("database", service, f"{shown}: {tables.what}, revision {tables.head}")


def _is_due_in_file(path: Path, tables: Migrations) -> bool:
    if not path.exists():
        raise BadDatabase("there is no such file")
    try:
        with closing(sqlite.open_reader(path)) as db:
            return tables.is_due_in_sqlite(db)
    except sqlite3.Error as error:
        raise BadDatabase(f"it cannot be read: {error}") from None


def _shown(database: str) -> str:
    """An address without the password that may be in it."""
    if not is_postgres(database):
        return database
    try:
        parts = urlsplit(database)
    except ValueError:  # a bracket without the other
        return "its address"
    return f"{parts.hostname or 'localhost'}{parts.path}"


def room(folder: Path, free_bytes: int, total_bytes: int) -> Finding:
    """What is to be said of the disk that a folder is on."""
    told = f"{free_bytes / GIB:.1f} GiB free of {total_bytes / GIB:.0f} at {folder}"
    means = "When there is none left nothing is stored: tables stand still, and nobody is paid."
    cure = (
        "Make room, or move the databases: archives (`fangcheng journal archive`, `fangcheng "
        "ledger archive`) and old logs go first."
    )
    if free_bytes < ALMOST_NONE_BYTES:
        return fails("disk", "host", told, means, cure)
    if free_bytes < min(LITTLE_BYTES, total_bytes / 10):
        return warns("disk", "host", told, means, cure)
    return fine("disk", "host", told)
