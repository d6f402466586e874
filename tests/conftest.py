"""What holds for every test."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests import memory

# No example is too slow: how long it takes is the machine's load.
settings.register_profile("loaded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded")

# Read when gRPC is imported. With it, a child that is forked in a process with open connections, as
# that of a command which runs as another user (PostgreSQL's, for root), wakes gRPC's threads before
# it becomes the command, and often dies of it: https://github.com/grpc/grpc/issues/43055
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

if "TMPDIR" not in os.environ and memory.has_room():
    os.environ["TMPDIR"] = tempfile.tempdir = str(memory.FOLDER)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail in words where nothing was selected: a suite that has vanished is no success."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not session.config.option.collectonly:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            selection = session.config.option.markexpr or session.config.option.keyword or "all"
            reporter.write_line(f"FAILED: no test was selected ({selection})", red=True)
