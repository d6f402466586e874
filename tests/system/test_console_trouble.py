"""Acts when something fails in the middle: an answer that is lost, a log that cannot be written."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest
import pytest_asyncio

from fangcheng_console.oplog import Target
from fangcheng_console.sqlite import open_sqlite
from tests.console.operating import POOLS, Office, opened, reason, said, signed_in
from tests.console.world import Page
from tests.system.cutting import CuttingProxy
from tests.system.processes import Processes, Service

pytestmark = [pytest.mark.system, pytest.mark.asyncio(loop_scope="module")]


class Line:
    """What happens to an answer of the wallet: `at_answer` says whether it is lost."""

    def __init__(self) -> None:
        self.at_answer: Callable[[], bool] = lambda: False


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("office")


@pytest.fixture(scope="module")
def uncut() -> Line:
    return Line()


@pytest.fixture
def line(uncut: Line) -> Iterator[Line]:
    yield uncut
    uncut.at_answer = lambda: False


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(folder: Path, uncut: Line) -> AsyncIterator[Office]:
    """Both ends of the line that is cut are processes of their own."""
    suite = Processes(folder, POOLS)
    targets = {name.upper(): service.address for name, service in suite.services.items()}
    proxy = CuttingProxy(targets["WALLET"], lambda: uncut.at_answer())
    async with suite.running(), proxy.running(), AsyncExitStack() as stack:
        targets["WALLET"] = proxy.address
        console = Service(
            *(folder, "console"),
            WEB_LISTEN="127.0.0.1:0",
            DATABASE=str(folder / "console.db"),
            CALL_TIMEOUT_SECONDS="5",
            **targets,
        )
        stack.push_async_callback(console.kill)
        await console.start()
        yield await opened(stack, suite, Page(f"http://{console.listens('web')}"))


@pytest.fixture
def writer(folder: Path) -> Iterator[sqlite3.Connection]:
    """Another process at the log's file."""
    path = folder / "console.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        yield writer


def once_it_is_asked_for(writer: sqlite3.Connection, request_id: str) -> Callable[[], bool]:
    """Answers are lost from the call of this act on."""
    asked = "SELECT 1 FROM log WHERE kind = 'act' AND request_id = ?"
    return lambda: bool(writer.execute(asked, [request_id]).fetchall())


async def test_an_act_whose_answer_is_lost_is_unknown_and_can_be_asked_for_again(
    desk: Office, line: Line, writer: sqlite3.Connection
) -> None:
    ann, *_ = await desk.players()
    body = desk.body(await desk.preview("freeze_player", player_id=ann))
    line.at_answer = once_it_is_asked_for(writer, body["request_id"])
    for _ in range(2):
        assert reason(await desk.operator.post("/api/operate", body)) == (503, "OUTCOME_UNKNOWN")
    assert await desk.frozen(ann)  # it was done all the same
    line.at_answer = lambda: False
    story = await desk.story(body["request_id"])
    assert story is not None
    assert story["status"] == "unknown"
    assert [(one["kind"], one["status"]) for one in story["later"]] == [
        ("outcome", "unknown"), ("repeat", None), ("outcome", "unknown"),
    ]  # fmt: skip
    open_ones = (await desk.operator.get("/api/log?status=unknown")).json()["stories"]
    assert [one["request_id"] for one in open_ones] == [body["request_id"]]

    # Somebody else finds it on the page of the log.
    other = await signed_in(desk.stack, desk.page, "operator:lin")
    repeated = await other.post("/api/operate/repeat", {"request_id": body["request_id"]})
    assert repeated.status_code == 200, repeated.text
    assert repeated.json()["replayed"] is True
    assert said(repeated.json())["frozen"] == {"player": ann}
    story = await desk.story(body["request_id"])
    assert story is not None
    assert (story["person"], story["status"]) == ("operator:mei", "done")
    assert [(one["kind"], one["person"]) for one in story["later"][-2:]] == [
        ("repeat", "operator:lin"), ("outcome", "operator:lin"),
    ]  # fmt: skip
    again = await other.post("/api/operate/repeat", {"request_id": body["request_id"]})
    assert again.json() == repeated.json()
    assert (await desk.story(body["request_id"])) == story
    asked = await other.post("/api/operate/repeat", {"request_id": "never-was-one"})
    assert reason(asked) == (404, "UNKNOWN_ACT")


async def test_while_a_service_is_away_nothing_is_begun(desk: Office, line: Line) -> None:
    ann, *_ = await desk.players()
    body = desk.body(await desk.preview("freeze_player", player_id=ann))
    line.at_answer = lambda: True
    assert reason(await desk.operator.post("/api/operate", body)) == (503, "UNAVAILABLE")
    line.at_answer = lambda: False
    assert await desk.story(body["request_id"]) is None
    assert not await desk.frozen(ann)


async def test_where_the_log_cannot_be_written_nothing_is_done(
    desk: Office, writer: sqlite3.Connection
) -> None:
    ann, *_ = await desk.players()
    body = desk.body(await desk.preview("freeze_player", player_id=ann))
    writer.execute("BEGIN IMMEDIATE")
    assert reason(await desk.operator.post("/api/operate", body)) == (503, "LOG_UNAVAILABLE")
    assert not await desk.frozen(ann)
    writer.execute("ROLLBACK")
    assert await desk.story(body["request_id"]) is None
    assert (await desk.operator.post("/api/operate", body)).status_code == 200
    assert await desk.frozen(ann)


async def test_an_outcome_that_could_not_be_written_is_told_and_found_out_again(
    desk: Office, line: Line, writer: sqlite3.Connection
) -> None:
    ann, *_ = await desk.players()
    body = desk.body(await desk.preview("freeze_player", player_id=ann))

    begun = once_it_is_asked_for(writer, body["request_id"])

    def lock() -> bool:
        if not writer.in_transaction and begun():
            writer.execute("BEGIN IMMEDIATE")
        return False

    line.at_answer = lock
    answer = await desk.operator.post("/api/operate", body)
    line.at_answer = lambda: False
    assert (answer.json()["status"], answer.json()["is_logged"]) == ("done", False)
    writer.execute("ROLLBACK")
    story = await desk.story(body["request_id"])
    assert story is not None
    assert (story["status"], story["later"]) == ("unknown", [])
    repeated = await desk.operator.post("/api/operate/repeat", {"request_id": body["request_id"]})
    assert (repeated.json()["is_logged"], repeated.json()["replayed"]) == (True, True)


async def test_a_table_is_closed_while_the_wallet_is_away(desk: Office, line: Line) -> None:
    table_id, _ = await desk.table()
    line.at_answer = lambda: True
    preview = await desk.preview("close_table", table_id=table_id)
    assert said(preview, "warnings") == {"away_wallet": {}}
    assert "holds_released" not in said(preview)
    assert preview["currencies"] == []
    answer = await desk.act(preview)
    assert answer.status_code == 200, answer.text
    await desk.has_closed(table_id, "closed")


async def test_a_reveal_that_was_cut_short_is_not_asked_for_again(
    desk: Office, folder: Path
) -> None:
    log = await open_sqlite(folder / "console.db")
    target = Target(table_id="t1")
    await log.begin(
        "operator:mei", "reveal", target, request_id="console/reveal-1", reason="collusion?"
    )
    await log.close()
    repeated = await desk.operator.post("/api/operate/repeat", {"request_id": "console/reveal-1"})
    assert reason(repeated) == (400, "INVALID_REQUEST")
    story = await desk.story("console/reveal-1")
    assert story is not None
    assert (story["status"], story["later"]) == ("unknown", [])
    # It is no matter of the page of acts.
    asked_for = await desk.operator.get("/api/log?status=unknown&but=reveal")
    assert asked_for.json()["stories"] == []
