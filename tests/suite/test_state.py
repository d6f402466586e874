"""The state folder: one suite at a time, its key for this user alone, found by every command."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fangcheng_suite.errors import NotRunning, StateInUse, SuiteError
from fangcheng_suite.state import Address, StateFolder, SuiteFile, default_folder, target
from fangcheng_table.sealing import JournalKeys

SUITE = SuiteFile(
    pid=os.getpid(),
    key="k" * 32,
    services={
        "table": (Address("127.0.0.1:1", "127.0.0.1:2"),),
        "evaluation": (
            Address("127.0.0.1:3", "127.0.0.1:4"),
            Address("127.0.0.1:5", "127.0.0.1:6"),
        ),
    },
)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    with folder.claimed():
        folder.write(SUITE)
        assert folder.read() == SUITE
        assert folder.read().target("table") == "127.0.0.1:1"
        assert folder.read().target("evaluation") == "ipv4:127.0.0.1:3,127.0.0.1:5"


def test_the_key_is_for_this_user_alone(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    before = os.umask(0)
    try:
        with folder.claimed():
            folder.write(SUITE)
            folder.write(SUITE)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.suite_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_two_suites_never_share_a_folder(tmp_path: Path) -> None:
    first, second = StateFolder(tmp_path), StateFolder(tmp_path)
    with first.claimed(), pytest.raises(StateInUse, match=str(os.getpid())), second.claimed():
        pass
    with StateFolder(tmp_path).claimed():
        pass


def test_a_folder_is_free_again_when_its_owner_was_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from fangcheng_suite.state import StateFolder\n"
        "with StateFolder(Path(sys.argv[1])).claimed(): os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert ended.returncode == -9
    with StateFolder(tmp_path).claimed():
        pass


def test_without_a_suite_one_is_told_how_to_start_it(tmp_path: Path) -> None:
    with pytest.raises(NotRunning) as caught:
        StateFolder(tmp_path).read()
    assert "fangcheng up" in caught.value.hint


def test_below_a_file_there_is_no_suite(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotRunning):
        StateFolder(tmp_path / "file" / "state").read()


def test_a_suite_that_was_killed_does_not_run(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    folder = StateFolder(tmp_path)
    with folder.claimed():
        folder.write(SuiteFile(pid=gone.pid, key="k" * 32))
    with pytest.raises(NotRunning):
        folder.read()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"pid": "x", "key": 1, "services": {}}'])
def test_a_file_that_is_no_suite_is_told(tmp_path: Path, content: str) -> None:
    folder = StateFolder(tmp_path)
    folder.suite_file.write_text(content)
    with pytest.raises(SuiteError, match=r"suite\.json"):
        folder.read()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(SuiteError, match="state folder"),
        StateFolder(tmp_path / "file" / "state").claimed(),
    ):
        pass


def test_the_key_of_the_journal_is_made_once_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FANGCHENG_TABLE_JOURNAL_KEYS", raising=False)
    folder = StateFolder(tmp_path)
    assert folder.journal_keys() == ""
    made = folder.journal_keys(make=True)
    assert JournalKeys.parse(made)
    assert stat.S_IMODE((tmp_path / "journal.keys").stat().st_mode) == 0o600
    assert StateFolder(tmp_path).journal_keys() == folder.journal_keys(make=True) == made
    # Who has keys of his own uses those.
    monkeypatch.setenv("FANGCHENG_TABLE_JOURNAL_KEYS", "own:key")
    assert folder.journal_keys() == folder.journal_keys(make=True) == "own:key"


def test_after_the_end_nothing_runs(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    with folder.claimed():
        folder.write(SUITE)
        folder.forget()
    with pytest.raises(NotRunning):
        folder.read()


def test_the_environment_names_the_default_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FANGCHENG_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "fangcheng"
    monkeypatch.setenv("FANGCHENG_STATE", str(tmp_path / "other"))
    assert default_folder() == tmp_path / "other"


def test_one_address_is_its_own_target() -> None:
    assert target(["127.0.0.1:1"]) == "127.0.0.1:1"
