"""What is kept of a finished hand and of an entry of the ledger, as rows of the lake."""

from __future__ import annotations

from datetime import UTC

from fangcheng.table.v1 import events_pb2, records_pb2
from fangcheng.wallet.v1 import wallet_pb2

from .lake import Row


def of_hand(hand: records_pb2.FinishedHand) -> dict[str, list[Row]]:
    """Rows of `hands`, `seats`, `items` and `transfers`, by table.

    A hand whose events were archived has no record, and a row of `hands` alone.
    """
    entry = hand.entry
    key = {
        "table_id": entry.table_id,
        "hand_number": entry.hand_number,
        "ended": entry.ended.ToDatetime(UTC),
        "rule_set": entry.rule_set,
    }
    ended, discards = _end_of(hand.record)
    rows: dict[str, list[Row]] = {
        "hands": [
            {
                **key,
                "ending": entry.ending,
                "won_by": ended.hand.win.by or None,
                "discards": discards if hand.HasField("record") else None,
                "labels": dict(entry.labels),
            }
        ],
        "seats": [],
        "items": [],
        "transfers": [],
    }
    if not ended.hand.seats:
        return rows
    win = ended.hand.win
    fan = {winner.seat: winner.fan for winner in ended.score.winners}
    for seat, player_id in enumerate(entry.player_ids):
        rows["seats"].append(
            {
                **key,
                "seat": seat,
                "player_id": player_id,
                "is_dealer": seat == ended.hand.dealer,
                "won": seat in win.winners,
                "dealt_in": win.by == "discard" and seat == win.from_seat,
                "fan": fan.get(seat),
                "units": ended.net[seat] if ended.net else 0,
            }
        )
    rows["items"] = [
        {
            **key,
            "seat": winner.seat,
            "item": item.id,
            "name_zh": item.name_zh,
            "fan": item.fan,
            "count": item.count,
        }
        for winner in ended.score.winners
        for item in winner.items
    ]
    rows["transfers"] = [
        {
            **key,
            "number": number,
            "from_player": entry.player_ids[paid.from_seat] if paid.HasField("from_seat") else None,
            "to_player": entry.player_ids[paid.to_seat] if paid.HasField("to_seat") else None,
            "units": paid.amount,
            "reason": paid.reason,
        }
        for number, paid in enumerate(ended.score.transfers)
    ]
    return rows


def _end_of(record: records_pb2.HandRecord) -> tuple[events_pb2.HandEnded, int]:
    """How it ended, an empty message where nothing is told; and how many tiles were discarded."""
    ended, discards = events_pb2.HandEnded(), 0
    for event in record.events:
        if event.HasField("hand_ended"):
            ended = event.hand_ended
        discards += event.HasField("discarded")
    return ended, discards


def of_entry(line: wallet_pb2.LedgerEntry) -> Row:
    """A row of `entries`."""
    entry = line.entry
    kind = wallet_pb2.AccountKind.Name(line.kind)
    return {
        "sequence": line.sequence,
        "operation": line.operation,
        "time": entry.time.ToDatetime(UTC),
        "account": kind.removeprefix("ACCOUNT_KIND_").lower(),
        "owner": line.owner or None,
        "currency": entry.currency,
        "book": entry.book or None,
        "amount": entry.amount,
        "verb": line.verb,
        "reason": entry.reason,
        "reference": entry.reference,
        "labels": dict(entry.labels),
    }
