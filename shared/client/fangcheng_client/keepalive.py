"""Keepalive of clients and servers, shipped as a pair.

A server answers pings that come more often than it allows with ENHANCE_YOUR_CALM and closes the
connection. So both sides stand here together: the client pings every ``CLIENT_PING_SECONDS``, the
server allows twice as often.
"""

from __future__ import annotations

CLIENT_PING_SECONDS = 20
SERVER_ALLOWS_SECONDS = CLIENT_PING_SECONDS // 2
TIMEOUT_SECONDS = 10

Option = tuple[str, int | str]

CLIENT_OPTIONS: tuple[Option, ...] = (
    ("grpc.keepalive_time_ms", CLIENT_PING_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", TIMEOUT_SECONDS * 1000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

SERVER_OPTIONS: tuple[Option, ...] = (
    ("grpc.keepalive_time_ms", CLIENT_PING_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", TIMEOUT_SECONDS * 1000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", SERVER_ALLOWS_SECONDS * 1000),
)
