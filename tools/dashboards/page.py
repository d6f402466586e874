"""docs/operations/dashboards.md: every panel with what it tells and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from .board import Board

HEAD = """\
<!-- Generated from tools/dashboards by `make dashboards`; change it there. -->

# Dashboards

Six dashboards for Grafana, as code: [`tools/dashboards`](../../tools/dashboards) renders them with
Grafana's Foundation SDK into [`deploy/grafana/dashboards`](../../deploy/grafana/dashboards), for
Grafana 10.1 or newer. To have them, mount `deploy/grafana/provisioning` as
`/etc/grafana/provisioning` and `deploy/grafana/dashboards` as `/var/lib/grafana/dashboards`, and
say in Grafana's environment where Prometheus is (`PROMETHEUS_URL=http://prometheus:9090`). Or
import the files by hand.

**What was checked, and what was not.** The files are made of the SDK's typed models. A test parses
every query and compares its metrics and labels with those that the processes register, and follows
every link. Another one has a real Prometheus scrape a suite under load, where every query of every
panel must return data. **No Grafana has ever run them**: nobody has seen yet how they look there.
The titles of the annotations, which the SDK does not know, follow Grafana's documentation alone.

To read them:

- Marks in the graphs are starts of processes; where the version is another one, a deployment.
- A dashed line is what we promise, or a limit.
- 0 means that nothing happened, and a process is there to say so. Where none is, a graph is empty
  and a tile says "nobody answers".
- A panel's link leads to the one behind it, and keeps the time and what was chosen.
"""


def page(boards: Iterable[Board]) -> str:
    """The page, in Markdown."""
    parts = [HEAD]
    for board in boards:
        parts.append(f"\n## {board.title}\n\n{board.tells}\n")
        for row in board.rows:
            parts.append(f"\n**{row.title}**\n\n")
            parts += [f"- *{panel.title}.* {panel.tells}\n" for panel in row.panels]
    return "".join(parts)
