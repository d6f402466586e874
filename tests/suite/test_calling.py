"""`fangcheng call`: every call of the suite by its name, from JSON to JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

from fangcheng_suite.access import Access, Elsewhere
from fangcheng_suite.calling import call, find, services
from fangcheng_suite.errors import SuiteError
from tests.wallet.wire import KEY, Served, served


@pytest.fixture
async def wallet(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as wallet:
        yield wallet


async def called(wallet: Served, name: str, request: str, subject: str = "operator") -> str:
    console = Console(width=1_000)
    access = Access(lambda service: wallet.running.address, KEY)
    with console.capture() as told:
        await call(access, subject, name, request, console)
    return told.get()


async def test_it_makes_calls_and_prints_their_answers(wallet: Served) -> None:
    await called(wallet, "WalletService/OpenWallet", '{"player_id": "明"}')
    deposit = '{"request_id": "1", "player_id": "明", "currency": "silver", "amount": 250}'
    await called(wallet, "WalletService/Deposit", deposit)
    told = json.loads(await called(wallet, "WalletService/GetBalances", "", "player:明"))
    (silver,) = [one for one in told["balances"] if one["currency"] == "silver"]
    assert silver["available"] == "250"


async def test_of_a_stream_it_prints_every_message(wallet: Served) -> None:
    await called(wallet, "WalletService/OpenWallet", '{"player_id": "a"}')
    deposit = '{"request_id": "1", "player_id": "a", "currency": "silver", "amount": 250}'
    await called(wallet, "WalletService/Deposit", deposit)
    told = await called(wallet, "WalletService/StreamEntries", "")
    assert told.count('"sequence"') == 2


@pytest.mark.parametrize(
    ("name", "request_", "complaint"),
    [
        ("WalletService/GetBalance", "", "there is no call WalletService/GetBalance"),
        ("WalletService/GetBalances", "{", "the request is no GetBalancesRequest"),
        ("WalletService/GetBalances", '{"player": "a"}', "the request is no GetBalancesRequest"),
        ("WalletService/GetBalances", '{"player_id": "nobody"}', "UNKNOWN_WALLET"),
        ("EvaluationService/StreamHands", "", "takes a stream of requests"),
    ],
)
async def test_what_cannot_be_called_is_told(
    wallet: Served, name: str, request_: str, complaint: str
) -> None:
    with pytest.raises(SuiteError) as told:
        await called(wallet, name, request_)
    assert complaint in told.value.message


@pytest.mark.parametrize("subject", ["admin", "player:", "player", ""])
async def test_a_caller_who_is_nobody_is_told(wallet: Served, subject: str) -> None:
    with pytest.raises(SuiteError, match="is none of player:<id>, service:<name>, operator"):
        await called(wallet, "WalletService/GetBalances", "", subject)


@pytest.mark.parametrize("token", ["two\nlines", "ey…J", "\x1b"])
def test_a_token_that_no_call_can_carry_is_told(token: str) -> None:
    with pytest.raises(SuiteError, match="the token has a character in it"):
        Elsewhere("127.0.0.1:1", token).channel("wallet")


def test_every_call_is_known_with_the_service_that_serves_it() -> None:
    assert find("TableOperationsService/CloseTable")[0] == "table"
    assert find("RoomService/OpenRoom")[0] == "matchmaking"
    assert find("SettlementService/Settle")[0] == "wallet"
    assert sum(len(one.methods) for _, one in services()) > 50
