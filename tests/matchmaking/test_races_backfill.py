"""The races of `test_races` at tables that players leave, and that are filled up from the queue."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fangcheng.table.v1 import operators_pb2, table_pb2
from fangcheng_kit.errors import ServiceError
from tests.matchmaking.test_races import WatchedTables, run_races

POOLS = """
pools:
  - id: silver
    name: for silver
    rules: {id: shandong}
    stakes: [{currency: silver, per_unit: 10, buy_in: 1000}]
    most_party: 4
    timing: {vacancy_ms: 60000}
    rematch_after_ms: 0
    backfill: true
  - id: free
    name: for nothing
    rules: {id: shandong}
    most_party: 4
    timing: {vacancy_ms: 60000}
    rematch_after_ms: 0
    backfill: true
"""


class LeftTables(WatchedTables):
    """Tables that players leave; now and then an operator is quicker than the queue."""

    longest_seconds = 3.0

    def create(self, request: table_pb2.CreateTableRequest) -> table_pb2.CreateTableResponse:
        answer = super().create(request)
        if not answer.replayed:
            for seat in request.seats:
                if self._chance.random() < 0.7:
                    self._leaves_soon(answer.table.table_id, seat.player_id)
        return answer

    def seat(self, request: operators_pb2.SeatPlayerRequest) -> operators_pb2.SeatPlayerResponse:
        sit = self.players
        try:
            answer = super().seat(request)
        except ServiceError as error:
            self.ends[error.reason] += 1
            raise
        if not answer.replayed:
            self.ends["backfilled"] += 1
            staked = bool(self.requests[request.table_id].stakes)
            self.check(request.player, sit, is_staked=staked)
            if self._chance.random() < 0.5:
                self._leaves_soon(request.table_id, request.player.player_id)
        return answer

    def _leaves_soon(self, table_id: str, player_id: str) -> None:
        seconds = self._chance.uniform(0, 2)
        asyncio.get_running_loop().call_later(seconds, self._leaves, table_id, player_id)

    def _leaves(self, table_id: str, player_id: str) -> None:
        if self.tables[table_id] not in self.open_tables:
            return
        seat = self.vacate(table_id, player_id)
        if self._chance.random() < 0.6:
            seconds = self._chance.uniform(0.1, 0.4)  # about as long as the queue needs
            asyncio.get_running_loop().call_later(seconds, self._operator, table_id, seat)

    def _operator(self, table_id: str, seat: int) -> None:
        table = self.tables[table_id]
        if table in self.open_tables and not table.seats[seat].player_id:
            self.fill(table_id, seat, f"stranger {len(self.sat[table_id])}")


@pytest.mark.parametrize(("engine", "players"), [("sqlite", 25), ("postgres", 10)])
def test_races_for_seats_that_are_left_on_a_fake_clock(
    engine: str, players: int, tmp_path: Path
) -> None:
    ends = run_races(engine, players, tmp_path, POOLS, LeftTables)
    assert {"assigned", "left", "backfilled"} <= ends.keys(), "not every kind of race was run"
    if players > 20:
        assert ends["SEAT_TAKEN"] + ends["TABLE_CLOSED"] > 0, "nobody came too late"
