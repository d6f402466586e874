"""The suite beyond this host, as far as one host shows it: certificates between the services, key
sets for people, and no development key anywhere."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest

from fangcheng.wallet.v1 import settlement_pb2, settlement_pb2_grpc, wallet_pb2, wallet_pb2_grpc
from fangcheng_client import explain
from fangcheng_suite.bots.crowd import Bank, make_bots
from fangcheng_suite.certificates import Authority
from tests.kit.certified import credentials
from tests.system.certified import Suite

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

FANGCHENG = Path(sys.executable).with_name("fangcheng")

POOL = """
pools:
  - id: bots
    name: bots
    rules: {id: baishan_kele}
    stakes: [{currency: silver, per_unit: 10, buy_in: 5000}]
    hands: 1
    timing: {claim_window_ms: 0, between_hands_ms: 0}
"""


async def outcome(call: Any) -> str:
    """OK, or why a call was refused, or its status where no service of ours has refused it."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return explain(error).reason or error.code().name
    return "OK"


async def test_hands_are_settled_while_every_certificate_and_the_authority_change(
    tmp_path: Path,
) -> None:
    suite = Suite(tmp_path, POOL)
    async with suite.running():
        bank = Bank(suite.access)
        bots = make_bots(range(4), suite.access, seed=1)
        for bot in bots:
            await bank.give(bot.player_id)
        changed = asyncio.create_task(suite.replace_authority())
        tables = 0
        async with asking(suite) as failures:
            while tables == 0 or not changed.done():
                await asyncio.gather(*(bot.play("bots") for bot in bots))
                tables += 1
            await changed
            # One more, with nothing but the new certificates.
            await asyncio.gather(*(bot.play("bots") for bot in bots))
            tables += 1
        assert not failures
        async with suite.access.channel("wallet") as channel:
            wallet: Any = wallet_pb2_grpc.WalletServiceStub(channel)
            audit = await wallet.AuditLedger(wallet_pb2.AuditLedgerRequest())
        assert audit.balanced, audit.findings
        assert audit.settlements == tables
        picture = await health_page(suite)
        assert {name: one["serving"] for name, one in picture["services"].items()} == {
            "matchmaking": True,
            "table": True,
            "wallet": True,
            "evaluation": True,
        }


@asynccontextmanager
async def asking(suite: Suite) -> AsyncIterator[list[str]]:
    """Calls the wallet all the time, as every client does; the calls that have failed."""
    failures: list[str] = []

    async def ask() -> None:
        async with suite.channel("wallet", lambda: suite.operator) as channel:
            wallet: Any = wallet_pb2_grpc.WalletServiceStub(channel)
            while True:
                request = wallet_pb2.GetBalancesRequest(player_id="bot-mei")
                try:
                    await wallet.GetBalances(request)
                except grpc.aio.AioRpcError as error:
                    failures.append(f"{error.code().name}: {explain(error).message}")
                await asyncio.sleep(0.005)  # not all that the machine can: it plays hands besides

    task = asyncio.create_task(ask())
    try:
        yield failures
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


async def health_page(suite: Suite) -> dict[str, Any]:
    """The health page, as an operator sees it once every service has been asked."""
    page = f"http://{suite.services['console'].listens('web')}"
    headers = {"origin": page, "x-fangcheng-console": "1"}
    async with httpx.AsyncClient(base_url=page, headers=headers, timeout=60) as client:
        token = suite.signer.token("operator:mei")
        (await client.post("/api/session", json={"token": token})).raise_for_status()
        async with client.stream("GET", "/api/health/events") as events:
            async for line in events.aiter_lines():
                if line.startswith("data:"):
                    picture: dict[str, Any] = json.loads(line.removeprefix("data:"))
                    if len(picture["services"]) == 4:
                        return picture
    raise AssertionError("the stream of the health page has ended")


Call = Callable[[Any, Any], Any]


async def test_a_certificate_may_what_its_service_needs_and_nothing_else(tmp_path: Path) -> None:
    suite = Suite(tmp_path, services=["wallet"])
    others = Authority.new()
    club, signed = suite.authority, suite.signer.token("operator:mei")

    async def made(given: grpc.ChannelCredentials, call: Call, token: str | None = None) -> str:
        async with suite.channel("wallet", given, token, once=True) as channel:
            wallet: Any = wallet_pb2_grpc.WalletServiceStub(channel)
            settlement: Any = settlement_pb2_grpc.SettlementServiceStub(channel)
            return await outcome(call(wallet, settlement))

    def settle(wallet: Any, settlement: Any) -> Any:
        return settlement.Settle(settlement_pb2.SettleRequest())

    def place(wallet: Any, settlement: Any) -> Any:
        return settlement.PlaceHolds(settlement_pb2.PlaceHoldsRequest())

    def audit(wallet: Any, settlement: Any) -> Any:
        return wallet.AuditLedger(wallet_pb2.AuditLedgerRequest())

    async with suite.running():
        table = credentials(club, club.issue("service/table"))
        matchmaking = credentials(club, club.issue("service/matchmaking"))
        edge = credentials(club, club.issue("proxy/edge"))
        # The wallet reads only what its caller may ask for.
        assert await made(table, settle) == await made(matchmaking, place) == "INVALID_REQUEST"
        assert await made(table, place) == "CALLER_NOT_ALLOWED"
        assert await made(matchmaking, settle) == "CALLER_NOT_ALLOWED"
        assert await made(edge, settle) == "TOKEN_MISSING"
        assert await made(edge, audit, signed) == "OK"
        assert await made(credentials(club, club.issue("operator/mei")), audit) == "OK"
        # Nobody gets in by another way.
        strange = credentials(club, club.issue("service/table", trust_domain="other"))
        assert await made(strange, settle) == "CERTIFICATE_INVALID"
        assert await made(strange, audit, signed) == "CERTIFICATE_INVALID"
        foreign = credentials(club, others.issue("service/table"))
        assert await made(foreign, settle) == "UNAVAILABLE"
        assert await made(foreign, audit, signed) == "UNAVAILABLE"
        over = credentials(club, club.issue("service/table", days=-1))
        assert await made(over, settle) == "UNAVAILABLE"
        assert await made(credentials(club, None), audit, signed) == "UNAVAILABLE"


async def test_a_person_shows_a_certificate_to_services_that_ask_for_one(tmp_path: Path) -> None:
    """`--certificate`, of commands for services elsewhere: without a token it says who calls."""
    suite = Suite(tmp_path, services=["wallet"])
    ca, certificate, key = (tmp_path / name for name in ("ca.crt", "mei.crt", "mei.key"))
    issued = suite.authority.issue("operator/mei")
    ca.write_bytes(suite.authority.certificate)
    certificate.write_bytes(issued.certificate)
    key.write_bytes(issued.key)
    shown = ["--certificate", str(certificate), "--certificate-key", str(key)]

    async def told(*words: str) -> tuple[int | None, str]:
        target = ["--target", suite.services["wallet"].address, "--ca", str(ca)]
        asked = await asyncio.create_subprocess_exec(
            *(FANGCHENG, *words, *target),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await asked.communicate()
        return asked.returncode, output.decode()

    async with suite.running():
        for command, seen in (
            (["ledger", "audit"], "The ledger is balanced."),
            (["call", "WalletService/ListCurrencies"], '"currencies"'),
        ):
            code, output = await told(*command, *shown)
            assert (code, seen in output) == (0, True), output
        code, output = await told("ledger", "audit")
        assert (code, "--certificate" in output) == (1, True), output
