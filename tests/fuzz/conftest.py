"""What `make fuzz` prints first: enough to repeat it."""

from __future__ import annotations

from tests.fuzz.shares import INPUTS, PERCENT, SEED, share


def pytest_report_header() -> list[str]:
    shares = ", ".join(f"{target} {share(target):,}" for target in PERCENT)
    return [f"fuzz: {INPUTS:,} inputs, SEED={SEED} ({shares})"]
