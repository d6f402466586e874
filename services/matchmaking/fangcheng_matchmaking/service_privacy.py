"""The calls about personal data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fangcheng.matchmaking.v1 import privacy_pb2 as wire
from fangcheng.matchmaking.v1 import privacy_pb2_grpc
from fangcheng_kit import principal
from fangcheng_kit.errors import AlreadyExists
from fangcheng_kit.privacy import erasure_of, in_messages

from . import refusals
from .joining import CannotJoin
from .matchmaker import Matchmaker
from .partners import Unanswered
from .store import ErasureReused

PRIVACY = "fangcheng.matchmaking.v1.PrivacyService"


class Privacy(privacy_pb2_grpc.PrivacyServiceServicer):
    """`PrivacyService`; what each call promises stands in its proto."""

    def __init__(self, matchmaker: Matchmaker, log: Any) -> None:
        self._matchmaker = matchmaker
        self._log = log

    async def ExportPlayer(
        self, request: wire.ExportPlayerRequest, context: Any
    ) -> AsyncIterator[wire.ExportPlayerResponse]:
        """See the proto."""
        self._log.info("player exported", operator=principal.current().subject)
        async for lines in in_messages(self._matchmaker.lines(request.player_id)):
            yield wire.ExportPlayerResponse(lines=lines)

    async def ErasePlayer(
        self, request: wire.ErasePlayerRequest, context: Any
    ) -> wire.ErasePlayerResponse:
        """See the proto."""
        erasure = erasure_of(request)
        try:
            erased = await self._matchmaker.erase(erasure)
        except ErasureReused:
            raise AlreadyExists(
                "REQUEST_ID_REUSED",
                f"The request {request.request_id} was made before with other contents.",
                field="request_id",
            ) from None
        except CannotJoin as error:
            raise refusals.of(error) from None
        except Unanswered:
            raise refusals.unanswered() from None
        self._log.info(
            "player erased",
            operator=principal.current().subject,
            request_id=request.request_id,
            changed=erased.changed,
        )
        return wire.ErasePlayerResponse(changed=erased.changed, replayed=erased.replayed)
