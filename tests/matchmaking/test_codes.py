"""Who tries codes of rooms that are not his: one player, a crowd, or a gateway that names one."""

from __future__ import annotations

import random

import pytest
from prometheus_client import CollectorRegistry

from fangcheng_matchmaking.codes import CODES, TooManyCodes, WrongCodes, drawn
from fangcheng_matchmaking.metrics import Metrics
from fangcheng_matchmaking.rooms import RoomFull, UnknownRoom


class Codes:
    """Wrong codes and right ones at chosen times."""

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self.registry = CollectorRegistry()
        self.counted = WrongCodes(most, Metrics(self.registry), lambda: self.now)

    def wrong(self, player_id: str, via: str | None = None) -> float:
        """Tries a wrong code; 0, or in how many seconds the next may be tried."""
        try:
            with self.counted.trying(player_id, via):
                raise UnknownRoom("000000", "code")
        except UnknownRoom:
            return 0.0
        except TooManyCodes as refused:
            return refused.retry_after_seconds

    def right(self, player_id: str, via: str | None = None) -> None:
        with self.counted.trying(player_id, via):
            pass


def test_a_player_gets_ten_wrong_and_waits_until_the_first_is_a_minute_old() -> None:
    codes = Codes(most=240)
    for second in range(10):
        codes.now = float(second)
        assert codes.wrong("ming") == 0
    assert codes.wrong("ming") == pytest.approx(51)
    codes.now += 51
    assert codes.wrong("ming") == 0
    assert codes.wrong("ming") == pytest.approx(1)


def test_who_has_the_code_uses_up_nothing() -> None:
    codes = Codes(most=240)
    for _ in range(100):
        codes.right("ming")
        with pytest.raises(RoomFull), codes.counted.trying("ming", None):
            raise RoomFull("r")
    assert codes.wrong("ming") == 0


@pytest.mark.parametrize(("via", "most"), [(None, 240), ("service:gateway", 120)])
def test_a_crowd_gets_no_more_than_its_share_and_then_nobody_is_heard(
    via: str | None, most: int
) -> None:
    codes = Codes(most=240)
    tried = sum(codes.wrong(f"p{number}", via) == 0 for number in range(10_000))
    assert tried == most
    with pytest.raises(TooManyCodes):
        codes.right("somebody else", via)
    codes.now += 60
    codes.right("somebody else", via)


def test_a_gateway_that_is_locked_out_locks_out_no_other() -> None:
    codes = Codes(most=240)
    for number in range(1_000):
        codes.wrong(f"p{number}", "service:gateway")
    codes.right("p1", "service:other")
    codes.right("p1")


def test_one_player_is_the_same_player_by_each_of_his_gateways() -> None:
    codes = Codes(most=240)
    for number in range(10):
        assert codes.wrong("ming", f"service:gateway-{number}") == 0
    assert codes.wrong("ming") > 0


def test_codes_that_are_looked_up_at_the_same_time_count_as_wrong_meanwhile() -> None:
    codes = Codes(most=240)
    looking = [codes.counted.trying("ming", None) for _ in range(10)]
    for one in looking:
        one.__enter__()
    with pytest.raises(TooManyCodes):
        codes.right("ming")
    for one in looking:
        one.__exit__(None, None, None)
    codes.right("ming")


def test_what_is_remembered_is_bounded_and_forgotten() -> None:
    codes = Codes(most=240)
    for minute in range(20):
        codes.now = minute * 61.0
        for number in range(2_000):
            codes.wrong(f"{minute} {number}", f"service:{number}")
        assert len(codes.counted._wrong) == 240
        assert len(codes.counted._tries) == 2 * 240 + 1
    codes.now += 61
    codes.right("ming")
    assert not codes.counted._wrong
    assert not codes.counted._tries


def test_wrong_codes_and_refused_ones_are_counted_apart() -> None:
    codes = Codes(most=240)
    for _ in range(13):
        codes.wrong("ming")
    value = codes.registry.get_sample_value
    name = "fangcheng_matchmaking_wrong_room_codes_total"
    assert value(name, {"outcome": "wrong"}) == 10
    assert value(name, {"outcome": "refused"}) == 3


def test_codes_are_eight_digits_of_equal_chance() -> None:
    codes = [code for seed in range(400) for code in drawn(random.Random(seed))]
    assert len(codes) == 400 * CODES
    assert all(len(code) == 8 and code.isdecimal() for code in codes)
    for place in range(8):
        counts = [sum(code[place] == digit for code in codes) for digit in "0123456789"]
        assert min(counts) > 1_800
        assert max(counts) < 2_200
