"""Time in which the process does not run does not pass at its tables."""

from __future__ import annotations

from fangcheng_table.gameclock import GameClock


class Real:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.ms = 5_000_000

    def __call__(self) -> int:
        return self.ms


def clock() -> tuple[Real, GameClock, list[int]]:
    real, gaps = Real(), list[int]()
    return real, GameClock(1_500, gaps.append, real), gaps


def test_time_passes_while_somebody_looks():
    real, game, gaps = clock()
    began = game.now_ms()
    for _ in range(100):
        real.ms += 1_500
        game.now_ms()
    assert game.now_ms() - began == 150_000
    assert gaps == []


def test_a_long_time_in_which_nobody_looked_did_not_pass_whoever_looks_first():
    real, game, gaps = clock()
    began = game.now_ms()
    real.ms += 1_000
    assert game.now_ms() - began == 1_000
    real.ms += 3_000
    assert game.now_ms() - began == 1_000
    real.ms += 20
    assert game.now_ms() - began == 1_020
    real.ms += 60_000
    assert game.now_ms() - began == 1_020
    assert gaps == [3_000, 60_000]
