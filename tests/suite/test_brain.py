"""How bots choose: legally always, and well enough that hands are won."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.notation import parse, text
from fangcheng_client.view import SeatView, TableView
from fangcheng_rules.analysis import Analysis
from fangcheng_rules.hand import Hand
from fangcheng_rules.players import PLAYERS, Efficient
from fangcheng_rules.round import Round
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.scoring import Win
from fangcheng_rules.simulate import play_hands, situation_of
from fangcheng_suite.bots.brain import Brain
from fangcheng_suite.bots.convert import situation_from

from .arena import Arena, view_of

KELE, BAICHENG, SHANDONG, JINTAN = map(rule_set, ("baishan_kele", "baicheng", "shandong", "jintan"))


def brain(seed: int = 1, piao_share: float = 0.0, rules: RuleSet = KELE) -> Brain:
    chance = random.Random(seed)
    return Brain(Arena(rules, chance).analyse, Efficient(chance, piao_share))


def view(
    hand: str, melds: list[rules_pb2.Meld] | None = None, rules: RuleSet = KELE, **own: Any
) -> TableView:
    seats = [SeatView(concealed=[0] * 13) for _ in range(4)]
    seats[0] = SeatView(concealed=parse(hand), melds=melds or [], **own)
    return TableView(rules=rules_pb2.RuleSetChoice(id=rules.id), own_seat=0, seats=seats)


def discards(hand: str, *, ting: str = "") -> list[state_pb2.Action]:
    """Every discard of the hand; those of `ting` with the declaration too."""
    kinds = sorted(set(parse(hand)))
    actions = [state_pb2.Action(kind="discard", tile=tile) for tile in kinds]
    return actions + [
        state_pb2.Action(kind="discard", tile=tile, declare="ting") for tile in parse(ting)
    ]


def claim(*actions: state_pb2.Action) -> events_pb2.Prompt:
    return events_pb2.Prompt(
        decision_id="1", kind="claim", actions=[*actions, state_pb2.Action(kind="pass")]
    )


def pong(tile: str) -> rules_pb2.Meld:
    return rules_pb2.Meld(kind="pong", tiles=parse(tile) * 3)


async def turn(
    hand: str, actions: list[state_pb2.Action], rules: RuleSet = KELE, **own: Any
) -> state_pb2.Action:
    prompt = events_pb2.Prompt(decision_id="1", kind="turn", actions=actions)
    return await brain(rules=rules).choose(view(hand, rules=rules, **own), prompt)


async def test_a_win_is_always_taken() -> None:
    hand = "123456m999p11z"
    win = state_pb2.Action(kind="win", tile=41)
    chosen = await turn(hand, [*discards(hand), win], melds=[pong("7z")])
    assert chosen == win


async def test_the_tile_that_is_in_nobodys_way_is_discarded() -> None:
    hand = "123456m99p78s3z"
    chosen = await turn(hand, discards(hand), melds=[pong("7z")])
    assert text([chosen.tile]) == "3z"


async def test_a_wait_is_declared_when_it_is_offered() -> None:
    hand = "123456m99p79s3z"
    chosen = await turn(hand, discards(hand, ting="3z"), melds=[pong("7z")])
    assert (chosen.tile, chosen.declare) == (43, "ting")


async def test_a_wait_on_more_tiles_is_kept_rather_than_a_declared_one_on_fewer() -> None:
    # Without 3z it waits on 6s and 9s, without 8s it would wait on 3z alone.
    hand = "123456m99p78s3z"
    chosen = await turn(hand, discards(hand, ting="8s"), melds=[pong("7z")])
    assert (chosen.tile, chosen.declare) == (43, "")


async def test_a_hand_without_a_triplet_is_not_kept_ready_on_nothing() -> None:
    """All sequences: ready by its shape, but no tile wins under the rules of kele."""
    hand = "123456m123p678s99p"
    chosen = await turn(hand, discards(hand))
    left = parse(hand)
    left.remove(chosen.tile)
    assert max(Counter(left).values()) == 2
    assert len([1 for count in Counter(left).values() if count == 2]) >= 1


async def test_a_dead_wait_is_not_declared() -> None:
    # The only wait left after 3z would be 8s, and all four lie in rivers.
    hand = "123456m99p79s3z"
    seen = view(hand, [pong("7z")])
    seen.seats[1].river = parse("88s")
    seen.seats[2].river = parse("88s")
    prompt = events_pb2.Prompt(decision_id="1", kind="turn", actions=discards(hand, ting="3z"))
    chosen = await brain().choose(seen, prompt)
    assert chosen.declare == ""


async def test_a_pong_that_makes_the_triplet_is_taken() -> None:
    action = state_pb2.Action(kind="pong", tile=45)
    chosen = await brain().choose(view("123456m99p78s155z"), claim(action))
    assert chosen == action


async def test_a_claim_that_brings_nothing_nearer_is_passed() -> None:
    action = state_pb2.Action(kind="chi", tile=11, tiles=[12, 13])
    chosen = await brain().choose(view("123456m99p78s", [pong("7z")]), claim(action))
    assert chosen.kind == "pass"


async def test_a_kong_that_costs_nothing_is_made() -> None:
    action = state_pb2.Action(kind="kong", tile=47, meld="exposed_kong")
    chosen = await brain().choose(view("123456m99p78s777z"), claim(action))
    assert chosen == action


async def test_a_declared_seat_makes_no_kong_that_spoils_its_wait() -> None:
    # The kong of 2m would leave 45m and 99s: waits on 3m and on 6m, and two are as dead as none.
    kong = state_pb2.Action(kind="kong", tile=12, meld="concealed_kong")
    actions = [kong, state_pb2.Action(kind="pass")]
    melds = [pong("7z"), pong("5z")]
    chosen = await turn("222245m99s", actions, melds=melds, declared="ting")
    assert chosen.kind == "pass"
    # The kong of 2m leaves 46m and 99s: the wait on 5m alone.
    chosen = await turn("222246m99s", actions, melds=melds, declared="ting")
    assert chosen == kong


async def test_piao_is_one_of_the_choices() -> None:
    actions = [state_pb2.Action(kind="piao", amount=amount) for amount in (0, 5, 10)]
    prompt = events_pb2.Prompt(decision_id="1", kind="before_deal", actions=actions)
    never = await brain(piao_share=0.0).choose(view(""), prompt)
    always = await brain(piao_share=1.0).choose(view(""), prompt)
    assert (never.amount, always.amount) == (0, 5)


async def test_open_lou_is_declared_with_enough_tiles_to_draw_and_hidden_lou_never() -> None:
    def lou(hand: str, tile: str) -> list[state_pb2.Action]:
        (last,) = parse(tile)
        return [
            *discards(hand),
            *(
                state_pb2.Action(kind="discard", tile=last, declare=declared)
                for declared in ("lou_open", "lou_hidden")
            ),
        ]

    # Without 3z the one waits on 5m and 8m, of which eight are left; the other on 7m, four left.
    wide, narrow = "67m123456p55p222s3z", "68m123456p55p222s3z"
    assert (await turn(wide, lou(wide, "3z"), rules=SHANDONG)).declare == "lou_open"
    chosen = await turn(narrow, lou(narrow, "3z"), rules=SHANDONG)
    assert (text([chosen.tile]), chosen.declare) == ("3z", "")


async def test_a_pair_of_honours_is_not_kept_for_the_pair_where_it_must_be_2_5_or_8() -> None:
    # Ready by its shape on either pair; under these rules on nothing unless 5z goes.
    hand = "123m456789p55s77z5z"
    chosen = await turn(hand, discards(hand), rules=SHANDONG)
    assert text([chosen.tile]) == "5z"
    kept = "123m456789p5s77z5z8s"
    chosen = await turn(kept, discards(kept), rules=SHANDONG)
    assert text([chosen.tile]) in ("5z", "7z")


async def test_a_win_that_is_none_is_never_called() -> None:
    false_win = state_pb2.Action(kind="false_win")
    passes = state_pb2.Action(kind="pass")
    prompt = events_pb2.Prompt(decision_id="1", kind="claim", actions=[passes, false_win])
    assert await brain(rules=JINTAN).choose(view("123456m99p78s155z"), prompt) == passes


async def test_a_forced_whirlwind_is_laid_down() -> None:
    kong = state_pb2.Action(kind="kong", tile=45, meld="whirlwind")
    hand = "123456m99p78s5567z"
    assert await turn(hand, [kong], rules=BAICHENG) == kong


async def test_a_dragon_is_added_to_the_whirlwind() -> None:
    kong = state_pb2.Action(kind="kong", tile=45, meld="added_kong")
    whirlwind = rules_pb2.Meld(kind="whirlwind", tiles=parse("567z"))
    hand = "123456m99p78s5z"
    chosen = await turn(hand, [*discards(hand), kong], rules=BAICHENG, melds=[whirlwind])
    assert chosen == kong


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_a_client_tells_a_player_what_a_simulation_tells_it(rules: RuleSet) -> None:
    def asked(hand: Hand) -> Analysis:
        raise AssertionError("nobody asks here")

    def look(play: Round, events: object) -> None:
        for seat, prompt in play.prompts().items():
            if prompt.kind != "piao":
                there, here = situation_from(view_of(play, seat), asked), situation_of(play, seat)
                for name in ("own", "dealer", "wall_left", "claimed", "turned", "treasure"):
                    assert getattr(there, name) == getattr(here, name)
                assert there.options == here.options
                assert there.seats == here.seats
                compared.append(seat)

    compared: list[int] = []
    players = [PLAYERS["careful"](random.Random(seat)) for seat in range(4)]
    for _ in play_hands(rules, players, hands=3, seed=8, seen=look):
        pass
    assert {*compared} == {0, 1, 2, 3}


@pytest.mark.parametrize("strength", ["efficient", "careful"])
@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
async def test_most_hands_end_by_a_win(rules: RuleSet, strength: str) -> None:
    arena = Arena(rules, random.Random(20), strength)
    ends = [type((await arena.hand(number, number % 4)).end) for number in range(1, 13)]
    assert ends.count(Win) > 0.4 * len(ends)


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
async def test_most_of_many_hands_end_by_a_win(rules: RuleSet) -> None:
    arena = Arena(rules, random.Random(21))
    wins = 0
    for number in range(1, 301):
        play = await arena.hand(number, number % 4)
        assert play.score is not None
        assert sum(play.score.net) + play.score.house == 0
        wins += isinstance(play.end, Win)
    assert wins > 120
