"""What a table refuses, each named after what went wrong; the base class is its status."""

from __future__ import annotations

from collections.abc import Collection

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


class TableNotOver(FailedPrecondition):
    """The table goes on, or has still to settle or to release something."""

    def __init__(self, table_id: str) -> None:
        super().__init__("TABLE_NOT_OVER", f"Table {table_id} is not over.", "table_id")


class PlayerAtTable(FailedPrecondition):
    """A player is to be erased, and a table at which he sat is not over."""

    def __init__(self, table_id: str) -> None:
        super().__init__(
            "TABLE_NOT_OVER",
            f"Table {table_id}, where the player sits or sat, is not over; repeat when it is, or "
            "have it closed by CloseTable.",
            "player_id",
            {"table_id": table_id},
        )


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


class NotOperator(PermissionDenied):
    """What only operators may ask for."""

    def __init__(self, field: str) -> None:
        super().__init__("NOT_OPERATOR", "Only an operator may have all tiles shown.", field)


class OtherPlayer(PermissionDenied):
    """A player asks for what is another's."""

    def __init__(self) -> None:
        super().__init__("OTHER_PLAYER", "A player may ask for its own hands only.", "player_id")


class InvalidCursor(InvalidArgument):
    """A cursor that no stream of finished hands has told."""

    def __init__(self) -> None:
        super().__init__(
            "INVALID_CURSOR", "The cursor is none that this stream has told.", "cursor"
        )


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


class StaleHand(FailedPrecondition):
    """The call is about a hand that is over, or has not begun."""

    def __init__(self, hand_number: int, newest: int) -> None:
        super().__init__(
            "STALE_HAND",
            f"The table is at hand {newest}, not {hand_number}; see GetTable.",
            "hand_number",
        )


class AlreadyVoting(FailedPrecondition):
    """Another seat has proposed to dissolve the table, and not all have answered."""

    def __init__(self, vote: int) -> None:
        super().__init__("ALREADY_VOTING", f"Answer vote-{vote} first.")


class TableIsClosed(FailedPrecondition):
    """Nothing more is played here."""

    def __init__(self) -> None:
        super().__init__("TABLE_CLOSED", "The table has closed, or closes after this hand.")


class HandIsDecided(FailedPrecondition):
    """The hand has ended, or is decided and being scored."""

    def __init__(self, hand_number: int) -> None:
        super().__init__(
            "HAND_DECIDED",
            f"Hand {hand_number} is decided; ReverseSettlement takes back what it has paid.",
            "hand_number",
        )


class NotAtTable(FailedPrecondition):
    """The player named has no seat at this table."""

    def __init__(self, player_id: str) -> None:
        super().__init__("NOT_AT_TABLE", f"{player_id} has no seat here.", "player_id")


class SeatIsTaken(FailedPrecondition):
    """Nobody has left the seat, or the table does not wait for others."""

    def __init__(self, seat: int) -> None:
        super().__init__(
            "SEAT_TAKEN",
            f"Seat {seat} is not free: one is while a table with a vacancy_ms, of a rule set that "
            "starts over, waits for another player.",
            "seat",
        )


class SatBefore(FailedPrecondition):
    """Who has sat at a table does not come back to it, so that no late call of his is a new one."""

    def __init__(self, player_id: str) -> None:
        super().__init__(
            "SAT_BEFORE", f"{player_id} sits or has sat here; seat another.", "player.player_id"
        )


class RemovedFromTable(PermissionDenied):
    """An operator has removed the player from the table."""

    def __init__(self, table_id: str) -> None:
        super().__init__("REMOVED", f"The caller was removed from table {table_id}.", "table_id")


class LeftTable(Aborted):
    """The player of the stream has left the table, which goes on with another."""

    def __init__(self) -> None:
        super().__init__("LEFT_TABLE", "The player has left; the table goes on without.")


class ChipsAndStakes(InvalidArgument):
    """Chips are counted only where nothing is staked."""

    def __init__(self) -> None:
        super().__init__(
            "CHIPS_WITH_STAKES",
            "A table with stakes has no chips; leave one of them out.",
            "starting_chips",
        )


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
            "REQUEST_ID_REUSED", f"{request_id} belongs to another request.", "request_id"
        )


class EvaluatorUnavailable(Unavailable):
    """No evaluator answers, so that no table could be played."""

    def __init__(self) -> None:
        super().__init__(
            "EVALUATOR_UNAVAILABLE", "No evaluator plays this rule set now; try again later."
        )


class JournalUnavailable(Unavailable):
    """The journal did not store or read it; nothing has changed, or a repeat will tell."""

    def __init__(self) -> None:
        super().__init__("JOURNAL_UNAVAILABLE", "The journal does not answer; try again.")


class Moved(Unavailable):
    """Another process plays the table now."""

    def __init__(self, table_id: str) -> None:
        super().__init__("MOVED", f"Table {table_id} is played elsewhere; resume it.", "table_id")


class PlayedElsewhere(Moved):
    """Another process plays the table, and takes calls about it."""

    def __init__(self, table_id: str, endpoint: str) -> None:
        super().__init__(table_id)
        self.endpoint = endpoint
        self.metadata["endpoint"] = endpoint


class TableArchived(NotFound):
    """The table was played long ago; its events are in a file."""

    def __init__(self, table_id: str) -> None:
        super().__init__(
            "TABLE_ARCHIVED", f"The events of table {table_id} were archived.", "table_id"
        )


class ReplicaBusy(Unavailable):
    """The process that plays the table does not take what is passed on to it."""

    def __init__(self, table_id: str) -> None:
        super().__init__(
            "REPLICA_BUSY",
            f"What plays table {table_id} does not keep up; nothing was done, try again.",
            "table_id",
        )


class TooManySeats(ResourceExhausted):
    """The stream has as many seats as one may have."""

    def __init__(self, most: int) -> None:
        super().__init__(
            "TOO_MANY_SEATS",
            f"A stream has {most} seats at most; add this one on another.",
            "player_id",
        )


class NoOwner(Unavailable):
    """Nobody plays the table at this moment."""

    def __init__(self, table_id: str) -> None:
        super().__init__("NO_OWNER", f"Nobody plays table {table_id} now; try again.", "table_id")


class AttendedElsewhere(Aborted):
    """A newer stream has taken the seat."""

    def __init__(self) -> None:
        super().__init__("ATTENDED_ELSEWHERE", "A newer stream attends the seat.")


class TalkOff(FailedPrecondition):
    """The table's rules do not let it be said."""

    def __init__(self, message: str) -> None:
        super().__init__("TALK_OFF", message)


class UnknownPhrase(InvalidArgument):
    """No phrase of that id."""

    def __init__(self, phrase: str, known: Collection[str]) -> None:
        there_are = ", ".join(sorted(known)) or "none"
        super().__init__(
            "UNKNOWN_PHRASE", f"There is no phrase {phrase}; there are: {there_are}.", "phrase"
        )


class InvalidText(InvalidArgument):
    """A text that may not be said."""

    def __init__(self, message: str) -> None:
        super().__init__("INVALID_TEXT", message, "text")


class TalksTooMuch(ResourceExhausted):
    """The seat has said much in a short time."""

    def __init__(self, wait_seconds: float) -> None:
        super().__init__(
            "TALKS_TOO_MUCH",
            f"The seat may say more in {wait_seconds:.1f} seconds.",
            retry_after_seconds=wait_seconds,
        )


class ReaderTooSlow(ResourceExhausted):
    """The stream has fallen too far behind the table."""

    def __init__(self, behind: int) -> None:
        super().__init__(
            "READER_TOO_SLOW", f"The stream is {behind} events behind; resume it from the last one."
        )
