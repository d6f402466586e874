"""`fangcheng demo`: four bots play hands of every rule set over real processes, then an audit."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.text import Text

from fangcheng.table.v1 import events_pb2, records_pb2, records_pb2_grpc, state_pb2
from fangcheng.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from fangcheng_client import watch
from fangcheng_client.view import TableView
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS

from . import report
from .access import Access
from .bots.crowd import CURRENCY, Bank, make_bots
from .bots.player import Bot, Place
from .errors import DemoFailed
from .launcher import Launcher
from .pools import demo_pool, write_pools
from .render import Ink
from .state import StateFolder
from .verify import verify_shuffle

FIRST_HANDS = 8


def hands_of(rules: RuleSet) -> int:
    """Hands that the demo plays of a rule set: a table of the first one, a look at the others."""
    return FIRST_HANDS if rules is RULE_SETS[0] else 1


HANDS = sum(map(hands_of, RULE_SETS))
SILENCE_SECONDS = 30.0
"""If a table of bots at full speed says nothing for so long, something is wrong."""
SETTLED_SECONDS = 10.0

T = TypeVar("T")


class Demo:
    """One run of the demo. `run` raises SuiteError with the reason when anything fails."""

    def __init__(self, console: Console, ink: Ink, *, evaluators: int = 1) -> None:
        self._console = console
        self._ink = ink
        self._evaluators = evaluators
        self._key = secrets.token_urlsafe(32)
        self._paid: Counter[str] = Counter()
        """What each player won or lost by the payments that the table showed."""
        self._endings: Counter[str] = Counter()

    async def run(self) -> None:
        """Start the services, play, audit, verify, stop."""
        started = time.monotonic()
        ink, say = self._ink, self._say
        say(
            f"[bold]{ink.both('方城', 'Fangcheng')}[/bold]  four bots play {HANDS} hands of "
            f"{len(RULE_SETS)} rule sets"
        )
        say("")
        with tempfile.TemporaryDirectory(prefix="fangcheng-demo-") as path:
            folder = StateFolder(Path(path))
            with folder.claimed():
                with self._status("Starting the services"):
                    pools = write_pools(folder.path / "pools.yaml", hands_of)
                    launcher = Launcher(
                        folder,
                        self._key,
                        evaluators=self._evaluators,
                        temporary=True,
                        settings={"matchmaking": {"POOLS": str(pools)}},
                        # A newcomer's first minute is not for waiting on a compiler, and the
                        # same rules answer a demo's few thousand questions uncompiled.
                        environment={"FANGCHENG_INTERPRETED": "1"},
                    )
                    await launcher.__aenter__()
                try:
                    self._say_services(launcher, time.monotonic() - started)
                    await _or_first_failure(
                        self._play(Access(launcher.target, self._key)), launcher
                    )
                finally:
                    with self._status("Stopping the services"):
                        await launcher.__aexit__(None, None, None)
        say("")
        say(f"[green]All is well.[/green] {time.monotonic() - started:.0f} s in all.")

    async def _play(self, access: Access) -> None:
        bots = make_bots(range(4), access)
        bank = Bank(access)
        for bot in bots:
            await bank.give(bot.player_id)
        given = {bot.player_id: (await bank.balance(bot.player_id))[0] for bot in bots}

        tables = {rules: await self._table(access, bots, rules) for rules in RULE_SETS}
        played = sum(self._endings.values())
        _check(played == HANDS, f"{played} hands were played instead of {HANDS}")
        await self._audit(access, bank, given)
        await self._verify(access, tables)

    async def _table(self, access: Access, bots: list[Bot], rules: RuleSet) -> state_pb2.Table:
        """Let the bots play a table to its end, telling each hand; the table as it was opened."""
        seated: asyncio.Future[Place] = asyncio.get_running_loop().create_future()

        def on_seated(place: Place) -> None:
            if not seated.done():
                seated.set_result(place)

        for bot in bots:
            bot.on_seated = on_seated
        async with asyncio.TaskGroup() as group, access.channel("table") as channel:
            for bot in bots:
                group.create_task(bot.play(demo_pool(rules)))
            with self._status("Four bots are queueing"):
                place = await _in_time(seated, "the bots were not seated")
            view = TableView()
            opened: state_pb2.Table | None = None
            with self._status("The table opens") as status:
                events = watch(channel, place.table_id)
                async for event in _never_silent(events):
                    view.apply(event)
                    if event.HasField("table_opened"):
                        opened = event.table_opened.table
                        self._say_table(opened, rules)
                    status(self._progress(view))
                    if event.HasField("hand_settled"):
                        self._say_hand(view)
        if opened is None or view.closed is None:
            raise DemoFailed("the table's stream ended before the table had closed")
        _check(
            view.closed.reason == "hands_played", f"the table closed early: {view.closed.reason}"
        )
        return opened

    async def _audit(self, access: Access, bank: Bank, given: dict[str, int]) -> None:
        """The ledger's own audit, and the players' balances against what the table showed."""
        deadline = time.monotonic() + SETTLED_SECONDS
        while True:  # the table gives the holds back just after it has closed
            balances = {player: await bank.balance(player) for player in given}
            if not any(held for _, held in balances.values()):
                break
            _check(time.monotonic() < deadline, "the buy-ins were not given back")
            await asyncio.sleep(0.05)
        for player, (available, _) in balances.items():
            due = given[player] + self._paid[player]
            _check(
                available == due,
                f"{player} has {available:,} {CURRENCY} in the wallet, by the hands {due:,}",
            )
        async with access.channel("wallet") as channel:
            stub = wallet_pb2_grpc.WalletServiceStub(channel)
            audit = await stub.AuditLedger(wallet_pb2.AuditLedgerRequest())
        _check(audit.balanced, "the ledger is not balanced: " + "; ".join(audit.findings[:3]))
        _check(audit.settlements == HANDS, f"{audit.settlements} settlements instead of {HANDS}")
        self._say("")
        self._say(
            f"[bold]Ledger[/bold]   balanced: {audit.entries} entries on {audit.accounts} "
            f"accounts, {audit.settlements} settlements,"
        )
        self._say(
            "         all accounts together come to zero; the players' wallets fit the hands:"
        )
        names = ((player.removeprefix("bot-").capitalize(), self._paid[player]) for player in given)
        standing = Text(self._ink.dot).join(
            Text(f"{name} ").append(
                self._ink.signed(amount), "green" if amount > 0 else "red" if amount < 0 else "dim"
            )
            for name, amount in names
        )
        self._console.print(Text("         ").append_text(standing))

    async def _verify(self, access: Access, tables: dict[RuleSet, state_pb2.Table]) -> None:
        """A hand's shuffle of each table, checked against the commitment that opened the table."""
        self._say(
            "[bold]Shuffle[/bold]  verified for a hand of each table. Its secret hashes to the"
        )
        self._say("         commitment told before the first hand, and the wall follows from it;")
        self._say("         the tiles dealt and drawn are that wall in its order:")
        async with access.channel("table") as channel:
            stub = records_pb2_grpc.TableRecordServiceStub(channel)
            for rules, table in tables.items():
                number = secrets.randbelow(hands_of(rules)) + 1
                answer = await stub.GetHandRecord(
                    records_pb2.GetHandRecordRequest(table_id=table.table_id, hand_number=number)
                )
                found = verify_shuffle(answer.record, table.commitment)
                drawn = found.drawn_front + found.drawn_back
                self._say(
                    f"         {rules.id:14} hand {number}, commitment "
                    f"{table.commitment.hex()[:16]}, wall of {found.wall_tiles}: "
                    f"{found.dealt} dealt, {drawn} drawn"
                )

    def _say_services(self, launcher: Launcher, seconds: float) -> None:
        for process in launcher.processes:
            self._say(f"  {process.label:12} {process.address.grpc:18} process {process.pid}")
        self._say(f"  [dim]four kinds of service, each a process, ready in {seconds:.1f} s[/dim]")
        self._say("")

    def _say_table(self, table: state_pb2.Table, rules: RuleSet) -> None:
        names = self._ink.dot.join(seat.player_id for seat in table.seats)
        stakes = " and ".join(f"{stake.per_unit} {stake.currency}" for stake in table.stakes)
        if self._endings:
            self._say("")
        self._say(
            f"[bold]{self._ink.both(rules.name_zh, rules.name_en)}[/bold]  "
            f"table {table.table_id}: {names}"
        )
        self._say(f"[dim]A unit of the rules is worth {stakes}.[/dim]")

    def _say_hand(self, view: TableView) -> None:
        ended, settled = view.ended, view.settled
        if ended is None or settled is None:
            return
        self._endings[ended.hand.WhichOneof("end") or ""] += 1
        for payment in settled.payments:
            if payment.currency != CURRENCY:
                continue
            if payment.HasField("from_seat"):
                self._paid[view.seats[payment.from_seat].player_id] -= payment.paid
            if payment.HasField("to_seat"):
                self._paid[view.seats[payment.to_seat].player_id] += payment.paid
        self._say("")
        number = sum(self._endings.values())
        line = Text(f"Hand {number}/{HANDS}  ", "bold")
        line.append(report.headline(view, ended, self._ink))
        line.append(f"   dealer {view.seats[view.dealer].name}, {view.wall_tiles} left", "dim")
        self._console.print(line)
        for text in report.hand_report(view, self._ink):
            self._console.print(text)

    def _progress(self, view: TableView) -> str:
        discards = sum(len(seat.river) + len(seat.melds) for seat in view.seats)
        number = sum(self._endings.values()) + 1
        return f"Hand {number} of {HANDS}: {discards} turns, {view.wall_tiles} tiles left"

    def _say(self, markup: str) -> None:
        self._console.print(markup)

    @contextlib.contextmanager
    def _status(self, text: str) -> Iterator[Any]:
        """A line that tells what is going on; without a terminal it is printed once."""
        if not self._console.is_terminal:
            yield lambda newer: None
            return
        spinner = "dots" if self._ink.chinese else "line"
        with self._console.status(text, spinner=spinner) as status:
            yield status.update


async def _or_first_failure(work: Coroutine[Any, Any, T], launcher: Launcher) -> T:
    """Do the work, unless a service fails meanwhile: then that is the reason to tell."""
    task = asyncio.create_task(work)
    try:
        either: set[asyncio.Future[Any]] = {task, launcher.failed}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if launcher.failed.done():
            raise launcher.failed.result()
        return await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _in_time(waited: asyncio.Future[T], otherwise: str) -> T:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await waited
    except TimeoutError:
        raise DemoFailed(f"{otherwise} within {SILENCE_SECONDS:.0f} s") from None


async def _never_silent(
    events: AsyncIterator[events_pb2.TableEvent],
) -> AsyncIterator[events_pb2.TableEvent]:
    while True:
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                event = await anext(events)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise DemoFailed(f"nothing happened for {SILENCE_SECONDS:.0f} s") from None
        yield event


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DemoFailed(otherwise)
