"""Settings from the environment: documented, with a default each, checked at the start.

A service's own setting ``database`` is the variable ``FANGCHENG_WALLET_DATABASE``. The settings
that all services have, which stand in this file, may also be set for all at once:
``FANGCHENG_LOG_LEVEL``.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, to_json
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from fangcheng_kit.jwks import check_source
from fangcheng_kit.tls import TRUST_DOMAIN
from fangcheng_kit.tokens import AUDIENCE, SHORTEST_KEY

PREFIX = "FANGCHENG_"

_DANGER = "dangerously_"

_CERTIFIED_AGE_SECONDS = 3_600.0


class BadSettings(Exception):
    """The environment does not make usable settings; the message says what to change."""


def is_postgres(database: str) -> bool:
    """Whether this is the address of a PostgreSQL database, and not a file."""
    return database.startswith(("postgresql://", "postgres://"))


def _as_text(database: object) -> object:
    return str(database) if isinstance(database, Path) else database


Database = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, repr=False)]
"""An SQLite file, or the address of a PostgreSQL database, which may hold a password."""


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``host:port`` or ``[v6]:port``; ``ValueError`` for anything else."""
    host, colon, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not (colon and host and port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ValueError("expected HOST:PORT, such as 127.0.0.1:7100; port 0 takes a free one")
    return host, int(port)


def _address(address: str) -> str:
    split_address(address)
    return address


def _collector(endpoint: str) -> str:
    if not endpoint:
        return endpoint
    expected = ValueError("expected http://HOST:PORT, or https:// for TLS")
    try:
        parts = urlsplit(endpoint)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # brackets that do not close, a port beyond 65535
        raise expected from None
    if not named or not endpoint.isprintable() or " " in endpoint:
        raise expected
    return endpoint


Address = Annotated[str, AfterValidator(_address)]
"""``HOST:PORT``."""


def is_loopback(address: str) -> bool:
    """Whether ``HOST:PORT`` can be reached from this host only."""
    host, _ = split_address(address)
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Settings(BaseSettings):
    """What all services have in common; a service's own settings are a subclass.

    Constructed directly it reads no environment, as tests want it; ``load`` reads it.
    """

    model_config = SettingsConfigDict(frozen=True, env_ignore_empty=True)

    dangerously_without_tls: bool = Field(
        default=False,
        description=(
            "Listen beyond this host, and call services there, unencrypted: whoever taps the "
            "network reads tokens and hands. For a network that lets nobody else in, or encrypts "
            "by itself."
        ),
    )
    tls_certificate: Path | None = Field(
        default=None,
        description=(
            "Certificate of the service in PEM, with those of its issuers up to the authority: "
            "what it shows to who calls it, and, with `TLS_CA`, to whom it calls. Read again when "
            "it changes."
        ),
    )
    tls_key: Path | None = Field(
        default=None,
        validate_default=True,
        description="The private key of `TLS_CERTIFICATE`, in PEM without a password.",
    )
    tls_client_ca: Path | None = Field(
        default=None,
        description=(
            "Certificates of the authorities, in PEM, from one of which everybody who calls must "
            "show a certificate. It names who calls where no token does."
        ),
    )
    tls_ca: Path | None = Field(
        default=None,
        description=(
            "Certificates of the authorities, in PEM, that vouch for the services it calls; calls "
            "of other services use TLS where it is set, and only there."
        ),
    )
    tls_trust_domain: str = Field(
        default="fangcheng",
        pattern=f"^{TRUST_DOMAIN}$",
        description=(
            "Whom certificates name: `spiffe://TRUST_DOMAIN/service/NAME`, `…/operator/NAME`, "
            "`…/proxy/NAME`; any other URI names nobody."
        ),
    )
    certificate_scopes: dict[str, frozenset[str]] = Field(
        default_factory=dict,
        description=(
            "Scopes of the services that call without a token, by the name in their certificates, "
            'as JSON: `{"gateway": ["act_as"]}`.'
        ),
    )
    listen: Address = Field(
        default="127.0.0.1:0",
        description=(
            "Address of the gRPC server; port 0 takes a free one. Beyond this host only with "
            "`TLS_CERTIFICATE` and with `JWKS` or `TLS_CLIENT_CA`."
        ),
    )
    metrics_listen: Address = Field(
        default="127.0.0.1:0", description="Address of the Prometheus endpoint `/metrics`."
    )
    port_file: Path | None = Field(
        default=None,
        description=(
            "File to write once the service serves: JSON with `listen`, `metrics` and `pid`. "
            "Removed at the end."
        ),
    )
    jwks: Annotated[str, AfterValidator(check_source)] = Field(
        default="",
        description=(
            "Key set (JWKS) with the public keys by which tokens are checked: a path, or "
            "`https://…`. Read again when the file changes, for a token whose key is not in it, "
            "and every `JWKS_REFRESH_SECONDS`."
        ),
    )
    jwks_refresh_seconds: float = Field(
        default=300.0, ge=1, description="How often the key set is read anew in any case."
    )
    dangerously_with_dev_key: bool = Field(
        default=False,
        description=(
            "Take development tokens beyond this host: whoever has the one key that all services "
            "share is anybody."
        ),
    )
    dev_key: str = Field(
        default="",
        repr=False,
        validate_default=True,
        description=(
            "Secret with which development tokens are signed, the same for all services; at least "
            f"{SHORTEST_KEY} characters. For this host, unless `DANGEROUSLY_WITH_DEV_KEY`; may be "
            "left out where `JWKS` or `TLS_CLIENT_CA` is set."
        ),
    )
    token_audience: str = Field(
        default=AUDIENCE,
        min_length=1,
        description="The audience (`aud`) that every token must be for.",
    )
    token_issuer: str = Field(
        default="", description="The issuer (`iss`) of every token; without it any will do."
    )
    token_file: Path | None = Field(
        default=None,
        description=(
            "File with the token of the service's own calls, read again when it changes. Without "
            "it the service makes its tokens with `DEV_KEY`, where that is set."
        ),
    )
    token_leeway_seconds: float = Field(
        default=10.0, ge=0, le=300, description="How far the clocks of token makers may be off."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level that is logged. Calls that went well are at debug."
    )
    max_message_bytes: int = Field(
        default=4 * 1024 * 1024, ge=1024, description="Largest message taken, in bytes."
    )
    player_calls_per_second: float = Field(
        default=20.0,
        ge=0,
        description=(
            "How many calls one player may make of one process, two seconds' worth of them at "
            "once; further ones are refused with the time to wait. Not for players with the scope "
            "`bot`. 0: no limit, nor any of single calls."
        ),
    )
    service_calls_per_second: float = Field(
        default=0.0,
        ge=0,
        description=(
            "The same for one service, one operator or one bot; for a gateway, with all that it "
            "calls for its players. 0: no limit."
        ),
    )
    calls: int = Field(
        default=10_000,
        ge=0,
        description=(
            "Calls that may be under way at the same time at one process, besides streams; of one "
            "player two seconds' worth. 0: no limit of all together."
        ),
    )
    player_streams: int = Field(
        default=16,
        ge=0,
        description="Streams that one player may have open at one process. 0: no limit.",
    )
    streams: int = Field(
        default=20_000,
        ge=0,
        description=(
            "Streams that all callers together may have open at one process; besides, as many of "
            "those that tell of its health. 0: no limit."
        ),
    )
    max_connection_age_seconds: float = Field(
        default=0.0,
        ge=0,
        description=(
            "Age at which a connection is closed after its calls, so that clients look up the "
            "replicas again; 0: never, but with `TLS_CLIENT_CA` after an hour, so that a "
            "certificate that is trusted no more does not go on for ever."
        ),
    )
    connection_grace_seconds: float = Field(
        default=300.0,
        ge=0,
        description=(
            "How long calls may go on on a connection that has reached that age; new ones have "
            "moved to another by then."
        ),
    )
    call_timeout_seconds: float = Field(
        default=5.0, gt=0, description="Deadline of calls to other services that set none."
    )
    otlp_endpoint: Annotated[str, AfterValidator(_collector)] = Field(
        default="",
        description=(
            "Collector that takes spans by OTLP over gRPC, such as `http://127.0.0.1:4317`; "
            "`https://` for TLS. Without it `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or "
            "`OTEL_EXPORTER_OTLP_ENDPOINT`; without these nothing is traced."
        ),
    )
    trace_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description=(
            "Share of the traces that are exported, of those that begin at the service; a call "
            "that belongs to a trace already does as its caller."
        ),
    )
    drain_seconds: float = Field(
        default=2.0,
        ge=0,
        description="How long a stopping service tells NOT_SERVING before it refuses calls.",
    )
    grace_seconds: float = Field(
        default=5.0, ge=0, description="How long calls in flight may then still take."
    )

    def dangers(self) -> list[str]:
        """The settings of frightening names that are on."""
        names = type(self).model_fields
        return [name.upper() for name in names if name.startswith(_DANGER) and getattr(self, name)]

    @property
    def connection_age_seconds(self) -> float:
        """The age at which a connection is closed; 0: never."""
        certified = _CERTIFIED_AGE_SECONDS if self.tls_client_ca else 0.0
        return self.max_connection_age_seconds or certified

    @field_validator("listen")
    @classmethod
    def _encrypted_beyond_this_host(cls, listen: str, info: ValidationInfo) -> str:
        encrypted = info.data.get("tls_certificate") or info.data.get("dangerously_without_tls")
        if not (is_loopback(listen) or encrypted):
            raise ValueError(
                "without TLS a service listens on this host only: set TLS_CERTIFICATE and TLS_KEY "
                "(`fangcheng dev-certs` makes some for trying), or use 127.0.0.1, [::1] or "
                "localhost, or set DANGEROUSLY_WITHOUT_TLS in a network that encrypts by itself"
            )
        return listen

    @field_validator("tls_key")
    @classmethod
    def _with_its_certificate(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        if (key is None) != (info.data.get("tls_certificate") is None):
            raise ValueError("TLS_CERTIFICATE and TLS_KEY belong together: set both, or neither")
        return key

    @field_validator("tls_client_ca")
    @classmethod
    def _with_a_certificate(cls, authorities: Path | None, info: ValidationInfo) -> Path | None:
        if authorities is not None and info.data.get("tls_certificate") is None:
            raise ValueError("who asks for certificates has one: set TLS_CERTIFICATE and TLS_KEY")
        return authorities

    @field_validator("dev_key")
    @classmethod
    def _for_this_host(cls, key: str, info: ValidationInfo) -> str:
        if not key:
            if info.data.get("jwks") or info.data.get("tls_client_ca"):
                return key
            raise ValueError(
                "it must be set, or else JWKS or TLS_CLIENT_CA: any secret of at least "
                f"{SHORTEST_KEY} characters, the same for all services and for whoever makes tokens"
            )
        if len(key) < SHORTEST_KEY:
            raise ValueError(f"it has {len(key)} characters, at least {SHORTEST_KEY} are needed")
        listen = info.data.get("listen")
        if listen and not (is_loopback(listen) or info.data.get("dangerously_with_dev_key")):
            raise ValueError(
                f"it is for development, on this host; a service that listens on {listen} checks "
                "tokens by a key set: leave it out and set JWKS, or DANGEROUSLY_WITH_DEV_KEY"
            )
        return key

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if not field.description or field.is_required():
                raise TypeError(f"{cls.__name__}.{name} needs a description and a default")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The service's own variables first, then those common to all."""
        if not getattr(env_settings, "env_prefix", ""):
            return (init_settings,)
        common = _Common(settings_cls, env_prefix=PREFIX)
        return init_settings, env_settings, common, _OpenTelemetrys(settings_cls)


class _Common(EnvSettingsSource):
    """The variables without a service's name, for the settings that all services have."""

    def __call__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__call__().items() if name in _COMMON}


class _OpenTelemetrys(EnvSettingsSource):
    """OpenTelemetry's own variables, which a studio may have set for all that it runs."""

    def __call__(self) -> dict[str, Any]:
        for variable in ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
            if endpoint := os.environ.get(variable):
                return {"otlp_endpoint": endpoint}
        return {}


_COMMON = frozenset(Settings.model_fields)

S = TypeVar("S", bound=Settings)


def load(service: str, settings_type: type[S]) -> S:
    """The settings of a service from the environment; ``BadSettings`` names what is wrong."""
    build: Any = settings_type
    try:
        settings: S = build(_env_prefix=_prefix(service))
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False):
            name = str(problem["loc"][0]) if problem["loc"] else ""
            lines.append(_complaint(service, settings_type, name, _words(problem)))
        raise BadSettings("\n".join(lines)) from None
    except SettingsError as error:
        found = re.search(r'field "(\w+)"', str(error))
        name = found.group(1) if found else ""
        raise BadSettings(
            _complaint(service, settings_type, name, "it cannot be read as JSON")
        ) from None
    return settings


_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is no key that is known here",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be {expected}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("dict_type", "model_type"), "must be keys with their values"),
    "list_type": "must be a list",
    "string_type": "must be text",
}
"""What pydantic finds, by its type, for people who do not write Python."""


def _words(problem: ErrorDetails) -> str:
    words = _WORDS.get(problem["type"])
    if words is None:
        return problem["msg"].removeprefix("Value error, ")
    return words.format(**problem.get("ctx", {}))


def complaints(error: ValidationError, name: str, at: Sequence[str | int] = ()) -> list[str]:
    """What is wrong with a file of this name, each with the key at fault:
    ``pools.yaml: pools[0].hands: …``. ``at``: where in it is what was validated."""
    found = []
    for problem in error.errors(include_url=False):
        key = ""
        for part in (*at, *problem["loc"]):
            key += f"[{part}]" if isinstance(part, int) else f".{part}"
        found.append(f"{name}: {key.lstrip('.') or 'the file'}: {_words(problem)}")
    return found


def unknown_variables(
    service: str, settings_type: type[Settings], environment: Mapping[str, str] = os.environ
) -> list[str]:
    """A complaint for each variable that looks like a setting of the service and is none.

    Kubernetes puts variables such as ``FANGCHENG_WALLET_PORT_7101_TCP`` of its own beside ours, so
    that these complaints are good for a warning only.
    """
    known = {_prefix(service) + name.upper() for name in settings_type.model_fields}
    ours = {variable for variable in environment if variable.startswith(_prefix(service))}
    complaints = []
    for variable in sorted(ours - known):
        if re.search(r"_(SERVICE_HOST|SERVICE_PORT|PORT)(_\w+)?$", variable):
            continue
        near = difflib.get_close_matches(variable, known, n=1)
        complaints.append(f"{variable} is no setting" + (f"; {near[0]}?" if near else ""))
    return complaints


def _prefix(service: str) -> str:
    return f"{PREFIX}{service.upper()}_"


def _complaint(service: str, settings_type: type[Settings], name: str, message: str) -> str:
    field = settings_type.model_fields.get(name)
    if field is None:
        return f"{_prefix(service)}*: {message}"
    variable = _prefix(service) + name.upper()
    if variable not in os.environ and name in _COMMON:
        variable = PREFIX + name.upper()
    value = os.environ.get(variable)
    shown = "" if value is None or not field.repr else f"={value}"
    return f"{variable}{shown}: {message} ({field.description})"


def reference(services: Mapping[str, type[Settings]]) -> str:
    """The page of all settings, in Markdown, from the settings of each service by its name."""
    parts = [
        "# Settings",
        "Every setting is an environment variable. The common ones may be set for all services, as "
        "below, or for one: `FANGCHENG_WALLET_LOG_LEVEL` wins over `FANGCHENG_LOG_LEVEL`. A value "
        "that cannot be used ends the start with exit code 2 and a message naming the variable.",
        "## All services",
        _table(PREFIX, Settings.model_fields),
    ]
    for service, settings_type in services.items():
        own = {
            name: field
            for name, field in settings_type.model_fields.items()
            if name not in _COMMON or field.default != Settings.model_fields[name].default
        }
        parts += [f"## {service}", _table(_prefix(service), own)]
    return "\n\n".join(parts) + "\n"


def _table(prefix: str, fields: Mapping[str, FieldInfo]) -> str:
    rows = ["| variable | default | what it is |", "| --- | --- | --- |"]
    for name, field in fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, tuple | list | dict):
            default = to_json(default).decode()  # as the variable would hold it
        shown = "" if default in (None, "") else f"`{default}`"
        description = (field.description or "").replace("|", "\\|")
        rows.append(f"| `{prefix}{name.upper()}` | {shown} | {description}{_bounds(field)} |")
    return "\n".join(rows)


def _bounds(field: FieldInfo) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [
        f"{sign} {getattr(rule, name)}"
        for rule in field.metadata
        for name, sign in signs.items()
        if getattr(rule, name, None) is not None
    ]
    choices = getattr(field.annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        bounds.append("one of " + ", ".join(f"`{choice}`" for choice in choices))
    return f" ({', '.join(bounds)})" if bounds else ""
