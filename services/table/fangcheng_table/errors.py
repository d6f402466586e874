"""What a table refuses, each named after what went wrong; the base class is its status."""

from __future__ import annotations

from fangcheng_kit.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)


class UnknownTable(NotFound):
    """No table of that id."""

    def __init__(self, table_id: str) -> None:
        super().__init__("UNKNOWN_TABLE", f"There is no table {table_id}.", "table_id")


class UnknownHand(NotFound):
    """The table has not played so many hands."""

    def __init__(self, hand_number: int) -> None:
        super().__init__("UNKNOWN_HAND", f"There was no hand {hand_number}.", "hand_number")


class HandNotFinished(FailedPrecondition):
    """The hand is still being played, so nothing of it may be told."""

    def __init__(self, hand_number: int) -> None:
        super().__init__(
            "HAND_NOT_FINISHED", f"Hand {hand_number} is still being played.", "hand_number"
        )


class NotSeated(PermissionDenied):
    """The caller has no seat at this table."""

    def __init__(self, table_id: str) -> None:
        super().__init__("NOT_SEATED", f"The caller has no seat at table {table_id}.", "table_id")


class NotAdded(FailedPrecondition):
    """A stream of many seats does not have this one."""

    def __init__(self) -> None:
        super().__init__("NOT_ADDED", "The seat was not added to this stream, or was closed.")


class InvalidNumber(InvalidArgument):
    """A viewer wants to go on after an event that has not happened."""

    def __init__(self, number: int, last: int) -> None:
        super().__init__(
            "INVALID_NUMBER", f"{number} is ahead of the table's last event, {last}.", "from_number"
        )


class StaleDecision(FailedPrecondition):
    """The prompt is closed, was answered otherwise, or never was."""

    def __init__(self, decision_id: str) -> None:
        super().__init__(
            "STALE_DECISION", f"No prompt {decision_id} is open for this seat.", "decision_id"
        )


class NotOffered(FailedPrecondition):
    """The prompt is open, and offers something else."""

    def __init__(self, message: str, field: str = "action") -> None:
        super().__init__("NOT_OFFERED", message, field)


class DuplicatePlayer(InvalidArgument):
    """A player or a hold stands twice in a request for a table."""

    def __init__(self, what: str, field: str) -> None:
        super().__init__("DUPLICATE_PLAYER", f"{what} stands at two seats.", field)


class DuplicateFee(InvalidArgument):
    """A seat has two fees in one currency and book."""

    def __init__(self, field: str) -> None:
        super().__init__("DUPLICATE_FEE", "The seat has a fee in this currency already.", field)


class RequestIdReused(AlreadyExists):
    """The request id belongs to another request."""

    def __init__(self, request_id: str) -> None:
        super().__init__(
            "REQUEST_ID_REUSED", f"{request_id} has made another table already.", "request_id"
        )


class EvaluatorUnavailable(Unavailable):
    """No evaluator answers, so that no table could be played."""

    def __init__(self) -> None:
        super().__init__(
            "EVALUATOR_UNAVAILABLE", "No evaluator plays this rule set now; try again later."
        )


class JournalUnavailable(Unavailable):
    """The journal did not store it; nothing has changed, or a repeat will tell."""

    def __init__(self) -> None:
        super().__init__("JOURNAL_UNAVAILABLE", "The journal does not answer; try again.")


class Moved(Unavailable):
    """Another process plays the table now."""

    def __init__(self, table_id: str) -> None:
        super().__init__("MOVED", f"Table {table_id} is played elsewhere; resume it.", "table_id")


class AttendedElsewhere(Aborted):
    """A newer stream has taken the seat."""

    def __init__(self) -> None:
        super().__init__("ATTENDED_ELSEWHERE", "A newer stream attends the seat.")


class ReaderTooSlow(ResourceExhausted):
    """The stream has fallen too far behind the table."""

    def __init__(self, behind: int) -> None:
        super().__init__(
            "READER_TOO_SLOW", f"The stream is {behind} events behind; resume it from the last one."
        )
