"""How often the integrity report finds planted collusion, and how often it names honest pairs.

    python benchmarks/integrity.py [--hands N] [--seasons N]

Prints the tables of docs/integrity.md. First hands that are really played: at some tables four
simple bots, at others two of them help each other. The giver knows what the taker waits on, and
discards it where it can; it never wins from the taker. Seasons are made of these hands, drawn with
replacement, with names on the seats, in which one table in a hundred has a colluding pair. Then
seasons of hands that are drawn by chance (`rehearsal`), where players differ in how they play.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fangcheng_rules.actions import Action, Prompt
from fangcheng_rules.events import Called, Discarded, Event
from fangcheng_rules.players import Efficient, Player, Situation
from fangcheng_rules.round import Round
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import rule_set
from fangcheng_rules.scoring import Win
from fangcheng_rules.simulate import play_hands
from fangcheng_suite.integrity.facts import HandFacts
from fangcheng_suite.integrity.findings import report
from fangcheng_suite.integrity.rehearsal import Collusion, Rates, rates, season

RULES = ("baishan_kele", "jintan")
TABLE_HANDS = 8
TABLES, PLAYERS, CLUBS = 2_000, 400, 10
SEED = 20_261_130
NAMES = ("0", "1", "2", "3")


@dataclass(slots=True)
class Plot:
    """What two who help each other tell each other."""

    giver: int
    taker: int
    waits: frozenset[int] = frozenset()
    """The kinds that the taker waits on."""
    discarder: int = -1

    def see(self, play: Round, events: Sequence[Event]) -> None:
        """Follow the hand."""
        for event in events:
            if isinstance(event, Discarded):
                self.discarder = event.seat


class Giver(Efficient):
    """Discards what its partner waits on, and never wins from it."""

    def __init__(self, plot: Plot) -> None:
        super().__init__(random.Random(plot.giver))
        self._plot = plot

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """What helps, else what a simple player does."""
        actions = prompt.actions
        if prompt.kind == "turn" and actions[0].kind != "win":
            for action in actions:
                if action.kind == "discard" and action.tile in self._plot.waits:
                    return action
        if prompt.kind == "claim" and self._plot.discarder == self._plot.taker:
            spared = tuple(action for action in actions if action.kind != "win")
            if spared != actions:
                return spared[-1]
        return Efficient.choose(self, situation, prompt)


class Taker(Efficient):
    """Tells its partner what it waits on."""

    def __init__(self, plot: Plot) -> None:
        super().__init__(random.Random(plot.giver))
        self._plot = plot

    def choose(self, situation: Situation, prompt: Prompt) -> Action:
        """What a simple player does."""
        action = Efficient.choose(self, situation, prompt)
        if prompt.kind == "turn" and situation.analysis is not None and action.kind == "discard":
            self._plot.waits = frozenset(
                wait.tile
                for choice in situation.analysis.discards
                if choice.tile == action.tile
                for wait in choice.waits
            )
        return action


def tables(
    rules: RuleSet, count: int, chance: random.Random, *, helping: bool
) -> Iterator[tuple[list[HandFacts], int, int]]:
    """Tables that are really played: their hands, the giver's seat and the taker's."""
    for number in range(count):
        giver, taker = chance.sample(range(4), 2)
        plot = Plot(giver, taker)
        players: list[Player] = [Efficient(random.Random(seat)) for seat in range(4)]
        if helping:
            players[giver], players[taker] = Giver(plot), Taker(plot)
        hands: list[HandFacts] = []
        seed = chance.randrange(1 << 30)
        for play, events in play_hands(rules, players, hands=TABLE_HANDS, seed=seed, seen=plot.see):
            hands.append(facts(play, events, str(number), len(hands) + 1))
            plot.waits = frozenset()
        yield hands, giver, taker


def facts(play: Round, events: Sequence[Event], table_id: str, number: int) -> HandFacts:
    """What a hand tells, the seats' numbers for names."""
    claims: set[tuple[int, int]] = set()
    discarder = -1
    for event in events:
        if isinstance(event, Discarded):
            discarder = event.seat
        elif isinstance(event, Called):
            claims.add((discarder, event.seat))
    end = play.end
    deal_ins: tuple[tuple[int, int], ...] = ()
    if isinstance(end, Win) and end.source is not None:
        deal_ins = tuple((end.source, winner) for winner in end.winners)
    paid: dict[tuple[int, int], int] = {}
    for transfer in play.score.transfers if play.score else ():
        if transfer.source is not None and transfer.target is not None:
            cell = (transfer.source, transfer.target)
            paid[cell] = paid.get(cell, 0) + transfer.amount
    return HandFacts(
        table_id=table_id,
        hand_number=number,
        rule_set=play.rule_set.id,
        variant=play.rule_set.id,
        ended_ms=0,
        players=NAMES,
        dealer=play.dealer,
        deal_ins=deal_ins,
        claims=tuple(sorted(claims)),
        paid=tuple((*cell, units) for cell, units in sorted(paid.items())),
    )


@dataclass(frozen=True, slots=True)
class Played:
    """Tables of a rule set to make seasons of."""

    honest: list[list[HandFacts]]
    helped: list[tuple[list[HandFacts], int, int]]

    def season(
        self, chance: random.Random, pairs: int, tables_each: int, tables: int
    ) -> tuple[list[HandFacts], list[Collusion]]:
        """A season: who sits where is drawn, what happens is a table that was really played."""
        names = [f"p{number:04}" for number in range(PLAYERS)]
        clubs = [names[club::CLUBS] for club in range(CLUBS)]
        planted, hands = [], []
        number = 0
        for pair in range(pairs):
            club = clubs[pair % CLUBS]
            start = 2 * (pair // CLUBS)
            plot = Collusion(club[start], club[start + 1])
            planted.append(plot)
            others = [name for name in club if name not in (plot.giver, plot.taker)]
            for _ in range(tables_each):
                table, giver, taker = chance.choice(self.helped)
                seats = chance.sample(others, 4)
                seats[giver], seats[taker] = plot.giver, plot.taker
                hands += _named(table, f"t{number}", seats)
                number += 1
        while number < tables:
            seats = chance.sample(chance.choice(clubs), 4)
            hands += _named(chance.choice(self.honest), f"t{number}", seats)
            number += 1
        return hands, planted


def _named(table: Sequence[HandFacts], table_id: str, seats: Sequence[str]) -> list[HandFacts]:
    players = (seats[0], seats[1], seats[2], seats[3])
    return [replace(hand, table_id=table_id, players=players) for hand in table]


def played(rules_id: str, hands: int) -> Played:
    """Play, and tell how often the giver deals in to the taker and honest players to each other."""
    chance = random.Random(SEED)
    rules = rule_set(rules_id)
    started = time.perf_counter()
    count = max(1, hands // TABLE_HANDS)
    honest = [table for table, _, _ in tables(rules, count, chance, helping=False)]
    helped = list(tables(rules, max(1, count // 3), chance, helping=True))
    of_helped = [
        ((giver, taker) in hand.deal_ins) for table, giver, taker in helped for hand in table
    ]
    usual = sum(len(hand.deal_ins) for table in honest for hand in table) / 12
    usual /= sum(len(table) for table in honest)
    often = sum(of_helped) / len(of_helped)
    print(
        f"{rules_id}: {sum(map(len, honest)):,} honest hands, {len(of_helped):,} with a pair that "
        f"helps each other ({time.perf_counter() - started:.0f} s): the giver deals in to the "
        f"taker in {100 * often:.1f} % of hands, an honest player to another in {100 * usual:.1f} %"
        f" ({often / usual:.1f} times)",
        flush=True,
    )
    return Played(honest, helped)


def total(found: Sequence[Rates]) -> str:
    """Cells of a table in Markdown: planted pairs found, honest pairs named, reports with one."""
    planted = sum(one.planted for one in found)
    share = f"{100 * sum(one.found for one in found) / planted:.0f} %" if planted else "-"
    honest = sum(one.honest for one in found)
    alarms = sum(one.false_alarms for one in found)
    reports = sum(one.false_alarms > 0 for one in found)
    return f"{planted} | {share} | {alarms} of {honest:,} | {reports} of {len(found)} |"


def over(
    seasons: int, drawn: Callable[[random.Random], tuple[list[HandFacts], list[Collusion]]]
) -> str:
    """What the reports on so many seasons found, as `total` tells it."""
    found = []
    for number in range(seasons):
        hands, planted = drawn(random.Random(SEED + number))
        found.append(rates(report(hands), planted))
    return total(found)


def main() -> None:
    """Measure, and print what docs/integrity.md tells."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--hands", type=int, default=1_200)
    options.add_argument("--seasons", type=int, default=10)
    chosen = options.parse_args()
    head = "planted pairs | found | honest pairs named | reports that name one |"
    print(f"| hands | tables each | {head}")
    for rules_id in RULES:
        stock = played(rules_id, chosen.hands)
        for pairs, each, count in (
            (0, 0, TABLES),
            (2, 10, TABLES),
            (1, 20, TABLES),
            (1, 40, 4_000),
        ):
            told = over(
                chosen.seasons, partial(stock.season, pairs=pairs, tables_each=each, tables=count)
            )
            print(f"| {rules_id} | {each} | {told}", flush=True)
    drawn = partial(season, tables=TABLES, hands=TABLE_HANDS, players=PLAYERS, groups=CLUBS)
    print(f"| times | tables each | {head}")
    for times, pairs, each in (
        *((1.0, 0, 0),),
        *((times, 20 // each, each) for times in (3.0, 5.0, 10.0) for each in (10, 20)),
        (0.05, 1, 20),
    ):
        told = over(chosen.seasons, partial(drawn, pairs=pairs, tables_each=each, times=times))
        print(f"| {times:g} | {each} | {told}", flush=True)
    for unlike, pairs_unlike in ((0.6, 0.1), (0.3, 0.3), (0.3, 0.5)):
        honest = partial(drawn, pairs=0, tables_each=0, times=1.0)
        told = over(chosen.seasons, partial(honest, unlike=unlike, pairs_unlike=pairs_unlike))
        print(f"| honest, unlike {unlike:g}, pairs {pairs_unlike:g} | | {told}", flush=True)


if __name__ == "__main__":
    main()
