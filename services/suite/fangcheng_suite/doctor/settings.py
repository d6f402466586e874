"""How a deployment is set, as far as this command shares its environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from fangcheng_client.channel import stays_here

from .deployment import Deployment
from .findings import Finding, fine, warns

_DANGERS = {
    "WITHOUT_TLS": (
        "Calls and tokens go over the network in plain text: whoever reads it may call as anybody.",
        "Set FANGCHENG_TLS_CERTIFICATE, FANGCHENG_TLS_KEY and FANGCHENG_TLS_CA, unless a mesh "
        "encrypts the connections: docs/operations/certificates.md.",
    ),
    "WITH_DEV_KEY": (
        "Every service that knows the development key can make tokens of anybody.",
        "Check tokens by a key set instead: FANGCHENG_JWKS, docs/operations/identities.md.",
    ),
    "WITH_PLAIN_JOURNAL": (
        "Who reads the tables' database, or a backup of it, sees hands in play.",
        "Set FANGCHENG_TABLE_JOURNAL_KEYS to what `fangcheng journal new-key` prints.",
    ),
}
"""What each setting that is called dangerous means, and what would do without it."""
_FLAG = re.compile(r"FANGCHENG_(?:[A-Z]+_)?DANGEROUSLY_([A-Z_]+)")
_OFF = {"", "0", "false", "no", "off", "f", "n"}


def settings(deployment: Deployment) -> Iterator[Finding]:
    """Look at the dangerous settings, here and of processes on this host that are looked at."""
    found = list(dangers(environments(deployment)))
    yield from found
    beyond = [
        address
        for way in deployment.ways.values()
        for address in way.addresses
        if not stays_here(address)
    ]
    if beyond and deployment.ca is None:
        means, cure = _DANGERS["WITHOUT_TLS"]
        told = f"{', '.join(sorted(set(beyond)))} was called without TLS"
        yield warns("plaintext", "deployment", told, means, cure)
    elif not found:
        yield fine(
            "dangers", "deployment", "no dangerous setting is set where this command sees it"
        )


def dangers(seen: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[Finding]:
    """The dangerous settings in environments, each of which comes with whose it is."""
    found: dict[tuple[str, str], set[str]] = {}
    for whose, environment in seen:
        for name, value in environment.items():
            flag = _FLAG.fullmatch(name)
            if flag and flag[1] in _DANGERS and value.strip().lower() not in _OFF:
                found.setdefault((name, flag[1]), set()).add(whose)
    for (name, danger), where in sorted(found.items()):
        told = f"{name} is set ({', '.join(sorted(where))})"
        yield warns("dangers", "deployment", told, *_DANGERS[danger])


def environments(deployment: Deployment) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The environments that can be seen, each with whose it is."""
    yield "this command", os.environ
    for process in deployment.processes:
        try:
            stored = Path(f"/proc/{process}/environ").read_bytes()
        except OSError:
            continue  # another user's, or it has ended
        pairs = (one.partition(b"=") for one in stored.split(b"\0") if one)
        yield (
            f"process {process}",
            {
                name.decode(errors="replace"): value.decode(errors="replace")
                for name, _, value in pairs
            },
        )
