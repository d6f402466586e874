"""What `Store` promises about tables that go on when a player has left them."""

from __future__ import annotations

import pytest

from fangcheng_matchmaking.core import Member, TicketState
from fangcheng_matchmaking.store import LiveTicket, Store
from tests.matchmaking.test_store import asked, match_of, new


async def test_who_has_left_a_table_may_queue_again_and_the_others_may_not(store: Store) -> None:
    await asked(store)
    await store.seated("m", "table", "e")
    (left,) = await store.parted("table", ["p1", "stranger"])
    assert (left.player_id, left.state, left.table_id) == ("p1", TicketState.ENDED, "table")
    assert await store.parted("table", ["p1"]) == []
    assert [one.player_id for one in await store.at_table("table")] == ["p0", "p2", "p3"]
    assert (await store.join(new(1, "again"))).ticket.state is TicketState.WAITING
    with pytest.raises(LiveTicket):
        await store.join(new(2, "again"))
    # What he has now is not touched when the table closes.
    assert len(await store.table_closed("table")) == 3
    live = await store.live_ticket("p1")
    assert live is not None
    assert live.request_id == "again"


async def test_the_ticket_of_a_party_ends_with_the_last_of_it(store: Store) -> None:
    pair = (Member(player_id="p0"), Member(player_id="p1"))
    tickets = [(await store.join(new(0, members=pair))).ticket]
    tickets += [(await store.join(new(number))).ticket for number in (2, 3)]
    await store.form(match_of(tickets))
    await store.ask("m")
    await store.seated("m", "table", "e")
    assert await store.parted("table", ["p0"]) == []
    assert await store.live_ticket("p0") is None
    other = await store.live_ticket("p1")
    assert other is not None
    assert other.state is TicketState.ASSIGNED
    assert [one.ticket_id for one in await store.parted("table", ["p1"])] == ["t0-r"]
    assert len(await store.at_table("table")) == 2
