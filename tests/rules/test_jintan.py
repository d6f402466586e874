"""The scorer of `jintan` against a second one (`jintan_oracle.py`), and its own clauses."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from fangcheng_rules.analysis import Wait, analyze
from fangcheng_rules.errors import IllegalWin
from fangcheng_rules.hand import Hand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import WallCount
from fangcheng_rules.rulesets.jintan import RULE_SET
from fangcheng_rules.scoring import (
    SEATS,
    Dissolved,
    Draw,
    EightFlowers,
    End,
    Escape,
    FinishedHand,
    Score,
    SeatEnd,
    Win,
    score,
)
from fangcheng_rules.tiles import FLOWERS, from_name, name
from tests.rules import jintan_oracle as oracle
from tests.rules.golden import tiles
from tests.rules.in_play import Seat, Table
from tests.rules.random_hands import random_hand
from tests.rules.test_scoring import KONGS, SUITS, Box, a_meld

DEFAULTS = RULE_SET.complete()


def as_player(seat: SeatEnd) -> oracle.Player:
    return oracle.Player(
        concealed=[name(tile) for tile in seat.concealed or ()],
        melds=[oracle.Laid(str(m.kind), [name(tile) for tile in m.tiles]) for m in seat.melds],
        flowers=len(seat.flowers),
    )


def as_ending(win: Win) -> oracle.Ending:
    return oracle.Ending(
        winners=list(win.winners),
        tile=name(win.tile),
        how=win.by,
        source=win.source,
        after_kong=win.after_kong is not None,
        after_flower=win.after_flower,
    )


# ---- Random finished hands ----


class Deal:
    """The tiles of one hand, taken out as its seats are made up."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.box = Box(chance)
        self.flowers = chance.sample(list(FLOWERS), 8)

    def some_flowers(self) -> tuple[int, ...]:
        count = self.chance.choice((0, 0, 0, 0, 1, 2))
        taken, self.flowers = self.flowers[:count], self.flowers[count:]
        return tuple(sorted(taken))

    def complete(self, tile: int | None) -> tuple[list[int], list[list[int]]]:
        """Concealed tiles of a complete hand (with `tile`, that another keeps) and its sets laid
        down."""
        chance, box = self.chance, self.box
        suits = chance.choice([SUITS[:3], SUITS[:3], SUITS, [*SUITS[:1], SUITS[3]], SUITS[1:2]])
        if tile is None and chance.random() < 0.15:
            pairs = suits if len(suits) > 2 else SUITS
            return [kind for _ in range(7) for kind in box.pair_of(pairs)], []
        sets = []
        if tile is not None:
            around = [[tile] * 3, *([low, low + 1, low + 2] for low in range(tile - 2, tile + 1))]
            fits = [s for s in around if s[0] == s[-1] or (tile < 27 and 0 <= s[0] % 9 <= 6)]
            box.left[tile] += 1  # one copy is the tile that both win on
            sets = [next((s for s in chance.sample(fits, len(fits)) if box.take(s)), [])]
            if not sets[0]:
                return [], []
        kongs = chance.random() < 0.4
        while len(sets) < 4:
            sets.append(box.set_of(suits, kongs and chance.random() < 0.4))
        rest, first = sets[1:], sets[:1]
        laid = chance.choice((0, 1, 2, 3, 3))
        down = [made for place, made in enumerate(rest) if place < laid or len(made) == 4]
        hidden = [made for place, made in enumerate(rest) if place >= laid and len(made) == 3]
        if len(first[0]) == 4 or (tile is None and laid == 3 and chance.random() < 0.6):
            down += first
        else:
            hidden += first
        pairs = suits if any(box.left[k] > 1 for suit in suits for k in suit) else SUITS
        return [*box.pair_of(pairs), *(t for made in hidden for t in made)], down

    def melds(self, down: list[list[int]], seat: int) -> tuple[Meld, ...]:
        return tuple(a_meld(made, self.chance, (seat + 3) % 4) for made in down)


def random_finished(chance: random.Random) -> FinishedHand:
    """One or two hands that are complete by shape, ended in any way."""
    deal = Deal(chance)
    winner = chance.randrange(4)
    concealed, down = deal.complete(None)
    tile = chance.choice(concealed)
    concealed.remove(tile)
    if chance.random() < 0.1 and deal.box.take([another := chance.randrange(34)]):
        tile = another
    seats = [SeatEnd(flowers=deal.some_flowers()) for _ in SEATS]
    seats[winner] = SeatEnd(
        tuple(concealed), deal.melds(down, winner), flowers=seats[winner].flowers
    )
    other, third = chance.sample([seat for seat in SEATS if seat != winner], 2)
    false_wins = tuple(seat for seat in SEATS if chance.random() < 0.1)
    dealer = chance.randrange(4)
    end = Win((winner,), tile, "self_draw")
    kind = chance.choice(("draw", "kong", "discard", "discard", "rob", "two"))
    kongs = [meld.kind for meld in seats[winner].melds if meld.is_kong]
    if kind == "kong" and kongs:
        flower = bool(seats[winner].flowers) and chance.random() < 0.3
        end = Win((winner,), tile, "self_draw", after_kong=KONGS[kongs[0]], after_flower=flower)
    elif kind == "discard":
        end = Win((winner,), tile, "discard", other)
    elif kind == "rob" and deal.box.take([tile] * 3):
        seats[other] = SeatEnd(melds=(Meld(MeldKind.PONG, (tile,) * 3),))
        end = Win((winner,), tile, "rob_kong", other)
    elif kind == "two":
        concealed, down = deal.complete(tile)
        if tile in concealed:
            concealed.remove(tile)
            seats[third] = SeatEnd(
                tuple(concealed), deal.melds(down, third), flowers=seats[third].flowers
            )
            end = Win((winner, third), tile, "discard", other)
        else:
            end = Win((winner,), tile, "discard", other)
    return FinishedHand(dealer, tuple(seats), end, false_wins=false_wins)


def agree(finished: FinishedHand, options: dict[str, object]) -> Score | None:
    """Both refuse the hand, or everybody ends up with the same for the same reasons."""
    given = RULE_SET.complete(options)
    any_pair, cap = bool(given["any_pair_wait"]), int(given["cap"])
    players = [as_player(seat) for seat in finished.seats]
    assert isinstance(finished.end, Win)
    ending = as_ending(finished.end)
    expected = [oracle.best(players[w], ending, any_pair, cap) for w in ending.winners]
    if None in expected:
        with pytest.raises(IllegalWin) as caught:
            score(RULE_SET, options, finished)
        short = ending.winners[expected.index(None)]
        assert caught.value.reason in ("NOT_A_WIN", "WIN_NOT_ALLOWED")
        assert caught.value.field == f"seats[{short}].concealed"
        return None
    result = score(RULE_SET, options, finished)
    assert [(w.flower_points, w.fan) for w in result.winners] == [e[1:] for e in expected if e]
    paid = oracle.net(players, ending, any_pair, cap, list(finished.false_wins))
    assert list(result.net) == paid
    assert result.house == 20 * len(finished.false_wins)
    return result


@pytest.mark.parametrize("seed", range(8))
def test_both_scorers_agree_on_random_wins(seed: int) -> None:
    chance = random.Random(seed)
    several = refused = 0
    for _ in range(250):
        options: dict[str, object] = {
            "any_pair_wait": chance.random() < 0.3,
            "cap": chance.choice((100, 100, 0, 30)),
        }
        result = agree(random_finished(chance), options)
        refused += result is None
        several += result is not None and len(result.winners) > 1
    assert 10 < refused < 120
    assert several > 5


def test_those_random_wins_have_every_fan_item_in_them() -> None:
    counted: Counter[str] = Counter()
    chance = random.Random(1)
    for _ in range(800):
        try:
            result = score(RULE_SET, {}, random_finished(chance))
        except IllegalWin:
            continue
        for winner in result.winners:
            counted.update(item.id for item in winner.items)
    assert set(counted) == {item.id for item in RULE_SET.fan_items}


def test_flower_points_and_fan_of_a_wait_are_those_of_its_discard_win() -> None:
    rng = random.Random(5)
    seen = 0
    for _ in range(400):
        hand = random_hand(rng, 13)
        flowers = tuple(FLOWERS[: rng.randrange(3)])
        options = RULE_SET.complete({"any_pair_wait": rng.random() < 0.3})
        for wait in analyze(RULE_SET, options, hand, flowers=flowers).waits:
            seat = SeatEnd(hand.concealed, hand.melds, flowers=flowers)
            others = (SeatEnd(),) * 3
            finished = FinishedHand(0, (seat, *others), Win((0,), wait.tile, "discard", 1))
            if wait.least_units:
                (winner,) = score(RULE_SET, options, finished).winners
                assert (winner.fan, -score(RULE_SET, options, finished).net[1]) == (
                    wait.least_fan,
                    wait.least_units,
                )
            else:
                with pytest.raises(IllegalWin):
                    score(RULE_SET, options, finished)
            seen += 1
    assert seen > 100


def test_a_wait_that_no_discard_wins_is_worth_no_units() -> None:
    # A third wind is a flower point; the 4p brings neither a flower nor a fan.
    hand = Hand(tiles("456s44p11z678m"), (Meld(MeldKind.CHI, tiles("234m")),))
    waits = analyze(RULE_SET, DEFAULTS, hand).waits
    assert [(name(w.tile), w.least_fan, w.least_units) for w in waits] == [
        ("4p", 0, 0),
        ("1z", 0, 15),
    ]
    flowers = analyze(RULE_SET, DEFAULTS, hand, flowers=tiles("1f")).waits
    assert [wait.least_units for wait in flowers] == [15, 20]


# ---- Permitted calls ----


TABLE = Table(DEFAULTS)
PONG = Meld(MeldKind.PONG, tiles("999p"), 3, from_name("9p"))
RUN = Meld(MeldKind.CHI, tiles("789s"), 3, from_name("9s"))


def chi(taken: str, own: str) -> Meld:
    claimed = from_name(taken)
    return Meld(MeldKind.CHI, (claimed, *tiles(own)), 3, claimed)


def waiting(hand: str, melds: Sequence[Meld] = (), flowers: str = "", **more: object) -> Seat:
    """A seat of thirteen tiles with what the evaluator tells of its waits."""
    held = Hand(tiles(hand), tuple(melds))
    found = analyze(RULE_SET, DEFAULTS, held, flowers=tiles(flowers))
    seat = Seat(held.concealed, held.melds, tiles(flowers), found.waits)
    for key, value in more.items():
        setattr(seat, key, value)
    return seat


def wins(seat: Seat, tile: str, by: str = "discard") -> bool:
    return RULE_SET.calls.may_win(TABLE, seat, from_name(tile), by)


def swapped(taken: str, own: str) -> str:
    """What may not be discarded after a chi, with plenty of other tiles."""
    claim = chi(taken, own)
    seat = Seat(tiles("123456789m"), (claim,), turn_claim=claim)
    kept = [k for k in range(9) if not RULE_SET.calls.may_discard(TABLE, seat, k)]
    return "".join(name(kind)[0] for kind in kept)


@pytest.mark.parametrize(
    ("taken", "own", "forbidden"),
    [
        ("1m", "23m", "14"),
        ("4m", "23m", "14"),
        ("2m", "13m", "2"),
        ("3m", "12m", "3"),
        ("7m", "89m", "7"),
        ("6m", "78m", "69"),
        ("9m", "78m", "69"),
    ],
)
def test_a_chi_is_not_swapped_for_the_tile_or_the_other_end_of_its_run(
    taken: str, own: str, forbidden: str
) -> None:
    assert swapped(taken, own) == forbidden


def test_a_seat_that_had_four_concealed_tiles_may_swap() -> None:
    claim = chi("1m", "23m")
    three = (PONG, RUN, claim)
    assert not RULE_SET.calls.may_discard(TABLE, Seat(tiles("44m5s"), three, turn_claim=claim), 3)
    four = (PONG, RUN, Meld(MeldKind.PONG, tiles("555p"), 1, from_name("5p")), claim)
    assert RULE_SET.calls.may_discard(TABLE, Seat(tiles("44m"), four, turn_claim=claim), 3)
    # A concealed kong laid down after the chi does not make it the fourth of then.
    later = (PONG, RUN, claim, Meld(MeldKind.CONCEALED_KONG, tiles("6666p")))
    assert not RULE_SET.calls.may_discard(TABLE, Seat(tiles("4m5s"), later, turn_claim=claim), 3)


def test_a_chi_that_leaves_nothing_to_discard_is_not_offered() -> None:
    claim = chi("1m", "23m")
    may_claim = RULE_SET.calls.may_claim
    assert not may_claim(TABLE, Seat(tiles("2344m"), (PONG,)), claim, ())
    assert may_claim(TABLE, Seat(tiles("23445m"), (PONG,)), claim, ())
    # With four concealed tiles it is free.
    assert may_claim(TABLE, Seat(tiles("2344m"), (PONG, RUN, PONG)), claim, ())
    assert may_claim(TABLE, Seat(tiles("2344m"), (PONG,)), PONG, ())


def test_a_discard_win_asks_for_a_flower_point_or_a_fan() -> None:
    plain = waiting("123p456s44p67m", [chi("2m", "34m")])
    assert not wins(plain, "8m")
    assert wins(plain, "8m", "rob_kong")
    assert wins(plain, "8m", "self_draw")
    assert wins(waiting("123p456s44p67m", [chi("2m", "34m")], "1f"), "8m")
    winds = waiting("456s44p11z678m", [chi("2m", "34m")])
    assert wins(winds, "1z")  # a triplet of winds is a flower point
    assert not wins(winds, "4p")


def test_a_seat_does_not_win_on_the_kind_it_discarded_last() -> None:
    hand, melds = "123p456s44p67m", [chi("2m", "34m")]
    for by in ("discard", "rob_kong"):
        assert not wins(waiting(hand, melds, "1f", last_discard=from_name("8m")), "8m", by)
        assert wins(waiting(hand, melds, "1f", last_discard=from_name("8m")), "5m", by)
    assert wins(waiting(hand, melds, "1f", last_discard=from_name("8m")), "8m", "self_draw")


def test_it_does_after_breaking_its_pair_into_a_last_single_tile() -> None:
    four = [PONG, RUN, chi("2m", "34m"), chi("7s", "56s")]
    own = from_name("4p")
    assert wins(waiting("4p", four, last_discard=own, turn_claim=four[3]), "4p")
    # Not if it drew that tile, nor after an exposed kong.
    assert not wins(waiting("4p", four, last_discard=own), "4p")
    kong = Meld(MeldKind.EXPOSED_KONG, tiles("8888p"), 1, from_name("8p"))
    assert not wins(waiting("4p", [*four[:3], kong], last_discard=own, turn_claim=kong), "4p")


def passing(flowers: str, suit: str) -> tuple[Seat, dict[str, Wait]]:
    """2223 with three pongs: on 1 and 4 it has a sequence, on 3 it is all triplets."""
    pongs = [Meld(MeldKind.PONG, tiles(f"{rank * 3}{suit}"), 1) for rank in "789"]
    seat = waiting("2223m", pongs, flowers)
    return seat, {name(wait.tile): wait for wait in seat.waits}


def test_a_passed_win_bars_all_but_one_with_more_fan_that_is_paid_more() -> None:
    seat, waits = passing("1f", "p")
    assert {tile: (wait.least_fan, wait.least_units) for tile, wait in waits.items()} == {
        "1m": (0, 15),
        "3m": (1, 30),
        "4m": (0, 15),
    }
    assert all(wins(seat, tile) for tile in waits)
    seat.passed = (waits["1m"],)
    assert [tile for tile in waits if wins(seat, tile)] == ["3m"]
    # Robbing is not barred, nor is a self-draw.
    assert all(wins(seat, tile, by) for tile in waits for by in ("rob_kong", "self_draw"))
    seat.passed = (waits["1m"], waits["3m"])
    assert not any(wins(seat, tile) for tile in waits)


def test_more_fan_does_not_lift_the_bar_where_the_cap_pays_the_same() -> None:
    seat, waits = passing("123f", "m")
    assert (waits["1m"].least_fan, waits["3m"].least_fan) == (2, 3)
    assert (waits["1m"].least_units, waits["3m"].least_units) == (100, 100)
    seat.passed = (waits["1m"],)
    assert not wins(seat, "3m")


# ---- Dealer, the end of the wall, the catalogue ----


@pytest.mark.parametrize(
    ("end", "next_dealer"),
    [
        (Win((1,), 0, "self_draw"), 1),
        (Win((3, 1), 0, "discard", 0), 1),
        (Win((3, 0), 0, "discard", 2), 2),
        (EightFlowers(1), 1),
        (EightFlowers(2), 2),
        (Draw(), 1),
        (Dissolved(), 1),
        (Escape(2), None),
    ],
)
def test_the_dealer_stays_after_winning_or_a_drawn_hand(end: End, next_dealer: int | None) -> None:
    finished = FinishedHand(1, (SeatEnd(),) * 4, end)
    assert RULE_SET.next_dealer(finished) == next_dealer


def test_all_tiles_are_drawn() -> None:
    policy = RULE_SET.wall
    for taken in range(5):
        wall = WallCount(144, 53, taken, taken)
        assert policy.drawable(wall) == 91 - taken
        assert policy.may_kong(wall)
        last = WallCount(144, 144 - taken, taken, taken)
        assert policy.drawable(last) == 0
        assert not policy.may_kong(last)
