"""A whole evening of a real suite, exported and erased: nothing personal is left anywhere."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from rich.console import Console

from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc, rooms_pb2
from fangcheng.matchmaking.v1 import operations_pb2 as bars
from fangcheng.matchmaking.v1.operations_pb2_grpc import MatchmakingOperationsServiceStub
from fangcheng.matchmaking.v1.rooms_pb2_grpc import RoomServiceStub
from fangcheng.table.v1 import operators_pb2, operators_pb2_grpc, records_pb2, table_pb2
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.settlement_pb2 import GetSettlementRequest
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import attend, watch
from fangcheng_suite.access import Access
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.players import erase, export
from fangcheng_suite.recording import check
from tests.matchmaking.world import eventually
from tests.suite.whole import KEY, PLAYERS, Suite, whole

PROFILE = "安的头像"
NICKNAME = "Ann of the North"
SAID = "good luck from Ann"
TEXTS = ("a present of her aunt", "rude to cat", "plays with her brother", "she asked for it")
ENCODED = (PROFILE.encode().hex(), "5a6J55qE5aS05YOP", repr(PROFILE.encode())[2:-1])
"""How a profile would look in other forms: of the journal's requests, of JSON, of a log."""
POOLS = """
pools:
  - id: silver
    name: for silver
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 10, buy_in: 100}]
    hands: 2
    timing: {claim_window_ms: 0, between_hands_ms: 0}
rooms:
  - id: friends
    name: for friends
    rules: {id: baishan_kele}
    timing: {claim_window_ms: 0, between_hands_ms: 0}
    hands: 1
"""


async def play(suite: Suite) -> str:
    """An evening on which ann leaves something of herself wherever she can; the table's id."""
    await suite.fund()
    async with suite.channel("wallet", "operator") as channel:
        wallet: Any = WalletServiceStub(channel)
        await wallet.Deposit(
            wallet_pb2.DepositRequest(
                request_id="gift", player_id="ann", currency="silver", amount=7, memo=TEXTS[0]
            )
        )
    tickets = {}
    for player in PLAYERS:
        async with suite.channel("matchmaking", f"player:{player}") as channel:
            queues: Any = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
            joined = await queues.JoinQueue(
                matchmaking_pb2.JoinQueueRequest(
                    request_id="q",
                    pool_id="silver",
                    profile=(PROFILE if player == "ann" else f"of {player}").encode(),
                    labels={"nickname": NICKNAME, "season": "three"},
                )
            )
            tickets[player] = joined.ticket.ticket_id
    table_id = await suite.seat("ann", tickets["ann"])
    async with suite.channel("table", "player:ann") as channel:
        table: Any = TableServiceStub(channel)
        await table.Say(table_pb2.SayRequest(table_id=table_id, text=SAID))
    await asyncio.gather(
        close(suite, table_id), *(suite.play(player, table_id) for player in PLAYERS)
    )
    await meet(suite)
    return table_id


async def close(suite: Suite, table_id: str) -> None:
    """An operator closes the table after its first hand, once that has begun."""
    async with suite.channel("table", "operator:ops") as channel:
        async for event in watch(channel, table_id):
            if event.HasField("hand_started"):
                break
        operators: Any = operators_pb2_grpc.TableOperationsServiceStub(channel)
        await operators.CloseTable(
            operators_pb2.CloseTableRequest(
                request_id="close",
                table_id=table_id,
                reason=TEXTS[3],
                case_id="case-9",
                after_hand=True,
            )
        )


async def meet(suite: Suite) -> None:
    """A room that ann opens and leaves; whom she avoids, with whom she is barred, why frozen."""
    async with suite.channel("matchmaking", "player:ann") as channel:
        rooms: Any = RoomServiceStub(channel)
        queues: Any = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        await free(queues)
        opened = await rooms.OpenRoom(
            rooms_pb2.OpenRoomRequest(
                request_id="room",
                template_id="friends",
                profile=PROFILE.encode(),
                labels={"nickname": NICKNAME},
            )
        )
        await rooms.LeaveRoom(rooms_pb2.LeaveRoomRequest(room_id=opened.room.room_id))
        await queues.AvoidPlayer(matchmaking_pb2.AvoidPlayerRequest(player_id="dan"))
    async with suite.channel("matchmaking", "operator") as channel:
        operations: Any = MatchmakingOperationsServiceStub(channel)
        await operations.BarPair(
            bars.BarPairRequest(player_id="ann", other_id="bob", reason=TEXTS[2], case_id="case-8")
        )
    async with suite.channel("wallet", "operator") as channel:
        wallet: Any = WalletServiceStub(channel)
        await wallet.FreezePlayer(
            wallet_pb2.FreezePlayerRequest(request_id="freeze", player_id="ann", reason=TEXTS[1])
        )


async def free(queues: Any) -> None:
    """Wait until matchmaking has heard that the table is over."""

    async def is_free() -> bool:
        return not (await queues.GetPlayerStatus(matchmaking_pb2.GetPlayerStatusRequest())).table_id

    await eventually(is_free)


async def told(suite: Suite, table_id: str) -> str:
    """Every answer of every call that tells of tables, hands, tickets, money or players."""
    answers: list[Any] = []
    async with suite.channel("table", "operator") as channel:
        table: Any = TableServiceStub(channel)
        records: Any = TableRecordServiceStub(channel)
        operators: Any = operators_pb2_grpc.TableOperationsServiceStub(channel)
        answers += [
            await table.GetTable(table_pb2.GetTableRequest(table_id=table_id)),
            await table.ListTables(table_pb2.ListTablesRequest(include_closed=True)),
            await records.ListHandRecords(records_pb2.ListHandRecordsRequest()),
            await records.GetHandRecord(
                records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=1)
            ),
            await operators.ListOperatorActions(operators_pb2.ListOperatorActionsRequest()),
        ]
        stream = records.StreamFinishedHands(
            records_pb2.StreamFinishedHandsRequest(with_records=True)
        )
        async for answer in stream:
            answers.append(answer)
            if answer.HasField("hand"):
                break
        stream.cancel()
        answers += [
            answer async for answer in table.Watch(table_pb2.WatchRequest(table_id=table_id))
        ]
    async with suite.channel("table", "player:bob") as channel:
        answers += [event async for event in attend(channel, table_id)]
    async with suite.channel("matchmaking", "operator") as channel:
        queues: Any = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
        operations: Any = MatchmakingOperationsServiceStub(channel)
        for player in PLAYERS:
            answers += [
                await queues.GetPlayerStatus(
                    matchmaking_pb2.GetPlayerStatusRequest(player_id=player)
                ),
                await operations.ListBarredPairs(bars.ListBarredPairsRequest(player_id=player)),
            ]
    async with suite.channel("wallet", "operator") as channel:
        wallet: Any = WalletServiceStub(channel)
        for player in PLAYERS:
            answers += [
                await wallet.GetBalances(wallet_pb2.GetBalancesRequest(player_id=player)),
                await wallet.ListEntries(wallet_pb2.ListEntriesRequest(player_id=player)),
            ]
        answers += [
            answer async for answer in wallet.StreamEntries(wallet_pb2.StreamEntriesRequest())
        ]
    async with suite.channel("wallet", "service:table") as channel:
        settlements: Any = SettlementServiceStub(channel)
        answers.append(await settlements.GetSettlement(GetSettlementRequest(key=f"{table_id}/1")))
    text = "".join(json_format.MessageToJson(one, ensure_ascii=False) for one in answers)
    return text + b"".join(one.SerializeToString() for one in answers).decode("utf-8", "replace")


def left_in(folder: Path, secrets: tuple[str, ...]) -> dict[str, list[str]]:
    """What of some secrets is in which file of a folder."""
    found = {
        file.name: [one for one in secrets if one.encode() in file.read_bytes()]
        for file in folder.iterdir()
        if file.name.endswith((".db", ".db-wal"))
    }
    return {name: secrets for name, secrets in found.items() if secrets}


def access_to(suite: Suite) -> Access:
    return Access(lambda name: suite.running[name].address, KEY)


async def test_after_an_evening_a_player_is_exported_and_erased(tmp_path: Path) -> None:
    console = Console(quiet=True)
    secrets = (PROFILE, NICKNAME, *TEXTS)
    (tmp_path / "state").mkdir()
    async with whole(tmp_path / "state", POOLS) as suite:
        table_id = await play(suite)
        access = access_to(suite)
        before = await told(suite, table_id)
        assert [one for one in secrets if one not in before] == []
        assert SAID not in before, "talk is heard and not kept"
        await export(access, console, "ann", tmp_path / "ann.jsonl")
        exported = (tmp_path / "ann.jsonl").read_text("utf-8")
        lines = [json.loads(line) for line in exported.splitlines()]
        assert [one for one in secrets if one not in exported] == []
        assert "of bob" not in exported, "another's profile is another's"
        assert {line["service"] for line in lines} == {"matchmaking", "table", "wallet"}
        kinds = {line["kind"] for line in lines}
        assert kinds >= {"ticket", "match", "room", "met", "avoided", "barred", "table", "hand"}
        assert kinds >= {"operator_action", "wallet", "balance", "hold", "entry", "freeze"}
        audit, chain, hands = await books(suite)
        with pytest.raises(SuiteError, match="is there already"):
            await export(access, console, "ann", tmp_path / "ann.jsonl")

        for _ in range(2):
            await erase(
                access,
                console,
                "ann",
                "erase-1",
                ["nickname"],
                keep_texts=False,
                reason="case 81",
            )
        assert left_in(tmp_path / "state", (*secrets, *ENCODED, SAID)) == {}
        after = await told(suite, table_id)
        assert [one for one in (*secrets, *ENCODED) if one in after] == []
        assert "three" in after, "other labels stay"
        assert "case-9" in after, "cases stay"
        await export(access, console, "ann", tmp_path / "after.jsonl")
        exported = (tmp_path / "after.jsonl").read_text("utf-8")
        assert [one for one in (*secrets, *ENCODED) if one in exported] == []
        assert exported.count('"kind": "erasure"') == 3

        audit_after, chain_after, hands_after = await books(suite)
        assert audit_after == audit
        assert chain_after.intact, chain_after.finding
        assert chain_after.operations > chain.operations
        assert chain_after.entries == chain.entries
        assert chain_after.erased > 0
        assert [one.cursor for one in hands_after] == [one.cursor for one in hands]
        for one, other in zip(hands, hands_after, strict=True):
            assert one.record.secret == other.record.secret
            assert list(one.record.wall) == list(other.record.wall)
        await check(lambda: access, console, table_id, 1, "")
    assert left_in(tmp_path / "state", (*secrets, *ENCODED, SAID)) == {}


async def books(suite: Suite) -> tuple[Any, Any, list[Any]]:
    """The audit, the chain once it has come to the end of the ledger, and all finished hands."""
    async with suite.channel("wallet", "operator") as channel:
        wallet: Any = WalletServiceStub(channel)
        audit = await wallet.AuditLedger(wallet_pb2.AuditLedgerRequest())
        assert audit.balanced

        async def has_come_to_its_end() -> bool:
            return not (await wallet.VerifyLedger(wallet_pb2.VerifyLedgerRequest())).waiting

        await eventually(has_come_to_its_end)
        chain = await wallet.VerifyLedger(wallet_pb2.VerifyLedgerRequest())
    hands = []
    async with suite.channel("table", "operator") as channel:
        records: Any = TableRecordServiceStub(channel)
        stream = records.StreamFinishedHands(
            records_pb2.StreamFinishedHandsRequest(with_records=True)
        )
        async for answer in stream:
            if not answer.HasField("hand"):
                break
            hands.append(answer.hand)
            if len(hands) == 1:
                break
        stream.cancel()
    return audit, chain, hands


async def test_who_plays_is_not_erased_and_nothing_has_changed(tmp_path: Path) -> None:
    async with whole(tmp_path, POOLS) as suite:
        await suite.fund()
        await suite.queue("ann")
        with pytest.raises(SuiteError) as refused:
            await erase(
                access_to(suite),
                Console(quiet=True),
                "ann",
                "erase-1",
                [],
                keep_texts=False,
                reason="case 81",
            )
        assert "in a queue already" in refused.value.message
        assert "--request-id erase-1" in refused.value.hint
