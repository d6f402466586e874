"""What is looked at: the suite that runs here, or services that are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc.aio

from ..access import Access, reach
from ..errors import SuiteError
from ..identity import Identity
from ..state import StateFolder

METRICS = "table=10.0.0.7:7201"
DATABASE = "wallet=postgresql://db/wallet"
SERVICES = ("matchmaking", "table", "wallet", "evaluation")


@dataclass(frozen=True, slots=True)
class Way:
    """The way to one service."""

    service: str
    addresses: tuple[str, ...]
    """`host:port` of each process, or of the name behind which they are."""
    open: Callable[..., grpc.aio.Channel]
    """A channel to an address, on which an operator calls; `server_name`: whose certificate it has,
    where that is not the address's own."""

    def subject(self, address: str) -> str:
        """How findings name a process."""
        return f"{self.service} {address}"


@dataclass(frozen=True, slots=True)
class Deployment:
    """All that there is to look at."""

    ways: Mapping[str, Way]
    """By service; one that is not in it is not looked at."""
    measures: Sequence[tuple[str, str]] = ()
    """Service and `host:port` of each process's metrics."""
    databases: Mapping[str, str] = field(default_factory=dict)
    """By service: a file, or the address of a PostgreSQL database."""
    folder: Path | None = None
    """Of the state of a suite on this host."""
    page: str = ""
    """Address of the console for browsers; empty: there is none here."""
    ca: Path | None = None
    """Certificates that the services' own are checked by; None: they have no TLS."""
    identity: Identity | None = None
    processes: Sequence[int] = ()
    """Of the services, where they run on this host."""
    is_here: bool = False
    """It is a suite that `fangcheng up` runs."""


def here(state: Path) -> Deployment:
    """The suite that runs with a state folder; raises SuiteError where none does."""
    folder = StateFolder(state)
    suite = folder.read()
    access = Access(suite.target, suite.key)
    ways = {
        service: Way(
            service,
            tuple(address.grpc for address in suite.services[service]),
            partial(_open, access, service),
        )
        for service in SERVICES
        if service in suite.services
    }
    return Deployment(
        ways,
        [(name, one.metrics) for name, found in suite.services.items() for one in found],
        {name: str(folder.path / f"{name}.db") for name in (*SERVICES[:3], "console")},
        folder.path,
        suite.page if "console" in suite.services else "",
        processes=_children(suite.pid),
        is_here=True,
    )


def elsewhere(
    targets: Mapping[str, str | None],
    token: str | None,
    ca: Path | None,
    identity: Identity | None,
    *,
    measures: Sequence[str] = (),
    databases: Sequence[str] = (),
    plaintext: bool = False,
) -> Deployment:
    """The services at these addresses, `host:port`; raises SuiteError.

    `measures`: where each process has its metrics, `service=host:port`. `databases`: those to look
    at, `service=address`.
    """
    ways = {}
    channel = partial(_reach, token, ca, identity, plaintext)
    for service, target in targets.items():
        if target:
            _check(target, f"--{service} ", "10.0.0.7:7100")
            ways[service] = Way(service, (target,), channel)
    if not ways:
        raise SuiteError("no service is named", "Name at least one: --table table.example:7101")
    return Deployment(
        ways,
        [_measured(one) for one in measures],
        dict(_named("--database", one, DATABASE) for one in databases),
        ca=ca,
        identity=identity,
    )


def _open(access: Access, service: str, address: str, server_name: str = "") -> grpc.aio.Channel:
    return access.channel(service, target=address)


def _reach(
    token: str | None,
    ca: Path | None,
    identity: Identity | None,
    plaintext: bool,
    address: str,
    server_name: str = "",
) -> grpc.aio.Channel:
    options = [("grpc.ssl_target_name_override", server_name)] if server_name else []
    return reach(address, token, ca, options, plaintext=plaintext, identity=identity)


def _measured(told: str) -> tuple[str, str]:
    service, address = _named("--metrics", told, METRICS)
    _check(address, f"--metrics {service}=", METRICS)
    return service, address


def _named(option: str, told: str, example: str) -> tuple[str, str]:
    service, equals, address = told.partition("=")
    if not equals or not address or service not in (*SERVICES, "console"):
        raise SuiteError(f"{option} {told}: this names no service", f"Example: {option} {example}")
    return service, address


def _children(pid: int) -> list[int]:
    """The processes that a process has started; none where the system does not tell."""
    try:
        told = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    except OSError:
        return []
    return [int(one) for one in told.split()]


def _check(address: str, option: str, example: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise SuiteError(f"{option}{address}: this is no address", f"Such is {example}.")
