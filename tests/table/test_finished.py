"""Which hands are finished, and when: what the index of hands is written from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fangcheng_rules import events as play
from fangcheng_table.events import Fee, HandOpened, HandSettled
from fangcheng_table.finished import FinishedHands

from .tables import PLAYERS, Drive, Stake, at_random, created, of

FEE = Fee(None, "silver", "", 5)


@pytest.mark.parametrize(
    ("money", "settled"),
    [
        ({}, []),
        ({"stakes": (Stake("silver", "", 3),)}, [1, 2, 3]),
        ({"fees": (FEE,)}, [1]),  # the fees go with the first hand; afterwards nothing is owed
        ({"stakes": (Stake("silver", "", 3),), "fees": (FEE,)}, [1, 2, 3]),
    ],
)
def test_a_hand_is_finished_when_it_is_settled_or_has_ended_where_nothing_is_owed(money, settled):
    drive = Drive.of(replace(created(hands=3), **money))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(5))
    hands, entries = FinishedHands(), []
    for record in drive.records:
        entry = hands.see(record)
        if entry is not None:
            entries.append(entry)
            assert entry.last_sequence == record.sequence
            assert isinstance(record.event, play.HandEnded | HandSettled)
            first = drive.records[entry.first_sequence - 1].event
            assert isinstance(first, HandOpened)
            assert first.hand_number == entry.hand_number
    assert [entry.hand_number for entry in entries] == [1, 2, 3]
    assert [event.hand_number for event in of(HandSettled, drive.events)] == settled
    for entry, ended in zip(entries, of(play.HandEnded, drive.events), strict=True):
        assert entry.ending == type(ended.end).__name__.lower()
        last = drive.records[entry.last_sequence - 1].event
        assert isinstance(last, HandSettled) == (entry.hand_number in settled)
        assert entry.player_ids == PLAYERS
        assert (entry.table_id, entry.labels) == ("t1", {"club": "17"})
