"""Four game clients queue and play through the gateway as it stands, and lose it on the way."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf import json_format
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from fangcheng.table.v1 import events_pb2
from fangcheng_client import TableView
from fangcheng_kit.tokens import mint_token
from fangcheng_suite.bots.crowd import Bank
from tests.gateway.phones import Phone, key_file, phone
from tests.suite.whole import eventually
from tests.table.world import simple

from .running import LONG_SECONDS, Running, environment, free_port

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "gateway"
POOL = "baishan_kele-demo"
AFTER_HAND = "LEAVE_MODE_AFTER_HAND"
EVERY = 9
"""A client loses its connection after so many events."""


@dataclass
class Gateways:
    """Processes of the gateway, one after the other; clients find the newest."""

    suite: Running
    folder: Path
    port: int = 0
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """A new process; it listens where the last one did not."""
        self.port = free_port()
        token = self.folder / "gateway.token"
        token.write_text(mint_token(self.suite.suite.key, "service:gateway", ["act_as"]), "utf-8")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "studio_gateway"),
            cwd=EXAMPLE,
            env=environment(
                GATEWAY_PLAYER_KEY=key_file(self.folder),
                GATEWAY_TOKEN_FILE=str(token),
                GATEWAY_PORT=str(self.port),
                GATEWAY_METRICS_PORT="0",
                GATEWAY_DRAIN_SECONDS="0",
                GATEWAY_TABLE=self.suite.suite.target("table"),
                GATEWAY_MATCHMAKING=self.suite.suite.target("matchmaking"),
            ),
        )

    async def end(self, number: int) -> int:
        """Its exit code after this signal."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(LONG_SECONDS):
            return await self.process.wait()

    @asynccontextmanager
    async def phone(self, player: str) -> AsyncIterator[Phone]:
        """A client's next connection, as soon as it is taken."""
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(LONG_SECONDS):
                while True:
                    with contextlib.suppress(OSError, InvalidHandshake, ConnectionClosed):
                        client = await stack.enter_async_context(phone(self.port, player))
                        break
                    await asyncio.sleep(0.05)
            yield client


async def seated(client: Phone) -> str:
    """Queue, and ask until there is a table."""
    await client.say(id="queue", JoinQueue={"requestId": "q", "poolId": POOL})
    assert (await client.hears())["answer"]["ticket"]["poolId"] == POOL
    while True:
        await client.say(id="where", GetPlayerStatus={})
        status = (await client.hears("answer"))["answer"]
        if status["tableId"]:
            return str(status["tableId"])
        await asyncio.sleep(0.2)


async def played(
    gateways: Gateways, player: str, told: list[events_pb2.TableEvent]
) -> list[tuple[int, str]]:
    """Play to the end of the table, over as many connections as it takes; how those ended that a
    gateway has closed."""
    ends = []
    async with gateways.phone(player) as client:
        table_id = await seated(client)
    while True:
        async with gateways.phone(player) as client:
            try:
                last = told[-1].number if told else 0
                await client.say(attend={"tableId": table_id, "fromNumber": last})
                if await _until_lost(client, table_id, told):
                    return ends
            except ConnectionClosed as closed:
                if closed.rcvd is not None:
                    ends.append((closed.rcvd.code, closed.rcvd.reason))


async def _until_lost(client: Phone, table_id: str, told: list[events_pb2.TableEvent]) -> bool:
    """Play; whether the table has closed. What was not answered is answered again."""
    for event in told[-1:]:
        await _react(client, table_id, event)
    while True:
        frame = await client.hears()
        if "problem" in frame:
            assert frame["problem"]["problem"]["reason"] == "STALE_DECISION", frame
        if "done" in frame:
            return True
        if "event" in frame:
            event = json_format.ParseDict(frame["event"]["event"], events_pb2.TableEvent())
            told.append(event)
            if event.number % EVERY == 0:
                client.socket.transport.abort()
                return False
            await _react(client, table_id, event)


async def _react(client: Phone, table_id: str, event: events_pb2.TableEvent) -> None:
    """What the newest event asks for; twice where the connection was lost after it."""
    if event.HasField("prompt"):
        action = json_format.MessageToDict(simple(event.prompt))
        decision_id = event.prompt.decision_id
        act = {"tableId": table_id, "decisionId": decision_id, "action": action}
        await client.say(id=decision_id, act=act)
    elif event.HasField("hand_ended"):
        await client.say(id="leave", LeaveTable={"tableId": table_id, "mode": AFTER_HAND})


def shown(event: events_pb2.TableEvent, seat: int) -> list[int]:
    """Concealed tiles of other seats that an event of play shows; zeros are hidden."""
    match event.WhichOneof("kind"):
        case "dealt":
            others = [hand for at, hand in enumerate(event.dealt.hands) if at != seat]
            return [tile for hand in others for tile in hand.tiles if tile]
        case "drawn" if event.drawn.seat != seat and event.drawn.tile:
            return [event.drawn.tile]
        case "snapshot":
            hand = event.snapshot.hand
            others = [] if hand.HasField("ended") else list(enumerate(hand.seats))
            return [tile for at, one in others if at != seat for tile in one.concealed if tile]
    return []


async def test_a_hand_is_played_though_clients_and_gateways_are_lost(
    quiet_suite: Running, tmp_path: Path
) -> None:
    players = [f"phone-{number}" for number in range(4)]
    bank = Bank(quiet_suite.access)
    for player in players:
        await bank.give(player)
    told: dict[str, list[events_pb2.TableEvent]] = {player: [] for player in players}
    gateways = Gateways(quiet_suite, tmp_path)
    await gateways.start()
    try:
        playing = asyncio.gather(*(played(gateways, player, told[player]) for player in players))
        for number, after, code in [(signal.SIGKILL, 12, -9), (signal.SIGTERM, 24, 0)]:
            await eventually(
                lambda after=after: len(told[players[0]]) >= after or playing.done(),
                f"{after} events have come",
            )
            assert await gateways.end(number) == code
            await gateways.start()
        async with asyncio.timeout(LONG_SECONDS):
            ends = await playing
    finally:
        await gateways.end(signal.SIGKILL)
    assert (1012, "RESTARTING") in [end for one in ends for end in one]
    standings = []
    for events in told.values():
        assert [event.number for event in events] == [*range(1, len(events) + 1)]
        view = TableView()
        for event in events:
            view.apply(event)
        assert view.closed is not None
        assert view.own_seat is not None
        dealt = next(event.dealt for event in events if event.HasField("dealt"))
        assert all(dealt.hands[view.own_seat].tiles)
        assert [tile for event in events for tile in shown(event, view.own_seat)] == []
        standings.append([seat.standing for seat in view.seats])
    assert standings == [standings[0]] * 4
    assert sum(standings[0]) == 0
