"""The catalogue of reasons, held to the code that raises them and the contracts that name them."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from typer.main import get_command

from fangcheng_client import Problem
from fangcheng_client.reasons import EVERY, LANGUAGES, Retry, catalogue, find
from fangcheng_console.problems import Refused, answer
from fangcheng_evaluation.service import refusal
from fangcheng_kit.errors import ServiceError
from fangcheng_rules import errors as rules
from fangcheng_suite.commands import app

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("evaluation", "table", "matchmaking", "wallet", "console")
FOLDERS = {name: ROOT / "services" / name for name in SERVICES} | {
    name: ROOT / "shared" / name for name in ("kit", "rules", "client")
}
WHOSE = {"kit": EVERY} | {name: name for name in FOLDERS if name != "kit"}
STATUSES = {code.name for code in grpc.StatusCode} - {"OK"}
IN_CAPITALS = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+|[A-Z]{5,}")

# Texts like a reason that are none: variables of the environment, others' names.
NO_REASONS = {
    *("NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME", "PATH_INFO", "XDG_CACHE_HOME"),
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
    *("JOURNAL_KEYS", "TLS_CA", "TLS_CERTIFICATE", "TLS_CLIENT_CA", "TLS_KEY"),
    *("RST_STREAM", "TCP_USER_TIMEOUT", "USES_MARKS"),
}
# Errors of the rules that no service tells as they are.
STAY_WITHIN = (rules.ActionRefused, rules.InvalidWall, rules.InvalidNotation)
# Reasons of errors that get them by another name, or from another error.
TOLD_ON = {
    ("DRAINING", "UNAVAILABLE"),
    ("METHOD_NOT_ALLOWED", "405"),
    ("TOKEN_MISSING", "UNAUTHENTICATED"),
    ("TOO_MANY_STREAMS", "RESOURCE_EXHAUSTED"),
    ("UNKNOWN_WALLET", "FAILED_PRECONDITION"),
    ("STREAM_LOST", "UNAVAILABLE"),
}


@dataclass(frozen=True)
class Raised:
    """A place where an error is made with its reason in words."""

    reason: str
    whose: str
    status: str
    """A status of gRPC or of HTTP; empty: none comes of it."""


@functools.cache
def sources() -> list[tuple[str, Path, ast.Module]]:
    """The code that may refuse something; a ``__main__`` runs what it imports, and is left out."""
    texts = [
        (folder, file, file.read_text("utf-8"))
        for folder, path in FOLDERS.items()
        for file in sorted(path.rglob("*.py"))
        if file.name != "__main__.py"
    ]
    quoted = re.compile(rf"[\"'](?:{IN_CAPITALS.pattern})[\"']")
    return [(folder, file, ast.parse(text)) for folder, file, text in texts if quoted.search(text)]


@functools.cache
def in_capitals() -> set[str]:
    """Everything in the code that looks like a reason."""
    return {
        node.value
        for _, _, tree in sources()
        for node in said(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and IN_CAPITALS.fullmatch(node.value)
        and not node.value.startswith("FANGCHENG_")
    }


def said(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a module, without its list of names for others."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) == "__all__"):
            yield child
            yield from said(child)


@functools.cache
def raised() -> list[Raised]:
    """Every place where an error is made with its reason in words."""
    return [one for source in sources() for one in errors_made(*source)]


def errors_made(folder: str, file: Path, tree: ast.Module) -> Iterator[Raised]:
    """The errors with a reason that a module makes, and what status the reason then has."""
    calls = list(calls_with_a_reason(tree, ""))
    module = importlib.import_module(module_name(folder, file)) if calls else None
    for call, owner, reason in calls:
        made = ast.unparse(call.func)
        found = attribute(module, owner if made == "super().__init__" else made)
        if found in (Refused, answer):
            yield Raised(reason, WHOSE[folder], ast.unparse(call.args[0]))
        if not isinstance(found, type):
            continue
        if issubclass(found, ServiceError):
            yield Raised(reason, WHOSE[folder], found.code.name)
        elif issubclass(found, rules.RulesError):
            stays = issubclass(found, STAY_WITHIN)
            yield Raised(
                reason, WHOSE[folder], "" if stays else refusal(found(reason, "")).code.name
            )


def calls_with_a_reason(node: ast.AST, owner: str) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls whose first or second argument looks like a reason, and in which class they are."""
    for child in ast.iter_child_nodes(node):
        yield from calls_with_a_reason(
            child, child.name if isinstance(child, ast.ClassDef) else owner
        )
        if isinstance(child, ast.Call):
            for one in child.args[:2]:
                value = one.value if isinstance(one, ast.Constant) else None
                if isinstance(value, str) and IN_CAPITALS.fullmatch(value):
                    yield child, owner, value


def module_name(folder: str, file: Path) -> str:
    return ".".join(file.relative_to(FOLDERS[folder]).with_suffix("").parts).removesuffix(
        ".__init__"
    )


def attribute(module: Any, dotted: str) -> object:
    found: object = module
    for part in dotted.split("."):
        found = getattr(found, part, None)
    return found


def test_every_reason_of_the_code_is_in_the_catalogue() -> None:
    """What is neither a reason nor listed above as none has to go into one of the two."""
    likely = {text for text in in_capitals() if "_" in text} | {one.reason for one in raised()}
    assert likely - set(catalogue()) - STATUSES == NO_REASONS


def test_every_reason_of_the_catalogue_is_in_the_code() -> None:
    assert set(catalogue()) - in_capitals() <= STATUSES
    assert set(catalogue()) >= STATUSES  # an answer without a reason has its status for one


def test_a_reason_has_the_statuses_and_services_that_the_code_gives_it() -> None:
    assert len(raised()) > 200
    stated = {
        (one.id, status)
        for one in catalogue().values()
        for status in (*(code.name for code in one.statuses), *map(str, one.http))
    }
    given = {(one.reason, one.status) for one in raised() if one.status}
    assert given - stated == set()
    own = {(reason, status) for reason, status in stated if reason not in STATUSES}
    assert own - given == TOLD_ON
    for one in raised():
        assert {one.whose, EVERY} & set(catalogue()[one.reason].services), one


def comments() -> Iterator[tuple[str, str]]:
    """The comments of the contracts: of which area, and each run of lines as one text."""
    for file in sorted((ROOT / "protos" / "fangcheng").rglob("*.proto")):
        text = ""
        for line in [*file.read_text("utf-8").splitlines(), ""]:
            if line.strip().startswith("//"):
                text += line.strip().removeprefix("//") + " "
            elif text:
                yield file.parent.parent.name, text
                text = ""


def test_every_reason_that_a_contract_names_is_in_the_catalogue_with_its_status() -> None:
    values = re.findall(r"^ +([A-Z0-9_]+) = \d+;", all_protos(), re.MULTILINE)
    types = {"BOOL", "CHOICE", "INTEGER"}  # of options, whose enum says OPTION_TYPE_ before them
    named: dict[str, set[str]] = defaultdict(set)
    for area, text in comments():
        for status, reasons in re.findall(r"\b([A-Z_]+) \(([^()]*)", text):
            if status not in STATUSES or area == "access":
                continue
            for reason in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b|\b[A-Z]{5,}\b", reasons):
                if reason in STATUSES or reason.startswith("FANGCHENG_"):
                    continue
                assert reason in catalogue(), f"{area}: {reason} has no entry"
                found = catalogue()[reason]
                assert status in {code.name for code in found.statuses}, (area, status, reason)
                assert {area, EVERY} & set(found.services), (area, reason)
                named[area].add(reason)
        for word in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", text):
            is_value = any(value == word or value.endswith(f"_{word}") for value in values)
            known = word in catalogue() or word in STATUSES or is_value or word in types
            assert known or word.startswith("FANGCHENG_") or word in NOT_OURS, (area, word)
    assert {area: len(reasons) > 2 for area, reasons in named.items()} == dict.fromkeys(
        ("evaluation", "matchmaking", "table", "wallet"), True
    )


NOT_OURS = {"MINOR_AT_NIGHT", "NO_SIDE_EFFECTS"}
"""A reason of the studio's that an example has, and words of Protobuf."""


def all_protos() -> str:
    files = sorted((ROOT / "protos" / "fangcheng").rglob("*.proto"))
    return "\n".join(file.read_text("utf-8") for file in files)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_says_what_is_wrong_why_and_what_to_do(language: str) -> None:
    ends = ("。", "）") if language == "zh" else (".",)
    for one in catalogue().values():
        text = one.text(language)
        for part in (text.message, text.cause, text.cure):
            assert part.endswith(ends), (one.id, part)
            assert "  " not in part, (one.id, part)
            has_chinese = re.search(r"[\u4e00-\u9fff]", part) is not None
            assert has_chinese == (language == "zh"), (one.id, part)
        assert len(text.message) <= 100, one.id
        assert len({text.message, text.cause, text.cure}) == 3, one.id


def test_texts_name_only_settings_pages_and_commands_that_there_are() -> None:
    settings = (ROOT / "docs" / "settings.md").read_text("utf-8")
    command_line: Any = get_command(app)
    for one in catalogue().values():
        for text in one.texts.values():
            told = f"{text.cause} {text.cure}"
            for name in re.findall(r"FANGCHENG_[A-Z_]+[A-Z]", told):
                assert name in settings, (one.id, name)
            for page in re.findall(r"docs/[\w./-]+\.md|docs/\w+/", told):
                assert (ROOT / page).exists(), (one.id, page)
            for command in re.findall(r"`fangcheng ([a-z-]+)", told):
                assert command in command_line.commands, (one.id, command)
            for proto in re.findall(r"\b(\w+\.proto)\b", told):
                assert any(ROOT.glob(f"protos/**/{proto}")), (one.id, proto)


def test_both_languages_speak_of_the_same_names() -> None:
    for one in catalogue().values():
        english, chinese = (
            set(
                re.findall(r"FANGCHENG_\w+|docs/[\w/-]+|[A-Z][a-z]+[A-Z]\w+", f"{t.cause} {t.cure}")
            )
            for t in (one.text("en"), one.text("zh"))
        )
        assert chinese <= english, (one.id, chinese - english)
        assert {n for n in english if n.startswith("FANGCHENG_")} <= chinese, one.id


def test_what_the_client_waits_for_may_be_repeated() -> None:
    for one in catalogue().values():
        for code in one.statuses:
            if Problem(code, one.id, "").passes:
                assert one.retry is not Retry.NEVER, one.id
            if one.retry is Retry.SAME:
                is_outcome_open = code in (
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    grpc.StatusCode.ABORTED,
                )
                assert Problem(code, one.id, "").passes or is_outcome_open, one.id


def test_a_problem_knows_its_cure_in_both_languages() -> None:
    problem = Problem(grpc.StatusCode.FAILED_PRECONDITION, "STALE_DECISION", "No prompt is open.")
    assert "newest prompt" in problem.cure()
    assert "最新的提示" in problem.cure("zh-Hans")
    assert problem.cure("fr") == problem.cure("en")


def test_a_reason_that_is_not_known_has_the_cure_of_its_status() -> None:
    problem = Problem(grpc.StatusCode.UNAVAILABLE, "OF_ANOTHER_RELEASE", "Not now.")
    unavailable = find("UNAVAILABLE")
    assert unavailable is not None
    assert problem.cure() == unavailable.cure()
    assert find("OF_ANOTHER_RELEASE") is None
    assert Problem(grpc.StatusCode.OK, "OF_ANOTHER_RELEASE", "").cure() == ""


def test_the_pages_own_code_tells_a_refusal_with_its_cure() -> None:
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "docs/errors.md", "exec"), names)  # noqa: S102 # nosec B102 # our own page
    none = grpc.aio.Metadata()
    error = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, none, none, "gone")
    told = names["told"](error, "zh")
    assert told.startswith("UNAVAILABLE: gone\n")
    assert told.endswith(catalogue()["UNAVAILABLE"].cure("zh"))
