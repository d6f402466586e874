"""The ledger: players, accounts, operations, postings, holds."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    run(__file__)
