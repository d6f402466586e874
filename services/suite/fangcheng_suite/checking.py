"""`fangcheng ledger audit`."""

from __future__ import annotations

import grpc.aio
from rich.console import Console

from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from .access import Access, Elsewhere
from .errors import SuiteError
from .progress import progress


async def audit_ledger(access: Access | Elsewhere, console: Console) -> None:
    """Print what the wallet's audit found; raises SuiteError where something is wrong."""
    async with access.channel("wallet") as channel:
        stub = wallet_pb2_grpc.WalletServiceStub(channel)
        try:
            with progress("Auditing the ledger"):
                audit = await stub.AuditLedger(wallet_pb2.AuditLedgerRequest())
        except grpc.aio.AioRpcError as error:
            raise access.failed(error, "auditing the ledger") from error
    console.print(
        f"{audit.accounts} accounts, {audit.entries} entries, {audit.settlements} settlements"
    )
    for currency in sorted({*audit.sums, *audit.held}):
        console.print(
            f"  {currency:10} sum of all accounts {audit.sums.get(currency, 0):,}, "
            f"held {audit.held.get(currency, 0):,}"
        )
    if not audit.balanced:
        raise SuiteError(
            "the ledger is not balanced",
            "Stop the suite and keep its state folder as it is for those who look into it.",
            tuple(audit.findings),
        )
    console.print("[green]The ledger is balanced.[/green]")
