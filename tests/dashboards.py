"""The dashboards as they are rendered, and what they ask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .promql import with_values

GRAFANA = Path(__file__).parents[1] / "deploy" / "grafana"

Json = dict[str, Any]

BOARDS: dict[str, Json] = {
    board["uid"]: board
    for board in (json.loads(path.read_text("utf-8")) for path in GRAFANA.glob("dashboards/*.json"))
}
"""By uid."""


def panels(board: Json) -> list[Json]:
    """The panels of a dashboard, without the headings of rows."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def filled_in(board: Json, query: str) -> str:
    """A query as Grafana sends it, with everything chosen."""
    values = {variable["name"]: ".*" for variable in board["templating"]["list"]}
    return with_values(query, values | {"__rate_interval": "1m"})


def panel_queries() -> list[str]:
    """Every query of every panel."""
    return [
        filled_in(board, target["expr"])
        for board in BOARDS.values()
        for panel in panels(board)
        for target in panel["targets"]
    ]


def marks() -> list[str]:
    """What the marks of starts ask, for as long ago as may be."""
    return [
        mark["expr"].replace("< 60", "< 3600")
        for board in BOARDS.values()
        for mark in board["annotations"]["list"]
    ]
