"""Who connects: the studio's own tokens."""

from __future__ import annotations

from dataclasses import dataclass

import jwt

from studio_gateway.ending import not_let_in

LEEWAY_SECONDS = 10
"""So much may the clocks differ."""
MOST_ID = 128
"""Characters of a player's id, as the suite takes them."""


@dataclass(frozen=True, slots=True)
class Player:
    """Whose connection it is, and until when that is known."""

    player_id: str
    expires: float
    """In seconds since 1970."""


class Players:
    """Checks tokens: JWTs whose ``sub`` is the player's id, with ``aud`` and ``exp``."""

    def __init__(self, key: str, algorithm: str, audience: str) -> None:
        self._key = key
        self._algorithm = algorithm
        self._audience = audience

    def check(self, token: object) -> Player:
        """Whose token this is; ``Ended`` for one that is not good here. It is told no more than
        that: whoever may act for anybody trusts nothing but the signature."""
        if not isinstance(token, str):
            raise not_let_in("TOKEN_INVALID")
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[self._algorithm],
                audience=self._audience,
                leeway=LEEWAY_SECONDS,
                options={"require": ["sub", "aud", "exp"]},
            )
            player_id, expires = str(claims["sub"]), float(claims["exp"])
            player_id.encode()  # JSON can name half of a sign, which is no text
        except jwt.ExpiredSignatureError:
            raise not_let_in("TOKEN_EXPIRED") from None
        except (jwt.InvalidTokenError, ValueError, OverflowError):
            raise not_let_in("TOKEN_INVALID") from None
        if not 1 <= len(player_id) <= MOST_ID or "\0" in player_id:
            raise not_let_in("TOKEN_INVALID")
        return Player(player_id, expires + LEEWAY_SECONDS)
