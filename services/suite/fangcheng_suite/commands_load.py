"""The command `fangcheng load`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .commands_bots import DevKey, Target, WithoutTls
from .commands_token import KeyId, SigningKeyFile
from .errors import SuiteError
from .state import default_folder
from .terminal import CertificateKey, Certificates, State, make_console, run, told

load = typer.Typer()


@load.command("load")
@told
def play(
    tables: Annotated[
        int, typer.Option(min=1, max=100_000, help="Tables in play at the same time.")
    ] = 100,
    pace: Annotated[
        str,
        typer.Option(
            metavar="human|fast|SECONDS",
            help="How long players think about a turn: as people do, not at all, or so long.",
        ),
    ] = "human",
    minutes: Annotated[
        float, typer.Option(min=0.05, max=1_440, help="To measure, once the tables play.")
    ] = 2.0,
    rule_set: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule set to play, repeatable; tables take turns. Default: all five.",
            show_default=False,
        ),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            help="Of a suite that runs: a pool to queue in, repeatable. Anybody else who queues "
            "there is seated with the load's players.",
            show_default=False,
        ),
    ] = None,
    evaluators: Annotated[int, typer.Option(min=1, max=64, help="Of a suite of its own.")] = 1,
    clients: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Processes that play. Default: one for each 500 tables, and no more than cores.",
            show_default=False,
        ),
    ] = None,
    hints: Annotated[
        float, typer.Option(min=0, max=1, help="Of so many turns a player asks for a hint.")
    ] = 0.1,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write a page with charts.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    seed: Annotated[int, typer.Option(help="Of what players choose and how long they think.")] = 1,
    running: Annotated[
        bool, typer.Option("--running", help="Play at the suite that runs here, by its folder.")
    ] = False,
    matchmaking: Target = None,
    table: Target = None,
    wallet: Target = None,
    evaluation: Target = None,
    key: DevKey = None,
    signing_key: SigningKeyFile = None,
    kid: KeyId = "",
    ca: Certificates = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            help="PEM file of your own certificate, for services that ask for one.",
            show_default=False,
        ),
    ] = None,
    certificate_key: CertificateKey = None,
    without_tls: WithoutTls = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Players may stake the money of a suite that is named.")
    ] = False,
    state: State = None,
) -> None:
    """Play many tables at once, and tell how long everything took.

    Starts a suite of its own, unless one is named: --running is the one that runs here, and
    --matchmaking, --table, --wallet and --evaluation name another. Players queue, are seated, play
    as people do and queue again; percentiles, errors by their reasons, what each process used and
    the ledger's audit are told in the end. Ctrl-C ends it early, with the report so far.

    Exit code 1 where the ledger is not balanced or a process has ended.

    Example: `fangcheng load --tables 500 --pace human --minutes 2 --report load.html`
    """
    from fangcheng_rules.rulesets import BUILT_IN

    from .load.playing import Wish, load_suite
    from .load.suites import named_suite, running_suite

    targets = {
        "matchmaking": matchmaking,
        "table": table,
        "wallet": wallet,
        "evaluation": evaluation,
    }
    named = any(targets.values())
    _check(named=named, running=running, rule_sets=rule_set, pools=pool)
    files = (signing_key, ca, certificate, certificate_key)
    place = None
    if named:
        place = named_suite(targets, key or "", kid, *files, plaintext=without_tls)
    elif running:
        place = running_suite(state or default_folder())
    rule_sets = rule_set or [rules.id for rules in BUILT_IN]
    pools = pool or ([f"{rules}-silver" for rules in rule_sets] if running else [])
    wish = Wish(
        tables=tables,
        pace=pace,
        seconds=60 * minutes,
        rule_sets=[] if pools else rule_sets,
        pools=pools,
        clients=clients,
        hints=hints,
        seed=seed,
        silver=yes or not named,
    )
    console = make_console()
    run(lambda: load_suite(wish.plan(), place, evaluators, console, report, as_json=as_json))


def _check(
    *, named: bool, running: bool, rule_sets: list[str] | None, pools: list[str] | None
) -> None:
    """Raises SuiteError where options do not go together."""
    if named and running:
        raise SuiteError("--running and named services exclude each other", "Give one of them.")
    if (named or running) and rule_sets:
        raise SuiteError("a suite that runs has pools", "Name some with --pool, not --rule-set.")
    if not (named or running) and pools:
        raise SuiteError(
            "a suite of the load's own has its own pools",
            "Name rule sets with --rule-set; or a suite that runs, with --running.",
        )
    if named and not pools:
        raise SuiteError("no pool is named to queue in", "Name one or more with --pool.")
