"""The operator log as the page is told it, as a file, and beside the tables' own."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fangcheng.table.v1 import operators_pb2

from .operating import Office, office, reason

pytestmark = pytest.mark.asyncio(loop_scope="module")
FORMULA = '=HYPERLINK("https://evil.example","看")'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    """A log of some acts."""
    async with office(tmp_path_factory.mktemp("office")) as opened:
        ann, bob, *_ = await opened.players()
        freeze = await opened.preview("freeze_player", player_id=ann)
        await opened.act(freeze, reason=FORMULA, case_id="case-1", request_id="freezing-ann")
        bar = await opened.preview("bar_pair", player_id=ann, other_id=bob)
        await opened.act(bar, reason='"both",\nof one phone', request_id="barring-both")
        pause = await opened.preview("pause_pool", pool_id="free")
        await opened.act(pause, reason="午夜维护", request_id="pausing-free")
        yield opened


async def listed(desk: Office, query: str = "") -> list[dict[str, Any]]:
    answer = await desk.operator.get(f"/api/log?but=sign_in{query}")
    assert answer.status_code == 200, answer.text
    stories: list[dict[str, Any]] = answer.json()["stories"]
    return stories


async def test_the_newest_is_first_and_filters_are_applied(desk: Office) -> None:
    stories = await listed(desk)
    acts = ["pausing-free", "barring-both", "freezing-ann"]
    assert [one["request_id"] for one in stories] == acts
    ann = stories[2]["target"]["player_id"]
    assert stories[1]["target"]["player_id"] == ann
    assert [one["verb"] for one in await listed(desk, f"&target={ann}")] == [
        "bar_pair", "freeze_player",
    ]  # fmt: skip
    assert [one["verb"] for one in await listed(desk, "&verb=pause_pool,freeze_player")] == [
        "pause_pool", "freeze_player",
    ]  # fmt: skip
    assert len(await listed(desk, "&person=operator:mei&status=done")) == 3
    assert await listed(desk, "&person=operator:lin") == []
    assert await listed(desk, "&status=unknown") == []
    ms = stories[1]["ms"]
    assert len(await listed(desk, f"&since_ms={stories[0]['ms'] + 1}")) == 0
    assert "pausing-free" not in [
        one["request_id"] for one in await listed(desk, f"&until_ms={ms}")
    ]
    before = await listed(desk, f"&before={stories[0]['number']}")
    assert [one["request_id"] for one in before] == acts[1:]
    notes = (await desk.operator.get("/api/log?verb=sign_in")).json()["stories"]
    assert {(one["person"], one["detail"]["role"]) for one in notes} == {
        ("operator:mei", "operator"), ("viewer:wang", "viewer"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=perhaps", "status"),
        ("since_ms=yesterday", "since_ms"),
        ("until_ms=-1", "until_ms"),
        ("before=99999999999999999999", "before"),
        ("before=%EF%BC%91", "before"),
        (f"before={'0' * 20}{'9' * 30}", "before"),
        (f"since_ms={'0' * 20}{'9' * 30}", "since_ms"),
        ("target=%00", "target"),
        (f"person={'x' * 257}", "person"),
    ],
)
async def test_what_cannot_be_looked_for_is_refused(desk: Office, query: str, field: str) -> None:
    answer = await desk.operator.get(f"/api/log?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == field


async def test_a_hand_that_was_revealed_stands_in_the_log_as_an_act_of_its_own(
    desk: Office,
) -> None:
    table_id, _ = await desk.table()
    body = {"reason": "a player complains", "case_id": "case-9"}
    assert (await desk.operator.post(f"/api/tables/{table_id}/revealed", body)).status_code == 200
    (story,) = await listed(desk, f"&target={table_id}")
    assert (story["verb"], story["status"], story["kind"]) == ("reveal", "done", "act")
    assert story["preview"] is None
    export = await desk.operator.get(f"/api/log/export?format=json&target={table_id}")
    assert export.json() == [story]


async def test_the_log_as_a_table_is_text_whatever_people_wrote(desk: Office) -> None:
    answer = await desk.operator.get("/api/log/export?format=csv&but=sign_in,reveal")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="operator-log.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
    assert [(row["verb"], row["status"], row["person"]) for row in rows] == [
        ("pause_pool", "done", "operator:mei"), ("bar_pair", "done", "operator:mei"),
        ("freeze_player", "done", "operator:mei"),
    ]  # fmt: skip
    assert rows[2]["reason"] == f"'{FORMULA}"
    assert rows[1]["reason"] == '"both",\nof one phone'
    assert rows[0]["reason"] == "午夜维护"
    assert rows[0]["pool_id"] == "free"
    detail = json.loads(rows[0]["detail"])
    assert detail["request"] == {"pool_id": "free"}


async def test_the_log_as_json_is_what_the_page_is_told(desk: Office) -> None:
    answer = await desk.operator.get("/api/log/export?format=json&but=sign_in&verb=pause_pool")
    assert answer.json() == await listed(desk, "&verb=pause_pool")
    assert (await desk.operator.get("/api/log/export?format=json&target=nothing")).json() == []
    assert reason(await desk.operator.get("/api/log/export")) == (400, "INVALID_REQUEST")


async def test_the_table_service_s_own_log_stands_beside_it(desk: Office) -> None:
    table_id, names = await desk.table()
    await desk.stub("operations").RemoveFromTable(
        operators_pb2.RemoveFromTableRequest(
            request_id="past", table_id=table_id, player_id=names[0], reason="by hand"
        )
    )
    done = await desk.act(await desk.preview("close_table", table_id=table_id))
    answer = await desk.operator.get(f"/api/log/tables?table_id={table_id}")
    actions = answer.json()["actions"]
    assert [(one["person"], one["verb"], one["detail"], one["number"]) for one in actions] == [
        ("operator:mei", "close_table", "now", done.json()["number"]),
        ("operator", "remove", names[0], None),
    ]
    assert len((await desk.operator.get("/api/log/tables")).json()["actions"]) >= 2
    wrong = await desk.operator.get("/api/log/tables?page_token=none-of-it")
    assert reason(wrong) == (400, "INVALID_PAGE_TOKEN")
