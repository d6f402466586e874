"""Which version of the table service an owner is of."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column."""
    run(__file__)
