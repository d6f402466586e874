"""Settings of the matchmaking service, from FANGCHENG_MATCHMAKING_*."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from fangcheng_kit import Settings
from fangcheng_kit.settings import Database


class MatchmakingSettings(Settings):
    """See `fangcheng_kit.settings.Settings` for what all services have."""

    max_message_bytes: int = Field(
        default=128 * 1024,
        ge=1024,
        description=(
            "Largest message taken, in bytes. A request within its bounds has 17 KiB at most: "
            "that which opens a room."
        ),
    )
    database: Database = Field(
        "matchmaking.db",
        description="SQLite file of tickets and matches, made if missing; or, for several "
        "replicas, a PostgreSQL database, `postgresql://user:password@host/name`.",
    )
    table: str = Field(
        "127.0.0.1:7101", min_length=1, description="Where the table service listens."
    )
    wallet: str = Field(
        "127.0.0.1:7102",
        min_length=1,
        description="Where the wallet listens, or a studio's own SettlementService.",
    )
    evaluation: str = Field(
        "127.0.0.1:7110",
        min_length=1,
        description="Target of the evaluation service, all its replicas; it is asked whether it "
        "plays the pools' rule sets.",
    )
    admission: str = Field(
        "",
        description="Target of the studio's own AdmissionService, which says who may play now; "
        "without it everybody may.",
    )
    admission_timeout_seconds: float = Field(
        0.3, gt=0, le=60, description="How long an answer of the AdmissionService is waited for."
    )
    admission_when_silent: Literal["allow", "deny"] = Field(
        "allow", description="What it counts as when the AdmissionService does not answer in time."
    )
    pools: Path | None = Field(
        None,
        description="YAML file of the pools, read anew at SIGHUP; without it those that come with "
        "the service.",
    )
    table_check_seconds: float = Field(
        3.0, gt=0, le=600, description="How often assigned tables are asked whether they closed."
    )
    longest_backoff_seconds: float = Field(
        5.0,
        gt=0,
        le=600,
        description="Longest pause before a step that had no answer is repeated.",
    )
    room_minutes: float = Field(
        60.0, gt=0, le=10_080, description="How long a private room is open without a start."
    )
    wrong_codes_per_minute: int = Field(
        240,
        ge=20,
        description="How many codes of private rooms all players together may get wrong within a "
        "minute at one replica, those of one gateway half as many; then all wait. One player: 10.",
    )
    calendar_offset_minutes: int = Field(
        480,
        ge=-840,
        le=840,
        description="Distance from UTC of the days on which losses are capped "
        "(`loss_cap_per_day`).",
    )
    keep_days: float = Field(
        7.0,
        gt=0,
        description="How long tickets and rooms that have ended are kept for repeated requests.",
    )
