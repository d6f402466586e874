"""`fangcheng play` by scripted keys, at services that follow a script."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import pytest
from textual.pilot import Pilot

from fangcheng.evaluation.v1 import evaluation_pb2_grpc
from fangcheng.matchmaking.v1 import matchmaking_pb2, matchmaking_pb2_grpc
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2, table_pb2_grpc
from fangcheng_client.notation import parse
from fangcheng_suite.access import Access
from fangcheng_suite.play.app import PlayApp
from fangcheng_suite.play.places import LocalWay
from fangcheng_suite.play.screens import Card
from fangcheng_suite.play.session import Way
from fangcheng_suite.play.tongue import Tongue
from tests.suite.test_player import KEY, FakeEvaluator, FakeMatchmaker, FakeTable

HAND = "123456m99p78s3z777z"
ASSIGNED = matchmaking_pb2.Ticket(
    ticket_id="k1", state=matchmaking_pb2.TICKET_STATE_ASSIGNED, table_id="t1"
)
CLOSED = events_pb2.TableClosed(
    reason="hands_played",
    standings=[12, -4, -4, -4],
    ranking=[events_pb2.Rank(place=1, seat=0, player_id="ming", standing=12)],
)


def action(kind: str, tile: int = 0, **more: Any) -> state_pb2.Action:
    return state_pb2.Action(kind=kind, tile=tile, **more)


DISCARDS = [action("discard", tile) for tile in sorted(set(parse(HAND)))]


def prompt(kind: str, *actions: state_pb2.Action) -> events_pb2.Prompt:
    return events_pb2.Prompt(kind=kind, actions=actions, ms_left=15_000)


@dataclass
class Script(FakeTable):
    """A table where the player, seat 0, has `HAND`; the last tile is the one just drawn."""

    left: list[int] = field(default_factory=list)
    """How it was left."""
    answered: list[asyncio.Event] = field(default_factory=list)
    """The prompts, in their order."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def LeaveTable(
        self, request: table_pb2.LeaveTableRequest, context: Any
    ) -> table_pb2.LeaveTableResponse:
        self.left.append(request.mode)
        return table_pb2.LeaveTableResponse()

    def deal(self, rules: str = "baishan_kele") -> Script:
        table = state_pb2.Table(
            table_id="t1",
            rules=rules_pb2.RuleSetChoice(id=rules),
            hands=8,
            seats=[
                state_pb2.Seat(seat=seat, player_id=name, connected=True)
                for seat, name in enumerate(("ming", "Lan", "Zhu", "Mei"))
            ],
        )
        self.tell(table_opened=events_pb2.TableOpened(table=table, seat=0))
        self.tell(hand_started=events_pb2.HandStarted(hand_number=1, wall_tiles=136))
        hands = [events_pb2.SeatTiles(tiles=parse(HAND)[:-1])]
        hands += [events_pb2.SeatTiles(tiles=[0] * 13) for _ in range(3)]
        self.tell(dealt=events_pb2.Dealt(hands=hands, wall_tiles=84))
        self.tell(drawn=events_pb2.Drawn(seat=0, tile=47, origin="front", wall_tiles=83))
        return self

    def ask(self, asked: events_pb2.Prompt) -> Script:
        """The player is asked; once he has answered, the prompt is closed."""
        self.answered.append(asyncio.Event())
        number = str(len(self.answered))
        numbered = events_pb2.Prompt()
        numbered.CopyFrom(asked)
        numbered.decision_id = number
        self.tell(prompt=numbered)
        closed = events_pb2.PromptClosed(decision_id=number, why="answered")
        self.tell(self.answered[-1], prompt_closed=closed)
        return self

    def close(self) -> Script:
        """... and when it is `over`, the table closes."""
        self.tell(self.over, table_closed=CLOSED)
        return self

    async def Act(self, request: table_pb2.ActRequest, context: Any) -> table_pb2.ActResponse:
        response = await super().Act(request, context)
        if request.decision_id.isdigit():
            self.answered[int(request.decision_id) - 1].set()
        return response


@asynccontextmanager
async def playing(
    table: Script,
    matchmaker: FakeMatchmaker | None = None,
    *,
    chinese: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[tuple[PlayApp, Pilot[None]]]:
    """The game on a screen of 80 by 24, at services that are these fakes."""
    server = grpc.aio.server()
    table_pb2_grpc.add_TableServiceServicer_to_server(table, server)
    evaluation_pb2_grpc.add_EvaluationServiceServicer_to_server(FakeEvaluator(), server)
    matchmaking_pb2_grpc.add_MatchmakingServiceServicer_to_server(
        matchmaker or FakeMatchmaker(states=[ASSIGNED]), server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()

    async def open_way(tell: Callable[[str, str], None]) -> Way:
        return LocalWay(Access(lambda service: f"127.0.0.1:{port}", KEY), "ming")

    app = PlayApp(open_way, "practice", Tongue(chinese), name="Ming", clock=clock)
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            yield app, pilot
    finally:
        await app.ended()
        await server.stop(None)


def shown(app: PlayApp) -> str:
    """What is on the screen, the card where there is one."""
    if isinstance(app.screen, Card):
        return app.screen.shown
    return "\n".join(line.plain for line in app.picture(80, 24))


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait for a condition; what the screen shows tells why it does not hold."""
    for _ in range(6_000):
        if holds():
            return
        await pilot.pause(0.01)
    app: Any = pilot.app
    raise AssertionError(shown(app))


def is_asked(app: PlayApp, number: int = 1) -> bool:
    """Whether the prompt of that number is open, and not answered yet."""
    offer = app.scene.offer
    return offer is not None and offer.decision_id == str(number) and not app.scene.sent


async def sees(app: PlayApp, pilot: Pilot[None], text: str) -> None:
    await until(pilot, lambda: text in shown(app))


TURN = prompt("turn", *DISCARDS)
TING = prompt("turn", *DISCARDS, action("discard", 43, declare="ting"))
CLAIM = prompt(
    "claim",
    action("win", 25),
    action("pong", 25),
    action("kong", 25, meld="exposed_kong"),
    action("chi", 25, tiles=[23, 24]),
    action("chi", 25, tiles=[26, 27]),
    action("pass"),
    action("false_win"),
)


PIAO = prompt("before_deal", action("piao"), action("piao", amount=5))
PRESSED = [
    (TURN, "1", DISCARDS[0]),
    (TURN, "space", action("discard", 47)),
    (TURN, "enter", action("discard", 47)),
    (TURN, "left left left enter", action("discard", 43)),
    (TURN, "left right enter", action("discard", 47)),
    (TURN, "0", action("discard", 38)),
    (TURN, "minus", action("discard", 43)),
    (TING, "t minus", action("discard", 43, declare="ting")),
    (TING, "t enter", action("discard", 43, declare="ting")),
    (TING, "t t minus", action("discard", 43)),
    (TING, "t 1 minus", action("discard", 43, declare="ting")),
    (CLAIM, "w", action("win", 25)),
    (CLAIM, "p", action("pong", 25)),
    (CLAIM, "k", action("kong", 25, meld="exposed_kong")),
    (CLAIM, "c", action("chi", 25, tiles=[23, 24])),
    (CLAIM, "v", action("chi", 25, tiles=[26, 27])),
    (CLAIM, "x", action("pass")),
    (CLAIM, "1 space enter x", action("pass")),
    (CLAIM, "f x", action("pass")),
    (CLAIM, "f f", action("false_win")),
    (TURN, "a", action("trustee")),
    (PIAO, "2", action("piao", amount=5)),
]


async def test_each_key_does_what_is_shown_beside_it() -> None:
    table = Script().deal()
    for asked, _, _ in PRESSED:
        table.ask(asked)
    async with playing(table.close()) as (app, pilot):
        for number, (_, keys, done) in enumerate(PRESSED, 1):
            await until(pilot, lambda: is_asked(app, number))  # noqa: B023 # before it changes
            await pilot.press(*keys.split())
            await until(pilot, lambda: len(table.acts) == number)  # noqa: B023 # as above
            assert table.acts[-1].decision_id == str(number)
            assert table.acts[-1].action == done, keys


@pytest.mark.parametrize("chinese", [False, True])
async def test_all_that_may_be_answered_is_shown_with_its_key(chinese: bool) -> None:
    table = Script().deal().ask(CLAIM).close()
    async with playing(table, chinese=chinese) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        seen = shown(app)
        calls = (
            (
                " w  胡 五饼",
                " p  碰 五饼",
                " k  明杠 五饼",
                " c  吃 345饼",
                " v  吃 567饼",
                " x  过",
            )
            if chinese
            else (" w  win 5p", " p  pong 5p", " c  chi 345p", " v  chi 567p", " x  pass")
        )
        assert all(call in seen for call in calls), seen
        assert "15 s" in seen


async def test_the_clock_runs_and_a_reserve_is_shown_beside_it() -> None:
    asked = events_pb2.Prompt(
        decision_id="1", kind="turn", actions=DISCARDS, ms_left=3_000, reserve_ms_left=60_000
    )
    now = 100.0
    async with playing(Script().deal().ask(asked).close(), clock=lambda: now) as (app, pilot):
        await sees(app, pilot, " 3 s +60 s reserve")
        now = 102.0
        await sees(app, pilot, " 1 s +60 s reserve")
        now = 110.5
        await sees(app, pilot, " 0 s +53 s reserve")


async def test_a_hint_says_what_to_discard_and_points_at_it() -> None:
    async with playing(Script().deal().ask(TURN).close()) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        await pilot.press("h")
        await sees(app, pilot, "Try: discard West")
        assert "W → ready: 69s, 8 left" in shown(app)
        assert "★" in shown(app)
        await pilot.press("h")
        assert "Try:" not in shown(app)


async def test_who_is_too_late_is_told_so_and_nothing_breaks() -> None:
    table = Script(refusals=[(grpc.StatusCode.FAILED_PRECONDITION, "STALE_DECISION")])
    table.deal().ask(TURN).close()
    table.waits[6] = table.over  # the player is told late that his prompt is closed
    async with playing(table) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        await pilot.press("1")
        await sees(app, pilot, "Too late")
        table.over.set()
        await sees(app, pilot, "The table has closed")


async def test_a_connection_that_breaks_is_told_of_and_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Script(breaks=[4, 4, 4]).deal().ask(TURN).close()
    troubles = []
    async with playing(table) as (app, pilot):
        told = app.broke

        def broke(reason: str) -> None:
            told(reason)
            troubles.append(shown(app).splitlines()[0])

        monkeypatch.setattr(app, "broke", broke)
        await until(pilot, lambda: is_asked(app))
        assert table.attended_from == [0, 4, 4, 4]
        assert all("reconnecting" in line for line in troubles)
        assert "reconnecting" not in shown(app)
        await pilot.press("1")
        await until(pilot, table.acted.is_set)


async def test_an_answer_that_was_lost_is_sent_again() -> None:
    lost = (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    table = Script(refusals=[lost, lost]).deal().ask(TURN).close()
    async with playing(table) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        await pilot.press("1")
        await until(pilot, lambda: len(table.acts) == 3)
        assert len({act.SerializeToString() for act in table.acts}) == 1


async def test_a_seat_is_taken_back_from_the_table() -> None:
    table = Script().deal()
    changed = events_pb2.TrusteeChanged(seat=0, trustee=True, why="timeouts", decision_id="back-1")
    table.tell(trustee_changed=changed)
    async with playing(table.close()) as (app, pilot):
        await sees(app, pilot, "press a to take over")
        await pilot.press("a")
        await until(pilot, table.acted.is_set)
        assert table.acts[0].action == action("back")
        assert table.acts[0].decision_id == "back-1"


@pytest.mark.parametrize(
    ("event", "text", "key", "answer"),
    [
        ({"ready_asked": events_pb2.ReadyAsked(decision_id="d")}, "Press r", "r", "ready"),
        ({"vote_opened": events_pb2.VoteOpened(decision_id="d", seat=2)}, "y agree", "y", "agree"),
        (
            {"vote_opened": events_pb2.VoteOpened(decision_id="d", seat=2)},
            "n refuse",
            "n",
            "refuse",
        ),
    ],
    ids=["ready", "agree", "refuse"],
)
async def test_what_all_are_asked_has_its_key(
    event: dict[str, Any], text: str, key: str, answer: str
) -> None:
    table = Script().deal()
    table.tell(**event)
    async with playing(table.close()) as (app, pilot):
        await sees(app, pilot, text)
        await pilot.press(key)
        await until(pilot, table.acted.is_set)
        assert (table.acts[0].decision_id, table.acts[0].action) == ("d", action(answer))


async def test_leaving_asks_first_and_tells_the_table() -> None:
    after_hand, now = table_pb2.LEAVE_MODE_AFTER_HAND, table_pb2.LEAVE_MODE_NOW
    table = Script().deal()
    async with playing(table.close()) as (app, pilot):
        await until(pilot, lambda: app.scene.view.wall_tiles == 83)
        for keys, left in (("q escape", []), ("ctrl+c 1", [after_hand]), ("q 2", [1, now])):
            first, second = keys.split()
            await pilot.press(first)
            await sees(app, pilot, "an escape; you pay")
            await pilot.press(second)
            await until(pilot, lambda: table.left == left)  # noqa: B023 # before it changes
        await until(pilot, lambda: not app.is_running)


async def test_the_window_can_be_closed_and_the_seat_be_kept() -> None:
    table = Script().deal()
    async with playing(table.close()) as (app, pilot):
        await until(pilot, lambda: app.scene.view.wall_tiles == 83)
        await pilot.press("q", "3")
        await until(pilot, lambda: not app.is_running)
        assert table.left == []


async def test_who_waits_for_a_table_can_leave_the_queue() -> None:
    matchmaker = FakeMatchmaker(breaks=1_000)
    async with playing(Script(), matchmaker) as (app, pilot):
        await sees(app, pilot, "Waiting for three others")
        await pilot.press("q", "2")
        await until(pilot, lambda: matchmaker.left == ["k1"] and not app.is_running)


async def test_a_ticket_that_leads_nowhere_is_told_in_words_and_can_be_tried_again() -> None:
    failed = matchmaking_pb2.Ticket(ticket_id="k1", state=matchmaking_pb2.TICKET_STATE_FAILED)
    failed.problem.reason, failed.problem.message = "INSUFFICIENT_BALANCE", "no"
    matchmaker = FakeMatchmaker(states=[failed])
    async with playing(Script().deal().ask(TURN).close(), matchmaker) as (app, pilot):
        await sees(app, pilot, "The player has too little available")
        matchmaker.states = [ASSIGNED]
        await pilot.press("r")
        await until(pilot, lambda: is_asked(app))


async def test_a_seat_from_before_is_taken_up_again() -> None:
    matchmaker = FakeMatchmaker(
        matchmaking_pb2.GetPlayerStatusResponse(table_id="t1", seat=0, endpoint="127.0.0.1:1")
    )
    async with playing(Script().deal().ask(TURN).close(), matchmaker) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        assert matchmaker.joined == []


async def test_when_the_table_has_closed_another_follows_or_the_end() -> None:
    table = Script().deal().ask(TURN).close()
    matchmaker = FakeMatchmaker(states=[ASSIGNED])
    async with playing(table, matchmaker) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        await pilot.press("1")
        table.over.set()
        await sees(app, pilot, "The table has closed: all its hands are played")
        assert "1.  ming" in shown(app)
        await pilot.press("n")
        await until(pilot, lambda: len(matchmaker.joined) == 2)
        await sees(app, pilot, "The table has closed")
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running)


async def test_the_language_changes_and_the_help_tells_keys_and_fan() -> None:
    async with playing(Script().deal().ask(TURN).close()) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        await pilot.press("l")
        assert "轮到你了" in shown(app)
        await pilot.press("question_mark")
        assert "番种" in shown(app)
        await pilot.press("escape", "l")
        assert "Your turn" in shown(app)


async def test_a_click_selects_a_tile_and_a_second_one_discards_it() -> None:
    table = Script().deal().ask(TURN).close()
    async with playing(table) as (app, pilot):
        await until(pilot, lambda: is_asked(app))
        lines = shown(app).splitlines()
        row = next(number for number, line in enumerate(lines) if " 1m " in line)
        column = lines[row].index("1m")
        await pilot.click(offset=(column, row))
        assert app.scene.selected == 0
        assert not table.acts
        await pilot.click(offset=(column, row))
        await until(pilot, table.acted.is_set)
        assert table.acts[0].action == DISCARDS[0]
