"""Texts and labels about a person may be taken out of operations; the chain says of which."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table, and let only what is in it change."""
    run(__file__)
