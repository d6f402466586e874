"""Whole hands at random: what must hold at every event of every one of them."""

from __future__ import annotations

from collections import Counter

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.round import Round
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import Win
from fangcheng_table.events import Stake
from fangcheng_table.state import TableState

from .tables import RULE_SET, Drive, at_random, created

ALL_TILES = Counter(rule_set(RULE_SET).wall_tiles)


def where_they_are(hand: Round) -> Counter[int]:
    """Every tile of a hand, wherever it lies."""
    back = len(hand.wall) - hand.replacements
    tiles = Counter(hand.wall[hand.front : back])
    for seat in hand.seats:
        tiles.update(seat.concealed)
        tiles.update(seat.discards)
        for meld in seat.melds:
            tiles.update(meld.tiles)
    return tiles


def check(drive: Drive) -> Counter[str]:
    """Everything that must hold of a table that has been played; how its hands ended."""
    endings: Counter[str] = Counter()
    journal = iter(drive.events)
    state = TableState.replay([next(journal)])
    out_of_hand: Counter[int] = Counter()
    standings = [0, 0, 0, 0]
    for event in journal:
        state.follow(event)
        hand = state.hand
        if hand is None:
            continue
        match event:
            case play.KongDeclared(_, tile, MeldKind.ADDED_KONG):
                # It lies open to be robbed, in nobody's hand.
                out_of_hand[tile] += 1
            case play.KongDone(_, tile, MeldKind.ADDED_KONG):
                out_of_hand[tile] -= 1
            case play.HandStarted():
                out_of_hand.clear()
            case play.HandEnded():
                endings[type(event.end).__name__] += 1
                score = event.score
                assert sum(score.net) + score.house == 0
                assert all(transfer.amount > 0 for transfer in score.transfers)
                assert all(transfer.source != transfer.target for transfer in score.transfers)
                standings = [a + b for a, b in zip(standings, score.net, strict=True)]
                if isinstance(event.end, Win):
                    assert score.winners[0].seat == event.end.winners[0]
        assert where_they_are(hand) + out_of_hand == ALL_TILES, event
        for seat in range(4):
            size = len(hand.seats[seat].concealed) + 3 * len(hand.seats[seat].melds)
            assert size in (0, 13, 14) or hand.ended or out_of_hand.total(), event
    assert state == drive.table.state
    assert [seat.standing for seat in state.seats] == standings
    return endings


def play_hands(tables: range, hands: int) -> Counter[str]:
    endings: Counter[str] = Counter()
    for seed in tables:
        root = seed.to_bytes(32, "big")
        event = created(root=root, hands=hands, stakes=[Stake("silver", "", 7)], holds=True)
        drive = Drive.of(event)
        drive.attend(0, 1, 2, 3)
        drive.play(at_random(seed, 0.6))
        assert drive.table.state.done
        endings += check(drive)
    return endings


def test_hands_at_random_keep_every_tile_and_every_unit():
    endings = play_hands(range(8), hands=4)
    assert endings.total() == 32
    assert endings["Win"] > 2
    assert endings["Draw"] > 2


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_two_thousand_hands_at_random_keep_every_tile_and_every_unit():
    endings = play_hands(range(100, 350), hands=8)
    assert endings.total() == 2_000
