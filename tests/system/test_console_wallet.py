"""Wallets in a browser: all is as the wallet tells it, and a settlement is one from either end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from fangcheng.wallet.v1.settlement_pb2 import GetSettlementRequest
from fangcheng.wallet.v1.wallet_pb2 import (
    GetBalancesRequest,
    GetLeaderboardRequest,
    ListEntriesRequest,
    ListHoldsRequest,
)
from fangcheng_kit.tokens import mint_token
from tests.console.money import PLAYERS, REVERSED, SHORT, Bank, bank_at, paid

from .browser import Tab, beside, opened
from .pages import Places, places
from .running import Running, running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

TRANSFERS = """() => [...document.querySelectorAll("tr[data-transfer]")].map(({dataset: d}) =>
  [d.from, d.to, Number(d.amount), Number(d.paid), d.reason, d.currency])"""
ENTRIES = """() => [...document.querySelectorAll("tr[data-entry]")].map(({dataset: d}) =>
  [d.entry, d.reason, Number(d.amount), Number(d.after), d.currency, Number(d.version)])"""


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Bots play at a table, and four others have had hands with all that can become of one."""
    folder = tmp_path_factory.mktemp("paid")
    with running(folder, "--tables", "1", "--think", "0.1") as started:
        told(started, Bank.live)
        yield started


@pytest.fixture(scope="module")
def found(suite: Running) -> Places:
    return beside(places(suite))


@pytest.fixture(scope="module")
def operator(browser: Browser, suite: Running) -> Iterator[Tab]:
    with opened(browser) as tab:
        tab.sign_in(suite.console, mint_token(suite.suite.key, "operator:mei"))
        yield tab


def told(suite: Running, ask: Any) -> Any:
    """What the wallet itself answers."""

    async def asked() -> Any:
        async with bank_at(suite.suite.target("wallet"), suite.suite.key) as bank:
            return await ask(bank)

    return beside(asked())


def test_a_player_is_found_and_all_he_has_is_shown(operator: Tab, suite: Running) -> None:
    page = operator.page
    for player in ("ann", "bob"):
        page.goto(f"{suite.console}/wallet")
        page.locator("#wallet-player").fill(f" {player} ")
        page.locator("#wallet-player").press("Enter")
        page.wait_for_url(f"**/wallet/{player}")
        expect(page.get_by_role("heading", level=1)).to_have_text(player)
        balances = told(
            suite,
            lambda bank, of=player: bank.operator.GetBalances(GetBalancesRequest(player_id=of)),
        )
        holds = told(
            suite, lambda bank, of=player: bank.operator.ListHolds(ListHoldsRequest(player_id=of))
        )
        rows = page.locator("tr[data-balance]")
        expect(rows).to_have_count(len(balances.balances))
        read = (
            "(rows) => rows.map(({dataset: d}) => [d.balance, d.book, d.available, d.held, d.owed])"
        )
        assert rows.evaluate_all(read) == [
            [one.currency, one.book, str(one.available), str(one.held), str(one.owed)]
            for one in balances.balances
        ]
        assert page.locator("[data-hold]").evaluate_all(
            "(rows) => rows.map(({dataset: d}) => [d.hold, Number(d.remaining)])"
        ) == [[hold.hold_id, hold.remaining] for hold in holds.holds]
    expect(page.locator("[data-frozen]")).to_contain_text("under review (case-82)")
    expect(page.locator("tr[data-balance=silver] td.bad")).to_have_text("300")
    page.goto(f"{suite.console}/wallet/ann")
    expect(page.locator("[data-title='三万']")).to_contain_text("Three of Characters")


def test_a_statement_is_the_wallets_and_its_filters_stand_in_the_address(
    operator: Tab, suite: Running
) -> None:
    page = operator.page
    page.goto(f"{suite.console}/wallet/ann")

    def entries(**filters: Any) -> list[list[Any]]:
        request = ListEntriesRequest(player_id="ann", **filters)
        listed = told(suite, lambda bank: bank.operator.ListEntries(request)).entries
        expect(page.locator("tr[data-entry]")).to_have_count(len(listed))
        return [
            [one.reference, one.reason, one.amount, one.balance_after, one.currency, one.version]
            for one in listed
        ]

    expected = entries()
    assert expected
    assert page.evaluate(ENTRIES) == expected
    expect(page.locator("tr[data-reason=win] td.bad").first).to_have_text("−150")
    expect(page.locator("tr[data-reason=deposit][data-currency=silver] td.good")).to_have_text(
        "+1,000"
    )
    page.locator("[data-key=currency]").select_option("points")
    expected = entries(currency="points")
    assert page.evaluate(ENTRIES) == expected
    page.locator("[data-key=reason]").select_option("kong")
    expected = entries(currency="points", reasons=["kong"])
    assert page.evaluate(ENTRIES) == expected
    page.reload()
    expected = entries(currency="points", reasons=["kong"])
    assert page.evaluate(ENTRIES) == expected
    assert page.url.endswith("/wallet/ann?currency=points&reason=kong")
    page.locator("[data-key=until]").fill("2020-01-01T00:00:00")
    expect(page.locator("tr[data-entry]")).to_have_count(0)


def settlement(suite: Running, key: str) -> list[list[Any]]:
    """The payments and fees of a settlement as the wallet tells it."""
    request = GetSettlementRequest(key=key)
    one = told(suite, lambda bank: bank.operator_settles.GetSettlement(request)).settlement

    def party(message: Any, name: str) -> str:
        return str(getattr(message, name)) if message.HasField(name) else "house"

    rows = [
        [
            *(party(of, "from_party"), party(of, "to_party"), of.amount, paid.paid),
            *(of.reason, of.currency),
        ]
        for paid in one.transfers
        for of in [paid.transfer]
    ]
    return rows + [
        [str(paid.fee.party), "house", paid.fee.amount, paid.paid, "fee", paid.fee.currency]
        for paid in one.fees
    ]


def test_a_settlement_is_the_same_from_a_statement_and_from_the_hand(
    operator: Tab, suite: Running, found: Places
) -> None:
    page = operator.page
    table, number = found.hand
    key = f"{table}/{number}"
    expected = settlement(suite, key)
    assert expected
    page.goto(f"{suite.console}/replay/{table}/{number}")
    page.locator("[data-tile]").first.wait_for()
    page.keyboard.press("End")
    page.locator("a[data-settlement]").click()
    page.wait_for_url(f"**/settlements/{key}")
    page.locator("tr[data-transfer]").first.wait_for()
    from_hand = page.evaluate(TRANSFERS)
    assert from_hand == expected
    player = page.locator("tr[data-party] a").first
    page.goto(f"{suite.console}{player.get_attribute('href')}")
    page.locator("tr[data-entry]").first.wait_for()
    while not page.locator(f"a[data-settlement='{key}']").count():
        page.locator("[data-do=more]").click()
        page.locator("[aria-busy=false] tr[data-entry]").first.wait_for()
    page.locator(f"a[data-settlement='{key}']").first.click()
    page.wait_for_url(f"**/settlements/{key}")
    page.locator("tr[data-transfer]").first.wait_for()
    assert page.evaluate(TRANSFERS) == from_hand
    back = page.get_by_role("link", name="Replay of the hand")
    assert back.get_attribute("href") == f"/replay/{table}/{number}"


def test_what_was_not_paid_and_what_was_taken_back_stands_out(
    operator: Tab, suite: Running
) -> None:
    page = operator.page
    page.goto(f"{suite.console}/settlements/{SHORT}")
    page.locator("tr[data-transfer]").first.wait_for()
    assert page.evaluate(TRANSFERS) == settlement(suite, SHORT)
    expect(page.get_by_text("1,233,567 short")).to_be_visible()
    expect(page.get_by_text("not paid in full")).to_be_visible()
    nets = page.locator("[data-party='0'] [data-net]").evaluate_all(
        "(cells) => cells.map(({dataset: d}) => [d.currency, d.net])"
    )
    assert nets == [["silver", "1270"], ["points", "-64"]]
    expect(page.locator("[data-do=reverse]")).to_be_visible()
    page.goto(f"{suite.console}/settlements/{REVERSED}")
    expect(page.locator("[data-reversed]")).to_contain_text("the line of two seats was cut")
    expect(page.locator("[data-reversed]")).to_contain_text("case-81")
    expect(page.locator("[data-do=reverse]")).to_have_count(0)


def test_an_operator_acts_where_he_looks_and_sees_what_came_of_it(
    operator: Tab, suite: Running
) -> None:
    page = operator.page
    key = told(suite, lambda bank: bank.one_more(paid("silver", 1, 0, 40)))
    page.goto(f"{suite.console}/settlements/{key}")
    page.locator("[data-do=reverse]").click()
    act(operator, "the wrong hand was settled", key[-8:])
    expect(page.locator("[data-reversed]")).to_contain_text("the wrong hand was settled")
    expect(page.locator("[data-do=reverse]")).to_have_count(0)
    page.goto(f"{suite.console}/wallet/dan")
    expect(page.locator("[data-frozen=false]")).to_be_visible()
    page.locator("[data-do=freeze]").click()
    act(operator, "under review", "dan")
    expect(page.locator("[data-frozen=true]")).to_contain_text("under review")
    expect(page.locator("tr[data-reason=reverse]")).to_have_attribute("data-amount", "-40")
    page.locator("[data-do=unfreeze]").click()
    act(operator, "nothing was found", "dan")
    expect(page.locator("[data-frozen=false]")).to_contain_text("nothing was found")


def act(tab: Tab, reason: str, confirmed: str) -> None:
    """Say why in the dialog that has opened, do it, and close the dialog."""
    dialog = tab.page.get_by_role("dialog")
    dialog.locator("#act-reason").fill(reason)
    if dialog.locator("#act-confirm").count():
        dialog.locator("#act-confirm").fill(confirmed)
    dialog.locator("#act-reason").press("Enter")
    dialog.locator("#act-close").click()


def test_where_a_player_is_leads_to_his_table(operator: Tab, suite: Running, found: Places) -> None:
    page = operator.page
    page.goto(f"{suite.console}/wallet/ann")
    expect(page.locator("[data-where]")).to_contain_text("At no table")
    page.goto(f"{suite.console}/wallet/{found.player_id}")
    expect(page.locator("h1 + .badge")).to_have_text("bot")

    def sits() -> bool:  # between two tables a bot is nowhere
        page.reload()
        page.locator("[data-where]").wait_for()
        return page.locator("[data-where] a[data-table]").count() == 1

    until(sits, "the bot sits at a table")
    table = page.locator("[data-where] a[data-table]")
    assert table.get_attribute("href") == f"/tables/{table.get_attribute('data-table')}"


def test_a_viewer_sees_who_leads_and_no_money(browser: Browser, suite: Running) -> None:
    with opened(browser, lang="zh", theme="dark", width=390) as tab:
        tab.sign_in(suite.console, mint_token(suite.suite.key, "viewer:wang"))
        asked: list[str] = []
        tab.page.on("request", lambda request: asked.append(request.url))
        tab.page.goto(f"{suite.console}/wallet?currency=silver")
        request = GetLeaderboardRequest(currency="silver")
        board = told(suite, lambda bank: bank.operator.GetLeaderboard(request)).standings
        for player in PLAYERS[:3]:
            score = next(one.score for one in board if one.player_id == player)
            row = tab.page.locator(f"[data-standing={player}]")
            expect(row).to_have_attribute("data-score", str(score))
        tab.page.locator("[data-standing=ann] a").click()
        tab.page.wait_for_url("**/wallet/ann")
        expect(tab.page.locator("[data-title='三万']")).to_be_visible()
        expect(tab.page.locator("[data-closed]")).to_contain_text("仅运营人员可见")
        assert not tab.page.locator("tr[data-balance], tr[data-entry], button.danger").count()
        tab.page.goto(f"{suite.console}/settlements/{SHORT}")
        tab.page.locator("tr[data-transfer]").first.wait_for()
        assert tab.page.evaluate(TRANSFERS) == settlement(suite, SHORT)
        assert not tab.page.locator("[data-hold], [data-do=reverse]").count()
        assert not [url for url in asked if "/api/wallet/entries" in url]
        tab.page.goto(f"{suite.console}/wallet/nobody")
        expect(tab.page.get_by_role("alert")).to_contain_text("没有这位玩家的钱包")
        tab.provoked("404")


def test_who_is_not_there_is_told_of(operator: Tab, suite: Running) -> None:
    operator.page.goto(f"{suite.console}/wallet/nobody%2Fhere")
    expect(operator.page.get_by_role("alert")).to_contain_text("Nobody with this id has a wallet")
    operator.provoked("status of 404")
