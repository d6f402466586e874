"""Links that sign a person in to the console."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .errors import SuiteError

if TYPE_CHECKING:
    from fangcheng_kit.signing import SigningKey

LINK_HOURS = 12.0


def sign_in_link(page: str, key: str | SigningKey, role: str, name: str, hours: float) -> str:
    """A link to the console at `page` that signs `name` in; raises SuiteError.

    The token stands behind the `#`, which no browser sends and no proxy logs; the page hands it in
    and takes it out of the address. The session that it opens ends with it.
    """
    from fangcheng_kit.tokens import mint_token

    address = urlsplit(page)
    if address.scheme not in ("http", "https") or not address.netloc or address.path.strip("/"):
        raise SuiteError(
            f"{page} is no address of a console", "Example: --address https://console.example"
        )
    try:
        token = mint_token(key, f"{role}:{name}", ttl_seconds=hours * 3_600)
    except ValueError as error:
        raise SuiteError(str(error), "Example: fangcheng console --name mei") from None
    return f"{page.rstrip('/')}/sign-in#{token}"


def default_name() -> str:
    """Who uses this computer."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id that has no name, as containers have them
        return "somebody"
