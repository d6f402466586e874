"""Leaderboards: who gained how much, put in order."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fangcheng_wallet.ledger import Leaderboard, LeaderboardQuery, Place

_KEPT = 16
"""Boards that are kept for the pages that follow."""


class Score(NamedTuple):
    """What settlements have brought one player."""

    player_id: str
    score: int
    hands: int


class Board:
    """All places of one leaderboard, best first."""

    def __init__(self, scores: Iterable[Score]) -> None:
        ordered = sorted(scores, key=lambda one: (-one.score, one.player_id))
        self._places: list[Place] = []
        rank = 0
        for number, one in enumerate(ordered, 1):
            if not self._places or self._places[-1].score != one.score:
                rank = number
            self._places.append(Place(rank, *one))

    def show(self, query: LeaderboardQuery, horizon: int, *, closed: bool) -> Leaderboard:
        """The part that is asked for."""
        places = self._places[query.skip : query.skip + query.limit]
        own = self._own(query.player_id)
        around: Sequence[Place] = ()
        if own is not None:
            first = max(0, own - query.neighbours)
            around = self._places[first : own + query.neighbours + 1]
        return Leaderboard(
            places=tuple(places),
            more=len(self._places) > query.skip + query.limit,
            own=None if own is None else self._places[own],
            around=tuple(around),
            closed=closed,
            horizon=horizon,
        )

    def _own(self, player_id: str | None) -> int | None:
        for number, place in enumerate(self._places):
            if place.player_id == player_id:
                return number
        return None


BoardKey = tuple[str, str, int | None, int | None, tuple[tuple[str, str], ...], int]
"""What makes a board, whatever part of it is shown."""


class Asked:
    """A leaderboard that was asked for, as of an operation: the ``horizon``."""

    def __init__(self, boards: Boards, query: LeaderboardQuery, horizon: int, time_us: int) -> None:
        self.horizon = horizon
        labels = tuple(sorted(query.labels.items()))
        unit = (query.currency, query.book)
        self._key: BoardKey = (*unit, query.since_us, query.until_us, labels, self.horizon)
        # Not by the clock: what is being written may bear an earlier time than now, and only an
        # operation after the period keeps all that follow out of it.
        self._closed = query.until_us is not None and time_us >= query.until_us
        self._query = query
        self._boards = boards
        self._board = boards.get(self._key)

    @property
    def is_kept(self) -> bool:
        """Whether nothing has to be counted."""
        return self._board is not None

    def answer(self, scores: Iterable[Score] = ()) -> Leaderboard:
        """What is asked for; ``scores``: of all players, where the board is not kept."""
        if self._board is None:
            self._board = Board(scores)
            self._boards.keep(self._key, self._board)
        return self._board.show(self._query, self.horizon, closed=self._closed)


class Boards:
    """The boards that were asked for last, so that a page does not count everything again.

    Any thread may ask.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[BoardKey, Board] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, query: LeaderboardQuery, horizon: int, time_us: int) -> Asked:
        """Ask for a leaderboard. ``horizon``, ``time_us``: the last operation that is counted."""
        return Asked(self, query, horizon, time_us)

    def get(self, key: BoardKey) -> Board | None:
        """A board that is kept."""
        with self._lock:
            board = self._kept.get(key)
            if board is not None:
                self._kept.move_to_end(key)
            return board

    def keep(self, key: BoardKey, board: Board) -> None:
        """Keep a board, and forget the one that was not asked for longest."""
        with self._lock:
            self._kept[key] = board
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
