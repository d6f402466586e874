"""What the benchmarks share: the machine, medians of five, lines with their ratio, files of them.

A figure says little without the reference beside it, run on the same machine in the same minutes;
so every line that has a reference prints the ratio, and the goal where there is one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROUNDS = 5
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, and what it is held against."""

    group: str
    """The heading that it stands under."""
    what: str
    per_second: float
    unit: str = "hands"
    """What there are so many of in a second."""
    reference: str = ""
    """Name of what it is held against; '': nothing."""
    reference_per_second: float | None = None
    goal: float | None = None
    """The least ratio that is promised."""
    note: str = ""
    """A further figure, such as CPU time."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """Figures for a chart, by name."""
    rate: bool = True
    """`per_second` is one; else it is what it is, in `unit`."""

    @property
    def ratio(self) -> float | None:
        """How many times the reference."""
        if self.reference_per_second is None:
            return None
        return self.per_second / self.reference_per_second

    def __str__(self) -> str:
        text = f"  {self.what:46} {self.per_second:12,.0f} {self.unit}{'/s' if self.rate else ''}"
        if self.ratio is not None:
            text += f"  {self.ratio:7.2f} × {self.reference}"
        if self.goal is not None and self.ratio is not None:
            text += f"  (goal {self.goal:g}: {'met' if self.ratio >= self.goal else 'MISSED'})"
        return f"{text}  {self.note}".rstrip()


class Lines:
    """The lines of a benchmark: each printed when it is known, all kept at the end."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines: list[Line] = []
        self._load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None

    def add(self, line: Line) -> None:
        """Print a line, below its heading."""
        if not self._lines or self._lines[-1].group != line.group:
            print(line.group, flush=True)
        self._lines.append(line)
        print(line, flush=True)

    def save(self) -> None:
        """Keep them for `report.py`."""
        RESULTS.mkdir(exist_ok=True)
        kept = {
            "machine": machine(),
            "load": self._load,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "lines": [dataclasses.asdict(line) for line in self._lines],
        }
        path = RESULTS / f"{self._name}.json"
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def median_rate(work: Callable[[], object], items: int) -> float:
    """Items a second, the median of five rounds after one that does not count."""
    work()
    took = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
    return items / statistics.median(took)


def cores() -> list[int]:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin(*chosen: int) -> None:
    """Keep this process, and those that it starts, to these cores; where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, chosen)


def machine() -> str:
    """Cores and processor, for a reader to judge the figures by."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip()
            for line in info.read_text("utf-8").splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    count = os.cpu_count() or 1
    python = f"Python {platform.python_version()}"
    return f"{count} core{'s' if count > 1 else ''}, {model}, {platform.system()}, {python}"
