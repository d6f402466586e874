"""The steps of the image's build make a folder from which the suite runs.

In the quick tests the folder is made on this host, with what is compiled here already; in the slow
ones in a bare Debian, as by the Dockerfile, and run as in a container: by another user who can
write to nothing but /tmp.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from fangcheng.evaluation.v1.evaluation_pb2_grpc import EvaluationServiceStub
from fangcheng_client import connect
from fangcheng_kit.signing import SigningKey
from fangcheng_kit.tokens import mint_token
from fangcheng_rules.kernels import folders
from tests.system.processes import KEY
from tests.system.replicas import READY, TOKEN, program, until
from tests.system.running import environment, free_port

from .suite import DEPLOY, ROOT, edge_with, make_env

BUILD = DEPLOY / "image" / "build.sh"
SOURCES = ("deploy/image", "protos", "requirements", "services", "shared")
"""What the Dockerfile copies."""
LEFT_OUT = ("pip", "uv", "hatchling", "pytest", "mypy", "ruff", "pyarrow")


def build(*words: str | Path, within: Sequence[str] = ()) -> None:
    """One step of the build, in a root or here."""
    # Where this Python keeps its bytecode is no matter of the image's.
    clean = {name: text for name, text in environment().items() if not name.startswith("PYTHON")}
    ended = subprocess.run(
        [*within, "sh", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**clean, "DEBIAN_FRONTEND": "noninteractive"},
        check=False,
    )
    assert ended.returncode == 0, f"{words[1]}:\n{ended.stdout}"


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter: those of pytest are for their owner."""
    folder = Path(tempfile.mkdtemp(prefix="fangcheng-image-", dir=tempfile.gettempdir()))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def is_healthy(words: Sequence[str], address: str) -> bool:
    """What the health check of a container says."""
    return subprocess.run([*words, address], capture_output=True, check=False).returncode == 0


def healthy(words: Sequence[str], address: str, process: subprocess.Popen[bytes], log: Path) -> Any:
    """A condition to wait for: the process serves."""

    def looks() -> bool:
        assert process.poll() is None, log.read_text("utf-8")
        return is_healthy(words, address)

    return partial(asyncio.to_thread, looks)


async def evaluates(address: str, token: str | None, **options: Any) -> None:
    """A hand is answered there."""
    async with connect(address, token, timeout_seconds=60, **options) as channel:
        answer = await EvaluationServiceStub(channel).Analyze(READY, wait_for_ready=True)
    assert [wait.tile for wait in answer.analysis.waits] == [41, 46]


# Beside the repository.


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite as built."""
    folder = tmp_path_factory.mktemp("image")
    tools, target = folder / "tools", folder / "suite"
    build(BUILD, "tools", ROOT, tools)
    build(BUILD, "libraries", ROOT, tools, target)
    # Compiled where all tests compile, so that it is done once.
    subprocess.run([sys.executable, "-m", "fangcheng_evaluation.warm"], check=True)
    compiled = folders.cache_folder()
    assert compiled is not None
    shutil.copytree(compiled, target / "cache")
    build(BUILD, "suite", ROOT, tools, target)
    return target


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Keys and certificates, as for Compose."""
    make_env(tmp_path)
    return tmp_path / "compose"


@pytest.fixture
async def evaluator(suite: Path, made: Path, tmp_path: Path) -> AsyncIterator[str]:
    """An evaluation service of the built suite, on all addresses as in a container."""
    port, metrics, log = free_port(), free_port(), tmp_path / "evaluation.log"
    own = made / "tls" / "evaluation"
    settings = {
        "CACHE_DIR": suite / "cache",
        "TLS_CERTIFICATE": own / "tls.crt",
        "TLS_KEY": own / "tls.key",
        "TLS_CLIENT_CA": own / "ca.crt",
        "JWKS": made / "keys" / "jwks" / "jwks.json",
        "EVALUATION_LISTEN": f"0.0.0.0:{port}",
        "EVALUATION_METRICS_LISTEN": f"0.0.0.0:{metrics}",
    }
    words = ["env", "-i", *(f"FANGCHENG_{name}={value}" for name, value in settings.items())]
    words += [str(suite / "bin" / "python"), "-m", "fangcheng_evaluation"]
    check = [str(suite / "bin" / "fangcheng-healthy")]
    asked = f"127.0.0.1:{metrics}"
    assert not is_healthy(check, asked)
    with program(words, log) as process:
        await until(healthy(check, asked, process, log), "it serves")
        yield f"127.0.0.1:{port}"
        process.terminate()

        async def drains() -> bool:
            return not is_healthy(check, asked)

        await until(drains, "the health check tells that it stops")


@pytest.mark.system
def test_the_image_holds_what_it_needs_compiled_and_nothing_to_build_with(suite: Path) -> None:
    (packages,) = suite.glob("lib/python3*/site-packages")
    assert not [name for name in LEFT_OUT if (packages / name).exists()]
    modules = [
        path
        for path in packages.glob("fangcheng*/**/*.py")
        if "versions" not in path.parts  # which Alembic reads by itself
    ]
    assert len(modules) > 200
    assert not [
        path for path in modules if not list(path.parent.glob(f"__pycache__/{path.stem}.*"))
    ]
    writable = [path for path in suite.rglob("*") if path.lstat().st_mode & 0o022]
    assert not [path for path in writable if not path.is_symlink()]
    locked = dict(
        re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements/image.lock").read_text(), re.M)
    )
    there = {
        path.name.removesuffix(".dist-info").rpartition("-")[0].lower().replace("_", "-")
        for path in packages.glob("*.dist-info")
    }
    ours = {name for name in there if name.startswith("fangcheng")}
    assert len(ours) >= 9
    assert there - ours <= set(locked)


@pytest.mark.system
async def test_a_hand_comes_through_the_edge_of_the_containers(
    suite: Path, evaluator: str, made: Path, tmp_path: Path
) -> None:
    # Another service, by its certificate; and a player or gateway, by a token.
    files = [made / "tls" / "table" / name for name in ("ca.crt", "tls.key", "tls.crt")]
    table = grpc.ssl_channel_credentials(*(file.read_bytes() for file in files))
    await evaluates(evaluator, None, credentials=table)
    signing = SigningKey((made / "keys" / "signing.pem").read_bytes(), "trying")
    token = mint_token(signing, "operator")
    text = (DEPLOY / "envoy" / "cluster.yaml").read_text("utf-8")
    config = yaml.safe_load(edge_with(text, made))
    ports = {}
    for listener in config["static_resources"]["listeners"]:
        ports[listener["name"]] = free_port()
        listener["address"]["socket_address"]["port_value"] = ports[listener["name"]]
    admin = config["admin"]["address"]["socket_address"]
    admin["port_value"] = free_port()
    for cluster in config["static_resources"]["clusters"]:
        (group,) = cluster["load_assignment"]["endpoints"]
        (one,) = group["lb_endpoints"]
        where = one["endpoint"]["address"]["socket_address"]
        if cluster["name"] == "admin":
            where["port_value"] = admin["port_value"]
        else:
            where |= {"address": "localhost", "port_value": int(evaluator.rpartition(":")[2])}
    file, log = tmp_path / "edge.yaml", tmp_path / "edge.log"
    file.write_text(yaml.safe_dump(config), "utf-8")
    envoy = str(Path(sys.executable).with_name("envoy"))
    words = [envoy, "-c", str(file), "--concurrency", "1", "--disable-hot-restart"]
    with program(words, log):
        authority = (made / "tls" / "public" / "tls.crt").read_bytes()
        credentials = grpc.ssl_channel_credentials(authority)
        await evaluates(f"localhost:{ports['grpc']}", token, credentials=credentials)
        # Of the admin interface others see two pages.
        pages = f"http://127.0.0.1:{ports['pages']}"
        for page, status in (("ready", 200), ("stats/prometheus", 200), ("quitquitquit", 404)):
            assert _status(f"{pages}/{page}") == status, page


def _status(address: str) -> int:
    try:
        with urllib.request.urlopen(address) as answer:  # noqa: S310  # of Envoy here
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


# In a bare Debian.

CONFIGURATION = ("/etc/resolv.conf", "/etc/pip.conf", "/etc/uv/uv.toml")
"""Of this machine, so far as it has them: where names and packages are found."""
AUTHORITIES = Path("/usr/local/share/ca-certificates")
AS_IN_A_CONTAINER = """
set -eu
root=$1; shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
exec chroot --userspec=10001:10001 "$root" env -i PATH=/opt/fangcheng/bin:/usr/bin:/bin HOME=/tmp \
    FANGCHENG_CACHE_DIR=/opt/fangcheng/cache "$@"
"""
"""Runs a command in a root that cannot be written, as the user of the image."""


@pytest.fixture(scope="module")
def debian() -> Iterator[Path]:
    """A bare Debian in which the image was built; only root can make one."""
    assert os.geteuid() == 0, "only root can make a root to build in"
    if shutil.which("debootstrap") is None:
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL)
        install = ["apt-get", "install", "-q", "-y", "--no-install-recommends", "debootstrap"]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    with open_folder() as folder:
        root = folder / "root"
        bare = ["debootstrap", "--variant=minbase", "bookworm", str(root)]
        subprocess.run(bare, check=True, stdout=subprocess.DEVNULL)
        for name in CONFIGURATION:
            if Path(name).exists():
                (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(name, root / name[1:])
        if AUTHORITIES.is_dir():
            shutil.copytree(AUTHORITIES, root / AUTHORITIES.relative_to("/"), dirs_exist_ok=True)
        if (trusted := os.environ.get("SSL_CERT_FILE")) is not None:
            (root / trusted[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(trusted, root / trusted[1:])
        for name in SOURCES:
            without = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / "source" / name, ignore=without)
        script, source = "/source/deploy/image/build.sh", "/source"
        tools, target = "/opt/tools", "/opt/fangcheng"
        # /proc and /dev are there for the build alone.
        mounted = 'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'
        within = ["unshare", "--mount", "sh", "-c", mounted, str(root)]
        build(script, "system", within=within)
        build(script, "tools", source, tools, within=within)
        build(script, "libraries", source, tools, target, within=within)
        build(script, "suite", source, tools, target, within=within)
        # The finished image has neither.
        shutil.rmtree(root / "source")
        shutil.rmtree(root / "opt" / "tools")
        yield root


def user_of(pid: int) -> tuple[int, int]:
    """User and group that a process runs as."""
    process = Path(f"/proc/{pid}").stat()
    return process.st_uid, process.st_gid


def in_container(root: Path, *words: str) -> list[str]:
    """The words that run a command as in a container."""
    return ["unshare", "--mount", "sh", "-c", AS_IN_A_CONTAINER, "sh", str(root), *words]


@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_a_bare_debian_becomes_an_image_that_evaluates(debian: Path, tmp_path: Path) -> None:
    address, log = f"127.0.0.1:{free_port()}", tmp_path / "evaluation.log"
    metrics = f"127.0.0.1:{free_port()}"
    words = [f"FANGCHENG_DEV_KEY={KEY}", f"FANGCHENG_EVALUATION_LISTEN={address}"]
    words.append(f"FANGCHENG_EVALUATION_METRICS_LISTEN={metrics}")
    with program(
        in_container(debian, *words, "python", "-m", "fangcheng_evaluation"), log
    ) as process:
        check = in_container(debian, "fangcheng-healthy")
        await until(healthy(check, metrics, process, log), "it serves")
        await evaluates(address, TOKEN)
        assert user_of(process.pid) == (10001, 10001)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["touch", "/opt/fangcheng/here"], "Read-only file system"),
        (["sh", "-c", "command -v gcc cc pip || echo none of them"], "none of them"),
        (["python", "-m", "fangcheng_evaluation.warm", "--check"], "0 functions were compiled"),
        (["fangcheng", "demo"], "All is well."),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_in_the_image(debian: Path, words: list[str], says: str) -> None:
    ended = subprocess.run(
        in_container(debian, *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert says in ended.stdout, ended.stdout
