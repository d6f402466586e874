"""The page of a table in a real browser: what it shows is what Watch sends, tile by tile."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import grpc.aio
import pytest
from playwright.sync_api import Browser, Page, expect

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2
from fangcheng_client import attend, watch
from fangcheng_console.shown import Shown
from fangcheng_evaluation.service import open_service as open_evaluation
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import serving
from fangcheng_kit.tokens import mint_token
from tests.console.world import console
from tests.table.world import DEV_KEY, PLAYERS, Player, World, request, world

from .browser import Tab, opened
from .pages import tiles_of
from .running import LONG_SECONDS, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

T = TypeVar("T")
State = dict[str, Any]

READ = """
() => {
  const felt = document.querySelector(".felt");
  if (!felt) return null;
  const { number, version, turn, wall, dealer, hand, phase } = felt.dataset;
  return {
    number: Number(number), version: Number(version), turn, wall: Number(wall),
    dealer: Number(dealer), hand: Number(hand), phase,
    revealed: Number(document.querySelector(".table-page").dataset.revealed),
    tiles: [...felt.querySelectorAll("[data-tile]")].map((it) => [
      it.dataset.zone, it.dataset.seat ?? "", it.dataset.index, Number(it.dataset.tile),
    ]),
    turned: [...felt.querySelectorAll("[data-turned]")].map((it) => [
      it.dataset.seat, it.dataset.index,
    ]),
    plates: Object.fromEntries([...document.querySelectorAll("[data-plate]")].map((it) => [
      it.dataset.plate, {
        standing: Number(it.querySelector("[data-standing]").dataset.standing),
        badges: [...it.querySelectorAll("[data-badge]")].map((one) => one.dataset.badge),
        side: ["near", "right", "far", "left"].find((side) => it.classList.contains(side)),
      },
    ])),
  };
}
"""
"""The picture as it stands at one moment."""


class Scene:
    """A table service and a console, in a thread of their own, and who plays and watches there."""

    def __init__(self, folder: Path) -> None:
        self.address = ""
        self.tables: World | None = None
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(folder,))
        self._failure: BaseException | None = None

    def _serve(self, folder: Path) -> None:
        try:
            self._loop.run_until_complete(self._served(folder))
        except BaseException as error:  # told to the test, which waits for it
            self._failure = error
        finally:
            self._ready.set()

    async def _served(self, folder: Path) -> None:
        settings = EvaluationSettings(dev_key=DEV_KEY, drain_seconds=0.0, grace_seconds=0.1)
        async with (
            world(folder) as tables,
            serving("evaluation", settings, open_evaluation) as evaluation,
            console(
                folder, dev_key=DEV_KEY, table=tables.address, evaluation=evaluation.address
            ) as served,
        ):
            self.tables, self.address = tables, served.address
            self._ready.set()
            await self._over.wait()

    def __enter__(self) -> Scene:
        self._thread.start()
        self._ready.wait(LONG_SECONDS)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *failed: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(LONG_SECONDS)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run something in the thread of the services."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it to its end."""
        return self.begin(work).result(LONG_SECONDS)

    def table(
        self, request_id: str, rules_id: str = "baicheng", hands: int = 1, window_ms: int = 60
    ) -> str:
        """A new table, at which each discard lies for a moment."""
        message = request(request_id, hands=hands)
        message.rules.CopyFrom(rules_pb2.RuleSetChoice(id=rules_id))
        message.timing.claim_window_ms = window_ms
        message.timing.between_hands_ms = 1_500
        for seat, name in zip(message.seats, ("Mei", "老王", "Ju", "Zhu"), strict=True):
            seat.profile = name.encode()
        return self.do(self._create(message))

    async def _create(self, message: table_pb2.CreateTableRequest) -> str:
        assert self.tables is not None
        made = await self.tables.stub("operator").CreateTable(message)
        return str(made.table.table_id)

    @contextmanager
    def played(self, table_id: str) -> Iterator[dict[int, State]]:
        """Four players who claim what they can; what Watch tells, by its events' numbers."""
        told: dict[int, State] = {}
        works = [self.begin(self._watch(table_id, told))]
        works += [self.begin(self._play(table_id, name)) for name in PLAYERS]
        try:
            yield told
        finally:
            for work in works:
                work.cancel()

    async def _play(self, table_id: str, name: str) -> None:
        assert self.tables is not None
        with suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
            await Player(self.tables, name, eager(name)).play(table_id)

    async def _watch(self, table_id: str, told: dict[int, State]) -> None:
        assert self.tables is not None
        shown = Shown()
        async for event in watch(self.tables.channel("player:eve"), table_id):
            shown.apply(event)
            told[event.number] = json.loads(json.dumps(shown.state()))

    @contextmanager
    def thinking(self, table_id: str) -> Iterator[None]:
        """Four players who sit there and answer nothing."""
        works = [self.begin(self._think(table_id, name)) for name in PLAYERS]
        try:
            yield
        finally:
            for work in works:
                work.cancel()

    async def _think(self, table_id: str, name: str) -> None:
        assert self.tables is not None
        async for _ in attend(self.tables.channel(f"player:{name}"), table_id):
            pass

    def sign_in(self, tab: Tab, subject: str) -> None:
        tab.sign_in(self.address, mint_token(DEV_KEY, subject))


def eager(name: str) -> Callable[[events_pb2.Prompt], state_pb2.Action]:
    """Claims and declares what it can, discards anything, and wins only late."""
    chance = random.Random(name)

    def choose(prompt: events_pb2.Prompt) -> state_pb2.Action:
        actions = [action for action in prompt.actions if action.kind != "false_win"]
        bold = [one for one in actions if one.kind in ("kong", "pong", "chi") or one.declare]
        wins = [one for one in actions if one.kind == "win"]
        return chance.choice(wins or bold or actions)

    return choose


def compare(picture: Any, state: State) -> None:
    """The picture is that of the state, tile by tile."""
    assert sorted(picture["tiles"]) == tiles_of(state)
    assert picture["turn"] == ("none" if state["turn"] is None else str(state["turn"]))
    assert picture["wall"] == state["wall"]
    assert picture["dealer"] == state["dealer"]
    assert picture["hand"] == state["hand_number"]
    assert picture["phase"] == state["phase"]
    turned = {(seat, index) for seat, index in picture["turned"]}
    for number, seat in enumerate(state["seats"]):
        plate = picture["plates"][str(number)]
        assert plate["standing"] == seat["standing"]
        assert ("declared" in plate["badges"]) == bool(seat["declared"])
        assert ("trustee" in plate["badges"]) == seat["trustee"]
        is_dealer = state["hand_number"] > 0 and number == state["dealer"]
        assert ("dealer" in plate["badges"]) == is_dealer
        for at, meld in enumerate(seat["melds"]):
            lie = [i for i in range(len(meld["tiles"])) if (str(number), f"{at}.{i}") in turned]
            if meld["from_seat"] is None:
                assert not lie
            else:
                assert meld["claimed_tile"] in [meld["tiles"][index] for index in lie]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Scene(tmp_path_factory.mktemp("scene")) as it:
        yield it


def at_number(page: Page, number: int) -> None:
    """Wait until the picture has got to an event."""
    page.wait_for_function(
        "(least) => Number(document.querySelector('.felt')?.dataset.number) >= least", arg=number
    )


@pytest.mark.parametrize("rules_id", ["baicheng", "jintan"])
def test_the_page_shows_exactly_what_watch_sends(scene: Scene, browser: Browser, rules_id: str):
    table_id = scene.table(f"same-{rules_id}", rules_id)
    with opened(browser) as tab:
        scene.sign_in(tab, "viewer:wang")
        tab.page.goto(f"{scene.address}/tables/{table_id}")
        tab.page.locator(".felt").wait_for()
        seen: dict[int, Any] = {}
        with scene.played(table_id) as told:
            while not seen or seen[max(seen)]["phase"] != "closed":
                last = max(seen, default=0)
                at_number(tab.page, last + 1)
                picture = tab.page.evaluate(READ)
                seen[picture["number"]] = picture
            until(lambda: max(told, default=0) >= max(seen), "Watch has told all")
            for number, picture in seen.items():
                if number:
                    compare(picture, told[number])
        assert len(seen) > 15
        assert any(seat["melds"] for state in told.values() for seat in state["seats"])
        versions = [seen[number]["version"] for number in sorted(seen)]
        assert versions == sorted(set(versions))
        # The result says who won, and the log tells the hand in words.
        expect(tab.page.locator("[data-ended='1']")).to_be_visible()
        expect(tab.page.locator(".table-log li").first).to_contain_text("closed")
        expect(tab.page.locator(".table-ranking li")).to_have_count(4)


def test_keys_turn_the_table_stop_the_picture_and_lead_to_the_next(scene: Scene, browser: Browser):
    table_id = scene.table("keys", hands=4)
    other = scene.table("other")
    with opened(browser) as tab, scene.played(table_id):
        page = tab.page
        scene.sign_in(tab, "viewer:wang")
        page.evaluate(
            "(order) => sessionStorage.setItem('lobby.order', JSON.stringify(order))",
            [table_id, other],
        )
        page.goto(f"{scene.address}/tables/{table_id}")
        at_number(page, 5)
        for seat in range(4):
            page.keyboard.press(str(seat + 1))
            expect(page.locator(f"[data-plate='{seat}'].near")).to_be_visible()
            expect(page.get_by_role("button", name="From the side of")).to_have_count(4)
        page.keyboard.press("1")

        page.keyboard.press(" ")
        behind = page.locator("[data-behind]")
        behind.wait_for()
        stopped = page.evaluate(READ)
        said = page.locator(".table-log li").all_inner_texts()
        page.wait_for_function(
            "() => Number(document.querySelector('[data-behind]').dataset.behind) > 4"
        )
        assert page.evaluate(READ)["tiles"] == stopped["tiles"]
        assert page.evaluate(READ)["number"] == stopped["number"]
        assert page.locator(".table-log li").all_inner_texts() == said
        page.keyboard.press(" ")
        at_number(page, stopped["number"] + 5)
        expect(behind).to_have_count(0)

        page.keyboard.press("n")
        page.wait_for_url(f"**/tables/{other}")
        page.locator(f".felt[data-table='{other}']").wait_for()
        page.keyboard.press("p")
        page.wait_for_url(f"**/tables/{table_id}")
        page.locator(f".felt[data-table='{table_id}']").wait_for()
        assert page.get_by_role("button", name="Reveal").count() == 0
        page.keyboard.press("r")
        assert page.locator("dialog[open]").count() == 0

    # Who comes from elsewhere than the lobby's list goes through it as it stands at first.
    with opened(browser) as tab:
        page = tab.page
        scene.sign_in(tab, "viewer:wang")
        page.goto(f"{scene.address}/tables/{other}")
        expect(page.get_by_role("button", name="Next")).to_be_enabled()
        page.keyboard.press("n")
        page.wait_for_url(lambda url: "/tables/" in url and other not in url)
        page.locator(".felt").wait_for()


def test_an_operator_reveals_a_hand_and_a_viewer_cannot(scene: Scene, browser: Browser):
    table_id = scene.table("reveal", hands=3, window_ms=120)
    with (
        opened(browser) as tab,
        opened(browser) as beside,
        scene.played(table_id),
    ):
        page = tab.page
        scene.sign_in(tab, "operator:mei")
        scene.sign_in(beside, "viewer:wang")
        for one in (page, beside.page):
            one.goto(f"{scene.address}/tables/{table_id}")
            one.locator("[data-zone='concealed']").first.wait_for()
        refused = beside.page.evaluate(
            """async (path) => (await fetch(path, {
              method: "POST", body: JSON.stringify({reason: "I am curious"}),
              headers: {"content-type": "application/json", "x-fangcheng-console": "1"},
            })).status""",
            f"/api/tables/{table_id}/revealed",
        )
        assert refused == 403
        beside.provoked("403")

        page.keyboard.press("r")
        dialog = page.locator("#reveal")
        dialog.get_by_label("Reason").fill("do 1 and 3 play together?")
        dialog.get_by_role("button", name="Reveal tiles").click()
        picture = page.wait_for_function(
            f"""() => {{
              const picture = ({READ})();
              return picture && picture.revealed && picture.phase === "playing" ? picture : null;
            }}"""
        ).json_value()
        assert picture["revealed"] == picture["hand"]
        held = [tile for zone, _, _, tile in picture["tiles"] if zone in ("concealed", "drawn")]
        assert held
        assert all(held)
        hidden = beside.page.evaluate(READ)
        if hidden["hand"] == picture["hand"] and hidden["phase"] == "playing":
            assert not any(tile for zone, _, _, tile in hidden["tiles"] if zone == "concealed")
        # It ends with the hand, and the page offers the next.
        over = page.locator(f"[data-reveal-over='{picture['hand']}']")
        over.wait_for()
        over.get_by_role("button", name="Reveal the next hand").click()
        expect(dialog).to_be_visible()
        dialog.get_by_role("button", name="Cancel").click()


def test_an_operator_sees_what_a_seat_is_asked(scene: Scene, browser: Browser):
    table_id = scene.table("asked")
    with opened(browser) as tab, scene.thinking(table_id):
        page = tab.page
        scene.sign_in(tab, "operator:mei")
        page.goto(f"{scene.address}/tables/{table_id}")
        page.locator(".felt[data-phase='playing']").wait_for()
        assert page.locator("[data-asked]").count() == 0
        page.keyboard.press("r")
        page.locator("#reveal").get_by_label("Reason").fill("why does it take so long?")
        page.keyboard.press("Enter")
        page.locator("[data-revealed='1'] .felt").wait_for()
        turn = page.evaluate(READ)["turn"]
        asked = page.locator(f"[data-plate='{turn}'] [data-asked='turn']")
        expect(asked).to_contain_text("discard")
        # The ring shows the time that is left.
        page.wait_for_function(
            "() => Number(document.querySelector('.ring').getAttribute('stroke-dashoffset')) > 5"
        )


def test_on_a_telephone_in_chinese(scene: Scene, browser: Browser):
    table_id = scene.table("phone", hands=2)
    with (
        opened(browser, lang="zh", theme="dark", width=390, height=844) as tab,
        scene.played(table_id),
    ):
        page = tab.page
        scene.sign_in(tab, "operator:mei")
        page.goto(f"{scene.address}/tables/{table_id}")
        page.locator(".board.narrow .felt").wait_for()
        at_number(page, 8)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
        expect(page.get_by_role("button", name="查看暗牌")).to_be_visible()
        expect(page.locator(".table-log")).to_contain_text("打出")


def test_a_table_that_there_is_not(scene: Scene, browser: Browser):
    with opened(browser) as tab:
        scene.sign_in(tab, "viewer:wang")
        tab.page.goto(f"{scene.address}/tables/none")
        expect(tab.page.locator(".error")).to_be_visible()
        tab.provoked("404")
