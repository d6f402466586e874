"""What fails around a table: its journal, the evaluator, the wallet, the process itself."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from prometheus_client import CollectorRegistry

from fangcheng.evaluation.v1 import evaluation_pb2 as evaluation
from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import operators_pb2 as operators_wire
from fangcheng.table.v1 import records_pb2 as records_wire
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng.table.v1.operators_pb2_grpc import TableOperationsServiceStub
from fangcheng.table.v1.table_pb2_grpc import TableServiceStub
from fangcheng.wallet.v1 import settlement_pb2 as wallet
from fangcheng_client import explain
from fangcheng_kit import StartFailed
from fangcheng_rules.analysis import Analysis, analyze
from fangcheng_rules.hand import Hand
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import FinishedHand, Score, score
from fangcheng_table.clocks import Patience
from fangcheng_table.convert import options_from_wire
from fangcheng_table.errors import JournalUnavailable, StaleDecision
from fangcheng_table.events import Payment
from fangcheng_table.feed import Reader, Waiter
from fangcheng_table.gameclock import GameClock
from fangcheng_table.live import LiveTable
from fangcheng_table.metrics import TableMetrics
from fangcheng_table.settlement import Settlement
from fangcheng_table.sqlite import SqliteJournal
from fangcheng_table.state import TableState
from fangcheng_table.store import JournalError, NewTable, Record
from fangcheng_table.stored.v1 import event_pb2 as stored
from fangcheng_table.surroundings import Surroundings

from .tables import created, paid, sights, told
from .world import (
    PLAYERS,
    World,
    play_all,
    refused,
    request,
    simple,
    timeless,
    until,
    until_attended,
    world,
)

SILVER = [state_pb2.Stake(currency="silver", per_unit=10)]


class FaultyJournal(SqliteJournal):
    """Fails at random, sometimes after it has stored what it was given."""

    def __init__(self, path: Path, seed: int = 0, often: float = 0.0) -> None:
        super().__init__(path)
        self.rng = random.Random(seed)
        self.often = often
        self.failed = 0

    async def append(self, table_id: str, records: Sequence[Record], **more: Any) -> None:
        chance = self.rng.random()
        if chance < self.often / 2:
            self.failed += 1
            raise JournalError("as the test wants it")
        await super().append(table_id, records, **more)
        if chance < self.often:
            self.failed += 1
            raise JournalError("stored, but the answer was lost")


class NearEvaluator:
    """Answers what the rules core answers, in this process."""

    async def analyze(
        self, choice: rules.RuleSetChoice, hand: Hand, flowers: tuple[int, ...] = ()
    ) -> Analysis:
        known = rule_set(choice.id)
        options = known.complete(options_from_wire(choice.options))
        return told(analyze(known, options, hand, flowers=flowers))

    async def score(self, choice: rules.RuleSetChoice, hand: FinishedHand) -> Score:
        known = rule_set(choice.id)
        return score(known, known.complete(options_from_wire(choice.options)), hand)


class NearWallet:
    """Pays everything."""

    def __init__(self) -> None:
        self.settled: list[str] = []
        self.released: list[Sequence[Sequence[str]]] = []

    async def settle(
        self, settlement: Settlement, labels: Any, refused: Any
    ) -> tuple[Payment, ...]:
        self.settled.append(settlement.key)
        return paid(settlement)

    async def release(self, table_id: str, holds: Sequence[Sequence[str]], refused: Any) -> None:
        self.released.append(holds)

    async def keep(self, table_id: str, holds: Sequence[Sequence[str]]) -> None:
        """Holds of this wallet do not expire."""


class Stage:
    """A live table without a server."""

    def __init__(self, journal: FaultyJournal) -> None:
        self.journal = journal
        self.wallet = NearWallet()
        self.stores: list[bool] = []
        self.around = Surroundings(
            journal=journal,
            evaluator=NearEvaluator(),
            outbox=self.wallet,
            metrics=TableMetrics(CollectorRegistry()),
            log=structlog.get_logger(),
            patience=Patience(),
            clock=GameClock(1_500),
            most_kept=1_000,
            finished=lambda: None,
            storing=self.stores.append,
            stopping=asyncio.Event(),
        )

    async def open(self, **more: Any) -> LiveTable:
        event = created(**more)
        table = NewTable(
            event.table_id, "r1", "", event.rule_set, event.revision, PLAYERS, event.labels
        )
        await self.journal.create(table, [Record(1, 1_000, event)], "owner")
        return await self.resume()

    async def resume(self) -> LiveTable:
        return LiveTable(await self.journal.read("t1"), self.around, 1)


@asynccontextmanager
async def stage(path: Path, **faults: Any) -> AsyncIterator[Stage]:
    journal = FaultyJournal(path / "table.db", **faults)
    try:
        yield Stage(journal)
    finally:
        await journal.close()


async def play_seat(table: LiveTable, seat: int, seen: list[events_pb2.TableEvent]) -> None:
    """Plays a seat to the end of the table; tries again where the journal did not store."""
    waiter = Waiter(60)
    reader: Reader = table.attend(seat, 0, b"", waiter.wake)
    while not reader.at_end:
        event = reader.next(100_000)
        if event is None:
            await waiter.wait()
            continue
        seen.append(event)
        while event.HasField("prompt"):
            try:
                await table.act(seat, event.prompt.decision_id, simple(event.prompt))
            except JournalUnavailable:
                await asyncio.sleep(0)
            except StaleDecision:
                break
            else:
                break
    table.leave(reader)


async def play_table(table: LiveTable) -> list[list[events_pb2.TableEvent]]:
    """All seats, and the table itself, to the end."""
    seen: list[list[events_pb2.TableEvent]] = [[], [], [], []]
    async with asyncio.TaskGroup() as group:
        group.create_task(table.run())
        for seat in range(4):
            group.create_task(play_seat(table, seat, seen[seat]))
    return seen


# The journal.


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses after a failure are for the disk's sake; here they would only be waited for."""
    monkeypatch.setattr("fangcheng_table.live.FIRST_PAUSE_SECONDS", 0.0)


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("seed", range(4))
async def test_a_journal_that_fails_at_random_loses_and_doubles_nothing(tmp_path, seed):
    async with stage(tmp_path, seed=seed, often=0.15) as it:
        table = await it.open(hands=2, holds=True)
        seen = await play_table(table)
        assert it.journal.failed > 10
        assert False in it.stores
        assert it.stores[-1] is True
        assert table.state.done
        records = await it.journal.read("t1")
        assert [record.sequence for record in records] == list(range(1, len(records) + 1))
        assert TableState.replay(record.event for record in records) == table.state
        # What a viewer saw is what is stored, each event once.
        stored = sights(records)
        for seat, events in enumerate(seen):
            assert timeless(events) == stored[seat]
        assert len(it.wallet.released) >= 1


@pytest.mark.usefixtures("hurry")
async def test_nothing_is_shown_before_it_is_stored(tmp_path):
    async with stage(tmp_path) as it:
        table = await it.open()
        gate = asyncio.Event()
        append = it.journal.append

        async def held(table_id: str, records: Sequence[Record], **more: Any) -> None:
            await gate.wait()
            await append(table_id, records, **more)

        it.journal.append = held
        waiter = Waiter(60)
        running = asyncio.create_task(table.run())
        reader = table.attend(0, 0, b"", waiter.wake)
        assert reader.next(9) is not None  # the table itself
        shown = asyncio.create_task(table.shown())
        for _ in range(20):
            await asyncio.sleep(0)
        assert reader.next(9) is None
        assert not shown.done()
        gate.set()
        # What was asked meanwhile is told with what was being stored.
        assert (await shown).seats[0].connected
        event = reader.next(9)
        assert event is not None
        assert event.connection_changed.connected
        running.cancel()


@pytest.mark.usefixtures("hurry")
async def test_an_act_that_was_not_stored_has_not_happened(tmp_path):
    async with stage(tmp_path) as it:
        table = await it.open()
        running = asyncio.create_task(table.run())
        waiter = Waiter(60)
        readers = [table.attend(seat, 0, b"", waiter.wake) for seat in range(4)]
        prompt = None
        while prompt is None:
            event = readers[0].next(100)
            if event is None:
                await waiter.wait()
            elif event.HasField("prompt"):
                prompt = event.prompt
        it.journal.often = 1.0
        it.journal.rng = random.Random(3)  # its first is below one half: nothing is stored
        with pytest.raises(JournalUnavailable):
            await table.act(0, prompt.decision_id, simple(prompt))
        it.journal.often = 0.0
        assert await table.act(0, prompt.decision_id, simple(prompt)) is False
        assert await table.act(0, prompt.decision_id, simple(prompt)) is True
        running.cancel()


async def test_a_table_that_stops_tells_those_who_wait(tmp_path):
    async with stage(tmp_path) as it:
        table = await it.open()
        running = asyncio.create_task(table.run())
        await asyncio.sleep(0)
        acting = asyncio.create_task(table.do(lambda table: None))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(JournalUnavailable):
            await acting


@pytest.mark.usefixtures("hurry")
async def test_a_table_that_fails_by_a_fault_of_ours_is_rebuilt(tmp_path):
    async with stage(tmp_path) as it:
        table = await it.open(hands=2)
        broken = 0

        def breaks(table: Any) -> None:
            nonlocal broken
            broken += 1
            # Leaves the table half changed, as a fault may.
            table.state.seats[0].standing = 99
            table.state.hand_number = 77
            raise ZeroDivisionError

        async def meddle() -> None:
            for _ in range(5):
                seen = table.feed.last(0)
                await until(lambda seen=seen: table.feed.last(0) > seen + 20)
                with pytest.raises(JournalUnavailable):
                    await table.do(breaks)

        meddling = asyncio.create_task(meddle())
        await play_table(table)
        await meddling
        assert broken == 5
        records = await it.journal.read("t1")
        assert TableState.replay(record.event for record in records) == table.state


class ForgetfulJournal(SqliteJournal):
    """Makes a table, and its answer is lost."""

    async def create(self, table: NewTable, records: Sequence[Record], owner_id: str) -> NewTable:
        await super().create(table, records, owner_id)
        raise JournalError("stored, but the answer was lost")


async def test_a_table_whose_maker_never_heard_of_it_is_played_to_its_end(tmp_path, monkeypatch):
    """Else it would have an owner for ever who does not know of it, and its holds stay."""

    async def opened(path: str, *others: Any) -> ForgetfulJournal:
        return ForgetfulJournal(Path(path), *others)

    monkeypatch.setattr("fangcheng_table.service.open_journal", opened)
    async with world(tmp_path, lease_seconds=0.5) as service:
        message = request(stakes=SILVER)
        message.seats[2].hold_ids.append("h-cat")
        message.timing.away_grace_ms = 1_000
        # Nor does it ask again.
        once = service.channel("operator", options=[("grpc.enable_retries", 0)])
        asked: Any = TableServiceStub(once)
        made = asked.CreateTable(message, wait_for_ready=True)
        assert (await refused(made))[1] == "JOURNAL_UNAVAILABLE"
        await until(lambda: service.wallet.released == ["h-cat"])


async def test_a_table_that_cannot_be_read_does_not_keep_the_others_from_going_on(tmp_path):
    async with world(tmp_path) as service:
        operator = service.stub("operator")
        made = [(await operator.CreateTable(request(f"r{n}"))).table.table_id for n in range(2)]
        await service.stop()
        with sqlite3.connect(tmp_path / "table.db") as db:
            (body,) = db.execute("SELECT body FROM events WHERE place = 1").fetchone()
            event = stored.Event.FromString(body)
            event.table_created.revision = 999
            db.execute("UPDATE events SET body = ? WHERE place = 1", (event.SerializeToString(),))
        db.close()
        await service.start()
        assert service.value("fangcheng_table_failures_total") == 1
        players = await play_all(service, made[1])
        assert players[0].events[-1].table_closed.reason == "hands_played"


async def test_what_cannot_be_read_now_is_refused_as_that_and_tells_nothing_of_the_database(
    service,
):
    """A caller that repeats what is UNAVAILABLE goes on once the journal answers again."""
    operator = service.stub("operator")
    with sqlite3.connect(service.folder / "table.db") as db:
        for table in ("tables", "hands", "operator_actions"):
            db.execute(f"ALTER TABLE {table} RENAME TO lost_{table}")
    db.close()
    keeper = service.records("operator")
    hands = keeper.StreamFinishedHands(records_wire.StreamFinishedHandsRequest())
    operations = TableOperationsServiceStub(service.channel("operator"))
    calls = [
        operator.ListTables(wire.ListTablesRequest()),
        operator.GetTable(wire.GetTableRequest(table_id="t1")),
        keeper.GetHandRecord(records_wire.GetHandRecordRequest(table_id="t1", hand_number=1)),
        keeper.ListHandRecords(records_wire.ListHandRecordsRequest()),
        hands.read(),
        operations.ListOperatorActions(operators_wire.ListOperatorActionsRequest()),
    ]
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        assert explain(caught.value).reason == "JOURNAL_UNAVAILABLE"
        assert "sqlite" not in str(caught.value.details()).lower()


async def test_a_resumed_table_has_the_same_numbers(tmp_path):
    async with stage(tmp_path) as it:
        table = await it.open()
        seen = await play_table(table)
        again = await it.resume()
        for seat, events in enumerate(seen):
            assert again.feed.last(seat) == len(events)


# The evaluator.


async def test_while_no_evaluator_answers_nobody_is_asked_and_nobody_runs_out_of_time(tmp_path):
    async with world(tmp_path) as service:
        message = request()
        message.rules.options["piao"].boolean = False
        table_id = (await service.stub("operator").CreateTable(message)).table.table_id
        service.evaluator.switch.code = grpc.StatusCode.UNAVAILABLE
        playing = asyncio.create_task(play_all(service, table_id))
        value = service.value
        await until(lambda: value("fangcheng_table_evaluator_failures_total") > 8)
        assert value("fangcheng_table_evaluator_questions") == 4
        assert value("fangcheng_table_prompts_timed_out_total") == 0
        service.evaluator.switch.code = None
        players = await playing
        assert value("fangcheng_table_prompts_timed_out_total") == 0
        assert value("fangcheng_table_evaluator_wait_seconds_sum", kind="analyze") > 0.1
        for player in players:
            assert player.events[-1].table_closed.reason == "hands_played"


def unreadable(answer: evaluation.AnalyzeBatchResponse) -> None:
    answer.results[0].analysis.waits.add(tile=99)


def of_an_unknown_meld(answer: evaluation.AnalyzeBatchResponse) -> None:
    answer.results[0].analysis.kongs.add(tile=11, kind="a meld of tomorrow")


def one_too_few(answer: evaluation.AnalyzeBatchResponse) -> None:
    del answer.results[-1]


@pytest.mark.parametrize("spoil", [unreadable, of_an_unknown_meld, one_too_few])
async def test_an_answer_that_cannot_be_read_is_asked_for_again(service, spoil):
    spoilt = []

    def change(answer: evaluation.AnalyzeBatchResponse) -> None:
        if len(spoilt) < 3:
            spoilt.append(answer)
            spoil(answer)

    service.evaluator.switch.spoil = change
    made = await service.stub("operator").CreateTable(request())
    players = await play_all(service, made.table.table_id)
    assert players[0].events[-1].table_closed.reason == "hands_played"
    assert service.value("fangcheng_table_evaluator_failures_total") >= 3
    assert service.value("fangcheng_table_failures_total") == 0


async def test_the_questions_of_many_tables_share_a_call(service):
    operator = service.stub("operator")
    made = [(await operator.CreateTable(request(f"r{n}"))).table.table_id for n in range(4)]
    await asyncio.gather(*(play_all(service, table_id) for table_id in made))
    sizes = [
        len(call.requests) for call in service.evaluator.switch.calls if hasattr(call, "requests")
    ]
    assert max(sizes) >= 4  # a deal asks about four hands at once
    assert len(sizes) < sum(sizes)


# The wallet.


async def test_a_settlement_is_offered_until_the_wallet_takes_it(service):
    service.wallet.settling.code = grpc.StatusCode.UNAVAILABLE
    made = await service.stub("operator").CreateTable(request(hands=2, stakes=SILVER))
    table_id = made.table.table_id
    playing = asyncio.create_task(play_all(service, table_id))
    await until(lambda: service.value("fangcheng_table_outbox", kind="settle") == 1)
    calls = service.wallet.settling.calls
    await until(lambda: len(calls) >= 3)
    assert service.value("fangcheng_table_parked", kind="settle") == 0
    assert service.value("fangcheng_table_outbox_oldest_age_seconds", kind="settle") > 0
    table = (await service.stub("operator").GetTable(wire.GetTableRequest(table_id=table_id))).table
    assert table.hand_number == 1
    assert table.phase == state_pb2.TABLE_PHASE_BETWEEN_HANDS
    service.wallet.settling.code = None
    await playing
    assert list(service.wallet.settled) == [f"{table_id}/1", f"{table_id}/2"]
    assert all(call == calls[0] for call in calls if call.key == calls[0].key)


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS"])
async def test_a_table_whose_settlement_is_refused_is_parked(service, code):
    service.wallet.settling.code = grpc.StatusCode[code]
    made = await service.stub("operator").CreateTable(request(hands=2, stakes=SILVER))
    playing = asyncio.create_task(play_all(service, made.table.table_id))
    await until(lambda: service.value("fangcheng_table_parked", kind="settle") == 1)
    assert service.value("fangcheng_table_outbox", kind="settle") == 1
    assert service.value("fangcheng_table_outbox_oldest_age_seconds", kind="settle") == 0
    # Somebody mends it; the table goes on.
    service.wallet.settling.code = None
    await playing
    assert service.value("fangcheng_table_parked", kind="settle") == 0
    assert len(service.wallet.settled) == 2


async def test_a_wallet_whose_answer_cannot_be_read_is_asked_again(service):
    def change(answer: wallet.SettleResponse) -> None:
        if len(service.wallet.settling.calls) == 1:
            answer.settlement.transfers[0].transfer.to_party = 7

    service.wallet.settling.spoil = change
    made = await service.stub("operator").CreateTable(request(stakes=SILVER))
    playing = asyncio.create_task(play_all(service, made.table.table_id))
    await until(lambda: service.value("fangcheng_table_parked", kind="settle") == 1)
    await playing
    assert len(service.wallet.settled) == 1
    assert service.value("fangcheng_table_failures_total") == 0


async def test_a_settlement_that_waits_is_offered_again_after_a_restart(service):
    service.wallet.settling.code = grpc.StatusCode.UNAVAILABLE
    made = await service.stub("operator").CreateTable(request(hands=1, stakes=SILVER))
    playing = asyncio.create_task(play_all(service, made.table.table_id))
    await until(lambda: len(service.wallet.settling.calls) >= 1)
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    await service.stop()
    before = service.wallet.settling.calls[0]
    service.wallet.settling.code = None
    await service.start()
    await until(lambda: len(service.wallet.settled) == 1)
    assert service.wallet.settled[before.key] == before


async def test_a_table_takes_its_holds_over_and_again_after_a_restart(service):
    message = request(hands=0, stakes=SILVER)
    for seat in message.seats[:2]:
        seat.hold_ids.append(f"hold of {seat.player_id}")
    keeping = service.wallet.keeping
    keeping.code = grpc.StatusCode.UNAVAILABLE
    table_id = (await service.stub("operator").CreateTable(message)).table.table_id
    # A table that nobody attends would close meanwhile.
    streams = [await until_attended(service, table_id, name) for name in PLAYERS]
    await until(lambda: len(keeping.calls) >= 4)
    keeping.code = None
    calls = len(keeping.calls)
    await until(lambda: len(keeping.calls) >= calls + 2)
    assert {(call.table_id, *call.hold_ids) for call in keeping.calls} == {
        (table_id, "hold of ann"),
        (table_id, "hold of bob"),
    }
    calls = len(keeping.calls)
    await service.restart()
    await until(lambda: len(keeping.calls) >= calls + 2)
    for stream in streams:
        stream.cancel()


async def test_a_wallet_that_hands_nothing_over_is_asked_once(service):
    message = request(hands=1, stakes=SILVER)
    message.seats[0].hold_ids.append("another table's")
    service.wallet.keeping.code = grpc.StatusCode.FAILED_PRECONDITION
    made = await service.stub("operator").CreateTable(message)
    await play_all(service, made.table.table_id)
    assert len(service.wallet.keeping.calls) == 1
    assert len(service.wallet.settled) == 1


async def test_holds_are_released_once_the_table_has_closed_whatever_it_takes(service):
    message = request(hands=1, stakes=SILVER)
    for seat in message.seats[:3]:
        seat.hold_ids.append(f"hold of {seat.player_id}")
    service.wallet.releasing.code = grpc.StatusCode.UNAVAILABLE
    made = await service.stub("operator").CreateTable(message)
    await play_all(service, made.table.table_id)
    await until(lambda: len(service.wallet.releasing.calls) >= 6)
    assert not service.wallet.released
    # It is done after a restart, too.
    await service.restart()
    service.wallet.releasing.code = None
    await until(lambda: len(service.wallet.released) == 3)
    assert sorted(service.wallet.released) == [
        "hold of ann",
        "hold of bob",
        "hold of cat",
    ]
    (settled,) = service.wallet.settled.values()
    assert sorted(hold for party in settled.parties for hold in party.hold_ids) == sorted(
        service.wallet.released
    )
    # The wallet's answer is stored: then nothing is left to do.
    kele = {"rule_set": "baishan_kele", "phase": "closed"}
    await until(lambda: not service.value("fangcheng_tables", **kele))
    released = len(service.wallet.releasing.calls)
    await service.restart()
    await service.stub("operator").GetTable(wire.GetTableRequest(table_id=made.table.table_id))
    assert len(service.wallet.releasing.calls) == released


# The process.


async def test_a_hand_goes_on_after_a_restart(tmp_path):
    """Streams resume, numbers go on, what was answered stays answered."""
    # However slow the machine is, who comes back is there before the seat is missed.
    async with world(tmp_path, resume_grace_seconds=600) as service:
        await restarted_three_times(service)


async def restarted_three_times(service: World) -> None:
    made = await service.stub("operator").CreateTable(request(hands=3, stakes=SILVER))
    table_id = made.table.table_id
    await fixed_port(service)
    playing = asyncio.create_task(play_all(service, table_id))
    for _ in range(3):
        acts = service.value("fangcheng_table_act_seconds_count")
        await until(
            lambda acts=acts: (
                service.value("fangcheng_table_act_seconds_count") > acts + 15 or playing.done()
            )
        )
        await service.restart()
    players = await playing
    third = next(e.number for e in players[0].events if e.hand_started.hand_number == 3)
    rest = [
        m.event
        async for m in service.player("ann").Attend(
            wire.AttendRequest(table_id=table_id, from_number=third)
        )
    ]
    assert timeless(rest) == timeless(players[0].events[third:])
    for player in players:
        numbers = [event.number for event in player.events]
        assert numbers == list(range(1, len(numbers) + 1))
        assert player.events[-1].table_closed.reason == "hands_played"
        assert not any(
            e.HasField("connection_changed") and not e.connection_changed.connected
            for e in player.events
        )
    assert sorted(service.wallet.settled) == [f"{table_id}/{n}" for n in (1, 2, 3)]


async def fixed_port(service: World) -> None:
    """The next start listens where this one does."""
    service.more["listen"] = service.address


async def test_a_journal_of_another_version_keeps_the_service_from_starting(tmp_path):
    await SqliteJournal(tmp_path / "table.db").close()
    db = sqlite3.connect(tmp_path / "table.db")
    with db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    db.close()
    with pytest.raises(StartFailed, match="revision 9999"):
        async with world(tmp_path):
            pass
