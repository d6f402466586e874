"""Look up every package of the lock files among the known vulnerabilities.

    python -m tools.audit [--locks FOLDER] [OPTION OF PIP-AUDIT ...]

What is locked for another Python or system counts as well. Ends with 0 where each package was
looked up and nothing is known of any, otherwise with 1: pip-audit by itself calls it a success when
the service has never heard of a package, or of all, as an index of one's own may not have. PyPI's
service is asked; `--vulnerability-service osv` asks that of OSV, and `--ignore-vuln ID` leaves out
what was looked into and does not touch us.
"""

from __future__ import annotations

import json
import subprocess  # nosec B404 # for our own commands alone
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tools.locks import pins

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("--format=json", "--require-hashes", "--disable-pip", "--progress-spinner=off")


class NotAsked(Exception):
    """The service could not be asked, or its answer not be read."""


def rounds(locked: Iterable[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """As few lists as will do with no name in two versions, which pip-audit would refuse."""
    lists: list[dict[str, str]] = []
    for name, version in locked:
        for one in lists:
            if one.setdefault(name, version) == version:
                break
        else:
            lists.append({name: version})
    return [list(one.items()) for one in lists]


def asked(lines: Sequence[str], options: Sequence[str]) -> list[dict[str, Any]]:
    """What pip-audit says of each of these requirements."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(lines))
        file.flush()
        program = str(Path(sys.executable).with_name("pip-audit"))
        command = [program, *COMMAND, *options, f"--requirement={file.name}"]
        done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603 # nosec B603 # options are the caller's own
    try:
        answer: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines() or ["pip-audit said nothing"]
        raise NotAsked(said[-1]) from None
    return answer


def main() -> int:
    """Ask, print what was found by package, and tell how it went."""
    parser = ArgumentParser(description="Further options are pip-audit's.")
    parser.add_argument("--locks", type=Path, default=ROOT / "requirements", metavar="FOLDER")
    arguments, options = parser.parse_known_args()
    hashes: dict[tuple[str, str], list[str]] = {}
    locks: dict[tuple[str, str], list[str]] = {}
    for lock in sorted(arguments.locks.glob("*.lock")):
        for pin, files in pins(lock).items():
            hashes[pin] = files
            locks.setdefault(pin, []).append(lock.stem)
    if not locks:
        parser.error(f"{arguments.locks} has no locks")
    answers: list[dict[str, Any]] = []
    for one in rounds(hashes):
        lines = ["==".join(pin) + f" --hash=sha256:{hashes[pin][0]}" for pin in one]
        try:
            answers += asked(lines, options)
        except NotAsked as problem:
            print(f"audit: the service could not be asked: {problem}", file=sys.stderr)
            return 1
    told = {(one["name"], one["version"]): one["vulns"] for one in answers if "vulns" in one}
    vulnerable = 0
    for (name, version), within in locks.items():
        for vuln in told.get((name, version), ()):
            vulnerable += 1
            mended = ", ".join(vuln["fix_versions"]) or "no version"
            ids = ", ".join([vuln["id"], *vuln["aliases"]])
            where = ", ".join(within)
            print(f"{name} {version} ({where}): {ids}; mended in {mended}", file=sys.stderr)
    skipped = [one for one in answers if "skip_reason" in one]
    unknown = len(locks) - len(told)
    if unknown:
        reason = f", such as: {skipped[0]['skip_reason']}" if skipped else ""
        print(f"audit: {unknown} of {len(locks)} packages not looked up{reason}", file=sys.stderr)
    if vulnerable:
        print(f"audit: {vulnerable} known vulnerabilities", file=sys.stderr)
    if not (unknown or vulnerable):
        print(f"audit: {len(locks)} packages, no known vulnerability")
    return int(bool(unknown or vulnerable))


if __name__ == "__main__":
    sys.exit(main())
