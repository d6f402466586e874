"""What the seats of a table say together: whether they are ready, whether it is dissolved.

Every answer has the id of its question, so that a repeat, however late, says nothing new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import AlreadyVoting, NotOffered, StaleDecision, StaleHand, TableIsClosed
from .events import ReadyGiven, VoteAnswered, VoteClosed, VoteOpened
from .ids import AGREE, READY, REFUSE, VOTE, read_table_id, table_question_id
from .life import is_carried

if TYPE_CHECKING:
    from .core import Table


def reply(table: Table, seat: int, decision_id: str, word: str) -> bool:
    """Answer a ready check (`ready`) or a vote (`agree`, `refuse`); whether it was a repeat.

    Raises StaleDecision or NotOffered.
    """
    what, number = read_table_id(decision_id) or ("", 0)
    if what == READY:
        return _be_ready(table, seat, number, word)
    if what == VOTE:
        return _vote(table, seat, number, word)
    raise StaleDecision(decision_id)


def propose(table: Table, seat: int, hand_number: int) -> tuple[int, bool]:
    """Propose to dissolve the table, once for each hand: the vote; whether it was a repeat.

    `hand_number`: the hand in play or the last one, so that a late repeat proposes nothing.
    Raises StaleHand, AlreadyVoting or TableIsClosed.
    """
    state = table.state
    hand, vote = state.seats[seat].proposed
    if hand == hand_number:
        return vote, True
    if state.closed or state.verdict:
        raise TableIsClosed
    if hand_number != state.hand_number:
        raise StaleHand(hand_number, state.hand_number)
    if state.vote is not None and state.vote.is_open:
        raise AlreadyVoting(state.vote.number)
    number = state.vote.number + 1 if state.vote is not None else 1
    table.tell(VoteOpened(number, seat))
    table.has_acted(seat)
    return number, False


def count(table: Table) -> bool:
    """Close the open vote if one has refused, or all who have a say agree; whether that was so.

    Who has a say changes with those who leave, are removed, or stay away.
    """
    vote = table.state.vote
    if vote is None or not vote.is_open:
        return False
    if not all(vote.answers.values()):
        table.tell(VoteClosed(vote.number, "refused"))
    elif is_carried(table.state, vote):
        table.tell(VoteClosed(vote.number, "agreed"))
        table.dissolve("vote")
    return not vote.is_open


def _be_ready(table: Table, seat: int, check: int, word: str) -> bool:
    state = table.state
    if check > state.checks or (check == state.checks and state.closed):
        raise StaleDecision(table_question_id(READY, check))
    if word != READY:
        raise NotOffered(f"A ready check is answered with {READY}.", "action.kind")
    if check < state.checks or not state.checking or state.seats[seat].ready:
        # Without this seat's answer no hand has begun after it.
        return True
    table.tell(ReadyGiven(check, seat))
    table.has_acted(seat)
    return False


def _vote(table: Table, seat: int, number: int, word: str) -> bool:
    vote = table.state.vote
    if vote is None or number != vote.number:
        raise StaleDecision(table_question_id(VOTE, number))
    if word not in (AGREE, REFUSE):
        raise NotOffered(f"A vote is answered with {AGREE} or {REFUSE}.", "action.kind")
    before = vote.answers.get(seat)
    if before == (word == AGREE):
        return True
    if before is not None or not vote.is_open or table.state.closed:
        raise StaleDecision(table_question_id(VOTE, number))
    table.tell(VoteAnswered(number, seat, word == AGREE))
    table.has_acted(seat)
    return False
