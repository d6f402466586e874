"""The parts of the console, one line each."""

from __future__ import annotations

from . import (
    logbook,
    operate,
    signing_in,
    table,
)
from .web import Feature

FEATURES: tuple[Feature, ...] = (
    signing_in.feature,
    table.feature,
    operate.feature,
    logbook.feature,
)
