"""What things cost, from a file of the studio's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fangcheng_kit.settings import complaints
from fangcheng_suite.errors import SuiteError, cannot

from .model import HOURS_OF_A_DAY, Plan

GIB = 2**30
DAYS_OF_A_MONTH = 30

_Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Prices(BaseModel):
    """Prices without tax, all in one currency."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: Annotated[str, Field(min_length=1, max_length=16)]
    core_hour: _Price
    """Of a core of a service, with the memory of `gib_per_core`."""
    gib_per_core: Annotated[float, Field(gt=0, le=1e4)]
    """Memory that comes with a core; what a service needs beyond it is paid as `gib_hour`."""
    gib_hour: _Price
    database_core_hour: _Price
    """Of a core of PostgreSQL, with its memory."""
    storage_gib_month: _Price
    """Of the databases, once for the primary and once for its standby."""
    network_gib: _Price
    """Sent to players."""
    kept_days: Annotated[float, Field(gt=0, le=36_500)]
    """How long journal and ledger stay in the database before they are archived."""


_EXAMPLE = "Begin with a copy of docs/operations/prices.example.yaml."


def load_prices(path: Path) -> Prices:
    """Read the file; raises SuiteError, which names each key at fault."""
    try:
        parsed = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise cannot("read", path, error) from None
    except (yaml.YAMLError, ValueError) as error:  # a date that there is not, or no UTF-8
        raise SuiteError(f"{path}: not YAML: {error}", _EXAMPLE) from None
    except RecursionError:
        raise SuiteError(f"{path}: too deeply nested to be prices", _EXAMPLE) from None
    try:
        return Prices.model_validate(parsed)
    except ValidationError as error:
        first, *others = complaints(error, str(path))
        raise SuiteError(
            first, "docs/operations/capacity.md tells what belongs into it.", tuple(others)
        ) from None


def costs_a_month(plan: Plan, prices: Prices) -> dict[str, float]:
    """By what is paid for, in thirty days; replicas as many as at the busiest time."""
    hours = DAYS_OF_A_MONTH * HOURS_OF_A_DAY
    replicas = sum(service.replicas for service in plan.services)
    beyond = sum(
        max(0.0, service.memory_bytes / GIB - service.replicas * prices.gib_per_core)
        for service in plan.services
    )
    kept = prices.kept_days * plan.growth_bytes_per_day / GIB
    return {
        "cores of services": hours * replicas * prices.core_hour,
        "memory beyond": hours * beyond * prices.gib_hour,
        "cores of PostgreSQL": hours * 2 * plan.database_cores * prices.database_core_hour,
        "storage": 2 * kept * prices.storage_gib_month,
        "network": DAYS_OF_A_MONTH * plan.network_bytes_per_day / GIB * prices.network_gib,
    }
