"""The command `fangcheng load`: what was wished, played and told."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from fangcheng_suite.chosen import rules_named
from fangcheng_suite.errors import ServiceFailed, SuiteError
from fangcheng_suite.written import check_writable

from .outcome import Outcome
from .report import as_json as to_json
from .report import lines, write_report
from .running import Plan, new_outcome, play
from .suites import Place, own_suite

HUMAN_SECONDS = 3.0
"""Median of a person's turn; see `bots.thinking`."""
LONGEST_SECONDS = 60.0
TABLES_PER_CLIENT = 500


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command was told."""

    tables: int
    pace: str
    """`human`, `fast` or seconds."""
    seconds: float
    rule_sets: Sequence[str]
    """Of a suite of its own; empty where there are pools."""
    pools: Sequence[str]
    clients: int | None
    hints: float
    seed: int
    silver: bool

    def plan(self) -> Plan:
        """How that is done; raises SuiteError where it cannot be."""
        for rules in self.rule_sets:
            rules_named(rules)
        clients = self.clients or min(-(-self.tables // TABLES_PER_CLIENT), os.cpu_count() or 1)
        clients = min(clients, self.tables)
        if self.pools and clients > len(self.pools):
            # Two that share a pool would each see some seats of a table.
            clients = len(self.pools)
        return Plan(
            tables=self.tables,
            turn_seconds=self._turn_seconds(),
            seconds=self.seconds,
            clients=clients,
            hints=self.hints,
            command=self._command(),
            pace=self.pace if self.pace in ("human", "fast") else f"{self.pace} s",
            rule_sets=self.rule_sets,
            pools=self.pools,
            seed=self.seed,
            silver=self.silver,
        )

    def _turn_seconds(self) -> float:
        if self.pace == "human":
            return HUMAN_SECONDS
        try:
            seconds = 0.0 if self.pace == "fast" else float(self.pace)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST_SECONDS:
            raise SuiteError(
                f"{self.pace} is no pace",
                f"Give human, fast, or seconds a turn up to {LONGEST_SECONDS:.0f}.",
            )
        return seconds

    def _command(self) -> str:
        """The command without where the suite is and what opens it."""
        words = ["fangcheng load", f"--tables {self.tables}", f"--pace {self.pace}"]
        words.append(f"--minutes {self.seconds / 60:g}")
        words += [f"--rule-set {rules}" for rules in self.rule_sets if len(self.rule_sets) < 5]
        words += [f"--pool {pool}" for pool in self.pools]
        words += [f"--clients {self.clients}"] if self.clients else []
        return " ".join([*words, f"--hints {self.hints:g}", f"--seed {self.seed}"])


async def load_suite(
    plan: Plan,
    place: Place | None,
    evaluators: int,
    console: Console,
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    """Play a plan at a suite, at one of its own with so many evaluators where none is given; print
    and write what came of it.

    Raises SuiteError where it could not be played to its end, or the ledger is not balanced.
    """
    if report is not None:
        check_writable(report)
    async with AsyncExitStack() as stack:
        if place is None:
            at_once = not plan.turn_seconds
            place = await stack.enter_async_context(
                own_suite(plan.rule_sets, plan.clients, evaluators, at_once=at_once)
            )
        outcome = new_outcome(plan, place)
        await play(plan, place, outcome)
    if as_json:
        console.out(json.dumps(to_json(outcome), ensure_ascii=False, indent=1), highlight=False)
    else:
        for line in lines(outcome):
            console.print(line)
    if report is not None:
        write_report(outcome, report)
        if not as_json:
            console.print(f"Report: {report}", soft_wrap=True)
    _check(outcome)


def _check(outcome: Outcome) -> None:
    if outcome.trouble:
        what, *details = outcome.trouble.splitlines()
        raise ServiceFailed(
            f"the load ended early: {what}",
            "What is told above was measured until then. `fangcheng doctor` checks the suite.",
            tuple(details),
        )
    if outcome.audit is not None and not outcome.audit.balanced:
        raise SuiteError(
            "the ledger is not balanced",
            "Keep the wallet's database as it is for those who look into it.",
            tuple(outcome.audit.findings),
        )
