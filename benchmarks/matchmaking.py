"""Matchmaking: how many the matcher seats and how long they wait, alone and over the services.

    python benchmarks/matchmaking.py [--quick]

Three parts. The matcher in one process, on one core: pools in which many wait already, and tickets
that come at a rate (`queues.run`: the clock is the benchmark's own, and goes on by the CPU time
that the matcher takes). A day of a ranked pool, hour by hour (`queues.day`). And what a player
waits from `JoinQueue` to the first prompt of his first hand, over the real services (`seating`).

With --quick it only shows that all of it works: small numbers, and nothing is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from dataclasses import dataclass

import queues
import seating
from measure import ROUNDS, Line, Lines, cores, pin

from fangcheng_kit.collector import relax

SEED = 20_240_601
PROMISED_SHARE = 0.5
"""Of the rate with the fewest tickets, with the most: O(log n) for a ticket."""
PROMISED_SECONDS = 3.0
SHARES = (10, 25, 50, 75, 90, 99)
"""Of the players, in percent: whose waits are drawn."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    waiting: tuple[int, ...] = (1_000, 10_000, 100_000)
    rates: tuple[int, ...] = (10, 100, 1_000)
    """Tickets a second."""
    seconds: float = 60.0
    days: tuple[int, ...] = (5_000, 50_000, 500_000)
    """Tickets a day; the middle one is shown by the hour."""
    players: tuple[int, ...] = (10, 25, 50)
    """A second, over the services."""
    live_seconds: float = 20.0
    pools: int = 25


QUICK = Size((100, 1_000), (10, 100), 5.0, (500, 1_000, 2_000), (5,), 2.0, 2)


def backlog(lines: Lines, size: Size) -> None:
    """Pools in which many wait and nobody comes: what a ticket costs, by how many there are."""
    rates: dict[int, float] = {}
    for waiting in size.waiting:
        again = max(1, size.waiting[-1] // waiting // 10)  # small pools several times over
        seated, longest = [], 0.0
        for number in range(ROUNDS):
            runs = [queues.run(waiting, 0, 60, SEED + number * again + one) for one in range(again)]
            players = sum(len(one.old.ms) for one in runs)
            seated.append(players / sum(one.took_seconds for one in runs))
            longest = max(longest, *(one.longest_ms for one in runs))
        rates[waiting] = statistics.median(seated)
        least = size.waiting[0]
        beside = waiting != least
        lines.add(
            Line(
                "Pools in which everybody waits already, as after a pause",
                f"{waiting:,} tickets",
                rates[waiting],
                "players",
                reference=f"{least:,} tickets" if beside else "",
                reference_per_second=rates[least] if beside else None,
                goal=PROMISED_SHARE if beside else None,
                note=f"{1e6 / rates[waiting]:.1f} µs CPU a player, "
                f"{longest:.0f} ms at a time at most",
            )
        )


def arrivals(lines: Lines, size: Size) -> None:
    """Tickets that come at a rate, to a pool that is empty or not."""
    for per_second in size.rates:
        for waiting in (0, *size.waiting):
            found = queues.run(waiting, per_second, size.seconds, SEED)
            new = found.new
            note = f"p50 {new.seconds(0.5):.2f} s, p99 {new.seconds(0.99):.2f} s"
            note += f", longest {new.seconds(1):.1f} s"
            note += f"; core {found.took_seconds / size.seconds:.1%}"
            if waiting:
                old = found.old
                note += f"; 99 % of those who waited are seated after {old.seconds(0.99):.2f} s"
            shares = {f"p{share}": new.seconds(share / 100) for share in SHARES}
            lines.add(
                Line(
                    "Tickets that come, to a pool in which others wait already",
                    f"{per_second:,} a second, {waiting:,} waiting",
                    (len(new.ms) + len(found.old.ms)) / size.seconds,
                    "players",
                    note=note,
                    figures={"rate": per_second, "waiting": waiting, **shares},
                )
            )


def days(lines: Lines, size: Size) -> None:
    """Whole days, and one of them by the hour."""
    found = {tickets: queues.day(tickets, SEED) for tickets in size.days}
    for tickets, day in found.items():
        whole = day.whole
        lines.add(
            Line(
                "A day of a ranked pool",
                f"{tickets:,} tickets",
                len(whole.ms),
                "players seated",
                note=f"p50 {whole.seconds(0.5):.1f} s, p99 {whole.seconds(0.99):.0f} s; "
                f"{whole.within(3_000):.0%} within 3 s, {whole.within(30_000):.0%} within 30 s; "
                f"ratings at a table {whole.gap(0.5):.1f} apart at p50, {whole.gap(0.99):.1f} at "
                f"p99; {day.took_seconds:.1f} s CPU",
                rate=False,
            )
        )
    middle = size.days[len(size.days) // 2]
    for hour, waits in enumerate(found[middle].hours):
        lines.add(
            Line(
                f"The day of {middle:,} tickets by the hour",
                f"{hour:02}:00",
                len(waits.ms),
                "players seated",
                note=f"p50 {waits.seconds(0.5):.1f} s, p99 {waits.seconds(0.99):.0f} s",
                figures={"hour": hour, "p50": waits.seconds(0.5), "p99": waits.seconds(0.99)},
                rate=False,
            )
        )


async def live(lines: Lines, size: Size) -> None:
    """Over the services."""
    for pools in (seating.one_for_silver(), seating.many_for_practice(size.pools)):
        for players in size.players:
            found = await seating.measured(pools, players, size.live_seconds, SEED)
            halves = [statistics.median(one) for one in (found.assigned, found.prompted)]
            worst = [
                statistics.quantiles(one, n=100)[98] for one in (found.assigned, found.prompted)
            ]
            used = "cores: " + ", ".join(
                f"{name} {share:.0%}" for name, share in found.cores.items()
            )
            lines.add(
                Line(
                    f"From JoinQueue to the first prompt of the first hand: {pools.name}",
                    f"{players} players a second",
                    len(found.prompted) / size.live_seconds,
                    "players",
                    note=f"p50 {halves[1]:.2f} s, p99 {worst[1]:.2f} s"
                    f" (promised: {PROMISED_SECONDS:g}); seat assigned: p50 {halves[0]:.2f} s,"
                    f" p99 {worst[0]:.2f} s; {found.tables} tables, {found.bots} bots; {used}",
                    figures={
                        "players": players,
                        "p50": halves[1],
                        "p99": worst[1],
                        "promised": PROMISED_SECONDS,
                    },
                )
            )


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="see that it works; keep nothing")
    quick = parser.parse_args().quick
    size = QUICK if quick else Size()
    lines, all_cores = Lines("matchmaking"), cores()
    relax(20_000, 50, 20)  # as the service does
    pin(all_cores[-1])
    backlog(lines, size)
    arrivals(lines, size)
    days(lines, size)
    pin(*all_cores)
    asyncio.run(live(lines, size))
    if not quick:
        lines.save()


if __name__ == "__main__":
    main()
