"""One SVG document with a symbol for each tile code."""

from __future__ import annotations

from collections.abc import Iterator

from . import faces
from .outlines import kept

HEAD = (
    "<!-- Made by `make tiles` (tools/tiles). Characters: outlines of Noto Serif CJK, "
    "SIL Open Font License 1.1, see fonts/OFL.txt; all else is Fangcheng's own. -->\n"
)


def sprite() -> str:
    """The text of ``tiles.svg``."""
    symbols = "\n".join(
        f'<symbol id="t{code}" viewBox="0 0 {faces.WIDTH} {faces.HEIGHT}">{drawing}</symbol>'
        for code, drawing in _drawings()
    )
    return f'{HEAD}<svg xmlns="http://www.w3.org/2000/svg">\n{symbols}\n</svg>\n'


def _drawings() -> Iterator[tuple[int, str]]:
    glyphs = kept()
    yield 0, faces.back()
    for rank in range(1, 10):
        yield 10 + rank, faces.body() + faces.character(glyphs, rank)
    for rank in range(1, 10):
        yield 20 + rank, faces.body() + faces.dots(rank)
    for rank in range(1, 10):
        yield 30 + rank, faces.body() + faces.bamboos(rank)
    for rank in range(1, 8):
        yield 40 + rank, faces.body() + faces.honour(glyphs, rank)
    for rank in range(1, 9):
        yield 50 + rank, faces.body() + faces.flower(glyphs, rank)
