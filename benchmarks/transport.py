"""An evaluator that evaluates nothing: what gRPC alone costs, with messages of the same sizes.

    python benchmarks/transport.py PORT_FILE

It answers the packed calls of `EvaluationService` with as many empty results as there are hands,
reading and writing no message. Runs until it is ended.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import prometheus_client
import uvloop

from fangcheng.evaluation.v1 import evaluation_pb2 as pb
from fangcheng_rules import packed

SERVICE = "fangcheng.evaluation.v1.EvaluationService"


@cache
def answer(request_bytes: int) -> bytes:
    """To a request of so many bytes, nearly all of them hands."""
    hands = request_bytes // packed.HAND.itemsize  # the other fields take less than one
    results = bytes(hands * packed.RESULT.itemsize)
    return pb.EvaluateHandsResponse(layout=packed.LAYOUT, results=results).SerializeToString()


async def evaluate_hands(request: bytes, _: Any) -> bytes:
    """One message."""
    return answer(len(request))


async def stream_hands(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
    """One after the other."""
    async for request in requests:
        yield answer(len(request))


async def main(port_file: Path) -> None:
    """Serve, and tell where."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 2**24)])
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "EvaluateHands": grpc.unary_unary_rpc_method_handler(evaluate_hands),
        "StreamHands": grpc.stream_stream_rpc_method_handler(stream_hands),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    metrics, _ = prometheus_client.start_http_server(0, "127.0.0.1")
    told = {"listen": f"127.0.0.1:{port}", "metrics": f"127.0.0.1:{metrics.server_port}"}
    ready = port_file.with_suffix(".part")
    ready.write_text(json.dumps(told), "utf-8")
    ready.rename(port_file)
    await server.wait_for_termination()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
