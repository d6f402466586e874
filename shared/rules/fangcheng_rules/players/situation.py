"""What a player knows when it is asked, and what it may find out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from fangcheng_rules.actions import Action, Prompt
from fangcheng_rules.analysis import Analysis
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import Options, RuleSet
from fangcheng_rules.tiles import COPIES, DRAGONS, PLAY_KINDS
from fangcheng_rules.values import value


@value
class SeatSeen:
    """A seat as a player at the table sees it."""

    river: Sequence[int] = ()
    """Its discards that nobody has claimed, oldest first."""
    melds: Sequence[Meld] = ()
    """The melds of which the player sees the tiles."""
    hidden_kongs: int = 0
    """Concealed kongs of another seat: that they were made is seen, not of what."""
    declared: str = ""
    shown: Sequence[int] = ()
    """Its concealed tiles where it has shown them (明楼), or they are the player's own."""
    flowers: Sequence[int] = ()
    """In the order in which they were laid down."""

    @property
    def meld_count(self) -> int:
        """How many melds lie there, 0 to 4."""
        return len(self.melds) + self.hidden_kongs


@value
class Situation:
    """What a player knows when it is asked: nothing that others at its place would not see.

    The sequences are the table's own, and hold good until the player has answered.
    """

    rule_set: RuleSet
    options: Options
    own: int
    """The player's seat, 0 to 3."""
    dealer: int
    seats: Sequence[SeatSeen]
    """All four, the player's own among them."""
    wall_left: int
    """Tiles that nobody has taken, those that are never drawn among them."""
    analyse: Callable[[Hand], Analysis]
    """Asks the evaluator, with progress, about a hand: one of `hands_asked`."""
    analysis: Analysis | None = None
    """Of the player's fourteen tiles in its own turn, if it has been told already."""
    claimed: tuple[int, int] | None = None
    """Seat and tile of the discard, or of the added kong, that is open to claims."""
    turned: Sequence[int] = ()
    """The tiles turned up on the wall, newest last."""
    treasure: int | None = None

    @property
    def concealed(self) -> Sequence[int]:
        """The player's concealed tiles, sorted, the drawn one among them."""
        return self.seats[self.own].shown

    @property
    def melds(self) -> Sequence[Meld]:
        """The player's own melds."""
        return self.seats[self.own].melds

    @property
    def declared(self) -> str:
        """What the player has declared, or ''."""
        return self.seats[self.own].declared

    @property
    def hand(self) -> Hand:
        """The player's own hand."""
        return Hand.known(tuple(self.concealed), tuple(self.melds))

    def analysed(self) -> Analysis:
        """What the evaluator tells of the player's own hand, with progress."""
        found = self.analysis
        return self.analyse(self.hand) if found is None or found.shanten is None else found

    def seen(self) -> list[int]:
        """How many of each of the 34 kinds the player sees, its own among them."""
        counts = [0] * PLAY_KINDS
        for tile in self.turned:
            counts[tile] += 1
        for seat in self.seats:
            for tile in seat.river:
                counts[tile] += 1
            for tile in seat.shown:
                counts[tile] += 1
            for meld in seat.melds:
                for tile in meld.tiles:
                    counts[tile] += 1
        return counts

    def unseen(self) -> list[int]:
        """How many of each kind may still lie in the wall or in others' hands."""
        return [max(COPIES - count, 0) for count in self.seen()]


class Player(Protocol):
    """Chooses one of the actions that it is offered."""

    @property
    def needs_progress(self) -> bool:
        """Whether it looks at shanten and useful tiles, which take longer to find."""

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """The answer to a prompt; one of `prompt.actions`."""


def hands_asked(situation: Situation, prompt: Prompt) -> list[Hand]:
    """The hands that a player may ask about before it answers a prompt.

    Its own, and what each claim or kong would make of it; for whoever has to fetch the answers
    from afar before the player is asked.
    """
    actions = [action for action in prompt.actions if action.kind != "false_win"]
    wins = any(action.kind == "win" for action in actions)
    if len(actions) < 2 or wins or prompt.kind == "piao":
        return []
    own = situation.hand
    if prompt.kind == "turn":
        return [own, *(after_kong(own, one) for one in actions if one.kind == "kong")]
    claims = [action for action in actions if action.kind != "pass"]
    return [own, *(after_claim(own, claim) for claim in claims)]


def after_claim(hand: Hand, claim: Action) -> Hand:
    """Thirteen tiles after a claim: fourteen after a chi or pong, thirteen after a kong."""
    if claim.kind == "kong":
        return after_kong(hand, claim)
    if claim.tile is None:
        raise ValueError(f"a {claim.kind} claims nothing")
    mine = claim.tiles if claim.kind == "chi" else (claim.tile, claim.tile)
    kind = MeldKind.CHI if claim.kind == "chi" else MeldKind.PONG
    meld = Meld(kind, (*mine, claim.tile), claimed=claim.tile)
    return Hand.known(_without(hand.concealed, mine), (*hand.melds, meld))


def after_kong(hand: Hand, kong: Action) -> Hand:
    """A hand after a kong, before its replacement; fourteen tiles where none is drawn for it."""
    if kong.tile is None or kong.meld is None:
        raise ValueError(f"a {kong.kind} is no kong")
    if kong.meld is MeldKind.WHIRLWIND:
        laid = Meld(kong.meld, tuple(DRAGONS))
        return Hand.known(_without(hand.concealed, DRAGONS), (*hand.melds, laid))
    if kong.meld is MeldKind.ADDED_KONG:
        melds = tuple(
            meld.plus(kong.tile) if meld.takes(kong.tile) else meld for meld in hand.melds
        )
        return Hand.known(_without(hand.concealed, (kong.tile,)), melds)
    rest = tuple(tile for tile in hand.concealed if tile != kong.tile)
    return Hand.known(rest, (*hand.melds, Meld(kong.meld, (kong.tile,) * COPIES)))


def _without(concealed: Sequence[int], used: Sequence[int]) -> tuple[int, ...]:
    rest = list(concealed)
    for tile in used:
        rest.remove(tile)
    return tuple(rest)
