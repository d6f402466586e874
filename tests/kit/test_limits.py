"""How much one caller may ask of a process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from fangcheng_client import Problem, connect
from fangcheng_kit import Running, Settings, calls
from fangcheng_kit.contract import Method, methods_of
from fangcheng_kit.errors import ResourceExhausted
from fangcheng_kit.limits import CallerLimits, Rates
from fangcheng_kit.principal import Principal, parse_subject
from tests.kit.conftest import Eventually
from tests.kit.echo import SERVICE, Echo, EchoRequest, Stub, connected, serving_echo
from tests.kit.lines import lines_of
from tests.kit.test_calls import counted, refused

METHODS = {method.name: method for method in methods_of(SERVICE)}


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


# The buckets.


def test_a_full_bucket_gives_a_burst_and_then_one_for_each_interval(clock: Clock) -> None:
    rates = Rates(clock)
    assert [rates.take("ming", 20, 40) for _ in range(40)] == [0.0] * 40
    assert rates.take("ming", 20, 40) == pytest.approx(0.05)
    clock.now += 0.05
    assert rates.take("ming", 20, 40) == 0
    assert rates.take("ming", 20, 40) > 0


def test_what_a_bucket_says_to_wait_is_enough_and_asking_costs_nothing(clock: Clock) -> None:
    rates = Rates(clock)
    for _ in range(50):
        for _ in range(7):
            wait = rates.take("ming", 3, 2)
        assert wait > 0
        clock.now += wait
        assert rates.take("ming", 3, 2) == 0


def test_a_bucket_is_full_again_after_a_pause_and_never_more_than_full(clock: Clock) -> None:
    rates = Rates(clock)
    for _ in range(40):
        rates.take("ming", 20, 40)
    clock.now += 3_600
    assert sum(rates.take("ming", 20, 40) == 0 for _ in range(100)) == 40


def test_buckets_know_nothing_of_each_other(clock: Clock) -> None:
    rates = Rates(clock)
    while rates.take("ming", 20, 40) == 0:
        pass
    assert rates.take("mei", 20, 40) == 0


def test_a_bucket_of_less_than_one_still_gives_one(clock: Clock) -> None:
    rates = Rates(clock)
    assert rates.take("ming", 0.01, 0.02) == 0
    assert rates.take("ming", 0.01, 0.02) == pytest.approx(100)


def test_ever_new_names_do_not_fill_the_memory_nor_free_those_who_keep_calling(
    clock: Clock,
) -> None:
    rates = Rates(clock, most=100)
    for name in range(100_000):
        rates.take(name, 20, 40)
        if name % 50 == 0:
            rates.take("ming", 20, 40)
    assert len(rates) <= 200
    assert rates.take("ming", 20, 40) > 0


# Whose bucket it is.


def limits(
    clock: Clock, registry: CollectorRegistry | None = None, **settings: Any
) -> CallerLimits:
    values = {"dev_key": "k" * 32, **settings}
    return CallerLimits(Settings(**values), registry or CollectorRegistry(), clock)


def taken(callers: CallerLimits, caller: Principal, method: Method, most: int = 1_000) -> int:
    """How many calls are admitted before one is not."""
    for number in range(most):
        try:
            callers.admit(caller, method)
        except ResourceExhausted:
            return number
    return most


MING = parse_subject("player:ming")
BOT = parse_subject("player:bot", ["bot"])
GATEWAY = Principal("player", "ming", frozenset({"act_as"}), via="service:gateway")


@pytest.mark.parametrize(
    ("caller", "settings", "calls"),
    [
        (MING, {}, 40),
        (MING, {"player_calls_per_second": 3}, 6),
        (MING, {"player_calls_per_second": 0}, 1_000),
        (MING, {"player_calls_per_second": 0, "service_calls_per_second": 2}, 1_000),
        (BOT, {}, 1_000),
        (BOT, {"service_calls_per_second": 2}, 4),
        (GATEWAY, {}, 40),
        (GATEWAY, {"service_calls_per_second": 2}, 4),
        (parse_subject("service:table"), {}, 1_000),
        (parse_subject("service:table"), {"service_calls_per_second": 2}, 4),
        (parse_subject("operator:mei"), {"service_calls_per_second": 2}, 4),
    ],
)
def test_callers_have_the_rate_of_their_kind(
    clock: Clock, caller: Principal, settings: dict[str, Any], calls: int
) -> None:
    assert taken(limits(clock, **settings), caller, METHODS["Unary"]) == calls


def test_a_player_has_one_bucket_for_all_calls_however_he_comes(clock: Clock) -> None:
    callers = limits(clock)
    assert taken(callers, MING, METHODS["Unary"]) == 40
    assert taken(callers, MING, METHODS["Split"]) == 0
    assert taken(callers, GATEWAY, METHODS["Unary"]) == 0


def test_a_gateway_pays_once_for_all_its_players_where_services_have_a_rate(clock: Clock) -> None:
    callers = limits(clock, service_calls_per_second=10)
    players = (
        Principal("player", f"p{number}", frozenset({"act_as"}), via="service:gateway")
        for number in itertools.count()
    )
    assert sum(taken(callers, next(players), METHODS["Unary"], 1) for _ in range(100)) == 20


def test_a_call_with_a_limit_of_its_own_has_it_besides(clock: Clock) -> None:
    registry = CollectorRegistry()
    callers = limits(clock, registry)
    assert taken(callers, MING, METHODS["Seldom"]) == 10
    assert taken(callers, MING, METHODS["Unary"]) == 30
    clock.now += 2
    assert taken(callers, MING, METHODS["Seldom"]) == 1
    assert taken(callers, BOT, METHODS["Seldom"]) == 1_000
    assert taken(limits(clock, player_calls_per_second=0), MING, METHODS["Seldom"]) == 1_000
    assert taken(callers, parse_subject("service:table"), METHODS["Seldom"]) == 1_000
    value = registry.get_sample_value
    assert value("fangcheng_calls_limited_total", {"limit": "call"}) == 2
    assert value("fangcheng_calls_limited_total", {"limit": "player"}) == 1


# Over a channel.


async def test_a_player_who_calls_too_often_is_told_when_to_call_again(
    eventually: Eventually,
) -> None:
    async with serving_echo(player_calls_per_second=0.001) as running:
        async with connected(running, "player:ming") as channel:
            stub = Stub(channel)
            assert (await stub.Unary(EchoRequest(text="a"))).text == "a"
            problem = await refused(stub.Unary(EchoRequest(text="a")))
            assert problem.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (problem.reason, problem.metadata) == ("TOO_MANY_CALLS", {"limit": "player"})
            assert problem.retry_after_seconds == pytest.approx(1_000, abs=60)
            assert problem.passes
        async with connected(running, "player:mei") as channel:
            assert (await Stub(channel).Unary(EchoRequest(text="a"))).text == "a"
        # gRPC's own repeating has not asked again by itself.
        await eventually(lambda: counted(running, grpc_code="RESOURCE_EXHAUSTED") == 1)


async def test_calls_that_are_refused_are_calls_too() -> None:
    async with (
        serving_echo(player_calls_per_second=0.001) as running,
        connected(running, "player:ming") as channel,
    ):
        stub = Stub(channel)
        assert (await refused(stub.ForTable(EchoRequest(text="a")))).reason == "CALLER_NOT_ALLOWED"
        assert (await refused(stub.ForTable(EchoRequest(text="a")))).reason == "TOO_MANY_CALLS"


async def open_streams(stub: Stub, count: int) -> list[Any]:
    streams = [stub.Split(EchoRequest(text="a", tags=["hang"])) for _ in range(count)]
    for stream in streams:
        assert (await stream.read()).text == "a"
    return streams


async def no_more_streams(stub: Stub) -> Problem:
    return await refused(stub.Split(EchoRequest(text="a")).read())


async def test_a_player_has_so_many_streams_open_and_a_closed_one_makes_room(
    eventually: Eventually,
) -> None:
    async with (
        serving_echo(player_streams=3) as running,
        connected(running, "player:ming") as channel,
    ):
        stub = Stub(channel)
        streams = await open_streams(stub, 3)
        problem = await no_more_streams(stub)
        assert problem.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert problem.reason == "TOO_MANY_STREAMS"
        assert problem.metadata == {"limit": "player_streams"}
        assert problem.passes
        assert problem.retry_after_seconds
        async with connected(running, "player:mei") as other:
            await open_streams(Stub(other), 3)
        async with connected(running, "player:bot", "bot") as bot:
            await open_streams(Stub(bot), 5)
        streams.pop().cancel()
        await eventually(lambda: counted(running, grpc_code="CANCELLED") >= 1)
        await open_streams(stub, 1)


async def test_a_process_has_so_many_streams_open_for_all(eventually: Eventually) -> None:
    async with serving_echo(streams=3) as running, connected(running) as channel:
        stub = Stub(channel)
        streams = await open_streams(stub, 3)
        assert (await no_more_streams(stub)).metadata == {"limit": "streams"}
        # A call with one answer is none.
        assert (await stub.Unary(EchoRequest(text="a"))).text == "a"
        for stream in streams:
            stream.cancel()
        await eventually(lambda: counted(running, grpc_code="CANCELLED") == 3)
        await open_streams(stub, 3)


async def test_calls_under_way_are_bounded_of_a_player_and_of_all(
    echo: Echo, eventually: Eventually
) -> None:
    async with (
        serving_echo(echo, calls=20, player_calls_per_second=6) as running,
        connected(running, "player:ming") as ming,
        connected(running, "player:mei") as mei,
        connected(running, "service:table") as service,
    ):
        hang = EchoRequest(text="hang")
        ours = [asyncio.ensure_future(Stub(ming).Unary(hang)) for _ in range(12)]
        await eventually(lambda: echo.calls == 12)
        problem = await refused(Stub(ming).Unary(hang))
        assert problem.reason == "TOO_MANY_CALLS"
        theirs = [asyncio.ensure_future(Stub(service).Unary(hang)) for _ in range(8)]
        await eventually(lambda: echo.calls == 20)
        problem = await refused(Stub(mei).Unary(EchoRequest(text="a")))
        assert (problem.reason, problem.metadata) == ("TOO_MANY_CALLS", {"limit": "under_way"})
        assert problem.passes
        assert problem.retry_after_seconds
        for call in (*ours, *theirs):
            call.cancel()
        await eventually(lambda: counted(running, grpc_code="CANCELLED") == 20)
        assert (await Stub(mei).Unary(EchoRequest(text="a"))).text == "a"


async def test_a_stream_that_is_refused_or_fails_is_not_counted_as_open(
    eventually: Eventually,
) -> None:
    async with (
        serving_echo(streams=1, player_streams=1) as running,
        connected(running, "player:ming") as channel,
    ):
        stub = Stub(channel)
        for number in range(5):
            problem = await refused(stub.Split(EchoRequest(text="far too long")).read())
            assert problem.reason == "INVALID_REQUEST"
            await eventually(lambda over=number + 1: counted(running, grpc_method="Split") == over)
        assert (await stub.Split(EchoRequest(text="a")).read()).text == "a"


async def test_a_stream_is_one_call_however_much_is_sent_on_it(running: Running) -> None:
    async def texts() -> AsyncIterator[Any]:
        for _ in range(100):
            yield EchoRequest(text="a")

    async with connected(running, "player:ming") as channel:
        answers = [answer async for answer in Stub(channel).Chat(texts())]
    assert len(answers) == 100


async def test_refused_calls_do_not_fill_the_log_and_their_number_is_told(
    monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(calls, "_LINES_PER_SECOND", 0.001)
    monkeypatch.setattr(calls, "_LINES_AT_ONCE", 3)
    with lines_of("echo") as lines:
        async with serving_echo() as running, connect(running.address) as channel:
            for _ in range(10):
                problem = await refused(Stub(channel).Unary(EchoRequest(text="a")))
                assert problem.reason == "TOKEN_MISSING"
            await eventually(lambda: counted(running, grpc_code="UNAUTHENTICATED") == 10)
            monkeypatch.setattr(calls, "_LINES_AT_ONCE", 1_000)
            await refused(Stub(channel).Unary(EchoRequest(text="a")))
    told = [line for line in lines if line["event"] == "call" and line["level"] == "info"]
    assert [line.get("untold") for line in told] == [None, None, None, 7]
