"""The state folder: what a suite keeps, and how the other commands find it.

::

    suite.json      addresses, process id and development key of the running suite (mode 0600)
    lock            held by the running suite, so that two never share a folder
    logs/<name>.log what each service wrote
    <name>.db       each service's database
    journal.keys    what seals the tables' journal (mode 0600); without it no hand can be read again
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .errors import NotRunning, StateInUse, SuiteError, cannot

ENVIRONMENT_NAME = "FANGCHENG_STATE"


@dataclass(frozen=True, slots=True)
class Address:
    """Where one process listens, each as `host:port`."""

    grpc: str
    metrics: str
    web: str = ""
    """Of the console's page; others have none."""


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """All that a command needs to talk to a running suite."""

    pid: int
    """Process id of the launcher."""
    key: str = field(repr=False)
    """Development key that signs tokens; a secret."""
    services: dict[str, tuple[Address, ...]] = field(default_factory=dict)
    """Addresses by service; several for `evaluation`."""

    @property
    def page(self) -> str:
        """Address of the console's page, for browsers; raises SuiteError where none runs."""
        if "console" not in self.services:
            raise SuiteError("the suite that runs has no console", "Start it anew: fangcheng up")
        return f"http://{self.services['console'][0].web}"

    def target(self, service: str) -> str:
        """What `fangcheng_client.connect` takes for a service."""
        return target([address.grpc for address in self.services[service]])


def target(addresses: list[str]) -> str:
    """One gRPC target for one or more addresses of a service on this host."""
    return addresses[0] if len(addresses) == 1 else "ipv4:" + ",".join(addresses)


def default_folder() -> Path:
    """Where the state lies unless told otherwise: `FANGCHENG_STATE`, or the user's state folder."""
    if named := os.environ.get(ENVIRONMENT_NAME):
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "fangcheng"


class StateFolder:
    """A state folder on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.suite_file = self.path / "suite.json"
        self.logs = self.path / "logs"
        self._journal_keys = self.path / "journal.keys"

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Make the folder and hold it for this process; raises StateInUse if another has it."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.logs.mkdir(exist_ok=True, mode=0o700)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SuiteError(
                f"cannot use the state folder {self.path}: {error.strerror}",
                "Choose another one with --state.",
            ) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                raise StateInUse(
                    f"a suite already runs with the state folder {self.path}"
                    + (f" (process {owner})" if owner else ""),
                    "Stop it, or choose another folder with --state.",
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode("ascii"), 0)
            yield
        finally:
            os.close(descriptor)

    def write(self, suite: SuiteFile) -> None:
        """Replace `suite.json`, readable by this user alone."""
        fresh = self.suite_file.with_suffix(".json.new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(suite), file, indent=2)
        fresh.replace(self.suite_file)

    def forget(self) -> None:
        """Remove `suite.json`: nothing runs any more."""
        self.suite_file.unlink(missing_ok=True)

    def read(self) -> SuiteFile:
        """What the running suite wrote; raises NotRunning where none runs."""
        try:
            stored = json.loads(self.suite_file.read_text("utf-8"))
            suite = SuiteFile(
                pid=int(stored["pid"]),
                key=str(stored["key"]),
                services={
                    str(name): tuple(Address(**address) for address in addresses)
                    for name, addresses in stored["services"].items()
                },
            )
        except (FileNotFoundError, NotADirectoryError):
            raise self._not_running() from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SuiteError(
                f"cannot read {self.suite_file}: {error}",
                "Stop the suite, remove the file, and start it again with `fangcheng up`.",
            ) from error
        if not _lives(suite.pid):
            raise self._not_running()
        return suite

    def journal_keys(self, *, make: bool = False) -> str:
        """What seals the journal, as `FANGCHENG_TABLE_JOURNAL_KEYS` has it; '': nothing does.

        The variable comes first. `make`: where there is neither, a key is made and kept.
        """
        # Needs what takes a while to import, and most commands do not.
        from fangcheng_table.sealing import VARIABLE, new_key

        if given := os.environ.get(VARIABLE):
            return given
        try:
            return self._journal_keys.read_text("utf-8").strip()
        except FileNotFoundError:
            if not make:
                return ""
        except OSError as error:
            raise cannot("read", self._journal_keys, error) from error
        keys = new_key(time.strftime("%Y-%m-%d"))
        descriptor = os.open(self._journal_keys, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(keys + "\n")
            file.flush()
            os.fsync(descriptor)  # before anything is sealed with it
        return keys

    def _not_running(self) -> NotRunning:
        return NotRunning(
            f"no suite runs with the state folder {self.path}",
            "Start it with `fangcheng up`, or name its folder with --state.",
        )


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
