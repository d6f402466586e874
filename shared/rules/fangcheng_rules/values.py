"""Small values that a hand makes by the hundred: events, commands, what is asked and answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """A dataclass with slots that nobody changes: to the type checker it is frozen.

    At run time nothing guards it. A frozen dataclass sets each field past its own guard, so that
    making one takes three times as long; and a hand of play is little else than making these.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
