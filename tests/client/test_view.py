"""A client's picture of the table follows from the events alone."""

from __future__ import annotations

from typing import Any

import pytest

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import events_pb2, state_pb2
from fangcheng_client import notation
from fangcheng_client.view import TableView, shown_name

HANDS = ("123456789m1122z", "?????????????", "?????????????", "?????????????")


def told(view: TableView, **kinds: Any) -> None:
    view.apply(events_pb2.TableEvent(number=view.last_number + 1, **kinds))


def seated(own: int | None = 0, hands: tuple[str, ...] = HANDS, dealer: int = 1) -> TableView:
    """A view of a table in its first hand, just dealt."""
    view = TableView()
    table = state_pb2.Table(
        table_id="t1",
        hands=8,
        seats=[
            state_pb2.Seat(seat=seat, player_id=f"p{seat}", profile=name)
            for seat, name in enumerate((b"Mei", b"", b"\xff", b"Ju"))
        ],
    )
    opened = events_pb2.TableOpened(table=table)
    if own is not None:
        opened.seat = own
    told(view, table_opened=opened)
    told(view, hand_started=events_pb2.HandStarted(hand_number=1, dealer=dealer, wall_tiles=136))
    tiles = [events_pb2.SeatTiles(tiles=notation.parse(hand)) for hand in hands]
    told(view, dealt=events_pb2.Dealt(hands=tiles, wall_tiles=83))
    return view


def meld(kind: str, tiles: str, source: int = 0, claimed: int = 0) -> rules_pb2.Meld:
    return rules_pb2.Meld(
        kind=kind, tiles=notation.parse(tiles), from_seat=source, claimed_tile=claimed
    )


def test_own_draw_and_discard_change_the_own_hand() -> None:
    view = seated()
    told(view, drawn=events_pb2.Drawn(seat=0, tile=47, origin="front", wall_tiles=82))
    assert view.own.drawn == 47
    assert view.turn == 0
    told(view, discarded=events_pb2.Discarded(seat=0, tile=42))
    assert notation.text(sorted(view.own.concealed)) == "123456789m1127z"
    assert view.own.drawn is None
    assert view.own.river == [42]
    assert view.wall_tiles == 82
    assert view.last_discard == (0, 42)


def test_a_hidden_hand_shrinks_whatever_is_discarded() -> None:
    view = seated()
    told(view, drawn=events_pb2.Drawn(seat=2, tile=0, origin="front", wall_tiles=82))
    assert view.seats[2].concealed == [0] * 14
    told(view, discarded=events_pb2.Discarded(seat=2, tile=25, declared="ting"))
    assert view.seats[2].concealed == [0] * 13
    assert view.seats[2].declared == "ting"
    told(view, discarded=events_pb2.Discarded(seat=2, tile=26))
    assert view.seats[2].declared == "ting"


def test_a_claimed_discard_goes_from_the_river_into_the_meld() -> None:
    view = seated()
    told(view, discarded=events_pb2.Discarded(seat=3, tile=41))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("pong", "111z", 3, 41)))
    assert view.seats[3].river == []
    assert notation.text(sorted(view.own.concealed)) == "123456789m22z"
    assert [one.kind for one in view.own.melds] == ["pong"]
    assert view.turn == 0


def test_a_chi_takes_two_tiles_from_the_hand() -> None:
    view = seated()
    told(view, discarded=events_pb2.Discarded(seat=3, tile=12))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("chi", "123m", 3, 12)))
    assert notation.text(sorted(view.own.concealed)) == "2456789m1122z"


@pytest.mark.parametrize(
    ("kind", "tiles", "hand", "left"),
    [
        ("concealed_kong", "1111m", "11112223334445m", 10),
        ("exposed_kong", "1111m", "1112223334445m", 10),
    ],
)
def test_a_kong_takes_its_tiles_from_the_hand(kind: str, tiles: str, hand: str, left: int) -> None:
    view = seated(hands=(hand, *HANDS[1:]))
    claimed = 11 if kind == "exposed_kong" else 0
    if claimed:
        told(view, discarded=events_pb2.Discarded(seat=3, tile=claimed))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld(kind, tiles, 3, claimed)))
    assert len(view.own.concealed) == left
    assert 11 not in view.own.concealed


def test_an_added_kong_takes_the_place_of_its_pong() -> None:
    view = seated()
    told(view, discarded=events_pb2.Discarded(seat=3, tile=41))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("pong", "111z", 3, 41)))
    told(view, drawn=events_pb2.Drawn(seat=0, tile=41, origin="front", wall_tiles=80))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("added_kong", "1111z", 3, 41)))
    assert [one.kind for one in view.own.melds] == ["added_kong"]
    assert 41 not in view.own.concealed


def test_a_robbed_kong_is_a_pong_again() -> None:
    view = seated()
    told(view, discarded=events_pb2.Discarded(seat=3, tile=41))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("pong", "111z", 3, 41)))
    told(view, drawn=events_pb2.Drawn(seat=0, tile=41, origin="front", wall_tiles=80))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("added_kong", "1111z", 3, 41)))
    told(view, kong_robbed=events_pb2.KongRobbed(seat=0, tile=41))
    (pong,) = view.own.melds
    assert (pong.kind, list(pong.tiles)) == ("pong", [41, 41, 41])
    assert 41 not in view.own.concealed, "the tile is the robber's"


def test_a_whirlwind_takes_three_dragons_and_then_one_at_a_time() -> None:
    view = seated(hands=("123456789m567z5z", *HANDS[1:]))
    whirlwind = rules_pb2.Meld(kind="whirlwind", tiles=notation.parse("567z"))
    told(view, melded=events_pb2.Melded(seat=0, meld=whirlwind))
    assert notation.text(sorted(view.own.concealed)) == "123456789m5z"
    more = rules_pb2.Meld(kind="whirlwind", tiles=notation.parse("5567z"))
    told(view, melded=events_pb2.Melded(seat=0, meld=more))
    assert notation.text(sorted(view.own.concealed)) == "123456789m"
    assert [list(one.tiles) for one in view.own.melds] == [notation.parse("5567z")]
    told(view, kong_robbed=events_pb2.KongRobbed(seat=0, tile=45))
    assert [list(one.tiles) for one in view.own.melds] == [notation.parse("567z")]


def test_a_robbed_dragon_makes_a_pong_with_two_from_the_hand() -> None:
    view = seated(hands=("123456789m55z11z", *HANDS[1:]))
    told(view, discarded=events_pb2.Discarded(seat=3, tile=11))
    told(view, kong_robbed=events_pb2.KongRobbed(seat=2, tile=45))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("pong", "555z", 2, 45)))
    assert notation.text(sorted(view.own.concealed)) == "123456789m11z"
    assert view.seats[3].river == [11]


def test_flowers_lie_apart_and_are_replaced() -> None:
    view = seated(hands=("123456789m112z1f", "?????????????", *HANDS[2:]))
    told(view, flower_laid=events_pb2.FlowerLaid(seat=0, tile=51))
    told(view, drawn=events_pb2.Drawn(seat=0, tile=47, origin="flower", wall_tiles=82))
    told(view, flower_laid=events_pb2.FlowerLaid(seat=1, tile=58))
    assert view.own.flowers == [51]
    assert notation.text(sorted(view.own.concealed)) == "123456789m1127z"
    assert (view.seats[1].flowers, view.seats[1].concealed) == ([58], [0] * 12)


def test_flowers_replaced_after_the_deal_are_no_turn() -> None:
    view = seated(hands=("123456789m11225z", *HANDS[1:]), dealer=0)
    told(view, flower_laid=events_pb2.FlowerLaid(seat=1, tile=58))
    told(view, drawn=events_pb2.Drawn(seat=1, tile=0, origin="flower", wall_tiles=82))
    assert (view.turn, view.seats[1].drawn) == (0, None)
    assert view.seats[1].concealed == [0] * 13
    told(view, discarded=events_pb2.Discarded(seat=0, tile=45))
    told(view, drawn=events_pb2.Drawn(seat=1, tile=0, origin="front", wall_tiles=81))
    told(view, flower_laid=events_pb2.FlowerLaid(seat=1, tile=57))
    told(view, drawn=events_pb2.Drawn(seat=1, tile=0, origin="flower", wall_tiles=80))
    assert (view.turn, view.seats[1].drawn) == (1, 0), "now it plays with what it drew"


def test_the_treasure_is_seen_and_so_are_those_before_it() -> None:
    view = seated()
    told(view, treasure_turned=events_pb2.TreasureTurned(index=114, tile=21))
    told(view, treasure_turned=events_pb2.TreasureTurned(index=115, tile=22))
    assert (view.treasure, view.seen()[21], view.seen()[22]) == (22, 1, 1)
    told(view, treasure_turned=events_pb2.TreasureTurned())
    assert (view.treasure, view.turned) == (0, [21, 22])


def test_a_shown_hand_is_known_and_discards_what_it_drew() -> None:
    view = seated()
    hand = notation.parse("123p456s55p67m222s")
    told(view, drawn=events_pb2.Drawn(seat=2, tile=0, origin="front", wall_tiles=82))
    told(view, discarded=events_pb2.Discarded(seat=2, tile=44, declared="lou_open", shown=hand))
    assert view.seats[2].concealed == hand
    told(view, drawn=events_pb2.Drawn(seat=2, tile=0, origin="front", wall_tiles=81))
    told(view, discarded=events_pb2.Discarded(seat=2, tile=21))
    assert view.seats[2].concealed == hand, "the 1p that it drew, not the one it holds"
    # Its hand lies open: all see of what a concealed kong is made, and the rest as before.
    told(view, drawn=events_pb2.Drawn(seat=2, tile=0, origin="front", wall_tiles=80))
    kong = rules_pb2.Meld(kind="concealed_kong", tiles=notation.parse("2222s"))
    told(view, melded=events_pb2.Melded(seat=2, meld=kong))
    assert view.seats[2].concealed == notation.parse("123p456s55p67m")
    told(view, drawn=events_pb2.Drawn(seat=2, tile=0, origin="back", wall_tiles=79))
    told(view, discarded=events_pb2.Discarded(seat=2, tile=24))
    assert view.seats[2].concealed == notation.parse("123p456s55p67m")


def test_a_false_win_is_counted_for_its_seat() -> None:
    view = seated()
    told(view, false_win_called=events_pb2.FalseWinCalled(seat=3))
    assert [seat.false_wins for seat in view.seats] == [0, 0, 0, 1]


def test_another_seats_concealed_kong_stays_face_down() -> None:
    view = seated()
    told(view, drawn=events_pb2.Drawn(seat=1, tile=0, origin="front", wall_tiles=80))
    told(
        view,
        melded=events_pb2.Melded(
            seat=1, meld=rules_pb2.Meld(kind="concealed_kong", tiles=[0, 0, 0, 0])
        ),
    )
    assert view.seats[1].concealed == [0] * 10
    assert sum(view.seen().values()) == 13


def test_seen_tiles_count_rivers_melds_and_the_own_hand() -> None:
    view = seated()
    told(view, discarded=events_pb2.Discarded(seat=3, tile=41))
    told(view, melded=events_pb2.Melded(seat=0, meld=meld("pong", "111z", 3, 41)))
    told(view, discarded=events_pb2.Discarded(seat=0, tile=11))
    seen = view.seen()
    assert seen[41] == 3
    assert seen[11] == 1
    assert seen[0] == 0


def test_a_prompt_is_open_until_its_own_closing() -> None:
    view = seated()
    told(view, prompt=events_pb2.Prompt(decision_id="7", kind="claim"))
    told(view, prompt_closed=events_pb2.PromptClosed(decision_id="6", why="withdrawn"))
    assert view.prompt is not None
    told(view, prompt_closed=events_pb2.PromptClosed(decision_id="7", why="withdrawn"))
    assert view.prompt is None


def test_what_each_seat_is_asked_is_open_until_its_own_closing() -> None:
    view = seated(own=None)
    for seat in (0, 2):
        prompt = events_pb2.Prompt(decision_id=f"1-{seat}", kind="claim")
        told(view, seat_prompted=events_pb2.SeatPrompted(seat=seat, prompt=prompt))
    before = view.copy()

    def close(seat: int, decision_id: str) -> None:
        closed = events_pb2.PromptClosed(decision_id=decision_id, why="answered")
        told(view, seat_prompt_closed=events_pb2.SeatPromptClosed(seat=seat, closed=closed))

    close(0, "1-9")
    close(1, "1-0")
    assert {seat: prompt.decision_id for seat, prompt in view.prompts.items()} == {
        0: "1-0",
        2: "1-2",
    }
    again = TableView()
    told(again, snapshot=view.to_snapshot())
    assert again.prompts == view.prompts
    close(0, "1-0")
    assert list(view.prompts) == [2]
    assert list(before.prompts) == [0, 2]
    told(view, hand_started=events_pb2.HandStarted(hand_number=2))
    assert not view.prompts


def test_the_end_of_a_hand_shows_all_and_the_next_one_clears_it() -> None:
    view = seated()
    hand = rules_pb2.FinishedHand(
        seats=[rules_pb2.SeatHand(concealed=notation.parse("123m")) for _ in range(4)],
        draw=rules_pb2.DrawEnd(),
    )
    told(view, hand_ended=events_pb2.HandEnded(hand_number=1, hand=hand, net=[6, -2, -2, -2]))
    assert view.seats[2].concealed == [11, 12, 13]
    assert [seat.standing for seat in view.seats] == [6, -2, -2, -2]
    told(view, hand_started=events_pb2.HandStarted(hand_number=2, dealer=2, wall_tiles=136))
    assert view.ended is None
    assert all(not seat.concealed for seat in view.seats)
    assert [seat.standing for seat in view.seats] == [6, -2, -2, -2]


def test_an_unknown_kind_of_event_changes_nothing() -> None:
    view = seated()
    before = view.copy()
    view.apply(events_pb2.TableEvent(number=view.last_number + 1))
    before.last_number += 1
    assert view == before


def test_a_snapshot_stays_as_it_was() -> None:
    view = seated()
    kept = view.copy()
    told(view, discarded=events_pb2.Discarded(seat=0, tile=11))
    assert 11 in kept.own.concealed
    assert kept.own.river == []


def test_a_profile_is_shown_only_where_it_is_plain_text() -> None:
    names = [seat.name for seat in seated().seats]
    assert names == ["Mei", "p1", "p2", "Ju"]
    long = state_pb2.Seat(player_id="p", profile=b"x" * 25)
    assert shown_name(long) == "p"
    control = state_pb2.Seat(player_id="p", profile=b"a\x1b[31m")
    assert shown_name(control) == "p"


def test_a_spectator_has_no_seat() -> None:
    with pytest.raises(ValueError, match="spectator"):
        _ = seated(own=None).own
