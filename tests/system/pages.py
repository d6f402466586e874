"""Where the console's pages are at a suite that plays, and what they show when they are there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

from fangcheng.table.v1.records_pb2 import ListHandRecordsRequest
from fangcheng.table.v1.records_pb2_grpc import TableRecordServiceStub
from fangcheng.table.v1.state_pb2 import TABLE_PHASE_PLAYING
from fangcheng.table.v1.table_pb2 import ListTablesRequest
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng_kit.tokens import mint_token

from .running import Running

READY: Mapping[str, str] = {
    "lobby": "a[href^='/tables/']",
    "table": "[data-number] [data-tile]",
    "hands": "a[href^='/replay/']",
    "replay": "[data-tile]",
    "link": "[data-tile]",
    "try": "[data-tile]",
    "leaderboards": "main h1",
    "wallet": "main h1",
    "settlement": "main h1",
    "health": "[data-process]",
    "operate": "main h1",
    "log": "main h1",
    "sign-in": "#token",
}
"""Every page by its name, and what it has when it shows what it is for."""


@dataclass(frozen=True)
class Places:
    """What to look at in a suite."""

    table_id: str
    """A table that is played."""
    hand: tuple[str, int]
    """A hand that was won: its table and number."""
    player_id: str
    """Who sat there."""

    def path(self, name: str) -> str:
        """The path of a page; not of `link`, which somebody must make first."""
        table_id, number = self.hand
        return {
            "lobby": "/",
            "table": f"/tables/{self.table_id}",
            "replay": f"/replay/{table_id}/{number}",
            "leaderboards": "/wallet",
            "wallet": f"/wallet/{self.player_id}",
            "settlement": f"/settlements/{table_id}/{number}",
        }.get(name, f"/{name}")


async def places(suite: Running) -> Places:
    """Wait until a hand has been won, and find a table that is played."""
    async with suite.access.channel("table") as channel:
        records: Any = TableRecordServiceStub(channel)
        tables: Any = TableServiceStub(channel)
        while True:
            answer = await records.ListHandRecords(ListHandRecordsRequest())
            won = [hand for hand in answer.hands if hand.ending == "win"]
            listed = await tables.ListTables(ListTablesRequest())
            played = [one for one in listed.tables if one.phase == TABLE_PHASE_PLAYING]
            if won and played:
                hand = (won[0].table_id, won[0].hand_number)
                return Places(played[0].table_id, hand, won[0].player_ids[0])
            await asyncio.sleep(0.1)


def token(suite: Running, subject: str) -> str:
    """Signs somebody in."""
    return mint_token(suite.suite.key, subject, ttl_seconds=3_600)


def link(page: Page, places: Places) -> str:
    """The path of a link to the hand, made by the operator who has signed in to this page."""
    made: str = page.evaluate(
        """async (path) => {
          const answer = await fetch(path, {
            method: "POST",
            headers: {"content-type": "application/json", "x-fangcheng-console": "1"},
            body: JSON.stringify({reason: "a complaint", case_id: "CS-1207"}),
          });
          return (await answer.json()).path;
        }""",
        f"/api{places.path('replay')}/links",
    )
    return made


def tiles_of(state: Mapping[str, Any]) -> list[list[Any]]:
    """Every tile that lies on a table: its zone, its seat, its place there and what it is."""
    lying: list[list[Any]] = [
        ["treasure", "", str(index), tile] for index, tile in enumerate(state["turned"])
    ]
    for number, seat in enumerate(state["seats"]):
        concealed = list(seat["concealed"])
        if seat["drawn"] is not None and concealed:
            lying.append(["drawn", str(number), "0", concealed.pop()])
        zones = (("concealed", concealed), ("river", seat["river"]), ("flower", seat["flowers"]))
        for zone, row in zones:
            lying += [[zone, str(number), str(index), tile] for index, tile in enumerate(row)]
        for place, meld in enumerate(seat["melds"]):
            lying += [
                ["meld", str(number), f"{place}.{index}", tile]
                for index, tile in enumerate(meld["tiles"])
            ]
    return sorted(lying)
