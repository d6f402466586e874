"""Builds tables and machine code beforehand: `python -m fangcheng_evaluation.warm [--check]`.

For the build of an image: what takes a minute then is read in a moment when the service starts,
also where it may not write, and on another processor of the same family. `FANGCHENG_CACHE_DIR`
names the folder, the same for the build and for the service; it must lie in the image and nobody
else may write to it, for what lies in it is run.

With --check nothing may be left to do: the exit code is 1 where something had to be compiled.
"""

from __future__ import annotations

import sys
import time

from fangcheng_rules.kernels import folders, speed

from .core import warm_up

EXIT_COLD = 1


def main() -> None:
    """Warm up, and say what there was to do."""
    folder = folders.cache_folder()
    if not speed.COMPILED or folder is None:
        why = "numba is not installed" if not speed.COMPILED else "no folder can be written"
        sys.exit(f"nothing can be kept: {why}")
    begun = time.perf_counter()
    count = warm_up()
    compiled = speed.compiled_here()
    print(
        f"{count} rule sets are ready after {time.perf_counter() - begun:.1f} s; "
        f"{compiled} functions were compiled, the others read from {folder}"
    )
    if compiled and "--check" in sys.argv[1:]:
        sys.exit(EXIT_COLD)


if __name__ == "__main__":
    main()
