"""Whose personal data was erased; reasons of operators' actions may be."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table, and let reasons go."""
    run(__file__)
