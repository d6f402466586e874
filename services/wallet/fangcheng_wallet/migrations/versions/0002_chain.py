"""The chain of hashes; on PostgreSQL archives of past months too."""

from __future__ import annotations

from alembic import op

from fangcheng_wallet.migrations import statements

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    connection = op.get_bind()
    for statement in statements(connection.dialect.name, "0002_chain"):
        connection.exec_driver_sql(statement)
