"""Acts of operators through the console, with the real services: what is shown, done and logged."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fangcheng.matchmaking.v1 import matchmaking_pb2
from fangcheng.matchmaking.v1 import operations_pb2 as queues
from fangcheng.table.v1 import operators_pb2, state_pb2
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2

from .operating import Office, office, reason, said, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Office]:
    async with office(tmp_path_factory.mktemp("office")) as opened:
        yield opened


async def done(desk: Office, preview: dict[str, Any], **more: object) -> dict[str, Any]:
    """Do what a preview shows; the outcome. The log has it, in the operator's name."""
    body = desk.body(preview, **more)
    answer = await desk.operator.post("/api/operate", body)
    assert answer.status_code == 200, answer.text
    outcome: dict[str, Any] = answer.json()
    story = await desk.story(body["request_id"])
    assert story is not None
    assert (outcome["status"], outcome["is_logged"]) == ("done", True)
    assert (story["number"], story["status"]) == (outcome["number"], "done")
    assert (story["person"], story["verb"]) == ("operator:mei", preview["verb"])
    assert (story["reason"], story["case_id"]) == (body["reason"], body["case_id"])
    assert story["preview"] == {name: preview[name] for name in ("says", "warnings", "impossible")}
    (outcome_line,) = story["later"]
    assert outcome_line["says"] == outcome["says"]
    assert outcome_line["person"] == "operator:mei"
    # The same again is not done again.
    again = await desk.operator.post("/api/operate", body)
    assert again.json() == {**outcome, "replayed": True}
    assert await desk.story(body["request_id"]) == story
    return outcome


async def noted_at(desk: Office, table_id: str) -> list[tuple[str, str, str, str]]:
    """What the table service has noted itself: operator, verb, reason, detail."""
    found = await desk.stub("operations").ListOperatorActions(
        operators_pb2.ListOperatorActionsRequest(table_id=table_id)
    )
    return [(one.operator, one.verb, one.reason, one.detail) for one in found.actions]


async def test_a_hand_is_voided_and_nothing_is_paid(desk: Office) -> None:
    table_id, names = await desk.table()
    preview = await desk.preview("void_hand", table_id=table_id)
    told = said(preview)
    assert told["about_table"] == {
        "table": table_id, "rules": "baishan_kele", "hand": 1, "players": names,
    }  # fmt: skip
    assert told["hand_ends_unpaid"] == {"hand": 1}
    assert 0 < told["wall_left"]["tiles"] < 136
    assert "next_hand" in told
    assert (preview["impossible"], preview["warnings"]) == (None, [])
    assert preview["confirm"] == table_id[-6:]
    assert preview["call"] == {
        "name": "VoidHand", "request": {"table_id": table_id, "hand_number": 1},
    }  # fmt: skip
    outcome = await done(desk, preview)
    assert said(outcome)["voided"] == {"hand": 1}
    assert await desk.silver(names) == [(900, 100)] * 4
    assert await noted_at(desk, table_id) == [
        ("operator:mei", "void_hand", "the line was cut", "1")
    ]


async def test_the_last_hand_s_end_is_the_table_s(desk: Office) -> None:
    table_id, names = await desk.table(hands=1)
    preview = await desk.preview("void_hand", table_id=table_id)
    assert "last_hand" in said(preview)
    await done(desk, preview)
    await desk.has_closed(table_id, "hands_played")
    assert said(await desk.preview("void_hand", table_id=table_id)).keys() == {
        "about_table", "told_to_table",
    }  # fmt: skip
    refused = await desk.preview("void_hand", table_id=table_id)
    assert refused["impossible"] == {"key": "table_is_closed", "params": {}}
    assert reason(await desk.act(refused)) == (409, "IMPOSSIBLE_NOW")
    await desk.has_silver(names, 1_000, 0)


async def test_a_preview_of_another_hand_is_stale_and_nothing_is_done(desk: Office) -> None:
    table_id, _ = await desk.table()
    preview = await desk.preview("void_hand", table_id=table_id)
    await done(desk, preview)

    async def next_hand() -> bool:
        table = await desk.get_table(table_id)
        return (table.hand_number, table.phase) == (2, state_pb2.TABLE_PHASE_PLAYING)

    await until(next_hand, "the next hand is played")
    stale = desk.body(preview)
    assert reason(await desk.operator.post("/api/operate", stale)) == (409, "STALE_PREVIEW")
    assert await desk.story(stale["request_id"]) is None
    assert await desk.is_played(table_id)
    now = await desk.preview("close_table", table_id=table_id)
    now["seen"]["hand"] = 1
    assert reason(await desk.act(now)) == (409, "STALE_PREVIEW")
    assert await desk.is_played(table_id)


async def test_a_table_is_closed_at_once_and_the_holds_are_released(desk: Office) -> None:
    table_id, names = await desk.table(buy_in=250)
    preview = await desk.preview("close_table", table_id=table_id)
    told = said(preview)
    assert told["hand_ends_unpaid"] == {"hand": 1}
    assert told["holds_released"] == {
        "count": 4, "money": [{"currency": "silver", "book": "", "amount": 1_000}],
    }  # fmt: skip
    assert preview["confirm"] == table_id[-6:]
    assert preview["currencies"][0]["names"]["zh"] == "银子"
    assert "closed" in said(await done(desk, preview))
    await desk.has_silver(names, 1_000, 0)
    await desk.has_closed(table_id, "closed")


async def test_a_table_is_closed_after_its_hand(desk: Office) -> None:
    table_id, _ = await desk.table()
    preview = await desk.preview("close_table_after_hand", table_id=table_id)
    assert said(preview)["closes_after"] == {"hand": 1}
    assert preview["confirm"] == ""
    assert said(await done(desk, preview))["closes_after"] == {"hand": 1}
    assert await desk.is_played(table_id)
    await done(desk, await desk.preview("void_hand", table_id=table_id))
    await desk.has_closed(table_id, "closed")


async def test_at_a_table_without_stakes_nothing_is_held(desk: Office) -> None:
    names = [f"{name}-free" for name in ("ann", "bob", "cat", "dan")]
    table_id, _ = await desk.table(names, buy_in=0)
    told = said(await desk.preview("close_table", table_id=table_id))
    assert "nothing_staked" in told


async def test_a_player_is_removed_and_played_for_until_the_hand_ends(desk: Office) -> None:
    table_id, names = await desk.table()
    preview = await desk.preview("remove_player", table_id=table_id, player_id=names[1])
    told = said(preview)
    assert told["played_for"] == {"player": names[1], "hand": 1}
    assert told["holds_released"]["count"] == 1
    assert said(await done(desk, preview))["removed"] == {"player": names[1]}
    seat = (await desk.get_table(table_id)).seats[1]
    assert (seat.player_id, seat.trustee) == (names[1], True)
    assert await noted_at(desk, table_id) == [
        ("operator:mei", "remove", "the line was cut", names[1])
    ]
    stranger = await desk.preview("remove_player", table_id=table_id, player_id="eve")
    assert stranger["impossible"] == {"key": "not_at_table", "params": {"player": "eve"}}


async def pool(desk: Office, pool_id: str) -> matchmaking_pb2.Pool:
    found = await desk.stub("matchmaking").ListPools(matchmaking_pb2.ListPoolsRequest())
    (one,) = [one for one in found.pools if one.pool_id == pool_id]
    return one


async def test_a_pool_is_paused_shut_and_opened_again(desk: Office) -> None:
    names = await desk.players()
    for name in names[:3]:
        joined = matchmaking_pb2.JoinQueueRequest(request_id="q", pool_id="silver")
        await desk.stub("matchmaking", f"player:{name}").JoinQueue(joined)
    preview = await desk.preview("pause_pool", pool_id="silver")
    assert said(preview)["about_pool"] == {"pool": "silver", "name": "for silver"}
    assert said(preview)["waiting_wait"] == {"count": 3}
    assert "others_may_come" in said(preview)
    await done(desk, preview)
    paused = await pool(desk, "silver")
    assert (paused.paused, paused.closed) == (True, False)

    listed = (await desk.operator.get("/api/operate/pools")).json()["pools"]
    told = {one["pool_id"]: one for one in listed}["silver"]
    assert (told["waiting"], told["paused"], told["closed"]) == (3, True, False)
    assert (told["pause"]["person"], told["pause"]["reason"]) == (
        "operator:mei", "the line was cut",
    )  # fmt: skip

    assert reason(await desk.act(preview)) == (409, "STALE_PREVIEW")
    shut = await desk.preview("close_pool", pool_id="silver")
    assert {"pause_replaced", "nobody_comes", "told_to_players"} <= said(shut).keys()
    await done(desk, shut)
    assert (await pool(desk, "silver")).closed
    resume = await desk.preview("resume_pool", pool_id="silver")
    assert said(resume)["waiting_matched"] == {"count": 3}
    await done(desk, resume)
    assert not (await pool(desk, "silver")).paused
    again = await desk.preview("resume_pool", pool_id="silver")
    assert again["impossible"] == {"key": "not_paused", "params": {}}


async def test_a_player_is_frozen_and_free_again(desk: Office) -> None:
    table_id, names = await desk.table(buy_in=300)
    ann = names[0]
    preview = await desk.preview("freeze_player", player_id=ann)
    told = said(preview)
    assert told["sits_at"] == {"player": ann, "table": table_id}
    assert "hand_goes_on" in told
    assert told["holds_stay"] == {
        "money": [{"currency": "silver", "book": "", "amount": 300}],
    }  # fmt: skip
    assert preview["impossible"] is None
    await done(desk, preview)
    assert await desk.frozen(ann)
    frozen = await desk.preview("freeze_player", player_id=ann)
    assert frozen["impossible"]["key"] == "is_frozen"
    assert frozen["impossible"]["params"]["reason"] == "the line was cut"
    free = await desk.preview("unfreeze_player", player_id=ann)
    assert said(free)["is_frozen"]["case"] == "case-7"
    await done(desk, free)
    assert not await desk.frozen(ann)
    assert (await desk.preview("unfreeze_player", player_id=ann))["impossible"] == {
        "key": "not_frozen", "params": {},
    }  # fmt: skip


async def test_a_pair_is_barred_and_unbarred(desk: Office) -> None:
    table_id, (ann, bob, *_) = await desk.table()
    preview = await desk.preview("bar_pair", player_id=ann, other_id=bob)
    assert said(preview)["sit_together"] == {"player": ann, "other": bob, "table": table_id}
    await done(desk, preview)
    listed = await desk.stub("queue_operations").ListBarredPairs(
        queues.ListBarredPairsRequest(player_id=bob)
    )
    assert [(one.player_id, one.other_id) for one in listed.pairs] in ([(bob, ann)], [(ann, bob)])
    for player, other in ((ann, bob), (bob, ann)):
        told = (await desk.operator.get(f"/api/operate/players/{player}")).json()
        assert [(one["other_id"], one["reason"], one["case"]) for one in told["pairs"]] == [
            (other, "the line was cut", "case-7")
        ]
        assert told["table_id"] == table_id
        assert told["wallet"]["frozen"] is False
    turned = await desk.preview("bar_pair", player_id=bob, other_id=ann)
    assert turned["impossible"]["key"] == "is_barred"
    await done(desk, await desk.preview("unbar_pair", player_id=bob, other_id=ann))
    told = (await desk.operator.get(f"/api/operate/players/{ann}")).json()
    assert told["pairs"] == []


async def test_a_name_that_nobody_has_is_a_warning(desk: Office) -> None:
    ann, *_ = await desk.players()
    preview = await desk.preview("bar_pair", player_id=ann, other_id="written-wrong")
    assert said(preview, "warnings") == {"no_wallet": {"player": "written-wrong"}}


async def reversal(desk: Office, key: str) -> settlement_pb2.Reversal:
    found = await desk.stub("settlements").GetSettlement(
        settlement_pb2.GetSettlementRequest(key=key)
    )
    taken: settlement_pb2.Reversal = found.settlement.reversal
    return taken


def silver(player: str, amount: int) -> dict[str, Any]:
    return {
        "player": player,
        "money": [{"currency": "silver", "book": "", "amount": amount}],
    }


def moves(told: dict[str, Any]) -> list[tuple[str, Any]]:
    kept = ("gets_back", "gives_back", "owes")
    return sorted((one["key"], one["params"]["player"], one["params"]["money"][0]["amount"])
                  for one in told["says"] if one["key"] in kept)  # fmt: skip


async def test_a_settlement_is_taken_back_and_who_cannot_pay_owes(desk: Office) -> None:
    ann, bob, cat, dan = names = await desk.players(silver=500)
    await desk.settle("0197aa/7", names, (0, 1, 300), (2, 1, 40), (3, 2, 100))
    withdraw = wallet_pb2.WithdrawRequest(
        request_id=f"out {bob}", player_id=bob, currency="silver", amount=700
    )
    await desk.stub("wallet").Withdraw(withdraw)
    preview = await desk.preview("reverse_settlement", settlement="0197aa/7")
    assert moves(preview) == [
        ("gets_back", ann, 300), ("gets_back", dan, 100), ("gives_back", bob, 140),
        ("gives_back", cat, 60), ("owes", bob, 200),
    ]  # fmt: skip
    assert preview["confirm"] == "0197aa/7"
    outcome = await done(desk, preview)
    assert moves(outcome) == moves(preview)
    assert [available for available, _ in await desk.silver(names)] == [500, 0, 500, 500]
    assert (await desk.balance(bob)).owed == 200
    assert (await reversal(desk, "0197aa/7")).reason == "the line was cut"
    again = await desk.preview("reverse_settlement", settlement="0197aa/7")
    assert again["impossible"]["key"] == "is_reversed"
    assert again["impossible"]["params"]["case"] == "case-7"
    story = (await desk.operator.get("/api/log?target=0197aa/7")).json()["stories"][0]
    assert story["target"] == {"table_id": "0197aa", "hand_number": 7, "settlement": "0197aa/7"}


async def test_what_a_winner_would_owe_is_part_of_the_preview(desk: Office) -> None:
    names = await desk.players(silver=100)
    key = f"t-{names[0]}/1"
    await desk.settle(key, names, (0, 1, 50))
    preview = await desk.preview("reverse_settlement", settlement=key)
    assert moves(preview) == [("gets_back", names[0], 50), ("gives_back", names[1], 50)]
    withdraw = wallet_pb2.WithdrawRequest(
        request_id=f"out {names[1]}", player_id=names[1], currency="silver", amount=130
    )
    await desk.stub("wallet").Withdraw(withdraw)
    assert reason(await desk.act(preview)) == (409, "STALE_PREVIEW")
    assert not (await reversal(desk, key)).key


async def test_what_is_owed_is_collected_or_written_off(desk: Office) -> None:
    _, bob, *_ = names = await desk.players(silver=500)
    key = f"t-{bob}/1"
    await desk.settle(key, names, (0, 1, 300))
    out = wallet_pb2.WithdrawRequest(
        request_id=f"out {bob}", player_id=bob, currency="silver", amount=800
    )
    await desk.stub("wallet").Withdraw(out)
    await done(desk, await desk.preview("reverse_settlement", settlement=key))
    unit = {"player_id": bob, "currency": "silver", "book": ""}
    poor = await desk.preview("collect_receivable", **unit, amount=120)
    assert poor["impossible"] == {"key": "has_less", "params": silver(bob, 0)}
    deposit = wallet_pb2.DepositRequest(
        request_id=f"in {bob}", player_id=bob, currency="silver", amount=150
    )
    await desk.stub("wallet").Deposit(deposit)
    collect = await desk.preview("collect_receivable", **unit, amount=120)
    assert said(collect)["owes_then"] == silver(bob, 180)
    assert said(await done(desk, collect))["owes"] == silver(bob, 180)
    assert ((await desk.balance(bob)).available, (await desk.balance(bob)).owed) == (30, 180)
    much = await desk.preview("write_off_receivable", **unit, amount=181)
    assert much["impossible"] == {"key": "owes_less", "params": silver(bob, 180)}
    rest = await desk.preview("write_off_receivable", **unit, amount=180)
    assert rest["confirm"] == bob
    assert "owes_nothing" in said(await done(desk, rest))
    assert ((await desk.balance(bob)).available, (await desk.balance(bob)).owed) == (30, 0)


async def test_of_several_operators_at_once_one_acts_upon_what_all_were_shown(
    desk: Office,
) -> None:
    _, bob, *_ = names = await desk.players(silver=500)
    key = f"t-{bob}/1"
    await desk.settle(key, names, (0, 1, 300))
    unit = {"player_id": bob, "currency": "silver"}
    for call, request, amount in (
        ("Withdraw", wallet_pb2.WithdrawRequest, 800),
        ("Deposit", wallet_pb2.DepositRequest, 250),
    ):
        if call == "Deposit":
            await done(desk, await desk.preview("reverse_settlement", settlement=key))
        await getattr(desk.stub("wallet"), call)(
            request(request_id=f"{call} {bob}", amount=amount, **unit)
        )
    preview = await desk.preview("collect_receivable", **unit, book="", amount=50)
    answers = await asyncio.gather(*(desk.act(preview) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    assert {reason(one)[1] for one in answers if one.status_code == 409} == {"STALE_PREVIEW"}
    balance = await desk.balance(bob)
    assert (balance.available, balance.owed) == (200, 250)


async def test_a_double_click_does_it_once(desk: Office) -> None:
    table_id, _ = await desk.table()
    body = desk.body(await desk.preview("void_hand", table_id=table_id))
    answers = await asyncio.gather(*(desk.operator.post("/api/operate", body) for _ in range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["number"] for answer in answers}) == 1
    assert len(await noted_at(desk, table_id)) == 1
    story = await desk.story(body["request_id"])
    assert story is not None
    assert [one["kind"] for one in story["later"]] == ["outcome"]


async def test_a_request_id_is_one_act_s(desk: Office) -> None:
    ann, bob, *_ = await desk.players()
    body = desk.body(await desk.preview("freeze_player", player_id=ann))
    assert (await desk.operator.post("/api/operate", body)).status_code == 200
    other = await desk.preview("freeze_player", player_id=bob)
    for changed in (
        {**body, "reason": "another"},
        {**body, "target": other["target"], "seen": other["seen"]},
    ):
        answer = await desk.operator.post("/api/operate", changed)
        assert reason(answer) == (409, "REQUEST_ID_REUSED")
    assert not await desk.frozen(bob)


async def test_what_a_service_refuses_is_told_and_logged(desk: Office) -> None:
    ann, *_ = await desk.players()
    preview = await desk.preview("freeze_player", player_id=ann)
    request_id = f"taken-by-{ann}"
    taken = wallet_pb2.UnfreezePlayerRequest(request_id=request_id, player_id=ann, reason="x")
    await desk.stub("wallet").UnfreezePlayer(taken)
    body = desk.body(preview, request_id=request_id)
    for _ in range(2):
        answer = await desk.operator.post("/api/operate", body)
        assert reason(answer) == (409, "REQUEST_ID_REUSED")
    story = await desk.story(request_id)
    assert story is not None
    assert story["status"] == "refused"
    assert [one["problem"] for one in story["later"]] == ["REQUEST_ID_REUSED"]


@pytest.mark.parametrize(
    ("verb", "target", "problem"),
    [
        ("void_hand", {"table_id": "nowhere"}, (404, "UNKNOWN_TABLE")),
        ("freeze_player", {"player_id": "nobody-at-all"}, (404, "UNKNOWN_WALLET")),
        ("pause_pool", {"pool_id": "nowhere"}, (404, "UNKNOWN_POOL")),
        ("reverse_settlement", {"settlement": "nowhere/1"}, (404, "UNKNOWN_SETTLEMENT")),
        ("bar_pair", {"player_id": "x", "other_id": "x"}, (400, "SAME_PLAYER")),
        ("bar_pair", {"player_id": "x"}, (400, "INVALID_REQUEST")),
        ("void_hand", {"table_id": ""}, (400, "INVALID_REQUEST")),
        ("void_hand", {"table_id": "t" * 65}, (400, "INVALID_REQUEST")),
        ("void_hand", {"table_id": "a\x00b"}, (400, "INVALID_REQUEST")),
        ("void_hand", {"table_id": "t", "after_hand": "1"}, (400, "INVALID_REQUEST")),
        ("shut_down", {"table_id": "t"}, (400, "UNKNOWN_VERB")),
        ("__class__", {}, (400, "UNKNOWN_VERB")),
        (
            "collect_receivable",
            {"player_id": "x", "currency": "silver", "amount": "-1"},
            (400, "INVALID_REQUEST"),
        ),
        (
            "collect_receivable",
            {"player_id": "x", "currency": "silver", "amount": "1e9"},
            (400, "INVALID_REQUEST"),
        ),
    ],
)
async def test_what_there_is_not_is_refused(
    desk: Office, verb: str, target: dict[str, Any], problem: tuple[int, str]
) -> None:
    answer = await desk.operator.client.get("/api/operate/preview", params={"verb": verb, **target})
    assert reason(answer) == problem


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"verb": ["void_hand"]}, "verb"),
    ({"verb": None}, "verb"),
    ({"target": "t1"}, "target"),
    ({"target": {"table_id": {"$ne": ""}}}, "table_id"),
    ({"target": {"table_id": "\ud800"}}, "table_id"),
    ({"seen": None}, "seen"),
    ({"seen": []}, "seen"),
    ({"reason": ""}, "reason"),
    ({"reason": "  \n "}, "reason"),
    ({"reason": "x" * 257}, "reason"),
    ({"reason": 7}, "reason"),
    ({"reason": "a\x00"}, "reason"),
    ({"reason": "\udfff"}, "reason"),
    ({"case_id": "x" * 129}, "case_id"),
    ({"case_id": None}, "case_id"),
    ({"request_id": "short"}, "request_id"),
    ({"request_id": "x" * 65}, "request_id"),
    ({"request_id": "a b c d e f"}, "request_id"),
    ({"request_id": {}}, "request_id"),
]


@pytest.mark.parametrize(("changed", "at"), HOSTILE)
async def test_a_body_that_is_wrong_is_refused_at_its_field(
    desk: Office, changed: dict[str, Any], at: str
) -> None:
    body = {
        "verb": "void_hand", "target": {"table_id": "t"}, "seen": {}, "reason": "r",
        "case_id": "", "request_id": "a-good-one", **changed,
    }  # fmt: skip
    # As text of JSON, in which half a sign can stand.
    answer = await desk.operator.client.post(
        "/api/operate",
        content=json.dumps(body),
        headers={
            "content-type": "application/json",
            "origin": desk.page.address,
            "x-fangcheng-console": "1",
        },
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == at
    assert await desk.story("a-good-one") is None


async def test_viewers_neither_look_nor_act(desk: Office) -> None:
    table_id, _ = await desk.table()
    body = desk.body(await desk.preview("void_hand", table_id=table_id))
    paths = (
        f"/api/operate/preview?verb=void_hand&table_id={table_id}",
        *("/api/operate/pools", "/api/operate/players/ann"),
        *("/api/log", "/api/log/export?format=csv", "/api/log/tables"),
    )
    for path in paths:
        assert reason(await desk.viewer.get(path)) == (403, "OPERATORS_ONLY")
    for path in ("/api/operate", "/api/operate/repeat"):
        assert reason(await desk.viewer.post(path, body)) == (403, "OPERATORS_ONLY")
        async with desk.page.browser() as nobody:
            assert reason(await nobody.post(path, body)) == (401, "NOT_SIGNED_IN")
    assert await desk.is_played(table_id)
    assert await desk.story(body["request_id"]) is None
