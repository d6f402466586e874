"""The way into a suite, as it is told to another process: files and addresses, and the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fangcheng_suite.access import Access, signing_key_in
from fangcheng_suite.identity import identity_in


@dataclass(frozen=True, slots=True)
class Way:
    """All that an `Access` is made of; see there."""

    targets: Mapping[str, str]
    """By service."""
    key: str = field(repr=False)
    """Of development; empty where one of the key set signs."""
    signing_key: str = ""
    """File of that key."""
    key_id: str = ""
    ca: str = ""
    certificate: str = ""
    certificate_key: str = ""
    plaintext: bool = False

    def access(self) -> Access:
        """The way in; raises SuiteError."""
        key = signing_key_in(Path(self.signing_key), self.key_id) if self.signing_key else self.key
        ca, certificate, certificate_key = (
            Path(name) if name else None
            for name in (self.ca, self.certificate, self.certificate_key)
        )
        identity = identity_in(ca, certificate, certificate_key)
        return Access(self.targets.__getitem__, key, ca, self.plaintext, identity)

    def to_json(self) -> dict[str, Any]:
        """For the process; it holds the key."""
        return asdict(self)
