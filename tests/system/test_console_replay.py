"""A finished hand in a browser: every step of it, what it paid, whether its wall was chosen, and
links to it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from anyio.from_thread import start_blocking_portal
from google.protobuf import json_format
from playwright.sync_api import Browser, Page, expect

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import records_pb2
from fangcheng_console.links import MADE, Link, Signer
from fangcheng_console.settings import ConsoleSettings
from fangcheng_rules.rulesets import BUILT_IN
from tests.console.keeping import Keeping, keeping
from tests.console.world import KEY
from tests.fairness.test_fairness import VECTORS, wall_of
from tests.table.hands import played_record

from .browser import Tab, beside, opened
from .pages import places, tiles_of, token
from .running import fangcheng, running

pytestmark = pytest.mark.system

Record = records_pb2.HandRecord
TILES = """() => [...document.querySelectorAll(".felt [data-tile]")].map((one) =>
  [one.dataset.zone, one.dataset.seat ?? "", one.dataset.index, Number(one.dataset.tile)])"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeping]:
    folder = tmp_path_factory.mktemp("console")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(keeping(folder)) as table,
    ):
        yield table


@pytest.fixture
def tab(browser: Browser, kept: Keeping) -> Iterator[Tab]:
    """A tab in which an operator has signed in."""
    assert kept.world is not None
    with opened(browser) as made:
        made.sign_in(kept.world.address, kept.world.token("operator:mei"))
        yield made


def address(kept: Keeping, path: str) -> str:
    assert kept.world is not None
    return kept.world.address + path


def show(tab: Tab, kept: Keeping, record: Record, query: str = "") -> dict[str, Any]:
    """Go to a record's replay; what its page is told."""
    hand = kept.keep(record)
    tab.page.goto(address(kept, f"/replay/{hand}{query}"))
    tab.page.locator(".replay").wait_for()
    told: dict[str, Any] = tab.page.evaluate(
        "async (path) => (await fetch(path)).json()", f"/api/replay/{hand}"
    )
    return told


def at(page: Page, step: int) -> None:
    """Wait until a step is shown."""
    expect(page.locator(".replay")).to_have_attribute("data-step", str(step))


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_the_replay_reaches_the_end_of_the_record_tile_by_tile(
    tab: Tab, kept: Keeping, rules: Any
) -> None:
    page = tab.page
    told = show(tab, kept, played_record(rules.id, 4), "?step=0&seat=0")
    states = told["states"]
    last = len(states) - 1
    for step in (0, 2, *range(9, last, 23), last):
        page.locator(".replay-slider").fill(str(step))
        at(page, step)
        assert sorted(page.evaluate(TILES)) == tiles_of(states[step])
        felt = page.locator(".felt")
        expect(felt).to_have_attribute("data-wall", str(states[step]["wall"]))
        expect(felt).to_have_attribute("data-number", str(step))
    final = states[last]["ended"]["hand"]["seats"]
    shown: list[list[Any]] = page.evaluate(TILES)
    for number, seat in enumerate(final):
        concealed = [one[3] for one in shown if one[0] == "concealed" and one[1] == str(number)]
        assert sorted(concealed) == sorted(seat["concealed"])


def test_keys_slider_list_and_address_lead_to_the_same_steps(tab: Tab, kept: Keeping) -> None:
    page = tab.page
    told = show(tab, kept, played_record("baishan_kele", 4), "?step=57&seat=2")
    events, last = told["record"]["events"], len(told["states"]) - 1
    at(page, 57)
    expect(page.locator(".replay")).to_have_attribute("data-seat", "2")
    expect(page.locator("[data-choose='2']")).to_have_attribute("aria-pressed", "true")

    def presses(key: str, step: int) -> None:
        page.keyboard.press(key)
        at(page, step)

    turns = [
        number
        for number, event in enumerate(events, 1)
        if "dealt" in event
        or "hand_ended" in event
        or event.get("drawn", {}).get("origin") in ("front", "dealt_out")
    ]
    after = next(turn for turn in turns if turn > 57)
    presses("ArrowRight", 58)
    presses("ArrowLeft", 57)
    presses("ArrowDown", after)
    presses("ArrowUp", max(turn for turn in turns if turn < after))
    # What scrolls a page scrolls this one.
    page.keyboard.press("PageDown")
    page.wait_for_function("() => scrollY > 0")
    at(page, max(turn for turn in turns if turn < after))
    presses("Home", 0)
    presses("ArrowLeft", 0)
    presses("End", last)
    presses("ArrowRight", last)
    # The same on the slider, which has arrows of its own.
    page.locator(".replay-slider").focus()
    presses("ArrowLeft", last - 1)
    presses("Home", 0)
    presses("ArrowDown", turns[0])
    page.locator("[data-event='40'] button").click()
    at(page, 40)
    expect(page.locator(".current")).to_have_attribute("data-event", "40")
    expect(page.locator(".current")).to_be_in_viewport()
    page.locator("[data-choose='3']").click()
    page.wait_for_url(re.compile(r"\?step=40&seat=3$"))
    page.reload()
    at(page, 40)
    expect(page.locator(".replay")).to_have_attribute("data-seat", "3")


def test_it_plays_by_itself_to_the_end_and_stops_where_one_says(tab: Tab, kept: Keeping) -> None:
    page = tab.page
    told = show(tab, kept, played_record("baishan_dazui", 1), "?step=10&seat=0")
    last = len(told["states"]) - 1
    page.get_by_label("Speed").select_option("8")
    page.locator("h1").click()
    page.keyboard.press(" ")
    expect(page.locator(".replay")).to_have_attribute("data-playing", "true")
    page.wait_for_function("() => Number(document.querySelector('.replay').dataset.step) > 12")
    page.keyboard.press(" ")
    expect(page.locator(".replay")).to_have_attribute("data-playing", "false")
    page.locator(".replay-slider").fill(str(last - 2))
    page.locator("[data-act='play']").click()
    at(page, last)
    expect(page.locator(".replay")).to_have_attribute("data-playing", "false")


def test_the_evaluator_s_view_is_shown_for_the_chosen_seat(tab: Tab, kept: Keeping) -> None:
    page = tab.page
    show(tab, kept, played_record("jintan", 4), "?step=0&seat=1")
    path = urlsplit(page.url).path
    expect(page.locator("[data-evaluated='none']")).to_be_visible()
    shown = set()
    for seat in (1, 3):
        told = page.evaluate(
            "async (path) => (await fetch(path)).json()",
            f"/api{path}/analysis?seat={seat}",
        )
        page.locator(f"[data-choose='{seat}']").click()
        for step in range(8, len(told["steps"]), 15):
            one = told["steps"][step]
            if one is None:
                continue
            page.locator(".replay-slider").fill(str(step))
            at(page, step)
            analysis = told["analyses"][one["analysis"]]
            view = page.locator(f"[data-evaluated='{seat}']")
            expect(view).to_have_attribute("data-shanten", str(analysis["shanten"]))
            waits = [
                [wait["tile"], one["left"][str(wait["tile"])], wait["least_fan"]]
                for wait in analysis["waits"]
            ]
            assert waits == view.locator("[data-wait]").evaluate_all(
                "(all) => all.map(({dataset: d}) => [d.wait, d.left, d.fan].map(Number))"
            )
            shown.add("waits" if waits else "discards" if analysis["discards"] else "useful")
    assert shown == {"waits", "discards", "useful"}


def won(rules_id: str) -> Record:
    """A hand that was won."""
    for seed in range(1, 40):
        record = played_record(rules_id, seed)
        if any(event.hand_ended.hand.HasField("win") for event in record.events):
            return record
    raise AssertionError("nobody has won")


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_the_settlement_in_words_is_that_of_the_record(tab: Tab, kept: Keeping, rules: Any) -> None:
    page = tab.page
    record = won(rules.id)
    told = show(tab, kept, record, "?step=9999")
    ended = next(event.hand_ended for event in record.events if event.HasField("hand_ended"))
    settled = record.events[-1].hand_settled
    lines = page.locator(".result-payments li").evaluate_all(
        "(all) => all.map((one) => [{...one.dataset}, one.textContent])"
    )
    assert len(lines) == len(settled.payments)
    net = [0, 0, 0, 0]
    for (data, text), payment in zip(lines, settled.payments, strict=True):
        payer = payment.from_seat if payment.HasField("from_seat") else None
        payee = payment.to_seat if payment.HasField("to_seat") else None
        assert data["from"] == ("house" if payer is None else str(payer))
        assert data["to"] == ("house" if payee is None else str(payee))
        assert (int(data["due"]), int(data["paid"])) == (payment.due, payment.paid)
        assert data["reason"] == payment.reason
        assert f"{payment.due // 10:,} units × 10 = {payment.due:,} Silver" in text
        for seat, sign in ((payer, -1), (payee, 1)):
            if seat is not None:
                net[seat] += sign * payment.paid
                assert record.player_ids[seat] in text
    sums = page.locator(".result-sums tr[data-net]")
    expect(sums).to_have_count(1)
    expect(sums).to_have_attribute("data-net", " ".join(map(str, net)))
    names = {item.id: item for item in _items(ended)}
    rows = page.locator(".result [data-item]").evaluate_all(
        "(all) => all.map((one) => [one.dataset.item, Number(one.dataset.fan), one.textContent])"
    )
    assert sorted((row[0], row[1]) for row in rows) == sorted(
        (item.id, item.fan) for item in _items(ended)
    )
    described = json_format.ParseDict(told["rule_set"], rules_pb2.RuleSet())
    meanings = {item.id: item.meaning for item in described.fan_items}
    for key, _, text in rows:
        assert names[key].name_en in text
        assert names[key].name_zh in text
        assert meanings[key] in text


def test_what_was_cut_or_could_not_be_paid_says_why(tab: Tab, kept: Keeping) -> None:
    record = Record()
    record.CopyFrom(won("shandong"))
    ended = next(event.hand_ended for event in record.events if event.HasField("hand_ended"))
    ended.score.losers[0].capped = True
    first, second = record.events[-1].hand_settled.payments[:2]
    first.paid, second.paid = first.due - 7, second.due - 8
    record.stakes[0].loss_cap = first.paid
    assert first.from_seat != second.from_seat
    assert second.paid < record.stakes[0].loss_cap
    page = tab.page
    for hold_only, why in ((False, "no more in the wallet"), (True, "held for the table")):
        record.hold_only = hold_only
        show(tab, kept, record, "?step=9999")
        lines = page.locator(".result-payments li")
        expect(lines.nth(0)).to_contain_text(
            "7 Silver could not be paid: the table lets nobody lose"
        )
        expect(lines.nth(1)).to_contain_text("8 Silver could not be paid")
        expect(lines.nth(1)).to_contain_text(why)
        expect(page.locator("[data-capped='true']")).to_contain_text("cut by the cap")


def test_the_settlement_in_chinese_has_no_english_sentence(browser: Browser, kept: Keeping) -> None:
    assert kept.world is not None
    record = Record()
    record.CopyFrom(won("baishan_kele"))
    record.stakes[0].currency, record.stakes[0].book = "points", "baishan_kele"
    for payment in record.events[-1].hand_settled.payments:
        payment.currency, payment.book = "points", "baishan_kele"
    with opened(browser, lang="zh") as tab:
        tab.sign_in(kept.world.address, kept.world.token("viewer:wang"))
        show(tab, kept, record, "?step=9999")
        meanings = tab.page.locator(".result [data-item] td[lang]")
        assert meanings.count() > 0
        for meaning in meanings.all():
            expect(meaning).to_have_attribute("lang", "zh-CN")
        first = record.events[-1].hand_settled.payments[0]
        line = tab.page.locator(".result-payments li").nth(0)
        expect(line).to_contain_text(f"× 0.10 = {first.due // 100}.{first.due % 100:02} 积分")
        expect(tab.page.locator(".result-sums tr[data-net] th")).to_have_text("积分")


def _items(ended: Any) -> list[Any]:
    paying = [loser for loser in ended.score.losers if loser.amount or loser.items]
    return [item for part in (*ended.score.winners, *paying) for item in part.items]


def checked(page: Page) -> dict[str, str]:
    """Verify the shuffle; each check and whether it holds."""
    page.locator("[data-act='verify']").click()
    page.locator(".checks li").first.wait_for()
    found: dict[str, str] = page.locator(".checks li").evaluate_all(
        "(all) => Object.fromEntries(all.map(({dataset: d}) => [d.check, d.holds]))"
    )
    return found


CHECKS = ("chain", "named", "hand", "entropy", "tiles", "wall", "dice", "deal", "draws")


@pytest.mark.parametrize("rules", BUILT_IN, ids=lambda rules: rules.id)
def test_an_honest_shuffle_is_verified_in_the_page(tab: Tab, kept: Keeping, rules: Any) -> None:
    show(tab, kept, played_record(rules.id, 2))
    expect(tab.page.locator("[data-evaluated]")).to_be_visible()
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    assert checked(tab.page) == dict.fromkeys(CHECKS, "true")
    assert asked == []
    expect(tab.page.locator("#verify")).to_have_attribute("data-outcome", "true")


def _wall(record: Record) -> None:
    other = next(place for place in range(60, 136) if record.wall[place] != record.wall[59])
    record.wall[59], record.wall[other] = record.wall[other], record.wall[59]


def _tile(record: Record) -> None:
    record.wall[70] = record.wall[70] % 9 + 21


def _secret(record: Record) -> None:
    record.secret = bytes(32)


def _entropy(record: Record) -> None:
    record.entropy[3] = b"late"


def _draw(record: Record) -> None:
    drawn = [event.drawn for event in record.events if event.HasField("drawn")]
    drawn[2].tile = drawn[2].tile % 9 + 21


def _deal(record: Record) -> None:
    dealt = next(event.dealt for event in record.events if event.HasField("dealt"))
    dealt.hands[0].tiles[0] = dealt.hands[0].tiles[0] % 9 + 11


def _dice(record: Record) -> None:
    record.dice[0] = record.dice[0] % 6 + 1


def _commitment(record: Record) -> None:
    record.table_commitment = bytes(32)


@pytest.mark.parametrize(
    ("tamper", "wrong"),
    [
        (_wall, {"wall"}),
        (_tile, {"wall", "tiles"}),
        (_secret, {"chain", "hand", "wall", "deal", "draws"}),
        (_entropy, {"entropy", "wall", "deal", "draws"}),
        (_draw, {"draws"}),
        (_deal, {"deal"}),
        (_dice, {"dice"}),
        (_commitment, {"named"}),
    ],
)
def test_a_record_that_was_changed_is_not_verified(
    tab: Tab, kept: Keeping, tamper: Callable[[Record], None], wrong: set[str]
) -> None:
    record = Record()
    record.CopyFrom(played_record("baishan_kele", 4))
    commitment = bytes(record.table_commitment)
    tamper(record)
    hand = kept.keep(record)
    kept.commitments[hand.partition("/")[0]] = commitment
    tab.page.goto(address(kept, f"/replay/{hand}"))
    found = checked(tab.page)
    if tamper is not _dice:
        del found["dice"]  # which another seed may throw as well
    assert {check for check, holds in found.items() if holds == "false"} == wrong
    assert {check for check, holds in found.items() if holds == "true"} == found.keys() - wrong
    expect(tab.page.locator("#verify")).to_have_attribute("data-outcome", "false")
    expect(tab.page.locator(".check-outcome")).to_have_class(re.compile("bad"))


def test_what_a_player_kept_is_what_counts(tab: Tab, kept: Keeping) -> None:
    record = played_record("shandong", 1)
    show(tab, kept, record)
    field = tab.page.get_by_label("A commitment that a player kept")
    field.fill("no commitment")
    tab.page.locator("[data-act='verify']").click()
    expect(tab.page.locator("#kept-problem")).to_be_visible()
    field.fill("ab" * 32)
    found = checked(tab.page)
    assert {check for check, holds in found.items() if holds == "false"} == {"chain", "named"}
    field.fill(record.table_commitment.hex())
    tab.page.locator("[data-act='verify']").click()
    expect(tab.page.locator("#verify")).to_have_attribute("data-outcome", "true")


def test_what_is_missing_for_a_verdict_is_said(tab: Tab, kept: Keeping) -> None:
    hand = kept.keep(played_record("baicheng", 1))
    del kept.commitments[hand.partition("/")[0]]
    tab.page.goto(address(kept, f"/replay/{hand}"))
    found = checked(tab.page)
    assert found == {**dict.fromkeys(CHECKS, "true"), "chain": "null", "named": "null"}
    expect(tab.page.locator("#verify")).to_have_attribute("data-outcome", "null")
    # A page that came over plain http from elsewhere has no crypto.subtle.
    tab.page.add_init_script("Object.defineProperty(crypto, 'subtle', {value: undefined})")
    tab.page.reload()
    expect(tab.page.locator("#verify [role=alert]")).to_contain_text("https")
    expect(tab.page.locator("[data-act='verify']")).to_have_count(0)


def test_the_vectors_of_the_page_on_fairness_hold_in_the_browser(tab: Tab, kept: Keeping) -> None:
    chain = VECTORS["chain"]
    found = tab.page.evaluate(
        """async ({chain, walls}) => {
          const {fromHex, hashed, hex, seedOf, shuffled} = await import("/static/verify.js");
          const secrets = [];
          for (let hand = 1; hand <= chain.hands; hand += 1) {
            secrets.push(hex(await hashed(fromHex(chain.root), chain.hands - hand)));
          }
          const made = [];
          for (const one of walls) {
            const seed = await seedOf(
              fromHex(one.secret), one.entropy.map(fromHex), one.table_id, one.hand_number);
            made.push(await shuffled(seed, one.tiles, one.dice.length));
          }
          return {secrets, commitment: hex(await hashed(fromHex(secrets[0]), 1)), made};
        }""",
        {
            "chain": chain,
            "walls": [{**one, "tiles": sorted(wall_of(one))} for one in VECTORS["walls"]],
        },
    )
    assert found["secrets"] == chain["secrets"]
    assert found["commitment"] == chain["commitment"]
    assert found["made"] == [
        {"wall": wall_of(one), "dice": one["dice"]} for one in VECTORS["walls"]
    ]


def test_a_link_shows_the_moment_to_a_stranger_until_it_is_revoked(
    tab: Tab, kept: Keeping, browser: Browser
) -> None:
    page = tab.page
    record = played_record("baishan_kele", 4)
    show(tab, kept, record, "?step=77&seat=2")
    table_id = urlsplit(page.url).path.split("/")[2]
    page.get_by_label("Reason").fill("he says he had won")
    page.locator("[data-act='make_link']").click()
    link = page.locator(".made-link").get_attribute("href")
    assert link is not None
    with opened(browser) as stranger:
        stranger.page.goto(address(kept, link))
        at(stranger.page, 77)
        assert sorted(stranger.page.evaluate(TILES)) == sorted(page.evaluate(TILES))
        assert checked(stranger.page) == dict.fromkeys(CHECKS, "true")
        assert stranger.page.context.cookies() == []
        text = stranger.page.locator("body").inner_text()
        for player in record.player_ids:
            assert not re.search(rf"\b{player}\b", text)
        expect(stranger.page.locator("nav")).to_have_count(0)
        stranger.page.keyboard.press("End")
        stranger.page.locator(".result-payments").wait_for()
        links = stranger.page.locator("main a").evaluate_all("(all) => all.map((a) => a.href)")
        assert links
        assert all(re.search("/api/r/.*/record", one) for one in links), links
        # The rest of the console is as shut as before.
        stranger.page.goto(address(kept, "/hands"))
        stranger.page.wait_for_url("**/sign-in?next=%2Fhands")

        page.locator(".links summary").click()
        page.locator(".links input").fill("sent to the wrong one")
        page.locator(".links .danger").click()
        expect(page.locator(".links")).to_have_count(0)
        stranger.page.goto(address(kept, link))
        expect(stranger.page.locator("[data-reason='LINK_REVOKED']")).to_be_visible()
        stranger.provoked("410")
    # All of it stands in the operator log.
    page.goto(address(kept, f"/log?target={table_id}"))
    page.locator("[data-number]").first.wait_for()
    lines = page.locator("[data-number]").all_inner_texts()
    for line, said in zip(lines, ("Link revoked", "Link opened", "Link made"), strict=True):
        assert said in line
    assert "sent to the wrong one" in lines[0]
    assert "mei" in lines[2]
    page.locator("[data-number] summary").last.click()
    expect(page.locator("[data-number]").last).to_contain_text("good until")
    page.locator("select[name='verb']").select_option(MADE)
    page.get_by_role("button", name="Find").click()
    expect(page.locator("[data-number]")).to_have_count(1)


def with_end(record: Record, **end: Any) -> Record:
    """The record of a hand that ended otherwise, for which nobody pays."""
    changed = Record()
    changed.CopyFrom(record)
    del changed.events[-1]
    ended = changed.events[-1].hand_ended
    ended.score.Clear()
    kept_seats = list(ended.hand.seats)
    ended.hand.CopyFrom(rules_pb2.FinishedHand(dealer=ended.hand.dealer, seats=kept_seats, **end))
    return changed


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_way_a_hand_may_end_is_told(kept: Keeping, browser: Browser, lang: Any) -> None:
    record = won("shandong")
    name = record.player_ids[2]
    several = Record()
    several.CopyFrom(record)
    ended = next(one.hand_ended for one in several.events if one.HasField("hand_ended"))
    first = ended.hand.win.winners[0]
    second = next(seat for seat in range(4) if seat not in (first, ended.hand.win.from_seat))
    ended.hand.win.winners.append(second)
    ended.score.winners.add().CopyFrom(ended.score.winners[0])
    ended.score.winners[1].seat = second
    ends: list[tuple[Record, list[str], int]] = [
        (several, [record.player_ids[first], record.player_ids[second]], 2),
        (with_end(record, draw=rules_pb2.DrawEnd()), [{"en": "Drawn", "zh": "荒庄"}[lang]], 0),
        (
            with_end(record, escape=rules_pb2.EscapeEnd(seat=2)),
            [name, {"en": "for good", "zh": "本局结束"}[lang]],
            0,
        ),
        (
            with_end(record, eight_flowers=rules_pb2.EightFlowersEnd(seat=2)),
            [name, {"en": "flowers", "zh": "花牌"}[lang]],
            0,
        ),
        (
            with_end(record, dissolved=rules_pb2.DissolvedEnd(reason="vote")),
            [{"en": "voted", "zh": "投票"}[lang]],
            0,
        ),
        (with_end(record, dissolved=rules_pb2.DissolvedEnd(reason="case_81")), ["case_81"], 0),
    ]
    assert kept.world is not None
    with opened(browser, lang=lang) as tab:
        tab.sign_in(kept.world.address, kept.world.token("viewer:wang"))
        for changed, said, winners in ends:
            show(tab, kept, changed, "?step=9999")
            for text in said:
                expect(tab.page.locator(".result-head")).to_contain_text(text)
            expect(tab.page.locator("[data-winner]")).to_have_count(winners)
            if not winners:
                expect(tab.page.locator(".result-payments")).to_have_count(0)
            # The list of events says it in the same words.
            said_last = tab.page.locator("[data-kind='hand_ended']")
            expect(said_last).to_contain_text(said[-1])


def test_a_link_that_has_expired_shows_nothing(kept: Keeping, browser: Browser) -> None:
    table_id, _, number = kept.keep(played_record("baishan_kele", 4)).partition("/")
    signer = Signer(ConsoleSettings(dev_key=KEY))
    now = int(time.time())
    good, old = (
        signer.token(Link("a link", table_id, int(number), ends)) for ends in (now + 3_600, now - 1)
    )
    with opened(browser, lang="zh") as stranger:
        stranger.page.goto(address(kept, f"/r/{good}"))
        stranger.page.locator(".replay").wait_for()
        stranger.page.goto(address(kept, f"/r/{old}"))
        refused = stranger.page.locator("[data-reason='LINK_EXPIRED']")
        expect(refused).to_contain_text("已过期")
        expect(stranger.page.locator("[data-tile]")).to_have_count(0)
        stranger.provoked("410")


def test_a_hand_that_is_not_there_says_so(tab: Tab, kept: Keeping) -> None:
    tab.page.goto(address(kept, "/replay/nowhere/1"))
    expect(tab.page.locator("[data-reason='NOT_FOUND']")).to_be_visible()
    tab.provoked("404")


def test_a_hand_of_bots_is_found_replayed_and_verified(browser: Browser, tmp_path: Path) -> None:
    """The whole way, with the services as they run."""
    with (
        running(tmp_path, "--tables", "1", "--think", "0.1") as suite,
        opened(browser, lang="zh", theme="dark", width=390) as tab,
    ):
        hand = beside(places(suite)).hand
        page = tab.page
        tab.sign_in(suite.console, token(suite, "viewer:wang"))
        page.goto(f"{suite.console}/hands?table={hand[0]}")
        row = page.locator(f"tr[data-table='{hand[0]}'][data-hand='{hand[1]}']")
        row.locator("a[href^='/replay/']").click()
        page.locator(".replay").wait_for()
        page.keyboard.press("End")
        page.locator(".result-payments").wait_for()
        exported = fangcheng("record", hand[0], str(hand[1]), "--json", "--state", str(suite.state))
        record = json_format.Parse(exported.stdout, Record())
        told = page.evaluate(
            "async (path) => (await fetch(path)).json()", f"/api/replay/{hand[0]}/{hand[1]}"
        )
        assert json_format.ParseDict(told["record"], Record()) == record
        assert sorted(page.evaluate(TILES)) == tiles_of(told["states"][-1])
        expect(page.locator("[data-evaluated]")).to_be_visible()
        assert set(checked(page).values()) == {"true"}
        expect(page.locator(".replay-links")).to_have_count(0)
        with page.expect_download() as download:
            page.locator("[data-act='json']").click()
        assert json.loads(download.value.path().read_text("utf-8"))["table_id"] == hand[0]
        # Bots play for points alone: the wallets' page does not begin with a currency without news.
        page.goto(f"{suite.console}/wallet")
        page.locator("[data-standing]").first.wait_for()
        expect(page.locator("[data-key=currency]")).to_have_value("points")
