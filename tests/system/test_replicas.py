"""Replicas of evaluation behind what `connect()` sets up: nobody notices who answers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng_client import connect, hands

from .nameserver import name_server
from .replicas import (
    TOKEN,
    Load,
    Replica,
    Replicas,
    hands_for_seconds,
    random_records,
    shares,
    until,
)
from .running import free_port

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

POINTS = 0.05


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    with Replicas(tmp_path) as started:
        yield started


def target(*replicas: Replica) -> str:
    return "ipv4:" + ",".join(replica.address for replica in replicas)


async def test_calls_spread_evenly_and_a_killed_replica_costs_none(replicas: Replicas) -> None:
    east, south, west = [await replicas.start(name) for name in ("east", "south", "west")]
    async with connect(target(east, south, west), TOKEN) as channel, Load(channel) as load:

        async def all_answer() -> bool:
            return min(await shares(load, [east, south, west], 30)) > 0

        await until(all_answer, "all replicas are found")
        assert await shares(load, [east, south, west]) == pytest.approx([1 / 3] * 3, abs=POINTS)
        south.kill()
        await load.goes_on(200)
        assert await shares(load, [east, west]) == pytest.approx([1 / 2] * 2, abs=POINTS)
        again = await replicas.start("south again", listen=south.address)

        async def it_answers() -> bool:
            await load.goes_on(10)
            return again.calls() > 0

        await until(it_answers, "the replica is found again")
        assert await shares(load, [east, again, west]) == pytest.approx([1 / 3] * 3, abs=POINTS)
        assert not load.failures


async def test_a_new_replica_takes_its_share_through_dns(replicas: Replicas) -> None:
    port = free_port(hosts=["127.0.0.1", "127.0.0.2", "127.0.0.3"])
    east, south, west = [
        await replicas.start(f"replica-{host}", listen=f"127.0.0.{host}:{port}")
        for host in (1, 2, 3)
    ]
    async with name_server("evaluators.test") as names:
        names.addresses = ["127.0.0.1", "127.0.0.2"]
        through_dns = f"dns://{names.authority}/evaluators.test:{port}"
        async with (
            # Each name is resolved to this host; a name alone does not tell.
            connect(through_dns, TOKEN, plaintext=True) as channel,
            Load(channel) as load,
        ):
            await load.goes_on(100)
            assert west.calls() == 0
            names.addresses.append("127.0.0.3")

            async def west_answers() -> bool:
                await load.goes_on(10)
                return west.calls() > 0

            # Connections are closed at 30 s, give or take a tenth; then clients ask DNS again.
            await until(west_answers, "the new replica is found")
            found = await shares(load, [east, south, west])
            assert found == pytest.approx([1 / 3] * 3, abs=POINTS)
            assert not load.failures


async def test_a_drained_replica_finishes_what_it_has(replicas: Replicas) -> None:
    stays = await replicas.start("stays")
    leaves = await replicas.start("leaves", DRAIN_SECONDS="0.5", GRACE_SECONDS="120")
    # Without retries: another replica must not do its work.
    alone = connect(
        leaves.address, TOKEN, timeout_seconds=120, options=[("grpc.enable_retries", 0)]
    )
    async with alone, connect(target(stays, leaves), TOKEN) as channel, Load(channel) as load:
        long = hands_for_seconds()
        batch = EvaluationServiceStub(alone).AnalyzeBatch(long, wait_for_ready=True)

        async def it_works() -> bool:
            assert not batch.done(), await batch
            return leaves.metric('fangcheng_evaluation_waiting_hands{lane="bulk"}') > 0

        await until(it_works, "the batch is at work")
        leaves.tell_to_stop()

        async def refuses() -> bool:
            try:
                with socket.create_connection(("127.0.0.1", int(leaves.address[10:])), 5):
                    return False
            except OSError:
                return True

        await until(refuses, "it takes no connections")
        assert leaves.process.poll() is None
        assert not batch.done()
        await load.goes_on(50)
        answer = await batch
        assert len(answer.results) == len(long.requests)
        assert all(result.HasField("analysis") for result in answer.results)

        async def ended() -> bool:
            return leaves.process.poll() is not None

        await until(ended, "it ends")
        assert leaves.process.returncode == 0
        await load.goes_on(50)
        assert not load.failures


async def test_bulk_goes_on_when_a_replica_is_killed_in_the_midst(replicas: Replicas) -> None:
    east, west = [await replicas.start(name) for name in ("east", "west")]
    async with connect(target(east, west), TOKEN) as channel:
        rules = await hands.rule_set(channel, "baishan_kele")
        records = random_records(rules, 4_000)
        done: list[int] = []

        def progress(so_far: int, of: int) -> None:
            assert of == len(records)
            done.append(so_far)
            if len(done) == 4:
                east.kill()

        found = await hands.evaluate(
            channel, rules, records, hands_per_message=100, progress=progress
        )
        assert east.process.poll() is not None
        assert done == list(range(100, len(records) + 1, 100))
        again = await hands.evaluate(channel, rules, records, hands_per_message=1_000)
        assert (found == again).all()
        assert not found["status"].any()
        assert set(found["shape_shanten"].tolist()) >= {2, 3, 4}
