"""What the tables of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from fangcheng_kit.tracing import OFF, Tracing

from .clocks import Patience
from .evaluator import Evaluator
from .gameclock import GameClock
from .metrics import TableMetrics
from .outbox import Outbox
from .store import Journal


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the tables of a process share."""

    journal: Journal
    evaluator: Evaluator
    outbox: Outbox
    metrics: TableMetrics
    log: Any
    patience: Patience
    clock: GameClock
    most_kept: int
    """Events of a viewer that are kept in memory at most."""
    storing: Callable[[bool], None]
    """Told whether the journal takes what it is given."""
    finished: Callable[[], None]
    """Told when a hand was finished, and can be found in the journal."""
    stopping: asyncio.Event
    """The service is being stopped."""
    phrases: Collection[str] = ()
    """Ids of the phrases that seats may say."""
    tracing: Tracing = OFF
