"""The lock files: every package hashed, no address anywhere, and every dependency in them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = tuple(sorted(path.stem for path in ROOT.glob("requirements/*.lock")))
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
RANGE = re.compile(r"([\w-]+)>=([\d.]+)(?:,<(\d+))?")
ENDS = ("oldest", "dev")


def lines(lock: str) -> list[str]:
    """The requirements of a lock, each joined to one line."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def normal(name: str) -> str:
    """A name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_is_one_version_with_hashes(lock: str) -> None:
    assert lines(lock)
    for line in lines(lock):
        assert re.match(r"[\w.-]+==[\w.!+]+ ", line), line
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line


@pytest.mark.parametrize("lock", LOCKS)
def test_no_line_tells_an_address_or_an_index(lock: str) -> None:
    for line in lines(lock):
        assert "://" not in line
        assert not re.search(r"--(?!hash=)|(^|\s)-\w", line), line


@pytest.mark.parametrize("pattern", ["protos", "shared/*", "services/*"])
def test_the_lock_holds_whatever_a_distribution_asks_for(pattern: str) -> None:
    locked = {normal(NAME.match(line)[0]) for line in lines("dev")}
    manifests = list(ROOT.glob(f"{pattern}/pyproject.toml"))
    assert manifests
    for manifest in manifests:
        project = tomllib.loads(manifest.read_text())["project"]
        extras = project.get("optional-dependencies", {}).values()
        asked = {normal(NAME.match(line)[0]) for line in sum(extras, project["dependencies"])}
        third_party = {name for name in asked if not name.startswith("fangcheng")}
        assert third_party <= locked, f"{project['name']}: run `make locks`"


@pytest.mark.parametrize("folder", ["protos", "shared/client"])
def test_what_studios_install_is_tested_at_both_ends_of_what_it_asks_for(folder: str) -> None:
    """tests/system/test_packages.py installs both locks: no range may be wider than they are."""
    oldest, newest = (dict(pin.split()[0].split("==") for pin in lines(lock)) for lock in ENDS)
    asked = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["dependencies"]
    ranges = [RANGE.fullmatch(line) for line in asked if not line.startswith("fangcheng")]
    assert ranges
    for found in ranges:
        assert found, f"{folder}: {asked}"
        name, least, below = found.groups()
        assert f"{oldest[name]}.".startswith(f"{least}."), name
        if below is not None:
            assert int(newest[name].split(".")[0]) == int(below) - 1, name
