"""The whole suite as processes that know each other by certificates, and people by a key set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fangcheng_client import connect
from fangcheng_suite.access import OPERATOR, Access
from fangcheng_suite.certificates import AUTHORITY_DAYS, DAYS, Authority
from tests.kit.certified import Folder, credentials
from tests.kit.keys import Signer, publish
from tests.system.processes import Service
from tests.system.replicas import until

PARTNERS: Mapping[str, Sequence[str]] = {
    "wallet": (),
    "evaluation": (),
    "table": ("wallet", "evaluation"),
    "matchmaking": ("wallet", "evaluation", "table"),
    "console": ("wallet", "evaluation", "table", "matchmaking"),
}
"""Each service, and whom it calls."""

Given = Callable[[], grpc.ChannelCredentials]

EXPIRES = "fangcheng_certificate_expires_timestamp_seconds"


@dataclass(frozen=True, slots=True)
class Certified(Access):
    """The way in with a certificate of the suite's; players have tokens, the operator has none."""

    suite: Suite | None = None

    def channel(
        self,
        service: str,
        subject: str = OPERATOR,
        scopes: Sequence[str] = (),
        *,
        target: str | None = None,
    ) -> grpc.aio.Channel:
        """A channel on which `subject` calls: a player through the edge, an operator as himself."""
        assert self.suite is not None
        suite = self.suite
        if subject == OPERATOR:
            return suite.channel(service, lambda: suite.operator)
        token = suite.signer.token(subject, tuple(scopes))
        return connect(
            target or suite.services[service].address,
            token,
            credentials=lambda: suite.edge,
        )


class Suite:
    """The five services, a process each, without a development key."""

    def __init__(self, folder: Path, pools: str = "", services: Sequence[str] = ()) -> None:
        """`services`: those to be started; without any, all."""
        self.authority = Authority.new()
        self.signer = Signer("club")
        self.services: dict[str, Service] = {}
        self._files: dict[str, Folder] = {}
        jwks = publish(folder / "jwks.json", self.signer.public())
        (folder / "pools.yaml").write_text(pools, "utf-8")
        for name in services or PARTNERS:
            place = folder / name
            place.mkdir()
            files = self._files[name] = Folder(place)
            files.trust(self.authority)
            files.put(self.authority.issue(f"service/{name}"))
            own = {
                "DEV_KEY": "",
                "JWKS": str(jwks),
                **{key.upper(): str(path) for key, path in files.settings().items()},
                **{one.upper(): self.services[one].address for one in PARTNERS[name]},
            }
            if name != "evaluation":
                own["DATABASE"] = str(place / "store.db")
            if name == "matchmaking":
                own["POOLS"] = str(folder / "pools.yaml")
            if name == "console":
                own["WEB_LISTEN"] = "127.0.0.1:0"
                own["SECRET"] = "a secret of the console's own, long enough"
            self.services[name] = Service(folder, name, **own)
        self._show(self.authority)

    @property
    def access(self) -> Certified:
        """The way in."""
        return Certified(lambda service: self.services[service].address, "", suite=self)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """They serve; afterwards they are killed."""
        try:
            await asyncio.gather(*(service.start() for service in self.services.values()))
            yield
        finally:
            await asyncio.gather(*(service.kill() for service in self.services.values()))

    def channel(
        self,
        service: str,
        given: grpc.ChannelCredentials | Given,
        token: str | None = None,
        *,
        once: bool = False,
    ) -> grpc.aio.Channel:
        """A channel with a connection of its own. `once`: no call on it is repeated."""
        return connect(
            self.services[service].address,
            token,
            credentials=given,
            timeout_seconds=30,
            options=[("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", int(not once))],
        )

    async def replace_authority(self) -> None:
        """Trust a new authority too, show certificates of it, and trust the old one no more."""
        old, new = self.authority, Authority.new(days=2 * AUTHORITY_DAYS)
        await self._changed("ca", lambda name, files: files.trust(old, new))
        self._show(new, old)
        await self._changed(
            "own", lambda name, files: files.put(new.issue(f"service/{name}", days=2 * DAYS))
        )
        for files in self._files.values():
            files.trust(new)
        self.authority = new
        await asyncio.gather(
            *(
                until(partial(self._lets_in_no_more, name, old), f"{name} trusts the old one still")
                for name in self.services
            )
        )

    def _show(self, authority: Authority, *others: Authority) -> None:
        """What the edge and the operator show, from now on."""
        self.edge = credentials(authority, authority.issue("proxy/edge"), *others)
        self.operator = credentials(authority, authority.issue("operator/mei"), *others)

    async def _changed(self, kind: str, change: Callable[[str, Folder], None]) -> None:
        """Change a file of every service, and wait until each has read it."""
        before = {name: await self._expires(name, kind) for name in self._files}
        for name, files in self._files.items():
            change(name, files)

        async def all_have() -> bool:
            return all([await self._expires(name, kind) != before[name] for name in before])

        await until(all_have, f"all have read {kind}")

    async def _expires(self, service: str, kind: str) -> float:
        return await asyncio.to_thread(
            self.services[service].metric, EXPIRES, f'certificate="{kind}"'
        )

    async def _lets_in_no_more(self, service: str, authority: Authority) -> bool:
        shown = credentials(self.authority, authority.issue("operator/mei"))
        async with self.channel(service, shown, once=True) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            try:
                await health.Check(health_pb2.HealthCheckRequest())
            except grpc.aio.AioRpcError as error:
                return error.code() is grpc.StatusCode.UNAVAILABLE
            return False
