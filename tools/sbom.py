"""Write the bill of materials (CycloneDX 1.6, JSON) of the suite as containers have it.

    python -m tools.sbom FOLDER

FOLDER holds the wheels of all distributions, and takes `fangcheng-VERSION.cdx.json`. An environment
is made for it as the image's is, from requirements/image.lock and the wheels, so that it tells what
is installed for this Python and system: licences, who needs whom, and the hashes by which each
package was checked. What Debian brings is not in it.

The same commit makes the same bytes: it has no serial number, and a time only where
SOURCE_DATE_EPOCH gives one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess  # nosec B404 # for our own commands alone
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tools.locks import pins

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "image.lock"
SUITE = ROOT / "services" / "suite" / "pyproject.toml"
BIN = Path(sys.executable).parent


def run(*words: str | Path) -> None:
    """Run a command beside this Python; its own message tells why it failed."""
    command = [str(BIN / words[0]), *map(str, words[1:])]
    # What else this Python would find is no part of the environment.
    clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    if subprocess.run(command, env=clean).returncode:  # noqa: S603 # nosec B603 # no words of others
        raise SystemExit(f"failed: {' '.join(command)}")


def environment(folder: Path, wheels: Path) -> Path:
    """The Python of a fresh environment with what the image has."""
    python = folder / "bin" / "python"
    run("uv", "venv", "--quiet", "--python", sys.executable, folder)
    install = ("uv", "pip", "install", "--quiet", "--python", python, "--no-deps")
    run(*install, "--only-binary=:all:", "--require-hashes", "--requirement", LOCK)
    run(*install, *sorted(wheels.glob("*.whl")))
    run("uv", "pip", "check", "--quiet", "--python", python)
    return python


def described(python: Path) -> dict[str, Any]:
    """What cyclonedx-py says of an environment."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sbom.json")
        words = (
            "--no-validate",
            "--output-reproducible",
            "--spec-version=1.6",
            "--pyproject",
            SUITE,
        )
        run("cyclonedx-py", "environment", *words, "--output-file", file, python)
        bill: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return bill


def hashes_of(wheels: Path) -> dict[tuple[str, str], list[str]]:
    """The SHA-256 of every file that may be installed, by name and version."""
    found = pins(LOCK)
    for wheel in wheels.glob("*.whl"):
        name, version, *_ = wheel.name.split("-")
        found[normal(name), version] = [hashlib.sha256(wheel.read_bytes()).hexdigest()]
    return found


def normal(name: str) -> str:
    """A name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def with_hashes(bill: dict[str, Any], hashes: Mapping[tuple[str, str], list[str]]) -> None:
    """Say of each package by which hashes it was checked, and not where on this disk it lay."""
    for one in (bill["metadata"]["component"], *bill["components"]):
        key = normal(one["name"]), one["version"]
        if key not in hashes:
            raise SystemExit(f"{'=='.join(key)} is in no lock and no wheel")
        references = one.get("externalReferences", [])
        one["externalReferences"] = [
            *(reference for reference in references if not reference["url"].startswith("file:")),
            {
                "type": "distribution",
                "url": one.get("purl", "dist/"),  # which index it comes from is no matter
                "comment": "one of these is installed",
                "hashes": [{"alg": "SHA-256", "content": content} for content in hashes[key]],
            },
        ]


def main(folder: Path) -> None:
    """Make an environment, describe it, hold that to the schema, and write it."""
    with tempfile.TemporaryDirectory() as place:
        bill = described(environment(Path(place, "environment"), folder))
    with_hashes(bill, hashes_of(folder))
    text = json.dumps(bill, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise SystemExit(f"no CycloneDX 1.6: {wrong}")
    component = bill["metadata"]["component"]
    file = folder / f"{component['name']}-{component['version']}.cdx.json"
    file.write_text(text, "utf-8")
    print(f"{file}: {len(bill['components'])} packages")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
