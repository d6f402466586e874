"""The verb with which operators settle what players owe."""

from __future__ import annotations

from fangcheng_kit.migrations import run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Let operations have it."""
    run(__file__)
