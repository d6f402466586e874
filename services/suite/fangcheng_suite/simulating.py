"""`fangcheng simulate`: many hands of a rule set, and what they come to."""

from __future__ import annotations

import contextlib
import shlex
import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

import typer
from rich.console import Console

from fangcheng_rules.players import PLAYERS
from fangcheng_rules.ruleset import Options

from .chosen import options_given, rules_named, shown
from .cli import EXIT_INTERRUPTED
from .errors import SuiteError
from .progress import progress
from .render import Ink
from .simulation import columns, page, told
from .simulation.boards import figures_of
from .simulation.figures import differences
from .simulation.hands import Session, joined, play_session
from .simulation.plan import Plan, Stakes
from .simulation.pools import PoolTerms, terms_of
from .simulation.workers import play
from .written import check_writable

DEFAULTS = PoolTerms("baishan_kele", 0, (), None, None)
SESSION_HANDS = 16
WARMING = "Making the rules ready (the first time takes up to a minute)"


@dataclass(frozen=True, slots=True)
class StakesGiven:
    """The fields of `Stakes` as far as the command line gives them."""

    per_unit: int | None = None
    buy_in: int | None = None
    minimum: int | None = None
    loss_cap: int | None = None
    fee: int | None = None

    def on(self, stakes: Stakes) -> Stakes:
        """The stakes with what is given instead; raises SuiteError where nobody could play."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        found = replace(stakes, **given)
        if found.minimum > found.buy_in:
            raise SuiteError(
                f"with a buy-in of {found.buy_in:,} nobody has the {found.minimum:,} to go on",
                "Give a larger --buy-in or a smaller --minimum.",
            )
        return found


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for; None: what the pool has, else the default."""

    rules: str | None
    pool: str | None
    pools: Path | None
    """The file of pools."""
    options: Sequence[str]
    compared: Sequence[str]
    """Options that are changed in a second simulation of the same walls; empty: there is none."""
    players: str
    hands: int
    session_hands: int | None
    seed: int
    stakes: StakesGiven
    workers: int
    report: Path | None
    parquet: Path | None
    as_json: bool


def plans_of(wish: Wish) -> list[Plan]:
    """What is to be played, and what it is compared with; raises SuiteError."""
    terms = DEFAULTS if wish.pool is None else terms_of(wish.pool, wish.pools)
    is_its_own = wish.rules in (None, terms.rules)
    rules = rules_named(wish.rules or terms.rules, terms.revision if is_its_own else 0)
    options = [*(terms.options if is_its_own else ()), *wish.options]
    asked = Plan(
        rules.id,
        rules.revision,
        options_given(rules, options),
        players_named(wish.players),
        wish.hands,
        wish.session_hands or terms.session_hands or SESSION_HANDS,
        wish.seed,
        wish.stakes.on(terms.stakes or Stakes()),
    )
    if not wish.compared:
        return [asked]
    changed = options_given(rules, [*options, *wish.compared], "--compare")
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
        errors = Console(stderr=True, highlight=False)
        if not played:
            errors.print("Stopped before a session was played.")
            raise typer.Exit(EXIT_INTERRUPTED)
        hands = sum(len(sessions[0].hands) for sessions in played)
        errors.print(f"Stopped: the figures are those of --hands {hands}.")
        plans = [replace(plan, hands=hands) for plan in plans]
    wholes = [joined(plan, one) for plan, one in zip(plans, zip(*played, strict=True), strict=True)]
    one, *others = map(figures_of, plans, wholes)
    other = others[0] if others else None
    found = differences(one, other) if other is not None else []
    if wish.report is not None:
        page.write(wish.report, one, other, found, command_of(plans), version("fangcheng"))
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


def command_of(plans: Sequence[Plan]) -> str:
    """The command that makes the same figures again, whatever a pool or a default is by then."""
    plan = plans[0]
    words = ["fangcheng", "simulate", "--rule-set", plan.rule_set, "--hands", f"{plan.hands}"]
    words += ["--session-hands", f"{plan.session_hands}", "--seed", f"{plan.seed}"]
    words += ["--players", ",".join(plan.players)]
    changes: list[tuple[str, Options, Options]] = [
        ("--option", plan.rules.complete(), plan.options)
    ]
    changes += [("--compare", plan.options, other.options) for other in plans[1:]]
    for word, before, after in changes:
        for id, value in after.items():
            words += [word, f"{id}={shown(value)}"] if value != before[id] else []
    stakes = plan.stakes
    words += ["--stake", f"{stakes.per_unit}", "--buy-in", f"{stakes.buy_in}"]
    words += ["--minimum", f"{stakes.minimum}"] if stakes.minimum else []
    words += ["--loss-cap", f"{stakes.loss_cap}"] if stakes.loss_cap else []
    words += ["--fee", f"{stakes.fee}"] if stakes.fee else []
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
