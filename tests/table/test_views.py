"""What each viewer is told, tested on the messages themselves (rules/README, What is seen)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import Message

from fangcheng_rules import events as play
from fangcheng_rules.actions import Action, Prompt
from fangcheng_rules.melds import MeldKind
from fangcheng_rules.rulesets import RULE_SETS, rule_set
from fangcheng_rules.tiles import DRAGONS, code
from fangcheng_rules.wall import dealt_indices
from fangcheng_table import dealing
from fangcheng_table.events import Event, HandOpened, Timing
from fangcheng_table.feed import Feed
from fangcheng_table.store import Record
from fangcheng_table.views import RECORD, SPECTATORS, VIEWERS, Projector
from tests.rules import transcripts
from tests.rules.transcripts import TRANSCRIPTS

from .tables import RULE_SET, Drive, Stake, at_random, created, passing, sights

TILE_FIELDS = {
    "tile",
    "tiles",
    "claimed_tile",
    "concealed",
    "first_discard",
    "wall",
    "flowers",
    "treasure",
    "shown",
}


def hands(
    count: int = 12, timing: Timing | None = None, rules_id: str = RULE_SET
) -> Iterator[Drive]:
    """Whole tables of two hands, played at random, with seats that come and go."""
    for seed in range(count):
        stakes = [Stake("silver", "", 3)]
        event = created(
            root=bytes([seed + 1]) * 32,
            hands=2,
            stakes=stakes,
            holds=True,
            timing=timing,
            rules_id=rules_id,
        )
        drive = Drive.of(event)
        drive.table.give_entropy(seed % 4, bytes([seed, 7]))
        drive.attend(*(range(4) if seed % 3 else range(3)))
        drive.play(at_random(seed, 0.9))
        assert drive.table.state.done
        yield drive


def tiles_in(message: Message) -> set[int]:
    """Every tile that a message names."""
    found: set[int] = set()
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        for one in values:
            if isinstance(one, Message):
                found |= tiles_in(one)
            elif field.name in TILE_FIELDS and not isinstance(one, bool):
                found.add(one)
    return found - {0}


class Knowledge:
    """What a viewer may know after each event of the journal; written from the rule page."""

    def __init__(self, viewer: int) -> None:
        self.viewer = viewer
        self.own: list[int] = []
        self.public: set[int] = set()

    def learn(self, event: Event) -> None:
        match event:
            case play.HandStarted():
                self.own, self.public = [], set()
            case play.Dealt(hands) if self.viewer in range(4):
                self.own = list(hands[self.viewer])
            case play.Drew(seat, tile) if seat == self.viewer:
                self.own.append(tile)
            case play.Discarded(_, tile, declared, shown):
                self.public.add(tile)
                # 明楼 alone shows the seat's concealed tiles to all.
                assert bool(shown) == (declared == "lou_open")
                self.public |= set(shown)
            case play.FlowerLaid(_, tile):
                self.public.add(tile)
            case play.TreasureTurned(_, tile) if tile is not None:
                self.public.add(tile)
            case play.KongDeclared(_, _, MeldKind.WHIRLWIND):
                self.public |= set(DRAGONS)
            case play.Called(_, meld):
                self.public |= set(meld.tiles)
            case play.KongDeclared(_, tile, MeldKind.ADDED_KONG):
                self.public.add(tile)
            case play.HandEnded():
                # All hands are shown when the hand ends.
                for hand in event.hands:
                    self.public |= set(hand)
                for melds in event.melds:
                    for meld in melds:
                        self.public |= set(meld.tiles)
                if hasattr(event.end, "tile"):
                    self.public.add(event.end.tile)

    @property
    def tiles(self) -> set[int]:
        return {code(tile) for tile in {*self.own, *self.public}}


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_no_message_names_a_tile_that_its_viewer_may_not_know(rules):
    checked = hidden = 0
    for drive in hands(12, rules_id=rules.id):
        projector = Projector()
        knowledge = {viewer: Knowledge(viewer) for viewer in VIEWERS}
        for record in drive.records:
            for known in knowledge.values():
                known.learn(record.event)
            for viewers, message in projector.see(record):
                for viewer in viewers:
                    named = tiles_in(message)
                    assert named <= knowledge[viewer].tiles, (viewer, message, record.event)
                    checked += len(named)
                    hidden += len(viewers) > 1 and message.HasField("drawn")
    assert checked > 5_000
    assert hidden > 300


def test_the_number_of_hidden_tiles_is_all_that_is_told_of_a_hand():
    for drive in hands(4):
        for viewer, events in sights(drive.records).items():
            for event in events:
                if event.HasField("dealt"):
                    sizes = [len(hand.tiles) for hand in event.dealt.hands]
                    assert sorted(sizes) == [13, 13, 13, 14]
                    shown = [any(hand.tiles) for hand in event.dealt.hands]
                    assert shown == [seat == viewer for seat in range(4)]


def test_a_concealed_kong_lies_face_down_for_the_others():
    seen = 0
    for drive in hands(40):
        views = sights(drive.records)
        for viewer, events in views.items():
            for event in events:
                meld = event.melded.meld
                if meld.kind != "concealed_kong":
                    continue
                seen += 1
                assert not meld.HasField("from_seat")
                assert meld.claimed_tile == 0
                shown = set(meld.tiles) != {0}
                assert shown == (event.melded.seat == viewer)
                assert len(meld.tiles) == 4
    assert seen >= 5


def kongs_of(transcript: str) -> list[tuple[tuple[int, ...], list[int]]]:
    """The concealed kongs of a transcript: who is told of them, and of which tiles."""
    text = (TRANSCRIPTS / f"{transcript}.txt").read_text(encoding="utf-8")
    events = [created(rules_id="shandong"), *transcripts.play(transcripts.read(text))[1]]
    projector = Projector()
    return [
        (viewers, list(message.melded.meld.tiles))
        for number, event in enumerate(events, 1)
        for viewers, message in projector.see(Record(number, 0, event))
        if message.melded.meld.kind == "concealed_kong"
    ]


def test_of_an_open_lou_all_see_what_its_concealed_kong_is_made_of():
    # 明楼 shows the seat's concealed tiles to all, before its kong and after it.
    assert kongs_of("shandong_open_lou") == [(VIEWERS, [32] * 4)]
    # Who has declared nothing lays it face down.
    assert kongs_of("shandong_end_of_wall") == [((3,), [41] * 4), ((0, 1, 2, SPECTATORS), [0] * 4)]


def test_an_added_kong_names_the_discard_that_its_pong_came_from():
    seen = 0
    for drive in hands(40):
        pongs: dict[tuple[int, int], Any] = {}
        for event in sights(drive.records)[SPECTATORS]:
            meld = event.melded.meld
            if event.HasField("hand_started"):
                pongs.clear()
            if meld.kind == "pong":
                pongs[event.melded.seat, meld.tiles[0]] = meld
            if meld.kind == "added_kong":
                pong = pongs[event.melded.seat, meld.tiles[0]]
                assert (meld.from_seat, meld.claimed_tile) == (pong.from_seat, pong.claimed_tile)
                seen += 1
    assert seen >= 2


def test_only_the_asked_seat_is_told_that_it_was_asked_or_what_it_answered():
    prompts = 0
    for drive in hands(8):
        asked: list[tuple[int, str]] = [
            (event.seat, f"{0}-{event.decision}")
            for event in drive.events
            if isinstance(event, play.Asked)
        ]
        views = sights(drive.records)
        for viewer, events in views.items():
            mine = [e for e in events if e.HasField("prompt")]
            closed = [e for e in events if e.HasField("prompt_closed")]
            if viewer == SPECTATORS:
                assert not mine
                assert not closed
                continue
            assert len(mine) == sum(seat == viewer for seat, _ in asked)
            # Every prompt is closed once, before the next one is shown.
            ids = [e.prompt.decision_id for e in mine]
            assert [e.prompt_closed.decision_id for e in closed] == ids
            assert len(set(ids)) == len(ids)
            prompts += len(ids)
    assert prompts > 500


def test_ids_of_decisions_count_the_seats_own_decisions_alone():
    for drive in hands(6):
        for viewer, events in sights(drive.records).items():
            count: dict[int, int] = {}
            for event in events:
                if viewer == SPECTATORS or not event.HasField("prompt"):
                    continue
                hand, _, decision = event.prompt.decision_id.partition("-")
                count[int(hand)] = count.get(int(hand), 0) + 1
                assert int(decision) == count[int(hand)]


def test_numbers_have_no_gap_and_survive_a_restart():
    for drive in hands(3):
        whole = sights(drive.records)
        feed = Feed()
        for record in drive.records:  # one at a time, as a live table publishes them
            feed.publish([record])
        for viewer, events in whole.items():
            kept = range(feed.oldest(viewer) + 1, feed.last(viewer) + 1)
            assert [feed.event(viewer, number) for number in kept] == events[kept.start - 1 :]


def test_nothing_of_a_table_that_is_secret_is_in_any_message():
    for drive in hands(6):
        creation = drive.table.state.created
        hidden = [hold.encode() for plan in creation.seats for hold in plan.hold_ids]
        started = ended = 0
        secrets = {}
        for record in drive.records:
            if isinstance(record.event, HandOpened):
                secrets[record.event.hand_number] = record.event.secret
        for events in sights(drive.records).values():
            told = 0
            for event in events:
                body = event.SerializeToString()
                assert not any(secret in body for secret in hidden)
                started += event.HasField("hand_started")
                if event.HasField("hand_ended"):
                    assert event.hand_ended.secret == secrets[event.hand_ended.hand_number]
                    told, ended = event.hand_ended.hand_number, ended + 1
                # The secret of the hand in play, and of every later one, is kept. The root is
                # that of the last hand, the second.
                kept = [secret for number, secret in secrets.items() if number > told]
                kept += [creation.root] if told < 2 else []
                assert not any(secret in body for secret in kept)
        assert started == ended > 0


def test_bots_are_not_given_away():
    drive = Drive.of(created(is_bot=True))
    for events in sights(drive.records).values():
        assert events[0].HasField("table_opened")
        assert not any(seat.is_bot for seat in events[0].table_opened.table.seats)


def test_the_first_event_tells_each_viewer_its_seat():
    views = sights(Drive.of(created()).records)
    for viewer, events in views.items():
        opened = events[0].table_opened
        assert opened.HasField("seat") == (viewer != SPECTATORS)
        if viewer != SPECTATORS:
            assert opened.seat == viewer


def test_the_id_that_takes_a_seat_back_is_told_to_that_seat_alone():
    drive = Drive.of(created(hands=1))
    drive.attend(0, 1)
    drive.play(passing)
    for viewer, events in sights(drive.records).items():
        changed = [e.trustee_changed for e in events if e.HasField("trustee_changed")]
        assert [(c.seat, c.trustee, c.why) for c in changed] == [
            (2, True, "disconnected"),
            (3, True, "disconnected"),
        ]
        for change in changed:
            assert change.decision_id == ("back-1" if change.seat == viewer else "")


def test_a_leave_that_waits_for_a_claim_is_told_to_nobody():
    drive = Drive.of(created(hands=3))
    drive.attend(0, 1, 2, 3)
    drive.table.leave(2, now=True)
    drive.settle()
    for events in sights(drive.records).values():
        assert not any(event.HasField("leave_announced") for event in events)


def test_the_record_shows_everything_but_prompts():
    for drive in hands(3):
        projector = Projector(record=True)
        shown = []
        for record in drive.records:
            for viewers, event in projector.see(record):
                assert viewers == (RECORD,)
                shown.append(event)
        assert not any(e.HasField("prompt") or e.HasField("prompt_closed") for e in shown)
        drawn = [event.drawn.tile for event in shown if event.HasField("drawn")]
        assert drawn == [code(e.tile) for e in drive.events if isinstance(e, play.Drew)]
        dealt = [event.dealt for event in shown if event.HasField("dealt")]
        assert all(all(hand.tiles) for deal in dealt for hand in deal.hands)


def test_what_the_viewers_count_of_the_wall_is_what_is_left_of_it():
    for drive in hands(4):
        left = 0
        for event in sights(drive.records)[SPECTATORS]:
            match event.WhichOneof("kind"):
                case "hand_started":
                    left = event.hand_started.wall_tiles
                    assert left == 136
                case "dealt":
                    left -= 53
                    assert event.dealt.wall_tiles == left
                case "drawn":
                    left -= 1
                    assert event.drawn.wall_tiles == left


def test_a_hand_that_ended_shows_all_hands_and_adds_up():
    wins = 0
    for drive in hands(10):
        for event in sights(drive.records)[SPECTATORS]:
            if not event.HasField("hand_ended"):
                continue
            ended = event.hand_ended
            tiles = [len(seat.concealed) + 3 * len(seat.melds) for seat in ended.hand.seats]
            assert all(size in (13, 14) for size in tiles)
            paid = [0, 0, 0, 0]
            for transfer in ended.score.transfers:
                if transfer.HasField("from_seat"):
                    paid[transfer.from_seat] -= transfer.amount
                if transfer.HasField("to_seat"):
                    paid[transfer.to_seat] += transfer.amount
            assert list(ended.net) == paid
            if ended.hand.HasField("win"):
                wins += 1
                assert ended.score.winners[0].seat == ended.hand.win.winners[0]
                assert all(item.name_zh for w in ended.score.winners for item in w.items)
    assert wins >= 3


# Nobody learns that another was asked.


def wall_where(holder: int | None, dealer: int, tile: int) -> tuple[int, ...]:
    """A wall in which the dealer's first discard `tile` is one that `holder` could claim with two
    of its kind; None: nobody can. Everything else that is drawn early is the same.
    """
    wall = sorted(rule_set(RULE_SET).wall_tiles)
    dealt = dealt_indices(dealer)
    pool = list(wall)
    placed: dict[int, int] = {}

    def put(index: int, kind: int) -> None:
        pool.remove(kind)
        placed[index] = kind

    # Nobody but the holder gets the kind; it has two of it, or of another honour in their place.
    put(dealt[dealer][0], tile)
    other = 31
    spare = dealt[(dealer + 2) % 4][:2]
    deep = (120, 121)
    for index, far in zip(spare, deep, strict=True):
        put(index, tile if holder is not None else other)
        put(far, other if holder is not None else tile)
    put(122, tile)
    # The other two of the honour lie deep as well, so that nothing comes of it.
    put(123, other)
    put(124, other)
    rest = iter(spread(pool))
    return tuple(placed[i] if i in placed else next(rest) for i in range(len(wall)))


def spread(pool: list[int]) -> list[int]:
    """The pool in an order in which no two alike lie together, so that few claims come about."""
    return [pool[(step * 29) % len(pool)] for step in range(len(pool))]


class Silence:
    """The same hand twice; in one of them seat dealer+2 can claim the first discard, and passes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, asked: bool, answer_ms: int) -> None:
        dealer, tile = 0, 32
        wall = wall_where(2 if asked else None, dealer, tile)
        monkeypatch.setattr(dealing, "derive", lambda *args, **more: (wall, (1, 1)))
        timing = Timing(claim_window_ms=1_000)
        self.drive = Drive.of(created(timing=timing, options={"piao": False}))
        self.drive.attend(0, 1, 2, 3)
        assert self.drive.table.state.dealer == dealer
        self.drive.act(dealer, Action("discard", tile))
        prompt = self.drive.prompt(2)
        self.was_asked = prompt is not None and prompt.kind == "claim"
        self.drive.pass_time(answer_ms)
        if self.was_asked:
            self.drive.act(2, Action("pass"))
        self.drive.pass_time(1_000 - answer_ms)
        # Play goes on for some turns.
        self.drive.play(self.discard, until=lambda d: d.now_ms >= 6_000)

    @staticmethod
    def discard(seat: int, prompt: Prompt) -> Action:
        return passing(seat, prompt)

    def received(self, viewer: int) -> list[bytes]:
        feed = Feed()
        feed.publish(self.drive.records)
        return [feed.event(viewer, n).SerializeToString() for n in range(1, feed.last(viewer) + 1)]


@pytest.mark.parametrize("answer_ms", [0, 1, 400, 999])
def test_two_hands_that_differ_only_in_a_claim_that_was_passed_look_alike(monkeypatch, answer_ms):
    asked = Silence(monkeypatch, asked=True, answer_ms=answer_ms)
    unasked = Silence(monkeypatch, asked=False, answer_ms=answer_ms)
    assert asked.was_asked
    assert not unasked.was_asked
    assert asked.drive.records != unasked.drive.records
    for viewer in (0, 1, 3, SPECTATORS):
        # Bytes, numbers and times.
        mine = asked.received(viewer)
        assert mine == unasked.received(viewer)
        assert len(mine) > 15
    assert asked.received(2) != unasked.received(2)


def test_what_follows_a_discard_or_an_added_kong_comes_after_the_window_whoever_was_asked():
    """The same window passes after every added kong, whether or not anyone can rob it."""
    kinds: set[str] = set()
    asked = 0
    for drive in hands(25, Timing(claim_window_ms=1_000, between_hands_ms=0)):
        asked += sum(isinstance(e, play.Asked) and e.kind == "claim" for e in drive.events)
        events = [
            event
            for event in sights(drive.records)[SPECTATORS]
            if not event.HasField("connection_changed") and not event.HasField("trustee_changed")
        ]
        for event, after in itertools.pairwise(events):
            kind = event.WhichOneof("kind")
            if kind == "melded" and event.melded.meld.kind == "added_kong":
                kind = "added_kong"
            if kind in ("discarded", "added_kong"):
                kinds.add(kind)
                waited = after.time.ToMilliseconds() - event.time.ToMilliseconds()
                assert waited == 1_000, (event, after)
    assert kinds == {"discarded", "added_kong"}
    assert asked > 200


def test_a_record_time_is_that_of_its_storing():
    feed = Feed()
    feed.publish([Record(1, 1_796_000_000_123, created())])
    assert feed.event(0, 1).time.ToMilliseconds() == 1_796_000_000_123
