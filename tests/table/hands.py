"""Records of hands that were played at a table without a process."""

from __future__ import annotations

import functools

from fangcheng.table.v1 import records_pb2
from fangcheng_table.records import record_of

from .tables import SILVER, Drive, at_random, created


@functools.cache
def _played(rules_id: str, seed: int) -> bytes:
    drive = Drive.of(created(root=bytes([seed + 1]) * 32, rules_id=rules_id, stakes=[SILVER]))
    drive.table.give_entropy(seed % 4, bytes([seed, 0, 255]))
    drive.attend(*(range(4) if seed % 3 else range(3)))
    drive.play(at_random(seed, 0.9))
    return record_of(drive.records, 1).SerializeToString()


def played_record(rules_id: str, seed: int) -> records_pb2.HandRecord:
    """The record of a hand between four who play at random; every third time a seat is empty."""
    return records_pb2.HandRecord.FromString(_played(rules_id, seed))
