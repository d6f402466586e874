"""Where Alembic begins; see `fangcheng_kit.migrations`."""
