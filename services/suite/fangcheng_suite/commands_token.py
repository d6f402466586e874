"""The commands for tokens: `fangcheng token`, `fangcheng dev-keys`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .errors import SuiteError, cannot
from .state import StateFolder, default_folder
from .terminal import State, told

SigningKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--signing-key",
        envvar="FANGCHENG_SIGNING_KEY",
        help="A private key to sign with instead: PEM, Ed25519 or RSA.",
        show_default=False,
    ),
]
KeyId = Annotated[
    str,
    typer.Option(
        "--kid",
        envvar="FANGCHENG_SIGNING_KEY_ID",
        help="The id of that key in the key set. Default: its thumbprint.",
        show_default=False,
    ),
]
DevKey = Annotated[
    str | None,
    typer.Option(
        envvar="FANGCHENG_DEV_KEY",
        help="The development key to sign with. Default: that of the suite which runs here.",
        show_default=False,
    ),
]


@told
def token(
    subject: Annotated[
        str,
        typer.Argument(
            help="Who calls: `player:<id>`, `operator`, `operator:<name>` or `service:<name>`; "
            "`viewer:<name>` looks at the console."
        ),
    ],
    scope: Annotated[
        list[str] | None, typer.Option(help="A scope, such as `act_as` or `bot`; repeatable.")
    ] = None,
    ttl: Annotated[float, typer.Option(min=1, help="Seconds that it is good for.")] = 3600.0,
    key: DevKey = None,
    signing_key: SigningKeyFile = None,
    kid: KeyId = "",
    audience: Annotated[
        str,
        typer.Option(envvar="FANGCHENG_TOKEN_AUDIENCE", help="For whom it is: the services' own."),
    ] = "fangcheng",
    issuer: Annotated[
        str,
        typer.Option(
            envvar="FANGCHENG_TOKEN_ISSUER",
            help="Who has made it, where services look at that.",
            show_default=False,
        ),
    ] = "",
    state: State = None,
) -> None:
    """Print a token, signed with the key of the running suite or with one of your own.

    Example: `fangcheng token player:ming --ttl 600`
    """
    from fangcheng_kit.tokens import mint_token

    from .access import signing_key_in

    with_key = (
        signing_key_in(signing_key, kid)
        if signing_key is not None
        else key or StateFolder(state or default_folder()).read().key
    )
    try:
        made = mint_token(with_key, subject, scope or [], ttl, audience=audience, issuer=issuer)
    except ValueError as error:
        raise SuiteError(str(error), "Example: fangcheng token player:ming") from None
    print(made)


@told
def dev_keys(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; made if missing.")],
) -> None:
    """Make a key that signs tokens, and the key set by which services check them, for trying.

    `signing.pem` is the private key, for `--signing-key`: whoever has it is anybody. `jwks.json` is
    for services: `FANGCHENG_JWKS`.

    Example: `fangcheng dev-keys keys`
    """
    from fangcheng_kit.signing import SigningKey

    private, public = folder / "signing.pem", folder / "jwks.json"
    key, pem = SigningKey.new()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Never one over another, nor readable by others for a moment.
        descriptor = os.open(private, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
        public.write_text(key.key_set(), "utf-8")
    except FileExistsError as error:
        there = error.filename
        raise SuiteError(
            f"there is {there} already", "Remove it, or name another folder."
        ) from None
    except OSError as error:
        raise cannot("write", folder, error) from error
    print(f"{private}  signs tokens: fangcheng token operator --signing-key {private}")
    print(f"{public}  checks them: FANGCHENG_JWKS={public}")
