"""What can be wrong, as one tree.

Every error carries a `reason` in UPPER_SNAKE, which programs read and which never changes, a
`message` for people, and the `field` of the input that is at fault where there is one. A
service turns each into a status of its own, in one place.

::

    RulesError
    ├── InvalidTile            no such tile
    ├── InvalidNotation        text that is no list of tiles
    ├── InvalidMeld            tiles that make no such meld
    ├── InvalidHand            tiles that nobody can hold
    ├── InvalidWall            a secret, a commitment or an entropy that does not fit
    ├── UnknownRuleSet
    ├── UnknownRevision
    ├── InvalidOption
    ├── IllegalWin             a finished hand that is no win, or cannot have come about
    └── ActionRefused          an answer that the hand of play does not take
        ├── WrongSeat          the seat is not asked
        ├── StaleDecision      the seat is asked something else by now
        ├── NotOffered         the seat is asked, but not this
        └── AlreadyAnswered    the seat has answered this decision
"""

from __future__ import annotations


class RulesError(Exception):
    """The root of everything that the rules refuse."""

    def __init__(self, reason: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.field = field

    def __str__(self) -> str:
        where = f" ({self.field})" if self.field else ""
        return f"{self.reason}: {self.message}{where}"


class InvalidTile(RulesError):
    """No such tile."""


class InvalidNotation(RulesError):
    """Text that is no list of tiles."""


class InvalidMeld(RulesError):
    """Tiles that make no such meld."""


class InvalidHand(RulesError):
    """Tiles that nobody can hold."""


class InvalidWall(RulesError):
    """A secret, a commitment or an entropy that does not fit."""


class UnknownRuleSet(RulesError):
    """No rule set of that id."""


class UnknownRevision(RulesError):
    """The rule set is known, but not in that revision."""


class InvalidOption(RulesError):
    """An option that the rule set does not have, or a value out of its bounds."""


class IllegalWin(RulesError):
    """A finished hand that is no win under its rule set, or cannot have come about."""


class ActionRefused(RulesError):
    """An answer that the hand of play does not take; nothing has changed."""


class WrongSeat(ActionRefused):
    """The seat is not asked for anything."""


class StaleDecision(ActionRefused):
    """The seat is asked something else by now."""


class NotOffered(ActionRefused):
    """The seat is asked, but not offered this."""


class AlreadyAnswered(ActionRefused):
    """The seat has given this very answer to this decision; it holds."""
