"""The calls of operators."""

from __future__ import annotations

from typing import Any

from fangcheng.matchmaking.v1 import operations_pb2 as wire
from fangcheng.matchmaking.v1 import operations_pb2_grpc
from fangcheng_kit.errors import InvalidArgument, NotFound

from . import convert
from .matchmaker import Matchmaker, wall_clock_ms
from .store import Apart, Pause

OPERATIONS = "fangcheng.matchmaking.v1.MatchmakingOperationsService"


class Operations(operations_pb2_grpc.MatchmakingOperationsServiceServicer):
    """`MatchmakingOperationsService`; what each call promises stands in its proto."""

    def __init__(self, matchmaker: Matchmaker) -> None:
        self._matchmaker = matchmaker

    async def PausePool(
        self, request: wire.PausePoolRequest, context: Any
    ) -> wire.PausePoolResponse:
        """See the proto."""
        self._check_pool(request.pool_id)
        pause = Pause(closed=request.close, reason=request.reason, time_ms=wall_clock_ms())
        await self._matchmaker.pause(request.pool_id, pause)
        return wire.PausePoolResponse()

    async def ResumePool(
        self, request: wire.ResumePoolRequest, context: Any
    ) -> wire.ResumePoolResponse:
        """See the proto."""
        self._check_pool(request.pool_id)
        await self._matchmaker.pause(request.pool_id, None)
        return wire.ResumePoolResponse()

    async def BarPair(self, request: wire.BarPairRequest, context: Any) -> wire.BarPairResponse:
        """See the proto."""
        if request.player_id == request.other_id:
            raise InvalidArgument("SAME_PLAYER", "A pair are two players.", field="other_id")
        await self._matchmaker.keep_apart(
            Apart(
                player_id=request.player_id,
                other_id=request.other_id,
                origin="operator",
                reason=request.reason,
                case_id=request.case_id,
                time_ms=wall_clock_ms(),
            )
        )
        return wire.BarPairResponse()

    async def UnbarPair(
        self, request: wire.UnbarPairRequest, context: Any
    ) -> wire.UnbarPairResponse:
        """See the proto."""
        await self._matchmaker.bring_together(
            Apart(player_id=request.player_id, other_id=request.other_id, origin="operator")
        )
        return wire.UnbarPairResponse()

    async def ListBarredPairs(
        self, request: wire.ListBarredPairsRequest, context: Any
    ) -> wire.ListBarredPairsResponse:
        """See the proto."""
        pairs = await self._matchmaker.apart(request.player_id)
        return wire.ListBarredPairsResponse(
            pairs=[convert.barred(pair) for pair in pairs if pair.origin == "operator"]
        )

    def _check_pool(self, pool_id: str) -> None:
        if pool_id not in self._matchmaker.offers:
            raise NotFound("UNKNOWN_POOL", f"There is no pool {pool_id}.", field="pool_id")
