"""The parts of the console, one line each."""

from __future__ import annotations

from . import signing_in, table
from .web import Feature

FEATURES: tuple[Feature, ...] = (
    signing_in.feature,
    table.feature,
)
