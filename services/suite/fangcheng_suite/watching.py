"""`fangcheng tables` and `fangcheng watch`: live tables in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import grpc.aio
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2, table_pb2_grpc
from fangcheng_client import follow_tables, watch
from fangcheng_client.view import TableView, shown_name
from fangcheng_rules.errors import RulesError
from fangcheng_rules.rulesets import rule_set

from . import render, report
from .access import Access
from .errors import SuiteError, from_call
from .render import Ink

WINDS = (("东", "E"), ("南", "S"), ("西", "W"), ("北", "N"))
QUIET_SECONDS = 0.3
"""A stream that says nothing for so long has told everything that had happened."""

Listed = state_pb2.Table | table_pb2.TableSummary

DRAWS = {"back": " after a kong", "flower": " for a flower", "dealt_out": ", dealt out"}

PHASES = {
    state_pb2.TABLE_PHASE_BEFORE_DEAL: "before the deal",
    state_pb2.TABLE_PHASE_PLAYING: "playing",
    state_pb2.TABLE_PHASE_BETWEEN_HANDS: "between hands",
    state_pb2.TABLE_PHASE_CLOSED: "closed",
}


async def show_tables(
    access: Access, console: Console, ink: Ink, *, closed: bool, live: bool
) -> None:
    """Print the tables; live: as they change, until cancelled."""
    async with access.channel("table") as channel:
        if not live:
            stub = table_pb2_grpc.TableServiceStub(channel)
            console.print(listed(await _tables(stub, closed), ink))
            return
        with Live(console=console, auto_refresh=False) as screen:
            async for tables in followed(channel, closed=closed):
                screen.update(listed(tables, ink), refresh=True)


async def followed(channel: grpc.aio.Channel, *, closed: bool) -> AsyncIterator[Sequence[Listed]]:
    """The live tables, newest first, each time they have changed; closed: closed ones too.

    Raises SuiteError.
    """
    known: dict[str, Listed] = {}
    if closed:
        # The stream tells of those alone that close from now on.
        old = await _tables(table_pb2_grpc.TableServiceStub(channel), closed=True)
        known = {table.table_id: table for table in old if _is_closed(table)}
    try:
        async for news in follow_tables(channel):
            known.update((table.table_id, table) for table in news.changed)
            for table_id in news.gone:
                if not (closed and _is_closed(known[table_id])):
                    del known[table_id]
            yield sorted(
                known.values(), key=lambda table: table.created.ToNanoseconds(), reverse=True
            )
    except grpc.aio.AioRpcError as error:
        raise from_call(error, "following the tables") from error


def _is_closed(table: Listed) -> bool:
    return table.phase == state_pb2.TABLE_PHASE_CLOSED


async def find_table(access: Access, given: str | None) -> str:
    """The id of a table from the beginning of it; without one, the newest live table.

    Raises SuiteError where there is none, or more than one.
    """
    async with access.channel("table") as channel:
        stub = table_pb2_grpc.TableServiceStub(channel)
        if given is None:
            live = await _tables(stub, closed=False)
            if not live:
                raise SuiteError("no table is live", "Try `fangcheng tables --closed`.")
            return live[0].table_id
        found = [
            table.table_id
            for table in await _tables(stub, closed=True)
            if table.table_id.startswith(given)
        ]
    if given in found or len(found) == 1:
        return given if given in found else found[0]
    if found:
        raise SuiteError(f"{len(found)} tables begin with {given}", "Give more of the id.")
    raise SuiteError(f"there is no table {given}", "`fangcheng tables` lists the live ones.")


async def show_table(
    access: Access, console: Console, ink: Ink, table_id: str, *, once: bool = False
) -> None:
    """Draw a table as a spectator sees it, until it closes; once: as it stands, and be done.

    Without a terminal a line is printed for each event instead.
    """
    async with access.channel("table") as channel:
        events = watch(channel, table_id)
        if once:
            view = TableView()
            with contextlib.suppress(TimeoutError):
                async for event in _until_quiet(events):
                    view.apply(event)
            console.print(drawn_table(view, ink))
            return
        view = TableView()
        if not console.is_terminal:
            async for event in events:
                view.apply(event)
                for line in told(event, view, ink):
                    console.print(line)
            return
        with Live(console=console, refresh_per_second=8, vertical_overflow="crop") as screen:
            async for event in events:
                view.apply(event)
                screen.update(drawn_table(view, ink))
                if event.HasField("hand_settled"):
                    # Kept above the live picture, so that one can scroll back to it.
                    screen.console.print(_result(view, ink))


def drawn_table(view: TableView, ink: Ink) -> RenderableType:
    """The picture of a table."""
    if not view.table_id:
        return Text("The table has not been opened yet.")
    lines: list[Text] = [_title(view, ink), Text()]
    for seat in range(4):
        lines += _seat(view, seat, ink)
    if view.closed is not None:
        lines.append(Text(f"The table has closed: {_words(view.closed.reason)}.", "bold"))
        lines += _ranking(view.closed, [seat.name for seat in view.seats], ink)
    elif view.vote is not None:
        agreed = ", ".join(view.seats[seat].name for seat in view.vote.agreed)
        lines.append(Text(f"To dissolve the table: {agreed} agree so far.", "bold"))
    elif view.ready_check:
        missing = ", ".join(seat.name for seat in view.seats if not seat.ready)
        lines.append(Text(f"Ready for the next hand? Not yet: {missing}.", "bold"))
    elif view.ended is not None:
        lines.append(Text(report.headline(view, view.ended, ink), "bold"))
    else:
        lines.append(Text())
    return Group(*lines)


def told(event: events_pb2.TableEvent, view: TableView, ink: Ink) -> list[Text]:
    """An event in words, for a log; nothing where there is nothing to tell a person."""
    kind = event.WhichOneof("kind")
    names = [seat.name for seat in view.seats]
    if kind in ("table_opened", "snapshot"):
        return [_title(view, ink)]
    if kind == "hand_started":
        started = event.hand_started
        return [Text(f"Hand {started.hand_number}, dealer {names[started.dealer]}", "bold")]
    if kind == "piao_shown":
        chosen = zip(names, event.piao_shown.units, strict=True)
        return [Text("Piao: " + ", ".join(f"{name} {units}" for name, units in chosen))]
    if kind == "dealt":
        return _dealt(event.dealt, names, ink)
    if kind == "drawn":
        return _drawn(event.drawn, names, ink)
    if kind == "discarded":
        discarded = event.discarded
        line = Text(f"{names[discarded.seat]} discards ")
        line.append(render.short(discarded.tile, ink), render.style(discarded.tile))
        if discarded.declared:
            line.append(f" and declares {declared_text(view, discarded.declared, ink)}")
        return [line]
    if kind == "flower_laid":
        laid = event.flower_laid
        line = Text(f"{names[laid.seat]} lays down the flower ")
        return [line.append(render.short(laid.tile, ink), render.style(laid.tile))]
    if kind == "treasure_turned":
        return (
            [Text("There is no treasure any more")] if not view.treasure else [_treasure(view, ink)]
        )
    if kind == "kong_robbed":
        robbed = event.kong_robbed
        line = Text(f"{names[robbed.seat]} is robbed of ")
        return [line.append(render.short(robbed.tile, ink), render.style(robbed.tile))]
    if kind == "false_win_called":
        return [Text(f"{names[event.false_win_called.seat]} calls a win that is none", "yellow")]
    if kind == "melded":
        line = Text(f"{names[event.melded.seat]}: ")
        return [line.append_text(render.meld_text(event.melded.meld, ink))]
    if kind == "trustee_changed":
        changed = event.trustee_changed
        what = "is played for by the table" if changed.trustee else "plays again"
        return [Text(f"{names[changed.seat]} {what}")]
    if kind == "connection_changed":
        change = event.connection_changed
        return [
            Text(f"{names[change.seat]} {'is there' if change.connected else 'is away'}", "dim")
        ]
    if kind == "leave_announced":
        return [Text(f"{names[event.leave_announced.seat]} leaves after the hand")]
    if kind in ("ready_asked", "ready_given", "vote_opened", "vote_answered", "vote_closed"):
        return [Text(_said(event, names))]
    if kind == "seat_vacated":
        vacated = event.seat_vacated
        return [Text(f"Seat {vacated.seat} waits for another player ({_words(vacated.why)})")]
    if kind == "player_seated":
        seat = event.player_seated.seat
        return [Text(f"{names[seat.seat]} takes seat {seat.seat}; the table starts over", "bold")]
    if kind == "operator_acted":
        acted = event.operator_acted
        about = f" {names[acted.seat]}" if acted.HasField("seat") else ""
        return [Text(f"An operator: {_words(acted.verb)}{about}. {acted.reason}", "yellow")]
    if kind == "hand_settled":
        return [Text(), *result_lines(view, ink), Text()]
    if kind == "table_closed":
        return [
            Text(f"The table has closed: {_words(event.table_closed.reason)}."),
            *_ranking(event.table_closed, names, ink),
        ]
    return []


def _dealt(dealt: events_pb2.Dealt, names: list[str], ink: Ink) -> list[Text]:
    """The hands that the viewer sees."""
    lines = []
    for name, hand in zip(names, dealt.hands, strict=True):
        if any(hand.tiles):
            tiles = render.row(render.by_suit(list(hand.tiles)), ink)
            lines.append(Text(f"{name} is dealt ").append_text(tiles))
    return lines


def _drawn(drawn: events_pb2.Drawn, names: list[str], ink: Ink) -> list[Text]:
    """A draw of which the viewer sees the tile."""
    if not drawn.tile:
        return []
    line = Text(f"{names[drawn.seat]} draws ")
    line.append(render.short(drawn.tile, ink), render.style(drawn.tile))
    return [line.append(DRAWS.get(drawn.origin, ""))]


def _said(event: events_pb2.TableEvent, names: Sequence[str]) -> str:
    """What all are asked, and what they say to it."""
    match event.WhichOneof("kind"):
        case "ready_asked":
            return "Ready for the next hand?"
        case "ready_given":
            return f"{names[event.ready_given.seat]} is ready"
        case "vote_opened":
            return f"{names[event.vote_opened.seat]} proposes to dissolve the table"
        case "vote_answered":
            answered = event.vote_answered
            return f"{names[answered.seat]} {'agrees' if answered.agrees else 'refuses'}"
        case _:
            return f"The vote is over: {_words(event.vote_closed.outcome)}"


def _ranking(closed: events_pb2.TableClosed, names: Sequence[str], ink: Ink) -> list[Text]:
    return [
        Text(f"  {rank.place}. {names[rank.seat]}  {ink.signed(rank.standing)}")
        for rank in closed.ranking
    ]


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def _title(view: TableView, ink: Ink) -> Text:
    title = Text(f"Table {view.table_id}", "bold")
    title.append(f"  {_rules_name(view.rules.id, ink)}", "not bold")
    if view.hand_number:
        of = f" of {view.hands}" if view.hands else ""
        title.append(f"{ink.dot}hand {view.hand_number}{of}", "not bold")
        title.append(f"{ink.dot}{view.wall_tiles} tiles left", "not bold")
    if view.treasure:
        title.append(ink.dot, "not bold").append_text(_treasure(view, ink))
    return title


def _treasure(view: TableView, ink: Ink) -> Text:
    text = Text(f"{ink.both('宝牌', 'treasure')} ", "not bold")
    return text.append(render.short(view.treasure, ink), render.style(view.treasure))


def _seat(view: TableView, number: int, ink: Ink) -> list[Text]:
    seat = view.seats[number]
    wind = WINDS[(number - view.dealer) % 4][0 if ink.chinese else 1]
    turn = view.turn == number
    mark = ("▸ " if ink.chinese else "> ") if turn else "  "
    head = Text().append(mark, "bold yellow")
    head.append(f"{wind} ", "bold").append(seat.name, "bold cyan" if turn else "bold")
    head.append(f"  {ink.signed(seat.standing)}", "dim")
    if number == view.dealer:
        head.append(f"  {ink.both('庄', 'dealer')}")
    if seat.declared:
        head.append(f"  {declared_text(view, seat.declared, ink)}", "bold yellow")
    if seat.flowers:
        head.append("  ").append_text(render.row(seat.flowers, ink))
    if seat.false_wins:
        head.append(f"  {ink.both('诈胡', 'false win')}", "yellow")
    if seat.piao:
        head.append(f"  {ink.both('飘', 'piao')} {seat.piao}")
    if seat.trustee:
        head.append(f"  {ink.both('托管', 'played by the table')}", "dim")
    elif seat.player_id and not seat.connected:
        head.append("  away", "dim")
    if seat.ready and view.ready_check:
        head.append("  ready", "green")
    if not seat.player_id:
        head.append("  waits for another player", "dim")
    if seat.leaving:
        head.append("  leaves after the hand", "dim")
    hand = Text("    ")
    if any(seat.concealed):
        hand.append_text(render.row(render.by_suit(seat.concealed), ink))
    elif seat.concealed:
        back = "▒" if ink.chinese else "#"
        hand.append(f"{back * len(seat.concealed)} {len(seat.concealed)}", "dim")
    for meld in seat.melds:
        hand.append("   ").append_text(render.meld_text(meld, ink))
    river = Text("    ")
    if seat.river:
        river.append_text(render.row(seat.river, ink))
    return [head, hand, river, Text()]


def _result(view: TableView, ink: Ink) -> RenderableType:
    return Group(*result_lines(view, ink), Text())


def result_lines(view: TableView, ink: Ink) -> list[Text]:
    """How the last hand ended and what it paid; nothing while it is played."""
    if view.ended is None:
        return []
    line = Text(f"Hand {view.ended.hand_number}  ", "bold")
    line.append(report.headline(view, view.ended, ink))
    return [line, *report.hand_report(view, ink)]


def listed(tables: Sequence[Listed], ink: Ink) -> RenderableType:
    """Tables in a list, a line each."""
    if not tables:
        return Text("No table is live. `fangcheng up` keeps some; --closed lists old ones too.")
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("table", "rules", "hand", "phase", "players"):
        rows.add_column(column, no_wrap=column != "players", overflow="fold")
    for table in tables:
        of = f" of {table.hands}" if table.hands else ""
        players = ink.dot.join(
            f"{shown_name(seat)} {ink.signed(seat.standing)}"
            + ("" if seat.connected or _is_closed(table) else " (away)")
            for seat in table.seats
        )
        rows.add_row(
            table.table_id,
            _rules_name(_rules_of(table), ink),
            f"{table.hand_number}{of}",
            PHASES.get(table.phase, "unknown"),
            players,
        )
    return rows


def _rules_of(table: Listed) -> str:
    return table.rules.id if isinstance(table, state_pb2.Table) else table.rule_set


async def _tables(
    stub: table_pb2_grpc.TableServiceAsyncStub, closed: bool
) -> list[state_pb2.Table]:
    tables: list[state_pb2.Table] = []
    page = ""
    while True:
        request = table_pb2.ListTablesRequest(include_closed=closed, page_size=100, page_token=page)
        try:
            answer = await stub.ListTables(request)
        except grpc.aio.AioRpcError as error:
            raise from_call(error, "listing the tables") from error
        tables += answer.tables
        page = answer.next_page_token
        if not page:
            return tables


async def _until_quiet(
    events: AsyncIterator[events_pb2.TableEvent],
) -> AsyncIterator[events_pb2.TableEvent]:
    while True:
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                event = await anext(events)
        except StopAsyncIteration:
            return
        yield event


def declared_text(view: TableView, declared: str, ink: Ink) -> str:
    """What a seat has declared, as its rule set calls it: `明楼 open lou`."""
    try:
        known = rule_set(view.rules.id, view.rules.revision).declarations[declared]
    except (RulesError, KeyError):
        return declared.replace("_", " ")  # another package's, or a newer one's
    return ink.both(known.name_zh, known.name_en)


def _rules_name(rules_id: str, ink: Ink) -> str:
    try:
        rules = rule_set(rules_id)
    except RulesError:
        return rules_id
    return rules.name_zh if ink.chinese else rules.name_en
