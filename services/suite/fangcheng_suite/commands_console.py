"""`fangcheng console`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from .commands_token import KeyId, SigningKeyFile
from .errors import SuiteError
from .signing_in import LINK_HOURS, default_name, sign_in_link
from .state import StateFolder, default_folder
from .terminal import State, told

console = typer.Typer()


class Role(StrEnum):
    """What a person may do in the console."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@console.command("console")
@told
def link(
    role: Annotated[
        Role, typer.Option(help="A viewer looks; an operator reveals hands and acts.")
    ] = Role.OPERATOR,
    name: Annotated[
        str | None,
        typer.Option(
            help="Whom the logs are to name. Default: who uses this computer.", show_default=False
        ),
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.01, max=24 * 30, help="How long the person is let in.")
    ] = LINK_HOURS,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A console elsewhere: `https://console.example`; its key with --key. Default: "
            "that of the suite which runs here.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            envvar="FANGCHENG_DEV_KEY",
            help="The development key to sign with, for --address.",
            show_default=False,
        ),
    ] = None,
    signing_key: SigningKeyFile = None,
    kid: KeyId = "",
    state: State = None,
) -> None:
    """Print a link that signs a person in to the console.

    Whoever has the link is that person until it expires: send it as you would a password.

    Example: `fangcheng console --role viewer --name wang --hours 2`
    """
    from .access import signing_key_in

    if address is None:
        suite = StateFolder(state or default_folder()).read()
        link = sign_in_link(suite.page, suite.key, role.value, name or default_name(), hours)
    else:
        signs = signing_key_in(signing_key, kid) if signing_key is not None else key
        if signs is None:
            raise SuiteError(
                "the key of a console elsewhere is not known here",
                "Give it by --signing-key, or FANGCHENG_DEV_KEY, as its services have it.",
            )
        link = sign_in_link(address, signs, role.value, name or default_name(), hours)
    print(link)
