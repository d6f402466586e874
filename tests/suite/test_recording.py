"""Records in words, as JSON, step by step in a terminal, and checked: all from a file."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from rich.console import Console
from typer.testing import CliRunner, Result

from fangcheng.table.v1 import events_pb2, records_pb2
from fangcheng_suite.commands import app
from fangcheng_suite.errors import SuiteError
from fangcheng_suite.recording import in_words, read
from fangcheng_suite.render import Ink
from fangcheng_suite.replaying import show_replay
from fangcheng_suite.verify import verify
from tests.table.hands import played_record

RECORD = played_record("baishan_kele", 4)

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("FANGCHENG_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hand.json"
    path.write_text(json_format.MessageToJson(RECORD, preserving_proto_field_name=True), "utf-8")
    return path


def test_a_record_is_read_as_it_was_written(file: Path) -> None:
    assert read(file) == RECORD


def test_a_record_in_words_has_all_that_is_needed_to_check_it_by_hand() -> None:
    lines = [line.plain for line in in_words(RECORD, Ink(chinese=False))]
    text = "\n".join(lines)
    assert RECORD.secret.hex() in text
    assert RECORD.table_commitment.hex() in text
    wall = [line[12:] for line in lines if line.startswith("Wall")]
    rest = lines[lines.index("Wall        " + wall[0]) + 1 :]
    wall += [line[12:] for line in rest[: rest.index("")]]
    assert [int(tile) for tile in " ".join(wall).split()] == list(RECORD.wall)
    for kind, verb in (("drawn", " draws "), ("discarded", " discards "), ("dealt", " is dealt ")):
        told = sum(verb in line for line in lines)
        events = sum(event.HasField(kind) for event in RECORD.events)
        assert told == (4 if kind == "dealt" else events)
    assert any(line.startswith("Hand 1  ") for line in lines)  # the result
    for player in RECORD.player_ids:
        assert player in text


def test_a_file_is_verified_without_a_suite(run: Run, file: Path) -> None:
    ended = run("verify", file)
    assert ended.exit_code == 0, ended.output
    assert "told by the record itself" in ended.output
    assert "The hand checks out." in ended.output
    ended = run("verify", file, "--commitment", RECORD.table_commitment.hex())
    assert "as given" in ended.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--commitment", "00" * 32], "another commitment than the table did"),
        (["--commitment", "xyz"], "xyz is no commitment"),
    ],
)
def test_a_commitment_that_does_not_fit_is_told(
    run: Run, file: Path, words: list[str], said: str
) -> None:
    ended = run("verify", file, *words)
    assert ended.exit_code == 1
    assert said in " ".join(ended.stderr.split())


def test_a_forged_file_is_told_with_what_does_not_follow(run: Run, tmp_path: Path) -> None:
    forged = played_record("baishan_kele", 4)
    forged.events[30].time.seconds += 1  # times are nobody's proof
    place = next(n for n, event in enumerate(forged.events) if event.HasField("discarded"))
    del forged.events[place]
    file = tmp_path / "forged.json"
    file.write_text(json_format.MessageToJson(forged), "utf-8")
    ended = run("verify", file)
    assert ended.exit_code == 1
    assert "does not follow" in ended.stderr


def forged(change: Callable[[records_pb2.HandRecord], object]) -> records_pb2.HandRecord:
    record = records_pb2.HandRecord()
    record.CopyFrom(RECORD)
    change(record)
    return record


def _discarded(record: records_pb2.HandRecord) -> events_pb2.Discarded:
    return next(event.discarded for event in record.events if event.HasField("discarded"))


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (records_pb2.HandRecord(), "no table has a hand 0"),
        (
            forged(lambda it: setattr(it, "hand_number", 2**32 - 1)),
            "no table has a hand 4294967295",
        ),
        (forged(lambda it: setattr(it.rules, "id", "riichi")), "there is no rule set 'riichi'"),
        (forged(lambda it: setattr(it.rules, "revision", 9)), "baishan_kele is here in revision 1"),
        (forged(lambda it: it.entropy.pop()), "does not check out|is of no hand"),
        (forged(lambda it: setattr(_discarded(it), "tile", 9)), "9 is not the code of a tile"),
        (forged(lambda it: setattr(_discarded(it), "seat", 4)), "does not follow"),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)
def test_a_record_that_no_hand_can_have_is_told_in_a_line(
    run: Run, tmp_path: Path, record: records_pb2.HandRecord, said: str
) -> None:
    file = tmp_path / "forged.json"
    file.write_text(json_format.MessageToJson(record), "utf-8")
    ended = run("verify", file)
    assert ended.exit_code == 1
    assert re.search(said, " ".join(ended.stderr.split())), ended.stderr


def fields_of(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """Every field that a message has set, those of the messages in it too."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type and not hasattr(value, "keys"):
            for inner in value if hasattr(value, "__len__") else [value]:
                yield from fields_of(inner)


def verified(record: records_pb2.HandRecord) -> None:
    verify(record, record.table_commitment)


def replayed(record: records_pb2.HandRecord) -> None:
    console = Console(file=io.StringIO(), force_terminal=False)
    asyncio.run(show_replay(record, console, Ink(chinese=False), speed=1, step=False))


@pytest.mark.parametrize("rules", ["baishan_kele", "baicheng", "shandong"])
def test_whatever_is_changed_in_a_record_there_is_an_answer(rules: str) -> None:
    chance = random.Random(rules)
    honest = played_record(rules, 4)
    refused = 0
    for _ in range(25):
        record = records_pb2.HandRecord()
        record.CopyFrom(honest)
        message, field = chance.choice(list(fields_of(record)))
        value = getattr(message, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            setattr(message, field.name, chance.choice([0, 4, 9, 99]))
        elif hasattr(value, "pop") and not hasattr(value, "keys"):
            value.pop(chance.randrange(len(value)))
        else:
            message.ClearField(field.name)
        for follow in (verified, replayed):
            try:
                follow(record)
            except SuiteError:
                refused += 1
    assert refused > 5


@pytest.mark.parametrize(
    ("content", "said"), [(None, "no file"), ("{", "is no record"), ('{"x": 1}', "is no record")]
)
def test_a_file_that_is_none_is_told(
    run: Run, tmp_path: Path, content: str | None, said: str
) -> None:
    file = tmp_path / "hand.json"
    if content is not None:
        file.write_text(content, "utf-8")
    for command in ("verify", "replay"):
        ended = run(command, file)
        assert ended.exit_code == 1
        assert said in " ".join(ended.stderr.split())


def test_a_folder_is_no_record(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="cannot read"):
        read(tmp_path)


def test_a_replay_without_a_terminal_tells_a_line_for_each_event(run: Run, file: Path) -> None:
    ended = run("replay", file)
    assert ended.exit_code == 0, ended.output
    lines = ended.output.splitlines()
    assert lines[0].startswith("Hand 1, dealer ")
    assert sum(" draws " in line for line in lines) == sum(
        event.HasField("drawn") for event in RECORD.events
    )
    assert any(line.startswith("Hand 1  ") for line in lines)


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, *words: str | Path) -> None:
        self._ours, theirs = pty.openpty()
        self.said = ""
        command = [sys.executable, "-c", "from fangcheng_suite.cli import main; main()", *words]
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, process_group=0
        )
        os.close(theirs)

    def until(self, words: str) -> None:
        """Read until it has said so."""
        while words not in self.said:
            self.said += os.read(self._ours, 65_536).decode("utf-8", "replace")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Read to its end; its exit code."""
        try:
            while data := os.read(self._ours, 65_536):
                self.said += data.decode("utf-8", "replace")
        except OSError:  # what a terminal says when nobody has it open any more
            pass
        os.close(self._ours)
        return self.process.wait(30)


def test_a_replay_in_a_terminal_draws_every_step_to_the_end(file: Path) -> None:
    terminal = Terminal("replay", file, "--speed", "100")
    assert terminal.end() == 0
    assert f"of {len(RECORD.events)}" in terminal.said
    assert "Traceback" not in terminal.said


def test_a_replay_waits_for_enter_where_it_is_told_to(file: Path) -> None:
    terminal = Terminal("replay", file, "--step")
    terminal.until("1 of ")
    for step in ("2 of ", "3 of "):
        assert step not in terminal.said
        terminal.type("\n")
        terminal.until(step)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 0
    assert "Traceback" not in terminal.said
    assert "Stopped." in terminal.said


def test_ctrl_c_ends_a_replay_and_leaves_the_terminal_as_it_was(file: Path) -> None:
    terminal = Terminal("replay", file, "--speed", "0.1")
    terminal.until("1 of ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 0
    assert "Traceback" not in terminal.said
    assert terminal.said.count("\x1b[?25l") == terminal.said.count("\x1b[?25h")  # the cursor
