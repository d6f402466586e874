"""What an image's build keeps is all that a service needs: unwritable, on another processor."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fangcheng_rules.kernels import folders

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

WARM = [sys.executable, "-m", "fangcheng_evaluation.warm"]
ELSEWHERE = """
import runpy, sys
import llvmlite.binding as llvm
ours = llvm.get_host_cpu_features()
others = type(ours)({**ours, "avx512f": not ours.get("avx512f", False)})
llvm.get_host_cpu_name = lambda: "another"
llvm.get_host_cpu_features = lambda: others
sys.argv = ["warm", "--check"]
runpy.run_module("fangcheng_evaluation.warm", run_name="__main__")
"""
"""A process that takes its processor for another one."""
WITHOUT_COMPILER = """
import runpy, sys
import fangcheng_rules.kernels.speed  # before numba, for which it chooses the processor
from numba.core import compiler
def compile_extra(typing, target, function, **more):
    raise AssertionError(f"the compiler runs for {function}")
compiler.compile_extra = compile_extra
sys.argv = ["warm", "--check"]
runpy.run_module("fangcheng_evaluation.warm", run_name="__main__")
"""
"""A process in which nothing can be compiled, by whichever way."""
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1


def run(*words: str, bound: bool = False, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `bound`: file modes hold for it, whoever runs the tests."""
    return subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **settings},
        preexec_fn=_obey_file_modes if bound and os.geteuid() == 0 else None,
    )


def _obey_file_modes() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the build of an image keeps, in a folder that nobody may write to any more."""
    # Compiled where all tests compile, so that it is done once; then as if it had been done here.
    warmed = run(*WARM)
    assert warmed.returncode == 0, warmed.stderr
    common = folders.cache_folder()
    assert common is not None
    folder = tmp_path_factory.mktemp("image") / "cache"
    shutil.copytree(common, folder)
    everything = [folder, *folder.rglob("*")]
    for path in everything:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    yield folder
    for path in everything:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def test_nothing_is_compiled_from_a_folder_that_cannot_be_written(kept: Path) -> None:
    checked = run(*WARM, "--check", bound=True, FANGCHENG_CACHE_DIR=str(kept))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"0 functions were compiled, the others read from {kept}" in checked.stdout


def test_a_warm_start_runs_no_compiler(kept: Path) -> None:
    checked = run(sys.executable, "-c", WITHOUT_COMPILER, FANGCHENG_CACHE_DIR=str(kept))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_nothing_is_compiled_on_another_processor_of_the_family(kept: Path) -> None:
    checked = run(sys.executable, "-c", ELSEWHERE, bound=True, FANGCHENG_CACHE_DIR=str(kept))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("function", ["shanten_of", "check_many"])
def test_check_tells_what_is_missing(function: str, kept: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    shutil.copytree(kept, folder)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    lost = [path for path in folder.rglob("*.nbi") if f".{function}-" in path.name]
    assert lost  # once for each of the sources that are kept
    for path in lost:
        path.unlink()
    missing = run(*WARM, "--check", FANGCHENG_CACHE_DIR=str(folder))
    assert missing.returncode == 1, missing.stdout + missing.stderr
    assert "1 functions were compiled" in missing.stdout


def test_interpreted_there_is_nothing_to_keep() -> None:
    warmed = run(*WARM, FANGCHENG_INTERPRETED="1")
    assert warmed.returncode == 1
    assert "nothing can be kept" in warmed.stderr
