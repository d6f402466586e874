"""What tables keep to themselves while a hand is played, in every form it could be written in."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

from google.protobuf import text_encoding

from fangcheng_rules import events as play
from fangcheng_rules.notation import to_chinese, to_glyphs, to_mpsz
from fangcheng_rules.tiles import code
from fangcheng_table.dealing import chain_of
from fangcheng_table.events import HandOpened, TableCreated
from fangcheng_table.store import Record

IN_A_ROW = 10
"""So many tiles of a wall, one after the other, are no chance."""


def hidden(records: Sequence[Record]) -> dict[str, set[bytes]]:
    """The forms of what is hidden in a table's journal, by what it is.

    The root of its secrets, those of its hands and of the next one, the walls, the dealt hands.
    """
    found: dict[str, set[bytes]] = {}
    number = 0
    for record in records:
        match record.event:
            case TableCreated() as table:
                created = table
                found[f"{table.table_id}: root"] = set(of_bytes(table.root))
            case HandOpened() as opened:
                number = opened.hand_number
                found[f"{created.table_id}: secret {number}"] = set(of_bytes(opened.secret))
            case play.HandStarted() as started:
                found[f"{created.table_id}: wall {number}"] = of_wall(started.wall)
            case play.Dealt() as dealt:
                for seat, tiles in enumerate(dealt.hands):
                    forms = {*of_tiles(tiles[:13]), *of_notation(tiles[:13])}
                    found[f"{created.table_id}: hand {number} of seat {seat}"] = forms
            case _:
                pass
    if number < created.hands:
        secret = chain_of(created.root, created.hands).secret(number + 1)
        found[f"{created.table_id}: secret {number + 1}, to come"] = set(of_bytes(secret))
    return found


def of_bytes(value: bytes) -> Iterator[bytes]:
    """Some bytes as they are, and as programs write them."""
    yield value
    yield value.hex().encode()
    yield value.hex().upper().encode()
    yield base64.b64encode(value).rstrip(b"=")
    yield base64.urlsafe_b64encode(value).rstrip(b"=")
    yield repr(value)[2:-1].encode()
    yield str(list(value))[1:-1].encode()
    escaped: str = text_encoding.CEscape(value, False)  # as protobuf shows it
    yield escaped.encode()


def of_wall(wall: Sequence[int]) -> set[bytes]:
    """Every stretch of it, from either end."""
    stretches = [wall[start : start + IN_A_ROW] for start in range(len(wall) - IN_A_ROW + 1)]
    return {
        form for stretch in stretches for run in (stretch, stretch[::-1]) for form in of_tiles(run)
    }


def of_tiles(tiles: Sequence[int]) -> Iterator[bytes]:
    """Tiles in their order, by their kinds and by their codes."""
    for numbers in (tiles, [code(tile) for tile in tiles]):
        yield bytes(numbers)
        for between in (", ", ",", " "):
            yield between.join(map(str, numbers)).encode()


def of_notation(tiles: Sequence[int]) -> Iterator[bytes]:
    """A hand as people write it."""
    for written in (to_mpsz, to_chinese, to_glyphs):
        yield written(tiles).encode()
