"""Processes are read from their own `/metrics`, whatever becomes of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from fangcheng_console.scrape import (
    KEPT_SECONDS,
    SERIES,
    Process,
    Scraper,
    Snapshot,
    Target,
    parse,
    quantile,
    targets,
)
from fangcheng_kit.metrics import CallMetrics, MetricsEndpoint, ProcessMetrics, new_registry

START = 1_767_225_600.0


def told(started: float = 1.0, **series: float) -> Snapshot:
    """What a process tells of counters without labels."""
    return {
        "process_start_time_seconds": {(): started},
        **{name: {(): value} for name, value in series.items()},
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("127.0.0.1:7201", [Target("", "127.0.0.1", 7201)]),
        ("table=table:7201", [Target("table", "table", 7201)]),
        (
            " table=a:1 , wallet=b:2,",
            [Target("table", "a", 1), Target("wallet", "b", 2)],
        ),
        ("evaluation=[::1]:7210", [Target("evaluation", "::1", 7210)]),
    ],
)
def test_targets_are_read(text: str, found: list[Target]) -> None:
    assert targets(text) == found


@pytest.mark.parametrize("entry", ["table", "table=", "table=host", ":7201", "a:0", "a:65536"])
def test_an_entry_that_names_no_endpoint_is_named(entry: str) -> None:
    with pytest.raises(ValueError, match="names no metrics endpoint") as caught:
        targets(f"wallet=b:2,{entry}")
    assert repr(entry) in str(caught.value)


def test_what_is_kept_is_what_prometheus_reads_too() -> None:
    registry = new_registry()
    ProcessMetrics(registry, "table")
    CallMetrics(registry).of(None).start()
    hands = Counter("fangcheng_table_hands", "", ("rule_set", "ending"), registry=registry)
    hands.labels("pu\\er", 'so "called"').inc(3)
    hands.labels("baicheng", "draw").inc(4)
    waits = Histogram("fangcheng_matchmaking_wait_seconds", "", ("pool",), registry=registry)
    waits.labels("a,b} 1").observe(0.3)
    waits.labels("c").observe(1e9)
    Gauge("fangcheng_tables", "", ("rule_set", "phase"), registry=registry).labels("x", "y").set(2)
    Gauge("not_ours", "", registry=registry).set(1)
    text = generate_latest(registry).decode()

    expected: Snapshot = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name in SERIES:
                key = tuple(sample.labels.get(label, "") for label in SERIES[sample.name])
                series = expected.setdefault(sample.name, {})
                series[key] = series.get(key, 0.0) + sample.value
    assert parse(text) == expected
    assert parse(text)["fangcheng_table_hands_total"] == {(): 7}
    assert parse(text)["fangcheng_matchmaking_wait_seconds_bucket"][("+Inf",)] == 2


@pytest.mark.parametrize(
    ("share", "buckets", "value"),
    [
        (0.5, {}, None),
        (0.5, {1.0: 0, math.inf: 0}, None),
        (0.5, {1.0: 10, math.inf: 10}, 0.5),
        (0.9, {1.0: 5, 2.0: 10, math.inf: 10}, 1.8),
        (0.99, {1.0: 5, 2.0: 5, math.inf: 10}, 2.0),
    ],
)
def test_a_quantile_lies_in_its_bucket(
    share: float, buckets: dict[float, float], value: float | None
) -> None:
    assert quantile(share, buckets) == pytest.approx(value)


def test_a_counter_that_begins_anew_has_grown_by_what_it_tells_since() -> None:
    process = Process("a:1", "table")
    process.heard(START, told(1.0, hands=100))
    assert process.rate("hands") is None
    process.heard(START + 5, told(1.0, hands=110))
    process.heard(START + 10, told(2.0, hands=120))  # another process, and already above
    process.heard(START + 15, told(2.0, hands=125))
    assert process.increase("hands", 60) == 10 + 120 + 5
    assert process.rate("hands") == pytest.approx(135 / 15)
    assert list(process.starts) == [1.0, 2.0]


def test_a_quarter_of_an_hour_is_kept_and_no_more() -> None:
    process = Process("a:1", "table")
    for step in range(1_000):
        process.heard(START + 5 * step, told(hands=step))
    assert process.increase("hands", KEPT_SECONDS) == pytest.approx(KEPT_SECONDS / 5, abs=4)
    assert process.increase("hands", 300) == pytest.approx(60, abs=3)
    assert process.increase("hands", 60) == 12
    assert process.rate("hands", 10**9) == pytest.approx(0.2)


def test_labels_are_looked_at_from_the_left() -> None:
    process = Process("a:1", "matchmaking")
    waiting: dict[tuple[str, ...], float] = {
        ("a", "player"): 2.0,
        ("a", "standby"): 4.0,
        ("b", "player"): 1.0,
    }
    process.heard(START, {"waiting": waiting})
    assert process.value("waiting") == 7
    assert process.value("waiting", "a") == 6
    assert process.value("waiting", "a", "player") == 2
    assert process.value("waiting", "c") is None
    assert process.value("unknown") is None


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = new_registry()
    ProcessMetrics(registry, "table")
    Gauge("fangcheng_table_unowned", "", registry=registry).set(3)
    return registry


@pytest.fixture
def endpoint(registry: CollectorRegistry) -> Iterator[MetricsEndpoint]:
    with MetricsEndpoint(registry, "127.0.0.1", 0) as endpoint:
        yield endpoint


async def test_a_process_tells_who_it_is(endpoint: MetricsEndpoint) -> None:
    address = f"127.0.0.1:{endpoint.port}"
    scraper = Scraper(targets(address))
    await scraper.scrape()
    (process,) = scraper.of("table")
    assert (process.address, process.away_since) == (address, None)
    assert process.version
    assert process.value("fangcheng_table_unowned") == 3
    assert process.value("process_resident_memory_bytes", *()) is not None


async def test_a_process_that_is_gone_is_away_until_it_is_back(registry: CollectorRegistry) -> None:
    with MetricsEndpoint(registry, "127.0.0.1", 0) as endpoint:
        port = endpoint.port
        scraper = Scraper(targets(f"table=127.0.0.1:{port}"))
        await scraper.scrape()
    await scraper.scrape()
    (process,) = scraper.known("table")
    since = process.away_since
    assert since is not None
    assert "refused" in process.trouble
    assert scraper.of("table") == []
    assert process.value("fangcheng_table_unowned") == 3  # as it was told last
    await scraper.scrape()
    assert process.away_since == since
    with MetricsEndpoint(registry, "127.0.0.1", port):
        await scraper.scrape()
    assert scraper.of("table") == [process]
    assert process.trouble == ""


async def test_one_that_was_never_reached_is_called_as_configured() -> None:
    scraper = Scraper(targets("wallet=127.0.0.1:1"))
    await scraper.scrape()
    (process,) = scraper.known("wallet")
    assert process.away_since is not None
    assert (process.seen_at, process.version) == (None, "")


async def test_a_name_stands_for_all_its_addresses(endpoint: MetricsEndpoint) -> None:
    here, nowhere = f"127.0.0.1:{endpoint.port}", "127.0.0.1:1"
    book = {"table": [here, nowhere]}

    async def look_up(target: Target) -> list[str]:
        if target.host not in book:
            raise OSError("no such name")
        return book[target.host]

    scraper = Scraper(targets("table=table:7201,wallet=wallet:7202"), look_up)
    await scraper.scrape()
    assert {one.address for one in scraper.known("table")} == {here, nowhere}
    (wallet,) = scraper.known("wallet")
    assert (wallet.address, wallet.trouble) == (
        "wallet:7202",
        "the name wallet is unknown: no such name",
    )

    book["table"] = []
    book["wallet"] = [nowhere]
    await scraper.scrape()
    # One that was there is missed; one that never was, and a name that is known now, are not.
    assert [(one.address, one.service) for one in scraper.processes.values()] == [
        (here, "table"),
        (nowhere, "wallet"),
    ]
    assert scraper.of("table") == []


async def test_what_answers_otherwise_is_away() -> None:
    async def not_found(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(not_found, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        scraper = Scraper(targets(f"127.0.0.1:{port}"))
        await scraper.scrape()
    (process,) = scraper.processes.values()
    assert process.trouble == "it answers 404 Not Found"
