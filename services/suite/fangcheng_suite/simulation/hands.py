"""One session at a table, played: a row for each hand, a row for each buy-in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from fangcheng_rules.events import Discarded, Event
from fangcheng_rules.players import PLAYERS
from fangcheng_rules.round import Round
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.scoring import EightFlowers, TransferReason, Win
from fangcheng_rules.simulate import play_hands

from .plan import Plan
from .stakes import Paid, Purses, due_of, table_of

Rows = NDArray[Any]
"""A structured array: of `hand_type`, or of `PURSE_TYPE`."""

ENDS: Final = ("draw", "discard", "self_draw", "rob_kong", "eight_flowers")
"""How a hand can end here, in the order of the codes in `end`."""
REASONS: Final[tuple[str, ...]] = get_args(TransferReason)
"""What units move for, in the order of `moved`."""

PURSE_TYPE: Final = np.dtype(
    [
        ("session", "i4"),
        ("buy_in", "i8"),
        ("hands", "i4"),  # settled before somebody was bankrupt, or the session was over
        ("bankrupt", "u1"),  # the seats that were, as a mask
        ("coins", "i8", 4),  # what each seat has at the end
        ("unpaid", "i8"),
    ]
)


def hand_type(rules: RuleSet) -> np.dtype[Any]:
    """What is kept of a hand. A mask has bit *s* for seat *s*."""
    return np.dtype(
        [
            ("session", "i4"),
            ("hand", "i2"),  # in its session, from 1
            ("dealer", "i1"),
            ("players", "i1", 4),  # by seat, which of the plan's players
            ("end", "i1"),  # place in ENDS
            ("winners", "u1"),  # mask
            ("source", "i1"),  # who dealt in or whose kong was robbed; -1: nobody
            ("stays", "?"),  # the dealer deals the next hand too
            ("discards", "i2"),
            ("kongs", "i1"),
            ("left", "i2"),  # tiles of the wall that nobody has taken
            ("declared", "u1"),  # mask
            ("fan", "i2", 4),  # a winner's that count against every loser; -1: no winner, or flat
            ("flat", "u1"),  # mask: winners paid a fixed amount instead of fan
            ("won", "i8", 4),  # units that a winner is paid for the win
            ("payments", "i1"),  # of a loser to a winner for a win
            ("capped", "i1"),  # those of them that the cap cut
            ("net", "i8", 4),  # units, everything counted
            ("moved", "i8", len(REASONS)),  # units paid, by reason
            ("items", "i1", len(rules.fan_items)),  # winners that have the fan item
            ("settled", "?"),  # the table with the plan's buy-in had not closed before
            ("coins", "i8", 4),  # what each seat gained in coins then
            ("unpaid", "i8"),  # coins that the bankrupt owed and did not pay
            ("bankrupt", "u1"),  # mask
        ]
    )


@dataclass(frozen=True, slots=True)
class Session:
    """What was played in one session, or in many."""

    hands: Rows
    purses: Rows
    """One row for each buy-in of the plan's, in their order."""


def play_session(plan: Plan, number: int) -> Session:
    """Play one session; the same whoever plays it."""
    rules = plan.rules
    seated = tuple(plan.seated(number))
    players = [
        PLAYERS[plan.players[which]](plan.chance(number, f"player {which}")) for which in seated
    ]
    count = plan.hands_of(number)
    rows = np.zeros(count, hand_type(rules))
    table = table_of(plan)
    purses = [Purses(plan.stakes, buy_in) for buy_in in plan.stakes.buy_ins]
    played = play_hands(
        rules,
        players,
        hands=count,
        seed=plan.seed_of(number, "walls"),
        options=plan.options,
    )
    for row, (play, events) in zip(rows, played, strict=True):
        due = due_of(table, play)
        row["session"], row["players"] = number, seated
        _fill(row, play, events)
        for purse in purses:
            if not purse.bankrupt:
                paid = purse.settle(due)
                if purse.buy_in == plan.stakes.buy_in:
                    _fill_paid(row, paid)
    return Session(rows, np.array([_purse_row(number, purse) for purse in purses], PURSE_TYPE))


def joined(plan: Plan, sessions: Sequence[Session]) -> Session:
    """All of them as one, in the order given."""
    return Session(
        np.concatenate([np.zeros(0, hand_type(plan.rules)), *(one.hands for one in sessions)]),
        np.concatenate([np.zeros(0, PURSE_TYPE), *(one.purses for one in sessions)]),
    )


def mask_of(seats: Sequence[int]) -> int:
    """Seats as a mask."""
    return sum(1 << seat for seat in seats)


def seats_of(masks: NDArray[Any]) -> NDArray[np.bool_]:
    """Masks spread over four columns."""
    spread: NDArray[np.bool_] = (masks[:, None] >> np.arange(4) & 1).astype(bool)
    return spread


def _fill(row: Any, play: Round, events: Sequence[Event]) -> None:
    end, score = play.end, play.score
    if score is None:
        raise ValueError("a hand that has ended has a score")
    row["hand"], row["dealer"] = play.hand_number, play.dealer
    row["stays"] = play.rule_set.next_dealer(play.finished) == play.dealer
    row["discards"] = sum(isinstance(event, Discarded) for event in events)
    row["kongs"], row["left"] = play.kongs, play.tiles_left
    row["declared"] = mask_of([seat.number for seat in play.seats if seat.declared])
    row["source"] = -1
    row["fan"] = -1
    match end:
        case Win(by=by, source=source):
            row["end"] = ENDS.index(by)
            row["source"] = -1 if source is None else source
            row["winners"] = mask_of(end.winners)
        case EightFlowers(seat=seat):
            row["end"] = ENDS.index("eight_flowers")
            row["winners"] = mask_of([seat])
        case _:
            row["end"] = ENDS.index("draw")
    places = {item.id: place for place, item in enumerate(play.rule_set.fan_items)}
    for winner in score.winners:
        if winner.flat is None:
            row["fan"][winner.seat] = winner.fan
        else:
            row["flat"] |= 1 << winner.seat
        for item in winner.items:
            row["items"][places[item.id]] += 1
    for loser in score.losers:
        row["payments"] += loser.amount > 0
        row["capped"] += loser.capped
    for one in score.transfers:
        row["moved"][REASONS.index(one.reason)] += one.amount
        if one.reason == "win" and one.target is not None:
            row["won"][one.target] += one.amount
    row["net"] = score.net


def _fill_paid(row: Any, paid: Paid) -> None:
    row["settled"] = True
    row["coins"], row["unpaid"] = paid.coins, paid.unpaid
    row["bankrupt"] = mask_of(paid.bankrupt)


def _purse_row(number: int, purse: Purses) -> tuple[object, ...]:
    bankrupt = mask_of(purse.bankrupt)
    return (number, purse.buy_in, purse.hands, bankrupt, tuple(purse.coins), purse.unpaid)
