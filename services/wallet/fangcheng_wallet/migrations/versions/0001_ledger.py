"""The ledger: players, accounts, operations, postings, holds."""

from __future__ import annotations

from alembic import op

from fangcheng_wallet.migrations import statements

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    connection = op.get_bind()
    for statement in statements(connection.dialect.name, "0001_ledger"):
        connection.exec_driver_sql(statement)
