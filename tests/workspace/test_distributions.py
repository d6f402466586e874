"""The distributions: one version, one licence, typed, and wheels that hold what they should."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(
    path.parent
    for pattern in ("protos", "shared/*", "services/*")
    for path in ROOT.glob(f"{pattern}/pyproject.toml")
)


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def modules_of(folder: Path) -> str:
    """The name of the one import package of a distribution."""
    return next(folder.glob("fangcheng*/")).name


each = pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])


def test_there_are_ten() -> None:
    assert len(FOLDERS) == 10


def test_the_makefile_installs_all_of_them() -> None:
    listed = re.search(r"^DISTS := ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {ROOT / name for name in listed[1].replace("\\\n", " ").split()} == set(FOLDERS)


@each
def test_licence_version_and_pythons_are_the_same_everywhere(folder: Path) -> None:
    stated = project(folder)
    assert stated["license"] == "Apache-2.0"
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert stated["version"] == project(FOLDERS[0])["version"]
    assert stated["requires-python"] == ">=3.11,<3.14"
    versions = [word.rpartition(" ")[2] for word in stated["classifiers"] if " 3." in word]
    assert versions == ["3.11", "3.12", "3.13"]


@each
def test_ours_are_required_in_the_one_version(folder: Path) -> None:
    stated = project(folder)
    extras = stated.get("optional-dependencies", {}).values()
    for line in sum(extras, stated["dependencies"]):
        if line.startswith("fangcheng"):
            assert re.sub(r"\[.*\]", "", line).endswith(f"=={stated['version']}"), line


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The names of the files in each wheel, by the folder that it was built from."""
    out = tmp_path_factory.mktemp("wheels")
    contents = {}
    for folder in FOLDERS:
        target = out / folder.name
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        (wheel,) = target.iterdir()
        contents[folder.name] = zipfile.ZipFile(wheel).namelist()
    return contents


@each
def test_a_wheel_holds_types_licence_and_every_module(
    folder: Path, wheels: dict[str, list[str]]
) -> None:
    names = wheels[folder.name]
    assert any(name.endswith("/py.typed") for name in names)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    tops = (
        ["fangcheng"] if folder.name == "protos" else [p.name for p in folder.glob("fangcheng_*")]
    )
    modules = {
        str(path.relative_to(folder)) for top in tops for path in (folder / top).rglob("*.py")
    }
    assert modules
    assert modules <= set(names)
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == ({"fangcheng", "buf"} if folder.name == "protos" else {modules_of(folder)})


def test_the_wheel_of_the_contracts_holds_protos_stubs_and_their_types(
    wheels: dict[str, list[str]],
) -> None:
    names = set(wheels["protos"])
    protos = sorted((ROOT / "protos" / "fangcheng").rglob("*.proto"))
    for path in protos:
        stem = str(path.relative_to(ROOT / "protos").with_suffix(""))
        wanted = {f"{stem}.proto", f"{stem}_pb2.py", f"{stem}_pb2.pyi"}
        if re.search(r"^service ", path.read_text(), re.MULTILINE):
            wanted |= {f"{stem}_pb2_grpc.py", f"{stem}_pb2_grpc.pyi"}
        assert wanted <= names
    validate = "buf/validate/validate"
    assert {
        f"{validate}.proto",
        f"{validate}_pb2.py",
        f"{validate}_pb2.pyi",
        "buf/LICENSE",
    } <= names


def test_the_wheel_of_the_client_holds_the_service_config(wheels: dict[str, list[str]]) -> None:
    assert "fangcheng_client/service_config.json" in wheels["client"]


def test_the_wheel_of_the_console_holds_its_pages_and_their_licences(
    wheels: dict[str, list[str]],
) -> None:
    names = set(wheels["console"])
    static = ROOT / "services/console/fangcheng_console/static"
    files = [path.relative_to(static) for path in static.rglob("*") if path.is_file()]
    assert len(files) > 50
    assert {f"fangcheng_console/static/{path.as_posix()}" for path in files} <= names
    licences = {name.partition(".dist-info/licenses/")[2] for name in names} - {""}
    assert licences == {
        "LICENSE",
        "fangcheng_console/static/vendor/lit-html/LICENSE",
        "fangcheng_console/static/vendor/uplot/LICENSE",
        "fangcheng_console/static/fonts/OFL.txt",
    }
