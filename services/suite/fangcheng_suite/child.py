"""Runs one service as a child of the launcher, and ends it when the launcher is gone.

`python -m fangcheng_suite.child fangcheng_wallet` is `python -m fangcheng_wallet`, but for a thread
that reads standard input, a pipe that only the launcher holds open. However the launcher ends, even
by `kill -9`, the pipe ends with it; so nothing of the suite is left running without it. That works
alike on every system that has pipes.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

LAST_RESORT_SECONDS = 15.0


def main() -> None:
    """Run the module named by the first argument until it ends or the launcher does."""
    module = sys.argv[1]
    threading.Thread(target=_end_with_the_launcher, name="launcher", daemon=True).start()
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _end_with_the_launcher() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(LAST_RESORT_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
