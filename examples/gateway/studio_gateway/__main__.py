"""``python -m studio_gateway``: serves until SIGTERM or Ctrl-C."""

from __future__ import annotations

import asyncio
import logging
import signal

from studio_gateway.server import serving
from studio_gateway.settings import Settings


async def main() -> None:
    """Serve until told to end."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with serving(Settings.of()):
        await told.wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("websockets").setLevel(logging.WARNING)
    asyncio.run(main())
