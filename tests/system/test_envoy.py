"""A real Envoy runs the configuration that we ship: no caller notices which replicas there are."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import pytest
import yaml

from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.matchmaking.v1 import matchmaking_pb2 as mm
from fangcheng.matchmaking.v1.matchmaking_pb2_grpc import MatchmakingServiceStub
from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import connect, explain, hands
from fangcheng_kit.settings import split_address
from fangcheng_kit.tokens import mint_token
from fangcheng_suite.commands import up
from fangcheng_suite.launcher import Ports

from .replicas import (
    READY,
    TOKEN,
    Load,
    Replica,
    Replicas,
    hands_for_seconds,
    program,
    random_records,
    shares,
)
from .replicas import until as until_async
from .running import Running, free_port

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

DEPLOY = Path(__file__).parents[2] / "deploy" / "envoy"
ENVOY = str(Path(sys.executable).with_name("envoy"))
POINTS = 0.05
AGELESS = {"MAX_CONNECTION_AGE_SECONDS": "0"}
"""Replicas close no connection by its age, so that this is not what helps."""


class Edge:
    """Envoy with what we ship, but for ports and paths."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._endpoints = folder / "evaluators.yaml"
        self.config: dict[str, Any] = yaml.safe_load((DEPLOY / "envoy.yaml").read_text("utf-8"))
        (listener,) = self.config["static_resources"]["listeners"]
        self.address = _set_port(listener["address"])
        self.admin = _set_port(self.config["admin"]["address"])
        clusters = {one["name"]: one for one in self.config["static_resources"]["clusters"]}
        self._clusters: dict[str, Any] = clusters
        source = clusters["evaluation"]["eds_cluster_config"]["eds_config"]["path_config_source"]
        source["path"] = str(self._endpoints)

    def send_to(self, service: str, address: str) -> None:
        """Where a service that is not evaluation listens; before the start."""
        (group,) = self._clusters[service]["load_assignment"]["endpoints"]
        group["lb_endpoints"] = [_endpoint(address)]

    def list_evaluators(self, *addresses: str) -> None:
        """Move another list of replicas into place."""
        listed: dict[str, Any] = yaml.safe_load((DEPLOY / "evaluators.yaml").read_text("utf-8"))
        (group,) = listed["resources"][0]["endpoints"]
        group["lb_endpoints"] = [_endpoint(address) for address in addresses]
        draft = self._folder / "evaluators.draft.yaml"
        draft.write_text(yaml.safe_dump(listed), "utf-8")
        draft.replace(self._endpoints)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run it until the end of the block."""
        file, log = self._folder / "envoy.yaml", self._folder / "envoy.log"
        file.write_text(yaml.safe_dump(self.config), "utf-8")
        words = [ENVOY, "-c", str(file), "--concurrency", "2", "--disable-hot-restart"]
        with program(words, log) as process:

            async def ready() -> bool:
                assert process.poll() is None, log.read_text("utf-8")
                return self._is_ready()

            await until_async(ready, "Envoy is ready")
            yield

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.admin}/ready") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def channel(self, token: str = TOKEN, timeout_seconds: float = 60) -> grpc.aio.Channel:
        """To Envoy, without retries of the client's own: what is lost is seen."""
        once = [("grpc.enable_retries", 0)]
        return connect(self.address, token, timeout_seconds=timeout_seconds, options=once)


def _set_port(address: dict[str, Any]) -> str:
    address["socket_address"]["port_value"] = free_port()
    return f"127.0.0.1:{address['socket_address']['port_value']}"


def _endpoint(address: str) -> dict[str, Any]:
    host, port = split_address(address)
    return {"endpoint": {"address": {"socket_address": {"address": host, "port_value": port}}}}


def test_what_is_shipped_fits_a_suite_of_two_evaluators_on_its_usual_ports() -> None:
    checked = subprocess.run(
        [ENVOY, "--mode", "validate", "-c", "deploy/envoy/envoy.yaml"],
        cwd=DEPLOY.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    config = yaml.safe_load((DEPLOY / "envoy.yaml").read_text("utf-8"))
    listed = yaml.safe_load((DEPLOY / "evaluators.yaml").read_text("utf-8"))["resources"]
    listed += [one["load_assignment"] for one in config["static_resources"]["clusters"][1:]]
    found = {
        (one["cluster_name"], endpoint["endpoint"]["address"]["socket_address"]["port_value"])
        for one in listed
        for group in one["endpoints"]
        for endpoint in group["lb_endpoints"]
    }
    replicas = [("evaluation", 0), ("evaluation", 1)]
    replicas += [("matchmaking", 0), ("table", 0), ("wallet", 0)]
    usual = Ports(inspect.signature(up).parameters["port"].default)
    assert found == {(service, usual.of(service, number)["listen"]) for service, number in replicas}


@pytest.mark.parametrize(
    ("origin", "is_let_in"),
    [
        ("http://localhost:5173", True),
        ("http://127.0.0.1", True),
        ("http://localhost.example.com", False),
        ("https://example.com", False),
        ("null", False),
    ],
)
async def test_pages_of_this_host_are_let_in_and_others_are_not(
    tmp_path: Path, origin: str, is_let_in: bool
) -> None:
    edge = Edge(tmp_path)
    edge.list_evaluators()
    asked = urllib.request.Request(
        f"http://{edge.address}/fangcheng.table.v1.TableService/Act",
        method="OPTIONS",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type,x-grpc-web",
        },
    )
    async with edge.running():
        told = await asyncio.to_thread(urllib.request.urlopen, asked)
        assert told.headers["Access-Control-Allow-Origin"] == (origin if is_let_in else None)


async def all_answer(load: Load, *replicas: Replica) -> None:
    """Wait until each of these answers calls."""

    async def so() -> bool:
        return min(await shares(load, [*replicas], 30)) > 0

    await until_async(so, "all replicas answer")


async def test_replicas_come_and_go_behind_envoy(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    with Replicas(tmp_path) as replicas:
        east, south, west = [
            await replicas.start(name, **AGELESS) for name in ("east", "south", "west")
        ]
        edge.list_evaluators(east.address, south.address)
        async with edge.running(), edge.channel() as channel, Load(channel, callers=8) as load:
            await all_answer(load, east, south)
            assert await shares(load, [east, south]) == pytest.approx([1 / 2] * 2, abs=POINTS)
            assert west.calls() == 0

            edge.list_evaluators(east.address, south.address, west.address)
            await all_answer(load, east, south, west)
            found = await shares(load, [east, south, west])
            assert found == pytest.approx([1 / 3] * 3, abs=POINTS)

            south.kill()
            await load.goes_on(400)
            assert await shares(load, [east, west]) == pytest.approx([1 / 2] * 2, abs=POINTS)

            edge.list_evaluators(east.address)

            async def west_rests() -> bool:
                before = west.calls()
                await load.goes_on(30)
                return west.calls() == before

            await until_async(west_rests, "no more calls go to one that is not listed")
            assert not load.failures


async def test_a_drained_replica_behind_envoy_finishes_what_it_has(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    with Replicas(tmp_path) as replicas:
        stays = await replicas.start("stays", **AGELESS)
        leaves = await replicas.start("leaves", GRACE_SECONDS="120", **AGELESS)
        edge.list_evaluators(leaves.address)
        async with edge.running(), edge.channel(timeout_seconds=120) as channel:
            long = hands_for_seconds()
            batch = EvaluationServiceStub(channel).AnalyzeBatch(long, wait_for_ready=True)

            async def it_works() -> bool:
                assert not batch.done(), await batch
                return leaves.metric('fangcheng_evaluation_waiting_hands{lane="bulk"}') > 0

            await until_async(it_works, "the batch is at work")
            edge.list_evaluators(stays.address, leaves.address)
            async with Load(channel) as load:
                await all_answer(load, stays, leaves)
                leaves.tell_to_stop()

                async def drained() -> bool:
                    before = stays.calls(), load.answered
                    await load.goes_on(40)
                    return stays.calls() - before[0] >= load.answered - before[1] - load.callers

                await until_async(drained, "the other one answers all calls")
                assert leaves.process.poll() is None
                assert not batch.done()
                assert len((await batch).results) == len(long.requests)

                async def ended() -> bool:
                    return leaves.process.poll() is not None

                await until_async(ended, "it ends")
                assert leaves.process.returncode == 0
                await load.goes_on(50)
                assert not load.failures


async def test_packed_hands_go_through_envoy_by_the_message_and_by_the_stream(
    tmp_path: Path,
) -> None:
    edge = Edge(tmp_path)
    with Replicas(tmp_path) as replicas:
        east, west = [await replicas.start(name) for name in ("east", "west")]
        edge.list_evaluators(east.address, west.address)
        async with edge.running(), edge.channel() as channel:
            rules = await hands.rule_set(channel, "baishan_kele")
            no_hands = np.zeros(hands.MOST_HANDS, hands.HAND)
            largest = await hands.evaluate(
                channel, rules, no_hands, hands_per_message=len(no_hands)
            )
            assert {one.reason for one in hands.unpack(rules, largest[:10])} == {"WRONG_TILE_COUNT"}

            records = random_records(rules, 4_000)
            done: list[int] = []

            def progress(so_far: int, _: int) -> None:
                done.append(so_far)
                if len(done) == 4:
                    east.kill()

            found = await hands.evaluate(
                channel, rules, records, hands_per_message=100, progress=progress
            )
            assert done[-1] == len(records)
            again = await hands.evaluate(channel, rules, records, hands_per_message=1_000)
            assert (found == again).all()
            assert not found["status"].any()


async def test_every_service_is_reached_by_the_path_of_its_calls(
    tmp_path: Path, quiet_suite: Running
) -> None:
    edge = Edge(tmp_path)
    services = quiet_suite.suite.services
    for service in ("table", "matchmaking", "wallet"):
        edge.send_to(service, services[service][0].grpc)
    edge.list_evaluators(*(address.grpc for address in services["evaluation"]))
    token = mint_token(quiet_suite.suite.key, "operator")
    async with edge.running(), edge.channel(token) as channel:
        ready = await EvaluationServiceStub(channel).Analyze(READY, wait_for_ready=True)
        assert [wait.tile for wait in ready.analysis.waits] == [41, 46]
        assert (await MatchmakingServiceStub(channel).ListPools(mm.ListPoolsRequest())).pools
        await TableServiceStub(channel).ListTables(table_pb2.ListTablesRequest())
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await WalletServiceStub(channel).GetBalances(
                wallet_pb2.GetBalancesRequest(player_id="nobody")
            )
        assert explain(refused.value).reason == "UNKNOWN_WALLET"
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/fangcheng.wallet.v1.SettlementService/Settle")(b"")
        # Settlements are called from within: the edge has no route to them, on purpose.
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
