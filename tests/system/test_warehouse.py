"""The example of a warehouse beside a suite at play, as the process that a studio runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warehouse.asking import QUERIES, open_lake

from .running import Running, environment, running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


def command(suite: Running, lake: Path, *words: str) -> list[str | Path]:
    return [sys.executable, "-m", "warehouse", "--lake", lake, *words]


def settings(suite: Running) -> dict[str, str]:
    return environment(
        FANGCHENG_TOKEN=suite.fangcheng("token", "operator").stdout.strip(),
        PYTHONPATH=str(ROOT / "examples/warehouse"),
    )


def test_it_follows_play_is_killed_and_goes_on(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with running(tmp_path / "suite", "--tables", "2", "--think", "0") as suite:
        services = [
            word for name in ("table", "wallet") for word in (f"--{name}", suite.suite.target(name))
        ]

        def hands() -> int:
            [(count,)] = open_lake(lake).execute("SELECT count(*) FROM hands").fetchall()
            return int(count)

        for more in range(2):
            before = hands()
            process = subprocess.Popen(
                command(suite, lake, "follow", *services), env=settings(suite)
            )
            until(lambda known=before: hands() > known, f"hands are kept, {more}")
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        synced = subprocess.run(
            command(suite, lake, "sync", *services),
            env=settings(suite),
            capture_output=True,
            text=True,
            check=False,
        )
        assert synced.returncode == 0, synced.stderr
        assert re.search(r"\d rows of hands", synced.stderr)
        table_id, number = (
            open_lake(lake)
            .execute("SELECT table_id, max(hand_number) FROM hands GROUP BY ALL LIMIT 1")
            .fetchall()[0]
        )
    db = open_lake(lake)
    numbers = db.execute(
        "SELECT list(hand_number ORDER BY hand_number) FROM hands WHERE table_id = ?", [table_id]
    ).fetchall()
    assert numbers == [(list(range(1, number + 1)),)]
    [(entries, unbalanced, missing)] = db.execute(QUERIES["books"]).fetchall()
    assert entries
    assert (unbalanced, missing) == (0, 0)
    # Units that a seat won or lost are what the transfers to and from it come to.
    assert not db.execute(
        "WITH moved AS ("
        " SELECT table_id, hand_number, from_player AS player_id, -units AS units FROM transfers"
        " UNION ALL SELECT table_id, hand_number, to_player, units FROM transfers)"
        " SELECT * FROM seats LEFT JOIN (SELECT table_id, hand_number, player_id,"
        " sum(units) AS moved FROM moved GROUP BY ALL) USING (table_id, hand_number, player_id)"
        " WHERE units <> coalesce(moved, 0)"
    ).fetchall()
    for name, text in QUERIES.items():
        assert db.sql(text).fetchall(), name
    shown = subprocess.run(
        command(suite, lake, "query", "wins"),
        env=environment(PYTHONPATH=str(ROOT / "examples/warehouse")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert "won_percent" in shown.stdout
