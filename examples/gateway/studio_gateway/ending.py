"""Why a connection is closed: the close code, and the reason that stands beside it."""

from __future__ import annotations


class Ended(Exception):
    """A connection is over. Whether a client comes back by itself hangs on the code alone."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def restarting() -> Ended:
    """This process ends: come back at once, to another one."""
    return Ended(1012, "RESTARTING")


def upstream_lost() -> Ended:
    """The tables cannot be reached: come back, after a while that grows."""
    return Ended(1013, "UPSTREAM_LOST")


def not_let_in(reason: str) -> Ended:
    """TOKEN_EXPIRED, TOKEN_INVALID, or HELLO_MISSING: come back with a new token."""
    return Ended(4401, reason)


def silent() -> Ended:
    """It has not answered the heartbeats: come back."""
    return Ended(4408, "SILENT")


def replaced() -> Ended:
    """The player has connected elsewhere: do not come back by yourself, or two would take turns."""
    return Ended(4409, "REPLACED")


def too_slow() -> Ended:
    """It reads less than it is sent: come back, with the last number."""
    return Ended(4429, "READER_TOO_SLOW")
