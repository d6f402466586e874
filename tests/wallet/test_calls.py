"""What the wallet answers over gRPC beyond paying and holding: the life of holds, batches,
reversals, frozen players, reading in time, leaderboards, the stream of all entries, the chain."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wire
from fangcheng_client import explain
from tests.wallet.ledgers import PLAYERS
from tests.wallet.postgres import database_of
from tests.wallet.test_service import available, deposit, eventually, hold, pay, place, settle
from tests.wallet.wire import Served, served


@pytest.fixture(params=["sqlite", "postgres"])
async def wallet(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    """A wallet in which each of the four players has 1,000 silver; audited after every test."""
    database = await database_of(tmp_path) if request.param == "postgres" else ""
    async with served(tmp_path, database) as wallet:
        for player in PLAYERS:
            await wallet.operator.wallet.OpenWallet(wire.OpenWalletRequest(player_id=player))
            await wallet.operator.wallet.Deposit(deposit(f"first of {player}", player, 1_000))
        yield wallet
        audit = await wallet.operator.wallet.AuditLedger(wire.AuditLedgerRequest())
    assert not audit.findings


async def refused(call: Any) -> tuple[str, str, str | None]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    problem = explain(caught.value)
    return problem.code.name, problem.reason, problem.field


async def balances(wallet: Served, player: str, **more: Any) -> dict[str, tuple[int, int, int]]:
    """Available, held and owed by currency."""
    answer = await wallet.operator.wallet.GetBalances(
        wire.GetBalancesRequest(player_id=player, **more)
    )
    return {one.currency: (one.available, one.held, one.owed) for one in answer.balances}


# Currencies.


async def test_the_currencies_are_told_as_they_are_configured(wallet: Served) -> None:
    answer = await wallet.as_("player:amy").wallet.ListCurrencies(wire.ListCurrenciesRequest())
    silver, points, coins = answer.currencies
    assert (silver.currency, silver.floor, dict(silver.names)) == ("silver", 0, {"zh": "银子"})
    assert (points.books, points.HasField("floor")) == (True, False)
    assert (coins.most, coins.minor_digits) == (1_000, 2)


# Texts.


@pytest.mark.parametrize(
    ("call", "request_", "field"),
    [
        ("GetBalances", wire.GetBalancesRequest(player_id="amy\0"), "player_id"),
        ("ListEntries", wire.ListEntriesRequest(player_id="amy", reasons=["win", "\0"]),
         "reasons[1]"),
        ("Deposit", deposit("\0", "amy", 1), "request_id"),
        ("PlaceHolds", place("m", hold("amy", 1), hold("b\0", 1)), "holds[1].player_id"),
        ("Settle", settle("t/1", pay(1, 0, 5), rules="a\0b"), 'labels["rules"]'),
        ("GetSettlement", settling.GetSettlementRequest(key="t\0"), "key"),
    ],
)  # fmt: skip
async def test_a_text_with_nul_is_refused_with_its_field(
    wallet: Served, call: str, request_: Any, field: str
) -> None:
    stubs = {
        "PlaceHolds": wallet.matchmaking.settlement,
        "Settle": wallet.table.settlement,
        "GetSettlement": wallet.table.settlement,
    }
    stub = stubs.get(call, wallet.operator.wallet)
    told = await refused(getattr(stub, call)(request_))
    assert told == ("INVALID_ARGUMENT", "INVALID_REQUEST", field)
    assert await balances(wallet, "amy") == {"silver": (1_000, 0, 0)}


async def test_a_text_with_nul_in_a_batch_is_refused_alone(wallet: Served) -> None:
    settlements = [settle(key, pay(1, 0, 5)) for key in ("t/1", "t\0", "t/2")]
    batch = settling.SettleBatchRequest(settlements=settlements)
    answer = await wallet.table.settlement.SettleBatch(batch)
    assert [one.WhichOneof("outcome") for one in answer.results] == [
        "settled", "refused", "settled",
    ]  # fmt: skip
    assert (answer.results[1].refused.code, answer.results[1].refused.field) == (3, "key")


# Holds.


async def test_a_hold_goes_to_a_table_and_is_seen_by_its_player(wallet: Served) -> None:
    request = place("m", hold("amy", 100), hold("bo", 100))
    request.lifetime_seconds = 60
    holds = (await wallet.matchmaking.settlement.PlaceHolds(request)).holds
    given = await wallet.table.settlement.HandOverHolds(
        settling.HandOverHoldsRequest(
            hold_ids=[one.hold_id for one in holds], table_id="t", lifetime_seconds=600
        )
    )
    own = await wallet.as_("player:amy").wallet.ListHolds(wire.ListHoldsRequest())
    assert own.player_id == "amy"
    assert list(own.holds) == [given.holds[0]]
    assert own.holds[0].table_id == "t"
    assert own.holds[0].expires.seconds - holds[0].expires.seconds in range(530, 550)
    more = await wallet.table.settlement.TopUpHold(
        settling.TopUpHoldRequest(request_id="u", hold_id=own.holds[0].hold_id, amount=50)
    )
    assert (more.hold.amount, more.hold.remaining) == (150, 150)
    assert await balances(wallet, "amy") == {"silver": (850, 150, 0)}


async def test_a_hold_whose_time_is_over_is_given_back_and_counted_no_more(wallet: Served) -> None:
    await wallet.matchmaking.settlement.PlaceHolds(place("stays", hold("bo", 100)))
    request = place("m", hold("amy", 100))
    request.lifetime_seconds = 1
    (found,) = (await wallet.matchmaking.settlement.PlaceHolds(request)).holds
    asked = settling.GetHoldsRequest(hold_ids=[found.hold_id])
    while found.state != settling.HOLD_STATE_EXPIRED:
        await asyncio.sleep(0.01)
        (found,) = (await wallet.table.settlement.GetHolds(asked)).holds
    await eventually(lambda: wallet.metric("open_holds") == 1)
    assert await balances(wallet, "amy") == {"silver": (1_000, 0, 0)}


# Batches and reversals.


async def test_a_batch_counts_each_of_its_settlements(wallet: Served) -> None:
    batch = settling.SettleBatchRequest(
        settlements=[
            settle("t/1", pay(1, 0, 5)),
            settle("t/1", pay(1, 0, 5)),
            settle("t/2", pay(1, 1, 5)),
            settle("", pay(1, 0, 5)),
            settle("t/3", pay(2, 0, 9_999)),
        ]
    )
    answer = await wallet.table.settlement.SettleBatch(batch)
    assert [one.WhichOneof("outcome") for one in answer.results] == [
        "settled", "settled", "refused", "refused", "settled",
    ]  # fmt: skip
    assert [(one.refused.code, one.refused.field) for one in answer.results[2:4]] == [
        (3, "transfers[0].to_party"),
        (3, "key"),
    ]
    outcomes = {
        outcome: wallet.metric("settlements_total", outcome=outcome)
        for outcome in ("paid", "short", "replayed", "refused", "failed")
    }
    assert outcomes == {"paid": 1, "short": 1, "replayed": 1, "refused": 2, "failed": 0}


async def test_what_cannot_be_given_back_is_owed_and_shown(wallet: Served) -> None:
    await wallet.table.settlement.Settle(settle("t/1", pay(1, 0, 300), pay(1, None, 20)))
    drained = wire.WithdrawRequest(request_id="w", player_id="amy", currency="silver", amount=1_200)
    await wallet.operator.wallet.Withdraw(drained)
    undo = settling.ReverseSettlementRequest(key="t/1", reason="a fault", case_id="case-1")
    answer = await wallet.operator.settlement.ReverseSettlement(undo)
    assert [(one.party, one.amount, one.owed) for one in answer.reversal.parties] == [
        (0, -100, 200),
        (1, 320, 0),
    ]
    assert await balances(wallet, "amy") == {"silver": (0, 0, 200)}
    assert await balances(wallet, "bo") == {"silver": (1_000, 0, 0)}
    assert wallet.metric("reversals_total") == 1
    assert (await wallet.operator.settlement.ReverseSettlement(undo)).replayed
    assert wallet.metric("reversals_total") == 1
    statement = await wallet.as_("player:bo").wallet.ListEntries(wire.ListEntriesRequest())
    assert statement.entries[0].reason == "reverse"
    assert statement.entries[0].reference == "t/1"


async def test_an_operator_collects_what_is_owed(wallet: Served) -> None:
    await wallet.table.settlement.Settle(settle("t/1", pay(1, 0, 300)))
    drained = wire.WithdrawRequest(request_id="w", player_id="amy", currency="silver", amount=1_200)
    await wallet.operator.wallet.Withdraw(drained)
    undo = settling.ReverseSettlementRequest(key="t/1", reason="a fault")
    await wallet.operator.settlement.ReverseSettlement(undo)
    request = wire.CollectReceivableRequest(
        request_id="c", player_id="amy", currency="silver", amount=200, reason="a fault"
    )
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await wallet.operator.wallet.CollectReceivable(request)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await wallet.table.wallet.CollectReceivable(request)
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    request.write_off = True
    answer = await wallet.operator.wallet.CollectReceivable(request)
    assert (answer.owed, answer.available, answer.replayed) == (0, 0, False)
    assert (await wallet.operator.wallet.CollectReceivable(request)).replayed
    assert await balances(wallet, "amy") == {"silver": (0, 0, 0)}


# Frozen players.


async def test_a_frozen_player_stakes_and_withdraws_nothing_but_plays_out(wallet: Served) -> None:
    (placed,) = (await wallet.matchmaking.settlement.PlaceHolds(place("m", hold("bo", 50)))).holds
    freeze = wire.FreezePlayerRequest(
        request_id="f", player_id="bo", reason="under review", case_id="case-2"
    )
    done = await wallet.operator.wallet.FreezePlayer(freeze)
    assert (done.player.frozen, done.player.reason, done.replayed) == (True, "under review", False)
    assert (await wallet.operator.wallet.FreezePlayer(freeze)).replayed
    assert await refused(
        wallet.matchmaking.settlement.PlaceHolds(place("n", hold("amy", 1), hold("bo", 1)))
    ) == ("FAILED_PRECONDITION", "PLAYER_FROZEN", "holds[1].player_id")
    withdraw = wire.WithdrawRequest(request_id="w", player_id="bo", currency="silver", amount=1)
    assert (await refused(wallet.operator.wallet.Withdraw(withdraw)))[1] == "PLAYER_FROZEN"
    top_up = settling.TopUpHoldRequest(request_id="u", hold_id=placed.hold_id, amount=1)
    assert (await refused(wallet.table.settlement.TopUpHold(top_up)))[1] == "PLAYER_FROZEN"
    await wallet.operator.wallet.Deposit(deposit("d", "bo", 5))
    await wallet.table.settlement.Settle(
        settle("t/1", pay(1, 0, 60), holds={"bo": [placed.hold_id]})
    )
    await wallet.table.settlement.ReleaseHolds(
        settling.ReleaseHoldsRequest(hold_ids=[placed.hold_id])
    )
    assert await available(wallet) == [1_060, 945, 1_000, 1_000]
    own = await wallet.as_("player:bo").wallet.GetBalances(wire.GetBalancesRequest())
    assert own.player.frozen
    assert own.player.reason == own.player.case_id == ""
    await wallet.operator.wallet.UnfreezePlayer(
        wire.UnfreezePlayerRequest(request_id="g", player_id="bo", reason="nothing found")
    )
    await wallet.operator.wallet.Withdraw(withdraw)


@pytest.mark.parametrize("subject", ["player:amy", "service:table", "service:studio"])
async def test_only_an_operator_freezes(wallet: Served, subject: str) -> None:
    request = wire.FreezePlayerRequest(request_id="f", player_id="bo", reason="x")
    refusal = await refused(wallet.as_(subject).wallet.FreezePlayer(request))
    assert refusal[0] == "PERMISSION_DENIED"


# Reading in time.


async def test_balances_are_told_as_they_were(wallet: Served) -> None:
    (placed,) = (await wallet.matchmaking.settlement.PlaceHolds(place("m", hold("amy", 100)))).holds
    settled = await wallet.table.settlement.Settle(
        settle("t/1", pay(0, 1, 30), holds={"amy": [placed.hold_id]})
    )
    then = settled.settlement.time
    await wallet.table.settlement.ReleaseHolds(
        settling.ReleaseHoldsRequest(hold_ids=[placed.hold_id])
    )
    assert await balances(wallet, "amy", at=then) == {"silver": (900, 70, 0)}
    assert await balances(wallet, "amy") == {"silver": (970, 0, 0)}
    assert await balances(wallet, "amy", at=Timestamp(seconds=1)) == {}
    never = wire.GetBalancesRequest(player_id="amy", at=Timestamp(seconds=2**40))
    assert await refused(wallet.operator.wallet.GetBalances(never)) == (
        "INVALID_ARGUMENT", "INVALID_TIME", "at",
    )  # fmt: skip


async def test_a_statement_is_filtered_by_reason_label_and_time(wallet: Served) -> None:
    await wallet.table.settlement.Settle(settle("t/1", pay(0, 1, 30), club="north"))
    second = await wallet.table.settlement.Settle(settle("t/2", pay(0, 1, 40), club="south"))

    async def amounts(**more: Any) -> list[int]:
        request = wire.ListEntriesRequest(player_id="amy", **more)
        return [one.amount for one in (await wallet.operator.wallet.ListEntries(request)).entries]

    assert await amounts() == [-40, -30, 1_000]
    assert await amounts(labels={"club": "north"}) == [-30]
    assert await amounts(reasons=["deposit"]) == [1_000]
    assert await amounts(reasons=["deposit", "win"], currency="silver") == [-40, -30, 1_000]
    assert await amounts(reference="t/2") == [-40]
    assert await amounts(**{"from": second.settlement.time}) == [-40]
    assert await amounts(until=second.settlement.time) == [-30, 1_000]
    assert await amounts(currency="points") == []


# Leaderboards.


def backwards(token: str) -> str:
    """A token that names a place before the first, as nobody was given."""
    digest, skip, horizon = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    forged = json.dumps([digest, -skip, horizon]).encode()
    return base64.urlsafe_b64encode(forged).decode().rstrip("=")


async def test_a_leaderboard_ranks_what_hands_brought(wallet: Served) -> None:
    def points(payer: int, payee: int, amount: int) -> settling.SettlementTransfer:
        return pay(payer, payee, amount, "points", "kele")

    await wallet.table.settlement.Settle(
        settle("t/1", points(1, 0, 60), points(2, 0, 60), club="north")
    )
    await wallet.table.settlement.Settle(settle("t/2", points(3, 1, 20), club="south"))

    async def board(subject: str = "operator", **more: Any) -> wire.GetLeaderboardResponse:
        request = wire.GetLeaderboardRequest(currency="points", book="kele", **more)
        answer: wire.GetLeaderboardResponse = await wallet.as_(subject).wallet.GetLeaderboard(
            request
        )
        return answer

    def places(standings: Any) -> list[tuple[int, str, int, int]]:
        return [(one.rank, one.player_id, one.score, one.hands) for one in standings]

    whole = [(1, "amy", 120, 1), (2, "dan", -20, 1), (3, "bo", -40, 2), (4, "cao", -60, 1)]
    answer = await board()
    assert places(answer.standings) == whole
    assert not answer.closed
    assert not answer.HasField("own")
    assert places((await board(labels={"club": "north"})).standings) == [
        (1, "amy", 120, 1), (2, "bo", -60, 1), (2, "cao", -60, 1),
    ]  # fmt: skip
    own = await board("player:bo", neighbours=1)
    assert places([own.own]) == [whole[2]]
    assert places(own.neighbours) == whole[1:]
    first = await board(page_size=3)
    # What comes meanwhile belongs to no page of this listing.
    await wallet.table.settlement.Settle(settle("t/3", points(0, 3, 1_000)))
    rest = await board(page_size=3, page_token=first.next_page_token)
    assert places([*first.standings, *rest.standings]) == whole
    assert rest.next_page_token == ""
    assert places((await board()).standings)[0] == (1, "dan", 980, 2)
    past = await board(period="2020-01")
    assert (past.closed, len(past.standings)) == (True, 0)
    assert getattr(past, "from").ToJsonString() == "2019-12-31T16:00:00Z"
    assert past.until.ToJsonString() == "2020-01-31T16:00:00Z"
    for more, reason in (
        ({"period": "2020-13"}, "INVALID_PERIOD"),
        ({"page_token": first.next_page_token, "labels": {"a": "b"}}, "INVALID_PAGE_TOKEN"),
        ({"page_token": backwards(first.next_page_token)}, "INVALID_PAGE_TOKEN"),
    ):
        field = "period" if "period" in more else "page_token"
        assert await refused(board(**more)) == ("INVALID_ARGUMENT", reason, field)


# The stream of all entries.


async def test_the_stream_tells_every_entry_once_and_goes_on_from_its_cursor(
    wallet: Served,
) -> None:
    def stream(cursor: str = "", **more: Any) -> Any:
        request = wire.StreamEntriesRequest(cursor=cursor, **more)
        return wallet.as_("service:warehouse").wallet.StreamEntries(request)

    messages = [message async for message in stream()]
    entries = [one for message in messages for one in message.entries]
    assert [one.sequence for one in entries] == list(range(1, 9))
    assert {one.kind for one in entries} == {
        wire.ACCOUNT_KIND_PLAYER,
        wire.ACCOUNT_KIND_EXTERNAL,
    }
    sums: dict[int, int] = {}
    for one in entries:
        sums[one.operation] = sums.get(one.operation, 0) + one.entry.amount
    assert sums == dict.fromkeys(range(1, 5), 0)
    live = stream(messages[-1].cursor, follow=True)
    await wallet.table.settlement.Settle(settle("t/1", pay(0, 1, 30), club="north"))
    news = await live.read()
    assert [(one.owner, one.entry.amount, one.verb) for one in news.entries] == [
        ("bo", 30, "settle"),
        ("amy", -30, "settle"),
    ]
    assert dict(news.entries[0].entry.labels) == {"club": "north"}
    live.cancel()
    silent = [message async for message in stream(currency="points")]
    assert [list(message.entries) for message in silent] == [[]]
    assert silent[-1].cursor == news.cursor
    assert (await refused(stream("the third").read()))[1] == "INVALID_CURSOR"


async def test_a_stream_that_is_left_leaves_nothing_behind(wallet: Served) -> None:
    async def left() -> None:
        stream = wallet.as_("service:warehouse").wallet.StreamEntries(
            wire.StreamEntriesRequest(follow=True)
        )
        await stream.read()
        stream.cancel()

    await left()  # what a connection itself needs stays
    before = len(asyncio.all_tasks())
    for _ in range(20):
        await left()
    await eventually(lambda: len(asyncio.all_tasks()) <= before)


# The hash chain.


async def test_the_chain_follows_the_ledger_and_keeps_its_heads(wallet: Served) -> None:
    first = wire.VerifyLedgerResponse(waiting=4)
    while first.waiting:
        await asyncio.sleep(0.01)
        first = await wallet.operator.wallet.VerifyLedger(wire.VerifyLedgerRequest())
    assert (first.intact, first.operations, first.entries) == (True, 4, 8)
    await eventually(lambda: wallet.metric("unchained_operations") == 0)
    await wallet.table.settlement.Settle(settle("t/1", pay(0, 1, 30)))
    noted = wire.VerifyLedgerRequest(operations=first.operations, head=first.head)
    assert (await wallet.operator.wallet.VerifyLedger(noted)).intact
    noted.head = "00" * 32
    other = await wallet.operator.wallet.VerifyLedger(noted)
    assert not other.intact
    assert other.finding
    for nothing in ("discard", "9f2", "方"):
        noted.head = nothing
        assert await refused(wallet.operator.wallet.VerifyLedger(noted)) == (
            "INVALID_ARGUMENT", "INVALID_HEAD", "head",
        )  # fmt: skip
    assert (await wallet.operator.wallet.VerifyLedger(wire.VerifyLedgerRequest(head="x"))).intact
