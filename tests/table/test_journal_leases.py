"""What every journal promises of who plays which table."""

from __future__ import annotations

import asyncio

import pytest

from fangcheng_table.store import (
    Census,
    Claim,
    Superseded,
)

from .journals import FIRST, LEASE_MS, ME, OTHER, claimed, new, some


async def test_who_makes_a_table_owns_it(journal):
    await journal.join(ME, LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    assert await journal.owner_of("t1") == ME
    assert await journal.owner_of("t9") is None
    assert await journal.held("me") == [Claim("t1", 1)]
    assert await journal.owners() == [ME]
    assert await journal.census() == Census({"me": 1}, 0)
    assert await claimed(journal, ME) == []


async def test_a_table_whose_owner_is_gone_is_claimed_under_the_next_epoch(journal):
    for number in range(1, 5):
        await journal.create(new(number), [FIRST], "gone")
    await journal.join(ME, LEASE_MS)
    assert await journal.owner_of("t1") is None
    assert await journal.census() == Census({"me": 0}, 4)
    assert await claimed(journal, ME, table_id="t3") == [Claim("t3", 2)]
    assert await claimed(journal, ME, 2) == [Claim("t1", 2), Claim("t2", 2)]
    assert await claimed(journal, ME) == [Claim("t4", 2)]
    assert await claimed(journal, ME) == []
    assert await journal.owner_of("t1") == ME
    assert {claim.table_id for claim in await journal.held("me")} == {"t1", "t2", "t3", "t4"}


async def test_an_owner_is_given_only_what_it_can_play(journal):
    await journal.create(new(1), [FIRST], "gone")
    await journal.create(new(2, revision=2), [FIRST], "gone")
    await journal.create(new(3, rule_set="jintan"), [FIRST], "gone")
    await journal.join(ME, LEASE_MS)
    assert await claimed(journal, ME) == [Claim("t1", 2)]
    assert await claimed(journal, ME, table_id="t2") == []
    assert await journal.census() == Census({"me": 1}, 2)
    assert await journal.claim("me", [("jintan", 1)], 9) == [Claim("t3", 2)]


async def test_an_append_under_an_older_epoch_is_refused_and_leaves_nothing(journal):
    await journal.create(new(), [FIRST], "gone")
    await journal.append("t1", some(2), epoch=1)
    await journal.join(ME, LEASE_MS)
    assert await claimed(journal, ME) == [Claim("t1", 2)]
    for epoch in (1, 3):
        with pytest.raises(Superseded):
            await journal.append("t1", some(3), epoch=epoch, done=True)
    await journal.append("t1", some(3, seat=2), epoch=2)
    assert await journal.read("t1") == [FIRST, *some(2), *some(3, seat=2)]


async def test_a_lease_lasts_as_long_as_it_is_renewed(journal):
    await journal.join(ME, LEASE_MS)
    assert await journal.renew("me", LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    assert await journal.renew("me", 0)
    # Now it has run out, and says so when it is renewed; nobody was quicker.
    assert await journal.owners() == []
    assert await journal.owner_of("t1") is None
    assert await claimed(journal, ME) == []
    assert not await journal.renew("me", LEASE_MS)
    assert await journal.held("me") == [Claim("t1", 1)]
    assert await journal.owner_of("t1") == ME
    await journal.append("t1", some(2), epoch=1)


async def test_nobody_owns_the_tables_of_an_owner_that_has_left(journal):
    await journal.join(ME, LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    await journal.leave("me")
    assert await journal.owners() == []
    assert not await journal.renew("me", LEASE_MS)
    assert await claimed(journal, ME) == []
    await journal.join(OTHER, LEASE_MS)
    assert await claimed(journal, OTHER) == [Claim("t1", 2)]


async def test_a_table_that_was_given_up_is_free(journal):
    await journal.join(ME, LEASE_MS)
    for number in (1, 2):
        await journal.create(new(number), [FIRST], "me")
    await journal.give_up("t1", 7)
    assert await journal.owner_of("t1") == ME
    await journal.give_up("t1", 1)
    assert await journal.owner_of("t1") is None
    assert await journal.census() == Census({"me": 1}, 1)
    assert await claimed(journal, ME) == [Claim("t1", 2)]
    # An old owner does not take it from its new one.
    await journal.give_up("t1", 1)
    assert await journal.owner_of("t1") == ME


async def test_a_table_is_claimed_by_one(journal):
    for number in range(30):
        await journal.create(new(number), [FIRST], "gone")
    await journal.join(ME, LEASE_MS)
    claims = await asyncio.gather(*(claimed(journal, ME, 5) for _ in range(10)))
    tables = [claim.table_id for some_claims in claims for claim in some_claims]
    assert sorted(tables) == sorted(f"t{number}" for number in range(30))


async def test_what_is_done_is_owned_by_nobody(journal):
    await journal.join(ME, LEASE_MS)
    await journal.create(new(), [FIRST], "me")
    await journal.append("t1", some(2), epoch=1, closed=b"sum", done=True)
    assert await journal.owner_of("t1") is None
    assert await journal.held("me") == []
    assert await journal.census() == Census({"me": 0}, 0)
