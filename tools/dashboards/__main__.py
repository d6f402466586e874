"""Render the dashboards into deploy/grafana/ and their page, or check that they are fresh.

python -m tools.dashboards [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path

from . import evaluation, matchmaking, overview, runtime, tables, wallet
from .grafana import rendered
from .page import page

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "grafana" / "dashboards"
PAGE = ROOT / "docs" / "operations" / "dashboards.md"
BOARDS = tuple(
    module.BOARD for module in (overview, tables, evaluation, wallet, matchmaking, runtime)
)


def main(check: bool) -> None:
    """Write what has changed, or with ``check`` fail where there is something."""
    by_uid = {board.uid: board for board in BOARDS}
    wanted = {
        FOLDER / f"{board.uid.removeprefix('fangcheng-')}.json": rendered(board, by_uid)
        for board in BOARDS
    }
    wanted[PAGE] = page(BOARDS)
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    left = [path for path in FOLDER.glob("*.json") if path not in wanted]
    if check and (stale or left):
        names = ", ".join(str(path.relative_to(ROOT)) for path in (*stale, *left))
        raise SystemExit(f"not what tools/dashboards makes: {names}; run `make dashboards`")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in left:
        path.unlink()
    for path in stale:
        path.write_text(wanted[path])


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
