"""The parts of the console, one line each."""

from __future__ import annotations

from . import signing_in, trying, wallet
from .web import Feature

FEATURES: tuple[Feature, ...] = (
    signing_in.feature,
    trying.feature,
    wallet.feature,
)
