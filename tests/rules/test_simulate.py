"""Many whole hands: what must hold in each of them, whoever plays and whatever happens."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from fangcheng_rules.actions import (
    FALSE_WIN,
    PASS,
    Action,
    Choose,
    Command,
    Dissolve,
    Leave,
    SetTrustee,
    TimeOut,
    WindowOver,
)
from fangcheng_rules.errors import ActionRefused, NotOffered
from fangcheng_rules.events import Drew, Event, HandStarted
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.players import AtRandom, Efficient, Player
from fangcheng_rules.round import HandSetup, Round
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_rules.scoring import Dissolved, Draw, EightFlowers, Escape, Win
from fangcheng_rules.simulate import (
    Tally,
    answer,
    play_hands,
)

NORTH_EAST = {0: 65, 1: 78, 2: 77, 3: 76, 4: 75}
DRAWS: dict[str, Callable[[Round], int | None]] = {
    "baishan_kele": lambda play: NORTH_EAST.get(play.kongs),
    "baishan_dazui": lambda play: NORTH_EAST.get(play.kongs),
    # Two fewer with each stack that the treasure has moved on, unless replacements came so far.
    "baicheng": lambda play: (
        57 - (114 - play.turned[-1] // 2 * 2) if play.replacements < 6 else None
    ),
    "shandong": lambda play: {0: 79, 1: 79, 2: 77, 3: 77, 4: 75}.get(play.replacements),
    "jintan": lambda play: 91 - play.replacements,
}
"""Tiles drawn from the front in a drawn hand, by its page; None: the page does not say."""

BY_RULE_SET = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)


class Witness:
    """Folds the events on its own, one by one, and checks the state after each of them."""

    def __init__(self) -> None:
        self.fold: Round | None = None

    def __call__(self, play: Round, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, HandStarted):
                self.fold = Round.replay([event])
            else:
                assert self.fold is not None
                self.fold.apply(event)
            assert tiles_of(self.fold) == sorted(play.wall)

    def check(self, play: Round) -> None:
        assert self.fold == play


def tiles_of(play: Round) -> list[int]:
    """Every tile of the hand, wherever it is."""
    policy, now = play.rule_set.wall, play.wall_count
    from_back = {policy.replacement(replace(now, replacements=n)) for n in range(now.replacements)}
    assert len(from_back) == now.replacements
    assert not from_back & {*now.turned, *range(now.front)}
    tiles = [tile for i, tile in enumerate(play.wall) if i >= now.front and i not in from_back]
    for seat in play.seats:
        tiles += seat.concealed + seat.discards + seat.flowers
        for meld in seat.melds:
            tiles += meld.tiles
    if play.claimable is not None and play.claimable.is_kong:
        tiles.append(play.claimable.tile)  # added to a pong, not yet lying there
    return sorted(tiles)


def check_settled(play: Round) -> None:
    score = play.result
    assert score is not None
    balance = [0] * 5  # the house last
    for transfer in score.transfers:
        assert transfer.amount > 0
        assert transfer.source != transfer.target
        balance[4 if transfer.source is None else transfer.source] -= transfer.amount
        balance[4 if transfer.target is None else transfer.target] += transfer.amount
    assert sum(balance) == 0
    assert (*score.net, score.house) == tuple(balance)
    if isinstance(play.end, Dissolved):
        assert score.transfers == ()
    if not isinstance(play.end, EightFlowers):
        assert bool(score.winners) == isinstance(play.end, Win)


def check_draws(play: Round, events: Sequence[Event]) -> None:
    """A hand drawn without a claim has drawn as many tiles as the page counts."""
    origins = [event.origin for event in events if isinstance(event, Drew)]
    count = DRAWS.get(play.rule_set.id)
    expected = count(play) if count and isinstance(play.end, Draw) else None
    if expected is not None:
        assert origins.count("front") == expected
        assert origins.count("dealt_out") == play.rule_set.wall.dealt_out


# ---- Bots ----


def players() -> list[Player]:
    return [Efficient(random.Random(seat)) for seat in range(4)]


def bot_hands(rules: RuleSet, hands: int, seed: int) -> Tally:
    """What hands of efficient players come to; each of them holds together."""
    tally = Tally()
    witness = Witness()
    for play, events in play_hands(rules, players(), hands=hands, seed=seed, seen=witness):
        witness.check(play)
        check_settled(play)
        check_draws(play, events)
        tally.add(play)
    assert tally.hands == hands
    return tally


@pytest.mark.parametrize("seed", range(2))
@BY_RULE_SET
def test_hands_of_efficient_players_hold_together_and_are_mostly_won(
    rules: RuleSet, seed: int
) -> None:
    tally = bot_hands(rules, 50, seed)
    assert tally.wins > 0.4 * tally.hands
    assert tally.self_draws > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
@BY_RULE_SET
def test_five_thousand_hands_of_efficient_players_hold_together(rules: RuleSet, seed: int) -> None:
    tally = bot_hands(rules, 500, seed)
    assert tally.wins > 0.4 * tally.hands
    assert tally.kongs > 0


@BY_RULE_SET
def test_the_same_seed_plays_the_same_hands(rules: RuleSet) -> None:
    once, again = (
        [events for _, events in play_hands(rules, players(), hands=5, seed=9)] for _ in range(2)
    )
    assert once == again


@BY_RULE_SET
def test_the_dealer_moves_as_the_rule_set_says(rules: RuleSet) -> None:
    before: Round | None = None
    for play, _ in play_hands(rules, players(), hands=40, seed=3):
        if before is not None:
            assert play.dealer == rules.next_dealer(before.finished)
        before = play


# ---- Anything that may happen ----


def anything(play: Round, chance: random.Random) -> Iterator[Command]:
    """Commands in any order: answers, silence, windows, people coming and going."""
    while not play.ended:
        questions, prompts, window = play.questions(), play.prompts(), play.window()
        dice = chance.random()
        seat = chance.randrange(4)
        if dice < 0.01:
            yield SetTrustee(seat, not play.seats[seat].trustee)
        elif dice < 0.0115:
            yield Leave(seat)
        elif dice < 0.012:
            yield Dissolve("for a reason")
        elif questions:
            yield answer(play, chance.choice(questions))
        elif window is not None and (not prompts or dice < 0.4):
            yield WindowOver(window)
        else:
            number = chance.choice(list(prompts))
            prompt = prompts[number]
            if dice > 0.97:
                yield TimeOut(number, prompt.decision)
            else:
                bold = ("kong", "win", "false_win")
                favourite = [a for a in prompt.actions if a.kind in bold or a.declare]
                actions = favourite if favourite and dice < 0.7 else prompt.actions
                yield Choose(number, prompt.decision, chance.choice(actions))


def a_hand(rules: RuleSet, chance: random.Random) -> tuple[Round, list[Event]]:
    wall = list(rules.wall_tiles)
    chance.shuffle(wall)
    return Round.begin(
        HandSetup(
            rule_set_id=rules.id,
            revision=rules.revision,
            options=rules.complete(),
            hand_number=1,
            dealer=chance.randrange(4),
            dice=(1,) * rules.hand_dice,
            wall=tuple(wall),
            trustees=tuple(chance.random() < 0.1 for _ in range(4)),
        )
    )


def conceivable(rules: RuleSet) -> list[Action]:
    """Every action that any prompt of any hand could offer."""
    kinds = sorted(set(rules.wall_tiles))
    actions = [PASS, FALSE_WIN, *(Action("piao", amount=units) for units in (-5, 0, 5, 10, 15))]
    for tile in kinds:
        for declare in ("", *rules.declarations, "riichi"):
            actions.append(Action("discard", tile, declare=declare))
            actions += [Action("kong", tile, declare=declare, meld=kind) for kind in MeldKind]
        actions += [Action("win", tile), Action("pong", tile)]
        actions += [
            Action("chi", tile, (low, high))
            for low in range(tile - 2, tile + 2)
            for high in range(low + 1, tile + 3)
        ]
    return actions


@pytest.mark.parametrize("seed", range(60))
@BY_RULE_SET
def test_whatever_happens_a_hand_holds_together(rules: RuleSet, seed: int) -> None:
    chance = random.Random(seed)
    play, events = a_hand(rules, chance)
    witness = Witness()
    witness(play, events)
    commands: list[Command] = []
    for command in anything(play, chance):
        told = play.step(command)
        commands.append(command)
        witness(play, told)
        witness.check(play)
        events += told
        if play.questions():
            assert play.prompts() == {}, "nobody is asked while the evaluator is"
        for seat, prompt in play.prompts().items():
            assert not play.seats[seat].trustee, "who is played for is not asked"
            assert len(set(prompt.actions)) == len(prompt.actions)
            kongs = [action for action in prompt.actions if action.kind == "kong"]
            kongs = [action for action in kongs if action.meld is not MeldKind.WHIRLWIND]
            assert not kongs or rules.wall.may_kong(play.wall_count)
    check_settled(play)
    check_draws(play, events)

    again, told_again = a_hand(rules, random.Random(seed))
    for command in commands:
        told_again += again.step(command)
    assert told_again == events
    assert again == play


@pytest.mark.parametrize("seed", range(8))
@BY_RULE_SET
def test_what_is_offered_is_accepted_and_nothing_else(rules: RuleSet, seed: int) -> None:
    chance = random.Random(seed)
    play, _ = a_hand(rules, chance)
    everything = conceivable(rules)
    for command in anything(play, chance):
        if chance.random() < 0.1:
            for seat, prompt in play.prompts().items():
                for action in prompt.actions:
                    assert copy.deepcopy(play).step(Choose(seat, prompt.decision, action))
                before = copy.deepcopy(play)
                called = {FALSE_WIN} if play.seats[seat].false_win == prompt.decision else set()
                for action in set(everything) - set(prompt.actions) - called:
                    with pytest.raises(NotOffered):
                        play.step(Choose(seat, prompt.decision, action))
                for other in set(range(4)) - set(play.prompts()):
                    with pytest.raises(ActionRefused):
                        play.step(Choose(other, prompt.decision, prompt.actions[0]))
                assert play == before
        play.step(command)


@BY_RULE_SET
def test_every_way_to_end_a_hand_comes_up_among_those(rules: RuleSet) -> None:
    ends: set[type] = {EightFlowers}
    for seed in range(500):
        chance = random.Random(seed)
        play, _ = a_hand(rules, chance)
        for command in anything(play, chance):
            play.step(command)
        ends.add(type(play.end))
        if len(ends) == 5:
            break
    assert ends == {Win, Draw, Escape, Dissolved, EightFlowers}


@BY_RULE_SET
def test_random_players_finish_their_hands(rules: RuleSet) -> None:
    at_random = [AtRandom(random.Random(seat)) for seat in range(4)]
    for play, _ in play_hands(rules, at_random, hands=20, seed=1):
        check_settled(play)
