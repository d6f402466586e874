"""Compile requirements/*.lock from the distributions and the dependency groups.

    python tools/locks.py [--upgrade]

A lock holds names, versions and hashes for every supported Python and platform, and no address, so
that each machine takes its packages from the index that it is set up for. Our own distributions are
left out: they are installed from this tree.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = tuple(
    sorted(path.parent for pattern in ("*", "*/*") for path in ROOT.glob(f"{pattern}/pyproject.toml"))
)
ADDRESS = re.compile(r"://|^\s*--?(?:index|extra-index|find-links|trusted|[if]\b)")


def requirements() -> dict[str, list[str]]:
    """What each lock must satisfy: lock name to requirement lines."""
    groups: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    ours: list[str] = []
    asked: list[str] = []
    for folder in DISTRIBUTIONS:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        ours.append(project["name"])
        asked += project["dependencies"]
        asked += [line for lines in project.get("optional-dependencies", {}).values() for line in lines]
    third_party = {line for line in asked if re.match(r"[\w.-]+", line)[0] not in ours}
    return {
        "bootstrap": groups["bootstrap"],
        "dev": sorted(third_party) + groups["dev"] + groups["bootstrap"],
        "protos": groups["protos"],
    }


def compile_lock(name: str, lines: list[str], extra: list[str]) -> None:
    """Resolve ``lines`` into requirements/<name>.lock, keeping versions already locked."""
    path = ROOT / "requirements" / f"{name}.lock"
    subprocess.run(
        [
            *("uv", "pip", "compile", "-", "--quiet", "--universal", "--generate-hashes"),
            *("--no-header", "--no-annotate", "--python-version", "3.11", "--output-file", str(path)),
            *extra,
        ],
        input="\n".join(lines),
        text=True,
        check=True,
        cwd=ROOT,
    )
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if ADDRESS.search(line):
            raise SystemExit(f"{path}:{number}: a lock must not hold an address: {line}")
    print(f"requirements/{name}.lock: {sum('==' in line for line in path.read_text().splitlines())} packages")


if __name__ == "__main__":
    for lock, wanted in requirements().items():
        compile_lock(lock, wanted, sys.argv[1:])
