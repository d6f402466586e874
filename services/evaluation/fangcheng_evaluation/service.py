"""The calls of evaluation: convert, ask the rules, convert."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar

from google.protobuf.message import Message

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng_kit import Kit, Servicer, running
from fangcheng_kit.errors import (
    FailedPrecondition,
    InvalidArgument,
    InvalidRequest,
    NotFound,
    ResourceExhausted,
    ServiceError,
)
from fangcheng_kit.validation import Limits
from fangcheng_rules.analysis import analyze
from fangcheng_rules.errors import IllegalWin, RulesError, UnknownRevision, UnknownRuleSet
from fangcheng_rules.packed import LAYOUT
from fangcheng_rules.rulesets import RULE_SETS, known
from fangcheng_rules.scoring import score

from . import bulk, convert
from .bulk import Bulk
from .core import chosen, spent, timed, warm_up
from .lanes import Busy, Lane
from .metrics import Metrics
from .settings import EvaluationSettings

SERVICE = "fangcheng.evaluation.v1.EvaluationService"

Question = TypeVar("Question", evaluation_pb2.AnalyzeRequest, evaluation_pb2.ScoreRequest)
Answer = TypeVar("Answer", bound=Message)
T = TypeVar("T")


class Evaluation(evaluation_pb2_grpc.EvaluationServiceServicer):
    """`EvaluationService`; what each call promises stands in its proto."""

    def __init__(
        self, single: Lane, batches: Lane, bulk: Bulk, chunk_hands: int, metrics: Metrics
    ) -> None:
        self._single = single
        self._batches = batches
        self._bulk = bulk
        self._chunk_hands = chunk_hands
        self._metrics = metrics
        self._local = threading.local()
        self._rule_sets = evaluation_pb2.ListRuleSetsResponse(
            rule_sets=[convert.rule_set_to_wire(rules) for rules in known()]
        )

    async def ListRuleSets(
        self, request: evaluation_pb2.ListRuleSetsRequest, context: Any
    ) -> evaluation_pb2.ListRuleSetsResponse:
        """See the proto."""
        return self._rule_sets

    async def Analyze(
        self, request: evaluation_pb2.AnalyzeRequest, context: Any
    ) -> evaluation_pb2.AnalyzeResponse:
        """See the proto."""
        return evaluation_pb2.AnalyzeResponse(
            analysis=await self._one("Analyze", request, analysis_of)
        )

    async def Score(
        self, request: evaluation_pb2.ScoreRequest, context: Any
    ) -> evaluation_pb2.ScoreResponse:
        """See the proto."""
        return evaluation_pb2.ScoreResponse(score=await self._one("Score", request, score_of))

    async def AnalyzeBatch(
        self, request: evaluation_pb2.AnalyzeBatchRequest, context: Any
    ) -> evaluation_pb2.AnalyzeBatchResponse:
        """See the proto."""
        response = evaluation_pb2.AnalyzeBatchResponse()
        async for answer in self._many("AnalyzeBatch", request.requests, analysis_of):
            if isinstance(answer, rules_pb2.Problem):
                response.results.add(problem=answer)
            else:
                response.results.add(analysis=answer)
        return response

    async def ScoreBatch(
        self, request: evaluation_pb2.ScoreBatchRequest, context: Any
    ) -> evaluation_pb2.ScoreBatchResponse:
        """See the proto."""
        response = evaluation_pb2.ScoreBatchResponse()
        async for answer in self._many("ScoreBatch", request.requests, score_of):
            if isinstance(answer, rules_pb2.Problem):
                response.results.add(problem=answer)
            else:
                response.results.add(score=answer)
        return response

    async def EvaluateHands(
        self, request: evaluation_pb2.EvaluateHandsRequest, context: Any
    ) -> evaluation_pb2.EvaluateHandsResponse:
        """See the proto."""
        with _refusals():
            results = await self._bulk.evaluate("EvaluateHands", bulk.read(request))
        return evaluation_pb2.EvaluateHandsResponse(layout=LAYOUT, results=results.tobytes())

    async def StreamHands(
        self, requests: AsyncIterator[evaluation_pb2.StreamHandsRequest], context: Any
    ) -> AsyncIterator[evaluation_pb2.StreamHandsResponse]:
        """See the proto."""
        with _refusals():
            async with aclosing(self._bulk.stream("StreamHands", requests)) as answers:
                async for results in answers:
                    yield evaluation_pb2.StreamHandsResponse(
                        layout=LAYOUT, results=results.tobytes()
                    )

    async def _one(
        self, call: str, question: Question, answer: Callable[[Question], Answer]
    ) -> Answer:
        answered = False
        try:
            with _refusals():
                async with self._single.admitted(1):
                    found = await self._single.do(1, self._measured(partial(answer, question)))
            answered = True
        finally:
            self._metrics.count(call, question.rules.id, answered=answered)
        return found

    async def _many(
        self, call: str, questions: Sequence[Question], answer: Callable[[Question], Answer]
    ) -> AsyncIterator[Answer | rules_pb2.Problem]:
        """The answers in the order of the questions; a problem for each that has none."""
        with _refusals():
            async with self._batches.admitted(len(questions)):
                for start in range(0, len(questions), self._chunk_hands):
                    chunk = questions[start : start + self._chunk_hands]
                    answers = await self._batches.do(
                        len(chunk), self._measured(partial(self._answers, chunk, answer))
                    )
                    for question, found in zip(chunk, answers, strict=True):
                        answered = not isinstance(found, rules_pb2.Problem)
                        self._metrics.count(call, question.rules.id, answered=answered)
                        yield found

    def _measured(self, work: Callable[[], T]) -> Callable[[], T]:
        """The work of a chunk, for a thread, with what the rules take of it measured."""

        def measured() -> T:
            try:
                return work()
            finally:
                for rule_set, seconds in spent().items():
                    self._metrics.took(rule_set, seconds)

        return measured

    def _answers(
        self, questions: Sequence[Question], answer: Callable[[Question], Answer]
    ) -> list[Answer | rules_pb2.Problem]:
        """In a thread: a chunk's answers. No question is in another's way."""
        limits = self._limits()
        answers: list[Answer | rules_pb2.Problem] = []
        for question in questions:
            try:
                limits.check(question)
                answers.append(answer(question))
            except (RulesError, InvalidRequest) as error:
                answers.append(convert.problem(error.reason, error.message, error.field))
        return answers

    def _limits(self) -> Limits:
        """This thread's own."""
        limits: Limits | None = getattr(self._local, "limits", None)
        if limits is None:
            limits = self._local.limits = Limits()
        return limits


def analysis_of(request: evaluation_pb2.AnalyzeRequest) -> evaluation_pb2.Analysis:
    """What a hand is; raises RulesError with the field of the request."""
    with convert.asked(request):
        rules, options = chosen(
            request.rules.id,
            request.rules.revision,
            convert.options_from_wire(request.rules.options),
        )
        hand = convert.hand_from_wire(request.hand)
        flowers = convert.flowers_from_wire(request.flowers)
        rules.check_tiles(hand, flowers)
        found = timed(
            rules,
            lambda: analyze(rules, options, hand, progress=request.progress, flowers=flowers),
        )
        return convert.analysis_to_wire(found, rules)


def score_of(request: evaluation_pb2.ScoreRequest) -> rules_pb2.Score:
    """What a finished hand pays; raises RulesError with the field of the request."""
    with convert.asked(request):
        rules, options = chosen(
            request.rules.id,
            request.rules.revision,
            convert.options_from_wire(request.rules.options),
        )
        hand = convert.finished_from_wire(request.hand)
        return convert.score_to_wire(timed(rules, lambda: score(rules, options, hand)), rules)


def refusal(error: RulesError) -> ServiceError:
    """The status that an error of the rules becomes."""
    kind: type[ServiceError] = InvalidArgument
    if isinstance(error, UnknownRuleSet):
        kind = NotFound
    elif isinstance(error, UnknownRevision):
        kind = FailedPrecondition
    elif isinstance(error, IllegalWin) and error.reason in ("NOT_A_WIN", "WIN_NOT_ALLOWED"):
        # The request is in order, the claim is not; any other end cannot have come about.
        kind = FailedPrecondition
    return kind(error.reason, error.message, error.field)


@contextmanager
def _refusals() -> Iterator[None]:
    """What the rules and the lanes refuse within has its status."""
    try:
        yield
    except RulesError as error:
        raise refusal(error) from error
    except Busy as busy:
        raise ResourceExhausted(
            "EVALUATOR_BUSY",
            "Too much is asked here at once; ask another replica, or this one later.",
            retry_after_seconds=busy.retry_after_seconds,
        ) from None


@asynccontextmanager
async def open_service(settings: EvaluationSettings, kit: Kit) -> AsyncIterator[Sequence[Servicer]]:
    """Warms the kernels up beside the server, which is NOT_SERVING until that is done."""
    metrics = Metrics(kit.registry, [rules.id for rules in RULE_SETS])
    single = Lane("single", 1, settings.most_waiting_calls, metrics.lane("single"))
    batches = Lane("bulk", settings.threads, settings.most_waiting_hands, metrics.lane("bulk"))
    packed = Lane(
        "packed", settings.threads, settings.most_waiting_packed_hands, metrics.lane("packed")
    )
    kit.health(False, "the kernels are warming up")
    try:
        async with running(_warm_up(kit)):
            yield [
                Servicer(
                    evaluation_pb2_grpc.add_EvaluationServiceServicer_to_server,
                    Evaluation(
                        single,
                        batches,
                        Bulk(packed, settings.chunk_packed_hands, settings.most_streams, metrics),
                        settings.chunk_hands,
                        metrics,
                    ),
                    SERVICE,
                )
            ]
    finally:
        for lane in (single, batches, packed):
            lane.close()


async def _warm_up(kit: Kit) -> None:
    await asyncio.to_thread(warm_up)
    kit.health(True)
