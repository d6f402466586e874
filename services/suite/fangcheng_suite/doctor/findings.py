"""What was found: one thing that is as it should be, or is not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "warn", "fail", "skip"]
"""As it should be; works, but not for long or not safely; does not work; was not looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    check: str
    """What was looked at, for programs: the same word in every version."""
    subject: str
    """Of whom: a service, with its address where there are several; `deployment`; `host`."""
    level: Level
    told: str
    """What was seen."""
    means: str = ""
    """What it comes to, where it is not as it should be."""
    cure: str = ""
    """What to do about it."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def fine(check: str, subject: str, told: str) -> Finding:
    """It is as it should be."""
    return Finding(check, subject, "ok", told)


def skipped(check: str, subject: str, told: str, cure: str) -> Finding:
    """It was not looked at; `cure`: how it would be."""
    return Finding(check, subject, "skip", told, cure=cure)


def warns(check: str, subject: str, told: str, means: str, cure: str) -> Finding:
    """It works, and ought to be mended."""
    return Finding(check, subject, "warn", told, means, cure)


def fails(check: str, subject: str, told: str, means: str, cure: str) -> Finding:
    """It does not work."""
    return Finding(check, subject, "fail", told, means, cure)


def is_healthy(findings: list[Finding]) -> bool:
    """Whether nothing has failed."""
    return all(one.level != "fail" for one in findings)
