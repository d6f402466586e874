"""Make the pictures of the tiles and the Chinese font of the console, or check that they are fresh.

    python -m tools.tiles [--check | --fonts FOLDER]

The sprite is drawn from what is committed here. Only new characters need the fonts: the folder of
NotoSerifCJK-Bold.ttc and NotoSansCJK-Regular.ttc, which Debian's package fonts-noto-cjk puts at
/usr/share/fonts/opentype/noto.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from . import faces, outlines, subset
from .sprite import sprite

SPRITE = subset.STATIC / "tiles.svg"
PACKAGE = "Debian's package fonts-noto-cjk, then `make tiles FONTS=/usr/share/fonts/opentype/noto`"


def main() -> None:
    """Write what has changed, or with ``--check`` fail where there is something."""
    asked = argparse.ArgumentParser(prog="python -m tools.tiles", description=__doc__)
    asked.add_argument("--check", action="store_true")
    asked.add_argument("--fonts", type=Path, metavar="FOLDER")
    arguments = asked.parse_args()
    if arguments.fonts:
        serif = outlines.font_named(arguments.fonts / outlines.FONT, outlines.FACE)
        outlines.keep(serif, faces.CHARACTERS)
        sans = outlines.font_named(arguments.fonts / subset.FONT, subset.FACE)
        subset.OURS.parent.mkdir(parents=True, exist_ok=True)
        subset.OURS.write_bytes(subset.written(sans))
    if arguments.check:
        if not SPRITE.exists() or SPRITE.read_text() != sprite():
            raise SystemExit("tiles.svg is not what tools/tiles makes; run `make tiles`")
    else:
        SPRITE.write_text(sprite())
    if missing := subset.missing():
        named = ", ".join(f"{sign} ({path.name})" for sign, path in sorted(missing.items())[:12])
        raise SystemExit(
            f"{subset.OURS.name} lacks {len(missing)} signs: {named}. Install {PACKAGE}"
        )


if __name__ == "__main__":
    main()
