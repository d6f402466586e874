"""Whole hands as text: the same moves bring about the same events, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from fangcheng_rules.round import Round
from tests.rules.transcripts import files, play, read


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_a_transcript_plays_as_it_is_written(file: Path) -> None:
    written = file.read_text(encoding="utf-8")
    played, _ = play(read(written))
    assert played == written, "python -m tests.rules.transcripts writes it anew"


@pytest.mark.parametrize("file", files(), ids=lambda file: file.stem)
def test_a_transcript_replays_to_the_same_state(file: Path) -> None:
    transcript = read(file.read_text(encoding="utf-8"))
    _, events = play(transcript)
    _, again = play(transcript)
    assert again == events
    assert Round.replay(events) == Round.replay(again)
    assert Round.replay(events).ended
