"""The list of finished hands: what is asked of the table service, and what the page is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.table.v1 import records_pb2
from fangcheng_console.hands import HANDS_A_PAGE
from tests.table.hands import played_record

from .keeping import Keeping, keeping


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Keeping]:
    async with keeping(tmp_path) as table:
        yield table


async def test_hands_are_listed_with_where_their_replay_is(kept: Keeping) -> None:
    assert kept.world is not None
    record = played_record("shandong", 1)
    hand = kept.keep(record)
    async with kept.world.browser("viewer:wang") as browser:
        told = (await browser.get("/api/hands")).json()
        assert kept.listed == records_pb2.ListHandRecordsRequest(page_size=HANDS_A_PAGE)
        assert told["next_page_token"] == "older"
        (one,) = told["hands"]
        assert f"{one['table_id']}/{one['hand_number']}" == hand
        assert one["player_ids"] == list(record.player_ids)
        assert one["rule_set"] == "shandong"
        assert one["ended_ms"] == record.events[-1].time.ToMilliseconds()

        path = "/api/hands?table=t1&player=ann&rule_set=shandong&page_token=older"
        times = "&since=2026-11-30T18:30:00.000Z&until=2026-12-01T00:00:00%2B08:00"
        assert (await browser.get(path + times)).status_code == 200
        assert kept.listed == records_pb2.ListHandRecordsRequest(
            table_id="t1",
            player_id="ann",
            rule_set="shandong",
            since=Timestamp(seconds=1_796_063_400),
            until=Timestamp(seconds=1_796_054_400),
            page_size=HANDS_A_PAGE,
            page_token="older",
        )
        for wrong in ("yesterday", "2026-11-30T18:30:00", "0000-01-01T00:00:00Z"):
            answer = await browser.get(f"/api/hands?since={wrong}")
            error = answer.json()["error"]
            assert (answer.status_code, error["reason"], error["field"]) == (
                400,
                "INVALID_TIME",
                "since",
            )
    async with kept.world.browser() as stranger:
        assert (await stranger.get("/api/hands")).status_code == 401
