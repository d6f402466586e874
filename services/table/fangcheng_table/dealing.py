"""How a hand begins: its secret, its wall, its dealer."""

from __future__ import annotations

from fangcheng_rules.round import HandSetup
from fangcheng_rules.ruleset import first_dealer
from fangcheng_rules.wall import SecretChain, derive

from .events import HandOpened
from .life import MOST_HANDS, rules_of
from .state import TableState


def chain_of(root: bytes, hands: int) -> SecretChain:
    """The secrets of a table's hands."""
    return SecretChain(root, hands or MOST_HANDS)


def dealt(state: TableState) -> tuple[HandOpened, HandSetup]:
    """The next hand of a table, all that follows from its secrets and the seats' shares."""
    created, rules, number = state.created, rules_of(state), state.hand_number + 1
    secret = chain_of(created.root, created.hands).secret(number)
    entropy = tuple(seat.entropy for seat in state.seats)
    dealer = state.next_dealer
    wall, dice = derive(
        secret,
        entropy,
        created.table_id,
        number,
        tiles=rules.wall_tiles,
        dice=rules.hand_dice + (rules.first_dealer_dice if dealer is None else 0),
    )
    if dealer is None:
        dealer = first_dealer(rules, dice[rules.hand_dice :])
    setup = HandSetup(
        rule_set_id=created.rule_set,
        revision=created.revision,
        options=created.options,
        hand_number=number,
        dealer=dealer,
        dice=dice,
        wall=wall,
        trustees=tuple(seat.trustee for seat in state.seats),
        run_outs=tuple(seat.run_outs for seat in state.seats),
        drawn_hands_before=state.drawn_hands,
    )
    return HandOpened(number, secret, entropy), setup
