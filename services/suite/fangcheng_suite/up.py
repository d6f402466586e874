"""`fangcheng up`: the suite on this host until it is told to stop, with bots at practice tables."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from contextlib import AsyncExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from fangcheng_rules.rulesets import RULE_SETS

from .access import Access
from .bots.crowd import Bank, keep_playing, make_bots
from .launcher import Launcher, Ports
from .pools import practice_pool, write_pools
from .progress import progress
from .render import Ink
from .signing_in import LINK_HOURS, default_name, sign_in_link
from .state import StateFolder, SuiteFile

SEATS = 4
STANDBY = 3
"""Bots of each rule set that wait to fill up the table of a person who queues alone."""


async def up(
    console: Console,
    ink: Ink,
    state: Path,
    *,
    evaluators: int,
    port: int,
    tables: int,
    turn_seconds: float,
    strength: str,
) -> None:
    """Run the suite until cancelled. Raises SuiteError where it cannot start."""
    folder = StateFolder(state)

    def say(text: str) -> None:
        console.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim]  {text}")

    with folder.claimed():
        key = secrets.token_urlsafe(32)
        pools = write_pools(folder.path / "pools.yaml")
        launcher = Launcher(
            folder,
            key,
            evaluators=evaluators,
            console=True,
            ports=Ports(port),
            restart=True,
            report=say,
            settings={"matchmaking": {"POOLS": str(pools)}},
        )
        console.print(f"[bold]{ink.both('方城', 'Fangcheng')}[/bold]  starting the services")
        console.print(
            "[dim]the first start compiles the rules, a minute or two; then seconds[/dim]"
        )
        try:
            async with AsyncExitStack() as services:
                with progress("Starting the services"):
                    await services.enter_async_context(launcher)
                suite = SuiteFile(pid=os.getpid(), key=key, services=launcher.services)
                folder.write(suite)
                _say_addresses(console, suite, folder)
                access = Access(suite.target, key)
                bank = Bank(access)
                # Each practice table plays the next rule set; others wait in every practice pool.
                playing = [RULE_SETS[i // SEATS % len(RULE_SETS)] for i in range(SEATS * tables)]
                waiting = [rules for rules in RULE_SETS for _ in range(STANDBY)]
                numbers = range(len(playing) + len(waiting))
                bots = make_bots(numbers, access, turn_seconds, strength=strength)
                _say_console(console, suite)
                _say_bots(console, tables)
                try:
                    async with asyncio.TaskGroup() as group:
                        for number, rules in enumerate([*playing, *waiting]):
                            group.create_task(
                                keep_playing(
                                    bots[number],
                                    practice_pool(rules),
                                    bank,
                                    standby=number >= len(playing),
                                    report=say,
                                )
                            )
                        group.create_task(_for_ever())
                except asyncio.CancelledError:
                    # It takes some seconds, which must not look like being stuck.
                    say("stopping the services; Ctrl-C again ends them at once")
                    raise
        finally:
            folder.forget()


def _say_addresses(console: Console, suite: SuiteFile, folder: StateFolder) -> None:
    listed = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("service", "gRPC", "metrics"):
        listed.add_column(column, no_wrap=True)
    for service, addresses in suite.services.items():
        for address in addresses:
            listed.add_row(service, address.grpc, f"http://{address.metrics}/metrics")
    console.print(listed)
    console.print(f"[dim]State, logs and key: {folder.path}[/dim]", soft_wrap=True)


def _say_console(console: Console, suite: SuiteFile) -> None:
    link = sign_in_link(suite.page, suite.key, "operator", default_name(), LINK_HOURS)
    console.print(
        "[bold]See the tables in a browser[/bold], signed in as an operator "
        f"[dim](good for {LINK_HOURS:.0f} hours)[/dim]:"
    )
    console.print(link, soft_wrap=True)
    console.print(
        "[dim]Another link: fangcheng console; for somebody who may only look: "
        "fangcheng console --role viewer[/dim]",
        soft_wrap=True,
    )


def _say_bots(console: Console, tables: int) -> None:
    if tables:
        console.print(f"Bots keep {tables} practice table{'s' if tables > 1 else ''} going.")
    console.print(
        f"[dim]{STANDBY} more of each rule set wait to fill up the table of whoever queues in one "
        f"of the pools {', '.join(map(practice_pool, RULE_SETS))}.[/dim]",
        soft_wrap=True,
    )
    console.print("Ctrl-C ends everything. Beside it: fangcheng tables, fangcheng watch.")


async def _for_ever() -> None:
    await asyncio.Event().wait()
