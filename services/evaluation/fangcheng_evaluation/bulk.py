"""Packed hands: records in, records out, the kernels in a thread without the interpreter's lock.

Nothing is converted. A message is cut into chunks, each of them a call of the kernels on a slice of
its bytes, so that messages of many callers take turns, and one that nobody waits for any more is
left off.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
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

from .lanes import Lane
from .metrics import Metrics

MOST_HANDS = 100_000
"""In one message: 3.2 MB, and 4 MB of results."""

FEW_HANDS = 64
"""So many go with the single hands: they take no longer, and need not wait behind a bulk."""

MOST_AHEAD = 2
"""Messages of one stream that are worked on: one in the thread, one for when that is done."""

ASKS = {
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
    ask = packed.EVERYTHING
    if request.questions:
        ask = 0
        for question in request.questions:
            ask |= ASKS[question]
    return Batch(rules, np.frombuffer(data, packed.HAND), ask)


class Bulk:
    """Evaluates packed hands, a few of them in the lane of single hands."""

    def __init__(self, few: Lane, many: Lane, chunk_hands: int, metrics: Metrics) -> None:
        self._few = few
        self._many = many
        self._chunk_hands = chunk_hands
        self._metrics = metrics

    async def evaluate(self, call: str, batch: Batch, *, held_back: bool = False) -> packed.Records:
        """The results; raises Busy, or waits for its turn where it may be `held_back`."""
        hands = len(batch.hands)
        lane, weight = (self._few, 1) if hands <= FEW_HANDS else (self._many, hands)
        results: packed.Records = np.empty(hands, packed.RESULT)
        async with lane.admitted(weight, held_back=held_back):
            for start in range(0, hands, self._chunk_hands):
                part = slice(start, start + self._chunk_hands)
                chunk, out = batch.hands[part], results[part]
                await lane.do(
                    min(len(chunk), weight),
                    partial(packed.evaluate, batch.rules, chunk, batch.ask, out),
                )
        bad = int(np.count_nonzero(results["status"]))
        self._metrics.count(call, batch.rules.id, answered=True, hands=hands - bad)
        self._metrics.count(call, batch.rules.id, answered=False, hands=bad)
        return results

    async def stream(
        self, call: str, requests: AsyncIterator[pb.StreamHandsRequest]
    ) -> AsyncGenerator[packed.Records, None]:
        """The results of each message, in their order, reading ahead while a thread is at work.

        Raises Busy for the first message alone. The others are held back, and what is not read
        holds the client back.
        """
        reading: Reading | None = _next(requests)
        working: deque[asyncio.Future[packed.Records]] = deque()
        is_first = True
        try:
            while reading or working:
                events: list[asyncio.Future[Any]] = [working[0]] if working else []
                if reading and len(working) < MOST_AHEAD:
                    events.append(reading)
                await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
                while working and working[0].done():
                    yield working.popleft().result()
                if reading and reading.done() and len(working) < MOST_AHEAD:
                    error = reading.exception()
                    if error or reading.result() is not None:
                        work = self._answer(call, reading, held_back=not is_first)
                        working.append(asyncio.ensure_future(work))
                        is_first = False
                        reading = None if error else _next(requests)
                    else:
                        reading = None
        finally:
            left: list[asyncio.Future[Any]] = [*working, *([reading] if reading else [])]
            for one in left:
                one.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _answer(self, call: str, reading: Reading, *, held_back: bool) -> packed.Records:
        """To a message that was read, or could not be."""
        request = cast(pb.StreamHandsRequest, reading.result())
        return await self.evaluate(call, read(request), held_back=held_back)


def _next(requests: AsyncIterator[pb.StreamHandsRequest]) -> Reading:
    async def following() -> pb.StreamHandsRequest | None:
        return await anext(requests, None)

    return asyncio.ensure_future(following())
