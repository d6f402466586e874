"""What each viewer sees of a table: a pure function of the journal.

A viewer is a seat (0 to 3) or the spectators (4). Each has events with numbers of its own, counted
over what it sees, so that neither a message nor a gap tells of what it does not see (rules/README,
"What is seen"). `RECORD` sees everything but prompts; its events make the record of a hand. An
operator who has all tiles shown sees the prompts too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_rules import events as play
from fangcheng_rules.melds import Meld, MeldKind
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import FinishedHand, SeatEnd
from fangcheng_rules.tiles import DRAGONS, code

from . import convert, convert_play, convert_settlement
from .events import (
    ConnectionChanged,
    Event,
    HandOpened,
    HandSettled,
    LeaveAnnounced,
    Offered,
    OperatorActed,
    PlayerSeated,
    ReadyAsked,
    ReadyGiven,
    SeatVacated,
    TableClosed,
    TableCreated,
    VoteAnswered,
    VoteClosed,
    VoteOpened,
)
from .ids import READY, VOTE, prompt_id, table_question_id, trustee_id
from .state import TableState
from .store import Record

SEATS = (0, 1, 2, 3)
SPECTATORS = 4
VIEWERS = (*SEATS, SPECTATORS)
RECORD = 5

PROMPT_KINDS = {"piao": "before_deal", "turn": "turn", "claim": "claim", "dealt_out": "dealt_out"}

Sight = tuple[tuple[int, ...], events_pb2.TableEvent]
"""Some viewers, and the event that all of them see."""


@dataclass(slots=True)
class _Seat:
    """What is open to all of a seat in this hand, and what the seat is asked."""

    declared: str = ""
    piao: int = 0
    first_discard: int | None = None
    melds: list[Meld] = field(default_factory=list)
    """Its melds to which a tile can be added, as they were before one is."""
    flowers: list[int] = field(default_factory=list)
    is_shown: bool = False
    """All see its concealed tiles (明楼)."""
    asked: str = ""
    """Kind of the decision that is about to be shown."""


class Projector:
    """Turns the events of a journal, in their order, into what the viewers see."""

    def __init__(self, *, record: bool = False, prompts: bool = False) -> None:
        """`record`: show everything, to `RECORD` alone; `prompts`: what seats are asked, too."""
        self._everybody: tuple[int, ...] = (RECORD,) if record else VIEWERS
        self._record = record
        self._prompts = prompts
        self._rules: RuleSet | None = None
        self._hand = HandOpened(0, b"", ())
        self._dealer = 0
        self._wall_tiles = 0
        self._seats = [_Seat() for _ in SEATS]
        self._drawn_hands_before = 0
        self._treasure: int | None = None
        self._false_wins: list[int] = []
        self._trustee_times = [0, 0, 0, 0]
        self._standings = [0, 0, 0, 0]
        self._players = ["", "", "", ""]
        self._starting_chips = 0

    @classmethod
    def between_hands(cls, state: TableState) -> Projector:
        """One that has seen everything up to a state between two hands."""
        projector = cls()
        projector._rules = rule_set(state.created.rule_set, state.created.revision)
        projector._trustee_times = [seat.trustee_times for seat in state.seats]
        projector._standings = [seat.standing for seat in state.seats]
        projector._players = [seat.plan.player_id for seat in state.seats]
        projector._starting_chips = state.created.starting_chips
        return projector

    def revealed(self) -> Projector:
        """One that shows everything, with what this one knows of the table around its hands.

        What seats are asked is among it.
        """
        projector = Projector(record=True, prompts=True)
        projector._rules = self._rules
        projector._trustee_times = list(self._trustee_times)
        projector._standings = list(self._standings)
        projector._players = list(self._players)
        projector._starting_chips = self._starting_chips
        return projector

    def see(self, record: Record) -> Iterator[Sight]:
        """What viewers see of the next event of the journal; nobody twice."""
        show = _SHOW.get(type(record.event))
        if show is None:
            return
        for viewers, event in show(self, record.event):
            event.time.FromMilliseconds(record.time_ms)
            yield viewers, event

    # For all, or different for one than for the others.

    def _all(self, **kind: Any) -> Iterator[Sight]:
        yield self._everybody, events_pb2.TableEvent(**kind)

    def _split(
        self, seat: int, own: events_pb2.TableEvent, others: Callable[[], events_pb2.TableEvent]
    ) -> Iterator[Sight]:
        if self._record:
            yield (RECORD,), own
            return
        yield (seat,), own
        yield tuple(viewer for viewer in VIEWERS if viewer != seat), others()

    # The events, in the order in which a table tells them.

    def _created(self, event: TableCreated) -> Iterator[Sight]:
        self._rules = rule_set(event.rule_set, event.revision)
        self._players = [plan.player_id for plan in event.seats]
        self._starting_chips = event.starting_chips
        table = convert.table_as_created(event)
        if self._record:
            return
        for seat in SEATS:
            opened = events_pb2.TableOpened(table=table, seat=seat)
            yield (seat,), events_pb2.TableEvent(table_opened=opened)
        yield (SPECTATORS,), events_pb2.TableEvent(table_opened=events_pb2.TableOpened(table=table))

    def _connection(self, event: ConnectionChanged) -> Iterator[Sight]:
        return self._all(
            connection_changed=events_pb2.ConnectionChanged(
                seat=event.seat, connected=event.connected
            )
        )

    def _leave(self, event: LeaveAnnounced) -> Iterator[Sight]:
        # Who leaves now is told of by what follows: while a claim to win is pending, nothing is.
        if event.now:
            return iter(())
        return self._all(leave_announced=events_pb2.LeaveAnnounced(seat=event.seat))

    def _trustee(self, event: play.TrusteeSet) -> Iterator[Sight]:
        self._trustee_times[event.seat] += event.on
        shown = events_pb2.TrusteeChanged(seat=event.seat, trustee=event.on, why=event.reason)
        own = events_pb2.TrusteeChanged()
        own.CopyFrom(shown)
        if event.on and event.reason != "removed" and not self._record:
            own.decision_id = trustee_id(self._trustee_times[event.seat])
        return self._split(
            event.seat,
            events_pb2.TableEvent(trustee_changed=own),
            lambda: events_pb2.TableEvent(trustee_changed=shown),
        )

    def _opened(self, event: HandOpened) -> Iterator[Sight]:
        self._hand = event
        return iter(())

    def _started(self, event: play.HandStarted) -> Iterator[Sight]:
        self._dealer = event.dealer
        self._wall_tiles = len(event.wall)
        self._seats = [_Seat() for _ in SEATS]
        self._drawn_hands_before = event.drawn_hands_before
        self._treasure = None
        self._false_wins = []
        return self._all(
            hand_started=events_pb2.HandStarted(
                hand_number=event.hand_number,
                dealer=event.dealer,
                dice=event.dice,
                commitment=sha256(self._hand.secret).digest(),
                entropy=self._hand.entropy,
                wall_tiles=self._wall_tiles,
                drawn_hands_before=event.drawn_hands_before,
            )
        )

    def _asked(self, event: play.Asked) -> Iterator[Sight]:
        # Shown with what it offers, which is the next event.
        self._seats[event.seat].asked = PROMPT_KINDS[event.kind]
        return iter(())

    def _offered(self, event: Offered) -> Iterator[Sight]:
        prompt = events_pb2.Prompt(
            decision_id=prompt_id(self._hand.hand_number, event.decision),
            kind=self._seats[event.seat].asked,
            actions=[convert_play.action_to_wire(action) for action in event.actions],
        )
        if not self._record:
            yield (event.seat,), events_pb2.TableEvent(prompt=prompt)
        elif self._prompts:
            prompted = events_pb2.SeatPrompted(seat=event.seat, prompt=prompt)
            yield (RECORD,), events_pb2.TableEvent(seat_prompted=prompted)

    def _closed_prompt(self, seat: int, decision: int, why: str, **more: Any) -> Iterator[Sight]:
        decision_id = prompt_id(self._hand.hand_number, decision)
        closed = events_pb2.PromptClosed(decision_id=decision_id, why=why, **more)
        if not self._record:
            yield (seat,), events_pb2.TableEvent(prompt_closed=closed)
        elif self._prompts:
            shown = events_pb2.SeatPromptClosed(seat=seat, closed=closed)
            yield (RECORD,), events_pb2.TableEvent(seat_prompt_closed=shown)

    def _answered(self, event: play.Answered) -> Iterator[Sight]:
        if not event.decision:  # the table itself, for a seat that was not asked
            return iter(())
        action = convert_play.action_to_wire(event.action)
        return self._closed_prompt(event.seat, event.decision, "answered", action=action)

    def _timed_out(self, event: play.TimedOut) -> Iterator[Sight]:
        return self._closed_prompt(event.seat, event.decision, "timed_out")

    def _withdrawn(self, event: play.Withdrawn) -> Iterator[Sight]:
        return self._closed_prompt(event.seat, event.decision, "withdrawn")

    def _piao(self, event: play.PiaoShown) -> Iterator[Sight]:
        for seat, units in zip(self._seats, event.units, strict=True):
            seat.piao = units
        return self._all(piao_shown=events_pb2.PiaoShown(units=event.units))

    def _dealt(self, event: play.Dealt) -> Iterator[Sight]:
        self._wall_tiles -= sum(map(len, event.hands))
        hidden = [events_pb2.SeatTiles(tiles=[0] * len(hand)) for hand in event.hands]
        shown = [events_pb2.SeatTiles(tiles=[code(tile) for tile in hand]) for hand in event.hands]

        def dealt(seen: Container[int]) -> events_pb2.TableEvent:
            hands = [shown[seat] if seat in seen else hidden[seat] for seat in SEATS]
            return events_pb2.TableEvent(
                dealt=events_pb2.Dealt(hands=hands, wall_tiles=self._wall_tiles)
            )

        if self._record:
            yield (RECORD,), dealt(SEATS)
            return
        for viewer in VIEWERS:
            yield (viewer,), dealt((viewer,))

    def _drew(self, event: play.Drew) -> Iterator[Sight]:
        self._wall_tiles -= 1

        def drawn(tile: int) -> events_pb2.TableEvent:
            return events_pb2.TableEvent(
                drawn=events_pb2.Drawn(
                    seat=event.seat, tile=tile, origin=event.origin, wall_tiles=self._wall_tiles
                )
            )

        return self._split(event.seat, drawn(code(event.tile)), lambda: drawn(0))

    def _flower(self, event: play.FlowerLaid) -> Iterator[Sight]:
        self._seats[event.seat].flowers.append(event.tile)
        return self._all(flower_laid=events_pb2.FlowerLaid(seat=event.seat, tile=code(event.tile)))

    def _turned(self, event: play.TreasureTurned) -> Iterator[Sight]:
        self._treasure = event.tile
        tile = 0 if event.tile is None else code(event.tile)
        return self._all(treasure_turned=events_pb2.TreasureTurned(index=event.index, tile=tile))

    def _discarded(self, event: play.Discarded) -> Iterator[Sight]:
        seat = self._seats[event.seat]
        seat.declared = event.declared or seat.declared
        if seat.first_discard is None:
            seat.first_discard = event.tile
        if event.shown:
            seat.is_shown = True
        return self._all(
            discarded=events_pb2.Discarded(
                seat=event.seat,
                tile=code(event.tile),
                declared=event.declared,
                shown=[code(tile) for tile in event.shown],
            )
        )

    def _called(self, event: play.Called) -> Iterator[Sight]:
        self._seats[event.seat].melds.append(event.meld)
        return self._all(
            melded=events_pb2.Melded(seat=event.seat, meld=convert_play.meld_to_wire(event.meld))
        )

    def _kong(self, event: play.KongDeclared) -> Iterator[Sight]:
        seat = self._seats[event.seat]
        seat.declared = event.declared or seat.declared
        if event.kind is MeldKind.ADDED_KONG:
            meld = next(meld for meld in seat.melds if meld.takes(event.tile)).plus(event.tile)
        elif event.kind is MeldKind.WHIRLWIND:
            meld = Meld(event.kind, tuple(DRAGONS))
            seat.melds.append(meld)
        else:
            meld = Meld(event.kind, (event.tile,) * 4)

        def melded(shown: rules_pb2.Meld) -> events_pb2.TableEvent:
            return events_pb2.TableEvent(
                melded=events_pb2.Melded(seat=event.seat, meld=shown, declared=event.declared)
            )

        own = melded(convert_play.meld_to_wire(meld))
        if meld.is_open or seat.is_shown:
            return iter([(self._everybody, own)])
        # A concealed kong lies face down: that it was made is seen, not of what.
        face_down = rules_pb2.Meld(kind=meld.kind, tiles=[0, 0, 0, 0])
        return self._split(event.seat, own, lambda: melded(face_down))

    def _kong_stands(self, event: play.KongDone) -> Iterator[Sight]:
        melds = self._seats[event.seat].melds
        if event.kind is MeldKind.ADDED_KONG:
            place = next(i for i, meld in enumerate(melds) if meld.takes(event.tile))
            melds[place] = melds[place].plus(event.tile)
        return iter(())

    def _robbed(self, event: play.KongRobbed) -> Iterator[Sight]:
        return self._all(kong_robbed=events_pb2.KongRobbed(seat=event.seat, tile=code(event.tile)))

    def _false_win(self, event: play.FalseWinCalled) -> Iterator[Sight]:
        self._false_wins.append(event.seat)
        return self._all(false_win_called=events_pb2.FalseWinCalled(seat=event.seat))

    def _ended(self, event: play.HandEnded) -> Iterator[Sight]:
        if self._rules is None:
            raise ValueError("a hand has ended at no table")
        net = event.score.net
        self._standings = [a + b for a, b in zip(self._standings, net, strict=True)]
        finished = FinishedHand(
            dealer=self._dealer,
            seats=tuple(
                SeatEnd(
                    hand,
                    melds,
                    seat.declared,
                    seat.piao,
                    seat.first_discard,
                    tuple(seat.flowers),
                )
                for hand, melds, seat in zip(event.hands, event.melds, self._seats, strict=True)
            ),
            end=event.end,
            drawn_hands_before=self._drawn_hands_before,
            treasure=self._treasure,
            false_wins=tuple(self._false_wins),
        )
        return self._all(
            hand_ended=events_pb2.HandEnded(
                hand_number=self._hand.hand_number,
                hand=convert_play.finished_to_wire(finished),
                score=convert_play.score_to_wire(event.score, self._rules),
                net=net,
                secret=self._hand.secret,
            )
        )

    def _settled(self, event: HandSettled) -> Iterator[Sight]:
        return self._all(
            hand_settled=events_pb2.HandSettled(
                hand_number=event.hand_number,
                key=event.key,
                payments=[
                    convert_settlement.payment_to_wire(payment) for payment in event.payments
                ],
            )
        )

    # What all say together, and who comes and goes.

    def _ready_asked(self, event: ReadyAsked) -> Iterator[Sight]:
        decision_id = table_question_id(READY, event.check)
        return self._all(ready_asked=events_pb2.ReadyAsked(decision_id=decision_id))

    def _ready_given(self, event: ReadyGiven) -> Iterator[Sight]:
        return self._all(ready_given=events_pb2.ReadyGiven(seat=event.seat))

    def _vote_opened(self, event: VoteOpened) -> Iterator[Sight]:
        decision_id = table_question_id(VOTE, event.vote)
        opened = events_pb2.VoteOpened(decision_id=decision_id, seat=event.seat)
        return self._all(vote_opened=opened)

    def _vote_answered(self, event: VoteAnswered) -> Iterator[Sight]:
        return self._all(
            vote_answered=events_pb2.VoteAnswered(
                decision_id=table_question_id(VOTE, event.vote),
                seat=event.seat,
                agrees=event.agrees,
            )
        )

    def _vote_closed(self, event: VoteClosed) -> Iterator[Sight]:
        decision_id = table_question_id(VOTE, event.vote)
        closed = events_pb2.VoteClosed(decision_id=decision_id, outcome=event.outcome)
        return self._all(vote_closed=closed)

    def _vacated(self, event: SeatVacated) -> Iterator[Sight]:
        self._standings[event.seat] = 0
        self._players[event.seat] = ""
        return self._all(seat_vacated=events_pb2.SeatVacated(seat=event.seat, why=event.why))

    def _seated(self, event: PlayerSeated) -> Iterator[Sight]:
        plan = event.plan
        self._players[event.seat] = plan.player_id
        seat = state_pb2.Seat(
            seat=event.seat,
            player_id=plan.player_id,
            profile=plan.profile,
            chips=self._starting_chips,
        )
        return self._all(player_seated=events_pb2.PlayerSeated(seat=seat))

    def _operator(self, event: OperatorActed) -> Iterator[Sight]:
        # That somebody looks at a game must not warn who is looked at; the record tells it.
        if event.verb == "reveal" and not self._record:
            return iter(())
        return self._all(
            operator_acted=events_pb2.OperatorActed(
                verb=event.verb, seat=event.seat, reason=event.reason, case_id=event.case_id
            )
        )

    def _closed(self, event: TableClosed) -> Iterator[Sight]:
        seated = [seat for seat in SEATS if self._players[seat]]
        standings = self._standings
        ranking = [
            events_pb2.Rank(
                place=1 + sum(standings[other] > standings[seat] for other in seated),
                seat=seat,
                player_id=self._players[seat],
                standing=standings[seat],
            )
            for seat in sorted(seated, key=lambda seat: -standings[seat])
        ]
        return self._all(
            table_closed=events_pb2.TableClosed(
                reason=event.reason, standings=standings, ranking=ranking
            )
        )


# What is not in here is seen by nobody: shares in a shuffle before it is used, what the evaluator
# told, the closing of a claim window, what was used of a reserve, that a grace is over, a leave
# that waits for a claim, a kong that stands (it was seen when it was declared).
_SHOW: dict[type[Event], Callable[[Projector, Any], Iterator[Sight]]] = {
    TableCreated: Projector._created,
    ConnectionChanged: Projector._connection,
    LeaveAnnounced: Projector._leave,
    play.TrusteeSet: Projector._trustee,
    HandOpened: Projector._opened,
    play.HandStarted: Projector._started,
    play.Asked: Projector._asked,
    Offered: Projector._offered,
    play.Answered: Projector._answered,
    play.TimedOut: Projector._timed_out,
    play.Withdrawn: Projector._withdrawn,
    play.PiaoShown: Projector._piao,
    play.Dealt: Projector._dealt,
    play.Drew: Projector._drew,
    play.FlowerLaid: Projector._flower,
    play.TreasureTurned: Projector._turned,
    play.Discarded: Projector._discarded,
    play.Called: Projector._called,
    play.KongDeclared: Projector._kong,
    play.KongDone: Projector._kong_stands,
    play.KongRobbed: Projector._robbed,
    play.FalseWinCalled: Projector._false_win,
    play.HandEnded: Projector._ended,
    HandSettled: Projector._settled,
    ReadyAsked: Projector._ready_asked,
    ReadyGiven: Projector._ready_given,
    VoteOpened: Projector._vote_opened,
    VoteAnswered: Projector._vote_answered,
    VoteClosed: Projector._vote_closed,
    SeatVacated: Projector._vacated,
    PlayerSeated: Projector._seated,
    OperatorActed: Projector._operator,
    TableClosed: Projector._closed,
}
