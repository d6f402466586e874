"""The page of metrics, and how many series the largest configuration makes."""

from __future__ import annotations

import pytest

from tools.metricsdoc import SERVICES, registry_of, series

MOST_SERIES = 2_000


@pytest.mark.parametrize("service", SERVICES)
def test_no_configuration_and_no_outcome_of_calls_makes_2000_series(service: str) -> None:
    most = series(registry_of(service, widest=True))
    assert series(registry_of(service)) < most < MOST_SERIES


@pytest.mark.parametrize("service", SERVICES)
def test_every_metric_has_series_from_the_start_and_says_what_it_tells(service: str) -> None:
    for family in registry_of(service).collect():
        assert family.samples, f"{family.name}: label values that are known are to be there"
        if family.name.startswith(("fangcheng_", "grpc_")):
            assert family.documentation.endswith("."), family.name
