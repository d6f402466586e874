"""What the suite keeps of a player: written to a file, or erased, service by service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
from rich.console import Console

from fangcheng.matchmaking.v1 import privacy_pb2 as matchmaking_wire
from fangcheng.matchmaking.v1 import privacy_pb2_grpc as matchmaking_calls
from fangcheng.table.v1 import privacy_pb2 as table_wire
from fangcheng.table.v1 import privacy_pb2_grpc as table_calls
from fangcheng.wallet.v1 import privacy_pb2 as wallet_wire
from fangcheng.wallet.v1 import privacy_pb2_grpc as wallet_calls
from fangcheng_client import explain
from fangcheng_kit.files import keep

from .access import Access
from .errors import SuiteError, cannot
from .progress import progress

SERVICES: Sequence[tuple[str, Any, Any]] = (
    ("matchmaking", matchmaking_wire, matchmaking_calls),
    ("table", table_wire, table_calls),
    ("wallet", wallet_wire, wallet_calls),
)
"""Who plays is told by the first; the wallet comes last, which has holds until a table is paid."""

_TIMEOUT_SECONDS = 3_600.0
"""Going through thousands of tables takes minutes."""


async def export(access: Access, console: Console, player_id: str, file: Path) -> None:
    """Write everything that is kept of a player to a file that is not there yet: JSON lines.

    Raises SuiteError; then there is no file.
    """
    lines = []
    with progress("Collecting what is kept", unit="lines") as bar:
        async for line in _lines(access, player_id):
            lines.append(line)
            bar.advance()
    await asyncio.to_thread(_write, file, lines)
    console.print(f"{len(lines)} lines about {player_id} in {file}", markup=False)


def _write(file: Path, lines: Iterable[str]) -> None:
    if file.exists():
        raise SuiteError(f"{file} is there already", "Name another file, or move it away.")
    fresh = file.with_name(file.name + ".part")
    try:
        fresh.touch(0o600)  # nobody else's to read
        fresh.write_text("".join(line + "\n" for line in lines), "utf-8")
        keep(fresh, file)
    except OSError as error:
        raise cannot("write", file, error) from error
    finally:
        fresh.unlink(missing_ok=True)


async def _lines(access: Access, player_id: str) -> AsyncIterator[str]:
    for service, wire, calls in SERVICES:
        async with access.channel(service) as channel:
            stub = calls.PrivacyServiceStub(channel)
            try:
                async for answer in stub.ExportPlayer(
                    wire.ExportPlayerRequest(player_id=player_id)
                ):
                    for line in answer.lines:
                        # Every line says whose it is: the kinds of a service are its own.
                        yield f'{{"service": "{service}", {line[1:]}'
            except grpc.aio.AioRpcError as error:
                if explain(error).reason != "UNKNOWN_WALLET":
                    raise access.failed(error, f"the export of {service}") from error


async def erase(
    access: Access,
    console: Console,
    player_id: str,
    request_id: str,
    labels: Sequence[str],
    *,
    keep_texts: bool,
    reason: str,
) -> None:
    """Erase a player at every service; raises SuiteError where one refuses or fails.

    `labels`: `KEY` or `KEY=VALUE`.
    """
    pairs = [label.partition("=") for label in labels]
    for service, wire, calls in SERVICES:
        request = wire.ErasePlayerRequest(
            request_id=request_id,
            player_id=player_id,
            erase_labels=[wire.ErasedLabel(key=key, value=value) for key, _, value in pairs],
            keep_texts=keep_texts,
            reason=reason,
        )
        async with access.channel(service) as channel:
            try:
                with progress(f"Erasing at {service}"):
                    done = await calls.PrivacyServiceStub(channel).ErasePlayer(
                        request, timeout=_TIMEOUT_SECONDS
                    )
            except grpc.aio.AioRpcError as error:
                if explain(error).reason == "UNKNOWN_WALLET":
                    console.print(f"{service}: knows no {player_id}", markup=False)
                    continue
                failed = access.failed(error, f"erasing at {service}")
                again = f"The same with --request-id {request_id} finishes it."
                raise SuiteError(str(failed), f"{failed.hint} {again}".strip()) from error
        what = "done before" if done.replayed else f"{done.changed} records"
        console.print(f"{service}: {what}", markup=False)
        if archived := getattr(done, "archived", 0):
            console.print(
                f"{archived} of these tables have their events in archives: see "
                "docs/operations/personal-data.md",
                markup=False,
            )
