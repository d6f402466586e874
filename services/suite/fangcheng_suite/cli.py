"""Where the command `fangcheng` begins; the commands themselves are in `commands.py`."""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A sign that the terminal cannot show must not end the command.
            stream.reconfigure(errors="replace")
    try:
        # Here, and not above: it takes a moment in which one may press Ctrl-C already.
        from .commands import app

        app()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
