"""The tables of the journal: see `fangcheng_kit.migrations`."""

from __future__ import annotations

from pathlib import Path

from fangcheng_kit.migrations import Migrations

JOURNAL = Migrations(Path(__file__).parent, head="0004", what="a journal of tables")
