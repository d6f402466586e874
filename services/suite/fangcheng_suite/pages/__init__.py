"""Reports as web pages: one file each, which needs nothing else and runs no script.

    write_page(
        Path("report.html"),
        "Two minutes of load",
        [
            Section(
                "What came of it",
                "500 tables were played at the pace of people.",
                [
                    Figures([("hands", 1_204), ("errors", 0)]),
                    Bars("Wins by seat", [("east", 24.9, (24.1, 25.7)), ("south", 25.3)], "%"),
                    Lines("Until all seats know", {"p50": [(0, 8.1), (5, 8.4)]}, "s", "ms"),
                ],
            )
        ],
    )

Pages read in the light and in the dark, on a phone and on paper. Whatever is given is text: none
of it can become markup. Colours are told apart by the colour-blind, lines by their dashes as well;
each chart has its figures in a table below it.
"""

from .parts import Bars, Figures, Grid, Histogram, Lines, Part, Section, Value
from .writing import page, write_page

__all__ = [
    "Bars",
    "Figures",
    "Grid",
    "Histogram",
    "Lines",
    "Part",
    "Section",
    "Value",
    "page",
    "write_page",
]
