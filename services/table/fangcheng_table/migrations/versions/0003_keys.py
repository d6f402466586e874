"""With which keys the journal is sealed."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table."""
    run(__file__)
