"""Whole hands at random: what must hold at every event of every one of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.round import Round
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.scoring import Win
from fangcheng_table.events import Stake
from fangcheng_table.state import TableState

from .tables import Drive, at_random, created

BY_RULE_SET = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)


def where_they_are(hand: Round) -> Counter[int]:
    """Every tile of a hand, wherever it lies."""
    wall, replacement = hand.wall_count, hand.rule_set.wall.replacement
    taken = {replacement(replace(wall, replacements=n)) for n in range(wall.replacements)}
    tiles = Counter(tile for i, tile in enumerate(hand.wall) if i >= hand.front and i not in taken)
    for seat in hand.seats:
        tiles.update(seat.concealed)
        tiles.update(seat.flowers)
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
    robbed: Counter[int] = Counter()
    all_tiles: Counter[int] = Counter()
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
            case play.KongDone(_, tile, MeldKind.ADDED_KONG) | play.KongRobbed(_, tile):
                out_of_hand[tile] -= 1
                if isinstance(event, play.KongRobbed):
                    robbed[tile] += 1  # until the win or the pong that takes it
            case play.Called() | play.WinTaken():
                robbed.clear()
            case play.HandStarted():
                all_tiles = Counter(event.wall)
                out_of_hand.clear()
                robbed.clear()
            case play.HandEnded():
                endings[type(event.end).__name__] += 1
                score = event.score
                assert sum(score.net) + score.house == 0
                assert all(transfer.amount > 0 for transfer in score.transfers)
                assert all(transfer.source != transfer.target for transfer in score.transfers)
                standings = [a + b for a, b in zip(standings, score.net, strict=True)]
                if isinstance(event.end, Win):
                    winners = [winner.seat for winner in score.winners]
                    assert winners == list(event.end.winners)
        if not hand.ended and not isinstance(event, play.WinTaken):
            assert where_they_are(hand) + out_of_hand + robbed == all_tiles, event
        for seat in range(4):
            size = len(hand.seats[seat].concealed) + 3 * len(hand.seats[seat].melds)
            laying = hand.stage == "flowers" and size in (12, 13)
            assert size in (0, 13, 14) or laying or hand.end or out_of_hand.total(), event
    assert state == drive.table.state
    assert [seat.standing for seat in state.seats] == standings
    return endings


def play_hands(rules: RuleSet, tables: range, hands: int) -> Counter[str]:
    endings: Counter[str] = Counter()
    for seed in tables:
        root = seed.to_bytes(32, "big")
        event = created(
            root=root,
            hands=hands,
            stakes=[Stake("silver", "", 7)],
            holds=True,
            rules_id=rules.id,
        )
        drive = Drive.of(event)
        drive.attend(0, 1, 2, 3)
        drive.play(at_random(seed, 0.6))
        assert drive.table.state.done
        endings += check(drive)
    return endings


@BY_RULE_SET
def test_hands_at_random_keep_every_tile_and_every_unit(rules):
    endings = play_hands(rules, range(8), hands=2)
    assert endings.total() == 16
    assert len(endings) > 1


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@BY_RULE_SET
def test_two_thousand_hands_at_random_keep_every_tile_and_every_unit(rules):
    endings = play_hands(rules, range(100, 350), hands=8)
    assert endings.total() == 2_000
