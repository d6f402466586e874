"""`python -m fangcheng_evaluation`."""

from fangcheng_kit import run

from .service import open_service
from .settings import EvaluationSettings

if __name__ == "__main__":
    run("evaluation", EvaluationSettings, open_service)
