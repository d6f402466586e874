"""The currencies, read from a YAML or JSON file and checked before the service starts."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from fangcheng_kit.settings import complaints
from fangcheng_wallet.ledger import LARGEST, Currency

_Language = Annotated[str, Field(min_length=1, max_length=16)]
_Name = Annotated[str, Field(min_length=1, max_length=64)]


class BadCurrencies(Exception):
    """The file does not make usable currencies; the message names each key at fault."""


class _Currency(BaseModel):
    """See ``ledger.Currency``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Annotated[str, Field(min_length=1, max_length=64)]
    books: bool = False
    floor: Annotated[int, Field(ge=-LARGEST, le=0)] | None = 0
    most: Annotated[int, Field(ge=1, le=LARGEST)] = LARGEST
    minor_digits: Annotated[int, Field(ge=0, le=15)] = 0
    names: dict[_Language, _Name] = Field(default_factory=dict, max_length=16)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    currencies: list[_Currency] = Field(min_length=1, max_length=256)

    @field_validator("currencies")
    @classmethod
    def _distinct(cls, currencies: list[_Currency]) -> list[_Currency]:
        ids = [currency.id for currency in currencies]
        for one in ids:
            if ids.count(one) > 1:
                raise ValueError(f"the currency {one} is listed twice")
        return currencies


def load_currencies(path: Path | None = None) -> tuple[Currency, ...]:
    """The currencies of a file, in its order; without a path those that come with the service.

    Raises BadCurrencies.
    """
    try:
        if path is None:
            text = files(__package__).joinpath("currencies.yaml").read_text("utf-8")
        else:
            text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadCurrencies(f"{path}: cannot be read: {error}") from None
    return parse_currencies(text, str(path or "currencies.yaml"))


def parse_currencies(text: str, name: str = "currencies") -> tuple[Currency, ...]:
    """The currencies of a YAML text, in its order; `name` stands in what BadCurrencies says."""
    try:
        # JSON is YAML.
        parsed = _File.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise BadCurrencies(f"{name}: not YAML: {error}") from None
    except ValidationError as error:
        raise BadCurrencies("\n".join(complaints(error, name))) from None
    return tuple(Currency(**one.model_dump()) for one in parsed.currencies)
