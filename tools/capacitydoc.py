"""Render docs/operations/capacity.md from the plans of `fangcheng capacity`, or check it.

    python tools/capacitydoc.py [--check]

What is written by hand stands in `capacity.md` beside this file. With --check nothing is written;
the exit code is 1 where the page is not what the plans make it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fangcheng_suite.capacity import report
from fangcheng_suite.capacity.figures import costs, figures
from fangcheng_suite.capacity.model import Assumptions, plan_for
from fangcheng_suite.capacity.prices import load_prices

PAGE = Path(__file__).parent.parent / "docs" / "operations" / "capacity.md"
EXAMPLE = PAGE.with_name("prices.example.yaml")
WRITTEN = Path(__file__).with_name("capacity.md")
PLAYERS = (10_000, 100_000, 10_000_000)


def rendered() -> str:
    """The page."""
    given, measured = Assumptions(), costs()
    priced = report.sections(plan_for(PLAYERS[0], given, measured), measured, load_prices(EXAMPLE))
    parts = {
        "plans": "\n".join(_plan(players) for players in PLAYERS),
        "example": EXAMPLE.read_text("utf-8"),
        "costs": _section(priced[-1]),
        "assumed": _table(report.assumed(given)),
        "measured": _table(report.measured(figures())),
    }
    page = WRITTEN.read_text("utf-8")
    for name, part in parts.items():
        page = page.replace(f"{{{{ {name} }}}}", part)
    return page


def _plan(players: int) -> str:
    measured = costs()
    plan = plan_for(players, Assumptions(), measured)
    parts = [f"## {report.heading(plan)}\n"]
    if caution := report.caution(plan):
        parts.append(f"**{caution}**\n")
    return "\n".join([*parts, *map(_section, report.sections(plan, measured))])


def _section(section: report.Section) -> str:
    note = f"\n{section.note}\n" if section.note else ""
    return f"**{section.title}**\n\n{_table(section)}{note}"


def _table(section: report.Section) -> str:
    lines = [section.columns, tuple("---" for _ in section.columns), *section.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    if not parser.parse_args().check:
        PAGE.write_text(rendered(), "utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text("utf-8") == rendered():
        return 0
    print(f"{PAGE.name} is not what the plans make it: run `make docs`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
