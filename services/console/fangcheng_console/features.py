"""The parts of the console, one line each."""

from __future__ import annotations

from . import hands, links, logbook, operate, overview, replay, signing_in, table, trying, wallet
from .web import Feature

FEATURES: tuple[Feature, ...] = (
    signing_in.feature,
    replay.feature,
    hands.feature,
    links.feature,
    table.feature,
    overview.feature,
    trying.feature,
    wallet.feature,
    operate.feature,
    logbook.feature,
)
