"""The parts of the console, one line each."""

from __future__ import annotations

from . import logbook, operate, signing_in
from .web import Feature

FEATURES: tuple[Feature, ...] = (
    signing_in.feature,
    operate.feature,
    logbook.feature,
)
