"""A table as one viewer knows it: the fold of the events that it was sent.

    view = TableView()
    async for event in attend(channel, table_id):
        view.apply(event)

A snapshot is this picture as a message: what `to_snapshot` writes, `apply` reads. The table service
makes its snapshots with it, from the very events that their viewer was sent, so that they cannot
tell more. Tiles are wire numbers (11 is 1m), 0 is face down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, records_pb2, state_pb2, table_pb2

FACE_DOWN = 0


@dataclass(slots=True)
class SeatView:
    """One seat, as the viewer knows it."""

    player_id: str = ""
    name: str = ""
    """What to show of the player: the profile where it is text, else the id."""
    concealed: list[int] = field(default_factory=list)
    drawn: int | None = None
    """The tile just drawn and still in hand; None outside the seat's own turn."""
    melds: list[rules_pb2.Meld] = field(default_factory=list)
    river: list[int] = field(default_factory=list)
    """Discards that still lie there; a claimed one has gone into a meld."""
    flowers: list[int] = field(default_factory=list)
    declared: str = ""
    piao: int = 0
    false_wins: int = 0
    """How often it called a win that it did not have (诈胡)."""
    connected: bool = False
    trustee: bool = False
    leaving: bool = False
    ready: bool = False
    """Ready for the next hand, where that is asked."""
    standing: int = 0
    """Units won or lost at the table."""


@dataclass(slots=True)
class TableView:
    """The whole table. `apply` takes the viewer's events in their order."""

    table_id: str = ""
    table: state_pb2.Table = field(default_factory=state_pb2.Table)
    """As it was opened; what has changed since is beside it."""
    rules: rules_pb2.RuleSetChoice = field(default_factory=rules_pb2.RuleSetChoice)
    own_seat: int | None = None
    """The viewer's seat; None for a spectator."""
    seats: list[SeatView] = field(default_factory=lambda: [SeatView() for _ in range(4)])
    stakes: list[state_pb2.Stake] = field(default_factory=list)
    hands: int = 0
    """Hands to play; 0: open."""
    hand_number: int = 0
    started: events_pb2.HandStarted | None = None
    """How the hand in play, or the last one, began."""
    dealer: int = 0
    wall_tiles: int = 0
    last_discard: tuple[int, int] | None = None
    """Seat and tile of the discard that can still be claimed, or lies last."""
    turn: int | None = None
    turned: list[int] = field(default_factory=list)
    """The tiles turned up on the wall, newest last."""
    treasure: int = 0
    """The kind of the treasure (宝牌); 0: there is none."""
    prompt: events_pb2.Prompt | None = None
    """The viewer's open prompt."""
    prompts: dict[int, events_pb2.Prompt] = field(default_factory=dict)
    """The open prompts of all seats, where an operator has all tiles shown; otherwise empty."""
    back_decision_id: str = ""
    """While the table plays for the viewer: answered with `back`, it takes the seat back."""
    ready_check: str = ""
    """While all are asked: the decision to which `ready` is the answer."""
    vote: state_pb2.TableVote | None = None
    """The open vote to dissolve the table, answered with `agree` or `refuse`."""
    ended: events_pb2.HandEnded | None = None
    """The result of the last hand, until the next begins."""
    settled: events_pb2.HandSettled | None = None
    closed: events_pb2.TableClosed | None = None
    last_number: int = 0
    dealing: bool = False
    """Nobody has played since the deal: flowers are being replaced, the dealer is next."""

    def apply(self, event: events_pb2.TableEvent) -> None:
        """Take the next event. A kind that this client does not know changes nothing."""
        self.last_number = event.number
        kind = event.WhichOneof("kind")
        handler = getattr(self, f"_{kind}", None)
        if kind is not None and handler is not None:
            handler(getattr(event, kind))

    def copy(self) -> TableView:
        """A copy that later events do not change; the messages in it are shared."""
        seats = [
            replace(
                seat,
                concealed=list(seat.concealed),
                melds=list(seat.melds),
                river=list(seat.river),
                flowers=list(seat.flowers),
            )
            for seat in self.seats
        ]
        return replace(self, seats=seats, turned=list(self.turned), prompts=dict(self.prompts))

    @property
    def own(self) -> SeatView:
        """The viewer's seat; raises ValueError for a spectator."""
        if self.own_seat is None:
            raise ValueError("a spectator has no seat")
        return self.seats[self.own_seat]

    def seen(self) -> Counter[int]:
        """How many of each tile the viewer sees, its own hand among them."""
        seen: Counter[int] = Counter(self.turned)
        for seat in self.seats:
            seen.update(tile for tile in seat.concealed if tile != FACE_DOWN)
            seen.update(seat.river)
            for meld in seat.melds:
                seen.update(tile for tile in meld.tiles if tile != FACE_DOWN)
        return seen

    def _table_opened(self, opened: events_pb2.TableOpened) -> None:
        self._sit(opened.table)
        self.own_seat = opened.seat if opened.HasField("seat") else None

    def _sit(self, table: state_pb2.Table) -> None:
        self.table = table
        self.table_id = table.table_id
        self.rules = table.rules
        self.hands = table.hands
        self.hand_number = table.hand_number
        self.dealer = table.dealer
        self.stakes = list(table.stakes)
        for known, seat in zip(self.seats, table.seats, strict=True):
            known.player_id = seat.player_id
            known.name = shown_name(seat)
            known.connected = seat.connected
            known.trustee = seat.trustee
            known.leaving = seat.leaving
            known.standing = seat.standing
        self._ask_all(table)

    def _ask_all(self, table: state_pb2.Table) -> None:
        """What all seats are asked, and what they have said to it."""
        self.ready_check = table.ready_check
        self.vote = table.vote if table.HasField("vote") else None
        for known, seat in zip(self.seats, table.seats, strict=True):
            known.ready = seat.ready

    def _hand_started(self, started: events_pb2.HandStarted) -> None:
        self.started = started
        self.hand_number = started.hand_number
        self.dealer = started.dealer
        self.wall_tiles = started.wall_tiles
        self.dealing = False
        self.last_discard = None
        self.turn = None
        self.turned = []
        self.treasure = 0
        self.prompt = None
        self.prompts = {}
        self.ended = None
        self.settled = None
        self.ready_check = ""
        for seat in self.seats:
            seat.ready = False
            seat.concealed = []
            seat.drawn = None
            seat.melds = []
            seat.river = []
            seat.flowers = []
            seat.declared = ""
            seat.piao = 0
            seat.false_wins = 0

    def _piao_shown(self, shown: events_pb2.PiaoShown) -> None:
        for seat, units in zip(self.seats, shown.units, strict=True):
            seat.piao = units

    def _dealt(self, dealt: events_pb2.Dealt) -> None:
        self.wall_tiles = dealt.wall_tiles
        self.turn = self.dealer
        self.dealing = True
        for seat, hand in zip(self.seats, dealt.hands, strict=True):
            seat.concealed = list(hand.tiles)

    def _drawn(self, drawn: events_pb2.Drawn) -> None:
        self.wall_tiles = drawn.wall_tiles
        seat = self.seats[drawn.seat]
        seat.concealed.append(drawn.tile)
        if self.dealing and drawn.origin == "flower":
            return  # each seat makes up its hand, and it is the dealer's turn all the while
        self.turn = drawn.seat
        seat.drawn = drawn.tile

    def _flower_laid(self, laid: events_pb2.FlowerLaid) -> None:
        seat = self.seats[laid.seat]
        _take(seat.concealed, laid.tile)
        seat.drawn = None
        seat.flowers.append(laid.tile)

    def _treasure_turned(self, turned: events_pb2.TreasureTurned) -> None:
        self.treasure = turned.tile
        if turned.tile:
            self.turned.append(turned.tile)

    def _false_win_called(self, called: events_pb2.FalseWinCalled) -> None:
        self.seats[called.seat].false_wins += 1

    def _discarded(self, discarded: events_pb2.Discarded) -> None:
        self.dealing = False
        seat = self.seats[discarded.seat]
        # A seat that has declared discards what it drew, whatever else is known of its hand.
        drawn = FACE_DOWN if seat.declared and FACE_DOWN in seat.concealed else discarded.tile
        _take(seat.concealed, drawn)
        seat.drawn = None
        seat.river.append(discarded.tile)
        seat.declared = discarded.declared or seat.declared
        if discarded.shown:
            seat.concealed = list(discarded.shown)
        self.turn = None
        self.last_discard = (discarded.seat, discarded.tile)

    def _melded(self, melded: events_pb2.Melded) -> None:
        self.dealing = False
        seat = self.seats[melded.seat]
        meld = melded.meld
        seat.declared = melded.declared or seat.declared
        seat.drawn = None
        self.turn = melded.seat
        from_hand = list(meld.tiles)
        place = len(seat.melds)
        if meld.kind in ("added_kong", "whirlwind"):
            # One tile more than what lies there; a whirlwind laid down adds to nothing.
            for number, lying in enumerate(seat.melds):
                if lying.kind in ("pong", "whirlwind") and set(lying.tiles) == set(meld.tiles):
                    place = number
                    from_hand = list((Counter(meld.tiles) - Counter(lying.tiles)).elements())
        elif meld.kind != "concealed_kong":
            from_hand.remove(self._claimed(meld))
        for tile in from_hand:
            _take(seat.concealed, tile)
        seat.melds[place : place + 1] = [meld]

    def _claimed(self, meld: rules_pb2.Meld) -> int:
        """The tile that another gave to a meld; from its river, unless it was robbed."""
        if self.last_discard is None:
            return meld.claimed_tile
        source, claimed = self.last_discard
        river = self.seats[source].river
        if river and river[-1] == claimed:
            river.pop()
        self.last_discard = None
        return claimed

    def _kong_robbed(self, robbed: events_pb2.KongRobbed) -> None:
        self.last_discard = None
        melds = self.seats[robbed.seat].melds
        for place, meld in enumerate(melds):
            if meld.kind in ("added_kong", "whirlwind") and robbed.tile in meld.tiles:
                before = rules_pb2.Meld()
                before.CopyFrom(meld)
                before.tiles.remove(robbed.tile)
                before.kind = "pong" if meld.kind == "added_kong" else meld.kind
                melds[place] = before

    def _prompt(self, prompt: events_pb2.Prompt) -> None:
        self.prompt = prompt

    def _prompt_closed(self, closed: events_pb2.PromptClosed) -> None:
        if self.prompt is not None and self.prompt.decision_id == closed.decision_id:
            self.prompt = None

    def _seat_prompted(self, prompted: events_pb2.SeatPrompted) -> None:
        self.prompts[prompted.seat] = prompted.prompt

    def _seat_prompt_closed(self, told: events_pb2.SeatPromptClosed) -> None:
        prompt = self.prompts.get(told.seat)
        if prompt is not None and prompt.decision_id == told.closed.decision_id:
            del self.prompts[told.seat]

    def _trustee_changed(self, changed: events_pb2.TrusteeChanged) -> None:
        self.seats[changed.seat].trustee = changed.trustee
        if changed.seat == self.own_seat:
            self.back_decision_id = changed.decision_id

    def _connection_changed(self, changed: events_pb2.ConnectionChanged) -> None:
        self.seats[changed.seat].connected = changed.connected

    def _leave_announced(self, announced: events_pb2.LeaveAnnounced) -> None:
        self.seats[announced.seat].leaving = True

    def _hand_ended(self, ended: events_pb2.HandEnded) -> None:
        self.ended = ended
        self.prompt = None
        self.prompts = {}
        self.turn = None
        for seat, shown, net in zip(self.seats, ended.hand.seats, ended.net, strict=True):
            seat.concealed = list(shown.concealed)
            seat.drawn = None
            seat.melds = list(shown.melds)
            seat.flowers = list(shown.flowers)
            seat.declared = shown.declared
            seat.standing += net

    def _hand_settled(self, settled: events_pb2.HandSettled) -> None:
        self.settled = settled

    def _ready_asked(self, asked: events_pb2.ReadyAsked) -> None:
        self.ready_check = asked.decision_id

    def _ready_given(self, given: events_pb2.ReadyGiven) -> None:
        self.seats[given.seat].ready = True

    def _vote_opened(self, opened: events_pb2.VoteOpened) -> None:
        self.vote = state_pb2.TableVote(
            decision_id=opened.decision_id, seat=opened.seat, agreed=[opened.seat]
        )

    def _vote_answered(self, answered: events_pb2.VoteAnswered) -> None:
        if answered.agrees:
            self._agreed(lambda seats: seats | {answered.seat})

    def _agreed(self, change: Callable[[set[int]], set[int]]) -> None:
        if self.vote is None:
            return
        # A copy of this picture may hold the message too.
        vote = state_pb2.TableVote(decision_id=self.vote.decision_id, seat=self.vote.seat)
        vote.agreed.extend(sorted(change(set(self.vote.agreed))))
        self.vote = vote

    def _vote_closed(self, closed: events_pb2.VoteClosed) -> None:
        self.vote = None

    def _seat_vacated(self, vacated: events_pb2.SeatVacated) -> None:
        self._seat(state_pb2.Seat(seat=vacated.seat))
        self._agreed(lambda seats: seats - {vacated.seat})
        self.ready_check = ""
        for seat in self.seats:
            seat.ready = False

    def _player_seated(self, seated: events_pb2.PlayerSeated) -> None:
        self._seat(seated.seat)

    def _seat(self, seat: state_pb2.Seat) -> None:
        """Another player has a seat, or nobody; what lies there of the last hand stays."""
        table = state_pb2.Table()
        table.CopyFrom(self.table)
        table.seats[seat.seat].CopyFrom(seat)
        self.table = table
        known = self.seats[seat.seat]
        known.player_id, known.name = seat.player_id, shown_name(seat)
        known.connected = known.trustee = known.leaving = known.ready = False
        known.standing = 0
        if seat.seat == self.own_seat:
            self.prompt, self.back_decision_id = None, ""

    def _operator_acted(self, acted: events_pb2.OperatorActed) -> None:
        """What came of it is told by the events that follow."""

    def _table_closed(self, closed: events_pb2.TableClosed) -> None:
        self.closed = closed
        self.prompt = None
        self.prompts = {}
        self.ready_check = ""
        self.vote = None

    def _snapshot(self, snapshot: events_pb2.Snapshot) -> None:
        fresh = TableView(last_number=self.last_number)
        fresh._restore(snapshot)
        for one in fields(self):
            setattr(self, one.name, getattr(fresh, one.name))

    def _restore(self, snapshot: events_pb2.Snapshot) -> None:
        self._sit(snapshot.table)
        self.own_seat = snapshot.seat if snapshot.HasField("seat") else None
        self.back_decision_id = snapshot.back_decision_id
        if snapshot.HasField("hand"):
            hand = snapshot.hand
            self._hand_started(hand.started)
            self.wall_tiles = hand.wall_tiles
            self.turn = hand.turn if hand.HasField("turn") else None
            if hand.HasField("last_discard"):
                self.last_discard = (hand.last_discard.seat, hand.last_discard.tile)
            self.turned = list(hand.turned)
            self.treasure = hand.treasure
            self.dealing = hand.dealing
            self.ended = hand.ended if hand.HasField("ended") else None
            self.settled = hand.settled if hand.HasField("settled") else None
            for known, seat in zip(self.seats, hand.seats, strict=True):
                known.concealed = list(seat.concealed)
                known.drawn = seat.drawn if seat.HasField("drawn") else None
                known.melds = list(seat.melds)
                known.river = list(seat.river)
                known.flowers = list(seat.flowers)
                known.declared = seat.declared
                known.piao = seat.piao
                known.false_wins = seat.false_wins
            self._ask_all(snapshot.table)  # which a hand that starts takes for answered
        self.prompt = snapshot.prompt if snapshot.HasField("prompt") else None
        self.prompts = {prompted.seat: prompted.prompt for prompted in snapshot.prompts}
        self.closed = snapshot.closed if snapshot.HasField("closed") else None

    def to_snapshot(self) -> events_pb2.Snapshot:
        """The picture as a message."""
        snapshot = events_pb2.Snapshot(
            table=self.standing_table(),
            seat=self.own_seat,
            prompt=self.prompt,
            back_decision_id=self.back_decision_id,
            closed=self.closed,
            prompts=[
                events_pb2.SeatPrompted(seat=seat, prompt=prompt)
                for seat, prompt in sorted(self.prompts.items())
            ],
        )
        if self.started is not None:
            snapshot.hand.CopyFrom(self._hand_snapshot())
        return snapshot

    def standing_table(self) -> state_pb2.Table:
        """The table as it stands, as everybody may see it."""
        table = state_pb2.Table()
        table.CopyFrom(self.table)
        table.phase = self.phase
        table.hand_number = self.hand_number
        table.dealer = self.dealer
        table.closed_reason = self.closed.reason if self.closed is not None else ""
        for seat, known in zip(table.seats, self.seats, strict=True):
            seat.connected = known.connected
            seat.trustee = known.trustee
            seat.leaving = known.leaving
            seat.ready = known.ready
            seat.standing = known.standing
            seat.chips = table.starting_chips + known.standing if table.starting_chips else 0
        table.ready_check = self.ready_check
        table.ClearField("vote")
        if self.vote is not None:
            table.vote.CopyFrom(self.vote)
        return table

    @property
    def phase(self) -> state_pb2.TablePhase.ValueType:
        """Where the table stands."""
        if self.closed is not None:
            return state_pb2.TABLE_PHASE_CLOSED
        if self.started is None or self.ended is not None:
            return state_pb2.TABLE_PHASE_BETWEEN_HANDS
        if not any(seat.concealed or seat.melds for seat in self.seats):
            return state_pb2.TABLE_PHASE_BEFORE_DEAL
        return state_pb2.TABLE_PHASE_PLAYING

    def _hand_snapshot(self) -> events_pb2.HandSnapshot:
        lying = self.last_discard
        return events_pb2.HandSnapshot(
            started=self.started,
            wall_tiles=self.wall_tiles,
            seats=[
                events_pb2.SeatSnapshot(
                    concealed=seat.concealed,
                    drawn=seat.drawn,
                    melds=seat.melds,
                    river=seat.river,
                    flowers=seat.flowers,
                    declared=seat.declared,
                    piao=seat.piao,
                    false_wins=seat.false_wins,
                )
                for seat in self.seats
            ],
            turn=self.turn,
            last_discard=lying and events_pb2.LyingDiscard(seat=lying[0], tile=lying[1]),
            turned=self.turned,
            treasure=self.treasure,
            dealing=self.dealing,
            ended=self.ended,
            settled=self.settled,
        )


def shown_name(seat: state_pb2.Seat | table_pb2.SeatSummary) -> str:
    """The name of a seat's player to show: the profile where it is plain text, else the id."""
    try:
        name = seat.profile.decode("utf-8").strip()
    except UnicodeDecodeError:
        name = ""
    return name if name and name.isprintable() and len(name) <= 24 else seat.player_id


def _take(concealed: list[int], tile: int) -> None:
    """Take a tile out of a hand; of a hidden hand, any of its face-down tiles."""
    if tile in concealed:
        concealed.remove(tile)
    elif FACE_DOWN in concealed:
        concealed.remove(FACE_DOWN)


def before_hand(record: records_pb2.HandRecord) -> events_pb2.TableEvent:
    """The table before a finished hand, as far as its record tells: to be applied first."""
    table = state_pb2.Table(
        table_id=record.table_id,
        rules=record.rules,
        seats=[
            state_pb2.Seat(seat=seat, player_id=player_id, connected=True)
            for seat, player_id in enumerate(record.player_ids)
        ],
        stakes=record.stakes,
        labels=record.labels,
        commitment=record.table_commitment,
        hold_only=record.hold_only,
    )
    return events_pb2.TableEvent(table_opened=events_pb2.TableOpened(table=table))
