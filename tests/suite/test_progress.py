"""The bar of commands that take their time."""

from __future__ import annotations

import importlib
import inspect
import io

import pytest
from rich.console import Console

from fangcheng_suite.progress import progress, stages
from tests.suite.test_cli import commands

SHOWN = {
    "demo": "demo",
    "doctor": "commands_doctor",
    "integrity case": "gathering",
    "integrity report": "gathering",
    "journal archive": "journals",
    "journal months": "journals",
    "journal reseal": "journals",
    "ledger archive": "archiving",
    "ledger audit": "checking",
    "ledger backup": "restoring",
    "ledger export": "ledgers",
    "ledger replay": "restoring",
    "ledger restore": "restoring",
    "ledger verify": "ledgers",
    "load": "load.running",
    "logs": "telling",
    "migrate": "migrating",
    "player erase": "players",
    "player export": "players",
    "simulate": "simulating",
    "strength": "strengths",
    "up": "up",
    "wallet conformance": "conforming",
}
"""Commands that may take longer than two seconds, and the module that shows how far they are."""
NOT_SHOWN = {
    "bots": "prints what happens until it is told to stop",
    "play": "has the whole screen",
    "tables": "is a picture that lives",
    "watch": "is a picture that lives",
    "journal print": "prints all the time",
    "call": "is a single call",
    "capacity": "is done at once",
    "console": "is done at once",
    "dev-certs": "is done at once",
    "dev-keys": "is done at once",
    "evaluate": "is done at once",
    "journal new-key": "is done at once",
    "record": "is of one hand",
    "replay": "is of one hand",
    "rules": "is done at once",
    "token": "is done at once",
    "verify": "is of one hand",
}
"""The others, and why they show nothing."""


def test_every_command_shows_how_far_it_is_or_has_a_reason_not_to() -> None:
    assert not set(SHOWN) & set(NOT_SHOWN)
    assert {*SHOWN, *NOT_SHOWN} == set(commands())


@pytest.mark.parametrize("module", sorted(set(SHOWN.values())))
def test_who_shows_it_does(module: str) -> None:
    source = inspect.getsource(importlib.import_module(f"fangcheng_suite.{module}"))
    assert "progress(" in source or "console.status(" in source


def terminal() -> Console:
    """A terminal that remembers what was sent to it."""
    return Console(file=io.StringIO(), force_terminal=True, width=120, _environ={"TERM": "xterm"})


def sent(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_terminal_shows_what_is_done_and_of_how_much() -> None:
    console = terminal()
    with progress("Reading [hands]", total=2_000, unit="hands", console=console) as bar:
        bar.advance(500)
        bar.at(1_500)
    assert "Reading [hands]" in sent(console)
    assert "1,500 of 2,000 hands" in sent(console)


def test_work_without_a_known_end_tells_what_is_done_and_what_it_does_now() -> None:
    console = terminal()
    with progress("Reading", unit="bytes", console=console) as bar:
        bar.at(1_500_000)
        bar.say("Writing")
        bar.at(2_500_000, 5_000_000)
    assert "Writing" in sent(console)
    assert "2.5 MB of 5.0 MB" in sent(console)


def test_a_bar_is_gone_when_the_work_ends_and_when_it_fails() -> None:
    erase = "\x1b[2K"
    done, failed = terminal(), terminal()
    with progress("Reading", console=done):
        pass
    with pytest.raises(RuntimeError), progress("Reading", console=failed):
        raise RuntimeError
    for console in (done, failed):
        assert sent(console).rstrip().endswith(erase)
        assert "\x1b[?25h" in sent(console)  # the cursor is back


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Reading", total=3, unit="hands") as bar:
        bar.advance()
        bar.at(2, 3)
        bar.say("Writing")
    assert capsys.readouterr() == ("", "")


def test_what_is_printed_meanwhile_goes_where_it_was_meant_to_go() -> None:
    console, results = terminal(), Console(file=io.StringIO(), width=80)
    with progress("Checking", console=console) as bar:
        bar.above(results, "holds-first: kept")
        bar.advance()
    assert sent(results) == "holds-first: kept\n"
    assert "holds-first" not in sent(console)


def test_work_in_several_goes_tells_which_one_it_is_at() -> None:
    console = terminal()
    with progress("Archiving", unit="events", console=console) as bar:
        stages(bar, "Events")("written", 20, 50)
    assert "Events written" in sent(console)
    assert "20 of 50 events" in sent(console)
