"""What operators have done, and what came of it."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table."""
    run(__file__)
