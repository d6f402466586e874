"""`python -m fangcheng_table`: the table service as a process."""

import os

# It asks an evaluator, and runs none of the hot functions: the compiler alone would take 90 MB.
os.environ.setdefault("FANGCHENG_INTERPRETED", "1")

from fangcheng_kit import run
from fangcheng_kit.collector import relax

from .service import open_service
from .settings import TableSettings

# Two thousand tables are a million small things: to look through all of them takes 300 ms.
relax(20_000, 50, 20)
run("table", TableSettings, open_service)
