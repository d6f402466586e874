"""The scorer of `baishan_kele` against a second one (`kele_oracle.py`), on random hands."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from fangcheng_rules.errors import IllegalWin, InvalidHand
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.players import Efficient
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import (
    SEATS,
    Draw,
    FinishedHand,
    KongKind,
    Score,
    SeatEnd,
    Win,
    score,
)
from fangcheng_rules.simulate import play_hands
from fangcheng_rules.tiles import from_name, name
from tests.rules import kele_oracle as oracle
from tests.rules.golden import tiles

KELE = rule_set("baishan_kele")
KONGS: dict[MeldKind, KongKind] = {
    MeldKind.EXPOSED_KONG: "exposed",
    MeldKind.ADDED_KONG: "added",
    MeldKind.CONCEALED_KONG: "concealed",
}


def as_player(seat: SeatEnd) -> oracle.Player:
    first = seat.first_discard
    return oracle.Player(
        concealed=[name(tile) for tile in seat.concealed or ()],
        melds=[oracle.Laid(str(m.kind), [name(tile) for tile in m.tiles]) for m in seat.melds],
        ting=seat.declared == "ting",
        piao=seat.piao,
        first_discard="" if first is None else name(first),
    )


def as_ending(win: Win) -> oracle.Ending:
    return oracle.Ending(
        winner=win.winners[0],
        tile=name(win.tile),
        how=win.by,
        source=win.source,
        after_kong=win.after_kong is not None,
        discard_after_kong=win.discard_after_kong,
        on_deal=win.on_deal,
    )


def agree(finished: FinishedHand, options: dict[str, object]) -> Score:
    """Both count the same for every loser, and everybody ends up with the same."""
    cap = int(str(options.get("cap", 50)))
    pays_alone = bool(options.get("discarder_pays", False))
    players = [as_player(seat) for seat in finished.seats]
    ending = as_ending(finished.end) if isinstance(finished.end, Win) else None
    result = score(KELE, options, finished)
    if ending is not None:
        expected = oracle.amounts(players, finished.dealer, ending, cap, pays_alone)
        assert {loser.seat: loser.amount for loser in result.losers} == expected
    net = oracle.net(players, finished.dealer, ending, cap, pays_alone)
    assert list(result.net) == net
    return result


# ---- Random finished hands ----


class Box:
    """A set of tiles that are taken out at random."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.left = Counter(dict.fromkeys(range(34), 4))

    def take(self, kinds: list[int]) -> bool:
        if any(self.left[kind] < n for kind, n in Counter(kinds).items()):
            return False
        self.left -= Counter(kinds)
        return True

    def set_of(self, suits: list[range], kong: bool = False) -> list[int]:
        tries = 0
        while True:
            tries += 1
            if tries > 50:  # of these suits there is no set left
                suits, kong = SUITS, False
            kind = self.chance.choice(self.chance.choice(suits))
            if kong:
                wanted = [kind] * 4
            elif self.chance.random() < 0.45 or kind >= 27 or kind % 9 > 6:
                wanted = [kind] * 3
            else:
                wanted = [kind, kind + 1, kind + 2]
            if self.take(wanted):
                return wanted

    def pair_of(self, suits: list[range]) -> list[int]:
        return next(
            [kind, kind]
            for _ in range(1000)
            for kind in [self.chance.choice(self.chance.choice(suits))]
            if self.take([kind, kind])
        )


SUITS = [range(9), range(9, 18), range(18, 27), range(27, 34)]


def random_win(chance: random.Random) -> FinishedHand:
    """A hand that is complete by shape, and three losers with whatever melds."""
    box = Box(chance)
    dealer, winner = chance.randrange(4), chance.randrange(4)
    suits = chance.choice([SUITS, SUITS, SUITS[:1], [SUITS[1], SUITS[3]], SUITS[3:]])
    suits = [range(2, 6)] if chance.random() < 0.1 else suits
    shape = chance.choice(["standard"] * 8 + ["pairs", "pairs", "orphans"])
    melds: list[Meld] = []
    if shape == "orphans":
        concealed = [kind for kind in range(34) if kind >= 27 or kind % 9 in (0, 8)]
        box.take(concealed)
        extra = chance.choice(concealed)
        box.take([extra])
        concealed.append(extra)
    elif shape == "pairs":
        concealed = [
            tile
            for _ in range(7)
            for tile in box.pair_of(SUITS if chance.random() < 0.5 else SUITS[:2])
        ]
    else:
        concealed = box.pair_of(suits)
        if chance.random() < 0.25 and suits[0].start == 0:
            twice = [3, 4, 5]
            for _ in range(chance.choice((2, 3))):
                concealed += twice if box.take(twice) else box.set_of(SUITS)
        laid = chance.choice((0, 0, 1, 2, 3, 4))
        while len(concealed) < 14 - 3 * len(melds) and len(concealed) + 3 * len(melds) < 14:
            kong = len(melds) < laid and chance.random() < 0.3
            part = box.set_of(suits if len(suits) > 1 or chance.random() < 0.8 else SUITS, kong)
            if len(melds) < laid:
                melds.append(a_meld(part, chance, (winner + 3) % 4))
            else:
                concealed += part
    tile = chance.choice(concealed)
    concealed.remove(tile)

    seats = [SeatEnd()] * 4
    for seat in SEATS:
        own: list[Meld] = melds
        declared = ""
        if seat == winner:
            waits = oracle.waits(
                [name(t) for t in concealed], as_player(SeatEnd(None, tuple(melds))).melds
            )
            if len(waits) == 1 and chance.random() < 0.5:
                declared = "ting"
        else:
            own = []
            for _ in range(chance.choice((0, 0, 1, 2, 4))):
                part = box.set_of(SUITS, chance.random() < 0.2)
                own.append(a_meld(part, chance, (seat + 3) % 4))
                if len(part) == 3 and part[0] != part[1]:
                    while len(own) < 4 and chance.random() < 0.4 and box.take(part):
                        own.append(a_meld(part, chance, (seat + 3) % 4))
            own = own[:4]
            declared = "ting" if chance.random() < 0.2 else ""
        seats[seat] = SeatEnd(
            concealed=tuple(sorted(concealed)) if seat == winner else None,
            melds=tuple(own),
            declared=declared,
            piao=chance.choice((0, 0, 5, 10)),
            first_discard=chance.choice((3, 0)) if chance.random() < 0.9 else None,
        )
    end = a_moment(chance, seats, dealer, winner, tile, box)
    return FinishedHand(dealer, tuple(seats), end)


def a_meld(part: list[int], chance: random.Random, before: int) -> Meld:
    if len(part) == 4:
        return Meld(chance.choice(list(KONGS)), tuple(part))
    if part[0] == part[1]:
        return Meld(MeldKind.PONG, tuple(part))
    return Meld(MeldKind.CHI, tuple(part), before)


def a_moment(
    chance: random.Random, seats: list[SeatEnd], dealer: int, winner: int, tile: int, box: Box
) -> Win:
    other = chance.choice([seat for seat in SEATS if seat != winner])
    has_kong = any(meld.is_kong for meld in seats[other].melds)
    kongs = [meld for meld in seats[winner].melds if meld.is_kong]
    if chance.random() < 0.5:
        return Win(
            (winner,), tile, "discard", other, discard_after_kong=has_kong and chance.random() < 0.5
        )
    if winner == dealer and not seats[winner].melds and chance.random() < 0.3:
        return Win((winner,), tile, "self_draw", on_deal=True)
    if kongs and chance.random() < 0.5:
        return Win((winner,), tile, "self_draw", after_kong=KONGS[kongs[0].kind])
    if len(seats[other].melds) < 4 and box.take([tile] * 3):
        pong = Meld(MeldKind.PONG, (tile,) * 3)
        old = seats[other]
        seats[other] = SeatEnd(None, (*old.melds, pong), old.declared, old.piao, old.first_discard)
        return Win((winner,), tile, "rob_kong", other)
    return Win((winner,), tile, "self_draw")


@pytest.mark.parametrize("seed", range(8))
def test_both_scorers_agree_on_random_wins(seed: int) -> None:
    chance = random.Random(seed)
    legal = 0
    for _ in range(250):
        finished = random_win(chance)
        options: dict[str, object] = {
            "cap": chance.choice((0, 50, 50, 8)),
            "discarder_pays": chance.random() < 0.3,
        }
        assert isinstance(finished.end, Win)
        winner = as_player(finished.seats[finished.end.winners[0]])
        if oracle.wins([*winner.concealed, name(finished.end.tile)], winner.melds):
            agree(finished, options)
            legal += 1
        else:
            with pytest.raises(IllegalWin) as caught:
                score(KELE, options, finished)
            assert caught.value.reason == "NOT_A_WIN"
    assert 150 < legal < 250


def test_those_random_wins_have_every_fan_item_in_them() -> None:
    counted: Counter[str] = Counter()
    for seed in range(4):
        chance = random.Random(seed)
        for _ in range(500):
            try:
                result = score(KELE, {}, random_win(chance))
            except IllegalWin:
                continue
            for side in (*result.winners, *result.losers):
                counted.update(item.id for item in side.items)
    assert set(counted) == {item.id for item in KELE.fan_items}


def test_both_scorers_agree_on_the_hands_of_bots() -> None:
    for play, _ in play_hands(KELE, [Efficient(random.Random(1))] * 4, hands=150, seed=77):
        finished = play.finished
        if isinstance(finished.end, (Win, Draw)):
            result = agree(finished, {})
            assert result == play.result


# ---- What cannot be ----


def test_several_seats_cannot_win_one_tile() -> None:
    hand = SeatEnd(tiles("123p88m79s555m234s"), ())
    other = SeatEnd(tiles("123p99m79s555p234s"), ())
    finished = FinishedHand(
        0, (hand, other, SeatEnd(), SeatEnd()), Win((0, 1), from_name("8s"), "discard", 2)
    )
    with pytest.raises(IllegalWin) as caught:
        score(KELE, {}, finished)
    assert (caught.value.reason, caught.value.field) == ("WIN_NOT_ALLOWED", "end.winners")


@pytest.mark.parametrize(
    ("seat", "field"),
    [
        (SeatEnd(declared="riichi"), "seats[2].declared"),
        (SeatEnd(piao=-5), "seats[2].piao"),
        (SeatEnd(concealed=(0,) * 5 + (9,) * 8), "seats[2].concealed"),
        (SeatEnd(concealed=(0, 1, 2)), "seats[2].concealed"),
        (SeatEnd(concealed=(99,) * 13), "seats[2].concealed"),
        (SeatEnd(melds=(Meld(MeldKind.CHI, (0, 1, 2)),) * 5), "seats[2].melds"),
    ],
)
def test_a_seat_that_cannot_be_is_named(seat: SeatEnd, field: str) -> None:
    finished = FinishedHand(0, (SeatEnd(), SeatEnd(), seat, SeatEnd()), Draw())
    with pytest.raises(InvalidHand) as caught:
        score(KELE, {}, finished)
    assert caught.value.field == field


def test_four_seats_and_a_dealer_among_them() -> None:
    for finished, field in (
        (FinishedHand(4, (SeatEnd(),) * 4, Draw()), "dealer"),
        (FinishedHand(0, (SeatEnd(),) * 3, Draw()), "seats"),
    ):
        with pytest.raises(InvalidHand) as caught:
            score(KELE, {}, finished)
        assert caught.value.field == field
