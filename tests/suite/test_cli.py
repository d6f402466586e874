"""The command line: helpful when it works, a plain line and no trace when it does not."""

from __future__ import annotations

import getpass
import os
import re
import shlex
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import jwt
import pytest
import typer
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner, Result

from fangcheng_kit.jwks import parse_key_set
from fangcheng_rules.ruleset import RuleSet
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_suite.commands import app
from fangcheng_suite.state import Address, StateFolder, SuiteFile
from tests.kit.keys import rsa_key

Run = Callable[..., Result]

KEY = "a development key of the tests, 40 chars"


def claims_of(token: str) -> dict[str, Any]:
    """What a token says that the key of the tests has signed."""
    claims: dict[str, Any] = jwt.decode(token, KEY, ["HS256"], audience="fangcheng")
    return claims


def commands() -> dict[str, click.Command]:
    root: Any = typer.main.get_command(app)
    found: dict[str, click.Command] = {}
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            found |= {f"{name} {sub}": one for sub, one in command.commands.items()}
        else:
            found[name] = command
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command with a state folder of its own."""
    monkeypatch.setenv("FANGCHENG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [*words])


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFile:
    """A suite as far as its file goes; nobody listens at its addresses."""
    suite = SuiteFile(
        pid=os.getpid(),
        key=KEY,
        services={
            name: (Address("127.0.0.1:1", "127.0.0.1:1"),)
            for name in ("matchmaking", "table", "wallet", "evaluation")
        }
        | {"console": (Address("127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:7103"),)},
    )
    folder = StateFolder(tmp_path / "state")
    with folder.claimed():
        folder.write(suite)
    return suite


def test_the_promised_commands_are_there() -> None:
    assert {
        "up",
        "bots",
        "play",
        "demo",
        "doctor",
        "dev-certs",
        "dev-keys",
        "token",
        "evaluate",
        "rules",
        "tables",
        "watch",
        "integrity case",
        "integrity report",
        "journal archive",
        "journal months",
        "journal new-key",
        "journal print",
        "journal reseal",
        "ledger archive",
        "ledger audit",
        "ledger backup",
        "ledger export",
        "ledger replay",
        "ledger restore",
        "ledger verify",
        "player erase",
        "player export",
        "load",
        "logs",
        "migrate",
        "call",
        "capacity",
        "console",
        "wallet conformance",
        "simulate",
        "strength",
        "record",
        "replay",
        "verify",
    } == set(commands())


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_help_has_an_example_of_its_command(name: str) -> None:
    command = commands()[name]
    example = re.search(r"Example: `fangcheng (.+)`", command.help or "")
    assert example, "no example"
    words = shlex.split(example.group(1))
    assert words[: len(name.split())] == name.split()
    command.make_context(name, words[len(name.split()) :])  # the example's words are understood


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_is_explained(name: str) -> None:
    for parameter in commands()[name].params:
        assert getattr(parameter, "help", None), parameter.name


def test_evaluate_tells_a_win(run: Run) -> None:
    ended = run("evaluate", "123m456p77s999m", "--melds", "pong 555z")
    assert ended.exit_code == 0, ended.output
    assert "A win." in ended.output
    assert "│白│白│白│" in ended.output


def test_evaluate_names_the_fan_in_chinese_and_english(run: Run) -> None:
    ended = run("evaluate", "11112345678999m")
    assert "清一色 full flush 3" in ended.output
    assert "5 fan by the hand alone" in ended.output


def test_evaluate_tells_the_waits_of_thirteen_tiles(run: Run) -> None:
    ended = run("evaluate", "123m456p77s99m [555z]")
    assert re.search(r"waits on +9万.* 7条", ended.output)


def test_evaluate_tells_the_best_discard(run: Run) -> None:
    ended = run("evaluate", "123456m99p78s3z", "--melds", "pong 777z")
    assert re.search(r"discard +西  then waits on 6条.* 9条", ended.output)


def test_evaluate_reads_melds_in_chinese_as_well(run: Run) -> None:
    english = run(
        "evaluate", "123m456p1s", "--melds", "pong 555z", "--melds", "concealed kong 7777s"
    )
    chinese = run("evaluate", "123m456p1s", "--melds", "碰 白白白", "--melds", "暗杠 七七七七条")
    assert english.exit_code == 0, english.output
    assert chinese.output == english.output


def test_evaluate_counts_flowers_into_what_a_wait_is_worth(run: Run) -> None:
    hand = ("evaluate", "123m456p789s11z23m", "--rules", "jintan")
    assert "1万 (not on a discard) 4万 (not on a discard)" in run(*hand).output
    with_flowers = run(*hand, "--flowers", "春梅").output
    assert "1万 (20 units) 4万 (20 units)" in with_flowers
    assert "│春│梅│" in with_flowers


def test_evaluate_tells_fan_and_units_where_flowers_count(run: Run) -> None:
    ended = run("evaluate", "123m456p78922s23m", "--rules", "shandong", "--flowers", "1f")
    assert "1万 (1 fan, 6 units) 4万 (1 fan, 6 units)" in ended.output


def test_evaluate_tells_how_far_away_a_hand_is(run: Run) -> None:
    ended = run("evaluate", "147m258p369s12345z")
    assert "6 tiles away from ready" in ended.output


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["123x"], "'x' is no tile", "123m"),
        (["123"], "no suit", "123m"),
        (["0m"], "'0' is no tile", "123m"),
        (["123m"], "3 tiles", "13 or 14"),
        (["11111m", *["--melds", "chi 123p"] * 3], "5 copies", "13 or 14"),
        (["123m", "--melds", "pung 555z"], "no kind of meld", "pong 555z"),
        (["123m", "--melds", "pong 554z"], "no pong", "three alike"),
        (["123m", "--melds", "pong 55x"], "'x' is no tile", "123m"),
        (["123m456p78999s11z", "--rules", "baicheng"], "no 1z", "fangcheng rules baicheng"),
        (["123m456p78999s11m", "--flowers", "1f"], "no such flower", "rules baishan_kele"),
        (["123m456p789s1m12z1f", "--rules", "jintan"], "no hand holds 1f", "--flowers 12f"),
        (["123m456p78999s11m", "--flowers", "9f"], "--flowers: there is no 9f", "1f to 8f"),
        (["123m", "--rules", "riichi"], "no rule set riichi", "baishan_kele"),
        (["123m", "--option", "cap"], "no value", "cap=VALUE"),
        (["123m", "--option", "cap=-1"], "whole number", "cap (default 50)"),
        (["123m", "--option", "kap=1"], "no option kap", "cap (default 50)"),
    ],
)
def test_what_is_wrong_with_a_hand_is_said_in_a_line(
    run: Run,
    words: list[str],
    said: str,
    hint: str,
) -> None:
    ended = run("evaluate", *words)
    assert ended.exit_code == 1
    assert ended.output.startswith("error: ")
    assert said in ended.output
    assert hint in ended.output
    assert "Traceback" not in ended.output


def test_rules_lists_every_rule_set(run: Run) -> None:
    ended = run("rules")
    assert ended.exit_code == 0
    for rules in RULE_SETS:
        assert re.search(rf"^{rules.id} .*{re.escape(rules.name_en)}", ended.stdout, re.MULTILINE)


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.id)
def test_rules_tells_the_whole_catalogue_of_one(run: Run, rules: RuleSet) -> None:
    ended = run("rules", rules.id)
    assert ended.exit_code == 0
    assert f"{rules.id}, revision {rules.revision}" in ended.stdout
    assert f"{len(rules.wall_tiles)} tiles" in ended.stdout
    rows: defaultdict[str, str] = defaultdict(str)
    for line in filter(None, ended.stdout.splitlines()):
        rows[line.split()[0]] += line  # an item and what is declared may have one id
    for item in rules.fan_items:
        assert item.name_zh in rows[item.id]
        assert item.meaning in rows[item.id]
    for declaration in rules.declares:
        assert declaration.name_zh in rows[declaration.id]
        assert declaration.meaning in rows[declaration.id]
    for option in rules.options:
        assert option.meaning in rows[option.id]
    for title in rules.titles:
        assert title.name_en in rows[title.name_zh]


def test_rules_names_those_there_are_for_one_there_is_not(run: Run) -> None:
    ended = run("rules", "riichi")
    assert ended.exit_code == 1
    assert "there is no rule set riichi" in ended.stderr
    assert "shandong" in ended.stderr


def test_a_token_names_its_subject(run: Run, suite: SuiteFile) -> None:
    ended = run("token", "player:ming", "--scope", "bot", "--scope", "act_as", "--ttl", "60")
    claims = claims_of(ended.output.strip())
    assert claims["sub"] == "player:ming"
    assert claims["scopes"] == ["bot", "act_as"]
    assert 55 < claims["exp"] - claims["iat"] < 65


def test_a_token_is_signed_where_no_suite_runs_with_the_key_of_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FANGCHENG_DEV_KEY", KEY)
    ended = run("token", "operator")
    assert claims_of(ended.output.strip())["sub"] == "operator"


def test_a_link_signs_a_person_in_to_the_console(run: Run, suite: SuiteFile) -> None:
    ended = run("console", "--role", "viewer", "--name", "王", "--hours", "2")
    page, token = ended.stdout.strip().split("/sign-in#")
    claims = claims_of(token)
    assert (page, claims["sub"]) == ("http://127.0.0.1:7103", "viewer:王")
    assert claims["exp"] - claims["iat"] == pytest.approx(7_200, abs=1)


def test_a_link_is_for_an_operator_of_this_computer_unless_told_otherwise(
    run: Run, suite: SuiteFile
) -> None:
    _, token = run("console").stdout.strip().split("/sign-in#")
    assert claims_of(token)["sub"] == f"operator:{getpass.getuser()}"


def test_a_link_to_a_console_elsewhere_needs_its_key(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = ("console", "--address", "https://console.example", "--name", "mei")
    refused = run(*elsewhere)
    assert refused.exit_code == 1
    assert "FANGCHENG_DEV_KEY" in refused.output
    monkeypatch.setenv("FANGCHENG_DEV_KEY", KEY)
    page, token = run(*elsewhere).stdout.strip().split("/sign-in#")
    assert page == "https://console.example"
    assert claims_of(token)["sub"] == "operator:mei"


def test_a_key_of_ones_own_signs_what_its_key_set_checks(run: Run, tmp_path: Path) -> None:
    made = run("dev-keys", str(tmp_path / "keys"))
    assert made.exit_code == 0, made.output
    signing = tmp_path / "keys" / "signing.pem"
    assert signing.stat().st_mode & 0o077 == 0
    keys = parse_key_set((tmp_path / "keys" / "jwks.json").read_bytes())
    (key,) = keys.values()
    elsewhere = ("console", "--address", "https://console.example", "--name", "mei")
    for words, subject in (
        (("token", "player:ming"), "player:ming"),
        (elsewhere, "operator:mei"),
    ):
        printed = run(*words, "--signing-key", str(signing)).stdout.strip()
        token = printed.rpartition("#")[2]
        assert jwt.get_unverified_header(token)["kid"] == key.id
        claims = jwt.decode(token, key.public, [key.algorithm], audience="fangcheng")
        assert claims["sub"] == subject
    for folder, there in ((tmp_path / "keys", signing), (signing, signing)):
        again = run("dev-keys", str(folder))
        assert again.exit_code == 1
        assert f"there is {there} already" in again.stderr.replace("\n", " ")


def test_a_token_is_for_an_audience_and_names_who_made_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = rsa_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "rsa.pem").write_bytes(pem)
    monkeypatch.setenv("FANGCHENG_SIGNING_KEY", str(tmp_path / "rsa.pem"))
    told = run("token", "operator", "--kid", "2027", "--audience", "club", "--issuer", "me")
    token = told.stdout.strip()
    assert jwt.get_unverified_header(token) == {"alg": "RS256", "kid": "2027", "typ": "JWT"}
    claims = jwt.decode(token, rsa_key().public_key(), ["RS256"], audience="club", issuer="me")
    assert claims["sub"] == "operator"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(None, "cannot read"), (b"no key", "expected a private key in PEM")],
)
def test_a_key_that_cannot_sign_is_told(
    run: Run, tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "key.pem"
    if content is not None:
        path.write_bytes(content)
    ended = run("token", "operator", "--signing-key", str(path))
    assert ended.exit_code == 1
    assert complaint in " ".join(ended.stderr.split())


@pytest.mark.parametrize("address", ["console.example", "ftp://x", "https://x/path"])
def test_a_link_leads_to_a_console(run: Run, address: str) -> None:
    ended = run("console", "--address", address, "--key", KEY)
    assert ended.exit_code == 1
    assert "no address of a console" in ended.output


def test_a_token_for_nobody_is_refused(run: Run, suite: SuiteFile) -> None:
    ended = run("token", "ming")
    assert ended.exit_code == 1
    assert "player:<id>" in ended.output


@pytest.mark.parametrize(
    "words",
    [["token", "operator"], ["tables"], ["watch"], ["ledger", "audit"], ["verify", "t", "1"]],
)
def test_without_a_suite_each_command_says_how_to_start_it(run: Run, words: list[str]) -> None:
    ended = run(*words)
    assert ended.exit_code == 1
    assert "no suite runs" in ended.output
    assert "fangcheng up" in ended.output


def test_a_service_that_cannot_be_reached_is_told(run: Run, suite: SuiteFile) -> None:
    ended = run("ledger", "audit")
    assert ended.exit_code == 1
    assert "cannot be reached" in ended.output
    assert "Traceback" not in ended.output


def test_a_taken_port_is_told_before_anything_starts(run: Run, tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        ended = run("up", "--port", str(port), "--tables", "0")
    assert ended.exit_code == 1
    assert f"port {port} for matchmaking is in use" in ended.output
    assert "--port" in ended.output
    assert not list((tmp_path / "state" / "logs").glob("*.log"))


def test_a_state_folder_in_use_is_told(run: Run, tmp_path: Path) -> None:
    with StateFolder(tmp_path / "state").claimed():
        ended = run("up", "--port", "0")
    assert ended.exit_code == 1
    assert "already runs" in ended.output
    assert str(os.getpid()) in ended.output


def bots_elsewhere(*services: str) -> list[str]:
    """The command's words, with services on a host that is not this one."""
    return ["bots", "--pool", "p", *(f"--{name}=dns:///{name}.invalid:7100" for name in services)]


def test_bots_elsewhere_need_every_service_a_key_and_leave_for_plain_text(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = run(*bots_elsewhere("matchmaking", "table"))
    assert ended.exit_code == 1
    assert "--wallet and --evaluation not given" in ended.output
    everywhere = bots_elsewhere("matchmaking", "table", "wallet", "evaluation")
    ended = run(*everywhere)
    assert ended.exit_code == 1
    assert "FANGCHENG_DEV_KEY" in ended.output
    monkeypatch.setenv("FANGCHENG_DEV_KEY", KEY)
    ended = run(*everywhere)
    assert ended.exit_code == 1
    assert "matchmaking.invalid:7100: a token would leave this host in plain text" in ended.output


def test_certificates_to_trust_are_no_use_to_a_game_in_a_suite_here(
    run: Run, tmp_path: Path
) -> None:
    ended = run("play", "--ca", str(tmp_path / "ca.pem"))
    assert ended.exit_code == 1
    assert "--matchmaking, --table and --token" in ended.output
