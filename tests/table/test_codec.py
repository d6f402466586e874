"""Events as bytes: what goes in comes out, and what cannot be read is refused."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from fangcheng_rules import events as play
from fangcheng_rules.analysis import Analysis, DiscardChoice, KongChoice, Wait
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.scoring import Dissolved, Draw, Escape, Score, Win
from fangcheng_table import events as own
from fangcheng_table.codec import UnknownEvent, decode, encode
from fangcheng_table.stored.mapping import Unmapped, mapped
from fangcheng_table.stored.v1 import event_pb2 as stored

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


def example(hint: Any) -> Any:
    """A value of a type in which nothing is as it would be if it were left out."""
    options = [one for one in get_args(hint) if one is not NoneType]
    match get_origin(hint):
        case origin if origin in (Union, UnionType):
            return example(options[-1])
        case origin if origin in (tuple, list, set):
            return origin([example(options[0])])
        case origin if origin is Literal:
            return options[-1]
        case None:
            pass
        case _:
            return {"key": example(options[1])}
    if hint in SCALARS:
        return SCALARS[hint]
    if hint is Meld:
        return Meld(MeldKind.CHI, (1, 2, 3), 3, 2)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return list(hint)[-1]
    return hint(**{name: example(one) for name, one in get_type_hints(hint).items()})


SCALARS = {int: 2**31 - 1, str: "八花", bytes: b"\x00\xff", bool: True}


@pytest.mark.parametrize("kind", get_args(own.Event), ids=lambda kind: kind.__name__)
def test_every_type_of_event_survives_with_every_field(kind):
    if kind is play.AnalysisKept:
        return  # stored as far as a hand is played by it: see below
    event = example(kind)
    assert decode(encode(event)) == event


@pytest.mark.parametrize("kind", get_args(own.Event), ids=lambda kind: kind.__name__)
def test_zero_is_not_nothing_and_nothing_is_not_zero(kind):
    hints = get_type_hints(kind)
    options = [name for name, hint in hints.items() if NoneType in get_args(hint)]
    for value in (None, 0):
        event = replace(example(kind), **dict.fromkeys(options, value))
        if kind is not play.AnalysisKept:
            assert decode(encode(event)) == event


def test_an_analysis_survives_as_far_as_a_hand_is_played_by_it():
    waits = (Wait(0, 2, 0), Wait(33, 0, -4))
    kongs = (KongChoice(31, MeldKind.WHIRLWIND), KongChoice(5, MeldKind.EXPOSED_KONG, waits))
    played = Analysis(
        wins=True,
        waits=waits,
        discards=(DiscardChoice(0, waits, claim_kongs=kongs), DiscardChoice(1)),
        kongs=kongs,
        claim_kongs=kongs[1:],
    )
    told = replace(played, items=(("ping_hu", 1),), shanten=0, useful=(3,), shape_shanten=1)
    assert decode(encode(play.AnalysisKept(3, 2, told))) == play.AnalysisKept(3, 2, played)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xff\xff",
        stored.Event(hand_ended=stored.HandEnded(end=stored.End())).SerializeToString(),
        stored.Event(called=stored.Called(meld=stored.Meld(kind="chi"))).SerializeToString(),
        stored.Event(kong_done=stored.KongDone(kind="a new kind")).SerializeToString(),
        bytes([0xA2, 0x3E, 0x00]),  # a kind with a number that nobody has given out
    ],
)
def test_what_cannot_be_read_is_refused(body):
    with pytest.raises(UnknownEvent):
        decode(body)


def test_a_value_whose_fields_the_message_does_not_have_is_found_at_once():
    with pytest.raises(Unmapped, match="hand_number"):
        mapped(own.HandOpened, stored.TableClosed.DESCRIPTOR, {}, frozenset())
    with pytest.raises(Unmapped, match="asked"):
        mapped(play.Asked | play.Drew, stored.End.DESCRIPTOR, {}, frozenset())
