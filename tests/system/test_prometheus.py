"""A real Prometheus scrapes the suite with the configuration that we ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from .prometheus import config_for, prometheus
from .running import PORTS_OF_A_SUITE, free_port, running, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def test_every_process_of_a_playing_suite_is_scraped(tmp_path: Path) -> None:
    base = free_port(PORTS_OF_A_SUITE)
    (tmp_path / "suite").mkdir()
    with (
        running(tmp_path / "suite", "--tables", "1", port=base),
        prometheus(tmp_path, config_for(base)) as ask,
    ):
        jobs = {"matchmaking", "table", "wallet", "evaluation"}

        def of_jobs(query: str) -> dict[str, float]:
            return {row.labels["job"]: row.value for row in ask(query)}

        until(lambda: of_jobs("up == 1").keys() == jobs, "every process is up")
        until(
            lambda: of_jobs("sum by (job) (grpc_server_handled_total)").keys() == jobs,
            "every process counts its calls",
        )
        until(
            lambda: of_jobs("sum by (job) (fangcheng_table_hands_total)").get("table", 0) > 0,
            "a hand has ended",
        )
        assert of_jobs("max by (job) (abs(fangcheng_wallet_ledger_imbalance))") == {"wallet": 0}
