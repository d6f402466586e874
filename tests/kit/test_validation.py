"""Where the texts of a request are: in messages of any depth, lists and maps."""

from __future__ import annotations

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct

from fangcheng.wallet.v1 import settlement_pb2 as settling
from fangcheng.wallet.v1 import wallet_pb2 as wallet
from fangcheng_kit.errors import InvalidRequest
from fangcheng_kit.validation import Limits


def fields(request: Message) -> list[str]:
    """The fields that are refused for a NUL in them."""
    try:
        Limits().check(request, limited=False)
    except InvalidRequest as error:
        return [field for field, _ in error.violations]
    return []


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (wallet.OpenWalletRequest(player_id="\0"), ["player_id"]),
        (wallet.ListEntriesRequest(book="a\0"), ["book"]),
        (wallet.ListEntriesRequest(labels={"a": "\0b", "c": "d"}), ['labels["a"]']),
        (wallet.ListEntriesRequest(labels={"a\0": "\0b", "c": "d"}), ["labels"]),
        (
            settling.SettleRequest(
                key="\0", parties=[{"player_id": "a"}, {"player_id": "b", "hold_ids": ["c", "\0"]}]
            ),
            ["key", "parties[1].hold_ids[1]"],
        ),
        # A message that contains its own kind.
        (ParseDict({"a": {"b": "\0"}}, Struct()),
         ['fields["a"].struct_value.fields["b"].string_value']),
        # A byte 0 that is no text's: the length of a message without fields, a double.
        (settling.SettleRequest(key="a", parties=[{}]), []),
        (ParseDict({"a": 0}, Struct()), []),
        # Whoever handles a batch checks its items, and refuses them one by one.
        (settling.SettleBatchRequest(settlements=[{"key": "\0"}]), []),
    ],
)  # fmt: skip
def test_every_text_with_nul_is_found(request_: Message, expected: list[str]) -> None:
    assert fields(request_) == expected
