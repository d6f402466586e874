"""`python -m fangcheng_table`: the table service as a process."""

from fangcheng_kit import run

from .service import open_service
from .settings import TableSettings

run("table", TableSettings, open_service)
