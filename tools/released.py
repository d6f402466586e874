"""Hold the contracts against what was released, or release them as they are.

    python tools/released.py [--write]

What clients have built upon must not change under them: no name, number or type of a field, no
call. `buf breaking` compares the contracts with the image of the newest release of this major
version, and the journal of the table service with what its rows are written in, where only the
bytes count. Adding to them is allowed; --write takes up what was added, once nothing is broken.
"""

from __future__ import annotations

import subprocess  # nosec B404 # for our own commands alone
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
BUF = Path(sys.executable).parent / "buf"
RELEASED = {
    "protos": TOP / "protos/released/v1.binpb",
    "services/table": TOP / "services/table/released/v1.binpb",
}
"""The image of each module of buf.yaml that others depend on."""


def buf(*arguments: str | Path) -> bool:
    """Whether buf is content; it prints what it is not content with, by file and line."""
    return subprocess.run([BUF, *arguments], cwd=TOP, check=False).returncode == 0  # noqa: S603 # nosec B603 # no words of others


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
    elif len(modules) < len(RELEASED):
        raise SystemExit("an image is missing; write it with: make released")


if __name__ == "__main__":
    main()
