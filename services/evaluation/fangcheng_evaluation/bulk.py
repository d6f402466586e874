"""Packed hands: records in, records out, the kernels in a thread without the interpreter's lock.

Nothing is converted. A message is cut into chunks, each of them a call of the kernels on a slice of
its bytes, so that messages of many callers take turns, and one that nobody waits for any more is
left off. A message that takes no longer than the way to a thread and back is done at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from fangcheng.evaluation.v1 import evaluation_pb2 as pb
from fangcheng_kit.errors import FailedPrecondition, InvalidRequest
from fangcheng_rules import packed
from fangcheng_rules.errors import RulesError
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import rule_set

from .lanes import NEWEST, Lane
from .metrics import Metrics

MOST_HANDS = 100_000
"""In one message: 3.2 MB, and 4 MB of results."""

AT_ONCE_SECONDS = 0.000_5
"""Work that is done in the event loop, which others can wait for; a thread takes a tenth of it."""

CHUNK_SECONDS = 0.004
"""Work of a chunk."""

FEWEST_HANDS = 64
"""Of a chunk, and of the first one of a kind, when nobody knows how long it takes."""

MOST_AHEAD = 2
"""Messages of one stream that are worked on: one in the thread, one for when that is done."""

MOST_QUESTIONS = 8

STREAM_RETRY_SECONDS = 1.0
"""After which a stream that is one too many may try again; nobody knows when another ends."""

ASKS: dict[int, int] = {
    pb.HAND_QUESTION_SCORE: packed.SCORE,
    pb.HAND_QUESTION_WAITS: packed.WAITS,
    pb.HAND_QUESTION_SHAPE_SHANTEN: packed.SHANTEN,
    pb.HAND_QUESTION_SHANTEN: packed.LEGAL_SHANTEN,
}


Reading = asyncio.Future[pb.StreamHandsRequest | None]
"""The next message of a stream; None: there is none."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A message of hands, as the kernels take it."""

    rules: RuleSet
    hands: packed.Records
    ask: int


def read(request: pb.EvaluateHandsRequest | pb.StreamHandsRequest) -> Batch:
    """The hands of a message, which it keeps alive; not one of them is looked at here.

    Raises UnknownRuleSet, UnknownRevision, FailedPrecondition (UNKNOWN_LAYOUT), InvalidRequest.
    """
    try:
        rules = rule_set(request.rule_set, request.revision)
    except RulesError as error:
        error.field = "rule_set" if error.field == "rules.id" else "revision"
        raise
    if request.layout != packed.LAYOUT:
        raise FailedPrecondition(
            "UNKNOWN_LAYOUT",
            f"Records of layout {packed.LAYOUT} are read here, not of layout {request.layout}.",
            "layout",
        )
    data = request.hands
    count, rest = divmod(len(data), packed.HAND.itemsize)
    if rest or not 1 <= count <= MOST_HANDS:
        wanted = f"1 to {MOST_HANDS} records of {packed.HAND.itemsize} bytes"
        raise InvalidRequest([("hands", f"{len(data)} bytes are not {wanted}")])
    return Batch(rules, np.frombuffer(data, packed.HAND), _ask(request.questions))


def _ask(questions: Sequence[int]) -> int:
    # Not left to the limits of the contract: checking those costs more than reading a message.
    if len(questions) > MOST_QUESTIONS:
        raise InvalidRequest([("questions", f"at most {MOST_QUESTIONS} are asked")])
    ask = 0
    for at, question in enumerate(questions):
        if question not in ASKS:
            raise InvalidRequest([(f"questions[{at}]", f"{question} is no question")])
        ask |= ASKS[question]
    return ask or packed.EVERYTHING


class Bulk:
    """Evaluates packed hands."""

    def __init__(self, lane: Lane, chunk_hands: int, most_streams: int, metrics: Metrics) -> None:
        self._lane = lane
        self._chunk_hands = chunk_hands
        self._streams_left = most_streams
        self._metrics = metrics
        self._seconds_per_hand: dict[tuple[str, int], float] = {}
        """CPU time, by rule set and what is asked: other work on the machine is not in it."""

    async def evaluate(self, call: str, batch: Batch, *, held_back: bool = False) -> packed.Records:
        """The results; raises Busy, or waits for its turn where it may be `held_back`."""
        at_once = self.at_once(call, batch)
        if at_once is not None:
            return at_once
        hands = len(batch.hands)
        results: packed.Records = np.empty(hands, packed.RESULT)
        async with self._lane.admitted(hands, held_back=held_back):
            start = 0
            while start < hands:
                part = slice(start, start + self._chunk(batch))
                chunk, out = batch.hands[part], results[part]
                seconds = await self._lane.do(len(chunk), partial(self._timed, batch, chunk, out))
                self._learn(batch, seconds / len(chunk))
                start = part.stop
        return self._counted(call, batch, results)

    def at_once(self, call: str, batch: Batch) -> packed.Records | None:
        """The results of hands that take hardly any time; None: these may take longer."""
        hands = len(batch.hands)
        known = self._seconds_per_hand.get((batch.rules.id, batch.ask))
        if known is None or known * hands > AT_ONCE_SECONDS:
            return None
        results: packed.Records = np.empty(hands, packed.RESULT)
        self._learn(batch, self._timed(batch, batch.hands, results) / hands)
        return self._counted(call, batch, results)

    async def stream(
        self, call: str, requests: AsyncIterator[pb.StreamHandsRequest]
    ) -> AsyncGenerator[packed.Records, None]:
        """The results of each message, in their order, reading ahead while a thread is at work.

        Raises Busy where too many streams are open, and for the first message alone. The others are
        held back, and what is not read holds the client back, with what it has here kept meanwhile.
        """
        if not self._streams_left:
            raise self._lane.refusal(STREAM_RETRY_SECONDS)
        self._streams_left -= 1
        reading: Reading | None = None
        working: deque[asyncio.Future[packed.Records]] = deque()
        is_open, is_begun = True, False
        try:
            while is_open or working:
                if not working:
                    request = await (reading or anext(requests, None))
                    reading = None
                    if request is None:
                        break
                    batch = read(request)
                    results = self.at_once(call, batch)
                    if results is None:
                        work = self.evaluate(call, batch, held_back=is_begun)
                        working.append(asyncio.ensure_future(work))
                    is_begun = True
                    if results is not None:
                        yield results
                        continue
                if is_open and not reading:
                    reading = _next(requests)
                events: list[asyncio.Future[Any]] = [working[0]]
                if reading and len(working) < MOST_AHEAD:
                    events.append(reading)
                await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
                if reading and reading.done() and len(working) < MOST_AHEAD:
                    is_open = not reading.exception() and reading.result() is not None
                    if is_open or reading.exception():
                        working.append(asyncio.ensure_future(self._answer(call, reading)))
                    reading = None
                while working and working[0].done():
                    yield working.popleft().result()
        finally:
            self._streams_left += 1
            left: list[asyncio.Future[Any]] = [*working, *([reading] if reading else [])]
            for one in left:
                one.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _answer(self, call: str, reading: Reading) -> packed.Records:
        """To a further message of a stream, or that it could not be read, in its turn."""
        request = cast(pb.StreamHandsRequest, reading.result())
        return await self.evaluate(call, read(request), held_back=True)

    def _timed(self, batch: Batch, hands: packed.Records, out: packed.Records) -> float:
        """In a thread: seconds of CPU time that it took."""
        begun, begun_cpu = time.perf_counter(), time.thread_time()
        packed.evaluate(batch.rules, hands, batch.ask, out)
        cpu_seconds = time.thread_time() - begun_cpu
        self._metrics.took(batch.rules.id, time.perf_counter() - begun)
        return cpu_seconds

    def _chunk(self, batch: Batch) -> int:
        known = self._seconds_per_hand.get((batch.rules.id, batch.ask))
        wanted = int(CHUNK_SECONDS / known) if known else 0
        return min(max(wanted, FEWEST_HANDS), self._chunk_hands)

    def _learn(self, batch: Batch, seconds: float) -> None:
        key = batch.rules.id, batch.ask
        known = self._seconds_per_hand.get(key, seconds)
        self._seconds_per_hand[key] = known + NEWEST * (seconds - known)

    def _counted(self, call: str, batch: Batch, results: packed.Records) -> packed.Records:
        bad = int(np.count_nonzero(results["status"]))
        answered, refused = self._metrics.hands(call, batch.rules.id)
        answered.inc(len(results) - bad)
        refused.inc(bad)
        return results


def _next(requests: AsyncIterator[pb.StreamHandsRequest]) -> Reading:
    async def following() -> pb.StreamHandsRequest | None:
        return await anext(requests, None)

    return asyncio.ensure_future(following())
