"""The errors that a handler may raise, and the one place where they become a status.

``NotFound("UNKNOWN_TABLE", "There is no table t-17.", field="table_id")`` reaches the caller as
NOT_FOUND with that message and, as ``google.rpc`` details, an ``ErrorInfo`` (reason, domain
``fangcheng``, metadata with the field among it) and a ``BadRequest`` naming the field.

Anything else that a handler raises is a fault of ours: it is logged, and the caller sees INTERNAL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import ClassVar

import grpc
import grpc.aio
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from fangcheng_client import explain

DOMAIN = "fangcheng"
DETAILS_KEY = "grpc-status-details-bin"

# A status travels in HTTP/2 trailers, which peers limit to 8 KiB: the message percent-encoded, nine
# bytes for a Chinese character, and the details in base 64.
_MOST_MESSAGE = 300
_MOST_VALUE = 200
_MOST_ENTRIES = 16
_MOST_DETAILS_BYTES = 3_500


class ServiceError(Exception):
    """A call is refused, for a reason that the caller is told."""

    code: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        reason: str,
        message: str,
        field: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        """``reason``: UPPER_SNAKE, stable. ``message``: for a person. ``field``: of the request."""
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.field = field
        self.metadata = dict(metadata or {})

    @property
    def violations(self) -> Sequence[tuple[str, str]]:
        """The fields that were wrong and what was wrong with each."""
        return [(self.field, self.message)] if self.field else []


class InvalidArgument(ServiceError):
    """The request is wrong whatever the state; repeating it does not help."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class InvalidRequest(InvalidArgument):
    """The request breaks the limits that the contract declares."""

    def __init__(self, violations: Sequence[tuple[str, str]]) -> None:
        """``violations``: at least one pair of a field's path and what is wrong with it."""
        field, description = violations[0]
        super().__init__("INVALID_REQUEST", f"{field}: {description}" if field else description)
        self.field = field or None
        self._violations = violations

    @property
    def violations(self) -> Sequence[tuple[str, str]]:
        """The fields that were wrong and what was wrong with each."""
        return self._violations


class Unauthenticated(ServiceError):
    """Nobody knows who is calling."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(ServiceError):
    """This caller may not."""

    code = grpc.StatusCode.PERMISSION_DENIED


class NotFound(ServiceError):
    """What the request names does not exist."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(ServiceError):
    """It exists already, and is another."""

    code = grpc.StatusCode.ALREADY_EXISTS


class FailedPrecondition(ServiceError):
    """Not in this state; the caller must change something first."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class OutOfRange(ServiceError):
    """Past what there is."""

    code = grpc.StatusCode.OUT_OF_RANGE


class ResourceExhausted(ServiceError):
    """Too much, or too slow."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(
        self,
        reason: str,
        message: str,
        field: str | None = None,
        metadata: Mapping[str, str] | None = None,
        *,
        retry_after_seconds: float | None = None,
    ) -> None:
        """``retry_after_seconds``: when to try again; the caller gets it as a ``RetryInfo``."""
        super().__init__(reason, message, field, metadata)
        self.retry_after_seconds = retry_after_seconds


class Aborted(ServiceError):
    """Somebody else was first; the caller may begin again at a higher level."""

    code = grpc.StatusCode.ABORTED


class Unavailable(ServiceError):
    """Not now; repeating the call may help."""

    code = grpc.StatusCode.UNAVAILABLE


class Internal(ServiceError):
    """A fault of ours, of which the caller learns nothing but that it is ours."""

    code = grpc.StatusCode.INTERNAL

    def __init__(self) -> None:
        super().__init__("INTERNAL", "The service failed; its log says more under the request id.")


# What another service answers passes on to our caller only as far as it says "not now".
_PASSING = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)


def refusal(error: Exception) -> ServiceError:
    """What the caller is told of an exception: itself, or ``Internal`` where it is not meant."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, grpc.aio.AioRpcError) and error.code() in _PASSING:
        return Unavailable(
            "DEPENDENCY_UNAVAILABLE", "A service that this call needs does not answer."
        )
    return Internal()


def passed_on(error: grpc.aio.AioRpcError) -> ServiceError:
    """What another replica of this service has refused a call with, to be told as our own."""
    problem = explain(error)
    kind = _BY_CODE.get(problem.code)
    if kind is None:
        return refusal(error)
    told = problem.reason, problem.message, problem.field, problem.metadata
    if kind is ResourceExhausted:
        return ResourceExhausted(*told, retry_after_seconds=problem.retry_after_seconds)
    return kind(*told)


_BY_CODE: dict[grpc.StatusCode, type[ServiceError]] = {
    kind.code: kind
    for kind in (
        *(InvalidArgument, Unauthenticated, PermissionDenied, NotFound, AlreadyExists),
        *(FailedPrecondition, OutOfRange, ResourceExhausted, Aborted, Unavailable),
    )
}


def status_message(error: ServiceError) -> str:
    """The message of an error, shortened to what fits."""
    return _short(error.message, _MOST_MESSAGE)


def details(error: ServiceError) -> bytes:
    """The ``google.rpc.Status`` of an error, for the trailing metadata, shortened to what fits."""
    entries = _MOST_ENTRIES
    while True:
        status = _status(error, entries)
        if entries == 0 or status.ByteSize() <= _MOST_DETAILS_BYTES:
            return status.SerializeToString()
        entries //= 2


def _status(error: ServiceError, entries: int) -> Status:
    info = ErrorInfo(reason=error.reason, domain=DOMAIN)
    for key, value in list(error.metadata.items())[:entries]:
        info.metadata[key] = _short(value, _MOST_VALUE)
    if error.field:
        info.metadata["field"] = _short(error.field, _MOST_VALUE)
    status = Status(code=error.code.value[0], message=status_message(error))
    status.details.add().Pack(info)
    if isinstance(error, ResourceExhausted) and error.retry_after_seconds is not None:
        retry = RetryInfo()
        retry.retry_delay.FromTimedelta(timedelta(seconds=error.retry_after_seconds))
        status.details.add().Pack(retry)
    if error.violations and entries:
        bad = BadRequest()
        for field, description in error.violations[:entries]:
            bad.field_violations.add(
                field=_short(field, _MOST_VALUE), description=_short(description, _MOST_VALUE)
            )
        status.details.add().Pack(bad)
    return status


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
