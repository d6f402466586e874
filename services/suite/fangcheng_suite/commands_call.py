"""The command `fangcheng call`."""

from __future__ import annotations

from typing import Annotated

import typer

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

call = typer.Typer()


@call.command("call")
@told
def make_call(
    name: Annotated[str, typer.Argument(metavar="SERVICE/CALL", help="As docs/api.md names it.")],
    request: Annotated[
        str, typer.Argument(metavar="JSON", help="The request; without it an empty one.")
    ] = "",
    subject: Annotated[
        str, typer.Option("--as", help="Who calls: operator, service:NAME or player:ID.")
    ] = "operator",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The service, where no suite here runs it; then the token, or the certificate, "
            "says who calls.",
            show_default=False,
        ),
    ] = None,
    token: OperatorToken = None,
    ca: Certificates = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    state: State = None,
) -> None:
    """Make any call of the running suite, and print its answers as JSON.

    Example: `fangcheng call TableService/ListTables '{"page_size": 3}'`
    """
    from .calling import call as make

    access = access_to(target, token, ca, certificate, certificate_key, state)
    console = make_console()
    run(lambda: make(access, subject, name, request, console))
