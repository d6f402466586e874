"""`fangcheng dev-certs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import make_console, told


@told
def dev_certs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write them.")],
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another name or address at which the services are found, beside their own names, "
            "`localhost` and `127.0.0.1`; repeatable."
        ),
    ] = None,
    trust_domain: Annotated[
        str, typer.Option(help="As in `FANGCHENG_TLS_TRUST_DOMAIN`.")
    ] = "fangcheng",
) -> None:
    """Make an authority and certificates for trying: of each service, of a proxy, of an operator.

    Writes `ca.crt`, `<service>.crt` and `.key`, `edge` (a proxy) and `operator`; they are good for
    30 days. Run again it renews them; the authority stays, so that what runs goes on.

    Example: `fangcheng dev-certs certs --host wallet.example`
    """
    from .certificates import DAYS, HOLDERS, make_all

    make_all(folder, host or [], trust_domain)
    make_console().print(
        f"{folder}: ca.crt, and .crt and .key of {', '.join(HOLDERS)}; good for {DAYS} days.",
        soft_wrap=True,
    )
