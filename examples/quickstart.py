"""Four tasks play hands of 金坛; the ledger tells what they came to. Beside `fangcheng up`."""

import asyncio
import subprocess
import uuid
from contextlib import suppress

import grpc

from fangcheng.table.v1 import state_pb2, table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import TableView, attend, connect

TABLE, WALLET = "127.0.0.1:7101", "127.0.0.1:7102"


def token(subject: str) -> str:
    return subprocess.check_output(["fangcheng", "token", subject], text=True).strip()


def worth(action: state_pb2.Action, hand: list[int]) -> int:
    near = sum(max(0, 3 - abs(tile - action.tile)) for tile in hand)  # keeps pairs, neighbours
    return {"win": 100, "pong": 60, "pass": 50, "discard": 40 - near}.get(action.kind, 0)


async def play(player: str, table_id: str) -> None:
    view = TableView()
    async with connect(TABLE, token(f"player:{player}")) as channel:
        async for event in attend(channel, table_id):  # goes on where a connection broke
            view.apply(event)
            if event.HasField("prompt"):  # our turn, or a tile that we may claim
                best = max(event.prompt.actions, key=lambda one: worth(one, view.own.concealed))
                answer = table_pb2.ActRequest(table_id=table_id, action=best)
                answer.decision_id = event.prompt.decision_id
                with suppress(grpc.RpcError):  # STALE_DECISION: another's claim came first
                    await table_pb2_grpc.TableServiceStub(channel).Act(answer)
            elif event.HasField("hand_ended") and view.own_seat == 0:
                print(event.hand_ended.hand.WhichOneof("end"), list(event.hand_ended.net))


async def main() -> None:
    me = token("operator")
    async with connect(TABLE, me) as tables, connect(WALLET, me) as wallets:
        ledger = wallet_pb2_grpc.WalletServiceStub(wallets)
        new = table_pb2.CreateTableRequest(request_id=uuid.uuid4().hex, hands=4)
        new.rules.id = "jintan"
        new.timing.claim_window_ms = new.timing.between_hands_ms = 0  # nobody here thinks
        new.stakes.add(currency="points", book="jintan", per_unit=1)
        for player in ("ming", "lan", "zhu", "ju"):
            await ledger.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player))
            new.seats.add(player_id=player)
        table = (await table_pb2_grpc.TableServiceStub(tables).CreateTable(new)).table
        await asyncio.gather(*(play(seat.player_id, table.table_id) for seat in new.seats))
        for seat in new.seats:
            mine = await ledger.ListEntries(wallet_pb2.ListEntriesRequest(player_id=seat.player_id))
            print(seat.player_id, [(entry.reason, entry.amount) for entry in mine.entries])


asyncio.run(main())
