"""The command that measures the bots' strengths, and the words that choose one."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from typer.testing import CliRunner

from fangcheng_rules.players import PLAYERS, STRENGTH
from fangcheng_suite.access import Access
from fangcheng_suite.bots.crowd import make_bots
from fangcheng_suite.commands import app
from fangcheng_suite.commands_bots import StrengthName


def test_the_words_of_the_command_line_are_the_players() -> None:
    assert get_args(StrengthName) == tuple(PLAYERS)
    assert STRENGTH in PLAYERS


@pytest.mark.parametrize("command", ["bots", "up", "play"])
def test_whoever_starts_bots_says_how_well_they_play(command: str) -> None:
    ended = CliRunner().invoke(app, [command, "--strength", "perfect"])
    assert ended.exit_code == 2
    assert all(name in ended.output for name in PLAYERS)


def test_bots_have_the_strength_that_was_asked_for() -> None:
    access = Access({}.__getitem__, "a-key-of-at-least-thirty-two-characters")
    assert {bot.strength for bot in make_bots(range(3), access)} == {STRENGTH}
    assert {bot.strength for bot in make_bots(range(3), access, strength="careful")} == {"careful"}


def test_strengths_are_measured_and_told() -> None:
    words = ["strength", "--rule-set", "baicheng", "--hands", "8", "--seed", "5"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert re.search(r"efficient : first_legal +\S* ?baicheng +\d", shown.output)
    assert re.search(r"careful : efficient +\S* ?baicheng +\d", shown.output)

    (first, second) = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert (first["one"], first["other"], first["hands"]) == ("efficient", "first_legal", 8)
    assert (second["one"], second["other"], second["rule_set"]) == (
        "careful",
        "efficient",
        "baicheng",
    )
    assert sum(first["units"]) == 0
    assert first["units_ahead"] == pytest.approx((first["units"][0] - first["units"][1]) / 16)


def test_a_rule_set_that_there_is_not_is_named() -> None:
    ended = CliRunner().invoke(app, ["strength", "--rule-set", "riichi"])
    assert ended.exit_code == 1
    assert "riichi" in ended.output
