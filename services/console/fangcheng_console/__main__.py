"""`python -m fangcheng_console`."""

from fangcheng_kit import run

from .service import open_service
from .settings import ConsoleSettings

if __name__ == "__main__":
    run("console", ConsoleSettings, open_service)
