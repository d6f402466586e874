"""All tables of a process: made, found, kept and listed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection, Coroutine, Mapping
from typing import Any

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_kit import pages
from fangcheng_kit.errors import FailedPrecondition, InvalidArgument, NotFound
from fangcheng_kit.ids import new_id
from fangcheng_kit.tracing import Tracing, here
from fangcheng_rules import errors as rules_errors
from fangcheng_rules.errors import RulesError
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.wall import SECRET_BYTES

from . import convert
from .closed import ClosedTables
from .codec import UnknownEvent
from .dealing import chain_of
from .errors import (
    ChipsAndStakes,
    DuplicatePlayer,
    NoOwner,
    PlayedElsewhere,
    RequestIdReused,
    UnknownTable,
)
from .events import TableCreated
from .live import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, LiveTable
from .ownership import Ownership
from .store import Claim, Filter, Found, JournalError, NewTable, Owner, Record
from .surroundings import Surroundings

MOST_LOADED_TOGETHER = 8
MOST_LOOKS = 4
"""For a table that is on its way from one process to another."""


class Tables:
    """The tables."""

    def __init__(self, around: Surroundings, most_archived: int, me: Owner, lease_ms: int) -> None:
        """`most_archived`: closed tables that are kept in memory. `me`: this process.

        `lease_ms`: how long other processes wait for this one before they take its tables over.
        """
        self._around = around
        self._ownership = Ownership(
            around.journal,
            me,
            lease_ms,
            self._take,
            self._keep_only,
            lambda: len(self._live) + len(self._loading) + len(self._unreadable),
            around.metrics,
            around.log,
        )
        self._live: dict[str, LiveTable] = {}
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._unreadable: set[str] = set()
        """Tables of this process that it cannot play."""
        self._closed: ClosedTables[LiveTable] = ClosedTables(around.journal, most_archived)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._releasing: set[asyncio.Task[None]] = set()
        self._may_load = asyncio.Semaphore(MOST_LOADED_TOGETHER)

    async def resume(self) -> int:
        """Go on with the tables that nobody plays, this process's share; how many there are.

        One that cannot be read is left as it is; somebody must look.
        """
        await self._ownership.begin()
        await asyncio.gather(*self._loading.values())
        return len(self._live)

    async def keep(self) -> None:
        """Keep the lease, and take over the tables of others that are gone, until cancelled."""
        await self._ownership.keep()

    async def retire(self) -> None:
        """Leave the tables to others, one by one, where there are any others."""
        if not await self.others():
            return
        self._ownership.retire()
        # Those that are being loaded were claimed just before.
        while self._loading or self._tasks:
            await asyncio.gather(*self._loading.values())
            for table_id, task in list(self._tasks.items()):
                if not task.done():
                    self._live[table_id].let_go()
                    await asyncio.wait([task])
        await asyncio.gather(*self._releasing)

    async def stop(self) -> None:
        """Stop playing; what is stored stays, and is gone on with at the next start."""
        tasks = [*self._loading.values(), *self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._releasing, return_exceptions=True)
        await self._ownership.leave()

    # Whose a table is.

    def _take(self, claim: Claim) -> None:
        """Play a table that is this process's from now on."""
        if claim.table_id in self._loading or claim.table_id in self._live:
            return
        if self._ownership.retiring:  # it was on its way here when that began
            self._release_later(self._give_up(claim.table_id, claim.epoch))
            return
        task = asyncio.get_running_loop().create_task(self._load(claim))
        self._loading[claim.table_id] = task
        task.add_done_callback(lambda _: self._loading.pop(claim.table_id))

    async def _load(self, claim: Claim) -> None:
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            try:
                async with self._may_load:
                    table = await LiveTable.load(
                        claim.table_id, self._around, claim.epoch, taken_over=claim.abandoned
                    )
            except (UnknownEvent, RulesError, UnknownTable) as error:
                self._unreadable.add(claim.table_id)
                self._around.metrics.failures.inc()
                self._around.log.error(
                    "a table cannot be resumed", table_id=claim.table_id, problem=str(error)
                )
                return
            except JournalError as error:
                self._around.log.warning(
                    "a table is not read now", table_id=claim.table_id, problem=str(error)
                )
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
            else:
                self._unreadable.discard(claim.table_id)
                self._around.log.info(
                    "table taken over", table_id=claim.table_id, hand=table.state.hand_number
                )
                if claim.table_id not in self._live:
                    self._play(table)
                return

    def _keep_only(self, claims: Collection[Claim]) -> None:
        """Let go of the tables that are not among these."""
        ours = {claim.table_id: claim.epoch for claim in claims}
        self._unreadable.intersection_update(ours)
        for table in self._live.values():
            if ours.get(table.table_id) != table.epoch and not table.done:
                table.let_go()

    async def others(self) -> list[Owner]:
        """The other processes that take part; none where the journal does not answer."""
        try:
            return await self._ownership.others()
        except JournalError as error:
            self._around.log.warning("the other processes are not known", problem=str(error))
            return []

    # What callers ask for.

    @property
    def tracing(self) -> Tracing:
        """What makes spans."""
        return self._around.tracing

    @property
    def live(self) -> Collection[LiveTable]:
        """The tables that this process plays."""
        return self._live.values()

    async def heirs(self) -> list[Owner]:
        """Who makes new tables rather than this process: one of each newer version, the newest
        first, and of the others too where this one leaves its tables to them.
        """
        me, heirs = self._ownership.owner, dict[tuple[int, ...], Owner]()
        for other in await self.others():
            if other.release > me.release or self._ownership.retiring:
                heirs.setdefault(other.release, other)
        return list(heirs.values())

    async def create(self, request: wire.CreateTableRequest) -> tuple[LiveTable, bool]:
        """Make a table, or find the one that this request has made; whether it was found."""
        if self._ownership.retiring and (others := await self.others()):
            raise PlayedElsewhere("", others[0].endpoint)
        journal, body = self._around.journal, convert.canonical(request)
        before = await journal.by_request(request.request_id)
        if before is not None and before.request == body:
            return await self.get(before.table_id), True
        created = _created(request)
        if before is not None:
            raise RequestIdReused(request.request_id)
        await self._around.evaluator.check(created.rule_set, created.revision)
        wanted = NewTable(
            table_id=created.table_id,
            request_id=request.request_id,
            request=body,
            rule_set=created.rule_set,
            revision=created.revision,
            player_ids=tuple(plan.player_id for plan in created.seats),
            labels=created.labels,
        )
        records = [Record(1, created.created_ms, created)]
        try:
            made = await journal.create(wanted, records, self._ownership.owner.owner_id)
        except JournalError as error:
            self._around.log.error("the journal did not store", problem=str(error))
            raise
        if made.table_id != wanted.table_id:
            # The same request came in twice at the same time.
            if made.request != body:
                raise RequestIdReused(request.request_id)
            return await self.get(made.table_id), True
        self._around.log.info(
            "table created", table_id=made.table_id, rule_set=made.rule_set, hands=created.hands
        )
        # Somebody who lists tables may have come across it already.
        if loading := self._loading.get(made.table_id):
            await asyncio.shield(loading)
        found = self._live.get(made.table_id)
        return found or self._play(LiveTable(records, self._around, 1, made_by=here())), False

    async def get(self, table_id: str) -> LiveTable:
        """A table by its id, from memory or from the journal.

        Raises `UnknownTable`; `PlayedElsewhere` where another process plays it, and `NoOwner` where
        none does at this moment.
        """
        for _ in range(MOST_LOOKS):
            found = await self._find(table_id)
            if found is not None:
                return found
        raise NoOwner(table_id)

    async def _find(self, table_id: str) -> LiveTable | None:
        """One look for a table; None: look again."""
        found = self._live.get(table_id)
        if found is not None and not found.moved:
            return found
        if closed := await self._closed.get(table_id):
            return closed
        if loading := self._loading.get(table_id):
            await asyncio.shield(loading)
            return self._live.get(table_id)
        journal, me = self._around.journal, self._ownership.owner
        owner = await journal.owner_of(table_id)
        if owner is not None and owner != me:
            raise PlayedElsewhere(table_id, owner.endpoint)
        if owner is None:
            claim = await self._ownership.claim(table_id)
        else:
            held = await journal.held(me.owner_id)
            claim = next((one for one in held if one.table_id == table_id), None)
        if claim is not None:
            self._take(claim)
            return None
        if table_id in self._live:
            return None
        erasures = await self._closed.erasures()
        table = await LiveTable.load(table_id, self._around, 0)
        if table.done:
            self._closed.put(table_id, table, erasures)
            return table
        if self._ownership.retiring and (others := await self.others()):
            # Whoever is asked takes it over.
            raise PlayedElsewhere(table_id, others[hash(table_id) % len(others)].endpoint)
        return None

    async def find(
        self, wanted: Filter, size: int, token: str
    ) -> tuple[list[state_pb2.Table], str]:
        """A page of tables, newest first, and the token of the next one."""
        filters = [
            wanted.include_closed,
            wanted.rule_set,
            sorted((wanted.labels or {}).items()),
            wanted.player_id,
        ]
        last = pages.after(token, [int], filters)
        before = int(last[0]) if last else None
        found = await self._around.journal.find(wanted, before, size + 1)
        more = len(found) > size
        found = found[:size]
        next_token = pages.page_token([found[-1].place], filters) if more else ""
        shown = [await self._shown(one) for one in found]
        return [table for table in shown if table is not None], next_token

    async def _shown(self, found: Found) -> state_pb2.Table | None:
        """A table of a list; None for one that cannot be read (`resume` has told of it)."""
        if found.summary is not None:
            return state_pb2.Table.FromString(found.summary)
        table_id = found.table_id
        try:
            return await (await self.get(table_id)).shown()
        except PlayedElsewhere as elsewhere:
            table = await LiveTable.load(table_id, self._around, 0)
            shown = convert.table_to_wire(table.state)
            shown.endpoint = elsewhere.endpoint
            return shown
        except (UnknownEvent, RulesError, NoOwner):
            return None

    def _play(self, table: LiveTable) -> LiveTable:
        self._live[table.table_id] = table
        task = asyncio.get_running_loop().create_task(table.run(), name=f"table {table.table_id}")
        self._tasks[table.table_id] = task
        task.add_done_callback(lambda done: self._stopped(table, done))
        return table

    def _stopped(self, table: LiveTable, task: asyncio.Task[None]) -> None:
        del self._tasks[table.table_id]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._around.log.error("a table failed", table_id=table.table_id, exc_info=error)
            return
        if table.moved and not table.done:
            self._release_later(self._release(table))
            return
        del self._live[table.table_id]
        self._closed.put(table.table_id, table)

    async def _release(self, table: LiveTable) -> None:
        """Leave a table to whoever claims it; only then its readers look for it elsewhere."""
        await self._give_up(table.table_id, table.epoch)
        if self._live.get(table.table_id) is table:
            del self._live[table.table_id]
        table.end_readers()

    async def _give_up(self, table_id: str, epoch: int) -> None:
        try:
            await self._around.journal.give_up(table_id, epoch)
        except JournalError as error:  # then it is free when the lease has run out
            self._around.log.warning(
                "a table is not given up", table_id=table_id, problem=str(error)
            )

    def _release_later(self, release: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(release)
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)


def _created(request: wire.CreateTableRequest) -> TableCreated:
    """The table that a request asks for, with secrets of its own."""
    try:
        rules = rule_set(request.rules.id, request.rules.revision)
    except rules_errors.UnknownRuleSet as error:
        raise NotFound(error.reason, error.message, "rules.id") from error
    except rules_errors.UnknownRevision as error:
        raise FailedPrecondition(error.reason, error.message, "rules.revision") from error
    try:
        options = rules.complete(convert.options_from_wire(request.rules.options))
    except rules_errors.InvalidOption as error:
        raise InvalidArgument(error.reason, error.message, f"rules.{error.field}") from error
    if request.starting_chips and request.stakes:
        raise ChipsAndStakes
    seats = convert.seats_from_wire(request.seats)
    _unlike({f"seats[{n}].player_id": (seat.player_id,) for n, seat in enumerate(seats)}, "Player")
    _unlike({f"seats[{n}].hold_ids": seat.hold_ids for n, seat in enumerate(seats)}, "Hold")
    root = os.urandom(SECRET_BYTES)
    return TableCreated(
        table_id=new_id(),
        created_ms=time.time_ns() // 1_000_000,
        rule_set=rules.id,
        revision=rules.revision,
        options=options,
        seats=seats,
        stakes=convert.stakes_from_wire(request.stakes),
        hands=request.hands,
        timing=convert.timing_from_wire(
            request.timing, bots_only=all(seat.is_bot for seat in seats)
        ),
        labels=dict(request.labels),
        root=root,
        commitment=chain_of(root, request.hands).commitment,
        fees=convert.fees_from_wire(request.fees),
        hold_only=request.hold_only,
        rounds=request.rounds,
        starting_chips=request.starting_chips,
        talk=convert.talk_from_wire(request.talk),
        mode=convert.MODES[request.mode],
        pool_id=request.pool_id,
    )


def _unlike(given: Mapping[str, tuple[str, ...]], what: str) -> None:
    seen: set[str] = set()
    for field, words in given.items():
        for word in words:
            if word in seen:
                raise DuplicatePlayer(f"{what} {word}", field)
            seen.add(word)
