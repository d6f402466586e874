"""Two thousand hands of bots over the real services, each looked through from its record."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fangcheng.table.v1 import records_pb2, records_pb2_grpc, table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client.view import TableView
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_suite.bots.crowd import Bank, make_bots
from fangcheng_suite.journals import journal_keys_of
from fangcheng_suite.pools import DEMO_HANDS, demo_pool
from fangcheng_suite.verify import verify
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.state import TableState

from .running import running

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3_600)]

HANDS_OF_A_TABLE = DEMO_HANDS
PLAYERS = 12
ROUNDS = 84
"""12 players at 4 a table, 84 times, each time another rule set: 252 tables, 2,016 hands."""


async def test_two_thousand_hands_are_sound(tmp_path: Path) -> None:
    with running(tmp_path, "--tables", "0") as suite:
        access = suite.access
        bank = Bank(access)
        tables: set[str] = set()

        # Beyond the numbers of the suite's own bots.
        bots = make_bots(range(100, 100 + PLAYERS), access)
        for bot in bots:
            bot.on_seated = lambda place: tables.add(place.table_id)
        for turn in range(ROUNDS):
            pool = demo_pool(RULE_SETS[turn % len(RULE_SETS)])
            for bot in bots:
                await bank.give(bot.player_id)
            async with asyncio.TaskGroup() as group:
                for bot in bots:
                    group.create_task(bot.play(pool))

        assert len(tables) == PLAYERS * ROUNDS // 4
        wins = hands = 0
        standings: dict[str, list[int]] = {}
        async with access.channel("table") as channel:
            stub = table_pb2_grpc.TableServiceStub(channel)
            keeper = records_pb2_grpc.TableRecordServiceStub(channel)
            for table_id in sorted(tables):
                table = (await stub.GetTable(table_pb2.GetTableRequest(table_id=table_id))).table
                assert table.closed_reason == "hands_played"
                standings[table_id] = [seat.standing for seat in table.seats]
                for number in range(1, HANDS_OF_A_TABLE + 1):
                    request = records_pb2.GetHandRecordRequest(
                        table_id=table_id, hand_number=number
                    )
                    record = (await keeper.GetHandRecord(request)).record
                    verify(record, table.commitment)
                    wins += sound(record)
                    hands += 1
        assert hands == len(tables) * HANDS_OF_A_TABLE
        assert wins > 0.4 * hands

        async with access.channel("wallet") as channel:
            ledger = wallet_pb2_grpc.WalletServiceStub(channel)
            audit = await ledger.AuditLedger(wallet_pb2.AuditLedgerRequest())
        assert audit.balanced, audit.findings
        assert audit.settlements == hands
        assert not any(audit.sums.values())
        assert not any(audit.held.values())

    # What the service told as it played is what its journal folds to.
    journal = SqliteJournal(suite.state / "table.db", keys=journal_keys_of(suite.state))
    try:
        for table_id, told in standings.items():
            records = await journal.read(table_id)
            state = TableState.replay(record.event for record in records)
            assert state.done
            assert [seat.standing for seat in state.seats] == told
    finally:
        await journal.close()


def sound(record: records_pb2.HandRecord) -> bool:
    """Check a hand's record event by event; whether it was won."""
    view = TableView()
    ended = None
    for event in record.events:
        view.apply(event)
        kind = event.WhichOneof("kind")
        if kind in ("dealt", "drawn", "discarded", "melded"):
            seen = view.seen()
            flowers = sum(len(seat.flowers) for seat in view.seats)
            taken = sum(seen.values()) - len(view.turned) + flowers  # a treasure stays on the wall
            assert taken + view.wall_tiles == len(record.wall)
            assert max(seen.values()) <= 4
            for seat in view.seats:
                assert len(seat.concealed) + 3 * len(seat.melds) in (13, 14)
        elif kind == "hand_ended":
            ended = event.hand_ended
    assert ended is not None
    house = sum(
        transfer.amount * (transfer.HasField("from_seat") - transfer.HasField("to_seat"))
        for transfer in ended.score.transfers
    )
    assert sum(ended.net) + house == 0
    return ended.hand.HasField("win")
