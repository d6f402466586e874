"""The game on the screen: keys in, the table out. What the player does goes to the session."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar

import grpc.aio
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult, ScreenStackError
from textual.css.query import NoMatches
from textual.widget import Widget

from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2
from fangcheng_client import explain
from fangcheng_client.view import TableView
from fangcheng_suite.bots.player import Place
from fangcheng_suite.errors import SuiteError

from . import board, hints, screens, telling
from .board import Scene
from .choices import DECLARE_KEY, TILE_KEYS, in_order, offer_of
from .screens import Card
from .session import Refused, Session, Way
from .splash import splash
from .tongue import Tongue

TICK_SECONDS = 0.25
NEWS = 60
"""Lines of what happened that are kept."""
RESULT_COLUMNS = 72
"""What a card has room for on 80 columns."""


class Table(Widget):
    """The whole screen as the board draws it."""

    DEFAULT_CSS = """
    Table { width: 100%; height: 100%; background: #0e4436; color: #f2efe6; }
    """

    def __init__(self, draw: Callable[[int, int], list[Text]]) -> None:
        super().__init__()
        self._draw = draw

    def render(self) -> Text:
        """What there is to see now."""
        return Text("\n", no_wrap=True).join(self._draw(self.size.width, self.size.height))


class PlayApp(App[None]):
    """One person at a table."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "Fangcheng 方城"
    BINDINGS: ClassVar[list[Any]] = []

    def __init__(
        self,
        open_way: Callable[[Callable[[str, str], None]], Awaitable[Way]],
        pool_id: str,
        say: Tongue,
        *,
        name: str = "",
        keeps: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_way`: makes the way to the services, and is given what tells a stage of it (in
        Chinese and English). `keeps`: the services go on when this ends.
        """
        super().__init__()
        self.scene = Scene(say, TableView())
        self.stage = ("", "")
        """What is being waited for, before there is a table."""
        self._open_way = open_way
        self._pool_id = pool_id
        self._shown_name = name
        self._keeps = keeps
        self._clock = clock
        self._deadline = 0.0
        self._reserve_ends = 0.0
        self._began = clock()
        self._session: Session | None = None
        self._game: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._card: Card | None = None
        """The result of the last hand, while it is shown."""
        self.error: BaseException | None = None
        """What ended the app and is no one's business to hide."""

    # The life of it.

    def compose(self) -> ComposeResult:
        """One widget draws all."""
        yield Table(self.picture)

    def on_mount(self) -> None:
        """Begin: reach the services, then play."""
        self._game = asyncio.create_task(self._play(), name="the game")
        self._game.add_done_callback(self._game_over)
        self.set_interval(TICK_SECONDS, self._tick)

    async def ended(self) -> None:
        """Nothing of it runs any more. Raises what has ended it."""
        tasks = [task for task in (self._game, *self._calls) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.error is not None:
            raise self.error

    def _game_over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error
        self.exit()

    async def _play(self) -> None:
        """One table after the other, until the player has enough."""
        while True:
            try:
                if self._session is None:
                    way = await self._open_way(self.tell_stage)
                    self._session = Session(way, self, self._pool_id, self._shown_name)
                self.tell_stage("找座位…", "Looking for a seat…")
                view = await self._session.play()
                if view is None:
                    return
                card = screens.end_card(view, self.scene.say)
            except Refused as error:
                message, cure = telling.refusal(error.problem, self.scene.say)
                card = screens.trouble_card(message, cure, self.scene.say)
            except SuiteError as error:
                card = screens.trouble_card(error.message, error.hint, self.scene.say)
            self._drop_result()
            if await self._answer_of(card) == "q":
                return
            self.scene = Scene(self.scene.say, TableView())

    async def _answer_of(self, card: Card) -> str:
        """Show a card and wait for the key that answers it."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def answered(key: str | None) -> None:
            if not answer.done():
                answer.set_result(key or "q")

        await self.push_screen(card, answered)
        return await answer

    # What the session tells.

    def tell_stage(self, zh: str, en: str) -> None:
        """What is being waited for."""
        self.stage = zh, en
        self._refresh()

    def queued(self) -> None:
        """The player waits for a table."""
        self.tell_stage("排队等人…", "Waiting for three others…")

    def seated(self, place: Place) -> None:
        """A table has been found."""
        self.scene = Scene(self.scene.say, TableView())
        self.tell_stage("入座…", "Sitting down…")

    def broke(self, reason: str) -> None:
        """The connection is broken, and is being opened again."""
        say = self.scene.say
        self.scene.trouble = say("连接断了，正在重连…", "Connection lost, reconnecting…")
        self._refresh()

    def lives(self) -> None:
        """The connection is there (again)."""
        if self.scene.trouble:
            self.scene.trouble = ""
            self._refresh()

    def happened(self, event: events_pb2.TableEvent, view: TableView) -> None:
        """The next event, which `view` has seen."""
        scene = self.scene
        scene.view = view
        scene.news = [*scene.news, *telling.news(event, view, scene.say)][-NEWS:]
        kind = event.WhichOneof("kind")
        self._ask(event)
        if kind == "hand_started":
            scene.note = ""
        elif kind == "hand_ended":
            self._show_result()
        elif kind == "hand_settled" and self._card is not None:
            self._card.refresh_text()
        elif kind == "prompt_closed" and event.prompt_closed.why == "timed_out":
            scene.note = scene.say("时间到，牌桌替你打了。", "Time is up: the table has played.")
        self._refresh()

    def _ask(self, event: events_pb2.TableEvent) -> None:
        """Take up the open prompt, or that there is none."""
        scene, prompt = self.scene, self.scene.view.prompt
        if prompt is None:
            scene.offer = None
            scene.sent = False
            if event.WhichOneof("kind") in ("prompt_closed", "hand_ended"):
                scene.hint, scene.starred = [], frozenset()
            return
        if scene.offer is None or scene.offer.decision_id != prompt.decision_id:
            scene.declare = scene.sure_of = scene.note = ""
            scene.sent = False
            scene.hint, scene.starred = [], frozenset()
            scene.offer = offer_of(prompt)
            scene.ms_given = max(prompt.ms_left, 1)
            self._select(len(in_order(scene.view.own)) - 1)
            self._drop_result()
        if event.WhichOneof("kind") in ("prompt", "snapshot"):
            self._deadline = self._clock() + prompt.ms_left / 1_000
            self._reserve_ends = self._deadline + prompt.reserve_ms_left / 1_000
            self._tick()

    def _select(self, place: int) -> None:
        """Select the tile at a place, or the nearest before it that can be discarded."""
        scene = self.scene
        offer, order = scene.offer, in_order(scene.view.own)
        can = [
            one
            for one, tile in enumerate(order)
            if offer is not None and offer.may_discard(tile, scene.declare)
        ]
        scene.selected = min(can, key=lambda one: abs(one - place), default=place)

    # What the player does.

    def on_key(self, event: events.Key) -> None:
        """Every key at the table."""
        if isinstance(self.screen, Card):
            return
        event.stop()
        event.prevent_default()
        self.press(event.character if event.is_printable and event.character else event.key)

    def on_click(self, event: events.Click) -> None:
        """A click on a key is that key; on a tile, it selects it, and a second one discards it."""
        meta = event.style.meta
        if "key" in meta:
            self.press(meta["key"])
        elif "choice" in meta:
            if self.scene.selected == meta["choice"]:
                self._discard(meta["choice"])
            else:
                self.scene.selected = meta["choice"]
                self._refresh()

    def press(self, key: str) -> None:
        """Do what a key stands for now."""
        scene = self.scene
        scene.note = ""
        offer = None if scene.sent else scene.offer
        call = offer.call(key) if offer is not None else None
        if call is not None:
            if call.twice and scene.sure_of != key:
                scene.sure_of = key
            else:
                self._act(call.action)
        elif offer is not None and offer.discards and key in TILE_KEYS:
            self._discard(TILE_KEYS.index(key))
        elif offer is not None and offer.discards and key in (" ", "space"):
            self._discard_drawn()
        elif offer is not None and offer.discards and key == "enter":
            self._discard(scene.selected)
        elif offer is not None and offer.discards and key in ("left", "right"):
            self._move(-1 if key == "left" else 1)
        elif key == DECLARE_KEY and offer is not None and offer.declarations:
            self._declare()
        elif key in self._others:
            self._others[key](self)
        self._refresh()

    def _discard(self, place: int) -> None:
        scene, offer = self.scene, self.scene.offer
        order = in_order(scene.view.own)
        if offer is None or not 0 <= place < len(order):
            return
        action = offer.discards.get((order[place], scene.declare))
        if action is None:
            scene.note = scene.say("这张现在不能打。", "That tile cannot be discarded now.")
            return
        self._act(action)

    def _discard_drawn(self) -> None:
        own = self.scene.view.own
        if own.drawn is None:
            self.scene.note = self.scene.say("没有刚摸的牌。", "No tile was just drawn.")
            return
        self._discard(len(own.concealed) - 1)

    def _move(self, step: int) -> None:
        scene, offer = self.scene, self.scene.offer
        order = in_order(scene.view.own)
        for place in range(scene.selected + step, len(order) if step > 0 else -1, step):
            if offer is not None and offer.may_discard(order[place], scene.declare):
                scene.selected = place
                return

    def _declare(self) -> None:
        """Go on to the next declaration, and at last to none."""
        scene, prompt = self.scene, self.scene.view.prompt
        if scene.offer is None or prompt is None:
            return
        choices = ["", *scene.offer.declarations]
        scene.declare = choices[(choices.index(scene.declare) + 1) % len(choices)]
        scene.offer = offer_of(prompt, scene.declare)
        self._select(scene.selected)

    def _act(self, action: state_pb2.Action) -> None:
        offer = self.scene.offer
        if offer is not None:
            self.scene.sent = True
            self._call(self._answer(offer.decision_id, action))

    async def _answer(self, decision_id: str, action: state_pb2.Action) -> None:
        scene, say = self.scene, self.scene.say
        if self._session is None:
            return
        try:
            await self._session.act(decision_id, action)
        except grpc.aio.AioRpcError as error:
            problem = explain(error)
            if problem.reason == "STALE_DECISION":
                scene.note = say("晚了一步，已经定了。", "Too late: it has been decided already.")
            else:
                scene.note = telling.refusal(problem, say)[0]
            scene.sent = False
        if action.kind == "false_win":
            scene.sent = False
            scene.sure_of = ""
        self._refresh()

    def _decide(self, decision_id: str, kind: str) -> None:
        """Answer what all are asked, or take the seat back."""
        if decision_id:
            self._call(self._answer(decision_id, state_pb2.Action(kind=kind)))

    def _hint(self) -> None:
        scene = self.scene
        if scene.hint:
            scene.hint, scene.starred = [], frozenset()
        elif scene.view.own_seat is not None and len(scene.view.own.concealed) > 0:
            scene.note = scene.say("想一想…", "Thinking…")
            self._call(self._find_hint())

    async def _find_hint(self) -> None:
        scene, say, session = self.scene, self.scene.say, self._session
        if session is None:
            return
        if not session.way.has_hints:
            scene.note = say(
                "没有提示：启动时没给 --evaluation。", "No hints: --evaluation was not given."
            )
            self._refresh()
            return
        view, prompt = scene.view.copy(), scene.view.prompt
        try:
            found = await hints.hint(view, prompt, session.analyse, say)
        except grpc.aio.AioRpcError as error:
            scene.note = say("没有提示：", "No hint: ") + telling.refusal(explain(error), say)[0]
        else:
            scene.note = ""
            if scene.view.prompt is prompt:  # else it is about what was decided meanwhile
                scene.hint, scene.starred = found.lines, found.starred
                order = in_order(scene.view.own)
                self._select(next((order.index(tile) for tile in found.starred), scene.selected))
        self._refresh()

    def _take_over(self) -> None:
        view, offer = self.scene.view, self.scene.offer
        if view.back_decision_id:
            self._decide(view.back_decision_id, "back")
        elif offer is not None:
            self._decide(offer.decision_id, "trustee")
        else:
            say = self.scene.say
            self.scene.note = say("轮到你时再按。", "Press it when you are asked.")

    def _be_ready(self) -> None:
        self._decide(self.scene.view.ready_check, "ready")

    def _vote(self, answer: str) -> None:
        vote = self.scene.view.vote
        if vote is not None:
            self._decide(vote.decision_id, answer)

    def _turn_tongue(self) -> None:
        self.scene.say = self.scene.say.other

    def _help(self) -> None:
        self.push_screen(screens.help_card(self.scene.view.rules.id, self.scene.say))

    def _last_hand(self) -> None:
        if self.scene.view.ended is None:
            say = self.scene.say
            self.scene.note = say("这一局还没完。", "This hand is still being played.")
        else:
            self._show_result()

    def _leave(self) -> None:
        view, session = self.scene.view, self._session
        if session is None or (session.place is None and not session.ticket_id):
            self.exit()
            return
        card = screens.leave_card(
            self.scene.say,
            in_hand=view.started is not None and view.ended is None,
            seated=session.place is not None,
            keeps=self._keeps,
        )

        def answered(key: str | None) -> None:
            if key == screens.KEEP:
                self.exit()
            elif key == screens.AFTER_HAND:
                self._call(self._go(table_pb2.LEAVE_MODE_AFTER_HAND))
            elif key == screens.NOW:
                self._call(self._go(table_pb2.LEAVE_MODE_NOW))

        self.push_screen(card, answered)

    async def _go(self, mode: table_pb2.LeaveMode.ValueType) -> None:
        """Leave, in order: the services know it before the window closes."""
        if self._session is None:
            return
        try:
            await self._session.leave(mode)
        except grpc.aio.AioRpcError as error:
            self.scene.note = telling.refusal(explain(error), self.scene.say)[0]
            self._refresh()
            return
        if mode == table_pb2.LEAVE_MODE_NOW:
            self.exit()

    _others: ClassVar[dict[str, Callable[[PlayApp], None]]] = {
        "h": _hint,
        "l": _turn_tongue,
        "s": _last_hand,
        "a": _take_over,
        "r": _be_ready,
        "y": lambda app: app._vote("agree"),
        "n": lambda app: app._vote("refuse"),
        "?": _help,
        "q": _leave,
        "ctrl+c": _leave,
    }

    def _call(self, call: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._called)

    def _called(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.error = error
            self.exit()

    # The picture.

    def _show_result(self) -> None:
        if self._card is not None:
            return
        view = self.scene.view.copy()
        card = self._card = screens.result_card(
            lambda: view if self.scene.view.ended is None else self.scene.view,
            self.scene.say,
            RESULT_COLUMNS,
        )

        def answered(key: str | None) -> None:
            self._card = None

        self.push_screen(card, answered)

    def _drop_result(self) -> None:
        """The game goes on: whoever is asked must see the table."""
        if self._card is not None and self.screen is self._card:
            self._card.dismiss("enter")

    def _tick(self) -> None:
        scene, now = self.scene, self._clock()
        if scene.offer is not None:
            scene.ms_left = max(round((self._deadline - now) * 1_000), 0)
            ends = self._reserve_ends - max(now, self._deadline)
            scene.reserve_ms_left = max(round(ends * 1_000), 0)
            self._refresh()
        elif not scene.view.table_id:
            self._refresh()

    def picture(self, columns: int, rows: int) -> list[Text]:
        """What is to be seen below any card, in so many lines of so many columns."""
        scene = self.scene
        if not scene.view.table_id:
            seconds = self._clock() - self._began
            text = scene.say(*self.stage)
            return splash(scene.say, text, scene.trouble, seconds, columns, rows)
        return board.drawn(scene, columns, rows)

    def _refresh(self) -> None:
        with contextlib.suppress(NoMatches, ScreenStackError):  # not shown yet, or no longer
            self.query_one(Table).refresh()
