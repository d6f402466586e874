"""What becomes of a table between two hands, by its state alone."""

from __future__ import annotations

from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import Draw

from .state import TableState, Vote

SEATS = (0, 1, 2, 3)
MOST_HANDS = 1_000
"""Hands of a table that is played until somebody leaves."""
ROUND = 4
"""How often the deal passes on in a 圈."""

# Where several leave, the table closes for the first of these reasons.
_LEAVING = ("escape", "removed", "bankrupt", "not_ready", "player_left")


def rules_of(state: TableState) -> RuleSet:
    """The rule set that a table plays."""
    return rule_set(state.created.rule_set, state.created.revision)


def closing_reason(state: TableState) -> str:
    """Why the table closes now that no hand is in play; '' where it goes on."""
    reasons = {seat.leaves for seat in state.seats}
    waits_for_others = may_seat_others(state)
    if state.verdict:
        return state.verdict
    if "escape" in reasons and not waits_for_others:
        return "escape"
    if state.hand_number >= (state.created.hands or MOST_HANDS) or is_played_through(state):
        return "hands_played"
    if waits_for_others:
        return ""
    return next((reason for reason in _LEAVING if reason in reasons), "")


def is_played_through(state: TableState) -> bool:
    """The deal has gone round as often as the table, or its rule set's options, say (圈, 局)."""
    created = state.created
    lengths = (ROUND * created.rounds, rules_of(state).table_length(created.options))
    length = min((length for length in lengths if length), default=0)
    if not length or state.next_dealer is None:
        return False
    return state.deals_passed + (state.next_dealer != state.dealer) >= length


def may_seat_others(state: TableState) -> bool:
    """A seat whose player leaves between two hands waits for another.

    Only where the rule set starts over then, so that nobody takes up what others have played for.
    """
    return bool(state.created.timing.vacancy_ms) and rules_of(state).starts_over


def is_checked(state: TableState) -> bool:
    """The seats are asked whether they are ready for the next hand."""
    hand = state.hand
    if hand is None or not state.hand_number:
        return False
    match rules_of(state).ready_check:
        case "always":
            return True
        case "unless_drawn":
            return not isinstance(hand.end, Draw)
        case _:
            return False


def voters(state: TableState) -> set[int]:
    """Whose agreement a vote needs: all who are there, or may still come back in time."""
    return {
        number
        for number, seat in enumerate(state.seats)
        if not (seat.vacant or seat.removed or seat.overdue)
    }


def is_carried(state: TableState, vote: Vote) -> bool:
    """All who have a say agree."""
    return voters(state) <= {seat for seat, agrees in vote.answers.items() if agrees}
