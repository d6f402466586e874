"""`fangcheng wallet conformance`."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
import grpc.aio
from rich.console import Console
from rich.markup import escape

from fangcheng.wallet.v1 import (
    settlement_pb2,
    settlement_pb2_grpc,
    wallet_pb2,
    wallet_pb2_grpc,
)
from fangcheng_client import explain

from .access import reach
from .conformance import CHECKS, Broken, Target, Trial, run_checks
from .errors import ConformanceFailed, SuiteError, from_call
from .progress import progress

SEATS = 4
TRY_SECONDS = 10.0
_NAMED_WRONGLY = {
    "UNKNOWN_WALLET": "Name four players who have wallets with --player.",
    "UNKNOWN_CURRENCY": "Name a currency of the wallet with --currency.",
    "INVALID_BOOK": "Name a book with --book, where the currency has books, or none.",
}
"""What to do about a refusal that is no broken promise, by its reason."""

Token = Callable[[], str] | str | None


@dataclass(frozen=True, slots=True)
class Wallet:
    """The wallet that is put to the test, as the command was told it."""

    targets: Sequence[str]
    players: Sequence[str]
    currency: str
    book: str
    table_token: Token
    matchmaking_token: Token
    operator_token: Token
    """With which wallets are opened for players of our own making."""
    ca_file: Path | None = None
    """Certificates to trust; the connection is then TLS."""


async def check_wallet(wallet: Wallet, only: Sequence[str], console: Console) -> None:
    """Run the checks and print each; raises ConformanceFailed where a promise is broken."""
    known = {check.name: check for check in CHECKS}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SuiteError(
            f"there is no check {unknown[0]}", "Names are shown by a run without --only."
        )
    checks = [known[name] for name in only] or list(CHECKS)
    async with AsyncExitStack() as stack:
        target = await _open(wallet, stack)
        broken = 0
        bar = stack.enter_context(progress("Checking", total=len(checks), unit="promises"))
        async for outcome in run_checks(target, checks):
            told = "[green]kept  [/green]" if outcome.kept else "[red]BROKEN[/red]"
            line = f"{told} {outcome.check.name:34} {escape(outcome.check.promise)}"
            bar.above(console, line)
            bar.advance()
            if not outcome.kept:
                broken += 1
                bar.above(console, f"    [red]{escape(outcome.saw)}[/red]")
    if broken:
        raise ConformanceFailed(
            f"{broken} of {len(checks)} promises are broken",
            "What each call promises stands in protos/fangcheng/wallet/v1/settlement.proto.",
        )
    console.print(f"[green]All {len(checks)} promises are kept.[/green]")


async def _open(wallet: Wallet, stack: AsyncExitStack) -> Target:
    async def channel(target: str, token: Token) -> grpc.aio.Channel:
        # A connection of its own, so that calls of the two come in any order.
        alone = [("grpc.use_local_subchannel_pool", 1)]
        return await stack.enter_async_context(reach(target, token, wallet.ca_file, alone))

    players = tuple(wallet.players) or await _new_players(
        await channel(wallet.targets[0], wallet.operator_token)
    )
    if len(players) != SEATS or len(set(players)) != SEATS:
        raise SuiteError(
            f"{len(players)} players were named; four different ones are needed",
            "Name each with --player; their wallets must be there, and nobody else may use them.",
        )
    tables = [await channel(target, wallet.table_token) for target in wallet.targets]
    matchmaking = [await channel(target, wallet.matchmaking_token) for target in wallet.targets]
    for one in (*tables, *matchmaking):
        await _try(one)
    target = Target(
        tables,
        matchmaking,
        (players[0], players[1], players[2], players[3]),
        wallet.currency,
        wallet.book,
    )
    await _try_money(target)
    return target


async def _try(channel: grpc.aio.Channel) -> None:
    """Tell at once what would fail every check, and is no broken promise."""
    stub = settlement_pb2_grpc.SettlementServiceStub(channel)
    request = settlement_pb2.GetHoldsRequest(hold_ids=[f"conformance-{uuid.uuid4().hex}"])
    try:
        await stub.GetHolds(request, timeout=TRY_SECONDS)
    except grpc.aio.AioRpcError as error:
        match error.code():
            case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED:
                raise SuiteError(
                    f"the wallet does not answer: {error.details()}",
                    "Does it listen there? Name it with --target; with --ca if it speaks TLS.",
                ) from error
            case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
                told = from_call(error, "the wallet refuses the caller")
                raise SuiteError(
                    told.message, "Name tokens that it takes: --token, --matchmaking-token."
                ) from error


async def _try_money(target: Target) -> None:
    """The same of the players and the currency. Whatever else is wrong, the checks tell."""
    try:
        with suppress(TimeoutError, Broken):
            async with asyncio.timeout(TRY_SECONDS):
                await Trial(target).has()
    except grpc.aio.AioRpcError as error:
        problem = explain(error)
        if problem.reason in _NAMED_WRONGLY:
            told = from_call(error, "the wallet cannot be checked so")
            raise SuiteError(told.message, _NAMED_WRONGLY[problem.reason]) from error


async def _new_players(channel: grpc.aio.Channel) -> tuple[str, ...]:
    """Four players whom nobody knows, with wallets."""
    stub = wallet_pb2_grpc.WalletServiceStub(channel)
    run = uuid.uuid4().hex[:8]
    players = tuple(f"conformance-{run}-{number}" for number in range(1, SEATS + 1))
    for player in players:
        try:
            await stub.OpenWallet(wallet_pb2.OpenWalletRequest(player_id=player))
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                # Of WalletService a studio need serve nothing: how its players come to a wallet is
                # its own business. So no promise is broken; the four have to be named.
                raise SuiteError(
                    "the wallet does not open wallets itself",
                    "Name four players who have one with --player.",
                ) from error
            raise from_call(error, "opening a wallet") from error
    return players
