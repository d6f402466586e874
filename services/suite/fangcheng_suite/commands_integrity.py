"""The commands for pairs of players who may help each other: `fangcheng integrity`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .errors import SuiteError
from .state import default_folder
from .terminal import (
    Certificate,
    CertificateKey,
    Certificates,
    OperatorToken,
    State,
    access_to,
    make_console,
    run,
    told,
)

if TYPE_CHECKING:
    from .access import Access, Elsewhere
    from .integrity.facts import HandFacts
    from .integrity.findings import Report

integrity = typer.Typer(
    no_args_is_help=True, help="Pairs of players who have more to do with each other than chance."
)

Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--records",
        metavar="FILE|FOLDER",
        help="Records that `record --json` has written, instead of a running suite; repeatable.",
        show_default=False,
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where hands are kept, so that the next report reads only newer ones. Default: "
        "integrity.db in the state folder.",
        show_default=False,
    ),
]
Level = Annotated[
    float,
    typer.Option(
        min=1e-9, max=0.5, help="Probability that a report without any collusion names anybody."
    ),
]
MinHands = Annotated[
    int, typer.Option(min=1, help="Hands together from which on a pair is asked about.")
]
Since = Annotated[datetime | None, typer.Option(help="Only hands that ended then or later, UTC.")]
Until = Annotated[datetime | None, typer.Option(help="Only hands that ended before, UTC.")]
Rules = Annotated[str, typer.Option(help="Only hands of this rule set. Default: of all.")]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="HOST:PORT",
        help="The table service; needs --keep. Default: that of the running suite.",
        show_default=False,
    ),
]


@integrity.command()
@told
def report(
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="As CSV, a row for each question.")] = False,
    all_: Annotated[
        bool, typer.Option("--all", help="All pairs asked about, not only those beyond chance.")
    ] = False,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write counts for Prometheus' textfile collector; no ids in them."
        ),
    ] = None,
    level: Level = 0.05,
    min_hands: MinHands = 24,
    since: Since = None,
    until: Until = None,
    rules: Rules = "",
    records: Files = None,
    keep: Keep = None,
    target: Target = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    state: State = None,
) -> None:
    """Tell which pairs of players deal in to, feed, pay or spare each other beyond chance.

    Reads the hands that were finished since the last report. A pair that is told is no proof of
    anything, but a reason to look at its hands: `fangcheng integrity case`.

    Example: `fangcheng integrity report --since 2026-01-01`
    """
    if json and csv:
        raise SuiteError("--json and --csv exclude each other", "Give one of them.")
    from .integrity_report import show_report, write_metrics

    def reach() -> Access | Elsewhere:
        return access_to(target, token, ca, certificate, certificate_key, state)

    hands, mute = _hands(records, keep, target, reach, state, since, until, rules)
    made = _made(hands, level, min_hands)
    show_report(
        made, mute, make_console(), "json" if json else "csv" if csv else "table", all_=all_
    )
    if metrics is not None:
        write_metrics(made, metrics)


@integrity.command()
@told
def case(
    player: Annotated[str, typer.Argument(help="The player's id.")],
    partner: Annotated[
        str | None, typer.Option("--with", help="Only with this player, whatever is told of them.")
    ] = None,
    hands: Annotated[int, typer.Option(min=1, help="Hands told of each partner.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    level: Level = 0.05,
    min_hands: MinHands = 24,
    since: Since = None,
    until: Until = None,
    rules: Rules = "",
    records: Files = None,
    keep: Keep = None,
    target: Target = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    state: State = None,
) -> None:
    """Tell what the report has of one player: partners, and the hands to look at.

    What is beyond chance is decided as in the report on all players.

    Example: `fangcheng integrity case ming --with lan`
    """
    from .integrity_report import show_case

    def reach() -> Access | Elsewhere:
        return access_to(target, token, ca, certificate, certificate_key, state)

    facts, _ = _hands(records, keep, target, reach, state, since, until, rules)
    made = _made(facts, level, min_hands)
    show_case(made, facts, player, partner, make_console(), most=hands, as_json=json)


def _made(hands: list[HandFacts], level: float, min_hands: int) -> Report:
    from .integrity.findings import report as made
    from .progress import progress

    with progress("Comparing players"):
        return made(hands, level=level, least_hands=min_hands)


def _hands(
    records: list[Path] | None,
    keep: Path | None,
    target: str | None,
    reach: Callable[[], Access | Elsewhere],
    state: Path | None,
    since: datetime | None,
    until: datetime | None,
    rules: str,
) -> tuple[list[HandFacts], int]:
    """The hands to report on, and how many more tell nothing."""
    from .gathered import Gathered
    from .gathering import gather, read_files

    if records:
        facts, mute = read_files(records)
    else:
        if target and keep is None:
            raise SuiteError(
                "--target needs --keep FILE", "The hands of each service are kept by themselves."
            )
        access = reach()
        file = keep or (state or default_folder()).expanduser() / "integrity.db"
        with Gathered.in_file(file) as gathered:

            async def read_on() -> None:
                await gather(access, gathered)

            run(read_on)
            facts, mute = gathered.hands(), gathered.mute
    since_ms = since.replace(tzinfo=UTC).timestamp() * 1000 if since else 0
    until_ms = until.replace(tzinfo=UTC).timestamp() * 1000 if until else float("inf")
    return [
        hand
        for hand in facts
        if since_ms <= hand.ended_ms < until_ms and rules in ("", hand.rule_set)
    ], mute
