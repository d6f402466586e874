"""Settings of the console, from FANGCHENG_CONSOLE_*."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from fangcheng_kit import Settings
from fangcheng_kit.settings import Address, Database, is_loopback, split_address
from fangcheng_kit.tokens import SHORTEST_KEY


def _origin(url: str) -> str:
    """Scheme, host and port of a page's address, as browsers write them: `https://console.club`."""
    if not url:
        return url
    expected = ValueError("expected https://HOST or http://HOST:PORT, without a path")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # brackets that do not close, a port beyond 65535
        raise expected from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise expected
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise expected
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + ("" if port in (None, usual) else f":{port}")


def _link(url: str) -> str:
    if url and urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("expected an address that begins with https:// or http://")
    return url.rstrip("/")


class ConsoleSettings(Settings):
    """See `fangcheng_kit.settings.Settings` for what all services have."""

    web_listen: Address = Field(
        "127.0.0.1:7103",
        description=(
            "Address of the web page; beyond this host it is served over TLS, with "
            "`TLS_CERTIFICATE`. Port 0 takes a free one. (`LISTEN` is where the process tells its "
            "health over gRPC.)"
        ),
    )
    public_url: Annotated[str, AfterValidator(_origin)] = Field(
        "",
        description=(
            "Where browsers find the page, such as `https://console.example`, when that is not at "
            "`WEB_LISTEN` on this host. Requests for any other host "
            "are refused; with `https` the session's cookie leaves browsers encrypted only."
        ),
    )
    trusted_proxies: str = Field(
        "",
        description=(
            "Addresses or networks of the proxies, with commas between them, whose "
            "`X-Forwarded-For` tells from where a person comes, for the limit on attempts to sign "
            "in."
        ),
    )
    secret: str = Field(
        "",
        repr=False,
        validate_default=True,
        description=(
            "Secret from which the keys are made that sign sessions and links, the same for all "
            f"replicas; at least {SHORTEST_KEY} characters. Without it they are made from "
            "`DEV_KEY`. Another one ends all sessions and links."
        ),
    )
    session_hours: float = Field(
        12.0,
        gt=0,
        le=24 * 30,
        description=(
            "How long a session lasts at most; it ends with the token that it was begun with, "
            "where that is sooner."
        ),
    )
    database: Database = Field(
        "console.db",
        description="SQLite file of the console's own log, made if missing; or, for several "
        "replicas, a PostgreSQL database, `postgresql://user:password@host/name`.",
    )
    matchmaking: str = Field(
        "127.0.0.1:7100", min_length=1, description="Target of the matchmaking service."
    )
    table: str = Field("127.0.0.1:7101", min_length=1, description="Target of the table service.")
    wallet: str = Field("127.0.0.1:7102", min_length=1, description="Target of the wallet.")
    evaluation: str = Field(
        "127.0.0.1:7110", min_length=1, description="Target of the evaluation service."
    )
    metrics: str = Field(
        "",
        description=(
            "Where processes tell their metrics, for the page of their health: `service=host:port` "
            "each, with commas between them, such as `table=127.0.0.1:7201,wallet=127.0.0.1:7202`; "
            "a name of DNS that stands for several replicas is asked for all of them."
        ),
    )
    grafana_url: Annotated[str, AfterValidator(_link)] = Field(
        "",
        description=(
            "Where Grafana with the suite's dashboards is, for links to it, such as "
            "`https://grafana.example`; without it there are none."
        ),
    )

    @field_validator("secret")
    @classmethod
    def _long_enough(cls, secret: str, info: ValidationInfo) -> str:
        if not secret and info.data.get("dev_key") == "":
            raise ValueError("it must be set where there is no DEV_KEY")
        if secret and len(secret) < SHORTEST_KEY:
            raise ValueError(f"it has {len(secret)} characters, at least {SHORTEST_KEY} are needed")
        return secret

    @field_validator("web_listen")
    @classmethod
    def _web_on_this_host(cls, listen: str, info: ValidationInfo) -> str:
        encrypted = info.data.get("tls_certificate") or info.data.get("dangerously_without_tls")
        if not (is_loopback(listen) or encrypted):
            raise ValueError(
                "without TLS the console listens on this host only: set TLS_CERTIFICATE and "
                "TLS_KEY, or use 127.0.0.1, [::1] or localhost, and put a proxy that ends TLS on "
                "the same host to reach it from others"
            )
        return listen

    @model_validator(mode="after")
    def _is_somewhere(self) -> ConsoleSettings:
        if not self.public_url and not is_loopback(self.web_listen):
            raise ValueError(
                "PUBLIC_URL must say where browsers find the page when it listens beyond this host"
            )
        return self

    @property
    def web_over_tls(self) -> bool:
        """Whether the page is served over TLS; on this host it never is."""
        return self.tls_certificate is not None and not is_loopback(self.web_listen)

    @property
    def cookie_is_secure(self) -> bool:
        """Whether browsers come over TLS, so that the session's cookie needs it."""
        return self.public_url.startswith("https:")

    def origins(self, port: int) -> frozenset[str]:
        """The origins that the page may have, as browsers write them; `port`: of `web_listen`."""
        found = {self.public_url} - {""}
        host, _ = split_address(self.web_listen)
        if is_loopback(self.web_listen):
            named = f"[{host}]" if ":" in host else host
            found |= {_origin(f"http://{name}:{port}") for name in (named, "localhost")}
        return frozenset(found)
