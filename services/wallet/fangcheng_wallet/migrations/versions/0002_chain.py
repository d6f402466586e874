"""The chain of hashes; on PostgreSQL archives of past months too."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    run(__file__)
