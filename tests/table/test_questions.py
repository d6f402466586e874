"""What a table asks of an evaluator: once a turn, all tables together, until it is answered."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest
import structlog
from prometheus_client import CollectorRegistry

from fangcheng.evaluation.v1 import evaluation_pb2 as evaluation
from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng_client import connect
from fangcheng_evaluation.service import open_service as open_evaluation
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import Running, errors, serving
from fangcheng_rules import events as play
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.notation import parse_hand
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_table.evaluator import Evaluator
from fangcheng_table.events import Event, HandOpened
from fangcheng_table.metrics import TableMetrics

from . import partners
from .tables import Drive, at_random, created
from .world import DEV_KEY, PLAYERS, Player, World, play_all, request, until, world

Service = TypeVar("Service", bound=partners.FakeEvaluation)
Ask = Callable[[Hand], Awaitable[Any]]

KELE = rules.RuleSetChoice(id="baishan_kele", revision=1)
READY = parse_hand("123456789m11p44z")


# Once a turn.


def turns_in(events: Iterable[Event]) -> tuple[int, int]:
    """The turns of a journal in which a hand may be asked about, and how often one was told.

    A seat's turn begins with a draw, with a tile that it claims, or with the dragons that it has
    laid down; the deal is a turn of each seat. Fails where a turn was told of twice.
    """
    turns = told = 0
    untold: set[int] = set()
    for event in events:
        match event:
            case play.Dealt():
                turns, untold = turns + 4, {0, 1, 2, 3}
            case play.Drew(seat) | play.KongDone(seat, _, MeldKind.WHIRLWIND):
                turns += 1
                untold.add(seat)
            case play.Called(seat, meld) if not meld.is_kong:
                turns += 1
                untold.add(seat)
            case play.AnalysisKept(_, seat):
                assert seat in untold, "asked twice in a turn"
                untold.discard(seat)
                told += 1
            case _:
                pass
    return turns, told


@pytest.mark.parametrize("rule_set", [known.id for known in RULE_SETS])
def test_a_hand_is_asked_about_once_in_a_turn_at_most(rule_set: str) -> None:
    for seed in range(3):
        drive = Drive.of(created(root=bytes([seed]) * 32, rules_id=rule_set))
        drive.attend(0, 1, 2, 3)
        drive.play(at_random(seed))
        assert sum(isinstance(event, HandOpened) for event in drive.events) == 1
        turns, told = turns_in(drive.events)
        hand = drive.table.state.hand
        assert hand is not None
        assert 4 <= told <= turns
        # Nothing was asked that is not in the journal, but what a hand pays, once.
        assert hand.asked <= told + 1


def test_a_turn_that_is_asked_about_twice_is_found() -> None:
    drive = Drive.of(created())
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(1))
    at = next(n for n, event in enumerate(drive.events) if isinstance(event, play.AnalysisKept))
    with pytest.raises(AssertionError, match="asked twice"):
        turns_in([*drive.events[: at + 1], *drive.events[at:]])


async def test_no_more_is_sent_than_is_asked(tmp_path: Path) -> None:
    """Counted where the calls arrive: a hand a turn, and what it pays once."""
    async with world(tmp_path) as service:
        made = await service.stub("operator").CreateTable(request())
        players = await play_all(service, made.table.table_id)
        calls = service.evaluator.switch.calls
    analyzed = [n for call in calls for n in _questions(call, evaluation.AnalyzeBatchRequest)]
    scored = [n for call in calls for n in _questions(call, evaluation.ScoreBatchRequest)]
    draws = sum(event.HasField("drawn") for event in players[0].events)
    assert draws > 4
    assert not any(event.HasField("melded") for event in players[0].events)  # nobody claims
    assert 4 < len(analyzed) <= 4 + draws
    assert len(scored) == 1


def _questions(call: Any, kind: type) -> list[Any]:
    return list(call.requests) if isinstance(call, kind) else []


# All tables together.


class Held(partners.FakeEvaluation):
    """An evaluator that answers once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()

    async def AnalyzeBatch(self, request: Any, context: Any) -> Any:
        self.switch.calls.append(request)
        await self.open.wait()
        return evaluation.AnalyzeBatchResponse(
            results=[evaluation.AnalyzeResult(analysis=self._analyze(r)) for r in request.requests]
        )


@asynccontextmanager
async def asking(
    service: Service, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[tuple[Service, Ask]]:
    """An evaluator, and the way in which a table asks it."""
    async with (
        partners.serving(service, partners.FakeWallet()) as address,
        connect(address) as channel,
    ):
        metrics = TableMetrics(CollectorRegistry())
        asked = Evaluator(channel, metrics, structlog.get_logger(), pause)
        yield service, lambda hand: asked.analyze(KELE, hand)


async def test_all_that_is_asked_in_a_turn_of_the_loop_is_one_call() -> None:
    async with asking(Held()) as (held, ask):
        first = [asyncio.ensure_future(ask(READY)) for _ in range(200)]
        calls = held.switch.calls
        await until(lambda: len(calls) == 1)
        assert len(calls[0].requests) == 200
        # The next turn's go out at once: nothing waits for the call that is under way.
        second = [asyncio.ensure_future(ask(READY)) for _ in range(3)]
        await until(lambda: len(calls) == 2)
        assert len(calls[1].requests) == 3
        assert not any(answer.done() for answer in first)
        held.open.set()
        answers = await asyncio.gather(*first, *second)
        assert len(calls) == 2
    assert all([wait.tile for wait in answer.waits] == [9, 30] for answer in answers)


# Until it is answered.


class Refusing(partners.FakeEvaluation):
    """An evaluator that is busy for as many calls as it is told."""

    def __init__(self, times: int, retry_after_seconds: float) -> None:
        super().__init__()
        self._times = times
        self._status = errors.details(
            errors.ResourceExhausted(
                "EVALUATOR_BUSY", "Busy.", retry_after_seconds=retry_after_seconds
            )
        )

    async def AnalyzeBatch(self, request: Any, context: Any) -> Any:
        if len(self.switch.calls) < self._times:
            self.switch.calls.append(request)
            details = ((errors.DETAILS_KEY, self._status),)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Busy.", details)
        return await super().AnalyzeBatch(request, context)


async def test_a_busy_evaluator_is_asked_again_when_it_says() -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async with asking(Refusing(3, 17.5), pause) as (busy, ask):
        answers = await asyncio.gather(*(ask(READY) for _ in range(20)))
    assert len(answers) == 20
    assert pauses == [17.5] * 60
    # What was refused in one call comes back in one call.
    assert [len(call.requests) for call in busy.switch.calls] == [20] * 4


@asynccontextmanager
async def evaluator(address: str = "127.0.0.1:0") -> AsyncIterator[Running]:
    settings = EvaluationSettings(
        dev_key=DEV_KEY, listen=address, drain_seconds=0.0, grace_seconds=1.0
    )
    async with serving("evaluation", settings, open_evaluation) as running:
        yield running


async def test_tables_wait_while_no_evaluator_is_up_and_go_on_with_the_next(
    tmp_path: Path,
) -> None:
    """The evaluator itself, stopped in the middle of hands and started again."""
    # No hand begins before its last player attends: they all begin at the same time.
    async with world(tmp_path, evaluation="127.0.0.1:1", start_grace_seconds=600) as service:
        async with evaluator() as first:
            address = first.address
            service.more["evaluation"] = address
            await service.restart()
            tables = [await _create(service, n) for n in range(3)]
            seats = [(Player(service, name), table) for name in PLAYERS for table in tables]
            playing = [asyncio.ensure_future(player.play(table)) for player, table in seats[:9]]
            await until(lambda: all(player.events for player, _ in seats[:9]))
            playing += [asyncio.ensure_future(player.play(table)) for player, table in seats[9:]]

            def prompted() -> set[str]:
                return {t for one, t in seats if any(e.HasField("prompt") for e in one.events)}

            await until(lambda: len(prompted()) == 3)
        # Each table comes to ask: then nothing happens at it, and no clock runs. What was answered
        # before has come once it was asked in vain, again and again.
        failed = service.value(FAILED)
        await until(lambda: service.value(FAILED) > failed + 2 and service.value(OPEN) == 3)
        failed, late, before = service.value(FAILED), service.value(LATE), _stored(tmp_path)
        await until(lambda: service.value(FAILED) > failed + 5)
        assert service.value(OPEN) == 3
        assert _stored(tmp_path) == before
        assert service.value(LATE) == late
        async with evaluator(address):
            await asyncio.gather(*playing)
        for player, _ in seats:
            ended = [e.hand_ended for e in player.events if e.HasField("hand_ended")]
            assert [hand.hand_number for hand in ended] == [1, 2]
            assert player.events[-1].table_closed.reason == "hands_played"
        assert service.value(OPEN) == 0
        assert service.value("fangcheng_table_failures_total") == 0


OPEN = "fangcheng_table_evaluator_questions"
FAILED = "fangcheng_table_evaluator_failures_total"
LATE = "fangcheng_table_prompts_timed_out_total"


def _stored(folder: Path) -> int:
    """Events of all tables; whatever is shown is stored before."""
    with closing(sqlite3.connect(folder / "table.db")) as db:
        (count,) = db.execute("SELECT count(*) FROM events").fetchone()
    return int(count)


async def _create(service: World, number: int) -> str:
    message = request(f"r{number}", hands=2)
    # Less than the evaluator is away: a clock that ran on would be seen to run out.
    message.timing.turn_ms = 500
    message.timing.claim_ms = 500
    message.rules.options["piao"].boolean = False
    made = await service.stub("operator").CreateTable(message)
    assert [seat.player_id for seat in made.table.seats] == list(PLAYERS)
    table_id: str = made.table.table_id
    return table_id


# Beside it.


def test_a_table_process_has_no_compiler_in_it() -> None:
    """It asks an evaluator: numba alone would take 90 MB."""
    code = (
        "import importlib.util, runpy, sys, fangcheng_kit\n"
        "def told(name, settings, open_service):\n"
        "    print(name, importlib.util.find_spec('numba') is not None, 'numba' in sys.modules)\n"
        "fangcheng_kit.run = told\n"
        "runpy.run_module('fangcheng_table', run_name='__main__')"
    )
    environment = {k: v for k, v in os.environ.items() if k != "FANGCHENG_INTERPRETED"}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert shown.stdout.split() == ["table", "True", "False"], shown.stderr
