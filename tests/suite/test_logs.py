"""`fangcheng logs`: a table's story out of the logs of several services."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fangcheng_suite import telling
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.stories import Story
from fangcheng_suite.telling import since, tell

OURS = "01a22d1de0af76999b730bc968d05252"
OTHER = "01a22d1de0af76999b730bc968d0ffff"


def line(second: float, service: str, event: str, level: str = "info", **more: Any) -> str:
    time = f"2026-11-30T12:00:{second:09.6f}Z"
    return json.dumps({**more, "event": event, "level": level, "service": service, "time": time})


QUEUES = [
    line(1, "matchmaking", "ticket queued", ticket_id="k-1", pool_id="silver", request_id="join-1"),
    line(1.5, "matchmaking", "ticket queued", ticket_id="k-9", pool_id="silver"),
    line(2, "matchmaking", "match formed", match_id="m-1", ticket_ids=["k-1", "k-2"]),
    line(2.5, "matchmaking", "match formed", match_id="m-9", ticket_ids=["k-9"]),
    line(4, "matchmaking", "seated", match_id="m-1", table_id=OURS),
    line(4.5, "matchmaking", "seated", match_id="m-9", table_id=OTHER),
]
TABLES = [
    line(3, "table", "table created", table_id=OURS, hands=2, request_id="m-1"),
    line(5, "table", "hand started", table_id=OURS, hand=1, request_id="gateway"),
    line(5.5, "table", "hand started", table_id=OTHER, hand=1, request_id="gateway"),
    line(6, "table", "hand ended", table_id=OURS, hand=1, ending="win", trace_id="t-1"),
    line(7, "table", "hand started", table_id=OURS, hand=2),
    line(8, "table", "a table failed", "error", table_id=OURS, exception="Traceback\nValueError"),
]
WALLET = [
    line(0.5, "wallet", "call", code="PERMISSION_DENIED", request_id="join-1"),
    line(6.5, "wallet", "call", "warning", code="UNAVAILABLE", trace_id="t-1", request_id="r"),
    line(6.7, "wallet", "call", "warning", code="ABORTED", request_id=f"{OURS}/1"),
    line(6.8, "wallet", "settled", settlement_key=f"{OURS}/1"),
    line(6.9, "wallet", "settled", settlement_key=f"{OTHER}/1", trace_id="t-1"),
]
STORY = [
    *("wallet call", "matchmaking ticket queued", "matchmaking match formed"),
    *("table table created", "matchmaking seated", "table hand started", "table hand ended"),
    *("wallet call", "wallet call", "wallet settled"),
    *("table hand started", "table a table failed"),
]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name, lines in {"queues": QUEUES, "table": TABLES, "wallet": WALLET}.items():
        (tmp_path / f"{name}.log").write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path


def told(*paths: Path, table: str = OURS, **more: Any) -> list[str]:
    """What is printed."""
    out = io.StringIO()
    tell(Console(file=out, width=10_000), table, paths, **more)
    return out.getvalue().splitlines()


def heads(lines: list[str]) -> list[str]:
    """Service and event of each line."""
    found = [text.split(None, 4)[2:] for text in lines if text.startswith("2026")]
    return [f"{service} {' '.join(rest.split('  ')[0].split())}" for service, _, rest in found]


def test_a_story_is_joined_from_all_services_by_time(logs: Path) -> None:
    lines = told(logs)
    assert heads(lines) == STORY
    assert lines[-2:] == ["    Traceback", "    ValueError"]
    assert "ending win" in lines[6]
    assert "ticket_ids k-1, k-2" in lines[2]


def test_what_another_table_shares_a_request_or_a_trace_with_is_not_told(logs: Path) -> None:
    assert OTHER not in "\n".join(told(logs, ids=True))
    assert "request_id gateway" in "\n".join(told(logs, ids=True))
    assert "gateway" not in "\n".join(told(logs))


def test_a_hand_is_told_alone(logs: Path) -> None:
    assert heads(told(logs, hand=1)) == ["table hand started", "table hand ended"]
    with pytest.raises(SuiteError, match="tells of hand 3 of table"):
        told(logs, hand=3)


def test_only_what_is_new_enough_is_told(logs: Path) -> None:
    begin = datetime(2026, 11, 30, 12, 0, 7, tzinfo=UTC)
    assert heads(told(logs, begin=begin)) == STORY[-2:]
    assert since("90s", begin) == datetime(2026, 11, 30, 11, 58, 37, tzinfo=UTC)
    assert since("2026-11-30T20:00:07+08:00", begin) == begin
    assert since("2026-11-30T12:00:07", begin) == begin
    with pytest.raises(SuiteError, match="'yesterday' is no time"):
        since("yesterday", begin)


def test_lines_that_nobody_can_read_are_counted(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (logs / "table.log").open("ab") as file:
        file.write(b"Fatal Python error\n\xff\xfe\n\n" + f'{{"table_id": "{OURS}", }}\n'.encode())
        file.write(b'{"table_id": "' + OURS.encode())  # a process was killed while it wrote
    assert heads(told(logs)) == STORY
    assert "4 lines are no service's and were left out." in capsys.readouterr().err


def test_logs_come_packed_by_folders_and_by_standard_input(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = logs / "table.log.1.gz"
    packed.write_bytes(gzip.compress((logs / "table.log").read_bytes()))
    (logs / "table.log").unlink()
    assert heads(told(logs)) == STORY
    packed.rename(logs / "elsewhere")
    with pytest.raises(SuiteError, match="no-such-file is not there"):
        told(logs, logs / "no-such-file")

    class Stdin:
        buffer = io.BytesIO("\n".join(TABLES).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert heads(told(logs, Path("-"))) == STORY


def test_a_table_that_no_log_names_is_told_of(logs: Path, tmp_path: Path) -> None:
    (logs / "table.log").unlink()
    (logs / "queues.log").unlink()
    (logs / "wallet.log").write_text(WALLET[0], "utf-8")
    with pytest.raises(SuiteError, match="nothing in 1 files tells of table"):
        told(logs)
    with pytest.raises(SuiteError, match="nothing in 1 files tells of table"):
        told(logs, table="\udcff")  # what a shell gives for a byte that is no text
    (logs / "wallet.log").unlink()
    with pytest.raises(SuiteError, match="no logs in"):
        told(logs)


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_a_table_is_followed_as_it_goes_on(logs: Path, opened: ExitStack) -> None:
    path = logs / "table.log"
    with path.open("ab") as file:
        file.write(line(9, "table", "hand ended", table_id=OURS, hand=2).encode()[:40])
    tail = telling._Tail(path, opened)
    assert tail.at == sum(len(one) + 1 for one in TABLES)
    following = telling._followed(Story(OURS), [tail], opened)
    with path.open("ab") as file:
        file.write(line(9, "table", "hand ended", table_id=OURS, hand=2).encode()[40:] + b"\n")
        file.write(line(10, "table", "hand started", table_id=OTHER).encode() + b"\n")
        file.write(line(11, "table", "table closed", table_id=OURS).encode() + b"\n")
    assert [next(following).event for _ in range(2)] == ["hand ended", "table closed"]
    path.write_text(line(12, "table", "holds released", table_id=OURS) + "\n", "utf-8")
    assert next(following).event == "holds released"  # a log that was begun anew


def test_a_log_that_is_moved_away_is_followed_and_so_is_the_next(
    logs: Path, opened: ExitStack
) -> None:
    path = logs / "table.log"
    following = telling._followed(Story(OURS), [telling._Tail(path, opened)], opened)
    moved = path.rename(logs / "table.log.1")
    # Longer than the old one from the start: its size tells nothing.
    path.write_bytes(b"x\n" * moved.stat().st_size)
    with path.open("ab") as file:
        file.write(line(11, "table", "table closed", table_id=OURS).encode() + b"\n")
    with moved.open("ab") as file:  # the service has not noticed yet
        file.write(line(9, "table", "hand ended", table_id=OURS).encode() + b"\n")
    assert [next(following).event for _ in range(2)] == ["hand ended", "table closed"]


def test_the_beginning_of_an_id_will_do_if_it_is_of_one_table(logs: Path) -> None:
    assert heads(told(logs, table=OURS[:-3])) == STORY
    with pytest.raises(SuiteError, match=f"the ids of 2 tables begin with {OURS[:8]!r}"):
        told(logs, table=OURS[:8])


def test_nothing_in_a_log_is_obeyed_by_a_terminal_or_looks_like_a_line(logs: Path) -> None:
    hostile = {"reason": "\x1b[2J\n2026-11-30 table", "who": "\u009b31m\u202eeb", "n\ra": "ö 万"}
    with (logs / "table.log").open("a", encoding="utf-8") as file:
        file.write(line(9, "ta\nble", "e\x1b]0;x\x07", "\r", table_id=OURS, **hostile) + "\n")
        file.write(line(10, "table", "x", table_id=OURS, exception="a\n\x1b[31mb") + "\n")
    *_, first, second, third, fourth = told(logs)
    assert all(one.isprintable() for one in (first, second, third, fourth))
    for shown in (r"ta\nble", r"e\x1b]0;x\x07", r"\x1b[2J\n2026", r"\x9b31m\u202eeb", r"n\ra ö 万"):
        assert shown in first
    assert (third, fourth) == ("    a", r"    \x1b[31mb")


def test_lines_that_no_service_can_have_written_end_nothing(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = f'"table_id": "{OURS}"'
    whole = line(9, "table", "x", table_id=OURS)
    time = json.loads(whole)["time"]
    bad = [
        f'{{{named}, "a": {"[" * 100_000}{"]" * 100_000}}}',
        f'{{{named}, "a": {"9" * 10_000}}}',
        whole.replace(time, "9999-12-31T23:59:59-23:00"),
        whole.replace(time, "0001-01-01T00:00:00+23:00"),
        whole.replace(time, "2026-13-30T12:00:00Z"),
    ]
    (logs / "bad.log").write_text("\n".join(bad) + "\n", "utf-8")
    assert heads(told(logs)) == STORY
    assert "5 lines are no service's and were left out." in capsys.readouterr().err


def test_a_packed_log_that_is_broken_is_told(logs: Path) -> None:
    packed = bytearray(gzip.compress("\n".join(TABLES).encode()))
    for broken in (packed[:-12], packed[:20] + b"\xff" * 20 + packed[40:], b"no gzip"):
        (logs / "table.log.1.gz").write_bytes(broken)
        with pytest.raises(SuiteError, match="a log cannot be read"):
            told(logs)
