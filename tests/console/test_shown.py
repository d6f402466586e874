"""What pages draw is what a viewer's events add up to, over whole hands of all rule sets."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from pydantic_core import to_json

from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client import TableView
from fangcheng_console.shown import LOGGED_EVENTS, Shown, options, table_state
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_table.feed import Feed
from fangcheng_table.views import RECORD, SPECTATORS
from tests.table.tables import SILVER, Drive, at_random, away, created, sights

all_rule_sets = pytest.mark.parametrize("rules_id", [rules.id for rules in RULE_SETS])


@cache
def watched(rules_id: str) -> list[events_pb2.TableEvent]:
    """What spectators are sent of some hands, at which a seat is away for a while."""
    drive = Drive.of(created(hands=3, rules_id=rules_id, stakes=[SILVER]))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(7), until=lambda it: len(it.records) > 100)
    away(drive, 2)
    drive.play(at_random(7), until=lambda it: len(it.records) > 250)
    drive.attend(2)
    drive.play(at_random(7))
    return sights(drive.records)[SPECTATORS]


def moments(rules_id: str) -> Any:
    """After each event: the event, what the page is told, and the viewer's own picture."""
    shown, view = Shown(), TableView()
    for event in watched(rules_id):
        shown.apply(event)
        view.apply(event)
        yield event, json.loads(to_json(shown.message())), view


def lasting(state: dict[str, Any]) -> dict[str, Any]:
    """A state without what depends on when it was made."""
    return {key: value for key, value in state.items() if key not in ("clock", "time_ms")}


@all_rule_sets
def test_every_tile_and_number_is_the_views(rules_id: str) -> None:
    ended = 0
    for event, told, view in moments(rules_id):
        state, snapshot = told["state"], view.to_snapshot()
        table, hand = snapshot.table, snapshot.hand
        assert state["number"] == event.number
        assert state["time_ms"] == event.time.ToMilliseconds()
        assert state["table_id"] == table.table_id
        assert state["hand_number"] == table.hand_number
        assert state["dealer"] == table.dealer
        assert state["wall"] == hand.wall_tiles
        assert state["wall_total"] == hand.started.wall_tiles
        assert state["dice"] == list(hand.started.dice)
        assert state["turned"] == list(hand.turned)
        assert state["treasure"] == hand.treasure
        assert state["turn"] == (hand.turn if hand.HasField("turn") else None)
        assert state["dealing"] == hand.dealing
        lying = hand.last_discard if hand.HasField("last_discard") else None
        assert state["last_discard"] == (lying and {"seat": lying.seat, "tile": lying.tile})
        assert state["ready_check"] == bool(table.ready_check)
        assert (state["closed"] is not None) == snapshot.HasField("closed")
        for seat, known, lies in zip(state["seats"], table.seats, hand.seats, strict=False):
            for name in ("player_id", "connected", "trustee", "leaving", "ready", "standing"):
                assert seat[name] == getattr(known, name), name
            for name in ("concealed", "river", "flowers"):
                assert seat[name] == list(getattr(lies, name)), name
            for name in ("declared", "piao", "false_wins"):
                assert seat[name] == getattr(lies, name), name
            assert seat["drawn"] == (lies.drawn if lies.HasField("drawn") else None)
            assert [
                (one["kind"], one["tiles"], one["from_seat"], one["claimed_tile"], one["treasure"])
                for one in seat["melds"]
            ] == [
                (
                    one.kind,
                    list(one.tiles),
                    one.from_seat if one.HasField("from_seat") else None,
                    one.claimed_tile,
                    one.treasure,
                )
                for one in lies.melds
            ]
        if state["ended"] is not None:
            ended += 1
            assert [int(units) for units in state["ended"]["net"]] == list(hand.ended.net)
        if state["settled"] is not None:
            paid = [int(payment["paid"]) for payment in state["settled"]["payments"]]
            assert paid == [payment.paid for payment in hand.settled.payments]
    assert ended
    assert state["closed"]["reason"] == "hands_played"
    assert state["closed"]["ranking"][0]["place"] == 1
    assert state["phase"] == "closed"


@all_rule_sets
def test_who_begins_with_a_snapshot_is_shown_the_same(rules_id: str) -> None:
    for number, (event, told, view) in enumerate(moments(rules_id)):
        if number % 7:
            continue
        shown = Shown()
        shown.apply(
            events_pb2.TableEvent(number=event.number, time=event.time, snapshot=view.to_snapshot())
        )
        assert lasting(json.loads(to_json(shown.state()))) == lasting(told["state"])


@all_rule_sets
def test_a_picture_alone_gives_the_same_state_without_a_clock(rules_id: str) -> None:
    for event, told, view in moments(rules_id):
        if event.number % 11 == 0:
            state = table_state(view, number=event.number, time_ms=event.time.ToMilliseconds())
            assert state["clock"]["turn_since_ms"] is None
            assert state["time_ms"] == told["state"]["time_ms"]
            assert lasting(json.loads(to_json(state))) == lasting(told["state"])


@all_rule_sets
def test_nothing_hidden_is_told_before_the_hand_has_ended(rules_id: str) -> None:
    for _, told, _ in moments(rules_id):
        state = told["state"]
        for seat in state["seats"]:
            open_hand = seat["declared"] == "lou_open" or state["ended"] is not None
            assert open_hand or not any(seat["concealed"])
            assert open_hand or not seat["drawn"]
        assert not any(event["drawn"]["tile"] for event in told["log"] if "drawn" in event)
        for event in told["log"]:
            for hand in event.get("dealt", {}).get("hands", []):
                assert not any(hand["tiles"])


def test_the_log_has_the_newest_events_and_repeats_no_hand() -> None:
    for event, told, _ in moments("jintan"):
        assert len(told["log"]) == min(event.number, LOGGED_EVENTS)
        assert int(told["log"][-1]["number"]) == event.number
        kind = event.WhichOneof("kind")
        assert set(told["log"][-1]) == {"number", "time", kind}
        if kind == "hand_ended":
            assert told["log"][-1][kind]["hand"]["seats"] == []
            assert len(told["state"]["ended"]["hand"]["seats"]) == 4


def test_the_clock_runs_from_the_act_after_which_somebody_is_asked() -> None:
    since = None
    for event, told, _ in moments("baishan_kele"):
        clock, kind = told["state"]["clock"], event.WhichOneof("kind")
        if kind in ("drawn", "melded", "discarded", "dealt", "hand_started"):
            since = event.time.ToMilliseconds()
        elif kind == "hand_ended":
            since = None
        assert clock["turn_since_ms"] == since
        assert clock["turn_ms"] > 0
        assert clock["claim_ms"] > 0


def test_a_revealed_hand_tells_what_each_seat_is_asked_and_since_when() -> None:
    drive = Drive.of(created(hands=1))
    drive.attend(0, 1, 2, 3)
    drive.play(at_random(7))
    begun = Feed(100_000)
    begun.publish(drive.records[:1])
    feed = begun.revealed(1)
    feed.catch_up([])
    feed.publish(drive.records[1:])
    numbers = range(feed.oldest(RECORD) + 1, feed.last(RECORD) + 1)
    events = [begun.event(SPECTATORS, 1), *(feed.event(RECORD, number) for number in numbers)]
    shown, view, since, kinds = Shown(), TableView(), dict[tuple[int, str], int](), set[str]()
    for event in events:
        shown.apply(event)
        view.apply(event)
        told = json.loads(to_json(shown.message()))
        prompts = {prompt["seat"]: prompt for prompt in told["state"]["prompts"]}
        assert prompts.keys() == view.prompts.keys()
        for seat, prompt in view.prompts.items():
            asked = since.setdefault((seat, prompt.decision_id), event.time.ToMilliseconds())
            assert prompts[seat]["since_ms"] == asked
            assert (prompts[seat]["kind"], prompts[seat]["ms"]) == (prompt.kind, prompt.ms_left)
            assert prompts[seat]["actions"] == [
                {
                    "kind": one.kind,
                    "tile": one.tile,
                    "tiles": list(one.tiles),
                    "meld": one.meld,
                    "declare": one.declare,
                    "amount": one.amount,
                }
                for one in prompt.actions
            ]
            kinds.add(prompt.kind)
        assert not any("prompt" in kind for entry in told["log"] for kind in entry)
    assert kinds >= {"turn", "claim"}
    assert not shown.state()["prompts"]


def test_a_player_is_called_what_his_profile_says() -> None:
    shown = Shown()
    seats = [
        state_pb2.Seat(seat=seat, player_id=f"p{seat}", profile=profile)
        for seat, profile in enumerate((b'{"nickname": "Mei"}', "老王".encode(), b"\xff", b""))
    ]
    opened = events_pb2.TableOpened(table=state_pb2.Table(table_id="t1", seats=seats))
    shown.apply(events_pb2.TableEvent(number=1, table_opened=opened))
    assert [seat["name"] for seat in shown.state()["seats"]] == ["Mei", "老王", "p2", "p3"]


def test_a_state_is_not_changed_by_what_comes_after() -> None:
    shown, kept = Shown(), []
    for event in watched("baishan_kele"):
        shown.apply(event)
        state = shown.state()
        kept.append((state, to_json(state)))
    assert all(to_json(state) == then for state, then in kept)


def test_options_are_plain_values() -> None:
    for _, told, view in moments("baishan_kele"):
        assert told["state"]["rules"]["options"] == options(view.rules.options)
        assert told["state"]["rules"]["options"]["piao"] is True
        break
