"""The parts of the console, one line each."""

from __future__ import annotations

from . import hands, links, logbook, operate, replay, signing_in
from .web import Feature

FEATURES: tuple[Feature, ...] = (
    signing_in.feature,
    replay.feature,
    hands.feature,
    links.feature,
    operate.feature,
    logbook.feature,
)
