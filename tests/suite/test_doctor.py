"""`fangcheng doctor`: what it says of services that are well, and of those that are not."""

from __future__ import annotations

import ast
import asyncio
import email.utils
import re
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from fangcheng.matchmaking.v1.matchmaking_pb2 import Pool
from fangcheng.rules.v1.rules_pb2 import RuleSetChoice
from fangcheng.table.v1 import table_pb2
from fangcheng.table.v1.state_pb2 import Table
from fangcheng_kit import sqlite
from fangcheng_kit.tokens import mint_token
from fangcheng_suite import doctor
from fangcheng_suite.certificates import Authority
from fangcheng_suite.doctor import agreeing, keeping, measures, reaching, settings
from fangcheng_suite.doctor.deployment import Deployment, elsewhere
from fangcheng_suite.doctor.examining import examine
from fangcheng_suite.doctor.findings import Finding, is_healthy
from fangcheng_suite.doctor.measures import Measured
from fangcheng_suite.doctor.showing import shown, summary
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.migrating import TABLES
from tests.suite.whole import KEY, Suite

SOURCES = sorted(Path(doctor.__file__).parent.glob("*.py"))
PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations" / "doctor.md"
RULES = {"baishan_kele": {1, 2}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def suite(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Suite]:
    """Services that serve; the tests look at them only."""
    suite = Suite(tmp_path_factory.mktemp("suite"), {})
    await suite.start()
    yield suite
    await suite.stop()


def deployment_of(suite: Suite, subject: str = "operator", **others: str) -> Deployment:
    """The services as somebody sees them who has a token of this subject."""
    targets: dict[str, str | None] = {name: one.address for name, one in suite.running.items()}
    return elsewhere({**targets, **others}, mint_token(KEY, subject), None, None)


async def all_of(findings: AsyncIterator[Finding]) -> list[Finding]:
    return [one async for one in findings]


def found(findings: list[Finding], check: str, level: str) -> Finding:
    """The one finding of a check that is at this level."""
    (one,) = [one for one in findings if (one.check, one.level) == (check, level)]
    return one


@pytest.mark.asyncio(loop_scope="module")
async def test_services_that_are_well_have_nothing_that_fails(suite: Suite) -> None:
    findings = await all_of(examine(deployment_of(suite)))
    assert is_healthy(findings), [one for one in findings if one.level == "fail"]
    well = {(one.check, one.subject.split()[0]) for one in findings if one.level == "ok"}
    for service in ("matchmaking", "table", "wallet", "evaluation"):
        assert {("health", service), ("caller", service)} <= well
    told = {one.check: one.told for one in findings if one.level == "ok"}
    assert told["pools"] == "1 pools; their rule sets are played"
    assert told["ledger"].startswith("the ledger is balanced")
    # What nobody has named is told of as not looked at.
    assert {one.check for one in findings if one.level == "skip"} == {"metrics", "database"}


@pytest.mark.asyncio(loop_scope="module")
async def test_the_ledger_is_left_alone_where_it_should_be_quick(suite: Suite) -> None:
    findings = await all_of(examine(deployment_of(suite), is_quick=True))
    assert found(findings, "ledger", "skip").cure == "Leave --quick out."


@pytest.mark.asyncio(loop_scope="module")
async def test_another_service_at_the_address_is_found_out(suite: Suite) -> None:
    table = suite.running["table"].address
    findings = await all_of(examine(deployment_of(suite, wallet=table)))
    wrong = found(findings, "caller", "fail")
    assert wrong.subject == f"wallet {table}"
    # What gRPC answers for a call of another service: it tells of the wrong address, of no gap.
    assert "UNIMPLEMENTED" in wrong.told
    assert "Check which address belongs to which service" in wrong.cure


@pytest.mark.asyncio(loop_scope="module")
async def test_a_token_that_is_not_good_is_told_with_its_cure(suite: Suite) -> None:
    targets: dict[str, str | None] = {"table": suite.running["table"].address}
    token = mint_token("another key than that of the services", "operator")
    findings = await all_of(examine(elsewhere(targets, token, None, None)))
    wrong = found(findings, "caller", "fail")
    assert "[TOKEN_INVALID]" in wrong.told
    assert "FANGCHENG_JWKS" in wrong.cure
    assert not is_healthy(findings)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_port_at_which_nobody_listens_is_told(suite: Suite) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        findings = await all_of(examine(deployment_of(suite, matchmaking=address)))
    lost = found(findings, "port", "fail")
    assert lost.subject == f"matchmaking {address}"
    assert "FANGCHENG_LISTEN" in lost.cure
    assert not [one for one in findings if one.check == "pools"]


@pytest.mark.asyncio(loop_scope="module")
async def test_every_process_behind_a_name_is_asked_for_its_rules(suite: Suite) -> None:
    address = suite.running["evaluation"].address.replace("127.0.0.1", "localhost")
    way = deployment_of(suite, evaluation=address).ways["evaluation"]
    known = await agreeing.known_rules(way, way.addresses)
    assert list(known) == [suite.running["evaluation"].address]
    assert "baishan_kele" in known[suite.running["evaluation"].address]


async def test_a_name_that_nobody_knows_is_told() -> None:
    targets: dict[str, str | None] = {"table": "table.invalid:7101"}
    findings = await all_of(examine(elsewhere(targets, None, None, None)))
    assert "table.invalid" in found(findings, "name", "fail").told


@pytest.mark.parametrize(
    ("code", "is_tls", "is_named", "means", "cure"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, False, False, "paused", "killed"),
        (grpc.StatusCode.UNAVAILABLE, False, False, "plain text", "--ca"),
        (grpc.StatusCode.UNAVAILABLE, True, False, "asks for a certificate", "--certificate"),
        (grpc.StatusCode.UNAVAILABLE, True, True, "does not trust", "issued by"),
        # Whatever answers there is not one of ours: gRPC's word for a call that it has not.
        (grpc.StatusCode.UNIMPLEMENTED, False, False, "no service", "proxy"),
    ],
)
def test_why_a_process_does_not_tell_its_health_is_guessed_by_the_status(
    code: grpc.StatusCode, is_tls: bool, is_named: bool, means: str, cure: str
) -> None:
    told = reaching.unasked(code, is_tls=is_tls, is_named=is_named)
    assert means in told[0]
    assert cure in told[1]


# ---- TLS ----


@asynccontextmanager
async def speaking_tls(folder: Path, hosts: list[str], days: float) -> AsyncIterator[Deployment]:
    """A server that shows a certificate for these hosts, and what is looked at."""
    authority = Authority.new()
    issued = authority.issue("service/table", hosts, days=days)
    files = {"ca.crt": authority.certificate, "own.crt": issued.certificate, "own.key": issued.key}
    for name, pem in files.items():
        (folder / name).write_bytes(pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "own.crt", folder / "own.key")

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(met, "127.0.0.1", 0, ssl=context)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        targets: dict[str, str | None] = {"table": address}
        yield elsewhere(targets, "token", folder / "ca.crt", None)


async def certificate_of(deployment: Deployment) -> Finding:
    """What is said of the certificate; no more is asked of a server that says nothing."""
    (address,) = deployment.ways["table"].addresses
    return await reaching.certificate("table", address, deployment)


async def test_a_certificate_that_is_good_for_long_is_in_order(tmp_path: Path) -> None:
    async with speaking_tls(tmp_path, ["127.0.0.1"], 90) as deployment:
        assert (await certificate_of(deployment)).level == "ok"


async def test_a_certificate_that_ends_soon_is_to_be_renewed(tmp_path: Path) -> None:
    async with speaking_tls(tmp_path, ["127.0.0.1"], 3) as deployment:
        told = await certificate_of(deployment)
    assert told.level == "warn"
    assert "Renew it now" in told.cure


@pytest.mark.parametrize(
    ("hosts", "days", "cure"),
    [
        (["127.0.0.1"], -1, "It has expired"),
        (["10.1.2.3"], 90, "It is for another address"),
    ],
)
async def test_a_certificate_that_no_client_takes_is_told_with_what_helps(
    tmp_path: Path, hosts: list[str], days: float, cure: str
) -> None:
    async with speaking_tls(tmp_path, hosts, days) as deployment:
        told = await certificate_of(deployment)
    assert told.level == "fail"
    assert told.cure.startswith(cure)


async def test_a_certificate_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    async with speaking_tls(tmp_path, ["127.0.0.1"], 90) as deployment:
        (tmp_path / "ca.crt").write_bytes(Authority.new().certificate)
        told = await certificate_of(deployment)
    assert "--ca" in told.cure


@pytest.mark.asyncio(loop_scope="module")
async def test_a_service_without_tls_is_told_from_one_with(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(Authority.new().certificate)
    targets: dict[str, str | None] = {"table": suite.running["table"].address}
    told = await certificate_of(elsewhere(targets, "token", tmp_path / "ca.crt", None))
    assert told.told == "no TLS: WRONG_VERSION_NUMBER"
    assert "Leave --ca out" in told.cure


# ---- What processes measure ----


def process(service: str, skew_seconds: float | None = 0.0, **values: float) -> Measured:
    """A process that tells these, by name; a label stands behind two underscores."""
    told: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for name, value in values.items():
        metric, _, label = name.partition("__")
        key, _, text = label.partition("_")
        told.setdefault(metric, []).append(({key: text} if key else {}, value))
    return Measured(service, "h:1", told, skew_seconds)


@pytest.mark.parametrize(
    ("one", "check", "level"),
    [
        (process("table", 1.0), "clock", "ok"),
        (process("table", -4.0), "clock", "warn"),
        (process("table", 60.0), "clock", "fail"),
        (process("table", process_max_fds=65_536, process_open_fds=90), "files", "ok"),
        (process("table", process_max_fds=1_024, process_open_fds=90), "files", "warn"),
        (process("table", process_max_fds=65_536, process_open_fds=65_000), "files", "fail"),
        (process("wallet", fangcheng_certificate_files_bad=1), "certificate-files", "fail"),
        (
            process(
                "wallet",
                fangcheng_certificate_expires_timestamp_seconds__certificate_own=1e9 + 86_400,
            ),
            "certificate-ends",
            "warn",
        ),
        (process("table", fangcheng_table_unowned=0), "unowned", "ok"),
        (process("table", fangcheng_table_unowned=2), "unowned", "fail"),
        (process("table", fangcheng_table_parked__kind_settle=1), "parked", "fail"),
        (
            process("table", fangcheng_table_outbox_oldest_age_seconds__kind_settle=61),
            "outbox",
            "fail",
        ),
        (process("table", fangcheng_table_journal_failures_total=1), "journal", "warn"),
        (process("wallet", fangcheng_wallet_ledger_imbalance__currency_a=-5), "imbalance", "fail"),
        (process("wallet", fangcheng_wallet_unchained_operations=6_000), "chain", "warn"),
        (process("wallet", fangcheng_wallet_oldest_hold_age_seconds=50_000), "holds", "warn"),
        (
            process("matchmaking", fangcheng_matchmaking_pool_reloads_total__outcome_refused=1),
            "pools-file",
            "warn",
        ),
    ],
)  # fmt: skip
def test_what_a_process_measures_is_judged(one: Measured, check: str, level: str) -> None:
    findings = list(measures.looked_at(one, 1e9, is_here=False))
    assert found(findings, check, level)
    assert [told.check for told in findings].count(check) == 1


def test_a_process_that_is_well_has_nothing_to_mend() -> None:
    for service in ("table", "wallet", "matchmaking", "evaluation", "console"):
        findings = measures.looked_at(process(service), 1e9, is_here=False)
        assert {one.level for one in findings} == {"ok"}, service


def test_few_files_are_enough_for_a_suite_on_this_host() -> None:
    one = process("table", process_max_fds=1_024, process_open_fds=90)
    findings = list(measures.looked_at(one, 1e9, is_here=True))
    assert found(findings, "files", "ok")


def build(service: str, version: str) -> Measured:
    labels = {"service": service, "version": version}
    return Measured(service, "h:1", {"fangcheng_build_info": [(labels, 1.0)]}, None)


def test_versions_that_differ_are_told_of() -> None:
    both = [build("table", "1.0"), build("wallet", "1.1")]
    (told,) = measures.compared(both, "1.1")
    assert (told.level, told.told) == ("warn", "1.0: table; 1.1: wallet")
    assert "left behind" in told.means
    (old,) = measures.compared(both[:1], "1.1")
    assert "This command is of version 1.1" in old.means
    (same,) = measures.compared(both[1:], "1.1")
    assert same.level == "ok"
    assert not list(measures.compared([], "1.1"))


class _Told(BaseHTTPRequestHandler):
    """Metrics of a host whose clock is a minute ahead."""

    def do_GET(self) -> None:
        self.send_response_only(200)
        self.send_header("date", email.utils.formatdate(time.time() + 60, usegmt=True))
        self.end_headers()
        self.wfile.write(b'fangcheng_build_info{service="table",version="9"} 1\n')

    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody reads it."""


@contextmanager
def telling() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Told) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_the_clock_of_a_host_is_read_off_its_metrics() -> None:
    with telling() as address:
        one = await measures.measured("table", address)
    assert isinstance(one, Measured)
    assert one.version == "9"
    assert found(list(measures.looked_at(one, time.time(), is_here=True)), "clock", "fail")


async def test_metrics_that_nobody_tells_are_told_of() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        told = await measures.measured("table", f"127.0.0.1:{taken.getsockname()[1]}")
    assert isinstance(told, Finding)
    assert "FANGCHENG_METRICS_LISTEN" in told.cure


# ---- Whether they fit together ----


def test_evaluators_that_do_not_know_the_same_are_told_of() -> None:
    (well,) = agreeing.evaluators({"a:1": RULES, "b:1": RULES})
    assert well.level == "ok"
    (told,) = agreeing.evaluators({"a:1": RULES, "b:1": {"baishan_kele": {2}}})
    assert (told.level, told.subject) == ("fail", "evaluation b:1")
    assert "baishan_kele revision 1" in told.told
    assert not list(agreeing.evaluators({}))


def pool(rule_set: str, revision: int = 0, **more: bool) -> Pool:
    return Pool(pool_id="p", rules=RuleSetChoice(id=rule_set, revision=revision), **more)


@pytest.mark.parametrize(
    ("pools", "level"),
    [
        ([pool("baishan_kele")], "ok"),
        ([pool("baishan_kele", 1)], "ok"),
        ([pool("baishan_kele", 3)], "fail"),
        ([pool("jintan")], "fail"),
        ([], "warn"),
    ],
)
def test_pools_whose_rules_nobody_plays_are_told_of(pools: list[Pool], level: str) -> None:
    (told,) = agreeing.of_pools(pools, {"a:1": RULES})
    assert told.level == level


def test_pools_that_an_operator_has_stopped_are_told_of() -> None:
    told = list(agreeing.of_pools([pool("baishan_kele", closed=True)], {"a:1": RULES}))
    assert [(one.level, one.subject) for one in told] == [("warn", "pool p"), ("ok", "matchmaking")]


def test_tables_whose_revision_an_evaluator_lacks_are_told_of() -> None:
    live = [Table(rules=RuleSetChoice(id="baishan_kele", revision=1))]
    (well,) = agreeing.of_tables(live, {}, {"a:1": RULES})
    assert well.level == "ok"
    told = list(agreeing.of_tables(live, {}, {"a:1": RULES, "b:1": {"baishan_kele": {2}}}))
    assert found(told, "revisions", "fail")


@pytest.mark.parametrize("kind", [*table_pb2.TableTroubleKind.values(), 1_000])
def test_every_trouble_of_a_table_has_words_one_of_a_later_release_too(kind: int) -> None:
    (told,) = agreeing.of_tables([], {kind: 3}, {})
    assert told.told.startswith("3 tables ")
    assert told.means
    assert told.cure


# ---- What is kept, and how it is set ----


async def kept(**databases: str) -> Finding:
    findings = await all_of(keeping.kept(Deployment({}, databases=databases)))
    (one,) = [one for one in findings if one.check == "database"]
    return one


async def test_a_database_is_told_by_its_state(tmp_path: Path) -> None:
    path = tmp_path / "wallet.db"
    missing = await kept(wallet=str(path))
    assert (missing.level, "no such file" in missing.told) == ("fail", True)

    sqlite.open_file(path, TABLES["wallet"]).close()
    assert (await kept(wallet=str(path))).level == "ok"

    alien = await kept(table=str(path))
    assert alien.level == "fail"
    with sqlite3.connect(path) as db:
        db.execute("UPDATE alembic_version SET version_num = '0001'")
    db.close()
    due = await kept(wallet=str(path))
    assert "fangcheng migrate --wallet" in due.cure

    (tmp_path / "notes.db").write_text("no database", "utf-8")
    assert (await kept(wallet=str(tmp_path / "notes.db"))).level == "fail"


@pytest.mark.parametrize("host", ["127.0.0.1:1", "[::1"])
async def test_a_server_that_is_not_there_is_told_without_its_password(host: str) -> None:
    told = await kept(wallet=f"postgresql://me:secret@{host}/wallet")
    assert told.level == "fail"
    assert "secret" not in str(told)


@pytest.mark.parametrize(("free_gib", "level"), [(50, "ok"), (3, "warn"), (0.1, "fail")])
def test_a_disk_is_told_by_the_room_on_it(free_gib: float, level: str) -> None:
    told = keeping.room(Path("/data"), int(free_gib * keeping.GIB), 200 * keeping.GIB)
    assert told.level == level


def test_every_dangerous_setting_of_a_service_is_told_of() -> None:
    page = (PAGE.parents[1] / "settings.md").read_text("utf-8")
    names = set(re.findall(r"`(FANGCHENG_\w*DANGEROUSLY\w+)`", page))
    assert len(names) >= 3
    for name in names:
        (told,) = settings.dangers([("this command", {name: "1"})])
        assert name in told.told
        assert told.means
        assert told.cure
        assert not list(settings.dangers([("this command", {name: "false"})]))


def test_calls_beyond_this_host_without_tls_are_told_of() -> None:
    targets: dict[str, str | None] = {"table": "table.example:7101"}
    findings = list(settings.settings(elsewhere(targets, None, None, None, plaintext=True)))
    assert "table.example:7101" in found(findings, "plaintext", "warn").told


# ---- How it is told ----


def test_a_finding_says_what_it_means_and_what_to_do() -> None:
    told = "\n".join(shown(Finding("clock", "table h:1", "fail", "[late]", "Bad.", "Mend it.")))
    assert "fail" in told
    assert "\\[late]" in told
    assert "Bad." in told
    assert "To do:[/bold] Mend it." in told


def test_the_summary_counts_what_was_found() -> None:
    some = [
        Finding("a", "b", "ok", "c"),
        Finding("a", "b", "warn", "c"),
        Finding("a", "b", "skip", "c"),
    ]
    assert "1 ok, 1 to mend, 0 failed, 1 not looked at." in summary(some)


@pytest.mark.parametrize(
    ("targets", "measured", "databases"),
    [
        ({"table": "nowhere"}, [], []),
        ({"table": "h:99999"}, [], []),
        ({"table": None}, [], []),
        ({"table": "h:1"}, ["10.0.0.7:7201"], []),
        ({"table": "h:1"}, ["table=h"], []),
        ({"table": "h:1"}, [], ["books=wallet.db"]),
    ],
)
def test_what_cannot_be_looked_at_is_refused(
    targets: dict[str, str | None], measured: list[str], databases: list[str]
) -> None:
    with pytest.raises(SuiteError) as refused:
        elsewhere(targets, None, None, None, measures=measured, databases=databases)
    assert refused.value.hint


def checks() -> dict[str, set[str]]:
    """Every check that a finding of the code names, and at which levels it may be."""
    named: dict[str, set[str]] = {}
    for source in SOURCES:
        for call in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
                made = ast.unparse(call.func)
                if re.search(r"\b(fine|warns|fails|skipped)\b", made):
                    named.setdefault(str(call.args[0].value), set()).add(made)
    return named


def test_the_page_lists_every_check() -> None:
    listed = re.findall(r"^\| `([a-z-]+)`", PAGE.read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(checks())


def test_findings_name_only_settings_and_pages_that_there_are() -> None:
    text = "\n".join(source.read_text("utf-8") for source in SOURCES)
    known = (PAGE.parents[1] / "settings.md").read_text("utf-8")
    for name in re.findall(r"FANGCHENG_[A-Z_]+[A-Z]\b", text):
        assert name in known, name
    for page in re.findall(r"docs/[\w./-]+\.md", text):
        assert (PAGE.parents[2] / page).exists(), page
    for service in ("wallet", "table", "matchmaking", "console"):
        assert f"FANGCHENG_{service.upper()}_DATABASE" in known
