"""`Act` and `LeaveTable` over gRPC: once each, refused without effect, known again."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import grpc.aio

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng.table.v1 import table_pb2 as wire
from fangcheng_client import explain

from .world import (
    PLAYERS,
    Player,
    first_prompt,
    play_all,
    refused,
    request,
    simple,
    until_attended,
    until_begun,
)

# Act.


async def test_acts_that_cannot_be_taken_change_nothing(service):
    made = await service.stub("operator").CreateTable(request())
    table_id = made.table.table_id
    for name in PLAYERS[1:]:
        await until_attended(service, table_id, name)
    call, prompt = await first_prompt(service, table_id, "ann")
    assert prompt.kind == "before_deal"
    assert 0 < prompt.ms_left <= 10_000
    stub = service.player("ann")

    def act(decision_id: str, **action: Any) -> Any:
        return stub.Act(
            wire.ActRequest(
                table_id=table_id, decision_id=decision_id, action=state_pb2.Action(**action)
            )
        )

    this = prompt.decision_id
    stale = ("FAILED_PRECONDITION", "STALE_DECISION", "decision_id")
    not_offered = ("FAILED_PRECONDITION", "NOT_OFFERED", "action")
    assert await refused(act("1-2", kind="piao", amount=5)) == stale
    assert await refused(act("9-1", kind="piao", amount=5)) == stale
    assert await refused(act("nonsense", kind="piao", amount=5)) == stale
    assert await refused(act("back-1", kind="back")) == stale
    assert await refused(act(this, kind="piao", amount=-5)) == not_offered
    assert await refused(act(this, kind="piao", amount=7)) == not_offered
    assert await refused(act(this, kind="discard", tile=11)) == not_offered
    assert await refused(act(this, kind="conjure")) == not_offered
    assert await refused(act(this, kind="discard", tile=10)) == (*not_offered[:2], "action.tile")
    assert await refused(act(this, kind="chi", tile=11, tiles=[12, 40])) == (
        *not_offered[:2],
        "action.tiles",
    )
    assert await refused(act(this, kind="kong", tile=11, meld="big")) == (
        *not_offered[:2],
        "action.meld",
    )
    assert await refused(act(this, kind="back")) == (*not_offered[:2], "action.kind")
    assert (await refused(act("", kind="pass")))[:2] == ("INVALID_ARGUMENT", "INVALID_REQUEST")
    # The prompt is as open as before, and takes its answer once.
    assert not (await act(this, kind="piao", amount=5)).replayed
    assert (await act(this, kind="piao", amount=5)).replayed
    assert await refused(act(this, kind="piao", amount=10)) == stale
    call.cancel()


async def test_a_player_hands_the_seat_to_the_table_and_takes_it_back(service):
    made = await service.stub("operator").CreateTable(request())
    table_id = made.table.table_id
    streams = [await until_attended(service, table_id, name) for name in PLAYERS[1:]]
    call, prompt = await first_prompt(service, table_id, "ann")
    stub = service.player("ann")

    def act(decision_id: str, **action: Any) -> Any:
        return stub.Act(
            wire.ActRequest(
                table_id=table_id, decision_id=decision_id, action=state_pb2.Action(**action)
            )
        )

    async def told() -> tuple[str, events_pb2.TrusteeChanged]:
        """How the next prompt closed, if one did, and the change that was told."""
        why = ""
        async for message in call:
            why = message.event.prompt_closed.why or why
            if message.event.HasField("trustee_changed"):
                return why, message.event.trustee_changed
        raise AssertionError("the stream has ended")

    this = prompt.decision_id
    assert await refused(act(this, kind="trustee", tile=11)) == (
        "FAILED_PRECONDITION",
        "NOT_OFFERED",
        "action",
    )
    assert (await refused(act("9-1", kind="trustee")))[1] == "STALE_DECISION"
    assert not (await act(this, kind="trustee")).replayed
    assert (await act(this, kind="trustee")).replayed
    _, changed = await told()
    assert (changed.seat, changed.trustee, changed.why) == (0, True, "asked")
    assert not (await act(changed.decision_id, kind="back")).replayed
    why, changed = await told()
    assert (why, changed.trustee, changed.why) == ("withdrawn", False, "back")
    for stream in (*streams, call):
        stream.cancel()


async def test_fifty_equal_acts_at_once_are_one(service):
    """A client that repeats its calls changes nothing but what the first did."""
    made = await service.stub("operator").CreateTable(request())
    table_id = made.table.table_id
    streams = [await until_attended(service, table_id, name) for name in PLAYERS[1:]]
    call, prompt = await first_prompt(service, table_id, "ann")
    stub = service.player("ann")
    act = wire.ActRequest(
        table_id=table_id,
        decision_id=prompt.decision_id,
        action=state_pb2.Action(kind="piao", amount=10),
    )
    answers = await asyncio.gather(*(stub.Act(act) for _ in range(50)))
    assert sum(not answer.replayed for answer in answers) == 1
    closed = []
    async for message in call:
        if message.event.HasField("prompt_closed"):
            closed.append(message.event.prompt_closed)
            break
    assert closed[0].why == "answered"
    for stream in (*streams, call):
        stream.cancel()


async def test_an_answer_is_known_again_however_long_ago_it_was_given(service):
    made = await service.stub("operator").CreateTable(request(hands=2))
    table_id = made.table.table_id
    players = await play_all(service, table_id)
    answered = [
        event.prompt_closed for event in players[0].events if event.prompt_closed.why == "answered"
    ]
    assert len(answered) > 20
    stub = service.player("ann")
    for closed in answered[::9]:
        act = wire.ActRequest(
            table_id=table_id, decision_id=closed.decision_id, action=closed.action
        )
        assert (await stub.Act(act)).replayed
        act.action.amount += 1
        assert (await refused(stub.Act(act)))[1] == "STALE_DECISION"


async def test_replays_and_duplicates_of_every_call_change_nothing(service):
    """Whatever of its calls a client repeats, now or later: only the first one does something."""
    stub = service.stub("operator")
    made = await stub.CreateTable(request(hands=1))
    table_id = made.table.table_id

    class Twice(Player):
        """Sends every act twice, and the last three once more."""

        async def play(self, table_id: str) -> None:
            sent: list[wire.ActRequest] = []
            stub = service.player(self._name)
            async for message in stub.Attend(wire.AttendRequest(table_id=table_id)):
                self.events.append(message.event)
                if not message.event.HasField("prompt"):
                    continue
                act = wire.ActRequest(
                    table_id=table_id,
                    decision_id=message.event.prompt.decision_id,
                    action=simple(message.event.prompt),
                )
                old = [stub.Act(earlier) for earlier in reversed(sent[-3:])]
                assert not (await stub.Act(act)).replayed
                for call in (stub.Act(act), *old):
                    assert (await call).replayed
                sent.append(act)

    players = [Twice(service, name) for name in PLAYERS]
    async with asyncio.TaskGroup() as group:
        for player in players:
            group.create_task(player.play(table_id))
    for player in players:
        shown = [e.prompt.decision_id for e in player.events if e.HasField("prompt")]
        closed = [e.prompt_closed for e in player.events if e.HasField("prompt_closed")]
        assert [c.decision_id for c in closed] == shown
    assert (await stub.CreateTable(request(hands=1))).replayed


async def test_acts_at_the_real_deadline_are_taken_or_late_and_what_is_told_agrees(service):
    """A time-out's automatic action fired after the player's own."""
    rng = random.Random(4)
    outcomes: dict[tuple[str, str, str], str] = {}
    closed: dict[tuple[str, str, str], str] = {}

    async def at_the_deadline(table_id: str, name: str) -> None:
        stub = service.player(name)

        async def act(decision_id: str, action: state_pb2.Action, wait_ms: int) -> None:
            await asyncio.sleep(max(0, wait_ms) / 1_000)
            request = wire.ActRequest(table_id=table_id, decision_id=decision_id, action=action)
            try:
                answer = await stub.Act(request)
                outcomes[table_id, name, decision_id] = "replayed" if answer.replayed else "taken"
            except grpc.aio.AioRpcError as error:
                outcomes[table_id, name, decision_id] = explain(error).reason

        async with asyncio.TaskGroup() as group:
            async for answer in stub.Attend(wire.AttendRequest(table_id=table_id)):
                event = answer.event
                match event.WhichOneof("kind"):
                    case "prompt":
                        prompt = event.prompt
                        wait_ms = prompt.ms_left + rng.randrange(-50, 51)
                        group.create_task(act(prompt.decision_id, simple(prompt), wait_ms))
                    case "prompt_closed":
                        over = event.prompt_closed
                        closed[table_id, name, over.decision_id] = over.why
                    case "trustee_changed" if event.trustee_changed.decision_id:
                        back = event.trustee_changed.decision_id
                        group.create_task(act(back, state_pb2.Action(kind="back"), 0))

    # On a busy machine the table plays much of a hand by itself.
    while len(closed) <= 40 or not {"answered", "timed_out"} <= set(closed.values()):
        message = request(f"r{len(closed)}", hands=1)
        message.timing.turn_ms = message.timing.claim_ms = message.timing.before_deal_ms = 70
        made = await service.stub("operator").CreateTable(message)
        async with asyncio.TaskGroup() as group:
            for name in PLAYERS:
                group.create_task(at_the_deadline(made.table.table_id, name))
    for prompt, why in closed.items():
        expected = "taken" if why == "answered" else "STALE_DECISION"
        assert outcomes[prompt] == expected, (prompt, why)


# LeaveTable.


async def test_leaving_twice_is_leaving_once(service):
    made = await service.stub("operator").CreateTable(request(hands=9))
    table_id = made.table.table_id
    streams = [await until_attended(service, table_id, name) for name in PLAYERS]
    await until_begun(service, table_id)
    stub = service.player("bob")
    after = wire.LeaveTableRequest(table_id=table_id, mode=wire.LEAVE_MODE_AFTER_HAND)
    for _ in range(2):
        answer = await stub.LeaveTable(after)
        assert [seat.leaving for seat in answer.table.seats] == [False, True, False, False]
    now = wire.LeaveTableRequest(table_id=table_id, mode=wire.LEAVE_MODE_NOW)
    await asyncio.gather(*(stub.LeaveTable(now) for _ in range(10)))
    events = [
        m.event async for m in service.player("ann").Attend(wire.AttendRequest(table_id=table_id))
    ]
    (ended,) = [event.hand_ended for event in events if event.HasField("hand_ended")]
    assert ended.hand.escape.seat == 1
    assert list(ended.net) == [0, -100, 0, 0]
    assert events[-1].table_closed.reason == "escape"
    assert (await stub.LeaveTable(now)).table.closed_reason == "escape"
    for stream in streams:
        stream.cancel()


async def test_how_one_leaves_must_be_said(service):
    made = await service.stub("operator").CreateTable(request())
    leave = wire.LeaveTableRequest(table_id=made.table.table_id)
    assert (await refused(service.player("ann").LeaveTable(leave)))[:2] == (
        "INVALID_ARGUMENT",
        "INVALID_REQUEST",
    )
