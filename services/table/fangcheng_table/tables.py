"""All tables of a process: made, found, kept and listed."""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping

from fangcheng.table.v1 import state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_kit import pages
from fangcheng_kit.errors import FailedPrecondition, InvalidArgument, NotFound
from fangcheng_kit.ids import new_id
from fangcheng_rules import errors as rules_errors
from fangcheng_rules.errors import RulesError
from fangcheng_rules.rulesets import known, rule_set
from fangcheng_rules.wall import SECRET_BYTES

from . import convert
from .codec import UnknownEvent
from .dealing import chain_of
from .errors import (
    ChipsAndStakes,
    DuplicatePlayer,
    JournalUnavailable,
    RequestIdReused,
    UnknownTable,
)
from .events import TableCreated
from .live import LiveTable, Surroundings
from .store import Filter, Found, JournalError, NewTable, Owner, Record

LEASE_MS = 3_000
MOST_TABLES = 100_000
"""Claimed at once at most."""


class Tables:
    """The tables."""

    def __init__(self, around: Surroundings, most_archived: int, endpoint: str) -> None:
        """`most_archived`: closed tables that are kept in memory. `endpoint`: of this process."""
        self._around = around
        self._owner = Owner(new_id(), endpoint)
        self._most_archived = most_archived
        self._live: dict[str, LiveTable] = {}
        self._archive: OrderedDict[str, LiveTable] = OrderedDict()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def resume(self) -> int:
        """Go on with every table that is not done; how many there are.

        One that cannot be read, or whose rule set is here in another revision only, is left as it
        is; somebody must look.
        """
        journal, plays = self._around.journal, [(rules.id, rules.revision) for rules in known()]
        await journal.join(self._owner, LEASE_MS)
        for claim in await journal.claim(self._owner.owner_id, plays, MOST_TABLES):
            try:
                records = await journal.read(claim.table_id)
                self._play(LiveTable(records, self._around, claim.epoch))
            except (UnknownEvent, RulesError) as error:
                self._around.metrics.failures.inc()
                self._around.log.error(
                    "a table cannot be resumed", table_id=claim.table_id, problem=str(error)
                )
        left = (await journal.census()).unowned
        if left:
            self._around.metrics.failures.inc(left)
            self._around.log.error("tables of rule sets that are not here", tables=left)
        return len(self._live)

    async def stop(self) -> None:
        """Stop playing; what is stored stays, and is gone on with at the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self._around.journal.leave(self._owner.owner_id)
        except JournalError as error:  # then the lease runs out by itself
            self._around.log.warning("the lease could not be given back", problem=str(error))

    @property
    def live(self) -> Collection[LiveTable]:
        """The tables that this process plays."""
        return self._live.values()

    async def create(self, request: wire.CreateTableRequest) -> tuple[LiveTable, bool]:
        """Make a table, or find the one that this request has made; whether it was found."""
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
            made = await journal.create(wanted, records, self._owner.owner_id)
        except JournalError as error:
            self._around.log.error("the journal did not store", problem=str(error))
            raise JournalUnavailable from error
        if made.table_id != wanted.table_id:
            # The same request came in twice at the same time.
            if made.request != body:
                raise RequestIdReused(request.request_id)
            return await self.get(made.table_id), True
        self._around.log.info(
            "table created", table_id=made.table_id, rule_set=made.rule_set, hands=created.hands
        )
        # Somebody who lists tables may have come across it already.
        found = self._live.get(made.table_id)
        return found or self._play(LiveTable(records, self._around, 1)), False

    async def get(self, table_id: str) -> LiveTable:
        """A table by its id, from memory or from the journal; raises `UnknownTable`."""
        found = self._live.get(table_id) or self._archive.get(table_id)
        if found is not None:
            if table_id in self._archive:
                self._archive.move_to_end(table_id)
            return found
        records = await self._around.journal.read(table_id)
        if not records:
            raise UnknownTable(table_id)
        table = LiveTable(records, self._around, 1)
        if not table.done:
            # Made this very moment, or read before it was.
            return self._live.get(table_id) or self._play(table)
        self._put_away(table)
        return table

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
        try:
            return await (await self.get(found.table_id)).shown()
        except (UnknownEvent, RulesError):
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
        del self._live[table.table_id]
        if not table.moved:
            self._put_away(table)

    def _put_away(self, table: LiveTable) -> None:
        self._archive[table.table_id] = table
        while len(self._archive) > self._most_archived:
            self._archive.popitem(last=False)


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
    )


def _unlike(given: Mapping[str, tuple[str, ...]], what: str) -> None:
    seen: set[str] = set()
    for field, words in given.items():
        for word in words:
            if word in seen:
                raise DuplicatePlayer(f"{what} {word}", field)
            seen.add(word)
