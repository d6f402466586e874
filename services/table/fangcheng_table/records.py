"""The records of hands that have ended, found in the journal by its index of finished hands."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable

from fangcheng.table.v1 import records_pb2 as wire
from fangcheng_kit import pages
from fangcheng_rules import events as play
from fangcheng_rules.tiles import code

from . import convert
from .errors import (
    HandNotFinished,
    InvalidCursor,
    NotSeated,
    TableArchived,
    UnknownHand,
    UnknownTable,
)
from .events import HandOpened, HandSettled, OperatorActed, PlayerSeated, TableCreated
from .store import FoundHand, HandEntry, HandFilter, Journal, Record
from .views import Projector

AT_ONCE = 100
"""Finished hands that are read from the index at a time."""


class News:
    """Wakes whoever waits for the next finished hand of this process."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        """A hand was finished."""
        self._next.set()
        self._next = asyncio.Event()

    @property
    def next(self) -> asyncio.Event:
        """Set with the next hand that is finished from now on."""
        return self._next


class Records:
    """What the journal has of hands that have ended."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def record(self, table_id: str, hand_number: int, player_id: str = "") -> wire.HandRecord:
        """Everything about a hand that has ended; for a player, only a hand of its own.

        Raises `UnknownTable`, `TableArchived`, `UnknownHand`, `HandNotFinished` and `NotSeated`.
        """
        wanted = HandFilter(table_id=table_id, hand_number=hand_number)
        for found in await self._journal.hands(wanted, None, 1):
            record = await self._of(found.entry)
            break
        else:
            record = await self._unsettled(table_id, hand_number, player_id)
        _check_seat(record.player_ids, player_id, table_id)
        return record

    async def page(self, wanted: HandFilter, size: int, token: str) -> tuple[list[HandEntry], str]:
        """A page of finished hands, newest first, and the token of the next one."""
        filters = [
            wanted.table_id,
            wanted.player_id,
            wanted.rule_set,
            sorted(wanted.labels.items()),
            wanted.since_ms,
            wanted.until_ms,
        ]
        last = pages.after(token, [int], filters)
        found = await self._journal.hands(wanted, int(last[0]) if last else None, size + 1)
        more = len(found) > size
        next_token = pages.page_token([found[size - 1].place], filters) if more else ""
        return [one.entry for one in found[:size]], next_token

    async def finished(
        self, cursor: str, news: News, look_seconds: float, *, with_records: bool
    ) -> AsyncGenerator[wire.FinishedHand | None, None]:
        """The hands that are finished after a cursor, for ever; None where there is none for now.

        Other processes' hands are looked for every `look_seconds`. Raises `InvalidCursor`.
        """
        place = _place(cursor)
        while True:
            next_hand = news.next
            found = await self._journal.finished(place, AT_ONCE)
            for hand in found:
                place = hand.place
                yield await self._shown(hand, with_records=with_records)
            if not found:
                yield None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(look_seconds):
                        await next_hand.wait()

    async def _shown(self, hand: FoundHand, *, with_records: bool) -> wire.FinishedHand:
        shown = wire.FinishedHand(cursor=str(hand.place), entry=entry_to_wire(hand.entry))
        if with_records:
            # Who begins long ago comes across hands whose events are in archives by now.
            with contextlib.suppress(TableArchived):
                shown.record.CopyFrom(await self._of(hand.entry))
        return shown

    async def _of(self, entry: HandEntry) -> wire.HandRecord:
        """Reads what came after the hand before, and the table's first event alone.

        Raises `TableArchived`.
        """
        before = await self._end_before(entry.table_id, entry.hand_number)
        opening = await self._journal.read(entry.table_id, 0, 1)
        events = await self._journal.read(entry.table_id, max(before, 1), entry.last_sequence)
        record = record_of([*opening, *events], entry.hand_number, before)
        del record.player_ids[:]
        record.player_ids.extend(entry.player_ids)
        return record

    async def _end_before(self, table_id: str, hand_number: int) -> int:
        """The sequence with which the hand before was finished; 0 where there was none."""
        before = HandFilter(table_id=table_id, hand_number=hand_number - 1)
        found = await self._journal.hands(before, None, 1) if hand_number > 1 else []
        return found[0].entry.last_sequence if found else 0

    async def _unsettled(self, table_id: str, hand_number: int, player_id: str) -> wire.HandRecord:
        """Of a hand that is not in the index: it may have ended and wait to be paid."""
        records = await self._journal.read(table_id)
        if not records:
            raise UnknownTable(table_id)
        before = await self._end_before(table_id, hand_number)
        record = record_of(records, hand_number, before)
        _check_seat(record.player_ids, player_id, table_id)
        if not record.secret:
            raise UnknownHand(hand_number)
        if not any(event.HasField("hand_ended") for event in record.events):
            raise HandNotFinished(hand_number)
        return record


def hide_from_players(record: wire.HandRecord) -> None:
    """Leave in a record that an operator looked at all tiles, and not what he suspected."""
    for event in record.events:
        if event.operator_acted.verb == "reveal":
            event.operator_acted.reason = event.operator_acted.case_id = ""


def entry_to_wire(entry: HandEntry) -> wire.FinishedHandEntry:
    """A finished hand of the index."""
    message = wire.FinishedHandEntry(
        table_id=entry.table_id,
        hand_number=entry.hand_number,
        rule_set=entry.rule_set,
        player_ids=entry.player_ids,
        labels=entry.labels,
        ending=entry.ending,
    )
    message.ended.FromMilliseconds(entry.ended_ms)
    return message


def _check_seat(seated: Iterable[str], player_id: str, table_id: str) -> None:
    if player_id and player_id not in seated:
        raise NotSeated(table_id)


def _place(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 18:
        raise InvalidCursor
    return int(cursor)


def record_of(records: Iterable[Record], hand_number: int, before: int = 0) -> wire.HandRecord:
    """The record of a hand, from the first event of its table and all that came after `before`.

    `before`: the sequence with which the hand before was finished. What operators have done since
    then stands in the record too. Its seats are those of its end. Where the hand has not been
    opened, there is no secret in it.
    """
    message = wire.HandRecord(hand_number=hand_number)
    projector = Projector(record=True)
    players: list[str] = []
    number, ended = 0, False
    for record in records:
        event = record.event
        is_ours = number == hand_number
        match event:
            case TableCreated():
                _describe(message, event)
                players = [plan.player_id for plan in event.seats]
            case PlayerSeated(seat, plan) if number <= hand_number and not (is_ours and ended):
                players[seat] = plan.player_id
            case HandOpened():
                number, ended = event.hand_number, False
                is_ours = number == hand_number
                if is_ours:
                    message.secret = event.secret
                    message.entropy.extend(event.entropy)
            case play.HandStarted() if is_ours:
                message.wall.extend(code(tile) for tile in event.wall)
                message.dice.extend(event.dice)
            case _:
                pass
        # Between two hands only the payment still belongs to the one before.
        belongs = is_ours and (not ended or isinstance(event, HandSettled))
        if isinstance(event, OperatorActed):
            belongs = record.sequence > before and number <= hand_number
        for _, shown in projector.see(record):
            if belongs:
                shown.number = len(message.events) + 1
                message.events.append(shown)
        ended = ended or isinstance(event, play.HandEnded)
    message.player_ids.extend(players)
    return message


def _describe(message: wire.HandRecord, created: TableCreated) -> None:
    table = convert.table_as_created(created)
    message.table_id = created.table_id
    message.rules.CopyFrom(table.rules)
    message.table_commitment = created.commitment
    message.labels.update(created.labels)
    message.stakes.extend(table.stakes)
    message.fees.extend(table.fees)
    message.hold_only = table.hold_only
