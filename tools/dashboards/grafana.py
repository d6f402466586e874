"""Grafana's dashboards, in the words of its own Foundation SDK, from ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

from grafana_foundation_sdk.builders import common as parts
from grafana_foundation_sdk.builders import dashboard, heatmap, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

from .board import FULL_WIDTH, Board, Choice, Limits, Link, Panel, Variable

TAG = "fangcheng"
"""All our dashboards carry it; the links above each find the others by it."""

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
FIRST_ROW = 1001
"""Number of a dashboard's first row; panels are counted from 1."""

REFRESH = "10s"
SPAN = ("now-1h", "now")
STARTS = (
    "(time() - process_start_time_seconds < 60)"
    " * on (job, instance) group_left (service, version) fangcheng_build_info"
)
"""For a minute after a process has started: a deployment where the version is another one."""

_GOOD, _LOOK, _ACT = "green", "orange", "red"

_PanelBuilder = stat.Panel | timeseries.Panel | heatmap.Panel


class _Marks(models.AnnotationQuery):
    """Marks of Prometheus, with the texts that its annotations have and the SDK does not know."""

    def to_json(self) -> dict[str, object]:
        texts = {"titleFormat": "{{service}} {{version}}", "textFormat": "{{instance}} has started"}
        return {**super().to_json(), **texts, "tagKeys": "service,version"}


class _Starts(Builder[models.AnnotationQuery]):
    def build(self) -> _Marks:
        return _Marks(
            name="Starts and deployments", datasource=SOURCE, icon_color="blue", expr=STARTS
        )


def rendered(board: Board, boards: Mapping[str, Board]) -> str:
    """The JSON that Grafana loads; `boards` are all of them by uid, for links from one to another.

    Raises `KeyError` or `ValueError` where a link leads nowhere.
    """
    built = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.tells)
        .tags([TAG])
        .readonly()
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .time(*SPAN)
        .refresh(REFRESH)
        .variables([_datasource(), *map(_variable, board.variables)])
        .annotation(_Starts())
        .link(
            dashboard.DashboardLink("Fangcheng")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
        )
    )
    numbers = count(1)
    top = 0
    for position, row in enumerate(board.rows):
        heading = models.GridPos(x=0, y=top, w=FULL_WIDTH, h=1)
        built.with_row(dashboard.Row(row.title).id(FIRST_ROW + position).grid_pos(heading))
        top += 1
        left = lowest = 0
        for panel in row.panels:
            if left + panel.width > FULL_WIDTH:
                left, top = 0, lowest
            place = models.GridPos(x=left, y=top, w=panel.width, h=panel.height)
            built.with_panel(_panel(panel, boards).id(next(numbers)).grid_pos(place))
            left += panel.width
            lowest = max(lowest, top + panel.height)
        top = lowest
    return JSONEncoder(indent=2, sort_keys=True, ensure_ascii=False).encode(built.build()) + "\n"


def _datasource() -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")


def _variable(variable: Variable) -> dashboard.QueryVariable:
    # ".*" and not the list of all values: a series of a new instance is shown at once.
    return (
        dashboard.QueryVariable(variable.name)
        .label(variable.label)
        .datasource(SOURCE)
        .query(variable.query)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(selected=True, text="All", value="$__all"))
    )


def _panel(panel: Panel, boards: Mapping[str, Board]) -> _PanelBuilder:
    built = _KINDS[panel.kind](panel)
    built.title(panel.title).description(panel.tells).datasource(SOURCE).unit(panel.unit)
    for letter, query in zip("ABCDEF", panel.queries, strict=False):
        built.with_target(_query(letter, query.promql, query.legend, panel.kind == "heatmap"))
    if panel.to:
        built.links([_link(panel.to, boards)])
    if panel.chooses:
        built.data_links([_choice(panel.chooses, boards)])
    return built


def _query(letter: str, promql: str, legend: str, heat: bool) -> prometheus.Dataquery:
    shape = PromQueryFormat.HEATMAP if heat else PromQueryFormat.TIME_SERIES
    return (
        prometheus.Dataquery()
        .ref_id(letter)
        .datasource(SOURCE)
        .editor_mode(QueryEditorMode.CODE)
        .format(shape)
        .range()
        .expr(promql)
        .legend_format(legend)
    )


def _link(link: Link, boards: Mapping[str, Board]) -> dashboard.DashboardLink:
    board = boards[link.uid]
    title, view = board.title, ""
    if link.panel:
        title, view = f"{title}: {link.panel}", f"&viewPanel={board.number(link.panel)}"
    return (
        dashboard.DashboardLink(title)
        .type(models.DashboardLinkType.LINK)
        .url(f"/d/{link.uid}?${{__url_time_range}}&${{__all_variables}}{view}")
    )


def _choice(choice: Choice, boards: Mapping[str, Board]) -> dashboard.DashboardLink:
    board = boards[choice.uid]
    chosen = f"var-{board.variable(choice.variable).name}=${{__field.labels.{choice.label}}}"
    return (
        dashboard.DashboardLink(f"{board.title} of ${{__field.labels.{choice.label}}}")
        .type(models.DashboardLinkType.LINK)
        .url(f"/d/{choice.uid}?${{__url_time_range}}&${{datasource:queryparam}}&{chosen}")
    )


def _stat(panel: Panel) -> stat.Panel:
    built = (
        stat.Panel()
        .reduce_options(parts.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(common.BigValueGraphMode.AREA)
        .text_mode(common.BigValueTextMode.VALUE)
        .color_mode(common.BigValueColorMode.NONE)
        .no_value("nobody answers")
        .thresholds(_thresholds(panel.limits))
    )
    if panel.limits:
        built.color_mode(common.BigValueColorMode.BACKGROUND_SOLID)
    return built


def _series(panel: Panel) -> timeseries.Panel:
    built = (
        timeseries.Panel()
        .min(0)
        .line_width(1)
        .fill_opacity(30 if panel.stacked else 8)
        .show_points(common.VisibilityMode.NEVER)
        .tooltip(
            parts.VizTooltipOptions()
            .mode(common.TooltipDisplayMode.MULTI)
            .sort(common.SortOrder.DESCENDING)
        )
        .legend(
            parts.VizLegendOptions()
            .show_legend(True)
            .display_mode(common.LegendDisplayMode.TABLE)
            .placement(common.LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
        )
        .no_value("nobody answers")
    )
    if panel.highest is not None:
        built.max(panel.highest)
    if panel.stacked:
        built.stacking(parts.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    if panel.promise is not None:
        built.thresholds(
            _steps(
                models.Threshold(value=None, color="transparent"),
                models.Threshold(value=panel.promise, color=_ACT),
            )
        )
    elif panel.limits:
        built.thresholds(_thresholds(panel.limits))
    if panel.promise is not None or panel.limits:
        built.thresholds_style(
            parts.GraphThresholdsStyleConfig().mode(common.GraphTresholdsStyleMode.DASHED)
        )
    return built


def _heatmap(panel: Panel) -> heatmap.Panel:
    return (
        heatmap.Panel()
        .color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges"))
        .cell_values(heatmap.CellValues().unit("cpm"))
        .y_axis(heatmap.YAxisConfig().unit(panel.unit))
        .show_y_histogram()
    )


_KINDS: dict[str, Callable[[Panel], _PanelBuilder]] = {
    "stat": _stat,
    "series": _series,
    "heatmap": _heatmap,
}


def _thresholds(limits: Limits | None) -> dashboard.ThresholdsConfig:
    if limits is None:
        return _steps(models.Threshold(value=None, color=_GOOD))
    if limits.act < limits.look:
        return _steps(
            models.Threshold(value=None, color=_ACT),
            models.Threshold(value=limits.act, color=_LOOK),
            models.Threshold(value=limits.look, color=_GOOD),
        )
    looked_at = (models.Threshold(value=limits.look, color=_LOOK),)
    return _steps(
        models.Threshold(value=None, color=_GOOD),
        *(looked_at if limits.look < limits.act else ()),
        models.Threshold(value=limits.act, color=_ACT),
    )


def _steps(*steps: models.Threshold) -> dashboard.ThresholdsConfig:
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(list(steps))
