"""A bot as a client: it gets through what a network does to it.

The services here are fakes that follow a script: each event is told once what it waits for has
happened.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import grpc
import grpc.aio
import jwt
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status.rpc_status import to_status

from fangcheng.evaluation.v1 import evaluation_pb2, evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2, table_pb2_grpc
from fangcheng_client import TableView
from fangcheng_client.notation import parse
from fangcheng_rules.rulesets import rule_set
from fangcheng_suite.access import Access
from fangcheng_suite.bots import crowd
from fangcheng_suite.bots.player import Bot, NotSeated, Place

from .arena import Arena

KEY = "a development key of the tests, 40 chars"
HAND = "123456m99p78s3z777z"
TURN = events_pb2.Prompt(
    decision_id="1",
    kind="turn",
    ms_left=15_000,
    actions=[state_pb2.Action(kind="discard", tile=tile) for tile in sorted(set(parse(HAND)))],
)
PLACE = Place("t1", 0, "")


async def refuse(context: Any, code: grpc.StatusCode, reason: str) -> None:
    info = AnyMessage()
    info.Pack(ErrorInfo(reason=reason, domain="fangcheng"))
    await context.abort_with_status(
        to_status(Status(code=code.value[0], message=reason.lower(), details=[info]))
    )


@dataclass
class FakeTable(table_pb2_grpc.TableServiceServicer):
    """Tells scripted events; a stream ends after the last one."""

    events: list[events_pb2.TableEvent] = field(default_factory=list)
    waits: dict[int, asyncio.Event] = field(default_factory=dict)
    """What must have happened before the event of that number is told."""
    breaks: list[int] = field(default_factory=list)
    """The first streams break after these numbers, one each."""
    refusals: list[tuple[grpc.StatusCode, str]] = field(default_factory=list)
    """The first acts are refused so."""
    acts: list[table_pb2.ActRequest] = field(default_factory=list)
    subjects: list[dict[str, Any]] = field(default_factory=list)
    attended_from: list[int] = field(default_factory=list)
    acted: asyncio.Event = field(default_factory=asyncio.Event)
    endpoint: str = ""
    """Where the table's owner listens."""

    def tell(self, after: asyncio.Event | None = None, **kind: Any) -> None:
        number = len(self.events) + 1
        self.events.append(events_pb2.TableEvent(number=number, **kind))
        if after is not None:
            self.waits[number] = after

    async def GetTable(
        self, request: table_pb2.GetTableRequest, context: Any
    ) -> table_pb2.GetTableResponse:
        table = state_pb2.Table(table_id=request.table_id, endpoint=self.endpoint)
        return table_pb2.GetTableResponse(table=table)

    async def Attend(
        self, request: table_pb2.AttendRequest, context: Any
    ) -> AsyncIterator[table_pb2.AttendResponse]:
        bearer = dict(context.invocation_metadata())["authorization"].removeprefix("Bearer ")
        self.subjects.append(jwt.decode(bearer, KEY, algorithms=["HS256"], audience="fangcheng"))
        self.attended_from.append(request.from_number)
        last = self.breaks.pop(0) if self.breaks else len(self.events)
        for event in self.events[request.from_number : last]:
            if event.number in self.waits:
                await self.waits[event.number].wait()
            yield table_pb2.AttendResponse(event=event)
        if last < len(self.events):
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")

    async def Act(self, request: table_pb2.ActRequest, context: Any) -> table_pb2.ActResponse:
        self.acts.append(request)
        if self.refusals:
            code, reason = self.refusals.pop(0)
            if not self.refusals:
                self.acted.set()
            await refuse(context, code, reason)
        self.acted.set()
        return table_pb2.ActResponse()


@dataclass
class FakeEvaluator(evaluation_pb2_grpc.EvaluationServiceServicer):
    """Evaluates by the rules themselves, after some failures."""

    failures: int = 0
    asked: int = 0

    async def Analyze(
        self, request: evaluation_pb2.AnalyzeRequest, context: Any
    ) -> evaluation_pb2.AnalyzeResponse:
        self.asked += 1
        if self.asked <= self.failures:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "no evaluator")
        arena = Arena(rule_set(request.rules.id), random.Random(1))
        return evaluation_pb2.AnalyzeResponse(analysis=await arena.analyse(request.hand))


@dataclass
class FakeMatchmaker(matchmaking_pb2_grpc.MatchmakingServiceServicer):
    """Tells scripted states of one ticket; each stream may break first."""

    status: matchmaking_pb2.GetPlayerStatusResponse = field(
        default_factory=matchmaking_pb2.GetPlayerStatusResponse
    )
    states: list[matchmaking_pb2.Ticket] = field(default_factory=list)
    breaks: int = 0
    joined: list[matchmaking_pb2.JoinQueueRequest] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    too_late: tuple[grpc.StatusCode, str] | None = None
    """Who would leave the queue is refused so."""

    async def GetPlayerStatus(
        self, request: Any, context: Any
    ) -> matchmaking_pb2.GetPlayerStatusResponse:
        return self.status

    async def JoinQueue(
        self, request: matchmaking_pb2.JoinQueueRequest, context: Any
    ) -> matchmaking_pb2.JoinQueueResponse:
        self.joined.append(request)
        waiting = matchmaking_pb2.Ticket(ticket_id="k1", state=matchmaking_pb2.TICKET_STATE_WAITING)
        return matchmaking_pb2.JoinQueueResponse(ticket=waiting)

    async def LeaveQueue(
        self, request: matchmaking_pb2.LeaveQueueRequest, context: Any
    ) -> matchmaking_pb2.LeaveQueueResponse:
        if self.too_late:
            await refuse(context, *self.too_late)
        self.left.append(request.ticket_id)
        return matchmaking_pb2.LeaveQueueResponse()

    async def WatchTicket(
        self, request: Any, context: Any
    ) -> AsyncIterator[matchmaking_pb2.WatchTicketResponse]:
        if self.breaks:
            self.breaks -= 1
            yield matchmaking_pb2.WatchTicketResponse(
                ticket=matchmaking_pb2.Ticket(state=matchmaking_pb2.TICKET_STATE_WAITING)
            )
            await context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
        for ticket in self.states:
            yield matchmaking_pb2.WatchTicketResponse(ticket=ticket)


@asynccontextmanager
async def playing(
    table: FakeTable,
    evaluator: FakeEvaluator | None = None,
    matchmaker: FakeMatchmaker | None = None,
    turn_seconds: float = 0.0,
) -> AsyncIterator[Bot]:
    """A bot whose services are these fakes."""
    server = grpc.aio.server()
    table_pb2_grpc.add_TableServiceServicer_to_server(table, server)
    evaluation_pb2_grpc.add_EvaluationServiceServicer_to_server(
        evaluator or FakeEvaluator(), server
    )
    matchmaking_pb2_grpc.add_MatchmakingServiceServicer_to_server(
        matchmaker or FakeMatchmaker(), server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    access = Access(lambda service: f"127.0.0.1:{port}", KEY)
    try:
        yield Bot("bot-mei", access, "Mei", turn_seconds=turn_seconds, chance=random.Random(1))
    finally:
        await server.stop(None)


def opened(table: FakeTable) -> FakeTable:
    """A table at which seat 0 has been dealt the hand of these tests."""
    told = state_pb2.Table(
        table_id="t1",
        rules=rules_pb2.RuleSetChoice(id="baishan_kele"),
        seats=[state_pb2.Seat(seat=seat, player_id=f"p{seat}") for seat in range(4)],
    )
    table.tell(table_opened=events_pb2.TableOpened(table=told, seat=0))
    table.tell(hand_started=events_pb2.HandStarted(hand_number=1, wall_tiles=136))
    hands = [events_pb2.SeatTiles(tiles=parse(HAND))]
    hands += [events_pb2.SeatTiles(tiles=[0] * 13) for _ in range(3)]
    table.tell(dealt=events_pb2.Dealt(hands=hands, wall_tiles=83))
    return table


def asked(table: FakeTable, why: str = "answered", after: asyncio.Event | None = None) -> FakeTable:
    """... and is asked for a discard; the prompt closes after the event, or after the act."""
    opened(table)
    table.tell(prompt=TURN)
    table.tell(
        after or table.acted, prompt_closed=events_pb2.PromptClosed(decision_id="1", why=why)
    )
    table.tell(table_closed=events_pb2.TableClosed(reason="hands_played", standings=[0] * 4))
    return table


async def test_a_prompt_is_answered_with_one_of_its_actions() -> None:
    table = asked(FakeTable())
    async with playing(table) as bot:
        view = await bot.attend(PLACE)
    assert view.closed is not None
    [act] = table.acts
    assert (act.table_id, act.decision_id) == ("t1", "1")
    assert act.action == state_pb2.Action(kind="discard", tile=43)


@pytest.mark.parametrize("kind", ["turn", "back"])
async def test_what_a_snapshot_asks_is_answered(kind: str) -> None:
    """A bot that comes late knows the hand from it as if it had been there."""
    known = TableView()
    for event in opened(FakeTable()).events:
        known.apply(event)
    if kind == "turn":
        known.prompt = TURN
    else:
        known.back_decision_id = "back-2"
    table = FakeTable()
    table.tell(snapshot=known.to_snapshot())
    closing = events_pb2.TableClosed(reason="hands_played", standings=[0] * 4)
    table.tell(table.acted, table_closed=closing)
    async with playing(table) as bot:
        view = await bot.attend(PLACE)
    assert view.closed is not None
    [act] = table.acts
    if kind == "turn":
        assert (act.decision_id, act.action) == ("1", state_pb2.Action(kind="discard", tile=43))
    else:
        assert (act.decision_id, act.action) == ("back-2", state_pb2.Action(kind="back"))


async def test_a_bot_calls_with_a_token_of_its_own() -> None:
    table = asked(FakeTable())
    async with playing(table) as bot:
        await bot.attend(PLACE)
    [claims] = table.subjects
    assert claims["sub"] == "player:bot-mei"
    assert claims["scopes"] == ["bot"]


@pytest.mark.parametrize("after", [1, 3, 4, 5])
async def test_a_broken_stream_is_resumed_from_the_last_event(after: int) -> None:
    table = asked(FakeTable(breaks=[after]))
    async with playing(table) as bot:
        view = await bot.attend(PLACE)
    assert view.closed is not None
    assert table.attended_from == [0, after]
    assert len({act.SerializeToString() for act in table.acts}) == 1


async def test_an_act_without_an_answer_is_repeated_as_it_was() -> None:
    lost = (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    table = asked(FakeTable(refusals=[lost, lost, lost, lost, lost, lost]))
    closing = asyncio.Event()
    table.waits[5] = closing
    async with playing(table) as bot:
        game = asyncio.create_task(bot.attend(PLACE))
        await until(lambda: len(table.acts) == 7)
        closing.set()
        await game
    assert len({act.SerializeToString() for act in table.acts}) == 1


async def test_a_prompt_that_closed_meanwhile_is_let_go() -> None:
    table = asked(FakeTable(refusals=[(grpc.StatusCode.FAILED_PRECONDITION, "STALE_DECISION")]))
    async with playing(table) as bot:
        view = await bot.attend(PLACE)
    assert view.closed is not None
    assert len(table.acts) == 1


async def test_a_refused_act_ends_the_game_with_its_reason() -> None:
    table = asked(FakeTable(refusals=[(grpc.StatusCode.FAILED_PRECONDITION, "NOT_OFFERED")]))
    async with playing(table) as bot:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await bot.attend(PLACE)
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_bot_that_is_told_to_leave_leaves_the_queue_that_it_is_in() -> None:
    waiting = matchmaking_pb2.Ticket(ticket_id="k1")
    matchmaker = FakeMatchmaker(matchmaking_pb2.GetPlayerStatusResponse(ticket=waiting))
    async with playing(FakeTable(), matchmaker=matchmaker) as bot:
        await bot.leave()
        matchmaker.status = matchmaking_pb2.GetPlayerStatusResponse()
        await bot.leave()
    assert matchmaker.left == ["k1"]


async def test_a_withdrawn_prompt_is_not_answered_any_more() -> None:
    withdrawn = asyncio.Event()
    withdrawn.set()
    table = asked(FakeTable(), "withdrawn", withdrawn)
    async with playing(table, turn_seconds=60.0) as bot:
        view = await bot.attend(PLACE)
    assert view.closed is not None
    assert table.acts == []


async def test_history_is_not_answered_again() -> None:
    """Who attends from the beginning is told prompts that were answered long ago."""
    long_ago = asyncio.Event()
    long_ago.set()
    table = asked(FakeTable(), after=long_ago)
    table.events[3].prompt.ms_left = 0
    evaluator = FakeEvaluator()
    async with playing(table, evaluator) as bot:
        await bot.attend(PLACE)
    assert table.acts == []
    assert evaluator.asked == 0


async def test_a_seat_that_the_table_plays_for_is_taken_back() -> None:
    table = opened(FakeTable())
    changed = events_pb2.TrusteeChanged(seat=0, trustee=True, why="timeouts", decision_id="back-1")
    table.tell(trustee_changed=changed)
    back = events_pb2.TrusteeChanged(seat=0, trustee=False, why="back")
    table.tell(table.acted, trustee_changed=back)
    async with playing(table) as bot:
        await bot.attend(PLACE)
    [act] = table.acts
    assert act.decision_id == "back-1"
    assert act.action == state_pb2.Action(kind="back")


@pytest.mark.parametrize("late", [False, True], ids=["told", "snapshot"])
@pytest.mark.parametrize(
    ("question", "decision_id", "answer"),
    [
        ({"ready_asked": events_pb2.ReadyAsked(decision_id="ready-2")}, "ready-2", "ready"),
        ({"vote_opened": events_pb2.VoteOpened(decision_id="vote-1", seat=3)}, "vote-1", "refuse"),
    ],
)
async def test_what_all_are_asked_is_answered(
    question: dict[str, Any], decision_id: str, answer: str, late: bool
) -> None:
    """Ready at once; and what the others play for is not the bot's to dissolve."""
    table = opened(FakeTable())
    table.tell(**question)
    if late:
        known = TableView()
        for event in table.events:
            known.apply(event)
        table = FakeTable()
        table.tell(snapshot=known.to_snapshot())
    closing = events_pb2.TableClosed(reason="dissolved", standings=[0] * 4)
    table.tell(table.acted, table_closed=closing)
    async with playing(table) as bot:
        await bot.attend(PLACE)
    [act] = table.acts
    assert (act.decision_id, act.action) == (decision_id, state_pb2.Action(kind=answer))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, "REMOVED"),
        (grpc.StatusCode.ABORTED, "LEFT_TABLE"),
        (grpc.StatusCode.PERMISSION_DENIED, "NOT_SEATED"),
    ],
)
async def test_a_bot_that_is_no_longer_at_the_table_is_done_there(
    code: grpc.StatusCode, reason: str
) -> None:
    class Leaving(FakeTable):
        async def Attend(
            self, request: table_pb2.AttendRequest, context: Any
        ) -> AsyncIterator[table_pb2.AttendResponse]:
            for event in self.events:
                yield table_pb2.AttendResponse(event=event)
            await refuse(context, code, reason)

    async with playing(opened(Leaving())) as bot:
        if reason == "NOT_SEATED":
            with pytest.raises(grpc.aio.AioRpcError):
                await bot.attend(PLACE)
        else:
            assert (await bot.attend(PLACE)).closed is None


async def test_an_evaluator_that_is_away_is_waited_for() -> None:
    table = asked(FakeTable())
    async with playing(table, FakeEvaluator(failures=7)) as bot:
        await bot.attend(PLACE)
    assert len(table.acts) == 1


def assigned(**more: Any) -> matchmaking_pb2.Ticket:
    return matchmaking_pb2.Ticket(state=matchmaking_pb2.TICKET_STATE_ASSIGNED, **more)


async def test_a_queued_bot_plays_where_its_ticket_leads() -> None:
    table = asked(FakeTable())
    matchmaker = FakeMatchmaker(breaks=2)
    async with playing(table, matchmaker=matchmaker) as bot:
        endpoint = bot.access.target_of("table")
        matchmaker.states = [assigned(table_id="t1", seat=2, endpoint=endpoint)]
        seated: list[Place] = []
        bot.on_seated = seated.append
        place = await bot.play("kele-demo", standby=True)
    assert place == Place("t1", 2, endpoint)
    assert seated == [place]
    [joined] = matchmaker.joined
    assert (joined.pool_id, joined.standby, joined.profile) == ("kele-demo", True, b"Mei")


async def test_a_seat_from_before_is_taken_up_where_its_table_is_now() -> None:
    table = asked(FakeTable())
    matchmaker = FakeMatchmaker()
    async with playing(table, matchmaker=matchmaker) as bot:
        table.endpoint = bot.access.target_of("table")
        matchmaker.status = matchmaking_pb2.GetPlayerStatusResponse(
            table_id="t1", seat=1, endpoint="127.0.0.1:1"
        )
        place = await bot.play("kele-demo")
    assert place == Place("t1", 1, table.endpoint)
    assert matchmaker.joined == []


def queued(**more: Any) -> matchmaking_pb2.GetPlayerStatusResponse:
    """The status of one who has a ticket of another pool from a start before."""
    ticket = {"ticket_id": "k0", "pool_id": "kele-practice", **more}
    return matchmaking_pb2.GetPlayerStatusResponse(ticket=matchmaking_pb2.Ticket(**ticket))


@pytest.mark.parametrize("too_late", [None, (grpc.StatusCode.NOT_FOUND, "UNKNOWN_TICKET")])
@pytest.mark.parametrize("more", [{}, {"pool_id": "kele-demo", "standby": True}])
async def test_a_ticket_of_another_pool_or_on_standby_is_given_back(
    more: dict[str, Any], too_late: tuple[grpc.StatusCode, str] | None
) -> None:
    table = asked(FakeTable())
    matchmaker = FakeMatchmaker(queued(**more), too_late=too_late)
    async with playing(table, matchmaker=matchmaker) as bot:
        endpoint = bot.access.target_of("table")
        matchmaker.states = [assigned(table_id="t1", seat=2, endpoint=endpoint)]
        assert await bot.play("kele-demo") == Place("t1", 2, endpoint)
    assert matchmaker.left == ([] if too_late else ["k0"])
    [joined] = matchmaker.joined
    assert (joined.pool_id, joined.standby) == ("kele-demo", False)


async def test_a_ticket_of_another_pool_that_is_seated_meanwhile_is_played() -> None:
    table = asked(FakeTable())
    matchmaker = FakeMatchmaker(
        queued(), too_late=(grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_SEATED")
    )
    async with playing(table, matchmaker=matchmaker) as bot:
        endpoint = bot.access.target_of("table")
        matchmaker.states = [assigned(table_id="t1", seat=2, endpoint=endpoint)]
        assert await bot.play("kele-demo") == Place("t1", 2, endpoint)
    assert matchmaker.joined == []


async def test_a_ticket_that_failed_tells_why() -> None:
    problem = rules_pb2.Problem(reason="INSUFFICIENT_BALANCE", message="too little silver")
    failed = matchmaking_pb2.Ticket(state=matchmaking_pb2.TICKET_STATE_FAILED, problem=problem)
    async with playing(FakeTable(), matchmaker=FakeMatchmaker(states=[failed])) as bot:
        with pytest.raises(NotSeated, match="too little silver"):
            await bot.play("kele-demo")


async def test_trouble_that_stays_the_same_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "FIRST_PAUSE_SECONDS", 0.0)

    class Wealthy(crowd.Bank):
        async def give(self, player_id: str, amount: int = 0) -> int:
            return 0

    class Unlucky(Bot):
        troubles: ClassVar[list[str]] = ["frozen", "frozen", "", "frozen", "paused", "frozen"]

        async def play(self, pool_id: str, *, standby: bool = False) -> Place | None:
            if not self.troubles:
                raise asyncio.CancelledError
            trouble = self.troubles.pop(0)
            if trouble:
                raise NotSeated(trouble, "Queue again.")
            return None

    access = Access(lambda service: "127.0.0.1:1", KEY)
    bot = Unlucky("bot-mei", access)
    told: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        await crowd.keep_playing(bot, "kele-demo", Wealthy(access), report=told.append)
    assert told == ["frozen", "frozen", "paused", "frozen"]


async def test_a_ticket_that_was_left_leads_nowhere() -> None:
    left = matchmaking_pb2.Ticket(state=matchmaking_pb2.TICKET_STATE_LEFT)
    async with playing(FakeTable(), matchmaker=FakeMatchmaker(states=[left])) as bot:
        assert await bot.play("kele-demo") is None


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition; the test's own time-out ends what never comes."""
    while not holds():  # noqa: ASYNC110 (nothing tells when it holds)
        await asyncio.sleep(0.01)
