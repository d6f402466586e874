"""Tickets, matches, and who keeps apart from whom."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    run(__file__)
