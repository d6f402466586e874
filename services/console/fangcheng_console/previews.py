"""What an act would do now: its preview, with numbers that the services tell."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from . import previews_money as money
from . import previews_players as players
from . import previews_tables as tables
from .looking import Look
from .verbs import Preview

PREVIEWS: Mapping[str, Callable[..., Awaitable[Preview]]] = {
    "remove_player": tables.remove_player,
    "void_hand": tables.void_hand,
    "close_table": tables.close_table,
    "close_table_after_hand": tables.close_table_after_hand,
    "pause_pool": players.pause_pool,
    "close_pool": players.close_pool,
    "resume_pool": players.resume_pool,
    "freeze_player": players.freeze_player,
    "unfreeze_player": players.unfreeze_player,
    "bar_pair": players.bar_pair,
    "unbar_pair": players.unbar_pair,
    "reverse_settlement": money.reverse_settlement,
    "collect_receivable": money.collect_receivable,
    "write_off_receivable": money.write_off_receivable,
}


async def preview_of(look: Look, verb: str, target: Mapping[str, Any]) -> Preview:
    """What a verb would do; raises what a service refuses, such as UNKNOWN_TABLE."""
    return await PREVIEWS[verb](look, **target)
