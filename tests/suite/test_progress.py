"""The bar of commands that take their time."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fangcheng_suite.progress import progress


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
