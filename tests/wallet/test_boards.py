"""The leaderboards that a storage keeps for the pages that follow."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fangcheng_wallet.boards import Boards
from fangcheng_wallet.ledger import LeaderboardQuery


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns all the time."""
    seconds = sys.getswitchinterval()
    sys.setswitchinterval(0.000_001)
    yield
    sys.setswitchinterval(seconds)


@pytest.mark.usefixtures("hasty")
def test_readers_in_several_threads_keep_boards_and_forget_them() -> None:
    boards = Boards()
    query = LeaderboardQuery("points", "book")

    def read(first: int) -> None:
        # One more than are kept: each that comes has another forgotten, which is asked for next.
        for number in range(first, first + 20_000):
            boards.ask(query, number % 17, 0).answer()

    with ThreadPoolExecutor(4) as readers:
        assert list(readers.map(read, range(4))) == [None] * 4
