"""What others made, and we install: by its hash alone, listed, and looked up before a release."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement

from tests.system.running import environment
from tools.locks import DISTRIBUTIONS, pins

from .suite import DEPLOY, ROOT

pytestmark = pytest.mark.system

BIN = Path(sys.executable).parent
BUILD = DEPLOY / "image" / "build.sh"
ENVIRONMENT = ROOT / "tools" / "environment.py"
PACKAGE = "pluggy"
"""A small one, which needs nothing, and is in requirements/bootstrap.lock."""


def ran(*words: str | Path, within: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """A command, in this repository or another folder, to its end."""
    return subprocess.run(
        [*map(str, words)],
        cwd=within,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def lines_of(lock: str) -> list[str]:
    """The requirements of a lock, each with its hashes."""
    text = (ROOT / "requirements" / f"{lock}.lock").read_text("utf-8")
    return text.replace("\\\n", " ").splitlines()


def line_of(package: str) -> str:
    """The requirement of a package in requirements/bootstrap.lock."""
    (line,) = [one for one in lines_of("bootstrap") if one.startswith(f"{package}==")]
    return line


# Hashes.


def with_wrong_hashes(line: str) -> str:
    return re.sub("sha256:[0-9a-f]{8}", "sha256:00000000", line)


def without_hashes(line: str) -> str:
    return line.partition(" --hash")[0].rstrip()


def test_a_package_is_installed_by_its_hash_and_by_no_other(tmp_path: Path) -> None:
    """By what builds the image, and by what makes our own environments."""
    right = line_of(PACKAGE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").symlink_to(BIN / "uv")
    requirements = tmp_path / "requirements"
    requirements.mkdir()

    def builds(step: str, line: str) -> subprocess.CompletedProcess[str]:
        (requirements / "image.lock").write_text(f"{line}\n", "utf-8")
        (requirements / "bootstrap.lock").write_text(f"{line}\n", "utf-8")
        target = tmp_path / "target"
        shutil.rmtree(target, ignore_errors=True)
        if step == "environment":
            return ran(sys.executable, ENVIRONMENT, target, "image.lock", within=tmp_path)
        folders = [tmp_path, target] if step == "tools" else [tmp_path, tmp_path, target]
        return ran("sh", BUILD, step, *folders)

    ended = builds("libraries", right)
    assert ended.returncode == 0, ended.stdout
    assert list((tmp_path / "target").glob(f"lib/python3*/site-packages/{PACKAGE}"))
    for step, line in (
        ("libraries", with_wrong_hashes(right)),
        ("libraries", without_hashes(right)),
        ("tools", with_wrong_hashes(right)),
        ("environment", without_hashes(right)),
    ):
        ended = builds(step, line)
        assert ended.returncode != 0
        assert re.search(rf"hash.*{PACKAGE}|{PACKAGE}.*hash", ended.stdout, re.I | re.S)


# The bill of materials.


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` makes."""
    folder = tmp_path_factory.mktemp("dist")
    ended = ran("make", "dist", f"OUT={folder}")
    assert ended.returncode == 0, ended.stdout
    return folder


@pytest.fixture(scope="module")
def bill(dist: Path) -> dict[str, Any]:
    (file,) = dist.glob("*.cdx.json")
    loaded: dict[str, Any] = json.loads(file.read_text("utf-8"))
    assert file.name == "fangcheng-{version}.cdx.json".format(**loaded["metadata"]["component"])
    return loaded


def test_the_bill_is_what_the_standard_says(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(bill)) is None


def test_the_bill_lists_what_the_image_has_and_by_which_hashes(
    dist: Path, bill: dict[str, Any]
) -> None:
    locked = {
        requirement.name
        for requirement in map(Requirement, map(without_hashes, lines_of("image")))
        if requirement.marker is None or requirement.marker.evaluate()
    }
    hashes = pins(ROOT / "requirements" / "image.lock")
    components = [bill["metadata"]["component"], *bill["components"]]
    found = {}
    for one in components:
        name = one["name"].lower().replace("_", "-")
        files = {
            each["content"]
            for reference in one["externalReferences"]
            for each in reference.get("hashes", ())
        }
        found[name] = one["version"]
        if name in locked:
            assert files == set(hashes[name, one["version"]]), name
            assert one["purl"] == f"pkg:pypi/{name}@{one['version']}"
        else:
            wheel = dist / f"{name.replace('-', '_')}-{one['version']}-py3-none-any.whl"
            ended = ran("sha256sum", wheel)
            assert files == {ended.stdout.split()[0]}, name
            assert one["licenses"][0]["license"]["id"] == "Apache-2.0"
    ours = {wheel.name.split("-")[0].replace("_", "-") for wheel in dist.glob("*.whl")}
    assert len(ours) == len(DISTRIBUTIONS)
    assert found.keys() == locked | ours
    assert len(components) == len(found)
    # Who needs whom: nothing is there that nobody asked for.
    needed = {ref for one in bill["dependencies"] for ref in one.get("dependsOn", ())}
    assert needed == {one["bom-ref"] for one in bill["components"]}


def test_the_same_wheels_have_the_same_bill(dist: Path, tmp_path: Path) -> None:
    for wheel in dist.glob("*.whl"):
        shutil.copy(wheel, tmp_path)
    ended = ran(sys.executable, "-m", "tools.sbom", tmp_path)
    assert ended.returncode == 0, ended.stdout
    (first,), (again,) = (folder.glob("*.cdx.json") for folder in (dist, tmp_path))
    assert again.read_bytes() == first.read_bytes()
    for folder in (ROOT, dist, tmp_path, BIN):
        assert str(folder) not in again.read_text("utf-8")


def test_every_wheel_says_what_it_is(dist: Path) -> None:
    for wheel in dist.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
            said = HeaderParser().parsestr(archive.read(name).decode())
        assert said["Name"].replace("-", "_") == wheel.name.split("-")[0]
        assert said["Version"] == wheel.name.split("-")[1]
        assert said["License-Expression"] == "Apache-2.0"
        assert said["Requires-Python"] == "<3.14,>=3.11"
        assert said["Summary"]
        source = dist / f"{wheel.name.removesuffix('-py3-none-any.whl')}.tar.gz"
        assert source.is_file()


# What is known of packages. No test asks the real services: what stands in for OSV's answers
# pip-audit over HTTP.


class Osv(BaseHTTPRequestHandler):
    """Answers as OSV does: it knows of one vulnerability."""

    known: ClassVar = {
        "id": "PYSEC-2026-1",
        "aliases": ["CVE-2026-0001"],
        "summary": "It lets everybody in.",
        "affected": [
            {
                "package": {"name": PACKAGE, "ecosystem": "PyPI"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"fixed": "99.1"}]}],
            }
        ],
    }
    vulnerable = ""
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((query["package"]["name"], query["version"]))
        vulns = [self.known] if query["package"]["name"] == self.vulnerable else []
        answer = json.dumps({"vulns": vulns} if vulns else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


@contextlib.contextmanager
def osv(vulnerable: str = "") -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The options that ask it, and what it has been asked for."""
    handler = type("Handler", (Osv,), {"vulnerable": vulnerable, "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1/query"
        yield f"--vulnerability-service=osv --osv-url={address}", handler.asked
        server.shutdown()


def audit(options: str) -> subprocess.CompletedProcess[str]:
    return ran("make", "audit", f"OPTIONS={options}")


def test_an_audit_asks_for_every_package_of_every_lock() -> None:
    locked = {pin for lock in (ROOT / "requirements").glob("*.lock") for pin in pins(lock)}
    with osv() as (options, asked):
        ended = audit(options)
    assert ended.returncode == 0, ended.stdout
    assert f"{len(locked)} packages, no known vulnerability" in ended.stdout
    assert sorted(asked) == sorted(locked)


def test_an_audit_names_what_is_vulnerable_and_fails(tmp_path: Path) -> None:
    shutil.copy(ROOT / "requirements" / "bootstrap.lock", tmp_path)
    with osv(vulnerable=PACKAGE) as (options, _):
        ended = audit(f"--locks={tmp_path} {options}")
        version = line_of(PACKAGE).split()[0].partition("==")[2]
        line = f"{PACKAGE} {version} (bootstrap): PYSEC-2026-1, CVE-2026-0001; mended in 99.1\n"
        assert line in ended.stdout
        assert "1 known vulnerabilities" in ended.stdout
        assert ended.returncode != 0
        # What was looked into may be left out, by its name.
        ended = audit(f"--locks={tmp_path} {options} --ignore-vuln=PYSEC-2026-1")
        assert ended.returncode == 0, ended.stdout


def test_what_was_not_looked_up_is_no_success(tmp_path: Path) -> None:
    shutil.copy(ROOT / "requirements" / "bootstrap.lock", tmp_path)
    count = len(lines_of("bootstrap"))
    with osv() as (options, asked):
        ended = audit(f"--locks={tmp_path} {options} --dry-run")
        assert not asked
    assert f"{count} of {count} packages not looked up" in ended.stdout
    assert ended.returncode != 0
    # The service is gone.
    ended = audit(f"--locks={tmp_path} {options}")
    assert "the service could not be asked" in ended.stdout
    assert "Traceback" not in ended.stdout
    assert ended.returncode != 0
    # A folder without locks is a mistake.
    ended = audit(f"--locks={tmp_path / 'none'} {options}")
    assert ended.returncode != 0
