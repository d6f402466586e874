"""The tables of the ledger: see ``fangcheng_kit.migrations``."""

from __future__ import annotations

from pathlib import Path

from fangcheng_kit.migrations import Migrations

LEDGER = Migrations(Path(__file__).parent, head="0005", what="a ledger")
