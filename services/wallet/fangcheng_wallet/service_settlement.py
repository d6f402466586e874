"""The calls of ``SettlementService``: call the store, convert. Their promises: the proto."""

from __future__ import annotations

from typing import Any

from fangcheng.wallet.v1 import settlement_pb2 as wire
from fangcheng.wallet.v1 import settlement_pb2_grpc
from fangcheng_kit.contract import methods_of
from fangcheng_kit.errors import InvalidRequest, ServiceError, Unavailable
from fangcheng_kit.validation import Limits
from fangcheng_wallet import convert_settlement as convert
from fangcheng_wallet.ledger import Done, ReleaseHolds, Settlement
from fangcheng_wallet.metrics import Outcome, WalletMetrics
from fangcheng_wallet.store import Store

SETTLEMENT = "fangcheng.wallet.v1.SettlementService"


class Settlements(settlement_pb2_grpc.SettlementServiceServicer):
    """``SettlementService``."""

    def __init__(self, store: Store, metrics: WalletMetrics) -> None:
        self._store = store
        self._metrics = metrics
        self._limits = Limits()
        for method in methods_of(SETTLEMENT):
            if method.request_type is wire.SettleRequest:
                self._limits.add(method)

    async def PlaceHolds(
        self, request: wire.PlaceHoldsRequest, context: Any
    ) -> wire.PlaceHoldsResponse:
        """See the proto."""
        done = await self._store.place_holds(convert.place_holds(request))
        return wire.PlaceHoldsResponse(
            holds=map(convert.hold_to_wire, done.answer), replayed=done.replayed
        )

    async def HandOverHolds(
        self, request: wire.HandOverHoldsRequest, context: Any
    ) -> wire.HandOverHoldsResponse:
        """See the proto."""
        holds = await self._store.hand_over(convert.hand_over(request))
        return wire.HandOverHoldsResponse(holds=map(convert.hold_to_wire, holds))

    async def ExtendHolds(
        self, request: wire.ExtendHoldsRequest, context: Any
    ) -> wire.ExtendHoldsResponse:
        """See the proto."""
        holds = await self._store.extend_holds(convert.extend_holds(request))
        return wire.ExtendHoldsResponse(holds=map(convert.hold_to_wire, holds))

    async def TopUpHold(
        self, request: wire.TopUpHoldRequest, context: Any
    ) -> wire.TopUpHoldResponse:
        """See the proto."""
        done = await self._store.top_up_hold(convert.top_up_hold(request))
        return wire.TopUpHoldResponse(
            hold=convert.hold_to_wire(done.answer), replayed=done.replayed
        )

    async def ReleaseHolds(
        self, request: wire.ReleaseHoldsRequest, context: Any
    ) -> wire.ReleaseHoldsResponse:
        """See the proto."""
        holds = await self._store.release_holds(ReleaseHolds(tuple(request.hold_ids)))
        return wire.ReleaseHoldsResponse(holds=map(convert.hold_to_wire, holds))

    async def GetHolds(self, request: wire.GetHoldsRequest, context: Any) -> wire.GetHoldsResponse:
        """See the proto."""
        holds = await self._store.holds(tuple(request.hold_ids))
        return wire.GetHoldsResponse(holds=map(convert.hold_to_wire, holds))

    async def Settle(self, request: wire.SettleRequest, context: Any) -> wire.SettleResponse:
        """See the proto."""
        try:
            done = await self._store.settle(convert.settle(request))
        except ServiceError as error:
            self._metrics.settled(_refused(error))
            raise
        self._metrics.settled(_outcome(done))
        return convert.settled_to_wire(done)

    async def SettleBatch(
        self, request: wire.SettleBatchRequest, context: Any
    ) -> wire.SettleBatchResponse:
        """See the proto."""
        within = [self._within_limits(one) for one in request.settlements]
        settled = iter(
            await self._store.settle_all(
                [
                    convert.settle(one)
                    for one, broken in zip(request.settlements, within, strict=True)
                    if broken is None
                ]
            )
        )
        answer = wire.SettleBatchResponse()
        for one, broken in zip(request.settlements, within, strict=True):
            outcome = broken or next(settled)
            result = answer.results.add(key=one.key)
            if isinstance(outcome, Done):
                self._metrics.settled(_outcome(outcome))
                result.settled.CopyFrom(convert.settled_to_wire(outcome))
            elif isinstance(outcome, ServiceError) and not isinstance(outcome, Unavailable):
                self._metrics.settled(_refused(outcome))
                result.refused.CopyFrom(convert.refusal_to_wire(outcome))
            else:
                # What became of the others is told when the whole call is repeated.
                self._metrics.settled("failed")
                raise outcome
        return answer

    def _within_limits(self, request: wire.SettleRequest) -> InvalidRequest | None:
        """What is wrong with a settlement by its limits, which a batch checks one by one."""
        try:
            self._limits.check(request)
        except InvalidRequest as error:
            return error
        return None

    async def GetSettlement(
        self, request: wire.GetSettlementRequest, context: Any
    ) -> wire.GetSettlementResponse:
        """See the proto."""
        settlement = await self._store.settlement(request.key)
        return wire.GetSettlementResponse(settlement=convert.settlement_to_wire(settlement))

    async def ReverseSettlement(
        self, request: wire.ReverseSettlementRequest, context: Any
    ) -> wire.ReverseSettlementResponse:
        """See the proto."""
        done = await self._store.reverse(convert.reverse(request))
        if not done.replayed:
            self._metrics.reversed()
        return wire.ReverseSettlementResponse(
            reversal=convert.reversal_to_wire(done.answer), replayed=done.replayed
        )


def _refused(error: ServiceError) -> Outcome:
    return "failed" if isinstance(error, Unavailable) else "refused"


def _outcome(done: Done[Settlement]) -> Outcome:
    if done.replayed:
        return "replayed"
    request, outcome = done.answer.request, done.answer.outcome
    asked = (
        *(one.amount for one in request.transfers),
        *(one.amount for one in request.fees),
    )
    return "paid" if asked == (*outcome.paid, *outcome.fees_paid) else "short"
