"""A table as a hand is about to begin, as bytes: see `stored/v1/state.proto`."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from fangcheng_rules.errors import RulesError

from .codec import UnknownEvent
from .state import TableState
from .stored.mapping import mapped
from .stored.v1 import state_pb2 as stored

# The hand before is over and settled; the next one begins with the events that follow.
_TO, _BACK = mapped(TableState, stored.TableState.DESCRIPTOR, {}, frozenset({"hand"}))


def freeze(state: TableState) -> bytes:
    """The state of a table that is about to begin a hand."""
    body: bytes = _TO(state).SerializeToString()
    return body


def with_numbers(state: bytes, numbers: Sequence[int]) -> bytes:
    """An opening: the state, and the last number of each viewer then."""
    opening = stored.Opening(state=stored.TableState.FromString(state), numbers=numbers)
    return opening.SerializeToString()


def thaw(opening: bytes) -> tuple[TableState, Sequence[int]]:
    """State and numbers of an opening; raises `UnknownEvent` for one that cannot be read."""
    try:
        read = stored.Opening.FromString(opening)
        state: TableState = _BACK(read.state)
    except (DecodeError, LookupError, ValueError, RulesError) as error:
        raise UnknownEvent(f"an opening that this version cannot read: {error}") from error
    return state, read.numbers
