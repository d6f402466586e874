"""The contracts: commented to the last field, guarded to the last call, and importable."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import protovalidate
import pytest
from google.protobuf.descriptor_pb2 import (
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

from fangcheng.access.v1 import access_pb2
from fangcheng.wallet.v1 import wallet_pb2

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "protos"
STUBS = sorted(
    ".".join(path.relative_to(PROTOS).with_suffix("").parts)
    for path in PROTOS.joinpath("fangcheng").rglob("*_pb2*.py")
)

sys.path.insert(0, str(ROOT / "tools"))
protodoc = importlib.import_module("protodoc")


@pytest.fixture(scope="module")
def files() -> list[FileDescriptorProto]:
    found = protodoc.load()
    assert len(found) == len(list(PROTOS.joinpath("fangcheng").rglob("*.proto")))
    return found


def test_everything_in_the_contracts_has_a_comment(files: list[FileDescriptorProto]) -> None:
    assert sum(1 for file in files for _ in protodoc.elements(file)) > 300
    assert protodoc.uncommented(files) == []


def test_an_element_without_a_comment_is_found(files: list[FileDescriptorProto]) -> None:
    bare = FileDescriptorProto()
    bare.CopyFrom(next(file for file in files if file.service))
    del bare.source_code_info.location[:]
    assert len(protodoc.uncommented([bare])) == sum(1 for _ in protodoc.elements(bare))


def test_every_call_says_who_may_make_it(files: list[FileDescriptorProto]) -> None:
    calls = [
        (name, element.options.Extensions[access_pb2.access])
        for file in files
        for name, element, _ in protodoc.elements(file)
        if isinstance(element, MethodDescriptorProto)
    ]
    assert calls
    for name, access in calls:
        assert access.roles, name
        assert access_pb2.ROLE_UNSPECIFIED not in access.roles, name
        assert not access.services or access_pb2.ROLE_SERVICE in access.roles, name


def test_the_page_names_every_service_and_call(files: list[FileDescriptorProto]) -> None:
    page = protodoc.render(files)
    for file in files:
        for name, element, _ in protodoc.elements(file):
            if isinstance(element, MethodDescriptorProto | ServiceDescriptorProto):
                assert f"# {name}\n" in page


def test_the_stubs_import_without_a_warning_in_a_fresh_interpreter() -> None:
    assert any(name.endswith("_pb2_grpc") for name in STUBS)
    code = "".join(f"import {name}\n" for name in STUBS) + "import protovalidate\n"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_limits_are_read_from_the_stubs_at_run_time() -> None:
    request = wallet_pb2.DepositRequest(request_id="r", player_id="p", currency="silver", amount=-5)
    (violation,) = protovalidate.collect_violations(request)
    assert violation.proto.field.elements[0].field_name == "amount"
