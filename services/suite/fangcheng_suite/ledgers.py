"""`fangcheng ledger verify` and `fangcheng ledger export`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import grpc.aio
from rich.console import Console

from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import explain

from .access import Access, Elsewhere
from .errors import LedgerTampered, SuiteError, cannot
from .progress import progress

COLUMNS = (
    "sequence",
    "operation",
    "verb",
    "time",
    "account",
    "owner",
    "currency",
    "book",
    "version",
    "amount",
    "balance_after",
    "reason",
    "reference",
    "memo",
    "labels",
)
"""Of an export, in this order; `time` in UTC to the microsecond, `labels` a JSON object."""

_NUMBERS = frozenset({"sequence", "operation", "version", "amount", "balance_after"})
_KIND = len("ACCOUNT_KIND_")
_VERIFY_TIMEOUT_SECONDS = 3_600.0


async def verify_ledger(
    access: Access | Elsewhere, console: Console, operations: int, head: str
) -> None:
    """Print what the hash chain says; raises LedgerTampered where something was changed.

    `operations`, `head`: as an earlier run printed them; 0: none.
    """
    async with access.channel("wallet") as channel:
        stub = wallet_pb2_grpc.WalletServiceStub(channel)
        request = wallet_pb2.VerifyLedgerRequest(operations=operations, head=head)
        try:
            with progress("Comparing every entry with the hash chain"):
                found = await stub.VerifyLedger(request, timeout=_VERIFY_TIMEOUT_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise access.failed(error, "verifying the ledger") from error
    console.print(f"{found.operations} operations, {found.entries} entries compared")
    if found.waiting:
        console.print(f"  {found.waiting} operations are not in the chain yet")
    if not found.intact:
        where = f" (entry {found.tampered_sequence})" if found.tampered_sequence else ""
        raise LedgerTampered(
            f"the ledger was tampered with{where}",
            "Stop the wallet and keep its database as it is for those who look into it.",
            (found.finding,),
        )
    if found.erased:
        console.print(
            f"  {found.erased} operations are as an erasure of personal data has left them"
        )
    console.print(f"  head  {found.operations}:{found.head}")
    console.print("[green]Every entry is as it was written.[/green]")


def read_head(text: str) -> tuple[int, str]:
    """A head as `verify` prints it: how many operations, and the hash; raises SuiteError."""
    if not text:
        return 0, ""
    operations, _, head = text.partition(":")
    if not (operations.isascii() and operations.isdigit() and head):
        raise SuiteError(f"{text} is no head", "It looks like 41870:9f2c…, as verify prints it.")
    return int(operations), head


class Sink(Protocol):
    """Where an export goes."""

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add rows with the values of ``COLUMNS``."""


async def export_ledger(
    access: Access | Elsewhere, console: Console, path: Path, cursor: str, currency: str
) -> None:
    """Write the entries behind a cursor to a file: CSV, or Parquet where it is named so.

    The file appears under its name once it is whole.
    """
    fresh = path.with_name(path.name + ".part")
    written = 0
    try:
        async with access.channel("wallet") as channel:
            stub = wallet_pb2_grpc.WalletServiceStub(channel)
            with (
                _sink(fresh, parquet=path.suffix == ".parquet") as sink,
                progress("Exporting the ledger", unit="entries") as bar,
            ):
                is_over = False
                while not is_over:
                    request = wallet_pb2.StreamEntriesRequest(cursor=cursor, currency=currency)
                    try:
                        async for message in stub.StreamEntries(request):
                            sink.write([_row(entry) for entry in message.entries])
                            written += len(message.entries)
                            bar.at(written)
                            cursor = message.cursor
                        is_over = True
                    except grpc.aio.AioRpcError as error:
                        if not explain(error).ended_with_token:
                            raise
        fresh.replace(path)
    except grpc.aio.AioRpcError as error:
        raise access.failed(error, "exporting the ledger") from error
    except OSError as error:
        raise cannot("write", path, error) from error
    finally:
        fresh.unlink(missing_ok=True)
    console.print(f"{written} entries in {path}")
    console.print(f"  go on behind them with --after {cursor}")


def _row(streamed: wallet_pb2.LedgerEntry) -> dict[str, Any]:
    entry = streamed.entry
    return {
        "sequence": streamed.sequence,
        "operation": streamed.operation,
        "verb": streamed.verb,
        "time": datetime(1970, 1, 1, tzinfo=UTC)
        + timedelta(microseconds=entry.time.ToMicroseconds()),
        "account": wallet_pb2.AccountKind.Name(streamed.kind)[_KIND:].lower(),
        "owner": streamed.owner,
        "currency": entry.currency,
        "book": entry.book,
        "version": entry.version,
        "amount": entry.amount,
        "balance_after": entry.balance_after,
        "reason": entry.reason,
        "reference": entry.reference,
        "memo": entry.memo,
        "labels": json.dumps(dict(sorted(entry.labels.items())), ensure_ascii=False),
    }


@contextmanager
def _sink(path: Path, *, parquet: bool) -> Iterator[Sink]:
    if parquet:
        with _parquet(path) as sink:
            yield sink
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        yield _Csv(file)


class _Csv:
    def __init__(self, file: Any) -> None:
        self._writer = csv.DictWriter(file, COLUMNS)
        self._writer.writeheader()

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            self._writer.writerow({**row, "time": row["time"].isoformat(timespec="microseconds")})


@contextmanager
def _parquet(path: Path) -> Iterator[Sink]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise SuiteError(
            "Parquet needs pyarrow", "Install fangcheng[parquet], or name a .csv file."
        ) from None
    kinds = {
        **dict.fromkeys(COLUMNS, pyarrow.string()),
        **dict.fromkeys(_NUMBERS, pyarrow.int64()),
        "time": pyarrow.timestamp("us", tz="UTC"),
    }
    schema = pyarrow.schema([(name, kinds[name]) for name in COLUMNS])
    with parquet.ParquetWriter(path, schema) as writer:
        sink = _Parquet(writer, schema)
        yield sink
        sink.flush()


class _Parquet:
    ROWS = 50_000
    """Of a row group."""

    def __init__(self, writer: Any, schema: Any) -> None:
        self._writer = writer
        self._schema = schema
        self._rows: list[dict[str, Any]] = []

    def write(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows += rows
        if len(self._rows) >= self.ROWS:
            self.flush()

    def flush(self) -> None:
        import pyarrow

        if self._rows:
            self._writer.write_table(pyarrow.Table.from_pylist(self._rows, self._schema))
            self._rows = []
