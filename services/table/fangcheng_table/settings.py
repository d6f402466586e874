"""Settings of the table service, from the environment: `FANGCHENG_TABLE_*`."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from fangcheng_kit import Settings
from fangcheng_kit.settings import Database, is_loopback, split_address

from .sealing import JournalKeys


class TableSettings(Settings):
    """Settings of the table service."""

    max_message_bytes: int = Field(
        default=128 * 1024,
        ge=1024,
        description=(
            "Largest message taken, in bytes. A request within its bounds has 43 KiB at most: "
            "that which creates a table."
        ),
    )
    database: Database = Field(
        default="table.db",
        description=(
            "The journal: an SQLite file, made if missing, or the address of a PostgreSQL "
            "database, `postgresql://user:password@host/name`, which any number of table services "
            "share."
        ),
    )
    dangerously_with_plain_journal: bool = Field(
        default=False,
        description=(
            "Listen beyond this host without `JOURNAL_KEYS`: whoever reads the database, a log of "
            "it or a backup sees the hands that are being played."
        ),
    )
    journal_keys: str = Field(
        default="",
        repr=False,
        validate_default=True,
        description=(
            "Keys of 32 bytes, `id:base64,older:base64`, with which all that the journal keeps of "
            "hands is sealed: the first seals, all open. `fangcheng journal new-key` makes one. "
            "Needed beyond this host."
        ),
    )
    evaluation: str = Field(
        "127.0.0.1:7110", description="Target of the evaluation service, all its replicas."
    )
    wallet: str = Field(
        "127.0.0.1:7102", description="Target of the settlement service: ours or the studio's."
    )
    advertised: str = Field(
        "",
        validate_default=True,
        description=(
            "`host:port` under which players and the other replicas reach this process; empty: "
            "where it listens."
        ),
    )
    version: str = Field(
        "",
        max_length=64,
        pattern=r"^(\d{1,9}(\.\d{1,9})*)?$",
        description=(
            "Whole numbers with dots between, such as 0.1.0.7: new tables open on the highest that "
            "is there. Raise it with what you roll out; empty: the installed package's."
        ),
    )
    heartbeat_seconds: float = Field(
        10.0, gt=0, le=600, description="Silence after which a stream is sent a heartbeat."
    )
    seats_per_stream: int = Field(
        10_000, ge=1, description="Seats that one stream of AttendMany may have."
    )
    summary_seconds: float = Field(
        1.0, ge=0.01, le=60, description="How often WatchTables tells what has changed, at most."
    )
    trouble_seconds: float = Field(
        10.0,
        gt=0,
        le=3_600,
        description="How long a table may wait for an evaluator or the wallet, or do nothing though"
        " something is due, before operators are told of it in WatchTables.",
    )
    phrases: str = Field(
        "hello thanks well_played hurry sorry lucky again goodbye",
        description="Ids of the phrases that seats may say to each other, with spaces between.",
    )
    start_grace_seconds: float = Field(
        5.0,
        ge=0,
        le=600,
        description="How long a new table waits, from the first seat that is attended, for the "
        "others before it begins without them.",
    )
    linger_seconds: float = Field(
        2.0,
        ge=0,
        le=60,
        description="How long a seat may be without a stream before it counts as disconnected.",
    )
    resume_grace_seconds: float = Field(
        10.0, ge=0, le=600, description="The same after a start of this service."
    )
    lease_seconds: float = Field(
        3.0,
        ge=0.5,
        le=600,
        description=(
            "How long other table services wait for one that says nothing before they take its "
            "tables over. Half as long without running counts against no player."
        ),
    )
    most_behind_events: int = Field(
        1_000,
        ge=1,
        description="Events that a stream may fall behind before it is closed (READER_TOO_SLOW);"
        " of each viewer no more are kept in memory.",
    )
    archived_tables: int = Field(
        64, ge=1, description="Closed tables kept in memory; others are read from the journal."
    )
    park_seconds: float = Field(
        60.0,
        gt=0,
        description="Pause before a settlement that the wallet has refused is offered again.",
    )
    hold_seconds: int = Field(
        86_400,
        ge=2,
        le=2_592_000,
        description="Lifetime that a table gives its holds; it is renewed at half of it.",
    )

    @field_validator("journal_keys")
    @classmethod
    def _are_keys(cls, journal_keys: str, info: ValidationInfo) -> str:
        told = info.data
        is_plain = not JournalKeys.parse(journal_keys)
        beyond = not is_loopback(told.get("listen", "127.0.0.1:0"))
        if is_plain and beyond and not told.get("dangerously_with_plain_journal"):
            raise ValueError(
                "beyond this host the journal is sealed: set a key, such as `fangcheng journal "
                "new-key 2026-01` prints, and keep it where no backup of the database is; or set "
                "DANGEROUSLY_WITH_PLAIN_JOURNAL where nobody else reads the database"
            )
        return journal_keys

    @property
    def sealing(self) -> JournalKeys:
        """What the journal is sealed with."""
        return JournalKeys.parse(self.journal_keys)

    @field_validator("advertised")
    @classmethod
    def _is_an_address(cls, advertised: str, info: ValidationInfo) -> str:
        """Every address of this host is none that others could be told."""
        if advertised:
            split_address(advertised)
            return advertised
        host, _ = split_address(info.data.get("listen", "127.0.0.1:0"))
        if host in ("0.0.0.0", "::"):  # noqa: S104 # nosec B104 # looked for, not listened on
            raise ValueError("it must be set where the service listens on all addresses of a host")
        return advertised
