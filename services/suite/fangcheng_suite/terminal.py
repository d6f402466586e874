"""What the commands have in common: how they run, end, and tell what went wrong."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape

from .cli import EXIT_INTERRUPTED
from .errors import SuiteError, from_call
from .state import StateFolder, default_folder

if TYPE_CHECKING:
    from .access import Access, Elsewhere
    from .render import Ink

P = ParamSpec("P")

EXIT_FAILED = 1

State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="FOLDER",
        help="State folder of the suite. Default: $FANGCHENG_STATE, else ~/.local/state/fangcheng.",
        show_default=False,
    ),
]

OperatorToken = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="FANGCHENG_TOKEN",
        help="Bearer token of an operator or a service, for --target.",
        show_default=False,
    ),
]
Certificates = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        help="PEM file of the certificates to trust: connect with TLS.",
        show_default=False,
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(
        "--certificate",
        help="PEM file of your own certificate, for services that ask for one. Without a token it "
        "says who calls.",
        show_default=False,
    ),
]
CertificateKey = Annotated[
    Path | None,
    typer.Option("--certificate-key", help="PEM file of its private key.", show_default=False),
]


def make_console() -> Console:
    """Where a command prints."""
    # Without a terminal nobody wants lines broken at 80 columns.
    width = None if sys.stdout.isatty() else 10_000
    return Console(highlight=False, width=width, soft_wrap=not sys.stdout.isatty())


def make_ink() -> Ink:
    """The signs that the terminal can show."""
    from .render import Ink

    return Ink.for_encoding(sys.stdout.encoding)


def access_of(state: Path | None) -> Access:
    """The suite that runs, by its state folder; raises SuiteError where none does."""
    from .access import Access

    suite = StateFolder(state or default_folder()).read()
    return Access(suite.target, suite.key)


def access_to(
    target: str | None,
    token: str | None,
    ca: Path | None,
    certificate: Path | None,
    key: Path | None,
    state: Path | None,
) -> Access | Elsewhere:
    """The service that was named, or the suite that runs; raises SuiteError."""
    from .access import Elsewhere
    from .identity import identity_in

    if not target:
        return access_of(state)
    return Elsewhere(target, token, ca, identity_in(ca, certificate, key))


def _fail(error: SuiteError) -> typer.Exit:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]error:[/bold red] {escape(error.message)}")
    for line in error.details:
        console.print(f"  [dim]{escape(line)}[/dim]")
    if error.hint:
        console.print(escape(error.hint))
    return typer.Exit(EXIT_FAILED)


def told(command: Callable[P, None]) -> Callable[P, None]:
    """Tell what went wrong in a line instead of showing a trace."""

    @functools.wraps(command)
    def wrapped(*arguments: P.args, **more: P.kwargs) -> None:
        try:
            command(*arguments, **more)
        except (Exception, BaseExceptionGroup) as error:
            reason = _reason(error)
            if reason is None:
                raise
            raise _fail(reason) from None

    return wrapped


def _reason(error: BaseException) -> SuiteError | None:
    """The first thing in an exception, or a group of them, that a person can be told."""
    if isinstance(error, SuiteError):
        return error
    if "grpc" in sys.modules:  # else no call can have failed
        import grpc

        if isinstance(error, grpc.RpcError):
            return from_call(error, "a call failed")
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            if (reason := _reason(part)) is not None:
                return reason
    return None


def run(main: Callable[[], Coroutine[Any, Any, None]], exit_code: int = 0) -> None:
    """Run until done or interrupted: Ctrl-C and SIGTERM end in order, a second one at once."""

    async def guarded() -> None:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()

        def interrupted() -> None:
            if task is not None and not task.cancelling():
                task.cancel()
                return
            from . import launcher

            for running in launcher.LIVE:
                running.kill()
            os._exit(EXIT_INTERRUPTED)

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupted)
        await main()

    try:
        asyncio.run(guarded())
    except asyncio.CancelledError:
        print("Stopped.", file=sys.stderr)
        raise typer.Exit(exit_code) from None
