"""What is measured of the ledger. Labels are currencies of the settings and outcomes of a list."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fangcheng_wallet.store import Commit, Pulse

Outcome = Literal["paid", "short", "replayed", "refused", "failed"]
"""``short``: somebody had too little. ``failed``: the database did; the caller repeats it."""

# Commits take up to `most_commit_items` calls, 200 unless set otherwise.
_ITEMS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class WalletMetrics:
    """The metrics of one process, with the given currencies."""

    def __init__(self, registry: CollectorRegistry, currencies: Iterable[str]) -> None:
        self._settlements = Counter(
            "fangcheng_wallet_settlements_total",
            "Settlements: paid; short, since somebody had too little; replayed, for a repeat; "
            "refused; or failed, as the database did.",
            ("outcome",),
            registry=registry,
        )
        self._reversals = Counter(
            "fangcheng_wallet_reversals_total",
            "Settlements that were taken back.",
            registry=registry,
        )
        self._postings = Counter(
            "fangcheng_wallet_postings_total", "Postings that were committed.", registry=registry
        )
        self._items = Histogram(
            "fangcheng_wallet_commit_items",
            "Calls that one commit took together. Grows where commits are slow.",
            buckets=_ITEMS,
            registry=registry,
        )
        self._seconds = Histogram(
            "fangcheng_wallet_commit_seconds",
            "Time of a commit, from the first statement until it is on disk.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._failed = Counter(
            "fangcheng_wallet_failed_commits_total",
            "Commits that the database refused as a whole; their callers repeat them.",
            registry=registry,
        )
        self._open_holds = Gauge(
            "fangcheng_wallet_open_holds",
            "Holds that are neither released nor expired.",
            registry=registry,
        )
        self._oldest_hold = Gauge(
            "fangcheng_wallet_oldest_hold_age_seconds",
            "Age of the oldest hold that is not over; 0: there is none. Tables keep theirs from "
            "expiring; older than the longest table is one that nobody gives back.",
            registry=registry,
        )
        self._oldest_hold.set_function(self._oldest_hold_seconds)
        self._oldest_hold_us: int | None = None
        self._expired = Counter(
            "fangcheng_wallet_expired_holds_total",
            "Holds that ran out by themselves: whoever placed them never came back for them.",
            registry=registry,
        )
        self._unchained = Gauge(
            "fangcheng_wallet_unchained_operations",
            "Operations that the hash chain has not reached yet. Growing, it is not written any "
            "more.",
            registry=registry,
        )
        self._imbalance = Gauge(
            "fangcheng_wallet_ledger_imbalance",
            "Sum of all accounts of a currency; anything but 0 is a fault of ours: stop and look.",
            ("currency",),
            registry=registry,
        )
        self._currencies = frozenset(currencies)
        self._outcomes = {
            outcome: self._settlements.labels(outcome) for outcome in get_args(Outcome)
        }
        for currency in self._currencies:
            self._imbalance.labels(currency).set(0)

    def settled(self, outcome: Outcome) -> None:
        """A settlement was answered."""
        self._outcomes[outcome].inc()

    def reversed(self) -> None:
        """A settlement was taken back."""
        self._reversals.inc()

    def committed(self, commit: Commit) -> None:
        """A commit ended."""
        self._items.observe(commit.items)
        self._seconds.observe(commit.seconds)
        self._postings.inc(commit.postings)
        self._expired.inc(commit.expired)
        if commit.failed:
            self._failed.inc()

    def saw(self, pulse: Pulse) -> None:
        """The ledger was looked at."""
        self._open_holds.set(pulse.open_holds)
        self._oldest_hold_us = pulse.oldest_hold_us
        self._unchained.set(pulse.unchained)
        for currency in self._currencies:
            self._imbalance.labels(currency).set(pulse.imbalance.get(currency, 0))

    def _oldest_hold_seconds(self) -> float:
        since_us = self._oldest_hold_us
        return 0.0 if since_us is None else max(0.0, time.time() - since_us / 1_000_000)
