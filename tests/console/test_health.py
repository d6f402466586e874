"""Health: what is wrong stands first, and who does not answer is told as away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from fangcheng.wallet.v1 import wallet_pb2
from fangcheng.wallet.v1.wallet_pb2_grpc import WalletServiceStub
from fangcheng_console import findings as rules
from fangcheng_console.backend import SERVICES
from fangcheng_console.figures import FIGURES, Figures
from fangcheng_console.findings import Finding, findings
from fangcheng_console.health import Check, Health, Ledger, Serving
from fangcheng_console.lobby import Tables
from fangcheng_console.scrape import SERIES, Process, Scraper, Snapshot, targets
from tests.console.test_lobby import summary
from tests.promql import registered
from tests.suite.whole import eventually, whole

ROOT = Path(__file__).parent.parent.parent
NOW = 1_767_225_600.0
STATIC = ROOT / "services/console/fangcheng_console/static"


class Suite:
    """A suite of which the test says what each process tells."""

    def __init__(self) -> None:
        self.scraper = Scraper([])
        self.now = NOW

    def process(self, service: str, name: str = "") -> Process:
        """A process of a service, which tells its build from the start."""
        address = name or f"{service}:1"
        return self.scraper.processes.setdefault(address, Process(address, service))

    def tells(
        self, service: str, at: float = 0.0, name: str = "", version: str = "1", **series: Any
    ) -> None:
        """A process tells series at a time: numbers, or numbers by their labels."""
        told: Snapshot = {
            "fangcheng_build_info": {(service, version): 1.0},
            "process_start_time_seconds": {(): 1.0},
        }
        for metric, value in series.items():
            told[metric] = value if isinstance(value, dict) else {(): float(value)}
        self.process(service, name).heard(self.now + at, told)

    def grows(self, service: str, metric: str, labels: tuple[str, ...], by: float) -> None:
        """A counter grows within a minute."""
        self.tells(service, 0, **{metric: {labels: 0.0}})
        self.tells(service, 60, **{metric: {labels: by}})

    def names(self, **more: Any) -> list[str]:
        """What is found, by name."""
        return [finding.name for finding in self.found(**more)]

    def found(
        self, serving: dict[str, bool] | None = None, troubles: dict[str, int] | None = None
    ) -> list[Finding]:
        found = findings(self.scraper, self.now + 60, serving or {}, troubles or {})
        for finding in found:
            assert (ROOT / str(finding.plain()["page"])).is_file(), finding.name
        return found


@pytest.fixture
def suite() -> Suite:
    """One in which all is well."""
    suite = Suite()
    for service in SERVICES:
        suite.tells(service)
    return suite


def test_nothing_is_found_where_nothing_is_wrong(suite: Suite) -> None:
    assert suite.found(dict.fromkeys(SERVICES, True)) == []


OUTBOX = "fangcheng_table_outbox_oldest_age_seconds"
WAITING = "fangcheng_matchmaking_waiting_tickets"
OLDEST = "fangcheng_matchmaking_oldest_ticket_age_seconds"
ENDS = "fangcheng_certificate_expires_timestamp_seconds"


@pytest.mark.parametrize(
    ("service", "series", "name"),
    [
        ("wallet", {"fangcheng_wallet_ledger_imbalance": {("silver",): -3}}, "LedgerImbalance"),
        ("table", {OUTBOX: {("settle",): 61}}, "SettlementOutboxStuck"),
        ("table", {"fangcheng_table_parked": {("settle",): 1}}, "SettlementParked"),
        ("table", {"fangcheng_table_parked": {("release",): 1}}, "ReleaseParked"),
        ("wallet", {"fangcheng_wallet_oldest_hold_age_seconds": 43_201}, "HoldsTooOld"),
        ("wallet", {"fangcheng_wallet_unchained_operations": 5_001}, "LedgerChainBehind"),
        (
            "matchmaking",
            {OLDEST: {("a",): 40}, "fangcheng_matchmaking_fill_after_seconds": {("a",): 5}},
            "TicketWaitsTooLong",
        ),
        (
            "matchmaking",
            {OLDEST: {("a",): 301}, WAITING: {("a", "player"): 12}},
            "MatchingStalled",
        ),
        (
            "matchmaking",
            {OLDEST: {("a",): 301}, "fangcheng_matchmaking_paused": {("a",): 1}},
            "PoolPaused",
        ),
        ("table", {"fangcheng_table_unowned": 1}, "TablesUnowned"),
        ("table", {"fangcheng_certificate_files_bad": 1}, "IdentitiesNotRead"),
        ("wallet", {ENDS: {("own",): NOW + 6.9 * 86_400}}, "CertificateEndsSoon"),
        ("wallet", {ENDS: {("own",): NOW - 1}}, "CertificateEndsSoon"),
        (
            "evaluation",
            {
                "fangcheng_evaluation_waiting_hands": {("bulk",): 51},
                "fangcheng_evaluation_waiting_hands_limit": {("bulk",): 100},
            },
            "EvaluatorsSaturated",
        ),
    ],
)
def test_a_gauge_is_found(suite: Suite, service: str, series: dict[str, Any], name: str) -> None:
    suite.tells(service, **series)
    assert suite.names() == [name]


@pytest.mark.parametrize(
    ("service", "metric", "labels", "by", "name"),
    [
        ("matchmaking", "fangcheng_matchmaking_repeated_steps_total", (), 7, "MatchesStuck"),
        ("table", "fangcheng_table_taken_over_total", (), 1, "TablesTakenOver"),
        ("table", "fangcheng_key_set_failures_total", (), 1, "IdentitiesNotRead"),
        ("table", "fangcheng_table_journal_failures_total", (), 1, "JournalFailing"),
        ("table", "fangcheng_table_failures_total", (), 1, "TableFailed"),
        (
            "table",
            "fangcheng_table_evaluator_failures_total",
            (),
            1,
            "TablesWaitForEvaluators",
        ),
        (
            "table",
            "fangcheng_table_evaluator_wait_seconds_bucket",
            ("+Inf",),
            5,
            "",
        ),
        (
            "evaluation",
            "fangcheng_evaluation_refused_calls_total",
            ("single",),
            7,
            "EvaluatorsRefuse",
        ),
        (
            "wallet",
            "grpc_server_handled_total",
            ("UNAVAILABLE", "unary", "Settle"),
            9,
            "CallsUnavailable",
        ),
        ("wallet", "grpc_server_handled_total", ("UNAVAILABLE", "server_stream", "X"), 9, ""),
        ("wallet", "grpc_server_handled_total", ("NOT_FOUND", "unary", "GetWallet"), 9, ""),
        (
            "wallet",
            "grpc_server_handled_total",
            ("INTERNAL", "unary", "Settle"),
            3,
            "InternalErrors",
        ),
    ],
)
def test_a_counter_that_grows_is_found(
    suite: Suite, service: str, metric: str, labels: tuple[str, ...], by: float, name: str
) -> None:
    suite.grows(service, metric, labels, by)
    assert suite.names() == ([name] if name else [])


def test_slow_answers_and_late_loops_are_found(suite: Suite) -> None:
    waits = "fangcheng_table_evaluator_wait_seconds_bucket"
    lag = "fangcheng_event_loop_lag_seconds_bucket"
    for at, count in ((0, 0.0), (60, 100.0)):
        suite.tells(
            "table",
            at,
            **{
                waits: {("0.1",): 0.0, ("2.5",): count, ("+Inf",): count},
                lag: {("0.1",): 0.0, ("0.25",): count, ("+Inf",): count},
            },
        )
    assert suite.names() == ["PromptsDelayed", "EventLoopLag"]


def test_a_certificate_with_more_than_a_week_left_is_in_order(suite: Suite) -> None:
    suite.tells("wallet", fangcheng_certificate_files_bad=0, **{ENDS: {("own",): NOW + 8 * 86_400}})
    assert suite.found() == []


def test_tables_that_fail_again_and_again_are_worse_than_one_that_fails(suite: Suite) -> None:
    suite.grows("table", "fangcheng_table_failures_total", (), 21)
    assert suite.names() == ["TablesKeepFailing", "TableFailed"]


def test_replicas_that_tell_the_same_are_not_added_up(suite: Suite) -> None:
    for name in ("m:1", "m:2"):
        suite.tells(
            "matchmaking", name=name, **{OLDEST: {("a",): 301}, WAITING: {("a", "player"): 7}}
        )
    assert suite.names() == []


def test_a_process_that_is_away_is_a_smaller_matter_while_another_is_there(suite: Suite) -> None:
    suite.process("table").lost(NOW, "refused")
    assert suite.names(serving={"table": False}) == ["ServiceDown"]
    assert suite.names(serving={"table": True}) == ["MetricsAway"]
    suite.tells("table", name="table:2")
    (finding,) = suite.found()
    assert (finding.name, finding.process, finding.params["seconds"]) == (
        "ProcessDown",
        "table:1",
        60.0,
    )


def test_processes_that_disagree_about_their_version_are_noted(suite: Suite) -> None:
    suite.tells("wallet", name="wallet:2", version="2")
    (finding,) = suite.found()
    assert (finding.name, finding.params["versions"]) == ("VersionsDiffer", "1, 2")


def test_a_service_that_does_not_serve_is_found_though_its_process_runs(suite: Suite) -> None:
    assert suite.names(serving={"wallet": False}) == ["NotServing"]


def test_restarts_are_counted(suite: Suite) -> None:
    for start in (NOW - 500, NOW - 300, NOW - 100):
        suite.process("table").starts.append(start)
    assert suite.names() == ["ProcessRestartsOften"]


def test_tables_in_trouble_lead_to_the_lobby_and_the_worst_comes_first(suite: Suite) -> None:
    suite.tells("wallet", fangcheng_wallet_unchained_operations=5_001)
    found = suite.found(troubles={"wallet": 2, "stuck": 1, "taken_over": 3})
    assert [(one.name, one.lobby) for one in found] == [
        ("TablesStuck", "trouble=stuck"),
        ("TablesAwaitWallet", "trouble=wallet"),
        ("LedgerChainBehind", ""),
    ]


def named() -> set[str]:
    """The findings that there are."""
    source = Path(rules.__file__).read_text("utf-8")
    return set(re.findall(r'"([A-Z]\w+)",\s+"(?:page|ticket|note)"', source)) | set(
        re.findall(r'finding\("(\w+)"', source)
    )


def test_every_alert_is_a_finding_too_and_has_its_page() -> None:
    alerts = {path.stem for path in (ROOT / "docs/operations/alerts").glob("*.md")} - {"README"}
    # What looks back for days is Prometheus' to tell.
    assert alerts - named() == {"SeatingBudgetBurn", "ActBudgetBurn"}
    pages = re.findall(r'"(docs/[\w/.-]+\.md)"', Path(rules.__file__).read_text("utf-8"))
    assert pages
    assert [page for page in pages if not (ROOT / page).exists()] == []


def test_every_finding_and_figure_has_its_words() -> None:
    words = (STATIC / "pages/health.i18n.js").read_text("utf-8")
    for name in named():
        assert words.count(f'"health.finding.{name}"') == 2, name
        assert words.count(f'"health.todo.{name}"') == 2, name
    lines = re.findall(r"^  (\w+): \{ show", (STATIC / "pages/health.js").read_text("utf-8"), re.M)
    for line in lines:
        assert words.count(f'"health.line.{line}"') == 2, line


def test_what_is_kept_is_what_processes_tell() -> None:
    known = registered()
    for name in SERIES:
        metric = known.get(name) or known.get(re.sub("_(bucket|sum)$", "", name))
        assert metric is not None, name


def test_a_point_has_nothing_where_nobody_tells() -> None:
    figures = Figures(Scraper([]), lambda: None)
    figures.note()
    (point,) = figures.points
    assert len(point) == 1 + len(FIGURES)
    assert set(point[1:]) == {None}


def test_a_point_adds_up_what_processes_tell(suite: Suite) -> None:
    waits = "fangcheng_matchmaking_wait_seconds_bucket"
    for name in ("table:2", "table:3"):
        for at, hands in ((0, 100.0), (60, 130.0)):
            suite.tells("table", at, name, fangcheng_table_hands_total=hands)
    for at, count in ((0, 0.0), (60, 20.0)):
        suite.tells("matchmaking", at, **{waits: {("1.0",): count, ("+Inf",): count}})
        suite.tells(
            "evaluation",
            at,
            fangcheng_evaluation_threads=2,
            fangcheng_evaluation_work_seconds_sum=count,
        )
        suite.tells("wallet", at, fangcheng_wallet_ledger_imbalance={("silver",): 0.0})
    figures = Figures(suite.scraper, lambda: 12)
    figures.note()
    values = dict(zip(FIGURES, figures.points[-1][1:], strict=True))
    assert values == {
        "tables": 12,
        "hands_per_minute": 60,
        "wait_p50_seconds": 0.5,
        "wait_p95_seconds": 0.95,
        "evaluator_load": pytest.approx(20 / 60 / 2, rel=1e-3),
        "imbalance": 0,
    }
    assert figures.missing() == {}
    suite.process("wallet").lost(NOW, "refused")
    assert figures.missing() == {"wallet": {"since": int(NOW * 1_000)}}


async def test_the_processes_of_a_suite_are_shown_as_they_are(tmp_path: Path) -> None:
    async with whole(tmp_path) as suite:
        spec = ",".join(
            f"{name}={running.metrics_address}" for name, running in suite.running.items()
        )
        scraper = Scraper(targets(spec))
        channels = {name: suite.channel(name, "service:console") for name in suite.running}
        operator = suite.channel("wallet", "operator:mei")
        ledger = Ledger(WalletServiceStub(operator))
        serving = Serving(channels)
        tables = Tables(channels["table"])
        tables.hear(summary("t1"))
        health = Health(scraper, tables, serving, ledger, "https://grafana.example")
        await scraper.scrape()
        await serving.ask()
        picture = health.picture()
        assert picture["findings"] == []
        assert [one["service"] for one in picture["processes"]] == list(SERVICES)
        for one in picture["processes"]:
            assert one["away"] is None
            assert one["version"]
            assert one["started"] < picture["now"]
            assert one["memory"] > 0
        assert all(told["serving"] for told in picture["services"].values())

        changes: list[int] = []
        ledger.on_change = lambda: changes.append(1)
        checks: tuple[Check, ...] = ("audit", "verify")
        for check in checks:
            ledger.start(check, "operator:mei", ())
            assert ledger.busy
            await eventually(lambda: not ledger.busy, "the check is done")
            assert ledger.checks[check]["done"]["good"] is True
            assert ledger.checks[check]["done"]["by"] == "operator:mei"
            assert "running" not in ledger.checks[check]
        assert len(changes) == 4
        assert len(ledger.checks["verify"]["done"]["head"]) == 64

        for channel in (*channels.values(), operator):
            await channel.close()


async def test_a_check_that_fails_says_why() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        ledger = Ledger(WalletServiceStub(channel))
        async with ledger.running():
            ledger.start("audit", "operator:mei", ())
            await eventually(lambda: not ledger.busy, "the check has failed")
        assert "UNAVAILABLE" in ledger.checks["audit"]["done"]["error"]


async def test_the_head_that_was_noted_outlasts_checks_that_fail() -> None:
    answers: list[wallet_pb2.VerifyLedgerResponse | None] = [
        wallet_pb2.VerifyLedgerResponse(intact=True, operations=7, head="a7"),
        None,
        wallet_pb2.VerifyLedgerResponse(intact=False, operations=5, head="b5", finding="cut off"),
        wallet_pb2.VerifyLedgerResponse(intact=True, operations=9, head="a9"),
    ]
    asked: list[tuple[int, str]] = []

    class Wallet:
        async def VerifyLedger(
            self, request: wallet_pb2.VerifyLedgerRequest, **more: Any
        ) -> wallet_pb2.VerifyLedgerResponse:
            asked.append((request.operations, request.head))
            answer = answers[len(asked) - 1]
            if answer is None:
                raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, (), ())
            return answer

    ledger = Ledger(Wallet())
    async with ledger.running():
        for answer in answers:
            ledger.start("verify", "operator:mei", ())
            await eventually(lambda: not ledger.busy, "the check is done")
            done = ledger.checks["verify"]["done"]
            assert done.get("good") == (answer and answer.intact)
    assert asked == [(0, ""), (7, "a7"), (7, "a7"), (7, "a7")]
