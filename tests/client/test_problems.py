"""Reading the reason out of a refused call, beyond what the kit's tests of calls show."""

from __future__ import annotations

from base64 import b64encode
from urllib.parse import quote

import grpc
import grpc.aio
import pytest

from fangcheng_client import Problem, explain
from fangcheng_kit import errors
from fangcheng_kit.errors import DETAILS_KEY
from fangcheng_kit.tokens import ExpiredToken


def failed(
    code: grpc.StatusCode, message: str, *trailing: tuple[str, str | bytes]
) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(
        code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details=message
    )


def test_a_status_without_details_has_its_own_name_as_reason() -> None:
    problem = explain(failed(grpc.StatusCode.UNAVAILABLE, "failed to connect"))
    assert problem == Problem(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "failed to connect")
    assert str(problem) == "UNAVAILABLE: failed to connect"


@pytest.mark.parametrize(
    "cut",
    [
        "Stream removed (RST_STREAM (Received RST_STREAM with error code 2))",
        "Internal error from Core",  # gRPC, which lost the status
    ],
)
def test_a_stream_that_was_cut_off_is_unavailable(cut: str) -> None:
    problem = explain(failed(grpc.StatusCode.INTERNAL, cut))
    assert problem == Problem(grpc.StatusCode.UNAVAILABLE, "STREAM_LOST", cut)
    assert problem.passes
    other = explain(failed(grpc.StatusCode.INTERNAL, "Oh."))
    assert other.code is grpc.StatusCode.INTERNAL
    assert not other.passes


def test_details_that_cannot_be_read_are_passed_over() -> None:
    error = failed(grpc.StatusCode.ABORTED, "no", (DETAILS_KEY, b"\xff\xff"), ("other", "x"))
    assert explain(error).reason == "ABORTED"


def test_what_the_kit_writes_is_read_back() -> None:
    error = errors.NotFound("UNKNOWN_TABLE", "There is no table t1.", "table_id", {"owner": "b"})
    wire = failed(error.code, error.message, (DETAILS_KEY, errors.details(error)))
    problem = explain(wire)
    assert problem == Problem(
        grpc.StatusCode.NOT_FOUND,
        "UNKNOWN_TABLE",
        "There is no table t1.",
        "table_id",
        {"owner": "b"},
    )
    assert str(problem) == "UNKNOWN_TABLE: There is no table t1. (field table_id)"


def test_an_error_of_nobody_we_know_keeps_its_text() -> None:
    assert explain(grpc.RpcError("odd")) == Problem(grpc.StatusCode.UNKNOWN, "UNKNOWN", "odd")


@pytest.mark.parametrize("letter", ["a", "中"])
@pytest.mark.parametrize("size", [10, 150, 100_000])
def test_a_status_fits_into_the_trailers_however_long_the_error(letter: str, size: int) -> None:
    error = errors.InvalidRequest([(letter * size, letter * size)] * 50)
    error.metadata = {f"key{number}": letter * size for number in range(100)}
    message, details = errors.status_message(error), errors.details(error)
    assert len(quote(message)) + len(b64encode(details)) < 8_000
    problem = explain(failed(error.code, message, (DETAILS_KEY, details)))
    assert problem.reason == "INVALID_REQUEST"
    assert problem.field is not None
    assert problem.field.startswith(letter * 10)


def test_a_stream_whose_token_has_expired_goes_on_with_another() -> None:
    for error, passes in ((ExpiredToken(of_stream=True), True), (ExpiredToken(), False)):
        wire = failed(error.code, error.message, (DETAILS_KEY, errors.details(error)))
        problem = explain(wire)
        assert problem.reason == "TOKEN_EXPIRED"
        assert (problem.passes, problem.ended_with_token) == (passes, passes)
