"""The parts of the console, one line each."""

from __future__ import annotations

from . import (
    logbook,
    operate,
    overview,
    signing_in,
    table,
    trying,
    wallet,
)
from .web import Feature

FEATURES: tuple[Feature, ...] = (
    signing_in.feature,
    table.feature,
    overview.feature,
    trying.feature,
    wallet.feature,
    operate.feature,
    logbook.feature,
)
