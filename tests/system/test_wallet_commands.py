"""The commands around the ledger, at a suite that runs."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.system.running import Running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def test_the_wallet_of_a_suite_keeps_its_promises_and_its_ledger_is_kept(
    quiet_suite: Running, tmp_path: Path
) -> None:
    conformance = quiet_suite.fangcheng("wallet", "conformance")
    assert conformance.returncode == 0, conformance.stdout + conformance.stderr
    assert "BROKEN" not in conformance.stdout
    assert re.search(r"All \d\d promises are kept\.", conformance.stdout)

    assert quiet_suite.fangcheng("ledger", "audit").returncode == 0
    until(
        lambda: "not in the chain yet" not in quiet_suite.fangcheng("ledger", "verify").stdout,
        "the chain has reached the last entry",
    )
    verified = quiet_suite.fangcheng("ledger", "verify")
    head = re.search(r"head +(\S+)", verified.stdout)
    assert head, verified.stderr
    assert quiet_suite.fangcheng("ledger", "verify", "--head", head[1]).returncode == 0
    operations, _, digest = head[1].partition(":")
    forged = f"{operations}:{'0' * len(digest)}"
    assert quiet_suite.fangcheng("ledger", "verify", "--head", forged).returncode == 1

    entries = tmp_path / "entries.csv"
    exported = quiet_suite.fangcheng("ledger", "export", str(entries))
    assert exported.returncode == 0, exported.stderr
    rows = list(csv.DictReader(entries.open(encoding="utf-8", newline="")))
    assert [int(row["sequence"]) for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) > 100

    backup, restored = str(tmp_path / "wallet.backup"), str(tmp_path / "restored.db")
    assert quiet_suite.fangcheng("ledger", "backup", backup).returncode == 0
    done = quiet_suite.fangcheng("ledger", "restore", backup, "--database", restored)
    assert done.returncode == 0, done.stderr
    assert "every entry is as it was written" in done.stdout
    told = quiet_suite.fangcheng("ledger", "replay")
    assert told.returncode == 0, told.stderr
    assert "0 refused" in told.stdout
