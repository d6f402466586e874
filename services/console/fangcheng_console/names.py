"""What a player is called on the page.

A profile is the studio's own and may be anything. Two kinds are read: a JSON object with a name in
it, and short text, which is the name. For anything else the player's id has to do.
"""

from __future__ import annotations

import json
from functools import lru_cache

LONGEST = 40
"""Characters of a name; what is longer is no name, or is cut."""
_KEYS = ("name", "nickname", "nick", "display_name", "displayName")


@lru_cache(maxsize=16_384)
def name_of(profile: bytes, player_id: str) -> str:
    """The name to show for a player; empty for a seat without one."""
    try:
        text = profile.decode().strip()
    except UnicodeDecodeError:
        return player_id
    if text.startswith("{"):
        return _told(text) or player_id
    return text if text.isprintable() and 0 < len(text) <= LONGEST else player_id


def _told(text: str) -> str:
    try:
        profile = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    names = (profile.get(key) for key in _KEYS)
    name = next((name for name in names if isinstance(name, str) and name.strip()), "")
    return "".join(sign for sign in name.strip() if sign.isprintable())[:LONGEST]
