"""The evaluator, asked by all tables of the process at once.

What is asked during one turn of the event loop goes out in one call. A question is asked until it
is answered; how long that takes is metered, and no player's clock runs meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2 as evaluation
from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng.rules.v1 import rules_pb2 as rules
from fangcheng_client import explain
from fangcheng_kit import Batcher
from fangcheng_kit.tracing import OFF, Tracing
from fangcheng_rules.analysis import Analysis
from fangcheng_rules.errors import RulesError
from fangcheng_rules.hand import Hand
from fangcheng_rules.scoring import FinishedHand, Score
from fangcheng_rules.tiles import code

from .convert_play import analysis_from_wire, finished_to_wire, hand_to_wire, score_from_wire
from .errors import EvaluatorUnavailable
from .metrics import TableMetrics

MOST_TOGETHER = 1_000
GAP_SECONDS = 0.005
"""Between two batches, where several tables ask at once: a call costs as much as many questions."""
MOST_CALLS = 32
"""Batches under way at the same time at most."""

CHECK_TIMEOUT_SECONDS = 3.0
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0

Answer = TypeVar("Answer")
Message = TypeVar("Message")


class Refused(Exception):
    """A question was refused, or answered in a way that nobody can read.

    A fault of ours, or the evaluator is of another version; another one may answer.
    """


class Evaluator:
    """Asks the evaluation service."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        metrics: TableMetrics,
        log: Any,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        tracing: Tracing = OFF,
    ) -> None:
        self._stub = EvaluationServiceStub(channel)
        self._metrics = metrics
        self._seconds = metrics.answers
        self._log = log
        self._pause = pause
        self._tracing = tracing
        self._failing = False
        self._known: set[tuple[str, int]] = set()
        self._analyses: Batcher[evaluation.AnalyzeRequest, Analysis] = Batcher(
            self._analyze,
            most_items=MOST_TOGETHER,
            most_running=MOST_CALLS,
            gap_seconds=GAP_SECONDS,
            tracing=tracing,
            span="evaluator.batch",
        )
        self._scores: Batcher[evaluation.ScoreRequest, Score] = Batcher(
            self._score,
            most_items=MOST_TOGETHER,
            most_running=MOST_CALLS,
            tracing=tracing,
            span="evaluator.batch",
        )

    async def analyze(
        self, choice: rules.RuleSetChoice, hand: Hand, flowers: tuple[int, ...] = ()
    ) -> Analysis:
        """What a hand is, its seat having laid down these flowers; however long it takes."""
        request = evaluation.AnalyzeRequest(
            rules=choice, hand=hand_to_wire(hand), flowers=[code(tile) for tile in flowers]
        )
        return await self._until_answered("analyze", lambda: self._analyses.submit(request))

    async def score(self, choice: rules.RuleSetChoice, hand: FinishedHand) -> Score:
        """What a finished hand pays; however long it takes."""
        request = evaluation.ScoreRequest(rules=choice, hand=finished_to_wire(hand))
        return await self._until_answered("score", lambda: self._scores.submit(request))

    async def check(self, rule_set: str, revision: int) -> None:
        """Raise `EvaluatorUnavailable` unless an evaluator that plays this answers."""
        if not self._failing and (rule_set, revision) in self._known:
            return
        try:
            answer = await self._stub.ListRuleSets(
                evaluation.ListRuleSetsRequest(), timeout=CHECK_TIMEOUT_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            raise EvaluatorUnavailable from error
        self._failing = False
        self._known = {(known.id, known.revision) for known in answer.rule_sets}
        if (rule_set, revision) not in self._known:
            raise EvaluatorUnavailable

    async def _until_answered(self, kind: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        started = time.monotonic()
        pause_seconds = FIRST_PAUSE_SECONDS
        asked = self._tracing.span("evaluator.question", kind=kind)
        with self._metrics.questions.track_inprogress(), asked:
            while True:
                try:
                    answer = await ask()
                except (grpc.aio.AioRpcError, Refused) as error:
                    await self._pause(self._failed(error) or pause_seconds)
                    pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
                    continue
                self._answered()
                self._seconds[kind].observe(time.monotonic() - started)
                return answer

    def _failed(self, error: grpc.aio.AioRpcError | Refused) -> float | None:
        """When to ask again, where the evaluator said."""
        self._metrics.evaluator_failures.inc()
        what, retry_after_seconds = str(error), None
        if isinstance(error, grpc.aio.AioRpcError):
            problem = explain(error)
            what, retry_after_seconds = str(problem), problem.retry_after_seconds
        if not self._failing:
            self._failing = True
            self._log.error("no evaluator answers; tables wait", problem=what)
        return retry_after_seconds

    def _answered(self) -> None:
        if self._failing:
            self._failing = False
            self._log.info("an evaluator answers again")

    async def _analyze(
        self, requests: Sequence[evaluation.AnalyzeRequest]
    ) -> Sequence[Analysis | Exception]:
        answer = await self._stub.AnalyzeBatch(evaluation.AnalyzeBatchRequest(requests=requests))
        _check_number(requests, answer.results)
        return [
            _read(analysis_from_wire, result.analysis)
            if result.HasField("analysis")
            else _refused(result.problem)
            for result in answer.results
        ]

    async def _score(
        self, requests: Sequence[evaluation.ScoreRequest]
    ) -> Sequence[Score | Exception]:
        answer = await self._stub.ScoreBatch(evaluation.ScoreBatchRequest(requests=requests))
        _check_number(requests, answer.results)
        return [
            _read(score_from_wire, result.score)
            if result.HasField("score")
            else _refused(result.problem)
            for result in answer.results
        ]


def _check_number(requests: Sequence[object], results: Sequence[object]) -> None:
    if len(results) != len(requests):
        raise Refused(f"{len(requests)} questions had {len(results)} answers")


def _read(read: Callable[[Message], Answer], message: Message) -> Answer | Refused:
    """An answer, or that it cannot be read: that of one table says nothing of the others'."""
    try:
        return read(message)
    except (RulesError, ValueError) as error:
        return Refused(f"the answer cannot be read: {error}")


def _refused(problem: rules.Problem) -> Refused:
    return Refused(f"{problem.reason} {problem.field}: {problem.message}")
