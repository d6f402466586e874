"""What an operator does at the console, in a real browser, to tables that bots play."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1 import operators_pb2, state_pb2, table_pb2
from fangcheng.table.v1.operators_pb2_grpc import TableOperationsServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_kit.tokens import mint_token

from .browser import Tab, beside, opened
from .cutting import CuttingProxy
from .running import LONG_SECONDS, Running, environment, running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Bots that think for long: a hand lasts for minutes."""
    with running(tmp_path_factory.mktemp("operate"), "--tables", "4", "--think", "4") as started:
        yield started


def sign_in(tab: Tab, suite: Running, subject: str) -> Page:
    tab.sign_in(suite.console, mint_token(suite.suite.key, subject))
    return tab.page


@pytest.fixture
def tab(browser: Browser, suite: Running) -> Iterator[Tab]:
    with opened(browser) as tab:
        sign_in(tab, suite, "operator:mei")
        yield tab


def called(suite: Running, service: str, stub: Any, call: str, request: Any) -> Any:
    """What a call past the console answers, to an operator without a name."""

    async def asked() -> Any:
        async with suite.access.channel(service) as channel:
            return await getattr(stub(channel), call)(request)

    return beside(asked())


def table(suite: Running, table_id: str) -> state_pb2.Table:
    request = table_pb2.GetTableRequest(table_id=table_id)
    found: state_pb2.Table = called(suite, "table", TableServiceStub, "GetTable", request).table
    return found


def is_played(suite: Running, table_id: str) -> bool:
    return table(suite, table_id).phase == state_pb2.TABLE_PHASE_PLAYING


taken: set[str] = set()


def playing(suite: Running, *, again: bool = False) -> str:
    """A table in the middle of a hand, another one each time unless any will do."""
    found: list[str] = []

    def one() -> bool:
        request = table_pb2.ListTablesRequest()
        listed = called(suite, "table", TableServiceStub, "ListTables", request).tables
        found.extend(
            one.table_id
            for one in listed
            if one.phase == state_pb2.TABLE_PHASE_PLAYING and (again or one.table_id not in taken)
        )
        return bool(found)

    until(one, "a table plays")
    taken.add(found[0])
    return found[0]


def actions(suite: Running, table_id: str) -> list[tuple[str, str, str]]:
    """What the table service has noted."""
    request = operators_pb2.ListOperatorActionsRequest(table_id=table_id)
    found = called(suite, "table", TableOperationsServiceStub, "ListOperatorActions", request)
    return [(one.operator, one.verb, one.reason) for one in found.actions]


def dialog_for(page: Page, address: str, table_id: str, button: str) -> Locator:
    """The dialog of an act at a table, with its preview."""
    page.goto(f"{address}/operate")
    page.get_by_label("Table’s id").fill(table_id)
    page.get_by_role("button", name=button, exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    return dialog


def test_a_hand_is_voided_and_stands_in_both_logs(tab: Tab, suite: Running) -> None:
    page, table_id = tab.page, playing(suite)
    hand = table(suite, table_id).hand_number
    dialog = dialog_for(page, suite.console, table_id, "Void hand")
    expect(dialog).to_contain_text(f"Hand {hand} ends at once, undecided")
    expect(dialog.locator("[data-says=wall_left]")).to_contain_text("tiles are left")

    send = dialog.get_by_role("button", name="Void hand")
    send.click()
    expect(dialog.get_by_text("Give a reason.")).to_be_visible()
    expect(dialog.get_by_label("Reason")).to_be_focused()
    dialog.get_by_label("Reason").fill("two seats were cut off")
    dialog.get_by_label("Case").fill("case-7")
    confirm = dialog.get_by_label("cannot be taken back")
    confirm.fill("another")
    send.click()
    expect(dialog.get_by_text(f"That is not {table_id[-6:]}.")).to_be_visible()
    assert actions(suite, table_id) == []
    confirm.fill(table_id[-6:])
    send.click()
    expect(dialog.locator("[data-says=voided]")).to_have_text(
        f"Hand {hand} is void. Nothing was paid."
    )
    assert actions(suite, table_id) == [("operator:mei", "void_hand", "two seats were cut off")]

    dialog.get_by_role("link", name="In the log").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    line = page.locator(".log-lines > li")
    expect(line).to_have_count(1)
    expect(line).to_contain_text("two seats were cut off")
    expect(line).to_have_attribute("data-status", "done")
    line.locator("summary").click()
    expect(line).to_contain_text("operator:mei: done")
    expect(line).to_contain_text("case-7")
    page.get_by_role("tab", name="Table service").click()
    row = page.locator("#log-list tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("two seats were cut off")
    row.get_by_role("button").click()
    expect(page.locator(".log-lines > li")).to_have_count(1)


def test_a_double_click_closes_a_table_once(tab: Tab, suite: Running) -> None:
    page, table_id = tab.page, playing(suite)
    page.goto(f"{suite.console}/tables/{table_id}")
    page.locator(".act-menu summary").click()
    page.get_by_role("button", name="Close table now").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("the club closes")
    dialog.get_by_label("cannot be taken back").fill(table_id[-6:])
    dialog.get_by_role("button", name="Close table now").dblclick()
    expect(dialog.locator("[data-says=closed]")).to_be_visible()
    assert table(suite, table_id).closed_reason == "closed"
    assert actions(suite, table_id) == [("operator:mei", "close_table", "the club closes")]
    page.goto(f"{suite.console}/log?target={table_id}")
    expect(page.locator(".log-lines > li")).to_have_count(1)


def test_what_has_changed_meanwhile_is_shown_again(tab: Tab, suite: Running) -> None:
    page, table_id = tab.page, playing(suite)
    hand = table(suite, table_id).hand_number
    dialog = dialog_for(page, suite.console, table_id, "Void hand")
    dialog.get_by_label("Reason").fill("cut off")
    dialog.get_by_label("cannot be taken back").fill(table_id[-6:])
    past = operators_pb2.VoidHandRequest(
        request_id="past", table_id=table_id, hand_number=hand, reason="by hand"
    )
    called(suite, "table", TableOperationsServiceStub, "VoidHand", past)
    until(lambda: is_played(suite, table_id), "the next hand is played")
    dialog.get_by_role("button", name="Void hand").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Something has changed meanwhile")
    tab.provoked("409")
    expect(dialog.get_by_role("button", name="Void hand")).to_have_count(0)
    dialog.get_by_role("button", name="Look again").click()
    expect(dialog).to_contain_text(f"Hand {hand + 1} ends at once")
    expect(dialog.get_by_label("Reason")).to_have_value("cut off")
    dialog.get_by_role("button", name="Void hand").click()
    expect(dialog.locator("[data-says=voided]")).to_contain_text(f"Hand {hand + 1}")
    assert [reason for _, _, reason in actions(suite, table_id)] == ["cut off", "by hand"]
    # What was done past the console has no line here.
    page.goto(f"{suite.console}/log?tab=tables&target={table_id}")
    rows = page.locator("#log-list tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("by hand")
    expect(rows.nth(1).get_by_role("button")).to_have_count(0)


def test_the_dialog_is_for_the_keyboard_too(tab: Tab, suite: Running) -> None:
    page, table_id = tab.page, playing(suite, again=True)
    before = actions(suite, table_id)
    dialog_for(page, suite.console, table_id, "Close now")
    here = "document.activeElement"
    # Behind the last field comes the browser's own bar, which to the page is its body.
    inside = f"{here}.closest('dialog') !== null || {here} === document.body"
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(inside)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Close now")).to_be_focused()
    assert actions(suite, table_id) == before


def test_a_pool_is_paused_and_resumed(tab: Tab, suite: Running) -> None:
    page = tab.page
    page.goto(f"{suite.console}/operate")
    pool = page.locator("[data-pool]").first
    name = pool.get_attribute("data-pool")
    pool.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("maintenance at four")
    dialog.get_by_label("Reason").press("Enter")
    expect(dialog.locator("[data-says=pool_paused]")).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(pool).to_have_attribute("data-state", "paused")
    expect(pool).to_contain_text("operator:mei: maintenance at four")
    request = matchmaking_pb2.ListPoolsRequest()
    listed = called(suite, "matchmaking", MatchmakingServiceStub, "ListPools", request).pools
    assert [one.pool_id for one in listed if one.paused] == [name]
    pool.get_by_role("button", name="Resume").click()
    dialog.get_by_label("Reason").fill("all is well")
    dialog.get_by_role("button", name="Resume pool").click()
    dialog.get_by_role("button", name="Close").click()
    expect(pool).to_have_attribute("data-state", "on")


def test_a_player_is_frozen_and_a_pair_barred(tab: Tab, suite: Running) -> None:
    page, table_id = tab.page, playing(suite, again=True)
    ann, bob = (seat.player_id for seat in table(suite, table_id).seats[:2])
    page.goto(f"{suite.console}/operate")
    page.get_by_label("Player’s id").fill(ann)
    page.get_by_role("button", name="Look up").click()
    player = page.locator(".operate-player")
    expect(player).to_contain_text(f"{ann} sits at table …{table_id[-6:]}.")
    player.get_by_role("button", name="Freeze").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("under review")
    dialog.get_by_role("button", name="Freeze player").click()
    dialog.get_by_role("button", name="Close").click()
    expect(player.get_by_text("frozen", exact=True)).to_be_visible()
    expect(player).to_contain_text("under review")
    player.get_by_label("Other player").fill(bob)
    player.get_by_role("button", name="Bar pair").click()
    expect(dialog).to_contain_text("They sit at table")
    dialog.get_by_label("Reason").fill("play into each other’s hands")
    dialog.get_by_role("button", name="Bar pair").click()
    dialog.get_by_role("button", name="Close").click()
    expect(player.get_by_role("button", name=f"Unbar {bob}")).to_be_visible()


def test_a_viewer_has_no_button_and_is_refused(browser: Browser, suite: Running) -> None:
    table_id = playing(suite, again=True)
    before = actions(suite, table_id)
    with opened(browser) as tab:
        page = sign_in(tab, suite, "viewer:wang")
        expect(page.get_by_role("link", name="Operate")).to_have_count(0)
        expect(page.get_by_role("link", name="Log", exact=True)).to_have_count(0)
        for path in ("/operate", "/log"):
            page.goto(suite.console + path)
            expect(page.get_by_text("This page is for operators")).to_be_visible()
            expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
        for method, path in (
            ("POST", "/api/operate"),
            ("GET", f"/api/operate/preview?verb=void_hand&table_id={table_id}"),
            ("GET", "/api/log"),
        ):
            status = page.evaluate(
                """async ([method, path]) => (await fetch(path, {
                    method,
                    headers: {"content-type": "application/json", "x-fangcheng-console": "1"},
                    body: method === "POST" ? "{}" : undefined,
                })).status""",
                [method, path],
            )
            assert status == 403
            tab.provoked("403")
        page.goto(f"{suite.console}/tables/{table_id}")
        page.locator("svg.felt").wait_for()
        expect(page.locator(".act-menu")).to_have_count(0)
    assert actions(suite, table_id) == before


async def killed_in_the_middle(suite: Running, folder: Path) -> None:
    """An operator freezes a player; the console is killed before the wallet's answer is there."""
    log = sqlite3.connect(folder / "console.db", isolation_level=None, check_same_thread=False)
    consoles: list[asyncio.subprocess.Process] = []

    def kill() -> bool:
        """Once the act is written: the wallet has done it, and its answer is on its way."""
        written = log.execute("SELECT 1 FROM sqlite_schema WHERE name = 'log'").fetchall()
        if written and log.execute("SELECT 1 FROM log WHERE kind = 'act'").fetchall():
            consoles[0].kill()
        return False

    async def console(wallet: str) -> str:
        """Start a console on this log; its address."""
        ports = folder / "console.json"
        ports.unlink(missing_ok=True)
        more = {
            "FANGCHENG_DEV_KEY": suite.suite.key,
            "FANGCHENG_CONSOLE_LISTEN": "127.0.0.1:0",
            "FANGCHENG_CONSOLE_METRICS_LISTEN": "127.0.0.1:0",
            "FANGCHENG_CONSOLE_WEB_LISTEN": "127.0.0.1:0",
            "FANGCHENG_CONSOLE_PORT_FILE": str(ports),
            "FANGCHENG_CONSOLE_DATABASE": str(folder / "console.db"),
            "FANGCHENG_CONSOLE_MATCHMAKING": suite.suite.target("matchmaking"),
            "FANGCHENG_CONSOLE_TABLE": suite.suite.target("table"),
            "FANGCHENG_CONSOLE_WALLET": wallet,
            "FANGCHENG_CONSOLE_EVALUATION": suite.suite.target("evaluation"),
        }
        started = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "fangcheng_console"), env=environment(**more)
        )
        consoles.append(started)
        deadline = time.monotonic() + LONG_SECONDS
        while not ports.exists():
            assert started.returncode is None
            assert time.monotonic() < deadline, "the console does not serve"
            await asyncio.sleep(0.05)
        return "http://" + json.loads(ports.read_text("utf-8"))["web"]

    async with (
        CuttingProxy(suite.suite.target("wallet"), kill).running() as proxy,
        suite.access.channel("wallet") as channel,
    ):
        wallet = WalletServiceStub(channel)
        await wallet.OpenWallet(wallet_pb2.OpenWalletRequest(player_id="ming"))
        try:
            async with at(suite, await console(proxy.address)) as mei:
                shown = await mei.get("/api/operate/preview?verb=freeze_player&player_id=ming")
                act = {
                    "verb": "freeze_player",
                    "target": {"player_id": "ming"},
                    "seen": shown.json()["seen"],
                    "reason": "under review",
                    "request_id": "killed-in-the-middle",
                }
                with pytest.raises(httpx.TransportError):
                    await mei.post("/api/operate", json=act)
            assert await consoles[0].wait() == -signal.SIGKILL
            balances = await wallet.GetBalances(wallet_pb2.GetBalancesRequest(player_id="ming"))
            assert balances.player.frozen

            async with at(suite, await console(suite.suite.target("wallet"))) as mei:
                (story,) = (await mei.get("/api/log?status=unknown")).json()["stories"]
                assert (story["request_id"], story["later"]) == (act["request_id"], [])
                again = {"request_id": act["request_id"]}
                repeated = (await mei.post("/api/operate/repeat", json=again)).json()
                assert (repeated["status"], repeated["replayed"]) == ("done", True)
                assert (await mei.get("/api/log?status=unknown")).json()["stories"] == []
        finally:
            for one in consoles:
                if one.returncode is None:
                    one.terminate()
                await one.wait()
            log.close()


@asynccontextmanager
async def at(suite: Running, address: str) -> AsyncIterator[httpx.AsyncClient]:
    """An operator at a console, without a page."""
    headers = {"origin": address, "x-fangcheng-console": "1"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
        token = mint_token(suite.suite.key, "operator:mei")
        (await client.post("/api/session", json={"token": token})).raise_for_status()
        yield client


def test_an_act_during_which_the_console_is_killed_is_found_out_by_the_next_one(
    suite: Running, tmp_path: Path
) -> None:
    beside(killed_in_the_middle(suite, tmp_path))
