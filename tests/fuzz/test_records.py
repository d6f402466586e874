"""A record of a hand that anybody may have written: checked, shown and told, or refused."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from google.protobuf import json_format
from rich.console import Console

from fangcheng.table.v1 import records_pb2
from fangcheng_rules.rulesets import RULE_SETS
from fangcheng_suite import recording
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.render import Ink
from fangcheng_suite.replaying import show_replay
from fangcheng_suite.verify import followed, verify
from tests.fuzz.mutations import Mutator
from tests.fuzz.shares import chance, counted, in_words
from tests.table.hands import played_record


def test_a_record_checks_out_or_is_refused_in_words(tmp_path: Path) -> None:
    rng = chance("records")
    for _ in counted("records"):
        written = _written(rng, tmp_path)
        try:
            record = recording.read(written)
        except SuiteError as error:
            in_words(error.message)
            continue
        _refused_in_words(rng, record)


def _written(rng: random.Random, folder: Path) -> Path:
    """A file like those that `fangcheng record --json` writes."""
    mutator = Mutator(rng)
    record = played_record(rng.choice(RULE_SETS).id, rng.randrange(2))
    if rng.random() < 0.05:
        record.CopyFrom(mutator.made(records_pb2.HandRecord.DESCRIPTOR))
    for _ in range(rng.choice((1, 1, 2, 3))):
        mutator.mutate(record)
    file = folder / "hand.json"
    try:
        data = json_format.MessageToJson(record, preserving_proto_field_name=True).encode()
    except (ValueError, json_format.SerializeToJsonError):
        data = b"{}"  # a time or the like that has no text
    file.write_bytes(mutator.broken(data) if rng.random() < 0.1 else data)
    return file


def _refused_in_words(rng: random.Random, record: records_pb2.HandRecord) -> None:
    ink = Ink()
    try:
        verify(record, record.table_commitment)
    except SuiteError as error:
        in_words(error.message)
    try:
        with followed():
            assert recording.in_words(record, ink)
    except SuiteError as error:
        in_words(error.message)
    if rng.random() > 0.2:
        return
    # Pictures of every step take most of a second.
    console = Console(quiet=True, force_terminal=rng.random() < 0.05)
    try:
        asyncio.run(show_replay(record, console, ink, speed=1e9, step=False))
    except SuiteError as error:
        in_words(error.message)
