"""What the gateway is told by its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import grpc


@dataclass(frozen=True, slots=True)
class Settings:
    """Each is read from ``GATEWAY_<NAME>``; files are named by their path."""

    player_key: str
    """A file with the public key (PEM) of the sign-in that makes the players' tokens."""
    token_file: str
    """A file with the gateway's own token, of the scope ``act_as``; read again at every call."""
    player_algorithm: str = "EdDSA"
    """The algorithm of the key, whatever a token says of itself."""
    player_audience: str = "gateway"
    """For whom the players' tokens must be."""
    host: str = "127.0.0.1"
    port: int = 8080
    """Plain WebSocket: something before it ends TLS."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 9090
    """Prometheus; 0: any port that is free."""
    table: str = "127.0.0.1:7101"
    matchmaking: str = "127.0.0.1:7100"
    ca: str = ""
    """A file with the authority of the services' certificates; needed beyond this host."""
    connections: int = 10_000
    """Further ones are refused with 503."""
    hello_seconds: float = 10.0
    """Until a connection has said who it is."""
    heartbeat_seconds: float = 20.0
    """Between two heartbeats to a client, which answers each."""
    silence_seconds: float = 60.0
    """A client of whom nothing was heard for so long is cut off."""
    behind_bytes: int = 1_000_000
    """A client that has so much unread is cut off."""
    drain_seconds: float = 5.0
    """After SIGTERM: until the load balancer has seen that ``/healthz`` says 503."""

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Those of an environment; ``SystemExit`` names what is missing or no number."""
        given: dict[str, Any] = {}
        for field in fields(cls):
            name = f"GATEWAY_{field.name.upper()}"
            kind = {"str": str, "int": int, "float": float}[str(field.type)]
            try:
                if name in environment:
                    given[field.name] = kind(environment[name])
                elif field.name in ("player_key", "token_file"):
                    raise SystemExit(f"{name} is not set: {field.name} is needed (see README.md)")
            except ValueError as error:
                raise SystemExit(f"{name}: {error}") from error
        return cls(**given)

    def token(self) -> str:
        """The gateway's token of now."""
        return Path(self.token_file).read_text("utf-8").strip()

    def credentials(self) -> grpc.ChannelCredentials | None:
        """TLS to the services; None: they are on this host."""
        return grpc.ssl_channel_credentials(Path(self.ca).read_bytes()) if self.ca else None
