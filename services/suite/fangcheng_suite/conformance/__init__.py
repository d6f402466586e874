"""What a wallet has to promise so that tables and matchmaking can rely on it, as checks to run.

``run_checks`` calls the ``SettlementService`` of any server, ours or a studio's own, and tells
which promises it keeps. A check is a function with a promise; ``trial.Trial`` gives it four players
with known balances and requests that nobody made before.
"""

from .running import CHECKS, Outcome, run_checks
from .trial import Broken, Target, Trial

__all__ = ["CHECKS", "Broken", "Outcome", "Target", "Trial", "run_checks"]
