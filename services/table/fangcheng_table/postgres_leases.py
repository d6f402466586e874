"""Who plays which table, in PostgreSQL. An owner is alive as long as the server's clock says so."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from . import reads
from .store import Census, Claim, Owner

_UNTIL = "clock_timestamp() + make_interval(secs => {} / 1000.0)"
_LIVE = "SELECT owner_id FROM owners WHERE until > clock_timestamp()"


async def join(db: Any, owner: Owner, lease_ms: int) -> None:
    """Begin a lease; forget owners that ended long ago."""
    await db.execute("DELETE FROM owners WHERE until < now() - interval '7 days'")
    await db.execute(
        f"INSERT INTO owners (owner_id, endpoint, version, until)"  # noqa: S608 # nosec B608 # constants of this file
        f" VALUES ($1, $2, $3, {_UNTIL.format('$4::bigint')}) ON CONFLICT (owner_id) DO UPDATE"
        " SET endpoint = excluded.endpoint, version = excluded.version, until = excluded.until",
        owner.owner_id,
        owner.endpoint,
        owner.version,
        lease_ms,
    )


async def renew(db: Any, owner_id: str, lease_ms: int) -> bool:
    """Move the end of a lease; whether it had not come yet.

    The row is locked before the clock is read, so that whoever claims sees one or the other.
    """
    was_alive: bool | None = await db.fetchval(
        f"WITH before AS (SELECT until FROM owners WHERE owner_id = $1 FOR UPDATE)"  # noqa: S608 # nosec B608 # constants of this file
        f" UPDATE owners SET until = {_UNTIL.format('$2::bigint')} FROM before"
        " WHERE owner_id = $1 RETURNING before.until > clock_timestamp()",
        owner_id,
        lease_ms,
    )
    return bool(was_alive)


async def leave(db: Any, owner_id: str) -> None:
    """End a lease."""
    await db.execute("DELETE FROM owners WHERE owner_id = $1", owner_id)


async def claim(
    db: Any, owner_id: str, plays: Collection[tuple[str, int]], limit: int, table_id: str
) -> list[Claim]:
    """Take over what nobody owns; what another process is claiming at this moment is its."""
    rows = await db.fetch(
        f"WITH free AS ("  # noqa: S608 # nosec B608 # constants of this file
        "  SELECT h.place, t.table_id, h.owner_id <> '' AS abandoned"
        "  FROM heads h JOIN tables t USING (place)"
        "  JOIN unnest($2::text[], $3::integer[]) AS plays (rule_set, revision)"
        "    USING (rule_set, revision)"
        f"  WHERE NOT h.done AND h.owner_id NOT IN ({_LIVE})"
        "    AND ($5 = '' OR t.table_id = $5)"
        f"    AND $1 IN ({_LIVE})"
        "  ORDER BY h.place LIMIT $4 FOR UPDATE OF h SKIP LOCKED"
        "), taken AS ("
        "  UPDATE heads h SET owner_id = $1, epoch = h.epoch + 1 FROM free"
        "  WHERE h.place = free.place RETURNING h.place, h.epoch"
        ") SELECT table_id, epoch, abandoned FROM taken JOIN free USING (place) ORDER BY place",
        owner_id,
        [rule_set for rule_set, _ in plays],
        [revision for _, revision in plays],
        limit,
        table_id,
    )
    return [Claim(*row) for row in rows]


async def give_up(db: Any, table_id: str, epoch: int) -> None:
    """Leave a table to whoever claims it."""
    await db.execute(
        "UPDATE heads SET owner_id = '' WHERE epoch = $2"
        " AND place = (SELECT place FROM tables WHERE table_id = $1)",
        table_id,
        epoch,
    )


async def held(db: Any, owner_id: str) -> list[Claim]:
    """An owner's tables."""
    rows = await db.fetch(
        "SELECT t.table_id, h.epoch FROM heads h JOIN tables t USING (place)"
        " WHERE NOT h.done AND h.owner_id = $1 ORDER BY place",
        owner_id,
    )
    return [Claim(*row) for row in rows]


async def owner_of(db: Any, table_id: str) -> Owner | None:
    """The owner of a table, if it is alive."""
    row = await db.fetchrow(
        "SELECT o.owner_id, o.endpoint, o.version FROM tables t JOIN heads h USING (place)"
        " JOIN owners o USING (owner_id) WHERE t.table_id = $1 AND o.until > clock_timestamp()",
        table_id,
    )
    return None if row is None else Owner(*row)


async def owners(db: Any) -> list[Owner]:
    """Those that are alive."""
    rows = await db.fetch(
        "SELECT owner_id, endpoint, version FROM owners WHERE until > clock_timestamp()"
        " ORDER BY owner_id"
    )
    return [Owner(*row) for row in rows]


async def census(db: Any) -> Census:
    """How many tables each of them has."""
    counts = await db.fetch("SELECT owner_id, count(*) FROM heads WHERE NOT done GROUP BY owner_id")
    return reads.census(await owners(db), counts)
