"""Links for customer service: what they show, to whom, until when, and what is written of it."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import jwt
import pytest
import pytest_asyncio
from google.protobuf import json_format

from fangcheng.table.v1 import events_pb2, records_pb2
from fangcheng_console.links import (
    MOST_HOURS,
    NAMES,
    OPENINGS_A_MINUTE,
    Link,
    Signer,
    anonymous,
)
from fangcheng_console.oplog import OpLog, Sought
from fangcheng_console.settings import ConsoleSettings
from fangcheng_suite.verify import verify
from tests.table.hands import played_record

from .keeping import Keeping, keeping
from .world import KEY, Browser

pytestmark = pytest.mark.asyncio(loop_scope="module")
OPERATOR = "operator:mei"
SIGNER = Signer(ConsoleSettings(dev_key=KEY))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Keeping]:
    async with keeping(tmp_path_factory.mktemp("console")) as table:
        yield table


async def made(kept: Keeping, hand: str, **body: Any) -> dict[str, Any]:
    assert kept.world is not None
    given = {"reason": "the player asks", **body}
    async with kept.world.browser(OPERATOR) as browser:
        answer = await browser.post(f"/api/replay/{hand}/links", given)
    assert answer.status_code == 201, answer.text
    link: dict[str, Any] = answer.json()
    return {**link, "token": link["path"].removeprefix("/r/")}


async def reason(browser: Browser, path: str, **headers: str) -> tuple[int, str]:
    answer = await browser.get(path, **headers)
    return answer.status_code, answer.json()["error"]["reason"]


def log_of(kept: Keeping) -> OpLog:
    assert kept.log is not None
    return kept.log


def kept_hand(kept: Keeping, rules_id: str = "baishan_kele") -> str:
    return kept.keep(played_record(rules_id, 1))


async def test_a_link_shows_its_hand_to_who_has_not_signed_in(kept: Keeping) -> None:
    assert kept.world is not None
    record = played_record("baishan_kele", 1)
    hand = kept.keep(record)
    link = await made(kept, hand)
    async with kept.world.browser("viewer:wang") as browser:
        full = (await browser.get(f"/api/replay/{hand}")).json()
        analysis = (await browser.get(f"/api/replay/{hand}/analysis?seat=2")).json()
    async with kept.world.browser() as stranger:
        answer = await stranger.get(f"/api/r/{link['token']}")
        assert answer.status_code == 200
        told = answer.json()
        assert (await stranger.get(f"/api/r/{link['token']}/analysis?seat=2")).json() == analysis
        record_told = await stranger.get(f"/api/r/{link['token']}/record.json")
        page = await stranger.get(link["path"])
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    # The shuffle can be checked by it, and every tile is there.
    shown = json_format.Parse(record_told.text, records_pb2.HandRecord())
    verify(shown, bytes.fromhex(told["commitment"]))
    for one, other in zip(told["states"], full["states"], strict=True):
        for seat, known in zip(one["seats"], other["seats"], strict=True):
            assert seat["concealed"] == known["concealed"]
            assert seat["river"] == known["river"]
            assert seat["name"] in NAMES
    # And no player.
    for player in record.player_ids:
        assert player in json.dumps(full)
        assert f'"{player}"' not in answer.text + record_told.text
    assert "club" not in answer.text


async def test_a_link_opens_nothing_else(kept: Keeping) -> None:
    assert kept.world is not None
    mine, other = kept_hand(kept), kept_hand(kept)
    token = (await made(kept, mine))["token"]
    async with kept.world.browser() as stranger:
        assert (await stranger.get(f"/api/r/{token}")).status_code == 200
        assert not stranger.client.cookies
        for path in (
            f"/api/replay/{mine}",
            f"/api/replay/{other}",
            f"/api/replay/{mine}/links",
            f"/api/replay/{mine}/record.json",
            "/api/hands",
        ):
            cookies: tuple[dict[str, str], ...] = ({}, {"cookie": f"fangcheng_console={token}"})
            for headers in cookies:
                assert await reason(stranger, path, **headers) == (401, "NOT_SIGNED_IN")
        answer = await stranger.post("/api/session", {"token": token})
        assert answer.status_code == 401


async def test_a_reason_is_text_that_every_database_takes(kept: Keeping) -> None:
    assert kept.world is not None
    hand = kept_hand(kept)
    link = await made(kept, hand)
    async with kept.world.browser(OPERATOR) as browser:
        for path in (f"/api/replay/{hand}/links", f"/api/links/{link['id']}/revoke"):
            for field in ("reason", "case_id"):
                for text in ("a\0b", "a\x1bb", "x" * 257):
                    answer = await browser.post(path, {"reason": "asked", field: text})
                    error = answer.json()["error"]
                    assert (error["reason"], error["field"]) == ("INVALID_TEXT", field)


async def test_only_operators_make_list_and_revoke_links(kept: Keeping) -> None:
    assert kept.world is not None
    hand = kept_hand(kept)
    link = await made(kept, hand)
    async with kept.world.browser("viewer:wang") as viewer:
        answers = [
            await viewer.post(f"/api/replay/{hand}/links", {"reason": "why not"}),
            await viewer.get(f"/api/replay/{hand}/links"),
            await viewer.post(f"/api/links/{link['id']}/revoke", {"reason": "why not"}),
        ]
        assert [answer.status_code for answer in answers] == [403, 403, 403]
    async with kept.world.browser() as stranger:
        answer = await stranger.post(f"/api/replay/{hand}/links", {"reason": "why not"})
        assert answer.status_code == 401


async def test_making_and_each_opening_stand_in_the_log(kept: Keeping) -> None:
    assert kept.world is not None
    hand = kept_hand(kept)
    table_id, _, number = hand.partition("/")
    link = await made(kept, hand, reason="he says he won", case_id="case-7", hours=2)
    async with kept.world.browser() as stranger:
        for _ in range(2):
            await stranger.get(f"/api/r/{link['token']}")
    stories = await log_of(kept).find(Sought(link_id=link["id"]), 10)
    entries = [story.entry for story in reversed(stories)]
    assert [(one.verb, one.person) for one in entries] == [
        ("make_link", OPERATOR),
        ("open_link", "customer-service"),
        ("open_link", "customer-service"),
    ]
    assert (entries[0].reason, entries[0].case_id) == ("he says he won", "case-7")
    assert entries[0].detail["expires_ms"] == link["expires"] * 1_000
    assert abs(link["expires"] - time.time() - 2 * 3_600) < 60
    for entry in entries:
        assert (entry.target.table_id, str(entry.target.hand_number)) == (table_id, number)


async def test_a_revoked_link_shows_nothing_and_is_listed_no_more(kept: Keeping) -> None:
    assert kept.world is not None
    hand = kept_hand(kept)
    link, another = await made(kept, hand), await made(kept, hand, reason="once more")
    async with kept.world.browser(OPERATOR) as browser, kept.world.browser() as stranger:
        listed = (await browser.get(f"/api/replay/{hand}/links")).json()["links"]
        assert [one["id"] for one in listed] == [another["id"], link["id"]]
        path = f"/api/links/{link['id']}/revoke"
        assert (await browser.post(path, {})).json()["error"]["reason"] == "REASON_MISSING"
        assert (await browser.post(path, {"reason": "sent to the wrong one"})).status_code == 200
        again = await browser.post(path, {"reason": "sent to the wrong one"})
        assert (again.status_code, again.json()["error"]["reason"]) == (409, "LINK_REVOKED")
        unknown = await browser.post("/api/links/nothing/revoke", {"reason": "x"})
        assert (unknown.status_code, unknown.json()["error"]["reason"]) == (404, "UNKNOWN_LINK")
        for more in ("", "/analysis?seat=0", "/record.json"):
            told = await reason(stranger, f"/api/r/{link['token']}{more}")
            assert told == (410, "LINK_REVOKED")
        assert (await stranger.get(f"/api/r/{another['token']}")).status_code == 200
        listed = (await browser.get(f"/api/replay/{hand}/links")).json()["links"]
        assert [one["id"] for one in listed] == [another["id"]]
    story = (await log_of(kept).find(Sought(link_id=link["id"], verbs=("revoke_link",)), 1))[0]
    assert story.entry.reason == "sent to the wrong one"


def _link(hand: str, expires: int) -> Link:
    table_id, _, number = hand.partition("/")
    return Link("some id", table_id, int(number), expires)


async def test_a_link_that_has_expired_shows_nothing(kept: Keeping) -> None:
    assert kept.world is not None
    hand = kept_hand(kept)
    now = int(time.time())
    asked = kept.asked
    async with kept.world.browser() as stranger:
        gone = SIGNER.token(_link(hand, now - 1))
        assert await reason(stranger, f"/api/r/{gone}") == (410, "LINK_EXPIRED")
        assert kept.asked == asked
        good = SIGNER.token(_link(hand, now + 600))
        assert (await stranger.get(f"/api/r/{good}")).status_code == 200


def forged(token: str) -> list[str]:
    """What somebody would send who has one good link."""
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))

    def packed(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    none = packed({"alg": "none", "typ": "JWT"})
    return [
        f"{head}.{packed({**claims, 'hand': 2})}.{signature}",
        f"{head}.{packed({**claims, 'exp': claims['exp'] + 3_600})}.{signature}",
        f"{none}.{body}.",
        f"{none}.{body}.{signature}",
        f"{head}.{body}.{signature[:-2]}",
        f"{head}.{body}",
        jwt.encode(claims, KEY, algorithm="HS256"),
        jwt.encode({**claims, "aud": "fangcheng-console"}, KEY, algorithm="HS256"),
        "x",
        "é",
        "a" * 5_000,
    ]


async def test_a_link_that_was_not_made_here_asks_nobody(kept: Keeping) -> None:
    assert kept.world is not None
    hand = kept_hand(kept)
    token = (await made(kept, hand))["token"]
    asked = kept.asked
    async with kept.world.browser() as stranger:
        for wrong in forged(token):
            assert await reason(stranger, f"/api/r/{wrong}") == (404, "LINK_INVALID"), wrong
    async with kept.world.browser(OPERATOR) as browser:
        session = next(iter(browser.client.cookies.values()))
        assert await reason(browser, f"/api/r/{session}") == (404, "LINK_INVALID")
    assert kept.asked == asked
    assert await log_of(kept).find(Sought(link_id="some other id"), 1) == []


async def test_a_link_of_another_console_is_none_here(kept: Keeping) -> None:
    assert kept.world is not None
    other = Signer(ConsoleSettings(dev_key="another key of another suite, long enough"))
    token = other.token(_link(kept_hand(kept), int(time.time()) + 600))
    async with kept.world.browser() as stranger:
        assert await reason(stranger, f"/api/r/{token}") == (404, "LINK_INVALID")


async def test_a_link_that_is_opened_without_end_does_not_fill_the_log(kept: Keeping) -> None:
    assert kept.world is not None
    link = await made(kept, kept_hand(kept))
    async with kept.world.browser() as stranger:
        for _ in range(OPENINGS_A_MINUTE):
            assert (await stranger.get(f"/api/r/{link['token']}")).status_code == 200
        assert await reason(stranger, f"/api/r/{link['token']}") == (429, "LINK_BUSY")
    opened = await log_of(kept).find(Sought(link_id=link["id"], verbs=("open_link",)), 100)
    assert len(opened) == OPENINGS_A_MINUTE


@pytest.mark.parametrize(
    ("body", "refusal", "field"),
    [
        ({}, "REASON_MISSING", "reason"),
        ({"reason": "  "}, "REASON_MISSING", "reason"),
        ({"reason": 7}, "INVALID_TEXT", "reason"),
        ({"reason": "x" * 257}, "INVALID_TEXT", "reason"),
        ({"reason": "x", "case_id": ["y"]}, "INVALID_TEXT", "case_id"),
        ({"reason": "x", "hours": 0}, "INVALID_HOURS", "hours"),
        ({"reason": "x", "hours": MOST_HOURS + 1}, "INVALID_HOURS", "hours"),
        ({"reason": "x", "hours": 1.5}, "INVALID_HOURS", "hours"),
        ({"reason": "x", "hours": True}, "INVALID_HOURS", "hours"),
        ({"reason": "x", "hours": "24"}, "INVALID_HOURS", "hours"),
    ],
)
async def test_a_link_needs_a_reason_and_a_time(
    kept: Keeping, body: dict[str, Any], refusal: str, field: str
) -> None:
    assert kept.world is not None
    async with kept.world.browser(OPERATOR) as browser:
        answer = await browser.post(f"/api/replay/{kept_hand(kept)}/links", body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["reason"], error["field"]) == (refusal, field)


async def test_a_hand_that_is_not_there_has_no_links(kept: Keeping) -> None:
    assert kept.world is not None
    async with kept.world.browser(OPERATOR) as browser:
        answer = await browser.post("/api/replay/nowhere/1/links", {"reason": "x"})
    assert answer.status_code == 404
    assert await log_of(kept).find(Sought(target="nowhere"), 1) == []


async def test_nobody_s_name_and_no_operator_s_words_are_in_what_a_link_shows() -> None:
    record = records_pb2.HandRecord(
        player_ids=["mei", "zhu", "lan", "ju"],
        labels={"club": "17"},
        events=[
            events_pb2.TableEvent(
                operator_acted=events_pb2.OperatorActed(
                    verb="reveal", reason="do they play together?", case_id="case-7"
                )
            ),
            events_pb2.TableEvent(),
            events_pb2.TableEvent(),
        ],
    )
    record.events[1].player_seated.seat.seat = 2
    record.events[1].player_seated.seat.player_id = "lan"
    record.events[1].player_seated.seat.profile = b"Lan"
    record.events[2].hand_ended.hand.dissolved.reason = "two accounts of one player"
    before = record.SerializeToString()
    shown = anonymous(record)
    text = json_format.MessageToJson(shown)
    for word in ("mei", "zhu", "lan", "ju", "17", "together", "case-7", "accounts", "TGFu"):
        assert word not in text
    assert list(shown.player_ids) == list(NAMES)
    assert shown.events[1].player_seated.seat.player_id == "C"
    assert shown.events[0].operator_acted.verb == "reveal"
    assert record.SerializeToString() == before


async def test_tokens_of_links_are_read_as_they_were_made() -> None:
    link = Link("an id", "桌子", 4_000_000_000, int(time.time()) + 60)
    assert SIGNER.read(SIGNER.token(link)) == link
    assert SIGNER.token(link) != SIGNER.token(replace(link, hand_number=1))
