"""The journal: tables, events, finished hands, what operators did, who plays what."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    run(__file__)
