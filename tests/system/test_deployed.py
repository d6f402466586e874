"""What deploy/ ships, run as processes with a real Envoy: who gets in, and by what."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio

from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_client import explain, watch
from fangcheng_kit.signing import SigningKey
from fangcheng_suite.access import Access
from fangcheng_suite.bots.player import Bot, Place
from tests.deploy.suite import DEPLOY

from .deployed import Deployed, Edge
from .replicas import READY
from .running import LONG_SECONDS

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

WALLET, WALLET_METRICS, TABLE = 7102, 7202, 7101
POOL = "baishan_kele-practice"
CALLER = "fangcheng-caller-bin"
loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deployed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployed]:
    """Every service that players need, with the certificates and keys that were made."""
    suite = Deployed(tmp_path_factory.mktemp("deployed"))
    async with suite.services("evaluation", "wallet", "table-1", "matchmaking"):
        yield suite


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def edge(deployed: Deployed) -> AsyncIterator[Edge]:
    async with deployed.edge() as edge:
        yield edge


async def refusal(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str]:
    """Status and reason of a call that is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), explain(refused.value).reason


def balances(channel: grpc.aio.Channel, player_id: str = "mei", **more: Any) -> Awaitable[Any]:
    """Asks the wallet for what somebody has."""
    request = wallet_pb2.GetBalancesRequest(player_id=player_id)
    answer: Awaitable[Any] = WalletServiceStub(channel).GetBalances(request, **more)
    return answer


KNOWN = grpc.StatusCode.NOT_FOUND, "UNKNOWN_WALLET"
"""Who is answered this has got in: there is no such wallet."""
NOBODY = grpc.StatusCode.UNAUTHENTICATED, "TOKEN_MISSING"


@loop
async def test_who_has_a_token_gets_in_through_the_edge(deployed: Deployed, edge: Edge) -> None:
    async with edge.channel(deployed.token("operator")) as channel:
        answer = await EvaluationServiceStub(channel).Analyze(READY, wait_for_ready=True)
        assert [wait.tile for wait in answer.analysis.waits] == [41, 46]
        assert await refusal(balances(channel, wait_for_ready=True)) == KNOWN
        await TableServiceStub(channel).ListTables(table_pb2.ListTablesRequest())
    async with edge.channel() as channel:
        assert await refusal(balances(channel)) == NOBODY


@loop
async def test_a_key_for_players_signs_for_nobody_else(deployed: Deployed, edge: Edge) -> None:
    async with edge.channel(deployed.token("player:mei", key="bots")) as channel:
        assert await refusal(balances(channel)) == KNOWN
    async with edge.channel(deployed.token("operator", key="bots")) as channel:
        status = grpc.StatusCode.UNAUTHENTICATED, "TOKEN_INVALID"
        assert await refusal(balances(channel)) == status


@loop
async def test_nobody_outside_says_for_whom_he_calls(deployed: Deployed, edge: Edge) -> None:
    told = ((CALLER, b'{"sub": "operator", "scopes": [], "exp": 99999999999}'),)
    async with edge.channel(deployed.token("player:mei")) as channel:
        # The edge takes it away: he is who he was.
        assert await refusal(balances(channel, metadata=told)) == KNOWN
        code, _ = await refusal(balances(channel, "wang", metadata=told))
        assert code is grpc.StatusCode.PERMISSION_DENIED


@loop
async def test_past_the_edge_nobody_gets_in_without_a_certificate(deployed: Deployed) -> None:
    token = deployed.token("operator")
    async with deployed.direct("wallet", WALLET, token=token) as channel:
        code, _ = await refusal(balances(channel))
        assert code is grpc.StatusCode.UNAVAILABLE
    async with grpc.aio.insecure_channel(deployed.address(WALLET)) as channel:
        code, _ = await refusal(balances(channel, timeout=LONG_SECONDS))
        assert code is grpc.StatusCode.UNAVAILABLE
    # What the edge shows to players is none.
    async with deployed.direct("wallet", WALLET, holder="public", token=token) as channel:
        code, _ = await refusal(balances(channel))
        assert code is grpc.StatusCode.UNAVAILABLE


@loop
async def test_the_certificate_of_the_edge_alone_opens_nothing(deployed: Deployed) -> None:
    async with deployed.direct("wallet", WALLET, holder="edge") as channel:
        assert await refusal(balances(channel)) == NOBODY
    async with deployed.direct("wallet", WALLET, holder="table") as channel:
        assert await refusal(balances(channel)) == KNOWN
    # Nor can the edge say for whom it calls: it is no service.
    told = ((CALLER, b'{"sub": "operator", "scopes": [], "exp": 99999999999}'),)
    token = deployed.token("player:mei")
    async with deployed.direct("wallet", WALLET, holder="edge", token=token) as channel:
        status = grpc.StatusCode.PERMISSION_DENIED, "CALLER_NOT_ALLOWED"
        assert await refusal(balances(channel, metadata=told)) == status


@loop
async def test_the_edge_sends_calls_to_nobody_but_the_service_they_are_for(
    deployed: Deployed,
) -> None:
    async with (
        deployed.edge(wallet=TABLE) as astray,
        astray.channel(deployed.token("operator")) as channel,
    ):
        await TableServiceStub(channel).ListTables(
            table_pb2.ListTablesRequest(), wait_for_ready=True
        )
        # The table has a good certificate, and it is not the wallet's.
        code, _ = await refusal(balances(channel))
        assert code is grpc.StatusCode.UNAVAILABLE


class Person(Bot):
    """Plays as a bot does, and nobody knows it for one."""

    def _channel(self, service: str, target: str | None = None) -> grpc.aio.Channel:
        return self.access.channel(service, f"player:{self.player_id}", target=target)


@loop
async def test_bots_sit_down_with_a_player_who_comes_through_the_edge(
    deployed: Deployed, edge: Edge
) -> None:
    """Each service calls others by its certificate; bots, with a key for players and theirs."""
    signing = SigningKey((deployed.made / "keys" / "signing.pem").read_bytes(), "trying")
    outside = Access(lambda service: edge.address, signing, edge.certificate)
    async with edge.channel(deployed.token("operator")) as channel:
        opens = wallet_pb2.OpenWalletRequest(player_id="mei")
        await WalletServiceStub(channel).OpenWallet(opens, wait_for_ready=True)
    seated: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
    person = Person("mei", outside, on_seated=seated.set_result)
    async with deployed.bots(POOL, count=3) as bots:
        playing = asyncio.create_task(person.play(POOL))
        try:
            await asyncio.wait([seated, playing], return_when=asyncio.FIRST_COMPLETED)
            assert seated.done(), await playing
            place = await seated
            async with edge.channel(deployed.token("operator")) as channel:
                async for event in watch(channel, place.table_id):
                    if event.HasField("hand_started"):
                        break
            assert bots.poll() is None, deployed.log("bots")
        finally:
            playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await playing
        bots.send_signal(signal.SIGINT)
    assert "Traceback" not in deployed.log("bots")


@loop
async def test_the_check_of_a_container_needs_no_certificate(deployed: Deployed) -> None:
    for port, code in ((WALLET_METRICS, 0), (WALLET, 1)):
        check = await asyncio.create_subprocess_exec(
            sys.executable, str(DEPLOY / "image" / "healthy.py"), deployed.address(port)
        )
        assert await check.wait() == code
