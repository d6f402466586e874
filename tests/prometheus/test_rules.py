"""Every alert says whom to wake and what to do, is tested, and asks for what there is.

`tests/system/test_promtool.py` runs the tests of the alerts; `tests/system/test_fed.py` sees that a
suite has what they ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.promql import grouped_by, recorded, registered, selectors

from .rules import ROOT, RUNBOOKS, TESTS, Rule, alerts, fed, recordings

ALERTS = alerts()
RULES = [*ALERTS, *recordings()]
PAGES = {page.stem: page.read_text("utf-8") for page in sorted((ROOT / RUNBOOKS).glob("*.md"))}
INDEX = PAGES.pop("README")
WINDOWS = {"hour": "1h", "six hours": "6h", "three days": "3d"}
TOLD, RECORDED = registered(), recorded()


def title(rule: Rule) -> str:
    return " ".join([rule.name, *filter(None, [rule.labels.get("window")])])


def expected() -> Iterator[tuple[str, dict[str, Any] | None]]:
    """What the tests of the rules expect: an alert with its labels, or None for silence."""
    for file in TESTS.glob("*.test.yml"):
        for test in yaml.safe_load(file.read_text("utf-8"))["tests"]:
            for case in test.get("alert_rule_test", ()):
                for alert in case["exp_alerts"] or [None]:
                    yield case["alertname"], alert


EXPECTED = list(expected())


@pytest.mark.parametrize("alert", ALERTS, ids=title)
def test_an_alert_says_whom_it_wakes_what_is_wrong_and_where_to_read_on(alert: Rule) -> None:
    assert alert.labels["severity"] in {"page", "ticket"}
    assert alert.annotations.keys() == {"summary", "description", "runbook"}
    assert alert.annotations["runbook"] == f"{RUNBOOKS}/{alert.name}.md"
    said = alert.annotations["summary"] + alert.annotations["description"]
    assert "{{ $" in said, "it names neither a label nor the value"
    page = PAGES[alert.name]
    assert page.startswith(f"# {alert.name}\n")
    assert f"`{alert.labels['severity']}`" in page
    for part in ("For players", "First look", "What to do", "Wake", "It is over"):
        assert f"**{part}" in page, part
    assert f"[{alert.name}]({alert.name}.md) |" in INDEX


@pytest.mark.parametrize("alert", ALERTS, ids=title)
def test_an_alert_is_seen_to_come_and_to_stay_away(alert: Rule) -> None:
    comes = [
        told
        for name, told in EXPECTED
        if name == alert.name and told and alert.labels.items() <= told["exp_labels"].items()
    ]
    assert comes
    assert all(told["exp_annotations"].keys() == alert.annotations.keys() for told in comes)
    assert (alert.name, None) in EXPECTED


def test_there_is_no_page_without_an_alert() -> None:
    assert PAGES.keys() == {alert.name for alert in ALERTS}
    assert set(re.findall(r"^\| \[(\w+)\]", INDEX, re.M)) == PAGES.keys()


@pytest.mark.parametrize("alert", [one for one in ALERTS if "window" in one.labels], ids=title)
def test_the_window_of_a_budget_is_the_one_that_it_tells_of(alert: Rule) -> None:
    window = alert.labels["window"]
    assert re.match(rf"fangcheng:\w+:ratio_rate{window} > ", alert.query)
    [said] = [text for text in WINDOWS if f"last {text} " in alert.annotations["description"]]
    assert WINDOWS[said] == window


@pytest.mark.parametrize("rule", RULES, ids=title)
def test_a_rule_asks_for_what_our_processes_tell(rule: Rule) -> None:
    assert_known(rule.query)
    for query in fed(rule):
        assert selectors(query)


def queries(page: str) -> list[str]:
    """The queries of a page: each begins at the beginning of a line, and may go on in others."""
    blocks = re.findall(r"^```promql\n(.*?)^```", page, re.M | re.S)
    return [query for block in blocks for query in re.split(r"\n(?! )", block.strip())]


@pytest.mark.parametrize("name", PAGES)
def test_the_queries_of_a_page_can_be_asked(name: str) -> None:
    for query in queries(PAGES[name]):
        assert_known(query)
    for metric in re.findall(r"`(fangcheng[:_][a-z0-9_:]+)", PAGES[name]):
        assert {metric, f"{metric}_count"} & {*TOLD, *RECORDED}, metric


def test_what_pages_look_for_in_logs_is_logged() -> None:
    folders = [folder for name in ("services", "shared") for folder in (ROOT / name).iterdir()]
    code = "\n".join(
        file.read_text("utf-8")
        for folder in folders
        for file in folder.glob("fangcheng_*/**/*.py")
        if not file.stem.endswith("_pb2")
    )
    looked_for = [
        words
        for page in PAGES.values()
        for pattern in re.findall(r"^grep(?: -E)? '([^']+)' \w+\.log", page, re.M)
        for words in re.sub(r'"event": |[()"]', "", pattern).split("|")
    ]
    assert len(looked_for) >= 15
    for words in looked_for:
        assert words in code, words


def assert_known(query: str) -> None:
    """Every series that the query asks for is told by a process or recorded, with its labels."""
    asked = selectors(query)
    assert asked, query
    labels = set[str]()
    for selector in asked:
        if selector.metric in RECORDED:  # with whatever labels its own query leaves
            labels |= selector.labels | grouped_by(query)
            continue
        assert selector.metric in TOLD, selector.text
        assert selector.labels <= TOLD[selector.metric], selector.text
        labels |= TOLD[selector.metric]
    assert grouped_by(query) <= labels, query


def test_the_configuration_loads_them() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text("utf-8"))
    folder = ROOT / "deploy/prometheus"
    loaded = {file for pattern in config["rule_files"] for file in folder.glob(pattern)}
    assert loaded == set(Path(folder / "rules").iterdir())
