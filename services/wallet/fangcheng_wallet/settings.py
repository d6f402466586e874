"""Settings of the wallet, from FANGCHENG_WALLET_*."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fangcheng_kit import Settings
from fangcheng_wallet.ledger import DEFAULT_CURRENCIES, LARGEST, Currency


class CurrencySetting(BaseModel):
    """A currency as it is written in the settings; see ``ledger.Currency``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(min_length=1, max_length=64)]
    books: bool = False
    floor: Annotated[int, Field(ge=-LARGEST, le=0)] | None = 0
    most: Annotated[int, Field(ge=1, le=LARGEST)] = LARGEST

    def currency(self) -> Currency:
        """The currency of the ledger."""
        return Currency(self.id, self.books, self.floor, self.most)


_DEFAULT = tuple(
    CurrencySetting(id=one.id, books=one.books, floor=one.floor, most=one.most)
    for one in DEFAULT_CURRENCIES
)


class WalletSettings(Settings):
    """See ``fangcheng_kit.settings.Settings`` for what all services have."""

    database: Path = Field(
        default=Path("wallet.db"), description="SQLite file of the ledger; made if missing."
    )
    currencies: tuple[CurrencySetting, ...] = Field(
        default=_DEFAULT,
        min_length=1,
        description=(
            "JSON list of currencies: `id`, `books` (balances per book), `floor` (least balance of "
            "a player, 0 or less, null for none) and `most` (largest amount)."
        ),
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

    @field_validator("currencies")
    @classmethod
    def _distinct(cls, currencies: tuple[CurrencySetting, ...]) -> tuple[CurrencySetting, ...]:
        ids = [currency.id for currency in currencies]
        if len(set(ids)) < len(ids):
            raise ValueError("a currency is listed twice")
        return currencies
