"""The charts of docs/performance.md, as SVG that reads on a light page and on a dark one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH = 760
LEFT = 300
"""Where bars begin; their names stand before."""
RIGHT = 110
"""Room for figures behind the longest bar."""
BAR, GAP, HEAD = 18, 10, 46

COLOURS = ("#2f7ed8", "#e07b39", "#3a9d5d", "#a05ac8")
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px }
.faint { fill: #6e7781; font-size: 12px }
.grid { stroke: #d0d7de; stroke-width: 1 }
.goal { stroke: #cf222e; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .faint { fill: #8d96a0 }
  .grid { stroke: #30363d }
  .goal { stroke: #ff7b72 }
}
"""

Bar = tuple[str, float, float | None]
"""Name, how many times the reference, and how many times are promised."""


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Ratios as bars on a logarithmic scale, a mark where each is promised to reach."""
    shown = [ratio for _, ratio, _ in rows] + [goal for _, _, goal in rows if goal is not None]
    first = min(math.floor(math.log10(min(shown))), 0)
    last = max(math.ceil(math.log10(max(shown))), first + 1)
    ticks = [10**power for power in range(first, last + 1)]

    def x(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(ratio) - first) / (last - first)

    height = HEAD + len(rows) * (BAR + GAP) + 30
    parts = [_text(16, 26, title, "title")]
    for tick in ticks:
        parts.append(_line(x(tick), HEAD - 6, x(tick), height - 26, "grid"))
        parts.append(_text(x(tick), height - 8, f"{tick:,g} ×", "faint", "middle"))
    for number, (name, ratio, goal) in enumerate(rows):
        y = HEAD + number * (BAR + GAP)
        parts.append(_text(LEFT - 10, y + BAR - 5, name, "", "end"))
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{max(x(ratio) - LEFT, 1):.1f}" height="{BAR}" '
            f'rx="2" fill="{COLOURS[0]}"/>'
        )
        parts.append(_text(x(ratio) + 8, y + BAR - 5, f"{ratio:.3g} ×"))
        if goal is not None:
            parts.append(_line(x(goal), y - 3, x(goal), y + BAR + 3, "goal"))
    return _page(height, parts)


def curves(
    title: str,
    across: str,
    points: Mapping[str, Sequence[tuple[int, float]]],
    goals: Sequence[tuple[int, float]],
    *,
    even: bool = False,
) -> str:
    """Figures over a scale that is logarithmic, or `even`; a mark where each is promised to be."""
    left, right, top, bottom, height = 60, 170, HEAD, 300, 350
    sizes = sorted({size for curve in points.values() for size, _ in curve})
    most = max([share for curve in points.values() for _, share in curve] + [1.0])
    most = max([most, *(share for _, share in goals)])

    def x(size: int) -> float:
        place = size / sizes[-1] if even else math.log10(size) / (math.log10(sizes[-1]) or 1.0)
        return left + (WIDTH - left - right) * place

    def y(share: float) -> float:
        return bottom - (bottom - top - 10) * share / most

    parts = [_text(16, 26, title, "title")]
    step = _step(most / 7)
    for number in range(math.floor(most / step) + 1):
        tick = number * step
        parts.append(_line(left, y(tick), WIDTH - right, y(tick), "grid"))
        parts.append(_text(left - 10, y(tick) + 4, f"{tick:.{int(step < 1)}f}", "faint", "end"))
    parts += [_text(x(size), bottom + 20, f"{size:,}", "faint", "middle") for size in sizes]
    parts.append(_text((left + WIDTH - right) / 2, bottom + 40, across, "faint", "middle"))
    for colour, curve in zip(COLOURS, points.values(), strict=False):
        path = " ".join(f"{x(size):.1f},{y(share):.1f}" for size, share in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{x(size):.1f}" cy="{y(share):.1f}" r="4" fill="{colour}"/>'
            for size, share in curve
        ]
    # Names stand at the ends of their curves, or below one another where these meet.
    last = -math.inf
    for name, curve in sorted(points.items(), key=lambda one: -one[1][-1][1]):
        size, share = curve[-1]
        last = max(y(share) + 4, last + 16)
        parts.append(_text(x(size) + 10, last, name))
    for size, share in goals:
        parts.append(_line(x(size) - 9, y(share), x(size) + 9, y(share), "goal"))
    return _page(height, parts)


def _step(least: float) -> float:
    """The distance of two ticks: the first of 1, 2, 5, 10, 20, ... and their tenths."""
    power: float = 10 ** math.floor(math.log10(least))
    return next(times * power for times in (1, 2, 5, 10) if times * power >= least)


def _page(height: int, parts: Sequence[str]) -> str:
    lines = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}">\n<style>{STYLE}</style>\n{lines}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'
