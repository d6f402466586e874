"""What is personal in what the matchmaker keeps: what an export tells, what an erasure leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime

from fangcheng_kit.privacy import Erasure, line, profile_field

from .core import Match, Ticket
from .losses import Losses
from .rooms import Room
from .skill import Skill
from .store import Apart


def without_ticket(ticket: Ticket, erasure: Erasure) -> Ticket:
    """A ticket without the profile of a player, whence he came, and labels that name a person."""
    own = ticket.player_id == erasure.player_id
    return replace(
        ticket,
        members=tuple(
            replace(one, profile=b"") if one.player_id == erasure.player_id else one
            for one in ticket.members
        ),
        traits=frozenset() if own else ticket.traits,
        labels=erasure.without(ticket.labels),
    )


def without_match(match: Match, erasure: Erasure) -> Match:
    """The same of a match."""
    seats = tuple(
        replace(one, profile=b"") if one.player_id == erasure.player_id else one
        for one in match.seats
    )
    return replace(match, seats=seats, labels=erasure.without(match.labels))


def without_room(room: Room, erasure: Erasure) -> Room:
    """The same of a room."""
    guests = tuple(
        replace(one, profile=b"") if one.player_id == erasure.player_id else one
        for one in room.guests
    )
    return replace(room, guests=guests, labels=erasure.without(room.labels))


def ticket_line(ticket: Ticket, player_id: str) -> str | None:
    """A ticket in an export; None where the player is none of its."""
    member = ticket.member(player_id)
    if member is None:
        return None
    return line(
        "ticket",
        time=time_of(ticket.queued_ms),
        ticket_id=ticket.ticket_id,
        request_id=ticket.request_id,
        pool_id=ticket.pool_id,
        room_id=ticket.room_id,
        state=ticket.state.value,
        **profile_field(member.profile),
        labels=dict(ticket.labels),
        client_version=ticket.client_version,
        rating=ticket.rating,
        origin_digests=sorted(ticket.traits) if ticket.player_id == player_id else [],
        party_ids=[one for one in ticket.player_ids if one != player_id],
        table_id=ticket.table_id,
        seat=member.seat,
        hold_ids=list(member.hold_ids),
        problem=None if ticket.problem is None else ticket.problem.reason,
    )


def match_line(match: Match, player_id: str) -> str | None:
    """A match in an export; None where the player is none of its."""
    for seat, one in enumerate(match.seats, match.seat or 0):
        if one.player_id == player_id:
            return line(
                "match",
                time=time_of(match.formed_ms),
                match_id=match.match_id,
                pool_id=match.pool_id,
                state=match.state.value,
                seat=seat,
                **profile_field(one.profile),
                labels=dict(match.labels),
                table_id=match.table_id,
                player_ids=[other.player_id for other in match.seats],
            )
    return None


def room_line(room: Room, player_id: str) -> str | None:
    """A room in an export; None where the player neither opened it nor is in it."""
    guest = room.guest(player_id)
    turned_out = player_id in room.turned_out
    if guest is None and room.opener_id != player_id and not turned_out:
        return None
    return line(
        "room",
        room_id=room.room_id,
        code=room.code,
        template_id=room.template_id,
        state=room.state.value,
        opened=room.opener_id == player_id or None,
        turned_out=turned_out or None,
        labels=dict(room.labels),
        **({} if guest is None else {"seat": guest.seat, **profile_field(guest.profile)}),
        table_id=room.table_id,
    )


def known_lines(
    skills: Iterable[tuple[str, Skill]],
    met: Iterable[str],
    apart: Iterable[Apart],
    losses: Iterable[tuple[int, Losses]],
) -> Iterator[str]:
    """What is known of a player himself, in an export."""
    for rule_set, skill in skills:
        yield line("skill", rule_set=rule_set, **asdict(skill))
    for other_id in met:
        yield line("met", player_id=other_id)
    for pair in apart:
        yield line(
            "avoided" if pair.origin == "player" else "barred",
            player_id=pair.other_id,
            reason=pair.reason,
            case_id=pair.case_id,
            time=time_of(pair.time_ms),
        )
    for day, lost in losses:
        for (currency, book), amount in lost.items():
            yield line("loss", day=day, currency=currency, book=book, amount=amount)


def time_of(time_ms: int) -> str:
    """A time for people to read."""
    return datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat()
