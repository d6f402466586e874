"""What only its owner may read stands in no log, no trace and no metric of a whole evening."""

from __future__ import annotations

import json
import re

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .evening import Evening


def in_words(exported: bytes) -> str:
    """All that spans say, without their ids: among so many random bytes is any short word."""
    request = ExportTraceServiceRequest.FromString(exported)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                for one in (span, *span.links):
                    one.trace_id = one.span_id = b""
                span.parent_span_id = b""
    return str(request)


@pytest.fixture(scope="module")
def written(evening: Evening) -> dict[str, str]:
    """All that the processes told of themselves, by where it stands."""
    return {
        "logs": "\n".join(json.dumps(line, ensure_ascii=False) for line in evening.lines),
        "traces": "\n".join(map(in_words, evening.spans)),
        **{f"metrics of {name}": text for name, text in evening.metrics.items()},
    }


def test_the_evening_was_told_of(written: dict[str, str]) -> None:
    """Or the tests below would find nothing in nothing."""
    assert "TOKEN_INVALID" in written["logs"]
    assert "table created" in written["logs"]
    assert "evaluator.question" in written["traces"]
    assert all("fangcheng_" in text for name, text in written.items() if "metrics" in name)


def test_no_secret_is_in_a_log_a_trace_or_a_metric(
    evening: Evening, written: dict[str, str]
) -> None:
    assert len(evening.secrets) > 20
    found = [
        f"{name} in {where}"
        for name, secret in evening.secrets.items()
        for where, text in written.items()
        # Eight digits may stand within a time or an id.
        if secret in text and re.search(rf"(?<![\w.-]){re.escape(secret)}(?![\w-])", text)
    ]
    assert found == []


def test_nothing_that_looks_like_a_token_is_in_a_log_a_trace_or_a_metric(
    written: dict[str, str],
) -> None:
    """Neither those of the services' own calls, nor a part of one: every token begins like this."""
    for where, text in written.items():
        for sign in ("eyJ", "Bearer", "authorization"):
            assert sign not in text, f"{sign} in {where}"
