#!/usr/bin/env python3
"""Ask a service whether it is ready: `fangcheng-healthy HOST:PORT`; 0 where it is, otherwise 1.

For the health checks of containers, every few seconds: it imports nothing but what Python has.
HOST:PORT is where its metrics are, for there nobody needs a certificate. Kubernetes asks by itself.
"""

import http.client
import sys

TIMEOUT_SECONDS = 3.0


def main(address: str) -> int:
    """The exit code; what is wrong goes to standard error, which `docker inspect` shows."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/ready")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        print(f"{address}: {error}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    if status != http.client.OK:
        print(f"{address}: not ready", file=sys.stderr)
    return int(status != http.client.OK)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: fangcheng-healthy HOST:PORT")
    sys.exit(main(sys.argv[1]))
