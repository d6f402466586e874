"""The seats of many players on one stream, over broken connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import grpc
import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2, table_pb2
from fangcheng_client import ManySeats, explain, many, streams
from fangcheng_client.streams import MissingEvent
from fangcheng_kit import errors

from .test_streams import AWAY, Scripted, connected, snapshot, unknown

TAKE = "take"
"""A step of a script: the table takes the next request."""
HANG = "hang"
PASS = state_pb2.Action(kind="pass")


class Tables(Scripted):
    """Tables whose streams go as they are told, one list of steps for each that is opened."""

    def __init__(self, *scripts: Sequence[Any]) -> None:
        self.scripts = [list(script) for script in scripts]
        self.asked: list[list[str]] = []
        """What was asked on each stream."""

    async def AttendMany(self, requests: Any, context: Any) -> AsyncIterator[Any]:
        asked: list[str] = []
        self.asked.append(asked)
        for step in self.scripts.pop(0):
            if step == TAKE:
                asked.append(said(await anext(requests)))
            elif step == HANG:
                await asyncio.Event().wait()
            elif isinstance(step, Exception):
                raise step
            else:
                yield step


def said(request: table_pb2.AttendManyRequest) -> str:
    match request.WhichOneof("message"):
        case "add":
            add = request.add
            muted = "".join(f" not {seat}" for seat in add.muted)
            whole = " whole" if add.snapshot else ""
            return f"add {add.player_id} {add.from_number}{whole}{muted}"
        case "remove":
            return f"remove {request.remove.player_id}"
        case _:
            return f"act {request.act.player_id} {request.act.act.decision_id}"


def events(*told: tuple[str, int | events_pb2.TableEvent], acted: str = "") -> Any:
    message = table_pb2.AttendManyResponse()
    for player, event in told:
        entry = message.events.events.add(player_id=player, table_id="t1")
        drawn = events_pb2.Drawn(seat=1)
        made = events_pb2.TableEvent(number=event, drawn=drawn) if isinstance(event, int) else event
        entry.event.CopyFrom(made)
    if acted:
        player, decision_id = acted.split()
        message.events.acted.add(player_id=player, table_id="t1", decision_id=decision_id)
    return message


def problem(player: str, reason: str, decision_id: str = "") -> Any:
    told = table_pb2.SeatProblem(player_id=player, table_id="t1", decision_id=decision_id)
    told.problem.CopyFrom(rules_pb2.Problem(reason=reason))
    return table_pb2.AttendManyResponse(problem=told)


def done(player: str) -> Any:
    return table_pb2.AttendManyResponse(done=table_pb2.SeatDone(player_id=player, table_id="t1"))


def told(news: Any) -> str:
    match news:
        case table_pb2.SeatEvent():
            return f"{news.player_id} {news.event.number}"
        case table_pb2.SeatActed():
            return f"{news.player_id} acted {news.decision_id}"
        case table_pb2.SeatProblem():
            return f"{news.player_id} {news.problem.reason} {news.decision_id}".strip()
        case table_pb2.SeatDone():
            return f"{news.player_id} done"
        case _:
            return f"{news.player_id} hears {news.talk.phrase}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(streams, "LONGEST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(many, "AGAIN_SECONDS", 0.01)


async def played(tables: Tables, *seats: str, acts: Sequence[str] = (), **more: Any) -> list[str]:
    """All that is told; `acts` are given with the first event of their seats."""
    seen, left = [], list(acts)
    async with (
        connected(tables, subject="service:gateway", scopes=["act_as"]) as channel,
        aclosing(ManySeats(channel, **more)) as following,
    ):
        for player in seats:
            following.add(player, "t1")
        async for news in following:
            seen.append(told(news))
            for act in [one for one in left if one.startswith(news.player_id)]:
                left.remove(act)
                player, decision_id = act.split()
                following.act(player, "t1", decision_id, PASS)
    return seen


async def test_a_broken_stream_goes_on_with_every_seat_where_it_was() -> None:
    tables = Tables(
        [TAKE, TAKE, events(("ming", 1), ("lan", 1), ("ming", 2)), AWAY],
        [TAKE, TAKE, events(("ming", 2), ("ming", 3), ("lan", 2)), done("ming"), AWAY],
        [TAKE, events(("lan", 3), ("ming", 4)), done("lan")],
    )
    breaks: list[Any] = []
    assert await played(tables, "ming", "lan", on_break=breaks.append) == [
        *("ming 1", "lan 1", "ming 2", "ming 3", "lan 2", "ming done", "lan 3", "lan done"),
    ]
    assert tables.asked == [
        ["add ming 0", "add lan 0"],
        ["add ming 2", "add lan 1"],
        ["add lan 2"],
    ]
    assert [explain(error).reason for error in breaks] == ["DRAINING"] * 2


async def test_acts_that_were_not_answered_are_given_again() -> None:
    tables = Tables(
        [TAKE, events(("ming", 1)), TAKE, TAKE, events(acted="ming 1-1"), AWAY],
        [TAKE, TAKE, problem("ming", "JOURNAL_UNAVAILABLE", "1-2"), TAKE,
         events(("ming", 2), acted="ming 1-2"), events(acted="ming 1-2"), done("ming")],
    )  # fmt: skip
    assert await played(tables, "ming", acts=["ming 1-1", "ming 1-2"]) == [
        *("ming 1", "ming acted 1-1", "ming 2", "ming acted 1-2", "ming done"),
    ]
    assert tables.asked == [
        ["add ming 0", "act ming 1-1", "act ming 1-2"],
        ["add ming 1", "act ming 1-2", "act ming 1-2"],
    ]


async def test_an_act_that_is_refused_is_told_of_once_and_not_given_again() -> None:
    tables = Tables(
        [TAKE, events(("ming", 1)), TAKE, *[problem("ming", "STALE_DECISION", "1-1")] * 2, AWAY],
        [TAKE, done("ming")],
    )
    seen = await played(tables, "ming", acts=["ming 1-1"])
    assert seen == ["ming 1", "ming STALE_DECISION 1-1", "ming done"]
    assert tables.asked == [["add ming 0", "act ming 1-1"], ["add ming 1"]]


async def test_a_seat_that_moves_to_another_replica_is_added_again_and_its_act_after_it() -> None:
    moved = [problem("ming", "MOVED"), problem("ming", "NOT_ADDED", "1-1")]
    tables = Tables([TAKE, events(("ming", 1)), TAKE, *moved, TAKE, TAKE,
                     events(("ming", 2), acted="ming 1-1"), done("ming")])  # fmt: skip
    seen = await played(tables, "ming", acts=["ming 1-1"])
    assert seen == ["ming 1", "ming 2", "ming acted 1-1", "ming done"]
    assert tables.asked == [["add ming 0", "act ming 1-1", "add ming 1", "act ming 1-1"]]


async def test_what_does_not_pass_is_told_of_and_forgotten() -> None:
    tables = Tables(
        [TAKE, TAKE, problem("ming", "ATTENDED_ELSEWHERE"), events(("ming", 1), ("lan", 1)), AWAY],
        [TAKE, done("lan")],
    )
    assert await played(tables, "ming", "lan") == ["ming ATTENDED_ELSEWHERE", "lan 1", "lan done"]
    assert tables.asked[1] == ["add lan 1"]


async def test_what_does_not_pass_for_long_is_told_of_too() -> None:
    moved = [problem("ming", "MOVED"), problem("lan", "REPLICA_BUSY", "1-1")]
    tables = Tables([TAKE, TAKE, events(("lan", 1)), TAKE, *moved, done("lan")])
    seen = await played(tables, "ming", "lan", acts=["lan 1-1"], give_up_seconds=-1.0)
    assert seen == ["lan 1", "ming MOVED", "lan REPLICA_BUSY 1-1", "lan done"]


async def test_a_kind_that_is_not_known_is_made_up_for_by_a_snapshot() -> None:
    tables = Tables([TAKE, events(("ming", 1), ("ming", unknown(2)), ("ming", 3)), TAKE,
                     events(("ming", snapshot(3)), ("ming", 4)), done("ming")])  # fmt: skip
    assert await played(tables, "ming") == ["ming 1", "ming 3", "ming 4", "ming done"]
    assert tables.asked == [["add ming 0", "add ming 2 whole"]]


@pytest.mark.parametrize("second", [3, snapshot(0)], ids=["gap", "snapshot that leads back"])
async def test_an_event_that_is_left_out_is_a_fault(second: Any) -> None:
    with pytest.raises(MissingEvent):
        await played(Tables([TAKE, events(("ming", 1), ("ming", second))]), "ming")


async def test_seats_are_removed_and_muted_on_the_way() -> None:
    talk = table_pb2.SeatTalk(player_id="ming", table_id="t1", talk={"phrase": "hello"})
    heard = table_pb2.AttendManyResponse(talk=talk)
    beat = table_pb2.AttendManyResponse(heartbeat=events_pb2.Heartbeat())
    tables = Tables([TAKE, TAKE, events(("ming", 1), ("lan", 1)), TAKE, TAKE, heard, beat,
                     events(("lan", 2), ("ming", 2)), done("lan"), done("ming")])  # fmt: skip
    seen: list[str] = []
    beats: list[Any] = []
    async with (
        connected(tables, subject="service:gateway", scopes=["act_as"]) as channel,
        aclosing(ManySeats(channel, on_heartbeat=beats.append)) as following,
    ):
        following.add("ming", "t1")
        following.add("lan", "t1")
        async for news in following:
            seen.append(told(news))
            if seen[-1] == "lan 1":
                following.remove("lan", "t1")
                following.add("ming", "t1", muted=[2])
    assert seen == ["ming 1", "lan 1", "ming hears hello", "ming 2", "ming done"]
    assert tables.asked == [["add ming 0", "add lan 0", "remove lan", "add ming 1 not 2"]]
    assert len(beats) == 1


@pytest.mark.parametrize(
    "late",
    [
        [events(("ming", 5), ("ming", 6))],
        [events(("ming", snapshot(2)))],
        [events(("ming", 5)), done("ming"), problem("ming", "NOT_ADDED")],
        [problem("ming", "ATTENDED_ELSEWHERE"), problem("ming", "NOT_ADDED")],
    ],
    ids=["events", "a snapshot", "the end", "a problem"],
)
async def test_a_seat_goes_back_to_an_earlier_number_though_more_is_on_its_way(late: Any) -> None:
    again = [TAKE] if len(late) > 1 else []
    tables = Tables([TAKE, events(*(("ming", number) for number in range(1, 5))), TAKE, TAKE,
                     *late, *again, events(("ming", 4), ("ming", 5)), events(("ming", 6)),
                     done("ming")])  # fmt: skip
    seen: list[str] = []
    async with (
        connected(tables, subject="service:gateway", scopes=["act_as"]) as channel,
        aclosing(ManySeats(channel)) as following,
    ):
        following.add("ming", "t1")
        async for news in following:
            seen.append(told(news))
            if seen == ["ming 1", "ming 2", "ming 3", "ming 4"]:
                following.remove("ming", "t1")
                following.add("ming", "t1", 3)
    assert seen == [*(f"ming {number}" for number in (1, 2, 3, 4, 4, 5, 6)), "ming done"]
    adds = ["add ming 3"] * (1 + len(again))
    assert tables.asked == [["add ming 0", "remove ming", *adds]]


async def test_a_seat_that_is_added_again_after_all_was_told_ends() -> None:
    tables = Tables([TAKE, events(("ming", 1)), TAKE, TAKE, done("ming"), TAKE, done("ming")])
    seen: list[str] = []
    async with (
        connected(tables, subject="service:gateway", scopes=["act_as"]) as channel,
        aclosing(ManySeats(channel)) as following,
    ):
        following.add("ming", "t1")
        async for news in following:
            seen.append(told(news))
            if seen == ["ming 1"]:
                following.remove("ming", "t1")
                following.add("ming", "t1", 1)
    assert seen == ["ming 1", "ming done"]


async def test_a_seat_may_begin_with_a_snapshot() -> None:
    tables = Tables([TAKE, events(("ming", 8)), events(("ming", snapshot(8)), ("ming", 9)),
                     done("ming")])  # fmt: skip
    async with (
        connected(tables, subject="service:gateway", scopes=["act_as"]) as channel,
        aclosing(ManySeats(channel)) as following,
    ):
        following.add("ming", "t1", 7, snapshot=True)
        seen = [told(news) async for news in following]
    assert seen == ["ming 8", "ming 9", "ming done"]
    assert tables.asked == [["add ming 7 whole"]]


async def test_a_stream_that_hangs_counts_as_broken_and_what_does_not_pass_is_raised() -> None:
    denied = errors.PermissionDenied("NOT_A_GATEWAY", "Not yours.")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await played(Tables([TAKE, HANG], [TAKE, denied]), "ming", silence_seconds=0.1)
    assert explain(caught.value).reason == "NOT_A_GATEWAY"
