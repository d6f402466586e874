"""What a table has under way at the evaluator and the wallet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fangcheng_rules.actions import AnalyzeQuestion, Question

from . import convert
from .core import Table
from .events import TableCreated
from .settlement import Settlement
from .surroundings import Surroundings
from .troubles import Partner, Waiting

Post = Callable[[Callable[[Table], Any]], object]
"""Has something done to the table, in its turn."""


class Asking:
    """Asks what a table needs to know, each thing once; the answers are posted to the table."""

    def __init__(self, created: TableCreated, around: Surroundings) -> None:
        self._created = created
        self._choice = convert.choice_to_wire(created.rule_set, created.revision, created.options)
        self._around = around
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiting: set[Waiting] = set()
        """What has no answer yet."""
        self._hand = 0
        self._questions: set[int] = set()  # of the hand, by their numbers
        self._settlement = 0
        self._keeping: asyncio.Task[None] | None = None
        self._kept: tuple[tuple[str, ...], ...] | None = None  # the holds that it keeps
        self._returns: set[int] = set()  # by vacancy
        self._releasing = False

    def ask(self, table: Table, post: Post) -> None:
        """Ask what the table needs now and has not asked for."""
        number = table.state.hand_number
        if number != self._hand:
            self._hand = number
            self._questions.clear()
        for question in table.questions():
            if question.number not in self._questions:
                self._questions.add(question.number)
                self.start(self._question(number, question, post))
        settlement = table.settlement()
        if settlement is not None and settlement.hand_number != self._settlement:
            self._settlement = settlement.hand_number
            self.start(self._settle(settlement, post))
        kept = tuple(seat.plan.hold_ids for seat in table.state.seats)
        if self._kept != kept and not table.state.closed:
            self._kept = kept
            self._keep_no_more()
            self._keeping = self.start(self._around.outbox.keep(self._created.table_id, kept))
        for vacancy, hold_ids in table.returns().items():
            if vacancy not in self._returns:
                self._returns.add(vacancy)
                self.start(self._return(vacancy, hold_ids, post))
        holds = table.holds()
        if holds and not self._releasing:
            self._releasing = True
            self._keep_no_more()
            self.start(self._release_all(holds, post))

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Something else that the table's task does not wait for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def stop(self) -> None:
        """Nothing of it matters any more."""
        for task in self._tasks:
            task.cancel()

    def _keep_no_more(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()

    async def _question(self, hand_number: int, question: Question, post: Post) -> None:
        evaluator = self._around.evaluator
        if isinstance(question, AnalyzeQuestion):
            with self._waits_for("evaluator"):
                analysis = await evaluator.analyze(self._choice, question.hand, question.flowers)
            post(lambda table: table.answer(hand_number, question.number, analysis))
        else:
            with self._waits_for("evaluator"):
                score = await evaluator.score(self._choice, question.finished)
            post(lambda table: table.answer(hand_number, question.number, score))

    async def _settle(self, settlement: Settlement, post: Post) -> None:
        labels = self._created.labels
        with self._waits_for("wallet") as refused:
            paid = await self._around.outbox.settle(settlement, labels, refused)
        post(lambda table: table.settled(settlement, paid.payments, paid.short))

    async def _return(self, vacancy: int, hold_ids: Sequence[str], post: Post) -> None:
        await self._release([hold_ids])
        post(lambda table: table.returned(vacancy))

    async def _release_all(self, holds: Sequence[Sequence[str]], post: Post) -> None:
        await self._release(holds)
        post(lambda table: table.released())

    async def _release(self, holds: Sequence[Sequence[str]]) -> None:
        with self._waits_for("wallet") as refused:
            await self._around.outbox.release(self._created.table_id, holds, refused)

    @contextmanager
    def _waits_for(self, partner: Partner) -> Iterator[Callable[[], None]]:
        """While it waits for one thing more; gives what is told that it was refused."""
        waiting = Waiting(partner, self._around.clock.now_ms())
        self.waiting.add(waiting)

        def refused() -> None:
            if waiting.refused_ms is None:
                waiting.refused_ms = self._around.clock.now_ms()

        try:
            yield refused
        finally:
            self.waiting.discard(waiting)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._around.metrics.failures.inc()
            self._around.log.error(
                "a table failed", table_id=self._created.table_id, exc_info=error
            )
