"""Write deploy/envoy/cluster.yaml: the edge's configuration for containers, from envoy.yaml.

    python tools/envoyconf.py [--check]

What a call may be and how it is repeated is written once, in envoy.yaml, for a suite on one
computer. In containers services are found by their names, each name standing for all replicas; the
edge listens on every address and ends TLS there, for tokens come in; and of its admin interface
probes and Prometheus see what they need, at a port of its own, and nobody the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "deploy" / "envoy"
TARGET = FOLDER / "cluster.yaml"
HEADER = (
    "# Made from envoy.yaml by tools/envoyconf.py (`make docs`): the edge in containers. Services "
    "are\n# found by their names, and the files of the listener's certificate are read anew when "
    "/etc/envoy/tls\n# is replaced, as Kubernetes does with a secret.\n"
)
PORTS = {"evaluation": 7110, "table": 7101, "matchmaking": 7100, "wallet": 7102}
"""Where the services listen in containers."""
PAGES_PORT = 7002
EVERYWHERE = "0.0.0.0"
CERTIFICATE = "/etc/envoy/tls"
TLS = {
    "name": "envoy.transport_sockets.tls",
    "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
        ".DownstreamTlsContext",
        "common_tls_context": {
            "alpn_protocols": ["h2"],
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "tls_certificates": [
                {
                    "certificate_chain": {"filename": f"{CERTIFICATE}/tls.crt"},
                    "private_key": {"filename": f"{CERTIFICATE}/tls.key"},
                    "watched_directory": {"path": CERTIFICATE},
                }
            ],
        },
    },
}


def address(host: str, port: int) -> dict[str, Any]:
    """An address as Envoy has it."""
    return {"socket_address": {"address": host, "port_value": port}}


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
    """The configuration with names instead of addresses, and TLS at the listener."""
    resources = config["static_resources"]
    (listener,) = resources["listeners"]
    listener["address"]["socket_address"]["address"] = EVERYWHERE
    (chain,) = listener["filter_chains"]
    chain["transport_socket"] = TLS
    (filters,) = chain["filters"]
    resources["listeners"].append(pages(filters["typed_config"]["http_filters"]))
    for cluster in resources["clusters"]:
        name = cluster["name"]
        cluster.pop("eds_cluster_config", None)
        cluster["type"] = "STRICT_DNS"
        cluster["dns_refresh_rate"] = "1s"
        # One that is no longer listed gets no new calls, even while it answers health checks.
        cluster["ignore_health_on_host_removal"] = True
        cluster["load_assignment"] = load_assignment(name, address(name, PORTS[name]))
    admin = load_assignment("admin", config["admin"]["address"])
    resources["clusters"].append({"name": "admin", "type": "STATIC", "load_assignment": admin})
    return config


class _Plain(yaml.SafeDumper):
    """Writes what stands in several places several times, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        """Nothing is named, to be referred to."""
        return True


def main() -> None:
    """Write the file; with --check, tell whether it is up to date."""
    config = for_containers(yaml.safe_load((FOLDER / "envoy.yaml").read_text("utf-8")))
    text = HEADER + yaml.dump(config, Dumper=_Plain, sort_keys=False, width=100)
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, "utf-8")
    elif not TARGET.exists() or TARGET.read_text("utf-8") != text:
        sys.exit(f"{TARGET.name} is out of date: make docs")


if __name__ == "__main__":
    main()
