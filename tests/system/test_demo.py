"""`fangcheng demo`, as a newcomer runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_suite.demo import HANDS

from .running import COMMAND, LONG_SECONDS, environment, fangcheng, lives, until

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def service_pids(said: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"^ +\w+ +127\.0\.0\.1:\d+ +process (\d+)$", said, re.M)]


def start(out: Path) -> subprocess.Popen[bytes]:
    with out.open("wb") as file:
        return subprocess.Popen(
            [COMMAND, "demo"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment(),
        )


@dataclass
class Demo:
    """A whole demo, in the folders of a newcomer on whose machine nothing was compiled yet."""

    said: str
    cache: Path
    temporary: Path


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    folder = tmp_path_factory.mktemp("newcomer")
    cache, temporary = folder / "cache", folder / "temporary"
    temporary.mkdir()
    ended = fangcheng("demo", TMPDIR=str(temporary), FANGCHENG_CACHE_DIR=str(cache))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return Demo(ended.stdout, cache, temporary)


def test_the_demo_plays_every_rule_set_and_checks_the_books(demo: Demo) -> None:
    said = demo.said
    # A newcomer does not wait for a compiler.
    assert not [*demo.cache.rglob("*.nbc"), *demo.cache.rglob("*.nbi")], "the demo compiled"
    assert re.search(r"ready in [\d.]+ s$", said, re.M)
    assert re.search(r"^All is well\. \d+ s in all\.$", said, re.M)
    told = re.findall(rf"^Hand (\d+)/{HANDS} ", said, re.M)
    assert told == [str(number) for number in range(1, HANDS + 1)]
    tables = re.findall(r"^(.+?)  table [0-9a-f]{32}: ", said, re.M)
    assert tables == [f"{rules.name_zh} {rules.name_en}" for rules in RULE_SETS]
    assert "balanced:" in said
    assert f"{HANDS} settlements" in said
    verified = re.findall(r"^ +(\w+) +hand \d, commitment [0-9a-f]{16}, wall of (\d+):", said, re.M)
    assert verified == [(rules.id, str(len(rules.wall_tiles))) for rules in RULE_SETS]

    payments = re.findall(r"^   silver +(.+)$", said, re.M)
    assert len(payments) + said.count("nobody pays") == HANDS
    for line in payments:
        amounts = [
            (-1 if sign == "−" else 1) * int(amount.replace(",", ""))
            for sign, amount in re.findall(r" ([+−]?)([\d,]+)(?: ·|$)", line)
        ]
        assert len(amounts) >= 4
        assert sum(amounts) == 0, line

    pids = service_pids(said)
    assert len(set(pids)) == 4
    assert not [pid for pid in pids if lives(pid)]
    assert not list(demo.temporary.iterdir()), "the demo left files behind"


def test_won_hands_are_drawn_with_tiles_and_explained(demo: Demo) -> None:
    won = re.findall(
        r"^Hand \d+/\d+ +\w+ wins .+?(?=^Hand|^Ledger|^\S+ .*  table )", demo.said, re.M | re.S
    )
    assert len(won) > 0.4 * HANDS
    for hand in won:
        _, top, upper, lower, bottom, text, fan = hand.splitlines()[:7]
        assert re.fullmatch(r" +┌──(┬──)*┐(  ┌──(┬──)*┐)*", top)
        assert upper.count("│") == lower.count("│") == top.count("┬") + 2 * top.count("┌")
        assert re.fullmatch(r" +└──(┴──)*┘(  └──(┴──)*┘)*", bottom)
        assert re.fullmatch(r"   tiles +[0-9mpsz\[\] ]+ \+ \d[mpsz]", text)
        assert re.match(r"   fan +(.+  =  )?\d+ (fan|units)", fan)
        assert re.search(r"^ +\w+ +pays +\d+ units?\b", hand, re.M)


def test_the_demo_is_readable_where_only_ascii_can_be_shown() -> None:
    ended = fangcheng("demo", PYTHONUTF8="0", PYTHONIOENCODING="ascii", NO_COLOR="1", LC_ALL="C")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.isascii()
    assert "?" not in ended.stdout
    assert "\x1b" not in ended.stdout
    assert "+--+--+" in ended.stdout


@pytest.mark.parametrize("moment", ["127.0.0.1", f"Hand 2/{HANDS}"])
def test_ctrl_c_ends_the_demo_and_all_its_processes(tmp_path: Path, moment: str) -> None:
    out = tmp_path / "out"
    process = start(out)
    until(lambda: moment in out.read_text("utf-8"), f"the demo says {moment}")
    process.send_signal(signal.SIGINT)
    assert process.wait(LONG_SECONDS) == 130
    said = out.read_text("utf-8")
    assert said.endswith("Stopped.\n")
    assert "Traceback" not in said
    assert not [pid for pid in service_pids(said) if lives(pid)]


def test_a_service_that_dies_fails_the_demo_with_the_reason(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(out)
    until(lambda: f"Hand 1/{HANDS}" in out.read_text("utf-8"), "the first hand is over")
    pids = service_pids(out.read_text("utf-8"))
    os.kill(pids[0], signal.SIGKILL)
    assert process.wait(LONG_SECONDS) == 1
    said = out.read_text("utf-8")
    assert "error: wallet ended unexpectedly (by SIGKILL)" in said
    assert "Traceback" not in said
    assert not [pid for pid in pids if lives(pid)]
