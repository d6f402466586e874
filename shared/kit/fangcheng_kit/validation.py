"""Requests are checked against the limits that their protos declare."""

from __future__ import annotations

import protovalidate
from google.protobuf.message import Message

from fangcheng_kit.contract import ContractError, Method
from fangcheng_kit.errors import InvalidRequest


class Limits:
    """The limits of the requests of a server, compiled once."""

    def __init__(self) -> None:
        self._validator = protovalidate.Validator()

    def add(self, method: Method) -> None:
        """Compile a call's limits; ``ContractError`` where that fails."""
        if method.limited:
            try:
                self._validator.collect_violations(method.request_type())
            except (protovalidate.CompilationError, protovalidate.EvaluationError) as error:
                raise ContractError(f"{method.path}: {error}") from error

    def check(self, request: Message) -> None:
        """Raise ``InvalidRequest`` with everything that is wrong with a request."""
        violations = self._validator.collect_violations(request)
        if violations:
            raise InvalidRequest([_described(violation) for violation in violations])


def _described(violation: protovalidate.Violation) -> tuple[str, str]:
    proto = violation.proto
    path = ""
    for element in proto.field.elements if proto.field is not None else ():
        path += f".{element.field_name}" if path else element.field_name
        if element.subscript is not None:
            value = element.subscript.value
            path += f'["{value}"]' if isinstance(value, str) else f"[{value}]"
    return path, proto.message or proto.rule_id
