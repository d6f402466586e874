"""Moments in requests: protobuf lets a ``Timestamp`` hold what is no time."""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from fangcheng_kit.errors import InvalidArgument


class InvalidTime(InvalidArgument):
    """A timestamp that is none."""

    def __init__(self, field: str) -> None:
        super().__init__("INVALID_TIME", "This is no moment between the years 1 and 9999.", field)


def moment(request: Message, field: str) -> Timestamp | None:
    """The moment in a field; ``None``: it is not set. Raises ``InvalidTime`` for what is no time.

    That is what is outside of the years 1 to 9999, as the message's definition says.
    """
    if not request.HasField(field):
        return None
    time: Timestamp = getattr(request, field)
    if not (-62135596800 <= time.seconds < 253402300800 and 0 <= time.nanos < 1_000_000_000):
        raise InvalidTime(field)
    return time
