"""`fangcheng ledger backup`, `restore` and `replay`."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, aclosing
from datetime import datetime
from pathlib import Path

import grpc.aio
from rich.console import Console
from rich.markup import escape

from fangcheng.wallet.v1 import settlement_pb2, settlement_pb2_grpc
from fangcheng_kit.migrations import BadDatabase
from fangcheng_kit.settings import is_postgres
from fangcheng_table.codec import UnknownEvent
from fangcheng_table.convert_settlement import payments_from_wire, settle_request
from fangcheng_table.journals import open_journal
from fangcheng_table.sealing import NO_KEYS, JournalKeys
from fangcheng_table.settlements import SettledHand, settled_hands
from fangcheng_table.store import JournalError
from fangcheng_wallet.backup import BackupFailed, backup, restore
from fangcheng_wallet.currencies import BadCurrencies, load_currencies
from fangcheng_wallet.service import open_store
from fangcheng_wallet.settings import WalletSettings

from .access import Access, Elsewhere
from .errors import LedgerTampered, SuiteError
from .progress import progress

_BATCH = 100
_TIMEOUT_SECONDS = 60.0
_JOURNAL = (
    "Name the tables' journal with --journal, as FANGCHENG_TABLE_DATABASE has it, and give the "
    "keys that it was sealed with in FANGCHENG_TABLE_JOURNAL_KEYS."
)


async def back_up(database: str, target: Path, console: Console) -> None:
    """Copy a ledger that may be in use, and tell how large the copy is."""
    try:
        with progress("Copying the ledger"):
            await backup(database, target)
    except BackupFailed as error:
        raise SuiteError(
            f"the ledger was not backed up: {error}",
            "Name the ledger with --database, as FANGCHENG_WALLET_DATABASE has it, and a file that "
            "is not there yet. For PostgreSQL, pg_dump of its own version must be in the PATH.",
        ) from error
    size = (await asyncio.to_thread(target.stat)).st_size
    console.print(f"{target}: {size:,} bytes")


async def restore_ledger(
    source: Path, database: str, currencies_file: Path | None, console: Console
) -> None:
    """Make a ledger of a backup, then audit it and compare it with its chain.

    `currencies_file`: as the wallet is configured with; None: that which comes with it.
    """
    try:
        currencies = load_currencies(currencies_file)
        with progress("Restoring the ledger"):
            await restore(source, database)
    except (BackupFailed, BadCurrencies) as error:
        raise SuiteError(
            f"the ledger was not restored: {error}",
            "Restore into a database that is not there yet, or is empty, from a file of `fangcheng "
            "ledger backup`, with the currencies of the wallet.",
        ) from error
    # It is opened as the wallet does, with no key that anybody could call it with.
    settings = WalletSettings(dev_key="-" * 64, database=database)
    try:
        with progress("Opening the ledger") as bar:
            async with open_store(settings, currencies) as store:
                bar.say("Auditing the ledger")
                audit = await store.audit()
                bar.say("Comparing every entry with the hash chain")
                chain = await store.verify()
    except BadDatabase as error:
        raise SuiteError(
            f"the restored ledger cannot be opened: {error}",
            "Use the release that made the backup, or a newer one; else try an earlier backup.",
        ) from error
    console.print(
        f"{audit.accounts} accounts, {audit.entries} entries, {audit.settlements} settlements"
    )
    findings = (*audit.findings, *((chain.finding,) if chain.finding else ()))
    if findings:
        raise LedgerTampered(
            "the restored ledger is not as it should be", "Try an earlier backup.", findings
        )
    console.print("[green]The ledger is balanced, and every entry is as it was written.[/green]")


async def replay(
    access: Access | Elsewhere,
    journal_address: str,
    since: datetime,
    console: Console,
    keys: JournalKeys = NO_KEYS,
) -> None:
    """Tell a restored wallet every settlement of a table journal again, by its key.

    Those that it has are answered as before; what came after the backup is settled now, in the
    order in which it was then, and from what is available where a hold is not there any more.
    `keys`: the journal's.
    """
    with progress("Reading the journal"):
        hands = await _settled_since(journal_address, round(since.timestamp() * 1_000), keys)
    counts: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        channel = await stack.enter_async_context(access.channel("wallet", "service:table"))
        bar = stack.enter_context(
            progress("Telling the wallet", total=len(hands), unit="settlements")
        )
        stub = settlement_pb2_grpc.SettlementServiceStub(channel)
        for first in range(0, len(hands), _BATCH):
            some = hands[first : first + _BATCH]
            try:
                results = await _settle_again(stub, some)
            except grpc.aio.AioRpcError as error:
                raise access.failed(error, "settling again") from error
            for hand, result in zip(some, results, strict=True):
                outcome = _outcome(hand, result)
                counts[outcome] += 1
                if outcome in ("refused", "paid otherwise"):
                    why = result.refused.message or "the payers have other balances now"
                    bar.above(console, f"  {result.key}  {outcome}: {escape(why)}")
            bar.advance(len(some))
    console.print(
        f"{len(hands)} settlements told: {counts['known']} known, {counts['settled']} settled now, "
        f"{counts['paid otherwise']} paid otherwise than before, {counts['refused']} refused"
    )
    if counts["refused"]:
        raise SuiteError(
            "the wallet refuses settlements of the journal",
            "Compare each with GetSettlement of its key: docs/operations/runbooks/restore.md. What "
            "it took is settled; telling it all again is safe.",
        )


async def _settled_since(
    journal_address: str, since_ms: int, keys: JournalKeys
) -> list[SettledHand]:
    if not (is_postgres(journal_address) or await asyncio.to_thread(Path(journal_address).exists)):
        raise SuiteError(f"there is no journal {journal_address}", _JOURNAL)
    try:
        journal = await open_journal(journal_address, keys=keys)
        try:
            async with aclosing(settled_hands(journal)) as found:
                hands = [hand async for hand in found if hand.time_ms >= since_ms]
        finally:
            await journal.close()
    except (JournalError, UnknownEvent) as error:
        raise SuiteError(f"cannot read the journal: {error}", _JOURNAL) from error
    return sorted(hands, key=lambda hand: hand.time_ms)


async def _settle_again(
    stub: settlement_pb2_grpc.SettlementServiceAsyncStub, hands: list[SettledHand]
) -> list[settlement_pb2.SettleResult]:
    requests = [settle_request(hand.settlement, hand.table.labels) for hand in hands]
    results = await _settle(stub, requests)
    bare = [number for number, result in enumerate(results) if _lacks_holds(result.refused)]
    for number in bare:
        for party in requests[number].parties:
            del party.hold_ids[:]
        (results[number],) = await _settle(stub, [requests[number]])
    return results


async def _settle(
    stub: settlement_pb2_grpc.SettlementServiceAsyncStub,
    requests: list[settlement_pb2.SettleRequest],
) -> list[settlement_pb2.SettleResult]:
    batch = settlement_pb2.SettleBatchRequest(settlements=requests)
    answer = await stub.SettleBatch(batch, timeout=_TIMEOUT_SECONDS)
    return list(answer.results)


def _lacks_holds(refused: settlement_pb2.Refusal) -> bool:
    """A hold came after the backup; or did so, and it was settled without it before."""
    if refused.reason == "SETTLEMENT_KEY_REUSED":
        others = [path for path in _differs(refused) if not path.startswith("labels[")]
        return bool(others) and all(path.endswith(".hold_ids") for path in others)
    return refused.reason == "UNKNOWN_HOLD"


def _was_erased(refused: settlement_pb2.Refusal) -> bool:
    """It is settled already; labels that name a person were since erased here or there."""
    is_reused = refused.reason == "SETTLEMENT_KEY_REUSED"
    return is_reused and all(path.startswith("labels[") for path in _differs(refused))


def _differs(refused: settlement_pb2.Refusal) -> list[str]:
    return refused.metadata["differs"].split(",")


def _outcome(hand: SettledHand, result: settlement_pb2.SettleResult) -> str:
    if result.HasField("refused"):
        return "known" if _was_erased(result.refused) else "refused"
    if payments_from_wire(result.settled.settlement, hand.settlement) != hand.settled.payments:
        return "paid otherwise"
    return "known" if result.settled.replayed else "settled"
