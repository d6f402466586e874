"""The journal's promise.

Every table has one sequence of events, numbered 1, 2, 3, … without a gap. What `create` and
`append` have returned for is on disk and survives the process; what failed has left nothing. An
event is stored once and never changed.

One process at a time plays a table: its owner. An owner has a lease, which it renews for all its
tables at once; when it has run out, others may claim them. Each claim of a table raises its epoch,
and an append under an older one is refused (`Superseded`): so an owner that was only thought dead
can do no harm when it wakes up. Leases are measured by one clock, the database's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fangcheng_kit.privacy import Erasure

from .errors import JournalUnavailable
from .events import Event


@dataclass(frozen=True, slots=True)
class Record:
    """One event in its place."""

    sequence: int
    """Counts from 1 within its table."""
    time_ms: int
    """When it was handed over for storing: milliseconds since 1970; never falls within a table."""
    event: Event


@dataclass(frozen=True, slots=True)
class NewTable:
    """What is kept of a table beside its events, to find it by."""

    table_id: str
    request_id: str
    request: str
    """What the caller of CreateTable sent, in a canonical form."""
    rule_set: str
    revision: int
    player_ids: tuple[str, ...]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tables `find` is after."""

    include_closed: bool = False
    rule_set: str = ""
    labels: Mapping[str, str] | None = None
    player_id: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A table that `find` has found."""

    place: int
    """Where it stands in the order of creation; counts up."""
    table_id: str
    summary: bytes | None
    """Kept when it closed; None while it is open."""


@dataclass(frozen=True, slots=True)
class HandEntry:
    """A finished hand in the index; written with the append that finishes it."""

    table_id: str
    hand_number: int
    rule_set: str
    """Its table's."""
    player_ids: tuple[str, ...]
    """Who sat at the seats when it ended."""
    labels: Mapping[str, str]
    """Its table's."""
    ended_ms: int
    """Milliseconds since 1970."""
    ending: str
    """`win`, `draw`, `escape`, …"""
    first_sequence: int
    last_sequence: int
    """From its `HandOpened` to the event that finished it, both included."""


@dataclass(frozen=True, slots=True)
class HandFilter:
    """Which finished hands `hands` is after; what is left empty does not matter."""

    table_id: str = ""
    hand_number: int = 0
    player_id: str = ""
    rule_set: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    since_ms: int = 0
    """Ended then or later."""
    until_ms: int = 0
    """Ended before; 0: whenever."""


@dataclass(frozen=True, slots=True)
class FoundHand:
    """A finished hand that was found."""

    place: int
    """Where it stands in the order in which hands were finished; counts up, with gaps."""
    entry: HandEntry


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """What an operator has done at a table; written with the append of its event, never changed."""

    action_id: str
    """Of this action alone."""
    table_id: str
    time_ms: int
    operator: str
    """Who called: the subject of the call's credentials."""
    verb: str
    reason: str
    case_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class FoundAction:
    """An operator's action that was found."""

    place: int
    """Counts up, with gaps."""
    action: OperatorAction


@dataclass(frozen=True, slots=True)
class Opening:
    """The state of a table as a hand was about to begin, so that it resumes from there."""

    sequence: int
    """Of the last event that is in the state."""
    state: bytes


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What is to become of what is kept of a table that is over; each answers it as it stays."""

    event: Callable[[Event], Event]
    table: Callable[[NewTable], NewTable]
    """Of which `request` and `labels` may change."""
    summary: Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Resealed:
    """A journal that was sealed anew."""

    bodies: int
    """Events and openings that were written anew."""
    struck_off: tuple[str, ...]
    """Ids of keys that the journal needs no more."""
    in_use: bool
    """A service still writes without the first key; so no key was struck off."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that plays tables."""

    owner_id: str
    """Of this one start of a process."""
    endpoint: str
    """`host:port` where it takes calls."""
    version: str = ""
    """Of its release, such as `0.1.0`; empty: from before versions were told."""

    @property
    def release(self) -> tuple[int, ...]:
        """Its version in numbers, for comparing."""
        return tuple(map(int, filter(None, self.version.split("."))))


@dataclass(frozen=True, slots=True)
class Claim:
    """A table that an owner plays from now on."""

    table_id: str
    epoch: int
    """Counts the owners that the table has had."""
    abandoned: bool = field(default=False, compare=False)
    """The owner before did not give it up; whether it is dead, or cannot reach the journal."""


@dataclass(frozen=True, slots=True)
class Census:
    """How the tables that are not done are spread."""

    owners: Mapping[str, int]
    """Tables of each owner whose lease has not run out, by its id."""
    unowned: int


@dataclass(frozen=True, slots=True)
class Commit:
    """What one transaction was like, for the metrics."""

    appends: int
    seconds: float


class JournalError(JournalUnavailable):
    """The journal did not take or tell it; nothing was stored, unless it says so.

    As text it is the `problem`, for the log; callers are told no more than that it failed.
    """

    def __init__(self, problem: str) -> None:
        super().__init__()
        self._problem = problem

    def __str__(self) -> str:
        return self._problem


class SequenceConflict(JournalError):
    """Another event stands in that place, or the one before it is missing: somebody else has
    written to this table, or an earlier append of ours has reached the disk after all.
    """


class Superseded(JournalError):
    """The table has another owner now: nothing more may be stored under this epoch."""


class Journal(Protocol):
    """Stores the events of tables, and who plays them."""

    async def create(self, table: NewTable, records: Sequence[Record], owner_id: str) -> NewTable:
        """Make a table with its first events; `owner_id` owns it, under epoch 1.

        Answers the table that has this request id: `table` itself, or the one that was there
        before, and then nothing is stored.
        """

    async def append(
        self,
        table_id: str,
        records: Sequence[Record],
        *,
        epoch: int,
        closed: bytes | None = None,
        done: bool = False,
        hands: Sequence[HandEntry] = (),
        actions: Sequence[OperatorAction] = (),
        seated: Sequence[str] = (),
    ) -> None:
        """Add events to a table, and what goes with them, all or none.

        `epoch`: under which the caller owns the table, or this is `Superseded`. The first record's
        sequence follows the table's last one, or this is a `SequenceConflict`; so it is for a hand
        or an action that is there already. `closed`: the table has closed; its summary for `find`.
        `done`: nothing is left to do for it, it need not be played at the next start. `hands`:
        those that were finished, in their order. `actions`: those of operators. `seated`: players
        who have taken a seat, for `find` to find the table by; those who had one stay findable.
        """

    async def read(self, table_id: str, after: int = 0, upto: int | None = None) -> list[Record]:
        """A table's events in their order, those with a sequence above `after` and, where it is
        given, of at most `upto`; empty for an unknown table. Raises `TableArchived` where they were
        taken out of the database, into the archive of their month.
        """

    async def by_request(self, request_id: str) -> NewTable | None:
        """The table that was made by a request."""

    async def find(self, wanted: Filter, before: int | None, limit: int) -> list[Found]:
        """Tables, newest first, `limit` at most, only those with a place below `before`."""

    async def hands(self, wanted: HandFilter, before: int | None, limit: int) -> list[FoundHand]:
        """Finished hands, newest first, `limit` at most, only those with a place below `before`."""

    async def finished(self, after: int, limit: int) -> list[FoundHand]:
        """Finished hands with a place above `after`, oldest first, `limit` at most.

        No hand ever appears at or below a place that was handed out: who goes on after the last
        one has seen all.
        """

    async def operator_actions(
        self, table_id: str, before: int | None, limit: int
    ) -> list[FoundAction]:
        """Operators' actions at a table (all tables: empty), newest first, `limit` at most, only
        those with a place below `before`.
        """

    async def save_opening(self, table_id: str, opening: Opening) -> None:
        """Keep an opening in place of an older one; it may be lost, the journal has everything."""

    async def opening(self, table_id: str) -> Opening | None:
        """The newest opening of a table."""

    async def rewrite(self, table_id: str, change: Rewriting) -> int | None:
        """Change what is kept of a table that is done, all or none: what must be forgotten goes.

        Events keep their places and times; the log of operators stays as it is. Of two that
        rewrite the same table, in whichever processes, one starts from what the other has left.
        Answers how many events have changed; None: they are in an archive, and what is kept beside
        them has changed. Raises `UnknownTable` and `TableNotOver`.
        """

    async def reseal(self) -> Resealed:
        """Write anew what the first key has not sealed, then strike the others off.

        Services may go on meanwhile. Raises `UnknownEvent` for what cannot be opened; what was
        written anew until then stays.
        """

    # Personal data; see `personal`.

    async def begin_erasure(self, erasure: Erasure) -> bool:
        """Note what is asked for; whether it was done to its end. Raises `RequestIdReused`."""

    async def erase_at(self, table_id: str, erasure: Erasure) -> bool:
        """Take what is personal of a player out of a table that is done; whether that was all of
        it, and not only what is kept beside events that are in an archive.

        Raises `UnknownTable` and `TableNotOver`.
        """

    async def end_erasure(self, request_id: str) -> None:
        """Note that it is done, with nothing on disk of what was changed, as far as can be."""

    async def erasures(self) -> int:
        """Changes whenever an erasure begins or ends: what was read before may be more than is
        kept now.
        """

    async def erasures_of(self, player_id: str) -> Sequence[tuple[str, str, int]]:
        """A player's: request ids, reasons and times, milliseconds since 1970."""

    # Who plays which table.

    async def join(self, owner: Owner, lease_ms: int) -> None:
        """Take part, with a lease of this length from now on.

        Where only one process can use the journal, all owners before it are dead.
        """

    async def renew(self, owner_id: str, lease_ms: int) -> bool:
        """Let the owner's lease begin anew; whether it had not run out, so that all is as it was.

        If it had, some of its tables may be others' now: see `held`.
        """

    async def leave(self, owner_id: str) -> None:
        """End an owner's lease; nobody owns its tables."""

    async def claim(
        self, owner_id: str, plays: Collection[tuple[str, int]], limit: int, table_id: str = ""
    ) -> list[Claim]:
        """Take tables over that are not done and that nobody owns, the oldest first.

        `plays`: the rule sets and revisions that the owner can play; others it is not given.
        `table_id`: only this one.
        """

    async def give_up(self, table_id: str, epoch: int) -> None:
        """Own a table no more; nothing, where another owner has it by now."""

    async def held(self, owner_id: str) -> list[Claim]:
        """The tables that an owner owns and that are not done, oldest first."""

    async def owner_of(self, table_id: str) -> Owner | None:
        """Who owns a table under a lease that has not run out."""

    async def owners(self) -> list[Owner]:
        """All whose lease has not run out."""

    async def census(self) -> Census:
        """How the tables are spread now."""

    async def check(self) -> None:
        """Write something, without effect; raises `JournalError` where nothing can be written."""

    async def close(self) -> None:
        """Write what was handed over, then let go of the database. Twice is once."""
