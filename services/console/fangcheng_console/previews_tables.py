"""Previews of what is done at tables; see `verbs`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import Any

from fangcheng.table.v1 import operators_pb2 as tables
from fangcheng.table.v1 import state_pb2, table_pb2

from .backend import Backend
from .looking import GLANCE_SECONDS, Look, Unit, sums
from .oplog import Target
from .verbs import Preview, Said


async def remove_player(look: Look, table_id: str, player_id: str) -> Preview:
    """See `verbs`."""
    table = await look.table(table_id)
    sits = [seat for seat in table.seats if seat.player_id == player_id]
    says = [_about(table)]
    if sits:
        says += _leaving(look, table, player_id)
        says += await _released(look, table, [player_id])
    return Preview(
        target=Target(table_id=table_id, player_id=player_id),
        request=tables.RemoveFromTableRequest(table_id=table_id, player_id=player_id),
        says=[*says, Said("told_to_table")],
        warnings=look.warnings,
        seen={"sits": bool(sits)},
        impossible=_closed(table)
        or (None if sits else Said("not_at_table", {"player": player_id})),
    )


def _leaving(look: Look, table: state_pb2.Table, player_id: str) -> list[Said]:
    hand = {"player": player_id, "hand": table.hand_number}
    waits = bool(table.timing.vacancy_ms)
    return [
        Said("played_for", hand) if _is_played(table) else Said("leaves_now", hand),
        Said("seat_may_wait") if waits else Said("table_closes_without"),
    ]


async def void_hand(look: Look, table_id: str) -> Preview:
    """See `verbs`."""
    table = await look.table(table_id)
    is_played = _is_played(table)
    is_last = 0 < table.hands <= table.hand_number
    says = [_about(table)]
    if is_played:
        says += await _dissolved(look, table)
        says.append(Said("last_hand") if is_last else Said("next_hand"))
    return Preview(
        target=Target(table_id=table_id, hand_number=table.hand_number),
        request=tables.VoidHandRequest(table_id=table_id, hand_number=table.hand_number),
        says=[*says, Said("told_to_table")],
        warnings=look.warnings,
        seen={"hand": table.hand_number, "is_played": is_played},
        impossible=_closed(table) or (None if is_played else Said("no_hand")),
        confirm=name_of(table_id),
    )


async def close_table(look: Look, table_id: str) -> Preview:
    """See `verbs`."""
    table = await look.table(table_id)
    says = [_about(table)]
    if _is_played(table):
        says += await _dissolved(look, table)
    says.append(Said("closes_now"))
    # The hand in play is what is lost: another one is another loss.
    seen = {"hand": table.hand_number, "is_played": _is_played(table)}
    return await _closing(look, table, says, seen, after_hand=False)


async def close_table_after_hand(look: Look, table_id: str) -> Preview:
    """See `verbs`."""
    table = await look.table(table_id)
    hand = {"hand": table.hand_number}
    says = [_about(table)]
    says.append(Said("closes_after", hand) if _is_played(table) else Said("closes_now"))
    return await _closing(look, table, says, {}, after_hand=True)


async def _closing(
    look: Look, table: state_pb2.Table, says: list[Said], seen: dict[str, Any], *, after_hand: bool
) -> Preview:
    table_id = table.table_id
    is_closed = table.phase == state_pb2.TABLE_PHASE_CLOSED
    if not is_closed:
        says += await _released(look, table, _players(table))
        says.append(Said("hands_stay_paid"))
    return Preview(
        target=Target(table_id=table_id, hand_number=table.hand_number),
        request=tables.CloseTableRequest(table_id=table_id, after_hand=after_hand),
        says=[*says, Said("told_to_table")],
        warnings=look.warnings,
        seen={"is_closed": is_closed, **seen},
        impossible=_closed(table),
        confirm="" if after_hand else name_of(table_id),
    )


async def _dissolved(look: Look, table: state_pb2.Table) -> list[Said]:
    says = [Said("hand_ends_unpaid", {"hand": table.hand_number})]
    snapshot = await look.glance(_snapshot(look.backend, table.table_id), "table")
    if snapshot is not None and snapshot.hand.started.hand_number == table.hand_number:
        says.append(Said("wall_left", {"tiles": snapshot.hand.wall_tiles}))
    return says


async def _released(look: Look, table: state_pb2.Table, players: Iterable[str]) -> list[Said]:
    """What of holds goes back to whom."""
    if not table.stakes:
        return [Said("nothing_staked")]
    found = await asyncio.gather(*(look.holds(player) for player in players))
    held: Counter[Unit] = Counter()
    owners = 0
    for holds in found:
        here = [one for one in holds or () if one.table_id == table.table_id]
        owners += bool(here)
        for one in here:
            held[one.currency, one.book] += one.remaining
    if any(holds is None for holds in found):
        return []
    if not owners:
        return [Said("nothing_held")]
    return [Said("holds_released", {"count": owners, "money": sums(held)})]


def name_of(table_id: str) -> str:
    """What a person types for a table: the end of its id, for the beginning is the hour's."""
    return table_id[-6:]


async def _snapshot(backend: Backend, table_id: str) -> Any:
    """The table as spectators see it now."""
    request = table_pb2.WatchRequest(table_id=table_id, snapshot=True)
    call = backend.tables.Watch(request, timeout=GLANCE_SECONDS)
    try:
        async for told in call:
            if told.event.HasField("snapshot"):
                return told.event.snapshot
        return None
    finally:
        call.cancel()


def _is_played(table: state_pb2.Table) -> bool:
    return table.phase in (state_pb2.TABLE_PHASE_BEFORE_DEAL, state_pb2.TABLE_PHASE_PLAYING)


def _players(table: state_pb2.Table) -> list[str]:
    return [seat.player_id for seat in table.seats if seat.player_id]


def _closed(table: state_pb2.Table) -> Said | None:
    if table.phase != state_pb2.TABLE_PHASE_CLOSED:
        return None
    return Said("table_is_closed")


def _about(table: state_pb2.Table) -> Said:
    return Said(
        "about_table",
        {
            "table": table.table_id,
            "rules": table.rules.id,
            "hand": table.hand_number,
            "players": _players(table),
        },
    )
