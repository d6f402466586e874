"""Spans of the kit, what is passed on without any, and collectors that are away."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest

from fangcheng_kit import Batcher, Settings, otlp, tracing
from fangcheng_kit.app import StartFailed
from fangcheng_kit.settings import BadSettings, load
from fangcheng_kit.trace_context import Trace, parsed, within
from tests.kit.collector import Collector, collecting
from tests.kit.conftest import Eventually
from tests.kit.echo import KEY, SERVICE, Echo, EchoRequest, Stub, connected, serving_echo
from tests.kit.lines import lines_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
UNARY = f"{SERVICE}/Unary"


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        (PARENT, Trace(TRACE, SPAN, True)),
        (f"00-{TRACE}-{SPAN}-00", Trace(TRACE, SPAN, False)),
        (f"00-{TRACE}-{SPAN}-03", Trace(TRACE, SPAN, True)),
        (f"cc-{TRACE}-{SPAN}-01-what comes later", Trace(TRACE, SPAN, True)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE[1:]}-{SPAN}-01", None),
        ("no trace", None),
        ("", None),
    ],
)
def test_a_traceparent_is_read_as_w3c_has_it(parent: str, expected: Trace | None) -> None:
    assert parsed(parent) == expected


def test_a_place_is_written_as_it_was_read() -> None:
    trace = parsed(PARENT, "vendor=1")
    assert trace is not None
    assert (trace.parent, trace.state) == (PARENT, "vendor=1")
    assert parsed(PARENT, "v=" + "1" * 600) == Trace(TRACE, SPAN, True)


async def test_without_a_collector_a_callers_trace_is_passed_on_and_in_the_lines() -> None:
    seen: list[dict[str, str]] = []

    class Seeing(Echo):
        async def Unary(self, request: object, context: grpc.aio.ServicerContext) -> object:
            seen.append(dict(context.invocation_metadata()))
            return await super().Unary(request, context)

    echo = Seeing()
    with lines_of("echo") as lines:
        async with serving_echo(echo) as running, connected(running) as channel:
            echo.passed_on = running.kit.connect(running.address)
            await Stub(channel).Unary(
                EchoRequest(text="pass on"),
                metadata=(("traceparent", PARENT), ("tracestate", "vendor=1")),
            )
            await Stub(channel).Unary(EchoRequest(text="a"))
    assert [call.get("traceparent") for call in seen] == [PARENT, PARENT, None]
    assert [call.get("tracestate") for call in seen] == ["vendor=1", "vendor=1", None]
    calls = [line for line in lines if line.get("grpc_method") == "Unary"]
    assert [line.get("trace_id") for line in calls] == [TRACE, TRACE, None]
    assert [line.get("span_id") for line in calls] == [SPAN, SPAN, None]


def test_without_a_collector_opentelemetry_is_not_imported() -> None:
    script = """
import asyncio, sys
import fangcheng_table.service, fangcheng_matchmaking.service
from tests.kit.echo import EchoRequest, Stub, connected, serving_echo

async def main():
    async with serving_echo() as running, connected(running) as channel:
        await Stub(channel).Unary(EchoRequest(text="a"))

asyncio.run(main())
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "FANGCHENG_INTERPRETED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as collector:
        yield collector


async def test_a_call_and_what_it_calls_are_one_trace(collector: Collector) -> None:
    echo = Echo()
    async with (
        serving_echo(echo, otlp_endpoint=collector.endpoint) as running,
        connected(running) as channel,
    ):
        echo.passed_on = running.kit.connect(running.address)
        header = ("traceparent", PARENT)
        await Stub(channel).Unary(EchoRequest(text="pass on"), metadata=(header,))
        for text in ("fail", "crash"):
            with pytest.raises(grpc.aio.AioRpcError):
                await Stub(channel).Unary(EchoRequest(text=text))
    spans = {one.span_id: one for one in collector.of(TRACE)}
    (outer,) = [one for one in spans.values() if one.parent_id == SPAN]
    (client,) = [one for one in spans.values() if one.parent_id == outer.span_id]
    (inner,) = [one for one in spans.values() if one.parent_id == client.span_id]
    assert [one.kind for one in (outer, client, inner)] == [2, 3, 2]  # server, client, server
    assert {one.name for one in spans.values()} == {UNARY}
    assert inner.attributes["rpc.grpc.status_code"] == 0
    assert inner.attributes["fangcheng.caller"] == "service"
    others = [one for one in collector.spans if one.trace_id != TRACE]
    assert {one.attributes["fangcheng.reason"]: one.failed for one in others} == {
        "NOT_NOW": False,  # its caller's fault
        "INTERNAL": True,
    }


async def test_a_share_of_the_traces_that_begin_here_is_exported(collector: Collector) -> None:
    async with (
        serving_echo(otlp_endpoint=collector.endpoint, trace_ratio=0) as running,
        connected(running) as channel,
    ):
        stub = Stub(channel)
        await stub.Unary(EchoRequest(text="a"))
        for header in (PARENT, PARENT[:-1] + "0"):  # of others the caller has decided
            await stub.Unary(EchoRequest(text="b"), metadata=(("traceparent", header),))
    (span,) = collector.spans
    assert (span.trace_id, span.parent_id) == (TRACE, SPAN)


async def test_a_batch_is_linked_with_all_who_have_asked_for_it(collector: Collector) -> None:
    async def work(items: Sequence[int]) -> Sequence[int]:
        here = tracing.here()
        assert here is not None
        ran_in.append(here.span_id)
        return items

    ran_in: list[str] = []
    causes = [Trace(f"{n:032x}", f"{n:016x}", True) for n in (1, 2, 3)]

    async def submit(batcher: Batcher[int, int], n: int) -> None:
        with within(causes[n]):
            await batcher.submit(n)

    async with (
        serving_echo(otlp_endpoint=collector.endpoint) as running,
        Batcher(work, tracing=running.kit.tracing, span="the batch") as batcher,
    ):
        await submit(batcher, 0)
        await asyncio.gather(*(submit(batcher, n) for n in range(3)))
    (span,) = collector.named("the batch")  # what is alone needs none
    assert ran_in == [causes[0].span_id, span.span_id]
    assert (span.trace_id, span.parent_id) == (causes[0].trace_id, causes[0].span_id)
    assert span.links == {(one.trace_id, one.span_id) for one in causes[1:]}
    assert span.attributes == {"fangcheng.items": 3}


async def test_a_collector_that_hangs_or_is_away_harms_no_call_and_no_stop(
    eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "CLOSE_SECONDS", 0.1)
    async with collecting(hangs=True) as collector:
        for endpoint in (collector.endpoint, "http://127.0.0.1:1"):
            async with (
                serving_echo(otlp_endpoint=endpoint) as running,
                connected(running) as channel,
            ):
                for _ in range(2 * otlp.MOST_WAITING):  # more than may wait
                    running.kit.tracing.span("one of many").end()
                await eventually(collector.asked.is_set)
                assert (await Stub(channel).Unary(EchoRequest(text="a"))).text == "a"


def test_the_collector_may_be_named_by_opentelemetrys_own_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FANGCHENG_DEV_KEY", KEY)
    assert load("echo", Settings).otlp_endpoint == ""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4317")
    assert load("echo", Settings).otlp_endpoint == "http://all:4317"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://traces:4317")
    assert load("echo", Settings).otlp_endpoint == "https://traces:4317"
    monkeypatch.setenv("FANGCHENG_OTLP_ENDPOINT", "http://ours:4317")
    assert load("echo", Settings).otlp_endpoint == "http://ours:4317"


@pytest.mark.parametrize(
    "endpoint",
    [
        *("127.0.0.1:4317", "collector", "ftp://all:4317", "http://", "https:///x", "http://:4317"),
        *(
            "http://[::1",
            "http://all:99999",
            "http://all:x",
            "http://a ll:4317",
            "http://all\n:4317",
        ),
    ],
)
def test_what_is_no_collector_ends_the_start(
    monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("FANGCHENG_DEV_KEY", KEY)
    monkeypatch.setenv("FANGCHENG_ECHO_OTLP_ENDPOINT", endpoint)
    with pytest.raises(
        BadSettings, match=r"(?s)FANGCHENG_ECHO_OTLP_ENDPOINT.*expected http://HOST"
    ):
        load("echo", Settings)


async def test_without_the_extra_a_service_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "fangcheng_kit.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(StartFailed, match=r"fangcheng-kit\[tracing\]"):
        async with serving_echo(otlp_endpoint="http://127.0.0.1:4317"):
            pass
