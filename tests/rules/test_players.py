"""The players: what they may know, what they look at, and who is the stronger."""

from __future__ import annotations

import random

import pytest

from fangcheng_rules.actions import FALSE_WIN, PASS, Action, Prompt
from fangcheng_rules.analysis import Analysis, analyze
from fangcheng_rules.duels import Duel, Lead, duel
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.players import PLAYERS, Player, SeatSeen, Situation, hands_asked
from fangcheng_rules.players.danger import dangers, readiness
from fangcheng_rules.round import Round
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.scoring import SEATS
from fangcheng_rules.simulate import play_hands, situation_of
from fangcheng_rules.tiles import PLAY_KINDS, from_name, name
from tests.rules.golden import tiles

KELE, BAICHENG, SHANDONG, JINTAN = map(rule_set, ("baishan_kele", "baicheng", "shandong", "jintan"))
BY_RULE_SET = pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)


def situation(
    hand: str, *others: SeatSeen, rules: RuleSet = KELE, wall_left: int = 60, declared: str = ""
) -> Situation:
    """Seat 0 holds the hand; the others follow in turn order."""
    seen = [SeatSeen(shown=tiles(hand), declared=declared), *others]
    options = rules.complete()

    def asked(hand: Hand) -> Analysis:
        return analyze(rules, options, hand, progress=True)

    return Situation(
        rule_set=rules,
        options=options,
        own=0,
        dealer=0,
        seats=seen + [SeatSeen()] * (4 - len(seen)),
        wall_left=wall_left,
        analyse=asked,
    )


def discard_of(strength: str, now: Situation) -> str:
    """The tile that a player of this strength discards."""
    kinds = [*dict.fromkeys(now.concealed)]
    prompt = Prompt(1, "turn", tuple(Action("discard", kind) for kind in kinds))
    chosen = PLAYERS[strength](random.Random(1)).choose(now, prompt)
    assert chosen.tile is not None
    return name(chosen.tile)


# ---- What they know ----


class Onlooker:
    """Plays as another does, and checks what it is told and what it asks."""

    needs_progress = True

    def __init__(self, player: Player) -> None:
        self._player = player

    def choose(self, now: Situation, prompt: Prompt) -> Action:
        for number, seat in enumerate(now.seats):
            if number != now.own:
                assert seat.declared in now.rule_set.calls.shown or not seat.shown
                assert all(meld.kind is not MeldKind.CONCEALED_KONG for meld in seat.melds)
        may_ask = hands_asked(now, prompt)

        def asked(hand: Hand) -> Analysis:
            assert hand in may_ask
            return now.analyse(hand)

        told = Situation(
            now.rule_set,
            now.options,
            now.own,
            now.dealer,
            now.seats,
            now.wall_left,
            asked,
            claimed=now.claimed,
            turned=now.turned,
            treasure=now.treasure,
        )
        return self._player.choose(told, prompt)


@pytest.mark.parametrize("strength", PLAYERS)
@BY_RULE_SET
def test_a_player_is_told_what_it_may_see_and_asks_only_what_can_be_fetched(
    rules: RuleSet, strength: str
) -> None:
    watched = [Onlooker(PLAYERS[strength](random.Random(seat))) for seat in range(4)]
    ends = [play.end for play, _ in play_hands(rules, watched, hands=6, seed=4)]
    assert len(ends) == 6


def test_what_a_seat_sees_is_counted_once() -> None:
    counted = 0

    def look(play: Round, events: object) -> None:
        nonlocal counted
        for number in SEATS:
            now = situation_of(play, number)
            lies = [tile for seat in play.seats for tile in seat.discards]
            held = play.seats[number].concealed
            melds = [
                tile
                for seat in play.seats
                for meld in seat.melds
                if seat.number == number or meld.kind is not MeldKind.CONCEALED_KONG
                for tile in meld.tiles
            ]
            turned = [play.wall[place] for place in play.turned]
            known = [tile for tile in (*lies, *held, *melds, *turned) if tile < PLAY_KINDS]
            if all(tile < PLAY_KINDS for tile in held):
                assert now.seen() == [known.count(kind) for kind in range(PLAY_KINDS)]
                assert now.wall_left == play.tiles_left
                counted += 1

    players = [PLAYERS["efficient"](random.Random(seat)) for seat in range(4)]
    for _ in play_hands(BAICHENG, players, hands=2, seed=6, seen=look):
        pass
    assert counted > 400


# ---- What they look at ----


def test_the_first_legal_action_is_no_win_that_is_none() -> None:
    first = PLAYERS["first_legal"](random.Random(1))
    now = situation("123456m99p78s155z", rules=JINTAN)
    pong = Action("pong", from_name("5z"))
    assert first.choose(now, Prompt(1, "claim", (FALSE_WIN, PASS))) == PASS
    assert first.choose(now, Prompt(1, "claim", (pong, FALSE_WIN, PASS))) == pong


def test_where_nobody_threatens_the_careful_play_as_the_efficient_do() -> None:
    hand = "123456m99p78s2357z"
    assert discard_of("careful", situation(hand)) == discard_of("efficient", situation(hand))


def test_a_tile_that_the_one_who_waits_has_thrown_away_is_kept_for_later() -> None:
    # Far from a win, beside two that have declared: what lies in both rivers is safe.
    waiting = SeatSeen(river=tiles("19m9p77z"), declared="ting")
    now = situation("1468m147p2589s347z", waiting, waiting, wall_left=30)
    assert discard_of("careful", now) in ("1m", "7z")
    risky = dangers(now, now.unseen())
    assert risky[from_name("1m")] < 0.2 * risky[from_name("4p")]


def test_who_is_ready_itself_goes_on() -> None:
    # A meld of dragons lies there; without 9s it waits on 3p and 6p.
    pong = Meld(MeldKind.PONG, (31, 31, 31))
    threat = SeatSeen(river=tiles("1234m"), melds=[Meld(MeldKind.PONG, (27, 27, 27))])
    now = situation("234m55678m45p9s", threat)
    now = Situation(
        now.rule_set,
        now.options,
        0,
        0,
        [SeatSeen(shown=now.concealed, melds=[pong]), *now.seats[1:]],
        80,
        now.analyse,
    )
    assert discard_of("efficient", now) == discard_of("careful", now) == "9s"


def test_who_shows_its_tiles_wins_on_no_discard() -> None:
    assert readiness(SHANDONG, SeatSeen(declared="lou_open")) == 0
    assert readiness(SHANDONG, SeatSeen(declared="lou_hidden")) == 1
    early, late = SeatSeen(river=tiles("1m")), SeatSeen(river=tiles("123456789m"))
    pongs = [Meld(MeldKind.PONG, (kind,) * 3) for kind in (27, 28)]
    open_too = SeatSeen(river=late.river, melds=pongs)
    assert readiness(KELE, early) < readiness(KELE, late) < readiness(KELE, open_too) < 1


def test_dragons_are_waited_for_as_a_run_where_there_is_one() -> None:
    waiting = SeatSeen(declared="ting")
    dragon, wind = from_name("5z"), from_name("1z")
    here = situation("147m258p369s1237z5z", waiting, rules=JINTAN)
    there = situation("147m258p369m1236m5z", SeatSeen(river=tiles("123456789m")), rules=BAICHENG)
    alike = dangers(here, here.unseen())
    assert alike[dragon] == pytest.approx(alike[wind])
    run = dangers(there, there.unseen())
    assert run[dragon] > 2 * run[wind]


def test_a_tile_of_which_nothing_is_left_endangers_nobody_as_a_pair() -> None:
    rivers = [SeatSeen(river=tiles("1z"), declared="ting"), SeatSeen(river=tiles("1z"))]
    now = situation("147m258p369s11z234z", *rivers)
    assert dangers(now, now.unseen())[from_name("1z")] == 0


# ---- Who is the stronger ----


def fought(rules: RuleSet, one: str, other: str, hands: int, seed: int) -> Duel:
    """Two of each kind at a table, every wall twice, the second time a seat on."""
    *_, came_to = duel(rules, PLAYERS[one], PLAYERS[other], walls=hands // 2, seed=seed)
    return came_to


def test_two_of_a_kind_are_even_on_every_wall() -> None:
    came_to = fought(BAICHENG, "first_legal", "first_legal", 20, 1)
    assert came_to.hands == 20
    assert (came_to.units, came_to.wins, came_to.deal_ins) == (Lead(0, 0),) * 3
    assert came_to.one == came_to.other


def test_a_lead_tells_how_likely_chance_is() -> None:
    assert Lead(0.0, 1.0).chance == pytest.approx(0.5)
    assert Lead(1.645, 1.0).chance == pytest.approx(0.05, abs=0.001)
    assert Lead(-1.0, 1.0).chance > 0.8
    assert Lead(0.0, 0.0).chance == 0.5


@BY_RULE_SET
def test_the_efficient_beat_those_who_take_what_comes_first(rules: RuleSet) -> None:
    came_to = fought(rules, "efficient", "first_legal", 24, 2)
    assert came_to.units.chance < 0.01
    assert came_to.wins.chance < 0.01


def test_the_careful_are_won_on_less_often() -> None:
    came_to = fought(KELE, "careful", "efficient", 100, 1)
    assert came_to.one.deal_ins < 0.75 * came_to.other.deal_ins
    assert came_to.one.wins > 0.7 * came_to.other.wins


@pytest.mark.slow
@BY_RULE_SET
def test_over_two_thousand_hands_the_efficient_beat_those_who_take_what_comes_first(
    rules: RuleSet,
) -> None:
    came_to = fought(rules, "efficient", "first_legal", 2_000, 1)
    assert came_to.hands == 2_000
    assert came_to.units.chance < 0.01
    assert came_to.wins.chance < 0.01


@pytest.mark.slow
@BY_RULE_SET
def test_over_two_thousand_hands_the_careful_are_won_on_less_often(rules: RuleSet) -> None:
    came_to = fought(rules, "careful", "efficient", 2_000, 1)
    fewer = Lead(-came_to.deal_ins.mean, came_to.deal_ins.error)
    assert fewer.chance < 0.01
    # Not by giving up whatever it is dealt.
    assert came_to.one.wins > 0.75 * came_to.other.wins
