"""A whole table is played by keys, at the real services; the picture fits at every step of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import grpc.aio
import pytest

from fangcheng.table.v1 import events_pb2
from fangcheng_client.view import TableView
from fangcheng_suite.play import board, telling
from fangcheng_suite.play.app import PlayApp
from fangcheng_suite.play.screens import Card
from fangcheng_suite.play.session import Way
from fangcheng_suite.play.tongue import Tongue

from .test_play_keys import shown, until
from .whole import PLAYERS, Suite, whole

SIZES = ((80, 24), (100, 30), (140, 45))
POOLS = """
pools:
  - id: silver
    name: a hand
    rules: {id: shandong}
    hands: 1
    timing: {claim_window_ms: 0, between_hands_ms: 0}
"""


class Seat:
    """The way of the player who sits at the screen."""

    has_hints = True

    def __init__(self, suite: Suite) -> None:
        self._suite = suite

    def channel(self, service: str, target: str | None = None) -> grpc.aio.Channel:
        return self._suite.channel(service, f"player:{PLAYERS[0]}")


class Looked(PlayApp):
    """Looks at the picture after every event, at one size and in one language after the other."""

    looks = 0

    def happened(self, event: events_pb2.TableEvent, view: TableView) -> None:
        super().happened(event, view)
        self.looks += 1
        self.scene.say = Tongue(chinese=self.looks % 2 == 0)
        columns, rows = SIZES[self.looks % len(SIZES)]
        lines = board.drawn(self.scene, columns, rows)
        assert [line.cell_len for line in lines] == [columns] * rows, event
        for line in telling.result(view, self.scene.say, 72):
            assert line.cell_len <= 72, line.plain
        self.scene.say = Tongue()


@pytest.mark.timeout(100)
async def test_a_table_is_played_by_keys_from_the_queue_to_the_ranking(tmp_path: Path) -> None:
    async with whole(tmp_path, POOLS) as suite:

        async def open_way(tell: Callable[[str, str], None]) -> Way:
            return Seat(suite)

        async def other(player: str) -> None:
            table_id = await suite.seat(player, await suite.queue(player))
            await suite.play(player, table_id)

        app = Looked(open_way, "silver", Tongue(), name="Ann")
        others = asyncio.gather(*map(other, PLAYERS[1:]))
        async with app.run_test(size=(80, 24)) as pilot:
            hinted = False
            while app.error is None and "The table has closed" not in shown(app):
                await pilot.pause(0.005)
                offer = None if app.scene.sent else app.scene.offer
                if isinstance(app.screen, Card):
                    if "This hand" in shown(app):
                        await pilot.press("enter")
                elif offer is not None and offer.discards:
                    if not hinted:
                        await pilot.press("h")
                        await until(pilot, lambda: "Try: " in shown(app))
                        hinted = True
                    wins = [one for one in offer.calls if one.action.kind == "win"]
                    app.press("w" if wins else "enter")
                elif offer is not None:
                    app.press("w" if offer.call("w") else "x")
            assert app.error is None
            assert "all its hands are played" in shown(app)
            assert app.scene.view.closed is not None
            await pilot.press("q")
        await app.ended()
        await others
    assert hinted
    assert app.looks > 60
