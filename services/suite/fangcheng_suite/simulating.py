"""`fangcheng simulate`: many hands of a rule set, and what they come to."""

from __future__ import annotations

import contextlib
import shlex
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import typer
from rich.console import Console

from .chosen import options_given, rules_named
from .cli import EXIT_INTERRUPTED
from .errors import SuiteError
from .progress import progress
from .render import Ink
from .simulation import columns, page, told
from .simulation.figures import differences, figures_of
from .simulation.hands import Session, joined, play_session
from .simulation.kinds import PLAYERS
from .simulation.plan import Plan, Stakes
from .simulation.workers import play
from .written import check_writable

WARMING = "Making the rules ready (the first time takes up to a minute)"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for."""

    rules: str
    stakes: Stakes
    options: Sequence[str] = ()
    compared: Sequence[str] = ()
    """Options that are changed in a second simulation of the same walls; empty: there is none."""
    players: str = "efficient"
    hands: int = 1_000
    session_hands: int = 16
    seed: int = 1
    workers: int = 1
    report: Path | None = None
    parquet: Path | None = None
    as_json: bool = False


def plans_of(wish: Wish) -> list[Plan]:
    """What is to be played, and what it is compared with; raises SuiteError."""
    rules = rules_named(wish.rules)
    stakes = wish.stakes
    if stakes.minimum > stakes.buy_in:
        raise SuiteError(
            f"with a buy-in of {stakes.buy_in:,} nobody has the {stakes.minimum:,} to go on",
            "Give a larger --buy-in or a smaller --minimum.",
        )
    asked = Plan(
        rules.id,
        rules.revision,
        options_given(rules, wish.options),
        players_named(wish.players),
        wish.hands,
        wish.session_hands,
        wish.seed,
        stakes,
    )
    if not wish.compared:
        return [asked]
    changed = options_given(rules, [*wish.options, *wish.compared], "--compare")
    if changed == asked.options:
        raise SuiteError(
            "--compare changes nothing", "Give it another value than --option or the default has."
        )
    return [asked, replace(asked, options=changed)]


def players_named(text: str) -> tuple[str, ...]:
    """Four kinds of players from `careful`, or from four names with commas; raises SuiteError."""
    names = tuple(name.strip() for name in text.split(","))
    if unknown := [name for name in names if name not in PLAYERS]:
        raise SuiteError(
            f"--players: no player {unknown[0]!r}", f"There are: {', '.join(PLAYERS)}."
        )
    if len(names) not in (1, 4):
        raise SuiteError(
            f"--players: {len(names)} players", "Give one kind for all seats, or four with commas."
        )
    return names if len(names) == 4 else names * 4


def simulate(wish: Wish, console: Console, ink: Ink) -> None:
    """Play, and tell. Ctrl-C ends it early: what was played by then is told."""
    plans = plans_of(wish)
    for file in filter(None, (wish.report, wish.parquet)):
        check_writable(file)
    if wish.parquet is not None:
        columns.needed()
    played, stopped = _played(plans, wish.workers)
    if stopped:
        if not played:
            raise typer.Exit(EXIT_INTERRUPTED)
        hands = sum(len(sessions[0].hands) for sessions in played)
        Console(stderr=True, highlight=False).print(
            f"Stopped: the figures are those of --hands {hands}."
        )
        plans = [replace(plan, hands=hands) for plan in plans]
    wholes = [joined(plan, one) for plan, one in zip(plans, zip(*played, strict=True), strict=True)]
    one, *others = map(figures_of, plans, wholes)
    other = others[0] if others else None
    found = differences(one, other) if other is not None else []
    if wish.report is not None:
        command = command_of(replace(wish, hands=one.hands))
        page.write(wish.report, one, other, found, command, version("fangcheng"))
    if wish.parquet is not None:
        rows = [(plan, whole.hands) for plan, whole in zip(plans, wholes, strict=True)]
        columns.write(wish.parquet, rows, version("fangcheng"))
    if wish.as_json:
        console.out(told.as_json(one, other, found), highlight=False)
    else:
        for part in told.as_text(one, other, found, ink):
            console.print(part)
    if stopped:
        raise typer.Exit(EXIT_INTERRUPTED)


def command_of(wish: Wish) -> str:
    """The command that makes the same figures again, however many workers it has."""
    words = ["fangcheng", "simulate", "--rule-set", wish.rules, "--hands", f"{wish.hands}"]
    words += ["--session-hands", f"{wish.session_hands}", "--seed", f"{wish.seed}"]
    words += ["--players", wish.players]
    words += [word for option in wish.options for word in ("--option", option)]
    words += [word for option in wish.compared for word in ("--compare", option)]
    stakes = wish.stakes
    words += ["--stake", f"{stakes.per_unit}", "--buy-in", f"{stakes.buy_in}"]
    words += ["--minimum", f"{stakes.minimum}"] if stakes.minimum else []
    words += ["--loss-cap", f"{stakes.loss_cap}"] if stakes.loss_cap else []
    return shlex.join(words)


def _played(plans: Sequence[Plan], workers: int) -> tuple[list[tuple[Session, ...]], bool]:
    """The sessions in order, and whether they are not all because it was interrupted."""
    played: list[tuple[Session, ...]] = []
    try:
        with _stoppable():
            with progress(WARMING):
                for plan in plans:
                    # What is compiled here is fetched by the workers.
                    play_session(replace(plan, hands=1), 0)
            with (
                contextlib.closing(play(plans, workers)) as sessions,
                progress("Playing", total=plans[0].hands, unit="hands") as bar,
            ):
                for found in sessions:
                    played.append(found)
                    bar.advance(len(found[0].hands))
    except KeyboardInterrupt:
        return played, True
    return played, False


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM stops as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
