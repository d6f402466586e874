"""What the page of a replay is told: the record, each state of it, and the evaluator's view."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf import json_format

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.table.v1 import records_pb2
from fangcheng_client import connect
from fangcheng_evaluation import service as evaluation
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import serving
from fangcheng_kit.tokens import mint_token
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_wallet.service import open_service as open_wallet
from fangcheng_wallet.settings import WalletSettings
from tests.system.running import free_port
from tests.table.hands import played_record

from .keeping import Keeping, keeping
from .operating import until
from .world import KEY, NOBODY, Browser

SEEDS = (1, 2, 3)
REPLAY = "/api/replay/"


# Evaluators take a while to start: one is enough for all of these.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Keeping]:
    async with keeping(tmp_path_factory.mktemp("console")) as table:
        yield table


async def asked(browser: Browser, path: str) -> Any:
    answer = await browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def refused(browser: Browser, path: str) -> tuple[int, str]:
    answer = await browser.get(path)
    return answer.status_code, answer.json()["error"]["reason"]


def copy(record: records_pb2.HandRecord) -> records_pb2.HandRecord:
    made = records_pb2.HandRecord()
    made.CopyFrom(record)
    return made


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
async def test_the_last_state_is_what_the_record_says(kept: Keeping, rules: Any) -> None:
    assert kept.world is not None
    async with kept.world.browser("viewer:wang") as browser:
        for seed in SEEDS:
            record = played_record(rules.id, seed)
            told = await asked(browser, REPLAY + kept.keep(record))
            assert json_format.ParseDict(told["record"], records_pb2.HandRecord()) == record
            assert told["commitment"] == record.table_commitment.hex()
            assert told["rule_set"]["id"] == rules.id
            assert sorted(told["rule_set"]["tiles"]) == sorted(record.wall)
            states = told["states"]
            assert len(states) == len(record.events) + 1
            assert [state["number"] for state in states] == list(range(len(states)))
            assert all(not any(seat["concealed"]) for seat in states[0]["seats"])
            ended = next(
                event.hand_ended for event in record.events if event.HasField("hand_ended")
            )
            for number, (seat, hand) in enumerate(
                zip(states[-1]["seats"], ended.hand.seats, strict=True)
            ):
                assert seat["name"] == record.player_ids[number]
                assert seat["concealed"] == list(hand.concealed)
                assert [meld["tiles"] for meld in seat["melds"]] == [
                    list(meld.tiles) for meld in hand.melds
                ]
                assert seat["flowers"] == list(hand.flowers)
                assert seat["standing"] == ended.net[number]
            settled = states[-1]["settled"]["payments"]
            assert [payment["reason"] for payment in settled] == [
                payment.reason for payment in record.events[-1].hand_settled.payments
            ]


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
async def test_no_tile_is_lost_between_the_wall_and_the_seats(kept: Keeping, rules: Any) -> None:
    """At each step the tiles that lie open and those still in the wall are the whole set."""
    assert kept.world is not None
    async with kept.world.browser("viewer:wang") as browser:
        record = played_record(rules.id, 2)
        states = (await asked(browser, REPLAY + kept.keep(record)))["states"]
    for state in states:
        if state["phase"] != "playing":
            continue
        lying = sum(
            len(seat["concealed"])
            + len(seat["river"])
            + len(seat["flowers"])
            + sum(len(meld["tiles"]) for meld in seat["melds"])
            for seat in state["seats"]
        )
        assert lying + state["wall"] == len(record.wall)


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
async def test_the_evaluator_s_view_is_what_analyze_answers(kept: Keeping, rules: Any) -> None:
    world = kept.world
    assert world is not None
    record = played_record(rules.id, 2)
    async with (
        world.browser("viewer:wang") as browser,
        connect(kept.evaluator, mint_token(KEY, "operator")) as channel,
    ):
        stub: Any = EvaluationServiceStub(channel)
        path = REPLAY + kept.keep(record)
        states = (await asked(browser, path))["states"]
        for seat in range(4):
            told = await asked(browser, f"{path}/analysis?seat={seat}")
            assert len(told["steps"]) == len(states)
            evaluated = [
                (state["seats"][seat], step)
                for state, step in zip(states, told["steps"], strict=True)
                if step is not None
            ]
            assert len(evaluated) > 20
            for known, step in evaluated[:: len(evaluated) // 8]:
                request = evaluation_pb2.AnalyzeRequest(
                    rules=record.rules, progress=True, flowers=known["flowers"]
                )
                request.hand.concealed.extend(known["concealed"])
                for meld in known["melds"]:
                    added = request.hand.melds.add(kind=meld["kind"], tiles=meld["tiles"])
                    added.claimed_tile, added.treasure = meld["claimed_tile"], meld["treasure"]
                    if meld["from_seat"] is not None:
                        added.from_seat = meld["from_seat"]
                answer = await stub.Analyze(request)
                assert answer.analysis == json_format.ParseDict(
                    told["analyses"][step["analysis"]], evaluation_pb2.Analysis()
                )


async def test_what_is_left_of_a_tile_is_what_the_seat_has_not_seen(kept: Keeping) -> None:
    assert kept.world is not None
    record = played_record("shandong", 1)
    async with kept.world.browser("viewer:wang") as browser:
        path = REPLAY + kept.keep(record)
        told = await asked(browser, path)
        states = told["states"]
        analysed = await asked(browser, f"{path}/analysis?seat=0")
    compared, shown = 0, set()
    events = [{}, *told["record"]["events"]]
    for event, state, step in zip(events, states, analysed["steps"], strict=True):
        if event.get("discarded", {}).get("shown"):
            shown.add(event["discarded"]["seat"])
        if step is None or state["ended"]:
            continue
        seen = [*state["turned"]]
        for number, seat in enumerate(state["seats"]):
            seen += seat["river"]
            if number == 0 or number in shown:
                seen += seat["concealed"]
                if number != 0 and seat["drawn"]:
                    seen.remove(seat["drawn"])
            for meld in seat["melds"]:
                if number == 0 or number in shown or meld["kind"] != "concealed_kong":
                    seen += meld["tiles"]
        for tile, left in step["left"].items():
            assert left == 4 - seen.count(int(tile))
            compared += 1
    assert shown
    assert compared > 100


async def test_a_replay_is_asked_for_once_and_told_compressed(kept: Keeping) -> None:
    assert kept.world is not None
    path = REPLAY + kept.keep(played_record("baishan_kele", 1))
    before = kept.asked
    async with kept.world.browser("viewer:wang") as browser:
        packed = await browser.get(path)
        plain = await browser.get(path, **{"accept-encoding": "identity"})
        await browser.get(f"{path}/analysis?seat=1")
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json()
    assert len(gzip.compress(plain.content)) * 5 < len(plain.content)
    assert kept.asked == before + 1


async def test_a_hand_that_may_still_be_paid_is_asked_for_again(kept: Keeping) -> None:
    assert kept.world is not None
    record = copy(played_record("baishan_kele", 1))
    path = REPLAY + kept.keep(record)
    paid = record.events.pop()
    assert paid.HasField("hand_settled")
    async with kept.world.browser("viewer:wang") as browser:
        assert (await asked(browser, path))["states"][-1]["settled"] is None
        record.events.append(paid)
        assert (await asked(browser, path))["states"][-1]["settled"] is not None


async def test_what_cannot_be_shown_says_why(kept: Keeping) -> None:
    assert kept.world is not None
    path = REPLAY + kept.keep(played_record("baishan_kele", 1))
    async with kept.world.browser("viewer:wang") as browser:
        assert await refused(browser, "/api/replay/nowhere/1") == (404, "NOT_FOUND")
        assert await refused(browser, "/api/replay/t1/0") == (404, "UNKNOWN_HAND")
        for hand in ("99999999999", "9" * 5_000, "-1", "١"):
            assert await refused(browser, f"/api/replay/t1/{hand}") == (404, "UNKNOWN_HAND")
        assert await refused(browser, f"{path}/analysis?seat=4") == (400, "INVALID_SEAT")
        assert await refused(browser, f"{path}/analysis") == (400, "INVALID_SEAT")
        assert await refused(browser, f"{path}/record.exe") == (400, "INVALID_FORMAT")
    async with kept.world.browser() as stranger:
        for more in ("", "/analysis?seat=0", "/record.json"):
            assert await refused(stranger, path + more) == (401, "NOT_SIGNED_IN")


async def test_an_evaluator_without_the_revision_is_told_of_and_the_replay_shown(
    kept: Keeping,
) -> None:
    assert kept.world is not None
    record = copy(played_record("baishan_kele", 1))
    record.rules.revision = 99
    path = REPLAY + kept.keep(record)
    async with kept.world.browser("viewer:wang") as browser:
        assert (await asked(browser, path))["rule_set"] is None
        assert await refused(browser, f"{path}/analysis?seat=0") == (409, "UNKNOWN_REVISION")


async def test_without_an_evaluator_the_replay_is_shown(tmp_path: Path) -> None:
    async with keeping(tmp_path, evaluation=NOBODY) as kept:
        assert kept.world is not None
        path = REPLAY + kept.keep(played_record("baishan_kele", 1))
        async with kept.world.browser("viewer:wang") as browser:
            assert (await asked(browser, path))["rule_set"] is None
            assert await refused(browser, f"{path}/analysis?seat=0") == (503, "UNAVAILABLE")


async def test_an_evaluator_and_a_wallet_that_come_later_are_heard(tmp_path: Path) -> None:
    evaluator, wallet = (f"127.0.0.1:{free_port()}" for _ in range(2))
    more: dict[str, Any] = {"dev_key": KEY, "grace_seconds": 0.1, "drain_seconds": 0}
    async with keeping(tmp_path, evaluation=evaluator, wallet=wallet) as kept:
        assert kept.world is not None
        path = REPLAY + kept.keep(played_record("baishan_kele", 1))
        async with kept.world.browser("viewer:wang") as browser:

            async def is_told(name: str) -> bool:
                return bool((await asked(browser, path))[name])

            assert not await is_told("rule_set")
            settings = EvaluationSettings(listen=evaluator, **more)
            async with serving("evaluation", settings, evaluation.open_service):
                await until(lambda: is_told("rule_set"), "the rule set is told")
            assert not await is_told("currencies")
            before = kept.asked
            ledger = WalletSettings(listen=wallet, database=str(tmp_path / "wallet.db"), **more)
            async with serving("wallet", ledger, open_wallet):
                await until(lambda: is_told("currencies"), "the currencies are told")
            assert await is_told("currencies")
            assert kept.asked == before  # for the record is kept


async def test_a_table_that_is_gone_has_no_commitment_of_its_own(kept: Keeping) -> None:
    assert kept.world is not None
    path = REPLAY + kept.keep(played_record("baishan_kele", 1))
    kept.commitments.clear()
    async with kept.world.browser("viewer:wang") as browser:
        assert (await asked(browser, path))["commitment"] is None


async def test_a_record_that_is_of_no_hand_is_refused(kept: Keeping) -> None:
    assert kept.world is not None
    record = copy(played_record("baishan_kele", 1))
    next(event.drawn for event in record.events if event.HasField("drawn")).seat = 4
    path = REPLAY + kept.keep(record)
    async with kept.world.browser("viewer:wang") as browser:
        assert await refused(browser, path) == (409, "INVALID_RECORD")
        assert await refused(browser, f"{path}/analysis?seat=0") == (409, "INVALID_RECORD")


async def test_a_downloaded_record_is_the_record(kept: Keeping) -> None:
    assert kept.world is not None
    record = played_record("jintan", 1)
    path = REPLAY + kept.keep(record)
    async with kept.world.browser("viewer:wang") as browser:
        text = await browser.get(f"{path}/record.json")
        packed = await browser.get(f"{path}/record.binpb")
    assert text.headers["content-disposition"] == 'attachment; filename="hand-1.json"'
    assert json_format.Parse(text.text, records_pb2.HandRecord()) == record
    assert records_pb2.HandRecord.FromString(packed.content) == record
    assert json.loads(text.text)["table_id"] == record.table_id
