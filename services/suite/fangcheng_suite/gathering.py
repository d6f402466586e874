"""Facts of finished hands: from the stream of a running table service, or from exported records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import grpc.aio
from google.protobuf import json_format

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import records_pb2, records_pb2_grpc
from fangcheng_client import explain

from .access import Access, Elsewhere
from .errors import SuiteError
from .gathered import Gathered
from .integrity.facts import HandFacts
from .progress import progress
from .recording import option_text, read

AT_ONCE = 200
"""Hands that are kept together with the cursor behind them."""

CLAIMED = frozenset({"chi", "pong", "exposed_kong"})
"""Melds that are laid down with another's discard; to an added kong its pong has counted."""


def facts_of(record: records_pb2.HandRecord, ended_ms: int = 0) -> HandFacts | None:
    """What a record tells of who did what to whom.

    None where nothing can be told: the hand was dissolved, or the record has no end or no four
    players. `ended_ms`: when it ended; 0: as the record says.
    """
    ids = tuple(record.player_ids)
    if len(ids) != 4 or len(set(ids)) != 4 or "" in ids:
        return None
    claims: set[tuple[int, int]] = set()
    away: set[int] = set()
    dealer = -1
    ended = None
    for event in record.events:
        kind = event.WhichOneof("kind")
        if kind == "hand_started":
            dealer = event.hand_started.dealer
        elif kind == "melded" and event.melded.meld.kind in CLAIMED:
            if event.melded.meld.HasField("from_seat"):
                claims.add((event.melded.meld.from_seat, event.melded.seat))
        elif kind == "trustee_changed" and event.trustee_changed.trustee:
            away.add(event.trustee_changed.seat)
        elif kind == "hand_ended":
            ended = event.hand_ended
            ended_ms = ended_ms or event.time.ToMilliseconds()
    if ended is None or dealer < 0 or ended.hand.HasField("dissolved"):
        return None
    win = ended.hand.win
    from_seat = win.from_seat if win.HasField("from_seat") else None
    paid: dict[tuple[int, int], int] = {}
    for transfer in ended.score.transfers:
        if transfer.HasField("from_seat") and transfer.HasField("to_seat"):
            cell = (transfer.from_seat, transfer.to_seat)
            paid[cell] = paid.get(cell, 0) + transfer.amount
    return HandFacts(
        table_id=record.table_id,
        hand_number=record.hand_number,
        rule_set=record.rules.id,
        variant=_variant(record.rules),
        ended_ms=ended_ms,
        players=(ids[0], ids[1], ids[2], ids[3]),
        dealer=dealer,
        deal_ins=tuple((from_seat, winner) for winner in win.winners)
        if from_seat is not None
        else (),
        claims=tuple(sorted(claims)),
        paid=tuple((*cell, units) for cell, units in sorted(paid.items())),
        away=tuple(sorted(away)),
    )


def _variant(rules: rules_pb2.RuleSetChoice) -> str:
    options = (f"{key}={option_text(rules.options[key])}" for key in sorted(rules.options))
    return " ".join((rules.id, str(rules.revision), *options))


def read_files(paths: Sequence[Path]) -> tuple[list[HandFacts], int]:
    """The facts of exported records, each hand once, and how many tell nothing.

    A path is a file that `fangcheng record --json` has written, or a folder of them; in a file
    whose name ends in `.jsonl` each line is one. Raises SuiteError.
    """
    facts: dict[tuple[str, int], HandFacts] = {}
    mute = 0
    with progress("Reading records", unit="hands") as bar:
        for path in paths:
            for record in _records(path.expanduser()):
                told = facts_of(record)
                if told is None:
                    mute += 1
                else:
                    facts[told.table_id, told.hand_number] = told
                bar.advance()
    return list(facts.values()), mute


def _records(path: Path) -> Iterator[records_pb2.HandRecord]:
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix in (".json", ".jsonl"))
        if not found:
            raise SuiteError(f"there is no record in {path}", "Their names end in .json or .jsonl.")
        for file in found:
            yield from _records(file)
    elif path.suffix == ".jsonl":
        try:
            for line in path.read_text("utf-8").splitlines():
                if line.strip():
                    yield json_format.Parse(line, records_pb2.HandRecord())
        except (OSError, UnicodeDecodeError) as error:
            raise SuiteError(f"cannot read {path}", str(error)) from None
        except json_format.ParseError as error:
            raise SuiteError(f"a line of {path} is no record of a hand", str(error)) from None
    else:
        yield read(path)


async def gather(access: Access | Elsewhere, gathered: Gathered) -> int:
    """Keep the hands that were finished since the last time; how many. Raises SuiteError.

    Ends with the newest hand that is finished when this begins. What was kept stays where the
    connection breaks, and the next time goes on behind it.
    """
    count = 0
    waiting: list[records_pb2.FinishedHand] = []
    try:
        async with AsyncExitStack() as stack:
            channel = await stack.enter_async_context(access.channel("table"))
            bar = stack.enter_context(progress("Reading finished hands", unit="hands"))
            stub = records_pb2_grpc.TableRecordServiceStub(channel)
            newest = await stub.ListHandRecords(records_pb2.ListHandRecordsRequest(page_size=1))
            if not newest.hands or _name(newest.hands[0]) == gathered.last:
                return 0
            request = records_pb2.StreamFinishedHandsRequest(
                cursor=gathered.cursor, with_records=True
            )
            async for message in stub.StreamFinishedHands(request):
                # A heartbeat: there is nothing more for now.
                is_last = not message.HasField("hand")
                if not is_last:
                    waiting.append(message.hand)
                    count += 1
                    bar.at(count)
                    is_last = _name(message.hand.entry) == _name(newest.hands[0])
                if len(waiting) >= AT_ONCE or is_last:
                    _keep(waiting, gathered)
                    waiting = []
                if is_last:
                    break
    except grpc.aio.AioRpcError as error:
        if not explain(error).ended_with_token:
            raise access.failed(error, "reading finished hands") from error
        _keep(waiting, gathered)
        return count + await gather(access, gathered)
    return count


def _keep(hands: Sequence[records_pb2.FinishedHand], gathered: Gathered) -> None:
    if not hands:
        return
    facts = []
    for hand in hands:
        told = facts_of(hand.record, hand.entry.ended.ToMilliseconds())
        if told is not None:
            facts.append(told)
    last = hands[-1]
    gathered.add(facts, len(hands) - len(facts), last.cursor, _name(last.entry))


def _name(entry: records_pb2.FinishedHandEntry) -> str:
    return f"{entry.table_id} {entry.hand_number}"
