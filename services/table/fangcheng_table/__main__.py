"""`python -m fangcheng_table`: the table service as a process."""

import os

# It asks an evaluator, and runs none of the hot functions: the compiler alone would take 90 MB.
os.environ.setdefault("FANGCHENG_INTERPRETED", "1")

from fangcheng_kit import run

from .service import open_service
from .settings import TableSettings

run("table", TableSettings, open_service)
