"""Run by Alembic: the connection is in the attributes of the configuration."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
