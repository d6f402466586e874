"""Settings of the wallet, from FANGCHENG_WALLET_*."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from fangcheng_kit import Settings
from fangcheng_kit.settings import Database, is_postgres


class WalletSettings(Settings):
    """See ``fangcheng_kit.settings.Settings`` for what all services have."""

    max_message_bytes: int = Field(
        default=1024 * 1024,
        ge=1024,
        description=("Largest message taken, in bytes: 200 settlements fit, of 5 KiB each."),
    )
    database: Database = Field(
        default="wallet.db",
        description=(
            "The ledger: an SQLite file, made if missing, or the address of a PostgreSQL database, "
            "`postgresql://user:password@host/name`."
        ),
    )
    currencies: Path | None = Field(
        default=None,
        description=(
            "YAML or JSON file of the currencies; without it `silver` (never below 0) and `points` "
            "(in books, no floor)."
        ),
    )
    hold_seconds: int = Field(
        default=86_400,
        ge=1,
        le=2_592_000,
        description="How long a hold lives that was placed without a lifetime.",
    )
    calendar_offset_minutes: int = Field(
        default=480,
        ge=-840,
        le=840,
        description="Distance from UTC of the days, weeks and months of leaderboards.",
    )
    most_commit_items: int = Field(
        default=200, ge=1, le=10_000, description="How many calls one commit takes at most."
    )
    pulse_seconds: float = Field(
        default=5.0,
        gt=0,
        le=3_600,
        description="How often sums and holds are looked at for the metrics.",
    )
    stream_pause_seconds: float = Field(
        default=0.25,
        gt=0,
        le=60,
        description="How long a stream of entries waits before it looks for new ones.",
    )

    @property
    def is_postgres(self) -> bool:
        """The database is a PostgreSQL server's, not a file."""
        return is_postgres(self.database)
