"""Packed hands: what a record says, and that all are answered whatever becomes of a stream."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest

from fangcheng.evaluation.v1 import evaluation_pb2 as pb
from fangcheng.evaluation.v1 import evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng_client import connect, explain, hands
from fangcheng_client.hands import Found, Hand, Meld, Moment, pack, unpack
from fangcheng_kit import Kit, Servicer, Settings, errors, serving
from fangcheng_kit.tokens import mint_token
from fangcheng_rules import moments, packed
from tests.kit.echo import KEY

RULES = rules_pb2.RuleSet(
    id="baishan_kele",
    revision=3,
    options=[
        rules_pb2.OptionSpec(id="piao", default_value=rules_pb2.OptionValue(boolean=True)),
        rules_pb2.OptionSpec(id="cap", default_value=rules_pb2.OptionValue(integer=50)),
        rules_pb2.OptionSpec(id="least", default_value=rules_pb2.OptionValue(integer=2)),
    ],
    packed_options=["least", "piao"],
    fan_items=[
        rules_pb2.FanItemSpec(id="closed", whose="both"),
        rules_pb2.FanItemSpec(id="discarder", whose="loser"),
        rules_pb2.FanItemSpec(id="self_draw", whose="winner"),
    ],
)


# Records.


def test_the_layout_is_that_of_the_rules() -> None:
    """It is stated in both places, since the client knows nothing of the rules."""
    assert (hands.HAND, hands.RESULT) == (packed.HAND, packed.RESULT)
    assert (hands.HAND.itemsize, hands.RESULT.itemsize) == (32, 40)
    assert hands.LAYOUT == packed.LAYOUT
    assert list(hands.STATUSES) == [reason for reason, _ in packed.STATUSES]
    assert (hands.NOT_ASKED, hands.NEVER) == (packed.NOT_ASKED, packed.NEVER)
    assert {flag.name: flag.value for flag in Moment} == {
        flag.name: flag.value for flag in moments.Moment
    }


def test_a_hand_is_read_from_text() -> None:
    assert Hand.read("123m44p77s [555z] (1111s) +7s") == Hand(
        [11, 12, 13, 24, 24, 37, 37, 37],
        [Meld("pong", [45, 45, 45]), Meld("concealed_kong", [31] * 4)],
        37,
    )
    melds = Hand.read("11m [123s] [2222p] [567z] [5567z]").melds
    assert [meld.kind for meld in melds] == ["chi", "exposed_kong", "whirlwind", "whirlwind"]
    for text in ("123m +12p", "1x", "12"):
        with pytest.raises(ValueError, match="1"):
            Hand.read(text)


def test_a_record_holds_each_field_at_its_place() -> None:
    hand = Hand.read("1112m9p99s7z [5567z] (3333p) +7z")
    moment = Moment.SELF_DRAW | Moment.DEALER
    options = {"piao": False, "least": 5}
    hand = Hand(hand.concealed, hand.melds, hand.won, moment, options, treasure=31)
    data = pack(RULES, [hand]).tobytes()
    assert len(data) == 32
    assert [int.from_bytes(data[at : at + 4], "little") for at in (0, 4, 8, 12)] == [
        3 + (1 << 3),
        1 << 24,
        2 << 24,
        2 << 18,
    ]
    assert [*data[16:20]] == [0 << 6 | 32, 3 << 6 | 12, 0, 0]
    assert data[20] == 0b000001  # one 5z was added
    assert data[21] == 34
    assert data[22] == 1 + 64
    assert data[23] == 18 + 1  # the treasure is 1s
    assert [*data[24:]] == [5, 0, 0, 0, 0, 0, 0, 0]


def test_options_left_out_have_their_defaults() -> None:
    (record,) = pack(RULES, ["123456789m11p44z"])
    assert [*record["options"]] == [2, 1, 0, 0]


@pytest.mark.parametrize(
    ("hand", "told"),
    [
        (Hand([51]), "51 is no tile"),
        (Hand([0]), "0 is no tile"),
        (Hand([11] * 8), "more than seven of 1m"),
        (Hand([11], [Meld("chow", [11, 12, 13])]), "no meld is 'chow'"),
        (Hand([11], [Meld("chi", [])]), "no meld is 'chi' of no tiles"),
        (Hand([11], [Meld("pong", [12])]), "no meld is 'pong' of 2m"),
        (Hand([11], [Meld("chi", [13, 12, 11])]), "no meld is 'chi' of 321m"),
        (Hand([11], [Meld("chi", [41, 42, 43])]), "no meld is 'chi' of 123z"),
        (Hand([11], [Meld("whirlwind", [*[45] * 5, 46, 47])]), "'whirlwind' of 5555567z"),
        ("11m []", "brackets without tiles"),
        ("11m ()", "brackets without tiles"),
        (Hand.read("11m [124m]"), "no meld is 'chi' of 124m"),
        (Hand.read("11m [55z]"), "no meld is 'exposed_kong' of 55z"),
        (Hand.read("11m (123m)"), "no meld is 'concealed_kong' of 123m"),
        (Hand([11], [Meld("pong", [12, 12, 12])] * 5), "5 melds"),
        (Hand([11], options={"cap": 5}), "packs no option 'cap'; it packs: least, piao"),
        (Hand([11], options={"least": 256}), "option 'least' is 256"),
        (Hand([11], options={"least": -1}), "option 'least' is -1"),
        (Hand([11], moment=256), "256 is no moment"),
    ],
)
def test_what_has_no_place_in_a_record_is_refused(hand: Hand, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pack(RULES, [hand])


def test_counts_make_the_records_that_hands_do() -> None:
    rng = random.Random(5)
    counts = np.zeros((50, 34), np.uint8)
    made = []
    for row in counts:
        tiles = rng.sample([kind for kind in range(34) for _ in range(4)], 14)
        for kind in tiles:
            row[kind] += 1
        made.append(Hand([hands._TILES[kind] for kind in tiles]))
    assert hands.from_counts(RULES, counts).tobytes() == pack(RULES, made).tobytes()
    with pytest.raises(ValueError, match="34"):
        hands.from_counts(RULES, counts[:, :33])
    with pytest.raises(ValueError, match="0 to 7"):
        hands.from_counts(RULES, counts + 8)


def test_results_are_read_back() -> None:
    results = np.zeros(3, hands.RESULT)
    results[0] = (5, 0, 0, 0, 0, 0, 0, [0] * 24)
    results[1] = (0, 1, -1, 127, 7, 0, 0, [1, 2, *[0] * 22])
    results[2] = (0, 0, 127, 0, 0, 0, 1 << 9 | 1 << 33, [0] * 24)
    assert unpack(RULES, results) == [
        Found("FIFTH_COPY", False, 0, {}, [], 0, 0),
        Found("", True, 7, {"closed": 1, "self_draw": 2}, [], -1, None),
        Found("", False, 0, {}, [21, 47], None, 0),
    ]


def test_without_numpy_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['numpy'] = None\nimport fangcheng_client.hands"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "install fangcheng-client[hands]" in done.stderr
    plain = "import sys; sys.modules['numpy'] = None\nimport fangcheng_client"
    assert subprocess.run([sys.executable, "-c", plain], check=False).returncode == 0


# The call.


class Marking(evaluation_pb2_grpc.EvaluationServiceServicer):
    """Answers each hand with its first word as its waits; fails as its script tells.

    The script has a step for each message: an error to refuse it with, a function for the answer's
    bytes, or None for an answer as it should be. Beyond its end there are no more troubles.
    """

    def __init__(self, *script: Exception | Callable[[bytes], bytes] | None) -> None:
        self.script = list(script)
        self.calls: list[str] = []
        self.sizes: list[int] = []
        self.held: asyncio.Event | None = None
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()

    async def ListRuleSets(self, request: Any, context: Any) -> pb.ListRuleSetsResponse:
        return pb.ListRuleSetsResponse(rule_sets=[RULES])

    async def EvaluateHands(self, request: Any, context: Any) -> pb.EvaluateHandsResponse:
        self.calls.append("unary")
        return pb.EvaluateHandsResponse(layout=1, results=await self._results(request))

    async def StreamHands(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        self.calls.append("stream")
        try:
            async for request in requests:
                yield pb.StreamHandsResponse(layout=1, results=await self._results(request))
        except asyncio.CancelledError:
            self.gone.set()
            raise

    async def _results(self, request: Any) -> bytes:
        assert (request.rule_set, request.revision, request.layout) == ("baishan_kele", 3, 1)
        given = np.frombuffer(request.hands, hands.HAND)
        self.sizes.append(len(given))
        self.asked.set()
        step = self.script.pop(0) if self.script else None
        if isinstance(step, Exception):
            raise step
        if self.held is not None:
            await self.held.wait()
        results = np.zeros(len(given), hands.RESULT)
        results["waits"] = given["concealed"][:, 0]
        results["status"] = len(request.questions)
        return results.tobytes() if step is None else step(results.tobytes())

    async def Analyze(self, request: Any, context: Any) -> Any:
        raise AssertionError("not asked here")

    async def AnalyzeBatch(self, request: Any, context: Any) -> Any:
        raise AssertionError("not asked here")

    async def Score(self, request: Any, context: Any) -> Any:
        raise AssertionError("not asked here")

    async def ScoreBatch(self, request: Any, context: Any) -> Any:
        raise AssertionError("not asked here")


@asynccontextmanager
async def served(service: Marking) -> AsyncIterator[grpc.aio.Channel]:
    @asynccontextmanager
    async def open_service(settings: Settings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        add = evaluation_pb2_grpc.add_EvaluationServiceServicer_to_server
        yield [Servicer(add, service, "fangcheng.evaluation.v1.EvaluationService")]

    settings = Settings(dev_key=KEY, drain_seconds=0.0, grace_seconds=0.1)
    async with (
        serving("evaluation", settings, open_service) as running,
        connect(running.address, token=mint_token(KEY, "operator")) as channel,
    ):
        yield channel


def numbered(count: int) -> hands.Records:
    records = np.zeros(count, hands.HAND)
    records["concealed"][:, 0] = np.arange(1, count + 1)
    return records


def in_order(results: hands.Records, count: int) -> bool:
    return results["waits"].tolist() == list(range(1, count + 1))


async def test_hands_are_split_sent_and_collected_in_their_order() -> None:
    service, told = Marking(), []
    async with served(service) as channel:
        rules = await hands.rule_set(channel, "baishan_kele")
        results = await hands.evaluate(
            channel,
            rules,
            numbered(1_050),
            hands_per_message=100,
            questions=[hands.WAITS, hands.SHANTEN],
            progress=lambda done, total: told.append((done, total)),
        )
        with pytest.raises(KeyError):
            await hands.rule_set(channel, "p17")
    assert in_order(results, 1_050)
    assert set(results["status"]) == {2}
    assert service.calls == ["stream"] * 4
    assert sorted(service.sizes) == [50, *[100] * 10]
    assert len(told) == 11
    assert told[-1] == (1_050, 1_050)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    results["fan"] = 1  # the caller's own, to write to as well


async def test_what_fits_in_a_message_is_one_call() -> None:
    service = Marking()
    async with served(service) as channel:
        assert in_order(await hands.evaluate(channel, RULES, numbered(7)), 7)
        assert len(await hands.evaluate(channel, RULES, numbered(0))) == 0
    assert service.calls == ["unary"]


BROKEN = errors.Unavailable("GONE", "Gone.")
BUSY = errors.ResourceExhausted("EVALUATOR_BUSY", "Busy.", retry_after_seconds=0.05)


@pytest.mark.parametrize("error", [BROKEN, BUSY])
@pytest.mark.parametrize("streams", [1, 3])
async def test_what_a_stream_did_not_answer_is_asked_again(error: Exception, streams: int) -> None:
    """The stream breaks before, between and after answers; no hand is lost and none comes twice."""
    service = Marking(None, error, None, None, error, error, None, error)
    dones: list[int] = []
    async with served(service) as channel:
        results = await hands.evaluate(
            channel,
            RULES,
            numbered(1_000),
            hands_per_message=100,
            streams=streams,
            progress=lambda done, _: dones.append(done),
        )
    assert in_order(results, 1_000)
    assert dones == list(range(100, 1_001, 100))
    assert not service.script
    assert len(service.calls) > streams


async def test_a_single_call_is_repeated_too() -> None:
    service = Marking(BUSY, BUSY)
    async with served(service) as channel:
        assert in_order(await hands.evaluate(channel, RULES, numbered(5)), 5)
    assert service.calls == ["unary"] * 3


OTHER = errors.FailedPrecondition("UNKNOWN_LAYOUT", "Another.")


@pytest.mark.parametrize(("count", "calls"), [(5, ["unary"]), (500, ["stream"])])
async def test_what_does_not_pass_by_waiting_is_raised_at_once(
    count: int, calls: list[str]
) -> None:
    service = Marking(OTHER)
    async with served(service) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await hands.evaluate(channel, RULES, numbered(count), hands_per_message=100, streams=1)
    assert explain(error.value).reason == "UNKNOWN_LAYOUT"
    assert service.calls == calls


async def test_a_refusal_that_is_lost_in_the_middle_of_a_stream_is_heard() -> None:
    """gRPC tells no status where a message is being written: it is asked for again."""
    service = Marking(None, None, OTHER, OTHER)
    async with served(service) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await hands.evaluate(channel, RULES, numbered(900), hands_per_message=100, streams=1)
    assert explain(error.value).reason == "UNKNOWN_LAYOUT"
    assert len(service.calls) <= 2


async def test_it_gives_up_in_the_end() -> None:
    service = Marking(*[BUSY] * 1_000)
    async with served(service) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await hands.evaluate(channel, RULES, numbered(5), give_up_seconds=0.1)
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(service.calls) < 1_000


@pytest.mark.parametrize("count", [5, 500])
async def test_an_answer_of_another_size_is_no_answer(count: int) -> None:
    service = Marking(lambda results: results[:-1])
    async with served(service) as channel:
        with pytest.raises(RuntimeError, match="bytes of layout 1"):
            await hands.evaluate(channel, RULES, numbered(count), hands_per_message=100)


async def test_cancelled_it_ends_the_streams() -> None:
    service = Marking()
    service.held = asyncio.Event()
    async with served(service) as channel:
        asking = asyncio.ensure_future(
            hands.evaluate(channel, RULES, numbered(500), hands_per_message=100, streams=1)
        )
        await asyncio.wait_for(service.asked.wait(), 60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.wait_for(service.gone.wait(), 60)


@pytest.mark.parametrize(
    ("more", "told"),
    [({"hands_per_message": 0}, "1 to 100000"), ({"streams": 0}, "a stream at least")],
)
async def test_what_cannot_be_sent_is_refused(more: dict[str, Any], told: str) -> None:
    async with served(Marking()) as channel:
        with pytest.raises(ValueError, match=told):
            await hands.evaluate(channel, RULES, numbered(5), **more)
        with pytest.raises(ValueError, match="records of"):
            await hands.evaluate(channel, RULES, np.zeros(5, np.uint8))
