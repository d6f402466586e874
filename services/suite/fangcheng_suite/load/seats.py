"""Seats at tables that the load plays, on the streams of a gateway."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2
from fangcheng_client import explain
from fangcheng_client.many import ManySeats, SeatNews
from fangcheng_client.view import TableView
from fangcheng_suite.bots.player import asked
from fangcheng_suite.bots.thinking import thinking_seconds

from .choosing import choose
from .measured import ACTS, ANALYZED, HANDS, SEEN, SETTLED, TAKEN, Slice

AT_ONCE = 0.001
"""A pace below it is no pace: answers are given as soon as they are asked for."""

QUESTIONS = frozenset({"back", "ready", "refuse"})
"""What `asked` tells of beside prompts, by the only answer that there is."""


@dataclass(slots=True)
class _Discard:
    """A discard on its way: who has yet to be told of it."""

    sent: float
    seat: int
    rest: set[str]


@dataclass(slots=True)
class _Table:
    """A table with seats of ours."""

    players: set[str] = field(default_factory=set)
    plays: bool = False
    """A hand has begun."""
    discard: _Discard | None = None
    ended: float | None = None
    """When the last hand has ended that is not settled yet."""


@dataclass(slots=True)
class _Seat:
    """One seat of ours."""

    player_id: str
    table_id: str
    view: TableView
    over: asyncio.Future[None]
    sent: dict[str, float] = field(default_factory=dict)
    """When an answer was sent that is not taken yet, by its decision."""
    chosen: set[str] = field(default_factory=set)
    """Decisions that are answered, or about to be."""


class Seats:
    """The seats of one stream. `told`: where what happens is noted, the newest slice."""

    def __init__(
        self,
        tables: grpc.aio.Channel,
        evaluation: grpc.aio.Channel,
        told: Callable[[], Slice],
        chance: random.Random,
        *,
        turn_seconds: float,
        hints: float,
    ) -> None:
        """`hints`: of so many turns a hint is asked for before they are answered."""
        self._many = ManySeats(tables, on_break=self._broke)
        self._evaluation = evaluation_pb2_grpc.EvaluationServiceStub(evaluation)
        self._told = told
        self._chance = chance
        self._turn_seconds = turn_seconds
        self._hints = hints
        self._leaving = False
        self._seats: dict[tuple[str, str], _Seat] = {}
        self._tables: dict[str, _Table] = {}
        self._hinting: set[asyncio.Task[None]] = set()

    @property
    def playing(self) -> int:
        """Tables where a hand has begun."""
        return sum(table.plays for table in self._tables.values())

    @property
    def places(self) -> Sequence[tuple[str, str]]:
        """Who sits where: player and table."""
        return list(self._seats)

    @property
    def over(self) -> Sequence[asyncio.Future[None]]:
        """Of each seat what is done once it is no longer played."""
        return [seat.over for seat in self._seats.values()]

    def leave(self) -> list[tuple[str, str, int]]:
        """From now on the seats agree to dissolve their tables, and answer at once.

        Who may propose it: of each table the first player, and the hand that it plays.
        """
        self._leaving, self._turn_seconds = True, 0.0
        first = {table_id: min(table.players) for table_id, table in self._tables.items()}
        return [
            (player_id, table_id, self._seats[player_id, table_id].view.hand_number)
            for table_id, player_id in first.items()
        ]

    async def play(self, player_id: str, table_id: str) -> None:
        """Play a seat until its table has closed, or the player is no longer there."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._seats[player_id, table_id] = _Seat(player_id, table_id, TableView(), over)
        self._tables.setdefault(table_id, _Table()).players.add(player_id)
        self._many.add(player_id, table_id)
        await over

    async def read(self) -> None:
        """Read the stream until cancelled. Raises AioRpcError where it cannot be opened again."""
        try:
            async with aclosing(self._many) as news:
                async for one in news:
                    self._take(one)
        finally:
            for task in self._hinting:
                task.cancel()
            await asyncio.gather(*self._hinting, return_exceptions=True)

    def _broke(self, error: grpc.aio.AioRpcError | TimeoutError) -> None:
        if isinstance(error, TimeoutError):
            self._told().errors["AttendMany", "SILENT"] += 1
        elif not (problem := explain(error)).ended_with_token:
            self._told().errors["AttendMany", problem.reason] += 1

    def _take(self, news: SeatNews) -> None:
        seat = self._seats.get((news.player_id, news.table_id))
        if seat is None:
            return
        match news:
            case table_pb2.SeatEvent():
                self._event(seat, news.event)
            case table_pb2.SeatActed():
                if (sent := seat.sent.pop(news.decision_id, None)) is not None:
                    self._told().time(TAKEN, time.perf_counter() - sent)
            case table_pb2.SeatProblem():
                self._told().errors[
                    "Act" if news.decision_id else "Attend", news.problem.reason
                ] += 1
                if news.decision_id:
                    seat.sent.pop(news.decision_id, None)
                    self._tables[seat.table_id].discard = None
                else:
                    self._leave(seat)
            case table_pb2.SeatDone():
                self._leave(seat)

    def _leave(self, seat: _Seat) -> None:
        del self._seats[seat.player_id, seat.table_id]
        table = self._tables[seat.table_id]
        table.players.discard(seat.player_id)
        if table.discard is not None:
            table.discard.rest.discard(seat.player_id)
        if not table.players:
            del self._tables[seat.table_id]
        if not seat.over.done():
            seat.over.set_result(None)

    def _event(self, seat: _Seat, event: events_pb2.TableEvent) -> None:
        seat.view.apply(event)
        table = self._tables[seat.table_id]
        match event.WhichOneof("kind"):
            case "discarded":
                self._heard(table, seat.player_id, event.discarded.seat)
            case "hand_started":
                table.plays = True
                seat.chosen.clear()
            case "hand_ended" if table.ended is None and self._first(table, seat):
                table.ended = time.perf_counter()
                self._told().counts[HANDS] += 1
            case "hand_settled" if table.ended is not None and self._first(table, seat):
                self._told().time(SETTLED, time.perf_counter() - table.ended)
                table.ended = None
            case "prompt_closed":
                seat.chosen.add(event.prompt_closed.decision_id)
        for prompt in asked(event, seat.view):
            if prompt.decision_id not in seat.chosen:
                seat.chosen.add(prompt.decision_id)
                self._answer_later(seat, prompt)

    @staticmethod
    def _first(table: _Table, seat: _Seat) -> bool:
        """Whether it is this seat that notes what all of them are told."""
        return seat.player_id == min(table.players)

    def _heard(self, table: _Table, player_id: str, by_seat: int) -> None:
        discard = table.discard
        if discard is None or discard.seat != by_seat:
            return
        discard.rest.discard(player_id)
        if not discard.rest:
            self._told().time(SEEN, time.perf_counter() - discard.sent)
            table.discard = None

    def _answer_later(self, seat: _Seat, prompt: events_pb2.Prompt) -> None:
        if prompt.kind == "turn" and self._chance.random() < self._hints:
            task = asyncio.create_task(self._hint(seat.view))
            self._hinting.add(task)
            task.add_done_callback(self._hinting.discard)
        seconds = thinking_seconds(prompt, self._turn_seconds, self._chance)
        if seconds < AT_ONCE:
            self._answer(seat, prompt)
        else:
            asyncio.get_running_loop().call_later(seconds, self._answer, seat, prompt)

    def _answer(self, seat: _Seat, prompt: events_pb2.Prompt) -> None:
        if (seat.player_id, seat.table_id) not in self._seats:
            return
        still_open = seat.view.prompt
        if prompt.kind not in QUESTIONS and (
            still_open is None or still_open.decision_id != prompt.decision_id
        ):
            return  # it was withdrawn, for another seat's claim came first, or its time ran out
        if prompt.kind == "refuse" and self._leaving:
            action = state_pb2.Action(kind="agree")
        else:
            action = choose(seat.view, prompt, self._chance)
        now = seat.sent[prompt.decision_id] = time.perf_counter()
        table = self._tables[seat.table_id]
        if action.kind == "discard" and seat.view.own_seat is not None:
            table.discard = _Discard(now, seat.view.own_seat, set(table.players))
        self._told().counts[ACTS] += 1
        self._many.act(seat.player_id, seat.table_id, prompt.decision_id, action)

    async def _hint(self, view: TableView) -> None:
        hand = evaluation_pb2.Hand(concealed=view.own.concealed, melds=view.own.melds)
        rules = rules_pb2.RuleSetChoice()
        rules.CopyFrom(view.rules)
        request = evaluation_pb2.AnalyzeRequest(rules=rules, hand=hand, progress=True)
        began = time.perf_counter()
        try:
            await self._evaluation.Analyze(request)
        except grpc.aio.AioRpcError as error:
            self._told().errors["Analyze", explain(error).reason] += 1
        else:
            self._told().time(ANALYZED, time.perf_counter() - began)
