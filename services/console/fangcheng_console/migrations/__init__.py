"""The table of the operator log: see `fangcheng_kit.migrations`."""

from __future__ import annotations

from pathlib import Path

from fangcheng_kit.migrations import Migrations

LOG = Migrations(Path(__file__).parent, head="0001", what="an operator log")
"""What operators have done with the console, and what came of it."""
