"""Events as text: what goes in comes out, and what cannot be read is refused."""

from __future__ import annotations

from typing import get_args

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.scoring import Dissolved, Draw, Escape, Score, Win
from fangcheng_table import events as own
from fangcheng_table.codec import VERSION, StoredEvent, UnknownEvent, decode, encode

from .tables import Drive, Stake, at_random, created


def test_every_event_of_whole_hands_survives():
    seen = set()
    for seed in range(8):
        drive = Drive.of(created(root=bytes([seed]) * 32, hands=2, stakes=[Stake("silver", "", 3)]))
        drive.table.give_entropy(1, b"\x00\xff")
        drive.attend(0, 1, 2, 3)
        if seed % 2:
            drive.table.leave(seed % 4, now=False)
        drive.play(at_random(seed))
        seen |= {type(event) for event in drive.events}  # Drive.store compares each with itself
    assert {own.TableCreated, own.Offered, play.HandStarted, play.AnalysisKept} <= seen
    assert {play.Called, play.Discarded, play.WinTaken, play.HandEnded} <= seen


@pytest.mark.parametrize(
    "end", [Draw(), Escape(2), Dissolved("by vote"), Win((1,), 3, "self_draw")]
)
def test_every_end_of_a_hand_survives(end):
    event = play.HandEnded(end, ((1, 2), (), (), ()), ((), (), (), ()), Score())
    assert decode(encode(event)) == event
    if not isinstance(end, Win):
        assert decode(encode(play.PlayEnded(end))) == play.PlayEnded(end)


def test_every_type_of_event_has_a_name_of_its_own():
    types = [*get_args(own.OwnEvent), *get_args(play.Event)]
    assert len({kind.__name__ for kind in types}) == len(types)


@pytest.mark.parametrize(
    "stored",
    [
        StoredEvent("NoSuchEvent", VERSION, "{}"),
        StoredEvent("TableClosed", VERSION + 1, '{"reason":"escape"}'),
        StoredEvent("TableClosed", VERSION, "{}"),
        StoredEvent("TableClosed", VERSION, '{"reason":1}'),
        StoredEvent("TableClosed", VERSION, "not JSON"),
        StoredEvent("PlayEnded", VERSION, '{"end":["Victory",{}]}'),
    ],
)
def test_what_cannot_be_read_is_refused(stored):
    with pytest.raises(UnknownEvent):
        decode(stored)
