"""Reports as pages: what they show, and that nothing given becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fangcheng_suite.errors import SuiteError
from fangcheng_suite.pages import Bars, Figures, Grid, Histogram, Lines, Section, page, write_page
from fangcheng_suite.pages.charts import draw_bars, draw_histogram, draw_lines, step, written

HOSTILE = '<script>alert("1")</script>&\'" onload=x </style><b>'
WITHOUT_END = {"meta", "br"}


class Read(HTMLParser):
    """A page as a browser takes it: its elements, and the text in them. Every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in WITHOUT_END:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open and data.strip():
            self.texts.append(data.strip())


def everything(text: str) -> list[Section]:
    """Sections with every kind of part, and a text wherever one may stand."""
    parts = [
        Figures([(text, text)]),
        Grid([text, "n"], [[text, 1], [text, None]], text),
        Bars(text, [(text, 1.5, (1, 2)), (text, -2)], text),
        Lines(text, {text: [(0, 1), (1, 2)], "other": [(0, 3)]}, text, text),
        Histogram(text, [(text, 3), (5, 4)], text, text),
    ]
    return [Section(text, f"{text}\n\n{text}", parts)] * 4


def test_whatever_is_given_is_text() -> None:
    harmless = Read(page("a title", everything("a text"), lead="a text"))
    hostile = Read(page(HOSTILE, everything(HOSTILE), lead=HOSTILE))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in harmless.elements]
    for (_, these), (_, those) in zip(hostile.elements, harmless.elements, strict=True):
        assert set(these) == set(those)  # no attribute more
    assert hostile.texts.count(HOSTILE) == harmless.texts.count("a text") + 2  # and the title


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_page_needs_nothing_else_and_runs_nothing(language: Any) -> None:
    read = Read(page("a title", everything("a text"), language=language))
    tags = {tag for tag, _ in read.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    references = [
        value
        for _, attributes in read.elements
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "action") and not str(value).startswith("#")
    ]
    assert references == []
    style = files("fangcheng_suite.pages").joinpath("page.css").read_text("utf-8")
    assert "url(" not in style
    assert "@import" not in style
    assert read.elements[0] == ("html", {"lang": {"en": "en", "zh": "zh-CN"}[language]})


def test_the_contents_lead_to_every_section() -> None:
    read = Read(page("a title", everything("a text")))
    led_to = [str(more["href"])[1:] for tag, more in read.elements if tag == "a"]
    assert led_to == [more["id"] for tag, more in read.elements if tag == "section"] != []


def test_numbers_are_written_for_people() -> None:
    told = [written(value) for value in (1204, 24.94, 0.00312, -3, -1204.5, 0.0, 999.96, "x", None)]
    assert told == ["1,204", "24.9", "0.00312", "−3", "−1,204", "0", "1,000", "x", "–"]
    assert written(float("nan")) == written(float("inf")) == "–"


def test_bars_are_as_long_as_their_figures_on_their_side_of_zero() -> None:
    drawn = draw_bars(Bars("net", [("east", -30), ("south", 60, (50, 70)), ("west", 15)], "%"))
    east, south, west = drawn.tracks
    assert east.width == pytest.approx(2 * west.width, rel=1e-3)
    assert south.width == pytest.approx(4 * west.width, rel=1e-3)
    assert east.left + east.width == pytest.approx(drawn.zero)
    assert south.left == west.left == drawn.zero
    assert south.interval is not None
    low, high = south.interval
    assert low < south.left + south.width < high == pytest.approx(100)
    assert [track.told for track in drawn.tracks] == ["−30%", "60%", "15%"]
    assert drawn.rows[1] == ["south", "60%", "50%", "70%"]


def test_lines_go_through_their_points() -> None:
    drawn = draw_lines(Lines("seen", {"p50": [(0, 10), (30, 20), (60, 40)], "p99": [(60, 35)]}))
    assert drawn.lines[0].points == "0,75 50,50 100,0"
    assert drawn.lines[1].points == "100,12.5"
    assert [(tick.at, tick.label) for tick in drawn.y_ticks] == [
        (100, "0"), (75, "10"), (50, "20"), (25, "30"), (0, "40")
    ]  # fmt: skip
    assert [tick.label for tick in drawn.x_ticks] == ["0", "10", "20", "30", "40", "50", "60"]
    assert drawn.rows == [["0", "10", ""], ["30", "20", ""], ["60", "40", "35"]]


def test_columns_are_as_high_as_their_counts_and_seldom_ones_are_seen() -> None:
    counts = [(fan, count) for fan, count in enumerate([0, 50, 100, 1] + [0] * 36)]
    drawn = draw_histogram(Histogram("fan", counts))
    heights = [100 - bar.top for bar in drawn.bars[:4]]
    assert heights[0] == 0
    assert heights[2] == pytest.approx(2 * heights[1]) == 100
    assert heights[3] > 0
    assert len(drawn.x_ticks) <= 10 < len(drawn.rows) == 40


@given(st.floats(1e-6, 1e9), st.integers(1, 10))
def test_an_axis_has_round_steps_and_not_too_many(span: float, most: int) -> None:
    between = step(span, most)
    assert re.fullmatch(r"[125]e[+-]\d\d", f"{between:.0e}")
    assert f"{between:.6e}" == f"{float(f'{between:.0e}'):.6e}"
    assert span / between <= most * (1 + 1e-6)
    assert span / between > most / 2.6  # no more than from 2 to 5 is lost


@example([(0.0, 5e-324), (5e-324, 0.0)])
@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0, 1e6)), max_size=20))
def test_lines_of_any_points_stay_on_the_canvas(points: list[tuple[float, float]]) -> None:
    drawn = draw_lines(Lines("any", {"line": sorted(points)}))
    for x, y, _ in drawn.lines[0].dots:
        assert 0 <= x <= 100
        assert -0.01 <= y <= 100


def test_charts_of_nothing_are_drawn() -> None:
    nothing = [Bars("bars", []), Lines("lines", {}), Histogram("columns", []), Grid(["a"], [])]
    Read(page("nothing yet", [Section("nothing", "", [*nothing, Figures([])])]))


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(ValueError, match="no row of 2 columns"):
        Grid(["a", "b"], [[1]])
    with pytest.raises(ValueError, match="9 lines"):
        Lines("many", {str(number): [(0, 1)] for number in range(9)})


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_stand_out_in_the_light_and_in_the_dark() -> None:
    style = files("fangcheng_suite.pages").joinpath("page.css").read_text("utf-8")
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6});", part))
        for part in style.split("prefers-color-scheme: dark")
    )
    assert set(light) == set(dark)
    for colours in (light, dark):
        for name, colour in colours.items():
            least = 4.5 if name in ("ink", "faint", "accent") else 3 if name[0] == "s" else 0
            for behind in ("panel", "ground"):
                one, other = sorted((_luminance(colour), _luminance(colours[behind])))
                assert (other + 0.05) / (one + 0.05) >= least, (name, behind)


def test_a_page_is_written_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    write_page(file, "first", [])
    write_page(file, "second", [Section("方城", "一")], language="zh")
    assert "second" in Read(file.read_text("utf-8")).texts
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_page_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"cannot write .*report\.html: No such file") as told:
        write_page(tmp_path / "nowhere" / "report.html", "a title", [])
    assert "folder" in told.value.hint
