"""A client of an earlier release: its stubs and gRPC, and nothing of ours that is newer.

Four players play one hand at a table for points, each on a stream of its own; one of them waits in
a queue before that, with silver set aside; the operator asks what a hand is worth; afterwards each
reads what it was paid. Only what the oldest release that we keep knew is called here.

    python old_client.py < {"targets": {service: address}, "tokens": {subject: token}}

The operator's token stands first. What was seen is told on standard output, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from typing import Any

import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import state_pb2, table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc

CALL_SECONDS = 60.0


def main() -> None:
    given = json.load(sys.stdin)
    json.dump(asyncio.run(Client(given["targets"], given["tokens"]).run()), sys.stdout)


class Client:
    """All that it needs to call: addresses and tokens."""

    def __init__(self, targets: dict[str, str], tokens: dict[str, str]) -> None:
        self.targets, self.tokens = targets, tokens
        self.operator, *self.players = tokens

    def channel(self, service: str) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(self.targets[service])

    def as_(self, subject: str) -> dict[str, Any]:
        return {
            "metadata": [("authorization", f"Bearer {self.tokens[subject]}")],
            "timeout": CALL_SECONDS,
        }

    async def run(self) -> dict[str, Any]:
        async with (
            self.channel("matchmaking") as queues,
            self.channel("table") as tables,
            self.channel("wallet") as wallets,
            self.channel("evaluation") as evaluators,
        ):
            wallet = wallet_pb2_grpc.WalletServiceStub(wallets)
            for player in self.players:
                request = wallet_pb2.OpenWalletRequest(player_id=player_id(player))
                await wallet.OpenWallet(request, **self.as_(self.operator))
            deposit = wallet_pb2.DepositRequest(
                request_id=uuid.uuid4().hex,
                player_id=player_id(self.players[0]),
                currency="silver",
                amount=100_000,
            )
            await wallet.Deposit(deposit, **self.as_(self.operator))
            left = await self.queue(matchmaking_pb2_grpc.MatchmakingServiceStub(queues))
            shanten = await self.analyze(evaluation_pb2_grpc.EvaluationServiceStub(evaluators))
            table = table_pb2_grpc.TableServiceStub(tables)
            table_id = await self.create(table)
            seats = await asyncio.gather(
                *(self.play(table, player, table_id) for player in self.players)
            )
            entries = [
                await wallet.ListEntries(
                    wallet_pb2.ListEntriesRequest(currency="points"), **self.as_(player)
                )
                for player in self.players
            ]
        return {
            "left": left,
            "shanten": shanten,
            "table_id": table_id,
            "seats": seats,
            "entries": [sum(entry.amount for entry in page.entries) for page in entries],
        }

    async def queue(self, stub: Any) -> int:
        """Queue, be told of the ticket by a stream, and leave; the state of the ticket then."""
        caller = self.as_(self.players[0])
        pools = (await stub.ListPools(matchmaking_pb2.ListPoolsRequest(), **caller)).pools
        pool_id = next(pool.pool_id for pool in pools if pool.pool_id.endswith("-demo"))
        request = matchmaking_pb2.JoinQueueRequest(request_id=uuid.uuid4().hex, pool_id=pool_id)
        ticket_id = (await stub.JoinQueue(request, **caller)).ticket.ticket_id
        watched = stub.WatchTicket(
            matchmaking_pb2.WatchTicketRequest(ticket_id=ticket_id), **caller
        )
        async for told in watched:
            assert told.ticket.ticket_id == ticket_id
            break
        watched.cancel()
        leave = matchmaking_pb2.LeaveQueueRequest(ticket_id=ticket_id)
        return int((await stub.LeaveQueue(leave, **caller)).ticket.state)

    async def analyze(self, stub: Any) -> int:
        """What the evaluator says of a hand that waits for a tile: 0."""
        request = evaluation_pb2.AnalyzeRequest(
            rules=rules_pb2.RuleSetChoice(id="baishan_kele"),
            hand=evaluation_pb2.Hand(
                concealed=[11, 12, 13, 24, 25, 26, 37, 38, 39, 41, 41, 42, 42]
            ),
            progress=True,
        )
        answer = await stub.Analyze(request, **self.as_(self.operator))
        return int(answer.analysis.shanten)

    async def create(self, stub: Any) -> str:
        request = table_pb2.CreateTableRequest(
            request_id=uuid.uuid4().hex,
            rules=rules_pb2.RuleSetChoice(id="baishan_kele"),
            seats=[
                table_pb2.SeatAssignment(player_id=player_id(player)) for player in self.players
            ],
            stakes=[state_pb2.Stake(currency="points", book="baishan_kele", per_unit=1)],
            hands=1,
            timing=state_pb2.Timing(claim_window_ms=0, between_hands_ms=0),
        )
        answer = await stub.CreateTable(request, **self.as_(self.operator))
        return str(answer.table.table_id)

    async def play(self, stub: Any, player: str, table_id: str) -> dict[str, Any]:
        """Take the first of what may be answered, until the table has closed."""
        seen: dict[str, Any] = {"numbers": [], "answered": 0, "net": None, "settled": False}
        caller = self.as_(player)
        request = table_pb2.AttendRequest(table_id=table_id)
        async for message in stub.Attend(request, metadata=caller["metadata"]):
            if not message.HasField("event"):
                continue
            event = message.event
            seen["numbers"].append(event.number)
            if event.HasField("prompt"):
                act = table_pb2.ActRequest(
                    table_id=table_id,
                    decision_id=event.prompt.decision_id,
                    action=event.prompt.actions[0],
                )
                try:
                    await stub.Act(act, **caller)
                except grpc.aio.AioRpcError as error:
                    if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                        raise  # otherwise another's claim came first
                else:
                    seen["answered"] += 1
            elif event.HasField("hand_ended"):
                seen["net"] = list(event.hand_ended.net)
            elif event.HasField("hand_settled"):
                seen["settled"] = True
            elif event.HasField("table_closed"):
                break
        return seen


def player_id(subject: str) -> str:
    return subject.removeprefix("player:")


if __name__ == "__main__":
    main()
