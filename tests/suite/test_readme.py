"""README and pages promise only what works. Commands run here, or in tests/system."""

from __future__ import annotations

import functools
import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

# Before any command: the first that evaluates would choose the interpreter for all that follow.
from fangcheng_rules.rulesets import BUILT_IN
from fangcheng_suite.commands import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = {
    name: (ROOT / name).read_text("utf-8")
    for name in (
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("examples/*/README.md")),
        *sorted(
            str(page.relative_to(ROOT))
            for page in ROOT.glob("docs/**/*.md")
            if page.name not in ("api.md", "performance.md", "settings.md", "security.md")
            and page.parent.name != "rules"
        ),
    )
}
"""Those that are written, not generated."""
RUNS_HERE = ("evaluate",)
"""Commands that need no service; test_simulating.py runs those that play hands."""


def commands() -> list[list[str]]:
    """The words of every command line of `fangcheng` in the shell blocks of the pages."""
    blocks = re.findall(r"^```sh\n(.*?)^```", "\n".join(PAGES.values()), re.M | re.S)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"\$\((fangcheng [^()]+)\)", "\n".join(lines))
    split = [shlex.split(line, comments=True) for line in lines if line.startswith("fangcheng")]
    return [list(takewhile(lambda word: word not in ("|", ">"), words[1:])) for words in split]


def test_there_are_commands_to_check() -> None:
    assert len(commands()) >= 16


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_is_understood(words: list[str]) -> None:
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context("fangcheng", list(words))


@pytest.mark.parametrize(
    "words", [words for words in commands() if words[0] in RUNS_HERE], ids=" ".join
)
def test_what_needs_no_service_runs(words: list[str]) -> None:
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output


def test_every_rule_set_is_named() -> None:
    for rules in BUILT_IN:
        assert f"(`{rules.id}`)" in README


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = {
        target for text in PAGES.values() for target in re.findall(r"`make ([a-z-]+)[ `]", text)
    } | set(re.findall(r"^make ([a-z-]+)", README, re.M))
    assert named
    assert named <= targets


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        there = (ROOT / page).parent.joinpath(file) if file else ROOT / page
        assert there.exists(), link
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), link


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """What the headings of a page are linked to by."""
    titles = re.findall(r"^#+ (.*?)(?: \{#[\w-]+\})?$", page.read_text("utf-8"), re.M)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def test_the_quick_start_is_shown_as_it_is() -> None:
    [shown] = re.findall(
        r'^```python title="examples/quickstart.py"\n(.*?)^```', README, re.M | re.S
    )
    assert shown == (ROOT / "examples/quickstart.py").read_text("utf-8")
