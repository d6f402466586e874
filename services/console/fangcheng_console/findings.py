"""What is wrong with the suite, from what its processes tell: as the alerts, but at once.

Each finding is called as the alert of `deploy/prometheus/rules`, where there is one, and names the
page that says what to do. Its thresholds are the alert's, which says why they are so; it is told as
soon as it is seen, while an alert waits whether it passes. The error budgets, which look back for
days, are left to Prometheus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .backend import SERVICES
from .scrape import Process, Scraper, added, quantile, total

FAILED = frozenset({"INTERNAL", "UNKNOWN", "DATA_LOSS", "UNAVAILABLE", "DEADLINE_EXCEEDED"})
"""Statuses that tell of a fault of ours, or of what is below us; others are the caller's."""

Severity = Literal["page", "ticket", "note"]
"""Players are hurt or money is wrong; it can wait until the morning; somebody ought to know."""
_ORDER = ("page", "ticket", "note")

_MINUTE = 60.0
_DAY = 86_400.0
_BOARDS = {
    "matchmaking": "fangcheng-matchmaking",
    "table": "fangcheng-tables",
    "wallet": "fangcheng-wallet",
    "evaluation": "fangcheng-evaluation",
}
"""Grafana's dashboards by service."""
RUNTIME_BOARD = "fangcheng-runtime"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    name: str
    severity: Severity
    service: str
    params: Mapping[str, str | float] = field(default_factory=dict)
    """What its sentence names: a number, a pool, a currency, a call."""
    process: str = ""
    """The address of the process that it is about; empty: all of the service."""
    page: str = ""
    """Where in the documentation it says what to do; empty: the alert's own page."""
    lobby: str = ""
    """The filter that shows its tables in the lobby."""
    board: str = ""
    """The dashboard that shows more; empty: the service's own."""

    def plain(self) -> dict[str, object]:
        """As the page has it."""
        return {
            "name": self.name,
            "severity": self.severity,
            "service": self.service,
            "params": dict(self.params),
            "process": self.process,
            "page": self.page or f"docs/operations/alerts/{self.name}.md",
            "lobby": self.lobby,
            "board": self.board or _BOARDS.get(self.service, RUNTIME_BOARD),
        }


def findings(
    scraper: Scraper, now: float, serving: Mapping[str, bool], troubles: Mapping[str, int]
) -> list[Finding]:
    """All that is wrong, the worst first.

    `serving`: services whose health was asked, and whether one of them serves. `troubles`: how many
    live tables have which.
    """
    found = [*_of_processes(scraper, now, serving), *_of_tables_lately(troubles)]
    for look in (_of_money, _of_matchmaking, _of_tables, _of_evaluation):
        found += look(scraper)
    for service in SERVICES:
        found += _of_calls(scraper.of(service), service)
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def _of_processes(scraper: Scraper, now: float, serving: Mapping[str, bool]) -> Iterator[Finding]:
    for service in SERVICES:
        known, there = scraper.known(service), scraper.of(service)
        if known and not there:
            if serving.get(service):
                page = "docs/operations/metrics.md"
                yield Finding("MetricsAway", "ticket", service, page=page, board=RUNTIME_BOARD)
            else:
                yield Finding("ServiceDown", "page", service, board=RUNTIME_BOARD)
        elif there and serving.get(service) is False:
            page = "docs/operations/alerts/CallsUnavailable.md"
            yield Finding("NotServing", "page", service, page=page)
        versions = sorted({one.version for one in there})
        if len(versions) > 1:
            yield Finding(
                "VersionsDiffer",
                "note",
                service,
                {"versions": ", ".join(versions)},
                page="docs/operations/runbooks/upgrade.md",
                board=RUNTIME_BOARD,
            )
        for one in known:
            yield from _of_process(one, service, now, is_only=not there)


def _of_process(one: Process, service: str, now: float, *, is_only: bool) -> Iterator[Finding]:
    def finding(name: str, **params: str | float) -> Finding:
        return Finding(name, "ticket", service, params, one.address, board=RUNTIME_BOARD)

    if one.away_since is not None:
        if not is_only:
            yield finding("ProcessDown", seconds=now - one.away_since)
        return
    restarts = sum(start > now - 15 * _MINUTE for start in one.starts)
    if restarts >= 3:
        yield finding("ProcessRestartsOften", count=restarts)
    late = lag(one)
    if late is not None and late > 0.1:
        yield finding("EventLoopLag", seconds=late)
    if one.value("fangcheng_certificate_files_bad") or one.increase(
        "fangcheng_key_set_failures_total", 10 * _MINUTE
    ):
        yield finding("IdentitiesNotRead")
    ends = one.series("fangcheng_certificate_expires_timestamp_seconds")
    for (certificate,), end in ends.items():
        left = max(end - now, 0.0)
        if left < 7 * _DAY:
            yield finding("CertificateEndsSoon", certificate=certificate, seconds=left)


def lag(process: Process) -> float | None:
    """How late its event loop came back in the last minute, one time in a hundred; seconds."""
    return quantile(0.99, process.buckets("fangcheng_event_loop_lag_seconds_bucket", _MINUTE))


def _of_money(scraper: Scraper) -> Iterator[Finding]:
    wallets, tables = scraper.of("wallet"), scraper.of("table")
    for (currency,), amount in _most(wallets, "fangcheng_wallet_ledger_imbalance").items():
        if amount:
            params: dict[str, str | float] = {"currency": currency, "amount": amount}
            yield Finding("LedgerImbalance", "page", "wallet", params)
    ages = _most(tables, "fangcheng_table_outbox_oldest_age_seconds")
    for (kind,), seconds in ages.items():
        if seconds > 60:
            params = {"kind": kind, "seconds": seconds}
            yield Finding("SettlementOutboxStuck", "page", "table", params)
    parked, lobby = "fangcheng_table_parked", "trouble=parked"
    if count := total(one.value(parked, "settle") for one in tables):
        yield Finding("SettlementParked", "page", "table", {"count": count}, lobby=lobby)
    if count := total(one.value(parked, "release") for one in tables):
        yield Finding("ReleaseParked", "ticket", "table", {"count": count}, lobby=lobby)
    yield from _above(
        wallets,
        "HoldsTooOld",
        "ticket",
        "wallet",
        "fangcheng_wallet_oldest_hold_age_seconds",
        "seconds",
        12 * 3_600,
    )
    yield from _above(
        wallets,
        "LedgerChainBehind",
        "ticket",
        "wallet",
        "fangcheng_wallet_unchained_operations",
        "count",
        5_000,
    )


def _of_matchmaking(scraper: Scraper) -> Iterator[Finding]:
    there = scraper.of("matchmaking")
    paused = _most(there, "fangcheng_matchmaking_paused")
    fills = _most(there, "fangcheng_matchmaking_fill_after_seconds")
    waiting = _most(there, "fangcheng_matchmaking_waiting_tickets")
    for key, seconds in _most(there, "fangcheng_matchmaking_oldest_ticket_age_seconds").items():
        (pool,) = key
        players = waiting.get((pool, "player"), 0.0)
        if paused.get(key):
            params: dict[str, str | float] = {"pool": pool, "count": players}
            page = "docs/matchmaking.md"
            yield Finding("PoolPaused", "note", "matchmaking", params, page=page)
            continue
        fill = fills.get(key, 0.0)
        if pool != "other" and fill and seconds > fill + 30:
            params = {"pool": pool, "seconds": seconds}
            yield Finding("TicketWaitsTooLong", "page", "matchmaking", params)
        name = "fangcheng_matchmaking_matches_total"
        seated = sum(one.increase(name, 5 * _MINUTE, pool, "seated") for one in there)
        if players >= 12 and seconds > 300 and not seated:
            params = {"pool": pool, "count": players}
            yield Finding("MatchingStalled", "page", "matchmaking", params)
    repeated = "fangcheng_matchmaking_repeated_steps_total"
    rate = total(one.rate(repeated, 2 * _MINUTE) for one in there) or 0.0
    if rate > 0.1:
        yield Finding("MatchesStuck", "page", "matchmaking", {"rate": rate})


def _of_tables(scraper: Scraper) -> Iterator[Finding]:
    there = scraper.of("table")
    yield from _above(
        there, "TablesUnowned", "page", "table", "fangcheng_table_unowned", "count", 0
    )
    taken = sum(one.increase("fangcheng_table_taken_over_total", 10 * _MINUTE) for one in there)
    if taken:
        lobby = "trouble=taken_over"
        yield Finding("TablesTakenOver", "ticket", "table", {"count": taken}, lobby=lobby)
    failures = "fangcheng_table_failures_total"
    for one in there:
        rate = one.rate("fangcheng_table_journal_failures_total", _MINUTE)
        if rate:
            yield Finding("JournalFailing", "page", "table", {"rate": rate}, one.address)
        if failed := one.increase(failures, 15 * _MINUTE):
            yield Finding("TableFailed", "ticket", "table", {"count": failed}, one.address)
    again = sum(one.increase(failures, 10 * _MINUTE) for one in there)
    if again > 20:
        yield Finding("TablesKeepFailing", "page", "table", {"count": again})
    yield from _of_answers(there)


def _of_answers(there: list[Process]) -> Iterator[Finding]:
    """How evaluators answer tables."""
    failures = "fangcheng_table_evaluator_failures_total"
    lost = sum(one.increase(failures, _MINUTE) for one in there)
    waits = "fangcheng_table_evaluator_wait_seconds_bucket"
    answered = added(one.buckets(waits, _MINUTE) for one in there)
    asked = lost + max(answered.values(), default=0.0)
    if asked and lost / asked > 0.05:
        params = {"share": lost / asked}
        yield Finding("TablesWaitForEvaluators", "page", "table", params, lobby="trouble=evaluator")
    lately = added(one.buckets(waits, 5 * _MINUTE) for one in there)
    slow = quantile(0.99, lately)
    if slow is not None and slow > 1:
        yield Finding("PromptsDelayed", "page", "table", {"seconds": slow})


def _of_evaluation(scraper: Scraper) -> Iterator[Finding]:
    there = scraper.of("evaluation")
    refused = "fangcheng_evaluation_refused_calls_total"
    for lane in ("single", "bulk"):
        full = [part for one in there if (part := saturation(one, lane)) is not None]
        if full and sum(full) / len(full) > 0.5:
            params: dict[str, str | float] = {"lane": lane, "share": sum(full) / len(full)}
            yield Finding("EvaluatorsSaturated", "ticket", "evaluation", params)
        rate = total(one.rate(refused, 5 * _MINUTE, lane) for one in there) or 0.0
        if rate > 0.1:
            params = {"lane": lane, "rate": rate}
            yield Finding("EvaluatorsRefuse", "ticket", "evaluation", params)


def saturation(evaluator: Process, lane: str) -> float | None:
    """How full a lane's queue is, 0 to 1; at 1 calls are refused."""
    waiting = evaluator.value("fangcheng_evaluation_waiting_hands", lane)
    limit = evaluator.value("fangcheng_evaluation_waiting_hands_limit", lane)
    return None if waiting is None or not limit else waiting / limit


def _of_calls(there: list[Process], service: str) -> Iterator[Finding]:
    """Calls that fail; streams are left out, since all of a replica end so when it stops."""
    handled = "grpc_server_handled_total"
    calls, unavailable = Counter[str](), Counter[str]()
    inside = Counter[str]()
    for one in there:
        for (code, kind, method), count in one.increases(handled, 2 * _MINUTE).items():
            if kind == "unary":
                calls[method] += int(count)
                unavailable[method] += int(count) * (code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"))
        for (code, _, method), count in one.increases(handled, 15 * _MINUTE).items():
            inside[method] += int(count) * (code in ("INTERNAL", "UNKNOWN", "DATA_LOSS"))
    for method, count in unavailable.items():
        rate = count / (2 * _MINUTE)
        if rate > 0.05 and count / calls[method] > 0.5:
            params: dict[str, str | float] = {"method": method, "rate": rate}
            yield Finding("CallsUnavailable", "page", service, params)
    for method, count in inside.items():
        if count > 2:
            params = {"method": method, "count": count}
            yield Finding("InternalErrors", "ticket", service, params)


_OF_TABLES: tuple[tuple[str, str, Severity], ...] = (
    ("stuck", "TablesStuck", "page"),
    ("evaluator", "TablesAwaitEvaluator", "ticket"),
    ("wallet", "TablesAwaitWallet", "ticket"),
)
"""Troubles of single tables that no metric tells of so soon."""


def _of_tables_lately(troubles: Mapping[str, int]) -> Iterator[Finding]:
    for kind, name, severity in _OF_TABLES:
        if count := troubles.get(kind, 0):
            page, lobby = "docs/operations/runbooks/stuck-table.md", f"trouble={kind}"
            yield Finding(name, severity, "table", {"count": count}, page=page, lobby=lobby)


def _above(
    there: Iterable[Process],
    name: str,
    severity: Severity,
    service: str,
    metric: str,
    called: str,
    limit: float,
) -> Iterator[Finding]:
    values = [value for one in there if (value := one.value(metric)) is not None]
    if values and max(values) > limit:
        yield Finding(name, severity, service, {called: max(values)})


def _most(there: Iterable[Process], metric: str) -> dict[tuple[str, ...], float]:
    """Each series of a gauge that every replica tells: of all of theirs the one farthest from 0."""
    found: dict[tuple[str, ...], float] = {}
    for one in there:
        for key, value in one.series(metric).items():
            if abs(value) >= abs(found.get(key, 0.0)):
                found[key] = value
    return found
