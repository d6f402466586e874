"""What all the rows come to: each board and each spread, counted."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from .estimates import Counts, Measure
from .figures import Board, Column, Figures, Row, Spread, Text
from .hands import ENDS, REASONS, Rows, Session, seats_of
from .plan import Plan

SEATS = range(4)


def figures_of(plan: Plan, played: Session) -> Figures:
    """All figures of what was played, which may be less than was planned."""
    seen = _Seen(plan, played)
    boards = [
        _ends(seen),
        _course(seen),
        _places(seen),
        *([_kinds(seen)] if len(set(plan.players)) > 1 else []),
        _wins(seen),
        _items(seen),
        _moved(seen),
        _buy_ins(seen),
    ]
    return Figures(plan, len(seen.rows), seen.sessions, tuple(boards), _spreads(seen), _ruin(seen))


class _Seen:
    """The rows, and how to count in them."""

    def __init__(self, plan: Plan, played: Session) -> None:
        self.plan, self.rules = plan, plan.rules
        self.rows, self.purses = played.hands, played.purses
        self.sessions = -(-len(self.rows) // plan.session_hands)
        self.whole = len(self.rows) // plan.session_hands
        self.hands = self.summed(np.ones(len(self.rows), np.int64))
        self.winners = seats_of(self.rows["winners"])
        self.by_discard = self.rows["end"] == ENDS.index("discard")
        self.dealt_in = (self.rows["source"][:, None] == np.arange(4)) & self.by_discard[:, None]
        self.won = self.rows["won"]

    def summed(self, values: NDArray[np.generic]) -> Counts:
        """By session, the sum over its hands."""
        sums = np.zeros(self.sessions, np.int64)
        np.add.at(sums, self.rows["session"], values.astype(np.int64))
        return sums

    def share(self, values: NDArray[np.bool_]) -> Measure:
        """How many of the hands it is so in."""
        return Measure(self.summed(values), self.hands, is_share=True)

    def mean(self, values: NDArray[np.generic]) -> Measure:
        """How much of it a hand has."""
        return Measure(self.summed(values), self.hands)

    def whole_purses(self, buy_in: int) -> Rows:
        """What became of a buy-in, in the sessions that were to have all their hands."""
        purses = self.purses
        asked: Rows = purses[(purses["buy_in"] == buy_in) & (purses["session"] < self.whole)]
        return asked


END_NAMES: Mapping[str, tuple[str, str, str]] = {
    "discard": ("点炮", "win on a discard", "Somebody discarded the winning tile."),
    "self_draw": ("自摸", "win by self-draw", "The winner drew the winning tile himself."),
    "rob_kong": ("抢杠", "win by robbing a kong", "The winning tile was being added to a pong."),
    "eight_flowers": ("八花", "all the flowers laid down", "Which wins at once."),
    "draw": ("荒庄", "drawn hand", "Nobody won before the wall was used up."),
}


def _ends(seen: _Seen) -> Board:
    column = Column("share", "share of hands", "Of all hands, how many ended so.", "%")
    cells = {
        (end, "share"): seen.share(seen.rows["end"] == place) for place, end in enumerate(ENDS)
    }
    if not seen.rules.flowers_win:
        del cells["eight_flowers", "share"]
    rows = [Row(id, (zh, en), why) for id, (zh, en, why) in END_NAMES.items()]
    cells["several", "share"] = seen.share(seen.winners.sum(axis=1) > 1)
    rows.append(Row("several", ("一炮多响", "several winners"), "More than one won the same tile."))
    return Board(
        "ends",
        "How hands end",
        "Every hand ends in one of these ways; several winners are counted once more.",
        (column,),
        tuple(row for row in rows if (row.id, "share") in cells),
        cells,
    )


def _course(seen: _Seen) -> Board:
    rows, column = seen.rows, Column("mean", "in a hand", "On average over all hands.")
    told: list[tuple[Row, Measure]] = [
        (
            Row("discards", ("", "discards"), "Of all four players together."),
            seen.mean(rows["discards"]),
        ),
        (
            Row("left", ("", "tiles left"), "In the wall when the hand ended."),
            seen.mean(rows["left"]),
        ),
        (Row("kongs", ("杠", "kongs"), "Made and not robbed."), seen.mean(rows["kongs"])),
    ]
    if seen.rules.declares:
        told.append(
            (
                Row(
                    "declared", ("", "players who declared"), "Of the four, a wait (听, 明楼 ...)."
                ),
                seen.mean(seats_of(rows["declared"]).sum(axis=1)),
            )
        )
    told.append(
        (
            Row(
                "stays", ("连庄", "dealer stays"), "The share of hands after which the deal stays."
            ),
            seen.share(rows["stays"]),
        )
    )
    return Board(
        "course",
        "How hands go",
        "",
        (column,),
        tuple(row for row, _ in told),
        {(row.id, "mean"): measure for row, measure in told},
    )


_FORTUNE = (
    Column("wins", "wins", "Of the hands in that place, how many it won.", "%"),
    Column("self_draws", "self-draws", "How many it won by self-draw.", "%"),
    Column("deals_in", "deals in", "How many it lost by discarding the winning tile.", "%"),
    Column("net", "units a hand", "What it gained or lost in a hand, kongs and all.", "units"),
)


def _places(seen: _Seen) -> Board:
    rows = [
        *(Row(f"seat_{seat}", ("", f"seat {seat}")) for seat in SEATS),
        Row("dealer", ("庄家", "dealer")),
        Row("next", ("下家", "next to the dealer"), "Who plays after the dealer."),
        Row("across", ("对家", "across from the dealer")),
        Row("before", ("上家", "before the dealer"), "Who plays before the dealer."),
    ]
    dealer = seen.rows["dealer"][:, None]
    numbers = np.arange(4)[None, :]
    sits = [
        *(np.broadcast_to(numbers == seat, (len(seen.rows), 4)) for seat in SEATS),
        *((numbers - dealer) % 4 == step for step in SEATS),
    ]
    return Board(
        "places",
        "Seats and the dealer",
        "Players move on a seat with each session, so that a seat's figures are not a player's. "
        "Apart from chance the four seats are alike; what differs are the places from the dealer.",
        _FORTUNE,
        tuple(rows),
        _fortunes(seen, {row.id: where for row, where in zip(rows, sits, strict=True)}),
    )


def _kinds(seen: _Seen) -> Board:
    kinds = list(dict.fromkeys(seen.plan.players))
    which = np.array([kinds.index(kind) for kind in seen.plan.players])[seen.rows["players"]]
    return Board(
        "players",
        "Players",
        "Each kind over all the places it had. All sit in every seat equally often.",
        _FORTUNE,
        tuple(Row(kind, ("", kind)) for kind in kinds),
        _fortunes(seen, {kind: which == place for place, kind in enumerate(kinds)}),
    )


def _fortunes(seen: _Seen, sits: Mapping[str, NDArray[np.bool_]]) -> dict[tuple[str, str], Measure]:
    """What became of whoever sits where it is True (a hand's four seats)."""
    drew = (seen.rows["end"] == ENDS.index("self_draw"))[:, None] & seen.winners
    cells = {}
    for id, where in sits.items():
        count = seen.summed(where.sum(axis=1))
        for column, values, is_share in (
            ("wins", seen.winners, True),
            ("self_draws", drew, True),
            ("deals_in", seen.dealt_in, True),
            ("net", seen.rows["net"], False),
        ):
            over = seen.summed((values * where).sum(axis=1))
            cells[id, column] = Measure(over, count, is_share)
    return cells


def _wins(seen: _Seen) -> Board:
    rows = seen.rows
    with_fan = rows["fan"] >= 0
    wins = seen.summed(seen.winners.sum(axis=1))
    told = [
        (
            Row(
                "fan",
                ("番", "fan of a win"),
                "What counts against every loser; fixed amounts left out.",
            ),
            Measure(
                seen.summed(np.where(with_fan, rows["fan"], 0).sum(axis=1)),
                seen.summed(with_fan.sum(axis=1)),
            ),
        ),
        (
            Row(
                "flat",
                ("", "wins for a fixed amount"),
                "Share of the wins whose fan are not counted.",
            ),
            Measure(seen.summed(seats_of(rows["flat"]).sum(axis=1)), wins, is_share=True),
        ),
        (
            Row("won", ("", "units of a win"), "What all losers together owe for the win itself."),
            Measure(seen.summed(seen.won.sum(axis=1)), wins),
        ),
        (
            Row(
                "capped",
                ("封顶", "capped"),
                "Share of a loser's payments for a win that a cap cut.",
            ),
            Measure(seen.summed(rows["capped"]), seen.summed(rows["payments"]), is_share=True),
        ),
    ]
    return Board(
        "wins",
        "What a win is worth",
        "",
        (Column("mean", "on average", "Over all wins."),),
        tuple(row for row, _ in told),
        {(row.id, "mean"): measure for row, measure in told},
    )


def _items(seen: _Seen) -> Board:
    wins = seen.summed(seen.winners.sum(axis=1))
    rows, cells = [], {}
    for place, item in enumerate(seen.rules.fan_items):
        if item.whose == "loser":
            continue
        rows.append(Row(item.id, (item.name_zh, item.name_en), item.meaning))
        counted = seen.rows["items"][:, place]
        cells[item.id, "share"] = Measure(seen.summed(counted), wins, is_share=True)
    return Board(
        "items",
        "Fan items",
        "",
        (Column("share", "share of wins", "Of all wins, in how many the item counted.", "%"),),
        tuple(rows),
        cells,
    )


REASON_NAMES: Mapping[str, Text] = {
    "win": ("胡", "wins"),
    "kong": ("杠", "kongs"),
    "piao": ("漂", "piao"),
    "follow_dealer": ("跟庄", "following the dealer"),
    "draw": ("荒庄", "drawn hands"),
    "false_win": ("诈胡", "false wins"),
}


def _moved(seen: _Seen) -> Board:
    moved = seen.rows["moved"]
    everything = seen.summed(moved.sum(axis=1))
    rows, cells = [], {}
    for place, reason in enumerate(REASONS):
        if reason == "escape":
            continue  # nobody leaves here
        rows.append(Row(reason, REASON_NAMES[reason]))
        cells[reason, "units"] = seen.mean(moved[:, place])
        cells[reason, "share"] = Measure(seen.summed(moved[:, place]), everything)
    rows.append(Row("house", ("", "house"), "What the house takes by the rules, fees aside."))
    cells["house", "units"] = seen.mean(-seen.rows["net"].sum(axis=1))
    cells["house", "share"] = Measure(seen.summed(-seen.rows["net"].sum(axis=1)), everything)
    return Board(
        "moved",
        "What units move for",
        "",
        (
            Column("units", "units a hand", "Paid for it in a hand, by all together.", "units"),
            Column("share", "share of all units", "Of all units that were paid.", "%"),
        ),
        tuple(rows),
        cells,
        hides_zeros=True,
    )


def _buy_ins(seen: _Seen) -> Board:
    stakes = seen.plan.stakes
    rows, cells = [], {}
    for buy_in in stakes.buy_ins:
        id = str(buy_in)
        asked = " (asked for)" if buy_in == stakes.buy_in else ""
        rows.append(Row(id, ("", f"{buy_in:,}{asked}"), f"{buy_in / stakes.per_unit:,g} units."))
        purses = seen.whole_purses(buy_in)
        ones = np.ones(len(purses), np.int64)
        bankrupt = seats_of(purses["bankrupt"]).sum(axis=1).astype(np.int64)
        cells[id, "closed"] = Measure((bankrupt > 0).astype(np.int64), ones, is_share=True)
        cells[id, "bankrupt"] = Measure(bankrupt, 4 * ones, is_share=True)
        cells[id, "hands"] = Measure(purses["hands"].astype(np.int64), ones)
        cells[id, "unpaid"] = Measure(purses["unpaid"], ones)
    return Board(
        "buy_ins",
        "Bankruptcies",
        f"Sessions of {seen.plan.session_hands} hands, a unit worth {stakes.per_unit:,}. Each "
        "player sits down with the buy-in and nothing else. Who cannot pay all he owes pays all "
        "there is, shared pro rata among those he owes, and is bankrupt: the table closes. The "
        "same hands are reckoned with each buy-in. Sessions that are not whole are left out.",
        (
            Column("closed", "sessions closed", "Of the sessions, in how many one was.", "%"),
            Column("bankrupt", "players bankrupt", "Of the players of all sessions.", "%"),
            Column("hands", "hands of a session", "Played before it closed, or was over.", "hands"),
            Column("unpaid", "unpaid in a session", "What bankrupts owed and had not.", "coins"),
        ),
        tuple(rows),
        cells,
    )


def _ruin(seen: _Seen) -> dict[int, list[float]]:
    length = seen.plan.session_hands
    found = {}
    for buy_in in seen.plan.stakes.buy_ins:
        purses = seen.whole_purses(buy_in)
        closed = purses["hands"][purses["bankrupt"] > 0]
        counts = np.bincount(closed, minlength=length + 1).cumsum()
        found[buy_in] = (counts / max(1, len(purses))).tolist()
    return found


def _spreads(seen: _Seen) -> tuple[Spread, ...]:
    rows, plan = seen.rows, seen.plan
    session_net = np.zeros((seen.sessions, 4), np.int64)
    np.add.at(session_net, rows["session"], rows["net"])
    asked = seen.whole_purses(plan.stakes.buy_in)
    return (
        _spread("discards", "Length of a hand", "", "discards", "hands", rows["discards"]),
        _spread(
            "fan",
            "Fan of a win",
            "What counts against every loser; wins for a fixed amount are left out.",
            "fan",
            "wins",
            rows["fan"][rows["fan"] >= 0],
        ),
        _spread(
            "won",
            "Units of a win",
            "What all losers together owe for the win itself.",
            "units",
            "wins",
            seen.won[seen.winners],
        ),
        _spread(
            "lost",
            "Greatest loss of a hand",
            "What the player lost who lost most, kongs and all: what a cap or a buy-in is for.",
            "units",
            "hands",
            np.maximum(0, -rows["net"].min(axis=1)),
        ),
        _spread(
            "session",
            "A player's session",
            "What a player gained or lost in a whole session, were there always enough to pay.",
            "units",
            "players",
            session_net[: seen.whole].ravel(),
        ),
        _spread(
            "coins",
            "What a player goes home with",
            f"After a session with a buy-in of {plan.stakes.buy_in:,}, closed or whole.",
            "coins",
            "players",
            asked["coins"].ravel(),
        ),
    )


def _spread(
    id: str, heading: str, text: str, unit: str, of: str, values: NDArray[np.generic]
) -> Spread:
    found, counts = np.unique(values, return_counts=True)
    told = dict(zip(found.tolist(), counts.tolist(), strict=True))
    return Spread(id, heading, text, unit, of, told)
