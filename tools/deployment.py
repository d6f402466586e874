"""Write what deploy/ has for containers from what it has for a suite on one computer.

    python tools/deployment.py [--check]

- envoy/cluster.yaml, the edge's configuration, from envoy.yaml
- kubernetes/components/monitoring/rules.yaml, which Prometheus' operator takes, from
  prometheus/rules/

What a call may be and how it is repeated is written once, in envoy.yaml. In containers services are
found by their names, each name standing for all replicas; the edge listens on every address and
ends TLS there, for tokens come in, and calls services by TLS of its own; and of its admin interface
probes and Prometheus see what they need, at a port of its own, and nobody the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
EDGE = (
    "# Made from envoy.yaml by tools/deployment.py (`make docs`): the edge in containers. Services "
    "are\n# found by their names. What it shows to players is in /etc/envoy/tls; who it is to the "
    "services, and\n# whom it trusts to be them, in /etc/envoy/identity. These files are read anew "
    "when one is moved into\n# its place, or the folder is replaced, as Kubernetes does with a "
    "secret.\n"
)
RULES = "# Made from prometheus/rules/ by tools/deployment.py (`make docs`).\n"
PORTS = {"evaluation": 7110, "table": 7101, "matchmaking": 7100, "wallet": 7102}
"""Where the services listen in containers."""
PAGES_PORT = 7002
EVERYWHERE = "0.0.0.0"  # noqa: S104 # nosec B104 # containers of ours alone
SHOWN = "/etc/envoy/tls"
"""What players see: a certificate for the name by which they find the edge."""
IDENTITY = "/etc/envoy/identity"
"""Who the edge is to the services: a proxy, which opens nothing without somebody's token."""
TRUST_DOMAIN = "fangcheng"


def address(host: str, port: int) -> dict[str, Any]:
    """An address as Envoy has it."""
    return {"socket_address": {"address": host, "port_value": port}}


def tls(kind: str, folder: str, **more: Any) -> dict[str, Any]:
    """One end of a connection with the certificate in a folder: ``Downstream`` or ``Upstream``."""
    certificate = {
        "certificate_chain": {"filename": f"{folder}/tls.crt"},
        "private_key": {"filename": f"{folder}/tls.key"},
        "watched_directory": {"path": folder},
    }
    common = {
        "alpn_protocols": ["h2"],
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
        "tls_certificates": [certificate],
    }
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
            f".{kind}TlsContext",
            "common_tls_context": common | more,
        },
    }


def to_service(name: str) -> dict[str, Any]:
    """TLS to a service: with the edge's own certificate, and to nobody but this service."""
    uri = f"spiffe://{TRUST_DOMAIN}/service/{name}"
    trusted = {
        "trusted_ca": {"filename": f"{IDENTITY}/ca.crt"},
        "watched_directory": {"path": IDENTITY},
        "match_typed_subject_alt_names": [{"san_type": "URI", "matcher": {"exact": uri}}],
    }
    return tls("Upstream", IDENTITY, validation_context=trusted)


def load_assignment(cluster: str, of: dict[str, Any]) -> dict[str, Any]:
    """One name for the endpoints of a cluster."""
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": of}}]}]
    return {"cluster_name": cluster, "endpoints": endpoints}


def pages(router: list[dict[str, Any]]) -> dict[str, Any]:
    """The listener for probes and Prometheus: two pages of the admin interface."""
    paths = ("/ready", "/stats/prometheus")
    routes = [{"match": {"path": path}, "route": {"cluster": "admin"}} for path in paths]
    manager = {
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager"
        ".v3.HttpConnectionManager",
        "stat_prefix": "pages",
        "http_filters": router,
        "route_config": {
            "name": "pages",
            "virtual_hosts": [{"name": "pages", "domains": ["*"], "routes": routes}],
        },
    }
    name = "envoy.filters.network.http_connection_manager"
    return {
        "name": "pages",
        "address": address(EVERYWHERE, PAGES_PORT),
        "filter_chains": [{"filters": [{"name": name, "typed_config": manager}]}],
    }


def for_containers(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with names instead of addresses, and TLS on both sides."""
    resources = config["static_resources"]
    (listener,) = resources["listeners"]
    listener["address"]["socket_address"]["address"] = EVERYWHERE
    (chain,) = listener["filter_chains"]
    chain["transport_socket"] = tls("Downstream", SHOWN)
    (filters,) = chain["filters"]
    router = filters["typed_config"]["http_filters"][-1:]
    resources["listeners"].append(pages(router))
    for cluster in resources["clusters"]:
        name = cluster["name"]
        cluster.pop("eds_cluster_config", None)
        cluster["type"] = "STRICT_DNS"
        cluster["dns_refresh_rate"] = "1s"
        # One that is no longer listed gets no new calls, even while it answers health checks.
        cluster["ignore_health_on_host_removal"] = True
        cluster["load_assignment"] = load_assignment(name, address(name, PORTS[name]))
        cluster["transport_socket"] = to_service(name)
    admin = load_assignment("admin", config["admin"]["address"])
    resources["clusters"].append({"name": "admin", "type": "STATIC", "load_assignment": admin})
    return config


class _Plain(yaml.SafeDumper):
    """Writes what stands in several places several times, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Nothing is named, to be referred to."""
        return True


def for_the_operator() -> dict[str, Any]:
    """The recording rules and alerts as one resource of Prometheus' operator."""
    files = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
    groups = [group for file in files for group in load(file)["groups"]]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "fangcheng"},
        "spec": {"groups": groups},
    }


def load(file: Path) -> dict[str, Any]:
    """A file of YAML that holds keys with their values."""
    loaded: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return loaded


def texts() -> dict[Path, str]:
    """Every file that is made here, as it must be."""
    edge = for_containers(load(DEPLOY / "envoy" / "envoy.yaml"))
    rules = DEPLOY / "kubernetes" / "components" / "monitoring" / "rules.yaml"
    return {
        DEPLOY / "envoy" / "cluster.yaml": EDGE + dumped(edge),
        rules: RULES + dumped(for_the_operator()),
    }


def dumped(content: dict[str, Any]) -> str:
    """As YAML, in the order that it has."""
    return yaml.dump(content, Dumper=_Plain, sort_keys=False, width=100, allow_unicode=True)


def main() -> None:
    """Write the files; with --check, tell which are not up to date."""
    for file, text in texts().items():
        if "--check" not in sys.argv[1:]:
            file.write_text(text, "utf-8")
        elif not file.exists() or file.read_text("utf-8") != text:
            sys.exit(f"{file.relative_to(DEPLOY.parent)} is out of date: make docs")


if __name__ == "__main__":
    main()
