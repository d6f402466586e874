"""Whose wallet it is: a person's, or a bot's, which the house funds."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the column."""
    run(__file__)
