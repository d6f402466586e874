"""Compile requirements/*.lock from the distributions and the dependency groups.

    python tools/locks.py [--upgrade]

A lock holds names, versions and hashes for every supported Python and platform, and no address, so
that each machine takes its packages from the index that it is set up for. Our own distributions are
left out: they are installed from this tree.
"""

from __future__ import annotations

import re
import subprocess  # nosec B404 # for our own commands alone
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = tuple(
    path.parent
    for pattern in ("protos", "shared/*", "services/*")
    for path in sorted(ROOT.glob(f"{pattern}/pyproject.toml"))
)
SERVED_EXTRAS = ("databases", "fast", "tracing")
"""The extras that services in production have."""
INTEGRATED = ("protos", "shared/client")
"""What other teams install; the lock `oldest` has the other end of what they support than dev."""
ADDRESS = re.compile(r"://|^\s*--(?!hash=)|^\s*-\w")
PIN = re.compile(r"^([\w.-]+)==(\S+).*?((?:\s+--hash=sha256:[0-9a-f]{64})+)$", re.M)


def pins(lock: Path) -> dict[tuple[str, str], list[str]]:
    """The SHA-256 of each file that may be installed, in hexadecimal, by name and version."""
    joined = lock.read_text("utf-8").replace("\\\n", " ")
    return {
        (name, version): re.findall(r"sha256:(\w+)", hashes)
        for name, version, hashes in PIN.findall(joined)
    }


def requirements() -> dict[str, list[str]]:
    """What each lock must satisfy: lock name to requirement lines."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups: dict[str, list[str]] = root["dependency-groups"]
    ours: set[str] = set()
    asked: set[str] = set()
    served: set[str] = set()
    integrated: set[str] = set()
    for folder in DISTRIBUTIONS:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        ours.add(project["name"])
        extras = project.get("optional-dependencies", {})
        asked.update(project["dependencies"], *extras.values())
        served.update(project["dependencies"], *(extras.get(name, ()) for name in SERVED_EXTRAS))
        if folder.relative_to(ROOT).as_posix() in INTEGRATED:
            integrated.update(project["dependencies"])

    def third_party(lines: set[str]) -> list[str]:
        return sorted(line for line in lines if re.split(r"[^\w.-]", line)[0] not in ours)

    return {
        "bootstrap": groups["bootstrap"],
        "bench": groups["bench"],
        "dev": [*third_party(asked), *groups["dev"], *groups["bootstrap"]],
        "image": third_party(served),  # after dev, whose versions it has
        "protos": groups["protos"],
        "oldest": third_party(integrated),  # dev has the newest of the same
    }


def compile_lock(name: str, lines: list[str], extra: list[str]) -> None:
    """Resolve ``lines`` into requirements/<name>.lock, keeping versions already locked."""
    path = ROOT / "requirements" / f"{name}.lock"
    command = ["uv", "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate"]
    command += [
        "--universal",
        "--python-version=3.11",
        "--generate-hashes",
        f"--output-file={path}",
    ]
    if name == "image":
        command.append(f"--constraint={ROOT / 'requirements' / 'dev.lock'}")
    if name == "oldest":
        command.append("--resolution=lowest-direct")
    subprocess.run([*command, *extra], input="\n".join(lines), text=True, check=True, cwd=ROOT)  # noqa: S603 # nosec B603 # no words of others
    locked = path.read_text().splitlines()
    for number, line in enumerate(locked, 1):
        if ADDRESS.search(line):
            raise SystemExit(f"{path}:{number}: a lock must not hold an address: {line}")
    print(f"requirements/{name}.lock: {sum('==' in line for line in locked)} packages")


if __name__ == "__main__":
    for lock, wanted in requirements().items():
        compile_lock(lock, wanted, sys.argv[1:])
