"""The picture before there is a table."""

from __future__ import annotations

from rich.text import Text

from . import tiles
from .board import fitted
from .tiles import FAINT, GOLD, Standing
from .tongue import Tongue

HONOURS = (41, 42, 43, 44, 47, 46, 45)
SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SIGNS_PER_SECOND = 4


def splash(
    say: Tongue, stage: str, trouble: str, seconds: float, columns: int, rows: int
) -> list[Text]:
    """What is being waited for, below the seven honours; one after the other stands up."""
    step = int(seconds * SIGNS_PER_SECOND)
    standing = [
        Standing(tile, raised=place == step // 2 % len(HONOURS))
        for place, tile in enumerate(HONOURS)
    ]
    picture = [
        Text("方  城", f"bold {GOLD}"),
        Text("F A N G C H E N G", f"bold {GOLD}"),
        Text(),
        *tiles.hand(standing, say)[:4],
        Text(),
        Text(f"{SIGNS[step % len(SIGNS)]} {trouble or stage}", "bold"),
        Text(say("q 离开", "q quits"), FAINT),
    ]
    lines = [Text() for _ in range(max((rows - len(picture)) // 2, 0))]
    for line in picture:
        indent = max((columns - line.cell_len) // 2, 0)
        lines.append(Text(" " * indent).append_text(line))
    lines += [Text() for _ in range(rows - len(lines))]
    return [fitted(line, columns) for line in lines[:rows]]
