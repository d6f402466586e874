"""A table is resumed from its last hand's beginning, and is what the whole journal makes it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from fangcheng_table.codec import UnknownEvent
from fangcheng_table.events import HandOpened, SeatPlan
from fangcheng_table.openings import freeze, thaw, with_numbers
from fangcheng_table.state import SeatState, TableState, Vote

from .tables import Drive, Stake, at_random, created

NUMBERS = (7, 8, 9, 10, 4)


@pytest.mark.parametrize("seed", range(4))
def test_what_follows_after_an_opening_leads_where_the_whole_journal_does(seed):
    drive = Drive.of(created(hands=4, stakes=[Stake("silver", "", 3)]))
    before: list[bytes] = []
    drive.table.before_hand = lambda state: before.append(freeze(state))
    drive.attend(0, 1, 2, 3)
    drive.table.give_entropy(2, b"\x00\xff")
    drive.play(at_random(seed))
    begun = [n for n, event in enumerate(drive.events) if isinstance(event, HandOpened)]
    assert len(begun) == len(before) > 1
    for place, frozen in zip(begun, before, strict=True):
        state, numbers = thaw(with_numbers(frozen, NUMBERS))
        assert tuple(numbers) == NUMBERS
        for event in drive.events[place:]:
            state.follow(event)
        assert state == TableState.replay(drive.events)


def test_every_field_of_a_table_is_in_its_opening():
    seat = SeatState(
        plan=SeatPlan("eve", b"\x00", ("h",), True),
        **{
            field.name: {"bool": True, "int": 7, "str": "word", "bytes": b"\xff"}[field.type]
            for field in fields(SeatState)
            if field.type in ("bool", "int", "str", "bytes")
        },
        leaving="after_hand",
        proposed=(-1, 3),
    )
    state = TableState(
        created=created(),
        seats=[seat, *(replace(seat, proposed=(2, 0)) for _ in range(3))],
        hand_number=5,
        dealer=2,
        next_dealer=0,
        drawn_hands=1,
        deals_passed=3,
        settled=False,
        charged=True,
        checks=4,
        checking=True,
        vote=Vote(2, 1, {1: True, 3: False}, is_open=False),
        vacancies=2,
        owed={1: ("h1", "h2"), 2: ()},
        former={"ann", "bob"},
        orders={"r1": "fingerprint"},
        verdict="closed",
        closed="dissolved",
        released=True,
    )
    plain = TableState.opened(created())
    for field in fields(TableState):
        if field.name not in ("created", "hand"):
            assert getattr(state, field.name) != getattr(plain, field.name), field.name
    assert thaw(with_numbers(freeze(state), NUMBERS))[0] == state
    assert thaw(with_numbers(freeze(plain), NUMBERS))[0] == plain


def test_an_opening_that_cannot_be_read_is_refused():
    with pytest.raises(UnknownEvent):
        thaw(b"\xff\xff")
