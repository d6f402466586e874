"""Previews of what is done about players and pools; see `verbs`."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict
from typing import Any

import grpc
import grpc.aio

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.matchmaking.v1 import operations_pb2 as queues
from fangcheng.wallet.v1 import wallet_pb2

from .looking import AWAY, GLANCE_SECONDS, Look, Unit, change, sums, where_words
from .oplog import Target
from .problems import Refused
from .verbs import Preview, Said, money

_FROZEN = {"sits_at": "hand_goes_on", "waits_in": "is_not_seated"}
"""What a freeze means to one who is there."""


async def freeze_player(look: Look, player_id: str) -> Preview:
    """See `verbs`."""
    state, says = await _player(look, player_id)
    says += [Said(_FROZEN[one.key]) for one in says if one.key in _FROZEN]
    holds = await look.holds(player_id)
    if holds is not None:
        held: Counter[Unit] = Counter()
        for one in holds:
            held[one.currency, one.book] += one.remaining
        says.append(Said("holds_stay", {"money": sums(held)}) if held else Said("holds_none"))
    return Preview(
        target=Target(player_id=player_id),
        request=wallet_pb2.FreezePlayerRequest(player_id=player_id),
        says=[Said("stakes_nothing", {"player": player_id}), *says],
        warnings=[*look.warnings, *([Said("is_bot")] if state.is_bot else [])],
        seen={"frozen": state.frozen},
        impossible=Said("is_frozen", change(state)) if state.frozen else None,
    )


async def unfreeze_player(look: Look, player_id: str) -> Preview:
    """See `verbs`."""
    state, says = await _player(look, player_id)
    if state.frozen:
        says.insert(0, Said("is_frozen", change(state)))
    return Preview(
        target=Target(player_id=player_id),
        request=wallet_pb2.UnfreezePlayerRequest(player_id=player_id),
        says=[Said("stakes_again", {"player": player_id}), *says],
        warnings=look.warnings,
        seen={"frozen": state.frozen},
        impossible=None if state.frozen else Said("not_frozen"),
    )


async def _player(look: Look, player_id: str) -> tuple[wallet_pb2.PlayerState, list[Said]]:
    """How a player stands in the wallet, and where he is."""
    request = wallet_pb2.GetBalancesRequest(player_id=player_id)
    balances, where = await asyncio.gather(
        look.backend.wallet.GetBalances(request), look.where(player_id)
    )
    return balances.player, [] if where is None else where_words(player_id, where)


async def bar_pair(look: Look, player_id: str, other_id: str) -> Preview:
    """See `verbs`."""
    before = await look.pair(player_id, other_id)
    one, other = await asyncio.gather(look.where(player_id), look.where(other_id))
    pair = {"player": player_id, "other": other_id}
    says = [Said("pair_apart", pair)]
    if one is not None and other is not None and one.table_id and one.table_id == other.table_id:
        says.append(Said("sit_together", {**pair, "table": one.table_id}))
    impossible = Said("is_barred", change(before)) if before is not None else None
    return Preview(
        target=Target(player_id=player_id, other_id=other_id),
        request=queues.BarPairRequest(player_id=player_id, other_id=other_id),
        says=says,
        warnings=[*look.warnings, *await _strangers(look, player_id, other_id)],
        seen={"barred": before is not None},
        impossible=impossible,
    )


async def unbar_pair(look: Look, player_id: str, other_id: str) -> Preview:
    """See `verbs`."""
    before = await look.pair(player_id, other_id)
    pair = {"player": player_id, "other": other_id}
    says = [Said("pair_together", pair)]
    if before is not None:
        says.insert(0, Said("is_barred", change(before)))
    return Preview(
        target=Target(player_id=player_id, other_id=other_id),
        request=queues.UnbarPairRequest(player_id=player_id, other_id=other_id),
        says=says,
        warnings=look.warnings,
        seen={"barred": before is not None},
        impossible=None if before is not None else Said("not_barred"),
    )


async def _strangers(look: Look, *player_ids: str) -> list[Said]:
    """A name that the wallet has never heard is perhaps written wrong."""
    says = []
    for player_id in player_ids:
        request = wallet_pb2.GetBalancesRequest(player_id=player_id)
        try:
            await look.backend.wallet.GetBalances(request, timeout=GLANCE_SECONDS)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                says.append(Said("no_wallet", {"player": player_id}))
            elif error.code() not in AWAY:
                raise
    return says


async def player(look: Look, player_id: str) -> dict[str, Any]:
    """All that there is to do about a player; what nobody tells is None."""
    state, where, pairs = await asyncio.gather(
        _state(look, player_id), look.where(player_id), look.barred(player_id)
    )
    return {
        "player_id": player_id,
        "wallet": state,
        "where": None if where is None else [asdict(one) for one in where_words(player_id, where)],
        "table_id": "" if where is None else where.table_id,
        "pairs": [
            {
                "other_id": pair.other_id if pair.player_id == player_id else pair.player_id,
                **change(pair),
            }
            for pair in pairs
        ],
        "warnings": [asdict(one) for one in look.warnings],
    }


async def _state(look: Look, player_id: str) -> dict[str, Any] | None:
    request = wallet_pb2.GetBalancesRequest(player_id=player_id)
    call = look.backend.wallet.GetBalances(request, timeout=GLANCE_SECONDS)
    try:
        found = await look.glance(call, "wallet")
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.NOT_FOUND:
            raise
        look.warnings.append(Said("no_wallet", {"player": player_id}))
        return None
    if found is None:
        return None
    owed = [money(one.currency, one.book, one.owed) for one in found.balances if one.owed]
    state = found.player
    return {"frozen": state.frozen, "is_bot": state.is_bot, "owed": owed, **change(state)}


async def pause_pool(look: Look, pool_id: str) -> Preview:
    """See `verbs`."""
    return await _pausing(look, pool_id, close=False)


async def close_pool(look: Look, pool_id: str) -> Preview:
    """See `verbs`."""
    return await _pausing(look, pool_id, close=True)


async def _pausing(look: Look, pool_id: str, *, close: bool) -> Preview:
    pool = await _pool(look, pool_id)
    says = [_about_pool(pool), Said("waiting_wait", {"count": pool.waiting})]
    says.append(Said("nobody_comes") if close else Said("others_may_come"))
    if pool.paused:
        says.append(Said("pause_replaced"))
    return Preview(
        target=Target(pool_id=pool_id),
        request=queues.PausePoolRequest(pool_id=pool_id, close=close),
        says=[*says, Said("told_to_players") if close else Said("tables_still_come")],
        warnings=look.warnings,
        seen={"paused": pool.paused, "closed": pool.closed},
    )


async def resume_pool(look: Look, pool_id: str) -> Preview:
    """See `verbs`."""
    pool = await _pool(look, pool_id)
    return Preview(
        target=Target(pool_id=pool_id),
        request=queues.ResumePoolRequest(pool_id=pool_id),
        says=[_about_pool(pool), Said("waiting_matched", {"count": pool.waiting})],
        warnings=look.warnings,
        seen={"paused": pool.paused, "closed": pool.closed},
        impossible=None if pool.paused else Said("not_paused"),
    )


async def _pool(look: Look, pool_id: str) -> matchmaking_pb2.Pool:
    found = await look.backend.matchmaking.ListPools(matchmaking_pb2.ListPoolsRequest())
    for pool in found.pools:
        if pool.pool_id == pool_id:
            return pool
    raise Refused(404, "UNKNOWN_POOL", f"There is no pool {pool_id}.", "pool_id")


def _about_pool(pool: matchmaking_pb2.Pool) -> Said:
    return Said("about_pool", {"pool": pool.pool_id, "name": pool.name})
