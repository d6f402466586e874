"""Trying a hand in a browser: the page shows what Analyze and Score say, however one gets there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import grpc.aio
import pytest
from playwright.sync_api import Browser, Route, expect

from fangcheng.evaluation.v1 import evaluation_pb2 as ev
from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng_client import connect, explain
from fangcheng_kit.tokens import mint_token
from fangcheng_rules.analysis import analyze
from fangcheng_rules.notation import parse_hand
from fangcheng_rules.rulesets import BUILT_IN
from tests.console.hands import analysis_link, score_link
from tests.evaluation import wire
from tests.rules.golden import golden_hands
from tests.rules.test_golden_waits import rows

from .browser import Tab, beside, opened
from .running import Running

pytestmark = pytest.mark.system

ANSWERED = """() => {
  const found = document.querySelector(".try-found");
  if (!found || found.getAttribute("aria-busy") === "true") return false;
  if (document.querySelector(".try-answer [data-missing], [data-error]")) return true;
  return `?${found.dataset.for}` === location.search;
}"""
READ = """() => {
  const all = (query, read) =>
    [...document.querySelectorAll(query)].map((one) => read(one.dataset));
  const facts = document.querySelector("[data-shanten]")?.dataset ?? {};
  return {
    shanten: Number(facts.shanten), shape: Number(facts.shapeShanten), wins: facts.wins,
    waits: all("[data-wait]", (d) => [d.wait, d.fan, d.units, d.left].map(Number)),
    useful: all("[data-useful]", (d) => [d.useful, d.left].map(Number)),
    readings: all("[data-reading]", (d) => [d.reading, d.sets]),
    items: all(".try-items [data-item]", (d) => [d.item, Number(d.fan), Number(d.count)]),
    discards: all("tr[data-discard]", (d) => [Number(d.discard), Number(d.shanten), d.waits]),
    kongs: all("[data-kong]", (d) => [Number(d.kong), d.kind, d.kongWaits]),
    net: all("[data-net]", (d) => Number(d.net)),
    transfers: all("tr[data-transfer]", (d) => [d.from, d.to, Number(d.amount), d.reason]),
    winners: all("[data-winner]", (d) =>
      [d.winner, d.fan, d.flat, d.flowers, d.multiplier].map(Number)),
    losers: all("tr[data-loser]", (d) => [
      ...[d.loser, d.of, d.fan, d.amount, d.multiplier].map(Number), d.capped, d.items,
    ]),
    errors: all("[data-error]", (d) => d.error),
  };
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser, quiet_suite: Running) -> Iterator[Tab]:
    with opened(browser) as one:
        one.sign_in(quiet_suite.console, mint_token(quiet_suite.suite.key, "viewer:wang"))
        yield one


@pytest.fixture(autouse=True)
def without_errors(tab: Tab) -> Iterator[None]:
    """A test's own errors are its own failure, not the last one's."""
    yield
    assert tab.problems == []


def look(tab: Tab, suite: Running, query: str) -> Any:
    """Open a link to a hand; what the page shows of it."""
    tab.page.goto(f"{suite.console}/try?{query}")
    return answer(tab)


def answer(tab: Tab) -> Any:
    """Wait until what is shown is of what is put together, and read it."""
    tab.page.wait_for_function(ANSWERED)
    return tab.page.evaluate(READ)


def asked(suite: Running, name: str, request: Any) -> Any:
    """What the evaluator answers, or the error that it refuses with."""

    async def ask() -> Any:
        target = suite.suite.target("evaluation")
        async with connect(target, mint_token(suite.suite.key, "operator")) as channel:
            try:
                return await getattr(EvaluationServiceStub(channel), name)(request)
            except grpc.aio.AioRpcError as error:
                return explain(error)

    return beside(ask())


def tiles_of(waits: Any) -> str:
    return " ".join(str(wait.tile) for wait in waits)


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_the_numbers_are_those_of_analyze(tab: Tab, quiet_suite: Running, rules: Any) -> None:
    texts = [text for text, waits, _ in rows(rules) if waits != "-"][:2]
    texts += [text for text, waits, _ in rows(rules) if waits == "-"][:1]
    for place, text in enumerate(texts):
        hand = parse_hand(text)
        if place == 1:  # one of fourteen that wins
            hand = hand.plus(analyze(rules, rules.complete(), hand).waits[0].tile)
        request = ev.AnalyzeRequest(
            rules=wire.choice({}, rules.id), hand=wire.hand(hand), progress=True
        )
        found = asked(quiet_suite, "Analyze", request).analysis
        shown = look(tab, quiet_suite, analysis_link(rules.id, hand))
        assert shown["errors"] == []
        assert (shown["shanten"], shown["shape"]) == (found.shanten, found.shape_shanten)
        assert shown["wins"] == str(found.wins).lower()
        assert [wait[:3] for wait in shown["waits"]] == [
            [wait.tile, wait.least_fan, wait.least_units] for wait in found.waits
        ]
        own = [*request.hand.concealed, *(t for meld in request.hand.melds for t in meld.tiles)]
        assert all(left == 4 - own.count(tile) for tile, _, _, left in shown["waits"])
        if not found.waits:
            assert [tile for tile, _ in shown["useful"]] == list(found.useful_tiles)
        assert shown["readings"] == [
            [reading.shape, " ".join("-".join(map(str, one.tiles)) for one in reading.sets)]
            for reading in found.readings
        ]
        assert shown["items"] == [[one.id, one.fan, one.count] for one in found.fan_items]
        assert sorted(shown["discards"]) == sorted(
            [one.tile, one.shanten, tiles_of(one.waits)] for one in found.discards
        )
        assert [one[1] for one in shown["discards"]] == sorted(
            one.shanten for one in found.discards
        )
        assert shown["kongs"] == [
            [one.tile, one.kind, tiles_of(one.waits)] for one in (*found.kongs, *found.claim_kongs)
        ]
        assert place != 1 or shown["wins"] == "true"


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_the_payments_are_those_of_score(tab: Tab, quiet_suite: Running, rules: Any) -> None:
    hands = golden_hands(rules.id)
    paid = [hand for hand in hands if hand.refused is None and hand.finished.end]
    wins = [hand for hand in paid if hand.fan][:: max(1, len(paid) // 5)][:4]
    others = [hand for hand in paid if not hand.fan and any(hand.net)][:1]
    for golden in (*wins, *others):
        request = wire.golden_request(golden, rules.id)
        score = asked(quiet_suite, "Score", request).score
        shown = look(tab, quiet_suite, score_link(rules.id, golden))
        assert shown["errors"] == [], golden.title
        assert tuple(shown["net"]) == golden.net
        assert shown["transfers"] == [
            [seat(one, "from_seat"), seat(one, "to_seat"), one.amount, one.reason]
            for one in score.transfers
        ]
        assert shown["winners"] == [
            [one.seat, one.fan, one.flat, one.flower_points, one.multiplier]
            for one in score.winners
        ]
        assert shown["losers"] == [
            [
                *(one.seat, one.winner, one.fan, one.amount, one.multiplier),
                *(str(one.capped).lower(), " ".join(item.id for item in one.items)),
            ]
            for one in score.losers
        ]


def seat(transfer: Any, name: str) -> str:
    return str(getattr(transfer, name)) if transfer.HasField(name) else "house"


def test_what_the_evaluator_refuses_stands_at_its_field(tab: Tab, quiet_suite: Running) -> None:
    refused = [hand for hand in golden_hands("baishan_kele") if hand.refused][:14]
    known = 0
    for golden in refused:
        problem = asked(quiet_suite, "Score", wire.golden_request(golden))
        shown = look(tab, quiet_suite, score_link("baishan_kele", golden))
        missing = tab.page.locator("[data-missing]").count()
        if missing:  # the page says itself what is not there yet
            continue
        known += 1
        tab.provoked("status of 4")
        (field,) = shown["errors"]
        assert (problem.field or "").startswith(field) or field == "", (golden.title, shown)
        expect(tab.page.locator(f"[data-error='{field}']")).to_contain_text(problem.message)
    assert known >= 8


def test_tiles_are_clicked_together_and_a_link_shows_the_same(
    tab: Tab, browser: Browser, quiet_suite: Running
) -> None:
    page = tab.page
    page.goto(f"{quiet_suite.console}/try?rules=baicheng")
    expect(page.locator("[data-missing='try.begin']")).to_be_visible()
    page.locator("[data-add-meld=whirlwind]").click()
    expect(page.locator("[data-pick='11']")).to_be_disabled()
    page.locator("[data-pick='46']").click()
    page.locator("[data-add-meld=chi]").click()
    page.locator("[data-pick='27']").click()
    for tile in (11, 11, 12, 13, 14, 31, 33):
        page.locator(f"[data-pick='{tile}']").click()
    expect(page.locator("[data-pick='11']")).to_have_attribute("data-left", "2")
    expect(page.locator("[data-pick='45']")).to_have_attribute("data-left", "3")
    shown = answer(tab)
    assert [wait[0] for wait in shown["waits"]] == [32]
    page.locator("[data-row=hand] [data-hand-tile='33']").click()
    expect(page.locator("[data-missing]")).to_have_attribute("data-missing", "try.more_tiles")
    page.locator("[data-pick='33']").click()
    page.locator("[data-pick='32']").click()
    shown = answer(tab)
    assert shown["wins"] == "true"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("[data-do=share]").click()
    expect(page.locator("[data-do=share]")).to_have_text("Copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    assert parse_qs(urlsplit(link).query)["melds"] == ["whirlwind-567z.chi-789p"]
    with opened(browser, lang="zh", theme="dark", width=390) as other:
        other.sign_in(quiet_suite.console, mint_token(quiet_suite.suite.key, "viewer:li"))
        other.page.goto(link)
        assert answer(other) == shown
        assert other.page.url == link
        typed = page.locator("[data-key=hand]").input_value()
        expect(other.page.locator("[data-key=hand]")).to_have_value(typed)
        expect(other.page.locator(".try-verdict")).to_have_text("胡牌")
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert other.page.evaluate(wide) == 0
    page.locator("[data-mode=score]").click()
    shown = answer(tab)
    assert shown["winners"][0][0] == 0
    assert sum(shown["net"]) == 0


def test_a_hand_of_fourteen_becomes_a_finished_one_and_its_circumstances_count(
    tab: Tab, quiet_suite: Running
) -> None:
    page = tab.page
    look(tab, quiet_suite, urlencode({"rules": "baishan_kele", "hand": "123456m111z77z999m"}))
    page.locator("[data-mode=score]").click()
    assert answer(tab)["net"][0] > 0
    page.locator("[data-key=dealer]").select_option("3")
    page.locator("[data-key=by]").select_option("discard")
    expect(page.locator("[data-missing='try.no_from']")).to_be_visible()
    page.locator("[data-key=from]").select_option("2")
    shown = answer(tab)
    assert "discarder" in next(one[6] for one in shown["losers"] if one[0] == 2)
    assert "dealer" in next(one[6] for one in shown["losers"] if one[0] == 3)
    page.locator("[data-edit-seat='1']").click()
    page.locator("[data-key=piao]").select_option("10")
    assert ["1", "0", 10, "piao"] in answer(tab)["transfers"]
    page.locator("[data-add-meld=pong]").click()
    page.locator("[data-pick='25']").click()
    after = answer(tab)
    assert "closed" not in next(one[6] for one in after["losers"] if one[0] == 1)
    page.locator("summary", has_text="Options").click()
    page.locator("[data-field='rules.options.cap']").fill("4")
    page.locator("[data-field='rules.options.cap']").press("Enter")
    shown = answer(tab)
    assert {one[3] for one in shown["losers"]} == {4}
    assert all(one[5] == "true" for one in shown["losers"])
    page.locator("[data-field='rules.options.cap']").fill("-1")
    page.locator("[data-field='rules.options.cap']").press("Enter")
    assert answer(tab)["errors"] == ["rules.options.cap"]
    tab.provoked("status of 400")


def test_what_is_typed_is_answered_at_the_end_and_an_old_answer_never_comes_over_a_new_one(
    tab: Tab, quiet_suite: Running
) -> None:
    page = tab.page
    page.goto(f"{quiet_suite.console}/try?rules=baishan_kele")
    field = page.locator("[data-key=hand]")
    held: list[Route] = []

    def slowly(route: Route) -> None:
        """The first question waits for its answer, later ones do not."""
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/try/analyze", slowly)
    with page.expect_request("**/api/try/analyze"):
        field.fill("123m456p777s1122z")
    field.press_sequentially("9s")
    new = answer(tab)
    assert new["discards"]
    with page.expect_response("**/api/try/analyze"):
        held[0].continue_()
    page.wait_for_function("() => new Promise((done) => requestAnimationFrame(() => done(true)))")
    assert page.evaluate(READ) == new
    page.unroute("**/api/try/analyze")


def test_garbage_is_told_with_its_place_and_is_not_asked_about(
    tab: Tab, quiet_suite: Running
) -> None:
    page = tab.page
    page.goto(f"{quiet_suite.console}/try?rules=baishan_kele")
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    field = page.locator("[data-key=hand]")
    for text, told in [
        ("123m45x", "sign 7"),
        ("m", "no number before"),
        ("123m8z", "no tile 8z"),
        ("123", "no suit"),
        ("<b>1m", "sign 1"),
        ("123m456p777s1122z0m", "no tile 0m"),
    ]:
        field.fill(text)
        expect(page.locator("[data-error='hand.concealed']")).to_contain_text(told)
        expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("11111m456p777s112z")
    assert answer(tab)["errors"] == ["hand.concealed"]
    expect(page.locator("[data-error='hand.concealed']")).to_contain_text("5 copies of 1m")
    tab.provoked("status of 400")
    field.fill("123m456p777s1122z")
    assert answer(tab)["errors"] == []
    assert len([url for url in asked_for if "/api/try/" in url]) <= 3


def test_a_broken_link_shows_what_can_be_read_of_it(tab: Tab, quiet_suite: Running) -> None:
    query = "rules=jintan&hand=123p456s44p67m&melds=chi-234m.nonsense&seat=9&dealer=x&win=77q&x=1"
    tab.page.goto(f"{quiet_suite.console}/try?{query}")
    lost = tab.page.locator(".try > .error")
    expect(lost).to_contain_text("seat, melds, dealer, win")
    expect(tab.page.locator("[data-key=hand]")).to_have_value("123p456s44p67m")
    tab.page.goto(f"{quiet_suite.console}/try?rules=gone&hand=123m456p777s1122z")
    assert answer(tab)["errors"] == ["rules.id"]
    tab.provoked("status of 404")


def test_every_example_and_a_random_hand_has_an_answer(tab: Tab, quiet_suite: Running) -> None:
    page = tab.page
    page.goto(f"{quiet_suite.console}/try")
    for rules in BUILT_IN:
        page.locator("[data-do=clear]").click()  # not every rule set plays every tile
        page.locator("[data-field='rules.id']").select_option(rules.id)
        examples = page.locator("select[aria-label='Examples…'] option").evaluate_all(
            "(options) => options.map((one) => one.value).filter(Boolean)"
        )
        assert len(examples) >= 2, rules.id
        for example in examples:
            page.locator("select[aria-label='Examples…']").select_option(example)
            page.wait_for_function(
                "(rest) => location.search.includes(rest)", arg=f"rules={rules.id}"
            )
            shown = answer(tab)
            assert shown["errors"] == [], example
            assert shown["waits"] or shown["discards"] or shown["useful"] or shown["net"], example
            assert not page.locator("[data-missing]").count(), example
        page.locator("[data-do=random]").click()
        page.wait_for_function(ANSWERED)
        assert page.locator(".try-facts[data-shanten]").count() == 1
