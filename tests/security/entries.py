"""A request for each call, and what becomes of another player who makes it.

A call without an entry fails its test. A request names what is a player's own (`World`), so that
the right player is let in with it, and another is refused for the reason of the entry. Where
nothing of a player is named, or another may, the entry says so in words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from fangcheng.evaluation.v1 import evaluation_pb2
from fangcheng.matchmaking.v1 import matchmaking_pb2, operations_pb2, rooms_pb2
from fangcheng.matchmaking.v1 import privacy_pb2 as matchmaking_privacy
from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import operators_pb2, records_pb2, state_pb2, table_pb2
from fangcheng.table.v1 import privacy_pb2 as table_privacy
from fangcheng.wallet.v1 import privacy_pb2 as wallet_privacy
from fangcheng.wallet.v1 import settlement_pb2, wallet_pb2

from .callers import HOST, OWN


@dataclass(frozen=True)
class World:
    """What the requests name: of `OWN`, but for the room, which is `HOST`'s."""

    table_id: str
    """He sits there, and the first hand has not begun."""
    finished_id: str
    """He sat there; its one hand has ended and was paid."""
    ticket_id: str
    """The one that brought him to the table."""
    room_id: str
    hold_id: str


@dataclass(frozen=True)
class Entry:
    """How a call is made."""

    request: Callable[[World], Message]
    refused: str = ""
    """The reason with which a player is refused who has nothing to do with what is named."""
    open: str = ""
    """Why another player may do the same; needed where something is named and `refused` is not."""
    own: str = OWN
    """The right player."""


KELE = rules_pb2.RuleSetChoice(id="baishan_kele")
HAND = evaluation_pb2.Hand(concealed=[11, 12, 13, 24, 25, 26, 37, 37, 37, 41, 41, 46, 46])
OVER = rules_pb2.FinishedHand(dealer=1, seats=[rules_pb2.SeatHand()] * 4, draw=rules_pb2.DrawEnd())
PACKED = b"I\0\0\0\0\x92\0\0\0\0\x0c\0\2\0\1\0" + bytes(16)
AS_ORDER = {"request_id": "order", "reason": "a test", "case_id": "case-1"}


def privacy(messages: Any) -> dict[str, Entry]:
    """Calls that each process has about what it keeps of a player."""
    return {
        "ExportPlayer": Entry(lambda _: messages.ExportPlayerRequest(player_id="nobody")),
        "ErasePlayer": Entry(
            lambda _: messages.ErasePlayerRequest(
                request_id="e", player_id="nobody", reason="a test"
            )
        ),
    }


EVALUATION = {
    "ListRuleSets": Entry(lambda _: evaluation_pb2.ListRuleSetsRequest()),
    "Analyze": Entry(lambda _: evaluation_pb2.AnalyzeRequest(rules=KELE, hand=HAND)),
    "AnalyzeBatch": Entry(
        lambda _: evaluation_pb2.AnalyzeBatchRequest(
            requests=[evaluation_pb2.AnalyzeRequest(rules=KELE, hand=HAND)]
        )
    ),
    "Score": Entry(lambda _: evaluation_pb2.ScoreRequest(rules=KELE, hand=OVER)),
    "ScoreBatch": Entry(
        lambda _: evaluation_pb2.ScoreBatchRequest(
            requests=[evaluation_pb2.ScoreRequest(rules=KELE, hand=OVER)]
        )
    ),
    "EvaluateHands": Entry(
        lambda _: evaluation_pb2.EvaluateHandsRequest(
            rule_set="baishan_kele", layout=1, hands=PACKED
        )
    ),
    "StreamHands": Entry(
        lambda _: evaluation_pb2.StreamHandsRequest(rule_set="baishan_kele", layout=1, hands=PACKED)
    ),
}

MATCHMAKING = {
    "ListPools": Entry(lambda _: matchmaking_pb2.ListPoolsRequest()),
    "JoinQueue": Entry(
        lambda _: matchmaking_pb2.JoinQueueRequest(request_id="j", pool_id="no such pool")
    ),
    "WatchTicket": Entry(
        lambda world: matchmaking_pb2.WatchTicketRequest(ticket_id=world.ticket_id),
        "UNKNOWN_TICKET",
    ),
    "LeaveQueue": Entry(
        lambda world: matchmaking_pb2.LeaveQueueRequest(ticket_id=world.ticket_id),
        "UNKNOWN_TICKET",
    ),
    "AvoidPlayer": Entry(
        lambda _: matchmaking_pb2.AvoidPlayerRequest(player_id="zoe"),
        open="each says for himself whom he avoids, and nobody is told",
    ),
    "GetPlayerStatus": Entry(
        lambda _: matchmaking_pb2.GetPlayerStatusRequest(player_id=OWN), "NOT_YOUR_STATUS"
    ),
    "PausePool": Entry(lambda _: operations_pb2.PausePoolRequest(pool_id="no such pool")),
    "ResumePool": Entry(lambda _: operations_pb2.ResumePoolRequest(pool_id="no such pool")),
    "BarPair": Entry(
        lambda _: operations_pb2.BarPairRequest(player_id="yan", other_id="zoe", reason="a test")
    ),
    "UnbarPair": Entry(lambda _: operations_pb2.UnbarPairRequest(player_id="yan", other_id="zoe")),
    "ListBarredPairs": Entry(lambda _: operations_pb2.ListBarredPairsRequest(player_id="yan")),
    "ListRoomTemplates": Entry(lambda _: rooms_pb2.ListRoomTemplatesRequest()),
    "OpenRoom": Entry(
        lambda _: rooms_pb2.OpenRoomRequest(request_id="o", template_id="no such kind")
    ),
    "EnterRoom": Entry(
        lambda _: rooms_pb2.EnterRoomRequest(code="000000"),
        open="a code is for whoever has it",
    ),
    "LeaveRoom": Entry(
        lambda _: rooms_pb2.LeaveRoomRequest(room_id="no such room"),
        open="who is not in it leaves nothing, and is answered all the same",
    ),
    "ChooseSeat": Entry(
        lambda world: rooms_pb2.ChooseSeatRequest(room_id=world.room_id, seat=2),
        "UNKNOWN_ROOM",
        own=HOST,
    ),
    "SetReady": Entry(
        lambda world: rooms_pb2.SetReadyRequest(room_id=world.room_id, ready=True),
        "UNKNOWN_ROOM",
        own=HOST,
    ),
    "TurnOut": Entry(
        lambda world: rooms_pb2.TurnOutRequest(room_id=world.room_id, player_id=HOST),
        "UNKNOWN_ROOM",
        own=HOST,
    ),
    "StartRoom": Entry(
        lambda world: rooms_pb2.StartRoomRequest(room_id=world.room_id), "UNKNOWN_ROOM", own=HOST
    ),
    "WatchRoom": Entry(
        lambda world: rooms_pb2.WatchRoomRequest(room_id=world.room_id), "UNKNOWN_ROOM", own=HOST
    ),
}

TABLE = {
    "CreateTable": Entry(
        lambda _: table_pb2.CreateTableRequest(
            request_id="c",
            rules=rules_pb2.RuleSetChoice(id="no such rules"),
            seats=[table_pb2.SeatAssignment(player_id=name) for name in "wxyz"],
        )
    ),
    "GetTable": Entry(
        lambda world: table_pb2.GetTableRequest(table_id=world.table_id),
        open="what everybody may see of a table",
    ),
    "ListTables": Entry(
        lambda _: table_pb2.ListTablesRequest(player_id=OWN),
        open="who sits where is seen by everybody",
    ),
    "Attend": Entry(lambda world: table_pb2.AttendRequest(table_id=world.table_id), "NOT_SEATED"),
    "AttendMany": Entry(
        lambda world: table_pb2.AttendManyRequest(
            add=table_pb2.AddSeat(player_id=OWN, table_id=world.finished_id)
        )
    ),
    "Act": Entry(
        lambda world: table_pb2.ActRequest(
            table_id=world.table_id, decision_id="1-1", action=state_pb2.Action(kind="pass")
        ),
        "NOT_SEATED",
    ),
    "Watch": Entry(
        lambda world: table_pb2.WatchRequest(table_id=world.table_id),
        open="the spectators' view is for everybody",
    ),
    "WatchTables": Entry(lambda _: table_pb2.WatchTablesRequest()),
    "Say": Entry(
        lambda world: table_pb2.SayRequest(table_id=world.table_id, phrase="no such phrase"),
        "NOT_SEATED",
    ),
    "LeaveTable": Entry(
        lambda world: table_pb2.LeaveTableRequest(
            table_id=world.finished_id, mode=table_pb2.LEAVE_MODE_AFTER_HAND
        ),
        "NOT_SEATED",
    ),
    "ProposeDissolution": Entry(
        lambda world: table_pb2.ProposeDissolutionRequest(table_id=world.table_id, hand_number=9),
        "NOT_SEATED",
    ),
    "GetHandRecord": Entry(
        lambda world: records_pb2.GetHandRecordRequest(table_id=world.finished_id, hand_number=1),
        "NOT_SEATED",
    ),
    "ListHandRecords": Entry(
        lambda _: records_pb2.ListHandRecordsRequest(player_id=OWN), "OTHER_PLAYER"
    ),
    "StreamFinishedHands": Entry(lambda _: records_pb2.StreamFinishedHandsRequest()),
    "RemoveFromTable": Entry(
        lambda world: operators_pb2.RemoveFromTableRequest(
            table_id=world.table_id, player_id="zoe", **AS_ORDER
        )
    ),
    "VoidHand": Entry(
        lambda world: operators_pb2.VoidHandRequest(
            table_id=world.finished_id, hand_number=9, **AS_ORDER
        )
    ),
    "CloseTable": Entry(
        lambda world: operators_pb2.CloseTableRequest(table_id=world.finished_id, **AS_ORDER)
    ),
    "SeatPlayer": Entry(
        lambda world: operators_pb2.SeatPlayerRequest(
            table_id=world.table_id,
            player=table_pb2.SeatAssignment(player_id="zoe"),
            **AS_ORDER,
        )
    ),
    "ListOperatorActions": Entry(lambda _: operators_pb2.ListOperatorActionsRequest()),
}

WALLET = {
    "PlaceHolds": Entry(
        lambda _: settlement_pb2.PlaceHoldsRequest(
            request_id="p",
            holds=[settlement_pb2.HoldRequest(player_id=OWN, currency="none", amount=1)],
        )
    ),
    "HandOverHolds": Entry(
        lambda world: settlement_pb2.HandOverHoldsRequest(
            hold_ids=[world.hold_id], table_id="another"
        )
    ),
    "ExtendHolds": Entry(lambda world: settlement_pb2.ExtendHoldsRequest(hold_ids=[world.hold_id])),
    "TopUpHold": Entry(
        lambda world: settlement_pb2.TopUpHoldRequest(
            request_id="t", hold_id="no such hold", amount=1
        )
    ),
    "ReleaseHolds": Entry(lambda _: settlement_pb2.ReleaseHoldsRequest(hold_ids=["no such hold"])),
    "GetHolds": Entry(lambda world: settlement_pb2.GetHoldsRequest(hold_ids=[world.hold_id])),
    "Settle": Entry(
        lambda _: settlement_pb2.SettleRequest(
            key="s", parties=[settlement_pb2.SettlementParty(player_id="zoe")]
        )
    ),
    "SettleBatch": Entry(
        lambda _: settlement_pb2.SettleBatchRequest(
            settlements=[
                settlement_pb2.SettleRequest(
                    key="s", parties=[settlement_pb2.SettlementParty(player_id="zoe")]
                )
            ]
        )
    ),
    "GetSettlement": Entry(
        lambda world: settlement_pb2.GetSettlementRequest(key=f"{world.finished_id}/1")
    ),
    "ReverseSettlement": Entry(
        lambda _: settlement_pb2.ReverseSettlementRequest(key="no such key", reason="a test")
    ),
    "ListCurrencies": Entry(lambda _: wallet_pb2.ListCurrenciesRequest()),
    "OpenWallet": Entry(lambda _: wallet_pb2.OpenWalletRequest(player_id=OWN)),
    "GetBalances": Entry(lambda _: wallet_pb2.GetBalancesRequest(player_id=OWN), "NOT_YOUR_WALLET"),
    "Deposit": Entry(
        lambda _: wallet_pb2.DepositRequest(
            request_id="d", player_id=OWN, currency="none", amount=1
        )
    ),
    "Withdraw": Entry(
        lambda _: wallet_pb2.WithdrawRequest(
            request_id="w", player_id=OWN, currency="none", amount=1
        )
    ),
    "ListEntries": Entry(lambda _: wallet_pb2.ListEntriesRequest(player_id=OWN), "NOT_YOUR_WALLET"),
    "ListHolds": Entry(lambda _: wallet_pb2.ListHoldsRequest(player_id=OWN), "NOT_YOUR_WALLET"),
    "GetLeaderboard": Entry(
        lambda _: wallet_pb2.GetLeaderboardRequest(currency="silver", player_id=OWN),
        open="a board is made to be seen",
    ),
    "StreamEntries": Entry(lambda _: wallet_pb2.StreamEntriesRequest()),
    "FreezePlayer": Entry(
        lambda _: wallet_pb2.FreezePlayerRequest(
            request_id="f", player_id="no such player", reason="a test"
        )
    ),
    "UnfreezePlayer": Entry(
        lambda _: wallet_pb2.UnfreezePlayerRequest(
            request_id="f", player_id="no such player", reason="a test"
        )
    ),
    "CollectReceivable": Entry(
        lambda _: wallet_pb2.CollectReceivableRequest(
            request_id="c", player_id=OWN, currency="none", amount=1, reason="a test"
        )
    ),
    "AuditLedger": Entry(lambda _: wallet_pb2.AuditLedgerRequest()),
    "VerifyLedger": Entry(lambda _: wallet_pb2.VerifyLedgerRequest()),
}

ENTRIES: dict[str, dict[str, Entry]] = {
    "evaluation": EVALUATION,
    "matchmaking": MATCHMAKING | privacy(matchmaking_privacy),
    "table": TABLE | privacy(table_privacy),
    "wallet": WALLET | privacy(wallet_privacy),
}
"""By the process that serves the call, and its name."""

ELSEWHERE = {"AdmissionService": "a studio serves it, and matchmaking asks"}
"""Services of the contracts that no process of the suite has."""
