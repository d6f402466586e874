"""What a deployment may name: services, their settings, ports, commands, as the code has them."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from fangcheng_console.settings import ConsoleSettings
from fangcheng_evaluation.settings import EvaluationSettings
from fangcheng_kit import Settings
from fangcheng_kit.app import _OVERTIME_SECONDS
from fangcheng_kit.settings import load, split_address, unknown_variables
from fangcheng_matchmaking.pools import load_pools
from fangcheng_matchmaking.settings import MatchmakingSettings
from fangcheng_suite.commands import app
from fangcheng_table.settings import TableSettings
from fangcheng_wallet.settings import WalletSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SETTINGS: dict[str, type[Settings]] = {
    "evaluation": EvaluationSettings,
    "table": TableSettings,
    "matchmaking": MatchmakingSettings,
    "wallet": WalletSettings,
    "console": ConsoleSettings,
}
COMMON = {f"FANGCHENG_{name.upper()}" for name in Settings.model_fields}
PARTNERS = ("evaluation", "wallet", "table", "matchmaking")
"""The settings that are targets of other services."""
BOTS_CALL = ("matchmaking", "table", "wallet", "evaluation")
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")
"""One in compose.yaml: its name, whether it has a default or must be there, and which."""
BOTS_KEY = "bots"
"""The id of the bots' key in the key set."""
HAND_SECONDS = 120
"""How long a stop of bots may take at least: theirs are hands with people in them."""


def settings_of(
    service: str, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """What a service makes of its environment; fails the test where a variable is none of its, or
    makes it less safe than it could be."""
    ours = {name for name in environment if name.startswith("FANGCHENG_")}
    own = {name for name in ours if name.startswith(f"FANGCHENG_{service.upper()}_")}
    assert ours - own <= COMMON, f"{service}: these are not its settings"
    assert unknown_variables(service, SETTINGS[service], environment) == []
    with monkeypatch.context() as patch:
        for name, text in environment.items():
            patch.setenv(name, text)
        settings = load(service, SETTINGS[service])
    assert settings.dangers() == []
    assert settings.dev_key == ""
    assert settings.jwks
    return settings


def files_of(settings: Settings) -> set[str]:
    """The files that a service reads: it must find them where it runs."""
    found = (
        *(settings.tls_certificate, settings.tls_key, settings.tls_ca, settings.tls_client_ca),
        settings.jwks,
    )
    assert all(found)  # it is known by a certificate, and asks for others'
    return set(map(str, found))


def stop_seconds(settings: Settings) -> float:
    """After how many seconds at most a service that is told to stop has stopped."""
    return settings.drain_seconds + settings.grace_seconds + _OVERTIME_SECONDS


def targets_of(settings: Settings) -> dict[str, tuple[str, int]]:
    """Host and port of each other service that it calls."""
    found = {}
    for name in PARTNERS:
        if target := getattr(settings, name, None):
            assert target.startswith("dns:///"), f"{target}: only a name stands for all replicas"
            found[name] = split_address(target.removeprefix("dns:///"))
    return found


def measured_of(settings: Settings) -> dict[str, tuple[str, int]]:
    """Host and port of the metrics of each service that a console reads."""
    found = {}
    for one in filter(None, getattr(settings, "metrics", "").split(",")):
        service, _, address = one.partition("=")
        found[service] = split_address(address)
    return found


def port_of(address: str) -> int:
    """The port of HOST:PORT."""
    return split_address(address)[1]


def service_of(command: Sequence[str]) -> str | None:
    """Which service a container's command runs; None for `fangcheng …`, which is checked."""
    if list(command[:2]) == ["python", "-m"]:
        (module,) = command[2:]
        assert importlib.util.find_spec(f"{module}.__main__"), module
        return str(module.removeprefix("fangcheng_"))
    told_of(command)
    return None


def told_of(command: Sequence[str]) -> dict[str, Any]:
    """What the command of `fangcheng …` is told, by parameter; fails where it would refuse."""
    program, *words = command
    assert program == "fangcheng", command
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands"):
        found, words = found.commands[words[0]], words[1:]
    told: dict[str, Any] = found.make_context("fangcheng", list(words)).params
    return told


def check_bots(
    command: Sequence[str],
    environment: Mapping[str, str],
    files: Collection[str],
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, tuple[str, int]]:
    """Whether bots can begin and fill up each pool that needs it; where they call each service.

    ``files``: the paths that their container has.
    """
    with monkeypatch.context() as patch:
        for name, text in environment.items():
            patch.setenv(name, text)
        told = told_of(command)
    assert set(environment) <= COMMON
    # With the house's money by its certificate, for players by a key that is good for nobody else.
    assert (told["key"], told["without_tls"]) == (None, False)
    assert told["kid"] == BOTS_KEY
    for option in ("ca", "certificate", "certificate_key", "signing_key"):
        assert str(told[option]) in files, told[option]
    pools = load_pools().pools
    filled = {pool_id for pool_id, one in pools.items() if one.pool.fill_with_bots_after_ms}
    assert set(told["pool"]) == filled
    assert told["count"] >= 3  # for one player who waits alone
    found = {}
    for name in BOTS_CALL:
        assert told[name].startswith("dns:///"), f"{name}: only a name stands for all replicas"
        found[name] = split_address(told[name].removeprefix("dns:///"))
    return found


def make_env(folder: Path) -> dict[str, str]:
    """What make-env.sh makes in a folder below ``folder`` that holds copies of its files."""
    compose = folder / "compose"
    compose.mkdir(exist_ok=True)
    shutil.copy(DEPLOY / "make-certificates.sh", folder)
    for name in ("make-env.sh", ".env.example"):
        shutil.copy(DEPLOY / "compose" / name, compose)
    subprocess.run(["sh", str(compose / "make-env.sh")], check=True, capture_output=True)
    return read_env(compose / ".env")


def read_env(file: Path) -> dict[str, str]:
    """The variables that a .env sets."""
    lines = file.read_text("utf-8").splitlines()
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: text for name, _, text in pairs}


def compose_with(env: Mapping[str, str]) -> dict[str, Any]:
    """The file as Compose reads it, with the variables of a .env."""

    def value(found: re.Match[str]) -> str:
        name, sign, default = found.groups()
        return env.get(name) or (default if sign == "-" else "")

    text = (DEPLOY / "compose" / "compose.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(VARIABLE.sub(value, text))
    return loaded


def edge_with(config: str, made: Path) -> str:
    """The edge's configuration with what make-env.sh has made for it in a folder."""
    places = {"/etc/envoy/tls": "tls/public", "/etc/envoy/identity": "tls/edge"}
    for place, name in places.items():
        assert place in config
        config = config.replace(place, str(made / name))
    return config


def edge_targets() -> dict[str, tuple[str, int]]:
    """Where the edge in containers sends the calls of each service."""
    config = yaml.safe_load((DEPLOY / "envoy" / "cluster.yaml").read_text("utf-8"))
    found = {}
    for cluster in config["static_resources"]["clusters"]:
        (group,) = cluster["load_assignment"]["endpoints"]
        (one,) = group["lb_endpoints"]
        address = one["endpoint"]["address"]["socket_address"]
        found[cluster["name"]] = address["address"], address["port_value"]
    del found["admin"]
    return found


def edge_ports() -> dict[str, int]:
    """The port of each listener of the edge in containers."""
    config = yaml.safe_load((DEPLOY / "envoy" / "cluster.yaml").read_text("utf-8"))
    return {
        listener["name"]: listener["address"]["socket_address"]["port_value"]
        for listener in config["static_resources"]["listeners"]
    }
