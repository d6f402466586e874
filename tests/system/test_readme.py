"""The README's client, word for word, against a running suite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .running import COMMAND, Running, environment, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

README = Path(__file__).parents[2] / "README.md"


def test_the_client_is_seated_and_its_answers_are_taken(
    quiet_suite: Running, tmp_path: Path
) -> None:
    [client] = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    for service, port in (("wallet", 7102), ("matchmaking", 7100)):
        assert client.count(f'"127.0.0.1:{port}"') == 1
        client = client.replace(f"127.0.0.1:{port}", quiet_suite.suite.target(service))
    script, out = tmp_path / "client.py", tmp_path / "out"
    script.write_text(client, "utf-8")
    path = f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}"
    with out.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-u", str(script)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(FANGCHENG_STATE=str(quiet_suite.state), PATH=path),
        )
    try:
        # Its own claims and turns: it was seated, asked, and its answer was taken.
        until(
            lambda: 'why: "answered"' in out.read_text("utf-8") or process.poll() is not None,
            "an answer of the client is taken",
        )
        said = out.read_text("utf-8")
        assert "Traceback" not in said, said
        assert 'player_id: "ming"' in said
        assert 'why: "answered"' in said
    finally:
        process.kill()
        process.wait()
