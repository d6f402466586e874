"""The command `fangcheng doctor`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from .commands_bots import Target
from .state import default_folder
from .terminal import (
    EXIT_FAILED,
    Certificate,
    CertificateKey,
    Certificates,
    OperatorToken,
    State,
    make_console,
    run,
    told,
)

if TYPE_CHECKING:
    from .doctor.deployment import Deployment

doctor = typer.Typer()


@doctor.command("doctor")
@told
def look_over(
    matchmaking: Target = None,
    table: Target = None,
    wallet: Target = None,
    evaluation: Target = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVICE=HOST:PORT",
            help="Where a process tells its metrics, for services that are named; repeatable.",
        ),
    ] = None,
    database: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SERVICE=ADDRESS",
            help="A service's database, a file or postgresql://…, to look at too; repeatable.",
        ),
    ] = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    without_tls: Annotated[
        bool,
        typer.Option(
            "--dangerously-without-tls",
            envvar="FANGCHENG_DANGEROUSLY_WITHOUT_TLS",
            help="Call services beyond this host unencrypted, as they call each other.",
        ),
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not audit the ledger, which reads all of it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    state: State = None,
) -> None:
    """Look a deployment over, and say of what is wrong what it means and what to do.

    Looked at are the suite that runs here, or the services that are named: whether they are
    reached, serve, take the caller and fit together; certificates, clocks, versions, open files;
    databases, disks and the ledger; tables that stand still, and settings that are dangerous.
    Nothing is changed. Exit code 1 where something has failed.

    Example: `fangcheng doctor --table table.example:7101 --ca ca.crt --metrics table=10.0.0.7:7201`
    """
    from .doctor.deployment import elsewhere, here
    from .identity import identity_in

    targets = {
        "matchmaking": matchmaking,
        "table": table,
        "wallet": wallet,
        "evaluation": evaluation,
    }
    if any(targets.values()):
        deployment = elsewhere(
            targets,
            token,
            ca,
            identity_in(ca, certificate, certificate_key),
            measures=metrics or [],
            databases=database or [],
            plaintext=without_tls,
        )
    else:
        deployment = here(state or default_folder())
    run(lambda: _look(deployment, is_quick=quick, as_json=as_json))


async def _look(deployment: Deployment, *, is_quick: bool, as_json: bool) -> None:
    from .doctor.examining import examine
    from .doctor.findings import is_healthy
    from .doctor.showing import shown, summary
    from .progress import progress

    console = make_console()
    findings = []
    with progress("Looking it over", unit="findings") as bar:
        async for finding in examine(deployment, is_quick=is_quick):
            findings.append(finding)
            bar.advance()
            if not as_json:
                for line in shown(finding):
                    bar.above(console, line)
    healthy = is_healthy(findings)
    if as_json:
        answer = {"healthy": healthy, "findings": [one.plain() for one in findings]}
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        console.print(summary(findings))
    if not healthy:
        raise typer.Exit(EXIT_FAILED)
