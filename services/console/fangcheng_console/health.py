"""Health: every process as it is, what is wrong first, and the ledger's checks.

The picture is made once a round of the scraper, for all who look at it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng.wallet.v1 import wallet_pb2
from fangcheng_client import explain
from fangcheng_kit.background import running

from .backend import SERVICES
from .figures import load_of
from .findings import FAILED, findings, lag, saturation
from .lobby import Tables, troubles_of
from .scrape import Process, Scraper, quantile, total

CHECK_SECONDS = 5.0
ANSWER_SECONDS = 2.0
LONGEST_CHECK_SECONDS = 15 * 60.0
"""A ledger of years takes minutes to be read."""

Check = Literal["audit", "verify"]
Metadata = Sequence[tuple[str, bytes]]
Line = tuple[str, float | None]
"""A figure of a process by its name, which says its unit."""


class Serving:
    """Whether each service serves, as one asks its health over gRPC."""

    def __init__(self, channels: Mapping[str, grpc.aio.Channel]) -> None:
        self.states: dict[str, dict[str, Any]] = {}
        """By service: `serving`, `since` (Unix ms), and `why` where it does not."""
        self._channels = channels

    def running(self) -> AbstractAsyncContextManager[None]:
        """Asks again and again while the `async with` lasts."""
        return running(self._run())

    async def ask(self) -> None:
        """Ask each service once."""
        await asyncio.gather(*(self._ask(*one) for one in self._channels.items()))

    async def _run(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(CHECK_SECONDS)

    async def _ask(self, service: str, channel: grpc.aio.Channel) -> None:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # whose calls have no types
        why = ""
        try:
            answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=ANSWER_SECONDS)
            if answer.status != health_pb2.HealthCheckResponse.SERVING:
                why = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
        except grpc.aio.AioRpcError as error:
            why = explain(error).message or error.code().name
        known = self.states.get(service)
        if known is None or known["serving"] == bool(why):
            self.states[service] = {"serving": not why, "since": _ms(time.time()), "why": why}
        else:
            known["why"] = why


class Ledger:
    """The wallet's checks of its ledger: both read all of it, so that one runs at a time."""

    def __init__(self, wallet: Any) -> None:
        """`wallet`: its stub, on which each call says for whom it is."""
        self.checks: dict[str, dict[str, Any]] = {"audit": {}, "verify": {}}
        """By check: while it runs `running` (since, by), and of the last one `done`."""
        self.findings: list[str] = []
        """What the last audit found wrong, for operators: it may name players."""
        self.on_change: Callable[[], None] = lambda: None
        self._wallet = wallet
        self._noted = (0, "")
        """How many operations the chain had when it was last whole, and its head then."""
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A check that runs at the end of the `async with` is given up."""
        try:
            yield
        finally:
            if self._task is not None:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    @property
    def busy(self) -> bool:
        """One runs."""
        return self._task is not None and not self._task.done()

    def start(self, check: Check, by: str, metadata: Metadata) -> None:
        """Begin one, in the background; to be called while none is `busy`."""
        self._task = asyncio.create_task(self._run(check, by, metadata))

    async def _run(self, check: Check, by: str, metadata: Metadata) -> None:
        began = time.time()
        state = self.checks[check]
        state["running"] = {"since": _ms(began), "by": by}
        self.on_change()
        done: dict[str, Any] = {"by": by, "at": _ms(began)}
        try:
            if check == "audit":
                done |= await self._audit(metadata)
            else:
                done |= await self._verify(metadata)
        except grpc.aio.AioRpcError as error:
            done |= {"error": str(explain(error))}
        finally:
            del state["running"]
        state["done"] = {**done, "seconds": round(time.time() - began, 3)}
        self.on_change()

    async def _audit(self, metadata: Metadata) -> dict[str, Any]:
        request = wallet_pb2.AuditLedgerRequest()
        told = await self._wallet.AuditLedger(
            request, metadata=metadata, timeout=LONGEST_CHECK_SECONDS
        )
        self.findings = list(told.findings)
        return {
            "good": told.balanced,
            "accounts": told.accounts,
            "entries": told.entries,
            "settlements": told.settlements,
            "sums": dict(told.sums),
            "findings": len(told.findings),
        }

    async def _verify(self, metadata: Metadata) -> dict[str, Any]:
        # The head that was seen last must still stand in the chain, whatever failed since.
        operations, head = self._noted
        request = wallet_pb2.VerifyLedgerRequest(operations=operations, head=head)
        told = await self._wallet.VerifyLedger(
            request, metadata=metadata, timeout=LONGEST_CHECK_SECONDS
        )
        if told.intact:
            self._noted = told.operations, told.head
        return {
            "good": told.intact,
            "operations": told.operations,
            "entries": told.entries,
            "head": told.head,
            "waiting": told.waiting,
            "finding": told.finding,
        }


class Health:
    """The picture of the health page."""

    def __init__(
        self,
        scraper: Scraper,
        tables: Tables,
        serving: Serving,
        ledger: Ledger,
        grafana_url: str = "",
    ) -> None:
        self._scraper = scraper
        self._tables = tables
        self._serving = serving
        self._ledger = ledger
        self._grafana_url = grafana_url

    def picture(self) -> dict[str, Any]:
        """All of it, as JSON."""
        now = time.time()
        troubles = Counter(
            kind for table in self._tables.live.values() for kind in troubles_of(table)
        )
        serving = {name: bool(told["serving"]) for name, told in self._serving.states.items()}
        found = findings(self._scraper, now, serving, troubles)
        processes = sorted(self._scraper.processes.values(), key=_place)
        return {
            "now": _ms(now),
            "findings": [finding.plain() for finding in found],
            "services": self._serving.states,
            "processes": [process_row(process) for process in processes],
            "ledger": self._ledger.checks,
            "grafana": self._grafana_url,
        }


def _place(process: Process) -> tuple[int, str]:
    is_known = process.service in SERVICES
    return SERVICES.index(process.service) if is_known else len(SERVICES), process.address


def process_row(process: Process) -> dict[str, Any]:
    """A process as the page has it; times are Unix ms, `cpu` cores, `memory` bytes, `calls` and
    `errors` a second. What it told last stands there while it is away, too."""
    started = process.value("process_start_time_seconds")
    away = process.away_since
    return {
        "address": process.address,
        "service": process.service,
        "version": process.version,
        "started": None if started is None else _ms(started),
        "seen": None if process.seen_at is None else _ms(process.seen_at),
        "away": None if away is None else {"since": _ms(away), "why": process.trouble},
        "lag_seconds": lag(process),
        "cpu": process.rate("process_cpu_seconds_total"),
        "memory": process.value("process_resident_memory_bytes"),
        "calls": process.rate(_HANDLED),
        "errors": total(process.rate(_HANDLED, 60.0, code) for code in FAILED),
        "lines": [line for line in _lines(process) if line[1] is not None],
    }


def _lines(process: Process) -> list[Line]:
    """What is particular to the service."""
    of = _OF_SERVICE.get(process.service)
    return of(process) if of is not None else []


def _of_table(process: Process) -> list[Line]:
    live = [
        value for (phase,), value in process.series("fangcheng_tables").items() if phase != "closed"
    ]
    return [
        ("tables", sum(live) if live else None),
        ("hands_per_minute", _a_minute(process, "fangcheng_table_hands_total")),
        ("act_p99_seconds", _p99(process, "fangcheng_table_act_seconds_bucket")),
        ("commit_p99_seconds", _p99(process, "fangcheng_table_journal_commit_seconds_bucket")),
        ("outbox", process.value("fangcheng_table_outbox")),
        ("outbox_age_seconds", _max(process, "fangcheng_table_outbox_oldest_age_seconds")),
        ("parked", process.value("fangcheng_table_parked")),
        ("evaluator_questions", process.value("fangcheng_table_evaluator_questions")),
        ("trustee_seats", process.value("fangcheng_table_trustee_seats")),
        ("taken_over", process.increase("fangcheng_table_taken_over_total", 15 * 60.0)),
    ]


def _of_wallet(process: Process) -> list[Line]:
    settled = "fangcheng_wallet_settlements_total"
    refused = [process.increase(settled, 15 * 60.0, outcome) for outcome in ("refused", "failed")]
    return [
        ("imbalance", _max(process, "fangcheng_wallet_ledger_imbalance")),
        ("unchained", process.value("fangcheng_wallet_unchained_operations")),
        ("settlements_per_minute", _a_minute(process, settled)),
        ("settlements_refused", sum(refused)),
        ("commit_p99_seconds", _p99(process, "fangcheng_wallet_commit_seconds_bucket")),
        ("open_holds", process.value("fangcheng_wallet_open_holds")),
        ("oldest_hold_seconds", process.value("fangcheng_wallet_oldest_hold_age_seconds")),
    ]


def _of_matchmaking(process: Process) -> list[Line]:
    waiting = {"player": 0.0, "standby": 0.0}
    for (_, kind), count in process.series("fangcheng_matchmaking_waiting_tickets").items():
        waiting[kind] = waiting.get(kind, 0.0) + count
    return [
        ("players_waiting", waiting["player"]),
        ("bots_waiting", waiting["standby"]),
        ("oldest_ticket_seconds", _max(process, "fangcheng_matchmaking_oldest_ticket_age_seconds")),
        ("wait_p95_seconds", quantile(0.95, process.buckets(_WAITS, 5 * 60.0))),
        ("unfinished_matches", process.value("fangcheng_matchmaking_unfinished_matches")),
        ("paused_pools", process.value("fangcheng_matchmaking_paused")),
    ]


def _of_evaluation(process: Process) -> list[Line]:
    full = [part for lane in _LANES if (part := saturation(process, lane)) is not None]
    return [
        ("load", load_of(process)),
        ("saturation", max(full, default=None)),
        ("threads", process.value("fangcheng_evaluation_threads")),
        ("hands_per_second", process.rate("fangcheng_evaluation_hands_total")),
        ("refused_calls", process.increase("fangcheng_evaluation_refused_calls_total", 15 * 60.0)),
    ]


_OF_SERVICE = {
    "table": _of_table,
    "wallet": _of_wallet,
    "matchmaking": _of_matchmaking,
    "evaluation": _of_evaluation,
}
_HANDLED = "grpc_server_handled_total"
_LANES = ("single", "bulk", "packed")
_WAITS = "fangcheng_matchmaking_wait_seconds_bucket"


def _p99(process: Process, histogram: str) -> float | None:
    return quantile(0.99, process.buckets(histogram, 60.0))


def _a_minute(process: Process, counter: str) -> float | None:
    rate = process.rate(counter)
    return None if rate is None else rate * 60


def _max(process: Process, gauge: str) -> float | None:
    return max(process.series(gauge).values(), key=abs, default=None)


def _ms(unix_seconds: float) -> int:
    return int(unix_seconds * 1_000)
