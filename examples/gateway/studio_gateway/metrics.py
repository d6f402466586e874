"""What there is to see of the gateway. Labels are bounded: never a player or a table."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The metrics of one gateway."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.connections = Gauge(
            "gateway_connections", "Connections of players.", registry=self.registry
        )
        self.seats = Gauge("gateway_seats", "Seats that are attended.", registry=self.registry)
        self.frames = Counter(
            "gateway_frames_total", "Frames to clients.", ["kind"], registry=self.registry
        )
        self.closed = Counter(
            "gateway_closed_total", "Connections closed.", ["reason"], registry=self.registry
        )
        self.bad_frames = Counter(
            "gateway_bad_frames_total", "Frames that were refused.", registry=self.registry
        )
        self.breaks = Counter(
            "gateway_breaks_total", "Breaks of the stream to the tables.", registry=self.registry
        )
        self.act_seconds = Histogram(
            "gateway_act_seconds", "From an act to its answer.", registry=self.registry
        )
