"""deploy/kubernetes fits the API, the code, and itself: what a manifest names exists."""

from __future__ import annotations

import functools
import json
import re
import stat
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from cryptography import x509

from fangcheng_console.settings import ConsoleSettings
from fangcheng_kit.jwks import parse_key_set
from fangcheng_kit.tokens import SHORTEST_KEY
from fangcheng_table.sealing import JournalKeys
from fangcheng_table.settings import TableSettings
from tests import promql

from .suite import (
    BOTS_CALL,
    DEPLOY,
    HAND_SECONDS,
    SETTINGS,
    check_bots,
    edge_ports,
    edge_targets,
    files_of,
    measured_of,
    port_of,
    service_of,
    settings_of,
    stop_seconds,
    targets_of,
)

LIVE, READY = "/live", "/ready"
"""The pages of probes; tests/kit has what they tell."""
FOLDER = DEPLOY / "kubernetes"
OVERLAYS = ("dev", "production")
NAME = "app.kubernetes.io/name"
OLDEST, NEWEST = "1.30", "1.37"
"""Versions of the API: the oldest that will do (a pause before a stop), the newest known here."""
OF_OTHERS = {
    "Certificate": "cert-manager.io",
    "PrometheusRule": "monitoring.coreos.com",
    "ScaledObject": "keda.sh",
    "ServiceMonitor": "monitoring.coreos.com",
}
"""Kinds that a cluster knows by what is installed in it: their schemas are not at hand."""
CALLED = {"evaluation", "matchmaking", "table", "wallet"}
KEEPERS = {"console", "matchmaking", "migrate", "table", "wallet"}
Manifest = dict[str, Any]


@functools.cache
def rendered(overlay: str) -> tuple[Manifest, ...]:
    """What `kubectl apply -k` would send."""
    kubectl = str(Path(sys.executable).with_name("kubectl"))
    words = [kubectl, "kustomize", str(FOLDER / "overlays" / overlay)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""  # no warning either
    return tuple(yaml.load_all(ended.stdout, yaml.CSafeLoader))


def of_kind(overlay: str, *kinds: str) -> dict[str, Manifest]:
    """The manifests of these kinds, by name."""
    return {one["metadata"]["name"]: one for one in rendered(overlay) if one["kind"] in kinds}


def pods(overlay: str) -> dict[str, Manifest]:
    """The templates of all pods, by the name of what makes them."""
    makers = of_kind(overlay, "Deployment", "StatefulSet", "Job")
    return {name: one["spec"]["template"] for name, one in makers.items()}


def container_of(pod: Manifest) -> Manifest:
    """Its only one."""
    (container,) = pod["spec"]["containers"]
    found: Manifest = container
    return found


KEY_SET = "jwks"
"""The config map that is made with the secrets: nothing in it is secret."""


def secrets(folder: Path) -> dict[str, dict[str, str]]:
    """What make-secrets.sh prints: texts by key, by the secret's name; and the key set."""
    printed = subprocess.run(
        ["sh", str(FOLDER / "make-secrets.sh"), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = {}
    for one in yaml.safe_load_all(printed):
        kubernetes_validate.validate(one, OLDEST, strict=True)
        name = one["metadata"]["name"]
        assert one["kind"] == ("ConfigMap" if name == KEY_SET else "Secret")
        encoded = one.get("data", {}) | one.get("binaryData", {})
        data = {key: b64decode(text).decode() for key, text in encoded.items()}
        found[name] = one.get("stringData", {}) | data
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where make-secrets.sh keeps what it has made."""
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def kept(folder: Path) -> dict[str, dict[str, str]]:
    return secrets(folder)


def environment_of(overlay: str, pod: Manifest, kept: dict[str, dict[str, str]]) -> dict[str, str]:
    """What a container's process finds; fails the test where it refers to what is not there."""
    container = container_of(pod)
    maps = of_kind(overlay, "ConfigMap")
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        if "configMapRef" in source:
            found |= maps[source["configMapRef"]["name"]]["data"]
        else:
            found |= kept[source["secretRef"]["name"]]
    for one in container.get("env", ()):
        if "value" in one:
            found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda m: found[m[1]], one["value"])
        elif reference := one["valueFrom"].get("secretKeyRef"):
            found[one["name"]] = kept[reference["name"]][reference["key"]]
        else:
            assert one["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
            found[one["name"]] = "10.0.0.7"
    return found


def ports_of(pod: Manifest) -> dict[str, int]:
    """The container's ports, by name."""
    return {port["name"]: port["containerPort"] for port in container_of(pod)["ports"]}


@pytest.mark.parametrize(("overlay", "version"), [("dev", NEWEST), ("production", OLDEST)])
def test_every_manifest_is_what_the_api_takes(overlay: str, version: str) -> None:
    assert len(rendered(overlay)) > 30
    for one in rendered(overlay):
        if group := OF_OTHERS.get(one["kind"]):
            assert one["apiVersion"].startswith(f"{group}/v1"), one["kind"]
            assert one.keys() == {"apiVersion", "kind", "metadata", "spec"}
            continue
        kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_manifest_can_be_applied(overlay: str) -> None:
    for one in rendered(overlay):
        # kubectl notes what it has applied in an annotation, and no object may have longer ones.
        size = len(json.dumps(one, ensure_ascii=False).encode())
        assert size < 250_000, f"{one['kind']} {one['metadata']['name']}: {size} bytes"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_pod_has_more_rights_than_it_needs(overlay: str) -> None:
    for name, pod in pods(overlay).items():
        spec, container = pod["spec"], container_of(pod)
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] > 0, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert container["resources"].keys() == {"requests", "limits"}, name
        assert re.search(r":v?\d[\w.-]*$", container["image"]), f"{name}: no version"


def test_secrets_are_random_and_stay(
    folder: Path, kept: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    assert secrets(folder) == kept
    others = secrets(tmp_path)
    assert others.keys() == kept.keys()
    for name, one in others.items():
        for key, text in one.items():
            assert text != kept[name][key], f"{name}.{key} is no secret"
    assert parse_key_set(kept[KEY_SET]["jwks.json"])["bots"].kinds == {"player"}
    assert JournalKeys.parse(kept["journal"]["keys"]).first
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or stat.S_IMODE(file.stat().st_mode) == 0o600, file


def mounted(pod: Manifest, kept: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The secrets, and the key set, that a container has as files: texts by path, by name."""
    places = {mount["name"]: mount["mountPath"] for mount in container_of(pod)["volumeMounts"]}
    found = {}
    for volume in pod["spec"]["volumes"]:
        name = volume.get("secret", {}).get("secretName") or volume.get("configMap", {}).get("name")
        if name in kept:
            place = places[volume["name"]]
            found[name] = {f"{place}/{key}": text for key, text in kept[name].items()}
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nobody_has_a_certificate_or_a_key_of_others(
    overlay: str, kept: dict[str, dict[str, str]]
) -> None:
    having: dict[str, set[str]] = {name: set() for name in kept}
    for name, pod in pods(overlay).items():
        for secret in mounted(pod, kept):
            having[secret].add(name)
        assert "edge-tls" not in mounted(pod, kept) or name == "edge"
    certified = {f"{name}-tls": {name} for name in (*SETTINGS, "bots")}
    assert {name: pods for name, pods in having.items() if pods} == {
        **certified,
        "bots-key": {"bots"},
        "edge-identity": {"edge"},
        "edge-tls": {"edge"},
        KEY_SET: {*SETTINGS, "bots"},
    }
    # The others are read as variables: whoever keeps the key of the journal is the table.
    for name, pod in pods(overlay).items():
        variables = container_of(pod).get("env", ())
        sources = {
            one.get("valueFrom", {}).get("secretKeyRef", {}).get("name") for one in variables
        }
        assert ("journal" in sources) == (name == "table")
        assert ("console" in sources) == (name == "console")


def test_certificates_are_asked_of_cert_manager_as_the_code_reads_them(
    kept: dict[str, dict[str, str]],
) -> None:
    asked = of_kind("production", "Certificate")
    assert asked.keys() == {*SETTINGS, "bots", "edge"}
    for name, one in asked.items():
        spec = one["spec"]
        tried = x509.load_pem_x509_certificate(kept[spec["secretName"]]["tls.crt"].encode())
        names = tried.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert spec["uris"] == names.get_values_for_type(x509.UniformResourceIdentifier)
        assert name in spec["dnsNames"]
        assert set(spec["dnsNames"]) <= set(names.get_values_for_type(x509.DNSName))
        assert spec["usages"] == ["digital signature", "server auth", "client auth"]
        assert spec["privateKey"]["rotationPolicy"] == "Always"
        assert spec["issuerRef"] == {"kind": "Issuer", "name": "fangcheng"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secrets_are_referred_to_and_never_written_down(
    overlay: str, kept: dict[str, dict[str, str]]
) -> None:
    assert not of_kind(overlay, "Secret")
    for pod in pods(overlay).values():
        environment_of(overlay, pod, kept)
        for volume in pod["spec"]["volumes"]:
            if "secret" in volume and not volume["secret"].get("optional"):
                assert volume["secret"]["secretName"] in kept
            elif "configMap" in volume:
                maps = {*of_kind(overlay, "ConfigMap"), KEY_SET}
                assert volume["configMap"]["name"] in maps
        mounts = {mount["name"] for mount in container_of(pod)["volumeMounts"]}
        claims = {"data"} & mounts
        assert mounts == {volume["name"] for volume in pod["spec"]["volumes"]} | claims


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_service_understands_its_environment_and_is_asked_where_it_listens(
    overlay: str, kept: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    called: set[str] = set()
    ages: dict[str, float] = {}
    for name in SETTINGS:
        deployment = of_kind(overlay, "Deployment")[name]
        pod = deployment["spec"]["template"]
        container = container_of(pod)
        assert service_of(container["command"]) == name
        settings = settings_of(name, environment_of(overlay, pod, kept), monkeypatch)
        port = port_of(settings.listen)
        ports = {"grpc": port, "metrics": port_of(settings.metrics_listen)}
        if isinstance(settings, ConsoleSettings):
            ports["web"] = port_of(settings.web_listen)
            assert settings.web_over_tls
            assert len(settings.secret) >= SHORTEST_KEY
        assert ports_of(pod) == ports
        # Kubelets have no certificate: they ask beside the metrics.
        for probe, path in (("readiness", READY), ("startup", LIVE), ("liveness", LIVE)):
            assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "metrics"}
        files = {path for one in mounted(pod, kept).values() for path in one}
        assert files_of(settings) <= files
        if isinstance(settings, TableSettings):
            assert settings.journal_keys
        assert pod["spec"]["terminationGracePeriodSeconds"] > stop_seconds(settings)
        if name == "table":
            assert getattr(settings, "advertised", "") == f"10.0.0.7:{port}"
        # Nobody's replica stops while another is not yet back.
        assert deployment["spec"]["minReadySeconds"] >= 10
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        for partner, target in targets_of(settings).items():
            assert target == (partner, ports_of(pods(overlay)[partner])["grpc"])
            called.add(partner)
        # By then callers have looked the name up again, and found replicas that were added.
        ages[name] = settings.max_connection_age_seconds
    assert all(0 < ages[partner] <= 60 for partner in called), ages
    assert called == CALLED
    listening = {name: (name, ports_of(pods(overlay)[name])["grpc"]) for name in CALLED}
    assert edge_targets() == listening


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_bots_fill_up_the_pools_and_are_never_there_twice(
    overlay: str, kept: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = of_kind(overlay, "Deployment")["bots"]
    pod = deployment["spec"]["template"]
    environment = environment_of(overlay, pod, kept)
    files = {path for one in mounted(pod, kept).values() for path in one}
    called = check_bots(container_of(pod)["command"], environment, files, monkeypatch)
    assert called == {name: edge_targets()[name] for name in BOTS_CALL}
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert pod["spec"]["terminationGracePeriodSeconds"] > HAND_SECONDS


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_edge_listens_where_it_is_looked_for(overlay: str) -> None:
    pod = pods(overlay)["edge"]
    container = container_of(pod)
    assert ports_of(pod) == edge_ports()
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/ready", "port": "pages"}
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > pause
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    (config,) = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "config"]
    files = of_kind(overlay, "ConfigMap")[config["configMap"]["name"]]["data"]
    (file,) = files
    assert container["command"][:3] == ["envoy", "-c", f"{mounts['config']}/{file}"]
    assert files[file] == (DEPLOY / "envoy" / "cluster.yaml").read_text("utf-8")
    for name, count in (("tls", 1), ("identity", len(CALLED))):
        assert files[file].count(f"filename: {mounts[name]}/tls.crt") == count
    assert files[file].count(f"filename: {mounts['identity']}/ca.crt") == len(CALLED)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_migrations_are_for_the_databases_that_services_open(
    overlay: str, kept: dict[str, dict[str, str]]
) -> None:
    migrate = pods(overlay)["migrate"]
    assert service_of(container_of(migrate)["command"]) is None
    opened = {
        name: text
        for service in SETTINGS
        for name, text in environment_of(overlay, pods(overlay)[service], kept).items()
        if name.endswith("_DATABASE")
    }
    assert environment_of(overlay, migrate, kept) == opened


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_whatever_selects_pods_selects_some_with_these_ports(overlay: str) -> None:
    templates = pods(overlay)
    for name, service in of_kind(overlay, "Service").items():
        (pod,) = selected(overlay, service["spec"]["selector"])
        for port in service["spec"]["ports"]:
            assert ports_of(templates[pod])[port["name"]] == port["port"], name
        if pod in CALLED:
            assert service["spec"]["clusterIP"] == "None", f"{name}: callers spread calls"
            assert name == pod
    budgets = of_kind(overlay, "PodDisruptionBudget")
    assert budgets.keys() == {*CALLED, "edge"}
    for name, budget in budgets.items():
        assert selected(overlay, budget["spec"]["selector"]["matchLabels"]) == [name]
        for spread in templates[name]["spec"]["topologySpreadConstraints"]:
            assert selected(overlay, spread["labelSelector"]["matchLabels"]) == [name]


def selected(overlay: str, labels: dict[str, str]) -> list[str]:
    """The makers of the pods that have these labels."""
    return [
        name
        for name, pod in pods(overlay).items()
        if labels.items() <= pod["metadata"]["labels"].items()
    ]


# Who reaches whom.


def named(selector: Manifest | None) -> set[str] | None:
    """The names that a selector of pods has; None: every pod."""
    if not selector:
        return None
    if "matchLabels" in selector:
        assert selector.keys() == {"matchLabels"}
        return {selector["matchLabels"][NAME]}
    (expression,) = selector["matchExpressions"]
    assert (expression["key"], expression["operator"]) == (NAME, "In")
    return set(expression["values"])


def lanes(overlay: str, direction: str) -> Iterator[tuple[str, str, int]]:
    """Every (from, to, port) between pods of ours that the policies let through."""
    side = {"ingress": "from", "egress": "to"}[direction]
    for policy in of_kind(overlay, "NetworkPolicy").values():
        for rule in policy["spec"].get(direction, ()):
            for peer in rule.get(side, ()):
                if peer.keys() != {"podSelector"}:
                    continue  # not pods of ours
                for own in named(policy["spec"]["podSelector"]) or ():
                    for other in named(peer["podSelector"]) or ():
                        ends = (other, own) if direction == "ingress" else (own, other)
                        for port in rule["ports"]:
                            yield *ends, port["port"]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_who_calls_whom_in_the_code_may_and_nobody_else(
    overlay: str, kept: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {("edge", name, port) for name, (_, port) in edge_targets().items()}
    for name in SETTINGS:
        environment = environment_of(overlay, pods(overlay)[name], kept)
        settings = settings_of(name, environment, monkeypatch)
        needed |= {(name, other, port) for other, (_, port) in targets_of(settings).items()}
        needed |= {(name, other, port) for other, (_, port) in measured_of(settings).items()}
        if name == "table":  # a replica passes calls on to another
            needed.add((name, name, port_of(settings.listen)))
    needed |= {("bots", name, edge_targets()[name][1]) for name in BOTS_CALL}
    if "postgres" in pods(overlay):
        needed |= {(name, "postgres", 5432) for name in KEEPERS}
    assert set(lanes(overlay, "ingress")) == needed
    assert set(lanes(overlay, "egress")) == needed
    policies = of_kind(overlay, "NetworkPolicy")
    assert policies["nothing"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert named(policies["databases"]["spec"]["podSelector"]) == KEEPERS
    # From outside, the edge alone, and there not the pages of its admin interface.
    open_to_all = [
        (name, rule)
        for name, policy in policies.items()
        for rule in policy["spec"].get("ingress", ())
        if "from" not in rule
    ]
    assert open_to_all == [("edge", {"ports": [{"port": edge_ports()["grpc"]}]})]


# Scaling, monitoring and databases, in production.


def test_whoever_opens_a_database_has_the_authority_of_its_certificate() -> None:
    having = {
        name
        for name, pod in pods("production").items()
        for mount in container_of(pod)["volumeMounts"]
        if mount["mountPath"] == "/etc/databases"
    }
    assert having == KEEPERS
    # It is in nobody's home, where the driver would look by itself.
    page = (DEPLOY.parent / "docs" / "operations" / "deploy.md").read_text("utf-8")
    assert "sslmode=verify-full&sslrootcert=/etc/databases/ca.crt" in page


def test_what_is_scaled_has_no_number_of_its_own_and_what_to_scale_by_exists() -> None:
    scaled = of_kind("production", "HorizontalPodAutoscaler", "ScaledObject")
    deployments = of_kind("production", "Deployment")
    assert scaled.keys() == deployments.keys() - {"bots", "console"}
    for name, one in scaled.items():
        assert one["spec"]["scaleTargetRef"]["name"] == name
        assert "replicas" not in deployments[name]["spec"]
        assert "cpu" in container_of(deployments[name]["spec"]["template"])["resources"]["requests"]
    (evaluation,) = of_kind("production", "ScaledObject").values()
    cpu, queue = evaluation["spec"]["triggers"]
    assert cpu == {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}
    assert queue["type"] == "prometheus"
    asked = promql.selectors(queue["metadata"]["query"])
    assert asked
    assert {one.metric for one in asked} <= promql.recorded() | promql.registered().keys()
    # Where Prometheus is away KEDA would set that number, whatever the CPU asks for.
    assert "fallback" not in evaluation["spec"]


def test_everybody_with_metrics_is_scraped_under_the_job_that_dashboards_know() -> None:
    scraped: dict[str, set[tuple[str, str]]] = {}
    for monitor in of_kind("production", "ServiceMonitor").values():
        spec = monitor["spec"]
        wanted = spec["selector"]["matchLabels"].items()
        for service in of_kind("production", "Service").values():
            labels = service["metadata"]["labels"]
            names = {port["name"] for port in service["spec"]["ports"]}
            for endpoint in spec["endpoints"]:
                if wanted <= labels.items() and endpoint["port"] in names:
                    job = labels[spec["jobLabel"]]
                    scraped.setdefault(job, set()).add((endpoint["port"], endpoint["path"]))
    assert scraped == {
        **{name: {("metrics", "/metrics")} for name in SETTINGS},
        "edge": {("pages", "/stats/prometheus")},
    }
    # Prometheus is let in at each of these ports, and at no other.
    policy = of_kind("production", "NetworkPolicy")["prometheus"]["spec"]
    (rule,) = policy["ingress"]
    assert named(policy["podSelector"]) == scraped.keys()
    assert {port["port"] for port in rule["ports"]} == {edge_ports()["pages"]} | {
        ports_of(pods("production")[name])["metrics"] for name in SETTINGS
    }


def test_rules_and_dashboards_are_those_of_prometheus_and_grafana() -> None:
    (rule,) = of_kind("production", "PrometheusRule").values()
    files = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    assert rule["spec"]["groups"] == groups
    dashboards = [
        (name, text)
        for one in of_kind("production", "ConfigMap").values()
        if one["metadata"]["labels"].get("grafana_dashboard") == "1"
        for name, text in one["data"].items()
    ]
    assert {name: json.loads(text) for name, text in dashboards} == {
        file.name: json.loads(file.read_text("utf-8"))
        for file in (DEPLOY / "grafana" / "dashboards").glob("*.json")
    }
