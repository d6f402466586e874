"""`fangcheng ledger audit` and `fangcheng verify`."""

from __future__ import annotations

import grpc.aio
from rich.console import Console

from fangcheng.table.v1 import records_pb2, records_pb2_grpc, table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from .access import Access, Elsewhere
from .errors import SuiteError, from_call
from .verify import verify
from .watching import find_table


async def audit_ledger(access: Access | Elsewhere, console: Console) -> None:
    """Print what the wallet's audit found; raises SuiteError where something is wrong."""
    async with access.channel("wallet") as channel:
        stub = wallet_pb2_grpc.WalletServiceStub(channel)
        try:
            audit = await stub.AuditLedger(wallet_pb2.AuditLedgerRequest())
        except grpc.aio.AioRpcError as error:
            raise from_call(error, "auditing the ledger") from error
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


async def verify_hand(access: Access, console: Console, given: str, hand_number: int) -> None:
    """Print that a hand's shuffle checks out; raises VerificationFailed where it does not."""
    table_id = await find_table(access, given)
    async with access.channel("table") as channel:
        stub = table_pb2_grpc.TableServiceStub(channel)
        try:
            table = await stub.GetTable(table_pb2.GetTableRequest(table_id=table_id))
            answer = await records_pb2_grpc.TableRecordServiceStub(channel).GetHandRecord(
                records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=hand_number)
            )
        except grpc.aio.AioRpcError as error:
            raise from_call(error, f"hand {hand_number} of table {table_id}") from error
    found = verify(answer.record, table.table.commitment)
    console.print(f"Hand {hand_number} of table {table_id}")
    console.print(f"  commitment  {table.table.commitment.hex()}")
    console.print(f"  secret      {answer.record.secret.hex()}")
    times = "once" if hand_number == 1 else f"{hand_number} times"
    console.print(
        f"  The secret, hashed {times}, is the commitment. The wall of "
        f"{found.wall_tiles} tiles follows from it."
    )
    console.print(
        f"  {found.dealt} tiles dealt, {found.drawn_front} drawn from the front and "
        f"{found.drawn_back} from the back are that wall in its order."
    )
    console.print("[green]The shuffle checks out.[/green]")
