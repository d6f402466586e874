"""The table's `PrivacyService`: validate, call, convert."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from fangcheng.table.v1 import privacy_pb2 as wire
from fangcheng.table.v1.privacy_pb2_grpc import PrivacyServiceServicer
from fangcheng_kit.principal import current
from fangcheng_kit.privacy import erasure_of, in_messages

from .erasing import Personal

PRIVACY = "fangcheng.table.v1.PrivacyService"

Context = grpc.aio.ServicerContext[Any, Any]


class PrivacyServicer(PrivacyServiceServicer):
    """The calls of the contract."""

    def __init__(self, personal: Personal, log: Any) -> None:
        self._personal = personal
        self._log = log

    async def ExportPlayer(
        self, request: wire.ExportPlayerRequest, context: Context
    ) -> AsyncIterator[wire.ExportPlayerResponse]:
        """See the contract."""
        self._log.info("player exported", operator=current().subject)
        async for lines in in_messages(self._personal.lines(request.player_id)):
            yield wire.ExportPlayerResponse(lines=lines)

    async def ErasePlayer(
        self, request: wire.ErasePlayerRequest, context: Context
    ) -> wire.ErasePlayerResponse:
        """See the contract."""
        erased = await self._personal.erase(erasure_of(request))
        self._log.info(
            "player erased",
            operator=current().subject,
            request_id=request.request_id,
            changed=erased.tables,
        )
        return wire.ErasePlayerResponse(
            changed=erased.tables, archived=erased.archived, replayed=erased.replayed
        )
