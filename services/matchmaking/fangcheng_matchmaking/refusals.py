"""What a caller is told who cannot join a queue or enter a room."""

from __future__ import annotations

from fangcheng_kit.errors import (
    FailedPrecondition,
    NotFound,
    PermissionDenied,
    ServiceError,
    Unavailable,
)

from . import joining
from .admission import NotAdmitted


def not_admitted(error: NotAdmitted) -> PermissionDenied:
    """What the studio has answered, as a status."""
    metadata = {"player_id": error.player_id, "admission_reason": error.reason}
    if error.until_seconds:
        metadata["until_seconds"] = str(error.until_seconds)
    message = error.message or "The player may not play now."
    return PermissionDenied("NOT_ADMITTED", message, metadata=metadata)


def unanswered() -> Unavailable:
    """A partner's answer is missing; what a repeat does stands in the contract of the call."""
    return Unavailable(
        "DEPENDENCY_UNAVAILABLE", "A service that this call needs does not answer; repeat it."
    )


def of(error: joining.CannotJoin) -> ServiceError:
    """The refusal as a status."""
    match error:
        case joining.UnknownPool():
            return NotFound("UNKNOWN_POOL", f"There is no pool {error}.", field="pool_id")
        case joining.PoolClosed():
            return Unavailable(
                "POOL_CLOSED", f"The pool is closed for now. {error}".strip(), field="pool_id"
            )
        case joining.NotABot():
            return PermissionDenied(
                "NOT_A_BOT", "Standby needs the scope bot in the token.", field="standby"
            )
        case joining.NotFilled():
            return FailedPrecondition(
                "POOL_NOT_FILLED", "The pool is never filled with bots.", field="standby"
            )
        case joining.ClientTooOld(least=least):
            return FailedPrecondition(
                "CLIENT_TOO_OLD",
                f"The pool takes clients from version {least} on.",
                field="client_version",
                metadata={"least_client_version": str(least)},
            )
        case joining.PartyTooLarge(most=most):
            return FailedPrecondition(
                "PARTY_TOO_LARGE",
                f"The pool takes parties of at most {most}.",
                field="party",
                metadata={"most_party": str(most)},
            )
        case joining.OriginMissing():
            return FailedPrecondition(
                "ORIGIN_MISSING",
                "The pool keeps players of one origin apart; the gateway has to say it.",
                field="origin",
            )
        case joining.AlreadyQueued(player_id=player_id, ticket=ticket):
            return FailedPrecondition(
                "ALREADY_QUEUED",
                "The player is in a queue already; leave it first.",
                metadata={
                    "player_id": player_id,
                    "ticket_id": ticket.ticket_id,
                    "pool_id": ticket.pool_id,
                },
            )
        case joining.AlreadyInRoom(player_id=player_id, room_id=room_id):
            return FailedPrecondition(
                "ALREADY_IN_ROOM",
                "The player is in a private room; leave it first.",
                metadata={"player_id": player_id, "room_id": room_id},
            )
        case joining.AlreadySeated(player_id=player_id, table_id=table_id):
            return FailedPrecondition(
                "ALREADY_SEATED",
                f"The player sits at table {table_id}; attend or leave it.",
                metadata={"player_id": player_id, "table_id": table_id},
            )
        case joining.LossCapReached(player_id=player_id, stake=stake, until_ms=until_ms):
            return FailedPrecondition(
                "LOSS_CAP_REACHED",
                f"The player has lost {stake.loss_cap_per_day} {stake.currency} today: all "
                "that may be lost here in a day.",
                metadata={
                    "player_id": player_id,
                    "currency": stake.currency,
                    "until_seconds": str(until_ms // 1_000),
                },
            )
        case joining.Poor(player_id=player_id, problem=problem):
            return FailedPrecondition(
                problem.reason, problem.message, metadata={"player_id": player_id}
            )
    raise AssertionError(f"no status for {error!r}")
