"""The contracts: commented to the last field, guarded to the last call, and importable."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import protovalidate
import pytest
from google.protobuf import text_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    FileDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from fangcheng.access.v1 import access_pb2
from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.wallet.v1 import wallet_pb2
from fangcheng_evaluation import bulk
from fangcheng_evaluation.service import analysis_of, score_of
from fangcheng_rules.packed import evaluate
from tests.examples import examples_of, protodoc

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "protos"
STUBS = sorted(
    ".".join(path.relative_to(PROTOS).with_suffix("").parts)
    for path in PROTOS.joinpath("fangcheng").rglob("*_pb2*.py")
)


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


@pytest.fixture(scope="module")
def examples(files: list[FileDescriptorProto]) -> dict[str, list[str]]:
    """The examples of each message, as text."""
    return examples_of(files)


@pytest.fixture(scope="module")
def parsed(examples: dict[str, list[str]]) -> list[Message]:
    pool = Default()
    for name in STUBS:
        importlib.import_module(name)
    return [
        text_format.Parse(text[1:-1], GetMessageClass(pool.FindMessageTypeByName(name))())
        for name, texts in examples.items()
        for text in texts
    ]


def filled_in_by_callers(message: Descriptor, seen: set[str]) -> Iterator[str]:
    """A request and the messages in it, as far as they have fields and are ours."""
    entry = message.GetOptions().map_entry
    if message.full_name in seen or not message.full_name.startswith("fangcheng."):
        return
    seen.add(message.full_name)
    if message.fields and not entry:
        yield message.full_name
    for field in message.fields:
        if field.message_type is not None:
            yield from filled_in_by_callers(field.message_type, seen)


def test_whatever_a_caller_fills_in_has_an_example(
    files: list[FileDescriptorProto], examples: dict[str, list[str]], parsed: list[Message]
) -> None:
    pool, seen = Default(), set[str]()
    requests = [
        element.input_type.removeprefix(".")
        for file in files
        for _, element, _ in protodoc.elements(file)
        if isinstance(element, MethodDescriptorProto)
    ]
    wanted = [
        name
        for request in requests
        for name in filled_in_by_callers(pool.FindMessageTypeByName(request), seen)
    ]
    assert len(wanted) > 40
    assert [name for name in wanted if not examples[name]] == []


def test_examples_are_what_they_say_and_within_the_limits(parsed: list[Message]) -> None:
    assert len(parsed) > 70
    for example in parsed:
        assert protovalidate.collect_violations(example) == [], example


def test_the_hands_of_the_examples_are_answered(parsed: list[Message]) -> None:
    analyses = [
        analysis_of(one) for one in parsed if isinstance(one, evaluation_pb2.AnalyzeRequest)
    ]
    assert [[wait.tile for wait in analysis.waits] for analysis in analyses] == [[41, 46]]
    scores = [score_of(one) for one in parsed if isinstance(one, evaluation_pb2.ScoreRequest)]
    assert [score.winners[0].fan for score in scores] == [4]
    kinds = evaluation_pb2.EvaluateHandsRequest, evaluation_pb2.StreamHandsRequest
    batches = [bulk.read(one) for one in parsed if isinstance(one, kinds)]
    results = [evaluate(batch.rules, batch.hands, batch.ask)[0] for batch in batches]
    assert [int(found["waits"]) for found in results] == [1 << 27 | 1 << 32] * 2


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
