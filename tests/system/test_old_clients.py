"""What was built upon an earlier release goes on working: its stubs play a hand on this server.

They are made from the image of each release that is kept, by the oldest protoc and for the oldest
runtimes that we support, as stubs of that time may be.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from fangcheng.matchmaking.v1 import matchmaking_pb2 as mm
from fangcheng_suite.access import renewing_token

from .running import LONG_SECONDS, Running, fangcheng

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
OLDEST_RUNTIMES = ROOT / ".venv-protos/bin/python"
RELEASES = sorted(ROOT.glob("protos/released/v1/*.binpb"))
CLIENT = Path(__file__).with_name("old_client.py")


def make_stubs(image: Path, folder: Path) -> None:
    """Write the stubs of a release, as whoever integrates makes them."""
    files = FileDescriptorSet.FromString(image.read_bytes()).file
    names = [file.name for file in files if not file.name.startswith("google/")]
    command = [
        *(OLDEST_RUNTIMES, "-m", "grpc_tools.protoc", f"--descriptor_set_in={image}"),
        *(f"--python_out={folder}", f"--grpc_python_out={folder}", *names),
    ]
    subprocess.run(command, check=True, capture_output=True)


def test_releases_are_kept() -> None:
    assert RELEASES
    newest = ROOT / "protos/released/v1.binpb"
    assert RELEASES[-1].read_bytes() == newest.read_bytes()


@pytest.mark.parametrize("image", RELEASES, ids=[image.stem for image in RELEASES])
def test_stubs_of_a_release_play_a_hand(image: Path, quiet_suite: Running, tmp_path: Path) -> None:
    make_stubs(image, tmp_path)
    names = ["operator", *(f"player:old-{image.stem}-{seat}" for seat in range(4))]
    tokens = {name: renewing_token(quiet_suite.suite.key, name)() for name in names}
    services = ("matchmaking", "table", "wallet", "evaluation")
    targets = {service: quiet_suite.suite.target(service) for service in services}
    ended = subprocess.run(
        [OLDEST_RUNTIMES, CLIENT],
        input=json.dumps({"targets": targets, "tokens": tokens}),
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path)},
        timeout=LONG_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)

    assert told["left"] == mm.TICKET_STATE_LEFT
    assert told["shanten"] == 0
    nets = [seat["net"] for seat in told["seats"]]
    assert nets == [nets[0]] * 4
    assert sum(nets[0]) == 0
    assert told["entries"] == nets[0]
    for seat in told["seats"]:
        assert seat["numbers"] == list(range(1, len(seat["numbers"]) + 1))
        assert seat["answered"]
        assert seat["settled"]
    checked = fangcheng("verify", told["table_id"], "1", "--state", str(quiet_suite.state))
    assert checked.returncode == 0, checked.stdout + checked.stderr
