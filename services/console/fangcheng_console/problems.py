"""What is answered instead of what was asked for: a status, and a reason that a program can read.

Every refusal of the API has the same shape, whoever refused, the console or a service behind it:
`{"error": {"reason": "UNKNOWN_TABLE", "message": "…", "field": "", "zh": "没有这张牌桌。"}}`; `zh`
is what the catalogue of reasons says in Chinese, empty where it does not know the reason.
"""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fangcheng_client import explain
from fangcheng_client.reasons import find

from .oplog import LogUnavailable

_STATUSES = {
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.FAILED_PRECONDITION: 409,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 503,
    grpc.StatusCode.CANCELLED: 503,
}


_LONGEST_PATH = 200


class Refused(Exception):
    """A request that the console refuses."""

    def __init__(self, status: int, reason: str, message: str, field: str = "") -> None:
        """`status`: of HTTP. `field`: which one of the request was wrong."""
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.field = field


def answer(status: int, reason: str, message: str, field: str = "") -> JSONResponse:
    """A refusal as an answer of the API."""
    known = find(reason)
    chinese = "" if known is None else known.text("zh").message
    error = {"reason": reason, "message": message, "field": field, "zh": chinese}
    return JSONResponse({"error": error}, status)


def of_call(error: grpc.RpcError) -> Refused:
    """What a service behind the console refused, or that it does not answer."""
    problem = explain(error)
    status = _STATUSES.get(problem.code, 500)
    if status == 500:
        structlog.get_logger().error("a service failed", problem=str(problem))
        return Refused(500, "SERVICE_FAILED", "A service behind the console failed at this.")
    return Refused(status, problem.reason, problem.message, problem.field or "")


def _refused(request: Request, error: Any) -> Response:
    return answer(error.status, error.reason, error.message, error.field)


def _call_failed(request: Request, error: Any) -> Response:
    return _refused(request, of_call(error))


def _unlogged(request: Request, error: Any) -> Response:
    structlog.get_logger().error("the operators' log does not answer", problem=str(error))
    return answer(
        503,
        "LOG_UNAVAILABLE",
        "The operators' log does not answer, and without it nothing is done.",
    )


def _no_such_thing(request: Request, error: Any) -> Response:
    reasons = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}
    return answer(error.status_code, reasons.get(error.status_code, "REFUSED"), str(error.detail))


def _failed(request: Request, error: Exception) -> Response:
    """What went wrong is in the log; it may name what a person must not read."""
    structlog.get_logger().error("a request failed", path=told_path(request), exc_info=error)
    return answer(500, "INTERNAL", "The console failed at this; its log tells why.")


def told_path(request: Request) -> str:
    """A path for the log: short, and without the link that somebody has come by."""
    path: str = request.url.path
    if path.startswith("/api/r/"):
        return "/api/r/…"
    return path if len(path) <= _LONGEST_PATH else path[:_LONGEST_PATH] + "…"


HANDLERS: dict[Any, Any] = {
    Refused: _refused,
    grpc.aio.AioRpcError: _call_failed,
    LogUnavailable: _unlogged,
    HTTPException: _no_such_thing,
    Exception: _failed,
}
"""How Starlette answers what a handler raises."""
