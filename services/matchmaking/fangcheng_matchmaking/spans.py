"""The spans of what goes on between a player's call and his seat."""

from __future__ import annotations

from fangcheng_kit.tracing import Span, Tracing, parsed

from .core import Match, Ticket


def formed(tracing: Tracing, match: Match, tickets: tuple[Ticket, ...]) -> Span:
    """The span of a match that is formed, and of how long each of its tickets has waited.

    It is of the trace of the ticket that came first, and has links to the others.
    """
    causes = [parsed(ticket.trace) for ticket in tickets]
    span = tracing.span("match.form", causes, match_id=match.match_id, pool_id=match.pool_id)
    for ticket, cause in zip(tickets, causes, strict=True) if tracing.is_on else ():
        tracing.span(
            "ticket.wait",
            [cause],
            began_ns=ticket.queued_ms * 1_000_000,
            links=[span.trace],
            ticket_id=ticket.ticket_id,
            match_id=match.match_id,
            pool_id=match.pool_id,
        ).end()
    return span


def driven(tracing: Tracing, match: Match) -> Span:
    """The span of a match on its way to a table, from wherever it stands."""
    # A room's match is of the call that starts the room.
    causes = [parsed(match.trace)] if match.trace else None
    return tracing.span("match.seat", causes, match_id=match.match_id, pool_id=match.pool_id)
