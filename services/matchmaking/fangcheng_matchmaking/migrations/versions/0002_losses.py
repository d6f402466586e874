"""What players have lost on a day."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    run(__file__)
