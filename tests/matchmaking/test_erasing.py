"""Personal data in the queues: exported whole, and erased so that everything else stays."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from fangcheng.matchmaking.v1 import privacy_pb2 as wire
from fangcheng_client import explain
from fangcheng_kit.privacy import Erasure
from fangcheng_matchmaking.core import MatchState, Member, NewTicket, TicketState
from fangcheng_matchmaking.rooms import Guest, Room, RoomState
from fangcheng_matchmaking.sqlite import open_sqlite
from fangcheng_matchmaking.store import (
    Apart,
    ErasureReused,
    FinishedHand,
    LiveTicket,
    Store,
)
from tests.matchmaking.test_store import TERMS, match_of, new
from tests.matchmaking.world import World

SECRETS = ("小明的头像", "sha-of-a-device", "Li Ming", "steals tiles", "ming's sister")
ERASURE = Erasure(
    request_id="erase-1",
    player_id="p1",
    labels=frozenset({("nickname", ""), ("club", "Li Ming")}),
    reason="case 81",
)


def ticket(number: int, request_id: str = "r", **more: object) -> NewTicket:
    """A ticket of p1's party, or of another, with all that is personal in it."""
    member = Member(player_id=f"p{number}", profile="小明的头像".encode())
    others = (Member(player_id="p9", profile=b"of p9"),) if number == 1 else ()
    own = {
        "members": (member, *others),
        "labels": {"nickname": "Li Ming", "club": "17"},
        "traits": frozenset({"sha-of-a-device"}),
    }
    theirs = {
        "members": (Member(player_id=f"p{number}", profile=b"theirs"),),
        "labels": {"nickname": "Li Ming"},  # as the whole table of p1 has it
    }
    return new(number, request_id, **{**(own if number == 1 else theirs), **more})


async def play(store: Store) -> None:
    """p1 plays at a table with a party, was in a room, avoids somebody and is barred."""
    tickets = [(await store.join(ticket(number))).ticket for number in (1, 2, 3)]
    match = match_of(tickets, "m1")
    match = replace(match, rated=True, labels={"club": "Li Ming", "season": "3"})
    await store.form(match)
    await store.ask("m1")
    await store.seated("m1", "table-1", "host:1")
    await store.note(
        FinishedHand(
            cursor="1",
            table_id="table-1",
            number=1,
            rule_set="baishan_kele",
            player_ids=("p1", "p9", "p2", "p3"),
            nets=(3, -1, -1, -1),
        ),
        day=20_000,
    )
    await store.table_closed("table-1")
    room = Room(
        room_id="room-1",
        code="",
        request_id="open",
        opener_id="p1",
        template_id="friends",
        terms=TERMS,
        labels={"nickname": "ming's sister"},
        guests=(Guest(player_id="p1", profile="小明的头像".encode(), seat=0),),
        expires_ms=10,
    )
    await store.open_room(room, ["123456"], ticket(1, "room", room_id="room-1", pool_id=""))
    left = await store.leave("t1-room")
    assert left.state is TicketState.LEFT
    await store.keep_apart(Apart(player_id="p1", other_id="p5", origin="player"))
    await store.keep_apart(Apart(player_id="p6", other_id="p1", origin="player"))
    await store.keep_apart(
        Apart(
            player_id="p1",
            other_id="p2",
            origin="operator",
            reason="steals tiles",
            case_id="case-7",
        )
    )


async def said(store: Store, player_id: str) -> list[dict[str, Any]]:
    return [json.loads(line) async for line in store.lines(player_id)]


async def test_an_export_has_everything_about_a_player(store: Store) -> None:
    await play(store)
    lines = await said(store, "p1")
    assert [line["kind"] for line in lines] == [
        *("ticket", "ticket", "match", "room", "skill"),
        *("met", "met", "met", "barred", "avoided"),
    ]
    text = json.dumps(lines, ensure_ascii=False)
    assert [secret for secret in SECRETS if secret not in text] == []
    assert "of p9" not in text, "another's profile is another's"
    assert "of p9" in json.dumps(await said(store, "p9"))
    assert await said(store, "nobody") == []


async def test_what_is_personal_goes_and_the_records_stay(store: Store) -> None:
    await play(store)
    first, match = await store.ticket("t1-r"), await store.match("m1")
    others = (await store.join(ticket(2, "next", labels={"nickname": "Wu"}))).ticket
    assert "p1" in others.met
    done = await store.erase(ERASURE)
    assert not done.replayed
    everything = [await said(store, f"p{number}") for number in range(10)]
    text = json.dumps(everything, ensure_ascii=False)
    assert [secret for secret in SECRETS if secret in text] == []
    assert "of p9" in text
    assert await store.ticket("t1-r") == replace(
        first,
        members=(replace(first.members[0], profile=b""), first.members[1]),
        labels={"club": "17"},
        traits=frozenset(),
    )
    seats = tuple(
        replace(seat, profile=b"") if seat.player_id == "p1" else seat for seat in match.seats
    )
    assert await store.match("m1") == replace(match, seats=seats, labels={"season": "3"})
    assert (await store.match("m1")).state is MatchState.SEATED
    assert await store.ticket("t2-next") == others, "whoever has met him keeps his own labels"
    room = await store.room("room-1")
    assert (room.labels, room.state) == ({}, RoomState.CLOSED)
    assert [pair.other_id for pair in await store.apart("p1")] == ["p2"]
    assert [pair.reason for pair in await store.apart("p2")] == [""]
    assert [pair.other_id for pair in await store.apart("p6")] == ["p1"], "whom others avoid stays"
    assert (await store.skill("p1", "baishan_kele")).hands == 0
    assert (await store.skill("p2", "baishan_kele")).hands == 1
    assert [line["kind"] for line in await said(store, "p1")] == [
        *("ticket", "ticket", "match", "room", "barred", "erasure")
    ]


async def test_an_erasure_is_done_once_and_its_id_is_good_for_one(store: Store) -> None:
    await play(store)
    first = await store.erase(ERASURE)
    again = await store.erase(ERASURE)
    assert first.changed > 0
    assert (again.changed, again.replayed) == (0, True)
    with pytest.raises(ErasureReused):
        await store.erase(replace(ERASURE, player_id="p2"))
    with pytest.raises(ErasureReused):
        await store.erase(replace(ERASURE, labels=frozenset()))


async def test_reasons_of_bars_stay_where_texts_are_kept(store: Store) -> None:
    await play(store)
    await store.erase(replace(ERASURE, keep_texts=True))
    assert [pair.reason for pair in await store.apart("p2")] == ["steals tiles"]


async def test_who_queues_meanwhile_is_erased_by_a_repeat_when_he_has_left(store: Store) -> None:
    await play(store)
    await store.join(ticket(1, "again"))
    with pytest.raises(LiveTicket):
        await store.erase(ERASURE)
    await store.leave("t1-again")
    done = await store.erase(ERASURE)
    assert not done.replayed
    assert "小明的头像" not in json.dumps(await said(store, "p1"), ensure_ascii=False)


async def test_no_byte_of_it_is_left_in_the_file(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "matchmaking.db")
    await play(store)
    encoded = "5bCP5piO55qE5aS05YOP"  # the profile, as records have it
    for number in range(60):  # pages that were split, and rows that moved
        await store.join(ticket(1, f"more-{number}"))
        await store.leave(f"t1-more-{number}")
    assert left_in(tmp_path, *SECRETS, encoded) == sorted({*SECRETS[1:], encoded})
    await store.erase(ERASURE)
    assert left_in(tmp_path, *SECRETS, encoded) == []
    await store.close()
    assert left_in(tmp_path, *SECRETS, encoded) == []


def left_in(folder: Path, *secrets: str) -> list[str]:
    """Which of these are in a file of a folder."""
    files = b"".join(file.read_bytes() for file in folder.iterdir())
    return sorted(secret for secret in secrets if secret.encode() in files)


async def test_operators_erase_who_is_out_of_every_queue_and_table(world: World) -> None:
    operator = await world.privacy()
    request = wire.ErasePlayerRequest(request_id="e", player_id="amy", reason="case 81")
    amy = await world.player("amy")
    ticket_id = (await amy.join("free")).ticket_id
    with pytest.raises(grpc.aio.AioRpcError) as busy:
        await operator.ErasePlayer(request)
    told = explain(busy.value)
    assert (told.reason, told.metadata["ticket_id"]) == ("ALREADY_QUEUED", ticket_id)
    await amy.leave()
    assert not (await operator.ErasePlayer(request)).replayed
    assert (await operator.ErasePlayer(request)).replayed
    with pytest.raises(grpc.aio.AioRpcError) as reused:
        await operator.ErasePlayer(
            wire.ErasePlayerRequest(request_id="e", player_id="bo", reason="case 81")
        )
    assert explain(reused.value).reason == "REQUEST_ID_REUSED"
    exported = [
        json.loads(line)["kind"]
        async for message in operator.ExportPlayer(wire.ExportPlayerRequest(player_id="amy"))
        for line in message.lines
    ]
    assert exported == ["ticket", "erasure"]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await (await world.privacy("player:amy")).ErasePlayer(request)
    assert explain(refused.value).code is grpc.StatusCode.PERMISSION_DENIED
