"""Stubs for other languages, made by buf.gen.yaml as an integrator would make them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from .debian import install, installed
from .test_examples import EXAMPLES, GO_PACKAGES, INSTALL, PROGRAMS, made

pytestmark = [pytest.mark.slow, pytest.mark.system, pytest.mark.timeout(1_200)]

ROOT = EXAMPLES.parent
UNAVAILABLE = "grpc_csharp_plugin"
"""NuGet alone has it: of C# the messages are made here, and not the calls."""
JAVA_PACKAGES = (
    "libgeronimo-annotation-1.3-spec-java",
    "libgrpc-java",
    "libguava-java",
    "libprotobuf-java",
)
JARS = (
    "geronimo-annotation-1.3-spec",
    "grpc-api",
    "grpc-protobuf",
    "grpc-stub",
    "guava",
    "protobuf",
)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder gen/ of the template, elsewhere."""
    installed("protoc-gen-go-grpc", *GO_PACKAGES)
    installed("protoc", "protobuf-compiler")
    installed("grpc_java_plugin", "protobuf-compiler-grpc-java-plugin")
    node = made(EXAMPLES / "node", INSTALL)
    template: dict[str, Any] = yaml.safe_load((ROOT / "buf.gen.yaml").read_text("utf-8"))
    plugins = [one for one in template["plugins"] if one.get("local") != UNAVAILABLE]
    assert len(plugins) == len(template["plugins"]) - 1
    template["plugins"] = plugins
    folder = tmp_path_factory.mktemp("stubs")
    file = folder / "buf.gen.yaml"
    file.write_text(yaml.safe_dump(template), "utf-8")
    buf = shutil.which("buf", path=PROGRAMS)
    assert buf is not None
    path = os.pathsep.join([PROGRAMS, str(node / "node_modules" / ".bin")])
    subprocess.run(
        [buf, "generate", "--template", str(file), "--output", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        check=True,
    )
    return folder / "gen"


def test_every_language_has_every_contract(stubs: Path) -> None:
    contracts = sorted(path.stem for path in ROOT.glob("protos/fangcheng/**/*.proto"))

    def made_of(pattern: str, ending: str) -> list[str]:
        return sorted(path.name.removesuffix(ending).lower() for path in stubs.glob(pattern))

    assert made_of("go/fangcheng/**/*.pb.go", ".pb.go") == sorted(
        contracts + [f"{path.stem}_grpc" for path in _with_calls()]
    )
    assert made_of("ts/fangcheng/**/*_pb.ts", "_pb.ts") == contracts
    assert made_of("csharp/Fangcheng/**/*.cs", ".cs") == contracts
    assert len(made_of("java/com/fangcheng/**/*Grpc.java", "Grpc.java")) == sum(
        path.read_text("utf-8").count("\nservice ") for path in _with_calls()
    )


def _with_calls() -> list[Path]:
    protos = ROOT.glob("protos/fangcheng/**/*.proto")
    return [path for path in protos if "\nservice " in path.read_text("utf-8")]


def test_java_compiles(stubs: Path, tmp_path: Path) -> None:
    javac = installed("javac", "default-jdk-headless")
    jars = [Path(f"/usr/share/java/{name}.jar") for name in JARS]
    install(JAVA_PACKAGES, lambda: all(jar.exists() for jar in jars), "gRPC for Java")
    sources = tmp_path / "sources"
    sources.write_text("\n".join(map(str, (stubs / "java").glob("**/*.java"))), "utf-8")
    path = os.pathsep.join(map(str, jars))
    words = ["-proc:none", "-nowarn", "-cp", path, "-d", str(tmp_path / "classes"), f"@{sources}"]
    compiled = subprocess.run([javac, *words], capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    assert (tmp_path / "classes/com/fangcheng/table/v1/TableServiceGrpc.class").exists()
