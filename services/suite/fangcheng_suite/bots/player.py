"""A bot at the public API: it queues, attends its seat and answers its prompts, as anybody could.

It survives whatever a client must survive: a broken stream is resumed, an act whose answer was lost
is repeated, a prompt that closed meanwhile is let go, and a seat that the bot held before it was
started is taken up again.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace

import grpc
import grpc.aio

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2, table_pb2_grpc
from fangcheng_client import attend, explain
from fangcheng_client.reasons import find
from fangcheng_client.view import TableView
from fangcheng_rules.players import PLAYERS, STRENGTH
from fangcheng_suite.access import BOT_SCOPE, Access
from fangcheng_suite.errors import SuiteError

from .brain import Analyst, Brain
from .thinking import thinking_seconds

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 2.0
REPLAY_PAUSE_SECONDS = 0.5

_LOST = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
    }
)
"""The call may or may not have arrived; it can be repeated."""


def is_lost(error: grpc.aio.AioRpcError) -> bool:
    """Whether the call may or may not have arrived; it can be repeated."""
    return error.code() in _LOST or explain(error).ended_with_token


_TOO_LATE = frozenset({"STALE_DECISION"})

_OVER = frozenset(
    {
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
"""The ticket or the seat is there no more."""

_GONE = frozenset({"LEFT_TABLE", "REMOVED"})
"""Why the stream of one who is no longer at the table ends."""


class NotSeated(SuiteError):
    """The bot's ticket did not lead to a table."""


@dataclass(frozen=True, slots=True)
class Place:
    """A seat at a table."""

    table_id: str
    seat: int
    endpoint: str


@dataclass(slots=True)
class Bot:
    """One bot. `access` is all it has: it knows no more than any player's client."""

    player_id: str
    access: Access
    name: str = ""
    strength: str = STRENGTH
    """How well it plays: one of `PLAYERS`."""
    turn_seconds: float = 0.0
    """How long it seems to think about a turn: see `thinking`; 0: it answers at once."""
    chance: random.Random = field(default_factory=random.Random)
    on_seated: Callable[[Place], None] = lambda place: None
    entropy: bool = True
    """Adds a share of its own to the shuffle."""

    async def play(self, pool_id: str, *, standby: bool = False) -> Place | None:
        """Play one table of a pool to its end; None where the queue was left instead.

        A seat that the player has already is taken up first, and so is a ticket; but one of another
        pool, from a start before, is given back. Raises NotSeated and AioRpcError.
        """
        async with self._channel("matchmaking") as channel:
            stub = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
            place = await self._seat(stub, pool_id, standby)
        if place is None:
            return None
        self.on_seated(place)
        await self.attend(place)
        return place

    async def attend(self, place: Place) -> TableView:
        """Play at a table until it has closed; what the bot knew of it at the end."""
        view = TableView()
        answers: dict[str, _Answer] = {}
        share = random.SystemRandom().randbytes(16) if self.entropy else b""
        async with (
            self._channel("table", place.endpoint) as table,
            # The owner may be gone for good; whoever has its tables then, any replica knows.
            self._channel("table") as any_table,
            self._channel("evaluation") as evaluation,
        ):
            try:
                async for event in attend(
                    table, place.table_id, entropy=share, elsewhere=any_table
                ):
                    view.apply(event)
                    for decision_id in [key for key, one in answers.items() if one.task.done()]:
                        answers.pop(decision_id).task.result()  # a refusal ends the bot's game
                    for prompt in asked(event, view):
                        # A snapshot tells again what is being answered already.
                        if prompt.decision_id not in answers:
                            answer = _Answer(
                                self, (table, any_table), evaluation, view.copy(), prompt
                            )
                            answers[prompt.decision_id] = answer
                    if event.HasField("prompt_closed"):
                        given = answers.get(event.prompt_closed.decision_id)
                        if given is not None and not given.acting:
                            given.task.cancel()
                            answers.pop(event.prompt_closed.decision_id)
            except grpc.aio.AioRpcError as error:
                if explain(error).reason not in _GONE:
                    raise
            finally:
                for answer in answers.values():
                    answer.task.cancel()
                await asyncio.gather(
                    *(answer.task for answer in answers.values()), return_exceptions=True
                )
        return view

    async def leave(self) -> None:
        """Leave the queue, or the table after the hand in play; nothing where it is in neither."""
        async with self._channel("matchmaking") as channel, self._channel("table") as tables:
            stub = matchmaking_pb2_grpc.MatchmakingServiceStub(channel)
            try:
                status = await stub.GetPlayerStatus(matchmaking_pb2.GetPlayerStatusRequest())
                if status.table_id:
                    await table_pb2_grpc.TableServiceStub(tables).LeaveTable(
                        table_pb2.LeaveTableRequest(
                            table_id=status.table_id, mode=table_pb2.LEAVE_MODE_AFTER_HAND
                        )
                    )
                elif status.HasField("ticket"):
                    await stub.LeaveQueue(
                        matchmaking_pb2.LeaveQueueRequest(ticket_id=status.ticket.ticket_id)
                    )
            except grpc.aio.AioRpcError as error:
                # It was seated, or its table closed, meanwhile; or who asks asks again.
                if not is_lost(error) and error.code() not in _OVER:
                    raise

    async def _seat(
        self, stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub, pool_id: str, standby: bool
    ) -> Place | None:
        status = await stub.GetPlayerStatus(matchmaking_pb2.GetPlayerStatusRequest())
        if status.table_id:
            return await self._moved(Place(status.table_id, status.seat, status.endpoint))
        ticket = status.ticket
        is_queued = status.HasField("ticket")
        if is_queued and (ticket.pool_id, ticket.standby) != (pool_id, standby):
            is_queued = not await self._gave_back(stub, ticket)
        if not is_queued:
            answer = await stub.JoinQueue(
                matchmaking_pb2.JoinQueueRequest(
                    request_id=uuid.uuid4().hex,
                    pool_id=pool_id,
                    profile=self.name.encode(),
                    standby=standby,
                )
            )
            ticket = answer.ticket
        async for current in self._ticket(stub, ticket):
            if current.state == matchmaking_pb2.TICKET_STATE_ASSIGNED:
                return Place(current.table_id, current.seat, current.endpoint)
            if current.state == matchmaking_pb2.TICKET_STATE_LEFT:
                return None
            if current.state == matchmaking_pb2.TICKET_STATE_FAILED:
                problem = current.problem
                raise NotSeated(
                    f"{self.player_id}: {problem.message} [{problem.reason}]",
                    known.cure() if (known := find(problem.reason)) else "Queue again.",
                )
        return None

    async def _gave_back(
        self, stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub, ticket: matchmaking_pb2.Ticket
    ) -> bool:
        """Whether a ticket is out of its queue; not where it is seated meanwhile."""
        try:
            await stub.LeaveQueue(matchmaking_pb2.LeaveQueueRequest(ticket_id=ticket.ticket_id))
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
                return False
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        return True

    async def _moved(self, place: Place) -> Place:
        """A seat from before, with the address that its table's owner has now."""
        async with self._channel("table") as channel:
            stub = table_pb2_grpc.TableServiceStub(channel)
            answer = await stub.GetTable(table_pb2.GetTableRequest(table_id=place.table_id))
        return replace(place, endpoint=answer.table.endpoint or place.endpoint)

    async def _ticket(
        self, stub: matchmaking_pb2_grpc.MatchmakingServiceAsyncStub, ticket: matchmaking_pb2.Ticket
    ) -> AsyncIterator[matchmaking_pb2.Ticket]:
        """The states of a ticket until its outcome, over broken streams."""
        yield ticket
        request = matchmaking_pb2.WatchTicketRequest(ticket_id=ticket.ticket_id)
        async for _ in attempts():
            try:
                async for message in stub.WatchTicket(request):
                    yield message.ticket
            except grpc.aio.AioRpcError as error:
                if is_lost(error):
                    continue
                raise
            return

    def _channel(self, service: str, target: str | None = None) -> grpc.aio.Channel:
        return self.access.channel(service, f"player:{self.player_id}", [BOT_SCOPE], target=target)


def asked(event: events_pb2.TableEvent, view: TableView) -> Iterator[events_pb2.Prompt]:
    """What the bot is asked by an event, which `view` has seen: prompts, and whether it takes its
    seat back, is ready, or would dissolve the table (it would not: others' gains are at stake).
    """
    told = event.WhichOneof("kind")
    everything = told == "snapshot"
    if view.prompt is not None and (everything or told == "prompt"):
        yield view.prompt
    if view.back_decision_id and (everything or told == "trustee_changed"):
        yield _question(view.back_decision_id, "back")
    if view.ready_check and not view.own.ready and (everything or told == "ready_asked"):
        yield _question(view.ready_check, "ready", event.ready_asked.ms_left)
    if view.vote is not None and (everything or told == "vote_opened"):
        yield _question(view.vote.decision_id, "refuse", event.vote_opened.ms_left)


def _question(decision_id: str, answer: str, ms_left: int = 0) -> events_pb2.Prompt:
    """A question of which the bot knows the answer."""
    action = state_pb2.Action(kind=answer)
    return events_pb2.Prompt(
        decision_id=decision_id, kind=answer, actions=[action], ms_left=ms_left
    )


class _Answer:
    """The answer to one prompt, on its way."""

    def __init__(
        self,
        bot: Bot,
        tables: tuple[grpc.aio.Channel, grpc.aio.Channel],
        evaluation: grpc.aio.Channel,
        view: TableView,
        prompt: events_pb2.Prompt,
    ) -> None:
        """`tables`: the table's owner, and all replicas."""
        self.acting = False
        """It has been sent; before that it can be dropped without a trace."""
        self._bot = bot
        self._tables = [table_pb2_grpc.TableServiceStub(table) for table in tables]
        self._evaluation = evaluation
        self._view = view
        self._prompt = prompt
        self.task = asyncio.create_task(self._give())

    async def _give(self) -> None:
        bot, view, prompt = self._bot, self._view, self._prompt
        if prompt.ms_left == prompt.reserve_ms_left == 0:
            # History that is being replayed; if it is not, nothing else will come for a while.
            await asyncio.sleep(REPLAY_PAUSE_SECONDS)
        await asyncio.sleep(thinking_seconds(prompt, bot.turn_seconds, bot.chance))
        brain = Brain(_analyst(self._evaluation, view.rules), PLAYERS[bot.strength](bot.chance))
        action = await brain.choose(view, prompt)
        request = table_pb2.ActRequest(
            table_id=view.table_id, decision_id=prompt.decision_id, action=action
        )
        self.acting = True
        async for attempt in attempts():
            try:
                await self._tables[attempt > 0].Act(request)
            except grpc.aio.AioRpcError as error:
                if is_lost(error):
                    continue
                if explain(error).reason not in _TOO_LATE:
                    raise
            return


def _analyst(channel: grpc.aio.Channel, rules: rules_pb2.RuleSetChoice) -> Analyst:
    """Asks the evaluator, again and again where it does not answer."""
    stub = evaluation_pb2_grpc.EvaluationServiceStub(channel)

    async def analyse(hand: evaluation_pb2.Hand) -> evaluation_pb2.Analysis:
        request = evaluation_pb2.AnalyzeRequest(rules=rules, hand=hand, progress=True)
        async for _ in attempts():
            try:
                answer = await stub.Analyze(request)
            except grpc.aio.AioRpcError as error:
                if not is_lost(error):
                    raise
            else:
                return answer.analysis
        raise AssertionError("attempts end only by an answer")

    return analyse


async def attempts() -> AsyncIterator[int]:
    """Counts attempts for ever, each later than the one before."""
    attempt = 0
    pause_seconds = FIRST_PAUSE_SECONDS
    while True:
        yield attempt
        attempt += 1
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
