"""`fangcheng up`: everything serves, survives what kills it, and leaves nothing behind."""

from __future__ import annotations

import getpass
import re
import signal
import urllib.request
from pathlib import Path

import grpc
import httpx
import pytest

from fangcheng.table.v1 import state_pb2, table_pb2, table_pb2_grpc
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import connect, explain, watch
from fangcheng_client.view import TableView

from .running import PORTS_OF_A_SUITE, Running, fangcheng, free_port, lives, running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


async def watched(suite: Running, table_id: str, enough: str) -> TableView:
    """What a spectator knows of a table once an event of a kind has come."""
    view = TableView()
    async with suite.access.channel("table") as channel:
        async for event in watch(channel, table_id):
            view.apply(event)
            if event.WhichOneof("kind") == enough:
                return view
    raise AssertionError(f"the table closed without {enough}")


async def live_table(suite: Running) -> state_pb2.Table:
    """A table in the middle of a hand."""
    async with suite.access.channel("table") as channel:
        stub = table_pb2_grpc.TableServiceStub(channel)
        while True:
            answer = await stub.ListTables(table_pb2.ListTablesRequest())
            for table in answer.tables:
                if table.phase == state_pb2.TABLE_PHASE_PLAYING:
                    return table


def metrics(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        return str(answer.read(), "utf-8")


def signed_in(suite: Running) -> object:
    """Whom the console lets in who follows the link that `up` has printed."""
    page, token = re.findall(r"^(http://\S+)/sign-in#(\S+)$", suite.said(), re.MULTILINE)[0]
    assert page == suite.suite.page
    answer = httpx.post(
        f"{page}/api/session",
        json={"token": token},
        headers={"origin": page, "x-fangcheng-console": "1"},
    )
    return answer.json()["person"]


async def test_everything_serves_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with running(tmp_path, "--tables", "1", "--think", "0", "--evaluators", "2") as suite:
        for addresses in suite.suite.services.values():
            for address in addresses:
                assert address.grpc in suite.said()
                assert f"http://{address.metrics}/metrics" in suite.said()
                assert "# HELP" in metrics(address.metrics)
        pids = suite.pids()
        assert len(set(pids)) == 6
        assert signed_in(suite) == {"name": getpass.getuser(), "role": "operator"}

        table = await live_table(suite)
        listed = suite.fangcheng("tables")
        assert table.table_id in listed.stdout, listed.stderr
        drawn = suite.fangcheng("watch", table.table_id[:20], "--once")
        assert table.table_id in drawn.stdout, drawn.stderr
        assert {"Mei", "Lan", "Zhu", "Ju"} <= set(re.findall(r"\w+", drawn.stdout))

        story = suite.fangcheng("logs", "--table", table.table_id)
        told = " ".join(story.stdout.split())
        for event in ("ticket queued", "match formed", "seated"):
            assert f" matchmaking info {event} " in told, story.stdout + story.stderr
        for event in ("table created", "hand started"):
            assert f" table info {event} " in told, story.stdout

        audited = suite.fangcheng("ledger", "audit")
        assert audited.returncode == 0, audited.stderr
        assert "The ledger is balanced." in audited.stdout

        assert suite.stop(signal.SIGINT) == 0
        assert "stopping the services" in suite.said()
        assert suite.said().endswith("Stopped.\n")
        assert "Traceback" not in suite.said()
        assert not [pid for pid in pids if lives(pid)]
        assert not (suite.state / "suite.json").exists()
    told = fangcheng("tables", "--state", str(tmp_path / "state"))
    assert told.returncode == 1
    assert "fangcheng up" in told.stderr


async def test_a_hand_goes_on_in_the_next_suite(tmp_path: Path) -> None:
    with running(tmp_path, "--tables", "1", "--think", "0.05") as suite:
        table = await live_table(suite)
        before = await watched(suite, table.table_id, "discarded")
        assert suite.stop(signal.SIGTERM) == 0
    with running(tmp_path, "--tables", "1", "--think", "0") as suite:
        after = await watched(suite, table.table_id, "hand_settled")
        # A quick hand may have ended before it is looked at again.
        assert after.hand_number >= before.hand_number
        verified = suite.fangcheng("verify", table.table_id, str(before.hand_number))
        assert "The hand checks out." in verified.stdout, verified.stderr


@pytest.mark.parametrize(
    ("evaluators", "labels"),
    [
        ("1", ["table"]),
        ("1", ["evaluation", "wallet", "matchmaking", "console"]),
        ("2", ["evaluation-1", "evaluation-2"]),
    ],
)
async def test_a_hand_goes_on_when_services_were_killed(
    tmp_path: Path, evaluators: str, labels: list[str]
) -> None:
    with running(tmp_path, "--tables", "1", "--think", "0.1", "--evaluators", evaluators) as suite:
        table = await live_table(suite)
        before = await watched(suite, table.table_id, "discarded")
        for label in labels:
            suite.killed(label)
        after = await watched(suite, table.table_id, "hand_settled")
        # A quick hand may have ended before it is looked at again.
        assert after.hand_number >= before.hand_number
        assert [seat.player_id for seat in after.seats] == [s.player_id for s in before.seats]
        for label in labels:
            assert f"{label} ended (by SIGKILL); starting it again" in suite.said()
        audited = suite.fangcheng("ledger", "audit")
        assert audited.returncode == 0, audited.stderr
        verified = suite.fangcheng("verify", table.table_id, str(before.hand_number))
        assert verified.returncode == 0, verified.stderr


def test_nothing_is_left_when_the_launcher_itself_is_killed(tmp_path: Path) -> None:
    with running(tmp_path, "--tables", "0") as suite:
        pids = suite.pids()
        suite.process.kill()
        suite.process.wait()
        until(lambda: not [pid for pid in pids if lives(pid)], "the services have ended")


def test_a_second_suite_with_the_same_folder_is_refused(quiet_suite: Running) -> None:
    second = fangcheng("up", "--port", "0", "--state", str(quiet_suite.state))
    assert second.returncode == 1
    assert "a suite already runs" in second.stderr
    assert str(quiet_suite.process.pid) in second.stderr
    assert quiet_suite.fangcheng("ledger", "audit").returncode == 0


def test_a_second_suite_with_the_same_ports_is_refused(tmp_path: Path) -> None:
    port = free_port(PORTS_OF_A_SUITE)
    with running(tmp_path / "one", "--tables", "0", port=port) as suite:
        assert suite.suite.services["matchmaking"][0].grpc == f"127.0.0.1:{port}"
        second = fangcheng("up", "--port", str(port), "--state", str(tmp_path / "two"))
        assert second.returncode == 1
        assert f"port {port} for matchmaking is in use" in second.stderr
        assert "--port" in second.stderr


def test_a_service_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "wallet.db").mkdir(parents=True)
    ended = fangcheng("up", "--port", "0", "--state", str(state))
    assert ended.returncode == 1
    assert "error: wallet ended while it was starting" in ended.stderr
    assert "wallet.log" in ended.stderr
    assert "Traceback" not in ended.stdout
    assert not (state / "suite.json").exists()


async def test_a_token_of_the_suite_is_taken_by_its_services(quiet_suite: Running) -> None:
    made = quiet_suite.fangcheng("token", "player:nobody", "--ttl", "60")
    assert made.returncode == 0, made.stderr
    target = quiet_suite.suite.target("wallet")
    for token, reason in ((made.stdout.strip(), "UNKNOWN_WALLET"), ("x.y.z", "TOKEN_INVALID")):
        async with connect(target, token) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await wallet_pb2_grpc.WalletServiceStub(channel).GetBalances(
                    wallet_pb2.GetBalancesRequest()
                )
        assert explain(caught.value).reason == reason
    assert quiet_suite.state.joinpath("suite.json").stat().st_mode & 0o077 == 0
