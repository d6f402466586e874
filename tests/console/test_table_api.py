"""The streams of the table page over the wire: what everybody sees, and what is revealed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_client import watch
from fangcheng_console.oplog import Sought
from fangcheng_console.shown import Shown
from fangcheng_console.sqlite import open_sqlite
from fangcheng_kit.tokens import mint_token
from tests.console import world as pages
from tests.console.world import Browser
from tests.table.world import DEV_KEY, PLAYERS, Player, World, play_all, request, until, world
from tests.table.world import simple as cautious

Message = dict[str, Any]


@asynccontextmanager
async def both(folder: Path, **settings: Any) -> AsyncIterator[tuple[World, pages.World]]:
    """A table service, and a console in front of it."""
    async with (
        world(folder, **settings) as tables,
        pages.console(folder, dev_key=DEV_KEY, table=tables.address) as console,
    ):
        yield tables, console


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[World, pages.World]]:
    async with both(tmp_path) as it:
        yield it


@asynccontextmanager
async def person(console: pages.World, subject: str) -> AsyncIterator[Browser]:
    async with console.browser() as browser:
        token = mint_token(DEV_KEY, subject)
        answer = await browser.post("/api/session", {"token": token})
        assert answer.status_code == 200, answer.text
        yield browser


class Page:
    """Follows a stream as the page does, and keeps everything that it was sent."""

    def __init__(self) -> None:
        self.text = ""
        self.messages: list[Message] = []
        self.status = 0

    @property
    def last(self) -> Message:
        return self.messages[-1]

    def number(self) -> int:
        """Of the newest event that the page knows."""
        return int(self.last["state"]["number"]) if self.messages else 0

    async def read(self, browser: Browser, path: str) -> None:
        async with browser.client.stream("GET", path) as answer:
            self.status = answer.status_code
            async for line in answer.aiter_lines():
                self.text += line
                if line.startswith("data: "):
                    self.messages.append(json.loads(line.removeprefix("data: ")))


@asynccontextmanager
async def following(browser: Browser, path: str) -> AsyncIterator[Page]:
    """A page that shows the stream, from its first picture on."""
    page = Page()
    task = asyncio.create_task(page.read(browser, path))
    try:
        await until(lambda: bool(page.messages) or task.done())
        yield page
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def made(tables: World, *, hands: int = 2, window_ms: int = 25, **more: Any) -> str:
    """A table where each discard takes a moment, so that pages are shown what lies between."""
    timing = state_pb2.Timing(claim_window_ms=window_ms, between_hands_ms=300)
    message = request(hands=hands, **more)
    message.timing.CopyFrom(timing)
    answer = await tables.stub("operator").CreateTable(message)
    return str(answer.table.table_id)


def eager(prompt: events_pb2.Prompt) -> state_pb2.Action:
    """Claims what it can, so that melds lie on the table."""
    for kind in ("win", "kong", "pong", "chi"):
        for action in prompt.actions:
            if action.kind == kind:
                return action
    return cautious(prompt)


async def play(tables: World, table_id: str) -> None:
    """All four, until the table has closed."""
    async with asyncio.TaskGroup() as group:
        for name in PLAYERS:
            group.create_task(Player(tables, name, eager).play(table_id))


async def spectated(tables: World, table_id: str) -> dict[int, Message]:
    """What Watch adds up to after each of its events."""
    shown, states = Shown(), {}
    async for event in watch(tables.channel("player:eve"), table_id):
        shown.apply(event)
        states[event.number] = timeless(shown.state())
    return states


def timeless(state: Message) -> Message:
    made: Message = json.loads(json.dumps(state))
    del made["clock"]
    return made


def hidden(state: Message) -> bool:
    """No tile shows that a spectator must not see."""
    if state["ended"] is not None:
        return True
    return not any(
        any(seat["concealed"]) or seat["drawn"]
        for seat in state["seats"]
        if seat["declared"] != "lou_open"
    )


async def test_every_page_shows_exactly_what_watch_sends_and_nothing_hidden(served):
    tables, console = served
    table_id = await made(tables)
    async with asyncio.TaskGroup() as group, person(console, "viewer:wang") as browser:
        watched = group.create_task(spectated(tables, table_id))
        async with following(browser, f"/api/tables/{table_id}/events") as page:
            await play(tables, table_id)
            await until(lambda: page.last["stream"]["status"] == "ended")
        states = await watched
    assert len(page.messages) > 20
    versions = [message["version"] for message in page.messages]
    assert versions == sorted(set(versions))
    melds = 0
    for message in page.messages:
        state = message["state"]
        assert timeless(state) == states[state["number"]]
        assert message["revealed"] == 0
        assert state["prompts"] == []
        melds += any(seat["melds"] for seat in state["seats"])
        assert hidden(state)
        for event in message["log"]:
            assert not event.get("drawn", {}).get("tile")
            assert not any(any(hand["tiles"]) for hand in event.get("dealt", {}).get("hands", []))
    assert melds
    assert page.last["state"]["phase"] == "closed"
    assert {message["state"]["hand_number"] for message in page.messages} >= {1, 2}


async def test_an_operator_sees_the_tiles_of_one_hand_and_a_viewer_beside_him_none(
    served, tmp_path
):
    tables, console = served
    table_id = await made(tables, hands=3)
    path = f"/api/tables/{table_id}"
    async with (
        person(console, "operator:mei") as operator,
        person(console, "viewer:wang") as viewer,
        following(viewer, f"{path}/events") as open_page,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(play(tables, table_id))
        await until(lambda: open_page.last["state"]["phase"] == "playing")
        answer = await operator.post(
            f"{path}/revealed", {"reason": "do 1 and 3 play together?", "case_id": "case-81"}
        )
        assert answer.status_code == 200, answer.text
        opened = answer.json()
        events = f"{path}/revealed/{opened['reveal_id']}/events"
        async with following(operator, events) as page:
            await until(lambda: page.last["stream"]["status"] == "ended")
    assert all(message["revealed"] == opened["hand_number"] for message in page.messages)
    hands = [message["state"]["hand_number"] for message in page.messages]
    assert set(hands) == {opened["hand_number"]}
    playing = [
        message["state"] for message in page.messages if message["state"]["phase"] == "playing"
    ]
    assert playing
    for state in playing:
        assert all(tile for seat in state["seats"] for tile in seat["concealed"])
        assert all(seat["drawn"] != 0 for seat in state["seats"])
    for message in open_page.messages:
        assert hidden(message["state"])
    log = await open_sqlite(str(tmp_path / "console.db"))
    [line] = await log.find(Sought(verbs=["reveal"]), 10)
    await log.close()
    assert (line.entry.person, line.entry.target.table_id) == ("operator:mei", table_id)
    assert (line.entry.reason, line.entry.case_id) == ("do 1 and 3 play together?", "case-81")
    assert (line.status, line.later[0].detail) == ("done", {"hand_number": opened["hand_number"]})


def told(answer: Any) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["reason"], error["field"]


async def test_tiles_are_shown_to_the_operator_who_asked_for_them_alone(served):
    tables, console = served
    table_id = await made(tables)
    path = f"/api/tables/{table_id}/revealed"
    async with (
        person(console, "operator:mei") as mei,
        person(console, "operator:lan") as lan,
        person(console, "viewer:wang") as wang,
    ):
        assert told(await wang.post(path, {"reason": "I am curious"}))[:2] == (
            403,
            "OPERATORS_ONLY",
        )
        assert told(await mei.post(path, {"reason": " "})) == (400, "INVALID_REQUEST", "reason")
        assert told(await mei.post(path, {"reason": 7})) == (400, "INVALID_REQUEST", "reason")
        answer = await mei.post(path, {"reason": "two accounts of one player"})
        events = f"{path}/{answer.json()['reveal_id']}/events"
        assert answer.json()["hand_number"] == 1
        assert told(await wang.get(events))[:2] == (403, "OPERATORS_ONLY")
        assert told(await lan.get(events))[:2] == (404, "UNKNOWN_REVEAL")
        other = await made(tables, request_id="r2")
        elsewhere = events.replace(table_id, other)
        assert told(await mei.get(elsewhere))[:2] == (404, "UNKNOWN_REVEAL")
        async with following(mei, events) as page:
            assert page.status == 200


async def test_a_closed_table_is_shown_as_it_ended_and_has_nothing_to_reveal(served):
    tables, console = served
    answer = await tables.stub("operator").CreateTable(request())
    table_id = answer.table.table_id
    await play_all(tables, table_id)
    async with person(console, "operator:mei") as browser:
        path = f"/api/tables/{table_id}"
        about = (await browser.get(path)).json()["table"]
        assert about["phase"] == "closed"
        assert about["closed_reason"] == "hands_played"
        async with following(browser, f"{path}/events") as page:
            await until(lambda: page.last["stream"]["status"] == "ended")
            assert page.last["state"]["closed"]["reason"] == "hands_played"
            assert page.last["state"]["ended"] is not None
        refusal = told(await browser.post(f"{path}/revealed", {"reason": "too late"}))
        assert refusal[:2] == (409, "TABLE_CLOSED")


@pytest.mark.parametrize(
    ("field", "text"),
    [("reason", "a\0b"), ("reason", "x" * 257), ("case_id", "x" * 129), ("case_id", 7)],
)
async def test_what_is_no_reason_is_refused_before_anything_is_written(
    served, field: str, text: object
):
    tables, console = served
    table_id = (await tables.stub("operator").CreateTable(request())).table.table_id
    async with person(console, "operator:mei") as browser:
        body = {"reason": "asked", field: text}
        answer = await browser.post(f"/api/tables/{table_id}/revealed", body)
        assert told(answer)[:2] == (400, "INVALID_REQUEST")
        assert answer.json()["error"]["field"] == field
        log = (await browser.get("/api/log?verb=reveal")).json()
        assert log["stories"] == []


@pytest.mark.parametrize("path", ["", "/events"])
async def test_a_table_that_there_is_not(served, path: str):
    async with person(served[1], "viewer:wang") as browser:
        assert told(await browser.get(f"/api/tables/none{path}"))[:2] == (404, "UNKNOWN_TABLE")
    async with served[1].browser() as nobody:
        assert told(await nobody.get(f"/api/tables/none{path}"))[:2] == (401, "NOT_SIGNED_IN")


async def test_many_pages_are_one_spectator_of_the_table(served):
    tables, console = served
    table_id = await made(tables)
    summaries: list[wire.TableSummary] = []

    async def look() -> None:
        call = tables.stub("operator").WatchTables(wire.WatchTablesRequest())
        async for message in call:
            summaries.extend(message.changes.tables)

    async with asyncio.TaskGroup() as group, person(console, "viewer:wang") as browser:
        looking = group.create_task(look())
        tasks = [
            group.create_task(Page().read(browser, f"/api/tables/{table_id}/events"))
            for _ in range(20)
        ]
        await until(lambda: summaries and summaries[-1].spectators == 1)
        for task in tasks:
            task.cancel()
        await until(lambda: summaries[-1].spectators == 0)
        looking.cancel()
    assert max(summary.spectators for summary in summaries) == 1


async def test_a_table_service_that_goes_is_told_of_and_found_again(tmp_path):
    async with (
        both(tmp_path, heartbeat_seconds=0.1) as (tables, console),
        person(console, "viewer:wang") as browser,
    ):
        table_id = await made(tables, hands=1, window_ms=0)
        tables.more = {**tables.more, "listen": tables.address}
        async with following(browser, f"/api/tables/{table_id}/events") as page:
            await until(lambda: bool(page.messages))
            await tables.stop()
            await until(lambda: page.last["stream"]["status"] == "broken")
            kept = page.last
            assert kept["stream"]["problem"]["message"]
            assert kept["state"]["table_id"] == table_id
            await tables.start()
            # Before anything has happened there.
            await until(lambda: page.last["stream"] == {"status": "live", "problem": None})
            assert page.last["state"]["number"] == kept["state"]["number"]
            await play(tables, table_id)
            await until(lambda: page.last["stream"]["status"] == "ended")
            assert page.last["state"]["phase"] == "closed"
            assert page.last["stream"]["problem"] is None
