"""Every block of the README and the guide is run as it stands, against a running suite.

A reader's folder: a program is saved under the name above it, commands are run in it, and what they
print is compared with the text below them, where `…` is whatever differs at a reader's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from .running import COMMAND, LONG_SECONDS, Running, environment, free_port

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
GUIDE = [
    f"docs/guide/{step}.md"
    for step in (
        *("suite", "players", "wallet", "queue", "attend", "act", "settle", "reconnect"),
        *("gateway", "own", "errors", "production"),
    )
]
PAGES = [*GUIDE, "docs/tour.md", "README.md"]
NOT_HERE = {
    ("README.md", "make demo"): "tests/system/test_demo.py and test_up.py; a player of tests/suite",
    ("README.md", "source .venv/bin/activate"): "tests/system/test_quickstart.py",
    ("docs/guide/suite.md", "make run"): "the suite of the tests runs already",
    ("docs/guide/suite.md", "source .venv/bin/activate"): "the tests run in an environment",
    (
        "docs/guide/suite.md",
        "make dist",
    ): "tests/system/test_packages.py builds and installs the wheels",
    (
        "docs/guide/own.md",
        "FANGCHENG_MATCHMAKING_ADMISSION=127.0.0.1:7190 fangcheng up",
    ): "a second suite; tests/matchmaking/test_admission.py asks an AdmissionService",
    ("docs/tour.md", "fangcheng evaluate"): "tests/suite/test_readme.py runs these",
    ("docs/tour.md", "fangcheng up --evaluators 2"): "the suite of the tests runs already",
}
"""Blocks that are not run here, by how they begin, and why."""


@dataclass
class Block:
    page: str
    language: str
    title: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run here."""
        found = [why for (page, head), why in NOT_HERE.items() if self.begins(page, head)]
        return found[0] if found else None

    def begins(self, page: str, head: str) -> bool:
        """Whether it is a block of commands or a program that stands there and begins so."""
        return (self.page, self.title) == (page, "") and self.text.startswith(head)


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text("utf-8")
    found = re.findall(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', text, re.M | re.S)
    return [Block(page, language, title, code) for language, title, code in found]


@dataclass
class Reader:
    """Somebody who does what the pages say, in a folder of his own."""

    folder: Path
    places: dict[str, str]
    """What stands in the pages for where the suite listens, and where it does."""
    environment: dict[str, str]

    def here(self, text: str) -> str:
        for written, place in self.places.items():
            text = text.replace(written, place)
        return text

    def written(self, text: str) -> str:
        for written, place in self.places.items():
            text = text.replace(place, written)
        return text

    def run(self, *words: str) -> str:
        """What a command prints; it must end well."""
        ended = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=LONG_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, f"{words[-1]}\n{ended.stdout}"
        return self.written(ended.stdout)

    def follow(self, page: str) -> None:
        """Do what a page says, from its top."""
        printed: str | None = None
        for block in blocks(page):
            text = self.here(block.text)
            match block.language:
                case "text" if printed is not None:
                    assert is_like(printed, block.text), f"{block.text}\nis not\n{printed}"
                    printed = None
                case "text":  # of what is not run here, or a drawing
                    assert page not in GUIDE
                case "python" if block.title:
                    file = self.folder / block.title
                    file.parent.mkdir(exist_ok=True)
                    file.write_text(text, "utf-8")
                case "python" | "sh" if block.reason is not None:
                    printed = None
                case "python":
                    printed = self.run(sys.executable, "-c", text)
                case "sh":
                    printed = self.run("bash", "-euo", "pipefail", "-c", text)
                case other:
                    raise AssertionError(f"{page}: a block of {other!r} is run by nothing")


def is_like(printed: str, shown: str) -> bool:
    """Whether something was printed as it is shown, `…` being anything."""
    parts = [re.escape(part) for part in shown.strip().split("…")]
    return re.fullmatch(".*?".join(parts), printed.strip(), re.S) is not None


@pytest.fixture(scope="module")
def reader(quiet_suite: Running, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    folder = tmp_path_factory.mktemp("reader")
    suite = quiet_suite.suite
    services = {"matchmaking": 7100, "table": 7101, "wallet": 7102, "evaluation": 7110}
    places = {f"127.0.0.1:{port}": suite.target(name) for name, port in services.items()}
    places["127.0.0.1:7190"] = f"127.0.0.1:{free_port()}"
    path = f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}"
    own = environment(FANGCHENG_STATE=str(quiet_suite.state), PATH=path, COLUMNS="200")
    return Reader(folder, places, own)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(reader: Reader, page: str) -> None:
    if page == "docs/tour.md":  # its suite has tables of bots, this one has none of its own
        reader.run("fangcheng", "call", "WalletService/OpenWallet", '{"player_id": "looked-at"}')
        sit = "seated(token('player:looked-at'), 'shandong-practice')"
        program = f"import asyncio; from join import *; asyncio.run({sit})"
        reader.run(sys.executable, "-c", program)
    reader.follow(page)


def test_every_page_of_the_guide_is_followed() -> None:
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/guide").glob("*.md")}
    assert written - set(GUIDE) == {"docs/guide/README.md"}
    assert not blocks("docs/guide/README.md")


def test_what_is_not_run_here_is_there_and_nothing_else() -> None:
    everything = [block for page in PAGES for block in blocks(page)]
    for page, head in NOT_HERE:
        assert sum(block.begins(page, head) for block in everything) == 1, (page, head)


def test_something_else_is_not_like_it() -> None:
    assert is_like("hand 7 of 9\nends", "hand … of 9\n…")
    assert not is_like("hand 7 of 8\nends", "hand … of 9\n…")
