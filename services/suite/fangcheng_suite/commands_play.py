"""The command `fangcheng play`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from .commands_bots import StrengthName, Think
from .errors import NotRunning, SuiteError
from .state import StateFolder, default_folder
from .terminal import Certificates, State, run, told

play = typer.Typer()

Language = Literal["zh", "en"]


@play.command("play")
@told
def play_table(
    rule_set: Annotated[
        str, typer.Option("--rule-set", help="What to play; `fangcheng rules` lists them.")
    ] = "baishan_kele",
    language: Annotated[
        Language | None,
        typer.Option(help="zh or en. Default: the terminal's.", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="What the others see. Default: your user's name.", show_default=False),
    ] = None,
    strength: Annotated[
        StrengthName | None,
        typer.Option(
            help="How the bots of a suite of its own play. Default: efficient.", show_default=False
        ),
    ] = None,
    think: Think = 1.0,
    pool: Annotated[
        str | None,
        typer.Option(
            help="The pool to queue in. Default: the practice pool of the rule set, which bots "
            "fill up.",
            show_default=False,
        ),
    ] = None,
    matchmaking: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where the queue of a suite elsewhere is; then name `--table`, and give a token.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where its tables are.", show_default=False),
    ] = None,
    evaluation: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where hints come from; without it there are none."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="FANGCHENG_TOKEN",
            help="The player's token, for services that are named.",
            show_default=False,
        ),
    ] = None,
    ca: Certificates = None,
    state: State = None,
) -> None:
    """Play mahjong in this terminal, against three bots or whoever queues in the pool.

    Plays in the suite that runs here, or in one of its own that ends with it; with `--matchmaking`,
    `--table` and `--token` in one that runs elsewhere. Every key is shown; `h` gives a hint, `q`
    leaves.

    Example: `fangcheng play --rule-set jintan --strength careful --language zh`
    """
    if ca is not None and not (matchmaking or table or evaluation):
        raise SuiteError(
            "--ca is for a suite elsewhere, and none is named",
            "Name it by --matchmaking, --table and --token; a suite here needs no certificates.",
        )
    try:
        import textual  # noqa: F401 # whether it is there
    except ImportError:
        raise SuiteError(
            "`fangcheng play` needs Textual, which is not installed",
            "Install it: pip install 'fangcheng[play]'",
        ) from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SuiteError(
            "`fangcheng play` needs a terminal to play in",
            "Start it from a terminal, without redirecting what it reads or writes. To look on "
            "without one: fangcheng watch",
        )
    from fangcheng_rules.players import STRENGTH

    from .access import Access
    from .chosen import rules_named
    from .play.places import RemoteWay
    from .play.playing import play_elsewhere, play_embedded, play_here
    from .play.tongue import tongue_of
    from .pools import practice_pool
    from .signing_in import default_name

    say = tongue_of(language)
    known = rules_named(rule_set)
    named = name or default_name()
    queue = pool or practice_pool(known)
    if matchmaking or table or evaluation:
        if not (matchmaking and table and token):
            raise SuiteError(
                "a suite elsewhere needs --matchmaking, --table and --token",
                "Give all three, and --evaluation for hints; or none of them for a suite here.",
            )
        targets = {"matchmaking": matchmaking, "table": table}
        way = RemoteWay(targets | ({"evaluation": evaluation} if evaluation else {}), token, ca)
        run(lambda: play_elsewhere(way, queue, named if name else "", say))
        return
    try:
        suite = StateFolder(state or default_folder()).read()
    except NotRunning:
        if state is not None:
            raise
        if pool is not None:
            raise SuiteError(
                "no suite runs here that could have that pool", "Start one: fangcheng up"
            ) from None
        run(lambda: play_embedded(known, named, strength or STRENGTH, think, say))
        return
    if strength is not None:
        raise SuiteError(
            "the suite that runs here has bots of its own, whose strength is not chosen here",
            "Leave out --strength; or stop that suite first, and play starts one for the game.",
        )
    run(lambda: play_here(Access(suite.target, suite.key), queue, named, say))
