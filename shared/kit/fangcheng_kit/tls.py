"""Certificates: who shows one.

A certificate names its holder by exactly one URI among its alternative names, as SPIFFE writes
them: ``spiffe://<trust domain>/service/<name>`` is the service of that name, ``…/operator/<name>``
a person of the studio's, ``…/proxy/<name>`` a proxy, which passes others on and is nobody by
itself. gRPC has checked by then that the certificate is from a trusted authority and in time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from fangcheng_kit.errors import Unauthenticated
from fangcheng_kit.principal import ACT_AS_SCOPE, Principal

TRUST_DOMAIN = "[a-z0-9._-]{1,255}"
"""What a trust domain looks like, by SPIFFE-ID 2.1: a regular expression."""

# A segment of a path, by SPIFFE-ID 2.2: nothing in it is escaped, so that a name has one spelling.
_NAME = r"[A-Za-z0-9._-]{1,128}"
_PATH = re.compile(rf"(service|operator|proxy)/({_NAME})")

_BUILT_IN = {("table", "matchmaking"): frozenset({ACT_AS_SCOPE})}
"""What a service allows the certificate of another besides its name: matchmaking seats players."""


def peer_principal(
    auth_context: Mapping[str, Iterable[bytes]],
    trust_domain: str,
    scopes: Mapping[str, Collection[str]],
) -> Principal | None:
    """Whom the certificate of a call's connection names; None: a proxy, or none was shown.

    ``auth_context``: as gRPC's context of the call gives it. ``scopes``: what each service may
    besides, by its name. ``Unauthenticated`` for a certificate that names nobody of this trust
    domain, whatever else the call carries.
    """
    if b"ssl" not in auth_context.get("transport_security_type", ()):
        return None
    if not auth_context.get("x509_pem_cert"):
        return None
    uris = list(auth_context.get("peer_uri", ()))
    named = _holder(uris[0], trust_domain) if len(uris) == 1 else None
    if named is None:
        raise Unauthenticated(
            "CERTIFICATE_INVALID",
            "The certificate names nobody here: among its alternative names must be one URI, "
            f"spiffe://{trust_domain}/service/<name>.",
        )
    kind, name = named
    if kind == "proxy":
        return None
    if kind == "operator":
        return Principal("operator", name)
    return Principal("service", name, frozenset(scopes.get(name, ())))


def granted(service: str, given: Mapping[str, Collection[str]]) -> dict[str, frozenset[str]]:
    """The scopes that ``service`` allows the certificates of others, by their names: those that are
    ``given`` by its settings, and those that it cannot work without."""
    scopes = {name: frozenset(more) for name, more in given.items()}
    for (at, name), built_in in _BUILT_IN.items():
        if at == service:
            scopes[name] = scopes.get(name, frozenset()) | built_in
    return scopes


def _holder(uri: bytes, trust_domain: str) -> tuple[str, str] | None:
    start = f"spiffe://{trust_domain}/"
    try:
        text = uri.decode("ascii")
    except UnicodeDecodeError:
        return None
    found = _PATH.fullmatch(text.removeprefix(start)) if text.startswith(start) else None
    return None if found is None else (found[1], found[2])
