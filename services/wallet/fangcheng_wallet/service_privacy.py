"""The calls of the wallet's ``PrivacyService``. Their promises: the proto."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fangcheng.wallet.v1 import privacy_pb2 as wire
from fangcheng.wallet.v1 import privacy_pb2_grpc
from fangcheng_kit import principal
from fangcheng_kit.privacy import erasure_of, in_messages
from fangcheng_wallet.store import Store

PRIVACY = "fangcheng.wallet.v1.PrivacyService"


class Privacy(privacy_pb2_grpc.PrivacyServiceServicer):
    """``PrivacyService``."""

    def __init__(self, store: Store, log: Any) -> None:
        self._store = store
        self._log = log

    async def ExportPlayer(
        self, request: wire.ExportPlayerRequest, context: Any
    ) -> AsyncIterator[wire.ExportPlayerResponse]:
        """See the proto."""
        self._log.info("player exported", operator=principal.current().subject)
        async for lines in in_messages(self._store.lines(request.player_id)):
            yield wire.ExportPlayerResponse(lines=lines)

    async def ErasePlayer(
        self, request: wire.ErasePlayerRequest, context: Any
    ) -> wire.ErasePlayerResponse:
        """See the proto."""
        done = await self._store.erase(erasure_of(request))
        self._log.info(
            "player erased",
            operator=principal.current().subject,
            request_id=request.request_id,
            changed=done.answer,
        )
        return wire.ErasePlayerResponse(changed=done.answer, replayed=done.replayed)
