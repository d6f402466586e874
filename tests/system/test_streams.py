"""What the services send about a live table, looked at message by message as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fangcheng.table.v1 import events_pb2, records_pb2, records_pb2_grpc
from fangcheng_client import attend, watch
from fangcheng_client.view import TableView
from fangcheng_suite.bots import player
from fangcheng_suite.bots.crowd import Bank
from fangcheng_suite.bots.player import Bot
from fangcheng_suite.verify import verify

from .running import Running

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

POOL = "baishan_kele-demo"
HANDS = 8
PRIVATE = ("prompt", "prompt_closed")
SPECTATOR = None


@dataclass
class Game:
    """One table, as each of its viewers was told it while it was played."""

    table_id: str = ""
    seats: dict[int, list[events_pb2.TableEvent]] = field(default_factory=dict)
    again: dict[int, list[events_pb2.TableEvent]] = field(default_factory=dict)
    """The same seats' streams, asked for from the beginning after the end."""
    spectator: list[events_pb2.TableEvent] = field(default_factory=list)
    outsider: list[events_pb2.TableEvent] = field(default_factory=list)
    """A player who does not sit at the table, watching."""
    records: list[records_pb2.HandRecord] = field(default_factory=list)
    views: list[TableView] = field(default_factory=list)


@pytest.fixture(scope="module")
def game(quiet_suite: Running) -> Game:
    """Four bots play a table of the demo's pool over the real services."""
    return asyncio.run(_played(quiet_suite))


async def _played(suite: Running) -> Game:
    game = Game()
    heard: list[list[events_pb2.TableEvent]] = []

    def recording(*asked: Any, **more: Any) -> AsyncIterator[events_pb2.TableEvent]:
        heard.append([])
        return _kept(attend(*asked, **more), heard[-1])

    access = suite.access
    bank = Bank(access)
    bots = [Bot(f"player-{number}", access) for number in range(4)]
    for bot in bots:
        await bank.give(bot.player_id)

    before = player.attend
    player.attend = recording
    try:
        seated: asyncio.Future[player.Place] = asyncio.get_running_loop().create_future()
        for bot in bots:
            bot.on_seated = lambda place: None if seated.done() else seated.set_result(place)
        async with (
            access.channel("table") as operator,
            access.channel("table", "player:outsider") as outsider,
            asyncio.TaskGroup() as group,
        ):
            for bot in bots:
                group.create_task(bot.play(POOL))
            game.table_id = (await seated).table_id
            group.create_task(_all(watch(operator, game.table_id), game.spectator))
            group.create_task(_all(watch(outsider, game.table_id), game.outsider))
    finally:
        player.attend = before
    for events in heard:
        game.seats[events[0].table_opened.seat] = events
        view = TableView()
        for event in events:
            view.apply(event)
        game.views.append(view)
    opened = game.spectator[0].table_opened.table
    for number, seat in enumerate(opened.seats):
        async with access.channel("table", f"player:{seat.player_id}") as channel:
            game.again[number] = []
            await _all(attend(channel, game.table_id), game.again[number])
    async with access.channel("table") as channel:
        stub = records_pb2_grpc.TableRecordServiceStub(channel)
        for number in range(1, HANDS + 1):
            request = records_pb2.GetHandRecordRequest(table_id=game.table_id, hand_number=number)
            game.records.append((await stub.GetHandRecord(request)).record)
    return game


async def _kept(
    events: AsyncIterator[events_pb2.TableEvent], into: list[events_pb2.TableEvent]
) -> AsyncIterator[events_pb2.TableEvent]:
    async for event in events:
        into.append(events_pb2.TableEvent.FromString(event.SerializeToString()))
        yield event


async def _all(
    events: AsyncIterator[events_pb2.TableEvent], into: list[events_pb2.TableEvent]
) -> None:
    async for _ in _kept(events, into):
        pass


def public(events: list[events_pb2.TableEvent], seat: int | None) -> list[events_pb2.TableEvent]:
    """A viewer's events without all that it alone may see, and without its numbering."""
    shown = []
    for event in events:
        kind = event.WhichOneof("kind")
        if kind in PRIVATE:
            continue
        bare = events_pb2.TableEvent.FromString(event.SerializeToString())
        bare.number = 0
        if seat is not None:
            if kind == "table_opened":
                bare.table_opened.ClearField("seat")
            elif kind == "dealt":
                own = bare.dealt.hands[seat].tiles
                own[:] = [0] * len(own)
            elif kind == "drawn" and bare.drawn.seat == seat:
                bare.drawn.tile = 0
            elif kind == "melded" and bare.melded.seat == seat:
                if bare.melded.meld.kind == "concealed_kong":
                    bare.melded.meld.tiles[:] = [0] * 4
            elif kind == "trustee_changed":
                bare.trustee_changed.decision_id = ""
        shown.append(bare)
    return shown


def test_four_players_play_a_whole_table(game: Game) -> None:
    assert sorted(game.seats) == [0, 1, 2, 3]
    for view in game.views:
        assert view.closed is not None
        assert view.closed.reason == "hands_played"
        assert [seat.standing for seat in view.seats] == list(view.closed.standings)
    ended = [event.hand_ended for event in game.spectator if event.HasField("hand_ended")]
    assert [end.hand_number for end in ended] == list(range(1, HANDS + 1))
    wins = [end for end in ended if end.hand.HasField("win")]
    assert len(wins) > 0.4 * HANDS


def test_every_viewers_numbers_have_no_gap(game: Game) -> None:
    for events in (*game.seats.values(), game.spectator, game.outsider):
        assert [event.number for event in events] == list(range(1, len(events) + 1))


def test_the_spectators_are_shown_no_tile_before_it_is_open(game: Game) -> None:
    for event in game.spectator:
        kind = event.WhichOneof("kind")
        assert kind not in PRIVATE
        if kind == "dealt":
            assert not any(tile for hand in event.dealt.hands for tile in hand.tiles)
            assert sorted(len(hand.tiles) for hand in event.dealt.hands) == [13, 13, 13, 14]
        elif kind == "drawn":
            assert event.drawn.tile == 0
        elif kind == "melded" and event.melded.meld.kind == "concealed_kong":
            assert not any(event.melded.meld.tiles)
        elif kind == "hand_started":
            assert len(event.hand_started.commitment) == 32


def test_a_spectator_sees_the_same_whoever_it_is(game: Game) -> None:
    assert game.outsider == game.spectator


@pytest.mark.parametrize("seat", range(4))
def test_a_seat_sees_what_everybody_sees_and_its_own_tiles(game: Game, seat: int) -> None:
    """Without its own prompts and tiles, a seat's stream is the spectators', event by event."""
    assert public(game.seats[seat], seat) == public(game.spectator, SPECTATOR)


@pytest.mark.parametrize("seat", range(4))
def test_a_prompt_offers_nothing_that_the_seat_may_not_know(game: Game, seat: int) -> None:
    view = TableView()
    for event in game.seats[seat]:
        view.apply(event)
        if not event.HasField("prompt"):
            continue
        own = set(view.own.concealed) | {meld.tiles[0] for meld in view.own.melds}
        open_tile = {view.last_discard[1]} if view.last_discard else set()
        robbed = {
            meld.tiles[0] for one in view.seats for meld in one.melds if meld.kind == "added_kong"
        }
        for action in event.prompt.actions:
            if action.tile:
                known = own if event.prompt.kind in ("turn", "dealt_out") else open_tile | robbed
                assert action.tile in known
            assert set(action.tiles) <= own


@pytest.mark.parametrize("seat", range(4))
def test_a_seats_prompts_tell_nothing_of_the_others(game: Game, seat: int) -> None:
    """Decisions are counted per seat and hand, so that none is missing."""
    asked = [event.prompt.decision_id for event in game.seats[seat] if event.HasField("prompt")]
    assert len(set(asked)) == len(asked)
    counts: dict[str, int] = {}
    for decision_id in asked:
        hand, _, decision = decision_id.partition("-")
        counts[hand] = counts.get(hand, 0) + 1
        assert int(decision) == counts[hand]


@pytest.mark.parametrize("seat", range(4))
def test_a_stream_from_the_beginning_leads_to_what_was_told_live(game: Game, seat: int) -> None:
    assert game.again[seat][0].HasField("snapshot")  # of events that are kept no longer
    again = TableView()
    for event in game.again[seat]:
        again.apply(event)
    (live,) = (view for view in game.views if view.own_seat == seat)
    assert again.last_number == live.last_number
    assert again.to_snapshot() == live.to_snapshot()


def test_no_secret_is_told_before_its_hand_has_ended(game: Game) -> None:
    secrets = {record.hand_number: record.secret for record in game.records}
    for events in (*game.seats.values(), game.spectator):
        ended = 0
        for event in events:
            if event.HasField("hand_ended"):
                ended = event.hand_ended.hand_number
                assert event.hand_ended.secret == secrets[ended]
            told = event.SerializeToString()
            for number, secret in secrets.items():
                assert number <= ended or secret not in told


def test_every_hand_verifies_against_the_first_commitment(game: Game) -> None:
    commitment = game.spectator[0].table_opened.table.commitment
    for record in game.records:
        assert verify(record, commitment).shuffle.dealt == 53


def test_tiles_are_conserved_at_every_event(game: Game) -> None:
    """Who sees everything counts 136 tiles at any moment: wall, hands, rivers and melds."""
    for record in game.records:
        view = TableView()
        for event in record.events:
            view.apply(event)
            kind = event.WhichOneof("kind")
            if kind in ("dealt", "drawn", "discarded", "melded"):
                held = sum(view.seen().values())
                assert held + view.wall_tiles == len(record.wall), (record.hand_number, kind)
                assert max(view.seen().values()) <= 4


def test_each_hands_transfers_come_to_zero_with_the_house(game: Game) -> None:
    for event in game.spectator:
        if event.HasField("hand_ended"):
            ended = event.hand_ended
            net = [0] * 4
            house = 0
            for transfer in ended.score.transfers:
                assert transfer.amount > 0
                if transfer.HasField("from_seat"):
                    net[transfer.from_seat] -= transfer.amount
                else:
                    house -= transfer.amount
                if transfer.HasField("to_seat"):
                    net[transfer.to_seat] += transfer.amount
                else:
                    house += transfer.amount
            assert list(ended.net) == net
            assert sum(net) + house == 0
