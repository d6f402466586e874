"""What a check is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .trial import Trial


class Run(Protocol):
    """Raises ``trial.Broken`` where the promise is not kept."""

    __name__: str

    async def __call__(self, trial: Trial) -> None:
        """Run the check."""


@dataclass(frozen=True, slots=True)
class Check:
    """A promise, and what tells whether it is kept."""

    name: str
    promise: str
    run: Run


class Checks:
    """Collects the checks of a module in the order in which they are written."""

    def __init__(self) -> None:
        self.all: list[Check] = []

    def __call__(self, run: Run) -> Run:
        """Make a check of a function: its name and its docstring, the promise."""
        self.all.append(Check(run.__name__.replace("_", "-"), run.__doc__ or "", run))
        return run
