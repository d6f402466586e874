"""What every process measures of itself: version, clock, files, certificates, and what is stuck."""

from __future__ import annotations

import asyncio
import email.utils
import http.client
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from fangcheng_kit.tokens import TokenVerifier

from .findings import Finding, fails, fine, warns
from .reaching import CONNECT_SECONDS, SOON_DAYS, split

SKEW_SECONDS = 2.0
"""Clocks that are further apart show it; what tells the time here counts in whole seconds."""
LEEWAY_SECONDS = TokenVerifier().leeway_seconds
FEW_FILES = 4_096
_LARGEST_BYTES = 16 * 1024 * 1024
_OUTBOX_SECONDS = 60.0
_OLD_HOLD_SECONDS = 12 * 3_600.0
_MANY_UNCHAINED = 5_000


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process has told."""

    service: str
    address: str
    values: Mapping[str, Sequence[tuple[Mapping[str, str], float]]]
    """By name: labels and value of each series."""
    skew_seconds: float | None
    """How far its host's clock is ahead of this one's; None: it has not told its time."""

    @property
    def subject(self) -> str:
        """How findings name it."""
        return f"{self.service} {self.address}"

    @property
    def version(self) -> str:
        """Of the program; empty: not told."""
        return next((labels["version"] for labels, _ in self.of("fangcheng_build_info")), "")

    def of(self, name: str) -> Sequence[tuple[Mapping[str, str], float]]:
        """The series of a metric."""
        return self.values.get(name, ())

    def sum(self, name: str) -> float:
        """Over all series of a metric; 0: there is none."""
        return sum(value for _, value in self.of(name))

    def most(self, name: str) -> float:
        """The largest of the series of a metric; 0: there is none."""
        return max((value for _, value in self.of(name)), default=0.0)


async def measured(service: str, address: str) -> Measured | Finding:
    """Read the metrics of a process."""
    try:
        return await asyncio.to_thread(_read, service, address)
    except (OSError, http.client.HTTPException, ValueError) as error:
        told = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return fails(
            "metrics",
            f"{service} {address}",
            f"no metrics: {told}",
            "Nobody is alerted of what goes wrong in this process.",
            "See that it runs, and is not paused or out of CPU, and where it tells them: "
            "FANGCHENG_METRICS_LISTEN (docs/operations/metrics.md); 127.0.0.1 is reached from its "
            "own host alone.",
        )


def _read(service: str, address: str) -> Measured:
    host, port = split(address)
    connection = http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
    try:
        before = time.time()
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"HTTP {answer.status}")
        there = answer.getheader("date")
        asked = (before + time.time()) / 2
        text = answer.read(_LARGEST_BYTES).decode()
    finally:
        connection.close()
    values: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            values.setdefault(sample.name, []).append((sample.labels, sample.value))
    # What it tells was cut to a whole second, half of one on average.
    skew = email.utils.parsedate_to_datetime(there).timestamp() + 0.5 - asked if there else None
    return Measured(service, address, values, skew)


def looked_at(one: Measured, now: float, *, is_here: bool) -> Iterator[Finding]:
    """What is to be said of one process."""
    yield fine("metrics", one.subject, f"tells its metrics, version {one.version or 'unknown'}")
    yield from _clock(one)
    yield from _files(one, is_here=is_here)
    yield from _certificates(one, now)
    match one.service:
        case "table":
            yield from _tables(one)
        case "wallet":
            yield from _money(one)
        case "matchmaking":
            yield from _queues(one)


def _clock(one: Measured) -> Iterator[Finding]:
    if one.skew_seconds is None:
        return
    apart = abs(one.skew_seconds)
    if apart <= SKEW_SECONDS:
        yield fine("clock", one.subject, "its clock and this one agree")
        return
    told = f"its clock is {apart:.0f} s {'ahead of' if one.skew_seconds > 0 else 'behind'} this one"
    means = "Tokens are taken for expired, or for not valid yet; times in logs do not compare."
    cure = "Have both hosts follow NTP; `timedatectl` on each shows whether they do."
    yield (fails if apart > LEEWAY_SECONDS else warns)("clock", one.subject, told, means, cure)


def _files(one: Measured, *, is_here: bool) -> Iterator[Finding]:
    most, used = one.most("process_max_fds"), one.most("process_open_fds")
    if not most:
        return
    told = f"{used:,.0f} of {most:,.0f} open files"
    means = "Each connection takes one; without any left, nobody connects and nothing is written."
    cure = "Raise the limit of the process (LimitNOFILE= in systemd, ulimits in compose) to 65536."
    if used > 0.9 * most:
        yield fails("files", one.subject, told, means, cure)
    elif used > 0.7 * most or (most < FEW_FILES and not is_here):
        yield warns("files", one.subject, told, means, cure)
    else:
        yield fine("files", one.subject, told)


def _certificates(one: Measured, now: float) -> Iterator[Finding]:
    if one.most("fangcheng_certificate_files_bad"):
        yield fails(
            "certificate-files",
            one.subject,
            "its new certificate files cannot be used; earlier ones are in force",
            "When those end, nobody connects any more.",
            "Its log says what is wrong with them: docs/operations/alerts/IdentitiesNotRead.md.",
        )
    for labels, end in one.of("fangcheng_certificate_expires_timestamp_seconds"):
        days = (end - now) / 86_400
        if end and days < SOON_DAYS:
            told = (
                f"the certificate {labels.get('certificate', '')} ends in {max(days, 0):.0f} days"
            )
            yield (fails if days <= 0 else warns)(
                "certificate-ends",
                one.subject,
                told,
                "When it has ended, connections that need it are refused.",
                "Renew it: docs/operations/alerts/CertificateEndsSoon.md.",
            )


def _tables(one: Measured) -> Iterator[Finding]:
    unowned = one.most("fangcheng_table_unowned")
    if unowned:
        yield fails(
            "unowned",
            one.subject,
            f"{unowned:,.0f} tables are played by no process",
            "Their players wait; it passes within a lease, or none knows their rule set.",
            "Look again in half a minute; then docs/operations/alerts/TablesUnowned.md.",
        )
    else:
        yield fine("unowned", one.subject, "every table is played by a process")
    for labels, count in one.of("fangcheng_table_parked"):
        if count:
            yield fails(
                "parked",
                one.subject,
                f"the wallet has refused {count:,.0f} errands to {labels.get('kind', 'it')}",
                "Those tables stand still: what was played is not paid.",
                "The table's log says which and why: docs/operations/alerts/SettlementParked.md.",
            )
    for labels, seconds in one.of("fangcheng_table_outbox_oldest_age_seconds"):
        if seconds > _OUTBOX_SECONDS:
            yield fails(
                "outbox",
                one.subject,
                f"an errand to {labels.get('kind', 'the wallet')} has waited for {seconds:,.0f} s",
                "The wallet does not answer the tables: hands are not paid, and tables wait.",
                "docs/operations/alerts/SettlementOutboxStuck.md; FANGCHENG_TABLE_WALLET names the "
                "wallet.",
            )
    failures = one.sum("fangcheng_table_journal_failures_total")
    if failures:
        yield warns(
            "journal",
            one.subject,
            f"the database has refused {failures:,.0f} appends since this process started",
            "Players' acts were lost or late; if it goes on, nobody plays.",
            "docs/operations/alerts/JournalFailing.md",
        )


def _money(one: Measured) -> Iterator[Finding]:
    wrong = {
        labels["currency"]: n for labels, n in one.of("fangcheng_wallet_ledger_imbalance") if n
    }
    if wrong:
        yield fails(
            "imbalance",
            one.subject,
            "; ".join(
                f"all accounts of {name} come to {n:,.0f}, not 0" for name, n in wrong.items()
            ),
            "Money has come into being or was lost.",
            "Stop the wallet and look: docs/operations/alerts/LedgerImbalance.md.",
        )
    unchained = one.most("fangcheng_wallet_unchained_operations")
    if unchained > _MANY_UNCHAINED:
        yield warns(
            "chain",
            one.subject,
            f"{unchained:,.0f} operations are not in the hash chain yet",
            "What is not in it could be changed without being found out.",
            "docs/operations/alerts/LedgerChainBehind.md",
        )
    oldest = one.most("fangcheng_wallet_oldest_hold_age_seconds")
    if oldest > _OLD_HOLD_SECONDS:
        yield warns(
            "holds",
            one.subject,
            f"money has been set aside for {oldest / 3_600:,.0f} hours",
            "A player cannot use it, and no table does.",
            "docs/operations/alerts/HoldsTooOld.md",
        )


def _queues(one: Measured) -> Iterator[Finding]:
    refused = sum(
        value
        for labels, value in one.of("fangcheng_matchmaking_pool_reloads_total")
        if labels.get("outcome") == "refused"
    )
    if refused:
        yield warns(
            "pools-file",
            one.subject,
            f"the pools' file was read {refused:,.0f} times and not used, since it has a fault",
            "Pools stay as they were; the process does not start again with this file.",
            "Its log names the line; mend the file of FANGCHENG_MATCHMAKING_POOLS.",
        )


def compared(all_of_them: Sequence[Measured], own: str) -> Iterator[Finding]:
    """Whether all processes, and this command, are of one version."""
    of: dict[str, list[str]] = {}
    for one in all_of_them:
        if one.version:
            of.setdefault(one.version, []).append(one.service)
    if not of:
        return
    if set(of) == {own}:
        yield fine("versions", "deployment", f"every process is of version {own}")
        return
    told = "; ".join(f"{name}: {', '.join(sorted(set(who)))}" for name, who in sorted(of.items()))
    means = (
        "During an upgrade this is as it should be, for as long as it takes; otherwise a part was "
        "left behind."
        if len(of) > 1
        else f"This command is of version {own}: it may look for what there is not."
    )
    yield warns(
        "versions",
        "deployment",
        told,
        means,
        "docs/operations/runbooks/upgrade.md says in what order services are replaced.",
    )
