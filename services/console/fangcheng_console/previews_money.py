"""Previews of what is done with money; see `verbs`."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2

from .looking import Look, Unit, change
from .oplog import Target
from .previews_tables import name_of
from .verbs import Preview, Said, money


async def reverse_settlement(look: Look, settlement: str) -> Preview:
    """See `verbs`."""
    request = settlement_pb2.GetSettlementRequest(key=settlement)
    found = (await look.backend.settlements.GetSettlement(request)).settlement
    table_id, _, number = settlement.rpartition("/")
    is_hand = bool(table_id) and number.isascii() and number.isdigit() and len(number) < 10
    is_reversed = found.HasField("reversal")
    moves, owed = ([], []) if is_reversed else await _taken_back(look, found)
    says = [Said("settlement", {"key": settlement}), *moves]
    if not moves and not is_reversed:
        says.append(Said("nothing_was_paid"))
    if found.fees:
        says.append(Said("fees_stay"))
    return Preview(
        target=Target(
            settlement=settlement,
            table_id=table_id if is_hand else "",
            hand_number=int(number) if is_hand else 0,
        ),
        request=settlement_pb2.ReverseSettlementRequest(key=settlement),
        says=[*says, Said("table_is_not_replayed")],
        warnings=look.warnings,
        seen={
            "reversed": is_reversed,
            "owed": owed,
            "parties": [party.player_id for party in found.parties],
        },
        impossible=Said("is_reversed", change(found.reversal)) if is_reversed else None,
        confirm=f"{name_of(table_id)}/{number}" if is_hand else settlement[-8:],
    )


async def _taken_back(
    look: Look, settlement: settlement_pb2.Settlement
) -> tuple[list[Said], list[list[Any]]]:
    """Who gets back and gives back what, and who would owe what: the wallet's own rule."""
    net: Counter[tuple[int, Unit]] = Counter()
    for one in settlement.transfers:
        unit = (one.transfer.currency, one.transfer.book)
        if one.transfer.HasField("to_party"):
            net[one.transfer.to_party, unit] += one.paid
        if one.transfer.HasField("from_party"):
            net[one.transfer.from_party, unit] -= one.paid
    payers = {settlement.parties[party].player_id for (party, _), gain in net.items() if gain > 0}
    floors, available = await asyncio.gather(look.floors(), look.available(sorted(payers)))
    says: list[Said] = []
    owed: list[list[Any]] = []
    for (party, unit), gain in sorted(net.items(), key=lambda one: (one[0][1], one[0][0])):
        player = {"player": settlement.parties[party].player_id}
        if gain < 0:
            says.append(Said("gets_back", {**player, "money": [money(*unit, -gain)]}))
        elif gain > 0:
            here = gain
            floor = floors.get(unit[0]) if floors is not None else None
            if floor is not None and available is not None:
                has = available.get((player["player"], unit), 0)
                here = min(gain, max(0, has - floor))
            if here:
                says.append(Said("gives_back", {**player, "money": [money(*unit, here)]}))
            if here < gain:
                says.append(Said("owes", {**player, "money": [money(*unit, gain - here)]}))
                owed.append([player["player"], *unit, gain - here])
    return says, owed


async def collect_receivable(
    look: Look, player_id: str, currency: str, book: str, amount: int
) -> Preview:
    """See `verbs`."""
    return await _receivable(look, player_id, (currency, book), amount, write_off=False)


async def write_off_receivable(
    look: Look, player_id: str, currency: str, book: str, amount: int
) -> Preview:
    """See `verbs`."""
    return await _receivable(look, player_id, (currency, book), amount, write_off=True)


async def _receivable(
    look: Look, player_id: str, unit: Unit, amount: int, *, write_off: bool
) -> Preview:
    request = wallet_pb2.GetBalancesRequest(player_id=player_id)
    balances = (await look.backend.wallet.GetBalances(request)).balances
    here = next((one for one in balances if (one.currency, one.book) == unit), None)
    owed = here.owed if here is not None else 0
    has = here.available if here is not None else 0
    player = {"player": player_id}
    says = [
        Said("owes", {**player, "money": [money(*unit, owed)]}),
        Said(
            "written_off" if write_off else "collected", {**player, "money": [money(*unit, amount)]}
        ),
        Said("owes_then", {**player, "money": [money(*unit, max(0, owed - amount))]}),
    ]
    impossible = None
    if amount > owed:
        impossible = Said("owes_less", {**player, "money": [money(*unit, owed)]})
    elif not write_off and amount > has:
        impossible = Said("has_less", {**player, "money": [money(*unit, has)]})
    return Preview(
        target=Target(player_id=player_id),
        request=wallet_pb2.CollectReceivableRequest(
            player_id=player_id,
            currency=unit[0],
            book=unit[1],
            amount=amount,
            write_off=write_off,
        ),
        says=says,
        warnings=look.warnings,
        seen={"owed": owed},
        impossible=impossible,
        confirm=player_id if write_off else "",
    )
