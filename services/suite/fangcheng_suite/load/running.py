"""Plays a load at a suite, and measures it."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import grpc.aio

from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_suite.errors import SuiteError, from_call
from fangcheng_suite.progress import Bar, progress

from .client import Orders
from .clients import Clients
from .measured import ACTS, SEEN
from .money import Money, pools_of
from .outcome import Audit, Moment, Outcome
from .suites import Place, own_pool, used

MOST_MOMENTS = 120
"""Points in the charts over time."""
LEAST_MOMENT_SECONDS = 2.0
"""Long beside how often clients tell something, so that none is told of a moment that it was not
in."""
PATIENCE_SECONDS = 60.0
"""If no more tables come into play for so long, it is measured with those that there are."""
AUDIT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be played."""

    tables: int
    turn_seconds: float
    """Median of a turn; 0: players do not think."""
    seconds: float
    """For which it is measured."""
    clients: int
    """Processes that play."""
    hints: float
    """Of so many turns a hint is asked for."""
    command: str = ""
    """That would play it again."""
    pace: str = ""
    """In words."""
    rule_sets: Sequence[str] = ()
    """Of a suite of its own."""
    pools: Sequence[str] = ()
    """Of one that runs: its pools."""
    seed: int = 1
    silver: bool = False
    """Players may stake what they can run out of, wherever the suite is."""

    def players(self, prefix: str) -> list[list[tuple[str, str]]]:
        """Of each client the players and their pools: four for each of its tables."""
        groups: list[list[tuple[str, str]]] = [[] for _ in range(self.clients)]
        for table in range(self.tables):
            client = table % self.clients
            if self.pools:
                # A client's pools are its own: so it sees all seats of its tables.
                own = self.pools[client :: self.clients]
                pool = own[table // self.clients % len(own)]
            else:
                rule_set = self.rule_sets[table // self.clients % len(self.rule_sets)]
                pool = own_pool(rule_set, client)
            groups[client] += [(f"{prefix}-{4 * table + seat}", pool) for seat in range(4)]
        return groups


async def play(plan: Plan, place: Place, outcome: Outcome) -> None:
    """Play and measure, and note all of it as it comes. Raises SuiteError before it has begun.

    When it is cancelled, or something fails, it ends in order; `outcome` says so, and holds what
    was measured until then.
    """
    access = place.way.access()
    groups = plan.players(f"load-{secrets.token_hex(4)}")
    players = [player for group in groups for player in group]
    pools = await pools_of(access, sorted({pool for _, pool in players}))
    async with Money(access) as money:
        if not plan.silver:
            for pool_id, pool in pools.items():
                if staked := [stake.currency for stake in money.staked(pool)]:
                    raise SuiteError(
                        f"the pool {pool_id} stakes {' and '.join(staked)}",
                        "The load would give its players some of it, and take it back at the end. "
                        "If that may be, say --yes; else name a pool for points alone.",
                    )
        await money.give(players, pools)
        orders = [
            Orders(
                place.way.to_json(),
                group,
                plan.turn_seconds,
                plan.hints,
                plan.seed + number,
                leave=not place.own,
            )
            for number, group in enumerate(groups)
        ]
        try:
            async with Clients(orders) as clients:
                await _Watch(plan, place, outcome, clients).run()
                with progress("Ending the load"):
                    await clients.end()
            with progress("Auditing the ledger"):
                outcome.audit = await _audited(place)
        finally:
            if not place.own:
                await money.take_back(players)


class _Watch:
    """Looks on while clients play."""

    def __init__(self, plan: Plan, place: Place, outcome: Outcome, clients: Clients) -> None:
        self._plan = plan
        self._place = place
        self._outcome = outcome
        self._clients = clients
        self._began = self._last = time.monotonic()
        self._cpu: dict[str, float] = {}
        self._every = max(LEAST_MOMENT_SECONDS, plan.seconds / MOST_MOMENTS)

    async def run(self) -> None:
        """Until the time is over, somebody interrupts it, or something ends that should not."""
        outcome, looks = self._outcome, asyncio.ensure_future(self._look())
        failures = [one for one in (self._place.failed, self._clients.failed) if one is not None]
        try:
            either: set[asyncio.Future[Any]] = {looks, *failures}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if looks.done():
                looks.result()
            for failure in failures:
                if failure.done():
                    found = failure.result()
                    outcome.trouble = "\n".join([found.message, *found.details])
        except asyncio.CancelledError:
            outcome.interrupted = True  # what there is by now is told all the same
        finally:
            looks.cancel()
            await asyncio.gather(looks, return_exceptions=True)
            if outcome.interrupted or outcome.trouble:
                self._note(await used(self._place))

    async def _look(self) -> None:
        await self._seating()
        self._outcome.seating_seconds = self._last - self._began
        measured = time.monotonic()
        with progress("Playing", total=self._plan.seconds, unit="seconds") as bar:
            while (passed := time.monotonic() - measured) < self._plan.seconds:
                await asyncio.sleep(min(self._every, self._plan.seconds - passed))
                await self._moment(bar)
                bar.at(min(time.monotonic() - measured, self._plan.seconds))

    async def _seating(self) -> None:
        most, since = 0, time.monotonic()
        with progress("Seating players", total=self._plan.tables, unit="tables") as bar:
            while self._clients.tables < self._plan.tables:
                await asyncio.sleep(LEAST_MOMENT_SECONDS)
                await self._moment(bar)
                bar.at(self._clients.tables)
                if self._clients.tables > most:
                    most, since = self._clients.tables, time.monotonic()
                elif time.monotonic() - since > PATIENCE_SECONDS:
                    return

    async def _moment(self, bar: Bar) -> None:
        self._note(await used(self._place))
        newest = self._outcome.moments[-1]
        acts = newest.happened.counts[ACTS] / newest.seconds
        seen = newest.happened.spread(SEEN).percentile(0.99)
        told = f", seen by all within {1e3 * seen:.0f} ms" if seen is not None else ""
        bar.say(f"{newest.tables:,} tables, {acts:,.0f} acts/s{told}")

    def _note(self, services: dict[str, tuple[float, float]]) -> None:
        now = time.monotonic()
        seconds = max(now - self._last, 1e-3)
        cpu = {label: one for label, (one, _) in services.items()} | self._clients.cpu_seconds()
        memory = {label: one for label, (_, one) in services.items()}
        cores = {
            # A process that was started again begins from nothing.
            label: max(used_by_now - self._cpu[label], 0.0) / seconds
            for label, used_by_now in cpu.items()
            if label in self._cpu
        }
        self._outcome.moments.append(
            Moment(
                now - self._began,
                seconds,
                self._clients.taken(),
                self._clients.tables,
                cores,
                memory | self._clients.memory_bytes(),
            )
        )
        self._cpu, self._last = cpu, now
        if self._outcome.seating_seconds:
            self._outcome.seconds = sum(one.seconds for one in self._outcome.measured)


async def _audited(place: Place) -> Audit:
    async with place.way.access().channel("wallet") as channel:
        stub = wallet_pb2_grpc.WalletServiceStub(channel)
        try:
            found = await stub.AuditLedger(wallet_pb2.AuditLedgerRequest(), timeout=AUDIT_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise from_call(error, "auditing the ledger") from error
    return Audit(found.balanced, found.entries, found.settlements, list(found.findings))


def new_outcome(plan: Plan, place: Place) -> Outcome:
    """An outcome with nothing measured yet."""
    return Outcome(
        command=plan.command,
        where=place.told,
        machine=f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, "
        f"Python {platform.python_version()}",
        began=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        wanted_tables=plan.tables,
        pools=plan.pools or plan.rule_sets,
        pace=plan.pace,
    )
