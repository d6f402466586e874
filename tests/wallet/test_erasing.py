"""Personal data in the ledger: exported whole, and erased so that everything else still holds."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from fangcheng.wallet.v1 import privacy_pb2 as wire
from fangcheng.wallet.v1 import privacy_pb2_grpc
from fangcheng.wallet.v1.wallet_pb2 import OpenWalletRequest
from fangcheng_client import explain
from fangcheng_kit.privacy import Erasure
from fangcheng_wallet import sqlite_reads
from fangcheng_wallet.canonical import dumps
from fangcheng_wallet.chain import Linked, verify
from fangcheng_wallet.errors import HasHolds, RequestIdReused, UnknownWallet
from fangcheng_wallet.ledger import Collect, Freeze, Reverse
from fangcheng_wallet.masks import MaskBody, left, own
from fangcheng_wallet.store import Store
from fangcheng_wallet.verbs import Verbs
from tests.wallet.ledgers import (
    OpenStore,
    deposit,
    entries,
    hold_one,
    open_four,
    open_sqlite_in,
    release,
    settle,
    silver,
    withdraw,
)
from tests.wallet.wire import served

SECRETS = ("Li Ming", "小明", "card 4711", "owes his aunt", "shouted at Bo", "the wrong hand")
"""What the ledger below says about amy."""
ERASURE = Erasure(
    request_id="erase-1",
    player_id="amy",
    labels=frozenset({("nickname", ""), ("club", "小明")}),
    reason="case 81",
)


async def write_about_amy(store: Store) -> None:
    """Something of everything in which amy is spoken of."""
    await open_four(store, 1_000)
    await store.deposit(replace(deposit("d1", "amy", 500), memo="Li Ming"))
    await store.withdraw(replace(withdraw("w1", "amy", 100), memo="card 4711"))
    await store.deposit(replace(deposit("d2", "bo", 500), memo="of bo's own"))
    await store.settle(settle("t/1", silver(0, 1, 300), nickname="Li Ming", club="17"))
    await store.settle(settle("t/2", silver(1, 0, 1_000), club="小明", season="3"))
    await store.withdraw(withdraw("w2", "amy", 2_000))
    await store.reverse(Reverse("t/2", "the wrong hand", "case-7"))
    await store.deposit(deposit("d3", "amy", 900))
    await store.collect(Collect("c1", "amy", "silver", "", 100, "owes his aunt"))
    await store.freeze(Freeze("f1", "amy", True, "shouted at Bo", "case-8"))


async def said(store: Store, player_id: str) -> list[dict[str, Any]]:
    return [json.loads(line) async for line in store.lines(player_id)]


def left_in(folder: Path) -> list[str]:
    """What was said of amy and is in a file of a folder."""
    files = b"".join(file.read_bytes() for file in folder.iterdir())
    return [secret for secret in SECRETS if secret.encode() in files]


async def test_an_export_has_everything_that_was_said_of_a_player(store: Store) -> None:
    await write_about_amy(store)
    hold = await hold_one(store, "h1", "bo", 10)
    lines = await said(store, "amy")
    kinds = [line["kind"] for line in lines]
    assert kinds[:3] == ["wallet", "balance", "entry"]
    assert kinds[-1] == "freeze"
    text = json.dumps(lines, ensure_ascii=False)
    assert all(secret in text for secret in SECRETS)
    assert "of bo's own" not in text
    of_bo = await said(store, "bo")
    (held,) = [line for line in of_bo if line["kind"] == "hold"]
    assert (held["hold_id"], held["remaining"]) == (hold.hold_id, 10)
    with pytest.raises(UnknownWallet):
        await said(store, "eve")


async def test_what_was_said_of_a_player_is_erased_and_the_ledger_holds(store: Store) -> None:
    await write_about_amy(store)
    before = {name: await store.standing(name) for name in ("amy", "bo", "cao", "dan")}
    statement = await entries(store, "amy", 100)
    done = await store.erase(ERASURE)
    assert (done.answer, done.replayed) == (7, False)
    text = json.dumps([await said(store, name) for name in before], ensure_ascii=False)
    assert not [secret for secret in SECRETS if secret in text]
    assert "of bo's own" in text
    settlement = await store.settlement("t/2")
    assert settlement.request.labels == {"season": "3"}
    assert settlement.reversal is not None
    assert (settlement.reversal.reason, settlement.reversal.case_id) == ("", "case-7")
    for name, (player, balances) in before.items():
        assert await store.standing(name) == (replace(player, reason=""), balances)
    after = await entries(store, "amy", 100)
    assert [replace(one, memo="", labels={}) for one in statement.entries] == [
        replace(one, labels={}) for one in after.entries
    ]
    report = await store.verify()
    assert (report.finding, report.erased) == ("", 7)


async def test_an_erasure_is_done_once_and_its_id_is_good_for_one(store: Store) -> None:
    await write_about_amy(store)
    await store.erase(ERASURE)
    head = (await store.verify()).operations
    again = await store.erase(ERASURE)
    assert (again.answer, again.replayed) == (0, True)
    with pytest.raises(RequestIdReused):
        await store.erase(replace(ERASURE, labels=frozenset({("season", "")})))
    other = await store.erase(
        replace(ERASURE, request_id="erase-2", player_id="bo", labels=frozenset({("season", "")}))
    )
    assert other.answer == 3, "his deposit, and what is left of t/2 and its reversal"
    report = await store.verify()
    assert (report.finding, report.erased) == ("", 8)
    assert report.operations >= head


async def test_texts_stay_where_the_books_must_be_whole(store: Store) -> None:
    await write_about_amy(store)
    done = await store.erase(replace(ERASURE, keep_texts=True))
    assert done.answer == 3, "two settlements and a reversal lose labels"
    text = json.dumps(await said(store, "amy"), ensure_ascii=False)
    assert [one for one in SECRETS if one in text] == [
        "Li Ming",
        "card 4711",
        "owes his aunt",
        "shouted at Bo",
        "the wrong hand",
    ]


async def test_a_player_with_holds_is_not_erased_before_they_are_released(store: Store) -> None:
    await write_about_amy(store)
    await store.freeze(Freeze("f2", "amy", False, "over"))
    hold = await hold_one(store, "h1", "amy", 10)
    with pytest.raises(HasHolds) as refused:
        await store.erase(ERASURE)
    assert refused.value.metadata == {"hold_ids": hold.hold_id}
    with pytest.raises(UnknownWallet):
        await store.erase(replace(ERASURE, player_id="eve"))
    await release(store, hold.hold_id)
    await store.erase(ERASURE)


async def test_the_same_again_finishes_what_a_crash_left(
    open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fangcheng_wallet.erasing._AT_ONCE", 2)
    async with open_store(tmp_path) as store:
        await write_about_amy(store)
        assert isinstance(store, Verbs)
        done = store.do
        left = 2

        async def do(command: object) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise asyncio.CancelledError
            return await done(command)

        monkeypatch.setattr(store, "do", do)
        with pytest.raises(asyncio.CancelledError):
            await store.erase(ERASURE)
        assert (await store.verify()).finding == ""
    async with open_store(tmp_path) as store:
        again = await store.erase(ERASURE)
        assert 0 < again.answer < 7
        assert not again.replayed
        report = await store.verify()
        assert (report.finding, report.erased) == ("", 7)


async def test_what_an_erasure_left_cannot_be_changed_unseen(tmp_path: Path) -> None:
    async with open_sqlite_in(tmp_path) as store:
        await write_about_amy(store)
        await store.erase(ERASURE)
    with closing(sqlite3.connect(tmp_path / "wallet.db")) as db:
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            db.execute("UPDATE postings SET amount = amount + 1 WHERE reference = 'd1'")
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            db.execute("UPDATE operations SET body = '{}' WHERE key = 'd2'")
        with pytest.raises(sqlite3.IntegrityError, match="stays noted"):
            db.execute("DELETE FROM erased")
        db.execute("UPDATE operations SET body = replace(body, '500', '501') WHERE key = 'd1'")
        db.commit()
    async with open_sqlite_in(tmp_path) as store:
        assert "erasure has left it" in (await store.verify()).finding


async def test_a_forged_mask_hides_no_change_of_a_settlement(tmp_path: Path) -> None:
    async with open_sqlite_in(tmp_path) as store:
        await write_about_amy(store)
        await store.erase(ERASURE)
    with closing(sqlite3.connect(tmp_path / "wallet.db")) as db:
        chain, waiting = list(sqlite_reads.linked(db)), sqlite_reads.masks_waiting(db)
    assert verify(chain, masks=waiting).finding == ""
    for at, (link, operation, _) in enumerate(chain):
        assert operation is not None
        if operation.verb == "settle":
            first, *rest = operation.postings
            amount = 6
            changed = (*first[:amount], first[amount] + 1, *first[amount + 1 :])
            forged = operation._replace(postings=[changed, *rest])
            says = MaskBody("amy", ((operation.number, left(forged[:-1], forged.postings)),))
            own_digest = chain[at].own or own(operation[:-1])
            report = verify(
                [*chain[:at], Linked(link, forged, own_digest), *chain[at + 1 :]],
                masks=[*waiting, dumps(says)],
            )
            assert report.posting == first[0], operation.key
            assert "not as it was written" in report.finding


async def test_no_byte_of_it_is_left_in_the_file(tmp_path: Path) -> None:
    async with open_sqlite_in(tmp_path) as store:
        await write_about_amy(store)
        await store.deposit(replace(deposit("d9", "amy", 1), memo="Li Ming"))
        assert left_in(tmp_path) != []
        await store.erase(ERASURE)
        assert left_in(tmp_path) == []
    assert left_in(tmp_path) == []


async def test_operators_export_and_erase_over_the_wire(tmp_path: Path) -> None:
    async with served(tmp_path) as wallet:
        stub = privacy_pb2_grpc.PrivacyServiceStub(wallet.operator.channel)
        await wallet.operator.wallet.OpenWallet(OpenWalletRequest(player_id="amy"))
        exported = [
            line
            async for message in stub.ExportPlayer(wire.ExportPlayerRequest(player_id="amy"))
            for line in message.lines
        ]
        assert [json.loads(line)["kind"] for line in exported] == ["wallet"]
        request = wire.ErasePlayerRequest(request_id="e", player_id="amy", reason="case 81")
        first = await stub.ErasePlayer(request)
        again = await stub.ErasePlayer(request)
        assert (first.replayed, again.replayed) == (False, True)
        for caller in (wallet.as_("player:amy"), wallet.table):
            refused = privacy_pb2_grpc.PrivacyServiceStub(caller.channel)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await refused.ErasePlayer(request)
            assert explain(error.value).code is grpc.StatusCode.PERMISSION_DENIED
