"""A table's events in words, as `fangcheng watch` logs them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from rich.console import Console, RenderableType

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client.view import SeatView, TableView
from fangcheng_suite.render import Ink
from fangcheng_suite.watching import Listed, drawn_table, followed, listed, told
from tests.table.world import play_all, request, until, world


@pytest.mark.parametrize(
    ("rules", "declared", "chinese", "plain"),
    [
        ("baishan_kele", "ting", "听 declared wait", "declared wait"),
        ("baishan_dazui", "ting", "报听 declared wait", "declared wait"),
        ("shandong", "lou_open", "明楼 open lou", "open lou"),
        ("nowhere", "late_wait", "late wait", "late wait"),
    ],
)
def test_what_is_declared_has_the_name_that_its_rule_set_gives_it(
    rules: str, declared: str, chinese: str, plain: str
) -> None:
    seats = [SeatView(name=name) for name in ("Mei", "Lan", "Zhu", "Ju")]
    view = TableView(rules=rules_pb2.RuleSetChoice(id=rules), seats=seats)
    event = events_pb2.TableEvent(
        discarded=events_pb2.Discarded(seat=1, tile=11, declared=declared)
    )
    (line,) = told(event, view, Ink(chinese=True))
    assert line.plain == f"Lan discards 1万 and declares {chinese}"
    (line,) = told(event, view, Ink(chinese=False))
    assert line.plain == f"Lan discards 1m and declares {plain}"


SEAT = state_pb2.Seat(seat=2, player_id="Eve")
RANKING = [
    events_pb2.Rank(place=1, seat=3, player_id="Ju", standing=8),
    events_pb2.Rank(place=2, seat=0, player_id="Mei", standing=-8),
]


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (
            {"connection_changed": events_pb2.ConnectionChanged(seat=1, connected=False)},
            ["Lan is away"],
        ),
        ({"leave_announced": events_pb2.LeaveAnnounced(seat=1)}, ["Lan leaves after the hand"]),
        ({"ready_asked": events_pb2.ReadyAsked()}, ["Ready for the next hand?"]),
        ({"ready_given": events_pb2.ReadyGiven(seat=0)}, ["Mei is ready"]),
        (
            {"vote_opened": events_pb2.VoteOpened(seat=1)},
            ["Lan proposes to dissolve the table"],
        ),
        ({"vote_answered": events_pb2.VoteAnswered(seat=0, agrees=True)}, ["Mei agrees"]),
        ({"vote_answered": events_pb2.VoteAnswered(seat=0)}, ["Mei refuses"]),
        (
            {"vote_closed": events_pb2.VoteClosed(outcome="timed_out")},
            ["The vote is over: timed out"],
        ),
        (
            {"seat_vacated": events_pb2.SeatVacated(seat=2, why="not_ready")},
            ["Seat 2 waits for another player (not ready)"],
        ),
        (
            {"player_seated": events_pb2.PlayerSeated(seat=SEAT)},
            ["Eve takes seat 2; the table starts over"],
        ),
        (
            {"operator_acted": events_pb2.OperatorActed(verb="remove", seat=3, reason="Cheats.")},
            ["An operator: remove Ju. Cheats."],
        ),
        (
            {"operator_acted": events_pb2.OperatorActed(verb="void_hand", reason="Cut off.")},
            ["An operator: void hand. Cut off."],
        ),
        (
            {"table_closed": events_pb2.TableClosed(reason="hands_played", ranking=RANKING)},
            ["The table has closed: hands played.", "  1. Ju  +8", "  2. Mei  -8"],
        ),
    ],
)
def test_the_life_of_a_table_is_told_in_words(event: dict[str, Any], lines: list[str]) -> None:
    seats = [SeatView(name=name) for name in ("Mei", "Lan", "Zhu", "Ju")]
    view = TableView(seats=seats)
    view.table.seats.extend(state_pb2.Seat(seat=seat) for seat in range(4))
    message = events_pb2.TableEvent(**event)
    view.apply(message)
    assert [line.plain for line in told(message, view, Ink(chinese=False))] == lines


def test_a_picture_says_what_all_are_asked() -> None:
    seats = [SeatView(name=name, player_id=name) for name in ("Mei", "Lan", "Zhu", "Ju")]
    view = TableView(table_id="t1", seats=seats, ready_check="ready-1")
    seats[0].ready = seats[3].ready = True
    assert "Not yet: Lan, Zhu." in drawn(view)
    view.vote = state_pb2.TableVote(decision_id="vote-1", seat=3, agreed=[0, 3])
    assert "To dissolve the table: Mei, Ju agree so far." in drawn(view)
    seats[1].player_id = seats[1].name = ""
    assert "0  waits for another player" in drawn(view)


def drawn(view: TableView) -> str:
    return printed(drawn_table(view, Ink(chinese=False)))


def printed(what: RenderableType) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


@pytest.mark.parametrize("closed", [False, True])
async def test_the_list_of_tables_stays_up_to_date(tmp_path: Path, closed: bool) -> None:
    newest: Sequence[Listed] = []
    seen: list[str] = []

    async def follow(channel: grpc.aio.Channel) -> None:
        nonlocal newest
        async for newest in followed(channel, closed=closed):
            seen.append(" ".join(table.table_id for table in newest))

    async with world(tmp_path, summary_seconds=0.02) as service:
        operator = service.stub("operator")
        old = (await operator.CreateTable(request("r1"))).table.table_id
        await play_all(service, old)
        following = asyncio.create_task(follow(service.channel("operator")))
        await until(lambda: len(seen) > 0)
        before = [old] if closed else []
        assert seen == [" ".join(before)]
        new = (await operator.CreateTable(request("r2"))).table.table_id
        await until(lambda: seen[-1] == " ".join([new, *before]))
        lines = printed(listed(newest, Ink(chinese=False))).splitlines()
        assert [line.split()[0] for line in lines] == ["table", new, *before]
        assert "ann 0 (away)" in lines[1]
        await play_all(service, new)
        ids = [new, old] if closed else []
        await until(
            lambda: (
                [table.table_id for table in newest] == ids
                and all(table.phase == state_pb2.TABLE_PHASE_CLOSED for table in newest)
            )
        )
        following.cancel()
