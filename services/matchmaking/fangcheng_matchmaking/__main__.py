"""`python -m fangcheng_matchmaking`."""

from fangcheng_kit import run

from .service import open_service
from .settings import MatchmakingSettings

if __name__ == "__main__":
    run("matchmaking", MatchmakingSettings, open_service)
