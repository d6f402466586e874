"""Dashboards as rendered: they ask for what there is, panels explain themselves, links lead on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ..dashboards import BOARDS, GRAFANA, filled_in, panels
from ..promql import grouped_by, named_by, recorded, registered, selectors

# Those of the rules that panels ask for have no labels.
SERIES = registered() | dict.fromkeys(recorded(), frozenset())


def queries() -> Iterator[Any]:
    """Every query of every panel and mark, with the text that names what it finds."""
    for uid, board in BOARDS.items():
        for panel in panels(board):
            for target in panel["targets"]:
                query = filled_in(board, target["expr"])
                name = f"{uid}: {panel['title']}, {target['refId']}"
                yield pytest.param(query, target["legendFormat"], id=name)
        for mark in board["annotations"]["list"]:
            texts = mark["titleFormat"] + mark["textFormat"]
            yield pytest.param(mark["expr"], texts, id=f"{uid}: {mark['name']}")


def test_there_are_six() -> None:
    assert BOARDS.keys() == {
        f"fangcheng-{name}"
        for name in ("overview", "tables", "evaluation", "wallet", "matchmaking", "runtime")
    }


@pytest.mark.parametrize(("query", "legend"), list(queries()))
def test_a_query_asks_for_series_that_there_are(query: str, legend: str) -> None:
    found = selectors(query)
    assert found
    for selector in found:
        assert selector.metric in SERIES
        assert selector.labels <= SERIES[selector.metric]
    labels = {label for selector in found for label in SERIES[selector.metric]} | named_by(query)
    assert grouped_by(query) <= labels
    assert set(re.findall(r"{{(\w+)}}", legend)) <= (grouped_by(query) or labels)


@pytest.mark.parametrize("uid", BOARDS)
def test_a_variable_offers_values_of_a_label(uid: str) -> None:
    chosen = BOARDS[uid]["templating"]["list"]
    assert chosen[0]["type"] == "datasource"
    for variable in chosen[1:]:
        [(query, label)] = re.findall(r"^label_values\((.+), (\w+)\)$", variable["query"])
        [selector] = selectors(filled_in(BOARDS[uid], query))
        assert selector.labels | {label} <= SERIES[selector.metric]
        asked = [target["expr"] for panel in panels(BOARDS[uid]) for target in panel["targets"]]
        assert any(f'=~"${variable["name"]}"' in query for query in asked)


@pytest.mark.parametrize("uid", BOARDS)
def test_every_panel_says_what_it_tells_and_has_a_place_of_its_own(uid: str) -> None:
    board = BOARDS[uid]
    assert board["description"]
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in panels(board):
        # What it tells, and what to do: more than one clause.
        assert re.search(r"[.:;] ?\S.*\.$", panel["description"]), panel["title"]
        unit = panel["options"]["yAxis"] if panel["type"] == "heatmap" else {}
        assert (unit or panel["fieldConfig"]["defaults"])["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
    titles = [panel["title"] for panel in panels(board)]
    numbers = [panel["id"] for panel in board["panels"]]
    assert len(set(titles)) == len(titles)
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("uid", BOARDS)
def test_every_link_leads_to_a_panel_and_keeps_time_and_variables(uid: str) -> None:
    [to_all] = BOARDS[uid]["links"]
    assert to_all["includeVars"]
    assert to_all["keepTime"]
    assert all(set(to_all["tags"]) <= set(board["tags"]) for board in BOARDS.values())
    links = [link for panel in panels(BOARDS[uid]) for link in panel.get("links", [])]
    assert links
    for link in links:
        found = re.fullmatch(
            r"/d/([\w-]+)\?\$\{__url_time_range\}&\$\{__all_variables\}(?:&viewPanel=(\d+))?",
            link["url"],
        )
        assert found
        there = BOARDS[found[1]]
        title = there["title"]
        if found[2]:
            [panel] = [one for one in panels(there) if one["id"] == int(found[2])]
            title = f"{title}: {panel['title']}"
        assert link["title"] == title


def test_a_click_on_a_series_chooses_a_variable_by_its_label() -> None:
    clicks = [
        (link["url"], target["expr"])
        for board in BOARDS.values()
        for panel in panels(board)
        for link in panel.get("fieldConfig", {}).get("defaults", {}).get("links", [])
        for target in panel["targets"]
    ]
    assert clicks
    for url, query in clicks:
        found = re.fullmatch(
            r"/d/([\w-]+)\?\$\{__url_time_range\}&\$\{datasource:queryparam\}"
            r"&var-(\w+)=\$\{__field\.labels\.(\w+)\}",
            url,
        )
        assert found
        uid, variable, label = found.groups()
        assert variable in {one["name"] for one in BOARDS[uid]["templating"]["list"]}
        assert label in grouped_by(query)


def test_a_variable_of_one_name_means_one_thing() -> None:
    meant: dict[str, set[str]] = {}
    for board in BOARDS.values():
        for variable in board["templating"]["list"]:
            meant.setdefault(variable["name"], set()).add(variable["label"])
    assert all(len(labels) == 1 for labels in meant.values())


def test_what_is_provisioned_is_there() -> None:
    [source] = yaml.safe_load(
        (GRAFANA / "provisioning/datasources/prometheus.yml").read_text("utf-8")
    )["datasources"]
    prometheus = yaml.safe_load((GRAFANA.parent / "prometheus/prometheus.yml").read_text("utf-8"))
    assert source["type"] == "prometheus"
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]
    [provider] = yaml.safe_load(
        (GRAFANA / "provisioning/dashboards/fangcheng.yml").read_text("utf-8")
    )["providers"]
    assert provider["type"] == "file"
