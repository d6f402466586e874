"""`EvaluateHands` and `StreamHands`: packed hands, over gRPC."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from fangcheng.evaluation.v1 import evaluation_pb2 as pb
from fangcheng.evaluation.v1 import evaluation_pb2_grpc
from fangcheng_client import Problem, connect, explain, hands
from fangcheng_evaluation import bulk, convert
from fangcheng_evaluation.service import open_service
from fangcheng_kit import Running, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_rules import packed
from fangcheng_rules.analysis import analyze
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.notation import meld_to_mpsz, to_mpsz
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.tiles import from_code
from tests.evaluation import wire
from tests.evaluation.conftest import KEY, settings, until_ready
from tests.matchmaking.world import eventually
from tests.rules.random_hands import random_hand, with_whirlwind

Stub = evaluation_pb2_grpc.EvaluationServiceStub

READY = "123456789m11p44z"
WON = "123456789m11p44z +1p"

BY_RULE_SET = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)


def request(data: bytes, **more: Any) -> pb.EvaluateHandsRequest:
    return pb.EvaluateHandsRequest(
        **{"rule_set": "baishan_kele", "layout": 1, "hands": data, **more}
    )


def message(data: bytes, **more: Any) -> pb.StreamHandsRequest:
    return pb.StreamHandsRequest(**{"rule_set": "baishan_kele", "layout": 1, "hands": data, **more})


def record(hand: str = READY) -> bytes:
    from_text = hands.Hand.read(hand)
    tiles = [from_code(tile) for tile in from_text.concealed]
    packed_hand = packed.pack([Hand(tuple(sorted(tiles)))])
    packed_hand["won"] = from_code(from_text.won) + 1 if from_text.won else 0
    return packed_hand.tobytes()


async def problem(call: Awaitable[object]) -> Problem:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return explain(error.value)


@asynccontextmanager
async def served(**more: object) -> AsyncIterator[tuple[Running, grpc.aio.Channel]]:
    async with serving("evaluation", settings(**more), open_service) as running:
        await until_ready(running)
        async with connect(running.address, token=mint_token(KEY, "operator")) as channel:
            yield running, channel


# What is answered.


@BY_RULE_SET
async def test_packed_hands_are_what_analyze_says_of_each(stub: Stub, rules: RuleSet) -> None:
    rng = random.Random(rules.id)
    unplayed = [kind for kind in range(34) if not rules.play_mask >> kind & 1]
    made = (random_hand(rng, rng.choice((13, 14))) for _ in range(2_000))
    given = [hand for hand in made if not any(hand.held[kind] for kind in unplayed)][:120]
    options = rules.complete()
    records = packed.pack(given)
    for one in records:
        packed_options = rules.hot.pack_options(options)
        one["options"] = [packed_options >> 8 * place & 255 for place in range(4)]
    response = await stub.EvaluateHands(request(records.tobytes(), rule_set=rules.id))
    assert response.layout == 1
    results = np.frombuffer(response.results, hands.RESULT)
    won = 0
    for hand, found in zip(given, results, strict=True):
        expected = analyze(rules, options, hand, progress=True)
        assert found["status"] == 0
        assert found["win"] == expected.wins
        assert (found["shanten"], found["shape_shanten"]) == (
            expected.shanten,
            expected.shape_shanten,
        )
        waits = [kind for kind in range(34) if int(found["waits"]) >> kind & 1]
        assert waits == [wait.tile for wait in expected.waits]
        won += expected.wins
    assert won


async def test_the_client_packs_and_reads_what_the_service_says(
    stub: Stub, running: Running
) -> None:
    async with connect(running.address, token=mint_token(KEY, "operator")) as channel:
        rules = await hands.rule_set(channel, "baishan_kele")
        given = hands.pack(rules, [READY, WON, "11111m23456789p"] * 50)
        results = await hands.evaluate(channel, rules, given, hands_per_message=40, streams=2)
    ready, won, never = hands.unpack(rules, results)[:3]
    assert ready.waits == [21, 44]
    assert not ready.wins
    assert won.wins
    assert won.items == {"closed": 1}
    assert won.fan == 1
    assert never.reason == "FIFTH_COPY"
    assert hands.unpack(rules, results)[3:] == [ready, won, never] * 49


async def test_what_the_client_s_page_shows_are_hands(stub: Stub, running: Running) -> None:
    shown = [
        text
        for page in (hands.__doc__, hands.Hand.read.__doc__)
        for text in re.findall(r'["`]([1-9mpsz +()\[\]]{13,})["`]', page or "")
    ]
    assert len(shown) == 3
    async with connect(running.address, token=mint_token(KEY, "operator")) as channel:
        rules = await hands.rule_set(channel, "baishan_kele")
        results = await hands.evaluate(channel, rules, hands.pack(rules, shown))
        assert not results["status"].any()
        with pytest.raises(KeyError, match="there are: baishan_kele, baishan_dazui"):
            await hands.rule_set(channel, "kele")


@BY_RULE_SET
def test_the_client_packs_as_the_rules_do(rules: RuleSet) -> None:
    """Its own way from text to record, against theirs."""
    rng = random.Random(rules.id)
    given = [random_hand(rng, rng.choice((13, 14))) for _ in range(300)]
    if rules.whirlwind:
        given = [with_whirlwind(rng, hand) for hand in given]
        assert any(meld.kind is MeldKind.WHIRLWIND for hand in given for meld in hand.melds)
    told = convert.rule_set_to_wire(rules)
    options = rules.hot.pack_options(rules.complete())
    texts, records = [], np.zeros(len(given), packed.HAND)
    for record_, hand in zip(records, given, strict=True):
        won = rng.choice(hand.concealed) if hand.size == 14 else None
        packed.put(record_, hand, won=won, options=options)
        rest = list(hand.concealed)
        if won is not None:
            rest.remove(won)
        melds = " ".join(meld_to_mpsz(meld).replace("+", "") for meld in hand.melds)
        texts.append(
            f"{to_mpsz(rest)} {melds}" + (f" +{to_mpsz([won])}" if won is not None else "")
        )
    assert hands.pack(told, texts).tobytes() == records.tobytes()


async def test_the_fifth_copy_is_marked_and_the_others_are_answered(stub: Stub) -> None:
    good = record()
    bad = bytearray(good)
    bad[0] += 4  # five 1m
    data = good + bytes(bad) + b"\xff" * 32 + good
    results = np.frombuffer((await stub.EvaluateHands(request(data))).results, hands.RESULT)
    assert [hands.STATUSES[status] for status in results["status"]][1:3] != ["", ""]
    assert hands.STATUSES[results[1]["status"]] == "FIFTH_COPY"
    assert results[1].tobytes()[1:] == results[2].tobytes()[1:] == bytes(39)
    assert results[0] == results[3]
    assert results[0]["status"] == 0


async def test_only_what_is_asked_is_answered(stub: Stub) -> None:
    data = record(READY) + record(WON)
    for question, told in [
        (hands.WAITS, (True, False, 127, 127)),
        (hands.SCORE, (False, True, 127, 127)),
        (hands.SHAPE_SHANTEN, (False, False, 127, 0)),
        (hands.SHANTEN, (False, False, 0, 127)),
    ]:
        answer = await stub.EvaluateHands(request(data, questions=[question]))
        ready, won = np.frombuffer(answer.results, hands.RESULT)
        shown = bool(ready["waits"]), bool(won["win"]), ready["shanten"], ready["shape_shanten"]
        assert shown == told


async def test_what_changes_a_hand_s_worth_is_told_with_the_rule_set(stub: Stub) -> None:
    found = (await stub.ListRuleSets(pb.ListRuleSetsRequest())).rule_sets
    for told, rules in zip(found, RULE_SETS, strict=True):
        assert tuple(told.packed_options) == rules.hot.options
        assert set(told.packed_options) <= {option.id for option in told.options}


REFUSED = [
    ({"rule_set": "p17"}, "NOT_FOUND", "UNKNOWN_RULE_SET", "rule_set"),
    ({"revision": 999}, "FAILED_PRECONDITION", "UNKNOWN_REVISION", "revision"),
    ({"layout": 0}, "FAILED_PRECONDITION", "UNKNOWN_LAYOUT", "layout"),
    ({"layout": 2}, "FAILED_PRECONDITION", "UNKNOWN_LAYOUT", "layout"),
    ({"hands": b""}, "INVALID_ARGUMENT", "INVALID_REQUEST", "hands"),
    ({"hands": bytes(33)}, "INVALID_ARGUMENT", "INVALID_REQUEST", "hands"),
    ({"hands": bytes(32 * 100_001)}, "INVALID_ARGUMENT", "INVALID_REQUEST", "hands"),
    ({"questions": [0]}, "INVALID_ARGUMENT", "INVALID_REQUEST", "questions[0]"),
    ({"questions": [9]}, "INVALID_ARGUMENT", "INVALID_REQUEST", "questions[0]"),
    ({"questions": [1] * 9}, "INVALID_ARGUMENT", "INVALID_REQUEST", "questions"),
    ({"rule_set": ""}, "NOT_FOUND", "UNKNOWN_RULE_SET", "rule_set"),
]


@pytest.mark.parametrize(("more", "code", "reason", "field"), REFUSED)
async def test_a_message_that_cannot_be_read_is_refused(
    stub: Stub, more: dict[str, Any], code: str, reason: str, field: str
) -> None:
    told = await problem(stub.EvaluateHands(request(**{"data": record(), **more})))
    assert (told.code.name, told.reason, told.field) == (code, reason, field)


@pytest.mark.parametrize(("more", "code", "reason", "field"), REFUSED)
async def test_it_ends_a_stream_after_the_answers_before_it(
    stub: Stub, more: dict[str, Any], code: str, reason: str, field: str
) -> None:
    call = stub.StreamHands(iter([message(record()), message(**{"data": record(WON), **more})]))
    assert len((await call.read()).results) == 40
    told = await problem(call.read())
    assert (told.code.name, told.reason, told.field) == (code, reason, field)


async def test_the_most_hands_that_a_message_holds_come_back_whole(stub: Stub, gate: Gate) -> None:
    gate.open.set()
    answer = await stub.EvaluateHands(request(record() * 100_000), timeout=60)
    assert len(answer.results) == 4_000_000
    assert gate.hands == 100_000


async def test_packed_hands_are_not_for_players(running: Running) -> None:
    async with connect(running.address, token=mint_token(KEY, "player:p")) as channel:
        stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)
        told = await problem(stub.EvaluateHands(request(record())))
        assert told.code is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await anext(aiter(stub.StreamHands(iter([message(record())]))))
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED


def changed(changes: list[tuple[int, int]]) -> bytes:
    data = bytearray(record(WON))
    for at, byte in changes:
        data[at] = byte
    return bytes(data)


ANY_RECORD = st.binary(min_size=32, max_size=32)
NEARLY_A_HAND = st.lists(st.tuples(st.integers(0, 31), st.integers(0, 255)), max_size=3).map(
    changed
)


@given(st.lists(ANY_RECORD | NEARLY_A_HAND, min_size=1, max_size=8))
@example_settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_no_bytes_make_it_fail(stub: Stub, records: list[bytes]) -> None:
    good = record()
    data = good + b"".join(one + good for one in records)
    results = np.frombuffer((await stub.EvaluateHands(request(data))).results, hands.RESULT)
    assert len({one.tobytes() for one in results[::2]}) == 1
    assert all(one["status"] < len(hands.STATUSES) for one in results)


# While others ask.


class Gate:
    """Stands in for the kernels in the threads: counts what passes, and can be held shut."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.hands = 0

    def __call__(self, rules: object, given: Any, ask: int, out: Any) -> None:
        assert self.open.wait(30)
        self.hands += len(given)
        out[:] = np.zeros((), hands.RESULT)
        out["waits"] = given["concealed"][:, 0]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch, stub: Stub) -> Gate:
    """In place once the service has warmed up."""
    gate = Gate()
    monkeypatch.setattr(packed, "evaluate", gate)
    return gate


def numbered(start: int, count: int) -> bytes:
    records = np.zeros(count, hands.HAND)
    records["concealed"][:, 0] = np.arange(start, start + count)
    return records.tobytes()


def waiting(running: Running) -> float | None:
    return running.kit.registry.get_sample_value(
        "fangcheng_evaluation_waiting_hands", {"lane": "packed"}
    )


async def test_answers_come_in_the_order_of_the_messages(stub: Stub, gate: Gate) -> None:
    gate.open.set()
    sizes = [1, 300, 5, 20_000, 64, 65, 1_000]
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    sent = [message(numbered(*part)) for part in zip(starts, sizes, strict=True)]
    answers = [answer async for answer in stub.StreamHands(iter(sent))]
    found = [np.frombuffer(answer.results, hands.RESULT)["waits"] for answer in answers]
    assert [len(one) for one in found] == sizes
    assert np.concatenate(found).tolist() == list(range(sum(sizes)))


async def test_a_client_may_wait_for_each_answer(stub: Stub, gate: Gate) -> None:
    gate.open.set()
    call = stub.StreamHands()
    for start in range(0, 1_000, 100):
        await call.write(message(numbered(start, 100)))
        answer = await call.read()
        assert np.frombuffer(answer.results, hands.RESULT)["waits"][0] == start
    await call.done_writing()
    assert await call.read() == grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_no_more_than_two_messages_of_a_stream_are_taken_in(
    running: Running, stub: Stub, gate: Gate
) -> None:
    read = 0

    async def messages() -> AsyncIterator[pb.StreamHandsRequest]:
        nonlocal read
        for start in range(0, 10_000, 1_000):
            read += 1
            yield message(numbered(start, 1_000))

    answers = stub.StreamHands(messages())
    await eventually(lambda: waiting(running) == 2_000)
    # All that the connection takes is on its way, and nothing more is taken in.
    await eventually(lambda: read > 2)
    assert waiting(running) == 2_000
    gate.open.set()
    assert [len(answer.results) async for answer in answers] == [40_000] * 10
    assert waiting(running) == 0


async def test_beyond_the_queue_calls_and_new_streams_are_refused_and_begun_streams_wait() -> None:
    async with served(most_waiting_packed_hands=100_000) as (running, channel):
        stub: Any = evaluation_pb2_grpc.EvaluationServiceStub(channel)
        gate = Gate()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packed, "evaluate", gate)
            stream = stub.StreamHands()
            await stream.write(message(numbered(0, 40_000)))
            await eventually(lambda: waiting(running) == 40_000)
            first = asyncio.ensure_future(stub.EvaluateHands(request(numbered(0, 60_000))))
            await eventually(lambda: waiting(running) == 100_000)

            told = await problem(stub.EvaluateHands(request(numbered(0, 65))))
            assert (told.code.name, told.reason) == ("RESOURCE_EXHAUSTED", "EVALUATOR_BUSY")
            assert 0 < (told.retry_after_seconds or 0) <= 5
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await anext(aiter(stub.StreamHands(iter([message(numbered(0, 65))]))))
            assert explain(error.value).reason == "EVALUATOR_BUSY"
            # The stream's next message waits, and goes before others that would fit.
            await stream.write(message(numbered(40_000, 50_000)))
            gate.open.set()
            answers = [await stream.read(), await stream.read()]
            assert [len(answer.results) for answer in answers] == [1_600_000, 2_000_000]
            assert len((await first).results) == 2_400_000
            await stream.done_writing()
            assert await stream.read() == grpc.aio.EOF
            assert waiting(running) == 0
            refused = running.kit.registry.get_sample_value(
                "fangcheng_evaluation_refused_calls_total", {"lane": "packed"}
            )
            assert refused == 2


async def test_a_stream_too_many_is_refused_until_others_have_ended() -> None:
    async with served(most_streams=2) as (running, channel):
        stub: Any = evaluation_pb2_grpc.EvaluationServiceStub(channel)

        async def opened() -> Any:
            stream = stub.StreamHands()
            await stream.write(message(record()))
            assert len((await stream.read()).results) == 40
            return stream

        async def refused() -> Problem:
            return await problem(anext(aiter(stub.StreamHands(iter([message(record())])))))

        async def is_let_in() -> bool:
            try:
                await opened()
            except grpc.aio.AioRpcError as error:
                if explain(error).reason == "EVALUATOR_BUSY":
                    return False
                raise
            return True

        first, second = await opened(), await opened()
        told = await refused()
        assert (told.code.name, told.reason) == ("RESOURCE_EXHAUSTED", "EVALUATOR_BUSY")
        assert told.retry_after_seconds == 1
        counted = running.kit.registry.get_sample_value(
            "fangcheng_evaluation_refused_calls_total", {"lane": "packed"}
        )
        assert counted == 1
        # It is streams that are too many: a message by itself is answered.
        assert len((await stub.EvaluateHands(request(record()))).results) == 40
        await first.done_writing()
        assert await first.read() == grpc.aio.EOF
        first = await opened()
        await refused()
        # However a stream ends: by a refusal, or because its client has gone.
        await first.write(message(b""))
        assert (await problem(first.read())).reason == "INVALID_REQUEST"
        second.cancel()
        await opened()
        async with asyncio.timeout(30):
            while not await is_let_in():
                pass


@pytest.mark.parametrize("how", ["cancel", "deadline"])
@pytest.mark.parametrize("kind", ["unary", "stream"])
async def test_work_for_a_caller_that_is_gone_ends_with_its_chunk(how: str, kind: str) -> None:
    async with served(chunk_packed_hands=100) as (running, channel):
        stub: Any = evaluation_pb2_grpc.EvaluationServiceStub(channel)
        gate = Gate()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packed, "evaluate", gate)
            timeout = 0.3 if how == "deadline" else 30
            if kind == "unary":
                call = stub.EvaluateHands(request(numbered(0, 20_000)), timeout=timeout)
            else:
                call = stub.StreamHands(iter([message(numbered(0, 20_000))]), timeout=timeout)
            await eventually(lambda: waiting(running) == 20_000 or call.done())
            if how == "cancel":
                call.cancel()
            expected = "CANCELLED" if how == "cancel" else "DEADLINE_EXCEEDED"
            assert (await call.code()).name == expected
            await eventually(lambda: waiting(running) == 0)
            gate.open.set()
            assert len((await stub.EvaluateHands(request(numbered(0, 200)))).results) == 8_000
            assert gate.hands <= 100 + 200


async def test_single_hands_and_health_are_answered_while_bulk_fills_the_threads(
    stub: Stub, running: Running, gate: Gate
) -> None:
    calls = [
        asyncio.ensure_future(stub.EvaluateHands(request(numbered(0, 100_000)))) for _ in range(3)
    ]
    await eventually(lambda: waiting(running) == 300_000)
    assert (await stub.Analyze(wire.analyze(READY))).analysis.waits
    batch = pb.AnalyzeBatchRequest(requests=[wire.analyze(READY)] * 40)
    assert len((await stub.AnalyzeBatch(batch)).results) == 40
    async with grpc.aio.insecure_channel(running.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert not any(call.done() for call in calls)
    gate.open.set()
    assert [len(answer.results) for answer in await asyncio.gather(*calls)] == [4_000_000] * 3


async def test_packed_hands_are_counted(stub: Stub, running: Running) -> None:
    await stub.EvaluateHands(request(record() * 3 + bytes(32)))
    async for _ in stub.StreamHands(iter([message(record() * 70)] * 2)):
        pass
    value = running.kit.registry.get_sample_value

    def counted(call: str, answered: str) -> float | None:
        labels = {"call": call, "rule_set": "baishan_kele", "answered": answered}
        return value("fangcheng_evaluation_hands_total", labels)

    assert counted("EvaluateHands", "yes") == 3
    assert counted("EvaluateHands", "no") == 1
    assert counted("StreamHands", "yes") == 140
    assert counted("StreamHands", "no") == 0
    assert value("fangcheng_evaluation_work_seconds_count", {"lane": "packed"}) >= 1


class Burning:
    """Kernels that take as long as they are told; they note how many they did, and where."""

    def __init__(self, ms_per_hand: float) -> None:
        self.ms_per_hand = ms_per_hand
        self.chunks: list[tuple[int, bool]] = []

    def __call__(self, rules: object, given: Any, ask: int, out: Any) -> None:
        in_loop = threading.current_thread() is threading.main_thread()
        self.chunks.append((len(given), in_loop))
        until = time.thread_time() + len(given) * self.ms_per_hand / 1_000
        while time.thread_time() < until:
            pass
        out[:] = np.zeros((), hands.RESULT)


async def test_what_takes_no_time_is_done_at_once_and_what_takes_some_in_a_thread(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = Burning(ms_per_hand=0.002)
    monkeypatch.setattr(packed, "evaluate", kernels)

    async def chunks(count: int) -> list[tuple[int, bool]]:
        kernels.chunks.clear()
        answers = [a async for a in stub.StreamHands(iter([message(numbered(0, count))]))]
        assert [len(answer.results) for answer in answers] == [40 * count]
        return kernels.chunks.copy()

    assert await chunks(10) == [(10, False)]  # nobody knows yet
    assert await chunks(10) == [(10, True)]
    many = await chunks(10_000)
    assert sum(size for size, _ in many) == 10_000
    assert not any(in_loop for _, in_loop in many)
    assert len(many) > 2  # 20 ms in chunks of some 4
    kernels.ms_per_hand = 2.0
    for _ in range(20):
        last = await chunks(10)
    assert last == [(10, False)]  # they have become slow


# The limits of a message, as the proto states them.


def test_the_limits_are_those_of_the_contract() -> None:
    assert bulk.MOST_HANDS == hands.MOST_HANDS
    # 4 MiB is what client and server take unless told otherwise; with room for the fields around.
    assert bulk.MOST_HANDS * hands.RESULT.itemsize < 4 * 1024 * 1024 - 1_024
    names = {value.name for value in pb.HandQuestion.DESCRIPTOR.values if value.number}
    assert {pb.HandQuestion.Name(question) for question in bulk.ASKS} == names
