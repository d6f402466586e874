"""deploy/compose fits the code: what it names exists, and what it promises of secrets holds."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from fangcheng_console.settings import ConsoleSettings
from fangcheng_kit.jwks import parse_key_set
from fangcheng_table.sealing import JournalKeys
from fangcheng_table.settings import TableSettings
from tests.system.running import free_port, until

from .suite import (
    BOTS_CALL,
    BOTS_KEY,
    DEPLOY,
    HAND_SECONDS,
    SETTINGS,
    VARIABLE,
    check_bots,
    compose_with,
    edge_ports,
    edge_targets,
    edge_with,
    files_of,
    make_env,
    measured_of,
    port_of,
    service_of,
    settings_of,
    stop_seconds,
    targets_of,
)

COMPOSE = DEPLOY / "compose"
TEXT = (COMPOSE / "compose.yaml").read_text("utf-8")
ADMIN_PORT = 7001
PEM = Encoding.PEM
OURS_ALONE = ("console", "edge", "grafana")
"""The only ones that anybody outside of the host's containers reaches."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Compose, after make-env.sh has run in it."""
    folder = tmp_path_factory.mktemp("deploy")
    make_env(folder)
    return folder / "compose"


@pytest.fixture(scope="module")
def env(made: Path) -> dict[str, str]:
    return make_env(made.parent)


@pytest.fixture(scope="module")
def compose(env: dict[str, str]) -> dict[str, Any]:
    return compose_with(env)


@pytest.fixture(scope="module")
def ours(compose: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The containers that run services: kind of service and container, by name."""
    found = {}
    for name, container in compose["services"].items():
        if container["image"].startswith("fangcheng:"):
            kind = service_of(container["command"])
            if kind is not None:
                found[name] = kind, container
    assert {kind for kind, _ in found.values()} == set(SETTINGS)
    return found


def test_it_is_what_the_compose_specification_says(compose: dict[str, Any]) -> None:
    PyCompose.from_json(json.dumps(compose)).validate()
    with pytest.raises(ValueError, match="readonly"):
        PyCompose.from_json(json.dumps(compose).replace("read_only", "readonly"))


def test_every_secret_is_random_and_none_has_a_default(env: dict[str, str], tmp_path: Path) -> None:
    example = (COMPOSE / ".env.example").read_text("utf-8")
    secrets = set(re.findall(r"^(\w+)=$", example, re.M))
    assert {name for name in env if re.search("KEY|PASSWORD|SECRET", name)} == secrets
    other = make_env(tmp_path)
    assert env.keys() == other.keys()
    for name in secrets:
        assert env[name] != other[name]
        if name == "FANGCHENG_TABLE_JOURNAL_KEYS":
            assert JournalKeys.parse(env[name]).first
        else:
            assert re.fullmatch(r"[0-9a-f]{64}", env[name]), name
    # Without a .env Compose refuses, and says what to do.
    used = {found.groups() for found in VARIABLE.finditer(TEXT)}
    assert {name for name, _, _ in used} == set(env)
    for name, sign, text in used:
        assert sign == ("?" if name in secrets else "-"), name
        assert sign == "-" or "make-env.sh" in text


def test_secrets_are_for_their_owner_and_stay(made: Path, env: dict[str, str]) -> None:
    for name in (".env", "authority/ca.key", "keys/signing.pem", "tls/wallet/tls.key"):
        assert stat.S_IMODE((made / name).stat().st_mode) == 0o600
    before = everything(made)
    assert make_env(made.parent) == env
    assert everything(made) == before


def everything(folder: Path) -> dict[Path, bytes]:
    """What all files of a folder hold."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_another_version_asks_for_is_added_to_what_is_there(tmp_path: Path) -> None:
    first = make_env(tmp_path)
    file = tmp_path / "compose" / ".env"
    kept = [line for line in file.read_text("utf-8").splitlines() if "CONSOLE_SECRET" not in line]
    file.write_text("\n".join([*kept, "FANGCHENG_DEV_KEY=of-old"]) + "\n", "utf-8")
    again = make_env(tmp_path)
    assert again.keys() == first.keys() | {"FANGCHENG_DEV_KEY"}
    assert {name for name in first if again[name] != first[name]} == {"FANGCHENG_CONSOLE_SECRET"}


def test_a_certificate_is_made_anew_before_it_ends_and_the_authority_stays(tmp_path: Path) -> None:
    make_env(tmp_path)
    folder = tmp_path / "compose"
    ends = x509.load_pem_x509_certificate((folder / "tls/table/tls.crt").read_bytes())
    assert ends.not_valid_after_utc - ends.not_valid_before_utc == timedelta(days=90)
    script = tmp_path / "make-certificates.sh"
    script.write_text(script.read_text("utf-8").replace("DAYS=90", "DAYS=20"), "utf-8")
    (folder / "tls/table/tls.crt").unlink()
    before = everything(folder)
    for days in (20, 90):  # one that ends within a month; the same again, and so another
        text = script.read_text("utf-8")
        script.write_text(re.sub(r"DAYS=\d+", f"DAYS={days}", text), "utf-8")
        make_certificates = ["sh", str(script), str(folder)]
        subprocess.run(make_certificates, check=True, capture_output=True)
    changed = {path for path, text in everything(folder).items() if before.get(path) != text}
    assert changed == {folder / "tls/table" / name for name in ("tls.crt", "tls.key")}
    one = x509.load_pem_x509_certificate((folder / "tls/table/tls.crt").read_bytes())
    assert one.not_valid_after_utc - one.not_valid_before_utc == timedelta(days=90)


def test_every_certificate_names_its_holder(made: Path) -> None:
    authority = x509.load_pem_x509_certificate((made / "authority/ca.crt").read_bytes())
    folders = {path.name for path in (made / "tls").iterdir()} - {"public"}
    assert folders == {*SETTINGS, "bots", "edge"}
    for name in folders:
        assert (made / "tls" / name / "ca.crt").read_bytes() == authority.public_bytes(PEM)
        one = x509.load_pem_x509_certificate((made / "tls" / name / "tls.crt").read_bytes())
        one.verify_directly_issued_by(authority)
        names = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        kind = "proxy" if name == "edge" else "service"
        uri = f"spiffe://fangcheng/{kind}/{name}"
        assert names.get_values_for_type(x509.UniformResourceIdentifier) == [uri]
        assert name in names.get_values_for_type(x509.DNSName)


def test_the_key_set_has_the_public_keys_and_says_for_whom_bots_may_sign(made: Path) -> None:
    keys = parse_key_set((made / "keys/jwks/jwks.json").read_bytes())
    assert keys[BOTS_KEY].kinds == {"player"}
    assert "operator" in keys["trying"].kinds
    for name, file in (("trying", "signing.pem"), (BOTS_KEY, "bots/signing.pem")):
        private = load_pem_private_key((made / "keys" / file).read_bytes(), None)
        assert keys[name].public == private.public_key()


def test_envoy_takes_its_configuration_and_the_certificate_that_was_made(made: Path) -> None:
    text = (DEPLOY / "envoy" / "cluster.yaml").read_text("utf-8")
    file = made / "cluster.yaml"
    file.write_text(edge_with(text, made), "utf-8")
    envoy = Path(sys.executable).with_name("envoy")
    words = [str(envoy), "--mode", "validate", "-c", str(file)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_edge_is_healthy_once_envoy_runs(
    made: Path, tmp_path: Path, compose: dict[str, Any]
) -> None:
    config = yaml.safe_load((DEPLOY / "envoy" / "cluster.yaml").read_text("utf-8"))
    base = free_port((0, 1, 2))
    ports = dict(zip((ADMIN_PORT, *edge_ports().values()), range(base, base + 3), strict=True))
    text = edge_with(yaml.safe_dump(config), made)
    for old, new in ports.items():
        text = text.replace(f"port_value: {old}\n", f"port_value: {new}\n")
    file = tmp_path / "cluster.yaml"
    file.write_text(text, "utf-8")
    _, *check = compose["services"]["edge"]["healthcheck"]["test"]
    pages = edge_ports()["pages"]
    check[-1] = check[-1].replace(f"/{pages};", f"/{ports[pages]};")

    def healthy() -> bool:
        return subprocess.run(check, capture_output=True, check=False).returncode == 0

    assert not healthy()
    words = [str(Path(sys.executable).with_name("envoy")), "-c", str(file)]
    words += ["--concurrency", "1", "--disable-hot-restart"]
    with (tmp_path / "envoy.log").open("wb") as log:
        envoy = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        until(healthy, "the check of the edge's container succeeds", within_seconds=60)
    finally:
        envoy.terminate()
        envoy.wait(30)


def files_in(container: dict[str, Any], made: Path) -> set[str]:
    """The paths of the files that are mounted into a container from what was made."""
    found = set()
    for volume in container.get("volumes", ()):
        source, target, _ = volume.split(":")
        found |= {f"{target}/{path.name}" for path in (made / source).glob("*")}
    return found


def test_nobody_has_keys_of_others(compose: dict[str, Any], made: Path) -> None:
    secret = {path for path in made.rglob("*") if re.search(r"\.(key|pem)$", path.name)}
    having: dict[Path, set[str]] = {path: set() for path in secret}
    for name, container in compose["services"].items():
        for volume in container.get("volumes", ()):
            for path in secret & set((made / volume.split(":")[0]).rglob("*")):
                having[path].add(name)
    tables = {"table-1", "table-2"}
    expected = {kind: {kind} for kind in (*SETTINGS, "bots", "edge")} | {"table": tables}
    assert having == {
        **{made / "tls" / kind / "tls.key": names for kind, names in expected.items()},
        made / "tls/public/tls.key": {"edge"},
        made / "keys/bots/signing.pem": {"bots"},
        # What makes anybody's tokens and certificates stays on the host.
        made / "keys/signing.pem": set(),
        made / "authority/ca.key": set(),
    }


def test_every_file_that_is_mounted_or_built_from_exists(
    compose: dict[str, Any], made: Path
) -> None:
    for name, container in compose["services"].items():
        for volume in container.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("../"):
                assert (COMPOSE / source).exists(), (name, source)
            else:
                there = source in compose["volumes"] or (made / source).exists()
                assert there or (COMPOSE / source).exists(), (name, source)
    # One image is built by one: several builds of it at once fail, since it exists already.
    (build,) = [one["build"] for one in compose["services"].values() if "build" in one]
    assert (COMPOSE / build["context"] / build["dockerfile"]).is_file()


def test_every_container_is_locked_down(compose: dict[str, Any]) -> None:
    for name, container in compose["services"].items():
        assert container["read_only"] is True, name
        assert container["cap_drop"] == ["ALL"], name
        assert container["security_opt"] == ["no-new-privileges:true"], name
        assert name == "postgres" or re.fullmatch(r"[1-9]\d*:[1-9]\d*|472:0", container["user"])
        assert ("ports" in container) == (name in OURS_ALONE), name
        assert ("outside" in container["networks"]) == (name in OURS_ALONE), name
        assert re.search(r":v?\d[\w.-]*$", container["image"]), f"{name}: no version"
    assert compose["networks"]["inside"] == {"internal": True}
    for name in ("console", "grafana"):
        (published,) = compose["services"][name]["ports"]
        assert published.startswith("127.0.0.1:")


def test_every_setting_exists_and_is_valid(
    ours: dict[str, tuple[str, dict[str, Any]]], made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, (kind, container) in ours.items():
        settings = settings_of(kind, container["environment"], monkeypatch)
        assert files_of(settings) <= files_in(container, made)
        assert f"./tls/{kind}:/etc/fangcheng/tls:ro" in container["volumes"]
        if isinstance(settings, TableSettings):
            assert settings.journal_keys
        assert float(container["stop_grace_period"].removesuffix("s")) > stop_seconds(settings)
        assert container["healthcheck"]["test"] == [
            "CMD",
            "fangcheng-healthy",
            f"127.0.0.1:{port_of(settings.metrics_listen)}",
        ]
        if kind == "table":
            assert getattr(settings, "advertised", "") == f"{name}:{port_of(settings.listen)}"
        if isinstance(settings, ConsoleSettings):
            _, published, listening = container["ports"][0].split(":")
            assert settings.origins(0) == {f"https://localhost:{published}"}
            assert settings.web_over_tls
            assert port_of(settings.web_listen) == int(listening)


def test_everybody_calls_where_somebody_listens(
    compose: dict[str, Any],
    ours: dict[str, tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listening: dict[str, int] = {}
    measured: dict[str, int] = {}
    called: dict[str, set[tuple[str, int]]] = {}
    looked_at: dict[str, tuple[str, int]] = {}
    for name, (kind, container) in ours.items():
        settings = settings_of(kind, container["environment"], monkeypatch)
        networks = container["networks"]
        aliases = networks["inside"]["aliases"] if isinstance(networks, dict) else []
        assert kind == name or aliases == [kind]
        listening[kind] = port_of(settings.listen)
        measured[kind] = port_of(settings.metrics_listen)
        for partner, target in targets_of(settings).items():
            called.setdefault(partner, set()).add(target)
        looked_at |= measured_of(settings)
    del listening["console"]  # which nobody calls
    assert edge_targets() == {kind: (kind, port) for kind, port in listening.items()}
    assert looked_at == {kind: (kind, measured[kind]) for kind in listening}
    assert called == {kind: {(kind, listening[kind])} for kind in called}

    ports = edge_ports()
    assert compose["services"]["edge"]["ports"] == [f"7000:{ports['grpc']}"]
    assert f"/127.0.0.1/{ports['pages']};" in compose["services"]["edge"]["healthcheck"]["test"][-1]
    prometheus = yaml.safe_load((COMPOSE / "prometheus.yml").read_text("utf-8"))
    scraped = {}
    for job in prometheus["scrape_configs"]:
        (found,) = job["dns_sd_configs"]
        assert found["names"] == [job["job_name"]]
        scraped[job["job_name"]] = found["port"]
    assert scraped == {**measured, "edge": ports["pages"]}


def test_bots_fill_up_the_pools_and_may_play_their_hands_to_an_end(
    compose: dict[str, Any], made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bots = compose["services"]["bots"]
    assert "environment" not in bots
    called = check_bots(bots["command"], {}, files_in(bots, made), monkeypatch)
    assert called == {name: edge_targets()[name] for name in BOTS_CALL}
    assert float(bots["stop_grace_period"].removesuffix("s")) > HAND_SECONDS
    assert "replicas" not in bots.get("deploy", {})  # two would play the same players


def test_whoever_is_waited_for_says_when_it_is_ready(compose: dict[str, Any]) -> None:
    for name, container in compose["services"].items():
        for other, condition in container.get("depends_on", {}).items():
            awaited = compose["services"][other]
            if condition["condition"] == "service_completed_successfully":
                assert awaited["restart"] == "no", (name, other)
            else:
                assert condition == {"condition": "service_healthy"}, (name, other)
                assert awaited["healthcheck"]["test"][0] == "CMD", (name, other)


def test_migrations_are_for_the_databases_that_services_open(
    compose: dict[str, Any], ours: dict[str, tuple[str, dict[str, Any]]]
) -> None:
    migrated = compose["services"]["migrate"]["environment"]
    opened = {
        name: text
        for _, container in ours.values()
        for name, text in container["environment"].items()
        if name.endswith("_DATABASE")
    }
    assert migrated == opened
    assert os.access(DEPLOY / "postgres" / "databases.sh", os.X_OK)
