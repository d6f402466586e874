"""What the matchmaker deals with: pools, tickets and matches. `matching` puts tickets together.

A *ticket* is the place of one player, or of a party that sits together, in the queue of a *pool*.
Tickets with four players become a *match*: their buy-ins are held, then a table is created that
takes the holds over, then the tickets are assigned. So does a single ticket to which a seat at a
table under way is offered. Nothing here knows a clock, chance, a database or the wire.

::

    ticket   WAITING ──► MATCHED ──► ASSIGNED ──► ENDED (its table closed, or it left it)
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from math import ceil, inf, isfinite
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
    """It was assigned, and its table has closed, or goes on without it."""


LIVE = frozenset({TicketState.WAITING, TicketState.MATCHED, TicketState.ASSIGNED})
"""A player has one ticket in these states at most."""


class MatchState(StrEnum):
    """How far four players have come on their way to a table."""

    FORMED = "formed"
    """The tickets belong to it; holds may have been asked for."""
    HELD = "held"
    """The buy-ins are held; no table has been asked for."""
    ASKED = "asked"
    """A table, or the seat, may have been asked for: from here on nobody can leave the match."""
    SEATED = "seated"
    """The table exists and the tickets are assigned to it."""
    RETURNING = "returning"
    """There will be no table, or no seat; holds may still have to be released."""
    RETURNED = "returned"
    """The holds are released and the tickets back in the queue, or out of it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a ticket could not be seated."""

    reason: str
    """UPPER_SNAKE, for programs."""
    message: str
    """For people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A player of a ticket."""

    player_id: str
    profile: bytes = b""
    seat: int | None = None
    """At the table, once the ticket is matched."""
    hold_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTicket:
    """What a player, or a party of two to four, queues with."""

    ticket_id: str
    request_id: str
    """The first member's own; a repeat is answered with the first ticket."""
    members: tuple[Member, ...]
    """Sit together or not at all; the first is the one who queued."""
    pool_id: str
    """Empty: it is a ticket of a room."""
    room_id: str = ""
    revision: int = 1
    """Of the pool, under which they queued."""
    client_version: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    """Who share one are not seated together in an `anti_cheat` pool. Digests: not to be read."""
    rating: float = 0.0
    """The mean of a party's."""
    standby: bool = False
    """It waits only to fill up a table."""
    is_bot: bool = False
    queued_ms: int
    """When it was queued, in milliseconds since 1970; its age counts from here."""
    trace: str = ""
    """The `traceparent` of the call that queued it, so that what becomes of it is of its trace."""

    def __post_init__(self) -> None:
        if not isfinite(self.rating):
            raise ValueError(f"{self.player_id} is rated {self.rating}: no place in any order")

    @property
    def player_id(self) -> str:
        """The player who queued."""
        return self.members[0].player_id

    @property
    def player_ids(self) -> tuple[str, ...]:
        """All players of it."""
        return tuple(member.player_id for member in self.members)

    def asks_the_same(self, other: NewTicket) -> bool:
        """Whether both were queued by the same request, but for what the service adds."""
        return (
            self.pool_id == other.pool_id
            and self.client_version == other.client_version
            and [(one.player_id, one.profile) for one in self.members]
            == [(one.player_id, one.profile) for one in other.members]
            and dict(self.labels) == dict(other.labels)
            and self.traits == other.traits
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
    """A player asked to leave while the ticket was matched."""
    apart: frozenset[str] = frozenset()
    """Players whom a member avoids, or from whom an operator keeps one."""
    met: frozenset[str] = frozenset()
    """Players of the members' last tables."""
    match_id: str | None = None
    table_id: str | None = None
    endpoint: str | None = None
    """Where the table's owner listens."""
    problem: Problem | None = None

    @property
    def is_live(self) -> bool:
        """Whether it keeps its players from queueing again."""
        return self.state in LIVE

    @property
    def age_key(self) -> tuple[int, int]:
        """Orders tickets, the oldest first."""
        return (self.queued_ms, self.number)

    def member(self, player_id: str) -> Member | None:
        """The member who is this player."""
        return next((one for one in self.members if one.player_id == player_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """What one unit of the rules is worth in a currency, and what a player must bring."""

    currency: str
    book: str = ""
    per_unit: int
    buy_in: int = 0
    """Held when the player is seated; 0: nothing is held."""
    entry_minimum: int = 0
    """Who has less available may not queue; 0: the buy-in is enough."""
    minimum: int = 0
    """Who has less after a hand leaves the table; 0: nobody has to."""
    loss_cap_per_hand: int = 0
    """What nobody loses more than in a hand; 0: no cap."""
    loss_cap_per_day: int = 0
    """Who has lost it on a day does not go on, nor queue, before the next; 0: no cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fee:
    """Paid to the house with the first hand of a table."""

    currency: str
    book: str = ""
    amount: int
    """Of each who pays."""
    by_owner: bool = False
    """The owner of a room pays, and nobody else."""
    seat: int | None = None
    """Who pays at the table; None: each player."""


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
    fees: tuple[Fee, ...] = ()
    hold_only: bool = False
    """Nobody loses more than his buy-in and what the hand brings him."""
    hands: int = 0
    """0: until a player leaves."""
    rounds: int = 0
    """圈: how often the deal goes around the table; 0: that ends nothing."""
    starting_chips: int = 0
    """Units that each begins with, where nothing is staked; 0: they are not limited."""
    timing: Timing = Timing()

    @property
    def buy_ins(self) -> tuple[Stake, ...]:
        """The stakes of which something is held."""
        return tuple(stake for stake in self.stakes if stake.buy_in > 0)

    def costs_the_same(self, other: Terms) -> bool:
        """Whether players put the same at stake."""
        return (self.stakes, self.fees, self.hold_only) == (
            other.stakes,
            other.fees,
            other.hold_only,
        )


class Mode(StrEnum):
    """What a pool is for."""

    CASUAL = "casual"
    RANKED = "ranked"
    ANTI_CHEAT = "anti_cheat"
    """Players come alone, their gateway says where from, and who shares that is kept apart."""
    PRACTICE = "practice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far apart ratings at a table may be: the longer the oldest has waited, the farther."""

    points: float
    """To either side of the oldest ticket's rating, at first."""
    widen_per_second: float = 0.0
    widest: float | None = None
    """Never more than this; None: in the end anybody will do."""

    def at(self, waited_ms: int) -> float:
        """How far after a wait."""
        wide = self.points + self.widen_per_second * max(0, waited_ms) / 1_000
        return wide if self.widest is None else min(wide, self.widest)

    def reaches_ms(self, distance: float) -> float:
        """After what wait ratings may be so far apart; infinite: never."""
        if distance <= self.points:
            return 0
        if self.widen_per_second == 0 or (self.widest is not None and distance > self.widest):
            return inf
        return ceil(1_000 * (distance - self.points) / self.widen_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """What players of a pool are rated by."""

    currency: str = ""
    """Their balance in it, such as points; empty: how well they have played the rule set."""
    book: str = ""
    spread: Spread

    @property
    def by_skill(self) -> bool:
        """Whether hands of the pool are rated, and its players by them."""
        return not self.currency


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A queue with its terms, in one revision."""

    pool_id: str
    name: str
    revision: int = 1
    terms: Terms
    mode: Mode = Mode.CASUAL
    least_client_version: int = 0
    most_party: int = 1
    """Players who may queue together."""
    rating: Rating | None = None
    """None: everybody may meet everybody."""
    rematch_after_ms: int = 10_000
    """Who have met at their last table meet again only when one has waited as long."""
    fill_with_bots_after_ms: int = 0
    """Seats still empty after this are filled with standby tickets; 0: never."""
    backfill: bool = False
    """A seat that is left between two hands is offered to those who wait."""

    @property
    def is_rated(self) -> bool:
        """Whether its hands count for the skill of its players."""
        return self.rating is not None and self.rating.by_skill


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A pool as it is configured: one revision for all, and perhaps a newer one for some."""

    pool: Pool
    newer: Pool | None = None
    percent: float = 0.0
    """Of the players get the newer one: always the same, drawn by their ids."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Whose ticket has all of these gets the newer one; empty: this brings it to nobody."""

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Its revisions."""
        return (self.pool,) if self.newer is None else (self.pool, self.newer)

    def of(self, player_id: str, labels: Mapping[str, str]) -> Pool:
        """The revision that a player gets."""
        if self.newer is None:
            return self.pool
        labelled = bool(self.labels) and self.labels.items() <= labels.items()
        drawn = f"{self.pool.pool_id} {self.newer.revision} {player_id}".encode()
        share = int.from_bytes(sha256(drawn).digest()[:4]) / 2**32 * 100
        return self.newer if labelled or share < self.percent else self.pool

    def revision(self, revision: int) -> Pool | None:
        """The pool in a revision; None where it is not configured (any longer)."""
        return next((pool for pool in self.pools if pool.revision == revision), None)


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
    """Four players on their way to a table, or one on his way to a seat at a table under way."""

    match_id: str
    pool_id: str
    terms: Terms
    seats: tuple[MatchSeat, ...]
    mode: Mode | None = None
    """Of the pool; None: they come from a private room."""
    labels: Mapping[str, str] = field(default_factory=dict)
    state: MatchState = MatchState.FORMED
    formed_ms: int = 0
    filled: bool = False
    """A standby ticket is among them."""
    rated: bool = False
    """Its hands count for the skill of its players."""
    table_id: str | None = None
    seat: int | None = None
    """Of the table `table_id`, which its one player is to get; None: it gets a table of its own."""
    failed: Mapping[str, Problem] = field(default_factory=dict)
    """RETURNING: the tickets that do not go back, by id."""
    trace: str = ""
    """The `traceparent` of what formed it, so that its steps are of the same trace."""

    @property
    def hold_ids(self) -> tuple[str, ...]:
        """All holds of all seats."""
        return tuple(hold for seat in self.seats for hold in seat.hold_ids)

    @property
    def ticket_ids(self) -> tuple[str, ...]:
        """Its tickets, each once, by their first seat."""
        return tuple(dict.fromkeys(seat.ticket_id for seat in self.seats))


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacancy:
    """A seat of a table under way that waits for another player."""

    table_id: str
    seat: int
    player_ids: frozenset[str] = frozenset()
    """Who sits there, whoever had them seated."""
    tickets: tuple[Ticket, ...] = ()
    """By which players of the pool came to sit there."""
    sat: frozenset[str] = frozenset()
    """Who sits there or has: nobody comes back to a table that he has left."""
    since_ms: int = 0
    """Since when it waits, as far as is known."""


def form_offer(match_id: str, pool: Pool, vacancy: Vacancy, ticket: Ticket, now_ms: int) -> Match:
    """The match of a ticket for one player to whom a seat at a table under way is offered."""
    (member,) = ticket.members
    return Match(
        match_id=match_id,
        pool_id=pool.pool_id,
        terms=pool.terms,
        mode=pool.mode,
        seats=(_match_seat(ticket, member),),
        formed_ms=now_ms,
        filled=ticket.standby,
        rated=pool.is_rated,
        table_id=vacancy.table_id,
        seat=vacancy.seat,
    )


def form_match(
    match_id: str, pool: Pool, group: Sequence[Ticket], now_ms: int, chance: random.Random
) -> Match:
    """A match of tickets with four players, the seats drawn by chance."""
    drawn = [(ticket, member) for ticket in group for member in ticket.members]
    chance.shuffle(drawn)
    return Match(
        match_id=match_id,
        pool_id=pool.pool_id,
        terms=pool.terms,
        mode=pool.mode,
        seats=tuple(_match_seat(ticket, member) for ticket, member in drawn),
        labels=shared_labels(ticket.labels for ticket in group if not ticket.standby),
        formed_ms=now_ms,
        filled=any(ticket.standby for ticket in group),
        rated=pool.is_rated,
    )


def _match_seat(ticket: Ticket, member: Member) -> MatchSeat:
    return MatchSeat(
        ticket_id=ticket.ticket_id,
        player_id=member.player_id,
        profile=member.profile,
        is_bot=ticket.is_bot,
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
