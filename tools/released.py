"""Hold the contracts against what was released, or release them as they are.

    python tools/released.py [--write]

What clients have built upon must not change under them: no name, number or type of a field, no
call. `buf breaking` compares the contracts with the image of the newest release of this major
version, and the journal of the table service with what its rows are written in, where only the
bytes count. Adding to them is allowed; --write takes up what was added, once nothing is broken, and
keeps the image of that day's release for six months: stubs made of it are played in the tests.
"""

from __future__ import annotations

import shutil
import subprocess  # nosec B404 # for our own commands alone
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
BUF = Path(sys.executable).parent / "buf"
RELEASED = {
    "protos": TOP / "protos/released/v1.binpb",
    "services/table": TOP / "services/table/released/v1.binpb",
}
"""The image of each module of buf.yaml that others depend on."""
KEPT = TOP / "protos/released/v1"
"""The image of each release of the last six months, named after its day."""
SUPPORTED = timedelta(days=184)


def buf(*arguments: str | Path) -> bool:
    """Whether buf is content; it prints what it is not content with, by file and line."""
    return subprocess.run([BUF, *arguments], cwd=TOP, check=False).returncode == 0  # noqa: S603 # nosec B603 # no words of others


def keep(image: Path, today: date) -> None:
    """Keep what is released today, and no more what is older than six months."""
    KEPT.mkdir(exist_ok=True)
    shutil.copyfile(image, KEPT / f"{today}.binpb")
    for kept in KEPT.glob("*.binpb"):
        if date.fromisoformat(kept.stem) < today - SUPPORTED:
            kept.unlink()


def main() -> None:
    """Exit with 1 where a contract would break."""
    modules = [module for module, image in RELEASED.items() if image.exists()]
    broken = [
        module for module in modules if not buf("breaking", module, "--against", RELEASED[module])
    ]
    if broken:
        raise SystemExit(
            f"{', '.join(broken)}: the lines above change what is released. Add a field or a call "
            "instead, and mark the old one deprecated; what must change goes into a v2 package."
        )
    if sys.argv[1:] == ["--write"]:
        for module, image in RELEASED.items():
            image.parent.mkdir(exist_ok=True)
            if not buf("build", module, "--exclude-source-info", "--output", image):
                raise SystemExit(f"{module}: buf cannot build it")
        keep(RELEASED["protos"], datetime.now(UTC).date())
    elif len(modules) < len(RELEASED):
        raise SystemExit("an image is missing; write it with: make released")


if __name__ == "__main__":
    main()
