"""Generate the Python stubs beside the .proto files, or check that they are fresh.

    .venv-protos/bin/python tools/stubs.py [--check]

The contracts are in protos/; what the table service's journal holds is a package of its own.

Runs in the environment of requirements/protos.lock: the oldest protobuf and grpcio that we support
make the stubs, because stubs refuse a runtime older than what made them. Messages get a _pb2.py and
its types in .pyi; files that declare a service get the pair for gRPC besides.
"""

from __future__ import annotations

import filecmp
import os
import re
import subprocess  # nosec B404 # for our own commands alone
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

TOP = Path(__file__).resolve().parent.parent
PROTOS = TOP / "protos"
# Import roots, each with the folder below it that holds what we generate for. The inner root stands
# first: protoc names a file after the first root that contains it.
ROOTS = {
    PROTOS / "third_party": "buf",
    PROTOS: "fangcheng",
    TOP / "services/table": "fangcheng_table/stored",
}
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
PLUGINS = Path(sys.executable).parent


def generate(target: Path) -> None:
    """Write the stubs of every .proto below ``target``, laid out as in the repository."""
    includes = [f"-I{root}" for root in (*ROOTS, files("grpc_tools") / "_proto")]
    for root, top in ROOTS.items():
        protos = sorted(root.joinpath(top).rglob("*.proto"))
        services = [p for p in protos if re.search(r"^service ", p.read_text(), re.MULTILINE)]
        out = target / root.relative_to(TOP)
        out.mkdir(parents=True, exist_ok=True)
        compile_protos(protos, [*includes, f"--python_out={out}", f"--mypy_out=quiet:{out}"])
        compile_protos(
            services, [*includes, f"--grpc_python_out={out}", f"--mypy_grpc_out=quiet:{out}"]
        )


def compile_protos(protos: list[Path], arguments: list[str]) -> None:
    """Call protoc; its own message says what is wrong in which line."""
    if not protos:
        return
    plugins = [f"--plugin={PLUGINS}/protoc-gen-{name}" for name in ("mypy", "mypy_grpc")]
    if protoc.main(["protoc", *plugins, *arguments, *map(str, protos)]):
        raise SystemExit("protoc refused the files above")


def stubs(folder: Path) -> set[Path]:
    """The generated files below ``folder``, which is laid out as the repository."""
    return {
        path.relative_to(folder)
        for root, top in ROOTS.items()
        for path in (folder / root.relative_to(TOP) / top).rglob("*_pb2*")
        if GENERATED.search(path.name)
    }


def import_all() -> None:
    """Import every stub under the oldest runtimes: that of this environment."""
    names = sorted(
        ".".join(path.relative_to(root).with_suffix("").parts)
        for root, top in ROOTS.items()
        for path in root.joinpath(top).rglob("*_pb2*.py")
    )
    code = "".join(f"import {name}\n" for name in names)
    path = os.pathsep.join(map(str, ROOTS))
    command = [sys.executable, "-W", "error", "-c", code]
    if subprocess.run(command, env={**os.environ, "PYTHONPATH": path}).returncode:  # noqa: S603 # nosec B603 # no words of others
        raise SystemExit("the stubs do not import under the oldest runtimes")


def main(check: bool) -> None:
    """Bring the stubs up to date, or with ``check`` fail where they are not."""
    with tempfile.TemporaryDirectory() as name:
        fresh = Path(name)
        generate(fresh)
        made, kept = stubs(fresh), stubs(TOP)
        stale = {p for p in made & kept if not filecmp.cmp(fresh / p, TOP / p, shallow=False)}
        changed = sorted(stale | (made ^ kept))
        if check and changed:
            names = "\n  ".join(map(str, changed))
            raise SystemExit(f"stubs differ from their .proto (run `make protos`):\n  {names}")
        for path in changed:
            if path in made:
                (TOP / path).write_bytes((fresh / path).read_bytes())
            else:
                (TOP / path).unlink()
        import_all()
        print(f"stubs: {len(made)} files, {len(changed)} changed")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
