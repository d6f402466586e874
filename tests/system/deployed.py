"""The suite as Compose runs it, without its containers: the same settings, keys and certificates.

What containers have of their own is put in its place: ports are free ones, names are this host's,
files lie where make-env.sh has made them, and databases are SQLite's.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import yaml

from fangcheng_client import connect
from fangcheng_kit.signing import SigningKey
from fangcheng_kit.tokens import mint_token
from tests.deploy.suite import DEPLOY, compose_with, edge_with, make_env

from .replicas import program, until
from .running import COMMAND, environment, free_port

SERVICES = {"evaluation": "evaluation", "wallet": "wallet", "table-1": "table"}
SERVICES |= {"matchmaking": "matchmaking", "console": "console"}
"""Containers that are run, and what is in them."""
PORT = re.compile(r"\b(?P<host>[\w.-]+):(?P<port>7[0-2]\d\d)\b")
EVERYWHERE = "0.0.0.0"  # noqa: S104  # what containers listen on
ENVOY = str(Path(sys.executable).with_name("envoy"))


class Deployed:
    """Services, bots and the edge as processes, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._env = make_env(folder)
        self._compose: dict[str, Any] = compose_with(self._env)["services"]
        self._ports: dict[str, int] = {}
        self.made = folder / "compose"
        """What make-env.sh has made."""

    def address(self, port: int) -> str:
        """Where what has this port in a container is found here."""
        return f"localhost:{self._free(port)}"

    def token(self, subject: str, *scopes: str, key: str = "trying") -> str:
        """A token signed by one of the keys that were made."""
        file = "signing.pem" if key == "trying" else f"{key}/signing.pem"
        signing = SigningKey((self.made / "keys" / file).read_bytes(), key)
        return mint_token(signing, subject, scopes)

    def direct(
        self, service: str, port: int, *, holder: str = "", token: str | None = None
    ) -> grpc.aio.Channel:
        """A channel past the edge, with the certificate of ``holder``, or none."""
        tls = self.made / "tls"
        files = [tls / holder / "tls.key", tls / holder / "tls.crt"] if holder else []
        credentials = grpc.ssl_channel_credentials(
            (self.made / "authority" / "ca.crt").read_bytes(), *(one.read_bytes() for one in files)
        )
        return connect(
            self.address(port), token, credentials=credentials, server_name=service, options=ONCE
        )

    @contextlib.asynccontextmanager
    async def services(self, *containers: str) -> AsyncIterator[None]:
        """Run these until the end of the block; they are ready."""
        with contextlib.ExitStack() as stack:
            started = {}
            for name in containers:
                words = [sys.executable, *self._compose[name]["command"][1:]]
                started[name] = stack.enter_context(self._process(name, words))
            for name, process in started.items():
                page = f"http://127.0.0.1:{self._free(self._check(name))}/ready"

                async def ready(
                    process: subprocess.Popen[bytes] = process, name: str = name, page: str = page
                ) -> bool:
                    assert process.poll() is None, self.log(name)
                    return _answers(page)

                await until(ready, f"{name} is ready")
            yield

    @contextlib.asynccontextmanager
    async def bots(self, pool: str, count: int) -> AsyncIterator[subprocess.Popen[bytes]]:
        """Run bots, for one pool only."""
        words = [
            word
            for word in self._compose["bots"]["command"][1:]
            if not word.startswith(("--pool=", "--count="))
        ]
        words = [COMMAND, *words, f"--pool={pool}", f"--count={count}"]
        with self._process("bots", [self._here("bots", word) for word in words]) as process:
            yield process

    @contextlib.asynccontextmanager
    async def edge(self, **elsewhere: int) -> AsyncIterator[Edge]:
        """Run Envoy; ``elsewhere``: for a service's calls, the port of another than itself."""
        text = (DEPLOY / "envoy" / "cluster.yaml").read_text("utf-8")
        config: dict[str, Any] = yaml.safe_load(edge_with(text, self.made))
        ports = {}
        for listener in config["static_resources"]["listeners"]:
            where = listener["address"]["socket_address"]
            where["port_value"] = ports[listener["name"]] = free_port()
        admin = config["admin"]["address"]["socket_address"]
        admin["port_value"] = free_port()
        for cluster in config["static_resources"]["clusters"]:
            (group,) = cluster["load_assignment"]["endpoints"]
            (one,) = group["lb_endpoints"]
            where = one["endpoint"]["address"]["socket_address"]
            port = elsewhere.get(cluster["name"], where["port_value"])
            if cluster["name"] == "admin":
                where["port_value"] = admin["port_value"]
            else:
                where |= {"address": "localhost", "port_value": self._free(port)}
        name = "-".join(("edge", *elsewhere))
        file, log = self._folder / f"{name}.yaml", self._folder / f"{name}.log"
        file.write_text(yaml.safe_dump(config), "utf-8")
        words = [ENVOY, "-c", str(file), "--concurrency", "1", "--disable-hot-restart"]
        with program(words, log) as process:

            async def ready() -> bool:
                assert process.poll() is None, log.read_text("utf-8")
                return _answers(f"http://127.0.0.1:{ports['pages']}/ready")

            await until(ready, "Envoy is ready")
            yield Edge(f"localhost:{ports['grpc']}", self.made / "tls" / "public" / "tls.crt")

    def log(self, name: str) -> str:
        """What a process has said."""
        return (self._folder / f"{name}.log").read_text("utf-8")

    def _free(self, port: int) -> int:
        """The port that stands for this one of the containers'."""
        if port not in self._ports:
            self._ports[port] = free_port()
        return self._ports[port]

    def _check(self, name: str) -> int:
        """The port that the container's health check asks."""
        found = PORT.fullmatch(self._compose[name]["healthcheck"]["test"][-1])
        assert found is not None
        return int(found["port"])

    def _here(self, name: str, text: str) -> str:
        """A setting or word of a container as it is on this host."""
        for volume in self._compose[name]["volumes"]:
            source, target, _ = volume.split(":")
            text = text.replace(target, str(self.made / source))

        def port(found: re.Match[str]) -> str:
            host = "localhost" if found["host"] != EVERYWHERE else EVERYWHERE
            return f"{host}:{self._free(int(found['port']))}"

        if text.startswith("postgresql:"):
            return str(self._folder / f"{name}.db")
        return PORT.sub(port, text)

    def _process(
        self, name: str, words: list[str]
    ) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        settings: Mapping[str, str] = self._compose[name].get("environment", {})
        here = {key: self._here(name, text) for key, text in settings.items()}
        # The kernels are interpreted: that is enough for a few hands, and needs no compiler.
        more = {**here, "FANGCHENG_INTERPRETED": "1"}
        return program(words, self._folder / f"{name}.log", environment(**more))


class Edge:
    """Where the edge is, for those outside."""

    def __init__(self, address: str, certificate: Path) -> None:
        self.address = address
        self.certificate = certificate
        """By which players know it."""

    def channel(self, token: str | None = None) -> grpc.aio.Channel:
        """As a player or a gateway reaches it; without repeats, so that what fails is seen."""
        credentials = grpc.ssl_channel_credentials(self.certificate.read_bytes())
        return connect(
            self.address, token, credentials=credentials, timeout_seconds=60, options=ONCE
        )


ONCE = [("grpc.enable_retries", 0)]


def _answers(page: str) -> bool:
    try:
        with urllib.request.urlopen(page) as answer:  # noqa: S310  # of this host
            return bool(answer.status == 200)
    except OSError:  # HTTPError, which it is not ready with, is one
        return False
