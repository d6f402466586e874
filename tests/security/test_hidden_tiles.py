"""No secret of a shuffle, no wall and no dealt hand of a whole evening is written down in the open.

Neither in a log, of debug too, nor in a trace, a metric or a file of any database.
"""

from __future__ import annotations

import json

import pytest
from google.protobuf import json_format

from fangcheng_table.codec import encode
from fangcheng_table.records import record_of

from .evening import Evening
from .hidden import hidden


@pytest.fixture(scope="module")
def wanted(evening: Evening) -> dict[str, set[bytes]]:
    """What is looked for, of a table that was played and of one whose hand is to come."""
    return {
        name: forms
        for records in evening.journals.values()
        for name, forms in hidden(records).items()
    }


def found(wanted: dict[str, set[bytes]], text: bytes) -> list[str]:
    return [name for name, forms in wanted.items() if any(form in text for form in forms)]


def test_nothing_hidden_is_in_a_log_a_trace_or_a_metric(evening, wanted):
    assert len(wanted) == len(["root", "secret", "wall", *range(4)]) + len(["root", "to come"])
    logs = "\n".join(
        text
        for line in evening.lines
        for text in (json.dumps(line, ensure_ascii=False), repr(line))
    )
    assert "hand started" in logs
    assert found(wanted, logs.encode()) == []
    assert found(wanted, b"\n".join(evening.spans)) == []
    for text in evening.metrics.values():
        assert found(wanted, text.encode()) == []


def test_nothing_hidden_is_in_a_file_of_a_database(evening, wanted):
    """As the files were while the evening went on, and as it has left them."""
    assert {"table.db", "table.db-wal", "wallet.db", "matchmaking.db"} <= set(evening.files)
    for name, content in evening.files.items():
        assert found(wanted, content) == [], name
    # Who has a seat is found without a key: it was the right file.
    assert b'"ann"' in evening.files["table.db"] + evening.files["table.db-wal"]


def test_what_is_looked_for_is_found_where_it_stands(evening, wanted):
    """Or the tests above would find nothing anywhere: in a record as it is told after the hand, in
    the events as they are without a key."""
    (played,) = [records for records in evening.journals.values() if len(records) > 10]
    theirs = {name for name in hidden(played) if "root" not in name}
    record = record_of(played, 1)
    for text in (str(record).encode(), json_format.MessageToJson(record, indent=0).encode()):
        text = text.replace(b",\n", b", ").replace(b"\ntiles: ", b" ").replace(b"\nwall: ", b", ")
        assert {name for name in theirs if "secret" in name or "wall" in name} <= set(
            found(wanted, text)
        )
    for text in (b"".join(encode(one.event) for one in played), repr(played).encode()):
        assert set(found(wanted, text)) == {*hidden(played)}
