"""An AdmissionService as a studio may write it: minors rest at night, and clubs have bans.

It needs nothing of the suite but the contracts::

    python -m tests.matchmaking.admission_server 127.0.0.1:7190

with ``FANGCHENG_MATCHMAKING_ADMISSION=127.0.0.1:7190``. A studio checks the caller's token, or
listens where nobody but matchmaking can reach it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng.matchmaking.v1 import admission_pb2 as wire
from fangcheng.matchmaking.v1 import admission_pb2_grpc

CHINA = ZoneInfo("Asia/Shanghai")
NIGHT_BEGINS, NIGHT_ENDS = 22, 8


class StudioAdmission(admission_pb2_grpc.AdmissionServiceServicer):
    """The studio's rules, on what it knows of its players."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(CHINA)) -> None:
        self.minors: set[str] = set()
        self.banned: set[tuple[str, str]] = set()
        """Clubs and players."""
        self.asked: list[wire.CheckRequest] = []
        self._now = now

    async def Check(self, request: wire.CheckRequest, context: Any) -> wire.CheckResponse:
        """See the proto."""
        self.asked.append(request)
        if (request.labels.get("club", ""), request.player_id) in self.banned:
            return wire.CheckResponse(reason="BANNED", message="The club does not let you play.")
        now = self._now()
        if request.player_id in self.minors and not NIGHT_ENDS <= now.hour < NIGHT_BEGINS:
            morning = now.replace(hour=NIGHT_ENDS, minute=0, second=0, microsecond=0)
            until = Timestamp()
            until.FromDatetime(morning + timedelta(days=now.hour >= NIGHT_BEGINS))
            return wire.CheckResponse(
                reason="MINOR_AT_NIGHT", message="未成年人 22 时至次日 8 时不能游戏", until=until
            )
        return wire.CheckResponse(allowed=True)


async def serve(address: str, admission: StudioAdmission) -> tuple[grpc.aio.Server, str]:
    """Serves it; the server and where it listens."""
    server = grpc.aio.server()
    admission_pb2_grpc.add_AdmissionServiceServicer_to_server(admission, server)
    port = server.add_insecure_port(address)
    await server.start()
    return server, f"{address.rpartition(':')[0]}:{port}"


async def main(address: str) -> None:
    server, _ = await serve(address, StudioAdmission())
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
