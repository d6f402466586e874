"""The matchmaker's decisions: tickets and the time go in, groups of four come out.

A *ticket* is one player's place in the queue of a *pool*. Four tickets become a *match*: their
buy-ins are held, then a table is created that takes the holds over, then the tickets are
assigned. Nothing here knows a clock, chance, a database or the wire.

::

    ticket   WAITING ──► MATCHED ──► ASSIGNED ──► ENDED (its table closed)
                │  ▲        │
                │  └────────┤ the match fell through: back in the queue, with its age
                ▼           ▼
            LEFT, FAILED ◄──┘ it left meanwhile, or it was what the match failed for

    match    FORMED ──► HELD ──► ASKED ──► SEATED
                │         │        │
                └─────────┴────────┴──► RETURNING ──► RETURNED
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

SEATS = 4

OptionValue = bool | int | str


class TicketState(StrEnum):
    """Where a ticket stands."""

    WAITING = "waiting"
    MATCHED = "matched"
    ASSIGNED = "assigned"
    LEFT = "left"
    FAILED = "failed"
    ENDED = "ended"
    """It was assigned, and its table has closed: the player may queue again."""


LIVE = frozenset({TicketState.WAITING, TicketState.MATCHED, TicketState.ASSIGNED})
"""A player has one ticket in these states at most."""


class MatchState(StrEnum):
    """How far four tickets have come on their way to a table."""

    FORMED = "formed"
    """The tickets belong to it; holds may have been asked for."""
    HELD = "held"
    """The buy-ins are held; no table has been asked for."""
    ASKED = "asked"
    """A table may have been asked for: from here on nobody can leave the match."""
    SEATED = "seated"
    """The table exists and the tickets are assigned to it."""
    RETURNING = "returning"
    """There will be no table; holds may still have to be released."""
    RETURNED = "returned"
    """The holds are released and the tickets back in the queue, or out of it."""


UNFINISHED = frozenset({MatchState.FORMED, MatchState.HELD, MatchState.ASKED, MatchState.RETURNING})


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a ticket could not be seated."""

    reason: str
    """UPPER_SNAKE, for programs."""
    message: str
    """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTicket:
    """What a player queues with."""

    ticket_id: str
    request_id: str
    """The player's own; a repeat is answered with the first ticket."""
    player_id: str
    pool_id: str
    client_version: int = 0
    profile: bytes = b""
    labels: Mapping[str, str] = field(default_factory=dict)
    standby: bool = False
    """It waits only to fill up a table."""
    is_bot: bool = False
    queued_ms: int
    """When it was queued, in milliseconds since 1970; its age counts from here."""

    def asks_the_same(self, other: NewTicket) -> bool:
        """Whether both were queued by the same request, but for what the service adds."""
        return (
            self.pool_id == other.pool_id
            and self.client_version == other.client_version
            and self.profile == other.profile
            and dict(self.labels) == dict(other.labels)
            and self.standby == other.standby
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket(NewTicket):
    """A ticket as it stands."""

    number: int
    """Counts the tickets of the store; orders those that were queued in the same millisecond."""
    version: int = 1
    """Counts the changes of this ticket, so that an older state never hides a newer one."""
    state: TicketState = TicketState.WAITING
    leaving: bool = False
    """The player asked to leave while the ticket was matched."""
    match_id: str | None = None
    seat: int | None = None
    table_id: str | None = None
    endpoint: str | None = None
    """Where the table's owner listens."""
    hold_ids: tuple[str, ...] = ()
    problem: Problem | None = None

    @property
    def is_live(self) -> bool:
        """Whether it keeps its player from queueing again."""
        return self.state in LIVE

    @property
    def age_key(self) -> tuple[int, int]:
        """Orders tickets, the oldest first."""
        return (self.queued_ms, self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """What one unit of the rules is worth in a currency, and what a player must bring."""

    currency: str
    book: str = ""
    per_unit: int
    buy_in: int = 0
    """Held when the player is seated; 0: nothing is held."""
    minimum: int = 0
    """Who has less left after a hand leaves the table."""


Away = Literal["escape", "trustee_to_end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The clocks of a table; None: the table's own default."""

    turn_ms: int | None = None
    claim_ms: int | None = None
    before_deal_ms: int | None = None
    claim_window_ms: int | None = None
    between_hands_ms: int | None = None
    away_grace_ms: int | None = None
    reserve_ms: int | None = None
    ready_ms: int | None = None
    vote_ms: int | None = None
    vacancy_ms: int | None = None
    away: Away | None = None
    """What becomes of who is away for longer than the grace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is played at the tables of a pool. A match keeps those that it was formed under."""

    rule_set: str
    revision: int = 0
    """0: the newest."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    stakes: tuple[Stake, ...] = ()
    hands: int = 0
    """0: until a player leaves."""
    rounds: int = 0
    """圈; 0: they end nothing."""
    starting_chips: int = 0
    """Units that each begins with where nothing is staked; 0: without a limit."""
    timing: Timing = Timing()

    @property
    def buy_ins(self) -> tuple[Stake, ...]:
        """The stakes of which something is held."""
        return tuple(stake for stake in self.stakes if stake.buy_in > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A queue with its terms."""

    pool_id: str
    name: str
    terms: Terms
    least_client_version: int = 0
    fill_with_bots_after_ms: int = 0
    """Seats still empty after this are filled with standby tickets; 0: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchSeat:
    """Who sits where; the place in the match is the seat."""

    ticket_id: str
    player_id: str
    profile: bytes = b""
    is_bot: bool = False
    hold_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Four tickets on their way to a table."""

    match_id: str
    pool_id: str
    terms: Terms
    seats: tuple[MatchSeat, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    state: MatchState = MatchState.FORMED
    formed_ms: int = 0
    filled: bool = False
    """A standby ticket is among the four."""
    table_id: str | None = None
    failed: Mapping[str, Problem] = field(default_factory=dict)
    """RETURNING: the tickets that do not go back, by id."""

    @property
    def hold_ids(self) -> tuple[str, ...]:
        """All holds of all seats."""
        return tuple(hold for seat in self.seats for hold in seat.hold_ids)


class Queue:
    """The waiting tickets of one pool, in the order of their age.

    Players and standby tickets wait in lines of their own: a standby ticket is never what a
    table is made for.
    """

    def __init__(self, fill_after_ms: int = 0) -> None:
        self.fill_after_ms = fill_after_ms
        self._tickets: dict[str, Ticket] = {}
        self._players: list[tuple[int, int, str]] = []
        self._standby: list[tuple[int, int, str]] = []

    def __len__(self) -> int:
        """Players waiting, standby not counted."""
        return len(self._players)

    @property
    def standby(self) -> int:
        """Tickets on standby."""
        return len(self._standby)

    @property
    def oldest_queued_ms(self) -> int | None:
        """When the longest waiting player was queued."""
        return self._players[0][0] if self._players else None

    def put(self, ticket: Ticket) -> None:
        """Adds a ticket, or replaces it by its newer state."""
        self.remove(ticket.ticket_id)
        self._tickets[ticket.ticket_id] = ticket
        insort(self._line(ticket), (*ticket.age_key, ticket.ticket_id))

    def remove(self, ticket_id: str) -> None:
        """Takes a ticket out, if it is in."""
        ticket = self._tickets.pop(ticket_id, None)
        if ticket is not None:
            line = self._line(ticket)
            del line[bisect_left(line, (*ticket.age_key, ticket_id))]

    def position(self, ticket_id: str) -> int:
        """Place in the ticket's own line, 1 is next; 0: not in the queue."""
        ticket = self._tickets.get(ticket_id)
        if ticket is None:
            return 0
        return bisect_left(self._line(ticket), (*ticket.age_key, ticket_id)) + 1

    def groups(self, now_ms: int) -> list[tuple[Ticket, ...]]:
        """The groups of four that can be seated now, those of the oldest first.

        Changes nothing: a ticket leaves the queue when its match is stored.
        """
        players, spare = self._players, self._standby
        whole = len(players) - len(players) % SEATS
        groups = [players[at : at + SEATS] for at in range(0, whole, SEATS)]
        rest = players[whole:]
        missing = SEATS - len(rest)
        if self._fills(rest, now_ms) and len(spare) >= missing:
            groups.append([*rest, *spare[:missing]])
        return [tuple(self._tickets[key[2]] for key in group) for group in groups]

    def next_fill_ms(self) -> int | None:
        """When standby tickets will complete a table, unless players do before; None: never."""
        rest = self._players[len(self._players) - len(self._players) % SEATS :]
        if not rest or not self.fill_after_ms or len(self._standby) < SEATS - len(rest):
            return None
        return rest[0][0] + self.fill_after_ms

    def _fills(self, rest: Sequence[tuple[int, int, str]], now_ms: int) -> bool:
        if not rest or not self.fill_after_ms:
            return False
        return now_ms >= rest[0][0] + self.fill_after_ms

    def _line(self, ticket: Ticket) -> list[tuple[int, int, str]]:
        return self._standby if ticket.standby else self._players


def form_match(
    match_id: str, pool: Pool, group: Sequence[Ticket], now_ms: int, chance: random.Random
) -> Match:
    """A match of four tickets, the seats drawn by chance."""
    drawn = list(group)
    chance.shuffle(drawn)
    return Match(
        match_id=match_id,
        pool_id=pool.pool_id,
        terms=pool.terms,
        seats=tuple(
            MatchSeat(
                ticket_id=ticket.ticket_id,
                player_id=ticket.player_id,
                profile=ticket.profile,
                is_bot=ticket.is_bot,
            )
            for ticket in drawn
        ),
        labels=shared_labels(ticket.labels for ticket in group if not ticket.standby),
        formed_ms=now_ms,
        filled=any(ticket.standby for ticket in group),
    )


def shared_labels(all_labels: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The labels that every one of them has with the same value."""
    shared: dict[str, str] | None = None
    for labels in all_labels:
        if shared is None:
            shared = dict(labels)
        else:
            shared = {key: text for key, text in shared.items() if labels.get(key) == text}
    return shared or {}
