"""Draws pages by a template, and writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from ..written import written_whole
from . import charts
from .parts import Bars, Figures, Grid, Histogram, Lines, Part, Section

Language = Literal["en", "zh"]
WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {"contents": "Contents", "table": "The figures as a table", "from": "from", "to": "to"},
    "zh": {"contents": "目录", "table": "数据表", "from": "下限", "to": "上限"},
}
"""What a page says of itself."""


def write_page(
    path: Path,
    title: str,
    sections: Sequence[Section],
    *,
    language: Language = "en",
    lead: str = "",
) -> None:
    """Write a page to a file, as a whole or not at all; raises SuiteError where it cannot.

    `lead`: paragraphs below the title, such as what was run and when. `language`: that of the
    texts that are given.
    """
    text = page(title, sections, language=language, lead=lead)
    with written_whole(path) as draft:
        draft.write_text(text, "utf-8")


def page(
    title: str, sections: Sequence[Section], *, language: Language = "en", lead: str = ""
) -> str:
    """A whole page as a text."""
    return _template().render(
        title=title,
        lead=_paragraphs(lead),
        language=language,
        words=WORDS[language],
        sections=[
            (section.heading, _paragraphs(section.text), _beside(map(_drawn, section.parts)))
            for section in sections
        ],
    )


def _paragraphs(text: str) -> list[str]:
    return [one for part in text.split("\n\n") if (one := part.strip())]


def _drawn(part: Part) -> dict[str, Any]:
    """A part with what the template shows of it."""
    match part:
        case Figures():
            shown = [(label, charts.written(value)) for label, value in part.figures]
            return {"kind": "figures", "figures": shown}
        case Grid():
            numbers = [charts.is_number(part.rows, column) for column in range(len(part.columns))]
            rows = [[charts.written(cell) for cell in row] for row in part.rows]
            return {"kind": "grid", "part": part, "rows": rows, "numbers": numbers}
        case Bars():
            return {"kind": "bars", "part": part, "chart": charts.draw_bars(part)}
        case Lines():
            return {"kind": "plot", "part": part, "chart": charts.draw_lines(part)}
        case Histogram():
            return {"kind": "plot", "part": part, "chart": charts.draw_histogram(part)}


def _beside(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts, and plots that follow one another as one: there is room for two side by side."""
    found: list[dict[str, Any]] = []
    for part in parts:
        if part["kind"] != "plot":
            found.append(part)
        elif found and found[-1]["kind"] == "plots":
            found[-1]["plots"].append(part)
        else:
            found.append({"kind": "plots", "plots": [part]})
    return found


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("fangcheng_suite", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")
