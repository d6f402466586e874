"""Lists in pages: where the next page begins travels in a token that callers only hand back."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence

from fangcheng_kit.errors import InvalidArgument

DEFAULT_PAGE_SIZE = 50
LARGEST_PAGE_SIZE = 500

Key = str | int


def page_size(
    asked: int, default: int = DEFAULT_PAGE_SIZE, largest: int = LARGEST_PAGE_SIZE
) -> int:
    """The size of a page: 0 asks for the default, more than ``largest`` gets ``largest``."""
    return min(asked or default, largest)


def page_token(last: Sequence[Key], filters: object = None) -> str:
    """The token of the page after the row with the sort keys ``last``, no number below 0.

    ``filters``: what the list is restricted to, anything of plain data; a token is good only for
    the same list.
    """
    body = json.dumps([_digest(filters), *last], separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def after(token: str, kinds: Sequence[type[Key]], filters: object = None) -> tuple[Key, ...] | None:
    """The sort keys after which a page begins; ``None``: at the first row.

    ``kinds``: the type of each key. Raises ``InvalidArgument`` (INVALID_PAGE_TOKEN) for a token
    that ``page_token`` has not made for this list.
    """
    if not token:
        return None
    try:
        padded = token + "=" * (-len(token) % 4)
        digest, *keys = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        good = digest == _digest(filters) and len(keys) == len(kinds)
        good = good and all(map(_is_key, keys, kinds))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        good = False
    if not good:
        raise InvalidArgument(
            "INVALID_PAGE_TOKEN", "The page token is none of this list's.", field="page_token"
        )
    return tuple(keys)


def _is_key(key: object, kind: type[Key]) -> bool:
    """Whether ``key`` is of this kind, one that a database can be asked for, and none below 0:
    keys are places, offsets and times."""
    if type(key) is not kind:
        return False
    if isinstance(key, int):
        return 0 <= key < 2**63
    # A lone surrogate is a character of JSON, but of no text.
    return isinstance(key, str) and not any("\ud800" <= one <= "\udfff" for one in key)


def _digest(filters: object) -> str:
    text = json.dumps(filters, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
