"""What the command says when it cannot go on: in every case what to do next."""

from __future__ import annotations

import ast
import errno
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import typer

import fangcheng_suite
from fangcheng_kit import errors as kit
from fangcheng_suite import errors
from fangcheng_suite.commands import app
from fangcheng_suite.errors import SuiteError, cannot, from_call

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(Path(fangcheng_suite.__file__).parent.rglob("*.py"))


def kinds(trees: list[ast.Module]) -> dict[str, bool]:
    """The names of all errors of the suite, and whether whoever makes one has to give a hint."""
    needs = {
        name: "hint" in inspect.signature(kind).parameters
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, SuiteError)
    }
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in needs:
                for base in map(ast.unparse, node.bases):
                    if base in needs:
                        needs[node.name] = needs[base]
    return needs


def made() -> Iterator[tuple[str, ast.Call]]:
    """Every place where an error of the suite is made that has to have a hint."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in SOURCES}
    needs = kinds(list(trees.values()))
    for path, tree in trees.items():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and needs.get(ast.unparse(call.func)):
                yield f"{path.name}:{call.lineno}", call


def test_every_error_of_a_command_says_what_to_do_next() -> None:
    places = list(made())
    assert len(places) > 100
    for where, call in places:
        hints = [one.value for one in call.keywords if one.arg == "hint"]
        hint = call.args[1] if len(call.args) > 1 else hints[0] if hints else None
        assert hint is not None, where
        if isinstance(hint, ast.Constant):
            assert str(hint.value).rstrip().endswith((".", "?", "`")) or " " in str(hint.value), (
                where
            )
            assert len(str(hint.value)) >= 12, where


@pytest.mark.parametrize("kind", [errors.VerificationFailed, errors.DemoFailed])
def test_errors_that_are_made_without_a_hint_have_one_of_their_own(
    kind: type[errors.VerificationFailed | errors.DemoFailed],
) -> None:
    assert kind("It does not hold.").hint.endswith(".")


def refused(error: kit.ServiceError) -> grpc.aio.AioRpcError:
    trailing = grpc.aio.Metadata((kit.DETAILS_KEY, kit.details(error)))
    return grpc.aio.AioRpcError(error.code, grpc.aio.Metadata(), trailing, error.message)


def test_a_refused_call_is_told_with_the_cure_of_its_reason() -> None:
    told = from_call(
        refused(kit.NotFound("UNKNOWN_WALLET", "No such wallet.", "player_id")), "asking"
    )
    assert told.message == "asking: No such wallet. (field player_id) [UNKNOWN_WALLET]"
    assert "OpenWallet" in told.hint


def test_a_refusal_that_nobody_knows_has_a_hint_too() -> None:
    none: tuple[grpc.aio.Metadata, grpc.aio.Metadata] = (grpc.aio.Metadata(), grpc.aio.Metadata())
    odd = grpc.aio.AioRpcError(grpc.StatusCode.DATA_LOSS, *none, "Oh.")
    assert from_call(odd, "asking").hint


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOENT, "Check the name"),
        (errno.EACCES, "Let the user"),
        (errno.EISDIR, "not a folder"),
        (errno.ENOSPC, "no room"),
        (errno.EIO, "disk"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_what_helps_against_that(
    number: int, said: str
) -> None:
    told = cannot("read", Path("ca.crt"), OSError(number, os.strerror(number)))
    assert told.message == f"cannot read ca.crt: {os.strerror(number)}"
    assert said in told.hint


def test_every_command_that_a_text_of_ours_names_is_there() -> None:
    """What a person is told to do next has to exist: in errors, pages of the console, and docs."""
    top: Any = typer.main.get_command(app)
    named = 0
    for path in (
        *ROOT.glob("services/**/*"),
        *ROOT.glob("shared/**/*"),
        *ROOT.glob("docs/**/*.md"),
    ):
        if path.suffix not in {".py", ".js", ".json", ".md"} or "vendor" in path.parts:
            continue
        for first, second in re.findall(
            r"`fangcheng ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?\b", path.read_text("utf-8")
        ):
            command = top.commands.get(first)
            assert command is not None, f"{path.relative_to(ROOT)}: fangcheng {first}"
            below = getattr(command, "commands", None)
            assert below is None or not second or second in below, f"{path}: {first} {second}"
            named += 1
    assert named > 50
