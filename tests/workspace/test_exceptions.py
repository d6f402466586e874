"""Exceptions of the security rules of ruff and bandit: each named, and explained in its place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ("services", "shared", "tools", "deploy")
"""Our code; of tests and benchmarks pyproject.toml says once which rules are not for them."""
PRAGMA = re.compile(r"# (noqa|nosec)\b.*$")
SECURITY = re.compile(r"(# noqa: S\d+(, S\d+)* )?# nosec B\d+(, B\d+)* # [`\w].+")
OTHER = re.compile(r"# noqa: [A-Z]+\d+\b(?!.*nosec).*")


def pragmas(folder: str) -> Iterator[tuple[str, str]]:
    """Place and text of every exception that our own sources make."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        if not path.stem.endswith(("_pb2", "_pb2_grpc")):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if found := PRAGMA.search(line):
                    yield f"{path.relative_to(ROOT)}:{number}", found[0]


@pytest.mark.parametrize("folder", CODE)
def test_every_exception_of_security_names_its_rule_and_its_reason(folder: str) -> None:
    for place, text in pragmas(folder):
        form = SECURITY if "nosec" in text or re.search(r"noqa:.*\bS\d", text) else OTHER
        assert form.fullmatch(text), f"{place}: {text}"


def test_no_rule_of_security_is_off_for_a_folder_of_ours() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    lint = settings["ruff"]["lint"]
    assert "S" in lint["select"]
    off = {
        where: rules for where, rules in lint["per-file-ignores"].items() if "S" in "".join(rules)
    }
    # The quick start is to be read: it has no word for tools, and starts `fangcheng token` alone.
    assert off.keys() == {"tests/**", "benchmarks/**", "examples/quickstart.py"}
    for rules in (*off.values(), lint["ignore"]):
        assert "S" not in rules  # each by its number
    assert "bandit" not in settings
    checked = re.search(r"bandit --quiet --recursive ([a-z ]+) 2>", (ROOT / "Makefile").read_text())
    assert checked is not None
    assert tuple(checked[1].split()) == CODE
