"""What leaves a table for the wallet: repeated until it is acknowledged."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, get_args

import grpc
import grpc.aio

from fangcheng.wallet.v1 import settlement_pb2 as wallet
from fangcheng.wallet.v1.settlement_pb2_grpc import SettlementServiceStub
from fangcheng_kit import logs
from fangcheng_kit.tracing import NOBODY, OFF, Tracing

from .convert_settlement import payments_from_wire, settle_request, short_seats
from .events import Payment
from .metrics import Errand, TableMetrics
from .settlement import Settlement

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0

Answer = TypeVar("Answer")

# The wallet did not do it this time, or nobody knows; the same key may be offered again at once.
_PASSING = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)


def tell_nobody() -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Paid:
    """What a settlement has paid, and the seats that it leaves with too little to go on."""

    payments: tuple[Payment, ...]
    short: tuple[int, ...]


class Outbox:
    """Settles hands, keeps holds and releases them."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        park_seconds: float,
        hold_seconds: int,
        metrics: TableMetrics,
        log: Any,
        tracing: Tracing = OFF,
    ) -> None:
        """`park_seconds`: the pause after a refusal, which only a person can mend.

        `hold_seconds`: the lifetime that holds are given, again and again.
        """
        self._hold_seconds = hold_seconds
        self._stub = SettlementServiceStub(channel)
        self._park_seconds = park_seconds
        self._metrics = metrics
        self._log = log
        self._tracing = tracing
        self._numbers = itertools.count()
        self._waiting: dict[Errand, dict[int, float]] = {}
        """Since when each has waited, the oldest first."""
        self._parked: dict[Errand, set[int]] = {}
        """Those of them that were refused."""
        for kind in get_args(Errand):
            self._waiting[kind], self._parked[kind] = {}, set()
            metrics.measure_outbox(kind, self._waiting[kind], self._parked[kind])

    async def settle(
        self,
        settlement: Settlement,
        labels: Mapping[str, str],
        refused: Callable[[], None] = tell_nobody,
    ) -> Paid:
        """Pay a hand. Returns when the wallet has acknowledged it, however late.

        `refused`: told where it refuses; a person must mend that.
        """
        request = settle_request(settlement, labels)

        async def settle() -> Paid:
            settled = (await self._stub.Settle(request)).settlement
            return Paid(payments_from_wire(settled, settlement), short_seats(settled, settlement))

        if not logs.request_id.get():  # nobody's act has ended the hand
            logs.request_id.set(settlement.key)
        with self._tracing.span("outbox.settle", settlement_key=settlement.key):
            paid = await self._until_done("settle", settlement.key, settle, refused)
        self._metrics.settlements.inc()
        return paid

    async def release(
        self,
        table_id: str,
        holds: Sequence[Sequence[str]],
        refused: Callable[[], None] = tell_nobody,
    ) -> None:
        """Give holds back. Returns when the wallet has acknowledged it, however late.

        `holds`: those of each seat; they go separately, since the wallet releases none of those
        that are named together with one that it does not know. `refused`: as for `settle`.
        """
        async with asyncio.TaskGroup() as group:
            for hold_ids in filter(None, holds):
                request = wallet.ReleaseHoldsRequest(hold_ids=hold_ids)
                release = partial(self._stub.ReleaseHolds, request)
                group.create_task(self._until_done("release", table_id, release, refused))

    async def keep(self, table_id: str, holds: Sequence[Sequence[str]]) -> None:
        """Take holds over and keep them from expiring, until it is cancelled.

        `holds`: those of each seat, each on its own. A wallet that refuses is told of and not asked
        again: what a hand pays does not depend on it.
        """
        async with asyncio.TaskGroup() as group:
            for hold_ids in filter(None, holds):
                group.create_task(self._keep(table_id, hold_ids))

    async def _keep(self, table_id: str, hold_ids: Sequence[str]) -> None:
        request = wallet.HandOverHoldsRequest(
            hold_ids=hold_ids, table_id=table_id, lifetime_seconds=self._hold_seconds
        )
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._stub.HandOverHolds(request)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _PASSING:
                    self._log.warning(
                        "the wallet does not hand holds over",
                        table_id=table_id,
                        code=error.code().name,
                        problem=error.details(),
                    )
                    return
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
            else:
                NOBODY.enter()  # to renew them belongs to no call any more
                await asyncio.sleep(self._hold_seconds / 2)
                pause_seconds = FIRST_PAUSE_SECONDS

    async def _until_done(
        self,
        kind: Errand,
        what: str,
        call: Callable[[], Awaitable[Answer]],
        refused: Callable[[], None],
    ) -> Answer:
        pause_seconds = FIRST_PAUSE_SECONDS
        number, waiting, parked = next(self._numbers), self._waiting[kind], self._parked[kind]
        waiting[number] = time.monotonic()
        try:
            while True:
                try:
                    return await call()
                except grpc.aio.AioRpcError as error:
                    code, problem = error.code(), error.details()
                except LookupError as error:  # payments of parties that there are not
                    code, problem = grpc.StatusCode.OK, f"the answer cannot be read: {error}"
                if code not in _PASSING and number not in parked:
                    parked.add(number)
                    refused()
                    self._log.error(
                        "the wallet refuses; parked",
                        kind=kind,
                        what=what,
                        table_id=what.partition("/")[0],
                        code=code.name,
                        problem=problem,
                    )
                await asyncio.sleep(self._park_seconds if number in parked else pause_seconds)
                pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
        finally:
            del waiting[number]
            parked.discard(number)
