"""Records of hands: from the running suite or a file, in words or as JSON, and checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc.aio
from google.protobuf import json_format
from rich.console import Console
from rich.text import Text

from fangcheng.rules.v1 import rules_pb2
from fangcheng.table.v1 import (
    records_pb2,
    records_pb2_grpc,
    table_pb2,
    table_pb2_grpc,
)
from fangcheng_client.view import TableView, before_hand

from .access import Access
from .errors import SuiteError, from_call
from .render import Ink
from .verify import verify
from .watching import find_table, told

TILES_A_LINE = 34


async def fetched(
    access: Access, given: str, hand_number: int
) -> tuple[records_pb2.HandRecord, bytes]:
    """A hand's record from the running suite, and the commitment that its table tells."""
    table_id = await find_table(access, given)
    async with access.channel("table") as channel:
        try:
            table = await table_pb2_grpc.TableServiceStub(channel).GetTable(
                table_pb2.GetTableRequest(table_id=table_id)
            )
            answer = await records_pb2_grpc.TableRecordServiceStub(channel).GetHandRecord(
                records_pb2.GetHandRecordRequest(table_id=table_id, hand_number=hand_number)
            )
        except grpc.aio.AioRpcError as error:
            raise from_call(error, f"hand {hand_number} of table {table_id}") from error
    return answer.record, table.table.commitment


def read(file: Path) -> records_pb2.HandRecord:
    """A record that was exported as JSON; raises SuiteError."""
    try:
        return json_format.Parse(file.read_text("utf-8"), records_pb2.HandRecord())
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"cannot read {file}", str(error)) from None
    except json_format.ParseError as error:
        raise SuiteError(
            f"{file} is no record of a hand", "`fangcheng record TABLE HAND --json` writes one."
        ) from error


async def found(
    access: Callable[[], Access], given: str, hand_number: int | None
) -> records_pb2.HandRecord:
    """A record from a file, or from the running suite where a hand is named."""
    if hand_number is not None:
        return (await fetched(access(), given, hand_number))[0]
    return read(_file(given))


def _file(given: str) -> Path:
    file = Path(given).expanduser()
    if not file.exists():
        raise SuiteError(
            f"there is no file {given}", "Name a table and the number of its hand, or a file."
        )
    return file


async def export(
    access: Access,
    console: Console,
    ink: Ink,
    given: str,
    hand_number: int,
    *,
    as_json: bool,
    file: Path | None,
) -> None:
    """Print a record, or write it into a file."""
    record, _ = await fetched(access, given, hand_number)
    if as_json:
        text = json_format.MessageToJson(record, preserving_proto_field_name=True) + "\n"
    else:
        text = "\n".join(line.plain for line in in_words(record, ink)) + "\n"
    if file is None:
        console.print(Text(text, end=""))
        return
    _write(file, text)
    console.print(f"Hand {record.hand_number} of table {record.table_id}: {file}")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise SuiteError(f"cannot write {file}", str(error)) from None


async def check(
    access: Callable[[], Access],
    console: Console,
    given: str,
    hand_number: int | None,
    commitment: str,
) -> None:
    """Print that a hand checks out; raises VerificationFailed where it does not."""
    if hand_number is not None:
        record, promised = await fetched(access(), given, hand_number)
        source = "told by the table"
    else:
        record = read(_file(given))
        promised, source = record.table_commitment, "told by the record itself"
    if commitment:
        try:
            promised, source = bytes.fromhex(commitment), "as given"
        except ValueError:
            hint = "It has 64 figures, 0 to 9 and a to f."
            raise SuiteError(f"{commitment} is no commitment", hint) from None
    found = verify(record, promised)
    shuffle, number = found.shuffle, record.hand_number
    console.print(f"Hand {number} of table {record.table_id}")
    console.print(f"  commitment  {promised.hex()} ({source})")
    console.print(f"  secret      {record.secret.hex()}")
    times = "once" if number == 1 else f"{number} times"
    console.print(
        f"  The secret, hashed {times}, is the commitment. The wall of "
        f"{shuffle.wall_tiles} tiles follows from it."
    )
    console.print(
        f"  {shuffle.dealt} tiles dealt, {shuffle.drawn_front} drawn from the front and "
        f"{shuffle.drawn_back} from the back are that wall in its order."
    )
    console.print(
        f"  Played again by the rules of {record.rules.id}, revision {record.rules.revision}: "
        f"all {found.steps} steps follow, and the score."
    )
    if found.payments is None:
        console.print("  Nothing was paid: the table has no stakes, or the hand waits for it.")
    else:
        console.print(
            f"  {found.payments} payments are what it scored, times what a unit is worth."
        )
    console.print("[green]The hand checks out.[/green]")


def opened(record: records_pb2.HandRecord) -> TableView:
    """A picture of the table before the hand, as far as its record tells."""
    view = TableView()
    view.apply(before_hand(record))
    return view


def in_words(record: records_pb2.HandRecord, ink: Ink) -> list[Text]:
    """A record for a person to read."""
    view = opened(record)
    options = ", ".join(
        f"{key} {option_text(record.rules.options[key])}" for key in sorted(record.rules.options)
    )
    lines = [
        Text(f"Table       {record.table_id}"),
        Text(f"Hand        {record.hand_number}"),
        Text(f"Rules       {record.rules.id}, revision {record.rules.revision}"),
        Text(f"Options     {options or 'none'}"),
        *(Text(f"Label       {key}: {record.labels[key]}") for key in sorted(record.labels)),
        *(
            Text(f"Stake       {stake.per_unit} {stake.currency} {stake.book}".rstrip())
            for stake in record.stakes
        ),
        *(
            Text(f"Seat {seat}      {player_id}, entropy {entropy.hex() or 'none'}")
            for seat, (player_id, entropy) in enumerate(
                zip(record.player_ids, record.entropy, strict=True)
            )
        ),
        Text(f"Commitment  {record.table_commitment.hex()}"),
        Text(f"Secret      {record.secret.hex()}"),
    ]
    for start in range(0, len(record.wall), TILES_A_LINE):
        tiles = " ".join(str(tile) for tile in record.wall[start : start + TILES_A_LINE])
        lines.append(Text(f"{'Wall' if not start else '':12}{tiles}"))
    lines.append(Text())
    for event in record.events:
        view.apply(event)
        lines += told(event, view, ink)
    return lines


def option_text(value: rules_pb2.OptionValue) -> str:
    """An option's value as a person writes it."""
    kind = value.WhichOneof("value")
    return str(getattr(value, kind)).lower() if kind else ""
