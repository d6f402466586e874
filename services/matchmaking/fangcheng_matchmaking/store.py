"""What the matchmaker's storage promises; `tests/matchmaking/test_store.py` holds stores to it.

Every method is one transaction: when it returns, its effect is on disk; when it raises, nothing
has changed. Each step names the state that it starts from, and repeating a step that has been
taken changes nothing and returns what it returned. So two replicas, or one that was restarted in
the middle, cannot take a ticket into two matches or a match into two outcomes: the store decides
every race, in the order in which the calls arrive.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from fangcheng_kit.errors import Unavailable
from fangcheng_kit.privacy import Erasure

from .core import Match, NewTicket, Problem, Terms, Ticket
from .losses import Losses
from .rooms import Room
from .skill import Skill


class StoreError(Exception):
    """The root of what a store refuses."""


class StoreUnavailable(StoreError, Unavailable):
    """The database fails now; whether a change was made, the same call tells."""

    def __init__(self) -> None:
        super().__init__(
            "QUEUE_UNAVAILABLE", "The queues cannot be reached now; repeat the same call."
        )


class LiveTicket(StoreError):
    """A player has a live ticket already."""

    def __init__(self, player_id: str, ticket: Ticket) -> None:
        super().__init__(f"{player_id} has the live ticket {ticket.ticket_id}")
        self.player_id = player_id
        self.ticket = ticket


class RequestReused(StoreError):
    """The player's request id was used before, for a ticket with other contents."""

    def __init__(self, ticket: Ticket) -> None:
        super().__init__(f"request id {ticket.request_id} was used for another ticket")
        self.ticket = ticket


UNREADABLE_VERSION = 2**53
"""Of a ticket that the storage has, but not as one that anybody could read: newer than whatever is
known of it. It counts as FAILED wherever it is read, and `Store.fail` makes it so."""
UNREADABLE = Problem("TICKET_UNREADABLE", "What the ticket said is lost; queue again.")


class UnknownTicket(StoreError):
    """No ticket of that id."""


class UnknownMatch(StoreError):
    """No match of that id."""


class WrongStep(StoreError):
    """The match is at another step, from which this one does not follow."""


class NoCode(StoreError):
    """Other rooms have all of the codes."""


class ErasureReused(StoreError):
    """The request id was used for another erasure."""


class SeatOffered(StoreError):
    """Another match that is not finished offers a seat of the same table."""


class NotWaiting(StoreError):
    """Some tickets of a match to be formed do not wait (any longer)."""

    def __init__(self, tickets: Sequence[Ticket]) -> None:
        super().__init__("not waiting: " + ", ".join(ticket.ticket_id for ticket in tickets))
        self.tickets = tuple(tickets)


class SomebodyLeaves(StoreError):
    """A player of the match asked to leave before its table was asked for."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The answer to a request to queue."""

    ticket: Ticket
    replayed: bool
    """It is the answer to an earlier request with the same id."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The last step of a match."""

    tickets: Sequence[Ticket]
    """Those of the match, as they stand."""
    replayed: bool
    """The step had been taken before."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Tickets that have changed."""

    tickets: Sequence[Ticket]
    """As they stand, in the order of their changes."""
    head: int
    """The newest change; ask for those after it the next time."""
    rooms: Sequence[Room] = field(default_factory=list)
    """Rooms that have changed, in the order of their changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """A table of a pool."""

    pool_id: str
    terms: Terms
    """Under which it was made."""
    tickets: Sequence[Ticket]
    """Those that are assigned to it, the oldest first."""
    sat: frozenset[str]
    """Everybody who was seated there."""


@dataclass(frozen=True, slots=True)
class Erased:
    """A player's personal data is erased."""

    changed: int
    """Records from which this call took something."""
    replayed: bool
    """The same request was done before."""


Origin = Literal["player", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Two players who are not seated together."""

    player_id: str
    other_id: str
    origin: Origin
    """`player`: the first avoids the other. `operator`: the pair is barred, whoever is first."""
    reason: str = ""
    case_id: str = ""
    time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedHand:
    """A finished hand, as far as skills, losses and going on are concerned."""

    cursor: str
    """Its place among the finished hands."""
    table_id: str
    number: int
    """Of the table's hands, from 1."""
    rule_set: str
    player_ids: tuple[str, ...]
    nets: tuple[int, ...]
    """What each has won and lost, in units; empty: the hand was dissolved."""
    lost: tuple[tuple[str, str, str, int], ...] = ()
    """Player, currency, book and what he lost for good, fees aside; below 0: he won."""
    ended_ms: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pool in which nothing is matched."""

    closed: bool
    """Nobody may queue either."""
    reason: str
    time_ms: int


class Store(Protocol):
    """Tickets, matches, and what the replicas of the service share besides."""

    async def join(self, new: NewTicket) -> Joined:
        """Queues a ticket, WAITING.

        The same player's same request id answers with the first ticket as it stands now, whatever
        became of it. Raises RequestReused where that request asked for something else, LiveTicket
        where a member has a live ticket from another request. Fills in whom the members avoid,
        from whom they are barred, and whom they met at their last tables.
        """

    async def replay(self, new: NewTicket) -> Ticket | None:
        """What `join` would replay; None where the request is a new one. Raises RequestReused."""

    async def check(self) -> None:
        """Raises StoreUnavailable where tickets cannot be read, or nothing can be changed now."""

    async def ticket(self, ticket_id: str) -> Ticket:
        """The ticket as it stands; raises UnknownTicket."""

    async def live_ticket(self, player_id: str) -> Ticket | None:
        """The player's live ticket."""

    async def live_tickets(self) -> Changes:
        """All live tickets, the oldest first."""

    async def changes(self, after: int) -> Changes:
        """The tickets that have changed after a change, whichever process changed them."""

    async def match(self, match_id: str) -> Match:
        """The match as it stands, its holds filled in; raises UnknownMatch."""

    async def unfinished_matches(self) -> list[Match]:
        """All matches that are neither SEATED nor RETURNED, the oldest first."""

    async def move(self, ticket_id: str, revision: int) -> Ticket:
        """A WAITING ticket goes to another revision of its pool; any other is left as it is."""

    async def leave(self, ticket_id: str) -> Ticket:
        """The player wants out; raises UnknownTicket.

        WAITING becomes LEFT at once. MATCHED is marked `leaving`: it becomes LEFT if the match
        falls through, and makes it fall through if its table was not asked for yet. Any other
        ticket is left as it is.
        """

    async def fail(self, ticket_id: str, problem: Problem) -> Ticket:
        """WAITING becomes FAILED, as does an unreadable ticket; any other is left as it is.

        Raises UnknownTicket.
        """

    async def form(self, match: Match) -> list[Ticket]:
        """Stores a match, FORMED; its tickets go from WAITING to MATCHED, all or none.

        Returns the tickets. Raises NotWaiting with those that do not wait, as they stand;
        SeatOffered where it offers a seat of a table that has an unfinished match.
        """

    async def held(self, match_id: str, hold_ids: Sequence[Sequence[str]]) -> Match:
        """FORMED becomes HELD; one list of holds for each seat. Raises WrongStep."""

    async def ask(self, match_id: str) -> Match:
        """FORMED or HELD becomes ASKED, unless a ticket of it is leaving.

        Raises SomebodyLeaves, WrongStep.
        """

    async def seated(self, match_id: str, table_id: str, endpoint: str) -> Ended:
        """ASKED becomes SEATED; the tickets become ASSIGNED, leaving or not. Raises WrongStep.

        The players have met from then on.
        """

    async def give_up(self, match_id: str, failed: Mapping[str, Problem]) -> Match:
        """FORMED, HELD or ASKED becomes RETURNING. `failed` are the tickets at fault, by id.

        Raises WrongStep.
        """

    async def returned(self, match_id: str) -> Ended:
        """RETURNING becomes RETURNED. Raises WrongStep.

        Of its tickets, those at fault become FAILED, those leaving LEFT, the others WAITING with
        the age that they had.
        """

    async def at_table(self, table_id: str) -> list[Ticket]:
        """The table's ASSIGNED tickets, the oldest first."""

    async def under_way(self, table_id: str) -> UnderWay | None:
        """The table, as far as matches of this store have had players seated there; None: none."""

    async def parted(self, table_id: str, player_ids: Collection[str]) -> list[Ticket]:
        """Players have left a table that goes on, and may queue again.

        A ticket of which nobody is left there becomes ENDED; returns these.
        """

    async def table_closed(self, table_id: str) -> list[Ticket]:
        """The table's ASSIGNED tickets become ENDED; returns them."""

    async def forget(self, before_ms: int) -> int:
        """Deletes tickets that are not live and were queued before; returns how many.

        With a finished match goes its record, once none of its tickets is left; with them go who
        met before, and closed rooms that were to expire before.
        """

    async def keep_apart(self, pair: Apart) -> list[Ticket]:
        """Two players are not seated together from now on; returns live tickets that it changed.

        Repeating it changes nothing.
        """

    async def bring_together(self, pair: Apart) -> list[Ticket]:
        """Takes back what `keep_apart` did with the same players and origin."""

    async def apart(self, player_id: str) -> list[Apart]:
        """Whom a player avoids, and with whom an operator has barred him, by the other's id."""

    async def lease(self, owner: str, pool_ids: Collection[str], lease_ms: int) -> frozenset[str]:
        """Takes the pools that nobody has, renews those that the owner has; returns all it has.

        A pool is one owner's at a time, until the lease ends by the clock of the database.
        """

    async def give_up_leases(self, owner: str) -> None:
        """The owner's pools are anybody's."""

    async def open_room(self, room: Room, codes: Sequence[str], new: NewTicket) -> Room:
        """Opens a room under the first of the codes that no other room has, with its ticket.

        The same opener's same request id is answered with the room as it is now. Raises LiveTicket,
        NoCode.
        """

    async def opened_room(self, opener_id: str, request_id: str) -> Room | None:
        """What `open_room` would answer again; None where the request is a new one."""

    async def room(self, room_id: str) -> Room:
        """The room as it stands; raises UnknownRoom."""

    async def room_of_code(self, code: str) -> Room:
        """The room that has this code and is not closed; raises UnknownRoom."""

    async def change_room(
        self, room_id: str, change: Callable[[Room], Room], new: NewTicket | None = None
    ) -> Room:
        """Changes a room, by a decision of `rooms` that nothing comes between.

        `new` is the ticket of a guest who comes, if he does. Who goes, goes by his ticket. Raises
        UnknownRoom, LiveTicket, and what `change` raises.
        """

    async def start_room(
        self, room_id: str, owner_id: str, match_id: str, now_ms: int
    ) -> tuple[Room, Match]:
        """The room is STARTING, and its match FORMED.

        A repeat by the owner is answered with both, as long as the room has not closed. Raises
        UnknownRoom and what `rooms.start` does.
        """

    async def expired_rooms(self, now_ms: int) -> list[Room]:
        """Open rooms whose time is over."""

    async def skill(self, player_id: str, rule_set: str) -> Skill:
        """A player's skill in a rule set; that of a beginner where nothing is known."""

    async def cursor(self) -> str:
        """The finished hand up to which skills are made; empty: of none."""

    async def note(self, hand: FinishedHand, day: int) -> frozenset[str]:
        """Notes a finished hand and moves the cursor; who of its players may lose no more that day.

        Skills change where a match of this store had its table, counts, and had no bot among its
        four. Losses of players (no bots) are added to the day's, in the currencies that the match's
        terms cap. Each hand is noted once, however often it comes.
        """

    async def losses(self, player_id: str, day: int) -> Losses:
        """What a player has lost on a day, as far as it was capped."""

    async def pause(self, pool_id: str, pause: Pause | None) -> None:
        """Pauses a pool, or (None) ends its pause."""

    async def pauses(self) -> dict[str, Pause]:
        """The pauses by pool."""

    async def was_erased(self, erasure: Erasure) -> bool:
        """Whether `erase` was done to its end under this request id; raises ErasureReused."""

    async def erase(self, erasure: Erasure) -> Erased:
        """Takes what is personal of a player out of everything; see `personal`.

        Unlike the rest, in several transactions: the same again finishes what a failure left.
        Raises ErasureReused; LiveTicket where the player queued meanwhile.
        """

    def lines(self, player_id: str) -> AsyncIterator[str]:
        """All that is kept of a player, as lines of an export."""

    async def close(self) -> None:
        """Waits for what was begun and closes the storage."""
