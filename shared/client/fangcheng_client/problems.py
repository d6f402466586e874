"""``explain``: what a refused call says, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from fangcheng_client.reasons import find

DETAILS_KEY = "grpc-status-details-bin"

_PASSING_CODES = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED})
_PASSING_REASONS = frozenset(
    {"EVALUATOR_BUSY", "READER_TOO_SLOW", "TOO_MANY_CALLS", "TOO_MANY_STREAMS"}
)
# What gRPC tells instead of the status where a stream ends while a message is being written.
_LOST_STATUS = "Internal error from Core"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a call was refused."""

    code: grpc.StatusCode
    """The gRPC status, for deciding whether to repeat."""
    reason: str
    """What went wrong, UPPER_SNAKE, such as ``STALE_DECISION``; the status's name where the service
    gave none (it never got the call, or gRPC itself refused it)."""
    message: str
    """For a person; the wording may change."""
    field: str | None = None
    """The field of the request that was wrong, such as ``seats[2].player_id``."""
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What else the reason states."""
    retry_after_seconds: float | None = None
    """When to try again, where the service said."""

    @property
    def ended_with_token(self) -> bool:
        """Whether a stream has ended because the token expired with which it was opened. It goes on
        with another token; the same one would be refused."""
        return self.reason == "TOKEN_EXPIRED" and self.metadata.get("ended") == "stream"

    @property
    def passes(self) -> bool:
        """Whether it passes by waiting, so that what may be repeated is to be asked again."""
        return (
            self.code in _PASSING_CODES or self.reason in _PASSING_REASONS or self.ended_with_token
        )

    def cure(self, language: str = "en") -> str:
        """What to do about it, by the catalogue in ``reasons``: in ``en`` or ``zh``; empty for a
        reason and a status that are not in it."""
        known = find(self.reason, self.code)
        return "" if known is None else known.cure(language)

    def __str__(self) -> str:
        where = f" (field {self.field})" if self.field else ""
        return f"{self.reason}: {self.message}{where}"


def explain(error: grpc.RpcError) -> Problem:
    """Read the reason, field and metadata out of the error of a call."""
    code, message, trailing = _parts(error)
    for key, value in trailing:
        if key != DETAILS_KEY or not isinstance(value, bytes):
            continue
        try:
            status = Status.FromString(value)
        except DecodeError:
            continue
        info, retry = ErrorInfo(), RetryInfo()
        if any(detail.Unpack(info) for detail in status.details):
            metadata = dict(info.metadata)
            field = metadata.pop("field", None)
            after_seconds = None
            if any(detail.Unpack(retry) for detail in status.details):
                after_seconds = retry.retry_delay.ToTimedelta().total_seconds()
            return Problem(code, info.reason, status.message, field, metadata, after_seconds)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "larger than max" in message:
        # gRPC refuses these before the service sees them, so nobody could add a reason.
        return Problem(code, "MESSAGE_TOO_LARGE", message)
    # RST_STREAM: so a proxy, such as Envoy, ends a stream whose server it has lost.
    is_cut = code is grpc.StatusCode.INTERNAL and "RST_STREAM" in message
    if is_cut or message == _LOST_STATUS:
        return Problem(grpc.StatusCode.UNAVAILABLE, "STREAM_LOST", message)
    return Problem(code, code.name, message)


def _parts(error: grpc.RpcError) -> tuple[grpc.StatusCode, str, list[tuple[str, str | bytes]]]:
    """Code, message and trailing metadata; both of gRPC's Python APIs have them as methods."""
    call: Any = error
    try:
        code, message, trailing = call.code(), call.details(), call.trailing_metadata()
    except AttributeError:  # neither of gRPC's own: nothing is known but its text
        return grpc.StatusCode.UNKNOWN, str(error), []
    return code, message or "", [(str(key), value) for key, value in trailing or ()]
