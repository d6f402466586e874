#!/usr/bin/env python3
"""Ask a gRPC server for its health: `fangcheng-healthy HOST:PORT`; 0 where it serves, otherwise 1.

For the health checks of containers, every few seconds: it imports gRPC alone, which takes a tenth
of what the whole suite would. Kubernetes asks by itself.
"""

import sys

import grpc

NOTHING = b""  # HealthCheckRequest: of the whole server
SERVING = b"\x08\x01"  # HealthCheckResponse, status (field 1) SERVING
TIMEOUT_SECONDS = 2.0


def main(address: str) -> int:
    """The exit code; what is wrong goes to standard error, which `docker inspect` shows."""
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            answer = check(NOTHING, timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            print(f"{address}: {error.code().name}: {error.details()}", file=sys.stderr)
            return 1
    if answer != SERVING:
        print(f"{address}: not serving", file=sys.stderr)
    return int(answer != SERVING)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: fangcheng-healthy HOST:PORT")
    sys.exit(main(sys.argv[1]))
