"""The command `fangcheng bots`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .commands_token import KeyId, SigningKeyFile
from .errors import SuiteError
from .terminal import CertificateKey, Certificates, State, access_of, make_console, run, told

if TYPE_CHECKING:
    from fangcheng_kit.signing import SigningKey

    from .access import Access
    from .identity import Identity

bots = typer.Typer()

Think = Annotated[
    float,
    typer.Option(
        min=0,
        max=60,
        help="Seconds that a bot seems to think about a usual turn, now more and now less; claims "
        "take it less. 0: it answers at once.",
    ),
]
StrengthName = Literal["first_legal", "efficient", "careful"]
Strength = Annotated[
    StrengthName,
    typer.Option(
        help="How well bots play: take the first action offered, go straight for a win, or look at "
        "what the others may wait for as well."
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Where this service is, if no suite runs here; then name all four.",
        show_default=False,
    ),
]

DevKey = Annotated[
    str | None,
    typer.Option(
        envvar="FANGCHENG_DEV_KEY",
        help="The development key that signs tokens, for services that are named.",
        show_default=False,
    ),
]
WithoutTls = Annotated[
    bool,
    typer.Option(
        "--dangerously-without-tls",
        envvar="FANGCHENG_DANGEROUSLY_WITHOUT_TLS",
        help="Call services beyond this host unencrypted, as they call each other.",
    ),
]


def _access(
    targets: dict[str, str | None],
    key: str | SigningKey | None,
    ca: Path | None,
    plaintext: bool,
    identity: Identity | None,
) -> Access:
    """The way into a suite that runs elsewhere; raises SuiteError."""
    from .access import OPERATOR, Access, renewing_token

    given = {service: target for service, target in targets.items() if target}
    if missing := [f"--{service}" for service in targets if service not in given]:
        raise SuiteError(
            f"{' and '.join(missing)} not given", "Name all services, or none for a suite here."
        )
    try:
        renewing_token(key or "", OPERATOR)()
    except ValueError as error:
        raise SuiteError(
            str(error),
            "Give the key that signs tokens by --signing-key, or FANGCHENG_DEV_KEY as the services "
            "have it.",
        ) from None
    return Access(given.__getitem__, key or "", ca, plaintext, identity)


@bots.command("bots")
@told
def keep(
    pool: Annotated[list[str], typer.Option(help="A pool that bots may fill up; repeatable.")],
    count: Annotated[int, typer.Option(min=1, max=1_000, help="Bots in each pool.")] = 3,
    think: Think = 3.0,
    strength: Strength = "efficient",
    prefix: Annotated[
        str, typer.Option(help="What their player ids begin with; players see it.")
    ] = "guest",
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
            help="PEM file of the bots' own certificate, for services that ask for one. It says "
            "who calls for the house; tokens are made for players alone.",
            show_default=False,
        ),
    ] = None,
    certificate_key: CertificateKey = None,
    without_tls: WithoutTls = False,
    state: State = None,
) -> None:
    """Keep bots on standby in pools of the suite that runs here, or of the services named.

    They fill up tables with the house's money: it lends each what the pool asks for, and gets back
    what the bot has when its table is over. Ctrl-C and SIGTERM have them leave the queue, or their
    table when the hand in play has ended; a second one ends them at once.

    Example: `fangcheng bots --pool baishan_kele-practice --count 3`
    """
    from .access import signing_key_in
    from .bots.keeping import keep_bots
    from .identity import identity_in

    targets = {
        "matchmaking": matchmaking,
        "table": table,
        "wallet": wallet,
        "evaluation": evaluation,
    }
    elsewhere = any(targets.values())
    if elsewhere:
        signs = signing_key_in(signing_key, kid) if signing_key is not None else key
        identity = identity_in(ca, certificate, certificate_key)
        access = _access(targets, signs, ca, without_tls, identity)
    else:
        access = access_of(state)
    console = make_console()

    def say(text: str) -> None:
        console.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim]  {text}")

    run(
        lambda: keep_bots(
            access,
            pool,
            count,
            prefix=prefix,
            strength=strength,
            turn_seconds=think,
            report=say,
        )
    )
