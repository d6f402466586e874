"""What matchmaking asks a studio's own `AdmissionService`: who may play now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import grpc.aio

from fangcheng.matchmaking.v1 import admission_pb2, admission_pb2_grpc
from fangcheng_client import explain

WhenSilent = Literal["allow", "deny"]
Place = Literal["queue", "room", "table"]

_PLACES = {
    "queue": admission_pb2.ADMISSION_PLACE_QUEUE,
    "room": admission_pb2.ADMISSION_PLACE_ROOM,
    "table": admission_pb2.ADMISSION_PLACE_TABLE,
}


class NotAdmitted(Exception):
    """The studio does not let a player play now."""

    def __init__(self, player_id: str, reason: str, message: str, until_seconds: int = 0) -> None:
        super().__init__(f"{player_id}: {reason}")
        self.player_id = player_id
        self.reason = reason
        self.message = message
        self.until_seconds = until_seconds
        """Since 1970; 0: not known."""


class Admission:
    """The studio's service; without one everybody is let in."""

    def __init__(
        self,
        channel: grpc.aio.Channel | None,
        *,
        timeout_seconds: float,
        when_silent: WhenSilent,
        log: Any,
    ) -> None:
        self._stub = None if channel is None else admission_pb2_grpc.AdmissionServiceStub(channel)
        self._timeout_seconds = timeout_seconds
        self._when_silent = when_silent
        self._log = log

    @property
    def is_asked(self) -> bool:
        """Whether there is one."""
        return self._stub is not None

    async def check(
        self,
        player_id: str,
        place: Place,
        *,
        pool_id: str = "",
        table_id: str = "",
        labels: Mapping[str, str],
    ) -> None:
        """Raises NotAdmitted."""
        if self._stub is None:
            return
        request = admission_pb2.CheckRequest(
            player_id=player_id,
            place=_PLACES[place],
            pool_id=pool_id,
            table_id=table_id,
            labels=dict(labels),
        )
        try:
            answer = await self._stub.Check(request, timeout=self._timeout_seconds)
        except grpc.aio.AioRpcError as error:
            self._log.warning("admission is silent", place=place, problem=str(explain(error)))
            if self._when_silent == "allow":
                return
            raise NotAdmitted(
                player_id, "ADMISSION_SILENT", "It cannot be checked now who may play."
            ) from error
        if not answer.allowed:
            raise NotAdmitted(player_id, answer.reason, answer.message, answer.until.seconds)
