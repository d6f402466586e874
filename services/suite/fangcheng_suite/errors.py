"""What the command tells a person when it cannot go on: what was wrong, and what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import grpc


class SuiteError(Exception):
    """Ends the command with one line, a hint and exit code 1."""

    def __init__(self, message: str, hint: str, details: tuple[str, ...] = ()) -> None:
        """`hint`: what to do next, a sentence or two; nobody is left without."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What to do about it."""
        self.details = details
        """Lines that show what happened, such as the end of a log."""


class StateInUse(SuiteError):
    """Another suite runs with this state folder."""


class NotRunning(SuiteError):
    """No suite runs with this state folder."""


class PortTaken(SuiteError):
    """A port that a service should listen on is in use."""


class ServiceFailed(SuiteError):
    """A service ended, or did not become ready in time."""


class VerificationFailed(SuiteError):
    """A hand's record does not follow from what was committed to."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            "Get the record anew from the table service and verify it again; if that fails too, "
            "the hand is a case for docs/operations/runbooks/disputed-hand.md.",
        )


class DemoFailed(SuiteError):
    """Something that the demo promises did not hold."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            "Run it again when this computer has less to do. If it stays, `fangcheng up` does the "
            "same with logs that are kept: `fangcheng logs` shows them.",
        )


class LedgerTampered(SuiteError):
    """The hash chain does not fit what the ledger says."""


class ConformanceFailed(SuiteError):
    """A wallet does not keep what its contract promises."""


def from_call(error: grpc.RpcError, what: str, target: str = "") -> SuiteError:
    """A refused or lost call as something to tell a person; `what` names what was attempted.

    `target`: the address that was called, where it is not a suite's on this computer.
    """
    # Here, and not above: most commands end without an error, some never need gRPC.
    import grpc

    from fangcheng_client import explain

    problem = explain(error)
    if problem.code is grpc.StatusCode.UNAVAILABLE:
        return SuiteError(
            f"{what}: the service cannot be reached ({problem.message})",
            f"Does it listen on {target}? If it has TLS, name the certificates to trust "
            "with --ca, and your own with --certificate and --certificate-key if it asks for one."
            if target
            else "Is the suite still running? Start it with `fangcheng up`.",
        )
    if problem.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        where = f"of the service on {target}" if target else "in the state folder"
        return SuiteError(f"{what}: no answer in time", f"Look at the logs {where}.")
    where = f" (field {problem.field})" if problem.field else ""
    return SuiteError(
        f"{what}: {problem.message}{where} [{problem.reason}]",
        problem.cure() or "docs/errors.md tells what each status means.",
    )


def cannot(do: Literal["read", "write"], path: Path | str, error: OSError) -> SuiteError:
    """A file that cannot be read or written, and what to do about it."""
    match error.errno:
        case errno.ENOENT:
            hint = f"Check the name; one that is relative begins at {Path.cwd()}."
        case errno.EACCES | errno.EPERM | errno.EROFS:
            hint = f"Let the user {os.getuid()} {do} it, or name another file."
        case errno.EISDIR | errno.ENOTDIR:
            hint = "Name a file, not a folder, and folders above it that are some."
        case errno.ENOSPC | errno.EDQUOT:
            hint = "There is no room left: make some, or name a file on another disk."
        case _:
            hint = "Name another file, or look at the disk: the system's log may say more."
    return SuiteError(f"cannot {do} {path}: {error.strerror or error}", hint)
