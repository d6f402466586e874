"""Closed tables in memory: nothing of a player is shown from there once he is erased."""

from __future__ import annotations

from fangcheng_kit.privacy import Erasure
from fangcheng_table.closed import ClosedTables
from fangcheng_table.store import Journal


async def erase(journal: Journal, request_id: str) -> None:
    await journal.begin_erasure(Erasure(request_id=request_id, player_id="ann"))
    await journal.end_erasure(request_id)


async def test_those_that_were_asked_for_longest_ago_go(journal: Journal) -> None:
    tables: ClosedTables[str] = ClosedTables(journal, 2)
    tables.put("t1", "one")
    tables.put("t2", "two")
    assert await tables.get("t1") == "one"
    tables.put("t3", "three")
    assert [await tables.get(one) for one in ("t1", "t2", "t3")] == ["one", None, "three"]


async def test_all_go_when_somebody_is_erased(journal: Journal) -> None:
    tables: ClosedTables[str] = ClosedTables(journal, 2)
    tables.put("t1", "of ann")
    await erase(journal, "e1")
    assert await tables.get("t1") is None
    tables.put("t1", "without ann", await tables.erasures())
    assert await tables.get("t1") == "without ann"


async def test_what_was_read_before_an_erasure_is_not_kept(journal: Journal) -> None:
    tables: ClosedTables[str] = ClosedTables(journal, 2)
    before = await tables.erasures()
    await erase(journal, "e1")
    await tables.erasures()  # for another table, while this one was being read
    tables.put("t1", "of ann", before)
    assert await tables.get("t1") is None


async def test_an_erasure_that_nobody_has_noticed_yet_is_noticed_when_it_matters(
    journal: Journal,
) -> None:
    tables: ClosedTables[str] = ClosedTables(journal, 2)
    before = await tables.erasures()
    await erase(journal, "e1")
    tables.put("t1", "of ann", before)
    assert await tables.get("t1") is None
