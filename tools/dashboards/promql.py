"""Pieces of PromQL that many panels share.

No panel stays empty. Processes tell all their series from the start, at 0; what there still can be
nothing of, a percentile or a share of nothing and calls that failed, is 0 as long as a process is
there to say so. Where none is scraped there is nothing, for 0 would be a lie then.
"""

from __future__ import annotations

from .board import Query

MATCHMAKING, TABLE, WALLET, EVALUATION = (
    f'fangcheng_build_info{{service="{name}"}}'
    for name in ("matchmaking", "table", "wallet", "evaluation")
)
"""Is there where a process of the service is scraped."""

SERVICES = 'job=~"matchmaking|table|wallet|evaluation|console"'
"""What `deploy/prometheus` calls our processes."""

FAILED = 'grpc_code=~"INTERNAL|UNKNOWN|DATA_LOSS|UNAVAILABLE|DEADLINE_EXCEEDED"'
"""Statuses that tell of a fault of ours, or of what is below us; others are the caller's."""


def or_else(value: float, query: str, there: str, **labels: str) -> str:
    """What the query finds, and where that is nothing, a value with these labels.

    `there` are series that are only there where somebody is who could have counted.
    """
    otherwise = f"{value:g} * max({there})"
    for label, text in labels.items():
        otherwise = f'label_replace({otherwise}, "{label}", "{text}", "", "")'
    return f"{query} or on() {otherwise}"


def or_zero(query: str, there: str, **labels: str) -> str:
    """What the query finds, and where that is nothing, 0 with these labels."""
    return or_else(0, query, there, **labels)


def rate(series: str, by: str = "") -> str:
    """How much a counter grows a second, summed up."""
    grouped = f" by ({by}) " if by else ""
    return f"sum{grouped}(rate({series}[$__rate_interval]))"


def percentile(share: float, buckets: str, there: str, **by: str) -> str:
    """A percentile of a histogram, by labels; each with what stands there where nothing came."""
    found = f"histogram_quantile({share:g}, {rate(buckets, ', '.join(['le', *by]))}) >= 0"
    return or_zero(found, there, **by)


def percentiles(buckets: str, there: str) -> tuple[Query, ...]:
    """The usual one and the slow one."""
    return (
        Query(percentile(0.5, buckets, there), "half are below"),
        Query(percentile(0.99, buckets, there), "99 % are below"),
    )


def kept(promise: str) -> str:
    """How much of a promise is kept, by the rules of `deploy/prometheus`; all, of nothing."""
    there = MATCHMAKING if promise == "seated" else TABLE
    return or_else(1, f"1 - fangcheng:{promise}_slow:ratio_rate5m >= 0", there)


def share_of(part: str, whole: str, there: str, of_nothing: float = 0) -> str:
    """How much of one rate another one is."""
    return or_else(of_nothing, f"{part} / {whole} >= 0", there)
